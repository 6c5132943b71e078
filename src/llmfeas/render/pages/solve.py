"""The report of an inverse question: the answer, what holds there, what breaks one step beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...feasibility.verdict import is_doubt
from ...text import printable
from ...units import MIB, digits, format_bytes, format_count, format_duration, format_flop, format_usd, separated
from ..assumptions import context
from ..report import Column, Json, Pair, Phrase, Report, Table, Topic, glued, lines_of
from ..words import figure, grouped, judged, sentence, setting, verdict_words, ways_topic
from .estimate import reads

TITLES: Mapping[str, str] = {
    "max-model": "The largest model",
    "max-batch": "The largest batch",
    "max-users": "The most users",
    "max-rate": "The most requests a second",
    "max-context": "The longest context",
    "max-rank": "The largest rank",
    "min-devices": "The fewest devices",
    "min-memory": "The least memory",
    "tokens": "Tokens in the time or for the money",
    "deadline": "The time it takes",
    "optimal": "The compute-optimal size",
    "cheapest": "The cheapest hardware",
}

NAMES: Mapping[str, str] = {
    "num_devices": "devices",
    "micro_batch": "sequences at once",
    "concurrency": "requests at once",
    "rate": "requests a second",
    "seq_len": "tokens in a sequence",
    "context": "tokens of context",
    "room": "memory has room for",
    "lora_rank": "rank",
    "model_flop": "FLOP of the model",
    "hardware_flop": "FLOP of the hardware",
    "tokens_by_rule_of_thumb": "tokens by 6·N·D",
    "flop": "FLOP, 6·N·D",
    "seconds": "time",
    "best": "best (Chinchilla)",
    "rule_of_20": "by the rule of 20",
    "nearest_model": "nearest model",
    "binds": "what binds",
    "limited": "within that",
}
"""What the parts of an answer are called, where that is not their name."""

WAYS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "tokens": ("To make it work", lambda count: f"{format_count(count)} tokens"),
    "deadline": ("To make it work", format_duration),
    "max-model": ("For a larger one", lambda count: f"{format_count(count)} parameters"),
    "min-devices": ("For fewer", lambda count: f"{count:.0f} device{'s' if count > 1 else ''}"),
}
"""Over what stands what an answer is with another recipe, and how that is written."""

ENDLESS: Mapping[str, str] = {"tokens": "more tokens"}
"""Where a step is as small as one likes, so that its figure would read like that of the answer."""

PER: Mapping[str, str] = {"job": "", "million tokens": " a million tokens", "hour": " an hour"}

LEFT_OUT = ("low", "high", "of", "models", "hoffmann")


def report(envelope: Json, device: str) -> Report:
    """The answer of an envelope; `device` is the name of the one that it was found on."""
    result = envelope["result"]
    answer = result["answer"]
    blocks: list[Topic | Table] = [_answer(answer)]
    blocks += _tables(answer)
    if result["at"] is not None:
        blocks.append(_there(result["at"], device))
    label, write = WAYS.get(result["question"], WAYS["tokens"])
    if ways := ways_topic(label, result.get("ways") or (), lambda way: glued(write(way["answer"]))):
        blocks.append(ways)
    if result["beyond"]:
        blocks.append(Topic(label="Beyond", paragraphs=((Phrase(_beyond(result["beyond"])),),)))
    notes = [*result["notes"], *(warning["message"] for warning in envelope["warnings"])]
    if notes:
        blocks.append(Topic(label="Note", paragraphs=lines_of(map(sentence, notes))))
    return Report(title=TITLES[result["question"]], blocks=tuple(blocks))


def _answer(answer: Json) -> Topic:
    """The cheapest in one sentence, other answers by their parts."""
    if not answer.get("ranked"):
        return Topic(label="Answer", pairs=tuple(_pairs(_within(answer))))
    per = PER[answer["usd_per"]]
    money = f"{format_usd(answer['usd'])}{per}" if answer["usd"] else "free"
    time = "" if answer["seconds"] is None else f", {glued(format_duration(answer['seconds']))}"
    device = printable(answer["device"], 60)
    what = device if answer["copies"] == 1 else f"{answer['copies']} x {device}"
    text = (Phrase(what, "figure"), Phrase(f" at {printable(answer['provider'], 40)}: {glued(money)}{time}."))
    return Topic(label="Answer", paragraphs=(text,))


def _within(answer: Json) -> Json:
    """The context that a model was made for, before a longer one that memory has room for."""
    if "model_context" not in answer:
        return answer
    (name, length), *_ = answer.items()
    return {name: answer["model_context"], "room": length}


def _pairs(answer: Json) -> Iterator[Pair]:
    for number, (name, value) in enumerate(answer.items()):
        if name in LEFT_OUT or (value is None and number):
            continue
        text = "none works" if value is None else _written(name, value, answer)
        yield Pair(NAMES.get(name, name.replace("_", " ")), (Phrase(text, "figure" if number == 0 else "plain"),))


def _written(name: str, value: Any, answer: Json) -> str:
    """A figure of an answer in the unit that its name says."""
    if name == "layout":
        value = {key: size for key, size in value.items() if key == "dp" or size > 1} or value
    if isinstance(value, Mapping) and "tokens_per_parameter" in value:
        size, tokens = (glued(f"{format_count(value[key])} {key}") for key in ("parameters", "tokens"))
        return f"{size} on {tokens} ({digits(value['tokens_per_parameter'])} a parameter)"
    if isinstance(value, Mapping):
        parts = (f"{key.replace('_', ' ')} {_written(key, inner, value)}" for key, inner in value.items())
        return ", ".join(glued(part) for part in parts)
    if name == "memory" and isinstance(value, int | float):
        return f"{format_bytes(value)} ({value / MIB:.0f} MiB)"
    if name == "seconds" and "low" in answer:
        return figure({"low": answer["low"], "expected": value, "high": answer["high"]}, format_duration)
    if name == "works":
        return f"{value} of {answer['of']} models"
    return _quantity(name, value)


def _quantity(name: str, value: Any) -> str:
    if isinstance(value, str):
        return printable(value, 80)
    written = {
        "seconds": format_duration,
        "deadline": format_duration,
        "parameters": format_count,
        "tokens": format_count,
        "tokens_by_rule_of_thumb": format_count,
    }.get(name, format_flop if name.endswith("flop") else None)
    if written is not None:
        return written(value)
    return separated(setting(name, value) if isinstance(value, int) else digits(float(value)))


def _tables(answer: Json) -> Iterator[Table]:
    if answer.get("models"):
        yield _models(answer["models"])
    if answer.get("ranked"):
        yield _bids(answer["ranked"])


def _models(models: Sequence[Json]) -> Table:
    """Models that work, the largest first; time where they are trained, else speed."""
    timed = models[0]["total_seconds"] is not None
    columns = (
        Column(title="Model"),
        Column(title="Parameters", figures=True),
        Column(title="Format", spare=True),
        Column(title="Memory", figures=True, spare=True),
        Column(title="Time" if timed else "Tokens/s", figures=True, spare=True),
    )
    return Table(columns=columns, rows=tuple(_model(model) for model in models))


def _model(model: Json) -> tuple[Phrase, ...]:
    total = model["total_seconds"]
    return (
        judged(model["status"], printable(model["model"], 60)),
        Phrase(glued(format_count(model["parameters"]))),
        Phrase(printable(model["format"], 40)),
        Phrase(glued(format_bytes(model["peak_bytes"]))),
        Phrase(glued(format_count(model["tokens_per_second"]) if total is None else format_duration(total))),
    )


def _bids(bids: Sequence[Json]) -> Table:
    """Prices of a job with its time, of a million tokens, or of a server by the hour with its layout and format."""
    per = bids[0]["usd_per"]
    middle = {
        "job": (Column(title="Time", figures=True),),
        "hour": (Column(title="Format"), Column(title="Copies", figures=True), Column(title="tp x pp", spare=True)),
    }
    columns = (
        Column(title="Hardware"),
        Column(title="Provider"),
        Column(title="Kind", spare=True),
        Column(title="As of", spare=True),
        Column(title="Each/h", figures=True, spare=True),
        *middle.get(per, ()),
        Column(title={"job": "Cost", "hour": "$/h"}.get(per, "$/1M"), figures=True),
    )
    return Table(columns=columns, rows=tuple(_bid(bid) for bid in bids))


def _bid(bid: Json) -> tuple[Phrase, ...]:
    named = bid["device"] if bid["copies"] == 1 else f"{bid['copies']}x{bid['device']}"
    hourly, layout = bid["usd_per_device_hour"], bid.get("layout")
    shape: tuple[Phrase, ...] = ()
    if layout is not None:
        shape = (Phrase(bid["quant"]), Phrase(str(layout["dp"])), Phrase(f"{layout['tp']} x {layout['pp']}"))
    return (
        judged(bid["status"], printable(named, 60)),
        Phrase(printable(bid["provider"], 40)),
        Phrase(bid["kind"]),
        Phrase(bid["as_of"] or "undated"),
        Phrase(format_usd(hourly) if hourly else ""),
        *shape,
        *(() if bid["seconds"] is None else (Phrase(glued(format_duration(bid["seconds"]))),)),
        Phrase(format_usd(bid["usd"]) if bid["usd"] else "free"),
    )


def _there(at: Json, device: str) -> Topic:
    """The verdict at the answer, and with which settings: many were chosen for it."""
    result = at["result"]
    memory = result["memory"]
    needed, usable = format_bytes(memory["peak_bytes"]["expected"]), format_bytes(memory["usable_bytes"])
    on = f" on {printable(device, 60)}" if device else ""
    doubts = "".join(f" {sentence(reason)}" for reason in _doubts(result["verdict"]))
    text = Phrase(f": needs {needed} of {usable} usable{on}.{doubts}")
    settings = " · ".join(context(at["inputs"], result["parameters"], reads=reads(result)))
    return Topic(label="There", paragraphs=((verdict_words(result["verdict"]), text), (Phrase(settings, "dim"),)))


def _doubts(verdict: Json) -> Iterator[str]:
    """Yield why it is tight where memory is not."""
    if verdict["status"] == "tight" and verdict["memory"] == "fits":
        yield from (reason["message"] for reason in verdict["reasons"] if is_doubt(reason["code"]))


def _beyond(beyond: Json) -> str:
    values = {key: value for key, value in beyond.items() if key not in ("status", "because")}
    named = ", ".join(ENDLESS.get(key) or _step(key, value) for key, value in values.items())
    return f"{named}: {beyond['status']}, {grouped(printable(beyond['because'], 300))}."


def _step(name: str, value: Any) -> str:
    text = f"{value / MIB:.0f} MiB" if name == "memory" else _quantity(name, value)
    if name in ("model", "device", "memory"):
        return glued(text)
    if name == "lora_rank" or name not in NAMES:
        return glued(f"{NAMES.get(name, name)} {text}")
    noun, *rest = NAMES[name].split(" ")
    return glued(" ".join((text, noun.removesuffix("s") if value == 1 else noun, *rest)))
