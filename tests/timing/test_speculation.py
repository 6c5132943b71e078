"""Speculative decoding: what drafts takes memory and time, what holds makes tokens."""

from __future__ import annotations

import pytest

from llmfeas.errors import UsageError
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.answer import bare_answer

ASKED: dict[str, object] = {
    "model": "llama-3-70b", "device": "4xh100-sxm", "task": "inference", "engine": "vllm", "prompt": 500, "output": 200,
}  # fmt: skip
DRAFT = {"draft": "llama-3.2-1b"}


def asked(**more: object) -> Estimate:
    return bare_answer({**ASKED, **more})


def speed(**more: object) -> float:
    return float(asked(**more).to_dict()["result"]["time"]["tokens_per_second_per_sequence"]["expected"])


def test_a_step_makes_as_many_tokens_as_hold() -> None:
    assert asked(**DRAFT, spec_tokens=3, acceptance=0.5).scenario.tokens_a_step == pytest.approx(1.875)
    assert asked(**DRAFT, spec_tokens=3, acceptance=1).scenario.tokens_a_step == 4
    assert asked().scenario.tokens_a_step == 1


def test_drafts_that_hold_make_it_faster_and_those_that_do_not_slower() -> None:
    assert speed(**DRAFT, acceptance=0.8) > 1.4 * speed()
    assert speed(**DRAFT, acceptance=0) < speed()


def test_more_of_the_draft_that_holds_is_faster() -> None:
    speeds = [speed(**DRAFT, acceptance=share / 10) for share in range(0, 11, 2)]
    assert speeds == sorted(speeds)


def test_many_requests_gain_less() -> None:
    def gain(**more: object) -> float:
        load, plain = (asked(**more, **draft).to_dict()["result"]["load"] for draft in (DRAFT, {}))
        return float(load["output_tokens_per_second"]["expected"] / plain["output_tokens_per_second"]["expected"])

    assert gain(concurrency=2) > gain(concurrency=100)


@pytest.mark.parametrize("draft", ["llama-3.2-1b", "eagle"])
def test_what_drafts_takes_memory(draft: str) -> None:
    plain, drafted = asked().memory, asked(draft=draft).memory
    for part in ("weights_bytes", "kv_cache_bytes"):
        assert drafted.components[part] > plain.components[part]


def test_a_whole_model_takes_what_it_takes_alone() -> None:
    alone = bare_answer({**ASKED, "model": "llama-3.2-1b", "device": "h100-sxm"}).memory.components["weights_bytes"]
    added = asked(**DRAFT).memory.components["weights_bytes"] - asked().memory.components["weights_bytes"]
    assert added == pytest.approx(alone / 4, rel=0.02)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"draft": "gpt2"}, "has 50257 tokens in its vocabulary, Llama 3 70B has 128256"),
        ({"draft": "mtp"}, "no multi-token prediction of Llama 3 70B is known"),
        ({"spec_tokens": 3}, "--spec-tokens is given, but no --draft"),
        ({"acceptance": 0.5}, "--acceptance is given, but no --draft"),
        ({"draft": "no-such-model"}, "unknown model"),
        ({**DRAFT, "acceptance": 1.5}, "--acceptance"),
    ],
)
def test_bad_drafts_are_refused(more: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asked(**more)


def test_an_answer_with_a_draft_is_replayed() -> None:
    first = asked(**DRAFT, rate=1).to_dict()
    assert bare_answer(first["inputs"]).to_dict() == first


@pytest.mark.parametrize("model", ["glm-4.7", "glm-5", "deepseek-v3.2", "qwen3.5-397b-a17b", "qwen3.8-27b", "mimo-7b"])
def test_models_bring_their_own_prediction(model: str) -> None:
    def weights(**more: object) -> float:
        given = {"model": model, "device": "16xb200", "devices_per_node": 16, "tp": 8}
        return asked(**given, **more).memory.components["weights_bytes"]

    whole, narrow = (weights(quant=quant, draft="mtp") - weights(quant=quant) for quant in ("none", "fp8"))
    assert whole == pytest.approx(2 * narrow)
    assert 0 < whole < 0.2 * weights(quant="none")


def test_tuned_models_need_not_have_it() -> None:
    with pytest.raises(UsageError, match="no multi-token prediction"):
        asked(model="bonsai-27b", draft="mtp")
