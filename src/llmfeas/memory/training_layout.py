"""What one rank holds beside the walk's tensors: weights, states and gradients as an engine shards them."""

from __future__ import annotations

from typing import Final, Literal

from ..catalog.device import is_mixed
from ..catalog.engine import Scheme
from ..findings import cached_across_devices
from ..model.setup import Setup
from ..optimizers import OPTIMIZERS
from ..record import dataclass
from ..scenario import Scenario
from ..walk.candidates import PeakCandidates, RankState
from ..walk.inventory import Inventory
from ..workload.kernels import dialect_of, runs_compiled, runs_fused
from ..workload.parameters import parameters
from ..workload.weights import layer_weight_bytes, weight_bytes


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


def layout_of(scenario: Scenario) -> Layout:
    """The layout of a scenario's engine."""
    scheme, fused, spread = scenario.engine_record.training.scheme, runs_fused(scenario), scenario.shards > 1
    narrow = scheme.weight == 2 or fused or scenario.offload == "all" or (spread and scenario.zero >= 2)
    checkpointing: str = scenario.checkpointing
    if checkpointing == "selective" and scheme.whole_gradients:
        # Korthikanti 2022: only scores and softmax are run again; the flash kernel keeps none.
        remade = "latents" if scenario.model.architecture.mla is not None and scheme.remakes_latents else "none"
        checkpointing = "core" if scenario.attention == "eager" else remade
    spreads = fused if scheme.sequence_parallel is None else scheme.sequence_parallel
    return Layout(
        scheme,
        pure=is_mixed(scenario.precision) and not scenario.trains_adapters and narrow,
        sharded=spread and scenario.zero >= 3,
        sequence_parallel=spreads and scenario.tp > 1,
        checkpointing=checkpointing,
    )


CHECKPOINTS_AROUND: Final = "4.48"
"""The release of those asked for whose models checkpoint around a layer; until 4.51 they did."""


def holds_inputs(scenario: Scenario, layout: Layout) -> bool:
    """Whether a checkpoint stands around what FSDP divides, and nothing in it trains but adapters.

    FSDP lays a hook on the inputs of a frozen block, to divide it again behind its backward, and keeps it until the
    whole pass has ended; where the block is run again, its input is a leaf of that hook, and keeps its gradient too
    (torch 2.13, fsdp/_runtime_utils.py; tracked on two ranks). transformers checkpoints within the layer since 4.52
    (pull request 37223), FSDP2 has no such hook, nor have blocks that train.
    """
    outside = scenario.transformers == CHECKPOINTS_AROUND and scenario.engine_record.training.trainer
    frozen = scenario.trains_adapters and layout.sharded and layout.scheme.gathers
    return outside and frozen and layout.checkpointing == "full"


def rank_state(scenario: Scenario, layout: Layout, moments: PeakCandidates, setup: Setup, others: float) -> RankState:
    """What the rank of a stage holds: for one device all of it, else what ZeRO, engine and offload leave."""
    spread, part = scenario.shards > 1, _trained_part(scenario, moments)
    zero = scenario.zero if spread else 0
    weights, whole, states = rank_bytes(scenario, layout, moments, setup)
    gradients, temporaries = whole, _temporaries(scenario, layout, moments)
    share = gradients / moments.gradient_bytes if moments.gradient_bytes else 0.0
    if zero >= 1:
        states, temporaries = states * part, temporaries * part
    if zero >= 2:
        share, gradients = share * part, gradients * part
    copied = layout.pure and layout.scheme.gathers
    if layout.sharded or (zero >= 2 and copied):
        weights *= _weights_part(scenario, moments)
    weights *= copies_of(scenario)
    by_block = layout.sharded or scenario.offload == "all" or (copied and layout.scheme.compiled)
    gathered = _gathered(scenario, moments, setup, layout.scheme) if by_block else _bucket(scenario, layout)
    if copied and not by_block:
        weights += _gathered_until_backward(scenario, moments.inventory)
    if spread and zero <= 1 and layout.scheme.gathers and not layout.scheme.compiled:
        gathered += gradients  # copied into reduction buckets, also where only states are divided
    added = gradients
    if _gathered_once(scenario, layout):
        gathered, added = 2.0 * moments.inventory.elements, whole
    states, temporaries = (0.0, 0.0) if scenario.states_on_host else (states, temporaries)
    if scenario.offload == "all":
        weights = gradients = added = share = 0.0
    return RankState(
        weights=weights,
        optimizer=states,
        temporaries=temporaries,
        gradients=added if _whole_gradients(scenario, layout, zero) else None,
        accumulated=gradients if _adds_late(scenario) else 0.0,
        gradient_share=share,
        final_gradients=gradients,
        gathered=gathered,
        gathered_backward=_layer_gradients(scenario, moments.inventory, zero),
        other_micro_batches=others,
        shared_kept=_shared_kept(scenario, moments, setup),
    )


