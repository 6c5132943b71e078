"""Experts that public code stacks in one tensor, and formats that leave such a tensor as it is."""

from __future__ import annotations

from ..contract import Note
from ..scenario import Scenario, whatever_the_batch
from ..units import format_bytes
from ..workload.kernels import runs_fused
from ..workload.weights import weight_bytes


@whatever_the_batch
def stack_notes(scenario: Scenario) -> tuple[Note, ...]:
    """Say how much more weights take where the format does not reach the experts; nothing where it does.

    What is counted has all experts in the format, as older releases and other engines hold them.
    """
    a, table = scenario.model.architecture, scenario.tables.quantization
    dialect = scenario.engine_record.speaks
    chosen = table.format(scenario.quant, dialect)
    if a.experts is None or scenario.stored is not None or not chosen.skips_stacks or not _runs_stacks(scenario):
        return ()
    native, packed = (weight_bytes(table, a, quant, dialect) for quant in ("none", scenario.quant))
    more = sum(layer.routed for layer in native.layers) - sum(layer.routed for layer in packed.layers)
    text = (
        f"experts are counted in {scenario.quant}, as transformers 4 and Unsloth hold them; bitsandbytes under "
        f"transformers 5 leaves them in 16 bits: {format_bytes(more)} more in all"
    )
    return (Note("experts-in-16-bits", text),)


def _runs_stacks(scenario: Scenario) -> bool:
    """Tell whether the job runs public code that stacks its experts."""
    if scenario.tables.implementations.public(scenario.model.architecture.implementation).experts_one_by_one:
        return False
    if scenario.is_training:
        return not runs_fused(scenario)
    return scenario.engine_record.serving.memory.public_code
