"""Inverse questions: feasible at the answer, not one step beyond."""

from __future__ import annotations

from copy import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.prices import current
from llmfeas.catalog.store import Catalog, catalog
from llmfeas.errors import LlmfeasError, UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.planning.solve import QUESTIONS, solved
from llmfeas.settle import resolution
from llmfeas.workload.serving import spills

MODELS = (
    "gpt2", "gpt2-xl", "pythia-1b", "llama-2-7b", "llama-3-8b", "mistral-7b", "qwen2.5-0.5b", "tinyllama-1.1b",
    "gemma-2-2b", "falcon-7b", "mixtral-8x7b", "opt-1.3b",
)  # fmt: skip
DEVICES = (
    "rtx-4070ti", "rtx-4090", "rtx-3060-12gb", "a100-sxm-80gb", "rx-7900xtx", "m2-ultra", "t4", "tpu-v5e",
    "arc-a770-16gb", "ryzen-9-7950x",
)  # fmt: skip
WORKS = ("feasible", "tight")
Ask = dict[str, object]
INVERSIONS = {
    "micro_batch": ("max-batch", 1),
    "concurrency": ("max-batch", 1),
    "context": ("max-context", 1),
    "seq_len": ("max-context", 1),
    "lora_rank": ("max-rank", 1),
    "memory": ("min-memory", -(2**20)),
}
"""By the setting that is searched: the question, and one step beyond its answer."""


def status(request: Ask) -> str:
    """The status of a request, `refused` where this value of a setting is."""
    try:
        found = estimate(resolution(request, catalog()))
        return "on the host" if spills(found.scenario) and found.verdict.status in WORKS else found.verdict.status
    except UsageError as error:
        assert error.code in ("beyond-positions", "impossible-layout", "rank-beyond-matrix")
        return "refused"


def check_edge(setting: str, request: Ask) -> None:
    """Hold that the answer works, that one step beyond does not, and that `beyond` says so."""
    question, step = INVERSIONS[setting]
    found = solved(question, request, catalog())
    value = found.answer[setting]
    fixed = request if request["task"] == "inference" or question == "max-batch" else {"micro_batch": 1, **request}
    if value is None:
        assert found.beyond is not None
        least = found.beyond.get(setting)
        assert (found.beyond["status"] if least is None else status({**fixed, setting: least})) not in WORKS
        return
    assert isinstance(value, int)
    helped = found.at is not None and spills(found.at.scenario)
    assert status({**fixed, setting: value}) in (("on the host",) if helped else WORKS)
    assert found.at is not None and found.at.verdict.status in WORKS
    assert not helped or any("on the device alone" in note for note in found.notes)
    if found.beyond is not None:
        assert found.beyond[setting] == value + step
        assert status({**fixed, setting: value + step}) not in (*WORKS, *(("on the host",) if helped else ()))


@st.composite
def requests(draw: st.DrawFn, setting: str) -> Ask:
    """Draw a request whose `setting` can be searched."""
    request: Ask = {"model": draw(st.sampled_from(MODELS)), "device": draw(st.sampled_from(DEVICES))}
    if setting in ("concurrency", "context"):
        return {**request, "task": "inference", "quant": draw(st.sampled_from(("none", "q4_k_m", "q8_0", "int8")))}
    tasks = ("lora", "qlora") if setting == "lora_rank" else ("pretrain", "finetune", "lora", "qlora")
    request["task"] = draw(st.sampled_from(tasks))
    request["checkpointing"] = draw(st.sampled_from(("none", "full")))
    request |= draw(st.sampled_from(({}, {"deadline": "30d"}, {"tokens": 1e9, "deadline": "2d"})))
    if setting != "seq_len":
        request["seq_len"] = draw(st.sampled_from((256, 512, 1024)))
    return request


@pytest.mark.parametrize("setting", INVERSIONS)
def test_one_step_beyond_the_answer_nothing_works(setting: str) -> None:
    @settings(max_examples=12)
    @given(requests(setting))
    def exact(request: Ask) -> None:
        check_edge(setting, request)

    exact()


