"""What commands do with the values of their options: the catalog that they run on, and the output that is wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..record import dataclass
from ..text import printable
from . import output, terminal

if TYPE_CHECKING:
    from ..render.drawing import Picture


@contextlib.contextmanager
def on_catalog(values: dict[str, Any]) -> Iterator[None]:
    """Take the options of the catalog out of a command's values, and lay the overlays over it for the block.

    Raises:
        DataError: an overlay is missing or cannot be used.
    """
    from ..catalog.places import MEASURED_FILE, overlay_paths
    from ..catalog.store import built_in, install

    files, alone = values.pop("catalog_files", ()), values.pop("no_user_catalog", False)
    paths = overlay_paths(files, user=not alone)
    if any(path.name == MEASURED_FILE for path in paths):
        from ..catalog.overlay_file import usable

        paths, errors = usable(paths)
        for error in errors:
            terminal.say(f"Note: {error.message}. {error.hint}")
    if paths:
        from ..catalog.overlay import use_overlays

        use_overlays(paths)
    else:
        install(built_in())
    with terminal.patience(not values.get("quiet")):
        yield


@dataclass(frozen=True, slots=True)
class Output:
    """How the result is wanted, and where."""

    format: str
    path: str | None
    quiet: bool
    verbose: bool
    no_color: bool
    picture: str | None = None

    @classmethod
    def taken(cls, values: dict[str, Any], default: str = "table") -> Output:
        """Take the output options out of a command's values.

        Raises:
            UsageError: `--json`, `--format` or `--yaml` together, `--picture` with a format that has none to choose.
        """
        chosen, as_json = values.pop("format_"), values.pop("json_")
        if as_json and chosen not in (None, "json"):
            raise UsageError("contradiction", f"--json and --format {chosen} exclude each other.", "Give one of them.")
        if values.get("yaml_") and (as_json or chosen):
            other = "--json" if as_json else f"--format {chosen}"
            raise UsageError("contradiction", f"--yaml and {other} exclude each other.", "Give one of them.")
        path = values.pop("path")
        if path is not None and path.isdecimal() and values.get("output", "") is None:
            values["output"], path = path, None
        return cls(
            format="json" if as_json else chosen or default,
            path=path,
            quiet=values.pop("quiet"),
            verbose=values.pop("verbose"),
            no_color=values.pop("no_color"),
            picture=_picture(values.pop("picture", None), chosen),
        )

    def note(self, text: str) -> None:
        """Write a line to stderr, unless quiet."""
        if not self.quiet:
            terminal.say(text)

    def write(
        self,
        envelope: Mapping[str, object],
        report: Callable[[], Any],
        pictures: Callable[[], Sequence[Picture]] | None = None,
    ) -> None:
        """Write the envelope in the format asked for; `report` builds what people read, if they are to read.

        `pictures` gives those that the envelope alone does not hold.

        Raises:
            UsageError, BrokenPipeError: as `output.write`.
        """
        if self.quiet and self.path is None:
            return
        terminal.settled()
        output.write(self._rendered(envelope, report, pictures), self.path)
        if self.verbose:
            for line in _remarks(envelope):
                self.note(line)

    def _rendered(
        self,
        envelope: Mapping[str, object],
        report: Callable[[], Any],
        more_pictures: Callable[[], Sequence[Picture]] | None,
    ) -> str:
        from importlib import import_module

        renderer = import_module(f"llmfeas.render.formats.{self.format}")
        if self.format == "table":
            to_file = self.path not in (None, "-")
            return str(
                renderer.rendered(
                    report(),
                    width=terminal.width(),
                    colour=not to_file and terminal.has_colour(self.no_color),
                    unicode=to_file or terminal.has_unicode(),
                )
            )
        if self.format in ("html", "svg"):
            from ..render.pictures import pictures

            drawn = (*pictures(envelope), *(more_pictures() if more_pictures else ()))
            return str(renderer.rendered(*((report(), drawn) if self.format == "html" else (drawn, self.picture))))
        return str(renderer.rendered(report() if self.format == "markdown" else envelope))


def _picture(name: str | None, format: str | None) -> str | None:
    if name is not None and format != "svg":
        raise UsageError("contradiction", "--picture goes with --format svg.", "Say --format svg, or leave it out.")
    return name


def _remarks(envelope: Mapping[str, Any]) -> Iterator[str]:
    """What `--verbose` says of an answer: versions, catalog files, each assumed setting with its value's origin."""
    from ..catalog.store import catalog
    from ..render.words import setting

    yield f"llmfeas {envelope['llmfeas']}, catalog {printable(envelope['catalog'], 400)}"
    known = catalog()
    yield f"catalog files: {', '.join(printable(path, 200) for path in (known.directory, *known.overlay_paths))}"
    for name, entry in envelope["inputs"].items():
        if entry["origin"] != "given" and entry["value"] is not None:
            yield f"assumed --{name.replace('_', '-')} {setting(name, entry['value'])} ({entry['origin']})"


def said(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of all settings those that were said."""
    return {name: value for name, value in values.items() if value is not None}


def question(values: Mapping[str, Any], example: str) -> dict[str, Any]:
    """The settings that were said, of which a question needs two.

    Raises:
        UsageError: model or device is missing.
    """
    found = said(values)
    for name in ("model", "device"):
        if name not in found:
            raise UsageError("missing-option", f"--{name} is missing.", f"For example: {example}")
    return found
