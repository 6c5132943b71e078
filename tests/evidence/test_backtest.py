from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmfeas.cli import main
from llmfeas.errors import UsageError
from llmfeas.evidence.backtest import backends_named, backtest, quantile
from llmfeas.evidence.compare import MEASURED
from llmfeas.evidence.measurements import KINDS, Measured
from llmfeas.record import fields

MINE = """\
groups:
- group: mine
  source: my own notebook
  reason: a slow host
  backend: cuda
  scenario: {model: llama-3-8b, device: rtx-4090, task: inference, quant: q4_k_m, engine: llama.cpp}
  rows:
  - {id: fine, measured: {decode_tokens_per_second: 150, prefill_tokens_per_second: 6000}}
  - {id: slow, measured: {decode_tokens_per_second: 10}}
"""
BROKEN = MINE + "  - {id: odd, scenario: {device: no-such-card}, measured: {decode_tokens_per_second: 10}}\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    return path


def test_quantiles_take_the_nearest_rank() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 3.0
    assert quantile([1.0], 0.9) == 1.0


def test_figures_are_set_beside_measurements(mine: Path) -> None:
    found = backtest(file=mine, worst=1, naive=True)
    lines = {(line.kind, line.backend): line for line in found.kinds}
    decode = lines["decode", "all"]
    assert decode.rows == 2
    assert decode.groups == 1
    assert decode.median_error > 1  # one of two rows is missed by a factor of ten
    assert decode.inside == 0.5
    assert lines["prefill", "cuda"].median_error < 0.5
    assert found.worst
    assert (found.worst[0].id, found.worst[0].reason) == ("slow", "a slow host")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hpu", {"hpu"}),
        ("habana", {"hpu"}),
        ("Gaudi", {"hpu"}),
        ("metal", {"metal", "mlx"}),
        ("mlx", {"mlx"}),
        ("xpu", {"xpu", "sycl"}),
        ("vulkan", {"vulkan"}),
        ("NVIDIA", {"cuda"}),
    ],
)
def test_backends_go_by_the_names_of_the_catalog_and_of_software(name: str, meant: set[str]) -> None:
    assert backends_named([name]) == meant


def test_a_backend_that_nobody_knows_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="unknown backend 'cudda'") as caught:
        backends_named(["cuda", "cudda"])
    assert {"cuda", "hpu", "metal", "mlx", "sycl", "vulkan", "xpu"} <= set(caught.value.candidates)


def test_rows_without_a_backend_are_those_of_their_device(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE.replace("  backend: cuda\n", ""))
    assert {line.backend for line in backtest(file=path, backends=["nvidia"]).kinds} == {"all", "cuda"}
    with pytest.raises(UsageError, match="no measurement"):
        backtest(file=path, backends=["rocm"])


def test_kinds_and_devices_can_be_chosen(mine: Path) -> None:
    assert {line.kind for line in backtest(file=mine, kinds=["prefill"]).kinds} == {"prefill"}
    with pytest.raises(UsageError, match="no measurement"):
        backtest(file=mine, devices=["h100-sxm"])
    with pytest.raises(UsageError, match="unknown kind"):
        backtest(file=mine, kinds=["speed"])


def test_a_row_that_cannot_be_answered_does_not_stop_the_others(broken: Path) -> None:
    found = backtest(file=broken)
    assert found.kinds[0].rows == 2
    (error,) = found.faults
    assert "broken.yaml:10" in error.message
    assert "no-such-card" in error.message


def test_the_command_gives_the_contracts_json(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", str(mine), "--json", "--naive"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == "llmfeas.backtest/1"
    first = answer["result"]["kinds"][0]
    assert {"kind", "backend", "rows", "groups", "median_error", "p90_error", "bias", "inside", "width"} <= set(first)
    assert first["naive_median_error"] is not None


@pytest.mark.parametrize("format_", ["table", "markdown", "csv", "ndjson"])
def test_the_command_writes_every_format(mine: Path, format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", str(mine), "-f", format_, "--worst", "1"]) == 0
    written = capsys.readouterr().out
    assert "decode" in written
    if format_ == "ndjson":
        assert [json.loads(line)["kind"] for line in written.splitlines()] == ["decode", "decode", "prefill", "prefill"]


def test_the_command_shows_what_it_can_and_fails_for_the_rest(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", str(broken)]) == 3
    answer = capsys.readouterr()
    assert "decode" in answer.out
    assert "broken.yaml:10" in answer.err


def test_a_wrong_kind_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "--kind", "speed"]) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert "training" in answer.err


def test_rows_that_tell_nothing_of_the_asked_kinds_are_not_computed(mine: Path) -> None:
    """What is asked of one kind is what is asked of all, less the others."""
    whole = backtest(file=mine).kinds
    assert {each.kind for each in whole} == {"decode", "prefill"}
    for kind in ("decode", "prefill"):
        assert backtest(kinds=[kind], file=mine).kinds == tuple(each for each in whole if each.kind == kind)
    with pytest.raises(UsageError, match="no measurement is left"):
        backtest(kinds=["training"], file=mine)


def test_each_kind_is_of_something_that_is_measured() -> None:
    assert set(MEASURED) == set(KINDS)
    assert {name for names in MEASURED.values() for name in names} <= {each.name for each in fields(Measured)}
