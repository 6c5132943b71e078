"""What a report says of a server under load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...units import digits, format_duration
from ..report import Json, Topic, glued, lines_of
from ..words import figure, rate

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
    lines = [*_waits(inputs, load), _throughput(load), _room(load)]
    return [Topic(label="Load", paragraphs=lines_of(lines), apart=False)]


def _waits(inputs: Json, load: Json) -> Iterator[str]:
    said = any(inputs.get(name, {}).get("origin") == "given" for name in ("prompt", "output", "images"))
    if not said and "prompt_tokens" in load:
        yield f"prompts of {load['prompt_tokens']} and answers of {load['answer_tokens']} tokens, as in a short chat"
    for name, what, key in (("ttft", "first token", "ttft_seconds"), ("tpot", "each token", "tpot_seconds")):
        half, most = load[key]["p50"], load[key]["p95"]
        if half is None or most is None:
            yield f"{what} ever later: requests come faster than they are finished"
            continue
        speed = (
            f", {glued(digits(1 / half['expected']) + ' tokens/s for a user')}"
            if name == "tpot" and half["expected"]
            else ""
        )
        yield (
            f"{what} after {_wait(half)}, {glued(f'19 of 20 within {_wait(most)}')}{speed}{_target(inputs, name, most)}"
        )


def _wait(found: Json) -> str:
    """A RANGE of waits, whose high end may stand for none."""
    if found["high"] is not None:
        return figure(found, format_duration)
    return glued(f"{format_duration(found['expected'])} (from {format_duration(found['low'])}, no end)")


def _target(inputs: Json, name: str, most: Json) -> str:
    target = inputs.get(name, {}).get("value")
    if target is None:
        return ""
    kept = "met" if most["expected"] <= target else "missed"
    return f"; {glued(f'target of {format_duration(target)} {kept}')}"


def _throughput(load: Json) -> str:
    requests = glued(f"{figure(load['requests_per_second'], digits)} requests/s")
    first = load["ttft_seconds"]["p95"]
    slow = "; no end: as slow as that, requests come faster" if first is not None and first["high"] is None else ""
    return f"writes {rate(load['output_tokens_per_second'])} for all, finishes {requests}{slow}"


def _room(load: Json) -> str:
    waiting = load["waiting"]
    queue = "more and more wait" if waiting is None else _count(waiting["expected"], load["bound_by"])
    most = glued(f"{digits(load['largest_requests_per_second']['expected'])} requests/s")
    return (
        f"{digits(load['running']['expected'])} at once, {queue}; at most {most}; "
        f"slow first tokens wait for {WAITS[load['bound_by']]}"
    )


def _count(waiting: float, bound: str) -> str:
    """How many wait to be let in; the slowest may have waited for that where on average nobody does."""
    if waiting >= 0.05:
        return f"{digits(waiting)} wait"
    return "few ever wait" if bound in ("max_num_seqs", "pool") else "none waits"
