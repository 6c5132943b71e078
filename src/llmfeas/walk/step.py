"""One training step on a tape: forward, loss, backward. The optimizer's part is arithmetic over the trained weights."""

from __future__ import annotations

from ..record import dataclass
from .blocks.context import Context
from .blocks.model import Model
from .graph import Leaf, Parameter
from .inventory import Weight
from .setup import Setup
from .storage import Sizes
from .tape import Tape

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
    weights: list[Weight]
    built: list[int]
    """Packed level before the first layer was made, and after each one."""


def walked_step(setup: Setup, sizes: Sizes, layers: int) -> Walked:
    """Walk one step of the stage cut to its first `layers` layers."""
    tape = Tape(sizes, autocast=setup.recipe.autocast)
    tape.selective = setup.recipe.checkpointing == "selective"
    tape.compiled = setup.implementation.compiled
    tape.overwrites = setup.implementation.compiled or setup.implementation.patched
    tape.reentrant = setup.implementation.streams_inputs
    # Adapters run in 16 bits, and nothing else trains beside them.
    tape.bytes_kept = 1 if setup.recipe.fp8 and not setup.recipe.adapters else 2
    tape.narrow_activations = setup.recipe.narrow_activations
    context = Context(tape, setup)
    model = Model(context, layers)
    ids = tape.new(sizes.bs, 8)
    ledger = tape.ledger
    start = ledger.level
    ledger.marks.clear()
    ledger.rising = False
    tape.enter_autocast()
    loss = model.loss(ids)
    tape.leave_autocast()
    ledger.mark()
    kept = ledger.level
    ledger.moment = "backward"
    tape.backward(loss)
    del loss
    ledger.mark()
    return Walked(ledger.marks, start, kept, ledger.level, [_left(weight) for weight in context.weights], model.built)


def _left(weight: Parameter) -> Weight:
    leaf = weight.node
    gradient = leaf.arrived if type(leaf) is Leaf else 0
    return Weight(weight.shape, weight.width, weight.place, weight.routed, leaf is not None, gradient)
