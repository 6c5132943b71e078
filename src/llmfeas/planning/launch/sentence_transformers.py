"""Sentence Transformers: a program that makes vectors of texts or scores pairs of them, or trains a model to, and its
recipe as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ...catalog.store import data_directory
from ...scenario import Scenario
from ...workload.serving import longest_request
from ..expressed.expressible import DTYPES
from ..expressed.trainers import DEVICES, SENTENCE_TRANSFORMERS
from ..nodes import nodes_of
from ..repositories import model_name
from . import trainer
from .launcher import File, Launch, Launcher, Reader
from .names import DATASET, model_notes, training_notes
from .parsers import json_of, module
from .shell import command, nodes_note
from .text import as_json
from .torchrun_fsdp import processes

READS, LEARNS = "encode.py", "embed.py"
SCORES, LEARNS_SCORES = "score.py", "rerank.py"
"""The same for a model that scores a query and a text together."""
RANKING, CACHED = "MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss"
COLUMNS = ("anchor", "positive", "negative")
"""Columns of the data, as many as texts in an example."""
PAIR, LABEL = ("query", "text"), "label"
"""Columns of pairs, and of what they are scored with: 0 to 1."""
BY_LABEL = "BinaryCrossEntropyLoss"


@lru_cache(maxsize=2)
def program(name: str) -> File:
    """A program that reads a recipe."""
    return File(name, (data_directory() / "launch" / name).read_text(encoding="utf-8"))


def reading_recipe(scenario: Scenario) -> Mapping[str, object]:
    """What the program needs to know to read texts."""
    word = DEVICES[scenario.device.backend]
    several = [f"{word}:{index}" for index in range(scenario.num_devices)]
    scored = scenario.model.reranker is not None
    return {
        "name": model_name(scenario),
        "devices": several if scenario.num_devices > 1 else [word],
        "options": _options(scenario, DTYPES[scenario.precision]),
        "quantization": trainer.quantization(scenario),
        "max_seq_length": longest_request(scenario),
        "batch_size": -(-scenario.concurrency // scenario.num_devices),
        "data": {
            "dataset": DATASET,
            "split": "train",
            **({"columns": list(PAIR)} if scored else {"text_field": "text"}),
        },
        **(_tokens(scenario) if scored else {}),
        "output": "scores.npy" if scored else "vectors.npy",
    }


def _tokens(scenario: Scenario) -> Mapping[str, object]:
    """The tokens whose logits are the score, the one for yes last; none where a label is."""
    scored = scenario.model.reranker
    return {"tokens": list(scored.tokens) if scored is not None and scored.by == "tokens" else None}


def learning_recipe(scenario: Scenario) -> Mapping[str, object]:
    """What the program needs to know to train."""
    pairs = scenario.task == "rerank"
    arguments, cached = trainer.training(scenario), not (scenario.objective is None or scenario.objective.kept)
    loss: dict[str, object] = {"class": BY_LABEL if pairs else CACHED if cached else RANKING}
    if cached:
        # a batch is as large as one likes, in parts of a micro-batch
        arguments["per_device_train_batch_size"] = scenario.micro_batch * scenario.micro_steps
        arguments["gradient_accumulation_steps"] = 1
        loss["mini_batch_size"] = scenario.micro_batch
    return {
        "model": {"name": model_name(scenario), "options": _options(scenario, trainer.weights_dtype(scenario))},
        "quantization": trainer.quantization(scenario),
        "lora": trainer.low_rank_pairs(scenario, _kind_of_task(scenario)) if scenario.trains_adapters else None,
        "loss": loss,
        "data": {
            "dataset": DATASET,
            "split": "train",
            "columns": _columns(scenario),
            "seq_len": scenario.seq_len,
        },
        **(_tokens(scenario) if pairs else {}),
        "training": arguments if pairs else {**arguments, "batch_sampler": "no_duplicates"},
    }


def _columns(scenario: Scenario) -> list[str]:
    return [*PAIR, LABEL] if scenario.task == "rerank" else list(COLUMNS[: scenario.sequences_an_example])


def _options(scenario: Scenario, dtype: str) -> Mapping[str, object]:
    return {"dtype": dtype, "attn_implementation": trainer.attention(scenario)}


def _kind_of_task(scenario: Scenario) -> str:
    """What peft calls a class that makes vectors, one with labels, and one that writes."""
    if scenario.task == "embed":
        return "FEATURE_EXTRACTION"
    return "CAUSAL_LM" if scenario.model.architecture.scores_by_tokens else "SEQ_CLS"


def write(scenario: Scenario) -> Launch:
    """Write the program and its recipe."""
    if scenario.task == "inference":
        scored = scenario.model.reranker is not None
        name, what = (SCORES, "pairs") if scored else (READS, "texts")
        files = (File(trainer.RECIPE, as_json(reading_recipe(scenario))), program(name))
        line = command(["python", name, trainer.RECIPE])
        return Launch(files, line, (*model_notes(scenario), f"put your {what} in place of {DATASET}"))
    nodes, name = nodes_of(scenario), LEARNS_SCORES if scenario.task == "rerank" else LEARNS
    files = (File(trainer.RECIPE, as_json(learning_recipe(scenario))), program(name))
    line = command(["torchrun"], *processes(nodes), [name, trainer.RECIPE])
    columns = ", ".join(f"'{each}'" for each in _columns(scenario))
    notes = (*training_notes(scenario), f"the data needs the columns {columns}", *nodes_note(nodes))
    return Launch(files, line, notes)


def read(launch: Launch, folder: Path) -> None:
    """Let the library read its arguments; what asks for a device or a file is left out."""
    recipe = json_of(folder, trainer.RECIPE)
    library, place = module("sentence_transformers"), "sentence_transformer"
    if "training" not in recipe:
        return
    training = {**recipe["training"], "use_cpu": True, "bf16": False, "fp16": False, "tf32": None}
    arguments = library.SentenceTransformerTrainingArguments
    if (folder / LEARNS_SCORES).is_file():
        arguments, place = library.CrossEncoderTrainingArguments, "cross_encoder"
    arguments(**{**training, "output_dir": str(folder / "output")})
    getattr(module(f"sentence_transformers.{place}.losses"), recipe["loss"]["class"])
    if recipe["lora"]:
        module("peft").LoraConfig(**recipe["lora"])


LAUNCHER = Launcher(
    expressed=SENTENCE_TRANSFORMERS,
    name="Sentence Transformers",
    release="sentence-transformers 6.2, transformers 5.24, peft 0.21",
    install=("torch", "sentence-transformers>=6", "datasets"),
    needs=trainer.needs,
    write=write,
    reader=Reader("sentence_transformers", read),
)
