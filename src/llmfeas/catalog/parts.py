"""Parts that an architecture may have: latent and linear attention, state spaces, windows, experts, tables."""

from __future__ import annotations

from typing import Any, Literal

from ..record import dataclass, replace
from .types import Count, CountOrZero, Few, Fraction, Layers, Positive, Strict


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla(Strict):
    """Multi-head latent attention (DeepSeek-V2): keys and values are cached as one latent vector a token."""

    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    nope_head_dim: Count
    rope_head_dim: CountOrZero
    v_head_dim: Count
    heads: CountOrZero = 0
    """Its heads where they are not the architecture's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention(Strict):
    """Gated delta-rule layers (Qwen3-Next): a fixed state instead of a cache; every `interval`-th layer stays full."""

    key_heads: Count
    value_heads: Count
    key_head_dim: Count
    value_head_dim: Count
    conv_kernel: Count
    interval: CountOrZero = 0
    """0: the layers say themselves which of them are linear (`layer_runs`)."""
    apart: bool = False
    """Gate, step and decay have projections of their own (Qwen3.5)."""
    channel_rank: CountOrZero = 0
    """Decays and gates of each channel through projections of this rank (Kimi Linear); 0: a decay a head."""
    by_channel: bool = False
    """Decays and gates of each channel through whole projections (Ling 3)."""
    whole_gate: bool = False
    """With `channel_rank`: the gates alone through a whole projection (Kimi K3)."""
    lightning: bool = False
    """No convolution, and decays that are fixed (MiniMax)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace(Strict):
    """Selective state-space layers (Mamba 1 and 2): a state of fixed size instead of a cache."""

    heads: Count
    """Mamba 2: heads of `head_dim`, the inner width together; Mamba 1: channels, each a head of 1."""
    head_dim: Count = 1
    groups: Count = 1
    """Groups of heads that share what writes to the state and what reads it (Mamba 2)."""
    state: Count
    """Numbers of state for each channel."""
    conv_kernel: Count = 4
    conv_bias: bool = True
    bias: bool = False
    """The projections in and out have biases."""
    step_rank: CountOrZero = 0
    """Rank of the projection to the step sizes: Mamba 1; 0: Mamba 2."""
    norm: bool = True
    """A gated norm of the inner width (Mamba 2), or norms of step, in and out (Jamba's Mamba 1)."""
    stacked_steps: bool = False
    """Mamba 1: what projects to step, in and out is a stack over heads, which no adapter reaches (Zamba)."""
    scans: Count = 1
    """Mamba 1: heads, each of which is scanned by itself (Zamba)."""
    chunk: Count = 256
    """Mamba 2: tokens of a chunk, within which every token is scored against every one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBlock(Strict):
    """Attention and a feed-forward that several layers run with the same weights, on the stream beside the embedding of
    its token; each use has a projection of its own behind them (Zamba).
    """

    adapter_rank: CountOrZero = 0
    """Rank of the low-rank pair that each use adds to gate and up (Zamba 2)."""
    adapts_attention: bool = False
    """And to queries, keys and values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution(Strict):
    """Gated convolutions over the last `kernel` tokens (LFM2)."""

    kernel: Count
    bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUnit(Strict):
    """Layers that gate what an earlier state space made of each token, and have no state of their own (SambaY)."""

    width: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRecurrence(Strict):
    """Linear recurrences of one number a channel, whose decay and input are gated by blocks of channels (Griffin)."""

    width: Count
    blocks: Count
    conv_kernel: Count = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMixing(Strict):
    """Recurrent layers of RWKV: a state of `head_dim` numbers a channel (RWKV 7), or of three (RWKV 4: 0)."""

    width: Count
    head_dim: CountOrZero = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Strict):
    """Attention of one key-value head, whose keys are its values, to a window and to older tokens pressed together
    (DeepSeek-V4). A windowed layer sees its window only; one that indexes presses `rate` tokens into one entry, of
    which an indexer picks `top_k`; the others press `heavy_rate` and see every entry."""

    q_rank: Count
    rope_head_dim: Count
    window: Count
    out_groups: Few
    """Groups of heads that are projected apart."""
    out_rank: Count
    """Width of each group between its two projections."""
    rate: Count
    heavy_rate: Count
    index_heads: Count
    index_head_dim: Count
    top_k: Count
    apart: bool = False
    """Entries do not overlap and make the keys of the indexer, which presses none of its own (DeepSeek-V4.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideWeights(Strict):
    """Small weights beside operators: gates of low rank, norms within, connections between streams. Each token passes
    every matrix once."""

    matrices: tuple[tuple[Count, Count], ...] = ()
    """Inputs and outputs of each."""
    vectors: CountOrZero = 0
    """Numbers in vectors, all together."""
    table: tuple[Count, Count] | None = None
    """Rows and width of a look-up table, of which a token reads a few rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadShape(Strict):
    """Heads of attention where some layers differ from the others."""

    heads: Count
    kv_heads: Count
    head_dim: Count
    keys_are_values: bool = False
    """There is no projection of values: they are the keys before their norm (Gemma 4)."""
    sinks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEncoder(Strict):
    """The encoder of an encoder-decoder, where it differs from the decoder, whose layers look at what it made."""

    layers: Layers
    tokens: CountOrZero = 0
    """Positions that it makes of any input (Whisper: 1500 of 30 s); 0: one a token of the text."""
    heads: CountOrZero = 0
    ffn: CountOrZero = 0
    hidden: CountOrZero = 0
    kv_heads: CountOrZero = 0
    head_dim: CountOrZero = 0
    """Its heads, the width of its feed-forward, that of its stream, its heads of keys and their width; 0: the
    decoder's."""
    window: CountOrZero = 0
    """Tokens, on both sides together, that its layers see; 0: all of them."""
    blocks: bool = False
    """With a window: code computes it in blocks (Longformer)."""
    whole_every: CountOrZero = 0
    """With a window: every so manyth layer sees all tokens; 0: none does."""
    own_table: bool = False
    """It has a token table of its own."""
    merged: bool = False
    """The decoder's own attention sees what it made, through its own products (T5Gemma 2): there is no other to it."""
    plain: bool = False
    """Its feed-forward has no gate, though the decoder's has one (Moonshine)."""
    beside: SideWeights | None = None
    """Small weights beside the operators of each of its layers; None: those of the decoder's."""
    learned_positions: CountOrZero = 0
    """Rows of its own table of positions; 0: as the decoder, where that has one."""
    bands: CountOrZero = 0
    """Frequencies of the sound that two convolutions make positions of, two frames each; 0: it reads text, by the
    decoder's token table."""
    still: bool = False
    """Both tables of positions are waves, held and not trained; that of an encoder of sound is anyway."""
    expert_step: CountOrZero = 0
    """Every so manyth of its layers holds experts, as many and as wide as the decoder's; 0: none does."""

    @property
    def runs(self) -> tuple[tuple[int, bool, Literal["dense", "experts"]], ...]:
        """Its layers in order: how many beside each other, whether they see a window, and what follows."""
        near, step = self.window > 0, self.whole_every if self.window else self.expert_step
        turns, rest = divmod(self.layers, step) if step else (0, self.layers)
        routed: Literal["dense", "experts"] = "experts" if self.expert_step else "dense"
        dense: Literal["dense"] = "dense"
        turn = (step - 1, near, dense), (1, near and not self.whole_every, routed)
        found = turn * turns + ((rest, near, dense),)
        return tuple(run for run in found if run[0])

    def widths(self, hidden: int, heads: int, kv_heads: int, head_dim: int, ffn: int | None) -> dict[str, Any]:
        """Its own widths and window by their names in an architecture; the widths that it has not are the decoder's."""
        return {
            "hidden": self.hidden or hidden,
            "heads": self.heads or heads,
            "kv_heads": self.kv_heads or self.heads or kv_heads,
            "head_dim": self.head_dim or head_dim,
            "ffn": self.ffn or ffn,
            "window": Window(size=self.window, blocks=self.blocks) if self.window else None,
            # What stands beside its only table stands there once.
            **({"beside": None} if self.merged else {}),
            **({"gated": False} if self.plain else {}),
        }

    def turned(self, layers: int, heads: int, kv_heads: int, head_dim: int) -> SourceEncoder:
        """The same seen from the encoder, for which it is the decoder that has sizes of its own."""
        return replace(self, layers=layers, heads=heads, kv_heads=kv_heads, head_dim=head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLayerEmbedding(Strict):
    """A table with a row of `width` for each layer and token, gated into the stream (Gemma 3n, 4); without rows what
    stands there is made of the embedding alone (EmbeddingGemma 2)."""

    width: Count
    rows: CountOrZero


@dataclass(frozen=True, slots=True, kw_only=True)
class AltUp(Strict):
    """Parallel residual streams of which each layer computes one and predicts the others, and a low-rank branch beside
    the attention (Gemma 3n)."""

    streams: Few
    rank: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Strict):
    """Layers that attend to the last `size` tokens only.

    Layers repeat in groups of `local` windowed and `full` whole ones (`full` 0: every layer is windowed), the
    windowed ones first unless `full_first`. `chunked`: blocks of `size` instead of a sliding window.
    """

    size: Count
    local: Count = 1
    full: CountOrZero = 0
    full_first: bool = False
    chunked: bool = False
    blocks: bool = False
    """Half of the window lies on each side, code computes it in blocks, and a few tokens see all (Longformer)."""
    every: CountOrZero = 0
    """Of what lies before the window so manyth blocks are seen, too (Phi-3 small); 0: none."""
    in_cache: bool = True
    """False: the window only masks, the cache keeps every token (GPT-Neo)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts(Strict):
    """A routed mixture of experts in place of (or, with `parallel_dense`, beside) the dense feed-forward."""

    count: Count
    top_k: Count
    width: Count
    shared: CountOrZero = 0
    shared_width: Count | None = None
    shared_gate: bool = False
    zero: CountOrZero = 0
    """Identity ("zero-computation") experts, routed to but without weights."""
    expected_real: Positive | None = None
    """Real experts a token reaches on average where routing varies; None: `top_k`."""
    first_dense_layers: CountOrZero = 0
    layer_step: Count = 1
    """Layer i (from 0) holds experts when (i + 1) % layer_step == 0."""
    router_bias: bool = False
    bias: bool = False
    parallel_dense: bool = False
    latent_width: Count | None = None
    """The experts work in this width, between a projection into it and one out of it (Nemotron 3 Super)."""
    norms: CountOrZero = 0
    """Norms around the experts beyond those of the layer (Gemma 4)."""
    scales: bool = False
    """The router scales its input, and each expert's output has a scale (Gemma 4)."""

    def holds(self, index: int) -> bool:
        """Whether layer `index` (from 0) holds experts by rule."""
        return index >= self.first_dense_layers and (index + 1) % self.layer_step == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramEmbedding(Strict):
    """Hashed n-gram tables added to the token embedding: `splits * (max_order - 1)` tables of `ratio * vocab` rows."""

    ratio: Positive
    max_order: Few
    splits: Few


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer(Strict):
    """A sparse-attention indexer, one a layer, that picks the `top_k` cached tokens its attention reads."""

    heads: Count
    head_dim: Count
    top_k: Count
    block: Count = 1
    """Tokens in a row whose keys are averaged, and chosen together (Qwen4-Exp)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout(Strict):
    """Training dropout of the published configuration."""

    embedding: Fraction = 0.0
    attention: Fraction = 0.0
    residual: Fraction = 0.0
