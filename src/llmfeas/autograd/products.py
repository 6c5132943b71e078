"""Matrix products, embeddings, layer norm and the attention kernels."""

from __future__ import annotations

from .basic import cast, copied_weight
from .graph import AccumulateGrad, Node, Parameter, Tensor, view
from .recorder import Recorder
from .rules import made
from .storage import LOGITS, WORKSPACE, Storage


def _linear_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    # Gathered inputs and gradients, an unpacked weight.
    unpacked, *gathered = node.data
    _passing = [recorder.new(n, g.width) for n in gathered]
    if unpacked:
        _passing.append(recorder.new(unpacked, g.width, component=WORKSPACE))
    bias = recorder.gradient(node, 2, g.width)
    x = recorder.gradient(node, 0, g.width, plain=False)
    weight = recorder.gradient(node, 1, g.width, plain=False)
    return [x, weight, bias]


def linear(
    recorder: Recorder,
    x: Tensor,
    weight: Parameter,
    bias: Parameter | None = None,
    *,
    logits: bool = False,
    out: int | None = None,
) -> Tensor:
    """x times W (+ b): keeps x if W trains, W (or its copy) if x needs a gradient."""
    n, passing, data = _extents(x, weight)
    if out is not None:
        n = out
    w: Tensor = weight
    b: Tensor | None = bias
    if recorder.autocast:
        # Arguments are cast last to first.
        b = copied_weight(recorder, bias) if bias is not None else None
        w = copied_weight(recorder, weight)
        x = cast(recorder, x, 2)
    unpacked = weight.n if weight.packed else 0
    node = recorder.open(_linear_back, (x, w, b), (unpacked, *data))
    if node is not None:
        recorder.keep(node, input_kept(recorder, x) if w.node is not None else None, w if x.node is not None else None)
    # A weight in one byte is multiplied as it is; what comes out is as wide as what went in.
    width = x.width if w.width == 1 else w.width
    _passing = [recorder.new(size, width) for size in passing]
    if unpacked:
        _passing.append(recorder.new(unpacked, width, component=WORKSPACE))
    return recorder.product(n, width, node, LOGITS if logits else -1)


def _integer_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    _weight = recorder.new(node.data[0], node.data[1], component=WORKSPACE)
    recorder.held += ((node.place, kept) for kept in node.saved if isinstance(kept, Storage))
    return [recorder.gradient(node, 0, node.data[1], plain=False)]


def integer_product(recorder: Recorder, x: Tensor, weight: Parameter) -> Tensor:
    """x times a frozen W in 8 bits, both as integers (bitsandbytes 0.50, MatMul8bitLt, without columns of outliers).

    Its node holds x, which backward never reads, as long as there is a graph: outside of what checkpointing takes from
    nodes, and beyond its own backward.
    """
    n = x.n // weight.shape[1] * weight.shape[0]
    node = recorder.open(_integer_back, (x,), (weight.n, x.width))
    if node is not None:
        node.saved.append(x.storage)
    halves = recorder.new(x.n, 2)
    integers = recorder.new(x.n, 1)
    _magnitudes = recorder.new(x.n, 2)
    _outliers = recorder.new(x.n, 1)
    del halves, _magnitudes, _outliers
    _sums = recorder.new(n, 4)
    _halves = recorder.new(n, 2)
    out = recorder.product(n, x.width, node)
    del integers
    return out


