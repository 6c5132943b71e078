"""What every operator of the tape states: its weights, its work, its cache."""

from __future__ import annotations

from math import prod
from typing import Literal

from ..record import dataclass

LoraTargets = Literal["all-linear", "attention"]
AttentionKernel = Literal["flash", "eager"]

Adapter = Literal["attention", "linear", "none"]
"""Which LoRA targets reach a matrix: `attention` any, `linear` only all-linear, `none` neither."""

Split = Literal["tensor", "expert", "none"]
"""What a weight divides over: the tensor-parallel ranks, those and the expert-parallel ones, or nothing."""


SpanShape = tuple[float, int, int | None]
"""Elements of all heads together, the mean of queries and values (they differ under MLA); values cached for a token;
how far back it looks (None: to the start)."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One parameter tensor, or `copies` of them side by side.

    `uses` is how many of the copies one token passes through: 1 for a plain matrix, `top_k` of the experts, 0 for what
    no matrix product reads (vectors, look-up tables).
    """

    name: str
    shape: tuple[int, ...]
    copies: int = 1
    uses: float = 1.0
    adapter: Adapter = "none"
    split: Split = "tensor"
    inner: bool = False
    """Its input is made inside the operator by other weights, not taken from the residual stream."""

    @property
    def elements(self) -> int:
        """Parameters in all copies."""
        return prod(self.shape) * self.copies

    @property
    def is_matrix(self) -> bool:
        """Tell whether the tensor has more than one dimension."""
        return len(self.shape) > 1

    @property
    def flop_per_token(self) -> float:
        """FLOPs of one token's forward pass through it, a multiply-add being 2."""
        return 2 * prod(self.shape) * self.uses if self.is_matrix else 0.0

    def takes_adapter(self, targets: LoraTargets) -> bool:
        """Tell whether the LoRA targets reach it."""
        return self.adapter != "none" and (targets == "all-linear" or self.adapter == "attention")

    def lora_elements(self, rank: int, targets: LoraTargets) -> int:
        """Parameters of its low-rank pair, `rank (in + out)`; 0 where the targets do not reach it."""
        return rank * sum(self.shape) * self.copies if self.takes_adapter(targets) else 0


def linear(
    name: str,
    inputs: int,
    outputs: int,
    *,
    bias: bool = False,
    adapter: Adapter = "linear",
    split: Split = "tensor",
    inner: bool = False,
) -> tuple[Weight, ...]:
    """Give a projection whose outputs divide over tensor-parallel ranks, with its bias."""
    matrix = Weight(name, (outputs, inputs), adapter=adapter, split=split, inner=inner)
    return (matrix, vector(f"{name}.bias", outputs, split=split)) if bias else (matrix,)


def row_linear(
    name: str, inputs: int, outputs: int, *, bias: bool = False, adapter: Adapter = "linear"
) -> tuple[Weight, ...]:
    """Give a projection whose inputs divide over tensor-parallel ranks: its bias is whole on every rank."""
    matrix = Weight(name, (outputs, inputs), adapter=adapter, inner=True)
    return (matrix, vector(f"{name}.bias", outputs)) if bias else (matrix,)


def vector(name: str, elements: int, *, split: Split = "none") -> Weight:
    """Give a parameter that no matrix product reads."""
    return Weight(name, (elements,), uses=0.0, split=split)


def table(name: str, rows: int, width: int, *, split: Split = "tensor") -> Weight:
    """Give a look-up table: a matrix without FLOPs."""
    return Weight(name, (rows, width), uses=0.0, split=split)


class Operator:
    """A coarse operator: a frozen dataclass that states its physics once, for every fold to read."""

    __slots__ = ()

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Parameters, in the order in which the forward pass meets them."""
        return ()

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
    def span(self) -> SpanShape | None:
        """How a cache is read that grows with the tokens; None: there is none."""
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
    def tail(self) -> Weight | None:
        """The product that comes last and behind which nothing is kept: a replay for the backward pass skips it."""
        return None

    @property
    def window(self) -> int | None:
        """Tokens that it sees at most, beyond which `decode_flop` no longer grows; None: all."""
        return None

    def without_window(self) -> Operator:
        """The operator as sequences shorter than its window meet it."""
        return self

    @property
    def state_bytes(self) -> int:
        """Bytes of one sequence's fixed state that do not depend on the cache's type."""
        return 0

    @property
    def counter_bytes(self) -> int:
        """Bytes beside keys and values that do not depend on the number of sequences."""
        return 0
