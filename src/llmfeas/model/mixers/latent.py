"""Multi-head latent attention: keys and values are rebuilt from one small cached vector a token."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Self

from ...autograd.basic import add, mul
from ...autograd.graph import Tensor, view
from ...autograd.recorder import Recorder
from ...autograd.views import joined, overwritten, sliced, split, spread_heads
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass, replace
from ..context import Context
from ..norm import NormProgram, norm_program
from ..operator import AttentionKernel, Operator, SpanShape
from ..weight import NormKind, Weight, column_linear, row_linear, vector
from .rotation import Around, Rotation, turned_as_complex, turned_by_kernel
from .scores import eager, fused, softmax_backward_flop, softmax_flop, turned


@dataclass(frozen=True, slots=True)
class LatentAttention(Operator):
    """DeepSeek-V2's attention. The cache holds the latent and the shared rotated key, whole on every rank."""

    is_common: ClassVar[bool] = False
    divided: ClassVar[tuple[str, ...]] = ("heads",)
    hidden: int
    heads: int
    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    norm: NormKind = "rms"
    chosen: int | None = None
    window: int | None = None

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Down-projections are whole on every tensor-parallel rank, up-projections divide by heads."""
        latent = (
            *column_linear(
                "kv_a", self.hidden, self.kv_rank + self.rope, bias=self.qkv_bias, adapter="attention", split="none"
            ),
            vector("kv_norm", self.kv_rank),
            *column_linear(
                "kv_b", self.kv_rank, self.heads * (self.nope + self.v_dim), adapter="attention", inner=True
            ),
        )
        output = row_linear("o", self.heads * self.v_dim, self.hidden, bias=self.out_bias, adapter="attention")
        return self._queries() + latent + output

    def _queries(self) -> tuple[Weight, ...]:
        width = self.heads * (self.nope + self.rope)
        if self.q_rank is None:
            return column_linear("q", self.hidden, width, adapter="attention")
        return (
            *column_linear("q_a", self.hidden, self.q_rank, bias=self.qkv_bias, adapter="attention", split="none"),
            vector("q_norm", self.q_rank),
            *column_linear("q_b", self.q_rank, width, adapter="attention", inner=True),
        )

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence with keys and values written out, as training and prefill do it."""
        return softmax_flop(float(tokens) * tokens, self.heads, self.nope + self.rope, self.v_dim)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of one sequence's backward pass through the scores."""
        return softmax_backward_flop(float(tokens) * tokens, self.heads, self.nope + self.rope, self.v_dim, kernel)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token in the absorbed form: scores and sums in the latent space."""
        seen = cached + 1 if self.window is None else min(cached + 1, self.window)
        return softmax_flop(seen, self.heads, self.kv_rank + self.rope, self.kv_rank)

    def cached_values(self, tokens: int) -> int:
        """The latent and the rotated key; a windowed layer keeps `window - 1` tokens."""
        held = tokens if self.window is None else min(tokens, self.window - 1)
        return (self.kv_rank + self.rope) * held

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Queries before and behind their rotation, keys and values of all tokens seen, written out, and the result."""
        t, wide = tokens * sequences, self.heads * (self.nope + self.rope)
        expanded = self.heads * (self.nope + self.v_dim)
        return (2 * t * wide + sequences * seen * (expanded + wide)) * width + t * self.heads * self.v_dim * width

    @property
    def span(self) -> SpanShape:
        """All heads, written out, over the latent."""
        return self.heads * (self.nope + self.rope + self.v_dim) / 2, self.kv_rank + self.rope, self.window

    @property
    def stream_width(self) -> float:
        """3 of all heads."""
        return 3 * self.heads * (self.nope + self.rope + self.v_dim)

    @property
    def rotary_width(self) -> int:
        """The part of a head that rotates."""
        return self.rope

    def without_window(self) -> Self:
        """The same without its window."""
        return self if self.window is None else replace(self, window=None)

    def program(self, context: Context) -> LatentProgram:
        """Attention with keys and values written out from the latent."""
        return LatentProgram(context, self)


