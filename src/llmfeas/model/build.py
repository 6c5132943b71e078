"""From an architecture to its tape."""

from __future__ import annotations

from functools import lru_cache

from ..catalog.architecture import Architecture
from ..record import dataclass
from .attention import attention
from .delta import delta_rule
from .embedding import embeddings
from .experts import routed_experts
from .feedforward import feed_forward
from .head import head
from .latent import Indexer, latent_attention
from .norm import norm
from .operator import Operator


@dataclass(frozen=True, slots=True)
class Block:
    """One kind of layer: its operators in the order of the forward pass, and how many layers are of this kind."""

    operators: tuple[Operator, ...]
    repeat: int
    first: int
    """Index of the first layer of this kind."""


@dataclass(frozen=True, slots=True)
class Tape:
    """A model as operators: the look-ups, the kinds of layers (that of layer 0 first), what follows the last layer."""

    before: tuple[Operator, ...]
    blocks: tuple[Block, ...]
    after: tuple[Operator, ...]

    @property
    def operators(self) -> tuple[tuple[Operator, int], ...]:
        """Every operator with the number of times that the model holds it."""
        inside = tuple((operator, block.repeat) for block in self.blocks for operator in block.operators)
        return (*((operator, 1) for operator in self.before), *inside, *((operator, 1) for operator in self.after))


@lru_cache(maxsize=1024)
def build(architecture: Architecture) -> Tape:
    """Unroll an architecture into its tape; equal layers appear once, with a count."""
    kinds: dict[tuple[bool, bool, int | None], list[int]] = {}
    for index in range(architecture.layers):
        kind = (architecture.is_linear_layer(index), architecture.is_expert_layer(index), architecture.window_of(index))
        kinds.setdefault(kind, []).append(index)
    blocks = tuple(
        Block(_block(architecture, linear, expert, window), len(found), found[0])
        for (linear, expert, window), found in kinds.items()
    )
    before = embeddings(architecture)
    if architecture.embedding_norm:
        before += (norm(architecture),)
    after: tuple[Operator, ...] = (norm(architecture),) if architecture.final_norm else ()
    return Tape(before, blocks, (*after, head(architecture)))


def _block(architecture: Architecture, linear: bool, expert: bool, window: int | None) -> tuple[Operator, ...]:
    """Give one layer: `attention_blocks` times attention and feed-forward, with the norms before or behind each."""
    one = norm(architecture)
    before, behind = _norms(architecture)
    experts = (routed_experts(architecture, architecture.experts),) if expert and architecture.experts else ()
    dense_too = architecture.experts is not None and architecture.experts.parallel_dense
    found: list[Operator] = []
    for index in range(architecture.attention_blocks):
        dense = (
            (feed_forward(architecture, architecture.ffn),) if architecture.ffn and (not expert or dense_too) else ()
        )
        second: tuple[Operator, ...] = (*(experts if index == 0 else ()), *dense)
        mixers = (*_indexer(architecture, index), _mixer(architecture, linear, window))
        found += [*(one,) * before[0], *mixers, *(one,) * behind, *(one,) * before[1], *second, *(one,) * behind]
    return tuple(found)


def _norms(architecture: Architecture) -> tuple[tuple[int, int], int]:
    """Give the norms before attention and before the feed-forward, and behind either."""
    if architecture.norm_position == "post":
        return (0, 0), 1
    each = architecture.norms_per_layer // architecture.attention_blocks
    return (1, 0 if each == 1 else 1), 1 if each == 4 else 0


def _indexer(architecture: Architecture, index: int) -> tuple[Operator, ...]:
    if architecture.indexer is None or architecture.mla is None or index > 0:
        return ()
    rank = architecture.mla.q_lora_rank or architecture.hidden
    return (Indexer(architecture.hidden, rank, architecture.indexer.heads, architecture.indexer.head_dim),)


def _mixer(architecture: Architecture, linear: bool, window: int | None) -> Operator:
    if linear and architecture.linear_attention is not None:
        return delta_rule(architecture, architecture.linear_attention)
    if architecture.mla is not None:
        return latent_attention(architecture, architecture.mla)
    return attention(architecture, window)
