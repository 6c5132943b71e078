"""The report of one backend: what people use on it, and what works, technique by technique."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...text import printable
from ..report import Column, Phrase, Report, Table, Topic, lines_of
from ..words import judged

WORDS: Mapping[str, str] = {
    "below": "target below {}",
    "without_bf16": "no bf16 units",
    "without_matrix_units": "no matrix units",
    "without_fp8": "no fp8 units",
}
"""How the conditions of a case read; the others are lists."""
LONGEST = 26
"""Letters of the names that are shown of a list, beyond the first."""


def page(title: str, fields: Mapping[str, Any], remarks: Sequence[str]) -> Report:
    """A backend's entry: `fields` of the catalog, `remarks` on how it was found."""
    columns = (
        Column(title="Technique"),
        Column(title="Works"),
        Column(title="On"),
        Column(title="Note", prose=True),
    )
    rows = tuple(row for name, cases in fields["techniques"].items() for row in _rows(name, cases))
    used = lines_of(map(_choice, fields["engines"]))
    return Report(
        title=printable(title, 100),
        context=(printable(fields["software"], 200), *(printable(remark, 200) for remark in remarks)),
        blocks=(
            Topic(label="Used", paragraphs=used),
            Table(columns=columns, rows=rows),
            *(
                [Topic(label="Notes", paragraphs=((Phrase(printable(fields["notes"], 400)),),))]
                if fields["notes"]
                else []
            ),
        ),
    )


def _choice(choice: Mapping[str, Any]) -> str:
    """When an engine is taken: `vllm for awq-int4, fp8 on datacenter`."""
    quants = f" for {', '.join(choice['quants'])}" if choice["quants"] else ""
    tasks = f" to {', '.join(choice['tasks'])}" if choice["tasks"] else ""
    when = _condition(choice["when"])
    many = f" from {choice['concurrency']} requests at once" if choice["concurrency"] > 1 else ""
    return printable(f"{choice['engine']}{tasks}{quants}{f' on {when}' if when else ''}{many}", 200)


def _condition(when: Mapping[str, Any]) -> str:
    parts = []
    for name, value in when.items():
        if isinstance(value, list | tuple):
            parts += [str(item) for item in value]
        elif value:
            parts.append(WORDS[name].format(value))
    return ", ".join(parts)


def _rows(name: str, cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Phrase, ...]]:
    """A row for each case; the last one holds for whatever no case before it names."""
    for index, case in enumerate(cases):
        when = _condition(case["when"]) or ("the rest" if index else "all")
        note = "; ".join(text for text in (f"since {case['since']}" if case["since"] else "", case["note"]) if text)
        note = " ".join(text for text in (note, "(unverified)" if case["unverified"] else "") if text)
        technique = ", ".join(name.split()) if index == 0 else ""
        yield (
            Phrase(_shortened(technique), "label"),
            judged(case["status"], case["status"]),
            Phrase(_shortened(when)),
            Phrase(printable(note, 200)),
        )


def _shortened(text: str) -> str:
    """The first few names of a list, and how many more there are."""
    words = text.split(", ")
    shown = words[:1]
    while len(shown) < len(words) and len(", ".join([*shown, words[len(shown)]])) <= LONGEST:
        shown.append(words[len(shown)])
    more = len(words) - len(shown)
    return printable(", ".join(shown) + (f" +{more}" if more else ""), 60)
