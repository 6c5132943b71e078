"""A pipeline is cut by one rule: the stages that memory counts are those that time waits for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.memory.training import training_plan
from llmfeas.model.sums import architecture_sums
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.work import slowest_stage, work_of
from llmfeas.workload.stages import stages

MODELS = ("llama-3-70b", "gpt2-xl", "mixtral-8x7b", "deepseek-v3", "longcat-flash", "gemma-2-9b", "llama-3.1-405b")


@given(st.integers(1, 200), st.integers(1, 300), st.integers(0, 1))
def test_stages_are_all_layers_in_a_row(layers: int, pp: int, head: int) -> None:
    cut = stages(layers, pp, head)
    assert len(cut) == min(pp, layers)
    assert [layer for stage in cut for layer in range(stage.first, stage.end)] == list(range(layers))
    assert [stage.index for stage in cut] == list(range(len(cut)))
    assert [stage.embeds for stage in cut] == [True] + [False] * (len(cut) - 1)
    assert [stage.heads for stage in cut] == [False] * (len(cut) - 1) + [True]
    dealt = [stage.layers + head * (stage.heads and len(cut) > 1) for stage in cut]
    assert max(dealt) - min(dealt) <= 1


@pytest.mark.parametrize(
    ("layers", "pp", "head", "sizes"),
    [
        (80, 8, 0, [10] * 8),
        (126, 16, 0, [7, *([8] * 14), 7]),
        (126, 8, 0, [15, *([16] * 6), 15]),
        (61, 4, 0, [15, 16, 15, 15]),
        (25, 2, 0, [13, 12]),
        (32, 2, 1, [17, 15]),
        (80, 4, 1, [21, 20, 20, 19]),
        (3, 8, 0, [1, 1, 1]),
    ],
)
def test_layers_that_do_not_divide(layers: int, pp: int, head: int, sizes: list[int]) -> None:
    assert [stage.layers for stage in stages(layers, pp, head)] == sizes


def laid_out(**asked: object) -> Scenario:
    return resolution({"device": "h200", "task": "pretrain", "micro_batch": 1, "tp": 1, **asked}, catalog()).scenario


@given(
    st.sampled_from(MODELS),
    st.integers(1, 24),
    st.sampled_from(["megatron", "nemo-tuned", "pytorch", "deepspeed"]),
    st.sampled_from([1, 4, 64]),
    st.sampled_from(["none", "full"]),
)
def test_the_stages_that_memory_counts_are_those_that_time_counts(
    model: str, pp: int, engine: str, batch: int, checkpointing: str
) -> None:
    asked = {"model": model, "pp": pp, "num_devices": pp, "zero": 1, "ep": 1, "engine": engine}
    scenario = laid_out(**asked, global_batch=batch, checkpointing=checkpointing)
    cut = stages(scenario.model.architecture.layers, pp)
    counted = [rank.stage for rank in training_plan(scenario).ranks]
    assert set(counted) <= set(cut)
    # The first keeps most micro-batches, the last the logits, and none between holds more layers than one of these.
    assert counted[0] == cut[0] and counted[-1] == cut[-1]
    assert max(stage.layers for stage in counted) == max(stage.layers for stage in cut)
    sums = architecture_sums(scenario.model.architecture)
    slowest, work = slowest_stage(sums, pp), work_of(scenario)
    assert slowest in cut
    assert work.stage == pytest.approx(slowest.layers / (sums.layers / pp))
    assert work.head == slowest.heads * pp


def test_llama_3_70b_in_eight_stages_is_the_same_for_memory_and_time() -> None:
    scenario = laid_out(model="llama-3-70b", pp=8, num_devices=8, engine="megatron")
    assert {rank.stage.layers for rank in training_plan(scenario).ranks} == {10}
    assert slowest_stage(architecture_sums(scenario.model.architecture), 8).layers == 10


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(UsageError, match="more stages than"):
        laid_out(model="gpt2", pp=24, num_devices=24, engine="megatron")
