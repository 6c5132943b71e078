"""What drafts tokens ahead, as servers are told it: a model, the model's own layers, a head trained for it."""

from __future__ import annotations

from ...scenario import Scenario
from ..repositories import repository_of

HEAD = "HEAD"
"""Stands for a head trained for the model (EAGLE), which a scenario does not name."""


def weights_of(scenario: Scenario) -> str | None:
    """The repository of what drafts, beside the model; None where nothing does, or the model itself."""
    if scenario.draft_model is not None:
        return repository_of(scenario.draft_model)
    return HEAD if scenario.draft == "eagle" else None


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Say what the user has to bring, and that what is accepted was not measured."""
    if scenario.draft is None:
        return ()
    share = 100 * (scenario.acceptance or 0)
    taken = f"{share:.0f} % of the drafted tokens were taken to hold: the server tells its own"
    named = (f"put an EAGLE-3 head trained for this model in place of {HEAD}",) if scenario.draft == "eagle" else ()
    return (*named, taken)
