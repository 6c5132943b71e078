"""What changed between two stored estimates: what was asked, the data behind it, the figures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from ..contract import Published, published
from ..errors import DataError, unreadable
from ..feasibility.result import SCHEMA
from ..record import dataclass, replace
from ..text import printable
from ..units import json_integer

MAX_BYTES = 20_000_000
MAX_DEPTH = 30
LISTS = ("ladder", "memory_sizes", "uses", "remedies", "faster")
"""Parts of a result that say what else is possible; compared by their labels."""

Stored = Mapping[str, Any]


Kind = Literal["catalog", "program", "input", "settled", "origin", "figure", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Published):
    """One value that differs; null where one side has none."""

    kind: Kind
    path: str
    before: object
    after: object

    @published
    def relative(self) -> float | None:
        """The change as a share of what was before; None for words, for what was 0, and beyond all numbers."""
        old, new = self.before, self.after
        if isinstance(old, bool) or isinstance(new, bool):
            return None
        if not isinstance(old, int | float) or not isinstance(new, int | float) or old == 0:
            return None
        share = new / old - 1
        return share if math.isfinite(share) else None


@dataclass(frozen=True, slots=True)
class DiffResult(Published):
    """The result of a comparison of two stored estimates."""

    changes: tuple[Difference, ...]


def stored_estimate(path: str) -> Stored:
    """Read an estimate that `llmfeas estimate --json` wrote.

    Raises:
        DataError: missing, too large, not JSON, or something else than an estimate.
    """
    name = printable(path, 80)
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if len(raw) > MAX_BYTES:
        raise DataError("file-too-large", f"{name}: larger than {MAX_BYTES // 10**6} MB", "Is it an estimate?")
    try:
        text = raw.decode("utf-8-sig")
        envelope = json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=json_integer)
    except json.JSONDecodeError as error:
        text = f"{name}:{error.lineno}:{error.colno}: not JSON: {printable(error.msg, 80)}"
        raise DataError("bad-json", text, "Write it with 'llmfeas estimate --json -o FILE'.") from None
    except (ValueError, RecursionError):
        text = f"{name}: not JSON in UTF-8, nested too deeply, or with a number out of bounds"
        raise DataError("bad-json", text, "Write it with 'llmfeas estimate --json -o FILE'.") from None
    return _checked(envelope, name)


def _finite(text: str) -> float:
    """A number that an estimate can hold."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _checked(envelope: object, name: str) -> Stored:
    schema = envelope.get("schema") if isinstance(envelope, dict) else None
    if not isinstance(envelope, dict) or schema != SCHEMA:
        what = f"its schema is {printable(schema, 40)!r}" if schema else "it has no schema"
        hint = "Write it with 'llmfeas estimate --json -o FILE'."
        raise DataError("no-estimate", f"{name}: not a stored estimate of {SCHEMA}: {what}", hint)
    for key in ("inputs", "result"):
        if not isinstance(envelope.get(key), dict):
            raise DataError("no-estimate", f"{name}: '{key}' is missing", "Is the file whole?")
    return envelope


def differences(before: Stored, after: Stored) -> DiffResult:
    """What changed: the data, what was asked, then the figures and the warnings."""
    changes = []
    sides: tuple[tuple[Kind, str], ...] = (("program", "llmfeas"), ("catalog", "catalog"))
    for kind, key in sides:
        if before.get(key) != after.get(key):
            changes.append(Difference(kind=kind, path=key, before=before.get(key), after=after.get(key)))
    origins = _inputs(before, "origin"), _inputs(after, "origin")
    for each in _differences("input", _inputs(before, "value"), _inputs(after, "value")):
        said = any(side.get(f"{each.path}.origin") == "given" for side in origins)
        changes.append(each if said else replace(each, kind="settled"))
    changes += _differences("origin", *origins)
    changes += _differences("figure", _figures(before), _figures(after))
    return DiffResult((*changes, *_differences("warning", _warnings(before), _warnings(after))))


def _inputs(envelope: Stored, key: str) -> dict[str, object]:
    return {
        f"inputs.{name}" + ("" if key == "value" else ".origin"): entry.get(key)
        for name, entry in envelope["inputs"].items()
        if isinstance(entry, Mapping)
    }


def _figures(envelope: Stored) -> dict[str, object]:
    result = envelope["result"]
    figures = dict(_leaves({key: value for key, value in result.items() if key not in LISTS}, "result", 0))
    for key in LISTS:
        listed = result.get(key)
        for index, item in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(item, Mapping):
                figures |= dict(_leaves(item, f"result.{key}[{_label(item, index)}]", 0))
    return figures


def _label(item: Stored, index: int) -> str:
    settings = item.get("changes")
    if isinstance(settings, Mapping):
        return ", ".join(f"{printable(name, 40)} {printable(value, 40)}" for name, value in settings.items())
    return printable(item.get("label", index), 80)


def _leaves(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value and depth < MAX_DEPTH:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{printable(key, 60)}", depth + 1)
    elif isinstance(value, list | dict):
        yield path, json.dumps(value, sort_keys=True) if value else None
    else:
        yield path, value


def _warnings(envelope: Stored) -> dict[str, object]:
    warnings = envelope.get("warnings")
    notes = warnings if isinstance(warnings, list) else []
    return {f"warnings.{note.get('code')}": note.get("message") for note in notes if isinstance(note, Mapping)}


def _differences(kind: Kind, before: Stored, after: Stored) -> Iterator[Difference]:
    for path in dict.fromkeys([*before, *after]):
        old, new = before.get(path), after.get(path)
        if not _same(old, new):
            yield Difference(kind=kind, path=path, before=old, after=new)


def _same(old: object, new: object) -> bool:
    """Whether two values are the same, but for the last digits of a floating-point number."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, int | float) and isinstance(new, int | float):
        return math.isclose(old, new, rel_tol=1e-12)
    return old == new
