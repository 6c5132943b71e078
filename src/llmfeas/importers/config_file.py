"""A model's configuration file, read as what it is: text from a stranger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..errors import DataError
from ..record import dataclass, replace
from ..text import printable

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

    def flag(self, key: str) -> bool:
        """Read true or false; absent is false.

        Raises:
            DataError: something else.
        """
        value = self.raw(key)
        if value is None:
            return False
        if isinstance(value, bool):
            return value
        if value in (0, 1):
            return bool(value)
        raise self.wrong(key, "must be true or false")

    def number(self, key: str, default: float) -> float:
        """Read a finite number from 0 to 10^6.

        Raises:
            DataError: something else.
        """
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e6:
            raise self.wrong(key, "must be a number from 0 to 10^6")
        return float(value)

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
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.wrong(key, "must be text")
        return value

    def words(self, key: str, most: int) -> tuple[str, ...] | None:
        """Read a list of words, None where it is absent.

        Raises:
            DataError: no list of words, or a longer one than `most`.
        """
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > most or not all(isinstance(word, str) for word in value):
            raise self.wrong(key, f"must be a list of at most {most} words")
        return tuple(value)

    def numbers(self, key: str, most: int) -> tuple[int, ...] | None:
        """Read a list of whole numbers from 0, None where it is absent.

        Raises:
            DataError: something else, or a longer list than `most`.
        """
        value = self.raw(key)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or len(value) > most
            or not all(type(item) is int and item >= 0 for item in value)
        ):
            raise self.wrong(key, f"must be a list of at most {most} whole numbers")
        return tuple(value)

    def nested(self, key: str, defaults: Mapping[str, Any] | None = None) -> Config | None:
        """Read a mapping, None where it is absent.

        Raises:
            DataError: something else.
        """
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.wrong(key, "must be a mapping")
        return Config(self.file, value, defaults or {}, f"{self.where}{key}.")

    def with_defaults(self, defaults: Mapping[str, Any]) -> Config:
        """The same fields over other defaults."""
        return replace(self, defaults=defaults)


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
