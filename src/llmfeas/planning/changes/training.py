"""Changes of a training: of its recipe, its workload and, by other rooms, of where its parts lie."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log10

from ...catalog.backend import default_engine
from ...catalog.device import FULL_PRECISION, NARROW
from ...catalog.store import Catalog
from ...feasibility.bounds import Bounds
from ...feasibility.result import Estimate
from ...feasibility.verdict import IMPRACTICAL_SECONDS
from ...optimizers import OPTIMIZERS
from ...scenario import Scenario
from ...settle.lengths import FINETUNE_TOKENS
from ...units import format_bytes, format_count
from ...workload.kernels import has_host, runs_public_code
from .change import AUTO, FULL, Change, Source, change
from .placement import (
    context_parallel_changes,
    layout_changes,
    offload_changes,
    zero_changes,
)
from .serving import writer_changes

LARGEST_MICRO_BATCH_TOKENS = 65536
FACTORED = 3.0


def attention_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield the fused kernel for the eager one, and the other way where the software has no fused one."""
    scenario = estimate.scenario
    if scenario.attention == "eager":
        yield change(scenario, "attention-fused", {"attention": "flash"})
    elif scenario.was_given("attention") and estimate.verdict.software == "unsupported":
        yield change(scenario, "attention-eager", {"attention": "eager"})


def checkpointing_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield less recomputation (faster), then more (smaller)."""
    scenario = estimate.scenario
    if not scenario.is_training:
        return
    if scenario.checkpointing != "none":
        yield change(scenario, "checkpointing-less", {"checkpointing": "none"})
    # Adapters checkpoint everything unless told otherwise.
    only = ("task",) if scenario.method in FULL and not scenario.was_given("checkpointing") else ()
    if scenario.checkpointing == "none":
        yield change(scenario, "checkpointing-selective", {"checkpointing": "selective"}, alone=only)
    if scenario.checkpointing != "full":
        yield change(scenario, "checkpointing-full", {"checkpointing": "full"}, alone=only)


def micro_batch_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield larger micro-batches (fewer steps of the same batch), then smaller ones, where one was given."""
    scenario = estimate.scenario
    if not scenario.is_training or not scenario.was_given("micro_batch"):
        return
    micro, same = scenario.micro_batch, {"global_batch": scenario.global_batch}
    larger = 2 * micro
    while larger * scenario.seq_len <= LARGEST_MICRO_BATCH_TOKENS and larger * scenario.dp <= scenario.global_batch:
        yield change(scenario, "micro-batch-larger", {"micro_batch": larger, **same})
        larger *= 2
    while micro > 1:
        micro //= 2
        yield change(scenario, "micro-batch-smaller", {"micro_batch": micro, **same})


def precision_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield faster and smaller number formats that the device computes in, and ours for one that it cannot."""
    scenario, rates = estimate.scenario, estimate.scenario.device.tflop_per_s
    emulated = scenario.precision.startswith("bf16") and rates.bf16 is None
    if scenario.was_given("precision") and (emulated or estimate.verdict.software == "unsupported"):
        text = f"not {scenario.precision}, but the precision that the device is built for"
        yield change(scenario, "precision-usual", {"precision": AUTO}, text)
    if not scenario.is_training:
        return
    if scenario.precision in FULL_PRECISION:
        if rates.bf16 is not None:
            text = "16-bit products: the usual way to train today"
            yield change(scenario, "precision-usual", {"precision": "bf16-mixed"}, text)
        elif rates.fp16_matrix_fp32 is not None:
            text = "16-bit products with a loss scale: the usual way on this device"
            yield change(scenario, "precision-usual", {"precision": "fp16-mixed"}, text)
    whole = scenario.method in FULL
    if estimate.verdict.is_late and rates.fp8 is not None and scenario.precision not in NARROW and whole:
        yield change(scenario, "precision-fp8", {"precision": "fp8-mixed"})
    if scenario.precision == "bf16-mixed" and whole:
        # of what adapters need it changes next to nothing
        yield change(scenario, "precision-narrow", {"precision": "bf16"}, alone=("task",))


def optimizer_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield optimizers with smaller states."""
    scenario = estimate.scenario
    if scenario.method not in FULL:
        return
    for name, optimizer in OPTIMIZERS.items():
        if optimizer.offer is not None and optimizer.lightness > OPTIMIZERS[scenario.optimizer].lightness:
            text, pain = optimizer.offer
            kind = "optimizer-8-bit" if pain < FACTORED else "optimizer-factored"
            yield change(scenario, kind, {"optimizer": name}, text)


