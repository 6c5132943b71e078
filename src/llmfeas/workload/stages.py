"""How a pipeline is cut: one rule for what memory counts, time waits for, and launches ask of an engine."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

from ..record import dataclass


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
    count = max(1, min(pp, layers))
    head = head if count > 1 else 0
    each, left = divmod(layers + head, count)
    sizes = [each] * count
    for index in (range(count) if head else [*range(1, count - 1), 0])[:left]:
        sizes[index] += 1
    sizes[-1] -= head
    starts = [0, *accumulate(sizes)]
    return tuple(Stage(index, starts[index], size, index == 0, index == count - 1) for index, size in enumerate(sizes))
