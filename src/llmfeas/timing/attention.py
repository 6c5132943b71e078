"""The seconds of one micro-step's attention and recurrences on a device."""

from __future__ import annotations

from ..derivation import BANDWIDTH, MODEL, PEAK, Say, plain
from ..record import dataclass
from ..workload.kernels import FLASH_HEAD_WIDTH
from .rates import TrainingRates
from .work import Work, on_slowest_stage, passed

FUSED_BACKWARD, WRITTEN_BACKWARD = 2.5, 2.0
"""Forward passes that backward is worth: a fused kernel makes the scores again."""
WIDE_SHARE = 0.5
"""Of its rate in 16 bits what PyTorch's memory-efficient kernel reaches in fp32, of which its shared memory holds half
as many numbers; flash kernels take none. On a T4 2.6 TFLOP/s, of 8.1 (data/measurements/late_tuning_2026.yaml)."""
RECURRENCE_BACKWARD = 2.5
"""The same of kernels of recurrences: the states are made again, then gradients of all."""


@dataclass(frozen=True, slots=True)
class Attended:
    """Forward FLOP of a token by the kernels that run it, and the layers whose scores are written out."""

    flash: float
    wide: float
    """In PyTorch's memory-efficient kernel, whose heads are too wide for flash kernels."""
    written: float
    written_layers: int


def attended(work: Work, *, fused: bool) -> Attended:
    """Divide attention over the kernels that run it: the causal half within windows by flash kernels, full squares
    written out; where all layers share the kernel that takes wide heads, windows are masks over all that went before.
    """
    sums, tokens = work.sums, work.seq_len
    linear = sums.linear_flop - work.recurrent_flop
    if not fused:
        square = sums.attention_square_flop(tokens) - work.recurrent_flop
        return Attended(0.0, 0.0, square, sum(span.blocks for span in sums.spans))
    if work.wide_heads == "fused":
        return Attended(sums.span_flop(tokens, sums.spans, masked=work.masks_windows) + linear, 0.0, 0.0, 0)
    wide = sums.wide_spans(FLASH_HEAD_WIDTH)
    rest = sums.span_flop(tokens, (span for span in sums.spans if span not in wide))
    if work.wide_heads == "written":
        square = 4 * tokens * sum(span.blocks * span.width for span in wide)
        return Attended(rest + linear, 0.0, square, sum(span.blocks for span in wide))
    if work.wide_heads == "all":
        return Attended(linear, sums.span_flop(tokens, sums.spans, masked=True), 0.0, 0)
    return Attended(rest + linear, sums.span_flop(tokens, wide), 0.0, 0)


def attention_seconds(work: Work, rates: TrainingRates, *, fused: bool, say: Say = plain) -> float:
    """Scores and values: fused kernels do the causal half 3.5 times (forward, backward with recomputed scores).

    Unfused code does the full square 3 times and moves the score matrix. Recurrences are apart where kernels run them.
    """
    found, seconds = attended(work, fused=fused), 0.0
    flash, wide, written = rates.attention, rates.attention_wide, rates.attention_eager
    if work.wide:
        flash, wide, written = min(flash, WIDE_SHARE * wide), WIDE_SHARE * wide, min(written, rates.wide)
    for name, flop, rate in (("flash", found.flash, flash), ("wide", found.wide, wide)):
        if flop:
            passes = passed(work, FUSED_BACKWARD, say) + say("again", work.attention_again)
            products = say(f"{name}_flop", flop, "FLOP a token", MODEL) * passes
            seconds += products / say(f"{name}_efficiency", rate, "FLOP/s", PEAK)
    if found.written_layers:
        passes = passed(work, WRITTEN_BACKWARD, say) + say("again", work.attention_again)
        products = say("written_flop", found.written, "FLOP a token", MODEL) * passes
        scores = say("scores", found.written_layers * work.sums.heads * work.seq_len, "a token", MODEL)
        moved = say("score_bytes", work.score_bytes, "bytes") * scores
        seconds += products / say("efficiency", written, "FLOP/s", PEAK)
        seconds += moved / say("stream_efficiency", rates.memory, "bytes/s", BANDWIDTH)
    return on_slowest_stage(say("tokens", work.tokens, "tokens") * seconds, work, say)


def recurrence_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Recurrences in kernels that run chunks of a sequence: small products that wait for each other (mamba_ssm,
    flash-linear-attention).
    """
    if not work.recurrent_flop:
        return 0.0
    flop = say("tokens", work.tokens, "tokens") * say("recurrent_flop", work.recurrent_flop, "FLOP a token", MODEL)
    flop *= passed(work, RECURRENCE_BACKWARD, say) + say("again", work.attention_again)
    return on_slowest_stage(flop / say("efficiency", rates.recurrence, "FLOP/s", PEAK), work, say)
