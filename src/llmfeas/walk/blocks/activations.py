"""Activations, fused or written out."""

from __future__ import annotations

from ..graph import Node, Tensor
from ..operators.basic import add, clamped, mul, power, scaled, shifted, silu, unary_of_input, unary_of_output
from ..operators.views import sliced
from ..tape import Tape


def gelu_written(tape: Tape, x: Tensor) -> Tensor:
    """`0.5 x (1 + tanh(c (x + 0.044715 x^3)))`, operator by operator."""
    half = scaled(tape, x)
    return mul(
        tape, half, shifted(tape, unary_of_output(tape, scaled(tape, add(tape, x, scaled(tape, power(tape, x))))))
    )


def _recomputed_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """Tanh, then the derivative's expression; at its widest five tensors and the result's parts."""
    g = grads[0]
    assert g is not None
    n, width = g.n, g.width
    tanh = tape.new(n, width)
    half, rest = tape.new(n, width), tape.new(n, width)
    inner, squares = tape.new(n, width), tape.new(n, width)
    product = tape.new(n, width)
    del inner, squares
    slope = tape.new(n, width)
    del half, rest, product, tanh
    offset = tape.new(n, width)
    factor = tape.new(n, width)
    del slope, offset
    return [tape.new(n, width) if factor is not None else None]


def gelu_recomputed(tape: Tape, x: Tensor) -> Tensor:
    """The tanh form as a function that keeps only its input (Bloom)."""
    node = tape.open(_recomputed_back, (x,))
    tape.keep(node, x)
    half = tape.new(x.n, x.width)
    scaled_x, cube = tape.new(x.n, x.width), tape.new(x.n, x.width)
    inner = tape.new(x.n, x.width)
    del scaled_x, cube
    out = tape.new(x.n, x.width, node)
    del half, inner
    return out


def activation_kind(program: str, activation: str) -> str:
    """Give the program that runs an architecture's activation; a kernel of a relu still keeps its output alone."""
    return activation if program == "kernel" and activation == "relu" else program or activation


def activated(tape: Tape, x: Tensor, kind: str) -> Tensor:
    """Run an activation by the architecture's name for it."""
    if kind == "gelu_new":
        return gelu_written(tape, x)
    if kind == "gelu-recomputed":
        return gelu_recomputed(tape, x)
    if kind == "silu":
        return silu(tape, x)
    if kind == "relu":
        return unary_of_output(tape, x)
    return unary_of_input(tape, x)


def _glu_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    if tape.overwrites:
        return [node.overwritten(tape, i) for i in range(len(node.edges))]
    return [node.result(tape, i, g.width) for i in range(len(node.edges))]


def gated(tape: Tape, *parts: Tensor) -> Tensor:
    """Activation of the gate times up in one kernel: keeps both (two tensors, or one for both), or 8-bit copies."""
    node = tape.open(_glu_back, parts)
    tape.keep(node, *([tape.new(part.n, 1) for part in parts] if tape.narrow_activations else parts))
    n = parts[0].n if len(parts) == 2 else parts[0].n // 2
    return tape.new(n, parts[0].width, node)


def gated_clamped(tape: Tape, joint: Tensor) -> Tensor:
    """(up + 1) * gate * sigmoid(c gate) of clamped halves that are cut out of one tensor (gpt-oss)."""
    gate, up = sliced(tape, joint, joint.n // 2), sliced(tape, joint, joint.n // 2)
    gate = clamped(tape, gate, sides=1)
    up = clamped(tape, up, sides=2)
    glu = mul(tape, gate, unary_of_output(tape, scaled(tape, gate)))
    return mul(tape, shifted(tape, up), glu)
