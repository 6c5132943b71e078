"""Copies of a model where one over all devices of a server misses what is asked of it."""

from __future__ import annotations

from llmfeas.catalog.store import catalog
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.served import keeps_up, share_of_targets

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


def test_what_was_said_of_the_layout_stays() -> None:
    assert asked(tpot=0.015, tp=4).tp == 4
    assert asked(tpot=0.015, pp=2).pp == 2


def test_a_target_that_no_layout_keeps_changes_nothing() -> None:
    assert asked(tpot=0.001).tp == asked().tp
