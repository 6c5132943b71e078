"""Plans: each way does what it promises, the mildest come first, pins hold, misses are said."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.planning.changes.axes import axes_of
from llmfeas.planning.launch import launcher, prepared
from llmfeas.planning.plan import MOST_CHANGES, Plan, pins, plan
from llmfeas.planning.trials import Search, settings_of
from llmfeas.planning.writable import is_written
from llmfeas.settle import resolution

MODELS = (
    "gpt2-xl", "llama-2-7b", "llama-3-8b", "mistral-7b", "llama-2-13b", "qwen2.5-14b", "falcon-40b", "mixtral-8x7b",
    "llama-3-70b", "gemma-2-9b",
)  # fmt: skip
DEVICES = ("rtx-4070ti", "rx-7900xtx", "m2-ultra", "arc-a770-16gb", "tpu-v5e", "ryzen-9-7950x")
ASKS = (
    {"task": "finetune"},
    {"task": "pretrain", "tokens": 1e9, "deadline": "30d"},
    {"task": "lora", "seq_len": 1024, "micro_batch": 8, "checkpointing": "none"},
    {"task": "inference", "concurrency": 32},
)
KEPT = ((), ("num_devices",), ("num_devices", "task"), ("task", "tokens", "checkpointing"))
Ask = dict[str, object]


def works(request: Mapping[str, object], changes: Mapping[str, object] | None = None) -> bool:
    """Whether a request with changes works, and something writes those for its engine."""
    try:
        settled = resolution({**request, **(changes or {})}, catalog())
    except UsageError:
        return False
    written = not changes or is_written(settled.scenario, changes)
    return written and estimate(settled).verdict.status in ("feasible", "tight")


def ask(number: int) -> tuple[Ask, tuple[str, ...]]:
    """One of sixty asks of ten models on six devices: none is feasible, tasks and pins come in turn."""
    model, device = [*itertools.product(MODELS, DEVICES)][number]
    turned = [ASKS[(number + shift) % len(ASKS)] for shift in range(len(ASKS))]
    chosen = next(one for one in turned if not works({"model": model, "device": device, **one}))
    return {"model": model, "device": device, **chosen}, KEPT[(number // len(ASKS)) % len(KEPT)]


def fewest_changes(asked: Estimate, request: Ask, keep: tuple[str, ...], most: int) -> int | None:
    """Try every combination of the plan's space, without any shortcut: the least number of changes that works."""
    axes = axes_of(asked, catalog(), keep)
    pinned = {**request, **pins(asked.scenario, request, keep)}
    for count in range(1, most + 1):
        for chosen in itertools.combinations(axes, count):
            for changes in itertools.product(*(axis.alternatives for axis in chosen)):
                if works(pinned, settings_of(changes)):
                    return count
    return None


def keeps_its_promises(found: Plan, request: Ask) -> None:
    for one in found.ways:
        again = estimate(resolution({**request, **one.settings}, catalog()))
        assert again.verdict.status == one.estimate.verdict.status
        assert again.verdict.status in ("feasible", "tight")
        assert again.memory.peak_bytes == one.estimate.memory.peak_bytes
        assert again.time == one.estimate.time
        assert again.cost == one.estimate.cost


@pytest.mark.slow
@pytest.mark.parametrize("number", range(60))
def test_the_plan_is_as_good_as_the_exhaustive_search(number: int) -> None:
    request_, keep = ask(number)
    found = plan(request_, catalog(), keep=keep)
    keeps_its_promises(found, request_)
    if found.ways:
        below = min(len(way.changes) for way in found.ways) - 1
        assert fewest_changes(found.requested, request_, keep, below) is None
    else:
        assert fewest_changes(found.requested, request_, keep, MOST_CHANGES) is None


@pytest.mark.parametrize("number", range(3, 60, 7))
def test_ways_keep_their_promises_and_pins(number: int) -> None:
    request_, keep = ask(number)
    found = plan(request_, catalog(), keep=keep)
    assert found.ways or found.nearest
    keeps_its_promises(found, request_)
    held = pins(found.requested.scenario, request_, keep)
    for one in found.ways:
        now = pins(one.estimate.scenario, {}, keep)
        assert {name: now[name]["value"] for name in held} == {name: pin["value"] for name, pin in held.items()}


