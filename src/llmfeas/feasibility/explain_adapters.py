"""The derivation of what a training step spends on adapters beside their products."""

from __future__ import annotations

from ..timing.adapters import GRADIENT_BYTES, NORM_BYTES, input_bytes, output_bytes
from .explain_experts import DerivedStep
from .terms import EFFICIENCY, Written, number


def adapters(step: DerivedStep) -> Written:
    """What public code copies, scales and adds."""
    work = step.work
    inputs = (
        step.steps,
        step.tokens,
        number("inputs", work.adapters.inputs * work.stage, "", "model"),
        number("input_bytes", input_bytes(work), "bytes"),
        number("outputs", work.adapters.outputs * work.stage, "", "model"),
        number("output_bytes", output_bytes(work), "bytes"),
        step.bandwidth_term(),
        number("efficiency", step.rates.memory / step.bandwidth, "", EFFICIENCY),
        step.sharing,
    )
    moved = "tokens * (inputs * input_bytes + outputs * output_bytes)"
    text = "what adapters read, scale and add beside their base, forward and backward"
    return text, f"micro_steps * {moved} / (bandwidth * efficiency) / sharing", inputs


def merging(step: DerivedStep) -> Written:
    """What merging adapters into stacks and taking norms of weights cost."""
    work, rates = step.work, step.rates
    inputs = [
        step.steps,
        step.again,
        step.bandwidth_term(),
        number("efficiency", rates.memory / step.bandwidth, "", EFFICIENCY),
        step.sharing,
    ]
    moved: list[str] = []
    if work.merged:
        inputs += [
            number("merged_weights", work.merged * work.stage, "", "model"),
            number("merged_bytes", rates.experts.merged_bytes, "bytes", EFFICIENCY),
            number("gradient_bytes", GRADIENT_BYTES, "bytes"),
        ]
        moved.append("merged_weights * (merged_bytes * (1 + replayed) + gradient_bytes)")
    if work.normed:
        inputs += [
            number("normed_weights", work.normed * work.stage, "", "model"),
            number("norm_bytes", NORM_BYTES, "bytes"),
        ]
        moved.append("normed_weights * norm_bytes * (1 + replayed)")
    formula = f"micro_steps * ({' + '.join(moved)}) / (bandwidth * efficiency) / sharing"
    done = [("adapters merged into the stacked experts", work.merged), ("norms of weights taken", work.normed)]
    return " and ".join(text for text, there in done if there) + " in each pass", formula, tuple(inputs)
