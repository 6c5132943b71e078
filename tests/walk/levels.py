"""Highest levels of one walk with numbers as sizes, and of the polynomials folded from symbolic ones."""

from __future__ import annotations

from llmfeas.autograd.storage import COMPONENT_BITS, COMPONENTS
from llmfeas.walk.candidates import PeakCandidates
from llmfeas.walk.step import Walked

MASK = (1 << COMPONENT_BITS) - 1


def level_bytes(level: int) -> int:
    """Sum of the components on the device."""
    return sum(level >> part * COMPONENT_BITS & MASK for part in range(len(COMPONENTS)))


def walked_top(walk: Walked) -> int:
    """The fullest moment of a walk, bytes."""
    return max(level_bytes(level) for level, _, _ in walk.marks)


def folded_top(found: PeakCandidates, b: int, s: int) -> int:
    """The same of folded moments, for a micro-batch and a length."""
    tops = (c.total[0] + b * c.total[1] + s * c.total[2] + b * s * c.total[3] + c.gradients for c in found.candidates)
    return max(tops) + found.weight_bytes
