"""What is chosen together where nobody says it: a part of it that is said must not turn the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import LlmfeasError
from ..scenario import Origin, Scenario
from . import layout, lengths, valid_layout
from .draft import Draft
from .engine import PLACES
from .variants import recomputations, variants

BATCHES = ("micro_batch", "global_batch")
SPREAD = ("tp", "pp", "cp", "ep", "interleave", "zero", *BATCHES)
"""Of a training over several devices."""


def left_out(
    given: Mapping[str, Any], recorded: Mapping[str, Origin], scenario: Scenario, *, is_open: bool
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the question without what is chosen together, then with one of it, and what was left out.

    `is_open`: whether a layout is still to be chosen.
    """
    names: tuple[str, ...] = PLACES
    if scenario.is_training:
        recomputed = ("checkpointing",) if scenario.task == "pretrain" else ()
        names = (*SPREAD, *recomputed) if scenario.num_devices > 1 and is_open else ()
    said = [name for name in names if name in given and recorded.get(name, "given") == "given"]
    for kept in (None, *said) if len(said) > 1 else said and (None,):
        chosen = [name for name in said if name != kept]
        yield {name: value for name, value in given.items() if name not in chosen}, chosen


def may_choose(
    scenario: Scenario,
    draft: Draft,
    rest: Mapping[str, Any],
    recorded: Mapping[str, Origin],
    wanted: Mapping[str, Any],
) -> bool:
    """Whether what is `wanted` can come out of a question whose layout is open: spares weighing the others.

    Some layout to choose among has to have it, with the batch that would be taken for that one.
    """
    batch = {"micro_batch": rest.get("micro_batch", 0) or 1, "global_batch": lengths.MANY}
    probe = scenario.with_batch(batch, {})
    spread = (probe, *layout.longer_spread(probe, draft))
    run = (found for each in spread for found in recomputations(each, draft))
    for laid_out in (found for each in run for found in layout.layouts(each, draft, rest.get("global_batch", 0))):
        for each in variants(laid_out, draft):
            if all(getattr(each, name) == value for name, value in wanted.items() if name not in BATCHES):
                if wanted.get("micro_batch", 1) > lengths.largest_batch(each, rest.get("global_batch", 0)):
                    continue  # spares looking for what fits
                batches = _batches(each, rest, recorded)
                if all(batches.get(name) == wanted[name] for name in BATCHES if name in wanted):
                    return True
    return False


def _batches(scenario: Scenario, rest: Mapping[str, Any], recorded: Mapping[str, Origin]) -> Mapping[str, Any]:
    """The batch that a layout would get; none where it is refused."""
    draft = Draft(rest, recorded)
    try:
        valid_layout.check_layout(scenario)
        lengths.settle_batches(draft, scenario)
    except LlmfeasError:
        return {}
    return draft.values
