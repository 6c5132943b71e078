"""Measurements that cannot be true, and a store of measurements that cannot be used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llmfeas.errors import DataError, UsageError
from llmfeas.evidence.own import parsed_measurement, read_own
from llmfeas.evidence.plausible import check

ASK = "model=llama-3-8b device={} task=inference quant=q4_k_m {}"


@pytest.mark.parametrize(
    ("device", "figures"),
    [
        ("rtx-4090", "decode=10000"),
        ("t4", "decode=2000"),
        ("t4", "memory=60GiB"),
        ("t4", "prefill=1000000"),
        ("rtx-4090", "decode=0.5"),
        ("rtx-4090", "decode=120 memory=6TiB"),
        ("rtx-4090", "memory=1GiB"),
    ],
)
def test_what_no_machine_does_is_refused(device: str, figures: str) -> None:
    with pytest.raises(DataError) as caught:
        check(parsed_measurement(ASK.format(device, figures)))
    assert caught.value.code == "impossible-measurement"


@pytest.mark.parametrize(
    ("device", "figures"), [("rtx-4090", "decode=120 memory=6.1GiB"), ("t4", "decode=30"), ("m2-ultra", "prefill=700")]
)
def test_what_machines_do_is_believed(device: str, figures: str) -> None:
    check(parsed_measurement(ASK.format(device, figures)))


def test_an_unknown_model_is_not_kept() -> None:
    with pytest.raises(UsageError, match="unknown model"):
        check(parsed_measurement("model=nosuch device=t4 task=inference decode=20"))


def test_measurements_added_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    code = (
        "import sys; from pathlib import Path; from llmfeas.evidence.own import added, alone, read_own, written\n"
        "path = Path(sys.argv[1])\n"
        "for number in range(20):\n"
        "    with alone(path.parent):\n"
        "        text = written(added(read_own(path), {'scenario': {}, 'measured': {}}, '2026-11-22'))\n"
        "        path.write_text(text)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(read_own(path)["measurements"]) == 80
