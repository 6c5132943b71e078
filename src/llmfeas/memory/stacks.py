"""Experts that public code stacks in one tensor, and formats that leave such a tensor as it is."""

from __future__ import annotations

from ..contract import Note
from ..findings import cached_across_devices
from ..scenario import Scenario
from ..units import format_bytes
from ..workload.kernels import leaves_stacks, runs_stacks, widens_experts
from ..workload.weights import weight_bytes


@cached_across_devices
def stack_notes(scenario: Scenario) -> tuple[Note, ...]:
    """Say how much more weights take where the format does not reach the experts; nothing where it does.

    Counted is what the scenario's release of transformers holds: 4 and Unsloth all experts in the format, 5 none.
    """
    a, table = scenario.model.architecture, scenario.tables.quantization
    dialect = scenario.engine_record.speaks
    chosen = table.format(scenario.quant, dialect)
    if scenario.stored is not None or not chosen.skips_stacks or not runs_stacks(scenario):
        return ()
    native, packed = (weight_bytes(table, a, quant, dialect) for quant in ("none", scenario.quant))
    more = format_bytes(sum(layer.routed for layer in native.layers) - sum(layer.routed for layer in packed.layers))
    if leaves_stacks(scenario):
        text = (
            f"bitsandbytes under transformers 5 leaves experts in 16 bits: {more} more in all than in {scenario.quant}"
        )
    else:
        text = (
            f"experts are counted in {scenario.quant}, as transformers 4 and Unsloth hold them; bitsandbytes under "
            f"transformers 5 leaves them in 16 bits: {more} more in all (--transformers 5)"
        )
    return (Note("experts-in-16-bits", text),)


def wide_notes(scenario: Scenario) -> tuple[Note, ...]:
    """Say that grouped products of experts run in fp32 where autocast leaves them out, and what keeps 16 bits."""
    if not widens_experts(scenario):
        return ()
    narrow = scenario.precision.removesuffix("-mixed")
    text = (
        f"transformers 5 multiplies experts in the type that holds them, fp32 under {scenario.precision}: "
        f"--precision {narrow} keeps them in 16 bits and is faster, but small updates are lost"
    )
    return (Note("experts-in-fp32", text),)
