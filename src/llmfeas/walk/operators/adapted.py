"""Projections with low-rank adapters in the base's type: as hand-written kernels run them, one operator each, and as
products of their own beside a base that is divided over ranks.
"""

from __future__ import annotations

from ..graph import Node, Parameter, Tensor
from ..storage import WORKSPACE
from ..tape import Tape
from .basic import add, scaled
from .products import linear
from .views import respread

Adapted = tuple[Parameter, Parameter, Parameter]
"""A frozen weight and its two factors."""


def _unpacked(tape: Tape, *weights: Parameter) -> Tensor | None:
    """The one matrix of packed ones that is in 16 bits at a time."""
    packed = [weight.n for weight in weights if weight.packed]
    return tape.new(max(packed), 2, component=WORKSPACE) if packed else None


def _linear_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    temporaries = [tape.new(n, 2, component=WORKSPACE) for n in node.data]
    results = [node.result(tape, i, g.width) for i in range(3)]
    del temporaries
    return results


def adapted_linear(tape: Tape, x: Tensor, adapted: Adapted) -> Tensor:
    """x times a frozen weight plus x times its factors: keeps x, however many projections read it."""
    weight, down, up = adapted
    node = tape.open(_linear_back, (x, down, up), (weight.n,) if weight.packed else ())
    unpacked = _unpacked(tape, weight)
    out = tape.new(x.n // weight.shape[1] * weight.shape[0], x.width, node)
    del unpacked
    tape.keep(node, x)
    return out


def _feed_forward_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """The gradient of the product, which the kernel overwrites with the product itself, gate's and up's gradients over
    those two; then the gradient of x over x.
    """
    g = grads[0]
    assert g is not None
    temporaries = [tape.new(n, 2, component=WORKSPACE) for n in node.data[1:]]
    product = tape.new(node.data[0], g.width)
    # Taken to lie where the product lay: it is written over x, which is as large as it.
    del product
    results = [node.result(tape, i, g.width) for i in range(7)]
    del temporaries
    return results


def adapted_feed_forward(tape: Tape, x: Tensor, gate: Adapted, up: Adapted, down: Adapted) -> Tensor:
    """A gated feed-forward as one operator: keeps x, gate and up, and makes their product again in backward."""
    inner = x.n // gate[0].shape[1] * gate[0].shape[0]
    factors = [factor for part in (gate, up, down) for factor in part[1:]]
    packed = [part[0].n for part in (gate, up, down) if part[0].packed]
    node = tape.open(_feed_forward_back, (x, *factors), (inner, max(packed)) if packed else (inner,))
    unpacked = _unpacked(tape, gate[0], up[0], down[0])
    gated, raised = tape.new(inner, x.width), tape.new(inner, x.width)
    product = tape.new(inner, x.width)
    out = tape.new(inner // down[0].shape[1] * down[0].shape[0], x.width, node)
    del product, unpacked
    tape.keep(node, x, gated, raised)
    return out


def _gathered(tape: Tape, x: Tensor, ranks: int) -> Tensor:
    """The stream of all ranks, gathered once for all that read it."""
    if x.recast is None:
        x.recast = respread(tape, x, x.n * ranks)
    return x.recast


def adapted_over_ranks(tape: Tape, x: Tensor, adapted: Adapted, bias: Parameter | None, ranks: int) -> Tensor:
    """x times a frozen weight, plus x times its factors by products of their own: keeps x whole, and x times the first.

    With sequence parallelism an input that is spread over `ranks` comes gathered from the norm, which the first factor
    keeps; an output that is (negative) is scattered again. A factor that is divided gives parts, which are gathered.
    Source: NVIDIA-NeMo/Megatron-Bridge of 2026-08-22, peft/utils.py (ParallelLinearAdapter, and its use of
    return_layernorm_output_gathered) and peft/lora_layers.py.
    """
    weight, down, up = adapted
    if ranks > 1:
        x = _gathered(tape, x, ranks)
    y = linear(tape, x, weight, bias)
    rows = x.n // weight.shape[1]
    low = respread(tape, linear(tape, x, down), rows * up.shape[1])
    high = respread(tape, linear(tape, low, up), rows * weight.shape[0])
    high = respread(tape, high, y.n)
    return add(tape, y, scaled(tape, high))
