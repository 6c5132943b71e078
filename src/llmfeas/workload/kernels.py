"""Which job a training is, and whether its steps run fused kernels or public code: by the engine and the job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..catalog.architecture import Architecture
from ..catalog.device import is_mixed
from ..catalog.engine import Engine
from ..catalog.implementation import Implementation, Implementations
from ..catalog.quantization import STACKED
from ..model.sums import architecture_sums
from ..record import replace
from ..scenario import Scenario


def kernels_of(scenario: Scenario) -> str:
    """Name the kernels that training runs, an entry of `kernels` in data/implementations.yaml; empty: public code.

    By data/engines.yaml: an engine always brings kernels, never does, or is what pre-training frameworks are written in
    (`frameworks`): a pre-training that is divided over devices is then taken to run in one of those, all other jobs in
    the public code of the model.
    """
    return _kernels_under(scenario.engine_record, scenario)


def _kernels_under(engine: Engine, scenario: Scenario) -> str:
    declared = engine.training.kernels
    if declared != "frameworks":
        return "" if declared in ("eager", "own") else declared
    if scenario.method != "pretrain" or scenario.num_devices == 1:
        return ""
    return "fused" if scenario.zero >= 1 or scenario.tp > 1 or scenario.pp > 1 else ""


def job_of(scenario: Scenario) -> str:
    """Name what is trained, as `trained` in data/efficiency.yaml does: the method, of a mixture of experts or not."""
    return scenario.method if scenario.model.architecture.experts is None else f"moe-{scenario.method}"


def software_of(scenario: Scenario, measured: Iterable[str]) -> str:
    """Name the engine, of those that somebody measured, whose steps run what the scenario's run; empty: none.

    A trainer around public code runs public code, and a library whose kernels a model has no use for changes nothing.
    Nobody knows what an engine runs that is not in the catalog.
    """
    engines, own = scenario.tables.engines, scenario.engine_record
    if scenario.engine in measured or own.id not in engines:
        return scenario.engine if scenario.engine in measured else ""
    pace = _pace_of(own, scenario)
    return next((name for name in measured if name in engines and _pace_of(engines[name], scenario) == pace), "")


def _pace_of(engine: Engine, scenario: Scenario) -> tuple[object, ...]:
    """All of an engine that the speed of a training rests on; who brings all optimizers is no PyTorch code."""
    traits, known, kernels = engine.training, scenario.tables.implementations, _kernels_under(engine, scenario)
    scheme = traits.scheme
    return (
        *(
            engine.optimizers,
            traits.style,
            traits.launches_eagerly,
            traits.balanced,
            traits.graphs,
            scheme.weight,
            bool(scheme.bucket),
        ),
        *(known.compiles(kernels), bool(kernels) and not known.lies_over(kernels)),
        known.under(scenario.model.architecture.implementation, kernels),
    )


def runs_fused(scenario: Scenario) -> bool:
    """Whether training runs a framework's own model on fused kernels, not the public code, changed or not."""
    kernels = kernels_of(scenario)
    return bool(kernels) and not scenario.tables.implementations.lies_over(kernels)


def runs_compiled(scenario: Scenario) -> bool:
    """Whether training runs the public code through a compiler."""
    return scenario.tables.implementations.compiles(kernels_of(scenario))


def runs_patched(scenario: Scenario) -> bool:
    """Whether training runs the public code with a library's kernels in it."""
    return scenario.tables.implementations.patches(kernels_of(scenario))


def runs_public_code(scenario: Scenario) -> bool:
    """Whether training runs the model's public code operator by operator, as plain PyTorch does."""
    return not kernels_of(scenario) and scenario.engine_record.training.kernels == "frameworks"


Code = Literal["fused", "own", "patched", "compiled", "public"]
"""Whose code a training runs: a framework's own, on fused kernels or counted as public code, or the public code: with a
library's kernels in it, compiled, or as it is."""


def code_of(scenario: Scenario) -> Code:
    """Whose code a training is taken to run."""
    if runs_fused(scenario):
        return "fused"
    if scenario.engine_record.training.kernels == "own":
        return "own"
    return "patched" if runs_patched(scenario) else "compiled" if runs_compiled(scenario) else "public"


