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
    usable, tokens a second, and, which are known more quickly, those of the usual micro-batch in steps without end and
    those that no micro-batch beats.
    """

    fastest: bool
    peak_bytes: Callable[[Scenario], Range]
    floor_bytes: Callable[[Scenario], float]
    usable_bytes: float
    tokens_per_second: Callable[[Scenario], float]
    usual: Callable[[Scenario], float]
    ceiling: Callable[[Scenario], float]

    def hopeless(self, candidate: Scenario) -> bool:
        """Whether not even weights and states fit."""
        return self.floor_bytes(candidate) > self.usable_bytes


Hopeful = tuple[Scenario, Scenario]
"""A layout, and the variant of it that takes least memory."""


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
        found = list(self._found(self.hopeful(laid_out), searches=searches))
        if not searches:
            found = [next((each for each in found if each[2]), found[0])] if found else []
        self._fitting += [(candidate, sure) for _, candidate, sure in sorted(found, key=lambda each: each[0])]
        return bool(found)

    def hopeful(self, laid_out: Sequence[Scenario]) -> list[Hopeful]:
        """Those of these layouts whose weights and states fit at least."""
        both = ((candidate, least_variant(candidate, self._draft)) for candidate in laid_out)
        return [(candidate, least) for candidate, least in both if not self._judge.hopeless(least)]

    def _found(self, hopeful: Sequence[Hopeful], *, searches: bool) -> Iterator[tuple[int, Scenario, bool]]:
        """Yield number, layout and whether it surely does of those that fit, the fastest first where all are asked."""
        order, bounds = range(len(hopeful)), [0.0] * len(hopeful)
        spread: list[list[Scenario]] = [[] for _ in order]
        if searches or self._worth:
            judged = [self._fastest_first(candidate) for candidate, _ in hopeful]
            bounds, spread = [each[0][0] for each in judged], [[one for _, one in each] for each in judged]
        for number in sorted(order, key=lambda each: -bounds[each]) if searches else order:
            if bounds[number] < self._worth or self._is_slow(spread[number]):
                continue
            for candidate, sure in self.fitting(hopeful[number], spread[number]):
                yield number, candidate, sure
                if searches or self._draft.values["task"] == "pretrain":
                    share = WORTH_SPLITTING if sure else WORTH_ROOM
                    self._worth = max(self._worth, share * self._judge.tokens_per_second(candidate))
                if sure and not searches:
                    return

    def _is_slow(self, spread: Sequence[Scenario]) -> bool:
        """Whether no way to share its experts makes a layout as fast as it has to be."""
        slow = (self._judge.ceiling(each) < self._worth for each in spread)
        return bool(spread) and self._worth > 0 and all(slow)

    def _fastest_first(self, candidate: Scenario) -> list[tuple[float, Scenario]]:
        """The ways to share the experts of a layout with the speed that each reaches with the usual micro-batch."""
        spread = [(self._judge.usual(each), each) for each in spread_experts(candidate, self._draft)]
        return sorted(spread, key=lambda one: -one[0])

    def fitting(self, hopeful: Hopeful, spread: Sequence[Scenario] = ()) -> Iterator[tuple[Scenario, bool]]:
        """Yield the fastest variant of a layout that fits, and where that is not sure the fastest that surely does.

        `spread`: the ways to share its experts, the fastest first, where they are known.
        """
        judge, (candidate, least) = self._judge, hopeful
        peak = judge.peak_bytes(least)
        self.peaks.setdefault(peak.expected, least)
        if peak.expected > judge.usable_bytes:
            return
        ways, tight = list(spread or spread_experts(candidate, self._draft)), False
        if len(ways) > 1 and not spread:
            ways.sort(key=judge.usual, reverse=True)
        for each in ways:
            if judge.hopeless(each):
                continue
            for cut in cut_stages(each, self._draft):
                peak = judge.peak_bytes(cut)
                if peak.high <= judge.usable_bytes:
                    yield cut, True
                    return
                if peak.expected <= judge.usable_bytes and not tight:
                    tight = True
                    yield cut, False

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
