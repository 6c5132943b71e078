"""Read what a person asks: names and values as given, checked against the table of settings."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from .catalog.quantization import Quantization
from .errors import UsageError, did_you_mean
from .options import BY_NAME, Option, flag_of
from .scenario import ORIGINS, Origin
from .text import printable
from .units import Number, parse_bytes, parse_count, parse_duration, parse_fraction, parse_integer, parse_money

Value = str | int | float
PLAIN = frozenset((str, int, float))
"""Types of most values."""
MOST_LETTERS = 2
"""A name of another tool that is no longer (`np`, `r`) stands for no setting: only behind a dash it is surely meant."""


def parsed(request: Mapping[str, object], formats: Quantization) -> dict[str, Value]:
    """Read a request: setting name to value, numbers in the setting's unit, choices in their canonical spelling.

    None and `auto` mean "not said" and are left out; so are switches that are off. Other names of a setting
    (`ctx_size`, `fsdp`) count as the setting; `formats` are the values of --quant beyond the table's. A value may stand
    as `{"value", "origin"}`, as in an answer's `inputs`.

    Raises:
        UsageError: an unknown name, a value that the table does not allow, a setting given twice with two values.
    """
    values: dict[str, Value] = {}
    given_as: dict[str, str] = {}
    for name, raw in request.items():
        option = option_called(name)
        value = _read(option, name, raw, formats)
        if value is None:
            continue
        if option.name in values and values[option.name] != value:
            first = given_as[option.name]
            raise UsageError(
                "contradiction", f"{option.flag} is given twice: as {first} and as {name}.", "Give one of them."
            )
        values[option.name], given_as[option.name] = value, name
    return values


def canonical(request: Mapping[str, object], formats: Quantization) -> dict[str, object]:
    """The same request with every setting under its own name and every value read; recorded origins stay beside it.

    What asks for a setting before a scenario is settled asks this.

    Raises:
        UsageError: as `parsed` and `recorded_origins`.
    """
    origins = recorded_origins(request)
    values = parsed(request, formats)
    return {
        name: {"value": value, "origin": origins[name]} if name in origins else value for name, value in values.items()
    }


def recorded_origins(request: Mapping[str, object]) -> dict[str, Origin]:
    """Where the settings of an answer's `inputs` came from, by name; a plain request has none.

    Raises:
        UsageError: an origin that does not exist.
    """
    found: dict[str, Origin] = {}
    for name, raw in request.items():
        if raw.__class__ not in PLAIN and isinstance(raw, Mapping) and name in BY_NAME:
            origin = raw.get("origin", "given")
            if origin not in ORIGINS:
                message = f"{flag_of(name)}: {printable(origin, 40)!r} is no origin of a value."
                raise UsageError("bad-value", message, f"An origin is one of {', '.join(ORIGINS)}.")
            found[BY_NAME[name].name] = origin
    return found


def said_in(request: Mapping[str, object]) -> dict[str, object]:
    """What a person said in a request: of an answer's `inputs` all that was not derived, to ask something else with."""
    origins = recorded_origins(request)
    return {name: raw for name, raw in request.items() if origins.get(option_called(name).name, "given") == "given"}


def value_of(option: Option, raw: object, formats: Quantization) -> Value:
    """Read one value of a setting.

    Raises:
        UsageError: the value is not one that the table allows; the message names the setting by its flag.
    """
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise UsageError(
            "bad-value", f"{option.flag}: {printable(raw, 40)!r} is neither text nor a number.", option.help
        )
    if option.choices:
        return _choice(option, str(raw), formats)
    if option.kind == "text":
        return _text(option, raw)
    return _quantity(option, raw)


@functools.lru_cache(maxsize=8192, typed=True)
def _remembered(name: str, raw: Value, formats: Quantization) -> Value:
    """Read a value of the setting `name` once; sweeps ask the same again and again."""
    return value_of(BY_NAME[name], raw, formats)


def _read(option: Option, name: str, raw: object, formats: Quantization) -> Value | None:
    if raw.__class__ not in PLAIN and isinstance(raw, Mapping) and "value" in raw:
        raw = raw["value"]
    if raw is None or (raw.__class__ is str and raw.strip().lower() == "auto"):
        return None
    if option.nothing and str(raw).strip().lower() == option.nothing:
        return None
    if raw.__class__ in PLAIN:
        return _remembered(option.name, raw, formats)
    if isinstance(raw, bool) and name in option.switches:
        return value_of(option, option.switches[name], formats) if raw else None
    if isinstance(raw, str | int | float) and not isinstance(raw, bool):
        return _remembered(option.name, raw, formats)
    return value_of(option, raw, formats)


