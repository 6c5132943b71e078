"""A model's configuration file, read as what it is: text from a stranger."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from ..errors import DataError
from ..record import dataclass, replace
from ..text import printable

T = TypeVar("T")
MAX_BYTES: Final = 4_000_000
MOST_LAYERS: Final = 10_000
_LIMITS: Final = {
    "layers": MOST_LAYERS,
    "width": 10**7,
    "heads": 10**5,
    "rows": 10**9,
    "experts": 10**5,
    "tokens": 10**12,
    "few": 100,
}
"""Beyond these no model is meant; they keep products of sizes within what is computed with."""


@dataclass(frozen=True, slots=True)
class Config:
    """Fields of one configuration, with the defaults of its class; every reading checks type and size."""

    file: str
    fields: Mapping[str, Any]
    defaults: Mapping[str, Any]
    where: str = ""
    """Path of nested fields, such as `text_config.`."""

    def raw(self, key: str) -> Any:
        """A field as written (null is an answer too), or its class's default."""
        return self.fields[key] if key in self.fields else self.defaults.get(key)

    def wrong(self, key: str, problem: str, hint: str = "") -> DataError:
        """Make the error of a field."""
        return DataError("bad-config", f"{self.file}: {self.where}{printable(key)} {problem}", hint)

    def count(self, key: str, kind: str = "width", *, zero: bool = False) -> int:
        """Read a whole number above 0 (or from 0) and within what `kind` allows.

        Raises:
            DataError: missing, no whole number, or out of bounds.
        """
        number = self.optional_count(key, kind, zero=zero)
        if number is None:
            raise self.wrong(key, "is missing", "Give the config.json of a language model that transformers can load.")
        return number

    def optional_count(self, key: str, kind: str = "width", *, zero: bool = False) -> int | None:
        """Read a whole number that may be absent.

        Raises:
            DataError: no whole number, or out of bounds.
        """
        value = self.raw(key)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, f"must be a whole number, not {printable(json.dumps(value, default=str), 40)}")
        least = 0 if zero else 1
        if not least <= value <= _LIMITS[kind]:
            shown = printable(str(value) if abs(value) < 10**30 else "a huge number")
            raise self.wrong(key, f"is {shown}, outside {least} to {_LIMITS[kind]}")
        return value

    def _checked(self, key: str, default: T, holds: Callable[[Any], bool], must: str) -> T | Any:
        """A field as written, the default where it is absent.

        Raises:
            DataError: it does not hold what it `must`.
        """
        value = self.raw(key)
        if value is not None and not holds(value):
            raise self.wrong(key, f"must be {must}")
        return default if value is None else value

    def flag(self, key: str) -> bool:
        """Read true or false; absent is false.

        Raises:
            DataError: something else.
        """
        return bool(self._checked(key, False, lambda value: value in (0, 1), "true or false"))

    def number(self, key: str, default: float) -> float:
        """Read a finite number from 0 to 10^6.

        Raises:
            DataError: something else.
        """
        return float(self._checked(key, default, _is_number, "a number from 0 to 10^6"))

    def rate(self, key: str) -> float:
        """Read a dropout rate; absent is 0.

        Raises:
            DataError: not from 0 to 1.
        """
        value = self.number(key, 0.0)
        if value > 1:
            raise self.wrong(key, "must be from 0 to 1")
        return value

    def text(self, key: str, default: str = "") -> str:
        """Read a word; absent is the default.

        Raises:
            DataError: no text.
        """
        return str(self._checked(key, default, lambda value: isinstance(value, str), "text"))

    def words(self, key: str, most: int) -> tuple[str, ...] | None:
        """Read a list of words, None where it is absent.

        Raises:
            DataError: no list of words, or a longer one than `most`.
        """
        return self._list(key, most, lambda word: isinstance(word, str), "words")

    def numbers(self, key: str, most: int) -> tuple[int, ...] | None:
        """Read a list of whole numbers from 0, None where it is absent.

        Raises:
            DataError: something else, or a longer list than `most`.
        """
        return self._list(key, most, lambda item: type(item) is int and item >= 0, "whole numbers")

    def _list(self, key: str, most: int, holds: Callable[[Any], bool], what: str) -> tuple[Any, ...] | None:
        def is_list(value: Any) -> bool:
            return isinstance(value, list) and len(value) <= most and all(map(holds, value))

        value = self._checked(key, None, is_list, f"a list of at most {most} {what}")
        return None if value is None else tuple(value)

    def nested(self, key: str, defaults: Mapping[str, Any] | None = None) -> Config | None:
        """Read a mapping, None where it is absent.

        Raises:
            DataError: something else.
        """
        value = self._checked(key, None, lambda value: isinstance(value, Mapping), "a mapping")
        return None if value is None else Config(self.file, value, defaults or {}, f"{self.where}{key}.")

    def with_defaults(self, defaults: Mapping[str, Any]) -> Config:
        """The same fields over other defaults."""
        return replace(self, defaults=defaults)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e6


def read_config(path: Path) -> Config:
    """Read a config.json, or that of a folder; nothing in it is executed.

    Raises:
        DataError: not there, unreadable, too large, no JSON, or no mapping.
    """
    file = path / "config.json" if path.is_dir() else path
    name = printable(str(file), 200)
    try:
        if not file.is_file():
            problem = "there is no config.json in this folder" if file != path else "no such file"
            raise DataError(
                "no-config", f"{name}: {problem}", "Give a model's config.json or the folder that holds it."
            )
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError("unreadable", f"{name}: cannot be read ({printable(error)})") from None
    if len(content) > MAX_BYTES:
        raise DataError("bad-config", f"{name}: larger than {MAX_BYTES} bytes, no config.json")
    return Config(name, _mapping(name, content), {})


def _mapping(name: str, content: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError("bad-config", f"{name}: no valid JSON ({printable(error)})") from None
    if not isinstance(parsed, dict):
        raise DataError("bad-config", f"{name}: not a JSON object", "Give a model's config.json.")
    return parsed