@pytest.mark.slow
@pytest.mark.parametrize("setting", INVERSIONS)
def test_five_hundred_inversions_are_exact(setting: str) -> None:
    @settings(max_examples=500)
    @given(requests(setting))
    def exact(request: Ask) -> None:
        check_edge(setting, request)

    exact()


def test_a_batch_that_is_too_slow_when_small_is_found_where_it_is_large() -> None:
    """One sequence at a time takes too long, many at once do not."""
    request: Ask = {"model": "gpt2", "device": "rtx-4090", "task": "pretrain", "seq_len": 128, "checkpointing": "none"}
    slow = estimate(resolution({**request, "micro_batch": 1}, catalog())).total_seconds
    fast = estimate(resolution({**request, "micro_batch": 64}, catalog())).total_seconds
    assert slow is not None and fast is not None and fast.expected < 0.9 * slow.expected
    limit: Ask = {**request, "deadline": 0.95 * slow.expected}
    assert status({**limit, "micro_batch": 1}) not in WORKS
    check_edge("micro_batch", limit)
    assert solved("max-batch", limit, catalog()).answer["micro_batch"]


def test_the_documents_question() -> None:
    """A year of an RTX 4070 Ti at 90 % of its fp32 rate: 1.14e21 FLOP, but GPT-2 XL does not fit."""
    request = {"model": "gpt2-xl", "device": "rtx-4070ti", "deadline": "1y", "mfu": 0.9, "precision": "fp32"}
    found = solved("tokens", request, catalog())
    assert found.answer["model_flop"] == pytest.approx(1.14e21, rel=0.005)
    assert found.answer["tokens_by_rule_of_thumb"] == pytest.approx(1.22e11, rel=0.005)
    assert found.answer["tokens"] == pytest.approx(1.11e11, rel=0.005)
    assert found.answer["memory"] == "exceeds"


@pytest.mark.parametrize("days", ["1d", "30d", "1y"])
def test_tokens_and_deadline_invert_each_other(days: str) -> None:
    request = {"model": "gpt2", "device": "rtx-4090", "micro_batch": 8}
    count = solved("tokens", {**request, "deadline": days}, catalog()).answer["tokens"]
    seconds = solved("deadline", {**request, "tokens": count}, catalog()).answer["seconds"]
    assert seconds == pytest.approx(resolution({**request, "deadline": days}, catalog()).scenario.deadline_seconds)


def test_a_budget_buys_tokens_in_proportion() -> None:
    request = {"model": "gpt2", "device": "rtx-4090", "price": 0.5}
    ten, hundred = (solved("tokens", {**request, "budget": usd}, catalog()).answer["tokens"] for usd in (10, 100))
    assert hundred == pytest.approx(10 * float(str(ten)))


def test_min_devices_names_a_layout_and_the_count_before_fails() -> None:
    found = solved("min-devices", {"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune"}, catalog())
    count = found.answer["num_devices"]
    assert isinstance(count, int) and count > 1
    assert found.beyond is not None and found.beyond["status"] != "feasible"
    assert found.at is not None and found.at.scenario.num_devices == count


def test_max_model_is_feasible_and_the_next_larger_is_not() -> None:
    found = solved("max-model", {"device": "rtx-4070ti", "task": "inference", "quant": "q4_k_m"}, catalog())
    assert found.at is not None and found.at.verdict.status in ("feasible", "tight")
    assert found.beyond is not None
    because = str(found.beyond["because"])
    assert "the rest runs on the host" in because or "would stay in main memory" in because


@pytest.mark.parametrize(
    ("ask", "at_least"),
    [
        ({"device": "rtx-4070ti", "task": "inference", "context": 2048}, 2),
        ({"device": "rtx-4090", "task": "qlora", "seq_len": 4096}, 5),
    ],
)
def test_max_model_skips_what_cannot_be_asked_and_says_so(ask: Ask, at_least: int) -> None:
    found = solved("max-model", ask, thinned())
    assert found.at is not None
    assert int(found.notes[0].split()[0]) >= at_least
    assert "learned positions" in found.notes[0]


