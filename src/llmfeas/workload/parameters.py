"""Parameter counts: total, active for one token, trainable, and the splits that other folds need."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ..adapters import ADAPTERS, AdapterKind, LoraKind
from ..catalog.architecture import Architecture, Model
from ..catalog.implementation import Implementation
from ..model.build import Tape, build, laid_out
from ..model.learned import learned_shapes
from ..model.weight import LoraTargets
from ..record import dataclass
from ..scenario import Scenario
from .kernels import traits_of


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a model; tied matrices count once, buffers and multi-token-prediction blocks not at all."""

    total: int
    active: int
    """All but the experts that a token is not routed to; expected where routing varies. N-gram embeddings never."""
    active_min: int
    active_max: int
    active_without_input_embedding: int
    """`active` without the token table; a table that the head shares stays, since the head reads it."""
    embedding: int
    """The token table."""
    trainable: int


@dataclass(frozen=True, slots=True)
class BlockParameters:
    """Parameters of one kind of layer, or of what layers share, and how often the model holds them."""

    repeat: int
    total: int
    routed: int


@lru_cache(maxsize=4096)
def parameters(
    model: Model | Architecture,
    lora_rank: int | None = None,
    lora_targets: LoraTargets = "all-linear",
    *,
    traits: Implementation | None = None,
    kind: LoraKind = "lora",
    virtual_tokens: int = 0,
    bare_layers: int = 0,
) -> Parameters:
    """The parameters of a model.

    Formula: sum over the tape; active = total - routed experts - n-gram tables and their projections + the experts that
    a token reaches. With `lora_rank` only adapters train, of low-rank pairs `rank (in + out)` for every projection that
    the targets reach: all but the head, or attention's; none in the first `bare_layers`; of stacked experts where
    peft reaches them (`traits`: how code lays weights out). Equal to the Hugging Face classes, to the unit.
    """
    architecture = model.architecture if isinstance(model, Model) else model
    tape = build(architecture) if architecture.source is None else laid_out(architecture, None)
    held = tape.held
    counted = [(weight, times * weight.elements) for operator, times in held for weight in operator.weights]
    total = sum(elements for _, elements in counted)
    routed = sum(elements for weight, elements in counted if weight.split == "expert")
    always = total - routed - sum(times * operator.idle_elements for operator, times in held)
    table = next(weight.elements for weight, _ in counted if weight.name == "embedding")
    reached = [(operator.reached, times) for operator, times in held]
    low, expected, high = (round(sum(repeat * real[i] for real, repeat in reached)) for i in range(3))
    trainable = sum(elements for weight, elements in counted if not weight.frozen)
    if lora_rank is not None:
        tape = tape if traits is None else laid_out(architecture, traits)
        trainable = _of_adapters(tape, lora_rank, lora_targets, ADAPTERS[kind], virtual_tokens, bare_layers)
    return Parameters(
        total=total,
        active=always + expected,
        active_min=always + low,
        active_max=always + high,
        active_without_input_embedding=always + expected - (0 if architecture.tied else table),
        embedding=table,
        trainable=trainable,
    )


def _of_adapters(tape: Tape, rank: int, targets: LoraTargets, kind: AdapterKind, tokens: int, bare: int) -> int:
    if kind.virtual:
        return sum(prod(shape) for shape in learned_shapes(kind, tokens, tape))
    adapted = tape.adapted_from(bare) if bare else tape.adapted
    return sum(
        repeat
        * (
            weight.scale_elements(targets)
            if kind.scales
            else weight.lora_elements(rank, targets, magnitudes=kind.magnitudes)
        )
        for operator, repeat in adapted
        for weight in operator.weights
    )


@lru_cache(maxsize=1024)
def adapted_shapes(architecture: Architecture) -> tuple[tuple[int, ...], ...]:
    """Shapes of the attention's projections, which every low-rank adapter reaches."""
    tape = build(architecture) if architecture.source is None else laid_out(architecture, None)
    weights = (weight for operator, _ in tape.operators for weight in operator.weights)
    return tuple({weight.shape for weight in weights if weight.projects and weight.takes_adapter("attention")})


