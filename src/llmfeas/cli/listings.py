"""What the four catalogs' commands share: list, show and search over records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..contract import ABSENT, Absent, Note, Published, envelope, given
from ..record import dataclass, fields
from ..text import printable
from .app import subgroup
from .output import write as written
from .parameters import Command, Grouped, Output, outputs

if TYPE_CHECKING:
    from ..catalog.store import Catalog, Records
    from ..render.report import Json, Report

FILTERS = "Only those that"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """An option that narrows a listing; `keeps(row, value)` tells which rows stay."""

    name: str
    help: str
    keeps: Callable[[Json, Any], bool]
    read: Callable[[str], Any] = str
    """Turns what was typed into the value.

    Raises:
        UsageError: it is none.
    """
    metavar: str = "NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry(Published):
    """One entry in a listing."""

    id: str
    name: str
    backend: str | Absent | None = ABSENT

    @classmethod
    def of(cls, record: Any) -> ListedEntry:
        """The row of a record: its own fields, and what is computed of it."""
        computed = cls.computed(record)
        own: Json = {each.name: getattr(record, each.name, ABSENT) for each in fields(cls) if each.name not in computed}
        return cls(**own, **computed)

    @staticmethod
    def computed(record: Any) -> Json:
        """The fields of a row that the record does not hold under their names."""
        return {}


@dataclass(frozen=True, slots=True)
class Opened:
    """A record that was read from a file: what the file tells beside it, and remarks."""

    record: Any
    fields: Json
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One catalog: where its records are, how one is found, what a row of a listing holds."""

    singular: str
    plural: str
    records: Callable[[Catalog], Records[Any]]
    found: Callable[[str, Catalog], tuple[Any, str | None]]
    """Find a record by a forgiving name: the record, and a note where the name was not exact."""
    listed: type[ListedEntry]
    """A row of a listing."""
    filters: tuple[Filter, ...] = ()
    spare: Callable[[Json], bool] = lambda row: False
    """Rows that nobody browses for: left out of a list where others remain."""
    spare_words: str = ""
    """What they are."""
    extra: Callable[[Any], Json] = lambda record: {}
    """What `show` tells beside the record's own fields."""
    page: Callable[[str, Mapping[str, Any], Sequence[str]], Report] | None = None
    """Shows one record to people; None: field by field."""
    near: Callable[[str, Catalog], list[str]] | None = None
    """What `search` lists where no record holds every word; None: what is spelled alike."""
    joined: Callable[[Any, Catalog], Json] = lambda record, catalog: {}
    """What `show` tells in place of fields of the record, with what other records say of it."""
    opened: Callable[[str, Catalog], Opened | None] = lambda text, catalog: None
    """What `show` tells of a file; None where the text is no path."""


def group(kind: Kind, help: str) -> click.Group:
    """The group `llmfeas devices` and its like."""
    return subgroup(kind.plural, help, (_list(kind), _show(kind), _search(kind)))


def _envelope(kind: Kind, verb: str, inputs: Json, result: object, notes: Sequence[Note] = ()) -> dict[str, Any]:
    from ..catalog.store import catalog

    named = given({name: value for name, value in inputs.items() if value})
    return envelope(f"{kind.plural}.{verb}", catalog().digest, named, result, notes)


def listed(kind: Kind, chosen: Json, query: str | None = None) -> dict[str, Any]:
    """The answer of `list`, or with a query of `search`: the rows that keep to the chosen filters.

    Raises:
        UsageError: the value of a filter is none.
    """
    from ..catalog.search import search
    from ..catalog.store import catalog

    known, meant = catalog(), kind.near
    records = kind.records(known)
    read = {f.name: (f, f.read(chosen[f.name])) for f in kind.filters if chosen.get(f.name) is not None}
    near = None if meant is None else lambda text: meant(text, known)
    ids = list(records) if query is None else search(records, query, near)
    entries = (kind.listed.of(records[key]).to_dict() for key in ids)
    rows = [row for row in entries if all(f.keeps(row, v) for f, v in read.values())]
    if query is not None:
        return _envelope(kind, "search", {"query": query, **chosen}, {"rows": rows})
    main = [] if chosen.get("all") else [row for row in rows if not kind.spare(row)]
    if not main or len(main) == len(rows):
        return _envelope(kind, "list", chosen, {"rows": rows})
    text = f"{len(rows) - len(main)} {kind.spare_words} are left out; --all lists them too"
    return _envelope(kind, "list", chosen, {"rows": main}, [Note("left-out", text)])


