from __future__ import annotations

import math
from pathlib import Path

import pytest

from calibration.crossval import (
    SMALLEST_SIGMA,
    Fit,
    _drawn,
    _Error,
    _split,
    _widened,
    cross_validated,
    felt_by,
    fitted,
    regimes_of,
)
from calibration.observations import SPEEDS, Observation, observed, regime_of, trained
from calibration.plan import PLANS
from calibration.speed import main, rewritten, with_trained
from llmfeas.catalog.efficiency import CalibratedNumber, Efficiency, Regime
from llmfeas.catalog.store import catalog, data_directory
from llmfeas.evidence.measurements import measurement_files, read_measurements


@pytest.fixture(scope="module")
def prefill() -> list[Observation]:
    rows, _ = read_measurements(measurement_files())
    return [
        item
        for item in observed(row for row in rows if row.measured.prefill_tokens_per_second)
        if item.kind == "prefill"
    ]


def test_every_planned_parameter_exists() -> None:
    known = catalog().tables.efficiency.parameters
    for plan in PLANS.values():
        assert set(plan) <= set(known)
        assert not any(known[name].prior for name in plan)


def test_refitting_prefill_gives_what_the_file_says(prefill: list[Observation]) -> None:
    numbers, plan = catalog().tables.efficiency, PLANS["prefill"]
    found = fitted(numbers, prefill, plan, felt_by(numbers, prefill, plan))
    for name, x in zip(plan, found, strict=True):
        assert math.exp(x) == pytest.approx(numbers.value(name), rel=0.01), name


def test_a_row_moves_with_the_parameters_that_its_speed_rests_on(prefill: list[Observation]) -> None:
    numbers = catalog().tables.efficiency
    felt = felt_by(numbers, prefill, {name: PLANS["prefill"][name] for name in ("prefill.mlx", "prefill.integer")})
    for item in prefill:
        on_mlx = regime_of(numbers, item) in ("mlx", "mlx-matrix")
        assert (item.id in felt["prefill.mlx"]) is on_mlx
        assert not (on_mlx and item.id in felt["prefill.integer"])


def test_a_regime_that_is_scored_apart_stays_where_its_kind_is_rewritten() -> None:
    text = (data_directory() / "efficiency.yaml").read_text()
    known = catalog().tables.efficiency.parameters
    written = rewritten(text, known, {"prefill": Fit({}, {"a row": 0.1}, {})})
    assert [line for line in text.splitlines() if "llama.cpp-experts:" in line] == [
        line for line in written.splitlines() if "llama.cpp-experts:" in line
    ]


def test_the_table_of_software_is_what_the_measurements_say() -> None:
    rows, _ = read_measurements(measurement_files())
    observations = observed(row for row in rows if row.scenario.get("task") != "inference")
    table = trained(observations)
    assert table == catalog().tables.efficiency.trained
    liger = {
        item.source
        for item in observations
        if item.kind == "training"
        and (item.scenario.engine, item.scenario.method, item.scenario.device.backend)
        == ("pytorch-liger", "finetune", "cuda")
        and item.scenario.model.architecture.experts is None
    }
    assert table["cuda"]["finetune"]["pytorch-liger"] == len(liger)
    text = (data_directory() / "efficiency.yaml").read_text()
    assert with_trained(text, table) == text


def test_a_table_of_a_job_that_there_is_not_is_refused() -> None:
    known = catalog().tables.efficiency
    with pytest.raises(ValueError, match=r"trained\.cuda\.tuning is no job: pretrain"):
        Efficiency(
            parameters=known.parameters, generations=known.generations, trained={"cuda": {"tuning": {"x": 1}}}
        ).check()


def _rows(regime: str, *sizes: float) -> list[_Error]:
    return [_Error(regime, f"{regime} {number}", f"{regime} {number}", size) for number, size in enumerate(sizes)]


def test_runs_whose_host_sets_the_pace_are_a_kind_of_their_own_where_they_are_off_further() -> None:
    works, waits = _rows("a", 0.1, 0.1, 0.1), _rows("a, host paced", 0.4, 0.4, 0.4)
    assert {row.regime for row in _split([*works, *waits])} == {"a", "a, host paced"}
    assert {row.regime for row in _split([*works, *waits[:2]])} == {"a"}  # two sources say little
    assert {row.regime for row in _split([*_rows("a", 0.4, 0.4, 0.4), *waits])} == {"a"}


