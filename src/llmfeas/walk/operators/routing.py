"""Operators of routed experts: top-k, rows gathered by index, grouped products."""

from __future__ import annotations

from ..graph import Node, Parameter, Tensor, view
from ..storage import WORKSPACE
from ..tape import Tape
from .products import input_kept


def _zeros_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """Zeros of the input's size, and a copy of them with the gradient added in."""
    g = grads[0]
    assert g is not None
    zeros = node.result(tape, 0, g.width)
    result = node.result(tape, 0, g.width)
    del zeros
    return [result]


def top(tape: Tape, x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The `n` largest values (k a row) and their 8-byte indices, which it keeps."""
    node = tape.open(_zeros_back, (x,))
    values = tape.new(n, x.width, node)
    indices = tape.new(n, 8)
    tape.keep(node, indices)
    return values, indices


def _gather_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [node.result(tape, 0, g.width)]


def scattered(tape: Tape, values: Tensor, index: Tensor, n: int) -> Tensor:
    """Values put into a fresh tensor by an index that it keeps."""
    node = tape.open(_gather_back, (values,))
    tape.keep(node, index)
    return tape.new(n, values.width, node)


def rows(tape: Tape, x: Tensor, index: Tensor, n: int) -> Tensor:
    """Rows picked by an index that it keeps."""
    node = tape.open(_zeros_back, (x,))
    tape.keep(node, index)
    return tape.new(n, x.width, node)


def _grouped_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [node.result(tape, i, g.width) for i in range(2)]


def grouped(tape: Tape, x: Tensor, weight: Parameter, offsets: Tensor, n: int) -> Tensor:
    """Each row times the matrix of its expert, in the weight's type: keeps rows, weights and offsets."""
    node = tape.open(_grouped_back, (x, weight))
    if node is not None:
        tape.keep(
            node,
            input_kept(tape, x) if weight.node is not None else None,
            weight if x.node is not None else None,
            offsets,
        )
    return tape.new(n, weight.width, node)


def _one_by_one_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """Both stacks' gradients grow until the last expert; each expert's comes as zeros of the whole, its part filled."""
    rows, joint, down = node.edges[0], node.edges[1], node.edges[2]
    whole_down = node.result(tape, 2, down[3]) if down else None
    whole_joint = node.result(tape, 1, joint[3]) if joint else None
    filled = node.result(tape, 1, joint[3]) if joint else None
    del filled
    return [node.result(tape, 0, rows[3]) if rows else None, whole_joint, whole_down, node.result(tape, 3, 4)]


def one_by_one(
    tape: Tape, x: Tensor, joint: Parameter, down: Parameter, weights: Tensor, hidden: int, *, gated: bool
) -> Tensor:
    """Rows through their experts, one expert after the other: `hidden` elements between up and down.

    Keeps what each expert's products and activation need; under autocast a 2-byte copy of every slice of fp32 weights,
    which no other use shares.
    """
    node = tape.open(_one_by_one_back, (x, joint, down, weights))
    width = 2 if tape.autocast else x.width
    kept = [tape.new(x.n, width)] if x.width != width else [x]
    for weight in (joint, down):
        kept.append(tape.new(weight.n, 2, component=WORKSPACE) if tape.autocast and weight.width == 4 else weight)
    kept += [tape.new(hidden * (2 if gated else 1), width)]
    kept += [tape.new(hidden, width) for _ in range(2 if gated else 1)]
    kept.append(tape.new(x.n, width))
    tape.keep(node, *kept, weights)
    return tape.new(x.n, max(width, weights.width), node)


def added_at(tape: Tape, x: Tensor, values: Tensor, index: Tensor) -> Tensor:
    """Rows added in place where an index says so: keeps both."""
    node = tape.open(_added_at_back, (x, values))
    tape.keep(node, index, values)
    return view(x.storage, x.n, x.width, node)


def _added_at_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [g, node.result(tape, 1, g.width)]


def _spread_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """A sum's gradient is seen from every term: a view."""
    g, edge = grads[0], node.edges[0]
    assert g is not None and edge is not None
    return [view(g.storage, edge[2], g.width)]


def summed(tape: Tape, x: Tensor, n: int) -> Tensor:
    """Sum over one dimension."""
    return tape.new(n, x.width, tape.open(_spread_back, (x,)))
