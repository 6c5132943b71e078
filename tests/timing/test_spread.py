from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.served_load import served_load
from llmfeas.memory.peak import memory
from llmfeas.model.sums import architecture_sums
from llmfeas.record import replace
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.decode import decode_parts
from llmfeas.timing.passes import step_seconds
from llmfeas.timing.prefill import read_parts
from llmfeas.timing.served import limits_of, server_of
from llmfeas.timing.spread import copies_reached, exchanged_seconds, rank_weights_bytes
from llmfeas.workload.serving import peers, replicas

LOAD = {"prompt": 1000, "output": 1000, "concurrency": 512}


def asked(**settings: object) -> Scenario:
    request = {
        "model": "deepseek-v3.2",
        "device": "8xh200",
        "task": "inference",
        "engine": "sglang",
        **LOAD,
        **settings,
    }
    return resolution(request, catalog()).scenario


APART = asked(tp=1, ep=8)
TOGETHER = asked(tp=8)


def test_devices_beyond_tensor_parallel_share_the_experts() -> None:
    assert (peers(APART), replicas(APART)) == (8, 8)
    assert peers(TOGETHER) == peers(asked(tp=8, ep=8)) == peers(asked(model="llama-3.1-8b", tp=1)) == 1
    assert peers(asked(tp=2, ep=8)) == 4


def test_each_holds_its_own_requests_so_that_a_cache_of_latents_is_held_once() -> None:
    apart, together = memory(APART), memory(TOGETHER)
    assert apart.serving is not None and together.serving is not None
    assert together.serving.requests_at_once.expected < 512
    assert apart.serving.requests_at_once.expected > 4 * together.serving.requests_at_once.expected
    # attention and shared experts are whole on each device
    more = apart.memory.components["weights_bytes"] - together.memory.components["weights_bytes"]
    assert more > 0


def test_a_rank_reads_its_part_of_the_experts_that_the_tokens_of_all_reach() -> None:
    few, many = (rank_weights_bytes(APART, 4.0, together) for together in (4.0, 32.0))
    dense = rank_weights_bytes(APART, 0.0, 0.0)
    assert dense < few < many
    assert many - dense < 8 * (few - dense)
    assert many < rank_weights_bytes(asked(tp=1, pp=8), 4.0, 4.0)


def test_tokens_are_sent_to_as_many_copies_as_hold_their_experts() -> None:
    assert copies_reached(0, 8) == 0.0
    assert copies_reached(7, 1) == pytest.approx(7 / 8)
    assert copies_reached(7, 8) < copies_reached(7, 64) < 7.0


def test_copies_step_together_and_wait_for_the_one_that_reads_a_prompt() -> None:
    sequences, tokens = 8 * 64, 8 * 8192
    step = step_seconds(APART, sequences, tokens)
    one, eight = step(0.0, 0.0, 1000.0, 500.0), step(0.0, 0.0, 8000.0, 500.0)
    assert one < eight < 2.0 * one
    assert step(512.0, 1000.0, 0.0, 0.0) == pytest.approx(sum(decode_parts(APART, 1000.0, 64.0).values()), rel=0.05)


def test_a_copy_alone_has_the_experts_of_all_devices_for_its_prompt() -> None:
    alone, all_read = (sum(read_parts(APART, 4096.0, 4096.0, busy).values()) for busy in (1 / 8, 1.0))
    assert alone < all_read


def test_prompts_pass_the_network_once_for_each_machine_and_in_eight_bits_where_experts_are() -> None:
    """DeepEP's normal kernels forward inside a machine; its low-latency ones send to each rank."""
    wide = asked(device="64xh200", tp=1, ep=64, concurrency=4096)
    sums = architecture_sums(wide.model.architecture)
    read, written = (exchanged_seconds(wide, sums, forwarded=forwarded) for forwarded in (True, False))
    assert read < written < 4 * read
    assert written < exchanged_seconds(replace(wide, quant="none"), sums, forwarded=False)
    here = (exchanged_seconds(APART, sums, forwarded=forwarded) for forwarded in (True, False))
    assert len(set(here)) == 1


def test_a_server_counts_the_requests_and_the_room_of_all_copies() -> None:
    assert server_of(APART).replicas == 1
    assert limits_of(APART).max_num_seqs == 8 * (APART.max_num_seqs or 0)
    assert server_of(asked(tp=1, pp=1, ep=8, device="16xh200")).replicas == 2


def test_it_gets_more_done_where_tensor_parallel_has_no_room() -> None:
    apart, together = served_load(APART), served_load(TOGETHER)
    assert apart.output_tokens_per_second.expected > together.output_tokens_per_second.expected


def test_engines_that_have_it_not_refuse_it() -> None:
    with pytest.raises(UsageError, match="share no experts") as found:
        asked(tp=1, ep=8, engine="llama.cpp", concurrency=1)
    assert "vllm" in found.value.hint
