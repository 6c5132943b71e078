"""The whole answer to a request: settle it, estimate it, add what else is possible and what would have to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.store import Catalog
from ..catalog.store import catalog as default_catalog
from ..contract import ABSENT
from ..feasibility.core import estimate
from ..feasibility.result import Estimate, MemorySize
from ..record import replace
from ..request import canonical, said_in
from ..scenario import Scenario
from ..settle import resolution
from ..units import GIB
from .asked import Asked


def bare_answer(request: Mapping[str, object], catalog: Catalog | None = None) -> Estimate:
    """Answer a request without ladder and remedies.

    Raises:
        UsageError: for unknown names, values out of bounds, contradictions.
        DataError: for a model file that cannot be used.
    """
    catalog = catalog or default_catalog()
    settled = resolution(request, catalog)
    return estimate(settled)


def leaves_task_open(scenario: Scenario) -> bool:
    """Whether nobody said what to do with the model, by name or by what only a server or an objective has."""
    serves = scenario.origins["task"] == "derived" and scenario.task == "inference"
    return not (scenario.was_given("task") or serves or scenario.loss is not None)


def answer(
    request: Mapping[str, object],
    catalog: Catalog | None = None,
    *,
    ladder: bool = True,
    remedies: bool = True,
    uses: bool = True,
    explain: bool = False,
) -> Estimate:
    """Answer a request, by default with the ladder, and with remedies where it is not feasible as asked, and with
    faster ways where the host has to help, the weights are heavier than most people's, or a pipeline waits.

    Of a request that says no task `uses` say what the machine does, unless its settings are those of a server.

    Raises:
        UsageError: for unknown names, values out of bounds, contradictions.
        DataError: for a model file that cannot be used.
    """
    beside = Asked(catalog or default_catalog())
    asked = canonical(request, beside.catalog.tables.quantization)
    result, said = bare_answer(asked, beside.catalog), said_in(asked)
    if uses and leaves_task_open(result.scenario):
        from .uses import uses_of

        result = replace(result, uses=tuple(uses_of(said, result, beside)))
    if ladder:
        from .ladder import rungs

        sizes = tuple(memory_sizes(said, result, beside))
        result = replace(result, ladder=tuple(rungs(said, result, beside)), memory_sizes=sizes or ABSENT)
    if remedies:
        result = _with_ways(said, result, beside.catalog)
    if explain:
        from ..feasibility.explain import explanation

        result = replace(result, explanation=explanation(result))
    return result


def _with_ways(said: Mapping[str, object], result: Estimate, catalog: Catalog) -> Estimate:
    """The answer with the nearest ways to yes, or those to keep on the device what was left on the host."""
    if result.verdict.status != "feasible":
        from .remedies import nearest_remedies

        return replace(result, remedies=tuple(nearest_remedies(said, result, catalog)))
    if result.scenario.is_training:
        return result
    from ..workload.serving import spills
    from .faster import faster_ways, lighter_weights, reads_heavy_weights

    if spills(result.scenario):
        return replace(result, faster=tuple(faster_ways(said, result, catalog)))
    if reads_heavy_weights(result.scenario) and result.scenario.model.architecture.writes:
        return replace(result, faster=tuple(lighter_weights(said, result, catalog)) or ABSENT)
    return result


def memory_sizes(request: Mapping[str, object], estimated: Estimate, beside: Asked) -> Iterator[MemorySize]:
    """Yield the sizes, the smallest first, each as the request with that `memory`; none where a size was said."""
    scenario = estimated.scenario
    options = sorted(scenario.device.memory_options_gib)
    if len(options) < 2 or scenario.origins.get("memory") != "device":
        return
    for size in options:
        if size * GIB == scenario.memory_bytes:
            yield MemorySize(size * GIB, estimated.verdict.status, assumed=True)
            continue
        found = beside.estimate({**request, "memory": f"{size:g}GiB"})
        if found is not None:
            yield MemorySize(size * GIB, found.verdict.status, assumed=False)