def _shared_kept(scenario: Scenario, moments: PeakCandidates, setup: Setup) -> float:
    """Bytes of weights' copies that autocast makes once for all turns of a step; blocks that run again keep none."""
    recipe = setup.recipe
    copied = recipe.autocast and recipe.weight_bytes == 4 and recipe.checkpointing == "none"
    return 2.0 * moments.inventory.trained_matrices if scenario.turns > 1 and copied else 0.0


def _gathered_until_backward(scenario: Scenario, inventory: Inventory) -> float:
    """Bytes of 16-bit weights between forward and backward, which a reference never comes to (SHARD_GRAD_OP)."""
    return 2.0 * inventory.elements * copies_of(scenario)


def _gathered_once(scenario: Scenario, layout: Layout) -> bool:
    """Whether a rank gathers all of its weights once a step, in 16 bits, and divides its gradients once: FSDP in a
    pipeline (torchtitan, llama3/parallelize.py: reshard_after_forward; torch.distributed.pipelining's stages).
    """
    return layout.sharded and scenario.pp > 1 and layout.scheme.gathers and not layout.scheme.compiled


def _layer_gradients(scenario: Scenario, inventory: Inventory, zero: int) -> float:
    """Bytes of one layer in 16 bits: gradients before they are divided or sent away.

    Frozen weights have none; yet where weights are divided too, peaks of adapters were measured to hold as much.
    """
    whole = 2.0 * inventory.layer_elements
    if zero >= 3 or scenario.offload == "all":
        return whole
    return whole * inventory.trained / inventory.elements if zero == 2 else 0.0


def reference_of(scenario: Scenario) -> Literal["none", "base", "loaded"]:
    """Where the model as it was is: nowhere, in the base of the adapters, or loaded beside the one that trains."""
    objective = scenario.objective
    if objective is None or not objective.reference or scenario.reference != "loaded":
        return "none"
    return "base" if scenario.trains_adapters else "loaded"


def copies_of(scenario: Scenario) -> int:
    """Copies of the weights: the model that trains, and the one that it was where that is loaded beside it."""
    return 2 if reference_of(scenario) == "loaded" else 1


def moved_share(scenario: Scenario) -> float:
    """Share of the layers of which something moves to the host."""
    layers = scenario.model.architecture.layers
    return 1.0 if scenario.offload_layers is None else scenario.offload_layers / layers


def _part(scenario: Scenario, routed: int, whole: int) -> float:
    """Share of the rank's weights that is its own: 1 / ranks, but ep / ranks of those of routed experts."""
    ranks = scenario.shards
    if not routed or scenario.ep == 1:
        return 1.0 / ranks
    experts = routed / whole
    return (1.0 - experts) / ranks + experts * min(1.0, scenario.ep / ranks)


def _trained_part(scenario: Scenario, moments: PeakCandidates) -> float:
    return _part(scenario, moments.inventory.trained_experts, moments.inventory.trained)


def _weights_part(scenario: Scenario, moments: PeakCandidates) -> float:
    return _part(scenario, moments.inventory.expert_elements, moments.inventory.elements)


def _whole_gradients(scenario: Scenario, layout: Layout, zero: int) -> bool:
    """Whether all gradients of the rank are alive during the whole step."""
    if _adds_late(scenario):
        return False
    if scenario.micro_steps > 1 or (layout.scheme.whole_gradients and layout.pure):
        return True
    return scenario.shards > 1 and zero == 0 and layout.scheme.gathers


def _adds_late(scenario: Scenario) -> bool:
    """Whether a micro-batch's gradients all stay beside those of the earlier ones until its backward ends.

    A compiled backward is one function, which hands over all gradients when it returns (AOTAutograd).
    """
    return scenario.micro_steps > 1 and scenario.shards == 1 and runs_compiled(scenario)


def _bucket(scenario: Scenario, layout: Layout) -> float:
    """Bytes that gradients are collected in on one device; those of several count with what is sharded."""
    return 2.0 * layout.scheme.bucket if scenario.zero >= 2 and scenario.shards == 1 else 0.0


def _gathered(scenario: Scenario, moments: PeakCandidates, setup: Setup, scheme: Scheme) -> float:
    """Gathered weights: two blocks, those of few bits as they are, and what lies outside them for the whole step."""
    inventory, width = moments.inventory, setup.recipe.weight_bytes
    blocks = 2 * inventory.layer_elements * (packed_bytes(scenario) if setup.recipe.quantized else width)
    outside = float(inventory.outside_elements * width)
    return max(blocks, outside) if scheme.compiled else blocks + outside