def _extents(x: Tensor, weight: Parameter) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Elements of the output, of what the forward makes for a moment, and of what the backward makes for a moment.

    Under sequence parallelism a column-split product gathers its input, a row-split one scatters its output
    (Korthikanti 2022).
    """
    n_out, n_in = weight.shape
    if weight.ranks > 1:
        rows = x.n // (n_in // weight.ranks)
        return rows * n_out, (rows * n_in,), (rows * n_in, rows * n_in)
    rows = x.n // n_in
    if weight.ranks < 0:
        return rows * (n_out // -weight.ranks), (rows * n_out,), (rows * n_out,)
    return rows * n_out, (), ()


def input_kept(recorder: Recorder, x: Tensor) -> Tensor:
    """What a trained product keeps of its input: itself, or a copy in one byte."""
    if recorder.bytes_kept != 1 or x.width != 2:
        return x
    if x.narrow is None:
        x.narrow = recorder.new(x.n, 1)
    return x.narrow


def low_rank_sum(recorder: Recorder, weight: Parameter, high: Tensor, low: Tensor) -> Parameter:
    """A frozen stacked weight plus the products of low-rank factors: keeps the factors."""
    node = recorder.open(made, (high, low))
    recorder.keep(node, high, low)
    total = Parameter(recorder.new(weight.n, weight.width).storage, weight.shape, weight.width, None)
    total.node = node
    return total


def matmul(recorder: Recorder, a: Tensor, b: Tensor, n: int) -> Tensor:
    """Batched product of two activations: keeps both."""
    if recorder.autocast:
        b = cast(recorder, b, 2)
        a = cast(recorder, a, 2)
    node = recorder.open(made, (a, b))
    if node is not None:
        recorder.keep(node, a if b.node is not None else None, b if a.node is not None else None)
    return recorder.new(n, a.width, node)


def stacked_product(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None = None) -> Tensor:
    """Batched product of activations with stacked weights (+ b)."""
    w: Tensor = weight
    b: Tensor | None = bias
    n = x.n // weight.shape[-1] * weight.shape[-2]
    if recorder.autocast:
        b = copied_weight(recorder, bias) if bias is not None else None
        w = copied_weight(recorder, weight)
        x = cast(recorder, x, 2)
    node = recorder.open(made, (x, w, b))
    if node is not None:
        recorder.keep(node, x if w.node is not None else None, w if x.node is not None else None)
    return recorder.new(n, w.width, node)


def _embedding_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    edge = node.edges[0]
    assert edge is not None
    if recorder.compiled and g.width == 2 and isinstance(edge[0], AccumulateGrad) and edge[0].buffer is None:
        # Summed in fp32, then cast.
        _wide = recorder.new(edge[2], 4)
    return [recorder.gradient(node, 0, g.width)]


def embedding(recorder: Recorder, weight: Parameter, indices: Tensor) -> Tensor:
    """Rows of a table: keeps the indices."""
    node = recorder.open(_embedding_back, (weight,))
    recorder.keep(node, indices)
    return recorder.new(indices.n * weight.shape[1], weight.width, node)


def layer_norm(
    recorder: Recorder, x: Tensor, weight: Parameter | None, bias: Parameter | None, rows: int, width: int = 4
) -> Tensor:
    """Layer norm: keeps its input, weight, bias and two fp32 numbers a row; under autocast in fp32, or in `width`."""
    w: Tensor | None = weight
    b: Tensor | None = bias
    if recorder.autocast:
        x = cast(recorder, x, width)
        w = cast(recorder, weight, width) if weight is not None else None
        b = cast(recorder, bias, width) if bias is not None else None
    node = recorder.open(made, (x, w, b))
    recorder.keep(node, x, w, b)
    out = recorder.new(x.n, x.width, node)
    average = recorder.new(rows, 4)
    deviation = recorder.new(rows, 4)
    recorder.keep(node, average, deviation)
    return out


def _compiled_norm_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    return [recorder.gradient(node, i, edge[3]) if edge else None for i, edge in enumerate(node.edges)]


def compiled_norm(
    recorder: Recorder, x: Tensor, weight: Parameter | None, bias: Parameter | None, rows: int, out: int
) -> Tensor:
    """Any norm as one generated kernel, `out` bytes an element: keeps its input as it is and one fp32 number a row."""
    node = recorder.open(_compiled_norm_back, (x, weight, bias))
    recorder.keep(node, x)
    recorder.keep(node, recorder.new(rows, 4))
    return recorder.new(x.n, out, node)


def _patched_norm_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The input's gradient overwrites the incoming one."""
    return [view(g.storage, g.n, g.width) if node.wants(0) else None, recorder.gradient(node, 1, g.width)]


def patched_norm(recorder: Recorder, x: Tensor, weight: Parameter | None, rows: int) -> Tensor:
    """A norm without a mean as one kernel that autocast does not reach: keeps its input as it is and one fp32 number a
    row.
    """
    node = recorder.open(_patched_norm_back, (x, weight))
    recorder.keep(node, x, recorder.new(rows, 4))
    return recorder.new(x.n, x.width, node)


def flash_kernel(recorder: Recorder, q: Tensor, k: Tensor, v: Tensor, sums: int) -> Tensor:
    """Flash attention: keeps q, k, v, its output, fp32 log-sum-exps (`sums` of them) and two generator states."""
    node = recorder.open(made, (q, k, v))
    recorder.keep(node, q, k, v)
    out = recorder.product(q.n, q.width, node, always=True)
    out.heads_first = q.heads_first
    log_sums = recorder.product(sums, 4, None, always=True)
    seed, offset = recorder.new(2, 8), recorder.new(1, 8)
    recorder.keep(node, out, log_sums, seed, offset)
    return out


def efficient_kernel(
    recorder: Recorder, q: Tensor, k: Tensor, v: Tensor, n: int, mask: Tensor | None, sums: int
) -> Tensor:
    """Memory-efficient attention: as flash, on repeated heads, with an additive mask that it keeps."""
    node = recorder.open(made, (q, k, v))
    recorder.keep(node, q, k, v, mask)
    out = recorder.product(n, q.width, node, always=True)
    log_sums = recorder.product(sums if node is not None else 0, 4, None, always=True)
    seed, offset = recorder.new(1, 8), recorder.new(1, 8)
    recorder.keep(node, out, log_sums, seed, offset)
    return out
