"""What devices that share a layer or a sequence lose by it."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.planning.answer import bare_answer
from llmfeas.scenario import Scenario
from llmfeas.timing.step import device_links_of, step_parts

ASK: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "task": "pretrain",
    "engine": "nemo-tuned",
    "num_devices": 64,
    "seq_len": 8192,
    "micro_batch": 1,
    "global_batch": 64,
    "checkpointing": "none",
    "pp": 1,
}


def settled(**changes: Any) -> Scenario:
    return bare_answer({**ASK, "tp": 1, **changes}).scenario


def part(name: str, **changes: Any) -> float:
    return step_parts(settled(**changes))[name]


def test_thin_products_of_tensor_parallel_ranks_lose_more_the_thinner_they_are() -> None:
    alone, two, four, eight = (part("matrix", tp=tp) for tp in (1, 2, 4, 8))
    assert alone < two < four < eight < 1.6 * alone
    # each rank more adds as much: all of them wait for the last tiles of a product
    assert eight - four == pytest.approx(2 * (four - two), rel=0.05)


def test_thin_products_lose_less_where_a_model_is_wide() -> None:
    lost = [
        part("matrix", model=model, tp=8) / part("matrix", model=model, tp=1)
        for model in ("llama-3.2-1b", "llama-3.1-70b")
    ]
    assert lost[0] > lost[1] > 1


def test_ranks_that_share_a_sequence_hand_keys_and_values_on() -> None:
    assert part("context_parallel", cp=1) == 0
    two, four, eight = (part("context_parallel", cp=cp) for cp in (2, 4, 8))
    assert 0 < two < four < eight
    # of the other one a quarter of the heads have keys; both wait for as many calls
    assert 1.2 * four < part("context_parallel", cp=4, model="llama-2-7b") < 4 * four


def test_long_sequences_hide_what_is_handed_on() -> None:
    def share(length: int) -> float:
        parts = step_parts(settled(seq_len=length, cp=8, tp=1, global_batch=8))
        return parts["context_parallel"] / sum(parts.values())

    assert share(8192) > 2 * share(131072) > 0


def test_collectives_take_longer_across_nodes_whatever_they_move() -> None:
    links = device_links_of(settled())
    assert links.call(16) == links.call(4, 4) > links.call(8) == links.call(2) > 0


def test_ranks_that_share_each_layer_call_each_other_however_short_a_sequence_is() -> None:
    short, shorter = (part("tensor_parallel", tp=8, seq_len=length, global_batch=8) for length in (512, 256))
    assert short < 1.9 * shorter


def test_old_kernels_are_not_behind_chips_that_were_held_back() -> None:
    """FlashAttention 2 reaches a part of a whole Hopper; an H20 has less than that left."""

    def seconds(device: str, engine: str) -> float:
        return part("attention", device=device, engine=engine, num_devices=8, global_batch=8)

    behind, even = (seconds(device, "pytorch-liger") / seconds(device, "megatron") for device in ("h100-sxm", "h20"))
    assert behind > 1.5
    assert even < 1
