"""Remedies and the ladder: each remedy, asked again, gives what it promised."""

from __future__ import annotations

import itertools

import pytest

import llmfeas
from llmfeas.catalog.prices import let
from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.planning.answer import answer
from llmfeas.planning.changes.hardware import device_changes
from llmfeas.planning.remedies import nearest_remedies
from llmfeas.settle import resolution

MODELS = (
    "gpt2-xl", "llama-2-7b", "llama-3-8b", "mistral-7b", "llama-2-13b", "qwen2.5-14b", "falcon-40b", "mixtral-8x7b",
    "llama-3-70b", "gemma-2-9b",
)  # fmt: skip
DEVICES = ("rtx-4070ti", "rtx-4090", "rx-7900xtx", "m2-ultra", "arc-a770-16gb", "tpu-v5e", "ryzen-9-7950x", "t4")
TASKS = ("pretrain", "finetune", "lora", "inference")


@pytest.mark.parametrize("model", MODELS)
def test_every_remedy_keeps_its_promise(model: str) -> None:
    for device, task in itertools.product(DEVICES, TASKS):
        request = {"model": model, "device": device, "task": task, "tokens": None if task == "inference" else 1e7}
        found = answer(request, catalog(), ladder=False)
        if found.verdict.status in ("feasible", "infeasible", "unsupported"):
            assert bool(found.remedies) == (found.verdict.status != "feasible")
        else:
            assert {remedy.status for remedy in found.remedies} <= {"feasible"}
        for remedy in found.remedies:
            changes = remedy.changes
            assert isinstance(changes, dict)
            again = estimate(resolution({**request, **changes}, catalog()))
            assert again.verdict.status == remedy.status
            assert again.verdict.status in ("feasible", "tight")
            assert again.memory.peak_bytes.expected == remedy.peak_bytes


def test_remedies_hold_beside_settings_that_were_given() -> None:
    request = {
        "model": "llama-2-7b", "device": "rtx-4090", "task": "finetune", "precision": "fp32", "optimizer": "muon",
        "checkpointing": "none", "micro_batch": 4, "seq_len": 1024, "tokens": 5e6,
    }  # fmt: skip
    found = answer(request, catalog(), ladder=False)
    assert found.remedies
    for remedy in found.remedies:
        changes = remedy.changes
        assert isinstance(changes, dict)
        again = estimate(resolution({**request, **changes}, catalog()))
        assert again.verdict.status == remedy.status
        assert again.memory.peak_bytes.expected == remedy.peak_bytes


def test_a_compiler_is_offered_where_it_makes_room() -> None:
    request = {"model": "gpt2", "device": "rtx-4090", "task": "pretrain", "micro_batch": 16, "seq_len": 1024}
    first = answer(request, catalog(), ladder=False).remedies[0]
    assert first.changes == {"engine": "pytorch-compile"}
    assert first.status == "feasible"


@pytest.mark.parametrize("task", ["pretrain", "finetune", "lora"])
def test_a_librarys_kernels_are_offered_where_logits_are_too_much(task: str) -> None:
    request = {
        "model": "qwen2.5-0.5b", "device": "rtx-4090", "task": task, "micro_batch": 32, "seq_len": 1024,
        "checkpointing": "full", "tokens": 1e8,
    }  # fmt: skip
    found = answer(request, catalog(), ladder=False)
    assert found.verdict.memory == "exceeds"
    offered = [remedy for remedy in found.remedies if remedy.changes == {"engine": "pytorch-liger"}]
    assert [remedy.status for remedy in offered] == ["feasible"]


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "gpt2", "device": "rtx-4090", "task": "pretrain", "micro_batch": 32},
        {"model": "llama-3.1-8b", "device": "rtx-4060ti-16gb", "task": "qlora", "seq_len": 16384},
    ],
)
def test_they_are_not_offered_where_they_change_nothing_or_another_engine_streams(asked: dict[str, object]) -> None:
    found = answer(asked, catalog(), ladder=False)
    assert found.verdict.memory != "fits"
    assert not any("liger" in str(remedy.changes) for remedy in found.remedies)


def test_adapters_that_do_not_fit_on_one_card_are_offered_what_streams_their_inputs() -> None:
    request = {"model": "llama-3.1-8b", "device": "rtx-4060ti-16gb", "task": "qlora", "seq_len": 16384}
    first = answer(request, catalog(), ladder=False).remedies[0]
    assert first.changes == {"engine": "unsloth"}
    assert first.status == "feasible"


@pytest.mark.parametrize("device", ["mi210", "dgx-spark", "2xrtx-4060ti-16gb"])
def test_it_is_offered_for_one_card_with_a_memory_of_its_own_alone(device: str) -> None:
    request = {"model": "llama-3.1-8b", "device": device, "task": "qlora", "seq_len": 131072}
    found = answer(request, catalog(), ladder=False)
    assert found.verdict.memory != "fits"
    assert not any("unsloth" in str(remedy.changes) for remedy in found.remedies)


