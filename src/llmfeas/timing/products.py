"""The seconds of one micro-step's work on a device: products, what lies between them, weights unpacked."""

from __future__ import annotations

from ..catalog.device import is_mixed
from ..derivation import BANDWIDTH, EFFICIENCY, MODEL, PEAK, SETTING, Say, plain
from ..scenario import Scenario
from ..workload.kernels import multiplies_integers
from .experts import fill_tokens, fullest, product_rate
from .rates import TrainingRates
from .work import Work, on_slowest_stage, passed


def matrix_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Matrix products with the head: `2 tokens (passes + repeats) weights / rate`, slower with few tokens.

    A product of `t` rows reaches `t / (t + fill)` of its rate: weights are read and units are filled whatever `t` is.
    Routed tokens spread over the experts, those of all expert-parallel ranks over those of this one; where adapters are
    merged into them, their gradients are made too.
    """
    sums, tokens = work.sums, say("tokens", work.tokens, "tokens")
    dense_passes, routed_passes = matrix_passes(work)
    weights = say("weights", sums.dense_weights * work.stage + sums.head_weights * work.head, "", MODEL)
    if work.wide:
        head = say("head_weights", sums.head_weights * work.head, "", MODEL)
        weights += head * say("head_slower", rates.matrix / rates.wide - 1, "times", EFFICIENCY)
    rows = tokens + say("fill_tokens", rates.fill_tokens, "tokens", EFFICIENCY)
    done = say("passes", dense_passes) * rows * weights / say("efficiency", rates.matrix, "FLOP/s", PEAK)
    if sums.routed_active:
        filled = say("fill_expert", fill_tokens(work, rates), "tokens", EFFICIENCY) * say("crowding", work.crowding)
        expert_rows = say("met", work.met) * tokens + filled
        weights = say("expert_weights", sums.routed_active * work.stage, "", MODEL)
        rate = say("expert_efficiency", product_rate(work, rates) / fullest(work, rates), "FLOP/s", PEAK)
        done += say("expert_passes", routed_passes) * expert_rows * weights / rate
    if work.tp > 1:
        done += thin_products(work, rates, dense_passes, say) / say("efficiency", rates.matrix, "FLOP/s", PEAK)
    return 2 * done / say("sharing", work.divisor, "devices")


def thin_products(work: Work, rates: TrainingRates, passes: float, say: Say = plain) -> float:
    """Multiplications by which tensor parallelism makes the products of all its ranks longer, in weights times tokens.

    Units make a product in waves of tiles and wait for the last one, however few tiles it has: `wave` numbers more,
    each of as many multiplications as are added up. Ranks have as many waves to wait for as one device has. Of the two
    passes over a matrix one divides what is added up, and so the wait; gradients of weights add up over the tokens.
    """
    graded = work.graded if work.passes > ADAPTER_PASSES else 0.0
    inner = say("ends", work.sums.ends * work.stage, "", MODEL) / 4
    lost = (say("passes", passes) - graded) * inner
    lost += graded * say("matrices", work.sums.matrices * work.stage, "", MODEL) * say("tokens", work.tokens, "tokens")
    return (say("tp", work.tp, "devices", SETTING) - 1) * say("wave", rates.wave, "", EFFICIENCY) * lost


ADAPTER_PASSES = 2
"""Passes over a weight that has no gradient of its own."""


def matrix_passes(work: Work) -> tuple[float, float]:
    """Passes over the weights of layers and head, on average, and over those of routed experts."""
    layers = 1 + (work.passes - 1) * work.graded + work.repeated
    routed = layers + work.adapted if work.merged else layers
    if work.graded == 1:
        return layers, routed
    head, inside = work.sums.head_weights * work.head, work.sums.dense_weights * work.stage
    return layers + (work.passes - 1) * (1 - work.graded) * head / (head + inside), routed


def streaming_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Norms, residuals, activations, loss: `bytes x tokens (width (3 + replay) + 10 vocabulary) / bandwidth`.

    Rates in fp32 are those of twice the bytes. A loss in parts reads its head in each. Of a loop over a sequence each
    turn makes a gradient of all that it took a part of, fills it and adds it up.
    """
    tokens = say("tokens", work.tokens, "tokens")
    width = say("stream_width", work.stream_width * work.stage, "", MODEL)
    width *= passed(work, 2, say) + say("replayed", work.replayed)
    width += 10 * say("logits", work.sums.logits * work.head, "a token", MODEL)
    seconds = say("element_bytes", work.width, "bytes") * tokens * width
    seconds /= say("efficiency", rates.stream, "bytes/s", BANDWIDTH)
    if work.head_bytes or work.turns:
        moved = say("head_bytes", work.head_bytes * work.head, "bytes", MODEL)
        if work.turns:
            loop = say("loop_width", work.sums.loop_width * work.stage * work.graded, "", MODEL)
            moved += say("turns", work.turns) * tokens * loop * say("turn_bytes", TURN_BYTES, "bytes")
        seconds += moved / say("read_efficiency", rates.memory, "bytes/s", BANDWIDTH)
    return seconds / say("sharing", work.divisor, "devices")


