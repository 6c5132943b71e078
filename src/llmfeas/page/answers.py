"""What the page asks of Python: JSON in, JSON out, the answers those of the command line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from .. import __version__
from ..catalog.search import search
from ..catalog.store import Records, catalog
from ..errors import LlmfeasError, UsageError, unforeseen
from ..options import BY_NAME, OPTIONS, TASKS, Option
from ..planning.answer import answer, bare_answer
from ..planning.compare import chosen_devices, comparison
from ..planning.plan import plan
from ..render.curves import FURTHER
from ..render.drawing import NARROW, WIDE
from ..render.formats.html import figure, fragment, style
from ..render.pages import compare as compared
from ..render.pages import estimate as estimated
from ..render.pictures import pictures
from ..render.words import flags

MOST_FOUND = 12
"""Names that are proposed at once."""
MOST_BESIDE = 12
"""Devices that are compared at once."""
SLIDERS: Mapping[str, float] = {
    "context": 2**20,
    "prompt": 2**20,
    "seq_len": 2**17,
    "micro_batch": 256,
    "concurrency": 1024,
    "lora_rank": 512,
    "num_devices": 1024,
}
"""Settings that have a slider, which goes from 1 in powers of two, and its end."""

Settings = Mapping[str, str]


def start() -> dict[str, Any]:
    """What the page is made from: the settings by their table, tasks, style, version."""
    settings = [_setting(option) for option in OPTIONS]
    return {"version": __version__, "style": style(), "tasks": TASKS, "settings": settings, "curves": [*FURTHER]}


def _setting(option: Option) -> dict[str, Any]:
    return {
        "name": option.name,
        "flag": option.flag,
        "group": option.group,
        "help": option.help,
        "default": option.default,
        "choices": option.choices,
        "everyday": option.everyday,
        "tasks": sorted(option.tasks),
        "slider": SLIDERS.get(option.name),
    }


def found(kind: str, text: str) -> list[dict[str, str]]:
    """Entries of `models` or `devices` that a text may mean, the best first, with their names."""
    records: Records[Any] = catalog().models if kind == "models" else catalog().devices
    return [{"id": key, "name": records[key].name} for key in search(records, text)[:MOST_FOUND]]


def answered(settings: Settings, narrow: bool = False) -> dict[str, Any]:
    """The answer to one question: its envelope, the report with its pictures, the command that gives the same."""
    estimate = answer(settings)
    envelope = estimate.to_dict()
    names = estimate.scenario.model.name, estimate.scenario.device.name
    report = estimated.report(envelope, *names, ways=False)  # they are buttons here
    return {
        "html": fragment(report, pictures(envelope, NARROW if narrow else WIDE)),
        "json": json.dumps(envelope, indent=2, ensure_ascii=False),
        "command": command(settings),
        "status": estimate.verdict.status,
        "title": report.title,
        "values": {name: said["value"] for name, said in envelope["inputs"].items() if name in SLIDERS},
    }


def curves(settings: Settings, what: str, narrow: bool = False) -> str:
    """The pictures for which the question is followed further, of one kind in `FURTHER`, as HTML."""
    drawn = FURTHER[what](settings, bare_answer(settings), catalog(), NARROW if narrow else WIDE)
    return "".join(map(figure, drawn))


def ways(settings: Settings) -> list[dict[str, Any]]:
    """The plan's ways to yes: what to set, and what comes of it."""
    found = plan(settings, catalog()).to_dict()["result"]["plans"]
    return [
        {
            "flags": flags(way["changes"]),
            "settings": {name: str(value) for name, value in way["changes"].items()},
            "message": way["message"],
            "status": way["status"],
        }
        for way in found
        if way["changes"]
    ]


def beside(settings: Settings, devices: str) -> dict[str, Any]:
    """The same question on several devices, ranked."""
    model, device = _named(settings, "model"), _named(settings, "device")
    names = [device, *(name.strip() for name in devices.split(",") if name.strip())][:MOST_BESIDE]
    others = {name: value for name, value in settings.items() if name not in ("model", "device")}
    known = catalog()
    ranking = comparison(others, [model], chosen_devices(known, names, (), every=False), known, chosen=True)
    rows = ranking.to_dict()["result"]["rows"]
    first = ranking.rows[0].estimate.scenario
    report = compared.report(rows, [first.model.name], first.task, None, 0, "time")
    return {"html": fragment(report, ())}


def _named(settings: Settings, name: str) -> str:
    """What a question names.

    Raises:
        UsageError: it names nothing.
    """
    value: object = settings.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UsageError("missing-option", f"no {name} was given", "Choose one.")
    return value


def command(settings: Settings) -> str:
    """The command line that asks the same."""
    words = [f"{BY_NAME[name].flag} {shlex.quote(str(value))}" for name, value in settings.items() if name in BY_NAME]
    return " ".join(["llmfeas estimate", *words])


CALLS: Mapping[str, Callable[..., Any]] = {
    "start": start,
    "found": found,
    "answered": answered,
    "curves": curves,
    "ways": ways,
    "beside": beside,
}


def called(name: str, arguments: str) -> str:
    """Call one of the functions with arguments in JSON; an error of the question is an answer too, as `error`."""
    try:
        result = {"result": CALLS[name](*json.loads(arguments))}
    except LlmfeasError as error:
        result = {"error": error.to_dict()}
    except RecursionError:
        raise
    except Exception as error:
        result = {"error": unforeseen(error).to_dict()}
    return json.dumps(result, ensure_ascii=False)
