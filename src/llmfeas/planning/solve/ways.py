"""What an answer becomes under the first ways of a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.core import estimate
from ...record import replace
from ...settle import resolution
from ..asked import unless_refused
from ..remedies import nearest_remedies
from .answer import Answer, Instead, Request

ANOTHER_JOB = frozenset({"task", "tokens"})
ANOTHER_MACHINE = frozenset({"device", "num_devices", "memory", "host_memory"})
WORTH = 1.1
"""From this factor on a recipe's gain is worth naming."""

Solver = Callable[[Request, Catalog], Answer]


def ways_of(
    request: Request,
    failing: Request,
    catalog: Catalog,
    solver: Solver,
    figure: str,
    without: Collection[str] = ANOTHER_JOB,
) -> Iterator[Instead]:
    """Yield the ways that a plan finds for a question that fails, but those that change a setting of `without`, each
    with the figure that the solver answers under it. What not all that it tries can be asked with is no way.
    """
    for each in nearest_remedies(failing, estimate(resolution(failing, catalog)), catalog):
        if each.changes.keys() & without:
            continue
        try:
            there = solver({**request, **each.changes}, catalog)
        except UsageError:
            continue
        amount = there.answer.get(figure)
        if isinstance(amount, int | float) and there.at is not None:
            yield Instead(each.changes, there.at.verdict.status, float(amount), each.message)


def with_recipes(
    request: Request, found: Answer, farther: Sequence[Request], catalog: Catalog, solver: Solver, figure: str
) -> Answer:
    """The answer of a training as asked, with the mildest recipe for each question `farther` on under which memory is
    short, where it gains something.
    """
    if found.at is None or not found.at.scenario.is_training:
        return found
    own, ways = float(str(found.answer[figure])), list[Instead]()
    for failing in farther:
        settled = unless_refused(failing, catalog)
        if settled is None or estimate(settled).memory.verdict != "exceeds":
            continue
        recipes = ways_of(request, failing, catalog, solver, figure, ANOTHER_JOB | ANOTHER_MACHINE)
        way = next((each for each in recipes if max(each.answer / own, own / each.answer) >= WORTH), None)
        if way is not None:
            ways.append(way)
            own = way.answer
    return replace(found, ways=tuple(ways))