def parameters_of(scenario: Scenario) -> Parameters:
    """The parameters of a scenario's model, of which adapters train theirs alone."""
    architecture = scenario.model.architecture
    if not scenario.trains_adapters:
        return parameters(architecture)
    return parameters(
        architecture,
        scenario.lora_rank,
        scenario.lora_targets,
        traits=traits_of(scenario),
        kind=scenario.lora_kind,
        virtual_tokens=scenario.virtual_tokens,
        bare_layers=bare_layers(scenario),
    )


@dataclass(frozen=True, slots=True)
class AdaptedWidths:
    """What the projections outside of experts that have low-rank pairs read and write for a token, in all layers."""

    inputs: float = 0.0
    outputs: float = 0.0
    matrices: int = 0
    copies_input: bool = False
    """Pairs take a copy of their input in fp32."""
    clones_output: bool = False
    """What the base gives is copied before a pair's product is added."""


NO_ADAPTERS = AdaptedWidths()
PUBLIC_PAIRS = ("written", "native")
"""How public code runs them, operator by operator; kernels and frameworks do otherwise (data/implementations.yaml)."""


def adapted_widths(scenario: Scenario) -> AdaptedWidths:
    """What projections with pairs read and write where public code runs these; a graph (Gaudi) makes one kernel of it.

    Pairs in fp32, as peft makes them since 0.12 of 2024-07, take a copy of their input in fp32, which autocast casts
    back; but for those over a base in few bits, of whose output those over NF4 take a copy (peft 0.21, lora/bnb.py).
    """
    traits, kind = traits_of(scenario), scenario.adapter_kind
    graph = traits.compiled or scenario.device.backend == "hpu"
    if traits.adapters not in PUBLIC_PAIRS or graph or kind is None or not kind.pairs:
        return NO_ADAPTERS
    copies = traits.adapters == "written" and scenario.method == "lora" and scenario.transformers == "5"
    found = _widths(scenario.model.architecture, traits, scenario.lora_targets, bare_layers(scenario))
    return AdaptedWidths(*found, copies_input=copies, clones_output=decodes_base(scenario))


def decodes_base(scenario: Scenario) -> bool:
    """Whether a frozen base in NF4 is written out in 16 bits before each product (bitsandbytes)."""
    return scenario.method == "qlora" and scenario.quant.startswith("nf4")


@lru_cache(maxsize=1024)
def _widths(
    architecture: Architecture, traits: Implementation, targets: LoraTargets, bare: int
) -> tuple[float, float, int]:
    tape = laid_out(architecture, traits)
    reads, writes, matrices = 0, 0, 0
    for operator, times in tape.adapted_from(bare) if bare else tape.adapted:
        for weight in operator.weights:
            if weight.split != "expert" and weight.takes_adapter(targets) and len(weight.shape) == 2:
                count = times * weight.copies
                outputs, inputs = weight.shape
                reads, writes, matrices = reads + count * inputs, writes + count * outputs, matrices + count
    return float(reads), float(writes), matrices


@lru_cache(maxsize=1024)
def block_parameters(architecture: Architecture) -> tuple[BlockParameters, ...]:
    """The parameters of each kind of layer, that of layer 0 first."""
    return tuple(
        BlockParameters(
            repeat=repeat,
            total=sum(weight.elements for weight in weights),
            routed=sum(weight.elements for weight in weights if weight.split == "expert"),
        )
        for operators, repeat in build(architecture).parts
        for weights in ([weight for operator in operators for weight in operator.weights],)
    )


def bare_layers(scenario: Scenario) -> int:
    """The first so many layers that have weights have no adapters, in whichever loop they run."""
    return 0 if scenario.lora_layers is None else max(0, scenario.model.architecture.own_layers - scenario.lora_layers)


def lifts_input(scenario: Scenario) -> bool:
    """Whether backward runs through layers below all adapters too where layers are run again."""
    return not bare_layers(scenario) or scenario.engine_record.training.input_gradients


def adapted_share(scenario: Scenario) -> float:
    """Share of the layers that have adapters, where any does."""
    return 1 - bare_layers(scenario) / scenario.model.architecture.own_layers


def graded_share(scenario: Scenario) -> float:
    """Share of the layers that a backward pass runs through: those below all adapters need none."""
    if scenario.checkpointing != "none" and lifts_input(scenario):
        return 1.0
    return 1 - bare_layers(scenario) / scenario.model.architecture.layers
