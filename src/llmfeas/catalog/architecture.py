"""What a language model is made of: every field that its parameter count, FLOPs, cache and memory depend on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain, groupby
from typing import Any, Final, Literal

from ..record import dataclass, fields, replace

# fmt: off
# isort: off
from .parts import (
    AltUp, CompressedAttention, Dropout, Experts, GatedRecurrence, HeadShape, Indexer, LinearAttention, MemoryUnit,
    Mla, NgramEmbedding, PerLayerEmbedding, SharedBlock, ShortConvolution, SideWeights, SourceEncoder, StateSpace,
    TimeMixing, Window,
)
from .published import ImageEncoder, NamedContext, Reranker, Router
# isort: on
# fmt: on
from .types import Count, CountOrZero, Few, Fraction, Identifier, Layers, Positive, Strict

QkNorm = Literal["none", "head", "full", "l2"]
"""`head`: one scale of head_dim for all heads, for q and for k; `full`: over all heads; `l2`: no weights."""

Activation = Literal["gelu", "gelu_new", "gelu_tanh", "relu", "relu2", "silu", "xielu"]
"""`gelu_new` is written out with `pow` and `tanh`; `relu2` squares, `xielu` has two learned numbers a layer."""


# fmt: off
Mixer = Literal[
    "attention", "linear_attention", "state_space", "hybrid", "short_convolution", "gated_recurrence",
    "time_mixing", "compressed_attention", "memory_unit", "none",
]
# fmt: on
"""What mixes the tokens in a layer; all but `attention`, `hybrid` (attention and a state space side by side) and `none`
name the field of the architecture that describes them.
"""

_WITHOUT_KEYS: Final = frozenset(("state_space", "memory_unit", "none"))

FeedForwardKind = Literal["dense", "experts", "none"]
Dtype = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind(Strict):
    """What one layer holds, or so many equal ones in a row."""

    mixer: Mixer = "attention"
    feed_forward: FeedForwardKind = "dense"
    windowed: bool = False
    """Its attention sees no more than the window."""
    rotates: bool = True
    """Its attention rotates queries and keys, where positions are rotary at all."""
    shares_cache: bool = False
    """Its attention reads the keys and values of an earlier layer."""
    indexes: bool = True
    """Its sparse attention, where there is one, has an indexer of its own; otherwise it takes the choice before it."""
    own_ffn: CountOrZero = 0
    """Width of its dense feed-forward where it is not the architecture's."""
    own_heads: CountOrZero = 0
    own_kv_heads: CountOrZero = 0
    """Heads of its attention where they are not the architecture's."""
    own_rate: CountOrZero = 0
    """Tokens that its compressed attention presses into one entry, where not the architecture's."""
    beside: SideWeights | None = None
    weight_set: CountOrZero = 0
    """The number of the weights that it runs where other layers run them too, those of a shared block alone where there
    is one; 0: all are its own."""
    times: Layers = 1


def runs_of(kinds: Iterable[LayerKind]) -> tuple[LayerKind, ...]:
    """Kinds of layers, one for each, as runs of equal ones."""
    return tuple(replace(kind, times=len(list(equal))) for kind, equal in groupby(kinds))


@cache
def _kind(mixer: Mixer, feed_forward: FeedForwardKind, windowed: bool, rotates: bool, shares_cache: bool) -> LayerKind:
    return LayerKind(
        mixer=mixer, feed_forward=feed_forward, windowed=windowed, rotates=rotates, shares_cache=shares_cache
    )