SHORTLY: tuple[Ask, ...] = (
    {"device": "8xh100-sxm", "task": "pretrain"},
    {"device": "8xrtx-4090", "task": "lora", "deadline": "1h"},
    {"device": "rtx-4090", "task": "finetune", "checkpointing": "full"},
    {"device": "rtx-4070ti", "task": "inference", "context": 8192},
    {"device": "rtx-4090", "task": "inference", "quant": "q4_k_m", "rate": 2},
    {"device": "16xh100-sxm", "task": "pretrain", "tp": 8},
)


@pytest.mark.parametrize("ask", SHORTLY, ids=str)
def test_max_model_counts_the_models_whose_estimates_are_feasible(ask: Ask) -> None:
    few = copy(catalog())
    vars(few)["models"] = {name: catalog().models[name] for name in [*catalog().models][::41]}
    fixed = {"micro_batch": 1, **ask} if ask["task"] != "inference" else ask
    works = 0
    for model in few.models.values():
        if not (model.has_weights and model.architecture.writes):
            continue
        try:
            found = bare_answer({**fixed, "model": model.id}, catalog())
        except LlmfeasError:
            continue
        works += found.verdict.status in ("feasible", "tight") and not spills(found.scenario)
    assert works
    assert solved("max-model", ask, few).answer["works"] == works


def test_max_model_skips_the_same_however_devices_are_counted() -> None:
    rest = {"task": "finetune", "seq_len": 4096}
    counted, said = ({"device": "8xtpu-v6e", **rest}, {"device": "tpu-v6e", "num_devices": 8, **rest})
    one, other = (solved("max-model", ask, thinned()) for ask in (counted, said))
    assert one.answer == other.answer
    assert one.notes == other.notes


def thinned() -> Catalog:
    """The catalog with every eighth of its models."""
    few = copy(catalog())
    vars(few)["models"] = {name: catalog().models[name] for name in [*catalog().models][::8]}
    return few


def test_no_model_is_shown_beside_a_larger_one_that_is_years_newer() -> None:
    few = copy(catalog())
    vars(few)["models"] = {name: catalog().models[name] for name in ("opt-1.3b", "qwen2.5-1.5b", "gpt2")}
    found = solved("max-model", {"device": "rtx-4070ti", "task": "inference"}, few).answer
    assert [each["model"] for each in found["models"]] == ["qwen2.5-1.5b"]  # type: ignore[attr-defined]
    assert found["works"] == 3


def test_the_largest_models_of_a_desk_are_those_in_usual_formats() -> None:
    found = solved("max-model", {"device": "rtx-4070ti", "task": "inference"}, catalog())
    assert found.at is not None
    assert found.at.scenario.quant == found.at.scenario.model.published_quant or found.at.scenario.quant == "q4_k_m"
    named = found.answer["models"]
    assert isinstance(named, list) and all(model["parameters"] > 12e9 for model in named)


def test_the_optimum_is_near_the_rule_of_20_which_stands_beside_it() -> None:
    found = solved("optimal", {"device": "rtx-4090", "deadline": "30d"}, catalog())
    flop = found.answer["flop"]
    assert isinstance(flop, float)
    ratios = {}
    for name in ("best", "hoffmann", "rule_of_20"):
        size = found.answer[name]
        assert isinstance(size, dict)
        assert 6 * size["parameters"] * size["tokens"] == pytest.approx(flop)
        ratios[name] = size["tokens_per_parameter"]
    assert 15 < ratios["best"] < 26 and ratios["rule_of_20"] == pytest.approx(20) and ratios["hoffmann"] > 35


