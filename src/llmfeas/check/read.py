"""Files of expectations read and held against the table of settings and that of figures; every fault has a place."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..catalog.document import MAX_BYTES, Document, Place, parse_yaml, read_yaml
from ..catalog.quantization import Quantization
from ..catalog.validation import validated
from ..errors import DataError, LlmfeasError, UsageError, did_you_mean
from ..options import BY_NAME
from ..record import dataclass
from ..request import called_elsewhere, parsed
from ..text import printable
from .figures import FIGURES, NAMES, OTHER_NAMES, WORDS, End
from .requirement import Requirement, WrittenRequirement, contradiction, figure_requirement, word_requirement

MAX_JUDGED = 200_000
"""Expectations of one file, once its lists are crossed."""
MOST_SHOWN = 20
MOST_HINTED = 1000
"""Faults of one file after which nobody is told any more what an unknown name may have meant."""
OWN_KEYS = ("id", "expect")
HINT = "See 'llmfeas check --init' for an example."
Report = tuple[Place, LlmfeasError]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of a file: what a scenario's figure must be, and where that is written."""

    name: str
    requirement: Requirement
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ScenarioBlock:
    """One scenario, or several where lists are crossed, with its expectations."""

    id: str
    place: Place
    settings: Mapping[str, Any]
    expectations: tuple[Expectation, ...]

    @property
    def scenario_count(self) -> int:
        """Scenarios that its lists cross to."""
        return math.prod(len(value) for value in self.settings.values() if isinstance(value, list))

    def scenarios(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each scenario's id and settings; crossed ones are numbered."""
        axes = {name: value if isinstance(value, list) else [value] for name, value in self.settings.items()}
        several = self.scenario_count > 1
        for number, values in enumerate(itertools.product(*axes.values()), 1):
            yield f"{self.id}-{number}" if several else self.id, dict(zip(axes, values, strict=True))


@dataclass(frozen=True, slots=True)
class CheckFile:
    """A file of expectations, read."""

    name: str
    document: Document
    blocks: tuple[ScenarioBlock, ...]


def read_checks(path: str, formats: Quantization) -> CheckFile:
    """Read one file (`-` is stdin): a block of settings with `expect`, or a list of such blocks; `formats` is what
    --quant may name.

    Raises:
        DataError: every fault of the file, one a line, each with file, line and column.
    """
    document = _document(path)
    data = document.data
    listed = data if isinstance(data, list) else [data]
    faults: list[Report] = []
    blocks = []
    for index, raw in enumerate(listed):
        place: Place = (index,) if isinstance(data, list) else ()
        blocks.append(_block(raw, index, place, document, formats, faults))
    usable = [block for block in blocks if block is not None]
    faults += _duplicates(usable)
    if not listed:
        faults.append(((), _bad("no scenario is in the file")))
    count = sum(block.scenario_count * max(1, len(block.expectations)) for block in usable)
    if count > MAX_JUDGED:
        faults.append(((), _bad(f"its lists cross to {count:,} expectations, more than {MAX_JUDGED:,}", "Split it.")))
    if faults:
        raise bad_file(document, faults)
    return CheckFile(document.name, document, tuple(usable))


def _document(path: str) -> Document:
    if path != "-":
        return read_yaml(Path(path), printable(path, 200), columns=True)
    if sys.stdin is None:
        raise DataError("file-missing", "stdin is closed", "Name a file.")
    try:
        text = sys.stdin.buffer.read(MAX_BYTES + 1).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("bad-yaml", f"stdin: no UTF-8 text (byte {error.start})", "Save it as UTF-8.") from None
    return parse_yaml(text, "stdin", columns=True)


def bad_file(document: Document, faults: Sequence[Report]) -> DataError:
    """Make the error of a file with faults, each on its line."""
    faults = sorted(faults, key=lambda fault: document.position(fault[0]))
    lines = [_sentence(document, place, fault) for place, fault in faults[:MOST_SHOWN]]
    if len(faults) > MOST_SHOWN:
        lines.append(f"and {len(faults) - MOST_SHOWN} more faults.")
    first = faults[0][1]
    told = lines if len(lines) == 1 else [f"{len(faults)} faults:", *(f"  {line}" for line in lines)]
    return DataError("bad-check-file", told, "", first.candidates)


def _sentence(document: Document, place: Place, fault: LlmfeasError) -> str:
    line, column = document.position(place)
    own = fault.message.startswith(f"{document.name}:")
    problem = fault.message if own else f"{document.name}:{line}:{column}: {fault.message}"
    return f"{problem.rstrip('.')}. {fault.hint}".rstrip()


def _bad(text: str, hint: str = HINT, near: Sequence[str] = ()) -> UsageError:
    return UsageError("bad-check-file", text, hint, near)


def _block(
    raw: object, index: int, place: Place, document: Document, formats: Quantization, faults: list[Report]
) -> ScenarioBlock | None:
    if not isinstance(raw, dict):
        faults.append((place, _bad("a scenario must be a mapping of settings with 'expect'")))
        return None
    name = raw.get("id", index + 1)
    if isinstance(name, bool | dict | list) or name is None or str(name) == "":
        faults.append(((*place, "id"), _bad("an id must be text or a number", "Write for instance 'id: small-model'.")))
        name = index + 1
    settings = {key: value for key, value in raw.items() if key not in OWN_KEYS}
    before = len(faults)
    _check_settings(settings, place, formats, faults)
    expectations = tuple(_expectations(raw.get("expect"), (*place, "expect"), document, faults))
    if len(faults) == before:
        _check_tasks(settings, expectations, place, formats, faults)
    return ScenarioBlock(str(name), place, settings, expectations)


def _duplicates(blocks: Sequence[ScenarioBlock]) -> Iterator[Report]:
    seen: set[str] = set()
    for block in blocks:
        if block.id in seen:
            yield (
                (*block.place, "id"),
                _bad(f"duplicate id '{printable(block.id)}'", "Rename or remove one of the two."),
            )
        seen.add(block.id)


def _check_settings(settings: Mapping[str, Any], place: Place, formats: Quantization, faults: list[Report]) -> None:
    elsewhere, wrong = _called_elsewhere(settings)
    for name in ("model", "device"):
        if name not in settings and name not in elsewhere and not _misspelt(name, settings):
            faults.append((place, _bad(f"'{name}' is missing", f"Add for instance '{name}: {_EXAMPLES[name]}'.")))
    for name, value in settings.items():
        if name in wrong:
            text = f"unknown key '{printable(name, 40)}'"
            faults.append(((*place, name), _bad(text, wrong[name].hint, wrong[name].candidates)))
            continue
        if name not in BY_NAME and name not in elsewhere.values():
            faults.append(((*place, name), _unknown(name, (*BY_NAME, *OWN_KEYS), "key", len(faults) < MOST_HINTED)))
            continue
        if value == []:
            faults.append(((*place, name), _bad("an empty list crosses to no scenario", "Give it values.")))
        for number, each in enumerate(value if isinstance(value, list) else [value]):
            try:
                parsed({name: each}, formats)
            except LlmfeasError as error:
                where = (*place, name, number) if isinstance(value, list) else (*place, name)
                faults.append((where, error))


def _called_elsewhere(settings: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, UsageError]]:
    """Keys of other tools, by the settings that they stand for; and those that stand for none, with how it is said."""
    found: dict[str, str] = {}
    wrong: dict[str, UsageError] = {}
    for key in settings:
        try:
            option = None if key in BY_NAME else called_elsewhere(key)
        except UsageError as error:
            wrong[key] = error
        else:
            found |= {} if option is None else {option.name: key}
    return found, wrong


