"""What optimizers hold: one row each, states and temporaries of the step over the weights of one rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..autograd.storage import BLOCK_BYTES
from ..record import dataclass
from .inventory import Inventory

QUANTIZATION_BLOCK: Final = 256
"""Elements that share one fp32 scale in 8-bit states."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Bytes of states and of the step's temporaries, given the inventory and the bytes of one state element."""

    states: Callable[[Inventory, int], float]
    temporaries: Callable[[Inventory, int], float] = lambda weights, width: 0.0


def _per_element(count: int, counters: bool = False) -> Callable[[Inventory, int], float]:
    """`count` values of the weight's type for each trained element, and a 4-byte counter (a block) a tensor."""

    def states(weights: Inventory, width: int) -> float:
        counted = BLOCK_BYTES * weights.trained_tensors if counters else 0
        return count * weights.trained_bytes * (width / weights.trained_width) + counted

    return states


def _list(weights: Inventory, width: int) -> float:
    """One list as large as the trained weights: what a multi-tensor step makes."""
    return weights.trained_bytes * (width / weights.trained_width)


def _largest(weights: Inventory, width: int) -> float:
    return float(weights.largest * width)


def _eight_bit(weights: Inventory, width: int) -> float:
    """Two states of a byte with an fp32 scale a block; small tensors in 32 bits (Dettmers 2022)."""
    large = weights.trained - weights.trained_small
    return large * (2 + 2 * 4 / QUANTIZATION_BLOCK) + 8 * weights.trained_small


def _factored(weights: Inventory, width: int) -> float:
    """Row and column sums of each matrix, all elements of vectors, in fp32 (Shazeer 2018), and a counter a tensor."""
    return 4.0 * weights.factored + BLOCK_BYTES * weights.trained_tensors


def _muon(weights: Inventory, width: int) -> float:
    """One momentum for matrices, AdamW's two states for tables, head and vectors (Jordan 2024)."""
    return width * (weights.trained_matrices + 2.0 * (weights.trained - weights.trained_matrices))


OPTIMIZERS: Final[dict[str, Optimizer]] = {
    "adamw": Optimizer(_per_element(2, counters=True)),
    "adamw-foreach": Optimizer(_per_element(2), _list),
    "adamw-8bit": Optimizer(_eight_bit),
    "adafactor": Optimizer(_factored, _largest),
    "sgd": Optimizer(_per_element(0)),
    "sgd-momentum": Optimizer(_per_element(1)),
    "lion": Optimizer(_per_element(1), _largest),
    "muon": Optimizer(_muon, lambda weights, width: 2.0 * weights.iterated),
}
