"""Options of the command line: the settings of the one table, and those of every command's output."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..options import OPTIONS, Option, flag_of
from ..text import printable
from .wanted import Output as Output
from .wanted import on_catalog

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FORMATS = ("table", "json", "ndjson", "csv", "markdown", "html")
DRAWN = (*FORMATS, "svg")
"""Formats of a command whose answers have pictures."""
OUTPUT_GROUP = "Output"
CATALOG_GROUP = "Catalog"


FILES = ("FILE", "DIR")
"""What the value of an option is called that is a path."""


def paths(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a path itself."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


class Grouped(click.Option):
    """An option that stands under a heading of its own in the help."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What may stand at the cursor: a path where one is wanted."""
        return paths(ctx, self, incomplete) if self.metavar in FILES else super().shell_complete(ctx, incomplete)

    def __init__(self, *args: Any, group: str = OUTPUT_GROUP, everyday: bool = False, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.group = group
        self.everyday = everyday


class Command(click.Command):
    """A command whose help lists options under headings; it runs on the catalog with the user's overlays."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """What shows all options; where some are for every day alone, `-h` shows those."""
        names = super().get_help_option_names(ctx)
        return [name for name in names if name != "-h"] if self.is_long else names

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options, with `-h` where help has a short form."""
        params = super().get_params(ctx)
        return [*params[:-1], _SHORT_HELP, params[-1]] if self.is_long else params

    @property
    def is_long(self) -> bool:
        """Whether help has a short form: there are settings, and not all of them are for every day."""
        grouped = (parameter for parameter in self.params if isinstance(parameter, Grouped))
        return any(parameter.everyday and parameter.group != OUTPUT_GROUP for parameter in grouped)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an option of another tool that takes what one of ours takes stands for that
        (`-ngl 35`), other ones are refused as a whole.

        Raises:
            click.NoSuchOption: what would else be taken for short options of ours in a row.
        """
        known = {flag for parameter in self.params for flag in parameter.opts}
        end = args.index("--") if "--" in args else len(args)
        read = [self._taken(word, known, ctx) if word[:1] == "-" else word for word in args[:end]]
        return super().parse_args(ctx, [*read, *args[end:]])

    def _taken(self, word: str, known: Collection[str], ctx: click.Context) -> str:
        """An option as it is called here."""
        if word.partition("=")[0] in known:
            return word
        from ..elsewhere import ours, taken

        here = taken(word)
        if here is not None and here.partition("=")[0] in known:
            return here
        if len(word) > 2 and word[1] != "-" and ours(word) is not None:
            raise click.NoSuchOption(word, ctx=ctx)
        return word

    def invoke(self, ctx: click.Context) -> Any:
        """Lay the overlays over the catalog, then run.

        Raises:
            DataError: an overlay is missing or cannot be used.
        """
        with on_catalog(ctx.params):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options heading by heading, in the order in which the headings first occur."""
        if ctx.meta.get(SHORT):
            everyday = [each for each in self.get_params(ctx) if isinstance(each, Grouped) and each.everyday]
            with formatter.section("Options of every day"):
                formatter.write_dl([_in_short(each) for each in everyday])
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help shows all options, with what holds where one is not said.")
            return
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(parameter, "group", OUTPUT_GROUP), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


SHORT = "llmfeas.short_help"
"""Key of a context's `meta` where the short help was asked for."""


def _shortly(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    """Show the options of every day, and end."""
    if asked and not ctx.resilient_parsing:
        ctx.meta[SHORT] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _in_short(option: Grouped) -> tuple[str, str]:
    """An option in few words: one name, what it takes, what it says; choices stand with the words."""
    name = next(flag for flag in option.opts if flag.startswith("--"))
    names = [*(flag for flag in option.opts if not flag.startswith("--")), name]
    text, metavar = (option.help or "").partition("  [")[0], option.metavar or ""
    if "|" in metavar:
        text, metavar = metavar.replace("|", ", "), name[2:].upper()
    return f"{', '.join(names)} {metavar}".rstrip(), text


_SHORT_HELP = Grouped(
    ["short_help_", "-h"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_shortly,
    help="Show the options of every day and exit.",
)


def settings(hidden: Sequence[str] = ()) -> list[click.Parameter]:
    """The options of an estimate, one or two for each row of the table of settings."""
    return [parameter for row in OPTIONS if row.name not in hidden for parameter in _of_row(row)]


def _of_row(row: Option) -> list[click.Parameter]:
    flags = [*([row.short] if row.short else []), *row.flags]
    default = "" if row.required else f"  [{row.default}]"
    single: dict[str, Any] = {"multiple": True, "callback": _only_one} if row.required else {}
    metavar = row.metavar or _metavar(row)
    listed = row.choices and "|" not in metavar
    one_of = f" {'Such as' if row.extensible else 'One of'} {', '.join(row.choices)}." if listed else ""
    main = Grouped(
        [row.name, *flags],
        group=row.group,
        everyday=row.everyday,
        **single,
        help=row.help + one_of + default,
        metavar=metavar,
        shell_complete=_completion(row),
    )
    switches = [_switch(row, name) for name in row.switches]
    return switches if row.name in row.switches else [main, *switches]


def _only_one(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The value of an option that may be given once.

    Raises:
        UsageError: it is given several times with several values.
    """
    different = tuple(dict.fromkeys(values))
    if len(different) < 2:
        return different[0] if different else None
    flag = parameter.opts[-1]
    shown = ", ".join(printable(value, 40) for value in different[:4])
    several = " ".join(f'{flag} "{each}"' if " " in each else f"{flag} {each}" for each in different[:4])
    hint = f"One is asked about at a time; 'llmfeas compare' takes several: {printable(several, 200)}"
    raise UsageError("contradiction", f"{flag} is given {len(values)} times: {shown}.", hint)


def _switch(row: Option, name: str) -> click.Parameter:
    """An option that may stand alone: `--fsdp`, `--gradient-checkpointing`."""
    value = row.switches[name]
    own = f"{row.help}  [{row.default}]"
    help_text = own if name == row.name else f"The same as {row.flag} {value}."
    return Grouped(
        [name, flag_of(name)], group=row.group, is_flag=False, flag_value=value, help=help_text, metavar="[VALUE]"
    )


def _metavar(row: Option) -> str:
    if row.choices:
        joined = "|".join(row.choices)
        return joined if len(joined) <= 60 else "FORMAT" if row.name == "quant" else row.name.upper()
    return {"text": "NAME", "count": "COUNT", "integer": "N", "fraction": "SHARE"}.get(row.kind, "X")


def _completion(row: Option) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def items(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        count, name = _counted(incomplete) if row.name == "device" else ("", incomplete)
        found = [CompletionItem(count + each) for each in _values(row) if each.startswith(name) and each.isprintable()]
        return found or (paths(ctx, parameter, incomplete) if row.name == "model" else [])

    return items


def _counted(text: str) -> tuple[str, str]:
    """A count before a device (`8xh1`), with its x, and the rest."""
    digits = len(text) - len(text.lstrip("0123456789"))
    whole = digits > 0 and text[digits : digits + 1] == "x"
    return (text[: digits + 1], text[digits + 1 :]) if whole else ("", text)


def _values(row: Option) -> list[str]:
    if row.name not in ("model", "device"):
        return list(row.choices)
    from ..catalog.store import catalog

    known = catalog()
    return [*known.models] if row.name == "model" else ["this", *known.devices, *known.offers]


def outputs(formats: Sequence[str] = FORMATS, default: str = "table") -> list[click.Parameter]:
    """The options that every command has for its output."""
    return [
        Grouped(["format_", "-f", "--format"], type=click.Choice(formats), help=f"Format of the output.  [{default}]"),
        Grouped(["json_", "--json"], is_flag=True, everyday=True, help="The same as --format json."),
        Grouped(
            ["path", "-o", "--output"],
            metavar="FILE",
            everyday=True,
            help="Write to a file, whole or not at all; a bare number is --output-tokens.",
        ),
        Grouped(["quiet", "-q", "--quiet"], is_flag=True, help="Print no result and no notes, only errors."),
        Grouped(
            ["verbose", "-v", "--verbose"], is_flag=True, help="Say what answered and what was assumed, on stderr."
        ),
        Grouped(["no_color", "--no-color"], is_flag=True, help="No escape codes, whatever the terminal can do."),
        *([_PICTURE] if "svg" in formats else []),
        *catalogs(),
    ]


_PICTURE = Grouped(
    ["picture", "--picture"],
    metavar="NAME",
    help="With --format svg, the picture: memory, step, length, speed ...  [the first]",
)


def catalogs() -> list[click.Parameter]:
    """The options that lay one's own entries over the catalog."""
    text = "One's own devices, models, prices: laid over the catalog. May be repeated; the last wins."
    alone = "Leave out the user's own catalog.yaml and LLMFEAS_CATALOG."
    return [
        Grouped(["catalog_files", "--catalog"], multiple=True, metavar="FILE", group=CATALOG_GROUP, help=text),
        Grouped(["no_user_catalog", "--no-user-catalog"], is_flag=True, group=CATALOG_GROUP, help=alone),
    ]
