"""How a pipeline is cut: one rule for what memory counts, time waits for, and launches ask of an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil

from ..catalog.architecture import Architecture
from ..catalog.quantization import Quantization
from ..record import dataclass
from ..scenario import Scenario
from .weights import weight_bytes

ROUNDING = 1e-9
"""What floating-point numbers may add to a whole one."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Some layers in a row; the first stage begins with the embedding, the last ends with the head and the loss."""

    index: int
    first: int
    """The stage's first layer."""
    layers: int
    embeds: bool
    heads: bool

    @property
    def end(self) -> int:
        """The layer behind the stage's last one."""
        return self.first + self.layers


@lru_cache(maxsize=4096)
def stages(layers: int, pp: int, head: int = 0) -> tuple[Stage, ...]:
    """Cut layers into `pp` stages, at most one a layer: as many to each, whole ones.

    What does not divide goes to the stages between the ends, which hold the embedding and the head, then to the first:
    Megatron Core and torchtitan divide evenly unless told otherwise, and Llama 3 405B takes a layer from both ends
    (Grattafiori 2024, section 3.3.2). With `head` the head is dealt out as so many layers, and the first stages take
    what does not divide (llama.cpp, where it is one).
    """
    sizes = _sizes(layers, pp, head)
    return tuple(_in_order(sizes, len(sizes) - 1, range(len(sizes))))


def fullest_and_last(layers: int, pp: int) -> Iterator[Stage]:
    """Yield of the same stages the first with as many layers as any before the last, and the last one."""
    sizes = _sizes(layers, pp)
    last = len(sizes) - 1
    fullest = sizes.index(max(sizes[:-1])) if last else 0
    return _in_order(sizes, last, sorted({fullest, last}))


def _sizes(layers: int, pp: int, head: int = 0) -> list[int]:
    count = max(1, min(pp, layers))
    head = head if count > 1 else 0
    each, left = divmod(layers + head, count)
    sizes = [each] * count
    for index in (range(count) if head else [*range(1, count - 1), 0])[:left]:
        sizes[index] += 1
    sizes[-1] -= head
    return sizes


@lru_cache(maxsize=4096)
def stages_by_memory(layers: int, memories: tuple[float, ...], head: int = 0) -> tuple[Stage, ...]:
    """Cut layers into a stage a device, by the memory of each; the head is dealt out as one more layer.

    As llama.cpp does (llama-model.cpp, load_tensors): layer i is on the first device up to which the share of all
    memory is above i / (layers + head).
    """
    dealt, whole = layers + head, sum(memories)
    bounds = [0, *(ceil(dealt * (share / whole) - ROUNDING) for share in accumulate(memories))]
    sizes = [end - begin for begin, end in pairwise(bounds)]
    last = max((index for index, size in enumerate(sizes) if size), default=0)
    sizes[last] -= head
    return tuple(_in_order(sizes, last, range(len(sizes))))


def _in_order(sizes: list[int], last: int, wanted: Iterable[int]) -> Iterator[Stage]:
    starts = [0, *accumulate(sizes)]
    return (Stage(index, starts[index], sizes[index], index == 0, index == last) for index in wanted)


def fullest_stages(scenario: Scenario) -> Iterator[tuple[Stage, float]]:
    """Yield the stages that can be the fullest, each with the micro-batches that it keeps besides its own.

    An earlier stage keeps more micro-batches, so that a later one is fuller only where it holds more: layers, or
    weights in them (experts behind the first, dense layers).
    """
    s = scenario
    depth, kept = min(s.pp, s.model.architecture.layers), 1.0
    if s.interleave > 1:
        kept = 1 + (depth - 1) / (depth * s.interleave)
    for stage in _fullest(s.tables.quantization, s.model.architecture, s.pp, s.tp, s.ep * s.expert_tp):
        # Narayanan 2021: one-forward-one-backward keeps a micro-batch for each stage to come, interleaving more.
        last = depth > 1 and stage.index == depth - 1
        yield stage, 0.0 if last else min(depth - stage.index, s.micro_steps) * kept - 1


@lru_cache(maxsize=4096)
def _fullest(known: Quantization, architecture: Architecture, pp: int, tp: int, ranks: int) -> tuple[Stage, ...]:
    """The last stage, and each that holds more layers, or more bytes of them on one rank in 16 bits, than the one
    before it and all before that.
    """
    cut, weights = stages(architecture.layers, pp), weight_bytes(known, architecture)
    layers, held, fullest = 0, 0.0, []
    for stage in cut[:-1] or cut:
        run = (*weights.layers[stage.first : stage.end], *weights.held_again(stage.first, stage.end))
        on_rank = sum(layer.on_rank(tp, ranks) for layer in run) if len(cut) > 1 else 0.0
        if stage.layers > layers or on_rank > (1 + ROUNDING) * held:
            fullest.append(stage)
        layers, held = max(layers, stage.layers), max(held, on_rank)
    return (*fullest, cut[-1]) if len(cut) > 1 else tuple(fullest)
