"""Rotary position embeddings as public code writes them."""

from __future__ import annotations

from collections.abc import Callable

from ...autograd.basic import add, cast, less, mul, scaled
from ...autograd.graph import Tensor, view
from ...autograd.recorder import Recorder
from ...autograd.rules import made, passed
from ...autograd.views import joined, sliced, split
from ...record import dataclass

Rotation = tuple[Tensor, Tensor]
"""cos and sin of one sequence, shared by all layers of a kind."""

Lent = dict[bool, tuple[Tensor, Tensor]]
"""Keys and values of the layers that lend theirs, without and with a window."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a layer is called with beside the stream."""

    mask: Tensor | None
    rotation: Rotation | None
    bias: Tensor | None
    """What is added to scores for positions."""
    places: Tensor | None
    """Position ids, where layers are called with them."""
    embedded: Tensor | None = None
    """The embedding of the tokens, where layers look at it again."""
    source: SourceStream | None = None
    """What an encoder made, where the layers look at it."""
    inputs: Tensor | None = None
    """Embeddings of each layer, side by side."""
    lent: Lent | None = None
    """Where layers leave keys and values for later ones, as long as anybody is called with it."""


@dataclass(frozen=True, slots=True)
class SourceStream:
    """The last stream of an encoder, and what attention to it is called with."""

    stream: Tensor
    around: Around
    cut: bool = False
    """It is a part of what the encoder made, the rest of which fills its last window."""


def _swapped(recorder: Recorder, x: Tensor) -> Tensor:
    half = x.n // 2
    first, second = sliced(recorder, x, half), sliced(recorder, x, half)
    return joined(recorder, scaled(recorder, second), first)


def _halves(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """x cos + (the halves swapped, one negated) sin."""
    cos, sin = rotation
    out = add(recorder, mul(recorder, x, cos), mul(recorder, _swapped(recorder, x), sin))
    out.heads_first = False
    return out


def _halves_cast_back(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """As halves, with fp32 cos and sin, and back to the type it came in."""
    return cast(recorder, _halves(recorder, x, rotation), x.width)


def _halves_fp32(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """As halves, on an fp32 copy (Cohere)."""
    return cast(recorder, _halves(recorder, cast(recorder, x, 4), rotation), x.width)


def respread(recorder: Recorder, rotation: Rotation) -> Rotation:
    """Tables written out anew in every layer, each angle beside itself (Helium, GLM)."""
    cos, sin = (recorder.new(table.n, table.width) for table in rotation)
    return cos, sin


def _alternating(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """GPT-J: even and odd elements swapped; cos and sin are written out anew for each of q and k in each layer."""
    cos, sin = (recorder.new(table.n, x.width) for table in rotation)
    return add(recorder, mul(recorder, x, cos), mul(recorder, _swapped(recorder, x), sin))


def _apart(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """Both halves on their own, with tables of half the width (gpt-oss)."""
    cos, sin = rotation
    first, second = split(recorder, x, x.n // 2, x.n // 2)
    turned = less(recorder, mul(recorder, first, cos), mul(recorder, second, sin))
    other = add(recorder, mul(recorder, second, cos), mul(recorder, first, sin))
    out = joined(recorder, turned, other)
    out.heads_first = True
    return out


def turned_as_complex(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """As complex numbers in fp32, back to the type it came in (DeepSeek-V2, Llama 4)."""
    table, _ = rotation
    wide = cast(recorder, x, 4)
    return cast(recorder, mul(recorder, wide, table), x.width)


def turned_by_kernel(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """One kernel, which keeps nothing but the tables; its result lies as x does."""
    return recorder.new(x.n, x.width, recorder.open(made, (x,)))


def _in_place(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """A kernel that overwrites x, and the incoming gradient."""
    return view(x.storage, x.n, x.width, recorder.open(passed, (x,)))


ROTATIONS: dict[str, Callable[[Recorder, Tensor, Rotation], Tensor]] = {
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


def rotated(recorder: Recorder, x: Tensor, rotation: Rotation, kind: str, rotating: int, joins: bool) -> Tensor:
    """Rotate x, or its first `rotating` elements, joined with those that pass."""
    turn = ROTATIONS.get(kind, _halves)
    whole = rotating == x.n and not joins
    if whole or kind in ("kernel", "compiled", "in-place"):
        out = turn(recorder, x, rotation)
        # Joined parts lie as the public code joins them, in whatever kernel.
        out.heads_first = out.heads_first or (kind == "compiled" and not whole)
        return out
    turning, passing = sliced(recorder, x, rotating), sliced(recorder, x, x.n - rotating)
    out = joined(recorder, turn(recorder, turning, rotation), passing)
    out.heads_first = kind != "alternating"
    return out
