"""Scenarios turned into lines of output: in this process, or in several with the order kept."""

from __future__ import annotations

import functools
import gc
import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping

from ..errors import BugError, DataError, LlmfeasError, unforeseen
from ..record import dataclass
from .failure import fails
from .scenario_items import Item, ScenarioLine
from .scenarios import item_of_line

EXTRAS = ("ladder", "remedies", "uses")
"""What a line holds beside its estimate where it is wanted."""
CHUNK, SLOW_CHUNK = 256, 4
"""Scenarios that are answered at once: alone, and with extras, which take far longer."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Lines of output, how many scenarios they answer, and how many of these were bad or met a bug of ours."""

    text: str
    count: int
    bad: int = 0
    bugs: int = 0
    refused: int = 0
    """Scenarios whose answer is no."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How scenarios are to be answered: the format of the lines, and what beside the estimate (`EXTRAS`)."""

    format: str = "ndjson"
    extras: frozenset[str] = frozenset()

    @property
    def chunk(self) -> int:
        """Scenarios that are answered at once."""
        return SLOW_CHUNK if self.extras else CHUNK


def answers(arrivals: Iterator[list[Item | ScenarioLine]], options: SweepOptions, jobs: int = 1) -> Generator[Answered]:
    """Answer scenarios in their order; several jobs take them in turns, never more than a few chunks ahead."""
    pending = chunks(arrivals, options.chunk)
    for chunk in itertools.islice(pending, 1):
        yield answered(chunk, options)
    # what the first one loads stays: no search for garbage has to look at it, no other process to load or copy it
    gc.freeze()
    if jobs == 1:
        for chunk in pending:
            yield answered(chunk, options)
        return
    from ..catalog.overlay import use_overlays
    from ..catalog.store import catalog
    from .crew import Crew

    work, lost = functools.partial(answered, options=options), functools.partial(_lost, options=options)
    with Crew(jobs, work, functools.partial(use_overlays, catalog().overlay_paths), lost) as crew:
        yield from crew.results(pending)


def chunks(arrivals: Iterable[list[Item | ScenarioLine]], most: int) -> Iterator[list[Item | ScenarioLine]]:
    """Divide what is there into lists of 1, 2, 4 and so on up to `most`: the first answers come at once."""
    size = 1
    for items in arrivals:
        while items:
            chunk, items = items[:size], items[size:]
            yield chunk
            size = min(2 * size, most)


def answered(items: Iterable[Item | ScenarioLine], options: SweepOptions) -> Answered:
    """Answer some scenarios; what goes wrong with one is its answer."""
    from ..planning.answer import answer, bare_answer
    from ..render.pages.estimate_line import estimate_line

    lines, bad, bugs, refused = [], 0, 0, 0
    extras = {name: name in options.extras for name in EXTRAS}
    for one in items:
        item = item_of_line(one.raw, one.number) if isinstance(one, ScenarioLine) else one
        try:
            if item.error is not None:
                raise item.error
            estimate = answer(item.request, None, **extras) if options.extras else bare_answer(item.request)
            if options.format == "csv":
                lines.append(_line({"id": item.id, **estimate.to_dict()}, options.format))
            else:
                lines.append(estimate_line(item.id, estimate))
            refused += fails(estimate.verdict)
        except LlmfeasError as error:
            lines.append(_line(_failed(item, error), options.format))
            bad += 1
        except Exception as error:  # one scenario must not end the others
            known = unforeseen(error)
            lines.append(_line(_failed(item, known), options.format))
            bugs, bad = bugs + isinstance(known, BugError), bad + (not isinstance(known, BugError))
    return Answered("".join(lines), len(lines), bad, bugs, refused)


def _lost(items: Iterable[Item | ScenarioLine], options: SweepOptions) -> Answered:
    """Say of scenarios that they have no answer: the process that was at them was killed, and the next one too."""
    hint = "Is there memory for so many --jobs?"
    error = DataError("killed", "the process that answered this line was killed, twice.", hint)
    rows = [item_of_line(one.raw, one.number) if isinstance(one, ScenarioLine) else one for one in items]
    return Answered("".join(_line(_failed(row, error), options.format) for row in rows), len(rows), bad=len(rows))


def _failed(item: Item, error: LlmfeasError) -> Mapping[str, object]:
    return {"id": item.id, "line": item.line, "error": error.to_dict()}


def _line(row: Mapping[str, object], format: str) -> str:
    if format == "csv":
        from ..render.formats.csv import flattened, table
        from ..render.formats.ndjson import encoded

        cells = flattened(row)
        if isinstance(row["id"], dict | list):
            cells["id"] = encoded(row["id"])
        return table(csv_columns(), [cells], header=False)
    from ..render.formats.ndjson import line

    return line(row)


@functools.cache
def csv_columns() -> list[str]:
    """The columns of a sweep: the scenario's id, the estimate's, and what was wrong."""
    from ..render.formats.csv import estimate_columns

    return ["id", *estimate_columns(), "line", "error.code", "error.message", "error.hint"]
