"""Operators of routed experts: top-k, rows gathered by index, grouped products."""

from __future__ import annotations

from .graph import Node, Parameter, Tensor, view
from .products import input_kept
from .recorder import Recorder
from .rules import made
from .storage import WORKSPACE


def _zeros_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Zeros of the input's size, and a copy of them with the gradient added in."""
    _zeros = recorder.gradient(node, 0, g.width)
    return [recorder.gradient(node, 0, g.width)]


def top(recorder: Recorder, x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The `n` largest values (k a row) and their 8-byte indices, which it keeps."""
    node = recorder.open(_zeros_back, (x,))
    values = recorder.new(n, x.width, node)
    indices = recorder.new(n, 8)
    recorder.keep(node, indices)
    return values, indices


def scattered(recorder: Recorder, values: Tensor, index: Tensor, n: int) -> Tensor:
    """Values put into a fresh tensor by an index that it keeps."""
    node = recorder.open(made, (values,))
    recorder.keep(node, index)
    return recorder.new(n, values.width, node)


def rows(recorder: Recorder, x: Tensor, index: Tensor, n: int) -> Tensor:
    """Rows picked by an index that it keeps."""
    node = recorder.open(_zeros_back, (x,))
    recorder.keep(node, index)
    return recorder.new(n, x.width, node)


def grouped(recorder: Recorder, x: Tensor, weight: Parameter, offsets: Tensor, n: int) -> Tensor:
    """Each row times the matrix of its expert, in the weight's type: keeps rows, weights and offsets; of packed weights
    what they are in 16 bits.
    """
    node = recorder.open(made, (x, weight))
    used = recorder.new(weight.n, 2, component=WORKSPACE) if weight.packed else weight
    if node is not None:
        recorder.keep(
            node,
            input_kept(recorder, x) if weight.node is not None else None,
            used if x.node is not None else None,
            offsets,
        )
    return recorder.new(n, weight.width, node)


def _one_by_one_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Both stacks' gradients grow until the last expert; each expert's comes as zeros of the whole, its part filled."""
    rows, joint, down = node.edges[0], node.edges[1], node.edges[2]
    whole_down = recorder.gradient(node, 2, down[3]) if down else None
    whole_joint = recorder.gradient(node, 1, joint[3]) if joint else None
    filled = recorder.gradient(node, 1, joint[3]) if joint else None
    del filled
    picked = recorder.gradient(node, 0, rows[3]) if rows else None
    return [picked, whole_joint, whole_down, recorder.gradient(node, 3, 4)]


def one_by_one(
    recorder: Recorder, x: Tensor, joint: Parameter, down: Parameter, weights: Tensor, hidden: int, *, gated: bool
) -> Tensor:
    """Rows through their experts, one expert after the other: `hidden` elements between up and down.

    Keeps what each expert's products and activation need; under autocast a 2-byte copy of every slice of fp32 weights,
    which no other use shares.
    """
    node = recorder.open(_one_by_one_back, (x, joint, down, weights))
    width = 2 if recorder.autocast else x.width
    kept = [recorder.new(x.n, width)] if x.width != width else [x]
    for weight in (joint, down):
        copied = recorder.autocast and weight.width == 4
        kept.append(recorder.new(weight.n, 2, component=WORKSPACE) if copied else weight)
    kept += [recorder.new(hidden * (2 if gated else 1), width)]
    kept += [recorder.new(hidden, width) for _ in range(2 if gated else 1)]
    kept.append(recorder.new(x.n, width))
    recorder.keep(node, *kept, weights)
    return recorder.new(x.n, max(width, weights.width), node)


def added_at(recorder: Recorder, x: Tensor, values: Tensor, index: Tensor) -> Tensor:
    """Rows added in place where an index says so: keeps both."""
    node = recorder.open(_added_at_back, (x, values))
    recorder.keep(node, index, values)
    return view(x.storage, x.n, x.width, node)


def _added_at_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return [g, recorder.gradient(node, 1, g.width)]


def _spread_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """A sum's gradient is seen from every term: a view."""
    edge = node.edges[0]
    assert edge is not None
    return [view(g.storage, edge[2], g.width)]


def summed(recorder: Recorder, x: Tensor, n: int) -> Tensor:
    """Sum over one dimension."""
    return recorder.new(n, x.width, recorder.open(_spread_back, (x,)))
