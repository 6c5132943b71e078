"""What is never tried could not have done: floors of time and cost hold, searches find what trying all of it finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.agreement import asked
from llmfeas.catalog.prices import current
from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError
from llmfeas.feasibility.bounds import least_usd
from llmfeas.options import TRAINING
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.plan import plan
from llmfeas.planning.solve import solved
from llmfeas.planning.solve.answer import estimated
from llmfeas.planning.solve.cheapest import COUNTS, _best_count
from llmfeas.settle import before_layout, layout, resolution
from llmfeas.timing.training import least_job_seconds
from llmfeas.workload.serving import spills


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_no_layout_is_faster_or_cheaper_than_the_floor_that_is_known_before_it(seed: int) -> None:
    ask = asked(seed, sorted(TRAINING))
    try:
        found, known = bare_answer(ask), before_layout(ask, catalog()).scenario
    except LlmfeasError:
        return
    assert found.total_seconds is not None
    floor = least_job_seconds(known)
    assert 0 < floor <= found.total_seconds.expected, ask
    if found.cost.usd is not None:
        assert least_usd(known, floor) <= found.cost.usd.expected, ask


def test_the_floor_holds_where_the_layout_decides_whose_code_runs() -> None:
    """Public code runs every expert on every token, a framework that divides the model does not."""
    ask = {"model": "llama-4-scout", "device": "epyc-7302", "task": "pretrain", "num_devices": 100, "zero": 0}
    found = bare_answer(ask)
    assert found.scenario.pp > 1 and found.total_seconds is not None
    assert least_job_seconds(before_layout(ask, catalog()).scenario) < found.total_seconds.expected


def test_the_floor_holds_where_weights_that_are_gathered_make_experts_narrow() -> None:
    ask = {"model": "dbrx", "device": "rtx-4000-sff-ada", "task": "finetune", "num_devices": 256, "tp": 4}
    ask |= {"engine": "pytorch-liger", "checkpointing": "none"}
    found = bare_answer(ask).total_seconds
    assert found is not None
    assert least_job_seconds(before_layout(ask, catalog()).scenario) < found.expected


def test_the_floor_is_near_where_devices_work_all_the_time() -> None:
    ask = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "pretrain", "seq_len": 8192}
    found = bare_answer(ask).total_seconds
    assert found is not None
    assert least_job_seconds(before_layout(ask, catalog()).scenario) > 0.7 * found.expected


FEWEST = (
    {"model": "llama-2-7b", "device": "rtx-3060-12gb", "task": "finetune"},
    {"model": "mistral-7b", "device": "rtx-3090", "task": "finetune", "devices_per_node": 2},
    {"model": "gpt2-xl", "device": "rtx-3090", "task": "pretrain", "deadline": "2d", "devices_per_node": 2},
    {"model": "gpt2-xl", "device": "a40", "task": "pretrain", "deadline": "1d"},
)


@pytest.mark.parametrize("ask", FEWEST, ids=lambda ask: f"{ask['model']} on {ask['device']}")
def test_no_smaller_number_of_whole_machines_works(ask: dict[str, object]) -> None:
    """Each count inside a machine and each number of whole machines below the answer is tried in full."""
    answer = solved("min-devices", ask, catalog()).answer
    count = answer["num_devices"]
    assert isinstance(count, int)
    scenario = bare_answer({**ask, "num_devices": 1}).scenario
    node = min(8, scenario.devices_per_node)
    engine = {"engine": answer["engine"]} if "engine" in answer else {}
    for fewer in (*range(1, node), *range(node, count, node)):
        if fewer < count:
            found = estimated({**ask, **engine, "num_devices": fewer}, catalog())
            assert found is None or not found.verdict.works() or spills(found.scenario), fewer
    assert bare_answer({**ask, **engine, "num_devices": count}).verdict.works()


@pytest.mark.parametrize("task", ["pretrain", "lora"])
@pytest.mark.parametrize("device", ["a100-sxm-80gb", "h100-sxm", "l40s"])
def test_counts_that_are_not_tried_cost_more(device: str, task: str) -> None:
    """The cheapest count is the one that trying all of them finds."""
    hourly = current(catalog().devices[device])[0].usd_per_hour
    ask = {"model": "llama-3.2-1b", "device": device, "task": task, "tokens": "1B", "deadline": "4d", "price": hourly}
    assert _best_count(ask, COUNTS, hourly, catalog(), None) == _best_count(ask, COUNTS, hourly, catalog(), [])


def test_a_layout_that_was_given_leaves_other_counts_to_be_tried() -> None:
    """One device refuses two ranks; two or four do not."""
    ask = {"model": "llama-3.2-1b", "device": "h100-sxm", "task": "pretrain", "tp": 2, "tokens": "1B", "deadline": "9d"}
    assert solved("cheapest", ask, catalog()).answer["num_devices"] in (2, 4)


def test_jobs_that_differ_in_their_price_share_one_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[object] = []
    choose = layout.fitted_layout

    def counted(*args: object) -> object:
        weighed.append(args)
        return choose(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(layout, "fitted_layout", counted)
    ask = {"model": "qwen3-14b", "device": "16xh100-sxm", "task": "pretrain", "seq_len": 3072}
    first = resolution(ask, catalog())
    for more in ({"price": 7.5}, {"budget": 5e5, "price": 1.25}, {"deadline": "77d"}):
        again = resolution({**ask, **more}, catalog())
        assert (again.scenario.tp, again.scenario.pp, again.scenario.zero, again.work) == (
            *(first.scenario.tp, first.scenario.pp, first.scenario.zero),
            first.work,
        )
    assert len(weighed) == 1
    resolution({**ask, "memory": "60GiB"}, catalog())
    assert len(weighed) == 2


def test_a_budget_that_nothing_keeps_to_ends_the_search_of_a_plan_early() -> None:
    found = plan({"model": "llama-3-70b", "device": "64xgb200", "task": "pretrain", "budget": 1}, catalog())
    assert not found.ended
