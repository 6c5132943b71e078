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


@pytest.mark.parametrize(
    ("pool", "seqs", "requests", "cause"),
    [(1e9, 64, 1, "compute"), (1e9, 64, 40, "queue"), (1e9, 4, 40, "max_num_seqs"), (3000.0, 64, 40, "pool")],
)
def test_slow_first_tokens_wait_for_what_kept_them_out(pool: float, seqs: int, requests: int, cause: str) -> None:
    """However a batch would end that is fuller than this one ever is."""
    _, server, _ = drawn(1, "vllm")
    asked = replace(server, kv_pool_tokens=pool, max_num_seqs=seqs, replicas=1)
    found = load(Batch(asked, EQUAL), Arrivals(requests=requests))
    assert found.bound_by == cause


def test_a_batch_that_is_never_full_keeps_nobody_waiting_for_the_cache() -> None:
    """Requests come at a fraction of the rate at which the pool would be full."""
    _, server, _ = drawn(1, "vllm")
    batch = Batch(replace(server, kv_pool_tokens=20000.0, max_num_seqs=1000, replicas=1), EQUAL)
    assert batch.limit == "pool"
    assert load(batch, Arrivals(rate=batch.most.rate / 10, requests=50)).bound_by in ("compute", "queue")


def test_one_request_alone_goes_on_beyond_the_pool_without_a_pass_for_each_token() -> None:
    """Nobody is thrown out for it, so nothing has to be looked at before it ends."""
    _, server, _ = drawn(1, "vllm")
    small = replace(server, kv_pool_tokens=1000.0, max_num_seqs=4, replicas=1)
    batch = Batch(small, Lengths(prompt=500, output=300_000))
    assert load(batch, Arrivals(requests=2)).output_tokens_per_second > 0.0


def test_who_comes_while_others_decode_waits_for_the_step_that_is_put_together_already() -> None:
    """And who comes alone for none."""
    _, server, _ = drawn(1, "vllm")
    plain = replace(server, kv_pool_tokens=1e9, max_num_seqs=64, overhead_seconds=0.0, ahead=False, replicas=1)
    ahead, cycle = replace(plain, ahead=True), Batch(plain, EQUAL).at(4)
    for arrivals in (Arrivals(users=4), Arrivals(rate=cycle.rate, requests=400)):
        at_once, later = (load(Batch(each, EQUAL), arrivals).ttft_seconds.p50 for each in (plain, ahead))
        assert later - at_once == pytest.approx(cycle.plain_seconds, rel=0.5)
    for arrivals in (Arrivals(users=1), Arrivals(requests=1)):
        at_once, later = (load(Batch(each, EQUAL), arrivals).ttft_seconds.p50 for each in (plain, ahead))
        assert later == at_once
