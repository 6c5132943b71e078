"""The markdown format, for issues, pull requests and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..report import GLUE, Bar, Heading, Phrase, Report, Table, Topic, Verbatim

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"} | {GLUE: " "})


def rendered(report: Report) -> str:
    """The report as CommonMark with pipe tables; text from outside is escaped."""
    lines = [*_heading(report, "##")]
    for block in report.blocks:
        if isinstance(block, Verbatim):
            lines += _verbatim(block)
        elif isinstance(block, Heading):
            lines += _heading(block, "###")
        else:
            lines += _table(block) if isinstance(block, Table) else _topic(block)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n"


def _heading(report: Report | Heading, level: str) -> Iterator[str]:
    yield from (f"{level} {_text(report.title)}", "")
    if report.verdict is not None:
        yield from (f"**{_text(report.verdict.whole)}**", "")
    if report.context:
        yield from (" · ".join(_text(part) for part in report.context), "")


def _text(text: str) -> str:
    return text.translate(_SPECIAL)


def _phrases(phrases: Sequence[Phrase]) -> str:
    return "".join(_text(phrase.whole) for phrase in phrases)


def _topic(topic: Topic) -> Iterator[str]:
    if topic.paragraphs:
        first, *others = topic.paragraphs
        yield (
            f"**{_text(topic.label)}** {_phrases(first)}  " if others else f"**{_text(topic.label)}** {_phrases(first)}"
        )
        for index, paragraph in enumerate(others, start=1):
            yield _phrases(paragraph) + ("  " if index < len(others) else "")
    else:
        yield f"**{_text(topic.label)}**"
    yield ""
    if topic.bars:
        yield from ("| | |", "| --- | ---: |")
        yield from (f"| {_text(entry.label)} | {_text(entry.value)} |" for entry in topic.bars)
        yield ""
    items = [_phrases(item) for item in topic.items]
    items += [f"`{pair.left.replace(GLUE, ' ').replace('`', '')}` {_phrases(pair.right)}" for pair in topic.pairs]
    if items:
        yield from (f"- {item}" for item in items)
        yield ""


def _verbatim(block: Verbatim) -> Iterator[str]:
    fence = "```"
    while fence in block.text:
        fence += "`"
    yield from (f"**{_text(block.label)}**", "", fence, *block.text.splitlines(), fence, "")


def _table(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(_text(column.title) for column in table.columns) + " |"
    yield "| " + " | ".join("---:" if column.figures else "---" for column in table.columns) + " |"
    for row in table.rows:
        yield (
            "| "
            + " | ".join("█" * round(10 * cell.share) if isinstance(cell, Bar) else _text(cell.whole) for cell in row)
            + " |"
        )
    yield ""
