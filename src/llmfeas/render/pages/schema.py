"""The JSON Schema of what is written, read off the contract's records: their types and docstrings."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...contract import ADDED, NULL, Absent, Json, Keys, Note, keys_of
from ...feasibility.inputs import Inputs, Setting
from ...feasibility.result import Estimate

TYPES: Mapping[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "number"},
    float: {"type": "number"},
    object: {},
}
GIVEN = Mapping[str, Setting]
"""What was said."""


def envelope_schema(name: str, inputs: Any, result: Json) -> Json:
    """The schema of an envelope: `inputs` is a type, `result` a schema."""
    return object_schema(
        {
            "schema": {"type": "string", "enum": [f"llmfeas.{name}/1"]},
            "llmfeas": {"type": "string", "description": "The version that answered."},
            "catalog": {"type": "string", "description": "Digest of the data behind the answer, with its overlays."},
            "inputs": schema_of(inputs),
            "result": result,
            "warnings": schema_of(tuple[Note, ...]),
        }
    )


def estimate_schema() -> Json:
    """The schema of an estimate's envelope."""
    return envelope_schema("estimate", Inputs, record_schema(Estimate))


def schema_of(hint: Any) -> Json:
    """The schema of a type; unknown keys are allowed everywhere, since fields may be added.

    Raises:
        TypeError: a type that the contract does not use.
    """
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _annotated(parts[0], parts[1:])
    if origin in (typing.Union, types.UnionType):
        return _union([part for part in parts if part is not Absent])
    if origin is typing.Literal:
        return {"type": "string", "enum": list(parts)}
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return {"type": "object", "properties": {}}
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return {"type": "array", "items": schema_of(parts[0])}
    if hint is Estimate:
        return estimate_schema()
    if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
        return record_schema(hint)
    return dict(TYPES[hint]) if hint in TYPES else schema_of(typing.get_type_hints(hint.to_dict)["return"])


def _annotated(hint: Any, marks: Sequence[Any]) -> Json:
    for mark in marks:
        if isinstance(mark, Keys):
            inner = typing.get_args(hint)[1]
            required = [name for name in mark.names if name not in mark.added]
            return object_schema({name: schema_of(inner) for name in mark.names}, required)
    return _or_null(schema_of(hint)) if NULL in marks else schema_of(hint)


def _union(parts: Sequence[Any]) -> Json:
    """One of several types: of records all keys, those that are not in each of them optional and perhaps null."""
    whole = [part for part in parts if part is not types.NoneType]
    if len(whole) < len(parts):
        return _or_null(schema_of(whole[0]) if len(whole) == 1 else _union(whole))
    schemas = [schema_of(part) for part in whole]
    if len(schemas) == 1:
        return schemas[0]
    shared = set.intersection(*(set(schema["required"]) for schema in schemas))
    merged: Json = functools.reduce(lambda known, schema: {**known, **schema["properties"]}, schemas, {})
    keys = {key: schema if key in shared else _or_null(schema) for key, schema in merged.items()}
    return object_schema(keys, [key for key in keys if key in shared])


def object_schema(keys: Json, required: Sequence[str] | None = None) -> Json:
    """The schema of an object with these keys, all of them required unless some are named."""
    required = list(keys) if required is None else list(required)
    return {"type": "object", "properties": keys, **({"required": required} if required else {})}


def _or_null(schema: Json) -> Json:
    about = {"description": schema.pop("description")} if "description" in schema else {}
    return schema | about if "anyOf" in schema else {"anyOf": [schema, {"type": "null"}], **about}


def record_schema(record: Any) -> Json:
    """The schema of a record by its own keys."""
    hints, docs = _hints(record), _docstrings(record)
    if typing.is_typeddict(record):
        required = [key for key in hints if key in record.__required_keys__]
    else:
        required = [key for key, hint in hints.items() if not {Absent, ADDED} & set(typing.get_args(hint))]
    keys = {key: {**schema_of(hint), **docs.get(key, {})} for key, hint in hints.items()}
    return {**object_schema(keys, required), **docs.get("", {})}


def _hints(record: Any) -> dict[str, Any]:
    """The types of a record's keys, in their order."""
    hints = typing.get_type_hints(record, include_extras=True)
    if typing.is_typeddict(record):
        return hints
    return {key: hints[key] if key in hints else _returned(getattr(record, key)) for key in keys_of(record)}


def _returned(member: property) -> Any:
    return typing.get_type_hints(member.fget, include_extras=True)["return"]


def _docstrings(record: Any) -> dict[str, Json]:
    """What the source says of a record (under an empty name) and of its keys, as descriptions."""
    found: dict[str, str | None] = {}
    for base in _bases(record):
        body = _classes(base.__module__).get(base.__qualname__)
        if body is None:  # installed without its source
            continue
        found[""] = ast.get_docstring(body)
        for before, after in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(before, ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(before.target, ast.Name)
            ):
                found[before.target.id] = str(ast.literal_eval(after.value))
        for member in body.body:
            if isinstance(member, ast.FunctionDef):
                found[member.name] = ast.get_docstring(member)
    return {key: {"description": _first_paragraph(text)} for key, text in found.items() if text}


@functools.cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The classes of a module as its source has them; none where it is installed without."""
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:
        return {}
    return {each.name: each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)}


def _bases(record: Any) -> Iterator[Any]:
    """Where keys are declared: a record and what it extends, the outermost first."""
    for base in getattr(record, "__orig_bases__", record.__bases__):
        if getattr(base, "__module__", "").startswith("llmfeas"):
            yield from _bases(base)
    yield record


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def paths(schema: Json, path: str = "") -> Iterator[str]:
    """The dotted path of every leaf of a schema; a list is one."""
    if "anyOf" in schema:
        yield from paths(schema["anyOf"][0], path)
    elif schema.get("type") == "object":
        for key, inner in schema["properties"].items():
            yield from paths(inner, f"{path}.{key}" if path else key)
    else:
        yield path
