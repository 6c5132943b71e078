"""The last value of one setting that works, or the first that does: batch, length, rank, memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.result import Estimate
from ...feasibility.verdict import host_exceeds, memory_status
from ...memory.peak import memory
from ...options import GROUPED
from ...record import dataclass, replace
from ...settle import resolution
from ...workload.serving import spills
from ..asked import REFUSALS
from ..bisection import largest, smallest
from .answer import Answer, Request, kept_up, may_run, outcome, works

MEBIBYTE = 2**20
ON_HOST = "the model does not fit on the device alone: what is more takes room from its layers, and speed with them"
"""Said where all answers leave something on the host."""
CHANGE = "'llmfeas plan' names what would have to change"
"""Said where no answer works."""


@dataclass(frozen=True, slots=True)
class SearchedSetting:
    """One setting that is searched between `low` and `high`, in steps of `unit`."""

    setting: str
    low: int
    high: int
    unit: int = 1
    grows_harder: bool = True
    """More of it is harder; else less of it is."""


def inverted(question: str, search: SearchedSetting, request: Request, catalog: Catalog) -> Answer:
    """SearchedSetting; the estimate at the answer is feasible or tight, one step beyond it is not."""

    def request_at(value: int) -> dict[str, object]:
        return {**request, search.setting: value * search.unit}

    @cache
    def asked(value: int) -> Estimate | None:
        return kept_up(request_at(value), catalog)

    if request.get(search.setting) is not None:
        flag = "--" + search.setting.replace("_", "-")
        raise UsageError("contradiction", f"solve {question} searches {flag}", f"Leave {flag} out.")

    def found(*, on_host: bool) -> int | None:
        def holds(value: int) -> bool:
            return works(asked(value), on_host=on_host)

        if not search.grows_harder:
            return smallest(holds, search.low, search.high)
        return _largest(search, holds, lambda value: _fits(request_at(value), catalog, on_host=on_host))

    value: int | None = None
    notes: tuple[str, ...] = ()
    # requests at once may choose another engine, no other setting does
    if search.setting == "concurrency" or may_run(request_at(search.low), catalog):
        value = found(on_host=False)
        if value is None and search.grows_harder and works(asked(search.low), on_host=True):
            value, notes = found(on_host=True), (ON_HOST,)
    if value is None:
        edge = search.low if search.grows_harder else search.high
        limit = {search.setting: edge * search.unit, **outcome(request_at(edge), catalog)}
        return Answer(question, {search.setting: None}, None, limit, (CHANGE,))
    step = value + (1 if search.grows_harder else -1)
    beyond: dict[str, object] | None = None
    if search.low <= step <= search.high:
        beyond = {search.setting: step * search.unit, **outcome(request_at(step), catalog)}
    return Answer(question, {search.setting: value * search.unit}, asked(value), beyond, notes)


def _largest(search: SearchedSetting, holds: Callable[[int], bool], fits: Callable[[int], bool]) -> int | None:
    """The largest value that works: memory ends it, or time and money before memory does.

    Small values may be too slow where large ones are not, so memory is searched first, then downwards for the rest.
    """
    most = largest(fits, search.low, search.high)
    if most is None or holds(most):
        return most
    tried = most // 2
    while tried >= search.low:
        if holds(tried):
            return largest(holds, tried, most)
        tried //= 2
    return None


def _fits(request: Request, catalog: Catalog, *, on_host: bool) -> bool:
    """Whether memory takes a request."""
    try:
        scenario = resolution(request, catalog).scenario
    except UsageError as error:
        if error.code in REFUSALS:
            return False
        raise
    if spills(scenario) and not on_host:
        return False
    found = memory(scenario)
    return memory_status(found, host_exceeds(scenario, found.memory)) != "exceeds"


def _inference(request: Request) -> bool:
    return request.get("task") == "inference"


def max_batch(request: Request, catalog: Catalog) -> Answer:
    """The largest micro-batch that works, within a global batch that is given; in inference the most requests."""
    if _inference(request):
        return inverted("max-batch", SearchedSetting("concurrency", 1, 10**6), request, catalog)
    within = request.get("global_batch")
    most = 10**6 if within is None else min(10**6, int(str(within)))
    return inverted("max-batch", SearchedSetting("micro_batch", 1, most), request, catalog)


def max_context(request: Request, catalog: Catalog) -> Answer:
    """The longest training sequence or inference context that works.

    Beyond the model's trained context the estimate only warns, so the answer can be longer than that, which then stands
    beside it; a learned position table ends it.
    """
    if _inference(request):
        low = max(1, int(str(request.get("prompt") or 1)))
        return _made_for(inverted("max-context", SearchedSetting("context", low, 10**8), request, catalog))
    written = int(str(request.get("response_length") or (1 if request.get("task") in GROUPED else 0)))
    search = SearchedSetting("seq_len", 1 + written, 10**8)
    return _made_for(inverted("max-context", search, {"micro_batch": 1, **request}, catalog))


def _made_for(found: Answer) -> Answer:
    """The longest context, beside what the model was made for where that is less."""
    if found.at is None:
        return found
    scenario = found.at.scenario
    made, length = scenario.model.context, scenario.seq_len if scenario.is_training else scenario.context
    beyond = {"model_context": made} if (length or 0) > made else {}
    return replace(found, answer={**found.answer, **beyond})


def max_rank(request: Request, catalog: Catalog) -> Answer:
    """The largest rank of LoRA or QLoRA that works.

    Raises:
        UsageError: for a task without adapters.
    """
    if request.get("task") not in ("lora", "qlora"):
        raise UsageError("contradiction", "solve max-rank is about adapters", "Add --task lora or --task qlora.")
    return inverted("max-rank", SearchedSetting("lora_rank", 1, 65536), {"micro_batch": 1, **request}, catalog)


def min_memory(request: Request, catalog: Catalog) -> Answer:
    """The least memory of one device that works, to the MiB, at the micro-batch given (else 1)."""
    fixed = request if _inference(request) else {"micro_batch": 1, **request}
    return inverted(
        "min-memory", SearchedSetting("memory", 1, 2**30, unit=MEBIBYTE, grows_harder=False), fixed, catalog
    )
