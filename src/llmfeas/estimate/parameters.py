"""Parameter counts: total, active for one token, trainable, and the splits that other folds need."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ..catalog.architecture import Architecture, Model
from ..model.build import build
from ..model.embedding import Embedding, Ngrams
from ..model.experts import RoutedExperts
from ..model.feedforward import FeedForward
from ..model.head import Head
from ..model.implementation import implementation
from ..model.layer import Layer
from ..model.operator import LoraTargets, Operator, Weight
from ..record import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a model; tied matrices count once, buffers and multi-token-prediction blocks not at all."""

    total: int
    active: int
    """All but the experts that a token is not routed to; expected where routing varies. N-gram embeddings never."""
    active_min: int
    active_max: int
    active_without_input_embedding: int
    """`active` without the token table; a table that the head shares stays, since the head reads it."""
    embedding: int
    """The token table."""
    trainable: int


@dataclass(frozen=True, slots=True)
class MatrixParameters:
    """Elements of the matrices that a token is multiplied by, for FLOPs and streamed bytes."""

    dense: int
    """Outside routed experts, without the head and without look-up tables."""
    head: int
    """`vocab x width`, also where it is the embedding table."""
    routed: int
    """All routed experts."""
    routed_active: float
    """The routed experts that a token reaches, expected."""
    expert_layers: int

    @property
    def active(self) -> float:
        """Matrix elements that one token meets, head included."""
        return self.dense + self.head + self.routed_active


@dataclass(frozen=True, slots=True)
class BlockParameters:
    """Parameters of one kind of layer."""

    repeat: int
    total: int
    routed: int
    matrices: int
    """Elements of its matrices, routed experts included."""
    tensors: int


_DENSE: Final = frozenset(("gate", "up", "gate_up", "down"))


@lru_cache(maxsize=4096)
def parameters(
    model: Model | Architecture, lora_rank: int | None = None, lora_targets: LoraTargets = "all-linear"
) -> Parameters:
    """Count the parameters of a model.

    Formula: sum over the tape; active = total - routed experts - n-gram tables and their projections + the experts that
    a token reaches. With `lora_rank` only the low-rank pairs train, `rank (in + out)` for every projection that the
    targets reach: all but the head, or those of attention. Router and routed experts are stacked tensors, which
    `all-linear` adapts where the record of data/implementations.yaml says so. Equal to the Hugging Face classes
    (transformers 5.23, peft 0.21), to the unit.
    """
    architecture = model.architecture if isinstance(model, Model) else model
    total = _sum(architecture, lambda operator, weight: weight.elements)
    routed = sum(repeat * _routed(operator) for operator, repeat in build(architecture).operators)
    always = total - routed - _sum(architecture, _ngram)
    embedding = next(operator for operator in build(architecture).before if isinstance(operator, Embedding))
    table = embedding.weights[0].elements
    low, expected, high = _reached(architecture)
    trainable = total
    if lora_rank is not None:
        trainable = _sum(architecture, lambda operator, weight: weight.lora_elements(lora_rank, lora_targets))
        if lora_targets == "all-linear" and implementation(architecture.implementation).adapts_experts:
            trainable = lora_rank * _sum(
                architecture,
                lambda operator, weight: _stacked_ranks(operator, weight) * weight.copies * sum(weight.shape),
            )
    return Parameters(
        total=total,
        active=always + expected,
        active_min=always + low,
        active_max=always + high,
        active_without_input_embedding=always + expected - (0 if architecture.tied else table),
        embedding=table,
        trainable=trainable,
    )


@lru_cache(maxsize=1024)
def matrix_parameters(architecture: Architecture) -> MatrixParameters:
    """Count the elements of the matrices that tokens pass through."""
    dense, head, routed, layers = 0, 0, 0, 0
    active = 0.0
    for operator, repeat in build(architecture).operators:
        experts = set(operator.routed) if isinstance(operator, RoutedExperts) else set()
        layers += repeat if experts else 0
        for weight in operator.weights:
            if not weight.is_matrix or weight.uses == 0:
                continue
            if weight in experts:
                routed += repeat * weight.elements
                active += repeat * weight.elements / weight.copies * weight.uses
            elif isinstance(operator, Head) and weight.name == "head":
                head += weight.shape[0] * weight.shape[1]
            else:
                dense += repeat * weight.elements
    return MatrixParameters(dense, head, routed, active, layers)


@lru_cache(maxsize=1024)
def block_parameters(architecture: Architecture) -> tuple[BlockParameters, ...]:
    """Count the parameters of each kind of layer, that of layer 0 first."""
    return tuple(_block(layer, repeat) for layer, repeat in build(architecture).kinds)


def _sum(architecture: Architecture, count: Callable[[Operator, Weight], int]) -> int:
    return sum(
        repeat * count(operator, weight)
        for operator, repeat in build(architecture).operators
        for weight in operator.weights
    )


def _stacked_ranks(operator: Operator, weight: Weight) -> int:
    """Ranks that a weight's adapters take where the library adapts stacked experts, counted in `lora_rank`.

    Routers and experts get their own; gate and up of an expert lie in one matrix and take two. Their old names are
    those of every dense gate, up and down, which then get none.
    """
    if isinstance(operator, FeedForward) or (isinstance(operator, RoutedExperts) and weight.name in _DENSE):
        return 0
    if isinstance(operator, RoutedExperts) and weight in operator.routed + operator.router:
        return (2 if weight.name == "expert_up" and operator.gated else 1) if weight.is_matrix else 0
    return 1 if weight.takes_adapter("all-linear") else 0


def _routed(operator: Operator) -> int:
    return sum(weight.elements for weight in operator.routed) if isinstance(operator, RoutedExperts) else 0


def _ngram(operator: Operator, weight: Weight) -> int:
    return weight.elements if isinstance(operator, Ngrams) else 0


def _reached(architecture: Architecture) -> tuple[int, int, int]:
    """Give the routed parameters that a token meets: at least, expected, at most."""
    low = expected = high = 0.0
    for operator, repeat in build(architecture).operators:
        if isinstance(operator, RoutedExperts):
            low += repeat * operator.active_elements(max(0, operator.top_k - operator.zero))
            expected += repeat * operator.active_elements(operator.real)
            high += repeat * operator.active_elements(min(operator.top_k, operator.count))
    return round(low), round(expected), round(high)


def _block(layer: Layer, repeat: int) -> BlockParameters:
    weights = [weight for operator in layer.operators for weight in operator.weights]
    return BlockParameters(
        repeat=repeat,
        total=sum(weight.elements for weight in weights),
        routed=sum(_routed(operator) for operator in layer.operators),
        matrices=sum(weight.elements for weight in weights if weight.is_matrix),
        tensors=len(weights),
    )
