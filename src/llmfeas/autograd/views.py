"""Views, copies and joins: what changes how memory is seen, and what their gradients make of it."""

from __future__ import annotations

from .basic import cast
from .graph import Node, Tensor, view
from .recorder import Recorder
from .rules import made, passed


def respread(recorder: Recorder, x: Tensor, n: int) -> Tensor:
    """Gathered from, or scattered to, the ranks: another number of elements."""
    return x if x.n == n else recorder.new(n, x.width, recorder.open(made, (x,)))


def copy(recorder: Recorder, x: Tensor, width: int = 0) -> Tensor:
    """A copy in memory order [b, s, heads, d] or as asked, in a type of its own; its gradient passes through."""
    return recorder.new(x.n, width or x.width, recorder.open(passed, (x,)))


def joined(recorder: Recorder, *parts: Tensor) -> Tensor:
    """Concatenation in the widest type; its gradient is cut into views."""
    widest = max(x.width for x in parts)
    if recorder.autocast:
        parts = tuple(cast(recorder, x, widest) for x in parts)
    node = recorder.open(_cut, parts)
    return recorder.new(sum(x.n for x in parts), widest, node)


def _cut(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    results: list[Tensor | None] = []
    for edge in node.edges:
        if edge is None:
            results.append(None)
            continue
        part = view(g.storage, edge[2], g.width)
        part.plain = False
        results.append(part)
    return results


def sliced(recorder: Recorder, x: Tensor, n: int) -> Tensor:
    """A part, as a view; its gradient is a full tensor of zeros with the part filled."""
    return view(x.storage, n, x.width, recorder.open(made, (x,)))


def gathered(recorder: Recorder, x: Tensor, n: int) -> Tensor:
    """A part picked by indices, as a copy; its gradient is a full tensor of zeros, added into."""
    node = recorder.open(made, (x,))
    recorder.keep(node, recorder.new(1, 8))
    return recorder.new(n, x.width, node)


def _overwritten_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The whole gradient copied, the written part of it copied again."""
    edge = node.edges[1]
    whole = recorder.new(g.n, g.width)
    if edge is None:
        return [whole, None]
    return [whole, recorder.new(edge[2], g.width)]


def overwritten(recorder: Recorder, x: Tensor, part: Tensor) -> Tensor:
    """x with a part of it overwritten in place."""
    return view(x.storage, x.n, x.width, recorder.open(_overwritten_back, (x, part)))


def padded(recorder: Recorder, x: Tensor, n: int) -> Tensor:
    """x among zeros, so that there are n, a copy even where nothing is missing; its gradient is a copy of the part."""
    return recorder.new(n, x.width, recorder.open(made, (x,)))


def _overlapping_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Where each element came from as 64-bit numbers, once in order and once by blocks, beside the sum of them."""
    edge = node.edges[0]
    assert edge is not None
    total = recorder.new(edge[2], g.width)
    _places, _blocks = recorder.new(edge[2], 8), recorder.new(g.n, 8)
    return [total]


def overlapping(recorder: Recorder, x: Tensor, n: int) -> Tensor:
    """A copy of x as blocks that overlap, n elements of all of them."""
    seen = view(x.storage, n, x.width, recorder.open(_overlapping_back, (x,)))
    return copy(recorder, seen)


def split(recorder: Recorder, x: Tensor, *parts: int) -> list[Tensor]:
    """Parts, as views; their gradients are joined into one tensor."""
    node = recorder.open(made, (x,), slots=len(parts))
    views: list[Tensor] = []
    for slot, n in enumerate(parts):
        part = view(x.storage, n, x.width, node)
        part.slot = slot
        views.append(part)
    return views


def spread_heads(recorder: Recorder, x: Tensor, times: int) -> Tensor:
    """x seen so many times (once for every head), without a copy; the gradient is summed back."""
    return view(x.storage, x.n * times, x.width, recorder.open(passed, (x,)))


def repeated(recorder: Recorder, x: Tensor, times: int) -> Tensor:
    """Heads repeated; the gradient is summed back."""
    if times == 1:
        return x
    out = recorder.new(x.n * times, x.width, recorder.open(passed, (x,)))
    out.heads_first = True
    return out