def test_the_optimum_says_that_data_binds() -> None:
    request: Ask = {"device": "rtx-4090", "deadline": "30d"}
    free, short = (solved("optimal", {**request, **more}, catalog()) for more in ({}, {"tokens": 1e9}))
    assert (free.answer["binds"], free.answer["limited"]) == ("compute", None)
    assert free.at is not None and free.at.verdict.status in WORKS
    assert short.answer["binds"] == "data"
    limited = short.answer["limited"]
    assert isinstance(limited, dict) and limited["tokens"] == 1e9


@pytest.mark.parametrize(("device", "tokens"), [("8xh100-sxm", 1e11), ("h100-sxm", 1e10), ("rtx-4090", 3e9)])
def test_the_model_that_reads_all_data_does_so_in_time(device: str, tokens: float) -> None:
    found = solved("optimal", {"device": device, "deadline": "30d", "tokens": tokens}, catalog())
    limited = found.answer["limited"]
    assert isinstance(limited, dict) and limited["tokens"] == tokens
    assert found.at is not None and found.at.verdict.status in WORKS
    built = found.at.scenario.model.architecture
    assert built.writes and built.experts is None and built.source is None and not built.tower_parameters


def test_the_optimum_says_that_memory_binds_and_what_fits() -> None:
    found = solved("optimal", {"device": "rtx-3060-12gb", "deadline": "300d"}, catalog())
    limited, best = found.answer["limited"], found.answer["best"]
    assert found.answer["binds"] == "memory"
    assert isinstance(limited, dict) and isinstance(best, dict)
    assert limited["parameters"] < best["parameters"] and limited["tokens"] > best["tokens"]
    assert found.at is not None and found.at.verdict.status in WORKS


@pytest.mark.parametrize(("question", "limit"), (("tokens", {"deadline": "7d"}), ("deadline", {"tokens": "2B"})))
def test_the_answer_of_a_job_that_does_not_fit_comes_with_what_would(question: str, limit: dict[str, str]) -> None:
    ask = {"model": "gpt2-xl", "device": "rtx-4070ti", "task": "pretrain", **limit}
    found = solved(question, ask, catalog())
    assert found.at is not None and found.at.memory.verdict == "exceeds"
    endless = {**ask, "deadline": None, "tokens": found.answer["tokens"]}
    assert [way.changes for way in found.ways] == [each.changes for each in answer(endless, catalog()).remedies] != []
    for way in found.ways:
        there = solved(question, {**ask, **way.changes}, catalog())
        assert there.at is not None and there.at.verdict.memory != "exceeds" and not there.ways
        assert there.answer["tokens" if question == "tokens" else "seconds"] == way.answer


def test_tokens_say_which_limit_binds() -> None:
    request: Ask = {"model": "gpt2", "device": "rtx-4090", "price": 1.0, "deadline": "10h"}
    assert solved("tokens", {**request, "budget": 1}, catalog()).answer["binds"] == "budget"
    assert solved("tokens", {**request, "budget": 100}, catalog()).answer["binds"] == "deadline"


@settings(max_examples=12)
@given(
    st.sampled_from(("llama-2-7b", "gpt2-xl", "mixtral-8x7b")),
    st.sampled_from(("rtx-4090", "h100-sxm", "tpu-v5e", "t4")),
    st.sampled_from(("finetune", "lora", "inference")),
)
def test_the_count_before_the_fewest_devices_does_not_work(model: str, device: str, task: str) -> None:
    request: Ask = {"model": model, "device": device, "task": task}
    found = solved("min-devices", request, catalog())
    count = found.answer["num_devices"]
    assert isinstance(count, int)
    node = min(catalog().devices[device].devices_per_node, 8)
    tried = [*range(1, node), *range(node, count + 1, node)]
    request |= {name: found.answer[name] for name in ("engine",) if name in found.answer}
    works = [number for number in tried if number <= count and status({**request, "num_devices": number}) in WORKS]
    assert works == [count]