@pytest.mark.parametrize(
    ("model", "device"), [("gpt2-xl", "rtx-4070ti"), ("llama-3-8b", "rtx-4090"), ("longcat-flash", "mi300x")]
)
def test_the_first_ways_are_those_of_the_mildest_tier(model: str, device: str) -> None:
    request: Ask = {"model": model, "device": device, "task": "finetune"}
    found = plan(request, catalog())
    ways = [way for way in found.ways if "task" not in way.settings]
    assert ways
    assert ways[0].tier == min(way.tier for way in ways)
    search = Search(request, found.requested.scenario, catalog())
    milder = [
        change
        for axis in axes_of(found.requested, catalog())
        for change in axis.alternatives
        if change.tier < ways[0].tier
    ]
    assert not any(search.way((change,)) for change in milder)


@pytest.mark.parametrize(
    "request_",
    [
        {"model": "llama-3-8b", "device": "rtx-4090", "task": "finetune"},
        {"model": "gpt2-xl", "device": "rtx-4070ti", "task": "pretrain"},
        {"model": "qwen3-8b", "device": "rtx-4070ti", "task": "qlora"},
        {"model": "llama-3-70b", "device": "2xh100-sxm", "task": "inference"},
        {"model": "gpt-oss-120b", "device": "rtx-4090", "task": "inference"},
        {"model": "llama-3-70b", "device": "8xh100-sxm", "task": "pretrain", "tokens": 2e12, "deadline": "60d"},
    ],
    ids=str,
)
def test_a_plan_begins_with_the_remedies_of_the_estimate(request_: Ask) -> None:
    remedies = answer(request_, catalog(), ladder=False).remedies
    assert remedies
    ways = plan(request_, catalog()).ways
    assert [way.remedy for way in ways[: len(remedies)]] == list(remedies)


def test_pre_training_becomes_another_task_only_where_it_has_no_way() -> None:
    for model, device in itertools.product(("gpt2-xl", "llama-2-7b", "mixtral-8x7b"), ("rtx-4070ti", "rtx-4090", "t4")):
        ways = plan({"model": model, "device": device, "task": "pretrain", "tokens": 1e8}, catalog()).ways
        changed = ["task" in way.settings for way in ways]
        assert all(changed) or not any(changed), (model, device)


@pytest.mark.parametrize("device", ["rtx-4070ti", "rtx-4090", "m4", "rx-6900xt", "arc-b580"])
def test_who_cannot_train_all_weights_at_home_is_first_told_of_adapters(device: str) -> None:
    request: Ask = {"model": "llama-3.1-8b", "device": device, "task": "finetune"}
    first, *others = answer(request, catalog(), ladder=False).remedies
    assert first.status == "feasible"
    assert first.changes["task"] in ("lora", "qlora")
    assert not {"device", "num_devices", "host_memory"} & first.changes.keys()
    assert others
    assert not any("task" in other.changes for other in others)
    assert "task" not in plan(request, catalog(), keep=("task",)).ways[0].settings


def test_where_all_weights_train_for_little_nobody_is_told_of_adapters() -> None:
    remedies = answer({"model": "llama-3.1-8b", "device": "h100-sxm", "task": "finetune"}, ladder=False).remedies
    assert remedies
    assert not any("task" in remedy.changes for remedy in remedies)


def test_of_a_tight_answer_the_ways_are_sure() -> None:
    request: Ask = {"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora", "micro_batch": 4}
    found = plan(request, catalog())
    assert found.requested.verdict.status == "tight"
    assert found.ways and found.ways[0].changes
    assert {way.estimate.verdict.status for way in found.ways} == {"feasible"}


def test_a_server_is_offered_formats_that_its_engine_runs_and_that_it_is_launched_with() -> None:
    request: Ask = {"model": "llama-3-70b", "device": "2xh100-sxm", "task": "inference"}
    found = plan(request, catalog())
    assert any(way.settings.get("quant") == "fp8" for way in found.ways)
    assert {way.estimate.scenario.engine for way in found.ways} == {"vllm"}
    for way in found.ways:
        assert prepared({**request, **way.settings}, launcher("vllm"), catalog()).launch.command.startswith(
            "vllm serve"
        )


def test_one_card_is_offered_a_library_that_is_written_for_it_first() -> None:
    request: Ask = {"model": "qwen3-8b", "device": "rtx-4070ti", "task": "qlora"}
    found = plan(request, catalog())
    assert found.ways[0].settings == {"engine": "unsloth"}
    assert found.ways[0].estimate.verdict.status == "feasible"


