"""From an architecture to its tape; operators that few models have are imported when one has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ..catalog.architecture import Architecture, LayerKind, Mixer
from ..catalog.implementation import Implementation
from ..catalog.parts import Experts, SourceEncoder
from ..record import dataclass, replace
from .beside import held_beside, held_in_layers
from .embedding import Embedding, Positions, embedded_width, ngrams, positions, token_embedding
from .feedforward import feed_forward
from .head import Head, head
from .layer import Branch, Layer
from .mixers.attention import attention
from .mixers.indexer import indexer
from .norm import Norm, norm
from .operator import Operator
from .setup import Setup

if TYPE_CHECKING:
    from .experts import RoutedExperts


@dataclass(frozen=True)
class Tape:
    """A model as operators: look-ups, kinds of layers (that of layer 0 first), what follows the last layer."""

    embedding: Embedding
    positions: Positions | None
    beside: tuple[Operator, ...]
    """Further look-ups; what they make is too small to be in a program."""
    for_decoder: tuple[Operator, ...]
    """What an encoder holds for its decoder's layers, in whose programs it is made; of a decoder, once it is laid out,
    its whole encoder."""
    embedding_norm: Norm | None
    kinds: tuple[tuple[Layer, int], ...]
    """Layers that differ, each with the number of times that the model runs it."""
    layers: tuple[int, ...]
    """For each layer of the model its place in `kinds`."""
    final_norm: Norm | None
    head: Head

    @property
    def look_ups(self) -> tuple[Operator, ...]:
        """Tables, that of the tokens first."""
        return (
            (self.embedding, *self.beside) if self.positions is None else (self.embedding, self.positions, *self.beside)
        )

    @property
    def before(self) -> tuple[Operator, ...]:
        """What comes before the layers, and what an encoder holds for its decoder."""
        found = (*self.look_ups, *self.for_decoder)
        return found if self.embedding_norm is None else (*found, self.embedding_norm)

    @property
    def after(self) -> tuple[Operator, ...]:
        """What comes behind the layers."""
        return (self.head,) if self.final_norm is None else (self.final_norm, self.head)

    @property
    def operators(self) -> tuple[tuple[Operator, int], ...]:
        """Every operator with the number of times that the model runs it."""
        return self._with_ends((layer.operators, runs) for layer, runs in self.kinds)

    @property
    def held(self) -> tuple[tuple[Operator, int], ...]:
        """Every operator with the number of times that the model holds it: what layers share once, or once a set."""
        return self._with_ends(self.parts)

    @property
    def parts(self) -> tuple[tuple[tuple[Operator, ...], int], ...]:
        """What the layers hold, with how often: of each kind what is its own, then what layers share."""
        owned = [(own, runs) for layer, runs in self.kinds if (own := layer.own)]
        sets = {layer.weight_set: layer.shared for layer, _ in self.kinds if layer.weight_set}
        return (*owned, *Counter(sets.values()).items())

    @property
    def adapted(self) -> tuple[tuple[Operator, int], ...]:
        """Every operator with the number of adapters that each of its projections has: as often as the model holds it,
        and where public code builds what layers share as copies with tied weights, as often as it runs it."""
        copied = any(layer.copies_shared for layer, _ in self.kinds)
        return self.operators if copied else self.held

    def adapted_from(self, bare: int) -> tuple[tuple[Operator, int], ...]:
        """The same where the first `bare` layers, and what is no layer, have no adapters."""
        copied = any(layer.copies_shared for layer, _ in self.kinds)
        held = (self.layer(at).operators if copied else self.held_in(at) for at in range(bare, len(self.layers)))
        return tuple(Counter(operator for operators in held for operator in operators).items())

    def _with_ends(self, parts: Iterable[tuple[tuple[Operator, ...], int]]) -> tuple[tuple[Operator, int], ...]:
        inside = tuple((operator, times) for operators, times in parts for operator in operators)
        return (*((operator, 1) for operator in self.before), *inside, *((operator, 1) for operator in self.after))

    @cached_property
    def chunk_tokens(self) -> int:
        """Public code without kernels fills sequences up to a multiple of so many tokens."""
        return self.most(lambda operator: operator.chunk_tokens)

    @cached_property
    def whole_tokens(self) -> int:
        """Code fills sequences up to a multiple of so many tokens, and no lengths between give a polynomial."""
        return self.most(lambda operator: operator.whole_tokens)

    @cached_property
    def shares(self) -> bool:
        """Whether layers run weights that others run too."""
        return any(layer.weight_set for layer, _ in self.kinds)

    @cached_property
    def first_runs(self) -> tuple[int, ...]:
        """For each layer the first one that runs what it shares with others; itself where it shares nothing."""
        first: dict[int, int] = {}
        sets = [self.kinds[kind][0].weight_set for kind in self.layers]
        return tuple(first.setdefault(each, index) if each else index for index, each in enumerate(sets))

    def held_in(self, index: int) -> tuple[Operator, ...]:
        """What layer `index` runs and no layer before it holds."""
        layer = self.layer(index)
        return layer.operators if self.first_runs[index] == index else layer.own

    def layer(self, index: int) -> Layer:
        """Layer `index` of the model, from 0."""
        return self.kinds[self.layers[index]][0]

    def most(self, count: Callable[[Operator], int]) -> int:
        """The largest count over the operators of all layers."""
        return max(count(operator) for layer, _ in self.kinds for operator in layer.operators)

    def changed(self, change: Callable[[Operator], Operator]) -> Tape:
        """The tape with the operators of its layers changed."""
        return replace(self, kinds=tuple((layer.changed(change), repeat) for layer, repeat in self.kinds))

    def on_rank(self, tp: int, expert_tp: int) -> Tape:
        """The part that one of `tp` tensor-parallel ranks holds; `expert_tp` of them share a routed expert."""
        return replace(
            self.changed(lambda operator: operator.on_rank(tp, expert_tp)),
            embedding=self.embedding.on_rank(tp, expert_tp),
            beside=tuple(operator.on_rank(tp, expert_tp) for operator in self.beside),
            for_decoder=tuple(operator.on_rank(tp, expert_tp) for operator in self.for_decoder),
            head=self.head.on_rank(tp, expert_tp),
        )


@lru_cache(maxsize=1024)
def build(architecture: Architecture) -> Tape:
    """The tape of an architecture; equal layers appear once, with a count."""
    places: dict[Layer, int] = {}
    of_kind: dict[LayerKind, int] = {}
    layers = []
    for kind in architecture.layer_kinds:
        place = of_kind.get(kind)
        if place is None:
            place = of_kind[kind] = places.setdefault(_layer(architecture, kind), len(places))
        layers.append(place)
    return Tape(
        token_embedding(architecture),
        positions(architecture),
        (*ngrams(architecture), *held_beside(architecture)),
        _for_decoder(architecture),
        _embedding_norm(architecture),
        tuple((layer, layers.count(place)) for layer, place in places.items()),
        tuple(layers),
        norm(architecture) if architecture.final_norm else None,
        head(architecture),
    )


def _embedding_norm(architecture: Architecture) -> Norm | None:
    found = norm(architecture, streams=False)
    return replace(found, width=embedded_width(architecture)) if architecture.embedding_norm else None


@lru_cache(maxsize=1024)
def laid_out(architecture: Architecture, traits: Implementation | None) -> Tape:
    """The tape of an architecture with its weights as an implementation lays them out, or as they are.

    That of a decoder holds what its encoder is made of, too.
    """
    tape, reader = build(architecture), architecture.reader
    if reader is not None:
        held = (operator for operator, times in laid_out(reader, traits).held for _ in range(times))
        tape = replace(tape, for_decoder=tuple(held))
    return tape if traits is None else tape.changed(lambda operator: operator.laid_out(traits))


@lru_cache(maxsize=1024)
def rank_tape(architecture: Architecture, traits: Implementation, tp: int, expert_tp: int) -> Tape:
    """The tape of one rank's part, laid out as an implementation does."""
    tape = laid_out(architecture, traits)
    return tape.on_rank(tp, expert_tp) if tp > 1 else tape


