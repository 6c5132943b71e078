"""Prompts and answers on devices of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from llmfeas.errors import UsageError
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.answer import bare_answer
from llmfeas.timing.served import transfer_seconds

SERVED: dict[str, object] = {
    "model": "llama-3-8b", "device": "h100-sxm", "task": "inference", "engine": "vllm", "prompt": 4000, "output": 200,
    "context": 8192, "tp": 1, "pp": 1,
}  # fmt: skip


def served(**more: object) -> Estimate:
    return bare_answer({**SERVED, **more})


def load_of(**more: object) -> Mapping[str, Any]:
    return served(**more).to_dict()["result"]["load"]  # type: ignore[no-any-return]


def p95(load: Mapping[str, Any], key: str) -> float:
    return float(load[key]["p95"]["expected"])


def test_answers_are_not_held_up_by_prompts() -> None:
    mixed, apart = load_of(num_devices=4, rate=10), load_of(disaggregate="2:2", rate=10)
    assert p95(apart, "tpot_seconds") < p95(mixed, "tpot_seconds")
    assert p95(apart, "ttft_seconds") > p95(mixed, "ttft_seconds")


def test_more_readers_bring_first_tokens_sooner_and_more_writers_answers() -> None:
    few, more = load_of(disaggregate="2:2", rate=8), load_of(disaggregate="4:2", rate=8)
    assert p95(more, "ttft_seconds") < p95(few, "ttft_seconds")
    assert p95(load_of(disaggregate="2:4", rate=8), "tpot_seconds") < p95(few, "tpot_seconds")


def test_the_cache_of_a_prompt_goes_over_the_network() -> None:
    """131072 bytes a token of Llama 3 8B in 16 bits."""
    apart = served(disaggregate="2:2", devices_per_node=1, network=25, rate=1).scenario
    share = apart.tables.efficiency.value("link.share")
    assert transfer_seconds(apart) == pytest.approx(4000 * 131072 / (share * 25e9))
    slow, fast = (load_of(disaggregate="2:2", devices_per_node=1, network=speed, rate=1) for speed in (1, 100))
    assert p95(slow, "ttft_seconds") > p95(fast, "ttft_seconds") + 0.2


def test_the_devices_are_those_of_both_pools() -> None:
    apart = served(disaggregate="2:6", rate=1)
    assert (apart.scenario.num_devices, apart.scenario.origins["num_devices"]) == (8, "derived")
    assert apart.scenario.pools == (2, 6)


def test_an_answer_is_replayed() -> None:
    first = served(disaggregate="2:6", rate=1).to_dict()
    assert bare_answer(first["inputs"]).to_dict() == first


def test_a_rate_beyond_the_smaller_pool_piles_up() -> None:
    found = served(disaggregate="1:7", rate=30)
    assert found.verdict.load == "overloaded"
    assert found.to_dict()["result"]["load"]["waiting"] is None


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"disaggregate": "many"}, "'many' is no two counts"),
        ({"disaggregate": "0:4"}, "'0:4' is no two counts"),
        ({"disaggregate": "2:2", "num_devices": 5}, "--disaggregate 2:2 is 4 devices, --num-devices is 5"),
        ({"disaggregate": "1:3", "tp": 2}, "2 devices, which do not divide --disaggregate 1:3"),
        ({"disaggregate": "2:2", "requests": 10}, "exclude each other"),
    ],
)
def test_pools_that_cannot_be_are_refused(more: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        served(rate=1, **more)