def test_an_interval_holds_sources_that_it_was_not_drawn_from() -> None:
    rows = [*_rows("even", *[0.1] * 8), *_rows("odd", *[0.05] * 6, 0.6, 0.7)]
    drawn = _drawn(rows, trained=True)
    wider = _widened(drawn, rows)
    assert wider["even"].width == pytest.approx(drawn["even"].width, abs=0.002)
    assert wider["odd"].width > drawn["odd"].width


@pytest.mark.slow
def test_refitting_everything_gives_the_file_and_meets_the_bars(tmp_path: Path) -> None:
    copy = tmp_path / "efficiency.yaml"
    copy.write_text((data_directory() / "efficiency.yaml").read_text())
    fits = main(copy)
    assert copy.read_text() == (data_directory() / "efficiency.yaml").read_text()
    bars = {"training": (0.17, 0.43), "decode": (0.13, 0.45), "prefill": (0.19, 0.55)}
    for kind in SPEEDS:
        errors = sorted(abs(math.expm1(error)) for error in fits[kind].errors.values())
        median, tail = bars[kind]
        assert errors[len(errors) // 2] <= median, kind
        assert errors[int(0.9 * len(errors))] <= tail, kind


def test_intervals_narrow_with_groups_and_never_vanish(prefill: list[Observation]) -> None:
    numbers = catalog().tables.efficiency
    found = regimes_of(numbers, prefill, {item.id: 0.0 for item in prefill})
    exact = {name: regime for name, regime in found.items() if regime.groups > 1}
    assert all(regime.sigma == SMALLEST_SIGMA for regime in exact.values())
    widths = sorted((regime.groups, regime.width) for regime in exact.values())
    assert [width for _, width in widths] == sorted((width for _, width in widths), reverse=True)
    wrong = regimes_of(numbers, prefill, {item.id: 0.5 for item in prefill})
    assert all(wrong[name].width > regime.width for name, regime in exact.items())
    assert all(found[name].width > 1.3 for name, regime in found.items() if regime.groups <= 1)


def test_each_kind_of_run_holds_its_left_out_rows_whatever_the_others_hold(prefill: list[Observation]) -> None:
    numbers = catalog().tables.efficiency
    odd = {item.id for item in prefill if regime_of(numbers, item) == "mlx"}
    errors = {item.id: 0.6 if item.id in odd else 0.01 for item in prefill}
    found = regimes_of(numbers, prefill, errors)
    assert found["mlx"].width >= round(math.exp(0.6), 3)
    assert found["unknown"].width > max(found["metal"].width, math.exp(0.6))
    assert found["unknown"].rows == 0


def test_a_left_out_source_is_not_seen(prefill: list[Observation]) -> None:
    """One source told ten times its speed spoils its own error only."""
    plan = {name: PLANS["prefill"][name] for name in ("prefill.metal", "prefill.mlx")}
    numbers = catalog().tables.efficiency
    prefill = [item for item in prefill if regime_of(numbers, item) in ("metal", "mlx")]
    before = cross_validated(catalog().tables.efficiency, prefill, plan).errors
    source = next(item.source for item in prefill if item.scenario.engine == "mlx")
    lied = [
        item
        if item.source != source
        else Observation(*(getattr(item, name) for name in item.__slots__[:5]), item.log_speed + 2.3, item.weight)
        for item in prefill
    ]
    after = cross_validated(catalog().tables.efficiency, lied, plan).errors
    for item in prefill:
        if item.source == source:
            assert after[item.id] == pytest.approx(before[item.id] - 2.3, abs=0.05)


def test_the_file_keeps_what_is_not_fitted() -> None:
    text = "# why\nas_of: 'x'\nparameters:\n  a: {value: 1}\ngenerations:\n  b: {training: b}\nleft_out:\n"
    text += "regimes:\n  old: {}\n"
    found = rewritten(
        text,
        {"a": CalibratedNumber(2.5e-05, 0.1, 3, 2), "p": CalibratedNumber(1.0, prior=True, note="it's so")},
        {"decode": Fit({}, {"row": math.log(1.5)}, {"unknown": Regime(0.2, 0, 0, 1.5)})},
    )
    assert found == (
        "# why\nas_of: 'x'\nparameters:\n"
        "  a: {value: 2.5e-05, spread: 0.1, rows: 3, groups: 2}\n"
        "  p: {value: 1.0, spread: 0.2, prior: true, note: 'it''s so'}\n"
        "generations:\n  b: {training: b}\n"
        "left_out:\n  decode: {rows: 1, median_error: 0.500, p90_error: 0.500}\n"
        "regimes:\n  decode:\n    unknown: {sigma: 0.2, sources: 0, groups: 0, rows: 0, width: 1.5}\n"
    )