def tape_of(setup: Setup) -> Tape:
    """The tape of what a setup runs: laid out as its implementation does, one rank's part."""
    return rank_tape(setup.architecture, setup.implementation, setup.recipe.tp, setup.recipe.expert_tp)


def _softmax_attention(architecture: Architecture, kind: LayerKind) -> Operator:
    if kind.windowed and architecture.window is not None and architecture.window.blocks:
        from .mixers.near import near_attention

        return near_attention(architecture, kind)
    if architecture.mla is None:
        return _plain_attention(architecture, kind)
    from .mixers.latent import latent_attention

    return latent_attention(architecture, kind)


def _plain_attention(architecture: Architecture, kind: LayerKind) -> Operator:
    """Softmax attention over heads of keys and values, or one of its kinds."""
    window = architecture.window
    if architecture.query_rank:
        from .mixers.attention_kinds import FactoredAttention

        return attention(architecture, kind, FactoredAttention, q_rank=architecture.query_rank)
    if architecture.differential:
        from .mixers.attention_kinds import DifferentialAttention

        return attention(architecture, kind, DifferentialAttention)
    if window is not None and window.every and kind.windowed:
        from .mixers.attention_kinds import BlockAttention

        return attention(architecture, kind, BlockAttention, every=window.every)
    return attention(architecture, kind)


def _strided(architecture: Architecture, kind: LayerKind) -> tuple[Operator, ...]:
    a, window = architecture, architecture.window
    if window is None or not window.every or not kind.windowed:
        return ()
    from .mixers.attention_kinds import Strided

    return (Strided(a.heads, a.kv_heads, a.head_dim, window.every),)