@dataclass(frozen=True, kw_only=True)
class Architecture(Strict):
    """A transformer of one stack: a decoder, or an encoder. Widths are in elements, `layers` counts its blocks.

    Equal architectures hash alike, and the hash is computed once: architectures are the key of every cache.
    """

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
    key_bias: bool = True
    """With `qkv_bias`: keys have one too (Whisper's have none)."""
    out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    fused_qkv: bool = False
    """Queries, keys and values come out of one matrix: changes no count but that of LoRA's adapters."""
    fused_gate_up: bool = False
    qk_norm: QkNorm = "none"
    query_rank: CountOrZero = 0
    """Queries are made through a product of this width with a norm behind it (Step 3); 0: of the stream itself."""
    differential: bool = False
    """Two maps of attention are subtracted from each other over values twice as wide, with a norm behind."""
    tied: bool = False
    positions: Literal["rope", "learned", "alibi", "relative-xl", "distances"] = "rope"
    """`distances`: a bias a head for each range of distances, from a small table (T5)."""
    learned_positions: Count | None = None
    """Rows of the learned position table."""
    rope_fraction: Fraction = 1.0
    no_rope_every: Count | None = None
    embedding_dim: Count | None = None
    """Width of the token embedding where it differs from `hidden` (then projected in and out)."""
    embedding_norm: bool = False
    projects_late: bool = False
    """With `embedding_dim`: positions and the norm of the embedding come before its projection (ALBERT)."""
    attention_blocks: Few = 1
    """Attention blocks (each with its own dense feed-forward) in one layer: 2 in LongCat-Flash."""
    held_layers: CountOrZero = 0
    """Layers with weights, which all run again until `layers` have run (ALBERT, Ouro), after each of these loops the
    final norm where there is a `loop_norm`; 0: every layer has its own."""
    loop_norm: bool = False
    output_gate: bool = False
    sinks: bool = False
    softcap: bool = False
    """Attention scores and logits pass through a scaled tanh (Gemma 2)."""
    window: Window | None = None
    mla: Mla | None = None
    windowed_mla: Mla | None = None
    """That of windowed layers, where it differs."""
    linear_attention: LinearAttention | None = None
    experts: Experts | None = None
    ngram: NgramEmbedding | None = None
    indexer: Indexer | None = None
    layer_runs: tuple[LayerKind, ...] = ()
    """The layers in order, where they follow no rule; otherwise the rules above say it (`interval`, `local` and `full`,
    `first_dense_layers` and `layer_step`, `no_rope_every`)."""
    state_space: StateSpace | None = None
    short_convolution: ShortConvolution | None = None
    gated_recurrence: GatedRecurrence | None = None
    time_mixing: TimeMixing | None = None
    compressed_attention: CompressedAttention | None = None
    memory_unit: MemoryUnit | None = None
    encoder: bool = False
    """It reads tokens and writes none (BERT, embedding models): every token sees those before and behind it, there is
    no cache and no projection to the vocabulary. `tied` means that its token table is another's."""
    embeds: bool = False
    """A decoder that is asked for vectors or scores of texts, and writes none."""
    masked: bool = False
    """Its class predicts masked tokens by a product, a norm and a bias a token, all of which stand in `beside`."""
    predicts: bool = False
    """An encoder in pre-training: these run, and the token table behind them."""
    scores: bool = False
    """It gives a number or a vector for a text (reward models, embeddings): no projection to the vocabulary."""
    last_token: bool = False
    """The projection to the vocabulary runs on the last token of each sequence alone (rerankers made of decoders)."""
    source: SourceEncoder | None = None
    """The encoder that its layers look at (T5, BART, Whisper); all other fields are the decoder's. Of what `reader`
    gives: the decoder that looks at it."""
    beside: SideWeights | None = None
    """Of the model; those of layers stand in `layer_runs`."""
    whole_heads: HeadShape | None = None
    """Heads of layers that see everything, where those of windowed layers differ."""
    v_head_dim: CountOrZero = 0
    """Width of a head of values where it is not `head_dim`; 0: as wide."""
    head_gate: bool = False
    """A gate of one number a query head multiplies the attention's output."""
    shared_cache_layers: CountOrZero = 0
    """The last layers that read the keys and values of earlier ones and have none of their own (Gemma 3n, 4)."""
    shared_cache_ffn: CountOrZero = 0
    """Width of their feed-forward where it is not `ffn`."""
    per_layer_embedding: PerLayerEmbedding | None = None
    altup: AltUp | None = None
    shared_block: SharedBlock | None = None
    """A block that some layers run ahead of their mixer (`weight_set`), whose sizes are this architecture's."""
    tower_parameters: CountOrZero = 0
    """Encoders of images and sounds with their projectors: held beside the language model, idle for text."""
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
        if self.held_layers and (self.layer_runs or self.layers % self.held_layers):
            raise ValueError("held_layers has to divide layers, and goes without layer_runs")
        missing = {
            "experts": self.experts is None and any(run.feed_forward == "experts" for run in self.layer_runs),
            "window": self.window is None and any(run.windowed for run in self.layer_runs),
        }
        described = {"hybrid": "state_space", "attention": "", "none": ""}
        fields_of = {described.get(run.mixer, run.mixer) for run in self.layer_runs} - {""}
        missing |= {name: getattr(self, name) is None for name in fields_of}
        for name in (name for name, absent in missing.items() if absent):
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
        return {name: value for name, value in self.__dict__.items() if name not in ("_hash", "_kinds", "_reader")}

    @property
    def writes(self) -> bool:
        """Whether it writes tokens."""
        return not (self.encoder or self.embeds)

    @property
    def scores_by_tokens(self) -> bool:
        """Whether a number for a text is a logit of a token: it writes, or a projection to the vocabulary is left."""
        return not (self.encoder or self.scores)

    @property
    def reader(self) -> Architecture | None:
        """The encoder of an encoder-decoder, with the keys and values that it makes for each layer of the decoder."""
        if self.source is None or self.encoder:
            return None
        cached: Architecture | None = self.__dict__.get("_reader")
        if cached is None:
            source = self.source
            rows = source.learned_positions or self.learned_positions
            beside = source.beside or self.layer_kinds[-1].beside
            runs = (LayerKind(times=n, windowed=near, feed_forward=fed, beside=beside) for n, near, fed in source.runs)
            cached = replace(
                self,
                encoder=True,
                layers=source.layers,
                layer_runs=tuple(runs),
                **source.widths(self.hidden, self.heads, self.kv_heads, self.head_dim, self.ffn),
                positions="learned" if rows else self.positions,
                learned_positions=rows,
                tied=not source.own_table,
                tower_parameters=0,  # held once, beside the decoder
                source=source.turned(self.layers, self.heads, self.kv_heads, self.head_dim),
            )
            object.__setattr__(self, "_reader", cached)
        return cached

    def reading(self, tokens: int) -> Architecture:
        """The same behind a text of so many tokens, where it has an encoder whose text has no length yet."""
        if self.source is None or self.source.tokens or self.encoder:
            return self
        return replace(self, source=replace(self.source, tokens=tokens))

    @property
    def q_width(self) -> int:
        """Width of all query heads together, `heads * head_dim` (need not equal `hidden`)."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key (or value) heads together, `kv_heads * head_dim`."""
        return self.kv_heads * self.head_dim

    @property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The kind of each layer: the one place that reads the rules, or the list that stands for them."""
        cached: tuple[LayerKind, ...] | None = self.__dict__.get("_kinds")
        if cached is None:
            listed = ((replace(run, times=1),) * run.times for run in self.layer_runs)
            cached = tuple(chain.from_iterable(listed)) or tuple(map(self._kind_by_rule, range(self.layers)))
            object.__setattr__(self, "_kinds", cached)
        return cached

    @property
    def own_layers(self) -> int:
        """How many layers have weights, each its own."""
        return self.held_layers or self.layers

    @property
    def lenders(self) -> frozenset[int]:
        """The layers whose keys and values later ones read: of those with a window, and of those without, the last that
        makes its own."""
        kinds = self.layer_kinds
        sharing = {kind.windowed for kind in kinds if kind.shares_cache}
        keeping = ((index, kind) for index, kind in enumerate(kinds) if kind.mixer not in _WITHOUT_KEYS)
        own = {kind.windowed: index for index, kind in keeping if not kind.shares_cache}
        return frozenset(own[windowed] for windowed in sharing if windowed in own)

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
        shares = index >= self.layers - self.shared_cache_layers
        kind = _kind(mixer, "experts" if routed else "dense", windowed, rotates, shares)
        return replace(kind, weight_set=index % self.held_layers + 1) if self.held_layers else kind


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
    has_weights: bool = True
    """Whether trained weights were published; not of the shapes that papers and benchmarks give."""
    aliases: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    default_for: tuple[str, ...] = ()  # names of a family (`qwen3`) that mean this one when nothing more is said
    dtype: Dtype = "bfloat16"  # of the published weights outside quantized tensors
    published_quant: str = "none"
    """Quantization of the published weights, a value of `--quant` (mxfp4 for gpt-oss, fp8 for DeepSeek-V3)."""
    context: Count
    contexts: tuple[NamedContext, ...] = ()  # the first whose words a name has counts
    published_parameters: str = ""  # as its publisher words it; never computed with
    training_tokens: Positive | None = None
    training_tokens_source: str = ""
    mtp_parameters: CountOrZero = 0
    """Multi-token-prediction weights of the checkpoint, in no other count."""
    image_tokens: CountOrZero = 0
    """Tokens that an image of `image_size` makes; 0: it reads none, or nobody wrote its rule down."""
    image_size: str = ""
    image_cached_values: CountOrZero = 0
    """Keys and values that an image leaves in layers that attend to it, beside what its tokens cache."""
    image_encoder: ImageEncoder | None = None
    """The work of reading an image of that size; None: nobody wrote it down."""
    reranker: Reranker | None = None  # how it scores a query and a text that it reads together
    rope_base: Positive | None = None  # of the frequencies by which positions turn (`rope_theta`)
    router: Router | None = None
    notes: str = ""
    sources: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
