"""Optimizers: one row each, which settings, memory, time and remedies read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .autograd.storage import BLOCK_BYTES
from .record import dataclass

LOW_RANK: Final = 128
"""Rank to which GaLore and APOLLO project gradients (transformers' optim_args, where nothing is said)."""
LONGEST_SIDE: Final = 10_000
"""Sides of a matrix for which SOAP has a preconditioner (max_precond_dim)."""
BLOCK_SIDE: Final = 1024
"""Sides of the blocks into which Shampoo cuts a matrix (max_preconditioner_dim)."""
QUANTIZATION_BLOCK: Final = 256
"""Elements that share one fp32 scale in 8-bit states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedWeights:
    """Counts over the weights of one rank that train. Elements unless a name says bytes."""

    trained: int = 0
    trained_experts: int = 0
    trained_bytes: int = 0
    """Rounded to blocks, in the weights' own type."""
    trained_width: int = 4
    """Bytes of one trained element."""
    trained_tensors: int = 0
    trained_matrices: int = 0
    """Elements of matrices other than tables."""
    trained_small: int = 0
    """Elements of tensors too small for states in 8 bits."""
    short_sides: int = 0
    """Of the matrices of layers, each the smaller of rows and columns."""
    long_sides: int = 0
    short_squares: int = 0
    """Of matrices of layers, each the square of its smaller side."""
    factored: int = 0
    """Row and column sums of matrices, and all elements of vectors."""
    largest: int = 0
    """Elements of the largest trained tensor."""
    iterated: int = 0
    """Elements that an orthogonalising iteration holds at once for the largest matrix."""
    side_squares: int = 0
    """Of all matrices, each the squares of its sides, as far as they have a preconditioner in SOAP."""
    block_squares: int = 0
    """Of the blocks of all matrices, each the squares of its sides (Shampoo)."""
    turned: int = 0
    """Of the matrix for which it is most: the square of its longest side with a preconditioner, and its elements."""


Bytes = Callable[[TrainedWeights, int], float]
"""Bytes of what is held for trained weights, given the bytes of one element of a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What an optimizer holds, moves and computes."""

    states: Bytes
    temporaries: Bytes = lambda weights, width: 0.0
    """Of its step."""
    least_states: float = 0.0
    """States that it keeps of a weight at least, in its wide format."""
    step_bytes: float
    """What a step reads and writes for one weight in mixed precision: weight, gradient, states, 16-bit copy."""
    wide: bool = False
    """It computes in fp32 whatever the weights are in, so that a step moves as much of 16-bit ones."""
    vector_flop: float = 0.0
    """What vector units do for a weight, where that shows beside the bytes, in FLOPs at their rate in fp32."""
    tensor_seconds: float = 0.0
    """Host seconds for a tensor, where each is a call of its own."""
    flop_per_width: float = 0.0
    """FLOPs of a step for a weight and an element of the model's width."""
    lightness: int = 0
    """Remedies offer an optimizer in place of those that are less light."""
    offer: tuple[str, int] | None = None
    """What one gives up with it, and how much that hurts; None: it is no remedy."""


def _per_element(count: int, counters: bool = False) -> Bytes:
    """`count` values of the weight's type for each trained element, and a 4-byte counter (a block) a tensor."""

    def states(weights: TrainedWeights, width: int) -> float:
        counted = BLOCK_BYTES * weights.trained_tensors if counters else 0
        return count * weights.trained_bytes * (width / weights.trained_width) + counted

    return states


def _list(weights: TrainedWeights, width: int) -> float:
    """One list as large as the trained weights: what a multi-tensor step makes."""
    return weights.trained_bytes * (width / weights.trained_width)


def _largest(weights: TrainedWeights, width: int) -> float:
    return float(weights.largest * width)


def _eight_bit(weights: TrainedWeights, width: int) -> float:
    """Two states of a byte with an fp32 scale a block; small tensors in 32 bits (Dettmers 2022)."""
    large = weights.trained - weights.trained_small
    return large * (2 + 2 * 4 / QUANTIZATION_BLOCK) + 8 * weights.trained_small


def _factored(weights: TrainedWeights, width: int) -> float:
    """Row and column sums of each matrix, all elements of vectors, in fp32 (Shazeer 2018), and a counter a tensor."""
    return 4.0 * weights.factored + BLOCK_BYTES * weights.trained_tensors


def _muon(weights: TrainedWeights, width: int) -> float:
    """One momentum for matrices, AdamW's two states for tables, head and vectors (Jordan 2024)."""
    return width * (weights.trained_matrices + 2.0 * (weights.trained - weights.trained_matrices))


def _projected(*, decomposed: bool) -> Bytes:
    """AdamW's two states of gradients projected to a low rank, and the projection; all else as in AdamW.

    `decomposed`: the projection is cut from a singular value decomposition, of which fp32 keeps the whole square matrix
    (a view; 16-bit gradients get a copy: galore_torch/galore_projector.py).
    """

    def states(weights: TrainedWeights, width: int) -> float:
        whole = decomposed and width == 4
        projection = weights.short_squares if whole else LOW_RANK * weights.short_sides
        others = weights.trained - weights.trained_matrices
        return width * (2.0 * LOW_RANK * weights.long_sides + projection + 2.0 * others)

    return states


def _soap(weights: TrainedWeights, width: int) -> float:
    """AdamW's two states, and of each side the mean of squared gradients and its eigenvectors (Vyas 2024)."""
    return width * (2.0 * weights.trained + 2.0 * weights.side_squares)


def _soap_step(weights: TrainedWeights, width: int) -> float:
    """Gradient, momentum and step in both bases; in every tenth step the eigenvectors are made anew (QR).

    Tracked on squares and oblongs (pytorch_optimizer 4.1, torch 2.13): 12, 20 and, of a table, 5 times the elements.
    """
    return 6.0 * width * max(weights.largest, weights.turned)


def _shampoo(weights: TrainedWeights, width: int) -> float:
    """Momentum and the grafted second moment; of each block's sides the factor and its inverse root, in fp32."""
    return width * 2.0 * weights.trained + 4.0 * 2.0 * weights.block_squares


def _two_largest(weights: TrainedWeights, width: int) -> float:
    return 2.0 * weights.largest * width


OPTIMIZERS: Final[dict[str, Optimizer]] = {
    "adamw": Optimizer(states=_per_element(2, counters=True), least_states=2.0, step_bytes=30.0),
    # One kernel a line of _multi_tensor_adamw of torch: twenty fp32 values; two CPU cores took what 80 bytes take.
    "adamw-foreach": Optimizer(states=_per_element(2), temporaries=_list, least_states=2.0, step_bytes=80.0),
    # Both moments in 16 bits beside what it would train anyway (Megatron's precision-aware optimizer: --exp-avg-dtype
    # and --exp-avg-sq-dtype; DeepSpeed: bf16_optimizer_states): half of what is read and written of them.
    "adamw-bf16": Optimizer(states=lambda weights, width: 4.0 * weights.trained, least_states=1.0, step_bytes=22.0),
    # Codes are searched in a table of 256 for each of two states. 1.78 B weights in 338 tensors took 65 ms a step on an
    # H100 and 70 in bf16, one state (Lion) 43; Llama 3.1 8B in bf16 on an H200 some 150 (bitsandbytes 0.50, 2026-11).
    "adamw-8bit": Optimizer(
        states=_eight_bit,
        least_states=0.5,
        step_bytes=18.0,
        vector_flop=1000.0,
        tensor_seconds=8e-5,
        lightness=1,
        offer=("8-bit optimizer states: a small risk for quality", 2),
    ),
    # transformers' own, operator by operator, some twenty a tensor: 1.78 B weights in 338 tensors took 91 ms on an H100
    # and 124 in bf16, what 137 and 187 bytes a weight take, launches in it (transformers 5.17, 2026-11).
    "adafactor": Optimizer(
        states=_factored,
        temporaries=_largest,
        step_bytes=100.0,
        wide=True,
        tensor_seconds=1e-4,
        lightness=2,
        offer=("factored optimizer states: less stable than AdamW", 3),
    ),
    "sgd": Optimizer(states=_per_element(0), step_bytes=14.0, lightness=3),
    "sgd-momentum": Optimizer(states=_per_element(1), least_states=1.0, step_bytes=22.0, lightness=3),
    "lion": Optimizer(states=_per_element(1), temporaries=_largest, least_states=1.0, step_bytes=22.0),
    # The average instead of the momentum (Defazio 2024); its multi-tensor step makes one list.
    "adamw-schedule-free": Optimizer(states=_per_element(2), temporaries=_list, least_states=2.0, step_bytes=60.0),
    # One second moment a row (Zhang 2024): next to nothing.
    "adam-mini": Optimizer(
        states=_per_element(1),
        temporaries=_two_largest,
        least_states=1.0,
        step_bytes=22.0,
    ),
    # Zhao 2024; galore_torch/adamw.py: weight by weight, the update and its multiple in full size.
    "galore": Optimizer(states=_projected(decomposed=True), temporaries=_two_largest, step_bytes=40.0),
    # Zhu 2024; a random projection.
    "apollo": Optimizer(states=_projected(decomposed=False), temporaries=_two_largest, step_bytes=40.0),
    # Eight products with both sides a step: statistics, two projections and one back (nikhilvyas/SOAP, soap.py).
    "soap": Optimizer(
        states=_soap,
        temporaries=_soap_step,
        least_states=2.0,
        step_bytes=60.0,
        flop_per_width=18.0,
    ),
    # In blocks, grafted from AdamW, as its authors run it in Adam's place (facebookresearch/optimizers,
    # distributed_shampoo/README.md); roots are made anew every hundred steps. Products are with a block's sides alone.
    "shampoo": Optimizer(
        states=_shampoo,
        temporaries=_two_largest,
        least_states=2.0,
        step_bytes=60.0,
        flop_per_width=4.0,
    ),
    "muon": Optimizer(
        states=_muon,
        temporaries=lambda weights, width: 2.0 * weights.iterated,
        least_states=1.0,
        step_bytes=22.0,
        # Newton-Schulz: five rounds of three square products
        flop_per_width=30.0,
    ),
}
"""By the values of --optimizer."""
