"""The verdict: memory, time, budget and software, each with reasons that a hobbyist understands."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from ..catalog.backend import Status as Software
from ..memory.peak import CountedMemory, Memory, on_machine_bytes
from ..memory.serving_room import AtOnce, ServingRoom
from ..memory.usable import pool_bytes
from ..ranges import Range
from ..scenario import Scenario
from ..units import digits, format_bytes, format_duration, format_usd
from ..workload.serving import replicas, sequences_of
from .result import LoadVerdict, Note, Status, Verdict

IMPRACTICAL_SECONDS = 3 * 365 * 86400.0
"""Without a deadline, training longer than this is called impractical."""

MemoryStatus = Literal["fits", "tight", "exceeds"]
SOFTWARE_ORDER: tuple[Software, ...] = ("supported", "limited", "unsupported")
"""The best first."""


def memory_reason(scenario: Scenario, memory: Memory, serving: ServingRoom | None = None) -> Note:
    """Say how the peak compares with what is usable, and where a server starts how many requests it takes at once."""
    peak = memory.peak_bytes
    usable = _usable(memory.usable_bytes)
    device = memory.device or scenario.device.name
    if memory.verdict == "fits":
        return Note("memory-fits", f"needs {format_bytes(peak.expected)} of the {usable} usable on {device}")
    if serving is not None and serving.starts:
        return _cache_reason(scenario, memory, serving.together)
    if memory.verdict == "tight":
        return Note(
            "memory-tight",
            f"needs {format_bytes(peak.expected)}, at worst {format_bytes(peak.high)}, of the {usable} usable "
            f"on {device}: it may run out",
        )
    missing = format_bytes(peak.expected - memory.usable_bytes)
    return Note(
        "memory-exceeds",
        f"needs {format_bytes(peak.expected)}, {missing} more than the {usable} usable on {device}",
    )


def _cache_reason(scenario: Scenario, memory: Memory, together: AtOnce) -> Note:
    """Say for how many of the requests a server has room: more of them wait, and none runs out."""
    copies, most = replicas(scenario), sequences_of(scenario)
    where = "the cache" if copies == 1 else f"the cache of each of the {copies} copies of the model"
    whole = together.tokens >= (scenario.context or 1)
    each = f"of {together.tokens} tokens" if whole else f"which hold {together.tokens} tokens on average as they write"
    expected, low = (min(most, int(value)) for value in (together.at_once.expected, together.at_once.low))
    if memory.verdict == "tight":
        text = f"{where} has room for all {most} requests at once, at worst for {min(low, most - 1)}"
        return Note("memory-tight", f"{text}, {each}" if not whole else f"{text}, {each} each")
    room = f"{min(expected, most - 1)} of {most} requests"
    text = f"{room} {each} at once" if whole else f"{room} at once, {each}"
    return Note("memory-exceeds", f"{where} has room for {text}")


@lru_cache(maxsize=1024)
def _usable(usable_bytes: float) -> str:
    return format_bytes(usable_bytes)


def host_exceeds(scenario: Scenario, memory: Memory) -> Note | None:
    """Say when what was moved to the host does not fit there; bytes are per device, memory per machine."""
    on_machine = on_machine_bytes(scenario, memory)
    together = memory.peak_bytes.expected + on_machine
    if on_machine and scenario.device.is_unified and together > pool_bytes(scenario):
        text = f"device and processor would hold {format_bytes(together)} of one memory of "
        return Note("host-memory-exceeds", text + format_bytes(scenario.memory_bytes))
    if on_machine <= scenario.host_memory_bytes:
        return None
    return Note(
        "host-memory-exceeds",
        f"the host would hold {format_bytes(on_machine)} of its {format_bytes(scenario.host_memory_bytes)} "
        "(--host-memory says what it really has)",
    )


def memory_status(counted: CountedMemory, host: Note | None) -> MemoryStatus:
    """What device and host say together, of which `host` is where that holds less than is needed."""
    if host is not None or counted.refuses is not None:
        return "exceeds"
    memory, doubt = counted.memory, None if counted.serving is None else counted.serving.doubt
    return "tight" if doubt is not None and memory.verdict == "fits" else memory.verdict


def time_verdict(scenario: Scenario, total_seconds: Range | None) -> tuple[str, list[Note]]:
    """Compare the expected time with the deadline, or with three years where none is given."""
    if total_seconds is None:
        return "not_asked", []
    expected = total_seconds.expected
    deadline = scenario.deadline_seconds
    notes = []
    weekly = scenario.weekly_hours
    if weekly is not None and expected / 3600 > weekly:
        weeks = expected / 3600 / weekly
        notes.append(Note("weekly-hours", f"takes {digits(weeks)} weeks of the {weekly:g} free hours a week"))
    if deadline is not None:
        if expected > deadline:
            text = f"takes {format_duration(expected)}, past the deadline of {format_duration(deadline)}"
            return "over_deadline", [Note("over-deadline", text), *notes]
        return "ok", notes
    if expected > IMPRACTICAL_SECONDS:
        return "impractical", [Note("impractical", f"would take {format_duration(expected)}, more than 3 years")]
    return "not_asked", notes


def is_late(scenario: Scenario, total_seconds: Range | None) -> bool:
    """Whether a job takes too long to be feasible."""
    return time_verdict(scenario, total_seconds)[0] in ("over_deadline", "impractical")


def budget_verdict(scenario: Scenario, usd: Range | None) -> tuple[str, list[Note]]:
    """Compare the expected cost with the budget."""
    if scenario.budget_usd is None or not scenario.tokens:
        return "not_asked", []
    if usd is None:
        text = "no price is known for this device, so the budget could not be checked (--price gives one)"
        return "not_asked", [Note("no-price", text)]
    if usd.expected > scenario.budget_usd:
        text = f"costs {format_usd(usd.expected)}, over the budget of {format_usd(scenario.budget_usd)}"
        return "over_budget", [Note("over-budget", text)]
    return "ok", []


def worst_software(statuses: Iterable[Software]) -> Software:
    """The worst of several support levels, `supported` for none."""
    return max(statuses, key=SOFTWARE_ORDER.index, default="supported")


def verdict(
    scenario: Scenario,
    counted: CountedMemory,
    total_seconds: Range | None,
    usd: Range | None,
    software: Software,
    software_reasons: Iterable[Note],
    load: tuple[LoadVerdict, tuple[Note, ...]] = ("not_asked", ()),
) -> Verdict:
    """Join the five judgements; the worst wins: unsupported > infeasible > tight > feasible."""
    time, time_reasons = time_verdict(scenario, total_seconds)
    budget, budget_reasons = budget_verdict(scenario, usd)
    memory, serving = counted.memory, counted.serving
    host = host_exceeds(scenario, memory)
    held = memory_status(counted, host)
    refusal, doubt = counted.refuses, None if serving is None else serving.doubt
    told = refusal or memory_reason(scenario, memory, serving)
    reasons = [*software_reasons, told, *([doubt] if doubt and not refusal else []), *([host] if host else [])]
    return Verdict(
        status=_status(software, held, time, budget, load[0]),
        memory=held,
        time=time,  # type: ignore[arg-type]
        budget=budget,  # type: ignore[arg-type]
        software=software,
        load=load[0],
        reasons=(*reasons, *time_reasons, *budget_reasons, *load[1]),
    )


def _status(software: Software, *judgements: str) -> Status:
    """The worst of all judgements."""
    if software == "unsupported":
        return "unsupported"
    if {"exceeds", "over_deadline", "impractical", "over_budget", "missed", "overloaded"}.intersection(judgements):
        return "infeasible"
    return "tight" if "tight" in judgements else "feasible"


HARMLESS = ("memory-fits", "software-limited", "weekly-hours")
"""Reasons that never stand against a request."""


def is_doubt(code: str) -> bool:
    """Whether a reason makes a request tight, and says nothing where something is worse."""
    return code.endswith("-tight") or code in ("server-cramped", "server-release")


def why(verdict: Verdict) -> str:
    """Say what makes the verdict what it is: a doubt is no reason where something is worse."""
    refused = verdict.status in ("infeasible", "unsupported")
    telling = [
        reason.message
        for reason in verdict.reasons
        if reason.code not in HARMLESS and not (refused and is_doubt(reason.code))
    ]
    return "; ".join(telling or [reason.message for reason in verdict.reasons])