def _misspelt(name: str, settings: Mapping[str, Any]) -> bool:
    unknown = itertools.islice((key for key in settings if key not in BY_NAME), MOST_HINTED)
    return any(get_close_matches(name, [key[:60]]) for key in unknown)


_EXAMPLES = {"model": "gpt2", "device": "rtx-4090"}


def _unknown(name: str, known: Sequence[str], what: str, hinted: bool) -> UsageError:
    if name == "<<":
        return _bad("merge keys (<<) are not read", "Write the settings out, or cross them in one block.")
    if what == "key" and name in ("name", "title"):
        return _bad(f"unknown key '{name}'", "Here it is 'id'.", ["id"])
    near = get_close_matches(name[:60], known, 2, 0.6) if hinted else []
    hint = did_you_mean(near, HINT)
    return _bad(f"unknown {what} '{printable(name, 40)}'", hint, near)


def _expectations(raw: object, place: Place, document: Document, faults: list[Report]) -> Iterator[Expectation]:
    if not isinstance(raw, dict) or not set(raw) - {"at"}:
        faults.append((place, _bad("nothing is expected", "Write for instance 'expect: {fits: true}'.")))
        return
    at = raw.get("at", "expected")
    if at not in ("expected", "worst"):
        faults.append(((*place, "at"), _bad("'at' is expected or worst", "")))
        at = "expected"
    expectations = []
    for name, value in raw.items():
        if name == "at":
            continue
        try:
            requirement = _requirement(name, value, at, document, (*place, name), len(faults) < MOST_HINTED)
        except LlmfeasError as error:
            faults.append((_inside((*place, name), value, error), error))
            continue
        expectations.append(Expectation(name, requirement, *document.position((*place, name))))
    clash = contradiction([(each.name, each.requirement) for each in expectations])
    if clash is not None:
        faults.append(((*place, clash[0]), _bad(clash[1], "No estimate meets both.")))
    yield from expectations