def launched_singly(scenario: Scenario) -> bool:
    """Whether the host launches the kernels of public code one by one: as it is, or with some operators replaced.

    What is compiled runs through other code between its kernels, and Gaudi gathers graphs.
    """
    kernels = kernels_of(scenario)
    public = not kernels or scenario.tables.implementations.lies_over(kernels)
    return public and not traits_of(scenario).compiled and scenario.device.backend != "hpu"


def runs_wide(scenario: Scenario) -> bool:
    """Whether the stream between products is in fp32 because the base in few bits was prepared for training."""
    return scenario.method == "qlora" and traits_of(scenario).prepared


def multiplies_wide(scenario: Scenario) -> bool:
    """Whether attention and head multiply that stream in fp32, since no autocast narrows it: products with a base in
    few bits return the type of their inputs (bitsandbytes, nn/modules.py, Linear4bit).
    """
    return runs_wide(scenario) and not is_mixed(scenario.precision)


MULTIPLIES_8 = frozenset({"cuda", "rocm"})
"""Backends on which a base in 8 bits is multiplied as it is (bitsandbytes 0.50.2, autograd/_functions.py, matmul)."""


def multiplies_integers(scenario: Scenario) -> bool:
    """Whether a frozen base in 8 bits is multiplied as integers, and written out in 16 bits for backward alone."""
    return scenario.method == "qlora" and scenario.quant == "int8" and scenario.device.backend in MULTIPLIES_8


def has_host(scenario: Scenario) -> bool:
    """Whether the host has a memory of its own, so that the device's is less full when something lies there."""
    return scenario.device.backend != "cpu" and not scenario.device.is_unified


def traits_of(scenario: Scenario) -> Implementation:
    """How the scenario's engine runs its model."""
    traits = scenario.tables.implementations.under(scenario.model.architecture.implementation, kernels_of(scenario))
    kind = scenario.adapter_kind
    if kind is not None and not kind.pairs and traits.expert_adapters != "none":
        traits = replace(traits, expert_adapters="none")
    if scenario.trains_adapters:
        traits = _adapted(scenario, traits)
    if scenario.transformers == "4" and traits.recurrence == "written" and scenario.model.architecture.state_space:
        traits = replace(traits, recurrence="summed")
    return traits if has_host(scenario) or not traits.streams_inputs else replace(traits, streams_inputs=False)


def _adapted(scenario: Scenario, traits: Implementation) -> Implementation:
    """How adapters and what is frozen beside them run.

    Who holds a model in 16 bits beside masters casts adapters to them too, and has no autocast (DeepSpeed:
    runtime/engine.py; accelerator.py of Accelerate leaves autocast out under it). Before release 5 of transformers each
    expert was a module of its own, which adapters reach.
    """
    scheme = scenario.engine_record.training.scheme
    if traits.adapters == "written" and scheme.weight == 2 and is_mixed(scenario.precision):
        traits = replace(traits, adapters="native")
    if scenario.transformers == "5" or not runs_stacks(scenario) or traits.every_expert:
        return traits
    if scenario.lora_targets == "all-linear":
        return traits if traits.expert_adapters == "none" else replace(traits, expert_adapters="each")
    return replace(traits, experts_one_by_one=True)


def loops_over_experts(scenario: Scenario) -> bool:
    """Whether one expert runs after the other: as the code does it, or as transformers did before release 5."""
    if scenario.model.architecture.experts is None:
        return False
    if not scenario.is_training and not scenario.engine_record.serving.memory.public_code:
        return False  # servers have programs of their own
    traits = traits_of(scenario)
    return not traits.every_expert and (
        traits.experts_one_by_one or (scenario.transformers != "5" and runs_stacks(scenario))
    )


def merges_into_experts(scenario: Scenario) -> bool:
    """Whether adapters are merged into stacked experts."""
    if scenario.model.architecture.experts is None or not scenario.trains_adapters:
        return False
    return traits_of(scenario).expert_adapters == "merged" and scenario.lora_targets == "all-linear"


def picks_biases(scenario: Scenario) -> bool:
    """Whether each row that an expert reads picks its bias by a number, so that gradients of biases are added up row by
    row (transformers 5.17, integrations/moe.py: `bias[expert_ids]`, whose backward is index_put).
    """
    return not scenario.trains_adapters and runs_stacks(scenario)


