"""What public code writes out for want of kernels, which experts a format leaves as they are, and notes on both."""

from __future__ import annotations

from functools import lru_cache

from ..catalog.architecture import Architecture
from ..contract import Note
from ..findings import cached_across_devices
from ..model.build import build
from ..scenario import Scenario
from ..units import format_bytes
from ..workload.kernels import leaves_stacks, packs_stacks, runs_public_code, runs_stacks, traits_of, widens_experts
from ..workload.weights import weight_bytes


@cached_across_devices
def written_notes(scenario: Scenario) -> tuple[Note, ...]:
    """Say that the step is that of code without kernels, and what to install; nothing where it was never compared."""
    if not runs_public_code(scenario) or traits_of(scenario).approximate:
        return ()
    packages, by_token, broadcasts = _recurrences(scenario.model.architecture)
    if not packages:
        return ()
    times = "hundreds of times" if by_token else "several times"  # each token's gradient is as long as the sequence
    text = (
        f"its recurrent layers are counted as transformers writes them out in plain PyTorch; with {packages} "
        f"installed they run as kernels, which keep far less and are {times} faster: --engine pytorch-fla"
    )
    if broadcasts and scenario.transformers == "5":
        text += (
            "; releases of transformers before 5.18 write out far more and take several times as long: --transformers 4"
        )
    return (Note("recurrence-written-out", text),)


@lru_cache(maxsize=4096)
def _recurrences(architecture: Architecture) -> tuple[str, bool, bool]:
    """The packages that bring kernels for what an architecture runs, empty where it needs none; whether code without
    them loops over tokens, and whether it writes products out to sum them up.
    """
    operators = [operator for operator, _ in build(architecture).operators]
    packages = next((operator.packages for operator in operators if operator.packages), "")
    by_token = any(operator.loop_tokens == 1 for operator in operators)
    return packages, by_token, any(operator.broadcast_width for operator in operators)


def refused_notes(scenario: Scenario) -> tuple[Note, ...]:
    """Say that peft stops at adapters on what leaves the recurrent layers, where the targets name it."""
    kind = scenario.adapter_kind
    if kind is None or not kind.pairs or scenario.lora_targets != "all-linear" or not runs_public_code(scenario):
        return ()
    if not traits_of(scenario).refuses_out_proj:
        return ()
    text = (
        "peft takes no adapters on out_proj of this family, and stops where the targets name it, as all-linear does: "
        "list the other matrices as target_modules; out_proj's are counted here"
    )
    return (Note("adapters-refused", text),)


def filled_tokens(scenario: Scenario) -> int:
    """Tokens that the last chunk of a sequence lacks, where recurrences run over chunks."""
    length = scenario.rank_tokens
    return -length % build(scenario.model.architecture).chunk_tokens


def whole_length(scenario: Scenario) -> int:
    """Tokens of a sequence filled up to what its code needs a multiple of; 0: it needs none."""
    grain = build(scenario.model.architecture).whole_tokens
    return -(-scenario.rank_tokens // grain) * grain if grain else 0


@cached_across_devices
def stack_notes(scenario: Scenario) -> tuple[Note, ...]:
    """Say how much more weights take where the format does not reach the experts; nothing where it does.

    Counted is what the scenario's release of transformers holds: 4 and Unsloth all experts in the format, 5 none.
    """
    a, table = scenario.model.architecture, scenario.tables.quantization
    dialect = scenario.engine_record.speaks
    chosen = table.format(scenario.quant, dialect)
    if scenario.stored is not None or not chosen.skips_stacks or not runs_stacks(scenario) or packs_stacks(scenario):
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
