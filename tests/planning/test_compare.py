"""Comparisons rank feasible rows first and say how fast each is beside the baseline."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.planning.compare import chosen_devices, comparison
from llmfeas.planning.needed import Needed
from llmfeas.ranges import Range
from llmfeas.settle import resolution


def test_feasible_rows_come_first_then_by_time() -> None:
    devices = ["gtx-1060-6gb", "h100-sxm", "rtx-4090", "t4"]
    rows = comparison({"task": "finetune"}, ["gpt2-xl"], devices, catalog()).rows
    order = [("feasible", "tight", "infeasible", "unsupported").index(row.estimate.verdict.status) for row in rows]
    assert order == sorted(order)
    speeds = [row.estimate.speed.expected for row in rows if row.feasible]
    assert speeds == sorted(speeds, reverse=True)


def test_speed_is_relative_to_the_baseline() -> None:
    rows = comparison({}, ["gpt2"], ["rtx-4090", "h100-sxm"], catalog(), baseline="rtx-4090").rows
    by_id = {row.estimate.scenario.device.id: row for row in rows}
    own, other = by_id["rtx-4090"], by_id["h100-sxm"]
    assert own.relative_speed == Range.exact(1.0)
    assert other.relative_speed is not None
    expected = other.estimate.speed.expected / own.estimate.speed.expected
    assert other.relative_speed.expected == pytest.approx(expected)
    assert other.relative_speed.low < expected < other.relative_speed.high


def test_the_speed_under_a_load_is_what_is_written_under_it() -> None:
    asked = {"task": "inference", "prompt": 1000, "output": 300, "rate": 4}
    rows = comparison(asked, ["llama-3-8b"], ["h100-sxm", "l40s"], catalog()).rows
    for row in rows:
        load = row.estimate.load
        assert load is not None and row.estimate.speed == load.output_tokens_per_second
        assert row.ranked(1).under_load


def test_a_baseline_that_cannot_run_it_gives_no_speeds_and_says_why() -> None:
    found = comparison({"task": "finetune"}, ["llama-2-7b"], ["h200"], catalog(), baseline="gtx-1060-6gb")
    assert found.rows[0].relative_speed is None
    assert found.warnings[0].code == "baseline-cannot"


def test_devices_needed_is_what_fits() -> None:
    row = comparison({"task": "finetune"}, ["llama-2-7b"], ["rtx-4090"], catalog()).rows[0]
    assert row.needed is not None and row.needed.num_devices > 1
    layout = row.ranked(1).to_dict()["layout_needed"]
    assert isinstance(layout, dict)
    assert layout["dp"] * layout["tp"] * layout["pp"] * layout["cp"] == row.needed.num_devices
    request = {"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune", "micro_batch": 1, **layout}
    request["num_devices"] = request.pop("dp") * layout["tp"] * layout["pp"] * layout["cp"]
    assert estimate(resolution(request, catalog())).memory.verdict != "exceeds"
    (one,) = comparison({}, ["gpt2"], ["h100-sxm"], catalog()).rows
    assert one.needed is not None and one.needed.num_devices == 1


@pytest.mark.parametrize(
    ("model", "device", "task"),
    [
        ("llama-3-8b", "rx-6800", "qlora"),
        ("llama-2-7b", "pro-w7800", "pretrain"),
        ("llama-3-70b", "h100-sxm", "finetune"),
    ],
)
def test_no_device_less_than_are_needed_would_do(model: str, device: str, task: str) -> None:
    asked = {"model": model, "task": task, "micro_batch": 1, "quant": None}
    row = comparison(asked, [model], [device], catalog()).rows[0]
    assert row.needed is not None
    count, node = row.needed.num_devices, row.needed.devices_per_node
    fewer = count - (1 if count <= node else node)

    def fits(number: int) -> bool:
        settled = resolution({**asked, "device": device, "num_devices": number}, catalog())
        return estimate(settled).memory.verdict != "exceeds"

    assert fits(count)
    assert fewer == 0 or not fits(fewer)


def test_who_says_no_task_is_told_which_was_taken_where_nothing_works() -> None:
    codes = [note.code for note in comparison({}, ["llama-3-8b"], ["rx-6800", "t4"], catalog()).notes]
    assert codes == ["task-taken"]
    for said, model in (({"task": "pretrain"}, "llama-3-8b"), ({}, "gpt2")):
        assert not comparison(said, [model], ["rx-6800", "t4"], catalog()).notes


@pytest.mark.parametrize(
    ("model", "task"), [("gemma-3-27b", "pretrain"), ("deepseek-v3", "inference"), ("llama-3.1-8b", "lora")]
)
def test_devices_that_share_a_look_would_each_find_it(model: str, task: str) -> None:
    """One in seven of them; a fresh search has nothing to share."""
    shared, looks = Needed(catalog()), 0
    for name in list(catalog().devices)[::7]:
        asked = {"model": model, "task": task, "device": name}
        found = estimate(resolution(asked, catalog()))
        alone = Needed(catalog())
        one, own = shared(asked, found), alone(asked, found)
        looks += len(alone.held)
        assert (one and (one.num_devices, one.dp, one.pp)) == (own and (own.num_devices, own.dp, own.pp)), name
    assert 0 < len(shared.held) < looks, "some share"


def test_devices_are_chosen_by_name_backend_or_class() -> None:
    everything = chosen_devices(catalog(), [], [], every=True)
    assert len(everything) == len(catalog().devices)
    assert {catalog().devices[name].backend for name in chosen_devices(catalog(), [], ["rocm"], every=False)} == {
        "rocm"
    }
    classes = {catalog().devices[name].backend for name in chosen_devices(catalog(), [], [], every=False)}
    assert classes == {"cuda", "rocm", "tpu", "metal", "xpu", "cpu", "hpu"}


def test_an_empty_selection_is_said() -> None:
    with pytest.raises(UsageError) as caught:
        chosen_devices(catalog(), ["rtx-4090"], ["tpu"], every=False)
    assert caught.value.code == "empty-selection"
    assert "tpu" in caught.value.message


def test_an_unknown_backend_is_refused_with_candidates() -> None:
    with pytest.raises(UsageError) as caught:
        chosen_devices(catalog(), [], ["rocn"], every=False)
    assert "rocm" in caught.value.candidates


def test_spreads_of_a_ratio_add_as_squares() -> None:
    found = Range.around(10, 2).over(Range.around(5, 2))
    assert found.expected == 2
    assert found.high / found.expected == pytest.approx(2 ** (2**0.5))


def test_counts_are_compared_too() -> None:
    rows = comparison({"task": "finetune"}, ["llama-2-7b"], ["8xh100-sxm", "64xtpu-v5p"], catalog()).rows
    assert {row.estimate.scenario.num_devices for row in rows} == {8, 64}


def test_each_model_has_its_own_first_row_as_baseline() -> None:
    rows = comparison({"task": "finetune"}, ["gpt2", "gpt2-xl", "gpt2"], ["rtx-4090", "h100-sxm"], catalog()).rows
    assert len(rows) == 4
    for model in ("gpt2", "gpt2-xl"):
        own = [row for row in rows if row.estimate.scenario.model.id == model]
        assert own[0].relative_speed == Range.exact(1.0)
        assert own[1].relative_speed is not None and own[1].relative_speed.expected < 1


def test_without_a_feasible_row_nothing_is_a_baseline() -> None:
    rows = comparison({"task": "finetune"}, ["llama-2-7b"], ["rtx-4090", "t4"], catalog()).rows
    assert [row.relative_speed for row in rows] == [None, None]


def test_an_empty_selection_says_what_was_filtered_out() -> None:
    with pytest.raises(UsageError, match=r"rtx-4090 \(cuda\)"):
        chosen_devices(catalog(), ["rtx-4090"], ["tpu"], every=False)


def test_the_seeds_factors_of_gpt2_small_against_a_4070_ti() -> None:
    """The seeds say that a CPU is 10 to 30 times slower than an NVIDIA GPU."""
    devices = ["rtx-4070ti", "ryzen-9-7950x", "m2-ultra", "rx-6900xt", "arc-a770-16gb", "tpu-v5e"]
    rows = comparison({}, ["gpt2"], devices, catalog(), baseline="rtx-4070ti").rows
    factor = {row.estimate.scenario.device.id: row.relative_speed for row in rows}
    assert all(row.feasible and row.relative_speed is not None for row in rows)
    slow = factor["ryzen-9-7950x"]
    assert slow is not None and slow.low < slow.expected < slow.high
    assert slow.low < 1 / 10 and slow.high > 1 / 30


@pytest.mark.parametrize(
    ("asked", "codes"),
    [
        ({}, []),
        ({"prompt": 5}, ["option-unused"]),
        ({"model": "longcat-flash"}, ["memory-approximate"]),
        ({"model": "mixtral-8x7b", "task": "qlora"}, ["experts-in-16-bits"]),
    ],
    ids=str,
)
def test_what_holds_on_most_devices_is_said_once(asked: dict[str, object], codes: list[str]) -> None:
    request = {"model": "gpt2", "task": "pretrain", **asked}
    model = str(request.pop("model"))
    found = comparison(request, [model], ["rtx-4090", "rx-7900xtx", "h100-sxm", "m4-pro"], catalog())
    assert [note.code for note in found.warnings] == codes


def test_a_row_names_the_offer_that_was_asked_for() -> None:
    rows = comparison({"task": "qlora"}, ["gpt2"], ["kaggle-2xt4", "t4"], catalog()).rows
    assert {row.ranked(1).offer for row in rows} == {"kaggle-2xt4", None}


def test_what_cannot_be_asked_is_left_out_and_counted() -> None:
    """Learned positions end at 1024; other models go on."""
    asked = {"task": "inference", "context": 4096}
    found = comparison(asked, ["gpt2", "llama-3-8b"], ["rtx-4090", "h100-sxm"], catalog())
    assert {row.estimate.scenario.model.id for row in found.rows} == {"llama-3-8b"}
    (note,) = [each for each in found.warnings if each.code == "skipped"]
    assert note.message.startswith("2 of the rows") and "1024 learned positions" in note.message
    with pytest.raises(UsageError, match="1024 learned positions"):
        comparison(asked, ["gpt2"], ["rtx-4090"], catalog())
    layouts = comparison({"task": "finetune", "tp": 8}, ["gpt3-13b"], ["rtx-4090", "8xh100-sxm"], catalog())
    assert [row.estimate.scenario.num_devices for row in layouts.rows] == [8]


def test_notes_are_of_the_rows_that_are_shown() -> None:
    found = comparison({"task": "lora"}, ["llama-3-8b"], ["h100-sxm", "cpu", "epyc-9654", "xeon-8480"], catalog())
    of_processors = [note for note in found.warnings if "cpu" in note.message]
    assert of_processors and not set(of_processors) & set(found.warnings_of_first(1))
