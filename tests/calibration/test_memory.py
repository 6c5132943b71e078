"""The fit of what lies beyond tensors finds what made the figures; spreads shrink to that of all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibration.memory import Peak, fitted, mean_error, peaks, spread
from llmfeas.catalog.engine import ServingMemory, TrainingOverhead
from llmfeas.evidence.measurements import measurement_files, read_measurements

ENGINE = ServingMemory(cache="growing", fixed_bytes=0.0)
TRUE = replace(ENGINE, fixed_bytes=0.7e9, slack=0.04, cache_slack=0.5)


def peak(weights: float, cache: float, kind: str = "device", group: str = "one") -> Peak:
    beyond = 0.7e9 + 0.5 * cache + (0.0 if kind == "allocated" else 0.04 * (weights + cache))
    beyond += 0.5e9 if kind == "device" else 0.0
    return Peak(
        group=group,
        regime="engine, inference",
        kind=kind,  # type: ignore[arg-type]
        measured_bytes=weights + cache + beyond,
        components={"weights_bytes": weights, "kv_cache_bytes": cache},
        context_bytes=0.5e9,
        divided_bytes=0.0,
        overheads=ENGINE,
    )


ROWS = [
    peak(w * 1e9, c * 1e9, k) for w in (2, 7, 40) for c in (0.1, 4, 30) for k in ("allocated", "reserved", "device")
]


def test_the_fit_finds_the_overheads_that_made_the_figures() -> None:
    assert mean_error(ROWS, TRUE) == pytest.approx(0, abs=1e-9)
    found = fitted(ROWS)
    assert mean_error(ROWS, found) < 0.01
    assert isinstance(found, ServingMemory)
    assert found.cache_slack == pytest.approx(0.5, abs=0.11)


def test_groups_count_alike_however_many_rows_they_have() -> None:
    other = [replace(ROWS[0], group="other", measured_bytes=2 * ROWS[0].measured_bytes)]
    many = [replace(ROWS[0], group="one")] * 50
    assert mean_error([*many, *other], TRUE) == pytest.approx(mean_error([many[0], *other], TRUE))


def test_few_groups_have_the_spread_of_all() -> None:
    assert spread([], 0.2) == pytest.approx(0.2)
    assert 0.1 < spread([[0.1, -0.1]], 0.2) < 0.2
    assert spread([[0.1]] * 1000, 0.2) == pytest.approx(0.1, rel=0.01)


def test_sharded_training_holds_buckets_besides() -> None:
    overhead = TrainingOverhead(fixed_bytes=1e9, sharded_bytes=2e9)
    row = Peak("g", "r", "allocated", 13e9, {"weights_bytes": 10e9}, 0.5e9, 8e9, overhead)
    assert row.log_ratio(overhead) == 0
    assert replace(row, divided_bytes=0.0).log_ratio(overhead) > 0
    assert replace(row, measured_bytes=11.1e9, divided_bytes=1e8).log_ratio(overhead) == pytest.approx(0)
    whole = replace(overhead, whole_buckets=True)
    assert replace(row, divided_bytes=1e8).log_ratio(whole) == 0


def test_published_peaks_are_all_computed() -> None:
    rows = [row for row in read_measurements(measurement_files())[0] if not row.variant]
    asked = [row for row in rows if row.measured.peak_bytes or row.measured.peak_total_bytes]
    assert len(peaks(asked)) == len(asked) > 100
