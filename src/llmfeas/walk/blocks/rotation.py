"""Rotary position embeddings as public code writes them."""

from __future__ import annotations

from collections.abc import Callable

from ...record import dataclass
from ..graph import Tensor, view
from ..operators.basic import add, cast, less, mul, scaled
from ..operators.rules import made, passed
from ..operators.views import joined, sliced, split
from ..tape import Tape

Rotation = tuple[Tensor, Tensor]
"""cos and sin of one sequence, shared by all layers of a kind."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a layer is called with beside the stream."""

    mask: Tensor | None
    rotation: Rotation | None
    bias: Tensor | None
    """What is added to scores for positions."""
    places: Tensor | None
    """Position ids, where layers are called with them."""


def _swapped(tape: Tape, x: Tensor) -> Tensor:
    half = x.n // 2
    first, second = sliced(tape, x, half), sliced(tape, x, half)
    return joined(tape, scaled(tape, second), first)


def _halves(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """x cos + (the halves swapped, one negated) sin."""
    cos, sin = rotation
    out = add(tape, mul(tape, x, cos), mul(tape, _swapped(tape, x), sin))
    out.heads_first = False
    return out


def _halves_cast_back(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """As halves, with fp32 cos and sin, and back to the type it came in."""
    return cast(tape, _halves(tape, x, rotation), x.width)


def _halves_fp32(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """As halves, on an fp32 copy (Cohere)."""
    return cast(tape, _halves(tape, cast(tape, x, 4), rotation), x.width)


def respread(tape: Tape, rotation: Rotation) -> Rotation:
    """Tables written out anew in every layer, each angle beside itself (Helium, GLM)."""
    cos, sin = (tape.new(table.n, table.width) for table in rotation)
    return cos, sin


def _alternating(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """GPT-J: even and odd elements swapped; cos and sin are written out anew for each of q and k in each layer."""
    cos, sin = (tape.new(table.n, x.width) for table in rotation)
    return add(tape, mul(tape, x, cos), mul(tape, _swapped(tape, x), sin))


def _apart(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """Both halves on their own, with tables of half the width (gpt-oss)."""
    cos, sin = rotation
    first, second = split(tape, x, x.n // 2, x.n // 2)
    turned = less(tape, mul(tape, first, cos), mul(tape, second, sin))
    other = add(tape, mul(tape, second, cos), mul(tape, first, sin))
    out = joined(tape, turned, other)
    out.heads_first = True
    return out


def turned_as_complex(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """As complex numbers in fp32, back to the type it came in (DeepSeek-V2, Llama 4)."""
    table, _ = rotation
    wide = cast(tape, x, 4)
    return cast(tape, mul(tape, wide, table), x.width)


def turned_by_kernel(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """One kernel, which keeps nothing but the tables; its result lies as x does."""
    return tape.new(x.n, x.width, tape.open(made, (x,)))


def _in_place(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """A kernel that overwrites x, and the incoming gradient."""
    return view(x.storage, x.n, x.width, tape.open(passed, (x,)))


ROTATIONS: dict[str, Callable[[Tape, Tensor, Rotation], Tensor]] = {
    "halves": _halves,
    "alternating": _alternating,
    "halves-fp32": _halves_fp32,
    "complex": turned_as_complex,
    "apart": _apart,
    "halves-cast-back": _halves_cast_back,
    "kernel": turned_by_kernel,
    "compiled": turned_by_kernel,
    "in-place": _in_place,
}


def rotated(tape: Tape, x: Tensor, rotation: Rotation, kind: str, rotating: int, joins: bool) -> Tensor:
    """Rotate x, or its first `rotating` elements, joined with those that pass."""
    turn = ROTATIONS.get(kind, _halves)
    whole = rotating == x.n and not joins
    if whole or kind in ("kernel", "compiled", "in-place"):
        out = turn(tape, x, rotation)
        # Joined parts lie as the public code joins them, in whatever kernel.
        out.heads_first = out.heads_first or (kind == "compiled" and not whole)
        return out
    turning, passing = sliced(tape, x, rotating), sliced(tape, x, x.n - rotating)
    out = joined(tape, turn(tape, turning, rotation), passing)
    out.heads_first = kind != "alternating"
    return out
