"""`llmfeas schema`: JSON Schemas of what goes in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

import click

from ...check.figures import FIGURES, WORDS, Figure, Word
from ...contract import Json
from ...errors import UsageError, did_you_mean
from ...options import OPTIONS, Option
from ...text import printable
from .. import output
from ..parameters import Command, Grouped

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CATALOGS = ("devices", "models", "backends", "offers")
RECORDS = ("device", "model", "backend", "offer", "engine")
SAID, SETTLED = "what was said", "every setting"
"""What inputs an envelope holds."""


RESULTS: Mapping[str, tuple[str, str, str, str]] = {
    "compare": ("compare", SAID, "planning.compare", "ComparisonResult"),
    "plan": ("plan", SETTLED, "planning.plan", "PlanResult"),
    "solve": ("solve", SAID, "planning.solve.answer", "Answer"),
    "launch": ("launch", SETTLED, "planning.launch", "LaunchResult"),
    "check.result": ("check", SAID, "check.run", "CheckResult"),
    "claims": ("claims", SAID, "evidence.claims.answer", "ClaimsResult"),
    "diff": ("diff", SAID, "check.diff", "DiffResult"),
    "backtest": ("backtest", SAID, "evidence.backtest", "Backtest"),
    "backtest.calibrate": ("backtest", SAID, "evidence.own", "CalibrationResult"),
    "learn": ("learn", SAID, "evidence.learn", "Learned"),
    "detect": ("detect", SAID, "machine", "DetectedMachine"),
    "catalog.path": ("catalog.path", SAID, "cli.commands.catalog", "CatalogPaths"),
    "catalog.check": ("catalog.check", SAID, "cli.commands.catalog", "CatalogCheck"),
}
"""What a command writes with --json: by the name of its schema its envelope's name, its inputs, and where its result
is, which is imported for that schema alone."""


def scenario_schema() -> Json:
    """The schema of one scenario of a sweep: an id and settings, each text or a number."""
    properties: Json = {"id": {"description": "Echoed as the first key of the answer."}}
    for option in OPTIONS:
        properties |= {name: setting_schema(option, switch=name in option.switches) for name in option.names}
    return {"type": "object", "required": ["model", "device"], "properties": properties, "additionalProperties": False}


def setting_schema(option: Option, switch: bool, spellings: bool = True) -> Json:
    """The schema of one setting's value, with all spellings of its choices; a switch may be a boolean too."""
    schema: Json = {"description": f"{option.help} Default: {option.default}."}
    if option.choices:
        other = option.synonyms if spellings else ()
        schema |= {"type": "string", "enum": [*option.choices, *_more(option), *other, "auto"]}
    else:
        schema["type"] = "string" if option.kind == "text" else ["string", "number"]
    if option.unit:
        schema["description"] += f" A plain number is in {option.unit}."
    return {"anyOf": [schema, {"type": "boolean"}]} if switch else schema


def _more(option: Option) -> list[str]:
    if not option.extensible:
        return []
    from ...catalog.store import catalog

    return [name for name in catalog().tables.quantization.formats if name not in option.choices]


def _record(name: str) -> Json:
    from pydantic import TypeAdapter

    from ...catalog.store import BACKENDS, DEVICES, ENGINES, MODELS, OFFERS

    sections = {section.key.removesuffix("s"): section for section in (DEVICES, MODELS, BACKENDS, OFFERS, ENGINES)}
    return TypeAdapter(sections[name].record).json_schema()


def _catalog(name: str, verb: str) -> Json:
    from ...render.pages.schema import GIVEN, envelope_schema, object_schema, schema_of

    row = import_module(f".{name}", __package__).KIND.listed
    rows = object_schema({"rows": {"type": "array", "items": schema_of(row)}})
    result = schema_of(Mapping[str, object]) if verb == "show" else rows
    return envelope_schema(f"{name}.{verb}", GIVEN, result)


def _result(name: str) -> Json:
    from ...feasibility.inputs import Inputs
    from ...render.pages.schema import GIVEN, envelope_schema, schema_of

    schema, inputs, module, record = RESULTS[name]
    result = getattr(import_module(f"llmfeas.{module}"), record)
    return envelope_schema(schema, {SAID: GIVEN, SETTLED: Inputs}[inputs], schema_of(result))


def _estimate() -> Json:
    """The schema of an estimate; its derivation is there with `--explain`."""
    from ...feasibility.result import Term
    from ...render.pages.schema import estimate_schema, schema_of

    schema = estimate_schema()
    schema["properties"]["explanation"] = schema_of(tuple[Term, ...])
    return schema


def _error() -> Json:
    from ...errors import LlmfeasError
    from ...render.pages.schema import object_schema, schema_of

    return object_schema({"error": schema_of(LlmfeasError)})


def _sweep() -> Json:
    """The schema of a line that a sweep writes: an estimate, or what was wrong; its id is the first key."""
    from ...render.pages.schema import estimate_schema, object_schema, schema_of

    answered, failed = estimate_schema(), _error()
    return {
        "anyOf": [
            object_schema({"id": {}, **answered["properties"]}),
            object_schema({"id": {}, "line": schema_of(int), **failed["properties"]}),
        ]
    }


def _check() -> Json:
    return check_schema(setting_schema)


def schemas() -> Mapping[str, Callable[[], Json]]:
    """Name every schema with what makes it."""
    verbs = ("list", "search", "show")
    return {
        "estimate": _estimate,
        **{name: partial(_result, name) for name in RESULTS},
        "scenario": scenario_schema,
        "sweep": _sweep,
        "check": _check,
        "error": _error,
        **{f"{name}.{verb}": partial(_catalog, name, verb) for name in CATALOGS for verb in verbs},
        **{name: partial(_record, name) for name in RECORDS},
    }


def run(name: str | None, path: str | None) -> None:
    """Write one schema, or without a name list them all.

    Raises:
        UsageError: there is no schema of that name.
    """
    if name is None:
        output.write("".join(f"{each}\n" for each in schemas()), path)
    else:
        output.write(schema_text(name), path)


def schema_text(name: str) -> str:
    """The schema of that name as a JSON document.

    Raises:
        UsageError: there is none; near names are candidates.
    """
    known = schemas()
    if name not in known:
        near = get_close_matches(name[:40], known, n=2)
        message = f"there is no schema {printable(name, 40)!r}."
        raise UsageError("unknown-schema", message, f"{did_you_mean(near)} See 'llmfeas schema'.".lstrip(), near)
    from ...render.formats.json import rendered

    return rendered({"$schema": DIALECT, "title": f"llmfeas {name}", **known[name]()})


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
