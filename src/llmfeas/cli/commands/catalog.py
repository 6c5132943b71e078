"""`llmfeas catalog`: one's own entries over the catalog: where they are looked for, checked, begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...catalog.doubts import Doubt
from ...contract import Added, Published, envelope
from ...errors import DataError, UsageError
from ...record import dataclass
from ...text import printable
from .. import terminal
from ..app import subgroup
from ..output import write as written
from ..parameters import Command, Output, outputs, paths

TEMPLATE = """# One's own entries over the catalog of llmfeas. Fields and units: the headers of its own files;
# examples: 'llmfeas devices show ID --yaml', 'llmfeas models show ID --yaml'.
#
# An entry with `extends` changes fields of another one: under a new id, or without an id in place.
# An entry without it is new, or replaces the one of the same id.

devices:
# - extends: rtx-4090            # my price, in place
#   prices: [{provider: mine, usd_per_hour: 0.12}]
# - id: my-workstation
#   name: My workstation
#   extends: rtx-4090
#   power_w: 350

models:
# - id: my-llama
#   name: My Llama
#   extends: llama-3-8b
#   architecture: {layers: 40}
"""

MOST_SHOWN = 20
"""Faults that one error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPaths(Published):
    """Which files are used, and where others would be looked for."""

    catalog: str
    """The folder of the built-in data."""
    overlays: tuple[str, ...]
    """Files that are laid over it, in the order in which they apply."""
    user: str
    project: str | None
    variable: str
    """The variable of the environment that names further files."""


@dataclass(frozen=True, slots=True)
class CatalogCheck(Published):
    """What was checked, and how many faults were found."""

    overlays: tuple[str, ...]
    problems: int
    doubts: Added[tuple[Doubt, ...]]
    """What need not be wrong, but is unlikely: prices, rates that cores and clock contradict."""


def _path(**values: Any) -> None:
    """Say which files are laid over the catalog, and where others would be looked for."""
    output = Output.taken(values)
    from ...catalog.places import PROJECT_FILE, USER_FILE, VARIABLE, current_folder, project_file, user_folder
    from ...catalog.store import catalog
    from ...render.pages.entry import entry

    paths = CatalogPaths(
        catalog=str(catalog().directory),
        overlays=tuple(map(str, catalog().overlay_paths)),
        user=str(user_folder() / USER_FILE),
        project=str(project_file() or current_folder() / PROJECT_FILE),
        variable=VARIABLE,
    )
    answer = envelope("catalog.path", catalog().digest, {}, paths)
    output.write(answer, lambda: entry("Catalog files", answer["result"]))


def _check(files: tuple[str, ...], **values: Any) -> None:
    """Check the files given, or those in use, entry by entry, and say what is to be doubted in them or in the catalog.

    Raises:
        DataError: something is wrong with one; the others are told before.
    """
    output = Output.taken(values)
    from ...catalog.doubts import doubts
    from ...catalog.overlay import overlaid, with_overlays
    from ...catalog.store import built_in, catalog
    from ...render.pages.entry import entry

    chosen = with_overlays(built_in(), [Path(file) for file in files]) if files else catalog()
    problems = list(getattr(chosen, "problems", list)())
    if problems and output.format in ("json", "ndjson"):  # then standard error holds one object
        messages = "; ".join(error.message for error in problems[:MOST_SHOWN])
        raise DataError(problems[0].code, messages, problems[0].hint, problems[0].candidates)
    for error in problems[1:]:
        terminal.say(f"Error: {error.message}. {error.hint}")
    if problems:
        raise DataError(problems[0].code, problems[0].message, problems[0].hint, problems[0].candidates)
    doubted = tuple(doubts(chosen, overlaid(chosen) if files else None))
    check = CatalogCheck(tuple(map(str, chosen.overlay_paths)), 0, doubted)
    answer = envelope("catalog.check", catalog().digest, {}, check)
    title = "No problem found" if chosen.overlay_paths else "No file of one's own is in use"
    said = {**answer["result"], "doubts": [f"{doubt.entry}, {doubt.field}: {doubt.message}" for doubt in doubted]}
    output.write(answer, lambda: entry(title, said))


def _init(file: str | None, **values: Any) -> None:
    """Begin a catalog file: the user's own, or the one named.

    Raises:
        UsageError: it is there already, or cannot be written.
    """
    output = Output.taken(values)
    from ...catalog.places import USER_FILE, user_folder

    path = Path(file) if file else user_folder() / USER_FILE
    if path.exists():
        raise UsageError("file-exists", f"{printable(path, 120)} is there already.", "Edit it, or name another file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("cannot-write", f"cannot make {printable(path.parent, 120)}: {error.strerror}.") from None
    written(TEMPLATE, str(path))
    output.note(f"Wrote {printable(path, 120)}. See it with 'llmfeas catalog path', check it with 'catalog check'.")


_FILES = click.Argument(["files"], nargs=-1, metavar="[FILE]...", shell_complete=paths)
_FILE = click.Argument(["file"], required=False, shell_complete=paths)
command = subgroup(
    "catalog",
    "One's own entries: where they are looked for, checked, begun.",
    (
        Command("path", params=outputs(), callback=_path, help="Say which files are laid over the catalog."),
        Command("check", params=[_FILES, *outputs()], callback=_check, help="Check the files given, or those in use."),
        Command("init", params=[_FILE, *outputs()], callback=_init, help="Begin a catalog file."),
    ),
)
