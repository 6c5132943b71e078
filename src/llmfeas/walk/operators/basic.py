"""Elementwise operators and reductions: what each keeps and makes."""

from __future__ import annotations

from ..graph import Node, Parameter, Tensor, view
from ..storage import WORKSPACE
from ..tape import Tape
from .rules import fresh, made, passed, spread


def cast(tape: Tape, x: Tensor, width: int) -> Tensor:
    """Change of type; the same tensor where it has it."""
    if x.width == width:
        return x
    # Weights and a checkpointed block's arguments outlive its forward pass: a copy must not live with them.
    shared = tape.compiled and tape.frame is None and not isinstance(x, Parameter)
    if shared and x.recast is not None and x.recast.width == width:
        return x.recast
    node = tape.open(passed, (x,))
    out = tape.new(x.n, width, node)
    out.heads_first = x.heads_first
    if shared:
        x.recast = out
    return out


def copied(tape: Tape, x: Tensor) -> Tensor:
    """A copy that nothing is kept for."""
    out = tape.new(x.n, x.width, tape.open(passed, (x,)))
    out.heads_first = x.heads_first
    return out


def copied_weight(tape: Tape, weight: Parameter) -> Tensor:
    """The 2-byte copy of a trained weight that autocast shares within its region; a 2-byte weight itself."""
    if weight.width == 2:
        return weight
    if not weight.shared:
        return tape.new(weight.n, 2, tape.open(passed, (weight,)), WORKSPACE)
    if weight.copied is None:
        node = tape.open(passed, (weight,))
        weight.copied = tape.new(weight.n, 2, node, WORKSPACE)
        tape.copied.append(weight)
    return weight.copied


def add(tape: Tape, a: Tensor, b: Tensor) -> Tensor:
    """Sum (the smaller side is broadcast)."""
    node = tape.open(passed, (a, b))
    out = tape.new(max(a.n, b.n), max(a.width, b.width), node)
    out.heads_first = a.heads_first
    return out


def added_in_place(tape: Tape, a: Tensor, b: Tensor) -> Tensor:
    """`a += b`: nothing new."""
    return view(a.storage, a.n, a.width, tape.open(passed, (a, b)))


def clipped_in_place(tape: Tape, x: Tensor) -> Tensor:
    """A clamp in place: keeps a copy of what it overwrites."""
    node = tape.open(fresh, (x,))
    if node is not None:
        tape.keep(node, tape.new(x.n, x.width))
    return view(x.storage, x.n, x.width, node)


def _clamp_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    masks = [tape.new(g.n, 1) for _ in range(node.data[0])]
    result = tape.new(g.n, g.width)
    del masks
    return [result]


def clamped(tape: Tape, x: Tensor, sides: int) -> Tensor:
    """Bounded on one or two sides: keeps its input."""
    node = tape.open(_clamp_back, (x,), (sides,))
    tape.keep(node, x)
    return tape.new(x.n, x.width, node)


def less(tape: Tape, a: Tensor, b: Tensor) -> Tensor:
    """Difference of two tensors (the smaller side is broadcast)."""
    node = tape.open(_less_back, (a, b))
    return tape.new(max(a.n, b.n), max(a.width, b.width), node)


def _less_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [g, tape.new(g.n, g.width) if node.wants(1) else None]


def scaled(tape: Tape, x: Tensor) -> Tensor:
    """Times a number."""
    return tape.new(x.n, x.width, tape.open(fresh, (x,)))


def filled(tape: Tape, x: Tensor, mask: Tensor) -> Tensor:
    """A number where the mask says so: keeps the mask."""
    node = tape.open(fresh, (x,))
    tape.keep(node, mask)
    return tape.new(x.n, x.width, node)


def weighed_in_place(tape: Tape, x: Tensor, weight: Tensor) -> Tensor:
    """Rows times a number each inside the kernel that made them: what that kernel keeps serves both."""
    node = tape.open(made, (x, weight))
    tape.keep(node, weight)
    return view(x.storage, x.n, x.width, node)


def scaled_in_place(tape: Tape, x: Tensor) -> Tensor:
    """Times a number, in place."""
    return view(x.storage, x.n, x.width, tape.open(fresh, (x,)))


