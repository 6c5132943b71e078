"""The JSON Schema of a file of expectations, by which editors complete and check it."""

from __future__ import annotations

from typing import Any

from ..check.figures import FIGURES, WORDS, Figure, Word
from ..options import OPTIONS

Json = dict[str, Any]
END: Json = {"enum": ["expected", "worst"], "description": "The expected value, or the pessimistic end of its range."}


def check_schema(setting: Any) -> Json:
    """The schema of a file: a block or a list of blocks; `setting(option, switch)` gives that of one setting."""
    properties: Json = {"id": {"type": ["string", "number"], "description": "Names the scenario in the results."}}
    for option in OPTIONS:
        for name in option.names:
            one = setting(option, switch=name in option.switches)
            one = {key: value for key, value in one.items() if key != "description"}
            several = {"type": "array", "items": one, "minItems": 1}
            properties[name] = {"anyOf": [one, several], "description": f"{option.help} Default: {option.default}."}
    properties["expect"] = _expect()
    block: Json = {
        "type": "object",
        "required": ["model", "device", "expect"],
        "properties": properties,
        "additionalProperties": False,
    }
    return {"anyOf": [{"type": "array", "items": block, "minItems": 1}, block]}


def _expect() -> Json:
    properties: Json = {"at": END}
    properties |= {word.name: _word(word) for word in WORDS.values()}
    properties |= {figure.name: _figure(figure) for figure in FIGURES.values()}
    return {"type": "object", "minProperties": 1, "properties": properties, "additionalProperties": False}


def _word(word: Word) -> Json:
    truth = word.words == ("true", "false")
    one: Json = {"type": "boolean"} if truth else {"type": "string", "enum": list(word.words)}
    value = one if truth else {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
    mapping: Json = {"type": "object", "required": ["value"], "additionalProperties": False}
    mapping["properties"] = {"value": value, **({"at": END} if truth else {})}
    return {"anyOf": [value, mapping], "description": word.help}


def _figure(figure: Figure) -> Json:
    unit = f" A plain number is in {figure.unit.name}." if figure.unit.name else ""
    number: Json = {"type": ["number", "string"]}
    mapping: Json = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {"min": number, "max": number, "value": number, "at": END},
    }
    near = "A value needs a tolerance: '70 +- 5 %'."
    return {"anyOf": [number, mapping], "description": f"{figure.help}{unit} {near}"}
