"""An estimate as one line of NDJSON, its head kept for all batches: the same text as the envelope's, sooner."""

from __future__ import annotations

from functools import lru_cache

from ... import __version__
from ...contract import ABSENT, Note, keys_of
from ...feasibility.core import flops, parameter_counts
from ...feasibility.inputs import inputs, value_and_origin
from ...feasibility.result import SCHEMA, Estimate
from ...findings import cached_across_batches
from ...scenario import BATCH, Origin, Scenario
from ..formats.ndjson import encoded

SERVING_REST = tuple(key for key in keys_of(Estimate) if key != "parameters")
TRAINING_REST = tuple(key for key in SERVING_REST if key not in ("flops", "load"))
"""What of a result depends on the batch."""
_HOLE = "\0"
"""Stands for a setting of the batch; no text of a request holds it."""


def estimate_line(id: object, estimate: Estimate) -> str:
    """`{"id": id, **estimate.to_dict()}` as one line.

    Raises:
        ValueError: a number is not finite, which the contract rules out.
    """
    scenario = estimate.scenario
    head = _head(scenario, estimate.catalog) % tuple([_setting(*value_and_origin(scenario, name)) for name in BATCH])
    keys = TRAINING_REST if scenario.is_training else SERVING_REST
    rest = {key: value for key in keys if (value := getattr(estimate, key)) is not ABSENT}
    return f'{{"id":{encoded(id)},{head},{encoded(rest)[1:]},"warnings":{_warnings(estimate.warnings)}}}\n'


@cached_across_batches
def _head(scenario: Scenario, catalog: str) -> str:
    """An envelope up to what depends on the batch, as a format for the settings of the batch."""
    settings = [f'"{name}":{_HOLE if name in BATCH else _setting(**said)}' for name, said in inputs(scenario).items()]
    result: dict[str, object] = {"parameters": parameter_counts(scenario)}
    if scenario.is_training:
        result["flops"] = flops(scenario)
    begin = encoded({"schema": SCHEMA, "llmfeas": __version__, "catalog": catalog})[1:-1]
    head = f'{begin},"inputs":{{{",".join(settings)}}},"result":{encoded(result)[:-1]}'
    return head.replace("%", "%%").replace(_HOLE, "%s")


@lru_cache(maxsize=1024)
def _warnings(warnings: tuple[Note, ...]) -> str:
    return encoded(warnings)


@lru_cache(maxsize=1024, typed=True)
def _setting(value: object, origin: Origin) -> str:
    return encoded({"value": value, "origin": origin})
