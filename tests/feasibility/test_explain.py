"""The derivation names each figure of the screen, and whoever puts its numbers into its formulas gets the figure."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.agreement import asked
from llmfeas.catalog.store import catalog
from llmfeas.contract import plain
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.explain import explanation
from llmfeas.feasibility.result import Term
from llmfeas.render.explain import exact, spelled
from llmfeas.settle import resolution
from llmfeas.timing import inference, training

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS: dict[str, Callable[..., float]] = {
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "expm1": math.expm1,
}
ASKS: list[dict[str, object]] = [
    {"model": "gpt2-xl", "device": "rtx-4070ti", "task": "pretrain", "electricity": 0.3},
    {"model": "gpt2", "device": "rtx-4090", "task": "finetune", "attention": "eager", "micro_batch": 1},
    {"model": "gpt2", "device": "t4", "task": "pretrain", "mfu": 0.4, "price": 1},
    {"task": "qlora", "examples": 1000},
    {"task": "finetune", "offload": "all", "optimizer": "muon"},
    {"task": "lora", "offload": "activations", "micro_batch": 1},
    {"device": "64xh100-sxm", "task": "pretrain", "pp": 4, "tp": 2, "engine": "megatron"},
    {"device": "64xh100-sxm", "task": "finetune", "zero": 3},
    {"device": "rtx-4090", "task": "lora", "mtbf": "90d", "storage": 2},
    {"model": "llama-3-70b", "device": "256xh100-sxm", "task": "pretrain", "storage": 0.001},
    {"task": "dpo", "adapters": "lora"},
    {"model": "qwen2.5-1.5b", "device": "8xh100-sxm", "task": "grpo"},
    {"task": "inference", "reserve": "2GiB", "rate": 1, "engine": "vllm", "quant": "awq-int4"},
    {"model": "mixtral-8x7b", "device": "64xh100-sxm", "task": "pretrain", "ep": 8, "engine": "megatron"},
    {"device": "4xrtx-4090", "task": "inference", "concurrency": 8, "prompt": 1000, "context": 3000},
    {"model": "llama-2-70b", "task": "inference", "quant": "q4_k_m", "gpu_layers": 40, "prompt": 100},
    {"model": "mixtral-8x7b", "device": "m2-ultra", "task": "inference", "quant": "q2_k"},
    {"task": "inference", "offload": "all"},
    {"device": "rtx-4090+2xrtx-3060-12gb", "task": "inference", "prompt": 4000, "context": 6000},
    {"model": "deepseek-v3", "device": "8xmi300x", "task": "inference", "engine": "sglang", "tp": 8},
    {
        "model": "qwen3-30b-a3b",
        "device": "a100-sxm-80gb",
        "task": "inference",
        "engine": "transformers",
        "transformers": "4",
    },
    {"model": "qwen3-8b", "device": "h20", "task": "inference", "engine": "vllm", "quant": "none"},
    {"model": "llama-3.2-1b", "task": "embed", "micro_batch": 4},
    {"model": "llama-3.2-1b", "task": "reward"},
    {"model": "qwen3-8b", "task": "distill", "teacher": "qwen3-14b", "device": "h100-sxm"},
    {"task": "lora", "lora_kind": "dora"},
    {"task": "lora", "lora_kind": "prompt"},
    {"model": "bert-base", "task": "inference", "prompt": 300},
    {"model": "flan-t5-large", "task": "inference", "prompt": 300, "concurrency": 2},
    {"model": "byt5-small", "device": "rtx-2080", "task": "inference", "gpu_layers": 0, "concurrency": 8},
    {"model": "kimi-k3", "device": "8xb200", "task": "inference"},
    {"model": "deepseek-v3.2", "device": "64xh100-sxm", "task": "finetune"},
    {"model": "gpt-oss-20b", "device": "8xh100-sxm", "task": "finetune", "transformers": "5"},
    {"model": "qwen3.6-35b-a3b", "task": "inference"},
    {"model": "qwen3-next-80b-a3b", "task": "inference", "host_memory": "128GiB", "prompt": 2000},
    {"model": "mamba-2.8b", "task": "finetune", "device": "h100-sxm"},
    {"model": "ouro-1.4b", "task": "finetune", "device": "h100-sxm"},
    {"model": "zamba2-1.2b", "task": "lora", "device": "h100-sxm"},
    {"model": "nanbeige4.2-3b", "task": "inference"},
    {"model": "llama-3.1-8b", "device": "2xh100-sxm", "task": "inference", "rate": 4, "prompt": 500, "engine": "vllm"},
    {"model": "llama-3.1-8b", "device": "4xrtx-4090", "task": "inference", "rate": 4, "engine": "sglang", "tp": 2},
]


def computed(formula: str, numbers: Mapping[str, object]) -> float:
    """The value of a formula, of numbers and the names of its inputs."""

    def value(node: ast.AST) -> float:
        if isinstance(node, ast.Expression):
            return value(node.body)
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return float(numbers[node.id])  # type: ignore[arg-type]
        if isinstance(node, ast.BinOp):
            return float(OPERATORS[type(node.op)](value(node.left), value(node.right)))
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return FUNCTIONS[node.func.id](*map(value, node.args))

    return value(ast.parse(formula, mode="eval"))


def terms(**request: object) -> dict[str, Term]:
    asked = {"model": "llama-3-8b", "device": "rtx-4090", **request}
    return {term.quantity: term for term in explanation(estimate(resolution(asked, catalog())))}


def inputs(term: Term) -> dict[str, object]:
    return {each.name: each.value for each in term.inputs}


def assert_recomputable(request: dict[str, object]) -> None:
    for term in terms(**request).values():
        found = computed(term.formula, inputs(term))
        assert math.isclose(found, term.value, rel_tol=1e-6, abs_tol=1e-12), (term.quantity, found, term.value)
        if isinstance(term.tensors, tuple):
            told = sum(group.count * math.prod(group.shape) * group.bytes_per_element for group in term.tensors)
            assert told == inputs(term)["tensors"]


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_every_formula_gives_its_value(ask: dict[str, object]) -> None:
    assert_recomputable(ask)


@settings(max_examples=20)
@given(
    model=st.sampled_from(["gpt2", "tinyllama-1.1b", "gemma-2-2b", "qwen3-30b-a3b", "deepseek-v2-lite"]),
    device=st.sampled_from(["rtx-3090", "m2-ultra", "mi300x", "tpu-v5e", "ryzen-9-7950x", "t4"]),
    task=st.sampled_from(["pretrain", "finetune", "lora", "qlora", "inference"]),
    devices=st.sampled_from([1, 2, 8, 16]),
    more=st.sampled_from(
        [{}, {"checkpointing": "full"}, {"micro_batch": 2}, {"concurrency": 32, "prompt": 500}, {"precision": "bf16"}]
    ),
)
def test_every_formula_of_any_question_gives_its_value(
    model: str, device: str, task: str, devices: int, more: dict[str, object]
) -> None:
    try:
        assert_recomputable({"model": model, "device": device, "task": task, "num_devices": devices, **more})
    except UsageError:
        return


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_every_formula_of_what_people_ask_gives_its_value(seed: int) -> None:
    """Any model, device, task and engine, with a few settings."""
    try:
        assert_recomputable(asked(seed))
    except UsageError:
        return


def test_memory_beside_tensors_has_names_of_its_own() -> None:
    """Weights gathered for a block, other micro-batches in flight, models beside, graphs, logits of a pass."""
    sharded = terms(device="4xrtx-4090", task="finetune", zero=3)
    assert {"gathered", "gathered_backward"} & inputs(sharded["memory.workspace_bytes"]).keys()
    assert {"context", "fixed", "gaps", "moving"} <= inputs(sharded["memory.runtime_bytes"]).keys()
    stages = terms(device="64xh100-sxm", task="pretrain", pp=4, tp=2, engine="megatron", global_batch=512)
    assert {"waiting", "kept"} <= inputs(stages["memory.activations_bytes"]).keys()
    assert "graphs" in inputs(terms(task="inference", engine="vllm")["memory.runtime_bytes"])
    logits = terms(task="inference", quant="q4_k_m")["memory.logits_bytes"]
    assert inputs(logits) == {"tokens": 512, "vocabulary": 128256, "element_bytes": 4.0}


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_the_numbers_on_the_screen_give_the_value_too(ask: dict[str, object]) -> None:
    for term in terms(**ask).values():
        shown = spelled(term.formula, {entry.name: exact(entry.value) for entry in term.inputs})
        typed = re.sub(r"(?<=\d),(?=\d{3})", "", shown).replace("×", "*").replace("^", "**")
        largest = max((abs(float(str(entry.value))) for entry in term.inputs), default=0.0)
        tolerance = 1e-6 * largest if "-" in term.formula else 0.0
        assert math.isclose(computed(typed, {}), term.value, rel_tol=2e-6, abs_tol=tolerance), term.quantity


def test_checkpoints_and_failures_are_derived_too() -> None:
    long = {name for name in terms(device="64xh100-sxm", task="pretrain") if name.startswith("long_run.")}
    found = {"checkpoint_seconds", "failure_seconds", "interval_seconds", "useful_share", "total_seconds", "failures"}
    assert long == {f"long_run.{name}" for name in found}


def test_counts_are_exact_on_the_screen() -> None:
    assert (exact(1557611200), exact(1557611200.0), exact(0.95)) == ("1,557,611,200", "1,557,611,200", "0.95")


def test_the_work_of_a_step_names_peak_efficiency_and_weights() -> None:
    matrix = terms(model="gpt2-xl", device="rtx-4070ti", task="pretrain")["time.step.matrix"]
    assert {"peak", "efficiency", "weights"} <= inputs(matrix).keys()
    assert {entry.name: entry.origin for entry in matrix.inputs}["efficiency"] == "data/efficiency.yaml"


def test_the_peak_is_told_down_to_its_tensors() -> None:
    kept = terms(model="gpt2-xl", device="rtx-4070ti", task="pretrain")["memory.activations_bytes"]
    assert isinstance(kept.tensors, tuple)
    (flash,) = [group for group in kept.tensors if group.operator == "attention, flash kernel"]
    assert (flash.shape, flash.bytes_per_element, flash.count) == ((1, 1024, 1600), 2, 48)
    assert sum(group.bytes for group in kept.tensors) > 0.95 * kept.value


def test_a_derivation_is_plain_data() -> None:
    for term in plain(tuple(terms(task="lora").values())):
        assert all(isinstance(entry["value"], int | float) for entry in term["inputs"])
        assert {"name", "value", "unit", "origin"} == set().union(*term["inputs"])


@pytest.mark.parametrize("more", [{}, {"quant": "q4_k_m"}, {"prompt": 512, "context": 2048}, {"num_devices": 4}])
def test_serving_is_derived_without_a_word_of_training(more: dict[str, object]) -> None:
    found = terms(task="inference", **more)
    said = " ".join(f"{term.text} {term.formula}" for term in found.values())
    assert not [word for word in ("backward", "checkpointing", "ZeRO", "optimizer") if word in said]
    for figure in ("decode_tokens_per_second", "prefill_tokens_per_second"):
        assert found[f"time.{figure}"].value > 0
    assert ("time.time_to_first_token_seconds" in found) == ("prompt" in more)


def test_parts_of_a_prompt_token_add_up_to_all_of_it() -> None:
    found = terms(task="inference", prompt=512, context=2048)
    shares = [term.share for name, term in found.items() if name.startswith("time.prefill.")]
    assert sum(share for share in shares if share is not None) == pytest.approx(1)


def test_a_given_share_of_the_peak_is_the_derivation() -> None:
    found = terms(task="finetune", mfu=0.4)
    assert not [name for name in found if name.startswith("time.step.")]
    assert inputs(found["time.step_seconds"])["mfu"] == 0.4


@pytest.mark.parametrize("ask", [{"task": "pretrain"}, {"task": "inference", "quant": "q4_k_m"}], ids=str)
def test_a_derivation_computes_no_time_again(ask: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its terms are those of the estimate, whose record keeps the parts."""
    found = estimate(resolution({"model": "gpt2", "device": "rtx-4090", **ask}, catalog()))
    for module in (inference, training):
        for name in ("step_parts", "decode_parts", "prefill_parts"):
            monkeypatch.setattr(module, name, None, raising=False)
    seconds = {term.quantity: term.value for term in explanation(found)}
    trained = isinstance(found.time, training.TrainingTime)
    kind, parts = ("step", found.time.parts) if trained else ("decode", found.time.decode_parts)  # type: ignore[union-attr]
    assert sum(parts.values()) > 0
    for name, value in parts.items():
        assert seconds.get(f"time.{kind}.{name}", 0.0) == pytest.approx(value, rel=0, abs=1e-12 * sum(parts.values()))