def _choice(option: Option, raw: str, formats: Quantization) -> str:
    text = raw.strip().lower().replace("_", "-")
    spellings = {choice.replace("_", "-"): choice for choice in option.choices} | dict(option.synonyms)
    if text not in spellings and option.extensible:
        spellings |= {name.replace("_", "-"): known.id for name, known in formats.formats.items()}
    if text in spellings:
        return spellings[text]
    if option.extensible:
        from .catalog.names.formats import format_named

        named = formats.formats.get(format_named(raw))
        if named is not None:
            return named.id
    from difflib import get_close_matches

    from .elsewhere import meant, ours

    here = meant(option.name, text)
    near = list(dict.fromkeys(spellings[name] for name in get_close_matches(text[:60], spellings, n=3)))
    near = near if here is None else []
    said = None if near else ours(text)
    what = f"{option.flag}: {printable(raw, 40)!r} is {_not_one_of(option, spellings, bool(near))}."
    if here is not None:
        raise UsageError("bad-choice", what, f"Here it is {here}.", near)
    raise UsageError("bad-choice", what, f"See {said.text}." if said else did_you_mean(near), near)


def _not_one_of(option: Option, spellings: Mapping[str, str], hinted: bool) -> str:
    """What a value is not: one of the choices, of which a catalog may have too many to list."""
    more = len(set(spellings.values()) - set(option.choices))
    if hinted and more:
        return f"none of the {len(option.choices) + more} that are known"
    return f"not one of {', '.join(option.choices)}" + (f" or {more} more" if more else "")


def _text(option: Option, raw: Value) -> str:
    text = str(raw).strip()
    if not text or len(text) > 4096 or "\0" in text:
        problem = "is empty" if not text else "is no name"
        raise UsageError("bad-value", f"{option.flag}: {printable(text, 40)!r} {problem}.", option.help)
    return text


def _quantity(option: Option, raw: Number) -> int | float:
    what, low, high = option.flag, option.minimum, option.maximum
    word = option.words.get(raw.strip().lower()) if isinstance(raw, str) else None
    if word is not None:
        return word
    match option.kind:
        case "integer":
            return parse_integer(raw, what, int(low), int(high), "8 or 2k" if high >= 8 else f"{int(high)}")
        case "bytes":
            return parse_bytes(raw, what, low, high)
        case "duration":
            return parse_duration(raw, what, low, high, "500ms or 2s" if (low or 1.0) < 1e-3 else "30d or 12h")
        case "fraction":
            return parse_fraction(raw, what, low, high, "0.45 or 45%" if high >= 1 else "0.1 or 10%")
        case "money":
            example = "500 or 1.2k" if option.unit == "USD" else f"0.35, in {option.unit}"
            return parse_money(raw, what, low, high, example)
        case "count":
            return parse_count(raw, what, low, high)
        case _:
            example = f"1.5, in {option.unit}" if option.unit else "1.5"
            return parse_count(raw, what, low, high, example, "number")


def option_called(name: str) -> Option:
    """The setting of a name: its own, or another tool's that takes the same value (`tensor_parallel_size`).

    Raises:
        UsageError: there is none; the hint says how it is said here, or what is near.
    """
    option = BY_NAME.get(name) or called_elsewhere(str(name))
    if option is not None:
        return option
    from difflib import get_close_matches

    near = get_close_matches(str(name)[:60], BY_NAME, n=3, cutoff=0.6)
    raise _unknown(name, did_you_mean(near, "See 'llmfeas estimate --help', where dashes are underscores here."), near)


def called_elsewhere(name: str) -> Option | None:
    """The setting that another tool calls so and that takes the same value; None where no tool is known to.

    Raises:
        UsageError: it takes another value, or changes nothing that is estimated.
    """
    from .elsewhere import is_no_matter, ours

    said = ours(name)
    if said is None:
        if is_no_matter(name):
            raise _unknown(name, "It changes neither memory nor time: leave it out.")
        return None
    names = [flag.removeprefix("--").replace("-", "_") for flag in said.flags]
    if said.same and len(name) > MOST_LETTERS:
        return BY_NAME[names[0]]
    raise _unknown(name, f"Here it is {said.text}.", names)


def _unknown(name: object, hint: str, near: Sequence[str] = ()) -> UsageError:
    return UsageError("unknown-setting", f"unknown setting {printable(name, 40)!r}.", hint, near)