def test_no_change_is_an_engine_that_nobody_names() -> None:
    for device, task in itertools.product(("rtx-4090", "m2-ultra"), ("qlora", "inference")):
        for engine in ("vllm", "mlx", "unsloth", "exllamav2", "megatron"):
            request: Ask = {"model": "mixtral-8x7b", "device": device, "task": task, "engine": engine}
            try:
                ways = plan(request, catalog()).ways
            except UsageError:
                continue
            assert not any(way.settings.get("engine") == "auto" for way in ways)


def test_where_nothing_works_the_nearest_is_named() -> None:
    keep = ("task", "num_devices")
    found = plan({"model": "longcat-flash", "device": "rtx-4070ti", "task": "finetune"}, catalog(), keep=keep)
    assert not found.ways
    assert found.nearest is not None
    assert 0 < found.nearest.missing_bytes < -found.requested.memory.headroom_bytes
    assert not found.nearest.emptied_by


def test_a_missed_deadline_is_measured_in_time() -> None:
    request = {"model": "gpt2-xl", "device": "h100-sxm", "deadline": "1h"}
    found = plan(request, catalog(), keep=("tokens", "task", "num_devices"))
    assert found.nearest is not None
    assert found.nearest.missing_bytes == 0
    assert found.nearest.missing_seconds is not None and found.nearest.missing_seconds > 0
    late = found.requested.total_seconds
    assert late is not None and found.nearest.missing_seconds < late.expected - 3600


def test_an_empty_space_names_the_pins_that_empty_it() -> None:
    request = {"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune"}
    every = [axis.name for axis in axes_of(plan(request, catalog()).requested, catalog())]
    found = plan(request, catalog(), keep=[*every, "device"])
    assert not found.ways
    assert found.nearest is not None
    assert set(found.nearest.emptied_by) == set(every)
    assert not found.nearest.changes


def test_pins_that_contradict_the_search_are_refused() -> None:
    with pytest.raises(UsageError, match="any-device"):
        plan({"model": "gpt2-xl", "device": "rtx-4070ti"}, catalog(), keep=("device",), any_device=True)


def test_what_is_feasible_needs_no_change() -> None:
    found = plan({"model": "gpt2", "device": "h100-sxm"}, catalog())
    assert [dict(one.settings) for one in found.ways] == [{}]


def test_other_devices_are_tried_unless_the_device_is_kept() -> None:
    request: Ask = {"model": "llama-3-70b", "device": "rtx-4090", "task": "inference", "quant": "q8_0"}
    keep = ("num_devices", "quant", "kv_dtype", "context", "host_memory")
    assert not plan(request, catalog(), keep=[*keep, "device"]).ways
    for any_device in (False, True):
        found = plan(request, catalog(), keep=keep, any_device=any_device)
        assert "device" in found.ways[0].settings
        keeps_its_promises(found, request)


@pytest.mark.parametrize(
    ("limit", "wins"), [({"deadline": "3d"}, {"num_devices", "tokens"}), ({"budget": 300}, {"tokens"})]
)
def test_time_and_money_are_won_too(limit: Ask, wins: set[str]) -> None:
    request: Ask = {"model": "gpt2-xl", "device": "h100-sxm", **limit}
    found = plan(request, catalog())
    keeps_its_promises(found, request)
    names = {name for way in found.ways for name in way.settings}
    assert wins <= names


def test_what_was_said_of_one_device_holds_for_no_other() -> None:
    request: Ask = {"model": "llama-2-7b", "device": "m2-ultra", "task": "finetune", "memory": "64GiB"}
    keep = ("task", "num_devices", "memory", "optimizer", "precision", "checkpointing", "seq_len")
    found = plan(request, catalog(), keep=("num_devices", "task", "optimizer"), any_device=True)
    others = [way for way in found.ways if "device" in way.settings]
    assert others and all(way.settings["memory"] != "64GiB" for way in others)
    keeps_its_promises(found, request)
    assert all("device" not in way.settings for way in plan(request, catalog(), keep=keep, any_device=True).ways)


def test_a_budget_is_not_met_by_many_devices_for_some_minutes() -> None:
    request: Ask = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "finetune", "tokens": "1B", "budget": 50}
    for way in plan(request, catalog()).ways:
        scenario = way.estimate.scenario
        assert scenario.num_devices == 8 or (scenario.price_usd_per_hour or 0) * scenario.num_devices <= 50


def test_a_budget_is_not_met_by_a_device_without_a_price() -> None:
    request: Ask = {"model": "gpt2-xl", "device": "h100-sxm", "budget": 300}
    for one in plan(request, catalog(), any_device=True).ways:
        assert one.usd is not None and one.usd <= 300


