"""The seconds of one micro-step's work on a device: products, what lies between them, weights unpacked."""

from __future__ import annotations

from ..catalog.device import is_mixed
from ..scenario import Scenario
from ..workload.kernels import multiplies_integers
from .experts import fill_tokens, fullest, product_rate
from .rates import TrainingRates
from .work import Work


def matrix_seconds(work: Work, rates: TrainingRates) -> float:
    """Matrix products with the head: `2 tokens (passes + repeats) weights / rate`, slower with few tokens.

    A product of `t` rows reaches `t / (t + fill)` of its rate: weights are read and units are filled whatever `t` is.
    Routed tokens spread over the experts, those of all expert-parallel ranks over those of this one; where adapters are
    merged into them, their gradients are made too.
    """
    sums = work.sums
    dense = (sums.dense_weights * work.stage + sums.head_weights * work.head) / rates.matrix
    routed = sums.routed_active * work.stage / product_rate(work, rates) * fullest(work, rates)
    rows = work.tokens + rates.fill_tokens
    expert_rows = work.met * work.tokens + fill_tokens(work, rates) * work.crowding
    dense_passes, routed_passes = matrix_passes(work)
    return 2 * (dense_passes * rows * dense + routed_passes * expert_rows * routed) / work.divisor


def matrix_passes(work: Work) -> tuple[float, float]:
    """Passes over the weights of layers and head, on average, and over those of routed experts."""
    layers = 1 + (work.passes - 1) * work.graded + work.repeated
    routed = layers + work.adapted if work.merged else layers
    if work.graded == 1:
        return layers, routed
    head, inside = work.sums.head_weights * work.head, work.sums.dense_weights * work.stage
    return layers + (work.passes - 1) * (1 - work.graded) * head / (head + inside), routed


def streaming_seconds(work: Work, rates: TrainingRates) -> float:
    """Norms, residuals, activations, loss: `bytes x tokens (width (3 + replay) + 10 vocabulary) / bandwidth`.

    Rates in fp32 are those of twice the bytes. A loss in parts reads its head in each. Of a loop over a sequence each
    turn makes a gradient of all that it took a part of, fills it and adds it up.
    """
    passes = 1 + 2 * work.graded + work.replayed
    width = work.stream_width * work.stage * passes + 10 * work.sums.logits * work.head
    head = work.head_bytes * work.head / rates.memory
    loops = work.turns * work.tokens * work.sums.loop_width * work.stage * TURN_BYTES * work.graded / rates.memory
    return (work.width * work.tokens * width / rates.stream + head + loops) / work.divisor


TURN_BYTES = 16.0
"""Moved for an element of the gradient that one turn of a loop makes: filled (4) and added to the others' (12)."""


def decoding_seconds(work: Work, rates: TrainingRates, quant: str) -> float:
    """Decode the frozen 4-bit weights, once for each pass that reads them; 0 outside QLoRA."""
    rate = rates.decode_gptq if quant.startswith(("gptq", "awq")) else rates.decode
    return work.sums.active * work.stage * (1 + work.graded + work.replayed) / work.divisor / rate


WRITTEN_OUT_BYTES = 7.0
"""Moved for a weight in 8 bits that backward writes out in 16 and scales in a second pass (bitsandbytes)."""


def writing_out_seconds(work: Work, rates: TrainingRates) -> float:
    """Write out a base in 8 bits for the gradients of its inputs; forward passes multiply it as integers.

    These products count as those of 16 bits: of 1.67 to 2.29 times the rate, quantizing inputs and taking outliers
    apart leaves 0.86 at a width of 4096, 1.22 at 5140 and 1.81 at 12288 (Dettmers 2022, LLM.int8(), table 5).
    """
    return WRITTEN_OUT_BYTES * work.sums.active * work.stage * work.graded / work.divisor / rates.memory


CAST_BYTES = 6.0
"""Moved for a weight in fp32 of which autocast makes a 16-bit copy for each product."""


def casts_base(scenario: Scenario) -> bool:
    """Whether a frozen base in fp32 runs under autocast, which shares no copies of weights without gradients."""
    return scenario.base_dtype == "fp32" and is_mixed(scenario.precision)


def casting_seconds(work: Work, rates: TrainingRates) -> float:
    """Copy a frozen base to 16 bits, once for each pass that reads it forward."""
    return CAST_BYTES * work.sums.active * work.stage * (1 + work.replayed) / work.divisor / rates.memory


def unpacking_seconds(scenario: Scenario, work: Work, rates: TrainingRates) -> float:
    """Bring a frozen base into the format that products take; 0 where it is in that already."""
    if casts_base(scenario):
        return casting_seconds(work, rates)
    if scenario.method != "qlora":
        return 0.0
    if multiplies_integers(scenario):
        return writing_out_seconds(work, rates)
    return decoding_seconds(work, rates, scenario.quant)