def task_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield adapters instead of all weights, and a 4-bit base under them or a 16-bit one."""
    scenario = estimate.scenario
    unsaid = {"quant": AUTO} if scenario.was_given("quant") else {}
    pre = scenario.task == "pretrain"
    said = "task" if scenario.loss is None else "adapters"
    # nobody adapts a model on as many tokens as one is made from
    fewer = {"tokens": FINETUNE_TOKENS} if pre and scenario.was_given("tokens") else {}
    only = ("tokens",) if pre else ()
    # with an objective of its own the job stays what it is, unless somebody asked for all weights
    same = "adapters" if scenario.loss is not None and not scenario.was_given("adapters") else "task"
    whole = f"{said}-{{}}-of-pretrain" if pre else f"{same}-{{}}"
    if scenario.method == "qlora":
        yield change(scenario, "task-lora-of-qlora", {said: "lora", **unsaid})
    if scenario.method in FULL:
        text = "only adapters are trained" + (", on a model that exists: no pre-training" if pre else "")
        yield change(scenario, whole.format("lora"), {said: "lora", **fewer}, text, alone=only)
    if scenario.method in (*FULL, "lora"):
        kind = "task-qlora-of-lora" if scenario.method == "lora" else whole.format("qlora")
        base = "a 4-bit base that exists: no pre-training," if pre else "a 4-bit base:"
        only_adapters = "" if scenario.method == "lora" else "only adapters are trained, on "
        text = f"{only_adapters}{base} some loss of quality, slower steps"
        yield change(scenario, kind, {said: "qlora", **fewer}, text, alone=only)


def target_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield adapters beside attention alone, where those of experts would be merged into whole stacks of them."""
    scenario = estimate.scenario
    adapted = scenario.trains_adapters and not scenario.was_given("lora_targets")
    if adapted and scenario.lora_targets == "all-linear" and scenario.model.architecture.experts is not None:
        yield change(scenario, "adapters-attention", {"lora_targets": "attention"})


def seq_len_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield shorter sequences."""
    length = estimate.scenario.seq_len
    while estimate.scenario.is_training and length > 512:
        length = max(512, length // 2)
        yield change(estimate.scenario, "seq-len", {"seq_len": length})


def tokens_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield as many tokens or examples as there is time and money for, to two digits."""
    count, scenario = affordable_tokens(estimate), estimate.scenario
    if count is not None and scenario.examples:
        fewer = floor(scenario.examples * count / (scenario.tokens or count))
        if fewer >= 1:
            whole = format_count(scenario.examples)
            text = f"fewer examples than {whole}: the model learns less"
            yield change(scenario, "tokens", {"examples": fewer}, text)
    elif count is not None and scenario.text_bytes:
        less = _rounded_down(scenario.text_bytes * count / (scenario.tokens or count))
        whole = format_bytes(scenario.text_bytes)
        yield change(scenario, "tokens", {"data_size": less}, f"less text than {whole}: the model learns less")
    elif count is not None and count >= 1:
        lost = "the model learns less" if scenario.is_training else "the rest is not read"
        text = f"fewer tokens than {format_count(scenario.tokens or 0.0)}: {lost}"
        yield change(scenario, "tokens", {"tokens": count}, text)


def affordable_tokens(estimate: Estimate) -> float | None:
    """The tokens that deadline and budget allow, rounded down to two digits; None where all of them are."""
    scenario = estimate.scenario
    share = 1.0
    total = estimate.total_seconds
    if total is not None and estimate.verdict.takes_too_long:
        share = (scenario.deadline_seconds or IMPRACTICAL_SECONDS) / total.expected
    if estimate.verdict.budget == "over_budget" and estimate.cost.usd is not None and scenario.budget_usd is not None:
        share = min(share, scenario.budget_usd / estimate.cost.usd.expected)
    return _rounded_down(share * (scenario.tokens or 0.0)) if share < 1 else None


