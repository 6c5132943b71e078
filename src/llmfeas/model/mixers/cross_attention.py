"""Attention of a decoder to what its encoder made (T5, BART, Whisper), and what the encoder holds for it.

The encoder makes keys and values of its last stream for every layer of the decoder, once a text: that is its work, and
its weights. They stay for the whole answer.
"""

from __future__ import annotations

from typing import ClassVar

from ...autograd.basic import scaled, unary_of_input
from ...autograd.graph import Tensor
from ...autograd.products import linear
from ...autograd.rules import made
from ...autograd.storage import Sizes
from ...autograd.views import copy, repeated
from ...catalog.architecture import Architecture
from ...catalog.parts import SourceEncoder
from ...record import dataclass, replace
from ..context import Context
from ..operator import AttentionKernel, Operator, Program
from ..weight import Weight, column_linear, row_linear, vector
from .rotation import Around
from .scores import eager, fused_alike, softmax_backward_flop, softmax_flop, turned


@dataclass(frozen=True, slots=True)
class SourceKeys(Operator):
    """Keys and values of the encoder's stream, for one or all layers of the decoder."""

    title: ClassVar[str] = "attention to an encoder"
    is_common: ClassVar[bool] = False
    hidden: int
    width: int
    layers: int = 1
    bias: bool = False
    key_bias: bool = True
    merged: bool = False
    """The decoder holds them: they are its own."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Two projections a layer, with their biases."""
        if self.merged:
            shape = self.width, self.hidden
            return tuple(Weight(name, shape, 0, float(self.layers)) for name in ("source_k", "source_v"))
        biases = {"source_k": self.bias and self.key_bias, "source_v": self.bias}
        return tuple(
            replace(weight, copies=self.layers, uses=float(self.layers if weight.is_matrix else 0))
            for name, bias in biases.items()
            for weight in column_linear(name, self.hidden, self.width, bias=bias, adapter="attention")
        )


