"""The moments of a step that can be its peak, and the peak among them for a batch, a length and what else is held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from struct import Struct
from typing import TypeVar

from ..autograd.storage import (
    ACTIVATIONS,
    ARRIVING,
    COMPONENT_BITS,
    EXPERTS,
    FIELD_BITS,
    FIELD_MASK,
    FIELDS,
    GRADIENTS,
    LOGITS,
    MONOMIALS,
    WORKSPACE,
    Polynomial,
    packed_fields,
    with_experts,
)
from ..record import compact, dataclass, field
from .inventory import Inventory

_SIGNS = sum(1 << FIELD_BITS * i + FIELD_BITS - 1 for i in range(FIELDS + MONOMIALS + 1))
"""The highest bit of each field of a total, which no coefficient reaches: of the ten fields of the sum, and of those of
the gradients up to the one that counts experts.
"""

MOST_TRIES = 32
"""With how many others a level is compared: one too many does less harm than the search for what hides it."""

Levels = dict[int, int]
"""Packed levels by what decides of each of them (`total_of`)."""

Places = dict[tuple[str, int], Levels]
"""Levels by the moment and the place at which they stood."""


def undominated(marks: Iterable[tuple[int, str, int]]) -> Places:
    """The levels that can be the highest, place by place."""
    places: Places = {}
    here, levels = ("", 0), {}
    for level, moment, place in marks:
        if place != here[1] or moment != here[0]:
            here = moment, place
            levels = places.setdefault(here, {})
        levels[total_of(level)] = level
    return {place: _undominated(levels) for place, levels in places.items()}


def _undominated(levels: Levels) -> Levels:
    """The levels that none of a few others reaches or exceeds in every coefficient, the largest first.

    All fields are compared at once: with the highest bit of each field set in advance, a difference keeps it where the
    field of `other` is at least as large, and loses it by a borrow, which never goes beyond that bit, where it is less.
    """
    front: Levels = {}
    above: list[int] = []
    for total in sorted(levels, reverse=True):
        for place, other in enumerate(above):
            if (other - total) & _SIGNS == _SIGNS:
                # What hides one level tends to hide the next.
                above[0], above[place] = other, above[0]
                break
        else:
            front[total] = levels[total]
            if len(above) < MOST_TRIES:
                above.append(total | _SIGNS)
    return front


MAX_ENVELOPES = 64

_ONE, _TWO, _FOUR = ((1 << components * COMPONENT_BITS) - 1 for components in (1, 2, 4))
_GRADIENT_FIELDS = (FIELD_MASK | FIELD_MASK * EXPERTS) << GRADIENTS
"""Gradients that stay are constants, or times the experts: two fields of their component."""
_TOTAL = Struct("<6Q32xQ")
"""The polynomial of a total, and its gradients, which lie behind the four fields that count experts."""

Level = tuple[int, int, int]
"""The total of a level of a stage, and what makes it up: a level of the walk, and by how much the stage's is higher."""


def total_of(level: int) -> int:
    """Packed sum of all components but weights and gradients, with these gradients as further fields.

    Weights are left out, and gradients kept apart, because a rank's share of them is decided later (`RankState`). Of
    the four components the upper two are added to the lower two, and of these two sums the upper to the lower: field by
    field, since no field carries.
    """
    packed = level >> ARRIVING & _FOUR
    packed = (packed >> 2 * COMPONENT_BITS) + (packed & _TWO)
    return (packed >> COMPONENT_BITS) + (packed & _ONE) | level & _GRADIENT_FIELDS


def _unpacked(total: int) -> tuple[int, ...]:
    """The coefficients of a total, and its gradients behind them."""
    return _TOTAL.unpack(total.to_bytes(_TOTAL.size, "little"))


@dataclass(frozen=True, slots=True)
@compact
class Candidate:
    """One local maximum: gradients so far (bytes), the polynomial of all the rest but weights, and the packed level of
    the walk, which ranks with other numbers of experts share.
    """

    moment: str
    gradients: int
    total: Polynomial
    level: int
    experts: int

    @property
    def parts(self) -> tuple[Polynomial, ...]:
        """Gradients on their way, activations, logits and workspace: the total divided."""
        level = with_experts(self.level, self.experts)
        return tuple(packed_fields(level, part) for part in (ARRIVING, ACTIVATIONS, LOGITS, WORKSPACE))