TURN_BYTES = 16.0
"""Moved for an element of the gradient that one turn of a loop makes: filled (4) and added to the others' (12)."""


def decoding_seconds(work: Work, rates: TrainingRates, quant: str, say: Say = plain) -> float:
    """Decode the frozen 4-bit weights, once for each pass that reads them; 0 outside QLoRA."""
    rate = rates.decode_gptq if quant.startswith(("gptq", "awq")) else rates.decode
    read = say("packed_weights", work.sums.active, "", MODEL) * (passed(work, 1, say) + say("replayed", work.replayed))
    return on_slowest_stage(read / say("weights_a_byte", rate, "weights/s", BANDWIDTH), work, say)


WRITTEN_OUT_BYTES = 7.0
"""Moved for a weight in 8 bits that backward writes out in 16 and scales in a second pass (bitsandbytes)."""


def writing_out_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Write out a base in 8 bits for the gradients of its inputs; forward passes multiply it as integers.

    These products count as those of 16 bits: of 1.67 to 2.29 times the rate, quantizing inputs and taking outliers
    apart leaves 0.86 at a width of 4096, 1.22 at 5140 and 1.81 at 12288 (Dettmers 2022, LLM.int8(), table 5).
    """
    moved = say("written_bytes", WRITTEN_OUT_BYTES, "bytes") * say("weights", work.sums.active, "", MODEL)
    moved *= say("graded", work.graded)
    return on_slowest_stage(moved / say("efficiency", rates.memory, "bytes/s", BANDWIDTH), work, say)


CAST_BYTES = 6.0
"""Moved for a weight in fp32 of which autocast makes a 16-bit copy for each product."""


def casts_base(scenario: Scenario) -> bool:
    """Whether a frozen base in fp32 runs under autocast, which shares no copies of weights without gradients."""
    return scenario.base_dtype == "fp32" and is_mixed(scenario.precision)


def casting_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Copy a frozen base to 16 bits, once for each pass that reads it forward."""
    moved = say("cast_bytes", CAST_BYTES, "bytes") * say("weights", work.sums.active, "", MODEL)
    moved *= 1 + say("replayed", work.replayed)
    return on_slowest_stage(moved / say("efficiency", rates.memory, "bytes/s", BANDWIDTH), work, say)


def unpacking_seconds(scenario: Scenario, work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Bring a frozen base into the format that products take; 0 where it is in that already."""
    if casts_base(scenario):
        return casting_seconds(work, rates, say)
    if scenario.method != "qlora":
        return 0.0
    if multiplies_integers(scenario):
        return writing_out_seconds(work, rates, say)
    return decoding_seconds(work, rates, scenario.quant, say)
