"""The html format: a report as one page, with pictures; nothing is fetched, and no script is needed to read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ..drawing import STYLE as PICTURES
from ..drawing import Picture
from ..report import GLUE, Bar, Column, Heading, Phrase, Report, Table, Topic, Verbatim

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#5f6b76;--line:#d8dee4;--paper:#fff;--good:#1a7f37;--warn:#8a5a00;
--bad:#c0262d;--bar:#0072b2}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa7b2;--line:#30363d;--paper:#11161c;--good:#4ac26b;
--warn:#e0a93b;--bad:#ff7b72;--bar:#4aa3df}}
body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 3rem;color:var(--ink);background:var(--paper);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1,h2{overflow-wrap:anywhere}h1{font-size:1.5rem;line-height:1.25;margin:0}h2{font-size:1.2rem;margin:2rem 0 0}
.verdict{font-weight:600;font-size:1.1rem;margin:.3rem 0}.context,.dim{color:var(--dim)}.context{margin:.3rem 0 0}
.label,.figure{font-weight:600}.feasible{color:var(--good)}.tight{color:var(--warn)}.infeasible{color:var(--bad);font-weight:600}
section{display:grid;grid-template-columns:9rem 1fr;gap:0 1rem;margin-top:1rem}section.close{margin-top:.25rem}
section>h3{font-size:1rem;margin:0}section p,section ul{margin:0}section ul{padding:0;list-style:none}
.items li{display:inline-block;margin-right:1.5rem}.nowrap{white-space:nowrap}
table{border-collapse:collapse;margin-top:1rem}th,td{padding:.2rem .9rem .2rem 0;text-align:left;vertical-align:top}
th{border-bottom:1px solid var(--line);font-weight:600}td.number,th.number{text-align:right}
.wide{overflow-x:auto}.wide:has(>table){width:fit-content;max-width:calc(50vw + min(50vw,30rem) - 2rem)}
.wide td,.wide th{white-space:nowrap}.wide td.prose{white-space:normal;min-width:14rem}
.bars{margin-top:.3rem}.bars th{border:0;font-weight:400}
.bars .number{white-space:nowrap}.bars .bar{width:14rem}td.bar{min-width:4rem}
.bar>span{display:block;height:.8em;min-width:1px;background:var(--bar);margin-top:.35em}
pre{overflow-x:auto;border:1px solid var(--line);padding:.8rem}code{font-size:.95em}
figure{margin:1.5rem 0 0}figcaption{font-weight:600}svg{width:100%;height:auto;display:block;min-width:34rem}
dt{margin-top:.4rem}dd{margin:0 0 0 1.5rem}
@media (max-width:40rem){section{grid-template-columns:1fr}}
@media print{body{max-width:none}figure{break-inside:avoid}.wide:has(>table){max-width:none;font-size:.7rem}}
"""


def rendered(report: Report, pictures: Sequence[Picture] = ()) -> str:
    """The report as one page of valid HTML; text from outside is escaped."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(report.title)}</title>\n<style>{style(drawn=bool(pictures))}</style>\n</head>\n<body>\n<main>\n"
        f"{fragment(report, pictures)}\n</main>\n</body>\n</html>\n"
    )


def style(*, drawn: bool = True) -> str:
    """The style sheet of a report, with that of its pictures if some are `drawn`."""
    return STYLE + (PICTURES if drawn else "")


def fragment(report: Report, pictures: Sequence[Picture] = ()) -> str:
    """The report as what stands inside of a page that has the style of reports."""
    inner = next((place for place, block in enumerate(report.blocks) if isinstance(block, Heading)), -1) + 1
    before, after = ([part for block in part_of for part in _block(block)] for part_of in _cut(report, inner))
    return "\n".join((*_heading(report, "h1"), *before, *map(figure, pictures), *after))


def _cut(report: Report, at: int) -> tuple[Sequence[Topic | Table | Verbatim | Heading], ...]:
    """The blocks up to the heading that the pictures belong to, and those after it."""
    return report.blocks[:at], report.blocks[at:]


def _text(text: str) -> str:
    return escape(text.replace(GLUE, "\u00a0"))


def _phrase(phrase: Phrase) -> str:
    words = _text(phrase.whole)
    return words if phrase.meaning == "plain" else f'<span class="{phrase.meaning}">{words}</span>'


def _phrases(phrases: Sequence[Phrase]) -> str:
    return "".join(map(_phrase, phrases))


def _heading(report: Report | Heading, level: str) -> Iterator[str]:
    yield f"<{level}>{_text(report.title)}</{level}>"
    if report.verdict is not None:
        yield f'<p class="verdict">{_phrase(report.verdict)}</p>'
    if report.context:
        yield f'<p class="context">{" · ".join(map(_text, report.context))}</p>'


def figure(picture: Picture) -> str:
    """A picture under its title."""
    return f'<figure class="wide" tabindex="0"><figcaption>{_text(picture.title)}</figcaption>{picture.svg()}</figure>'


def _block(block: Topic | Table | Verbatim | Heading) -> Iterator[str]:
    if isinstance(block, Heading):
        yield from _heading(block, "h2")
    elif isinstance(block, Verbatim):
        yield f"<h2>{_text(block.label)}</h2>"
        yield f"<pre><code>{escape(block.text)}</code></pre>"
    elif isinstance(block, Table):
        yield _table(block)
    else:
        yield _topic(block)


def _topic(topic: Topic) -> str:
    parts = [f"<p>{_phrases(paragraph)}</p>" for paragraph in topic.paragraphs]
    if topic.bars:
        parts.append(f'<table class="bars">{"".join(map(_bar, topic.bars))}</table>')
    if topic.items:
        parts.append(f'<ul class="items">{"".join(f"<li>{_phrases(item)}</li>" for item in topic.items)}</ul>')
    if topic.pairs:
        pairs = (f"<dt>{_what(pair.left)}</dt><dd>{_phrases(pair.right)}</dd>" for pair in topic.pairs)
        parts.append(f"<dl>{''.join(pairs)}</dl>")
    apart = "" if topic.apart else ' class="close"'
    return f"<section{apart}><h3>{_text(topic.label)}</h3><div>{''.join(parts)}</div></section>"


def _what(left: str) -> str:
    return f"<code>{_text(left)}</code>" if left.startswith("-") else _text(left)


def _bar(bar: Bar) -> str:
    named = f'<th scope="row">{_text(bar.label)}</th><td class="number">{_text(bar.value)}</td>'
    return f"<tr>{named}{_drawn(bar)}</tr>"


def _drawn(bar: Bar) -> str:
    return f'<td class="bar"><span style="width:{100 * min(1.0, max(0.0, bar.share)):.1f}%"></span></td>'


def _table(table: Table) -> str:
    titles = "".join(f'<th scope="col"{_number(column.figures)}>{_text(column.title)}</th>' for column in table.columns)
    rows = []
    for row in table.rows:
        cells = (_cell(cell, column) for column, cell in zip(table.columns, row, strict=True))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    inner = f"<thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="wide" tabindex="0"><table>{inner}</table></div>'


def _number(figures: bool) -> str:
    return ' class="number"' if figures else ""


def _cell(cell: Phrase | Bar, column: Column) -> str:
    if isinstance(cell, Bar):
        return _drawn(cell)
    kind = ' class="prose"' if column.prose else _number(column.figures)
    return f"<td{kind}>{_phrase(cell)}</td>"