def test_cheapest_is_the_least_over_devices_counts_and_prices() -> None:
    request: Ask = {"model": "gpt2-xl", "deadline": "7d", "tokens": 10e9}
    found = solved("cheapest", request, catalog())
    ranked = found.answer["ranked"]
    assert isinstance(ranked, list)
    assert [row["usd"] for row in ranked] == sorted(row["usd"] for row in ranked)
    least = ranked[0]["usd"]
    for device in ("rtx-4090", "h100-sxm", "a100-sxm-80gb"):
        for price in catalog().devices[device].prices:
            for count in (1, 2, 8):
                asked = {**request, "device": device, "num_devices": count, "price": price.usd_per_hour}
                other = estimate(resolution(asked, catalog()))
                if other.verdict.status in WORKS:
                    assert other.cost.usd is not None and other.cost.usd.expected >= least


def test_nobody_rents_for_less_than_an_hour() -> None:
    request: Ask = {"model": "llama-3-8b", "task": "finetune", "deadline": "1d"}
    found = solved("cheapest", request, catalog())
    ranked = found.answer["ranked"]
    assert isinstance(ranked, list)
    assert any("one hour" in note for note in found.notes)
    for row in ranked:
        assert row["paid_hours"] == max(1.0, row["seconds"] / 3600)
        assert row["usd"] == pytest.approx(row["usd_per_device_hour"] * row["num_devices"] * row["paid_hours"])
    less = solved("cheapest", {**request, "budget": 0.99 * ranked[0]["usd"]}, catalog())
    assert less.answer["device"] is None


def test_every_price_of_a_device_is_compared() -> None:
    found = solved("cheapest", {"model": "gpt2", "deadline": "7d", "device": "h100-sxm", "num_devices": 8}, catalog())
    ranked = found.answer["ranked"]
    assert isinstance(ranked, list)
    prices = sorted(price.usd_per_hour for price in current(catalog().devices["h100-sxm"]))
    rented = [row["usd_per_device_hour"] for row in ranked if row["kind"] not in ("free", "paid")]
    assert rented == prices[: len(rented)]
    assert len({row["provider"] for row in ranked}) > 1
    assert {row["num_devices"] for row in ranked} == {8}


def test_cards_are_rented_by_the_machine_unless_asked() -> None:
    request: Ask = {"model": "llama-2-7b", "task": "lora", "deadline": "1d"}
    for row in solved("cheapest", request, catalog()).answer["ranked"]:  # type: ignore[attr-defined]
        device = catalog().devices.get(row["device"])
        if device is not None and device.kind != "datacenter":
            assert row["num_devices"] <= device.devices_per_node
    asked = solved("cheapest", {**request, "device": "rtx-4090", "num_devices": 32}, catalog())
    assert asked.answer["num_devices"] == 32


def test_of_what_is_free_few_are_named() -> None:
    """They cost the same: the fastest stand for the others, and leave room for what is rented."""
    ranked = solved("cheapest", {"model": "gpt2", "deadline": "8w"}, catalog()).answer["ranked"]
    assert isinstance(ranked, list)
    free = [row["seconds"] for row in ranked if row["usd"] == 0]
    assert len(free) == 3 and free == sorted(free)
    assert len(ranked) > 3


def test_whole_machines_are_rented_by_the_machine() -> None:
    asked: Ask = {"model": "llama-2-70b", "tokens": "1B", "deadline": "30d", "device": "mi300x"}
    ranked = solved("cheapest", asked, catalog()).answer["ranked"]
    row = next(row for row in ranked if row["provider"] == "azure")  # type: ignore[attr-defined]
    assert row["device"] == "standard-nd96isr-mi300x-v5"
    assert row["num_devices"] == 8 * row["copies"] > 8


