"""Whether a server keeps up with the requests that come, and whether their waits stay within the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ranges import Range
from ..record import dataclass, replace
from ..scenario import Scenario
from ..units import digits, format_duration
from .result import LoadVerdict, Note, Percentiles, ServedLoad

WAITS = {
    "compute": "reading its own prompt",
    "queue": "the prompts of others",
    "max_num_seqs": "a place among the sequences of the batch",
    "pool": "room in the cache",
}
"""What slow first tokens wait for."""


@dataclass(frozen=True, slots=True)
class Target:
    """What 95 % of requests may wait."""

    name: str
    code: str
    what: str
    seconds: float
    of: Callable[[ServedLoad], Percentiles]


def targets_of(scenario: Scenario) -> Iterator[Target]:
    """The targets that were given."""
    if scenario.ttft_seconds is not None:
        yield Target("--ttft", "ttft-missed", "the first token", scenario.ttft_seconds, lambda load: load.ttft_seconds)
    if scenario.tpot_seconds is not None:
        yield Target("--tpot", "tpot-missed", "a token", scenario.tpot_seconds, lambda load: load.tpot_seconds)


def is_followed(scenario: Scenario) -> bool:
    """Whether a verdict follows the load: at a rate, or where there are targets."""
    return bool(scenario.rate) or next(targets_of(scenario), None) is not None


def load_verdict(
    scenario: Scenario, under_load: Callable[[], ServedLoad] | None
) -> tuple[LoadVerdict, tuple[Note, ...]]:
    """Judge a load by its expected figures, with reasons; `tight` where only the pessimistic end misses."""
    targets = list(targets_of(scenario))
    if under_load is None or not is_followed(scenario):
        return "not_asked", ()
    load = under_load()
    missed = [target for target in targets if (p95 := target.of(load).p95) is None or p95.expected > target.seconds]
    notes = tuple(_missed(scenario, target, load) for target in missed)
    if not load.is_stable and scenario.requests is None:
        return "overloaded", (_overloaded(scenario, load), *(note for note in notes if note.code == "tpot-missed"))
    if missed:
        return "missed", notes
    waits = ((target, target.of(load).p95) for target in targets)
    risky = [_risky(target, load) for target, p95 in waits if p95 and p95.shown.high > target.seconds]
    if _may_pile_up(scenario, load):
        risky.insert(0, _overloaded(scenario, load, slow=True))
    return ("tight", tuple(risky)) if risky else ("ok", ())


def _may_pile_up(scenario: Scenario, load: ServedLoad) -> bool:
    """Whether at the low end of its speed the server finishes fewer requests than come."""
    return scenario.requests is None and load.largest_requests_per_second.low < (scenario.rate or 0.0)


def _overloaded(scenario: Scenario, load: ServedLoad, *, slow: bool = False) -> Note:
    """Say that requests pile up, or that they may where the server is as slow as it may be."""
    most = load.largest_requests_per_second
    text = f"{digits(scenario.rate or 0.0)} requests come each second, {digits(most.expected)} can be finished"
    if slow:
        return Note("overload-tight", f"{text}, at worst {digits(most.low)}: they may pile up")
    return Note("overloaded", f"{text}: they pile up, waiting for {WAITS[load.bound_by]}")


def _missed(scenario: Scenario, target: Target, load: ServedLoad) -> Note:
    """Say by how much a target is missed, and what is possible at best: the wait of a request that is alone."""
    found = target.of(load).p95
    after = "ever later" if found is None else f"after {format_duration(found.expected)}"
    text = f"95 % of requests get {target.what} {after}, past the {format_duration(target.seconds)} of {target.name}"
    best = _best(scenario, target)
    if best.expected > target.seconds:
        slow = "reading the prompt" if target.code == "ttft-missed" else "one step of decoding"
        return Note(target.code, f"{text}; even alone a request takes {format_duration(best.expected)}, for {slow}")
    waits = f", waiting for {WAITS[load.bound_by]}" if target.code == "ttft-missed" else ""
    return Note(target.code, f"{text}{waits}; alone it takes {format_duration(best.expected)}")


def _best(scenario: Scenario, target: Target) -> Range:
    from .served_load import served_load

    alone = served_load(replace(scenario, rate=None, requests=None, concurrency=1))
    found = target.of(alone).p95
    assert found is not None
    return found.shown


def _risky(target: Target, load: ServedLoad) -> Note:
    found = target.of(load).p95
    assert found is not None
    text = f"95 % of requests get {target.what} within {format_duration(found.expected)}"
    allowed = f"of the {format_duration(target.seconds)} of {target.name}"
    if found.high is None:
        text += f", {allowed}; at worst requests come faster than they are finished, and wait ever longer"
    else:
        text += f", at worst {format_duration(found.high)}, {allowed}"
    return Note(f"{target.code.removesuffix('-missed')}-tight", text)