def shifted(tape: Tape, x: Tensor) -> Tensor:
    """Plus a number."""
    return tape.new(x.n, x.width, tape.open(passed, (x,)))


def mul(tape: Tape, a: Tensor, b: Tensor) -> Tensor:
    """Product of two tensors (the smaller side is broadcast); each is kept for the other."""
    node = tape.open(fresh, (a, b))
    if node is not None:
        tape.keep(node, a if b.node is not None else None, b if a.node is not None else None)
    out = tape.new(max(a.n, b.n), max(a.width, b.width), node)
    out.heads_first = a.heads_first
    return out


def divided(tape: Tape, a: Tensor, b: Tensor, *, in_place: bool = False) -> Tensor:
    """Quotient of two tensors; keeps the divisor, and the dividend if the divisor needs a gradient."""
    node = tape.open(fresh, (a, b))
    tape.keep(node, b)
    if node is not None and b.node is not None:
        # What is overwritten is kept as a copy.
        tape.keep(node, tape.new(a.n, a.width) if in_place else a)
    if in_place:
        return view(a.storage, a.n, a.width, node)
    return tape.new(max(a.n, b.n), max(a.width, b.width), node)


def _power_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    temporaries = tape.new(g.n, g.width), tape.new(g.n, g.width)
    result = tape.new(g.n, g.width)
    del temporaries
    return [result]


def power(tape: Tape, x: Tensor) -> Tensor:
    """A constant power; in fp32 under autocast."""
    if tape.autocast:
        x = cast(tape, x, 4)
    node = tape.open(_power_back, (x,))
    tape.keep(node, x)
    return tape.new(x.n, x.width, node)


def unary_of_output(tape: Tape, x: Tensor) -> Tensor:
    """tanh, sigmoid, relu, exp: keeps its output."""
    node = tape.open(fresh, (x,))
    out = tape.new(x.n, x.width, node)
    tape.keep(node, out)
    return out


def rsqrt(tape: Tape, x: Tensor) -> Tensor:
    """Inverse square root; in fp32 under autocast; keeps its output."""
    if tape.autocast:
        x = cast(tape, x, 4)
    node = tape.open(_rsqrt_back, (x,))
    out = tape.new(x.n, x.width, node)
    tape.keep(node, out)
    return out


def _rsqrt_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    cube = tape.new(g.n, g.width)
    half = tape.new(g.n, g.width)
    out = tape.new(g.n, g.width)
    del cube, half
    return [out]


def unary_of_input(tape: Tape, x: Tensor) -> Tensor:
    """gelu and other kernels that keep their input."""
    node = tape.open(fresh, (x,))
    tape.keep(node, x)
    return tape.new(x.n, x.width, node)


def _silu_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    temporaries = [tape.new(g.n, g.width) for _ in range(5)]
    result = tape.new(g.n, g.width)
    del temporaries
    return [result]


def silu(tape: Tape, x: Tensor) -> Tensor:
    """x times its sigmoid: keeps its input; its backward is made of six operators in the measured build."""
    node = tape.open(_silu_back, (x,))
    tape.keep(node, x)
    return tape.new(x.n, x.width, node)


def mean(tape: Tape, x: Tensor, rows: int) -> Tensor:
    """Mean over the width: one number a row."""
    return tape.new(rows, x.width, tape.open(spread, (x,)))


def softmax(tape: Tape, x: Tensor, width: int | None = None) -> Tensor:
    """Softmax, in `width` bytes where asked (else in fp32 under autocast); keeps its output."""
    target = width or (4 if tape.autocast else x.width)
    if width is not None or tape.autocast:
        x = cast(tape, x, target)
    node = tape.open(fresh, (x,))
    out = tape.new(x.n, target, node)
    tape.keep(node, out)
    return out


def dropout(tape: Tape, x: Tensor, active: bool) -> Tensor:
    """Dropout keeps a mask of one byte an element; without effect it is its input."""
    if not active:
        return x
    node = tape.open(fresh, (x,))
    out = tape.new(x.n, x.width, node)
    mask = tape.new(x.n, 1)
    tape.keep(node, mask)
    return out
