"""What adapters cost beside their products: inputs copied, outputs scaled and added, stacks merged, norms taken."""

from __future__ import annotations

from ..derivation import BANDWIDTH, EFFICIENCY, MODEL, Say, plain
from .rates import TrainingRates
from .work import Work, on_slowest_stage

COPIED_FORWARD, COPIED_BACKWARD = 14.0, 22.0
"""Bytes moved for an element that an adapted projection reads, where its adapter takes a copy in fp32 (peft's layer.py
under autocast): to fp32 (6) and back to 16 bits (6), read by the pair (2); backward read (2) and its gradient written
(2), both casts again (12), added to that of the base (6)."""
READ_FORWARD, READ_BACKWARD = 2.0, 10.0
"""The same where it takes the input as it is."""
WRITTEN_FORWARD, WRITTEN_BACKWARD = 12.0, 8.0
"""Bytes moved for an element that it writes: the pair's product (2) is scaled (4) and added to the base's (6); backward
the gradient is scaled (4) and read by two products (4)."""
CLONED_FORWARD = 4.0
"""More of one whose base's output is copied first, read and written (peft's bnb.py, of a base in NF4)."""
SCALED_FORWARD, SCALED_BACKWARD = 36.0, 44.0
"""More of one with magnitudes, in fp32 (peft's dora.py): the base's output is scaled (6), the pair's too, twice (14),
both are added, and to the base's (12), and go back to 16 bits (4); backward each of these, and sums of gradients."""
NORM_BYTES = 38.0
"""Moved for a weight of whose sum with its adapter's product the norm is taken."""
GRADIENT_BYTES = 6.0
"""Moved for a weight of stacked experts with merged adapters in a backward pass: its gradient, read by both factors."""


def input_bytes(work: Work) -> float:
    """Bytes moved in a step for an element that adapted projections read."""
    forward, backward = (
        (COPIED_FORWARD, COPIED_BACKWARD) if work.adapters.copies_input else (READ_FORWARD, READ_BACKWARD)
    )
    return forward * (1 + work.replayed) + backward


def output_bytes(work: Work) -> float:
    """Bytes moved in a step for an element that they write."""
    forward, backward = WRITTEN_FORWARD, WRITTEN_BACKWARD
    if work.adapters.clones_output:
        forward += CLONED_FORWARD
    if work.normed:
        forward, backward = forward + SCALED_FORWARD, backward + SCALED_BACKWARD
    return forward * (1 + work.replayed) + backward


def adapter_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """What public code moves for adapters: `tokens (inputs x bytes + outputs x bytes) / bandwidth`."""
    if not work.adapters.inputs and not work.adapters.outputs:
        return 0.0
    moved = say("inputs", work.adapters.inputs, "", MODEL) * say("input_bytes", input_bytes(work), "bytes")
    moved += say("outputs", work.adapters.outputs, "", MODEL) * say("output_bytes", output_bytes(work), "bytes")
    moved = say("tokens", work.tokens, "tokens") * moved
    return on_slowest_stage(moved / say("efficiency", rates.memory, "bytes/s", BANDWIDTH), work, say)


def merging_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Merge adapters into stacked experts in each forward pass (peft: the stack is copied, the pairs' products are
    added to the copy, and all of it twice, since what is registered as a parametrization is run once for a look).

    And of adapters with magnitudes the norms, in each forward pass: the identity, the product of the pair, its copy and
    the base in fp32, both added, each written and read (peft's dora.py).
    """
    if not work.merged and not work.normed:
        return 0.0
    forwards, moved = 1 + say("replayed", work.replayed), 0.0
    if work.merged:
        each = say("merged_bytes", rates.experts.merged_bytes, "bytes", EFFICIENCY) * forwards
        each += say("gradient_bytes", GRADIENT_BYTES, "bytes")
        moved += say("merged_weights", work.merged, "", MODEL) * each
    if work.normed:
        moved += say("normed_weights", work.normed, "", MODEL) * say("norm_bytes", NORM_BYTES, "bytes") * forwards
    return on_slowest_stage(moved / say("efficiency", rates.memory, "bytes/s", BANDWIDTH), work, say)
