"""The derivation of memory: what each component is made of, down to the tensors that are alive at the peak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..contract import ABSENT
from ..memory.training import training_plan
from ..memory.usable import usable_part
from ..scenario import Scenario
from ..timing.decode import sequences_per_replica
from ..walk.live import live_tensors
from ..workload.kernels import runs_compiled, runs_fused, runs_patched
from .result import Estimate, TensorGroup, Term, TermInput
from .terms import number, setting, term

TEXTS: Mapping[str, str] = {
    "weights_bytes": "weights as they are held on one device",
    "gradients_bytes": "gradients that exist at the peak",
    "optimizer_bytes": "states of the optimizer on one device",
    "activations_bytes": "what the backward pass needs, and what is being computed",
    "logits_bytes": "tensors as wide as the vocabulary",
    "kv_cache_bytes": "keys and values of the whole context",
    "workspace_bytes": "copies of weights in other types, and temporaries",
    "runtime_bytes": "the driver's context, libraries and slack of the allocator: no tensors",
}
SERVING_TEXTS: Mapping[str, str] = {
    "activations_bytes": "the widest operator of one pass, and what waits beside it",
    "workspace_bytes": "weights unpacked or copied for one product",
}
"""What differs from training, where nothing is kept."""
COUNTED: Mapping[str, str] = {"weights_bytes": "total", "gradients_bytes": "trainable", "optimizer_bytes": "trainable"}
"""Components that are so many bytes for each of these parameters."""
MOST_LAYERS = 130
MOST_GROUPS = 10
"""Groups of tensors that are told apart; the rest is one number."""


def memory_terms(estimate: Estimate) -> Iterator[Term]:
    """Derive the peak and what may be used."""
    memory, scenario = estimate.memory, estimate.scenario
    tensors = _tensors(estimate) if scenario.is_training else {}
    found = {name: value for name, value in memory.components.items() if value}
    peak = memory.peak_bytes.expected
    for name, value in found.items():
        text, formula, inputs, groups = _component(estimate, name, value, tensors.get(name, ()))
        yield Term(
            quantity=f"memory.{name}",
            text=text,
            formula=formula,
            inputs=inputs,
            value=value,
            unit="bytes",
            share=value / peak,
            tensors=groups or ABSENT,
        )
    summands = [number(name.removesuffix("_bytes"), value, "bytes") for name, value in found.items()]
    formula = " + ".join(entry.name for entry in summands)
    text = f"all that is alive at the peak, which is in: {memory.peak_moment}"
    text += f"; kernels: {_kernels(scenario)}" if scenario.is_training else ""
    yield term("memory.peak_bytes", text, formula, summands, peak, "bytes")
    whole = setting(scenario, "memory", memory.capacity_bytes, "bytes")
    text, formula, held = "what a process may use of the device's memory", "memory * share", 0.0
    if scenario.was_given("wired_limit") and memory.usable_bytes == scenario.wired_limit_bytes:
        limit = setting(scenario, "wired_limit", memory.usable_bytes, "bytes")
        text = "what macOS lets the GPU have"
        yield term("memory.usable_bytes", text, "wired_limit", (limit,), memory.usable_bytes, "bytes")
        return
    alone = usable_part(scenario.tables.runtime, scenario.device, memory.capacity_bytes)
    if estimate.serving is None and memory.usable_bytes < alone:
        held = min(scenario.reserve_bytes, memory.capacity_bytes - memory.usable_bytes)
        text, formula = f"{text}, less what a screen and other programs hold", f"{formula} - reserve"
    share = number("share", (memory.usable_bytes + held) / memory.capacity_bytes, "", "device")
    reserve = [setting(scenario, "reserve", held, "bytes")] if held else []
    yield term("memory.usable_bytes", text, formula, (whole, share, *reserve), memory.usable_bytes, "bytes")


def _kernels(scenario: Scenario) -> str:
    """Whose code keeps the activations."""
    if runs_fused(scenario):
        return "fused, of a training framework"
    if runs_patched(scenario):
        return "the model's public code, with a library's kernels in it"
    return "the model's public code" + (", compiled with its loss" if runs_compiled(scenario) else "")


Component = tuple[str, str, tuple[TermInput, ...], tuple[TensorGroup, ...]]


def _component(estimate: Estimate, name: str, value: float, groups: tuple[TensorGroup, ...]) -> Component:
    scenario = estimate.scenario
    text = TEXTS[name] if scenario.is_training else {**TEXTS, **SERVING_TEXTS}[name]
    if name == "runtime_bytes":
        return text, "measured", (number("measured", value, "bytes", "data/runtime.yaml, data/engines.yaml"),), ()
    if name == "kv_cache_bytes":
        sequences = sequences_per_replica(scenario)
        each = number("bytes_a_sequence", value / sequences, "bytes", "model")
        return text, "sequences * bytes_a_sequence", (number("sequences", sequences), each), ()
    if name in COUNTED and not groups:
        count = getattr(estimate.parameters, COUNTED[name])
        if count:
            each = number("bytes_each", value / count, "bytes on this device", "derived")
            return text, "parameters * bytes_each", (number("parameters", count, "", "model"), each), ()
    told = sum(group.bytes for group in groups)
    rest = number("rest", value - told, "bytes")
    if not groups:
        return text, "rest", (rest,), ()
    return text, "tensors + rest", (number("tensors", told, "bytes"), rest), groups


def _tensors(estimate: Estimate) -> dict[str, tuple[TensorGroup, ...]]:
    """The tensors of the walk at the peak by component; none where it would take long or the optimizer has the peak."""
    scenario = estimate.scenario
    if scenario.offload_layers is not None:
        return {}
    if estimate.memory.peak_moment == "optimizer" or scenario.model.architecture.layers > MOST_LAYERS:
        return {}
    length = -(-scenario.seq_len // scenario.cp)
    ranks = training_plan(scenario).ranks
    rank = max(ranks, key=lambda rank: rank.peak(scenario.sequences_together, length).bytes)
    share = 0.0 if rank.held.gradients is not None else rank.held.gradient_share
    found: dict[str, list[TensorGroup]] = {}
    for group in live_tensors(rank.setup, scenario.sequences_together, length, estimate.memory.peak_moment, share):
        component = {"arriving": "gradients"}.get(group.component, group.component)
        if component in ("activations", "logits", "workspace"):
            found.setdefault(f"{component}_bytes", []).append(
                TensorGroup(
                    operator=group.operator,
                    shape=group.shape,
                    bytes_per_element=group.width,
                    count=group.count,
                    bytes=float(group.bytes),
                )
            )
    return {name: _fitting(groups[:MOST_GROUPS], estimate.memory.components[name]) for name, groups in found.items()}


def _fitting(groups: list[TensorGroup], whole: float) -> tuple[TensorGroup, ...]:
    """The groups, or none where they are more than there is: then another moment was watched."""
    return tuple(groups) if sum(group.bytes for group in groups) <= 1.001 * whole else ()
