"""One recorded training step: forward, loss, backward. The optimizer's part is arithmetic over the trained weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..autograd.graph import AccumulateGrad, Parameter
from ..autograd.recorder import Recorder
from ..autograd.storage import WEIGHTS, Ledger, Sizes, Storage
from ..model.context import Context
from ..model.decoder import Decoder
from ..model.setup import Setup
from ..record import dataclass
from .inventory import RankWeight

Some = Sequence[int] | None
"""Some layers; None: all of them."""
Mark = tuple[int, str, int]
"""Packed level, moment, place."""


@dataclass(frozen=True, slots=True)
class Walked:
    """What one walk leaves: every local maximum, the levels around it, the weights."""

    marks: list[Mark]
    start: int
    """Packed level before the step: weights, buffers, ids."""
    kept: int
    """Packed level after forward."""
    end: int
    """Packed level after backward: the start and all gradients."""
    weights: list[RankWeight]
    built: list[int]
    """Packed level before the first layer was made, and after each one."""
    entered: list[int]
    """Packed level where the forward pass enters each layer, and where it leaves the last one."""
    reached: list[int]
    """Packed level where the backward pass leaves the first layer, and before where it enters each layer."""
    outlived: dict[int, int]
    """What modules hold beyond the backward pass, packed, by the layer."""
    stays: list[int]
    """Packed levels that a layer's backward leaves behind, beside gradients of weights, until the pass has ended."""
    made: dict[tuple[str, int], int]
    """Tallies of the tensors that were made, by moment and place."""


def _recorder(setup: Setup, sizes: Sizes, ledger: Ledger | None) -> Recorder:
    """A recorder that runs as the setup says."""
    recorder = Recorder(sizes, autocast=setup.recipe.autocast, ledger=ledger)
    recorder.selective = setup.recipe.checkpointing == "selective"
    recorder.compiled = setup.implementation.compiled
    recorder.overwrites = setup.implementation.compiled or setup.implementation.patched
    recorder.reentrant = setup.implementation.streams_inputs or setup.recipe.holds_inputs
    # Adapters run in 16 bits, and nothing else trains beside them.
    recorder.bytes_kept = 1 if setup.recipe.fp8 and not setup.recipe.adapters else 2
    recorder.offloads = setup.recipe.offloads
    recorder.folds_tiles = setup.recipe.folds_tiles
    recorder.wide_masks = setup.recipe.wide_masks
    recorder.softmax_writes = setup.recipe.softmax_writes
    recorder.softmax_widens = setup.recipe.softmax_widens
    recorder.narrow_activations = setup.recipe.narrow_activations
    return recorder


def walked_step(
    setup: Setup, sizes: Sizes, layers: Some = None, ledger: Ledger | None = None, read: Some = None
) -> Walked:
    """Walk a step of these layers of the stage, on this ledger, and `read` of its encoder; None: all, on a new one."""
    recorder = _recorder(setup, sizes, ledger)
    context = Context(recorder, setup)
    model = Decoder(context, setup.span if layers is None else layers, read=read)
    ids = recorder.new(sizes.bs, 8)
    ledger = recorder.ledger
    start = ledger.start()
    recorder.enter_autocast()
    loss = model.loss(ids)
    recorder.leave_autocast()
    model.judged(ids)
    ledger.mark()
    kept = ledger.level
    ledger.begin("backward")
    recorder.backward(loss)
    del loss
    recorder.named = None
    ledger.mark()
    depth, reached = len(model.built) - 1, ledger.level  # what needs no gradient is not entered
    stays = _staying(recorder, depth)
    ledger.leave()
    return Walked(
        ledger.marks,
        start,
        kept,
        ledger.level,
        [_left(weight) for weight in context.weights],
        model.built,
        [ledger.entered[place] for place in range(1, depth + 2)],
        [reached := ledger.entered.get(~place, reached) for place in range(depth + 1)],
        {place: _outlived(kept.values()) for place, kept in recorder.outliving.items()},
        stays,
        ledger.made,
    )


def _staying(recorder: Recorder, depth: int) -> list[int]:
    """What each place leaves behind until the pass has ended, which lets go of it now."""
    stays = [sum(held.size for at, held in set(recorder.held) if at == place) for place in range(depth + 1)]
    recorder.held.clear()
    return stays


def _outlived(storages: Iterable[Storage]) -> int:
    return sum(storage.size for storage in set(storages) if storage.component != WEIGHTS)


def _left(weight: Parameter) -> RankWeight:
    leaf = weight.node
    gradient = leaf.arrived if type(leaf) is AccumulateGrad else 0
    return RankWeight(weight.shape, weight.width, weight.place, weight.routed, leaf is not None, gradient)
