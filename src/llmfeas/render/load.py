"""What a report says of a server under load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..units import digits, format_duration
from .report import Phrase, Topic, glued
from .words import figure, rate

Json = Mapping[str, Any]

WAITS: Mapping[str, str] = {
    "compute": "their own prompt",
    "queue": "the prompts of others",
    "max_num_seqs": "a place in the batch",
    "pool": "room in the cache",
}


def load_topics(inputs: Json, result: Json) -> list[Topic]:
    """First token, time per token, throughput and what waits, where several requests or targets were asked for."""
    load = result.get("load")
    if not load:
        return []
    lines = [*_waits(inputs, load), _throughput(load), _room(inputs, load)]
    return [Topic(label="Load", paragraphs=tuple((Phrase(line),) for line in lines), apart=False)]


def _waits(inputs: Json, load: Json) -> Iterator[str]:
    for name, what, key in (("ttft", "first token", "ttft_seconds"), ("tpot", "each token", "tpot_seconds")):
        half, most = load[key]["p50"], load[key]["p95"]
        if half is None or most is None:
            yield f"{what} ever later: requests come faster than they are finished"
            continue
        speed = (
            glued(f", {digits(1 / half['expected'])} tokens/s for a user")
            if name == "tpot" and half["expected"]
            else ""
        )
        yield (
            f"{what} after {figure(half, format_duration)}, 19 of 20 within {figure(most, format_duration)}"
            f"{speed}{_target(inputs, name, most)}"
        )


def _target(inputs: Json, name: str, most: Json) -> str:
    target = inputs.get(name, {}).get("value")
    if target is None:
        return ""
    kept = "met" if most["expected"] <= target else "missed"
    return glued(f"; target of {format_duration(target)} {kept}")


def _throughput(load: Json) -> str:
    requests = glued(f"{figure(load['requests_per_second'], digits)} requests/s")
    return f"writes {rate(load['output_tokens_per_second'])} for all, finishes {requests}"


def _room(inputs: Json, load: Json) -> str:
    waiting = load["waiting"]
    queue = "more and more wait" if waiting is None else _count(waiting["expected"])
    most = glued(f"{digits(load['largest_requests_per_second']['expected'])} requests/s")
    return (
        f"{digits(load['running']['expected'])} at once, {queue}; at most {most}; "
        f"slow first tokens wait for {WAITS[load['bound_by']]}"
    )


def _count(waiting: float) -> str:
    return "none waits" if waiting < 0.05 else f"{digits(waiting)} wait"
