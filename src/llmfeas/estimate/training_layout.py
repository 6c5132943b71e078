"""What one rank holds beside the walk's tensors: weights, states and gradients as an engine shards them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..model.setup import Setup
from ..record import dataclass
from ..scenario import Scenario
from ..walk.candidates import PeakCandidates, RankState
from ..walk.optimizers import OPTIMIZERS
from .kernels import runs_compiled, runs_fused
from .weights import weight_bytes

PACKED_BYTES: Final = 0.52
"""Bytes of a parameter in 4 bits with doubly quantized scales (Dettmers 2023)."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How an engine keeps a mixed-precision model on several devices. Bytes a trained parameter."""

    weight: int
    gradient: int
    master: int
    """fp32 master weights beside the working ones; sharded with the optimizer's states."""
    state: int = 4
    """Each of the optimizer's moments."""
    gathers: bool = False
    """FSDP and DDP: 16-bit copies of fp32 shards, gradients in reduction buckets."""
    whole_gradients: bool = False
    """Gradients live in one buffer from the start."""
    sequence_parallel: bool = False
    compiled: bool = False
    """A compiler lays out the step: 16-bit weights live where they are used, and there are no buckets."""
    narrow_inputs: bool = False
    """In fp8 a product keeps its input in one byte; otherwise the 16-bit one, cast again in backward (torchao)."""


