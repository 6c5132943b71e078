"""Matrix products, embeddings, layer norm and the attention kernels."""

from __future__ import annotations

from ..graph import Leaf, Node, Parameter, Tensor, view
from ..storage import LOGITS, WORKSPACE
from ..tape import Tape
from .basic import cast, copied_weight


def _linear_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    # Gathered inputs and gradients, an unpacked weight.
    unpacked, *gathered = node.data
    temporaries = [tape.new(n, g.width) for n in gathered]
    if unpacked:
        temporaries.append(tape.new(unpacked, g.width, component=WORKSPACE))
    bias = node.result(tape, 2, g.width)
    x = node.result(tape, 0, g.width, plain=False)
    weight = node.result(tape, 1, g.width, plain=False)
    del temporaries
    return [x, weight, bias]


def linear(
    tape: Tape,
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
    if tape.autocast:
        # Arguments are cast last to first.
        b = copied_weight(tape, bias) if bias is not None else None
        w = copied_weight(tape, weight)
        x = cast(tape, x, 2)
    unpacked = weight.n if weight.packed else 0
    node = tape.open(_linear_back, (x, w, b), (unpacked, *data))
    if node is not None:
        tape.keep(node, input_kept(tape, x) if w.node is not None else None, w if x.node is not None else None)
    # A weight in one byte is multiplied as it is; what comes out is as wide as what went in.
    width = x.width if w.width == 1 else w.width
    temporaries = [tape.new(size, width) for size in passing]
    if unpacked:
        temporaries.append(tape.new(unpacked, width, component=WORKSPACE))
    made = tape.product(n, width, node, LOGITS if logits else -1)
    del temporaries
    return made


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


def input_kept(tape: Tape, x: Tensor) -> Tensor:
    """What a trained product keeps of its input: itself, or a copy in one byte."""
    if tape.bytes_kept != 1 or x.width != 2:
        return x
    if x.narrow is None:
        x.narrow = tape.new(x.n, 1)
    return x.narrow


def _low_rank_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [node.result(tape, i, g.width) for i in range(2)]


def low_rank_sum(tape: Tape, weight: Parameter, high: Tensor, low: Tensor) -> Parameter:
    """A frozen stacked weight plus the products of low-rank factors: keeps the factors."""
    node = tape.open(_low_rank_back, (high, low))
    tape.keep(node, high, low)
    total = Parameter(tape.new(weight.n, weight.width).storage, weight.shape, weight.width, None)
    total.node = node
    return total


def _matmul_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [node.result(tape, i, g.width) for i in range(2)]


def matmul(tape: Tape, a: Tensor, b: Tensor, n: int) -> Tensor:
    """Batched product of two activations: keeps both."""
    if tape.autocast:
        b = cast(tape, b, 2)
        a = cast(tape, a, 2)
    node = tape.open(_matmul_back, (a, b))
    if node is not None:
        tape.keep(node, a if b.node is not None else None, b if a.node is not None else None)
    return tape.new(n, a.width, node)


def stacked_product(tape: Tape, x: Tensor, weight: Parameter) -> Tensor:
    """Batched product of activations with stacked weights."""
    w: Tensor = weight
    n = x.n // weight.shape[-1] * weight.shape[-2]
    if tape.autocast:
        w = copied_weight(tape, weight)
        x = cast(tape, x, 2)
    node = tape.open(_matmul_back, (x, w))
    if node is not None:
        tape.keep(node, x if w.node is not None else None, w if x.node is not None else None)
    return tape.new(n, w.width, node)


def _embedding_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g, edge = grads[0], node.edges[0]
    assert g is not None and edge is not None
    if tape.compiled and g.width == 2 and isinstance(edge[0], Leaf) and edge[0].buffer is None:
        # Summed in fp32, then cast.
        wide = tape.new(edge[2], 4)
        result = node.result(tape, 0, g.width)
        del wide
        return [result]
    return [node.result(tape, 0, g.width)]


def embedding(tape: Tape, weight: Parameter, indices: Tensor) -> Tensor:
    """Rows of a table: keeps the indices."""
    node = tape.open(_embedding_back, (weight,))
    tape.keep(node, indices)
    return tape.new(indices.n * weight.shape[1], weight.width, node)


def _layer_norm_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [node.result(tape, i, g.width) for i in range(3)]


def layer_norm(tape: Tape, x: Tensor, weight: Parameter | None, bias: Parameter | None, rows: int) -> Tensor:
    """Layer norm: keeps its input, weight, bias and two fp32 numbers a row; in fp32 under autocast."""
    w: Tensor | None = weight
    b: Tensor | None = bias
    if tape.autocast:
        x = cast(tape, x, 4)
        w = cast(tape, weight, 4) if weight is not None else None
        b = cast(tape, bias, 4) if bias is not None else None
    node = tape.open(_layer_norm_back, (x, w, b))
    tape.keep(node, x, w, b)
    out = tape.new(x.n, x.width, node)
    average = tape.new(rows, 4)
    deviation = tape.new(rows, 4)
    tape.keep(node, average, deviation)
    return out


def _compiled_norm_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    return [node.result(tape, i, edge[3]) if edge else None for i, edge in enumerate(node.edges)]


def compiled_norm(
    tape: Tape, x: Tensor, weight: Parameter | None, bias: Parameter | None, rows: int, out: int
) -> Tensor:
    """Any norm as one generated kernel, `out` bytes an element: keeps its input as it is and one fp32 number a row."""
    node = tape.open(_compiled_norm_back, (x, weight, bias))
    tape.keep(node, x)
    tape.keep(node, tape.new(rows, 4))
    return tape.new(x.n, out, node)


def _patched_norm_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """The input's gradient overwrites the incoming one."""
    g = grads[0]
    assert g is not None
    return [view(g.storage, g.n, g.width) if node.wants(0) else None, node.result(tape, 1, g.width)]


def patched_norm(tape: Tape, x: Tensor, weight: Parameter | None, rows: int) -> Tensor:
    """A norm without a mean as one kernel that autocast does not reach: keeps its input as it is and one fp32 number a
    row.
    """
    node = tape.open(_patched_norm_back, (x, weight))
    tape.keep(node, x, tape.new(rows, 4))
    return tape.new(x.n, x.width, node)


def _kernel_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    return [node.result(tape, i, g.width) for i in range(3)]


def flash_kernel(tape: Tape, q: Tensor, k: Tensor, v: Tensor, sums: int) -> Tensor:
    """Flash attention: keeps q, k, v, its output, fp32 log-sum-exps (`sums` of them) and two generator states."""
    node = tape.open(_kernel_back, (q, k, v))
    tape.keep(node, q, k, v)
    out = tape.product(q.n, q.width, node, always=True)
    out.heads_first = q.heads_first
    log_sums = tape.product(sums, 4, None, always=True)
    seed, offset = tape.new(2, 8), tape.new(1, 8)
    tape.keep(node, out, log_sums, seed, offset)
    return out


def efficient_kernel(tape: Tape, q: Tensor, k: Tensor, v: Tensor, n: int, mask: Tensor | None, sums: int) -> Tensor:
    """Memory-efficient attention: as flash, on repeated heads, with an additive mask that it keeps."""
    node = tape.open(_kernel_back, (q, k, v))
    tape.keep(node, q, k, v, mask)
    out = tape.product(n, q.width, node, always=True)
    log_sums = tape.product(sums if node is not None else 0, 4, None, always=True)
    seed, offset = tape.new(1, 8), tape.new(1, 8)
    tape.keep(node, out, log_sums, seed, offset)
    return out