def opened(kind: Kind, text: str) -> Opened:
    """The entry that a name, or the path of a file, means.

    Raises:
        UsageError, DataError: there is none, or the file cannot be used.
    """
    from ..catalog.store import catalog

    found = kind.opened(text, catalog())
    if found is None:
        record, note = kind.found(text, catalog())
        found = Opened(record, {}, [note] if note else [])
    return found


def shown(kind: Kind, text: str, entry: Opened) -> dict[str, Any]:
    """The answer of `show`: all that is known of the entry that `text` means."""
    from ..catalog.store import catalog

    record, code = entry.record, "imported-model" if entry.fields else f"{kind.singular}-variant"
    named = {"id": record.id, "name": record.name}
    fields = {**named, **kind.extra(record), **asdict(record), **kind.joined(record, catalog()), **entry.fields}
    return _envelope(kind, "show", {"name": text}, fields, [Note(code, note) for note in entry.notes])


def page_of(kind: Kind, entry: Opened, answer: Json) -> Report:
    """What a person reads of an entry, of which `answer` is the JSON."""
    from ..render.pages.entry import entry as fields

    return (kind.page or fields)(f"{entry.record.name} ({entry.record.id})", answer["result"], entry.notes)


def _list(kind: Kind) -> click.Command:
    def run(**values: Any) -> None:
        output = Output.taken(values)
        _write_rows(kind, output, values)

    filters = [
        Grouped([f.name, "--" + f.name.replace("_", "-")], group=FILTERS, help=f.help, metavar=f.metavar)
        for f in kind.filters
    ]
    if kind.spare_words:
        filters.append(Grouped(["all", "--all"], is_flag=True, help=f"List {kind.spare_words} too."))
    return Command("list", params=[*filters, *outputs()], callback=run, help=f"List all {kind.plural}.")


def _search(kind: Kind) -> click.Command:
    def run(query: tuple[str, ...], **values: Any) -> None:
        output = Output.taken(values)
        _write_rows(kind, output, {}, " ".join(query))

    argument = click.Argument(["query"], nargs=-1, required=True)
    text = f"Find {kind.plural} by part of a name, vendor or family."
    return Command("search", params=[argument, *outputs()], callback=run, help=text)


def _write_rows(kind: Kind, output: Output, chosen: Json, query: str | None = None) -> None:
    from ..catalog.store import catalog
    from ..render.pages.catalogs import report
    from ..render.words import sentence

    answer = listed(kind, chosen, query)
    rows = answer["result"]["rows"]
    output.write(answer, lambda: report(rows, kind.plural))
    for warning in answer["warnings"]:
        output.note(sentence(warning["message"]))
    if not rows:
        asked = {name: said["value"] for name, said in answer["inputs"].items()}
        chosen_text = ", ".join(f"{name} {printable(value, 40)}" for name, value in asked.items())
        output.note(f"No {kind.singular} of {len(kind.records(catalog()))} matches: {chosen_text}.")


def _show(kind: Kind) -> click.Command:
    def run(name: tuple[str, ...], **values: Any) -> None:
        output, as_yaml = Output.taken(values), values.pop("yaml_")
        text = " ".join(name)
        entry = opened(kind, text)
        if as_yaml:
            from ..render.pages.overlay import overlay

            written(overlay(kind.plural, [entry.record]), output.path)
            return
        answer = shown(kind, text, entry)
        output.write(answer, lambda: page_of(kind, entry, answer))

    argument = click.Argument(["name"], nargs=-1, required=True, shell_complete=_names(kind))
    as_file = Grouped(["yaml_", "--yaml"], is_flag=True, help="Write it as an entry for a catalog file of one's own.")
    return Command(
        "show",
        params=[argument, as_file, *outputs()],
        callback=run,
        help=f"Show all that is known of one {kind.singular}.",
    )


def _names(kind: Kind) -> Callable[..., list[str]]:
    def names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from ..catalog.store import catalog

        return [key for key in kind.records(catalog()) if key.startswith(incomplete)]

    return names
