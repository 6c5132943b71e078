"""Copies of a model where one over all devices of a server misses what is asked of it."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.settle.formats import fits
from llmfeas.timing.served import keeps_up, load_of, share_of_targets
from llmfeas.workload.serving import replicas

SERVED: dict[str, object] = {
    "model": "llama-3.1-8b",
    "device": "4xh100-sxm",
    "task": "inference",
    "engine": "vllm",
    "rate": 20,
    "prompt": 1000,
    "output": 300,
}


def asked(**more: object) -> Scenario:
    return resolution({**SERVED, **more}, catalog()).scenario


def test_a_load_that_one_copy_keeps_is_spread_over_all_devices() -> None:
    found = asked(tpot=1)
    assert (found.tp, found.pp) == (4, 1) and keeps_up(found)


def test_copies_are_taken_where_one_over_all_devices_misses_the_target() -> None:
    assert not keeps_up(asked(tpot=0.015, tp=4))
    found = asked(tpot=0.015)
    assert found.tp * found.pp < 4 and keeps_up(found)
    assert found.origins["tp"] == found.origins["pp"] == "derived"


def test_of_several_numbers_of_copies_the_one_that_keeps_a_target_best_is_taken() -> None:
    shares = {tp: share_of_targets(asked(tpot=0.015, tp=tp, pp=1)) for tp in (1, 2)}
    assert max(shares.values()) < 1.0 and shares[1] != shares[2]
    assert asked(tpot=0.015).tp == min(shares, key=lambda tp: shares[tp])


def test_tensors_that_somebody_divided_have_no_more_stages_than_it_takes() -> None:
    """`--tensor-parallel-size 4` is one instance on four devices, not one on all eight."""
    eight = {"device": "8xh100-sxm", "tp": 4}
    assert asked(**eight).pp == 1 and asked(**eight, pp=2).pp == 2
    large = {"model": "llama-3.3-70b", "quant": "none", "device": "8xrtx-4090", "tp": 2}
    assert asked(**large).pp == 4, "which two of these cards do not hold"
    over = {"device": "16xh100-sxm"}
    assert asked(**over).pp == asked(**over, tp=asked(**over).tp).pp, "what is chosen may be said"


def test_what_was_said_of_the_layout_stays() -> None:
    assert asked(tpot=0.015, tp=4).tp == 4
    assert asked(tpot=0.015, pp=2).pp == 2


@pytest.mark.parametrize(
    ("model", "devices", "said", "layout"),
    [
        ("llama-3.1-70b", 8, {"tp": 4}, (4, 1)),
        ("llama-3.1-70b", 8, {"tp": 4, "pp": 2}, (4, 2)),
        ("llama-3.1-70b", 8, {"tp": 1}, (1, 2)),
        ("llama-3.1-70b", 16, {}, (8, 1)),
        ("llama-3.1-70b", 16, {"pp": 1}, (8, 1)),
        ("llama-3.1-70b", 16, {"tp": 8}, (8, 1)),
        ("llama-3.1-405b", 16, {}, (8, 2)),
        ("llama-3.1-405b", 16, {"tp": 8}, (8, 2)),
    ],
)
def test_stages_are_as_few_as_hold_the_model_and_copies_take_the_rest(
    model: str, devices: int, said: dict[str, int], layout: tuple[int, int]
) -> None:
    request = {"model": model, "device": "h100-sxm", "num_devices": devices, "task": "inference", "engine": "vllm"}
    found = resolution({**request, **said}, catalog()).scenario
    assert (found.tp, found.pp) == layout
    assert all(found.origins[name] == ("given" if name in said else "derived") for name in ("tp", "pp"))


def test_a_target_that_no_layout_keeps_changes_nothing() -> None:
    assert asked(tpot=0.001).tp == asked().tp


SHARED: dict[str, object] = {"model": "deepseek-v3.2", "device": "8xb200", "task": "inference", "engine": "vllm"}


def test_a_cache_that_ranks_repeat_is_kept_once_by_copies_where_it_lacks_room() -> None:
    """Latent attention has one cache, whatever the ranks: copies that share the experts hold requests of their own."""
    whole, several = (
        resolution({**SHARED, "concurrency": 1400, "context": 4096, **more}, catalog()).scenario
        for more in ({"tp": 8}, {})
    )
    assert not fits(whole) and fits(several)
    assert several.tp < 8 and several.ep == 8 and several.origins["ep"] == "derived"


@pytest.mark.parametrize("model", ["deepseek-v3.2", "llama-3.1-8b"])
def test_a_cache_that_fits_or_is_divided_is_left_where_it_is(model: str) -> None:
    few = resolution({**SHARED, "model": model, "concurrency": 16}, catalog()).scenario
    many = resolution({**SHARED, "model": "llama-3.1-8b", "concurrency": 100_000}, catalog()).scenario
    assert few.tp == many.tp == 8 and not fits(many)


def of_users(**more: object) -> Scenario:
    request = {"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "inference", "engine": "vllm", **more}
    return resolution(request, catalog()).scenario


def test_copies_serve_many_users_where_they_write_more_and_no_answer_ends_later() -> None:
    asked = {"concurrency": 256, "prompt": 1000, "output": 300}
    one, several = (load_of(of_users(**asked, **more), 1.0, 1.0) for more in ({"tp": 8}, {}))
    assert replicas(of_users(**asked)) > 1
    assert several.output_tokens_per_second > one.output_tokens_per_second
    waited = [load.ttft_seconds.p50 + asked["output"] * load.tpot_seconds.p50 for load in (several, one)]
    assert waited[0] <= waited[1]


def test_users_whom_copies_would_serve_later_share_all_devices() -> None:
    assert of_users(concurrency=8).tp == 8
