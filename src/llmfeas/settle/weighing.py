"""Which of many layouts is taken: those that fit are weighed by their speed, as few as can come out best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario
from .draft import Draft
from .variants import cut_stages, spread_experts

WORTH_SPLITTING = 0.97
"""A layout that splits less is taken where it has this share of the speed of the fastest."""

WORTH_ROOM = 0.9
"""A layout that surely fits is taken instead of a tight one where it has this share of its speed."""


@dataclass(frozen=True, slots=True)
class Judge:
    """What layouts are chosen by: whether the engine is after speed, bytes of the peak and of its quick floor, what is
    usable, tokens a second, and tokens a second that it has at most, which are known more quickly.
    """

    fastest: bool
    peak_bytes: Callable[[Scenario], Range]
    floor_bytes: Callable[[Scenario], float]
    usable_bytes: float
    tokens_per_second: Callable[[Scenario], float]
    at_most: Callable[[Scenario], float]

    def hopeless(self, candidate: Scenario) -> bool:
        """Whether not even weights and states fit."""
        return self.floor_bytes(candidate) > self.usable_bytes


class Weighing:
    """Layouts of one job that fit, and the expected peaks of all that were tried."""

    def __init__(self, draft: Draft, judge: Judge) -> None:
        """Of a job whose draft says what is open."""
        self.peaks: dict[float, Scenario] = {}
        self._draft, self._judge = draft, judge
        self._fitting: list[tuple[Scenario, bool]] = []
        self._worth = 0.0

    def weigh(self, laid_out: Sequence[Scenario]) -> bool:
        """Take in those of these layouts that fit; whether one does: all where speed is searched for, else the first.

        Only those are tried that can still be chosen by what they reach at most.
        """
        # A quantized base is divided only where it must be: few programs can.
        several = len({each.zero for each in laid_out}) > 1 and laid_out[0].method != "qlora"
        searches = (self._judge.fastest and laid_out[0].zero < 3) or several
        found = list(self._found(laid_out, searches=searches))
        if not searches:
            found = [next((each for each in found if each[2]), found[0])] if found else []
        self._fitting += [(candidate, sure) for _, candidate, sure in sorted(found, key=lambda each: each[0])]
        return bool(found)

    def _found(self, laid_out: Sequence[Scenario], *, searches: bool) -> Iterator[tuple[int, Scenario, bool]]:
        """Yield number, layout and whether it surely does of those that fit, the fastest first where all are asked."""
        bounds = [self._reached(each) for each in laid_out] if searches or self._worth else [0.0] * len(laid_out)
        order = range(len(laid_out))
        for number in sorted(order, key=lambda each: -bounds[each]) if searches else order:
            if bounds[number] < self._worth:
                continue
            for candidate, sure in self.fitting(laid_out[number]):
                yield number, candidate, sure
                if searches or self._draft.values["task"] == "pretrain":
                    share = WORTH_SPLITTING if sure else WORTH_ROOM
                    self._worth = max(self._worth, share * self._judge.tokens_per_second(candidate))
                if sure and not searches:
                    return

    def _reached(self, candidate: Scenario) -> float:
        return max(map(self._judge.at_most, spread_experts(candidate, self._draft)))

    def fitting(self, candidate: Scenario) -> Iterator[tuple[Scenario, bool]]:
        """Yield the fastest variant of a layout that fits, and where that is not sure the fastest that surely does."""
        judge, least = self._judge, least_variant(candidate, self._draft)
        if judge.hopeless(least):
            return
        peak = judge.peak_bytes(least)
        self.peaks.setdefault(peak.expected, least)
        if peak.expected > judge.usable_bytes:
            return
        tight = False
        for spread in sorted(spread_experts(candidate, self._draft), key=judge.at_most, reverse=True):
            if judge.hopeless(spread):
                continue
            for each in cut_stages(spread, self._draft):
                peak = judge.peak_bytes(each)
                if peak.high <= judge.usable_bytes:
                    yield each, True
                    return
                if peak.expected <= judge.usable_bytes and not tight:
                    tight = True
                    yield each, False

    def chosen(self) -> Scenario | None:
        """The least split of the fastest ones of those that fit; None where none does."""
        fitting = self._fitting
        if len(fitting) <= 1:
            return fitting[0][0] if fitting else None
        speeds = [self._judge.tokens_per_second(candidate) for candidate, _ in fitting]
        fast = WORTH_SPLITTING * max(speeds)
        ranked = list(zip(fitting, speeds, strict=True))
        (best, sure), speed = next(one for one in ranked if one[1] >= fast)
        roomy = [one for one in ranked if one[0][1]]
        if sure or not roomy:
            return best
        slowest = max(WORTH_ROOM * speed, WORTH_SPLITTING * max(one[1] for one in roomy))
        return next((candidate for (candidate, _), reached in roomy if reached >= slowest), best)


def least_variant(candidate: Scenario, draft: Draft) -> Scenario:
    """The variant of a layout that takes least memory: experts over the most devices, stages in the fewest chunks."""
    *_, fewest = cut_stages(next(spread_experts(candidate, draft)), draft)
    return fewest