def _inside(place: Place, value: object, error: LlmfeasError) -> Place:
    """Point at the bound that is wrong where the condition is a mapping."""
    if not isinstance(value, dict):
        return place
    wrong = [key for key, inner in value.items() if f"'{printable(inner, 40)}'" in error.message]
    return (*place, wrong[0]) if wrong else place


def _requirement(name: str, value: object, at: End, document: Document, place: Place, hinted: bool) -> Requirement:
    if name not in WORDS and name not in FIGURES:
        if name in OTHER_NAMES:
            here = OTHER_NAMES[name]
            raise _bad(f"unknown expectation '{name}'", f"Here it is '{here}'.", [here])
        raise _unknown(name, NAMES, "expectation", hinted)
    if value is None:
        raise _bad("nothing is expected", "Write for instance {max: 22}, or leave the line out.")
    condition = (
        validated(WrittenRequirement, value, document, place)
        if isinstance(value, dict)
        else WrittenRequirement(value=value)  # type: ignore[arg-type]
    )
    end = condition.at or at
    if name in WORDS:
        return word_requirement(WORDS[name], condition, end)
    return figure_requirement(FIGURES[name], condition, end)


def _check_tasks(
    settings: Mapping[str, Any],
    expectations: Sequence[Expectation],
    place: Place,
    formats: Quantization,
    faults: list[Report],
) -> None:
    """Refuse what no scenario of the block can have: decoding speed of a training."""
    tasks = settings.get("task") or "pretrain"
    for task in tasks if isinstance(tasks, list) else [tasks]:
        name = str(parsed({"task": task}, formats).get("task", "pretrain"))
        for each in expectations:
            known = WORDS.get(each.name) or FIGURES[each.name]
            if name not in known.tasks:
                text = f"{each.name} means nothing for task {name}"
                faults.append(((*place, "expect", each.name), _bad(text, _suited(name))))


def _suited(task: str) -> str:
    others = [figure.name for figure in FIGURES.values() if task in figure.tasks and len(figure.tasks) < 5]
    return f"For {task} there are {', '.join(others)}."


def setting_of(error: LlmfeasError, settings: Mapping[str, Any]) -> str | None:
    """Name the setting that a refusal is about, as far as its code or its words tell."""
    about = error.code.rpartition("-")[2]
    if about in settings:
        return about
    flags = [flag.replace("-", "_") for flag in re.findall(r"--([a-z][a-z-]*)", error.message)]
    return next((flag for flag in flags if flag in settings), None)
