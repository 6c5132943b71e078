"""What a machine does with a model: the lines that an estimate begins with where no task was said."""

from __future__ import annotations

from collections.abc import Sequence

from ...text import printable
from ...units import format_bytes, format_count, format_duration
from ..report import Json, Pair, Phrase, Topic, glued
from ..words import flags, judged, verdict_words


def uses_topic(uses: Sequence[Json], devices: int) -> Topic:
    """One line a use: what it takes, and the options that ask for it."""
    machine = "this machine does" if devices == 1 else "these devices do"
    pairs = tuple(Pair(_title(use), _line(use)) for use in uses)
    return Topic(label=f"What {machine} with this model", pairs=pairs)


def _title(use: Json) -> str:
    label = printable(use["label"], 40)
    return glued(label[:1].upper() + label[1:])


def _line(use: Json) -> tuple[Phrase, ...]:
    verdict = use["verdict"]
    sign, words = judged(verdict["status"]), [] if verdict["status"] == "feasible" else [verdict_words(verdict).text]
    if verdict["status"] == "unsupported":
        return sign, Phrase(f" {words[0]}")
    peak = glued(format_bytes(use["peak_bytes"]))
    if verdict["memory"] == "exceeds":
        reasons = {reason["code"]: reason["message"] for reason in verdict["reasons"]}
        short = "host-memory-exceeds" in reasons and "memory-exceeds" not in reasons
        needs = glued(f"needs {'more main memory' if short else peak}")
        text = f" {words[0]}: {' '.join((*_format(use), needs))}"
        part = use.get("part")
        enough = (Phrase(f"; enough: {flags(part)}", "dim"),) if part else ()
        return sign, Phrase(text), *enough
    asked = Phrase(f": {flags(use['changes'])}", "dim")
    return sign, Phrase(" " + ", ".join((*words, *_weights(use), peak, *_speed(use)))), asked


def _weights(use: Json) -> tuple[str, ...]:
    """In what the weights of a chat are stored, and how many layers are on the device if not all."""
    layers, experts = use["gpu_layers"], use["n_cpu_moe"]
    kept = glued(f", {layers} layers on the device") if layers else ""
    moved = glued(f", experts of {experts} layers in main memory") if experts else ""
    return tuple(name + kept + moved for name in _format(use))


def _format(use: Json) -> tuple[str, ...]:
    """In what the weights of a chat are stored, if not as published."""
    return (glued(printable(use["quant"], 40)),) if use["task"] == "inference" and use["quant"] else ()


def _speed(use: Json) -> tuple[str, ...]:
    """How fast it is: tokens a second, or the time of the whole work."""
    if use["decode_tokens_per_second"]:
        return (glued(f"{format_count(use['decode_tokens_per_second'])} tokens/s"),)
    if not use["total_seconds"]:
        return ()
    work = glued(f" for {format_count(use['tokens'])} tokens") if use["tokens"] else ""
    return (glued(format_duration(use["total_seconds"])) + work,)