def widens_experts(scenario: Scenario) -> bool:
    """Whether stacked experts are multiplied in fp32, as they are held: grouped products take no part in autocast.

    Source: transformers 5.17, integrations/moe.py, which casts inputs to the type of the weights; a step of a Granite
    3.0 1B-A400M in bf16-mixed on an H100 ran 5,028 products in fp32, where those of its experts come to 4,608. FSDP and
    ZeRO gather weights in 16 bits.
    """
    if not is_mixed(scenario.precision) or not runs_stacks(scenario) or loops_over_experts(scenario):
        return False
    adapts = scenario.trains_adapters and scenario.base_dtype != "fp32"
    gathered = scenario.zero >= 2 and scenario.shards > 1
    narrow = gathered or scenario.engine_record.training.scheme.weight == 2
    return not (adapts or narrow or traits_of(scenario).every_expert)


FLASH_HEAD_WIDTH = 256
"""Elements of a head that flash kernels take at most (Dao-AILab/flash-attention issue 2427, TransformerEngine 3006)."""
WIDE_HEADS = Literal["fused", "alone", "all", "written"]
"""How attention runs beside heads that are too wide for flash kernels: there are none, these blocks alone take the
memory-efficient kernel of PyTorch, all blocks do and windows are masks, or these blocks are written out."""


def wide_heads(scenario: Scenario) -> WIDE_HEADS:
    """How attention runs where some heads are too wide: transformers has one implementation for all layers
    (verl-project/verl pull request 7131), some engines choose by layer, frameworks' kernels write these layers out.
    """
    wide = architecture_sums(scenario.model.architecture).wide_spans(FLASH_HEAD_WIDTH)
    if not wide or scenario.device.backend not in ("cuda", "rocm") or scenario.attention != "flash":
        return "fused"
    if scenario.engine_record.training.flash_by_layer:
        return "alone"
    return "written" if runs_fused(scenario) and not runs_patched(scenario) else "all"


def loops_over_sequences(scenario: Scenario) -> bool:
    """Whether recurrences run as public code writes them out, one part of a sequence after the other."""
    return not (runs_fused(scenario) or runs_compiled(scenario) or traits_of(scenario).recurrence == "kernel")


def sums_products(scenario: Scenario) -> bool:
    """Whether contractions of state spaces are sums over broadcast products, as transformers wrote them before 5.18."""
    return loops_over_sequences(scenario) and traits_of(scenario).recurrence == "summed"


def adapts_experts(scenario: Scenario) -> bool:
    """Whether experts have adapters, merged into their stacks or each beside its own."""
    if not scenario.trains_adapters or scenario.lora_targets != "all-linear":
        return False
    return traits_of(scenario).expert_adapters != "none"


def runs_stacks(scenario: Scenario) -> bool:
    """Whether a job runs public code that stacks its experts since transformers 5."""
    known = scenario.tables.implementations
    if not stacks_experts(known, scenario.model.architecture):
        return False
    return not runs_fused(scenario) if scenario.is_training else scenario.engine_record.serving.memory.public_code


def stacks_experts(known: Implementations, architecture: Architecture) -> bool:
    """Whether public code of today holds an architecture's experts in one tensor."""
    return architecture.experts is not None and not known.public(architecture.implementation).experts_one_by_one


def packs_stacks(scenario: Scenario) -> bool:
    """Whether the engine quantizes stacked experts, which the format would leave as they are."""
    packs = scenario.is_training and scenario.engine_record.training.packs_stacks
    return packs and scenario.transformers == "5" and runs_stacks(scenario)


def leaves_stacks(scenario: Scenario) -> bool:
    """Whether the format of the weights leaves experts as they are because the code stacks them."""
    if scenario.transformers != "5" or not runs_stacks(scenario) or packs_stacks(scenario):
        return False
    return scenario.tables.quantization.format(scenario.quant, scenario.engine_record.speaks).skips_stacks


def dialect_of(scenario: Scenario) -> str:
    """Name whose names of formats hold: the engine's, or those of public code that leaves stacks as they are."""
    return STACKED if leaves_stacks(scenario) else scenario.engine_record.speaks
