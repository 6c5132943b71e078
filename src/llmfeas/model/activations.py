"""Activations, fused or written out."""

from __future__ import annotations

from ..autograd.basic import (
    add,
    cast,
    chosen,
    clamped,
    less,
    mul,
    power,
    scaled,
    shifted,
    silu,
    unary_of_input,
    unary_of_output,
)
from ..autograd.graph import Node, Tensor
from ..autograd.recorder import Recorder
from ..autograd.views import sliced


def gelu_written(recorder: Recorder, x: Tensor) -> Tensor:
    """`0.5 x (1 + tanh(c (x + 0.044715 x^3)))`, operator by operator."""
    half = scaled(recorder, x)
    return mul(
        recorder,
        half,
        shifted(
            recorder,
            unary_of_output(recorder, scaled(recorder, add(recorder, x, scaled(recorder, power(recorder, x))))),
        ),
    )


def _recomputed_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Tanh, then the derivative's expression; at its widest five tensors and the result's parts."""
    n, width = g.n, g.width
    tanh = recorder.new(n, width)
    half, rest = recorder.new(n, width), recorder.new(n, width)
    inner, squares = recorder.new(n, width), recorder.new(n, width)
    product = recorder.new(n, width)
    del inner, squares
    slope = recorder.new(n, width)
    del half, rest, product, tanh
    offset = recorder.new(n, width)
    factor = recorder.new(n, width)
    del slope, offset
    return [recorder.new(n, width) if factor is not None else None]


def gelu_recomputed(recorder: Recorder, x: Tensor) -> Tensor:
    """The tanh form as a function that keeps only its input (Bloom)."""
    node = recorder.open(_recomputed_back, (x,))
    recorder.keep(node, x)
    half = recorder.new(x.n, x.width)
    scaled_x, cube = recorder.new(x.n, x.width), recorder.new(x.n, x.width)
    inner = recorder.new(x.n, x.width)
    del scaled_x, cube
    out = recorder.new(x.n, x.width, node)
    del half, inner
    return out


def xielu(recorder: Recorder, x: Tensor, *factors: Tensor) -> Tensor:
    """Two branches of which each element takes one: `a x^2 + b x` above zero, `(exp(x) - 1 - x) a + b x` below, each
    with a factor of its own that is trained. Factors and what is raised are in fp32 under autocast."""
    width = 4 if recorder.autocast else x.width
    above, below = (cast(recorder, factor, width) for factor in factors)
    sign = recorder.new(x.n, 1)
    above = add(recorder, mul(recorder, mul(recorder, x, above), x), scaled(recorder, x))
    raised = unary_of_output(recorder, cast(recorder, clamped(recorder, x, sides=1), width))
    below = add(recorder, mul(recorder, less(recorder, raised, x), below), scaled(recorder, x))
    return chosen(recorder, above, below, sign)


def activation_kind(program: str, activation: str) -> str:
    """The program that runs an architecture's activation; a kernel of a relu still keeps its output alone."""
    return activation if program == "kernel" and activation == "relu" else program or activation


def activated(recorder: Recorder, x: Tensor, kind: str, *factors: Tensor) -> Tensor:
    """Run an activation by the architecture's name for it, with factors that it trains."""
    if kind == "gelu_new":
        return gelu_written(recorder, x)
    if kind == "gelu-recomputed":
        return gelu_recomputed(recorder, x)
    if kind == "silu":
        return silu(recorder, x)
    if kind == "relu":
        return unary_of_output(recorder, x)
    if kind == "relu2":
        return power(recorder, unary_of_output(recorder, x))
    if kind == "xielu" and factors:
        return xielu(recorder, x, *factors)
    return unary_of_input(recorder, x)


def _glu_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    if recorder.overwrites:
        return [recorder.overwritten(node, i) for i in range(len(node.edges))]
    return [recorder.gradient(node, i, g.width) for i in range(len(node.edges))]


def gated(recorder: Recorder, *parts: Tensor) -> Tensor:
    """Activation of the gate times up in one kernel: keeps both (two tensors, or one for both), or 8-bit copies."""
    node = recorder.open(_glu_back, parts)
    recorder.keep(node, *([recorder.new(part.n, 1) for part in parts] if recorder.narrow_activations else parts))
    n = parts[0].n if len(parts) == 2 else parts[0].n // 2
    return recorder.new(n, parts[0].width, node)


def gated_clamped(recorder: Recorder, joint: Tensor) -> Tensor:
    """(up + 1) * gate * sigmoid(c gate) of clamped halves that are cut out of one tensor (gpt-oss)."""
    gate, up = sliced(recorder, joint, joint.n // 2), sliced(recorder, joint, joint.n // 2)
    gate = clamped(recorder, gate, sides=1)
    up = clamped(recorder, up, sides=2)
    glu = mul(recorder, gate, unary_of_output(recorder, scaled(recorder, gate)))
    return mul(recorder, shifted(recorder, up), glu)
