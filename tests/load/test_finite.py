"""A number of requests followed one by one: when users ask again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from random_servers import drawn

from llmfeas.load.batch import Batch
from llmfeas.load.requests import Arrivals, Lengths
from llmfeas.load.serve import load

EQUAL = Lengths(prompt=500, output=100)


def test_users_of_equal_lengths_ask_again_together() -> None:
    """Answers that end in one pass are followed by requests that share passes too, as in a benchmark's rounds."""
    _, server, _ = drawn(1, "vllm")
    wide = replace(server, overhead_seconds=0.01, kv_pool_tokens=1e9)
    rounds = load(Batch(wide, EQUAL), Arrivals(users=16, requests=160)).ttft_seconds.p50
    burst = load(Batch(wide, EQUAL), Arrivals(requests=16)).ttft_seconds.p50
    assert rounds == pytest.approx(burst, rel=0.2)


def test_a_request_of_a_user_who_waited_is_on_its_way_first() -> None:
    """Nobody's next request is there the moment the last answer ends: more time on the way finishes fewer."""
    _, server, _ = drawn(1, "vllm")
    near, far = (replace(server, overhead_seconds=seconds, kv_pool_tokens=1e9) for seconds in (0.0, 1.0))
    arrivals = Arrivals(users=4, requests=40)
    fast, slow = load(Batch(near, EQUAL), arrivals), load(Batch(far, EQUAL), arrivals)
    assert slow.requests_per_second < fast.requests_per_second
    assert slow.ttft_seconds.p50 > fast.ttft_seconds.p50 + 0.9