def candidate_at(level: int, moment: str, experts: int = 0) -> Candidate:
    """A packed level of a walk as a candidate of a rank with so many experts, if the walk counts them apart."""
    *total, gradients = _unpacked(total_of(with_experts(level, experts)))
    return Candidate(moment, gradients, tuple(total), level, experts)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankState:
    """What a rank holds beside the walk's tensors, in bytes; decided by optimizer, sharding and accumulation."""

    weights: float
    optimizer: float
    temporaries: float = 0.0
    """Of the optimizer's step."""
    gradients: float | None = None
    """All gradients of the rank where they are alive during the whole step (accumulation, gradient buffers)."""
    accumulated: float = 0.0
    """Gradients of earlier micro-batches beside those that a compiled backward hands over when it ends."""
    gradient_share: float = 1.0
    """Share of each finished gradient that stays on this rank."""
    final_gradients: float | None = None
    """Gradients at the optimizer's step; None: the walk's own, times the share."""
    gathered: float = 0.0
    """Workspace alive in forward and backward: gathered weights, buckets."""
    gathered_backward: float = 0.0
    """Workspace alive in backward besides."""
    other_micro_batches: float = 0
    """Forwards of earlier micro-batches whose kept tensors are alive (pipelines)."""
    shared_kept: float = 0.0
    """Of these tensors, what all forwards share: copies of weights that autocast made once."""
    backward_alone: bool = False
    """It stands for a backward behind another one of the same step: its forward is that of the other."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The level of the fullest moment, its parts (they add up to it), its name and the runner-up's."""

    bytes: float
    moment: str
    runner_up: str
    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    workspace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakCandidates:
    """All moments of one setup."""

    levels: tuple[tuple[str, tuple[Level, ...]], ...]
    """For each moment's name the levels that can be its fullest, which ranks with other numbers of experts share."""
    experts: int
    start: Candidate
    kept: Candidate
    end: Candidate
    gradient_bytes: int
    weight_bytes: int
    inventory: Inventory
    walked: int = 1
    """Layers that were walked for it."""
    streamed: Polynomial = (0, 0, 0, 0, 0, 0)
    """Bytes in the memory of the host after forward."""
    forward: int = 0
    """Tensors that a forward pass and the loss make, each by a kernel."""
    backward: int = 0
    """The same of a backward pass, with what checkpointing runs again."""
    written: Polynomial = (0, 0, 0, 0, 0, 0)
    """Bytes of those of the forward pass, without the loss, that no product makes."""
    envelopes: dict[tuple[int, float], tuple[MomentLines, ...]] = field(default_factory=dict, repr=False, compare=False)
    """The fullest levels found so far, by length and share of the gradients."""

    @property
    def candidates(self) -> Iterator[Candidate]:
        """Every moment that can be the peak."""
        for moment, levels in self.levels:
            yield from (candidate_at(level + shift, moment, self.experts) for _, level, shift in levels)

    def streamed_bytes(self, micro_batch: int, seq_len: int) -> int:
        """The bytes that lie in the memory of the host between forward and backward."""
        return _value(self.streamed, micro_batch, seq_len)

    def written_bytes(self, micro_batch: int, seq_len: int) -> int:
        """The bytes that a forward pass writes between its products."""
        return _value(self.written, micro_batch, seq_len)

    def lines(self, seq_len: int, state: RankState) -> tuple[MomentLines, ...]:
        """For each moment's name the levels that are the fullest for some micro-batch at this length.

        A level is bytes = intercept + slope x micro-batch, all that is held included.
        """
        stacked = self._stacked(seq_len, state)
        held = state.accumulated + state.weights + state.optimizer + state.gathered + stacked[0]
        # Gradients that are alive all along tell no levels apart.
        share, held = (state.gradient_share, held) if state.gradients is None else (0.0, held + state.gradients)
        found: list[MomentLines] = []
        for name, lines in self._envelopes(seq_len, share):
            if not (state.backward_alone and name in ("forward", "loss")):
                more = held + (state.gathered_backward if name != "forward" else 0.0)
                found.append((name, tuple((low + more, slope + stacked[1], each) for low, slope, each in lines)))
        intercept, slope = _at_length(self.end.total, seq_len)
        intercept += self._final_gradients(state) + state.temporaries + state.weights + state.optimizer
        return (*found, ("optimizer", ((intercept, slope, self.end),)))

    def _envelopes(self, seq_len: int, share: float) -> tuple[MomentLines, ...]:
        """The same of the tensors alone, with this share of the gradients; ranks that hold other things share them."""
        found = self.envelopes.get((seq_len, share))
        if found is None:
            if len(self.envelopes) >= MAX_ENVELOPES:
                self.envelopes.clear()
            found = tuple((name, self._envelope(name, levels, seq_len, share)) for name, levels in self.levels)
            self.envelopes[seq_len, share] = found
        return found

    def _envelope(self, moment: str, levels: tuple[Level, ...], s: int, share: float) -> tuple[Line, ...]:
        lines: list[tuple[float, float, Level]] = []
        seen: set[tuple[int, ...]] = set()
        for one in levels:
            total = with_experts(one[0], self.experts) if self.experts else one[0]
            polynomial = c0, cb, cs, cbs, css, cbss, gradients = _unpacked(total)
            if polynomial[:6] in seen:
                continue  # the one before has more gradients, and hides it
            seen.add(polynomial[:6])
            intercept, slope = float(c0 + s * (cs + css * s)), float(cb + s * (cbs + cbss * s))
            lines.append((intercept + gradients * share, slope, one))
        return tuple(
            (intercept, slope, candidate_at(level + shift, moment, self.experts))
            for intercept, slope, (_, level, shift) in upper_lines(lines)
        )

    def peak(
        self, micro_batch: int, seq_len: int, state: RankState, lines: tuple[MomentLines, ...] | None = None
    ) -> Peak:
        """The fullest moment for sequences of `seq_len` tokens, `micro_batch` at a time.

        Bytes of tensors, each rounded up to 512 where its size is constant; the largest of a few polynomials
        (physics of the allocator and the context is not in here). `lines`: what `lines` gave for this length.
        """
        best = second = -1.0
        moment = runner_up = ""
        chosen = self.end
        for name, found in lines or self.lines(seq_len, state):
            top, candidate = -1.0, chosen
            for intercept, slope, one in found:
                level = intercept + slope * micro_batch
                if level > top:
                    top, candidate = level, one
            if top > best:
                best, moment, chosen, second, runner_up = top, name, candidate, best, moment
            elif top > second:
                second, runner_up = top, name
        return self._peak(chosen, micro_batch, seq_len, state, moment, runner_up)

    def filled(self, candidate: Candidate, micro_batch: int, seq_len: int, state: RankState) -> Peak:
        """One moment with all that is held beside it, whether or not it is the fullest."""
        return self._peak(candidate, micro_batch, seq_len, state, candidate.moment, "")

    def _stacked(self, seq_len: int, state: RankState) -> tuple[float, float]:
        """Kept tensors of the other micro-batches in flight, as a line over the micro-batch."""
        kept, start = _at_length(self.kept.total, seq_len), _at_length(self.start.total, seq_len)
        others = state.other_micro_batches
        return others * (kept[0] - start[0] - state.shared_kept), others * (kept[1] - start[1])

    def kept_bytes(self, micro_batch: int, seq_len: int, state: RankState) -> float:
        """What each other micro-batch in flight keeps."""
        fixed, each = self._stacked(seq_len, state)
        return (fixed + each * micro_batch) / state.other_micro_batches if state.other_micro_batches else 0.0

    def _final_gradients(self, state: RankState) -> float:
        """Gradients alive at the optimizer's step."""
        if state.final_gradients is not None:
            return state.final_gradients
        return state.gradients if state.gradients is not None else self.gradient_bytes * state.gradient_share

    def _peak(self, candidate: Candidate, b: int, s: int, state: RankState, moment: str, runner_up: str) -> Peak:
        arriving, activations, logits, workspace = (float(_value(part, b, s)) for part in candidate.parts)
        if candidate is self.end:
            gradients = self._final_gradients(state)
            workspace += state.temporaries
        else:
            gradients = candidate.gradients * state.gradient_share if state.gradients is None else state.gradients
            gradients += state.accumulated + arriving
            if state.other_micro_batches:
                stacked = self._stacked(s, state)
                activations += stacked[0] + stacked[1] * b
            workspace += state.gathered + (state.gathered_backward if candidate.moment != "forward" else 0.0)
        total = state.weights + gradients + state.optimizer + activations + logits + workspace
        return Peak(total, moment, runner_up, state.weights, gradients, state.optimizer, activations, logits, workspace)


