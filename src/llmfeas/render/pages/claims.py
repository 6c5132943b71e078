"""The report of claims: the verdicts in a table, then for each claim what is said, found, why, and what is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...text import printable
from ..report import Column, Json, Pair, Phrase, Report, Table, Topic, lines_of
from ..words import judged

READ = (
    "✓ holds, ! holds under conditions, ✗ does not hold",
    "every verdict and figure is computed from the catalog by 'llmfeas claims', none is stored",
)
"""How to read a page of claims."""

MOST = 8
"""Cases that are named; more are counted."""


def report(envelope: Mapping[str, Any], *, overview: bool, details: bool) -> Report:
    """The claims of an envelope: an `overview` document by document, the `details` of each, or both."""
    result = envelope["result"]
    claims = result["claims"]
    blocks: list[Topic | Table] = []
    for document in result["documents"]:
        own = [claim for claim in claims if document["id"] in claim["documents"]]
        if overview:
            blocks.append(_document(document, () if details else own))
            blocks += [_table(own)] if details else []
        blocks += [_details(claim) for claim in own] if details else []
    if not details:
        how = "llmfeas claims ID tells why; --format markdown tells it of all."
        blocks.append(Topic(label="Why", paragraphs=((Phrase(how),),)))
    noun = "claim" if len(claims) == 1 else "claims"
    return Report(
        title=f"{len(claims)} {noun}: {_count(claims)}",
        context=READ if overview and details else (),
        blocks=tuple(blocks),
    )


def _count(claims: Sequence[Json]) -> str:
    if len(claims) == 1:
        return str(claims[0]["verdict"])
    words = {"holds": "hold", "holds under conditions": "hold under conditions", "does not hold": "do not"}
    counts = {verdict: sum(claim["verdict"] == verdict for claim in claims) for verdict in words}
    return ", ".join(f"{count} {words[verdict]}" for verdict, count in counts.items() if count)


def _pairs(claims: Sequence[Json]) -> Iterator[Pair]:
    for claim in claims:
        verdict = judged(claim["verdict"], claim["id"])
        said, found = printable(claim["says"], 400), printable(f"Found: {claim['found']}.", 400)
        yield Pair(verdict.whole, (Phrase(said, verdict.meaning), Phrase(" "), Phrase(found)))


def _document(document: Mapping[str, Any], claims: Sequence[Json]) -> Topic:
    texts = [document["about"]] if document["about"] else []
    editions = ", ".join(f"{edition['title']} ({edition['language']})" for edition in document["editions"])
    if editions:
        texts.append(f"In circulation as: {editions}.")
    if document["links"]:
        texts.append(f"Links: {', '.join(document['links'])}")
    paragraphs = lines_of(printable(text, 800) for text in texts)
    return Topic(label=printable(document["title"], 120), paragraphs=paragraphs, pairs=tuple(_pairs(claims)))


def _table(claims: Sequence[Json]) -> Table:
    columns = (Column(title="Claim"), Column(title="What it says", prose=True), Column(title="Found", prose=True))
    return Table(columns=columns, rows=tuple(_row(claim) for claim in claims))


def _row(claim: Json) -> tuple[Phrase, ...]:
    return (
        judged(claim["verdict"], printable(claim["id"])),
        Phrase(printable(claim["says"], 400)),
        Phrase(printable(claim["found"], 400)),
    )


def _details(claim: Json) -> Topic:
    lines = [f"{claim['says']} – {claim['verdict']}.", *_lines(claim)]
    paragraphs = lines_of(printable(line, 1200) for line in lines)
    return Topic(label=judged(claim["verdict"], printable(claim["id"])).whole, paragraphs=paragraphs)


def _lines(claim: Json) -> Iterator[str]:
    yield f"Found: {claim['found']}."
    yield claim["because"]
    if claim["verdict"] == "holds under conditions":
        yield f"Where it holds: {_some(claim['holds_for'])}."
        yield f"Where it does not: {_some(claim['fails_for'])}."
    if claim["right"]:
        yield f"What is right: {claim['right'].rstrip('.')}."
    if claim["sources"]:
        yield f"Sources: {', '.join(claim['sources'])}"


def _some(labels: Sequence[str]) -> str:
    more = f"; and {len(labels) - MOST} more" if len(labels) > MOST else ""
    return "; ".join(labels[:MOST]) + more