SCHEMES: Final[dict[str, Scheme]] = {
    # FSDP keeps fp32 shards and gathers 16-bit blocks; without sharding it is autocast.
    "pytorch": Scheme(4, 4, 0, gathers=True),
    # The same as a compiler lays it out.
    "maxtext": Scheme(4, 4, 0, gathers=True, compiled=True),
    # bf16 weights, fp32 gradient buffer, distributed optimizer (Narayanan 2021, Korthikanti 2022).
    "megatron": Scheme(2, 4, 4, whole_gradients=True, sequence_parallel=True, narrow_inputs=True),
    "nemo": Scheme(2, 4, 4, whole_gradients=True, sequence_parallel=True, narrow_inputs=True),
    # Its performance recipes and submissions to MLPerf reduce gradients in bf16 (grad_reduce_in_fp32 off).
    "nemo-tuned": Scheme(2, 2, 4, whole_gradients=True, sequence_parallel=True, narrow_inputs=True),
    "nemo-fp8-activations": Scheme(2, 2, 4, whole_gradients=True, sequence_parallel=True, narrow_inputs=True),
    # Its layers in a loop of one's own: fp32 weights, and 8-bit copies of each matrix and its transpose beside them.
    "transformer-engine": Scheme(4, 4, 0, gathers=True, narrow_inputs=True),
    "deepspeed": Scheme(2, 2, 4),
    # 16-bit weights are the master ones unless asked otherwise.
    "unsloth": Scheme(2, 2, 0, state=2),
    "llm.c": Scheme(2, 2, 4, whole_gradients=True),
    # LLM.Q: master weights are the 16-bit ones, moments as in its published runs; fp8 weights are cast where used.
    "llmq": Scheme(2, 2, 0, state=2, whole_gradients=True, narrow_inputs=True),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the scenario's engine runs the step."""

    scheme: Scheme
    pure: bool
    """Blocks run in plain 16 bits, without autocast."""
    sharded: bool
    """Weights are divided over the data-parallel ranks and gathered block by block."""
    sequence_parallel: bool
    checkpointing: str


@lru_cache(maxsize=1024)
def _layout(
    engine: str,
    mixed: bool,
    adapted: bool,
    zero: int,
    spread: bool,
    tp: int,
    checkpointing: str,
    eager: bool,
    fused: bool,
    streamed: bool,
) -> Layout:
    scheme = SCHEMES.get(engine, SCHEMES["pytorch"])
    sharded = spread and zero >= 3
    pure = mixed and not adapted and (scheme.weight == 2 or fused or streamed or (spread and zero >= 2))
    if checkpointing == "selective" and scheme.whole_gradients:
        # Korthikanti 2022: only scores and softmax are run again; the flash kernel keeps none.
        checkpointing = "core" if eager else "none"
    # In Megatron sequence parallelism came to replace running whole blocks again, and is not used with it; torchtitan
    # and MaxText divide the stream in any case.
    spreads = checkpointing != "full" if scheme.sequence_parallel else fused
    return Layout(scheme, pure, sharded, spreads and tp > 1, checkpointing)


def layout_of(scenario: Scenario) -> Layout:
    """Give the layout of a scenario's engine."""
    return _layout(
        scenario.engine,
        scenario.precision.endswith("-mixed"),
        scenario.task in ("lora", "qlora"),
        scenario.zero,
        shards(scenario) > 1,
        scenario.tp,
        scenario.checkpointing,
        scenario.attention == "eager",
        runs_fused(scenario),
        scenario.offload == "all",
    )


def rank_state(scenario: Scenario, layout: Layout, moments: PeakCandidates, setup: Setup, others: float) -> RankState:
    """What the rank of a stage holds: for one device all of it, else what ZeRO, engine and offload leave."""
    spread, part = shards(scenario) > 1, _trained_part(scenario, moments)
    zero = scenario.zero if spread else 0
    weights, gradients, states = _rank_bytes(scenario, layout, moments, setup)
    temporaries = _temporaries(scenario, layout, moments)
    share = gradients / moments.gradient_bytes if moments.gradient_bytes else 0.0
    backward = 2.0 * moments.inventory.layer_elements if zero >= 2 or scenario.offload == "all" else 0.0
    if zero >= 1:
        states, temporaries = states * part, temporaries * part
    if zero >= 2:
        share, gradients = share * part, gradients * part
    copied = layout.pure and layout.scheme.gathers
    if layout.sharded or (zero >= 2 and copied):
        weights *= _weights_part(scenario, moments)
    by_block = layout.sharded or scenario.offload == "all" or (copied and layout.scheme.compiled)
    gathered = _gathered(moments, setup, layout.scheme) if by_block else 0.0
    if copied and not by_block:
        # 16-bit copies of all weights live from forward to backward.
        weights += 2.0 * moments.inventory.elements
    if spread and zero == 0 and layout.scheme.gathers and not layout.scheme.compiled:
        # Gradients are copied into reduction buckets.
        gathered += gradients
    if scenario.states_on_host:
        states = temporaries = 0.0
    if scenario.offload == "all":
        weights = gradients = share = 0.0
    return RankState(
        weights=weights,
        optimizer=states,
        temporaries=temporaries,
        gradients=gradients if _whole_gradients(scenario, layout, zero) else None,
        accumulated=gradients if _adds_late(scenario) else 0.0,
        gradient_share=share,
        final_gradients=gradients,
        gathered=gathered,
        gathered_backward=backward,
        other_micro_batches=others,
    )


def shards(scenario: Scenario) -> int:
    """Ranks that ZeRO divides over: data-parallel and context-parallel ones hold the same weights."""
    return scenario.dp * scenario.cp


def _part(scenario: Scenario, routed: int, whole: int) -> float:
    """Share of the rank's weights that is its own: 1 / ranks, but ep / ranks of those of routed experts."""
    ranks = shards(scenario)
    if not routed or scenario.ep == 1:
        return 1.0 / ranks
    experts = routed / whole
    return (1.0 - experts) / ranks + experts * min(1.0, scenario.ep / ranks)


def _trained_part(scenario: Scenario, moments: PeakCandidates) -> float:
    return _part(scenario, moments.inventory.trained_experts, moments.inventory.trained)


def _weights_part(scenario: Scenario, moments: PeakCandidates) -> float:
    return _part(scenario, moments.inventory.expert_elements, moments.inventory.elements)


def _whole_gradients(scenario: Scenario, layout: Layout, zero: int) -> bool:
    """Tell whether all gradients of the rank are alive during the whole step."""
    if _adds_late(scenario):
        return False
    if scenario.micro_steps > 1 or (layout.scheme.whole_gradients and layout.pure):
        return True
    return shards(scenario) > 1 and zero == 0 and layout.scheme.gathers


def _adds_late(scenario: Scenario) -> bool:
    """Tell whether a micro-batch's gradients all stay beside those of the earlier ones until its backward ends.

    A compiled backward is one function, which hands over all gradients when it returns (AOTAutograd).
    """
    return scenario.micro_steps > 1 and shards(scenario) == 1 and runs_compiled(scenario)


def _gathered(moments: PeakCandidates, setup: Setup, scheme: Scheme) -> float:
    """Gathered weights: two blocks, 4-bit ones as they are, and what lies outside the blocks for the whole step."""
    inventory, width = moments.inventory, setup.recipe.weight_bytes
    blocks = 2 * inventory.layer_elements * (PACKED_BYTES if setup.recipe.quantized else width)
    outside = float(inventory.outside_elements * width)
    return max(blocks, outside) if scheme.compiled else blocks + outside


def _rank_bytes(
    scenario: Scenario, layout: Layout, moments: PeakCandidates, setup: Setup
) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimizer states of the rank, before ZeRO divides them."""
    inventory = moments.inventory
    optimizer = OPTIMIZERS[scenario.optimizer]
    if layout.pure:
        scheme = layout.scheme
        states = optimizer.states(inventory, scheme.state) + scheme.master * inventory.trained
        return float(scheme.weight * inventory.trained), float(scheme.gradient * inventory.trained), states
    weights = float(moments.weight_bytes)
    if setup.recipe.quantized:
        weights = _quantized_bytes(scenario, moments, setup)
    if setup.recipe.adapters and setup.implementation.adapters == "parallel" and scenario.precision.endswith("-mixed"):
        # The framework trains them as it trains a model: 16-bit weights, its gradients, masters.
        states = optimizer.states(inventory, layout.scheme.state) + layout.scheme.master * inventory.trained
        return weights, float(layout.scheme.gradient * inventory.trained), states
    return weights, float(moments.gradient_bytes), optimizer.states(inventory, inventory.trained_width)


def _quantized_bytes(scenario: Scenario, moments: PeakCandidates, setup: Setup) -> float:
    """The frozen base in its quantized format (this rank's part), and the adapters."""
    inventory = moments.inventory
    base = inventory.elements - inventory.trained
    whole = weight_bytes(scenario.model.architecture, scenario.quant, "pytorch", float(setup.recipe.weight_bytes))
    stage = base / max(1, _elements(scenario))
    return whole.total * min(1.0, stage) + inventory.trained * inventory.trained_width


def _elements(scenario: Scenario) -> int:
    from .parameters import parameters

    return parameters(scenario.model.architecture).total


def _temporaries(scenario: Scenario, layout: Layout, moments: PeakCandidates) -> float:
    width = 4 if layout.pure else moments.inventory.trained_width
    return OPTIMIZERS[scenario.optimizer].temporaries(moments.inventory, width)


def host_bytes(scenario: Scenario, layout: Layout, moments: PeakCandidates, setup: Setup) -> float:
    """Give the host memory that offloading takes, per device."""
    if not scenario.states_on_host:
        return 0.0
    weights, gradients, states = _rank_bytes(scenario, layout, moments, setup)
    part = _trained_part(scenario, moments)
    zero = scenario.zero if shards(scenario) > 1 else 0
    total = (states + gradients) * (part if zero >= 1 else 1.0)
    if scenario.offload == "all":
        total += weights * (_weights_part(scenario, moments) if zero >= 3 else 1.0)
    return total
