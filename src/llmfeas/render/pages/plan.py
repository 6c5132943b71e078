"""The report of a plan: how the request stands, then each way to yes with what it costs and gives up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...options import flag_of
from ...text import printable
from ...units import format_bytes, format_duration, format_usd
from ..report import Json, Pair, Phrase, Report, Topic, lines_of
from ..words import amounts, flags, judged, sentence, verdict_words


def report(envelope: Json, model: str, device: str) -> Report:
    """The plans of an envelope under the names of model and device."""
    result = envelope["result"]
    asked = result["asked"]
    blocks: list[Topic] = []
    said = asked["verdict"]["reasons"]
    telling = [reason for reason in said if reason["code"] != "memory-fits"] or said
    if telling:
        reasons = lines_of(sentence(reason["message"]) for reason in telling)
        blocks.append(Topic(label="As asked", paragraphs=reasons))
    plans = result["plans"]
    if plans and plans[0]["changes"]:
        blocks += _ways(plans)
    elif plans:
        sure = asked["verdict"]["status"] == "feasible"
        text = "Nothing has to change" if sure else "No change that llmfeas knows makes it sure"
        blocks.append(Topic(label="Plan", paragraphs=((Phrase(f"{text}: {amounts(plans[0])}."),),)))
    elif result["nearest"]:
        blocks.append(_nearest(result["nearest"]))
    if envelope["warnings"]:
        notes = lines_of((sentence(warning["message"]) for warning in envelope["warnings"]), "tight")
        blocks.append(Topic(label="Note", paragraphs=notes))
    return Report(
        title=f"Plan for {printable(model, 80)} on {printable(device, 80)}",
        verdict=verdict_words(asked["verdict"]),
        blocks=tuple(blocks),
    )


def _ways(plans: Sequence[Json]) -> list[Topic]:
    first, *rest = plans
    return [
        Topic(label="Change", pairs=(_pair(first),)),
        *([Topic(label="Or", pairs=tuple(_pair(plan) for plan in rest))] if rest else []),
    ]


def _pair(plan: Json) -> Pair:
    tight = " (tight)" if plan["status"] == "tight" else ""
    price = Phrase(f" {amounts(plan)}{tight}")
    return Pair(
        flags(plan["changes"]), (judged(plan["status"]), price, Phrase(f": {printable(plan['message'], 400)}", "dim"))
    )


def _nearest(nearest: Json) -> Topic:
    return Topic(label="Nearest", paragraphs=lines_of(_misses(nearest)))


def _misses(nearest: Json) -> Iterator[str]:
    if nearest["emptied_by"]:
        kept = ", ".join(flag_of(name) for name in nearest["emptied_by"])
        yield f"There is nothing left to change: --keep holds {kept}."
    else:
        yield "No change that llmfeas knows makes it work."
    written = {"missing_bytes": format_bytes, "missing_seconds": format_duration, "missing_usd": format_usd}
    missing = [write(nearest[key]) for key, write in written.items() if nearest[key]]
    by = f", which misses by {' and '.join(missing)}" if missing else ""
    yield f"The nearest is {flags(nearest['changes']) or 'what was asked'}{by}."
    if nearest["changes"]:
        yield from (sentence(reason) for reason in nearest["reasons"])