Line = tuple[float, float, Candidate]
"""Intercept, slope and what lies on it."""
MomentLines = tuple[str, tuple[Line, ...]]
_SLOPE_FIRST = itemgetter(1, 0)


T = TypeVar("T")


def upper_lines(lines: list[tuple[float, float, T]]) -> tuple[tuple[float, float, T], ...]:
    """Keep the lines that are above all others somewhere from 1 on (the upper envelope)."""
    steepest: list[tuple[float, float, T]] = []
    top = -1.0
    ordered = sorted(lines, key=_SLOPE_FIRST)
    for line in reversed(ordered):
        # What is no steeper must be above at 1.
        if line[0] + line[1] > top:
            top = line[0] + line[1]
            steepest.append(line)
    hull: list[tuple[float, float, T]] = []
    for line in reversed(steepest):
        while len(hull) > 1 and _covers(hull, line):
            hull.pop()
        hull.append(line)
    return tuple(hull)


def _covers(hull: list[tuple[float, float, T]], line: tuple[float, float, T]) -> bool:
    """Whether `line`, steeper and lower at 1 than any, leaves the last of the hull nowhere above."""
    before, last = hull[-2:]
    # `last` is above `before` only after they cross; `line` must be above it before that.
    return (last[0] - line[0]) * (last[1] - before[1]) <= (before[0] - last[0]) * (line[1] - last[1])


def _at_length(polynomial: Polynomial, s: int) -> tuple[float, float]:
    c0, cb, cs, cbs, css, cbss = polynomial
    return float(c0 + s * (cs + css * s)), float(cb + s * (cbs + cbss * s))


def _value(polynomial: Polynomial, b: int, s: int) -> int:
    c0, cb, cs, cbs, css, cbss = polynomial
    return c0 + cb * b + s * (cs + cbs * b + s * (css + cbss * b))
