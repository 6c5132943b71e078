"""What kernels for adapters keep, and what lies in the memory of the host meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest
from levels import folded_top, walked_top

from llmfeas.autograd.storage import COMPONENT_BITS, HOST, numeric_sizes
from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.candidates import PeakCandidates, RankState
from llmfeas.walk.fold import peak_candidates
from llmfeas.walk.step import walked_step

IMPLEMENTATIONS = catalog().tables.implementations

LLAMA = catalog().models["llama-3.1-8b"].architecture
PER_TOKEN = 3
"""Place of the coefficient of bs in a polynomial."""
MASK = (1 << COMPONENT_BITS) - 1
ROOM = RankState(weights=0.0, optimizer=0.0)


def setup(kernels: str = "streaming", layers: int = 8, checkpointing: str = "full", rank: int = 16) -> Setup:
    return Setup(
        architecture=LLAMA,
        implementation=IMPLEMENTATIONS.under(LLAMA.implementation, kernels),
        recipe=Recipe(weight_bytes=2, autocast=False, adapters=rank, checkpointing=checkpointing, quantized=rank > 0),
        layers=layers,
    )


def moments(**asked: object) -> PeakCandidates:
    return peak_candidates(setup(**asked))  # type: ignore[arg-type]


def widest(found: PeakCandidates, moment: str) -> int:
    return max(each.total[PER_TOKEN] for each in found.candidates if each.moment == moment)


def test_inputs_of_all_blocks_lie_on_the_host_after_forward() -> None:
    assert moments(layers=8).streamed[PER_TOKEN] == 8 * 2 * LLAMA.hidden
    assert moments(layers=8).streamed_bytes(2, 1024) == 8 * 2 * LLAMA.hidden * 2048


def test_more_blocks_take_no_more_of_the_device_but_their_weights() -> None:
    few, many = moments(layers=8), moments(layers=32)
    assert widest(few, "backward") == widest(many, "backward")
    assert few.kept.total[PER_TOKEN] == many.kept.total[PER_TOKEN]


def test_without_checkpointing_nothing_goes_to_the_host() -> None:
    assert moments(checkpointing="none").streamed[PER_TOKEN] == 0


def test_other_kernels_stream_nothing() -> None:
    assert moments(kernels="fused").streamed[PER_TOKEN] == 0


def test_the_widest_moment_is_a_feed_forward_beside_what_its_block_keeps() -> None:
    a = LLAMA
    streams = 2 + 1 + 2 + 2  # buffers, embedding, both norms' outputs, the middle of the block and of its attention
    returned = 2  # the block's output, its gradient
    attended = (a.q_width + 2 * a.kv_width) / a.hidden
    feed_forward = 3 * (a.ffn or 0) / a.hidden  # gate, up, the gradient of their product
    expected = 2 * a.hidden * (streams + returned + attended + feed_forward)
    assert widest(moments(), "backward") == pytest.approx(expected, rel=0.01)


def test_adapters_keep_no_copy_of_what_their_projections_read() -> None:
    written, own = (moments(kernels=kernels, checkpointing="none") for kernels in ("fused", "streaming"))
    assert own.kept.total[PER_TOKEN] < 0.6 * written.kept.total[PER_TOKEN]


@pytest.mark.parametrize(("kernels", "bytes_a_logit"), [("streaming", 4 / 16), ("streaming-2024", 6)])
def test_losses_hold_the_logits_of_a_chunk_or_of_all_tokens(kernels: str, bytes_a_logit: float) -> None:
    found = moments(kernels=kernels)
    logits = max(candidate.parts[2][PER_TOKEN] for candidate in found.candidates)
    assert logits == pytest.approx(bytes_a_logit * LLAMA.vocab, rel=0.001)


@pytest.mark.parametrize("rank", [0, 16])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_gradients_of_all_that_trains_are_there_in_the_end(checkpointing: str, rank: int) -> None:
    own, written = (
        moments(kernels=kernels, checkpointing=checkpointing, rank=rank) for kernels in ("streaming", "fused")
    )
    assert own.gradient_bytes == pytest.approx(written.gradient_bytes, rel=1e-6)
    assert own.weight_bytes == written.weight_bytes


def test_a_vocabulary_that_chunks_do_not_divide_is_no_more_than_the_next_that_they_do() -> None:
    odd, even = (
        peak_candidates(replace(setup(), architecture=replace(LLAMA, vocab=vocab))) for vocab in (50257, 50272)
    )
    assert 0.999 < odd.peak(2, 512, ROOM).bytes / even.peak(2, 512, ROOM).bytes <= 1


def test_the_fold_is_the_walk() -> None:
    walk = walked_step(setup(layers=12), numeric_sizes(2, 512))
    found = moments(layers=12)
    assert folded_top(found, 2, 512) == pytest.approx(walked_top(walk), rel=1e-4)
    assert found.streamed_bytes(2, 512) == walk.kept >> HOST & MASK


MODELS = {model.architecture.implementation: model.architecture for model in catalog().models.values()}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_family_keeps_no_more_than_under_other_fused_kernels(name: str) -> None:
    fused, streaming = (
        peak_candidates(replace(setup(kernels), architecture=MODELS[name], layers=min(4, MODELS[name].layers)))
        for kernels in ("fused", "streaming")
    )
    assert streaming.kept.total[PER_TOKEN] <= fused.kept.total[PER_TOKEN]
    assert streaming.gradient_bytes >= fused.gradient_bytes * (1 - 1e-6)
