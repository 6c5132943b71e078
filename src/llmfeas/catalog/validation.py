"""Outside data held against the records by pydantic; what is wrong is said with file, line and entry."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..errors import DataError, did_you_mean
from ..text import printable
from .document import Document, Place

if TYPE_CHECKING:
    from .records import EntryKind

T = TypeVar("T")

_WORDS: typing.Final[Mapping[str, str]] = {
    "missing": "is missing",
    "missing_argument": "is missing",
    "missing_keyword_only_argument": "is missing",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text (write it in quotes)",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dataclass_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "finite_number": "must be a finite number",
    "string_too_short": "must not be empty",
}
_UNKNOWN_KEY: typing.Final = frozenset(("unexpected_keyword_argument", "extra_forbidden"))
"""Said before a missing key: it mostly is that key, misspelt."""
_MEND: typing.Final = "Mend the entry; its header documents every field."


@functools.cache
def _adapter(record: Any) -> TypeAdapter[Any]:
    return TypeAdapter(record)


def validated(record: type[T], raw: object, document: Document, place: Place = (), base: Place = ()) -> T:
    """Turn plain data into a record, strictly: no unknown keys, no text for numbers.

    `place` is where `raw` stands in the document, `base` where its defaults do.

    Raises:
        DataError: `hardware.yaml:123: devices[rtx-4090].bandwidth_gb_per_s: must be greater than 0`.
    """
    try:
        checked: T = _adapter(typing.cast("Hashable", record)).validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise _data_error(record, problems, document, place, base) from None
    except (TypeError, ValueError, RecursionError):
        raise DataError("bad-data", f"{document.where(place)}: cannot be used", "See the header of the file.") from None
    try:
        getattr(checked, "check", lambda: None)()
    except ValueError as error:
        raise DataError("bad-data", f"{document.where(place)}: {error}", _MEND) from None
    return checked


def part_problems(record: Any, raw: object, document: Document, place: Place) -> Iterator[DataError]:
    """Check some fields of a record, those of records in it too; none has to be there."""
    if not isinstance(raw, Mapping):
        yield DataError("bad-data", f"{document.where(place)}: must be a mapping", "Write it as KEY: VALUE.")
        return
    hints = typing.get_type_hints(record, include_extras=True)
    for name, value in raw.items():
        inner = _record_in(hints.get(name))
        if name not in hints or name.startswith("_"):
            known = sorted(field.name for field in dataclasses.fields(record))
            yield DataError("bad-data", f"{document.where((*place, name))}: unknown key", *_keys_near(name, known))
        elif inner is not None and isinstance(value, Mapping):
            yield from part_problems(inner, value, document, (*place, name))
        else:
            try:
                _adapter(typing.cast("Hashable", hints[name])).validate_json(json.dumps(value), strict=True)
            except ValidationError as error:
                text, hint, near = _explained(record, error.errors(include_url=False)[0], ())
                yield DataError("bad-data", f"{document.where((*place, name))}: {text}", hint, near)


def validated_entry(section: EntryKind[Any], key: str, raw: Mapping[str, Any], document: Document) -> Any:
    """Validate one entry of a section, its defaults filled in.

    Raises:
        DataError: with file, line, entry and field.
    """
    base: Place = (section.base, str(raw.get(section.base_field))) if section.base else ()
    return validated(section.record, raw, document, (section.key, key), base)


def _data_error(record: type, problems: Sequence[Any], document: Document, place: Place, base: Place) -> DataError:
    first = next((problem for problem in problems if problem["type"] in _UNKNOWN_KEY), problems[0])
    inside: Place = tuple(part for part in first["loc"] if isinstance(part, int) or not part.startswith("tagged"))
    where = (*place, *inside)
    if (
        base
        and inside
        and _stands(document.data, (*base, *inside[:1]))
        and not _stands(document.data, (*place, *inside[:1]))
    ):
        where = (*base, *inside)
    text, hint, near = _explained(record, first, inside)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return DataError("bad-data", f"{document.where(where)}: {text}{more}", hint, near)


def _stands(data: Any, place: Place) -> bool:
    for part in place:
        if isinstance(data, list) and isinstance(part, str):
            data = next((item for item in data if isinstance(item, dict) and item.get("id") == part), None)
        elif isinstance(data, dict) and part in data:
            data = data[part]
        else:
            return False
    return data is not None


def _keys_near(key: object, known: Sequence[str]) -> tuple[str, list[str]]:
    """What may be meant by a key that is not known, as a hint and by name."""
    near = difflib.get_close_matches(str(key), known, 2, 0.5)
    return did_you_mean(near, f"Known keys: {', '.join(known)}."), near


def _explained(record: type, problem: Any, inside: Place) -> tuple[str, str, list[str]]:
    kind, given = problem["type"], problem.get("input")
    if kind in _UNKNOWN_KEY:
        known = sorted(_fields_at(record, inside[:-1]))
        return "unknown key", *_keys_near(inside[-1], known)
    if kind == "value_error":
        return str(problem["ctx"]["error"]), _MEND, []
    text = _WORDS.get(kind) or printable(problem["msg"], 200).replace("Input should be", "must be")
    if isinstance(given, str | int | float | bool) and "missing" not in kind:
        text += f", not {printable(json.dumps(given, ensure_ascii=False), 40)}"
    return text, "The header of the file documents every field and its unit.", []


def _fields_at(record: type, inside: Place) -> set[str]:
    """Name the fields of the record that `inside` leads to."""
    here: Any = record
    for part in inside:
        if isinstance(part, int) or not dataclasses.is_dataclass(here):
            continue
        hint = typing.get_type_hints(here).get(part)
        here = here if hint is None else _record_in(hint)
    return {field.name for field in dataclasses.fields(here)} if dataclasses.is_dataclass(here) else set()


def _record_in(hint: Any) -> Any:
    """Find the dataclass inside a hint such as `tuple[Link, ...] | None`."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next((record for option in typing.get_args(hint) if (record := _record_in(option))), None)


def unusable_list(section: EntryKind[Any], listed: Any, document: Document) -> DataError:
    """Say why a section is no list of entries with an id each."""
    if not isinstance(listed, list):
        return DataError(
            "bad-data", f"{document.where((section.key,))}: must be a list of entries", "Begin each with '- id: ...'."
        )
    seen: set[str] = set()
    for index, entry in enumerate(listed):
        place = document.where((section.key, index))
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            return DataError("bad-data", f"{place}: an entry needs an id (text)", "Begin it with '- id: ...'.")
        if entry["id"] in seen:
            return DataError(
                "bad-data", f"{place}: duplicate id '{printable(entry['id'])}'", "Rename or remove one of the two."
            )
        seen.add(entry["id"])
    return DataError("bad-data", f"{document.where((section.key,))}: unusable", "See the header of the file.")
