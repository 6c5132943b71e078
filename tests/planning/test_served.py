"""Servers asked backwards, and the ways out where a server does not keep up."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.plan import plan
from llmfeas.planning.remedies import nearest_remedies
from llmfeas.planning.solve import solved

SERVED: dict[str, object] = {
    "model": "llama-3-8b", "device": "h100-sxm", "task": "inference", "engine": "vllm", "prompt": 1000, "output": 300,
}  # fmt: skip
TARGETS: dict[str, object] = {"ttft": "500ms", "tpot": "25ms"}
WORKS = ("feasible", "tight")


def status(**more: object) -> str:
    return bare_answer({**SERVED, **more}).verdict.status


def test_one_user_more_than_the_most_misses_a_target() -> None:
    found = solved("max-users", {**SERVED, **TARGETS}, catalog())
    users = found.answer["concurrency"]
    assert isinstance(users, int) and found.beyond is not None
    assert status(**TARGETS, concurrency=users) in WORKS
    assert status(**TARGETS, concurrency=users + 1) == found.beyond["status"] == "infeasible"


@pytest.mark.parametrize(
    ("model", "devices", "layouts"),
    [("gpt-oss-120b", 2, ({"tp": 1}, {"tp": 2})), ("llama-3.3-70b", 4, ({"tp": 2, "pp": 2}, {"tp": 4}))],
)
def test_the_layout_of_the_most_users_is_the_one_that_takes_most_of_them(
    model: str, devices: int, layouts: tuple[dict[str, int], ...]
) -> None:
    # a target on the time per token alone bounds no queue: what has room at once decides
    asked = {"model": model, "device": "h100-sxm", "num_devices": devices, "task": "inference", "tpot": "100ms"}
    users = {each["tp"]: solved("max-users", {**asked, **each}, catalog()).answer["concurrency"] for each in layouts}
    found = solved("max-users", asked, catalog()).answer
    assert (found["layout"]["tp"], found["concurrency"]) == max(users.items(), key=lambda each: each[1])


def test_a_little_more_than_the_largest_rate_misses_a_target() -> None:
    found = solved("max-rate", {**SERVED, **TARGETS}, catalog())
    rate = found.answer["rate"]
    assert isinstance(rate, float) and found.beyond is not None
    assert status(**TARGETS, rate=rate) in WORKS
    assert status(**TARGETS, rate=1.02 * rate) == found.beyond["status"] == "infeasible"


def test_requests_as_uneven_as_may_be_take_time_also_where_longer_prompts_write_a_state_seldomer() -> None:
    asked = {"model": "recurrentgemma-2b", "device": "rtx-4090", "task": "inference", "length_spread": 10}
    rate = solved("max-rate", asked, catalog()).answer["rate"]
    assert isinstance(rate, float) and rate > 0


def test_without_targets_the_largest_rate_is_what_can_be_finished() -> None:
    found = solved("max-rate", SERVED, catalog())
    rate, at = found.answer["rate"], found.at
    assert isinstance(rate, float) and at is not None and at.under_load is not None
    assert rate == pytest.approx(at.under_load().largest_requests_per_second.expected, rel=0.02)


def test_the_fewest_devices_keep_up_and_a_copy_less_does_not() -> None:
    asked = {**SERVED, **TARGETS, "rate": 60}
    found = solved("min-devices", asked, catalog())
    count, layout = found.answer["num_devices"], found.answer["layout"]
    assert isinstance(count, int) and isinstance(layout, dict) and found.beyond is not None
    copies = {"tp": layout["tp"], "pp": layout["pp"], "quant": found.answer.get("quant", "auto")}
    assert status(**TARGETS, **copies, rate=60, num_devices=count) in WORKS
    fewer = count - layout["tp"] * layout["pp"]
    assert found.beyond["num_devices"] == fewer
    assert status(**TARGETS, **copies, rate=60, num_devices=fewer) == "infeasible"


def test_requests_that_end_pile_up_on_no_count_of_devices() -> None:
    """A benchmark of so many requests ends on one copy, whatever the rate; targets want more of them."""
    asked = {"model": "qwen2.5-7b", "device": "l4", "task": "inference", "requests": 400, "rate": 60}
    one = solved("min-devices", asked, catalog())
    assert one.answer["num_devices"] == 1 and one.at is not None and one.at.verdict.status == "feasible"
    several = solved("min-devices", {**asked, "ttft": 1.0}, catalog())
    assert int(str(several.answer["num_devices"])) > 1
    assert several.beyond is not None and several.beyond["status"] == "infeasible"


def test_copies_of_requests_at_once_are_named_in_the_layout() -> None:
    asked = {"model": "llama-3.1-70b", "device": "h100-sxm", "task": "inference", "concurrency": 4000, "tp": 4, "pp": 1}
    layout = solved("min-devices", asked, catalog()).answer
    assert isinstance(layout["layout"], dict)
    dp, tp, pp = (layout["layout"][name] for name in ("dp", "tp", "pp"))
    assert dp > 1 and dp * tp * pp == layout["num_devices"]


def test_a_server_takes_fewer_bits_only_for_fewer_devices() -> None:
    asked = {**SERVED, **TARGETS, "rate": 60}
    open_, said = (solved("min-devices", {**asked, **more}, catalog()) for more in ({}, {"quant": "none"}))
    fewest, published = open_.answer["num_devices"], said.answer["num_devices"]
    assert isinstance(fewest, int) and isinstance(published, int)
    assert "quant" not in said.answer and not said.notes
    if "quant" in open_.answer:
        assert fewest < published
        assert f"as published {published} devices" in open_.notes[0]
    else:
        assert fewest == published


@pytest.mark.parametrize(("question", "name"), [("max-users", "concurrency"), ("max-rate", "rate")])
def test_several_devices_share_the_model_as_they_take_most(question: str, name: str) -> None:
    asked = {**SERVED, **TARGETS, "device": "4xh100-sxm"}
    free = solved(question, asked, catalog())
    layout, amount = free.answer["layout"], free.answer[name]
    assert isinstance(layout, dict) and isinstance(amount, int | float)
    assert layout["dp"] * layout["tp"] * layout["pp"] == 4
    for tp in (1, 2, 4) if name == "concurrency" else (4,):
        said = solved(question, {**asked, "tp": tp, "pp": 1}, catalog()).answer[name]
        assert isinstance(said, int | float) and said <= 1.02 * amount
    assert any("--quant fp8" in note for note in free.notes)


def test_a_target_that_no_count_reaches_is_said() -> None:
    found = solved("min-devices", {**SERVED, "rate": 5, "tpot": "100us"}, catalog())
    assert found.answer == {"num_devices": None}
    assert found.beyond is not None and "even alone a request takes" in str(found.beyond["because"])
    assert "not even 16384 devices work" in found.notes


def test_a_server_that_does_not_keep_up_gets_more_copies() -> None:
    asked = {**SERVED, "rate": 40}
    answered = bare_answer(asked)
    assert answered.verdict.load == "overloaded"
    remedies = list(nearest_remedies(asked, answered, catalog()))
    assert any(remedy.changes.get("num_devices") and remedy.changes.get("tp") == 1 for remedy in remedies)


MANY: dict[str, object] = {**SERVED, "num_devices": 8, "concurrency": 512, "tpot": "22ms", "max_num_seqs": 512}


def test_a_load_that_is_missed_gets_more_copies_on_the_same_devices() -> None:
    asked = {**MANY, "tp": 4}
    answered = bare_answer(asked)
    assert answered.verdict.load == "missed"
    remedies = list(nearest_remedies(asked, answered, catalog()))
    copies = [remedy for remedy in remedies if "num_devices" not in remedy.changes and "tp" in remedy.changes]
    assert copies and all(remedy.status in WORKS and remedy.output_tokens_per_second for remedy in copies)


def test_copies_are_taken_at_once_where_nobody_says_a_layout() -> None:
    found = bare_answer(MANY)
    assert found.verdict.status in WORKS and found.scenario.tp == 1


def test_a_remedy_says_what_is_written_under_its_load() -> None:
    """Beside the price of a million tokens, which is that of those written under the load."""
    asked = {**SERVED, "rate": 40, "price": 3.6}
    for way in plan(asked, catalog()).ways:
        found = bare_answer({**asked, **way.settings})
        assert found.load is not None
        assert way.remedy.output_tokens_per_second == found.load.output_tokens_per_second.expected


def test_a_plan_for_missed_targets_names_the_fewest_devices_and_leaves_the_requests_as_they_are() -> None:
    asked = {**SERVED, **TARGETS, "rate": 60}
    fewest = solved("min-devices", {**asked, "quant": "none"}, catalog())
    ways = plan(asked, catalog()).ways
    assert fewest.answer["num_devices"] in [way.settings.get("num_devices") for way in ways]
    for way in ways:
        assert way.settings.keys().isdisjoint({"prompt", "output", "rate"})
        assert bare_answer({**asked, **way.settings}).verdict.status in WORKS


@pytest.mark.parametrize(
    ("question", "more", "says"),
    [
        ("max-users", {**TARGETS, "rate": 1}, "has no --rate"),
        ("max-users", {**TARGETS, "task": "lora"}, "has no users"),
        ("max-rate", {"rate": 1}, "searches --rate"),
    ],
)
def test_questions_that_contradict_themselves_are_refused(question: str, more: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        solved(question, {**SERVED, **more}, catalog())


def test_users_who_read_are_taken_where_no_target_is_said() -> None:
    found, said = (solved("max-users", {**SERVED, **more}, catalog()) for more in ({}, {"tpot": "100ms"}))
    assert found.answer == said.answer
    assert "--tpot 100ms was taken" in found.notes[0] and not said.notes


def test_there_are_no_more_users_than_requests() -> None:
    found = solved(
        "max-users", {"model": "llama-3.1-8b", "device": "h100-sxm", "requests": 40, "tpot": "10s"}, catalog()
    )
    assert found.answer == {"concurrency": 40}


def test_all_users_run_at_once_where_layouts_are_compared() -> None:
    """Requests that wait cost no time per token: counted, eight stages seem to serve the most."""
    asked = {"model": "llama-3-8b", "device": "8xh100-sxm", "tpot": "100ms"}
    best, copies = (solved("max-users", {**asked, **more}, catalog()).answer for more in ({}, {"tp": 1, "pp": 1}))
    assert best["concurrency"] >= copies["concurrency"]


def test_a_format_of_fewer_bits_that_spares_no_machine_is_no_way() -> None:
    """Nobody rents half a machine: where fewer bits are a way, so many whole machines do not do as published."""
    asked = {"model": "deepseek-v3.2", "device": "8xh200", "task": "inference", "concurrency": 500}
    asked |= {"prompt": 2000, "output": 500, "ttft": "2s", "tpot": "50ms"}
    [way] = [way for way in nearest_remedies(asked, bare_answer(asked), catalog()) if "num_devices" in way.changes]
    assert way.changes["quant"] == "awq-int4"
    machines = -(-int(str(way.changes["num_devices"])) // 8)
    published = {**asked, "device": "h200", "num_devices": 8 * machines, "tp": 8, "pp": 1, "quant": "fp8"}
    assert bare_answer(published).verdict.status not in WORKS
    assert bare_answer({**published, "num_devices": 8 * (machines + 2)}).verdict.status in WORKS


def test_no_rate_is_searched_where_an_encoder_reads() -> None:
    """No answer follows such a load: of its steps nothing is known that a rate could be computed from."""
    asked = {"model": "whisper-base", "device": "4xepyc-9654", "length_spread": 10, "cache_held": "written"}
    with pytest.raises(UsageError, match="whisper-base has an encoder"):
        solved("max-rate", asked, catalog())
    assert solved("max-users", asked, catalog()).at is not None
    alone = {**asked, "device": "epyc-9654", "rate": 3, "task": "inference"}
    assert solved("min-devices", alone, catalog()).answer["num_devices"] == 1