@cached_across_devices
def packed_bytes(scenario: Scenario) -> float:
    """The mean bytes of a weight of the layers where the frozen base is stored in few bits."""
    dialect = dialect_of(scenario)
    return layer_weight_bytes(scenario.tables.quantization, scenario.model.architecture, scenario.quant, dialect)


def rank_bytes(scenario: Scenario, layout: Layout, moments: PeakCandidates, setup: Setup) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimizer states of the rank, before ZeRO divides them."""
    inventory = moments.inventory
    optimizer = OPTIMIZERS[scenario.optimizer]
    if layout.pure:
        scheme = layout.scheme
        states = optimizer.states(inventory, scheme.state) + scheme.master * inventory.trained
        return float(scheme.weight * inventory.elements), float(scheme.gradient * inventory.trained), states
    weights = float(moments.weight_bytes)
    if setup.recipe.quantized:
        weights = _quantized_bytes(scenario, moments, setup)
    elif scenario.base_dtype == "fp32" and setup.recipe.weight_bytes == 2:
        weights += 2.0 * (inventory.elements - inventory.trained)  # held in fp32, gathered in 16 bits
    cast = setup.implementation.adapters in ("parallel", "native") and layout.scheme.weight == 2
    if setup.recipe.adapters and cast and is_mixed(scenario.precision):
        # The framework trains them as it trains a model: 16-bit weights, its gradients, masters.
        states = optimizer.states(inventory, layout.scheme.state) + layout.scheme.master * inventory.trained
        return weights, float(layout.scheme.gradient * inventory.trained), states
    return weights, float(moments.gradient_bytes), optimizer.states(inventory, inventory.trained_width)


def _quantized_bytes(scenario: Scenario, moments: PeakCandidates, setup: Setup) -> float:
    """The frozen base in its quantized format (this rank's part), and the adapters."""
    inventory = moments.inventory
    base = inventory.elements - inventory.trained
    known, native = scenario.tables.quantization, float(setup.recipe.weight_bytes)
    dialect = dialect_of(scenario)
    whole = weight_bytes(known, scenario.model.architecture, scenario.quant, dialect, native)
    stage = base / max(1, parameters(scenario.model.architecture).total)
    return whole.total * min(1.0, stage) + inventory.trained * inventory.trained_width


def _temporaries(scenario: Scenario, layout: Layout, moments: PeakCandidates) -> float:
    width = 4 if layout.pure else moments.inventory.trained_width
    joined = (2.0 + layout.scheme.master) * moments.inventory.trained
    more = joined if layout.scheme.joins_gradients and scenario.zero <= 2 else 0.0
    return OPTIMIZERS[scenario.optimizer].temporaries(moments.inventory, width) + more


def host_bytes(scenario: Scenario, layout: Layout, moments: PeakCandidates, setup: Setup) -> float:
    """The host memory that offloading takes, per device."""
    if not scenario.states_on_host:
        return 0.0
    if scenario.drive_gb_per_s is not None:
        return _buffers_bytes(scenario, moments)
    weights, gradients, states = rank_bytes(scenario, layout, moments, setup)
    part = _trained_part(scenario, moments)
    zero = scenario.zero if scenario.shards > 1 else 0
    total = (states + gradients) * (part if zero >= 1 else 1.0)
    if scenario.offload == "all":
        total += copies_of(scenario) * weights * (_weights_part(scenario, moments) if zero >= 3 else 1.0)
    return total


SUB_GROUP: Final = 1e9
"""Elements that DeepSpeed's optimizer swaps at a time (sub_group_size), and weights that it keeps (max_in_cpu)."""
SWAPPED: Final = 4
"""fp32 buffers of them (offload_optimizer.buffer_count): weight, gradient and both moments."""
READ_AHEAD: Final = 5 * 1e8
"""Elements of the buffers that weights are read into (offload_param: buffer_count, buffer_size)."""


def _buffers_bytes(scenario: Scenario, moments: PeakCandidates) -> float:
    """What stays in main memory where the rest lies on a drive, per device: buffers, and gradients in 16 bits.

    Source: DeepSpeed, runtime/zero/offload_config.py and stage3.py (ZeRO-Infinity, Rajbhandari 2021).
    """
    part = 1.0 / scenario.shards if scenario.zero >= 1 else 1.0
    trained = moments.inventory.trained * part
    held = (2.0 * trained + SWAPPED * 4.0 * min(SUB_GROUP, trained)) if not scenario.trains_adapters else 0.0
    if scenario.offload == "all":
        held += 2.0 * (READ_AHEAD + min(SUB_GROUP, moments.inventory.elements * part))
    return held
