"""The core of attention: from q, k, v to the merged heads, by a fused kernel or eagerly."""

from __future__ import annotations

from collections.abc import Callable

from ...autograd.basic import add, cast, dropout, filled, less, scaled, scaled_in_place, softmax, unary_of_output
from ...autograd.graph import Node, Tensor, view
from ...autograd.products import efficient_kernel, flash_kernel, matmul
from ...autograd.recorder import Recorder
from ...autograd.rules import fresh, made
from ...autograd.views import copy, gathered, joined, repeated, sliced, spread_heads
from ...record import dataclass, field
from ..context import Context
from ..operator import AttentionKernel
from .rotation import Around


def turned(recorder: Recorder, x: Tensor) -> Tensor:
    """x seen as [b, heads, s, d]: its gradient comes back in that order and is copied."""
    return view(x.storage, x.n, x.width, recorder.open(made, (x,)))


def merged(context: Context, x: Tensor) -> Tensor:
    """[b, heads, s, d] as [b, s, heads d]: a view where it already lies so."""
    return copy(context.recorder, x) if x.heads_first else x


def fused(context: Context, q: Tensor, k: Tensor, v: Tensor, *, groups: int, heads: int, mask: Tensor | None) -> Tensor:
    """The fused kernel: flash in 16 bits without a mask, else memory-efficient on repeated heads."""
    recorder = context.recorder
    if mask is not None and groups > 1:
        # One head is repeated by a stride of nothing: a view.
        grow = spread_heads if groups == heads else repeated
        k, v = grow(recorder, k, groups), grow(recorder, v, groups)
        groups = 1
    return merged(context, _kernel(context, q, k, v, groups, heads, mask))


def fused_alike(
    context: Context, q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None, *, causal: bool = False
) -> Tensor:
    """The fused kernel on as many heads of queries as of keys, which may be more or fewer tokens.

    A bias becomes its mask: written anew where it is causal, and in the type of the queries.
    """
    recorder = context.recorder
    if recorder.autocast:
        q, k, v = cast(recorder, q, 2), cast(recorder, k, 2), cast(recorder, v, 2)
    if bias is None and q.width == 2:
        return merged(context, flash_kernel(recorder, q, k, v, context.sizes.bs * heads))
    mask = bias
    if bias is not None and (causal or bias.width != q.width):
        mask = recorder.new(context.sizes.ss * heads, q.width)
    return merged(context, efficient_kernel(recorder, q, k, v, q.n, mask, context.sizes.padded * heads))


