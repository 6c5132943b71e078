"""What stands below an answer that is slow for want of it: the nearest ways to keep on the device what was left on the
host, and to read lighter weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from ..catalog.store import Catalog
from ..feasibility.result import Estimate, Remedy
from ..scenario import Scenario
from ..settle.formats import FEWER, bits
from ..workload.serving import spills
from .changes.axes import axes_of
from .changes.change import Axis, Changes
from .selection import GAIN, worth_showing
from .trials import Search
from .way import Way

SHOWN = 2
MILD = ("kv_dtype", "quant", "context")
"""Settings of one's own that make room without another machine."""


def faster_ways(request: Mapping[str, object], estimated: Estimate, catalog: Catalog) -> list[Remedy]:
    """The first ways, of one change or else of two, that surely leave nothing on the host and so write much faster."""
    search = Search(request, estimated.scenario, catalog)
    search.surely = True
    # nobody is helped by a context shorter than the one that was taken for want of another
    asked = tuple(name for name in MILD if name != "context" or estimated.scenario.was_given("context"))
    axes = [axis for axis in axes_of(estimated, catalog) if axis.name in asked]
    for count in (1, 2):
        ways = [way for chosen in combinations(axes, count) for way in _whole(search, chosen, estimated)]
        if ways:
            return [way.remedy for way in worth_showing(ways)[:SHOWN]]
    return []


def reads_heavy_weights(scenario: Scenario) -> bool:
    """Whether one that chats alone at a desk named no format, and most people there run a smaller one."""
    serving = scenario.engine_record.serving
    if scenario.is_training or scenario.has_load or scenario.was_given("quant") or scenario.stored is not None:
        return False
    formats = scenario.tables.quantization
    return serving.automatic and bits(formats, scenario.quant) * FEWER > bits(formats, serving.usual[-1])


def lighter_weights(request: Mapping[str, object], estimated: Estimate, catalog: Catalog) -> list[Remedy]:
    """The smallest usual format of the engine, where it surely fits and writes much faster; none where it does not."""
    search = Search(request, estimated.scenario, catalog)
    search.surely = True
    usual = estimated.scenario.engine_record.serving.usual[-1]
    axes = [axis for axis in axes_of(estimated, catalog) if axis.name == "quant"]
    changes = [change for axis in axes for change in axis.alternatives if change.settings.get("quant") == usual]
    ways = filter(None, (search.way((change,)) for change in changes))
    gaining = (way for way in ways if way.estimate.speed.expected >= GAIN * estimated.speed.expected)
    return [way.remedy for way in gaining][:1]


def _whole(search: Search, chosen: Sequence[Axis], estimated: Estimate) -> Iterator[Way]:
    """Yield the mildest way that takes an alternative of each axis and leaves nothing on the host."""
    for changes in product(*(axis.alternatives for axis in chosen)):
        way = search.way(changes)
        if way is None or spills(way.estimate.scenario) or _keeps_format(way, changes, estimated):
            continue
        if way.estimate.speed.expected >= GAIN * estimated.speed.expected:
            yield way
            return


def _keeps_format(way: Way, changes: Changes, estimated: Estimate) -> bool:
    """Whether a change of something else brought another format in, which is another way."""
    named = any("quant" in change.settings for change in changes)
    return not named and way.estimate.scenario.quant != estimated.scenario.quant
