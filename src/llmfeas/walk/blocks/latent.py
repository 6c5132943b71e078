"""Latent attention (DeepSeek): queries, keys, values through low-rank products, one rotated key for all heads."""

from __future__ import annotations

from ...autograd.basic import add, mul
from ...autograd.graph import Tensor, view
from ...autograd.recorder import Recorder
from ...autograd.views import expanded, joined, overwritten, sliced, split
from ...model.context import Context, Linear
from ...model.rotation import Around, Rotation, turned_as_complex, turned_by_kernel
from ...model.scores import eager, fused, turned
from .norms import Norm


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
            self.q_down = context.linear(a.hidden, mla.q_lora_rank, bias=a.qkv_bias, stream="reads")
            self.q_norm = Norm(context, mla.q_lora_rank)
        self.q = context.linear(
            mla.q_lora_rank or a.hidden, width, stream="reads" if mla.q_lora_rank is None else "apart"
        )
        self.kv_down = context.linear(a.hidden, mla.kv_lora_rank + mla.rope_head_dim, bias=a.qkv_bias, stream="reads")
        self.kv_norm = Norm(context, mla.kv_lora_rank)
        self.kv_up = context.linear(mla.kv_lora_rank, a.heads * (mla.nope_head_dim + mla.v_head_dim))
        self.o = context.linear(a.heads * mla.v_head_dim, a.hidden, bias=a.out_bias, stream="writes")

    def _queries(self, x: Tensor) -> Tensor:
        if self.q_down is None or self.q_norm is None:
            return self.context.apply(self.q, x)
        return self.context.apply(self.q, self.q_norm(self.context.recorder, self.context.apply(self.q_down, x)))

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """Attend; also gives the scores that eager code returns."""
        context, recorder = self.context, self.context.recorder
        mla = context.setup.architecture.mla
        assert mla is not None
        rows = context.sizes.bs
        q = turned(recorder, self._queries(x))
        q_pass, q_turn = split(
            recorder, q, rows * self.heads * mla.nope_head_dim, rows * self.heads * mla.rope_head_dim
        )
        compressed = context.apply(self.kv_down, x)
        latent, k_turn = split(recorder, compressed, rows * mla.kv_lora_rank, rows * mla.rope_head_dim)
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
            out, weights = eager(context, query, key, value, groups=1, heads=self.heads, around=around)
        else:
            out = fused(context, query, key, value, groups=1, heads=self.heads, mask=around.mask)
        return context.apply(self.o, out), weights

    def _expanded(self, latent: Tensor, k_turn: Tensor) -> tuple[Tensor, Tensor]:
        """Keys written into a fresh tensor, head by head; values as a view of the product."""
        recorder = self.context.recorder
        mla = self.context.setup.architecture.mla
        assert mla is not None
        rows = self.context.sizes.bs * self.heads
        both = turned(recorder, self.context.apply(self.kv_up, latent))
        k_pass, value = split(recorder, both, rows * mla.nope_head_dim, rows * mla.v_head_dim)
        shared = expanded(recorder, k_turn, rows * mla.rope_head_dim)
        key = recorder.new(rows * (mla.nope_head_dim + mla.rope_head_dim), both.width)
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