def _kernel(context: Context, q: Tensor, k: Tensor, v: Tensor, groups: int, heads: int, mask: Tensor | None) -> Tensor:
    recorder = context.recorder
    sizes = context.sizes
    if recorder.autocast:
        q, k, v = cast(recorder, q, 2), cast(recorder, k, 2), cast(recorder, v, 2)
    if mask is None and (q.width == 2 or context.recipe.flash_in_fp32) and q.n == v.n * groups:
        return flash_kernel(recorder, q, k, v, sizes.bs * heads)
    if groups > 1:
        k, v = repeated(recorder, k, groups), repeated(recorder, v, groups)
    bias = recorder.new(mask.n, q.width) if mask is not None else None
    return efficient_kernel(recorder, q, k, v, q.n // k.n * v.n, bias, sizes.padded * heads)


@dataclass(slots=True)
class Scores:
    """Attention weights on their way from product to softmax, each step replacing the tensor before."""

    context: Context
    weights: Tensor
    heads: int
    around: Around
    query_width: int
    value_width: int
    sinks: Tensor | None = None
    """One more column of scores, the same for all rows."""
    named: list[Tensor] = field(default_factory=list)
    """What the code still refers to until it returns."""


def eager(
    context: Context,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    groups: int,
    heads: int,
    around: Around,
    sinks: Tensor | None = None,
    out: int = 0,
) -> tuple[Tensor, Tensor]:
    """Scores, softmax and values written out; also returns the last tensor of scores, which the block names.

    `out`: elements of the result where they are not those of the values (of another stream).
    """
    recorder, steps = context.recorder, context.traits.scores
    if "fp32" in steps:
        query, key = cast(recorder, query, 4), cast(recorder, key, 4)
    grow = spread_heads if context.recipe.single and groups == heads > 1 else repeated
    keys, values = grow(recorder, key, groups), grow(recorder, value, groups)
    n = context.sizes.bss * heads
    scores = Scores(context, _product(context, query, keys, groups, n), heads, around, query.width, value.width, sinks)
    if context.traits.compiled or context.recipe.scores_at_once:
        _at_once(scores, steps)
    else:
        for step in steps:
            SCORE_STEPS[step](scores)
    made = out or values.n
    return merged(context, _weighted(context, scores.weights, values, groups, made)), scores.weights


UPCASTS = frozenset(("softmax-fp32", "widen", "fp32"))


def _at_once(x: Scores, steps: tuple[str, ...]) -> None:
    """All steps in one generated kernel: keeps the narrower of what goes into softmax and what comes out, and the mask
    of dropout.
    """
    recorder, scores, drops = x.context.recorder, x.weights, x.context.recipe.drop_attention
    wide = 4 if recorder.autocast or not UPCASTS.isdisjoint(steps) else scores.width
    node = recorder.open(_rescored, (scores,))
    # Autocast adds an fp32 mask, after which the scores are as wide as their softmax.
    into = 4 if recorder.autocast else scores.width
    out = recorder.new(scores.n, x.value_width if not recorder.autocast else 2, node)
    if into < wide:
        recorder.keep(node, scores)
    elif out.width < wide or drops:
        recorder.keep(node, recorder.new(scores.n, wide))
    if drops:
        recorder.keep(node, recorder.new(scores.n, 1))
    x.weights = out


def _rescored(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The gradient of the weights becomes that of the scores in place."""
    return [g]


def softcapped(recorder: Recorder, x: Tensor) -> Tensor:
    """Divided by the cap, through tanh, times the cap; each step replaces the one before."""
    x = scaled(recorder, x)
    x = unary_of_output(recorder, x)
    return scaled(recorder, x)


Step = Callable[[Scores], None]


def _in_turn(*operators: Callable[[Recorder, Tensor], Tensor]) -> Step:
    """A step of these operators, each replacing the tensor before."""

    def step(x: Scores) -> None:
        for operator in operators:
            x.weights = operator(x.context.recorder, x.weights)

    return step


def _mask(x: Scores) -> None:
    if x.around.mask is not None:
        x.weights = add(x.context.recorder, x.weights, x.around.mask)


def _fill(x: Scores) -> None:
    """`masked_fill` under a mask of truth values, which it keeps."""
    assert x.around.mask is not None
    x.weights = filled(x.context.recorder, x.weights, x.around.mask)


def _bias(x: Scores) -> None:
    """Plus an fp32 position bias."""
    if x.around.bias is not None:
        x.weights = add(x.context.recorder, x.weights, x.around.bias)


def _as_query(x: Scores) -> None:
    x.weights = cast(x.context.recorder, x.weights, x.query_width)


def _as_value(x: Scores) -> None:
    x.weights = cast(x.context.recorder, x.weights, x.value_width)


def _drop(x: Scores) -> None:
    x.weights = dropout(x.context.recorder, x.weights, x.context.recipe.drop_attention)


def _with_sinks(x: Scores) -> None:
    """A column of sinks beside the scores, and the largest of each row taken off; both stay named."""
    recorder, sizes = x.context.recorder, x.context.sizes
    if x.sinks is None:
        return
    from ...autograd.routing import top

    rows = x.heads * sizes.bs
    scores = x.weights
    combined = joined(recorder, scores, spread_heads(recorder, x.sinks, sizes.bs))
    largest, _ = top(recorder, combined, rows)
    x.weights = less(recorder, combined, largest)
    x.named = [scores, x.weights]


def _without_sinks(x: Scores) -> None:
    if x.sinks is not None:
        x.weights = sliced(x.context.recorder, x.weights, x.named[0].n)
    _drop(x)
    _as_value(x)
    if x.sinks is not None:
        del x.named[0]


def _exponents(x: Scores) -> None:
    """Their sum in each row, by which the output is scaled beside a sink (Granite SWA): keeps what it reads."""
    recorder, scores = x.context.recorder, x.weights
    node = recorder.open(fresh, (scores,))
    recorder.keep(node, scores)
    x.weights = view(scores.storage, scores.n, scores.width, node)


def _name(x: Scores) -> None:
    """What the scores are now keeps a name of its own."""
    x.named.append(x.weights)


SCORE_STEPS: dict[str, Step] = {
    # Done before the product.
    "fp32": lambda x: None,
    "name": _name,
    "scale": _in_turn(scaled),
    "scale-in-place": _in_turn(scaled_in_place),
    "cap": _in_turn(scaled, unary_of_output, scaled),
    "mask": _mask,
    # `where` under a mask that is a buffer.
    "choose": _in_turn(scaled),
    "fill": _fill,
    "bias": _bias,
    "widen": _in_turn(lambda recorder, x: cast(recorder, x, 4)),
    "softmax": _in_turn(softmax),
    "softmax-fp32": _in_turn(lambda recorder, x: softmax(recorder, x, 4)),
    "as-query": _as_query,
    "as-value": _as_value,
    "drop": _drop,
    "with-sinks": _with_sinks,
    "exponents": _exponents,
    # In the type of the scores, whatever the region asks.
    "softmax-raw": _in_turn(lambda recorder, x: softmax(recorder, x, x.width)),
    "without-sinks": _without_sinks,
}


def _product(context: Context, query: Tensor, keys: Tensor, groups: int, n: int) -> Tensor:
    recorder = context.recorder
    k, q = keys, query
    if recorder.autocast:
        k, q = cast(recorder, keys, 2), cast(recorder, query, 2)
    as_they_lie = context.recipe.single
    if not (q.heads_first or as_they_lie):
        q = copy(recorder, q)
    if groups == 1 and not as_they_lie:
        k = copy(recorder, k)
    return matmul(recorder, q, k, n)


def _weighted(context: Context, weights: Tensor, values: Tensor, groups: int, n: int) -> Tensor:
    recorder = context.recorder
    copied = groups == 1 and not context.recipe.single
    out = matmul(recorder, weights, copy(recorder, values) if copied else values, n)
    out.heads_first = True
    return out


def softmax_flop(pairs: float, heads: int, qk_width: int, v_width: int) -> float:
    """FLOPs of scores and of the weighted sum of values, `2 pairs heads (qk + v)`."""
    return 2 * pairs * heads * (qk_width + v_width)


def softmax_backward_flop(pairs: float, heads: int, qk_width: int, v_width: int, kernel: AttentionKernel) -> float:
    """FLOPs of its backward pass: four products; a fused kernel forms the scores again, a fifth."""
    products = (3 if kernel == "flash" else 2) * qk_width + 2 * v_width
    return 2 * pairs * heads * products


def picked_apart(recorder: Recorder, joint: Tensor, q: int, k: int, one_head: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Falcon: keys and values picked by index; one head as it is, more written out for every query head."""
    query, key, value = sliced(recorder, joint, q), gathered(recorder, joint, k), gathered(recorder, joint, k)
    if one_head:
        return query, key, value
    return copy(recorder, query), repeated(recorder, key, q // k), repeated(recorder, value, q // k)
