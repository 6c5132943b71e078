"""What a language model is made of: every field that its parameter count, FLOPs, cache and memory depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import chain, groupby
from typing import Any, ClassVar, Literal

from ..record import dataclass
from .types import STRICT, Count, CountOrZero, Few, Fraction, Identifier, Layers, Positive

QkNorm = Literal["none", "head", "full", "l2"]
"""`head`: one scale of head_dim for all heads, for q and for k; `full`: over all heads; `l2`: no weights."""

Activation = Literal["gelu", "gelu_new", "gelu_tanh", "relu", "silu"]
"""`gelu_new` is written out with `pow` and `tanh`; `gelu` and `gelu_tanh` are one kernel."""


Mixer = Literal["attention", "linear_attention"]
"""What mixes the tokens in a layer; all but `attention` name the field of the architecture that describes them."""

FeedForwardKind = Literal["dense", "experts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """What one layer holds, or so many equal ones in a row."""

    __pydantic_config__: ClassVar = STRICT
    mixer: Mixer = "attention"
    feed_forward: FeedForwardKind = "dense"
    windowed: bool = False
    """Its attention sees no more than the window."""
    rotates: bool = True
    """Its attention rotates queries and keys, where positions are rotary at all."""
    times: Layers = 1


def runs_of(kinds: Iterable[LayerKind]) -> tuple[LayerKind, ...]:
    """Kinds of layers, one for each, as runs of equal ones."""
    return tuple(replace(kind, times=len(list(equal))) for kind, equal in groupby(kinds))


@cache
def _kind(mixer: Mixer, feed_forward: FeedForwardKind, windowed: bool, rotates: bool) -> LayerKind:
    return LayerKind(mixer=mixer, feed_forward=feed_forward, windowed=windowed, rotates=rotates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla:
    """Multi-head latent attention (DeepSeek-V2): keys and values are cached as one latent vector a token."""

    __pydantic_config__: ClassVar = STRICT
    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    nope_head_dim: Count
    rope_head_dim: Count
    v_head_dim: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Gated delta-rule layers (Qwen3-Next): a fixed state instead of a cache; every `interval`-th layer stays full."""

    __pydantic_config__: ClassVar = STRICT
    key_heads: Count
    value_heads: Count
    key_head_dim: Count
    value_head_dim: Count
    conv_kernel: Count
    interval: CountOrZero = 0
    """0: the layers say themselves which of them are linear (`layer_runs`)."""
    apart: bool = False
    """Gate, step and decay have projections of their own (Qwen3.5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Layers that attend to the last `size` tokens only.

    Layers repeat in groups of `local` windowed and `full` whole ones (`full` 0: every layer is windowed), the
    windowed ones first unless `full_first`. `chunked`: blocks of `size` instead of a sliding window.
    """

    __pydantic_config__: ClassVar = STRICT
    size: Count
    local: Count = 1
    full: CountOrZero = 0
    full_first: bool = False
    chunked: bool = False
    in_cache: bool = True
    """False: the window only masks, the cache keeps every token (GPT-Neo)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A routed mixture of experts in place of (or, with `parallel_dense`, beside) the dense feed-forward."""

    __pydantic_config__: ClassVar = STRICT
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

    def holds(self, index: int) -> bool:
        """Whether layer `index` (from 0) holds experts by rule."""
        return index >= self.first_dense_layers and (index + 1) % self.layer_step == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramEmbedding:
    """Hashed n-gram tables added to the token embedding: `splits * (max_order - 1)` tables of `ratio * vocab` rows."""

    __pydantic_config__: ClassVar = STRICT
    ratio: Positive
    max_order: Few
    splits: Few


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """A sparse-attention indexer, one a layer, that picks the `top_k` cached tokens its attention reads."""

    __pydantic_config__: ClassVar = STRICT
    heads: Count
    head_dim: Count
    top_k: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """Training dropout of the published configuration."""

    __pydantic_config__: ClassVar = STRICT
    embedding: Fraction = 0.0
    attention: Fraction = 0.0
    residual: Fraction = 0.0


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A decoder-only transformer. Widths are in elements, `layers` counts the decoder's blocks.

    Equal architectures hash alike, and the hash is computed once: architectures are the key of every cache.
    """

    __pydantic_config__: ClassVar = STRICT
    layers: Layers
    hidden: Count
    heads: Count
    kv_heads: CountOrZero = 0
    """Heads of keys and values; 0 when built: as many as `heads`."""
    head_dim: CountOrZero = 0
    """Width of one head; 0 when built: `hidden / heads`, or with `mla` the width of a query head."""
    vocab: Count
    ffn: Count | None
    """Width of the dense feed-forward; None where every layer holds experts only."""
    activation: Activation = "silu"
    gated: bool = True
    """Three matrices (gate, up, down) instead of two (up, down)."""
    norm: Literal["rms", "layer", "layer-plain"] = "rms"
    norm_bias: bool = False
    norms_per_layer: Literal[1, 2, 4] = 2
    norm_position: Literal["pre", "post"] = "pre"
    final_norm: bool = True
    parallel_block: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    fused_qkv: bool = False
    """Queries, keys and values come out of one matrix: changes no count but that of LoRA's adapters."""
    fused_gate_up: bool = False
    qk_norm: QkNorm = "none"
    tied: bool = False
    positions: Literal["rope", "learned", "alibi", "relative-xl"] = "rope"
    learned_positions: Count | None = None
    """Rows of the learned position table."""
    rope_fraction: Fraction = 1.0
    no_rope_every: Count | None = None
    embedding_dim: Count | None = None
    """Width of the token embedding where it differs from `hidden` (then projected in and out)."""
    embedding_norm: bool = False
    attention_blocks: Few = 1
    """Attention blocks (each with its own dense feed-forward) in one layer: 2 in LongCat-Flash."""
    output_gate: bool = False
    sinks: bool = False
    softcap: bool = False
    """Attention scores and logits pass through a scaled tanh (Gemma 2)."""
    window: Window | None = None
    mla: Mla | None = None
    linear_attention: LinearAttention | None = None
    experts: Experts | None = None
    ngram: NgramEmbedding | None = None
    indexer: Indexer | None = None
    layer_runs: tuple[LayerKind, ...] = ()
    """The layers in order, where they follow no rule; otherwise the rules above say it (`interval`, `local` and `full`,
    `first_dense_layers` and `layer_step`, `no_rope_every`)."""
    dropout: Dropout = Dropout()
    implementation: Identifier = "hf-llama"
    """Which entry of implementations.yaml says how the public code runs this architecture."""

    def __post_init__(self) -> None:
        """Refuse shapes that no model can have.

        Raises:
            ValueError: naming the fields that contradict one another.
        """
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        object.__setattr__(self, "head_dim", self.head_dim or self._implied_head_dim())
        if self.kv_heads > self.heads:
            raise ValueError(f"kv_heads ({self.kv_heads}) is above heads ({self.heads})")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads ({self.kv_heads}) does not divide heads ({self.heads})")
        self._check_layers()
        self._check_experts()
        if self.ngram is not None and not 0 < self.ngram.splits * (self.ngram.max_order - 1) <= self.hidden:
            raise ValueError("ngram needs max_order from 2 on, and at most as many tables as hidden has elements")
        if (self.positions == "learned") != (self.learned_positions is not None):
            raise ValueError("learned_positions goes with positions: learned, and only with it")

    def _check_layers(self) -> None:
        told = sum(run.times for run in self.layer_runs)
        if self.layer_runs and told != self.layers:
            raise ValueError(f"layer_runs names {told} of {self.layers} layers")
        missing = {
            "experts": self.experts is None and any(run.feed_forward == "experts" for run in self.layer_runs),
            "window": self.window is None and any(run.windowed for run in self.layer_runs),
        }
        missing |= {run.mixer: run.mixer != "attention" and getattr(self, run.mixer) is None for run in self.layer_runs}
        for name, absent in missing.items():
            if absent:
                raise ValueError(f"layer_runs names layers of a kind that {name} has to describe")

    def _check_experts(self) -> None:
        if self.ffn is None:
            dense = next((i for i, kind in enumerate(self.layer_kinds) if kind.feed_forward == "dense"), None)
            if dense is not None:
                raise ValueError(f"ffn is null, but layer {dense} holds no experts")
        experts = self.experts
        if experts is None:
            return
        if experts.top_k > experts.count + experts.zero:
            raise ValueError(f"experts.top_k ({experts.top_k}) is above the number of experts")
        if experts.expected_real is not None and not experts.zero:
            raise ValueError("experts.expected_real goes with experts.zero, and only with it")
        if experts.parallel_dense and self.ffn is None:
            raise ValueError("experts.parallel_dense needs ffn, the width of the dense feed-forward beside the experts")

    def _implied_head_dim(self) -> int:
        if self.mla is not None:
            return self.mla.nope_head_dim + self.mla.rope_head_dim
        if self.hidden % self.heads:
            raise ValueError(f"heads ({self.heads}) does not divide hidden ({self.hidden}) and no head_dim is given")
        return self.hidden // self.heads

    def __hash__(self) -> int:
        cached: int | None = self.__dict__.get("_hash")
        if cached is None:
            cached = hash(tuple(getattr(self, field.name) for field in fields(self)))
            object.__setattr__(self, "_hash", cached)
        return cached

    def __getstate__(self) -> dict[str, Any]:
        # A hash of strings holds in one process only.
        return {name: value for name, value in self.__dict__.items() if name not in ("_hash", "_kinds")}

    @property
    def q_width(self) -> int:
        """Width of all query heads together, `heads * head_dim` (need not equal `hidden`)."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key (or value) heads together, `kv_heads * head_dim`."""
        return self.kv_heads * self.head_dim

    @property
    def ffn_matrices(self) -> int:
        """Matrices of one feed-forward: 3 when gated, else 2."""
        return 3 if self.gated else 2

    @property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The kind of each layer: the one place that reads the rules, or the list that stands for them."""
        cached: tuple[LayerKind, ...] | None = self.__dict__.get("_kinds")
        if cached is None:
            listed = ((replace(run, times=1),) * run.times for run in self.layer_runs)
            cached = tuple(chain.from_iterable(listed)) or tuple(map(self._kind_by_rule, range(self.layers)))
            object.__setattr__(self, "_kinds", cached)
        return cached

    def _kind_by_rule(self, index: int) -> LayerKind:
        linear, experts, window, number = self.linear_attention, self.experts, self.window, index + 1
        is_linear = linear is not None and linear.interval > 0 and number % linear.interval != 0
        routed = experts is not None and experts.holds(index)
        windowed = False
        if window is not None:
            place = index % (window.local + window.full)
            windowed = place >= window.full if window.full_first else place < window.local
        rotates = self.no_rope_every is None or number % self.no_rope_every != 0
        mixer: Mixer = "linear_attention" if is_linear else "attention"
        return _kind(mixer, "experts" if routed else "dense", windowed, rotates)


def with_layers(architecture: Architecture, **columns: Sequence[object]) -> Architecture:
    """An architecture whose layers have these values of fields of `LayerKind`, one a layer, whatever its rules say.

    Where the rules say the same it is itself, else its layers are listed.

    Raises:
        ValueError: the fields that layers of such kinds need are missing.
    """
    kinds = architecture.layer_kinds
    rows: Iterable[tuple[Any, ...]] = zip(*(column[: len(kinds)] for column in columns.values()), strict=True)
    listed = tuple(replace(kind, **dict(zip(columns, row, strict=True))) for kind, row in zip(kinds, rows, strict=True))
    return architecture if listed == kinds else replace(architecture, layer_runs=runs_of(listed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A catalog entry: an architecture with its name, its published facts and their sources."""

    id: Identifier
    name: Identifier
    architecture: Architecture
    family: str = ""
    organisation: str = ""
    released: str = ""
    license: str = ""
    aliases: tuple[str, ...] = ()
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """16-bit type (or fp32) of the published weights outside quantized tensors."""
    published_quant: str = "none"
    """Quantization of the published weights, a value of `--quant` (mxfp4 for gpt-oss, fp8 for DeepSeek-V3)."""
    context: Count
    published_parameters: str = ""
    """Size as its publisher words it; never computed with."""
    training_tokens: Positive | None = None
    training_tokens_source: str = ""
    mtp_parameters: CountOrZero = 0
    """Multi-token-prediction weights of the checkpoint, in no other count."""
    notes: str = ""
    sources: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