class LatentProgram:
    """Queries, keys and values through low-rank products, one rotated key for all heads."""

    __slots__ = ("context", "kv_down", "kv_norm", "kv_up", "o", "operator", "q", "q_down", "q_norm")

    def __init__(self, context: Context, operator: LatentAttention) -> None:
        made = context.made(operator.weights, streams=True)
        parts, norms, kind = made.projections, made.parameters, norm_program(context, operator.norm)
        self.context = context
        self.operator = operator
        self.q_down = parts.get("q_a")
        self.q = parts["q" if self.q_down is None else "q_b"]
        self.kv_down, self.kv_up, self.o = parts["kv_a"], parts["kv_b"], parts["o"]
        self.kv_norm = NormProgram(operator.kv_rank, norms["kv_norm"], None, kind)
        self.q_norm = NormProgram(operator.q_rank or 0, norms["q_norm"], None, kind) if self.q_down else None

    def _queries(self, x: Tensor) -> Tensor:
        if self.q_down is None or self.q_norm is None:
            return self.context.apply(self.q, x)
        return self.context.apply(self.q, self.q_norm(self.context.recorder, self.context.apply(self.q_down, x)))

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """What it attends to, and the scores that eager code returns."""
        context, recorder = self.context, self.context.recorder
        if context.recipe.checkpointing == "latents":
            return context.apply(self.o, self._from_latents(x, around)), None
        operator, rows = self.operator, context.sizes.bs
        q = turned(recorder, self._queries(x))
        q_pass, q_turn = split(
            recorder, q, rows * operator.heads * operator.nope, rows * operator.heads * operator.rope
        )
        compressed = context.apply(self.kv_down, x)
        latent, k_turn = split(recorder, compressed, rows * operator.kv_rank, rows * operator.rope)
        latent = self.kv_norm(recorder, latent)
        turn = LATENT_ROTATIONS.get(context.traits.rotation, _interleaved)
        if around.rotation is not None:
            q_turn, k_turn = turn(recorder, q_turn, around.rotation), turn(recorder, k_turn, around.rotation)
        latent, k_turn = context.cached(latent), context.cached(k_turn)
        query = joined(recorder, q_pass, q_turn)
        query.heads_first = True
        key, value = self._expanded(latent, k_turn)
        weights: Tensor | None = None
        if context.recipe.eager:
            out, weights = eager(context, query, key, value, groups=1, heads=operator.heads, around=around)
        else:
            out = fused(context, query, key, value, groups=1, heads=operator.heads, mask=around.mask)
        return context.apply(self.o, out), weights

    def _from_latents(self, x: Tensor, around: Around) -> Tensor:
        """What it attends to, of which the latents are kept alone: queries, keys and values are made again in backward
        (Megatron Core, recompute_modules: mla_up_proj).
        """
        context, recorder, operator, rows = self.context, self.context.recorder, self.operator, self.context.sizes.bs
        low = x
        if self.q_down is not None and self.q_norm is not None:
            low = self.q_norm(recorder, context.apply(self.q_down, x))
        compressed = context.apply(self.kv_down, x)
        latent, k_turn = split(recorder, compressed, rows * operator.kv_rank, rows * operator.rope)
        latent = self.kv_norm(recorder, latent)
        return recorder.checkpoint(partial(self._attended, low, latent, k_turn, around))

    def _attended(self, low: Tensor, latent: Tensor, k_turn: Tensor, around: Around) -> Tensor:
        context, recorder, operator = self.context, self.context.recorder, self.operator
        rows = context.sizes.bs * operator.heads
        q = turned(recorder, context.apply(self.q, low))
        q_pass, q_turn = split(recorder, q, rows * operator.nope, rows * operator.rope)
        turn = LATENT_ROTATIONS.get(context.traits.rotation, _interleaved)
        if around.rotation is not None:
            q_turn, k_turn = turn(recorder, q_turn, around.rotation), turn(recorder, k_turn, around.rotation)
        query = joined(recorder, q_pass, q_turn)
        query.heads_first = True
        key, value = self._expanded(latent, k_turn)
        return fused(context, query, key, value, groups=1, heads=operator.heads, mask=around.mask)

    def _expanded(self, latent: Tensor, k_turn: Tensor) -> tuple[Tensor, Tensor]:
        """Keys written into a fresh tensor, head by head; values as a view of the product."""
        recorder = self.context.recorder
        operator, rows = self.operator, self.context.sizes.bs * self.operator.heads
        both = turned(recorder, self.context.apply(self.kv_up, latent))
        k_pass, value = split(recorder, both, rows * operator.nope, rows * operator.v_dim)
        shared = spread_heads(recorder, k_turn, operator.heads)
        key = recorder.new(rows * (operator.nope + operator.rope), both.width)
        key = overwritten(recorder, key, k_pass)
        return overwritten(recorder, key, shared), value


def _interleaved(recorder: Recorder, x: Tensor, rotation: Rotation) -> Tensor:
    """Even and odd halves turned against each other, then joined."""
    cos, sin = (view(table.storage, table.n // 2, table.width) for table in rotation)
    half = x.n // 2
    even, odd = sliced(recorder, x, half), sliced(recorder, x, half)
    first = add(recorder, mul(recorder, even, cos), mul(recorder, odd, sin))
    second = add(recorder, mul(recorder, odd, cos), mul(recorder, even, sin))
    return joined(recorder, first, second)


LATENT_ROTATIONS = {
    "interleaved": _interleaved,
    "complex": turned_as_complex,
    "kernel": turned_by_kernel,
    "compiled": turned_by_kernel,
}


def latent_attention(architecture: Architecture, kind: LayerKind) -> LatentAttention:
    """The latent attention of a layer of an architecture."""
    window = architecture.window if kind.windowed else None
    mla = (architecture.windowed_mla if window else None) or architecture.mla
    assert mla is not None
    return LatentAttention(
        architecture.hidden,
        mla.heads or architecture.heads,
        mla.q_lora_rank,
        mla.kv_lora_rank,
        mla.nope_head_dim,
        mla.rope_head_dim,
        mla.v_head_dim,
        architecture.qkv_bias,
        architecture.out_bias,
        architecture.norm,
        architecture.indexer.top_k if architecture.indexer is not None and kind.indexes else None,
        window.size if window else None,
    )