def test_what_the_backend_cannot_do_is_not_offered() -> None:
    found = plan({"model": "llama-2-13b", "device": "tpu-v5e", "task": "finetune"}, catalog())
    offered = {
        value
        for axis in axes_of(found.requested, catalog())
        for c in axis.alternatives
        for value in c.settings.values()
    }
    assert not offered & {"qlora", "adamw-8bit"}
    assert "adafactor" in offered


def test_a_count_in_the_devices_name_gives_way_to_another() -> None:
    request: Ask = {"model": "llama-3-70b", "device": "8xrtx-4090", "task": "finetune"}
    found = plan(request, catalog(), keep=("task",))
    keeps_its_promises(found, request)
    assert any(way.settings.get("num_devices", 0) != 8 and "device" in way.settings for way in found.ways)


def test_as_many_layers_stay_on_the_device_as_fit() -> None:
    ask: Ask = {"model": "llama-3-70b", "device": "rtx-4090", "task": "inference", "host_memory": "64GiB"}
    request = {**ask, "quant": "q6_k", "gpu_layers": 80}
    ways = [way for way in plan(request, catalog(), keep=["quant"]).ways if "gpu_layers" in way.settings]
    assert ways
    for way in ways:
        layers = way.settings["gpu_layers"]
        assert isinstance(layers, int) and layers > 0
        more = estimate(resolution({**request, **way.settings, "gpu_layers": layers + 1}, catalog()))
        assert more.verdict.status != way.estimate.verdict.status


def test_adapters_do_not_learn_what_a_pre_training_does() -> None:
    keep = ["num_devices", "device", "memory", "host_memory", "offload"]
    ask: Ask = {"model": "llama-3-8b", "device": "rtx-4090", "task": "pretrain", "tokens": 100e9}
    adapted = [way for way in plan(ask, catalog(), keep=keep).ways if way.settings.get("task") in ("lora", "qlora")]
    assert adapted
    for way in adapted:
        assert way.settings["tokens"] == way.estimate.scenario.tokens == 10e6
        assert "no pre-training" in way.remedy.message
    kept = plan(ask, catalog(), keep=[*keep, "tokens"])
    assert not any("task" in way.settings for way in kept.ways)


def test_fine_tuning_keeps_its_tokens_under_adapters() -> None:
    ask: Ask = {"model": "llama-3-8b", "device": "rtx-4090", "task": "finetune", "tokens": 50e6}
    keep = ["num_devices", "device", "offload", "host_memory"]
    adapted = [way for way in plan(ask, catalog(), keep=keep).ways if "task" in way.settings]
    assert adapted and all(way.estimate.scenario.tokens == 50e6 for way in adapted)


def test_too_many_examples_become_fewer_examples() -> None:
    ask = {"model": "gpt2", "device": "rtx-3090", "task": "lora", "examples": 10**6, "deadline": "2h"}
    fewer = [way for way in plan(ask, catalog(), shown=20).ways if "examples" in way.settings]
    assert fewer
    assert all(bare_answer({**ask, **way.settings}).verdict.status in ("feasible", "tight") for way in fewer)


@pytest.mark.parametrize(("task", "model"), [("dpo", "qwen2.5-7b"), ("grpo", "qwen2.5-3b")])
def test_an_objective_is_kept_and_trained_with_adapters_before_a_host_or_money_help(task: str, model: str) -> None:
    asked: Ask = {"model": model, "device": "rtx-4090", "task": task}
    assert dict(plan(asked, catalog()).ways[0].settings) == {"adapters": "lora"}
    whole = plan({**asked, "adapters": "none"}, catalog())
    assert whole.ways and not any("adapters" in way.settings for way in whole.ways)


@pytest.mark.parametrize(("model", "devices"), [("llama-3-8b", 16), ("llama-3-70b", 128)])
def test_a_pretraining_that_a_desk_cannot_do_rents_machines_and_stays_one(model: str, devices: int) -> None:
    asked: Ask = {"model": model, "device": "rtx-4090", "task": "pretrain", "tokens": "2T", "deadline": "60d"}
    first = plan(asked, catalog()).ways[0].estimate
    assert first.scenario.task == "pretrain" and first.scenario.tokens == 2e12
    assert first.scenario.device.kind == "datacenter" and first.scenario.num_devices >= devices


def test_nobody_adds_memory_to_a_machine_that_is_lent() -> None:
    found = plan({"model": "llama-3-70b", "device": "kaggle-2xt4", "task": "qlora"}, catalog())
    assert found.ways and all("host_memory" not in way.settings for way in found.ways)
