"""A server under load: what an estimate says of it, how it agrees with the rest, and published runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

import pytest

from llmfeas.errors import UsageError
from llmfeas.evidence.compare import compared
from llmfeas.evidence.measurements import measurement_files, read_measurements
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.answer import bare_answer
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.estimate import report

SERVED = {"model": "llama-3-8b", "device": "h100-sxm", "task": "inference", "engine": "vllm"}
LENGTHS = {"prompt": 1000, "output": 300}


def served(**more: object) -> Estimate:
    return bare_answer({**SERVED, **LENGTHS, **more})


def load_of(**more: object) -> Mapping[str, Any]:
    return served(**more).to_dict()["result"]["load"]  # type: ignore[no-any-return]


def ranges(value: object) -> list[Mapping[str, float]]:
    if not isinstance(value, dict):
        return []
    return [value] if "expected" in value else [found for inner in value.values() for found in ranges(inner)]


def test_a_load_has_these_keys() -> None:
    load = load_of(rate=2)
    percentiles = ("ttft_seconds", "tpot_seconds")
    figures = ("output_tokens_per_second", "requests_per_second", "waiting", "running", "largest_requests_per_second")
    assert tuple(load) == (*percentiles, *figures, "bound_by", "prompt_tokens", "answer_tokens")
    assert all(tuple(load[key]) == ("p50", "p95") for key in percentiles)
    assert len(ranges(load)) == 9
    assert all(each["low"] <= each["expected"] <= each["high"] for each in ranges(load))


@pytest.mark.parametrize("more", [{"rate": 1}, {"concurrency": 2}, {"ttft": "1s"}, {"tpot": 0.1}, {"requests": 10}])
def test_a_load_is_there_where_one_is_asked_for(more: dict[str, object]) -> None:
    assert "load" in served(**more).to_dict()["result"]


def test_requests_of_which_nobody_says_how_long_they_are_come_with_the_prompt_of_a_short_chat() -> None:
    asked = {**SERVED, "concurrency": 8}
    unsaid, said = (bare_answer({**asked, **more}) for more in ({}, {"prompt": 256}))
    assert unsaid.to_dict()["result"]["load"]["prompt_tokens"] == 256
    assert unsaid.load is not None and said.load is not None
    assert unsaid.load.ttft_seconds == said.load.ttft_seconds
    shown = rendered(report(unsaid.to_dict()), 100)
    assert "prompts of 256 and answers of 512 tokens, as in a short chat" in shown
    assert "as in a short chat" not in rendered(report(said.to_dict()), 100)


def test_one_request_alone_is_no_load() -> None:
    assert "load" not in served().to_dict()["result"]


def test_what_is_written_under_a_load_is_one_figure() -> None:
    """The speed beside the others, the load's own and the price of a million tokens say the same."""
    for more in ({"concurrency": 8}, {"rate": 2}, {"requests": 20}):
        result = served(price=3.6, **more).to_dict()["result"]
        written = result["load"]["output_tokens_per_second"]
        assert result["time"]["output_tokens_per_second"] == written
        assert result["cost"]["usd_per_million_tokens"] == pytest.approx(1000 / written["expected"], rel=0.3)


def test_no_load_is_followed_before_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmfeas.timing.served.load", lambda *_: pytest.fail("followed"))
    found = served(concurrency=7)
    assert found.verdict.status == "feasible" and found.unloaded_speed.expected > 0


def test_one_user_is_served_as_one_request() -> None:
    """The load of one user takes its steps from the same model as the speed of a request alone."""
    alone = served(ttft="10s")
    load, time = alone.to_dict()["result"]["load"], alone.to_dict()["result"]["time"]
    step = 1 / time["tokens_per_second_per_sequence"]["expected"]
    assert load["tpot_seconds"]["p50"]["expected"] == pytest.approx(step, rel=0.05)
    first = time["time_to_first_token_seconds"]["expected"]
    assert first / 1.5 < load["ttft_seconds"]["p50"]["expected"] < first + 0.03


def test_more_load_means_longer_waits_and_more_tokens() -> None:
    found = [load_of(concurrency=users) for users in (2, 8, 32, 128)]
    for key in ("output_tokens_per_second", "requests_per_second"):
        values = [each[key]["expected"] for each in found]
        assert values == sorted(values)
    tokens = [each["tpot_seconds"]["p50"]["expected"] for each in found]
    assert tokens == sorted(tokens)


def test_what_is_found_in_the_cache_is_not_read_again() -> None:
    fresh, hit = load_of(rate=5), load_of(rate=5, prefix_hit=0.9)
    assert hit["ttft_seconds"]["p50"]["expected"] < fresh["ttft_seconds"]["p50"]["expected"]
    assert hit["largest_requests_per_second"]["expected"] > fresh["largest_requests_per_second"]["expected"]


def test_a_load_that_is_replayed_is_the_same() -> None:
    first = served(rate=3, ttft="500ms", tpot="50ms", length_spread=1, prefix_hit=0.2).to_dict()
    assert bare_answer(first["inputs"]).to_dict() == first


