"""What a library's kernels keep inside the model's public code."""

from __future__ import annotations

import pytest
from levels import folded_top, walked_top

from llmfeas.autograd.storage import COMPONENT_BITS, numeric_sizes
from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.candidates import PeakCandidates
from llmfeas.walk.fold import peak_candidates
from llmfeas.walk.step import walked_step

IMPLEMENTATIONS = catalog().tables.implementations

LLAMA = catalog().models["llama-3.1-8b"].architecture
PER_TOKEN = 3
"""Place of the coefficient of bs in a polynomial."""
LOGITS = 2
"""Place of logits among a candidate's parts."""
MASK = (1 << COMPONENT_BITS) - 1


def setup(
    kernels: str = "liger", *, model: str = "llama-3.1-8b", layers: int = 4, checkpointing: str = "none", **recipe: int
) -> Setup:
    a = catalog().models[model].architecture
    traits = IMPLEMENTATIONS.under(a.implementation, kernels) if kernels else IMPLEMENTATIONS.public(a.implementation)
    types = {"weight_bytes": 2, "autocast": False, **recipe}
    return Setup(
        architecture=a,
        implementation=traits,
        recipe=Recipe(checkpointing=checkpointing, **types),  # type: ignore[arg-type]
        layers=layers,
    )


def moments(kernels: str = "liger", **asked: object) -> PeakCandidates:
    return peak_candidates(setup(kernels, **asked))  # type: ignore[arg-type]


def a_block(kernels: str, **asked: object) -> int:
    """Bytes a token that one more block keeps."""
    few, many = (moments(kernels, layers=layers, **asked).kept.total[PER_TOKEN] for layers in (4, 5))
    return many - few


def test_a_block_keeps_inputs_of_norms_and_products_and_nothing_between() -> None:
    h, f = LLAMA.hidden, LLAMA.ffn or 0
    norms = 2 * (h + h) + 2 * 2  # input, output, one fp32 number
    attention = LLAMA.q_width + 2 * LLAMA.kv_width + LLAMA.q_width + 2 * LLAMA.heads  # q, k, v, out, log-sums
    assert a_block("liger") == 2 * (norms + attention + 3 * f)  # gate, up, their product
    assert a_block("") - a_block("liger") == 2 * (2 * (h + 2 * h - h) + f)  # fp32 copy, normalised; silu(gate)


def test_under_autocast_norms_keep_the_stream_alone() -> None:
    mixed = {"weight_bytes": 4, "autocast": True}
    h, f = LLAMA.hidden, LLAMA.ffn or 0
    assert a_block("", **mixed) - a_block("liger", **mixed) == 2 * 4 * h + 2 * f


def test_adapters_stay_as_their_library_writes_them() -> None:
    """The difference is that of the norms and of the gate's activation, whose output nothing reads but the product."""
    rank = {"adapters": 16}
    h, f = LLAMA.hidden, LLAMA.ffn or 0
    assert a_block("", **rank) - a_block("liger", **rank) == 2 * (4 - 2) * h + 2 * f


@pytest.mark.parametrize("tokens", [4096, 32768])
def test_logits_of_a_part_are_about_as_large_as_the_heads_input(tokens: int) -> None:
    found = moments()
    logits = max(candidate.parts[LOGITS][PER_TOKEN] for candidate in found.candidates) * tokens
    # ceil(128256 / 4096) = 32 parts, of a power of two tokens each
    assert logits == tokens // 32 * LLAMA.vocab * 2
    assert logits == pytest.approx(2 * LLAMA.hidden * tokens, rel=0.03)


def test_a_part_is_rounded_up_to_a_power_of_two_tokens() -> None:
    a = catalog().models["qwen2.5-0.5b"].architecture
    found = peak_candidates(setup(model="qwen2.5-0.5b"))
    logits = max(candidate.parts[LOGITS][PER_TOKEN] for candidate in found.candidates) * 131072
    # ceil(151936 / 896) = 170: 771 tokens, rounded up to 1024
    assert logits == pytest.approx(1024 * a.vocab * 2, rel=0.01)


def widest(found: PeakCandidates, moment: str, tokens: int) -> float:
    return max(c.total[0] + tokens * c.total[PER_TOKEN] for c in found.candidates if c.moment == moment)


def test_the_loss_holds_the_heads_gradient_and_one_part_of_it_twice() -> None:
    """In 16 bits each part's gradient of the head is made in 2 bytes and again in 4; a frozen head has none."""
    head = LLAMA.vocab * LLAMA.hidden
    trained, frozen = moments(), moments(adapters=16)
    few = 1
    assert widest(trained, "loss", few) - widest(frozen, "loss", few) == pytest.approx((2 + 2 + 4) * head, rel=0.05)


@pytest.mark.parametrize("checkpointing", ["none", "full"])
@pytest.mark.parametrize(
    "model", ["llama-3.1-8b", "qwen3-0.6b", "gemma-2-2b", "phi-3-mini", "olmo-2-1b", "qwen2.5-0.5b"]
)
def test_all_gradients_are_there_in_the_end(model: str, checkpointing: str) -> None:
    own, public = (moments(kernels, model=model, checkpointing=checkpointing) for kernels in ("liger", ""))
    assert own.gradient_bytes == public.gradient_bytes
    assert own.weight_bytes == public.weight_bytes
    assert own.kept.total[PER_TOKEN] < public.kept.total[PER_TOKEN]
    assert widest(own, "backward", 8192) <= widest(public, "backward", 8192)


@pytest.mark.parametrize("types", [{}, {"weight_bytes": 4, "autocast": True}])
def test_the_fold_is_the_walk(types: dict[str, int]) -> None:
    walk = walked_step(setup(layers=8, **types), numeric_sizes(2, 512))
    found = peak_candidates(setup(layers=8, **types))
    assert folded_top(found, 2, 512) == pytest.approx(walked_top(walk), rel=1e-3)


def test_families_that_the_library_does_not_patch_run_as_they_are() -> None:
    patched = {name for name in IMPLEMENTATIONS.names if IMPLEMENTATIONS.under(name, "liger").patched}
    assert {"hf-llama", "hf-qwen2", "hf-qwen3", "hf-gemma2", "hf-mixtral"} <= patched
    assert "hf-gpt2" not in patched
    for name in set(IMPLEMENTATIONS.names) - patched:
        assert IMPLEMENTATIONS.under(name, "liger") == IMPLEMENTATIONS.public(name)
