"""From an architecture to its tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from ..catalog.architecture import Architecture, LayerKind, Mixer
from ..record import dataclass
from .attention import attention
from .delta import delta_rule
from .embedding import embeddings
from .experts import routed_experts
from .feedforward import feed_forward
from .head import head
from .latent import indexer, latent_attention
from .layer import Branch, Layer
from .norm import norm
from .operator import Operator


@dataclass(frozen=True, slots=True)
class Tape:
    """A model as operators: the look-ups, the kinds of layers (that of layer 0 first), what follows the last layer."""

    before: tuple[Operator, ...]
    kinds: tuple[tuple[Layer, int], ...]
    """Layers that differ, each with the number of times that the model holds it."""
    layers: tuple[int, ...]
    """For each layer of the model its place in `kinds`."""
    after: tuple[Operator, ...]

    @property
    def operators(self) -> tuple[tuple[Operator, int], ...]:
        """Every operator with the number of times that the model holds it."""
        inside = tuple((operator, repeat) for layer, repeat in self.kinds for operator in layer.operators)
        return (*((operator, 1) for operator in self.before), *inside, *((operator, 1) for operator in self.after))


@lru_cache(maxsize=1024)
def build(architecture: Architecture) -> Tape:
    """The tape of an architecture; equal layers appear once, with a count."""
    places: dict[Layer, int] = {}
    of_kind = {kind: _layer(architecture, kind) for kind in dict.fromkeys(architecture.layer_kinds)}
    layers = tuple(places.setdefault(of_kind[kind], len(places)) for kind in architecture.layer_kinds)
    before = embeddings(architecture)
    if architecture.embedding_norm:
        before += (norm(architecture),)
    after: tuple[Operator, ...] = (norm(architecture),) if architecture.final_norm else ()
    kinds = tuple((layer, layers.count(place)) for layer, place in places.items())
    return Tape(before, kinds, layers, (*after, head(architecture)))


def _softmax_attention(architecture: Architecture, kind: LayerKind) -> Operator:
    return (attention if architecture.mla is None else latent_attention)(architecture, kind)


MIXERS: Final[Mapping[Mixer, Callable[[Architecture, LayerKind], Operator]]] = {
    "attention": _softmax_attention,
    "linear_attention": delta_rule,
}


def _layer(architecture: Architecture, kind: LayerKind) -> Layer:
    """`attention_blocks` times a mixer and a feed-forward, with the norms before or behind each."""
    a, one = architecture, norm(architecture)
    each = a.norms_per_layer // a.attention_blocks
    post = a.norm_position == "post"
    first, second = (None, None) if post else (one, one if each > 1 else None)
    behind = one if post or each == 4 else None
    branches: list[Branch] = []
    for index in range(a.attention_blocks):
        mixer = MIXERS[kind.mixer](a, kind)
        branches.append(Branch(mixer, True, first, behind, beside=indexer(a) if index == 0 else ()))
        fed, shortcut = _fed(a, kind, index)
        if fed is not None:
            branches.append(Branch(fed, False, second, behind, shortcut=shortcut))
    return Layer(tuple(branches), a.parallel_block)


def _fed(a: Architecture, kind: LayerKind, index: int) -> tuple[Operator | None, Operator | None]:
    """The feed-forward behind a layer's attention block `index`, and what stands on a shortcut beside it.

    Experts stand in place of the first dense feed-forward, or on a shortcut where a dense one is beside them.
    """
    dense = feed_forward(a, a.ffn) if a.ffn else None
    if kind.feed_forward == "dense" or a.experts is None:
        return dense, None
    experts = routed_experts(a, a.experts) if index == 0 else None
    return (dense, experts) if a.experts.parallel_dense else (experts, None)
