"""Recipes to launch, and what was written, read back as the engines read it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from llmfeas.catalog.store import built_in
from llmfeas.errors import UsageError
from llmfeas.planning.launch import LAUNCHERS, Launch, Prepared, prepared

DOCUMENTED = Path(__file__).parents[2] / "data" / "launch"

MODELS = ("llama-3-8b", "gpt2", "mixtral-8x7b")
"""The first one with every recipe on the first two devices, the others with two."""
READERS = ("bge-m3", "bert-base", "modernbert-base", "qwen3-embedding-0.6b", "bge-reranker-base", "qwen3-reranker-0.6b")
OWN_MODELS = {
    "sentence-transformers": READERS,
    "text-embeddings-inference": READERS,
    "infinity": READERS,
    "ktransformers": ("mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"),
}
DEVICES: Mapping[str, tuple[str, ...]] = {
    "megatron": ("h100-sxm", "8xh100-sxm", "32xh100-sxm"),
    "maxtext": ("tpu-v5e", "8xtpu-v5p", "16xh100-sxm"),
    "mlx-lm": ("m2-max", "2xm2-ultra"),
    "llama.cpp": ("rtx-4090", "2xrtx-3090", "m2-max", "ryzen-9-7950x"),
    "vllm": ("h100-sxm", "8xh100-sxm", "16xh100-sxm"),
    "tensorrt-llm": ("h100-sxm", "2xh100-sxm", "8xh100-sxm"),
    "ollama": ("rtx-4090", "2xrtx-3090", "m2-max", "ryzen-9-7950x"),
    "text-embeddings-inference": ("rtx-4090", "l4", "a10g-24gb", "m2-max", "ryzen-9-7950x"),
    "infinity": ("rtx-4090", "8xh100-sxm", "mi300x", "m2-max", "ryzen-9-7950x"),
    "sentence-transformers": ("rtx-4090", "8xh100-sxm", "m2-max", "ryzen-9-7950x"),
}
OTHER_DEVICES = ("rtx-4090", "8xh100-sxm", "16xh100-sxm")
TRAINING: tuple[dict[str, object], ...] = (
    {},
    {"checkpointing": "full", "micro_batch": 2, "global_batch": 64},
    {"optimizer": "adamw-8bit"},
    {"optimizer": "sgd-momentum", "precision": "fp32"},
    {"optimizer": "muon"},
    {"optimizer": "lion"},
    {"optimizer": "galore"},
    {"optimizer": "adamw-schedule-free"},
    {"precision": "bf16"},
    {"precision": "fp16-mixed"},
    {"precision": "fp8-mixed"},
    {"lora_targets": "attention", "lora_rank": 64},
    {"quant": "int8"},
    {"zero": 0},
    {"zero": 2},
    {"offload": "activations"},
    {"offload": "optimizer"},
    {"offload": "all"},
    {"tp": 2, "zero": 1},
    {"pp": 2},
    {"pp": 2, "interleave": 2},
    {"cp": 2},
    {"ep": 2},
    {"dropout": 0.1},
    {"attention": "eager"},
    {"engine": "pytorch-liger"},
    {"loss": "kto", "reference": "precomputed"},
)
SERVING: tuple[dict[str, object], ...] = (
    {},
    {"quant": "q4_k_m"},
    {"quant": "fp8"},
    {"quant": "awq-int4"},
    {"quant": "int8"},
    {"context": 1024, "concurrency": 16, "prompt": 100},
    {"kv_dtype": "fp8"},
    {"kv_dtype": "int8"},
    {"kv_dtype": "q5_1"},
    {"offload": "all"},
    {"gpu_layers": 8},
    {"tp": 2},
    {"pp": 2},
    {"precision": "fp32"},
    {"draft": "llama-3.2-1b", "spec_tokens": 4},
    {"draft": "eagle"},
    {"disaggregate": "2:6", "tp": 2},
)


def launched(engine: str, /, **request: object) -> Launch:
    """Launch a request, that must be possible."""
    return ready(engine, **request).launch


def ready(engine: str, /, **request: object) -> Prepared:
    """Prepare a request, that must be possible."""
    return prepared(request, LAUNCHERS[engine], built_in())


@cache
def every_launch(engine: str) -> tuple[tuple[str, Launch], ...]:
    """Launch an engine with every recipe above that it and the layout allow: (what was asked, launch)."""
    found = []
    models = OWN_MODELS.get(engine, MODELS)
    for task in LAUNCHERS[engine].tasks:
        for model in models:
            for place, device in enumerate(DEVICES.get(engine, OTHER_DEVICES)):
                recipes = SERVING if task == "inference" else TRAINING
                for extra in recipes if model == models[0] and place < 2 else recipes[:2]:
                    request = {"model": model, "device": device, "task": task, **extra}
                    try:
                        found.append((str(request), launched(engine, **request)))
                    except UsageError:
                        continue
    return tuple(found)


def contents(launch: Launch) -> dict[str, Any]:
    """Read the files of a launch: YAML and JSON as data, others as text."""
    return {file.name: _content(file.name, file.text) for file in launch.files}


def _content(name: str, text: str) -> Any:
    if name.endswith((".yaml", ".yml")):
        return yaml.safe_load(text)
    return json.loads(text) if name.endswith(".json") else text


def words(launch: Launch) -> list[str]:
    """Split the last command of a launch as a shell would; variables stand as their names."""
    return shlex.split(launch.command.replace("\\\n", " ").splitlines()[-1].replace("$", ""))


def options(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each long option with the words behind it; a `--` between two programs is none."""
    name: str | None = None
    behind: list[str] = []
    for word in words:
        if word == "--":
            continue
        if word.startswith("--"):
            if name is not None:
                yield name, behind
            name, behind = word, []
        else:
            behind.append(word)
    if name is not None:
        yield name, behind


def value(launch: Launch, option: str) -> str | None:
    """The word behind an option of the command; None where it is not there, "" where it stands alone."""
    for name, behind in options(words(launch)):
        if name == option:
            return behind[0] if behind else ""
    return None


@cache
def documented(name: str) -> dict[str, Any]:
    """Read the table of names and types that an engine documents."""
    return dict(json.loads((DOCUMENTED / f"{name}.json").read_text(encoding="utf-8")))


TYPES: Mapping[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
    "null": (type(None),),
}


def is_of(content: object, kinds: str) -> bool:
    """Whether a value is of one of the kinds, written `bool|null`."""
    if kinds == "any":
        return True
    if isinstance(content, bool):
        return "bool" in kinds.split("|")
    return isinstance(content, tuple(kind for name in kinds.split("|") for kind in TYPES.get(name, ())))
