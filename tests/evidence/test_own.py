from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.overlay import use_overlays
from llmfeas.catalog.store import built_in, catalog
from llmfeas.errors import DataError, UsageError
from llmfeas.evidence.own import _posterior, added, calibrated_file, parsed_measurement, read_own, written
from llmfeas.planning.answer import bare_answer

TEXT = "model=llama-3-8b device=rtx-4090 task=inference quant=q4_k_m decode={} memory={}GiB"
REQUEST = {"model": "llama-3-8b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m"}


def kept(path: Path, *texts: str) -> Path:
    data = read_own(path)
    for text in texts:
        data = added(data, parsed_measurement(text), "2026-11-20")
    path.write_text(written(data))
    return path


def speed_and_peak() -> tuple[dict[str, float], dict[str, float], list[str]]:
    envelope = bare_answer(REQUEST).to_dict()
    result = envelope["result"]
    codes = [warning["code"] for warning in envelope["warnings"]]
    return result["time"]["decode_tokens_per_second"], result["memory"]["peak_bytes"], codes


def test_a_measurement_as_a_person_writes_it() -> None:
    row = parsed_measurement("model=gpt2, device=rtx-4090, micro-batch=4, training=1.2k, memory=6GB")
    assert row["scenario"] == {"model": "gpt2", "device": "rtx-4090", "micro_batch": "4"}
    assert row["measured"] == {"tokens_per_second": 1200, "peak_bytes": 6e9}


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "model=gpt2", "model=gpt2 device=l4", "model=gpt2 decode=3", "model=gpt2 device=l4 x=3 decode=3",
     "model=gpt2 device=l4 decode=fast", "model=gpt2 device=l4 decode=0", "model=gpt2 device=l4 decode="],
)  # fmt: skip
def test_what_is_no_measurement_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parsed_measurement(text)


def test_own_measurements_move_and_narrow_the_ranges_and_say_so(tmp_path: Path) -> None:
    before, peak_before, codes = speed_and_peak()
    assert "calibrated" not in codes
    slow = before["expected"] * 0.85
    path = kept(tmp_path / "measured.yaml", *(TEXT.format(slow * factor, 6.2) for factor in (0.98, 1.0, 1.02)))
    data, found, errors = calibrated_file(path, [])
    assert errors == []
    assert {(each.kind, each.rows) for each in found} == {("decode", 3), ("memory", 3)}
    path.write_text(written(data))
    try:
        use_overlays([path])
        after, peak, codes = speed_and_peak()
        assert "calibrated" in codes
        assert slow < after["expected"] < before["expected"]
        assert after["high"] / after["low"] < before["high"] / before["low"]
        assert peak["high"] / peak["low"] < peak_before["high"] / peak_before["low"]
        assert calibrated_file(path, [])[1] == found
        assert catalog().overlay_paths == (path,)
    finally:
        use_overlays([])
    assert speed_and_peak()[0] == before


@pytest.mark.parametrize("gib", [7, 3])
def test_components_still_add_up_after_calibration(tmp_path: Path, gib: int) -> None:
    path = kept(tmp_path / "measured.yaml", TEXT.format(100, gib))
    path.write_text(written(calibrated_file(path, [])[0]))
    try:
        use_overlays([path])
        memory = bare_answer(REQUEST).to_dict()["result"]["memory"]
        assert sum(memory["components"].values()) == pytest.approx(memory["peak_bytes"]["expected"])
        assert min(memory["components"].values()) >= 0
    finally:
        use_overlays([])


def test_a_peak_whose_range_begins_at_nothing_narrows_none(tmp_path: Path) -> None:
    """Beside so little of a model the range of the driver's context is wider than what an allocator reports."""
    scenario = {"model": "mamba-2.8b", "device": "64xgb200", "task": "inference", "engine": "llama.cpp"}
    scenario |= {"quant": "q4_k_m", "gpu_layers": 33, "prompt": 1024}
    row = {"scenario": scenario, "measured": {"peak_bytes": 5.9e9}, "memory_kind": "allocated"}
    path = tmp_path / "measured.yaml"
    path.write_text(written(added(read_own(path), row, "2026-11-27")))
    _, found, errors = calibrated_file(path, [])
    assert (found, errors) == ([], [])


def test_other_devices_and_engines_are_left_alone(tmp_path: Path) -> None:
    path = kept(tmp_path / "measured.yaml", TEXT.format(100, 7))
    path.write_text(written(calibrated_file(path, [])[0]))
    others = [{**REQUEST, "device": "rtx-3090"}, {**REQUEST, "quant": "none", "engine": "vllm"}]
    before = [bare_answer(request).to_dict()["result"]["time"] for request in others]
    try:
        use_overlays([path])
        assert [bare_answer(request).to_dict()["result"]["time"] for request in others] == before
    finally:
        use_overlays([])


def test_a_row_that_cannot_be_used_does_not_spoil_the_others(tmp_path: Path) -> None:
    path = kept(
        tmp_path / "measured.yaml", TEXT.format(100, 7), "model=no-such-model device=l4 task=inference decode=3"
    )
    _, found, errors = calibrated_file(path, [])
    assert len(found) == 2
    assert [error.code for error in errors] == ["unknown-model"]


def test_a_file_of_other_things_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text("devices: []\n")
    with pytest.raises(DataError, match=r"catalog\.yaml:1"):
        read_own(path)
    with pytest.raises(UsageError, match="no measurements"):
        calibrated_file(tmp_path / "none.yaml", [])
    assert catalog() is built_in()


@given(
    st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=30),
    st.floats(0.1, 0.6),
    st.floats(0.03, 0.2),
)
def test_the_offset_lies_between_none_and_the_measured_one(ratios: list[float], sigma: float, scatter: float) -> None:
    factor, width = _posterior(ratios, sigma, scatter)
    mean = sum(ratios) / len(ratios)
    assert min(0.0, mean) - 1e-9 <= math.log(factor) <= max(0.0, mean) + 1e-9
    assert width > 1


@given(st.floats(-0.3, 0.3), st.integers(1, 10))
def test_more_of_the_same_measurement_says_more(ratio: float, count: int) -> None:
    few, many = _posterior([ratio] * count, 0.25, 0.07), _posterior([ratio] * (count + 1), 0.25, 0.07)
    assert abs(math.log(many[0]) - ratio) <= abs(math.log(few[0]) - ratio) + 1e-12
    assert many[1] <= few[1] + 1e-12
