"""The derivation of what a training step spends on scores and values of attention, and on recurrences."""

from __future__ import annotations

from ..timing.attention import FUSED_BACKWARD, RECURRENCE_BACKWARD, WRITTEN_BACKWARD, attended
from .explain_parts import DerivedStep
from .result import TermInput
from .terms import EFFICIENCY, Written, number


def attention(step: DerivedStep) -> Written:
    """Scores and values, outside of recurrences that kernels run."""
    work, rates = step.work, step.rates
    found = attended(work, fused=step.scenario.attention == "flash")
    kernels = [("flash", found.flash, rates.attention), ("wide", found.wide, rates.attention_wide)]
    inputs = [step.steps, step.tokens, step.sharing, number("again", work.attention_again, "", "derived")]
    inputs += [step.peak_term(), *step.passes(1)[1]]
    done, said = list[str](), list[str]()
    passes, _ = step.passes(FUSED_BACKWARD)
    for name, flop, rate in kernels:
        if flop:
            inputs.append(number(f"{name}_flop", flop * work.stage, "FLOP a token", "model"))
            inputs.append(number(f"{name}_efficiency", rate / step.peak, "", EFFICIENCY))
            done.append(f"{name}_flop * ({passes} + again) / (peak * {name}_efficiency)")
            said.append(SAID[name])
    if found.written_layers:
        inputs += _written(step, found.written, found.written_layers)
        passes, _ = step.passes(WRITTEN_BACKWARD)
        done.append(f"written_flop * ({passes} + again) / (peak * efficiency)")
        done.append("score_bytes * scores / (bandwidth * stream_efficiency)")
        said.append(SAID["written"])
    formula = f"micro_steps * tokens * ({' + '.join(done or ['0'])}) / sharing"
    return f"scores and values {' and '.join(said)}", formula, tuple(inputs)


SAID = {
    "flash": "of the causal half, in a fused kernel",
    "wide": "with heads that are too wide for flash kernels, in PyTorch's memory-efficient one",
    "written": "over the full square, written out",
}
"""How attention runs, by the kernel."""


def _written(step: DerivedStep, flop: float, layers: int) -> tuple[TermInput, ...]:
    work, rates = step.work, step.rates
    return (
        number("written_flop", flop * work.stage, "FLOP a token", "model"),
        number("efficiency", rates.attention_eager / step.peak, "", EFFICIENCY),
        number("scores", layers * work.stage * step.sums.heads * work.seq_len, "a token", "model"),
        step.bandwidth_term(),
        number("score_bytes", work.score_bytes, "bytes"),
        number("stream_efficiency", rates.memory / step.bandwidth, "", EFFICIENCY),
    )


def recurrence(step: DerivedStep) -> Written:
    """Recurrences in kernels that run chunks of a sequence."""
    work = step.work
    passes, graded = step.passes(RECURRENCE_BACKWARD)
    inputs = (
        step.steps,
        step.tokens,
        number("recurrent_flop", work.recurrent_flop * work.stage, "FLOP a token", "model"),
        number("again", work.attention_again, "", "derived"),
        step.peak_term(),
        number("efficiency", step.rates.recurrence / step.peak, "", EFFICIENCY),
        step.sharing,
        *graded,
    )
    formula = f"micro_steps * tokens * recurrent_flop * ({passes} + again) / (peak * efficiency) / sharing"
    return "recurrences, a chunk of the sequence after the other", formula, inputs
