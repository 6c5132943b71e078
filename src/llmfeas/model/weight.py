"""The parameters of operators: shapes, what they divide over, what reaches them."""

from __future__ import annotations

from math import prod
from typing import Final, Literal

from ..record import compact, dataclass

LoraTargets = Literal["all-linear", "attention"]

VOCAB_GRAIN: Final = 128
"""Tables that are divided are padded so that each rank's part is a multiple of this (Megatron)."""

SCALED: Final = frozenset(("k", "v", "qkv"))
"""Projections whose outputs IA3 scales."""

NormKind = Literal["rms", "layer", "layer-plain"]

Adapter = Literal["attention", "linear", "never", "stacked", "none"]
"""Which LoRA targets reach a linear layer: `attention` any, `linear` only all-linear, `never` neither. What is no
linear layer of its own has `none`, or `stacked` where all-linear adapters are merged into it or run beside it.
"""

Split = Literal["tensor", "expert", "none"]
"""What a weight divides over: the tensor-parallel ranks, those and the expert-parallel ones, or nothing."""


@dataclass(frozen=True, slots=True)
@compact
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
    rows: bool = False
    """It divides by its inputs: ranks add up what they make, an inner result that joins the residual stream."""
    pairs: int = 1
    """Low-rank pairs of its adapters: two where two projections lie in one stack."""
    frozen: bool = False
    """It is held and never trained."""
    shares_pair: bool = False
    """All copies share their pairs (counted once, whatever ranks divide the copies)."""

    @property
    def elements(self) -> int:
        """Parameters in all copies."""
        return prod(self.shape) * self.copies

    @property
    def is_matrix(self) -> bool:
        """Whether the tensor has more than one dimension."""
        return len(self.shape) > 1

    @property
    def projects(self) -> bool:
        """Whether it is a linear layer of its own, which quantization and adapters reach."""
        return self.adapter not in ("stacked", "none")

    @property
    def flop_per_token(self) -> float:
        """FLOPs of one token's forward pass through it, a multiply-add being 2."""
        return 2 * prod(self.shape) * self.uses if self.is_matrix else 0.0

    def takes_adapter(self, targets: LoraTargets) -> bool:
        """Whether the LoRA targets reach it."""
        return self.adapter == "attention" or (self.adapter in ("linear", "stacked") and targets == "all-linear")

    def scaled_side(self, targets: LoraTargets) -> Literal["", "in", "out"]:
        """Which side of it is multiplied by learned numbers (IA3): keys and values, with queries where they are one
        matrix, and what enters the last product of a feed-forward where the targets reach it.
        """
        if self.name in SCALED and self.takes_adapter(targets):
            return "out"
        return "in" if self.name == "down" and self.adapter == "linear" and targets == "all-linear" else ""

    def scale_elements(self, targets: LoraTargets) -> int:
        """How many numbers those are."""
        side = self.scaled_side(targets)
        return self.copies * self.shape[0 if side == "out" else 1] if side else 0

    def lora_elements(self, rank: int, targets: LoraTargets, *, magnitudes: bool = False) -> int:
        """Parameters of its low-rank pairs, `rank (in + out)` each; 0 where the targets do not reach it.

        `magnitudes`: one more for each output (DoRA).
        """
        copies = 1 if self.shares_pair else self.copies
        pair = rank * sum(self.shape) + (self.shape[0] if magnitudes else 0)
        return self.pairs * pair * copies if self.takes_adapter(targets) else 0


def column_linear(
    name: str,
    inputs: int,
    outputs: int,
    *,
    bias: bool = False,
    adapter: Adapter = "linear",
    split: Split = "tensor",
    inner: bool = False,
) -> tuple[Weight, ...]:
    """A projection whose outputs divide over tensor-parallel ranks, with its bias."""
    matrix = Weight(name, (outputs, inputs), adapter=adapter, split=split, inner=inner)
    return (matrix, vector(f"{name}.bias", outputs, split=split)) if bias else (matrix,)


def row_linear(
    name: str, inputs: int, outputs: int, *, bias: bool = False, adapter: Adapter = "linear"
) -> tuple[Weight, ...]:
    """A projection whose inputs divide over tensor-parallel ranks: its bias is whole on every rank."""
    matrix = Weight(name, (outputs, inputs), adapter=adapter, inner=True, rows=True)
    return (matrix, vector(f"{name}.bias", outputs)) if bias else (matrix,)


def vector(name: str, elements: int, *, split: Split = "none") -> Weight:
    """A parameter that no matrix product reads."""
    return Weight(name, (elements,), uses=0.0, split=split)


def table(name: str, rows: int, width: int, *, split: Split = "tensor") -> Weight:
    """A look-up table: a matrix without FLOPs."""
    return Weight(name, (rows, width), uses=0.0, split=split)


def rank_vocab(vocab: int, tp: int) -> int:
    """Rows of a vocabulary on one of `tp` ranks, padded to a multiple of `VOCAB_GRAIN` (Megatron)."""
    return -(-vocab // (VOCAB_GRAIN * tp)) * VOCAB_GRAIN