def test_a_compiler_is_not_offered_where_weights_and_states_alone_are_too_large() -> None:
    request = {"model": "llama-3-8b", "device": "rtx-4090", "task": "pretrain", "num_devices": 1}
    assert not any("engine" in str(r.changes) for r in answer(request, catalog(), ladder=False).remedies)


def test_a_tpu_is_offered_the_software_that_has_qlora() -> None:
    request = {"model": "llama-2-7b", "device": "tpu-v5e", "task": "qlora", "quant": "nf4", "engine": "pytorch"}
    first = answer(request, catalog(), ladder=False).remedies[0]
    assert first.changes == {"engine": "maxtext"}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", ["gpt2", "llama-2-7b", "longcat-flash"])
def test_every_ladder_has_at_least_six_rungs(model: str, device: str) -> None:
    rungs = answer({"model": model, "device": device}, catalog(), remedies=False).ladder
    assert len(rungs) >= 6
    assert {
        "label",
        "task",
        "quant",
        "precision",
        "status",
        "peak_bytes",
        "host_bytes",
        "adapters",
        "micro_batch",
        "because",
        "engine",
    } == set(rungs[0].to_dict())


def test_training_rungs_run_under_the_engine_that_was_asked_for() -> None:
    asked = {"model": "qwen3-8b", "device": "rtx-3090", "task": "lora", "seq_len": 16384, "engine": "pytorch-liger"}
    peaks = {rung.label: rung.peak_bytes for rung in answer(asked, catalog(), remedies=False).ladder}
    alone = answer({**asked, "task": "qlora", "micro_batch": 1}, catalog(), ladder=False, remedies=False)
    assert peaks["QLoRA"] == alone.memory.peak_bytes.expected
    served = answer({**asked, "task": "inference", "engine": "vllm"}, catalog(), remedies=False)
    assert {rung.label for rung in served.ladder} == set(peaks)


@pytest.mark.parametrize(
    "layout", [{"tp": 4, "zero": 1}, {"pp": 4}, {"cp": 2}, {"ep": 4}, {"offload": "all"}, {"tp": 2, "pp": 2}]
)
def test_a_layout_that_a_rung_refuses_does_not_hide_it(layout: dict[str, object]) -> None:
    request = {"model": "mixtral-8x7b", "device": "8xh100-sxm", "task": "finetune", **layout}
    assert len(answer(request, catalog(), remedies=False).ladder) >= 6


@pytest.mark.parametrize("device", ["rtx-4070ti", "m2-ultra", "tpu-v5e"])
def test_where_memory_is_short_no_remedy_spends_more_of_it(device: str) -> None:
    for model in MODELS:
        found = answer({"model": model, "device": device, "task": "lora"}, catalog(), ladder=False)
        changes = [remedy.changes for remedy in found.remedies]
        assert not any(change.get("checkpointing") == "none" for change in changes), model


def test_where_time_is_short_more_memory_may_be_spent() -> None:
    request = {"model": "llama-2-7b", "device": "h100-sxm", "task": "lora", "tokens": 1e8}
    free = answer({**request, "checkpointing": "none"}, catalog(), ladder=False, remedies=False)
    slow = answer({**request, "checkpointing": "full"}, catalog(), ladder=False, remedies=False)
    assert free.total_seconds is not None and slow.total_seconds is not None
    deadline = (free.total_seconds.expected + slow.total_seconds.expected) / 2
    found = answer({**request, "checkpointing": "full", "deadline": deadline}, catalog(), ladder=False)
    assert found.verdict.time == "over_deadline"
    assert {"checkpointing": "none"} in [remedy.changes for remedy in found.remedies]


def test_other_hardware_comes_in_the_order_of_what_it_asks_for() -> None:
    found = answer({"model": "mixtral-8x7b", "device": "rtx-4070ti", "task": "finetune"}, catalog(), ladder=False)
    counts = [remedy.changes.get("num_devices") for remedy in found.remedies]
    given = [count for count in counts if count is not None]
    assert given == sorted(given)


@pytest.mark.parametrize("device", ["t4", "rtx-4090"])
def test_other_hardware_is_what_somebody_lets(device: str) -> None:
    ask = {"model": "gpt-3-175b", "device": device, "task": "finetune"}
    found = nearest_remedies(ask, estimate(resolution(ask, catalog())), catalog())
    named = [str(remedy.changes["device"]) for remedy in found if "device" in remedy.changes]
    assert named
    assert all(catalog().devices[name].prices for name in named)


@pytest.mark.parametrize(
    ("ask", "device"),
    [
        ({"model": "llama-3.1-8b", "device": "arc-b580", "task": "lora"}, "arc-pro-b60"),
        ({"model": "qwen3-32b", "device": "rtx-3060", "task": "qlora"}, "rtx-5090"),
        ({"model": "llama-3.2-3b", "device": "steam-deck", "task": "lora"}, "strix-halo"),
    ],
)
def test_who_has_a_desk_is_told_what_stands_on_one_first(ask: dict[str, object], device: str) -> None:
    found = answer(ask, catalog(), ladder=False).remedies
    named = [str(remedy.changes["device"]) for remedy in found if "device" in remedy.changes]
    assert named[0] == device


