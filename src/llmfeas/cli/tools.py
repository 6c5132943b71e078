"""What `llmfeas mcp` offers: each question and each catalog as a tool with the JSON Schema of what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from ..contract import Json, Note
from ..errors import UsageError
from ..options import OPTIONS
from ..record import dataclass
from .commands.schema import CATALOGS, setting_schema

if TYPE_CHECKING:
    from ..render.report import Report
    from .listings import Kind

SCHEMAS = "llmfeas://schema/"
"""Where a client reads the schemas of `llmfeas schema`."""
MOST_ROWS = 20
"""Rows of a search that an agent gets unless it asks for more."""

MOST_WORDS = 30
"""Words that every tool lists for a setting; longer lists stand in that tool alone that says what settings mean."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """An answer as the contract has it, and what a person reads of it."""

    envelope: Json
    report: Callable[[], Report]
    remark: str = ""
    """What the reader has to know besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A question that a client may ask."""

    name: str
    help: str
    own: Json
    """The arguments that are no settings, by name their schemas."""
    required: tuple[str, ...]
    """Arguments that may not be missing."""
    left_out: tuple[str, ...] | None = None
    """Settings that it does not take; None: it takes none at all."""
    described: bool = False
    """Whether it says what settings mean: once is enough, an agent keeps all of it in mind."""
    writes: str
    """The schema of its answer, as `llmfeas schema` names it."""
    answered: Callable[[Json], ToolAnswer]
    """The answer to checked arguments.

    Raises:
        LlmfeasError: as the command of that name.
    """

    @property
    def schema(self) -> Json:
        """The JSON Schema of its arguments."""
        settings = {
            option.name: setting_schema(option, switch=bool(option.switches), spellings=False)
            for option in OPTIONS
            if self.left_out is not None and option.name not in self.left_out
        }
        if not self.described:
            settings = {name: _undescribed(schema) for name, schema in settings.items()}
        return {**_object({**settings, **self.own}, self.required), "additionalProperties": False}

    @property
    def checked(self) -> Json:
        """The schema of what is checked before; settings are read by their table, which says more."""
        return {**_object(self.own, self.required), "additionalProperties": self.left_out is not None}

    @property
    def written(self) -> Json:
        """The JSON Schema of its answer's envelope; the whole one would fill an agent's memory."""
        from ..render.pages.schema import GIVEN, envelope_schema

        result = {"type": "object", "description": f"As the resource {SCHEMAS}{self.writes} describes it."}
        return envelope_schema(self.writes, GIVEN, result)


def _undescribed(schema: Json) -> Json:
    plain = {key: value for key, value in schema.items() if key != "description"}
    if len(plain.get("enum", ())) > MOST_WORDS:
        del plain["enum"]
    return {"anyOf": [_undescribed(each) for each in plain["anyOf"]]} if "anyOf" in plain else plain


def _object(properties: Json, required: tuple[str, ...]) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def _texts(description: str, **more: object) -> Json:
    return {"type": "array", "items": {"type": "string"}, "description": description, **more}


def _count(description: str) -> Json:
    return {"type": "integer", "minimum": 1, "maximum": 1000, "description": description}


def tools() -> Mapping[str, Tool]:
    """All tools by their names."""
    kinds = [import_module(f".commands.{name}", __package__).KIND for name in CATALOGS]
    catalogs = [tool for kind in kinds for tool in (_search(kind), _show(kind))]
    return {tool.name: tool for tool in (_estimate(), _compare(), _plan(), _solve(), *catalogs)}


def _estimate() -> Tool:
    explain: Json = {"type": "boolean", "description": "Also the derivation: each formula with its numbers."}
    return Tool(
        name="estimate",
        help="Can this language model be trained, fine-tuned or served on this hardware: memory, time, cost, verdict, "
        "and what would have to change. What is not said is decided; the answer's inputs say how.",
        own={"explain": explain},
        required=("model", "device"),
        left_out=(),
        described=True,
        writes="estimate",
        answered=_estimated,
    )


def _estimated(arguments: Json) -> ToolAnswer:
    from ..planning.answer import answer
    from .estimated import report_of

    found = answer(arguments, explain=bool(arguments.pop("explain", False)))
    envelope = found.to_dict()
    return ToolAnswer(envelope, lambda: report_of(found, envelope))


def _compare() -> Tool:
    from .commands.compare import SORTS

    own = {
        "models": _texts("Models, as in estimate.", minItems=1, maxItems=50),
        "devices": _texts("Devices, as in estimate; without, a well-known one of each backend and class.", maxItems=50),
        "backends": _texts("All devices of these backends.", maxItems=50),
        "baseline": {"type": "string", "description": "The device that speeds are relative to."},
        "sort": {"type": "string", "enum": list(SORTS), "description": "Order of rows that work. Default: time."},
        "top": _count("At most so many rows. Default: 10."),
    }
    return Tool(
        name="compare",
        help="The same question for several models or devices, ranked: memory, time, cost, limits. "
        "Settings mean what they mean in estimate.",
        own=own,
        required=("models",),
        left_out=("model", "device"),
        writes="compare",
        answered=_compared,
    )


def _compared(arguments: Json) -> ToolAnswer:
    from .. import compare
    from .commands.compare import report_of

    for name in ("model", "device"):
        if name in arguments:
            message = f"compare takes {name}s, a list, and no {name}."
            raise UsageError("unknown-setting", message, f"Say {name}s: [...].", [f"{name}s"])
    top, sort = arguments.pop("top", 10), arguments.pop("sort", "time")
    ranking = compare(**arguments, sort=sort)
    envelope = ranking.to_dict(top)
    return ToolAnswer(envelope, lambda: report_of(ranking, envelope, sort))


def _plan() -> Tool:
    own = {
        "keep": _texts("Names of settings not to change.", maxItems=100),
        "any_device": {"type": "boolean", "description": "Try other devices too."},
        "shown": _count("At most so many ways. Default: 6."),
    }
    return Tool(
        name="plan",
        help="What would have to change so that it works: the least change first, then others that are faster or "
        "cheaper. Settings mean what they mean in estimate.",
        own=own,
        required=("model", "device"),
        left_out=(),
        writes="plan",
        answered=_planned,
    )


def _planned(arguments: Json) -> ToolAnswer:
    from .. import plan
    from .commands.plan import kept, report_of

    keep = arguments.pop("keep", None)
    search = plan(**arguments, keep=kept(",".join(keep)) if keep else ())  # type: ignore[arg-type]
    envelope = search.to_dict()
    return ToolAnswer(envelope, lambda: report_of(search, envelope))


def _solve() -> Tool:
    from ..planning.solve import QUESTIONS

    meaning = " ".join(f"{name}: {text}" for name, (_, _, text) in QUESTIONS.items())
    return Tool(
        name="solve",
        help="A question asked backwards: the largest model, batch or context, the fewest devices, the cheapest "
        "hardware. Settings mean what they mean in estimate.",
        own={"question": {"type": "string", "enum": list(QUESTIONS), "description": meaning}},
        required=("question",),
        left_out=(),
        writes="solve",
        answered=_solved,
    )


def _solved(arguments: Json) -> ToolAnswer:
    from .. import solve
    from .commands.solve import report_of

    solution = solve(**arguments)
    envelope = solution.to_dict()
    return ToolAnswer(envelope, lambda: report_of(solution, envelope))


def _search(kind: Kind) -> Tool:
    filters = {
        each.name: {"type": ["string", "number"], "description": f"Only those that {each.help}"}
        for each in kind.filters
    }
    query = {"type": "string", "maxLength": 400, "description": "Part of a name, vendor or family; without, all."}
    return Tool(
        name=f"search_{kind.plural}",
        help=f"Find {kind.plural} that the catalog knows; {MOST_ROWS} at most unless limit says more.",
        own={"query": query, **filters, "limit": _count(f"At most so many rows. Default: {MOST_ROWS}.")},
        required=(),
        writes=f"{kind.plural}.search",
        answered=partial(_found, kind),
    )


def _found(kind: Kind, arguments: Json) -> ToolAnswer:
    from ..render.pages.catalogs import report
    from .listings import listed

    query, limit = arguments.pop("query", ""), arguments.pop("limit", MOST_ROWS)
    envelope = listed(kind, {name: str(value) for name, value in arguments.items()}, query)
    rows = envelope["result"]["rows"]
    remark = f"{len(rows) - limit} more match." if len(rows) > limit else ""
    del rows[limit:]
    if remark:
        envelope["warnings"].append(Note("rows-left-out", remark).to_dict())
    return ToolAnswer(envelope, lambda: report(rows, kind.plural), remark)


def _show(kind: Kind) -> Tool:
    text = f"Name of the {kind.singular}" + (", or a file or folder of one." if kind.plural == "models" else ".")
    return Tool(
        name=f"show_{kind.singular}",
        help=f"All that is known of one {kind.singular}, with sources.",
        own={"name": {"type": "string", "minLength": 1, "maxLength": 4096, "description": text}},
        required=("name",),
        writes=f"{kind.plural}.show",
        answered=partial(_shown, kind),
    )


def _shown(kind: Kind, arguments: Json) -> ToolAnswer:
    from .listings import opened, page_of, shown

    entry = opened(kind, arguments["name"])
    envelope = shown(kind, arguments["name"], entry)
    return ToolAnswer(envelope, lambda: page_of(kind, entry, envelope))