def test_a_rate_that_is_too_high_is_said() -> None:
    found = served(rate=1000).to_dict()["result"]
    assert found["load"]["ttft_seconds"] == {"p50": None, "p95": None}
    assert found["load"]["waiting"] is None
    assert (found["verdict"]["status"], found["verdict"]["load"]) == ("infeasible", "overloaded")
    assert "1000 requests come each second" in found["verdict"]["reasons"][-1]["message"]


@pytest.mark.parametrize("rate", [3e4, 1e5, 1e6])
def test_so_many_requests_a_step_that_no_float_holds_the_chance_of_none(rate: float) -> None:
    asked = {**SERVED, "task": "inference", "context": 1, "rate": rate}
    assert bare_answer(asked).verdict.load == "overloaded"


def test_a_rate_between_the_ends_of_what_can_be_finished_is_tight() -> None:
    most = load_of(rate=1)["largest_requests_per_second"]
    sure, doubtful = (served(rate=rate) for rate in (0.8 * most["low"], math.sqrt(most["low"] * most["expected"])))
    assert (sure.verdict.status, sure.verdict.load) == ("feasible", "ok")
    assert (doubtful.verdict.status, doubtful.verdict.load) == ("tight", "tight")
    assert doubtful.verdict.reasons[-1].code == "overload-tight"
    first = doubtful.to_dict()["result"]["load"]["ttft_seconds"]["p95"]
    assert first["high"] is None and first["low"] <= first["expected"]
    screen = rendered(report(doubtful.to_dict()))
    assert "they may pile up" in screen and ", no end)" in screen and "100000" not in screen


@pytest.mark.parametrize(
    ("targets", "verdict"),
    [
        ({"ttft": "10s", "tpot": "1s"}, "ok"),
        ({"ttft": "110ms", "tpot": "1s"}, "tight"),
        ({"ttft": "1ms"}, "missed"),
        ({"tpot": "1ms"}, "missed"),
        ({}, "ok"),
    ],
)
def test_targets_are_judged_at_their_95th_percentile(targets: dict[str, object], verdict: str) -> None:
    found = served(rate=2, **targets).verdict
    assert found.load == verdict
    assert found.status == {"ok": "feasible", "tight": "tight", "missed": "infeasible"}[verdict]


def test_a_target_that_nothing_reaches_names_the_best_that_is_possible() -> None:
    (reason,) = [each for each in served(rate=2, tpot="1ms").verdict.reasons if each.code == "tpot-missed"]
    assert "even alone a request takes" in reason.message
    assert "past the 1 ms of --tpot" in reason.message


def test_a_burst_waits_longer_than_users_who_take_turns() -> None:
    burst, turns = load_of(concurrency=200, requests=200), load_of(concurrency=200)
    assert burst["ttft_seconds"]["p50"]["expected"] > turns["ttft_seconds"]["p50"]["expected"]


def test_a_prompt_longer_than_the_context_is_refused() -> None:
    with pytest.raises(UsageError, match="--prompt 1000 is longer than --context 500"):
        served(context=500, rate=1)


def test_answers_end_where_the_context_does() -> None:
    found = served(context=1100, rate=1)
    assert [note.code for note in found.warnings].count("answer-cut") == 1


def test_a_context_has_room_for_prompt_and_answer() -> None:
    assert served(prompt=4000, output=1000, rate=1).scenario.context == 5000


