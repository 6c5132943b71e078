"""No run is faster than the stated peaks of its devices allow: not what was measured, nor what we say."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmfeas.evidence.compare import published_tokens_per_second, scenario_of
from llmfeas.evidence.measurements import Measurement, read_measurements
from llmfeas.planning.answer import bare_answer
from llmfeas.scenario import Scenario
from llmfeas.timing.floor import least_step_seconds
from llmfeas.timing.training import TrainingTime, step_tokens

ROWS = Path(__file__).parents[2] / "data" / "measurements"
NOT_AS_DESCRIBED = 0.01
"""Share of published runs that were another run than their source describes."""


def reached(row: Measurement) -> float | None:
    """The share of the peaks that a published run reached; None where it has no speed."""
    scenario = scenario_of(row)
    speed = published_tokens_per_second(row, scenario) if scenario.is_training else None
    return speed and speed * least(scenario) / step_tokens(scenario)


@pytest.mark.parametrize("file", ["finetuning.yaml", "training.yaml"])
def test_what_was_measured_is_within_the_peaks(file: str) -> None:
    rows, _ = read_measurements([ROWS / file])
    shares = [share for row in rows[::5] if (share := reached(row)) is not None]
    assert len(shares) > 20
    assert sum(share > 1 for share in shares) <= NOT_AS_DESCRIBED * len(shares) + 1
    assert max(share for share in shares if share <= 1) > 0.5, "the floor says something"


@pytest.mark.parametrize(
    "ask",
    [
        {"model": "gemma-3-12b", "device": "8xh100-sxm", "seq_len": 131072, "cp": 8, "task": "finetune"},
        {"model": "gpt2", "device": "h100-sxm", "seq_len": 128, "micro_batch": 1, "task": "lora"},
        {"model": "llama-3-8b", "device": "epyc-9654", "seq_len": 128, "micro_batch": 1, "task": "qlora"},
        {"model": "llama-3-8b", "device": "rtx-2080ti", "task": "pretrain", "micro_batch": 4},
        {"model": "mamba-130m", "device": "gb10", "seq_len": 1, "micro_batch": 1, "task": "pretrain"},
    ],
)
def test_no_utilization_is_above_one_its_high_end_neither(ask: dict[str, object]) -> None:
    found = bare_answer(ask)
    assert isinstance(found.time, TrainingTime)
    assert 0 < found.time.mfu.low <= found.time.mfu.expected <= found.time.mfu.high <= 1 + 1e-12
    assert found.time.step_seconds.low >= least(found.scenario)


def least(scenario: Scenario) -> float:
    return least_step_seconds(scenario, step_tokens(scenario))
