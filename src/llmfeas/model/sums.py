"""What the time model needs of an architecture: a dozen totals over the tape, taken once and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import prod

from ..catalog.architecture import Architecture
from ..record import dataclass, replace
from .build import Tape, build
from .layer import Layer
from .mixers.attention import Attention

STREAM_READS = 7
"""Times that a branch moves the residual stream (norms, sums, projections' ends)."""


@dataclass(frozen=True, slots=True)
class AttentionSpan:
    """Equal softmax attention blocks: how many, how wide their heads, how far back they look (None: to the start)."""

    blocks: int
    width: float
    """Elements of all heads together, the mean of queries and values (they differ under MLA)."""
    cached: int
    """Values that a block caches for a token."""
    window: int | None
    parts: int = 1
    """Of a block's cache that tensor-parallel ranks can divide; more ranks read copies."""
    reading_flop: float = 0.0
    """FLOP of a block for each token that a decoding one reads, without weights: on latents as they are cached."""
    chosen: int | None = None
    """Tokens that are read at most, whichever an indexer picks."""
    head_width: int = 0
    """Elements of one head; 0 where no kernel minds."""

    def seen(self, tokens: float) -> float:
        """Mean number of earlier tokens that a causal block sees, over a sequence of `tokens`."""
        if self.window is None or self.window >= tokens:
            return tokens / 2
        return self.window * (1 - self.window / (2 * tokens))

    def cached_values(self, tokens: float, ranks: int = 1) -> float:
        """Values that one of `ranks` reads from the blocks' caches when `tokens` went before."""
        return self.blocks * self.cached * self._before(tokens) / min(ranks, self.parts)

    def decode_flop(self, tokens: float) -> float:
        """FLOP of all ranks for one token when `tokens` went before, without weights."""
        return self.blocks * self.reading_flop * self._before(tokens)

    def prompt_flop(self, tokens: float, *, least: bool = False) -> float:
        """FLOP for one token of a prompt: of all that it sees, or of what is chosen, as that is cached.

        Kernels that pick have no other way, even where `least` would write heads out (deepseek-ai/DeepSeek-V3.2-Exp
        issue 31); a prompt of no more than is picked is read with heads written out (SGLang pull request 11892, vLLM
        47327).
        """
        written_out = 4 * self.blocks * self.width * self.seen(tokens)
        if self.chosen is None or self.chosen >= tokens:
            return written_out
        picked = self.blocks * self.reading_flop * self.chosen * (1 - self.chosen / (2 * tokens))
        return min(written_out, picked) if least else picked

    def _before(self, tokens: float) -> float:
        return min(tokens, self.window or tokens, self.chosen or tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Totals over the tape, in elements and counts; a multiply-add with one weight is two FLOP."""

    layers: int
    moe_layers: int
    blocks: int
    """Attention blocks: more than `layers` where a layer holds two."""
    hidden: int
    heads: int
    vocab: int
    logits: int
    """Numbers that the head makes of a token."""
    parameters: int
    """Held; all others are run."""
    again: int
    """Of the matrix weights those that an earlier layer ran before."""
    dense_weights: int
    """Matrix weights of all layers outside routed experts, without the output head."""
    head_weights: int
    """The output head, also where it is tied to the embedding."""
    routed_weights: int
    experts: int
    experts_per_token: float
    expert_reads: int
    picked_biases: float
    """Elements of the biases of the experts that a token meets, in all layers."""
    """Elements of a token that a routed expert reads: the stream, or fewer where experts have a width of their own."""
    stream_width: float
    """Elements a token that the pointwise operators of one forward move, summed over the layers."""
    residual_width: float
    """Those of them that are of the residual stream, which tensor-parallel ranks of a server hold whole."""
    spans: tuple[AttentionSpan, ...]
    both_sides: bool
    """Tokens see those behind them too."""
    linear_flop: float
    """Forward FLOP of a token in linear attention, outside its matrices."""
    source_values: int
    """Values of one sequence that attention to an encoder reads for every token."""
    recurrent_layers: int
    """Layers that carry a recurrent state: state spaces, delta rules, linear attention."""
    state_bytes: int
    """Bytes of the recurrent state of one sequence, over all linear layers."""
    loop_tokens: int
    """Tokens of one turn of the loops that public code runs over a sequence; 0: there are none."""
    loop_launches: int
    """Kernels that one turn of all layers launches in a forward pass."""
    broadcast_width: float
    """Elements a token of products that older public code wrote out to sum them up, over the layers."""
    loop_width: float
    """Elements a token of the tensors that turns take parts of, over the layers."""
    matrices: int
    """Matrices of all layers outside routed experts that a token is multiplied by."""
    ends: int
    """Numbers of a token that these read and write."""
    tensors: int
    """Parameters by the tensor, as they are held."""

    @property
    def picking_blocks(self) -> int:
        """Attention blocks that read what an indexer picks."""
        return sum(span.blocks for span in self.spans if span.chosen is not None)

    @property
    def routed_active(self) -> float:
        """Weights of the routed experts that one token meets."""
        return self.routed_weights * self.experts_per_token / self.experts if self.experts else 0.0

    @property
    def active(self) -> float:
        """Matrix weights that one token meets, without the head."""
        return self.dense_weights + self.routed_active

    def attention_flop(self, tokens: float) -> float:
        """Forward FLOP of scores and values for one token of a sequence of `tokens`: what it sees, within windows."""
        return self.span_flop(tokens, self.spans) + self.linear_flop

    def span_flop(self, tokens: float, spans: Iterable[AttentionSpan], *, masked: bool = False) -> float:
        """The same of some blocks of softmax attention alone; `masked`: where a window leaves something out, all is
        computed and a mask laid over it.
        """
        return sum(4 * span.blocks * span.width * self._met(span, tokens, masked=masked) for span in spans)

    def wide_spans(self, width: int) -> tuple[AttentionSpan, ...]:
        """The blocks whose heads are wider."""
        return tuple(span for span in self.spans if span.head_width > width)

    def _met(self, span: AttentionSpan, tokens: float, *, masked: bool) -> float:
        """Tokens that one is multiplied with."""
        narrow = span.window is not None and span.window < tokens
        if self.both_sides:
            return tokens if masked or not narrow else float(span.window or 0)
        return tokens if masked and narrow else span.seen(tokens)

    def prompt_flop(self, tokens: float, *, least: bool = False) -> float:
        """The same of a prompt, whose tokens see no more than an indexer picks; `least`: by whichever way is less."""
        if self.both_sides:
            return self.attention_flop(tokens)
        return sum(span.prompt_flop(tokens, least=least) for span in self.spans) + self.linear_flop

    def attention_square_flop(self, tokens: float) -> float:
        """The same over the full square, as FLOP counters and most published MFU count it."""
        return 4 * tokens * sum(span.blocks * span.width for span in self.spans) + self.linear_flop

    def cached_values(self, tokens: float, ranks: int = 1) -> float:
        """Values that one of `ranks` reads from the cache to decode a token after `tokens` tokens, without a recurrent
        state.
        """
        return sum(span.cached_values(tokens, ranks) for span in self.spans) + self.source_values / ranks

    def decode_flop(self, tokens: float) -> float:
        """FLOP of all ranks for one token on the cache of `tokens` tokens."""
        return sum(span.decode_flop(tokens) for span in self.spans)


@lru_cache(maxsize=1024)
def architecture_sums(architecture: Architecture) -> Sums:
    """An architecture added up for the time model."""
    tape = build(architecture)
    counted = [(weight, repeat) for operator, repeat in tape.operators for weight in operator.weights]
    products = [(weight, repeat) for weight, repeat in counted if weight.is_matrix and weight.uses]
    routed = [(weight, repeat) for weight, repeat in products if weight.split == "expert"]
    dense = [(weight, repeat) for weight, repeat in products if weight.split != "expert" and weight.name != "head"]
    return Sums(
        layers=len(tape.layers),
        moe_layers=sum(n for layer, n in tape.kinds if any(w.split == "expert" for w in layer.weights)),
        blocks=sum(n * sum(branch.mixes for branch in layer.branches) for layer, n in tape.kinds),
        hidden=architecture.hidden,
        heads=architecture.heads,
        vocab=architecture.vocab,
        logits=tape.head.vocab,
        parameters=sum(n * weight.elements for operator, n in tape.held for weight in operator.weights),
        again=_again(tape),
        dense_weights=sum(n * weight.elements for weight, n in dense),
        head_weights=sum(prod(weight.shape) for weight, _ in products if weight.name == "head"),
        routed_weights=sum(n * weight.elements for weight, n in routed),
        experts=routed[0][0].copies if routed else 0,
        experts_per_token=float(routed[0][0].uses) if routed else 0.0,
        expert_reads=routed[0][0].shape[-1] if routed else 0,
        picked_biases=sum(n * w.uses * prod(w.shape) for w, n in counted if w.split == "expert" and not w.is_matrix),
        stream_width=sum(n * _stream_width(architecture.hidden, layer) for layer, n in tape.kinds),
        residual_width=sum(n * _residual_width(architecture.hidden, layer) for layer, n in tape.kinds),
        spans=_spans(tape),
        both_sides=architecture.encoder,
        linear_flop=sum(n * operator.state_flop for operator, n in tape.operators),
        source_values=sum(n * operator.source_values for operator, n in tape.operators),
        recurrent_layers=sum(n for layer, n in tape.kinds if any(each.state_bytes for each in layer.operators)),
        state_bytes=sum(n * operator.state_bytes for operator, n in tape.operators),
        loop_tokens=max(operator.loop_tokens for operator, _ in tape.operators),
        loop_launches=sum(n * operator.loop_launches for operator, n in tape.operators),
        broadcast_width=sum(n * operator.broadcast_width for operator, n in tape.operators),
        loop_width=sum(n * operator.loop_width for operator, n in tape.operators),
        matrices=sum(n * weight.copies for weight, n in dense),
        ends=sum(n * weight.copies * sum(weight.shape) for weight, n in dense),
        tensors=sum(n * len(operator.weights) for operator, n in tape.held),
    )


def _spans(tape: Tape) -> tuple[AttentionSpan, ...]:
    """Blocks that are equal to each other, counted."""
    spans: Counter[tuple[float, int, int | None, int, float, int | None, int]] = Counter()
    for operator, repeat in tape.operators:
        if operator.span is not None:
            seen_flop = operator.decode_flop(1.0) - operator.decode_flop(0.0)
            head = operator.head_dim if isinstance(operator, Attention) else 0
            spans[(*operator.span, operator.cache_parts, seen_flop, operator.chosen, head)] += repeat
    return tuple(AttentionSpan(blocks, *span) for span, blocks in spans.items())


def source_tokens(architecture: Architecture) -> int:
    """Positions that the encoder of an encoder-decoder makes; 0: there is none, or its text has no length yet."""
    return 0 if architecture.source is None else architecture.source.tokens


@lru_cache(maxsize=1024)
def trained_sums(architecture: Architecture, seq_len: int) -> Sums:
    """An architecture added up for a training on sequences of `seq_len`: of an encoder-decoder both of its stacks.

    What the encoder does counts for a token of the decoder, as many of its positions as there are for one of these.
    """
    architecture = architecture.reading(seq_len)
    found, reader = architecture_sums(architecture), architecture.reader
    if reader is None:
        return found
    read, positions = architecture_sums(reader), source_tokens(architecture)
    share = positions / seq_len
    return replace(
        found,
        layers=found.layers + read.layers,
        blocks=found.blocks + read.blocks,
        parameters=found.parameters + read.parameters,
        dense_weights=found.dense_weights + round(share * read.dense_weights),
        stream_width=found.stream_width + share * read.stream_width,
        linear_flop=found.linear_flop + share * read.attention_flop(positions),
    )


def _again(tape: Tape) -> int:
    """Matrix weights of the runs of what an earlier layer holds."""
    return sum(
        weight.elements
        for index, first in enumerate(tape.first_runs)
        if index != first
        for operator in tape.layer(index).shared
        for weight in operator.weights
        if weight.is_matrix and weight.uses
    )


def _stream_width(hidden: int, layer: Layer) -> float:
    """Elements a token that norms, residuals, rotation and activation of one layer read and write."""
    return _residual_width(hidden, layer) + sum(operator.stream_width for operator in layer.operators)


def _residual_width(hidden: int, layer: Layer) -> float:
    return STREAM_READS * hidden * len(layer.branches)