def _rounded_down(count: float) -> float:
    if count < 1:
        return 0.0
    unit = 10.0 ** (floor(log10(count)) - 1)
    return float(floor(count / unit) * unit)


def _held_fits(estimate: Estimate) -> bool:
    """Whether there is room for what the step holds throughout, so that only what comes and goes is too much; for
    adapters on a base in 4 bits, which may be the other half of a way.
    """
    scenario, memory = estimate.scenario, estimate.memory
    held = sum(memory.components.get(name, 0.0) for name in ("weights_bytes", "optimizer_bytes"))
    if scenario.method == "lora":
        held = Bounds({"task": "qlora"}, scenario).least_device_bytes
    return held < (memory.usable_bytes or 0.0)


def _streaming_helps(estimate: Estimate) -> bool:
    """Whether adapters that do not fit on one card would profit from a framework that is written for them."""
    scenario = estimate.scenario
    alone = scenario.num_devices == 1 and scenario.device.backend == "cuda" and has_host(scenario)
    adapted = scenario.trains_adapters and scenario.quant in ("none", "nf4")
    return (
        estimate.verdict.memory != "fits" and alone and adapted and runs_public_code(scenario) and _held_fits(estimate)
    )


def _patching_helps(estimate: Estimate) -> bool:
    """Whether kernels of a library inside the public code would make room in a training that does not fit."""
    scenario = estimate.scenario
    near = estimate.verdict.memory != "fits" and scenario.is_training and runs_public_code(scenario)
    streamed = scenario.method == "qlora" and _streaming_helps(estimate)
    return near and not streamed and _held_fits(estimate)


def _with_kernels(kernels: str, kind: str, estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    for engine in catalog.engines.values():
        if engine.training.kernels == kernels:
            yield change(estimate.scenario, kind, {"engine": engine.id})


def _dividing(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """Yield the engines of clusters, which divide what public code gathers whole on each device."""
    if scenario.num_devices > 1 and runs_public_code(scenario):
        backend = scenario.device.backend
        yield from (engine.id for engine in catalog.engines.values() if backend in engine.training.clusters)


def engine_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield a compiler or a library's kernels where public code does not fit; what runs where an engine does not."""
    scenario = estimate.scenario
    if (
        estimate.verdict.memory != "fits"
        and scenario.method in FULL
        and runs_public_code(scenario)
        and _held_fits(estimate)
    ):
        yield from _with_kernels("compiled", "engine-compiled", estimate, catalog)
    if _patching_helps(estimate):
        known, name = scenario.tables.implementations, scenario.model.architecture.implementation
        ways = _with_kernels("liger", "engine-patched", estimate, catalog)
        yield from (way for way in ways if known.under(name, "liger").patched)
    if _streaming_helps(estimate):
        yield from _with_kernels("streaming", "engine-streaming", estimate, catalog)
    if estimate.memory.verdict != "fits" and scenario.is_training:
        for name in _dividing(scenario, catalog):
            yield change(scenario, "engine-dividing", {"engine": name})
    yield from usual_engine(estimate, catalog)


def usual_engine(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield, by its name, what people use on the device where the engine that was asked for does not run there."""
    scenario = estimate.scenario
    if not scenario.was_given("engine") or estimate.verdict.software != "unsupported":
        return
    many = scenario.concurrency
    usual = default_engine(
        catalog.backends[scenario.device.backend], scenario.device, scenario.method, scenario.quant, many
    )
    if usual != scenario.engine:
        text = f"not {scenario.engine}, but {usual}, which people use on this device"
        yield change(scenario, "engine-usual", {"engine": usual}, text)


TRAINING_SOURCES: tuple[tuple[str, Source], ...] = (
    ("attention", attention_changes),
    ("engine", engine_changes),
    ("sleep", writer_changes),
    ("checkpointing", checkpointing_changes),
    ("micro_batch", micro_batch_changes),
    ("zero", zero_changes),
    ("tp", layout_changes),
    ("cp", context_parallel_changes),
    ("precision", precision_changes),
    ("optimizer", optimizer_changes),
    ("lora_targets", target_changes),
    ("task", task_changes),
    ("offload", offload_changes),
    ("seq_len", seq_len_changes),
    ("tokens", tokens_changes),
)
"""What can change in a training, the least painful first."""
