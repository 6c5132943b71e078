"""`llmfeas schema`: JSON Schemas of what goes in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any

import click

from ..errors import UsageError
from ..options import OPTIONS, Option
from ..render import shape, shapes
from ..render.shape import Leaf, Many, Maybe, Shape
from ..text import printable
from . import output
from .parameters import Command, Grouped

Json = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
CATALOGS = ("devices", "models", "backends", "offers")
RECORDS = ("device", "model", "backend", "offer", "engine")

RANGE: Json = {
    "type": "object",
    "required": list(shape.ENDS),
    "properties": {end: {"type": "number"} for end in shape.ENDS},
}


def schema_of(part: Shape) -> Json:
    """Turn a shape of the contract into a JSON Schema; unknown keys are allowed, since fields may be added."""
    if isinstance(part, Many):
        return {"type": "array", "items": schema_of(part.item)}
    if isinstance(part, Leaf):
        return _leaf(part)
    keys = part.keys if isinstance(part, Maybe) else part
    found: Json = {"type": "object", "properties": {name: schema_of(inner) for name, inner in keys.items()}}
    if not isinstance(part, Maybe):
        found["required"] = list(keys)
    return _or_null(found) if isinstance(part, Maybe) and part.null else found


def _leaf(leaf: Leaf) -> Json:
    if leaf.type == "any":
        return {}
    found: Json = dict(RANGE) if leaf.type == "range" else {"type": leaf.type}
    if leaf.words:
        found["enum"] = list(leaf.words)
    return _or_null(found) if leaf.null else found


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def scenario_schema() -> Json:
    """Give the schema of one scenario of a sweep: an id and settings, each text or a number."""
    properties: Json = {"id": {"description": "Echoed as the first key of the answer."}}
    for option in OPTIONS:
        properties |= {name: _setting(option, switch=name in option.switches) for name in option.names}
    return {"type": "object", "required": ["model", "device"], "properties": properties, "additionalProperties": False}


def _setting(option: Option, switch: bool) -> Json:
    found: Json = {"description": f"{option.help} Default: {option.default}."}
    if option.choices:
        found |= {"type": "string", "enum": [*option.choices, *_more(option), *option.synonyms, "auto"]}
    else:
        found["type"] = "string" if option.kind == "text" else ["string", "number"]
    if option.unit:
        found["description"] += f" A plain number is in {option.unit}."
    return {"anyOf": [found, {"type": "boolean"}]} if switch else found


def _more(option: Option) -> list[str]:
    if not option.extensible:
        return []
    from ..catalog.store import catalog

    return [name for name in catalog().tables.quantization.formats if name not in option.choices]


def _record(name: str) -> Json:
    from pydantic import TypeAdapter

    from ..catalog.sections import BACKENDS, DEVICES, ENGINES, MODELS, OFFERS

    sections = {section.key.removesuffix("s"): section for section in (DEVICES, MODELS, BACKENDS, OFFERS, ENGINES)}
    return TypeAdapter(sections[name].record).json_schema()


def _catalog(name: str, verb: str) -> Json:
    row = Maybe({"id": shape.TEXT, "name": shape.TEXT, "backend": shape.TEXT_OR_NULL})
    result: Shape = Maybe({}) if verb == "show" else {"rows": Many(row)}
    return schema_of(shape.envelope(f"{name}.{verb}", Maybe({}), result))


def _estimate() -> Json:
    """Give the schema of an estimate; its derivation is there with `--explain`."""
    found = schema_of(shape.ESTIMATE)
    found["properties"]["explanation"] = schema_of(Many(shapes.TERM))
    return found


def _sweep() -> Json:
    """Give the schema of a line that a sweep writes: an estimate, or what was wrong; its id is the first key."""
    answered = schema_of(shape.ESTIMATE)
    failed = schema_of({"line": Leaf("number"), **shape.ERROR})
    for each in (answered, failed):
        each["required"] = ["id", *each["required"]]
        each["properties"] = {"id": {}, **each["properties"]}
    return {"anyOf": [answered, failed]}


def _check() -> Json:
    from .schema_check import check_schema

    return check_schema(_setting)


def schemas() -> Mapping[str, Callable[[], Json]]:
    """Name every schema with what makes it."""
    verbs = ("list", "search", "show")
    return {
        "estimate": _estimate,
        **{name: partial(schema_of, found) for name, found in shapes.OUTPUTS.items()},
        "scenario": scenario_schema,
        "sweep": _sweep,
        "check": _check,
        "error": lambda: schema_of(shape.ERROR),
        **{f"{name}.{verb}": partial(_catalog, name, verb) for name in CATALOGS for verb in verbs},
        **{name: partial(_record, name) for name in RECORDS},
    }


def run(name: str | None, path: str | None) -> None:
    """Write one schema, or without a name list them all.

    Raises:
        UsageError: there is no schema of that name.
    """
    known = schemas()
    if name is None:
        output.write("".join(f"{each}\n" for each in known), path)
        return
    if name not in known:
        near = get_close_matches(name[:40], known, n=2)
        meant = f"Did you mean {' or '.join(repr(each) for each in near)}? " if near else ""
        message = f"there is no schema {printable(name, 40)!r}."
        raise UsageError("unknown-schema", message, f"{meant}See 'llmfeas schema'.", near)
    from ..render.json import rendered

    output.write(rendered({"$schema": DIALECT, "title": f"llmfeas {name}", **known[name]()}), path)


command = Command(
    "schema",
    params=[
        click.Argument(["name"], required=False),
        Grouped(["path", "-o", "--output"], metavar="FILE", help="Write to a file, whole or not at all."),
    ],
    callback=run,
    help="Print the JSON Schema of a command's output, of a sweep's scenario, of an error or of a catalog's entry; "
    "without a name, list the schemas.",
)