@dataclass(frozen=True, slots=True)
class Convolutions(Operator):
    """Two convolutions over three frames each that make positions of sound; the second takes every other frame."""

    title: ClassVar[str] = "an encoder of sound"
    bands: int
    hidden: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Each as one matrix, with its bias; a position takes two steps of the first."""
        return (
            Weight("convolution_1", (self.hidden, 3 * self.bands), uses=2.0, split="none"),
            vector("convolution_1.bias", self.hidden),
            Weight("convolution_2", (self.hidden, 3 * self.hidden), split="none"),
            vector("convolution_2.bias", self.hidden),
        )

    def program(self, context: Context) -> ConvolutionsProgram:
        """What makes the stream that the first layer reads."""
        return ConvolutionsProgram(context, self)


@dataclass(frozen=True, slots=True)
class CrossAttention(Operator):
    """Queries of the decoder's stream on keys and values of `source` positions, and the output projection."""

    title: ClassVar[str] = "attention to an encoder"
    is_common: ClassVar[bool] = False
    divided: ClassVar[tuple[str, ...]] = ("heads", "kv_heads")
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    read: int
    """Width of the encoder's stream."""
    source: int
    bias: bool = False
    key_bias: bool = True
    out_bias: bool = False

    @property
    def width(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> SourceKeys:
        """What makes its keys and values, which counts as the encoder's."""
        return SourceKeys(self.read, self.kv_heads * self.head_dim, 1, self.bias, self.key_bias)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Queries and output."""
        return (
            *column_linear("q", self.hidden, self.width, bias=self.bias, adapter="attention"),
            *row_linear("o", self.width, self.hidden, bias=self.out_bias, adapter="attention"),
        )

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence: every token with every position."""
        return softmax_flop(float(tokens) * self.source, self.heads, self.head_dim, self.head_dim)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of its backward pass."""
        return softmax_backward_flop(float(tokens) * self.source, self.heads, self.head_dim, self.head_dim, kernel)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token, however many went before."""
        return softmax_flop(float(self.source), self.heads, self.head_dim, self.head_dim)

    @property
    def state_flop(self) -> float:
        """The same."""
        return self.decode_flop(0.0)

    @property
    def source_values(self) -> int:
        """Keys and values of all positions."""
        return 2 * self.kv_heads * self.head_dim * self.source

    @property
    def cache_parts(self) -> int:
        """Heads."""
        return self.kv_heads

    @property
    def stream_width(self) -> float:
        """2 of all queries."""
        return 2.0 * self.width

    def program(self, context: Context) -> Program:
        """Attention of every token to every position of the source."""
        return CrossAttentionProgram(context, self)


@dataclass(frozen=True, slots=True)
class MergedAttention(CrossAttention):
    """What the decoder's own queries see of the encoder; nothing of it has weights."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """None."""
        return ()

    @property
    def stream_width(self) -> float:
        """None: its queries are the attention's."""
        return 0.0

    def program(self, context: Context) -> Program:
        """Scores and values of the source as if they stood apart."""
        return MergedProgram(context, self)


class MergedProgram:
    """Keys and values of the source, kept with its stream; queries and what is attended to as tensors of their own."""

    __slots__ = ("context", "operator")

    def __init__(self, context: Context, operator: MergedAttention) -> None:
        tokens = operator.source
        self.context = context.sized(crossing_sizes(context.sizes, tokens)) if tokens else context
        self.operator = operator

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """What it attends to, and the scores that eager code returns."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        source, groups = around.source, operator.heads // operator.kv_heads
        assert source is not None
        rows = source.stream.n // operator.read
        width = 2 if recorder.autocast else x.width
        query = recorder.new(context.sizes.bs * operator.width, width, recorder.open(made, (x,)))
        made_of_source = []
        for _ in range(2):
            node = recorder.open(made, (source.stream,))
            recorder.keep(node, source.stream)
            part = recorder.new(rows * operator.kv_heads * operator.head_dim, width, node)
            made_of_source.append(context.cached(part))
        key, value = made_of_source
        weights: Tensor | None = None
        if context.recipe.eager:
            out, weights = eager(
                context, query, key, value, groups=groups, heads=operator.heads, around=source.around, out=query.n
            )
        else:
            key, value = (repeated(recorder, each, groups) for each in (key, value))
            out = fused_alike(context, query, key, value, operator.heads, source.around.bias)
        return recorder.new(x.n, x.width, recorder.open(made, (out,))), weights


class CrossAttentionProgram:
    """Projections of two streams, the core, the output projection."""

    __slots__ = ("context", "k", "o", "operator", "q", "v")

    def __init__(self, context: Context, operator: CrossAttention) -> None:
        found = context.made((*operator.weights, *operator.keys.weights)).projections
        tokens = operator.source
        self.context = context.sized(crossing_sizes(context.sizes, tokens)) if tokens else context
        self.operator = operator
        self.q, self.o, self.k, self.v = found["q"], found["o"], found["source_k"], found["source_v"]

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """What it attends to, and the scores that eager code returns."""
        context, recorder, heads = self.context, self.context.recorder, self.operator.heads
        groups = heads // self.operator.kv_heads
        source = around.source
        assert source is not None
        query = context.apply(self.q, x)
        if context.traits.scales_query:
            query = scaled(recorder, query)
        if context.traits.copies_query and not context.recipe.eager:
            query = copy(recorder, query)
            query.heads_first = True
        # A product reads a part as a copy, which a change of type makes anyway.
        copies = source.cut and not recorder.autocast
        key, value = (
            context.apply(each, copy(recorder, source.stream) if copies else source.stream) for each in (self.k, self.v)
        )
        if context.recipe.eager:
            query, key, value = turned(recorder, query), turned(recorder, key), turned(recorder, value)
        key, value = context.cached(key), context.cached(value)
        weights: Tensor | None = None
        if context.recipe.eager:
            out, weights = eager(
                context, query, key, value, groups=groups, heads=heads, around=source.around, out=query.n
            )
        else:
            key, value = (repeated(recorder, each, groups) for each in (key, value))
            out = fused_alike(context, query, key, value, heads, source.around.bias)
        return context.apply(self.o, out), weights


class ConvolutionsProgram:
    """Sound as a stream of positions."""

    __slots__ = ("context", "first", "hidden", "inputs", "second")

    def __init__(self, context: Context, operator: Convolutions) -> None:
        found = context.made(operator.weights).parameters
        self.context, self.inputs, self.hidden = context, operator.bands, operator.hidden
        self.first = found["convolution_1"], found["convolution_1.bias"]
        self.second = found["convolution_2"], found["convolution_2.bias"]

    def __call__(self) -> Tensor:
        """The stream: two products over frames beside each other, each with its activation."""
        recorder, bs = self.context.recorder, self.context.sizes.bs
        x = recorder.new(2 * bs * self.inputs, self.context.recipe.weight_bytes)
        x = unary_of_input(recorder, linear(recorder, x, *self.first, out=2 * bs * self.hidden))
        return unary_of_input(recorder, linear(recorder, x, *self.second, out=bs * self.hidden))


def source_sizes(sizes: Sizes, tokens: int) -> Sizes:
    """The sizes of so many positions of a source in each sequence; 0: as many as the sequence has."""
    if not tokens:
        return sizes
    b, squared = sizes.b, tokens * tokens
    return Sizes(b, tokens, b * tokens, squared, b * squared, b * -(-tokens // 32) * 32, sizes.single)


def crossing_sizes(sizes: Sizes, tokens: int) -> Sizes:
    """The sizes of a sequence whose tokens look at so many positions of a source."""
    return replace(sizes, ss=sizes.s * tokens, bss=sizes.bs * tokens)


def cross_attention(architecture: Architecture, source: SourceEncoder) -> CrossAttention:
    """The attention of a decoder's layer to its encoder."""
    a = architecture
    return (MergedAttention if source.merged else CrossAttention)(
        a.hidden,
        a.heads,
        a.kv_heads,
        a.head_dim,
        source.hidden or a.hidden,
        source.tokens,
        bias=a.qkv_bias,
        key_bias=a.key_bias,
        out_bias=a.out_bias,
    )


def made_for_decoder(architecture: Architecture, source: SourceEncoder) -> tuple[Operator, ...]:
    """What an encoder holds beside its layers: convolutions before them, keys and values behind them.

    `source`: of the encoder, which says what its decoder is.
    """
    a = architecture
    width = source.kv_heads * source.head_dim
    keys = SourceKeys(a.hidden, width, source.layers, a.qkv_bias, a.key_bias, source.merged)
    return (keys, Convolutions(source.bands, a.hidden)) if source.bands else (keys,)