def _rare(module: str, function: str) -> Callable[[Architecture, LayerKind], Operator]:
    """What makes a mixer that few models have: a function of a module of `mixers`, imported when it is first called."""

    def mixer(architecture: Architecture, kind: LayerKind) -> Operator:
        made: Operator = getattr(import_module(f"..mixers.{module}", __name__), function)(architecture, kind)
        return made

    return mixer


def _hybrid(architecture: Architecture, kind: LayerKind) -> Operator:
    from .mixers.together import Together

    return Together(_softmax_attention(architecture, kind), MIXERS["state_space"](architecture, kind))


def _compressor(architecture: Architecture, kind: LayerKind) -> tuple[Operator, ...]:
    if architecture.compressed_attention is None:
        return ()
    from .mixers.compressed import compressor

    return compressor(architecture, kind)


def _crossing(architecture: Architecture, source: SourceEncoder) -> Operator:
    from .mixers.cross_attention import cross_attention

    return cross_attention(architecture, source)


def _for_decoder(architecture: Architecture) -> tuple[Operator, ...]:
    if architecture.source is None or not architecture.encoder:
        return ()
    from .mixers.cross_attention import made_for_decoder

    return made_for_decoder(architecture, architecture.source)


MIXERS: Final[Mapping[Mixer, Callable[[Architecture, LayerKind], Operator]]] = {
    "attention": _softmax_attention,
    "hybrid": _hybrid,
    "linear_attention": _rare("delta", "delta_rule"),
    "state_space": _rare("state_space", "state_space"),
    "short_convolution": _rare("short_convolution", "gated_convolution"),
    "gated_recurrence": _rare("gated_recurrence", "gated_recurrence"),
    "time_mixing": _rare("time_mixing", "time_mixing"),
    "compressed_attention": _rare("compressed", "compressed_attention"),
    "memory_unit": _rare("memory_unit", "gated_memory"),
}


def _layer(architecture: Architecture, kind: LayerKind) -> Layer:
    """`attention_blocks` times a mixer and a feed-forward, with the norms before or behind each."""
    a, one = architecture, norm(architecture)
    each = a.norms_per_layer // a.attention_blocks
    post = a.norm_position == "post"
    first, second = (None, None) if post else (one, one if each > 1 else None)
    behind = one if post or each == 4 else None
    branches: list[Branch] = []
    shared = 0 if a.shared_block else kind.weight_set
    for index in range(a.attention_blocks):
        beside: tuple[Operator, ...] = ()
        if index == 0:
            beside = (*indexer(a, kind), *_compressor(a, kind), *_strided(a, kind), *held_in_layers(kind))
        if kind.mixer != "none":
            branches.append(Branch(MIXERS[kind.mixer](a, kind), True, first, behind, beside=beside, weight_set=shared))
            beside = ()
        if a.source is not None and not a.encoder:
            around = (None, None) if a.source.merged else (first, behind)
            branches.append(Branch(_crossing(a, a.source), True, *around, weight_set=shared))
        fed, shortcut = _fed(a, kind, index)
        if fed is not None:
            norm_before = second if branches else first
            branches.append(
                Branch(fed, False, norm_before, behind, beside=beside, shortcut=shortcut, weight_set=shared)
            )
    if a.shared_block is not None and kind.weight_set:
        from .shared_block import with_shared_block

        return with_shared_block(a, a.shared_block, kind, tuple(branches))
    if a.altup is not None:
        from .streams import with_streams

        return with_streams(a, tuple(branches))
    if a.per_layer_embedding is not None:
        from .layer_inputs import with_input

        return with_input(a, tuple(branches))
    return Layer(tuple(branches), a.parallel_block and len(branches) == 2)


def _fed(a: Architecture, kind: LayerKind, index: int) -> tuple[Operator | None, Operator | None]:
    """The feed-forward behind a layer's attention block `index`, and what stands on a shortcut beside it.

    Experts stand in place of the first dense feed-forward, or on a shortcut where a dense one is beside them.
    """
    if kind.feed_forward == "none":
        return None, None
    width = kind.own_ffn or (a.shared_cache_ffn if kind.shares_cache and a.shared_cache_ffn else a.ffn)
    dense = feed_forward(a, width) if width else None
    if kind.feed_forward == "dense" or a.experts is None:
        return dense, None
    experts = _routed_experts(a, a.experts) if index == 0 else None
    return (dense, experts) if a.experts.parallel_dense else (experts, None)


def _routed_experts(architecture: Architecture, experts: Experts) -> RoutedExperts:
    from .experts import RoutedExperts

    return RoutedExperts(
        architecture.hidden,
        experts.count,
        experts.zero,
        experts.top_k,
        experts.top_k if experts.expected_real is None else experts.expected_real,
        experts.width,
        experts.shared,
        experts.shared_width,
        experts.shared_gate,
        architecture.gated,
        experts.router_bias,
        experts.bias,
        architecture.activation,
        latent_width=experts.latent_width or 0,
        norms=experts.norms,
        scales=experts.scales,
    )