def test_free_hours_a_week_stretch_the_job() -> None:
    found = solved("cheapest", {"model": "gpt2", "deadline": "8w", "device": "kaggle-p100"}, catalog())
    ranked = found.answer["ranked"]
    assert isinstance(ranked, list)
    free = [row for row in ranked if row["usd"] == 0]
    assert free and all(row["seconds"] <= 8 * 7 * 86400 for row in free)
    weekly = next(row for row in free if row["device"] == "kaggle-p100")
    own = estimate(resolution({"model": "gpt2", "device": "kaggle-p100"}, catalog())).total_seconds
    assert own is not None
    assert weekly["seconds"] > 3 * own.expected


def test_where_nothing_is_fast_enough_the_fastest_is_named() -> None:
    found = solved("cheapest", {"model": "gpt2-xl", "deadline": "1s"}, catalog())
    assert found.answer["device"] is None
    assert found.beyond is not None and "past the deadline" in str(found.beyond["because"])


@pytest.mark.parametrize(
    ("question", "request_"),
    [
        ("tokens", {"model": "gpt2", "device": "rtx-4090"}),
        ("tokens", {"model": "gpt2", "device": "rtx-4090", "task": "inference", "deadline": "1d"}),
        ("tokens", {"model": "gpt2", "device": "rx-6900xt", "budget": 10}),
        ("max-rank", {"model": "gpt2", "device": "rtx-4090"}),
        ("max-batch", {"model": "gpt2", "device": "rtx-4090", "micro_batch": 3}),
        ("cheapest", {"model": "gpt2", "deadline": "7d", "price": 1}),
        ("min-devices", {"model": "gpt2", "device": "8xh100-sxm"}),
        ("min-devices", {"model": "gpt2", "device": "h100-sxm", "num_devices": 4}),
        ("max-model", {"model": "gpt2", "device": "h100-sxm"}),
        ("optimal", {"device": "rtx-4090", "deadline": "30d", "task": "lora"}),
        ("tokens", {"model": "gpt2", "device": "rtx-4090", "deadline": "soon"}),
        ("tokens", {"model": "gpt2", "device": "rtx-4090", "budget": "much"}),
        ("optimal", {"device": "rtx-4090"}),
        ("largest", {"device": "rtx-4090"}),
    ],
)
def test_a_question_that_lacks_something_says_what(question: str, request_: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        solved(question, request_, catalog())
    assert caught.value.hint


def test_the_cheapest_within_a_month_is_taken_where_no_deadline_is_said() -> None:
    asked = {"model": "llama-3.1-8b", "task": "qlora", "device": "rtx-4090"}
    unsaid, said = (solved("cheapest", {**asked, **more}, catalog()) for more in ({}, {"deadline": "30d"}))
    assert unsaid.answer == said.answer
    assert set(unsaid.notes) - set(said.notes) == {"--deadline 30d was taken, since none was said"}


def test_every_question_has_a_solver() -> None:
    for module, function, help_text in QUESTIONS.values():
        assert module and function and help_text.endswith(".")


@pytest.mark.parametrize(
    ("question", "plain", "spelled"),
    [
        ("cheapest", {"num_devices": 8, "tokens": 1e9, "deadline": 604800}, {"num_devices": "8.0"}),
        ("cheapest", {"tokens": 1e9, "deadline": 604800}, {"num_devices": "auto", "device": "auto"}),
        ("min-devices", {"device": "t4", "devices_per_node": 4}, {"devices_per_node": "4.0", "num_devices": "auto"}),
        ("max-context", {"device": "t4", "task": "inference", "prompt": 2000}, {"prompt": "2k"}),
        ("max-context", {"device": "t4", "task": "inference", "context": None}, {"context": "auto"}),
        ("max-batch", {"device": "t4", "task": "inference"}, {"task": " INFERENCE "}),
        ("max-batch", {"device": "t4", "task": "inference", "context": 1000}, {"max_model_len": "1k", "context": None}),
        ("tokens", {"device": "t4", "deadline": 86400, "task": "pretrain"}, {"deadline": "1d", "task": "train"}),
        ("optimal", {"device": "t4", "deadline": 86400, "task": "pretrain"}, {"task": "auto"}),
    ],
)
def test_values_are_read_once_for_all_questions(question: str, plain: Ask, spelled: Ask) -> None:
    """However a value is written, and whatever the setting is called, the question is the same."""
    plain = {"model": "gpt2", **plain}
    known, other = solved(question, plain, catalog()), solved(question, {**plain, **spelled}, catalog())
    assert other.to_dict()["result"] == known.to_dict()["result"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_question_needs_is_missed_by_name(question: str) -> None:
    with pytest.raises(UsageError) as caught:
        solved(question, {"model": "auto", "device": "auto"}, catalog())
    assert caught.value.code == "missing-option"


def test_the_largest_batch_is_within_the_global_one() -> None:
    request: Ask = {"model": "gpt2", "device": "rtx-4090", "task": "finetune", "global_batch": 4}
    assert solved("max-batch", request, catalog()).answer == {"micro_batch": 4}
    assert int(str(solved("max-batch", {**request, "global_batch": None}, catalog()).answer["micro_batch"])) > 4


def test_a_micro_batch_beyond_the_global_one_is_refused() -> None:
    request: Ask = {"model": "gpt2", "device": "rtx-4090", "micro_batch": 100, "global_batch": 1}
    with pytest.raises(UsageError, match="--global-batch 1 is less than one --micro-batch 100") as caught:
        resolution(request, catalog())
    assert caught.value.code == "contradiction"


def test_the_fewest_devices_of_a_pretraining_are_the_fewest_in_any_layout() -> None:
    """No fewer whole machines do, however the model is divided over them; layouts alike within 2 % count as one."""
    asked: Ask = {"model": "llama-3-70b", "device": "h100-sxm", "tokens": "2T", "deadline": "60d"}
    count = solved("min-devices", asked, catalog()).answer["num_devices"]
    assert count % 8 == 0
    for fewer in (count - 8, count - 16):
        for tp, pp in ((8, 1), (8, 2), (4, 2), (4, 4), (8, 4)):
            if fewer % (tp * pp) == 0:
                found = bare_answer({**asked, "num_devices": fewer, "tp": tp, "pp": pp})
                assert found.total_seconds is not None and found.total_seconds.expected > 0.98 * 60 * 86400


def test_where_a_clusters_engine_is_needed_it_is_tried_on_few_devices_and_named() -> None:
    asked: Ask = {"model": "longcat-flash", "device": "h200", "task": "lora"}
    found = solved("min-devices", asked, catalog())
    count, engine = found.answer["num_devices"], found.answer["engine"]
    assert count == 16 and f"--engine {engine}" in found.notes[0]
    again = {**asked, "engine": engine}
    assert bare_answer({**again, "num_devices": count}).verdict.status in ("feasible", "tight")
    assert bare_answer({**again, "num_devices": count - 8}).verdict.status == "infeasible"
    remedies = answer({**asked, "num_devices": 64}, ladder=False, uses=False).remedies
    assert {"engine": engine} in [dict(each.changes) for each in remedies]


def test_an_engine_of_clusters_is_not_taken_for_a_base_that_it_does_not_hold() -> None:
    """LoRA and DoRA alone under Megatron: QLoRA on many devices stays with the public code."""
    many: Ask = {"model": "llama-3-70b", "device": "128xh100-sxm"}
    assert bare_answer({**many, "task": "qlora"}).scenario.engine == "pytorch"
    assert bare_answer({**many, "task": "qlora", "engine": "nemo"}).verdict.software == "unsupported"
    assert bare_answer({**many, "task": "lora"}).verdict.software == "supported"


@pytest.mark.parametrize(
    ("settings", "made"),
    [
        ({"task": "inference", "quant": "q4_k_m"}, 8192),
        ({"task": "qlora"}, 8192),
        ({"task": "inference", "quant": "q4_k_m", "model_context": 1_000_000}, None),
    ],
)
def test_what_the_model_was_made_for_stands_beside_a_longer_context(settings: dict[str, object], made: object) -> None:
    found = solved("max-context", {"model": "llama-3-8b", "device": "rtx-4090", **settings}, catalog())
    longest = next(iter(found.answer.values()))
    assert found.answer.get("model_context") == made
    assert isinstance(longest, int) and longest > 8192


def test_a_context_that_nobody_says_more_of_is_that_of_a_server() -> None:
    asked = {"model": "gpt2", "device": "rtx-4070ti"}
    bare = solved("max-context", asked, catalog())
    assert "the context of --task inference was taken" in bare.notes[0]
    assert bare.answer == solved("max-context", {**asked, "task": "inference"}, catalog()).answer
    assert "seq_len" in solved("max-context", {**asked, "lora_rank": 8}, catalog()).answer


@pytest.mark.parametrize(("task", "largest"), [("pretrain", "gpt2"), ("embed", "bert-large")])
def test_the_largest_model_writes_but_where_vectors_are_asked_for(task: str, largest: str) -> None:
    few = copy(catalog())
    vars(few)["models"] = {name: catalog().models[name] for name in ("gpt2", "bert-large", "t5-large")}
    found = solved("max-model", {"device": "rtx-4090", "task": task}, few).answer
    assert largest in [model["model"] for model in found["models"]]  # type: ignore[attr-defined]
    assert ("bert-large" in str(found["models"])) is (task == "embed")


def test_the_cheapest_is_the_fewest_devices_of_those_that_cost_hardly_more() -> None:
    asked: dict[str, object] = {"model": "llama-3-8b", "device": "mi300x", "tokens": "100B", "deadline": "30d"}
    found = solved("cheapest", asked, catalog()).answer
    count, usd = int(str(found["num_devices"])), float(str(found["usd"]))

    def cost(devices: int) -> float:
        answer = bare_answer({**asked, "num_devices": devices, "price": found["usd_per_device_hour"]})
        assert answer.cost.usd is not None
        return answer.cost.usd.expected

    assert cost(count // 2) > 1.02 * usd
    assert cost(2 * count) > usd / 1.02


def test_fewest_devices_in_stages_say_that_another_layout_may_do_with_fewer() -> None:
    asked = {"model": "llama-3-70b", "device": "h100-sxm", "task": "pretrain", "tokens": "1T", "deadline": "30d"}
    assert any("--interleave" in note for note in solved("min-devices", asked, catalog()).notes)
    said = solved("min-devices", {**asked, "tp": 8, "pp": 2, "interleave": 2}, catalog())
    assert not any("--interleave" in note for note in said.notes)


def test_recipes_with_which_fewer_devices_train_all_weights_stand_beside() -> None:
    asked = {"model": "llama-3-8b", "device": "rtx-4090", "task": "finetune"}
    found = solved("min-devices", asked, catalog())
    counts = [way.answer for way in found.ways]
    assert counts and [found.answer["num_devices"], *counts] == sorted([found.answer["num_devices"], *counts])[::-1]
    for way in found.ways:
        assert not {"task", "device", "num_devices"} & way.changes.keys()
        assert solved("min-devices", {**asked, **way.changes}, catalog()).answer["num_devices"] == way.answer


@pytest.mark.parametrize("task", ["finetune", "qlora"])
def test_recipes_with_which_a_larger_model_trains_stand_beside(task: str) -> None:
    found = solved("max-model", {"device": "rtx-3060", "task": task}, catalog())
    sizes = [float(str(found.answer["parameters"])), *(way.answer for way in found.ways)]
    assert len(sizes) > 1 and sizes == sorted(sizes)


def test_an_engine_of_clusters_that_refuses_the_question_is_not_tried() -> None:
    asked = {"model": "llama-3-70b", "device": "h100-sxm", "task": "finetune", "optimizer": "adamw-8bit"}
    found = solved("min-devices", asked, catalog())
    assert found.at is not None and found.at.scenario.engine == "pytorch"
