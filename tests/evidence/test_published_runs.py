"""Published trainings in their devices' memory: those that ran are not refused, none that ran out surely fits."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.evidence.measurements import Measurement, measurement_files, read_measurements, settings_of
from llmfeas.feasibility.core import memory
from llmfeas.settle import resolution

REFUSED = 4 / 613
"""Share of the published trainings that ran of which we may say that they exceed the memory."""


@pytest.fixture(scope="module")
def verdicts() -> dict[str, tuple[Measurement, str]]:
    rows, _ = read_measurements(file for file in measurement_files() if file.stem != "tracked")
    found = {}
    for row in rows:
        if row.scenario.get("task") == "inference":
            continue
        scenario = resolution(settings_of(row), catalog()).scenario
        if scenario.is_training:
            found[row.id] = row, memory(scenario).memory.verdict
    return found


def test_what_ran_is_not_refused(verdicts: dict[str, tuple[Measurement, str]]) -> None:
    """Rows that were run a little otherwise than any setting says are left out."""
    ran = {id: verdict for id, (row, verdict) in verdicts.items() if row.measured.fits is not False and not row.variant}
    assert len(ran) > 613
    refused = [id for id, verdict in ran.items() if verdict == "exceeds"]
    assert len(refused) <= REFUSED * len(ran), refused


def test_what_ran_out_of_memory_does_not_surely_fit(verdicts: dict[str, tuple[Measurement, str]]) -> None:
    """Of all rows, those that were run a little otherwise too."""
    failed = {id: verdict for id, (row, verdict) in verdicts.items() if row.measured.fits is False}
    assert len(failed) > 30
    assert [id for id, verdict in failed.items() if verdict == "fits"] == []