@pytest.mark.parametrize(("own", "model"), [("arc-b580", "qwen3-4b"), ("rx-6900xt", "llama-3.1-8b")])
def test_a_card_for_servers_is_offered_to_a_desk_only_where_somebody_lets_it(own: str, model: str) -> None:
    found = estimate(resolution({"model": model, "device": own, "task": "finetune"}, catalog()))
    tried = [catalog().devices[str(change.settings["device"])] for change in device_changes(found, catalog())]
    of_servers = {device.id for device in tried if device.kind == "datacenter"}
    assert of_servers and of_servers <= let(catalog())
    assert not any(device.kind in ("edge", "apu") and not device.representative for device in tried)


def test_nobody_gives_up_16_bits_for_more_memory() -> None:
    found = estimate(resolution({"model": "qwen3-1.7b", "device": "rtx-3060", "task": "finetune"}, catalog()))
    tried = [catalog().devices[str(change.settings["device"])] for change in device_changes(found, catalog())]
    assert tried and all(device.tflop_per_s.bf16 is not None for device in tried)


def test_a_machine_that_is_sold_with_several_sizes_is_offered_with_enough() -> None:
    ask = {"model": "deepseek-r1", "device": "m4-max-40c", "task": "inference"}
    found = answer(ask, catalog(), ladder=False).remedies
    assert {"device": "m3-ultra", "memory": "512GiB"} in [remedy.changes for remedy in found]


def test_of_devices_that_hurt_alike_those_that_somebody_lets_come_first() -> None:
    found = estimate(resolution({"model": "llama-3-70b", "device": "t4", "task": "lora"}, catalog()))
    pains = {change.settings["device"]: change.pain for change in device_changes(found, catalog())}
    devices = [catalog().devices[str(name)] for name in pains]
    alike = [device for device in devices if (device.backend, device.kind) == ("cuda", "datacenter")]
    rented = let(catalog())
    assert any(device.id in rented for device in alike)
    assert {pains[device.id] for device in alike if device.id in rented} == {5.0}
    assert all(5.0 < pains[device.id] < 5.5 for device in alike if device.id not in rented)


def test_nobody_is_told_to_take_what_rests_on_an_assumption() -> None:
    """A card that a workshop changed is no advice; asked by name it is answered, and said."""
    asked = {"model": "llama-3-8b", "device": "rtx-4070ti", "task": "lora", "seq_len": 8192}
    found = estimate(resolution(asked, catalog()))
    tried = {str(change.settings["device"]) for change in device_changes(found, catalog())}
    assert tried and not any(catalog().devices[name].assumption for name in tried)
    changed = resolution({**asked, "device": "4090 48gb"}, catalog())
    assert "device-assumed" in {warning.code for warning in changed.warnings}


def test_what_takes_the_place_of_a_device_brings_its_own_memory() -> None:
    found = answer({"model": "gpt-oss-20b", "device": "macbook air m4 24gb"}, catalog(), ladder=False)
    replaced = [way for way in found.remedies if "device" in way.changes]
    assert replaced
    for way in replaced:
        assert "memory" not in way.changes, "the name alone said it"
        assert "a machine with" not in way.message


def test_an_answer_that_does_not_fit_can_be_asked_again_with_its_ways_out() -> None:
    found = llmfeas.estimate(model="llama-4-scout", device="h100-sxm", task="lora", micro_batch=1).to_dict()
    again = llmfeas.estimate(**found["inputs"]).to_dict()["result"]
    assert again["verdict"] == found["result"]["verdict"]
    assert found["result"]["verdict"]["memory"] == "exceeds"


def test_other_counts_learn_from_steps_of_the_same_answers_or_say_so() -> None:
    asked = {"model": "llama-3-8b", "device": "h100-sxm", "task": "grpo", "deadline": "30min"}
    more = [each for each in answer(asked, ladder=False, uses=False).remedies if "num_devices" in each.changes]
    assert more
    for each in more:
        assert each.changes.get("global_batch") == 8 or "more answers than 8" in each.message


def test_another_device_is_an_accelerator_and_the_cheapest_to_rent_of_those_that_hurt_alike() -> None:
    """Nobody goes from a graphics card to plain processors, or to an older and dearer card for its memory alone."""
    for model, device, task in (("qwen3-8b", "m4", "grpo"), ("llama-3.3-70b", "arc-b580", "grpo")):
        ways = answer({"model": model, "device": device, "task": task}).remedies or ()
        devices = [catalog().devices[str(way.changes["device"])] for way in ways if "device" in way.changes]
        assert devices and all(each.kind != "cpu" for each in devices)
    ways = answer({"model": "llama-3.2-1b", "device": "kaggle-2xt4", "task": "grpo"}).remedies or ()
    assert [way.changes["device"] for way in ways if "device" in way.changes] == ["a100-sxm-40gb"]
