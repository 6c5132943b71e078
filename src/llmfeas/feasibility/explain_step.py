"""The derivation of the seconds of a training step: each part in the formula and numbers of `timing.step`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..scenario import Scenario
from ..timing.step import noted_parts
from .result import Term
from .terms import Texts, noted, part_terms

TEXTS: Texts = {
    "matrix": "matrix products, forward and backward",
    "attention": {
        "wide_flop": "scores and values, of heads too wide for flash kernels in PyTorch's memory-efficient one",
        "flash_flop": "scores and values of the causal half, in a fused kernel",
        "": "scores and values over the full square, written out",
    },
    "recurrence": "recurrences, a chunk of the sequence after the other",
    "streaming": "norms, residuals, activations and loss, which wait for the memory",
    "routing": "tokens sorted by their experts and back, a copy for each",
    "decoding": {
        "cast_bytes": "the frozen base copied to 16 bits in each forward pass",
        "written_bytes": "the base in 8 bits written out in 16 for each backward pass",
        "": "4-bit weights unpacked in each pass",
    },
    "adapters": "what adapters read, scale and add beside their base, forward and backward",
    "merging": {
        "merged_weights": "adapters merged into the stacked experts in each pass",
        "": "norms of weights taken in each pass",
    },
    "host": "the host launches kernels, as far as the device has to wait for that",
    "tensor_parallel": "four sums over the devices in each layer",
    "expert_parallel": "tokens sent to the devices of their experts and back",
    "zero": "weights gathered and gradients scattered, as far as work does not hide it",
    "offload": "weights and activations that travel between device and main memory",
    "bubble": "waiting while the pipeline fills and empties",
    "gradient_sync": "gradients added up over the devices once a step",
    "optimizer": {
        "host_bandwidth": "weights, gradients and states read and written once a step, by the processor",
        "": "weights, gradients and states read and written once a step",
    },
    "rollout": "answers that the model writes before it learns from them",
}
"""What each part of a step is."""


def step_terms(scenario: Scenario, parts: Mapping[str, float]) -> Iterator[Term]:
    """Derive each part of a step."""
    notes, felt = noted(scenario), {name: seconds for name, seconds in parts.items() if seconds}
    return part_terms("time.step", notes, noted_parts(scenario, notes), felt, TEXTS)
