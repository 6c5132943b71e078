"""Projections with low-rank adapters in the base's type: as hand-written kernels run them, one operator each, and as
products of their own beside a base that is divided over ranks.
"""

from __future__ import annotations

from .basic import add, scaled
from .graph import Node, Parameter, Tensor
from .products import linear
from .recorder import Recorder
from .storage import WORKSPACE
from .views import respread

Adapted = tuple[Parameter, Parameter, Parameter]
"""A frozen weight and its two factors."""


def _in_16_bits(recorder: Recorder, *weights: Parameter) -> Tensor | None:
    """The one matrix of packed ones that is in 16 bits at a time."""
    packed = [weight.n for weight in weights if weight.packed]
    return recorder.new(max(packed), 2, component=WORKSPACE) if packed else None


def _linear_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    _unpacked = [recorder.new(n, 2, component=WORKSPACE) for n in node.data]
    return [recorder.gradient(node, i, g.width) for i in range(3)]


def adapted_linear(recorder: Recorder, x: Tensor, adapted: Adapted) -> Tensor:
    """x times a frozen weight plus x times its factors: keeps x, however many projections read it."""
    weight, down, up = adapted
    node = recorder.open(_linear_back, (x, down, up), (weight.n,) if weight.packed else ())
    unpacked = _in_16_bits(recorder, weight)
    out = recorder.new(x.n // weight.shape[1] * weight.shape[0], x.width, node)
    del unpacked
    recorder.keep(node, x)
    return out


def _feed_forward_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The gradient of the product, which the kernel overwrites with the product itself, gate's and up's gradients over
    those two; then the gradient of x over x.
    """
    _unpacked = [recorder.new(n, 2, component=WORKSPACE) for n in node.data[1:]]
    product = recorder.new(node.data[0], g.width)
    # Taken to lie where the product lay: it is written over x, which is as large as it.
    del product
    return [recorder.gradient(node, i, g.width) for i in range(7)]


def adapted_feed_forward(recorder: Recorder, x: Tensor, gate: Adapted, up: Adapted, down: Adapted) -> Tensor:
    """A gated feed-forward as one operator: keeps x, gate and up, and makes their product again in backward."""
    inner = x.n // gate[0].shape[1] * gate[0].shape[0]
    factors = [factor for part in (gate, up, down) for factor in part[1:]]
    packed = [part[0].n for part in (gate, up, down) if part[0].packed]
    node = recorder.open(_feed_forward_back, (x, *factors), (inner, max(packed)) if packed else (inner,))
    unpacked = _in_16_bits(recorder, gate[0], up[0], down[0])
    gated, raised = recorder.new(inner, x.width), recorder.new(inner, x.width)
    product = recorder.new(inner, x.width)
    out = recorder.new(inner // down[0].shape[1] * down[0].shape[0], x.width, node)
    del product, unpacked
    recorder.keep(node, x, gated, raised)
    return out


def _gathered(recorder: Recorder, x: Tensor, ranks: int) -> Tensor:
    """The stream of all ranks, gathered once for all that read it."""
    if x.recast is None:
        x.recast = respread(recorder, x, x.n * ranks)
    return x.recast


def adapted_over_ranks(recorder: Recorder, x: Tensor, adapted: Adapted, bias: Parameter | None, ranks: int) -> Tensor:
    """x times a frozen weight, plus x times its factors by products of their own: keeps x whole, and x times the first.

    With sequence parallelism an input that is spread over `ranks` comes gathered from the norm, which the first factor
    keeps; an output that is (negative) is scattered again. A factor that is divided gives parts, which are gathered.
    Source: NVIDIA-NeMo/Megatron-Bridge of 2026-08-22, peft/utils.py (ParallelLinearAdapter, and its use of
    return_layernorm_output_gathered) and peft/lora_layers.py.
    """
    weight, down, up = adapted
    if ranks > 1:
        x = _gathered(recorder, x, ranks)
    y = linear(recorder, x, weight, bias)
    rows = x.n // weight.shape[1]
    low = respread(recorder, linear(recorder, x, down), rows * up.shape[1])
    high = respread(recorder, linear(recorder, low, up), rows * weight.shape[0])
    high = respread(recorder, high, y.n)
    return add(recorder, y, scaled(recorder, high))
