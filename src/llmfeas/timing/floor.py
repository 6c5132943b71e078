"""The least time that a step takes at the stated peaks of its devices: no estimate, nor the end of its range, beats it.

Work that a step cannot do without, at the peak of its format; weights that must be read, at the full bandwidth of the
memory. What a processor's or a card's caches hold is not left out: few models are that small.
"""

from __future__ import annotations

from ..catalog.device import FULL_PRECISION, NARROW
from ..findings import cached_across_batches, cached_across_devices
from ..memory.training_layout import packed_bytes
from ..model.sums import architecture_sums, trained_sums
from ..scenario import Scenario
from ..workload.parameters import graded_share
from .rates import peak_flop_per_s
from .rollouts import least_rollout_seconds
from .work import forwards_beside

NARROW_BYTES = {"fp8": 1.0, "fp4": 0.5}
"""Of a weight in such units, without its scales."""
WEIGHT_READS = 2
"""Passes of a training step that read a weight: forward, and backward for the gradients of activations."""


@cached_across_devices
def work_flop_per_token(scenario: Scenario) -> float:
    """FLOP that training one token needs: forward and twice that backward; adapters skip the weight gradients.

    With an objective, passes without a gradient besides. Attention counts the tokens that each one sees: those before
    it, within the window of its layer.
    """
    sums = trained_sums(scenario.model.architecture, scenario.seq_len)
    beside, graded = forwards_beside(scenario), graded_share(scenario)
    backward = 1 if scenario.trains_adapters else 2
    matrix = (1 + backward * graded + beside) * sums.active + (1 + backward + beside) * sums.head_weights
    return 2 * matrix + (1 + 2 * graded + beside) * sums.attention_flop(scenario.seq_len)


@cached_across_devices
def counted_flop_per_token(scenario: Scenario) -> float:
    """FLOP of a token by which a share of the peak is counted: the work, or, where an MFU was given, what papers count.

    Papers count attention over the full square, whatever a token sees of it.
    """
    work = work_flop_per_token(scenario)
    if scenario.mfu is None:
        return work
    length = scenario.seq_len
    sums = trained_sums(scenario.model.architecture, length)
    passes = 1 + 2 * graded_share(scenario) + forwards_beside(scenario)
    return work + passes * (sums.attention_square_flop(length) - sums.attention_flop(length))


@cached_across_batches
def total_peak_flop_per_s(scenario: Scenario) -> float:
    """Dense peak of all devices of a training in the format asked for, FLOP/s."""
    return peak_flop_per_s(scenario.device.unlimited, scenario.precision) * scenario.num_devices


def least_step_seconds(scenario: Scenario, tokens: float) -> float:
    """The least seconds of an optimizer step of so many tokens, all ranks together."""
    work = tokens * work_flop_per_token(scenario) / total_peak_flop_per_s(scenario)
    reading = scenario.micro_steps * least_read_bytes(scenario) / scenario.device.bandwidth_bytes_per_s
    # what is learned from is written before
    return max(work, reading) + least_rollout_seconds(scenario)


@cached_across_devices
def least_read_bytes(scenario: Scenario) -> float:
    """Bytes that a rank must read in a micro-step: in each pass the weights that one token meets."""
    sums = architecture_sums(scenario.model.architecture)
    if scenario.method == "qlora":
        width = packed_bytes(scenario)
    elif scenario.precision in FULL_PRECISION:
        width = 4.0
    else:
        width = NARROW_BYTES.get(NARROW.get(scenario.precision, ""), 2.0)
    read = (1 + graded_share(scenario)) * (sums.active - sums.again) + WEIGHT_READS * sums.head_weights
    return read * width / (scenario.tp * scenario.pp)
