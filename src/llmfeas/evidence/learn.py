"""Learning from a run: what its log says was measured, beside what is estimated for the same scenario."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from ..catalog.store import Catalog
from ..contract import Published, hidden
from ..errors import LlmfeasError, UsageError
from ..importers.model_file import is_model_path
from ..options import flag_of
from ..ranges import Range
from ..record import dataclass, replace
from ..request import parsed
from ..text import printable
from .compare import comparisons, estimate_of
from .logs import MOST_BYTES, ReadLog, read_log
from .logs.parser import LoggedRun, SkippedLines
from .measurements import own_measurement
from .plausible import faults_among

KNOWN = "vLLM, SGLang, llama-bench, llama.cpp, transformers' Trainer, Megatron-LM and nvidia-smi"
Setting = str | int | float


@dataclass(frozen=True, slots=True)
class LearnedFigure(Published):
    """A figure of the log beside ours."""

    kind: str
    quantity: str
    measured: float
    found: Range
    """What is estimated."""
    inside: bool
    """Whether the figure lies in our range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRun(Published):
    """A run that the log tells of, or why it could not be compared."""

    what: str
    line: int
    """Where the first figure stands in the log."""
    samples: int
    """Lines that the figures are from."""
    scenario: Mapping[str, object]
    """What ran: as the log and the command say."""
    figures: tuple[LearnedFigure, ...]
    problem: LlmfeasError | None
    """Why there are no figures."""
    row: Mapping[str, Any] | None = hidden(default=None)
    """The measurement, as it would be kept."""


@dataclass(frozen=True, slots=True)
class Learned(Published):
    """What a log tells."""

    runs: tuple[LearnedRun, ...]
    skipped: tuple[SkippedLines, ...]
    """Lines with speeds that are in none of the runs, and why."""
    lines: int
    """Lines that were read."""
    cut: bool
    """Whether the log goes on where reading ended."""


def learned(source: BinaryIO, name: str, given: Mapping[str, object], catalog: Catalog) -> Learned:
    """Read a log and compare what it tells; `given` settings go before those of the log.

    Raises:
        UsageError: the log holds no figure that a parser knows, or a setting is none.
    """
    said = parsed(given, catalog.tables.quantization)
    log = read_log(source)
    if not log.runs:
        message = f"nothing in {name} is a figure of {KNOWN}."
        more = f" Only its first {MOST_BYTES // 10**6} MB were read." if log.cut else ""
        unread = "".join(f" {each.what}, {each.lines} from line {each.line} on: {each.why}." for each in log.skipped)
        hint = "Give the whole log, with the lines from the start of the engine on."
        raise UsageError("nothing-learned", message + more + unread, hint)
    return Learned(tuple(_run(run, log, said, name, catalog) for run in log.runs), log.skipped, log.lines, log.cut)


def _run(run: LoggedRun, log: ReadLog, given: Mapping[str, Setting], name: str, catalog: Catalog) -> LearnedRun:
    found = LearnedRun(what=run.what, line=run.line, samples=run.samples, scenario={}, figures=(), problem=None)
    try:
        scenario = _scenario(run, log, given, catalog)
        found = replace(found, scenario=scenario)
        row = {"scenario": scenario, "measured": dict(run.measured), "memory_kind": run.memory_kind}
        return replace(found, figures=_figures(row, name), row=row)
    except LlmfeasError as error:
        return replace(found, problem=error)


def _scenario(run: LoggedRun, log: ReadLog, given: Mapping[str, Setting], catalog: Catalog) -> dict[str, Setting]:
    """The settings of a run: given ones, then its own, then what the log says at large.

    Raises:
        UsageError: the log does not say what has to be known.
    """
    settings: dict[str, Setting] = {**log.about, **run.settings}
    for name, found in (("model", _model), ("device", _device)):
        if name in given:
            settings.pop(name, None)
        elif name in settings:
            settings[name] = found(str(settings[name]), catalog)
    settings |= given
    if "model" in given and is_model_path(str(given["model"])):
        settings["model"] = os.path.abspath(os.path.expanduser(str(given["model"])))  # noqa: PTH100, PTH111
    missing = [name for name in ("model", "device", *run.missing) if name not in settings]
    if missing:
        flags = " and ".join(flag_of(name) for name in missing)
        are = "is" if len(missing) == 1 else "are"
        raise UsageError("missing-option", f"the log does not say everything: {flags} {are} missing.", f"Say {flags}.")
    if settings.get("num_devices") == 1:
        del settings["num_devices"]
    return settings


def _model(text: str, catalog: Catalog) -> str:
    """A model of the catalog by what a log calls it: a repository, a path of another machine, a file.

    Raises:
        UsageError: the catalog has none of that name.
    """
    from ..catalog.named import find_model

    last = text.replace("\\", "/").rstrip("/").rpartition("/")[2]
    for name in dict.fromkeys((text, last, last.removesuffix(".gguf"))):
        try:
            find_model(name, catalog)
        except UsageError:
            continue
        if not is_model_path(name):  # a log may name what it likes, and none of it is opened
            return name
    hint = "Say --model: a name of the catalog, or the path of its config.json or weights."
    raise UsageError("unknown-model", f"the log names the model {printable(text, 80)!r}, which is not known.", hint)


def _device(text: str, catalog: Catalog) -> str:
    from ..catalog.hardware import find_hardware

    try:
        return str(find_hardware(text, catalog).device.id)
    except UsageError as error:
        message = f"the log names the device {printable(text, 80)!r}: {error.message}."
        raise UsageError(error.code, message, "Say --device.", error.candidates) from None


def _figures(row: Mapping[str, Any], name: str) -> tuple[LearnedFigure, ...]:
    """Each measured quantity beside ours.

    Raises:
        LlmfeasError: the scenario cannot be answered, or what was measured cannot be.
    """
    measurement = own_measurement(row, name)
    estimate = estimate_of(measurement)
    items = list(comparisons(measurement, estimate))
    wrong = faults_among(items, estimate.scenario)
    if wrong:
        hint = "Is it the model and device of that run? Settings that the log does not say are assumed; say them."
        raise UsageError("impossible-measurement", f"{'; '.join(wrong)}.", hint)
    return tuple(LearnedFigure(each.kind, each.quantity, each.measured, each.found, each.inside) for each in items)
