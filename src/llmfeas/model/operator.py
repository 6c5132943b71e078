"""What every operator of the tape states: its weights, its work, its cache, and what it runs in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self, cast

from ..catalog.implementation import Implementation
from ..record import replace
from .context import Context
from .weight import Weight

AttentionKernel = Literal["flash", "eager"]

Program = Callable[..., Any]
"""What an operator runs in a step, over the small operators of autograd."""

SpanShape = tuple[float, int, int | None]
"""Elements of all heads together, the mean of queries and values (they differ under MLA); values cached for a token;
how far back it looks (None: to the start)."""


class Operator:
    """A coarse operator: a frozen dataclass that states its physics once, for every fold to read."""

    __slots__ = ()

    title: ClassVar[str] = ""
    """What it is called where somebody has no word for it; empty: what every decoder may have."""
    is_common: ClassVar[bool] = True
    """Whether measured steps of dense decoders cover it."""

    packages: ClassVar[str] = ""
    """What public code takes kernels for it from where that is installed; without, it is written out."""
    learns: ClassVar[bool] = True
    """Whether a loss reaches its weights: through what an indexer picks none does."""
    divided: ClassVar[tuple[str, ...]] = ()
    """Sizes that tensor-parallel ranks divide among them; uneven parts count as the largest."""
    dealt_out: ClassVar[tuple[str, ...]] = ()
    """Counts that they deal out, at least one to each."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Parameters, in the order in which the forward pass meets them."""
        return ()

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """The part of it that one of `tp` tensor-parallel ranks holds; `expert_tp` of them share a routed expert.

        Source: Shoeybi 2019, Korthikanti 2022.
        """
        sizes = {name: -(-getattr(self, name) // tp) for name in self.divided}
        sizes |= {name: max(1, getattr(self, name) // tp) for name in self.dealt_out}
        return replace(cast("Any", self), **sizes) if sizes else self

    def laid_out(self, traits: Implementation) -> Self:
        """The operator with its weights as an implementation lays them out."""
        return self

    def program(self, context: Context) -> Program:
        """What it runs, with its parameters made from `weights` as the context's implementation lays them out."""
        raise NotImplementedError(type(self).__name__)

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence's forward pass that no weight takes part in (attention), over the full square."""
        return 0.0

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of the backward pass of `score_flop`; the fused kernel forms the scores again."""
        return 2 * self.score_flop(tokens)

    def decode_flop(self, cached: float) -> float:
        """FLOPs, without weights, of one more token behind `cached` others."""
        return 0.0

    def cached_values(self, tokens: int) -> int:
        """Values that one sequence of `tokens` keeps, each in the cache's type."""
        return 0

    @property
    def cache_parts(self) -> int:
        """Parts of its cache that tensor-parallel ranks can divide among them; more ranks hold copies."""
        return 1

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Bytes that a pass of so many tokens through it makes beside the stream, of which `width` is an element's.

        Each of `sequences` passes `tokens` and sees `seen`. Public eager code with fused attention, which nothing is
        kept of; source: measured tensors of Hugging Face models, see the tests of prefill memory.
        """
        return 0.0

    @property
    def span(self) -> SpanShape | None:
        """How a cache is read that grows with the tokens; None: there is none."""
        return None

    @property
    def chosen(self) -> int | None:
        """Of the tokens in its cache as many as it reads for one more, where an indexer picks them; None: all."""
        return None

    @property
    def stream_width(self) -> float:
        """Elements a token that its pointwise parts read and write: 2 of q, k, v that are rotated, 3 of each tensor
        inside a feed-forward.
        """
        return 0.0

    @property
    def state_flop(self) -> float:
        """Forward FLOP of one token, without weights, where they do not grow with the tokens before it."""
        return 0.0

    @property
    def loop_tokens(self) -> int:
        """Tokens of one turn of the loop that public code written out runs over a sequence; 0: it has none."""
        return 0

    @property
    def loop_launches(self) -> int:
        """Kernels that one turn launches in a forward pass."""
        return 0

    @property
    def loop_width(self) -> float:
        """Elements a token of the tensors of which each turn takes a part, whose gradient is as large as the whole."""
        return 0.0

    @property
    def broadcast_width(self) -> float:
        """Elements a token of products that code before transformers 5.18 wrote out to sum them up."""
        return 0.0

    @property
    def rotary_width(self) -> int:
        """Elements of a head that are rotated by position."""
        return 0

    @property
    def biased_heads(self) -> int:
        """Heads whose scores get a bias by distance (ALiBi)."""
        return 0

    @property
    def idle_elements(self) -> int:
        """Parameters that no count of active ones includes."""
        return 0

    @property
    def reached(self) -> tuple[float, float, float]:
        """Parameters of routed experts that a token meets: at least, expected, at most."""
        return 0.0, 0.0, 0.0

    @property
    def tail(self) -> Weight | None:
        """The product that comes last and behind which nothing is kept: a replay for the backward pass skips it."""
        return None

    @property
    def window(self) -> int | None:
        """Tokens that it sees at most, beyond which `decode_flop` no longer grows; None: all."""
        return None

    def without_window(self) -> Self:
        """The operator as sequences shorter than its window meet it."""
        return self

    @property
    def state_bytes(self) -> int:
        """Bytes of one sequence's fixed state that do not depend on the cache's type."""
        return 0

    @property
    def source_values(self) -> int:
        """Values that one sequence keeps of what an encoder made, each in the cache's type."""
        return 0

    @property
    def chunk_tokens(self) -> int:
        """Public code without kernels fills sequences up to a multiple of so many tokens; 1: it does not."""
        return 1

    @property
    def whole_tokens(self) -> int:
        """Its code needs sequences of a multiple of so many tokens; 0: of any length."""
        return 0

    @property
    def counter_bytes(self) -> int:
        """Bytes beside keys and values that do not depend on the number of sequences."""
        return 0
