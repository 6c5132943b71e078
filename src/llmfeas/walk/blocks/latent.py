"""Latent attention (DeepSeek): queries, keys, values through low-rank products, one rotated key for all heads."""

from __future__ import annotations

from ..graph import Tensor, view
from ..operators.basic import add, mul
from ..operators.views import expanded, joined, overwritten, sliced, split
from ..tape import Tape
from .attend import eager, fused, turned
from .context import Context, Linear
from .norms import Norm
from .rotation import Around, Rotation, turned_as_complex, turned_by_kernel


class LatentAttention:
    """Attention over a cached latent vector."""

    __slots__ = ("context", "heads", "kv_down", "kv_norm", "kv_up", "o", "q", "q_down", "q_norm")

    def __init__(self, context: Context, index: int) -> None:
        a = context.setup.architecture
        mla = a.mla
        assert mla is not None
        self.context = context
        self.heads = a.heads
        width = a.heads * (mla.nope_head_dim + mla.rope_head_dim)
        self.q_down: Linear | None = None
        self.q_norm: Norm | None = None
        if mla.q_lora_rank is not None:
            self.q_down = context.linear(a.hidden, mla.q_lora_rank, bias=a.qkv_bias, reads=True)
            self.q_norm = Norm(context, mla.q_lora_rank)
        self.q = context.linear(mla.q_lora_rank or a.hidden, width, reads=mla.q_lora_rank is None)
        self.kv_down = context.linear(a.hidden, mla.kv_lora_rank + mla.rope_head_dim, bias=a.qkv_bias, reads=True)
        self.kv_norm = Norm(context, mla.kv_lora_rank)
        self.kv_up = context.linear(mla.kv_lora_rank, a.heads * (mla.nope_head_dim + mla.v_head_dim))
        self.o = context.linear(a.heads * mla.v_head_dim, a.hidden, bias=a.out_bias, writes=True)

    def _queries(self, x: Tensor) -> Tensor:
        if self.q_down is None or self.q_norm is None:
            return self.context.apply(self.q, x)
        return self.context.apply(self.q, self.q_norm(self.context.tape, self.context.apply(self.q_down, x)))

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """Attend; also gives the scores that eager code returns."""
        context, tape = self.context, self.context.tape
        mla = context.setup.architecture.mla
        assert mla is not None
        rows = context.sizes.bs
        q = turned(tape, self._queries(x))
        q_pass, q_turn = split(tape, q, rows * self.heads * mla.nope_head_dim, rows * self.heads * mla.rope_head_dim)
        compressed = context.apply(self.kv_down, x)
        latent, k_turn = split(tape, compressed, rows * mla.kv_lora_rank, rows * mla.rope_head_dim)
        latent = self.kv_norm(tape, latent)
        turn = LATENT_ROTATIONS.get(context.setup.implementation.rotation, _interleaved)
        if around.rotation is not None:
            q_turn, k_turn = turn(tape, q_turn, around.rotation), turn(tape, k_turn, around.rotation)
        latent, k_turn = context.cached(latent), context.cached(k_turn)
        query = joined(tape, q_pass, q_turn)
        query.heads_first = True
        key, value = self._expanded(latent, k_turn)
        weights: Tensor | None = None
        if context.setup.recipe.eager:
            out, weights = eager(context, query, key, value, groups=1, heads=self.heads, around=around)
        else:
            out = fused(context, query, key, value, groups=1, heads=self.heads, mask=around.mask)
        return context.apply(self.o, out), weights

    def _expanded(self, latent: Tensor, k_turn: Tensor) -> tuple[Tensor, Tensor]:
        """Keys written into a fresh tensor, head by head; values as a view of the product."""
        tape = self.context.tape
        mla = self.context.setup.architecture.mla
        assert mla is not None
        rows = self.context.sizes.bs * self.heads
        both = turned(tape, self.context.apply(self.kv_up, latent))
        k_pass, value = split(tape, both, rows * mla.nope_head_dim, rows * mla.v_head_dim)
        shared = expanded(tape, k_turn, rows * mla.rope_head_dim)
        key = tape.new(rows * (mla.nope_head_dim + mla.rope_head_dim), both.width)
        key = overwritten(tape, key, k_pass)
        return overwritten(tape, key, shared), value


def _interleaved(tape: Tape, x: Tensor, rotation: Rotation) -> Tensor:
    """Even and odd halves turned against each other, then joined."""
    cos, sin = (view(table.storage, table.n // 2, table.width) for table in rotation)
    half = x.n // 2
    even, odd = sliced(tape, x, half), sliced(tape, x, half)
    first = add(tape, mul(tape, even, cos), mul(tape, odd, sin))
    second = add(tape, mul(tape, odd, cos), mul(tape, even, sin))
    return joined(tape, first, second)


LATENT_ROTATIONS = {
    "interleaved": _interleaved,
    "complex": turned_as_complex,
    "kernel": turned_by_kernel,
    "compiled": turned_by_kernel,
}