@pytest.mark.parametrize(
    ("name", "value"),
    [("rate", 0), ("rate", -1), ("rate", "often"), ("ttft", 0), ("ttft", "5 apples"), ("prefix_hit", 1.5)],
)
def test_bad_settings_of_a_load_are_refused(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')}"):
        served(**{name: value})


def test_published_runs_are_met() -> None:
    """Runs with a number of requests under way, published with the median first token and time per token."""
    path = next(each for each in measurement_files() if each.name == "load.yaml")
    errors: dict[str, list[float]] = {"first-token": [], "token-time": [], "decode": []}
    for row in read_measurements([path])[0]:
        for found in () if row.variant else compared(row):
            errors[found.kind].append(found.error)
    medians = {kind: statistics.median(each) for kind, each in errors.items()}
    assert medians["first-token"] < 0.27
    assert medians["token-time"] < 0.21
    assert medians["decode"] < 0.21


def test_all_figures_are_finite() -> None:
    for more in ({"rate": 19.5}, {"rate": 1e-3}, {"rate": 5, "requests": 50}, {"concurrency": 100000}):
        for found in ranges(load_of(**more)):
            assert all(math.isfinite(value) for value in found.values())


@pytest.mark.parametrize("arrivals", [{"requests": 3}, {"requests": 1}, {"requests": 3, "rate": 1}, {"rate": 1}])
def test_answers_of_one_token_have_no_gaps(arrivals: Mapping[str, object]) -> None:
    load = bare_answer({**SERVED, "context": 1, "prompt": 0, **arrivals}).to_dict()["result"]["load"]
    assert load["output_tokens_per_second"]["expected"] > 0
    assert load["ttft_seconds"]["p50"]["expected"] > 0


def test_a_load_of_too_many_passes_is_refused_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmfeas.load.finite.MOST_PASSES", 500)
    asked = {"model": "llama-3-8b", "device": "h100-sxm", "task": "inference", "engine": "vllm", "requests": 100}
    lengths = {"concurrency": 8, "prompt": 4000, "context": 8192}
    assert bare_answer({**asked, **lengths}).under_load() is not None
    with pytest.raises(UsageError, match="more than 500 passes"):
        bare_answer({**asked, **lengths, "max_num_batched_tokens": 16}).under_load()


def test_a_number_of_requests_begins_at_once_and_waits_where_there_is_no_place() -> None:
    """As benchmarks send them, with the server's own settings: nothing is widened, and what waits is no refusal."""
    burst = served(requests=3000, device="a100-sxm-80gb")
    assert (burst.scenario.concurrency, burst.scenario.max_num_seqs) == (3000, 256)
    assert burst.verdict.memory == "fits" and burst.verdict.status == "feasible"
    assert burst.to_dict()["result"]["load"]["running"]["expected"] <= 256
    at_once = served(concurrency=3000, device="a100-sxm-80gb")
    assert at_once.scenario.max_num_seqs == 3000 and at_once.verdict.memory == "exceeds"


def test_rounds_of_requests_are_not_all_alike() -> None:
    """Answers that end together would start together, round after round."""
    rounds, said = served(requests=500, concurrency=20), served(requests=500, concurrency=20, length_spread=0)
    assert rounds.scenario.length_spread > 0 == said.scenario.length_spread
    assert served(requests=20).scenario.length_spread == 0
    assert first_token(rounds) < first_token(said)


def first_token(found: Estimate) -> float:
    return float(found.to_dict()["result"]["load"]["ttft_seconds"]["p50"]["expected"])


def test_no_load_finishes_more_than_the_most() -> None:
    """Requests that begin together have on average half of their cache: more run than a full cache holds."""
    ask = {"model": "llama-3.1-405b", "device": "8xh100-sxm", "quant": "fp8", "concurrency": 64, "context": 8192}
    load = bare_answer({**ask, "task": "inference"}).load
    assert load is not None
    assert load.requests_per_second.expected <= load.largest_requests_per_second.expected


def test_an_endless_rate_is_all_at_once() -> None:
    """As vLLM's benchmark says it: --request-rate inf."""
    assert load_of(request_rate="inf", requests=50) == load_of(requests=50)


def test_passes_are_as_wide_as_the_server_is_told() -> None:
    """The host starts a wide pass once, however many prompts it holds."""
    narrow, wide = (served(requests=100, max_num_batched_tokens=tokens) for tokens in (1024, 16384))
    assert first_token(wide) < 0.9 * first_token(narrow)


def test_stages_work_on_a_pass_each() -> None:
    """A server keeps as many passes under way as it has stages, though one pass carries a prompt whole and the others
    wait for it: two devices finish a sixth more than one.
    """
    one, two = (
        load_of(requests=400, concurrency=100, num_devices=count, tp=1, pp=count)["output_tokens_per_second"]
        for count in (1, 2)
    )
    assert two["expected"] > 7 / 6 * one["expected"]


@pytest.mark.parametrize("users", [80, 100, 106, 108, 120])
def test_verdict_and_load_agree_on_how_many_run_at_once(users: int) -> None:
    """Requests hold what they have written so far: the memory counts them as the load does."""
    asked = {"model": "gpt-oss-120b", "gpu_memory_utilization": 0.95, "prompt": 1000, "output": 500}
    found = served(**asked, concurrency=users, max_num_seqs=users)
    under_load = found.load
    assert under_load is not None and under_load.waiting is not None
    assert (under_load.waiting.expected < 0.5) == (found.verdict.memory != "exceeds")
    if found.verdict.memory == "exceeds":
        ran = int(under_load.running.expected)
        assert f"room for {ran} of {users} requests at once, which hold" in found.verdict.reasons[0].message


def test_requests_without_lengths_hold_the_whole_context() -> None:
    asked = {"model": "gpt-oss-120b", "gpu_memory_utilization": 0.95, "context": 1500, "max_num_seqs": 100}
    found = bare_answer({**SERVED, **asked, "concurrency": 100})
    assert found.verdict.memory == "exceeds" and "of 1500 tokens at once" in found.verdict.reasons[0].message


def test_a_stage_whose_layers_hold_no_cache_has_room_without_bound() -> None:
    """Of Gemma 3n the last layers read the cache of those before: eight stages, of which the fullest holds none."""
    asked = {"model": "gemma-3n-e2b", "device": "rtx-pro-2000-blackwell", "num_devices": 64, "engine": "vllm"}
    found = bare_answer({**asked, "task": "inference", "concurrency": 64})
    assert found.load is not None and found.load.output_tokens_per_second.expected > 0
