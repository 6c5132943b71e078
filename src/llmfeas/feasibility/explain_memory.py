"""The derivation of memory: what each component is made of, down to the tensors that are alive at the peak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..contract import ABSENT
from ..derivation import ENGINES, MODEL, RUNTIME, Say
from ..memory.inference import logits_of
from ..memory.models_beside import models_beside
from ..memory.peak import Memory
from ..memory.runtime import context_bytes, growth_of, overheads, own_memory
from ..memory.serving_room import counted_graph_bytes
from ..memory.training import fullest_rank, training_memory
from ..memory.usable import usable_part
from ..scenario import Scenario
from ..timing.decode import sequences_per_replica
from ..walk.live import live_tensors
from ..workload.kernels import Code
from ..workload.serving import pool_of
from .result import Estimate, TensorGroup, Term
from .terms import noted, number, setting, term, written

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
FEW_GROUPS, MOST_GROUPS = 10, 40
"""Groups of tensors that are told apart: more than a few where these are a part alone; the rest is one number."""
MOST_OF_IT = 0.95
"""Share of a component that is told in groups."""


def memory_terms(estimate: Estimate) -> Iterator[Term]:
    """Derive the peak and what may be used."""
    memory, scenario = estimate.memory, estimate.scenario
    tensors = _tensors(estimate) if scenario.is_training else {}
    found = {name: value for name, value in memory.components.items() if value}
    peak = memory.peak_bytes.expected
    notes = noted(scenario)
    for name, value in found.items():
        text, made, groups = _component(estimate, name, value, tensors.get(name, ()), notes(name))
        formula, inputs = written(notes, name, made)
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
    text += f"; kernels: {CODES[memory.code]}" if memory.code else ""
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


CODES: Final[Mapping[Code, str]] = {
    "fused": "fused, of a training framework",
    "own": "the model's public code, as a stand-in for the engine's own",
    "patched": "the model's public code, with a library's kernels in it",
    "compiled": "the model's public code, compiled with its loss",
    "public": "the model's public code",
}
"""Whose code keeps the activations."""


def _component(
    estimate: Estimate, name: str, value: float, groups: tuple[TensorGroup, ...], say: Say
) -> tuple[str, float, tuple[TensorGroup, ...]]:
    """What a component is, the bytes that it is made of, and its tensors."""
    scenario = estimate.scenario
    text = TEXTS[name] if scenario.is_training else {**TEXTS, **SERVING_TEXTS}[name]
    if name == "runtime_bytes":
        return text, runtime_bytes(scenario, estimate.memory, say), ()
    if name == "kv_cache_bytes":
        serving = estimate.serving
        if serving is not None and serving.together.tokens < (scenario.context or 1):
            text = f"keys and values of {serving.together.tokens} tokens a request: the mean while it is written"
        sequences = sequences_per_replica(scenario)
        return text, say("sequences", sequences) * say("bytes_a_sequence", value / sequences, "bytes", MODEL), ()
    count = getattr(estimate.parameters, COUNTED[name]) if name in COUNTED and not groups else 0
    if count:
        each = say("bytes_each", value / count, "bytes on this device")
        return text, say("parameters", count, "", MODEL) * each, ()
    beside = _beside_tensors(estimate, name, say) if scenario.is_training else _of_pass(scenario, name, value, say)
    rest = value - float(beside)
    told = sum(group.bytes for group in groups)
    if told > 1.001 * rest:  # another moment was watched
        told, groups = 0.0, ()
    made = say("tensors", told, "bytes") + beside if groups else beside
    rest -= told
    if not made or abs(rest) > 1e-9 * value:
        made += say("rest" if scenario.is_training else "widest", rest, "bytes")
    return text, made, groups


def _beside_tensors(estimate: Estimate, name: str, say: Say) -> float:
    """What a rank holds beside its own step: gathered weights, other micro-batches, other models."""
    scenario, moment, made = estimate.scenario, estimate.memory.peak_moment, 0.0
    if scenario.offload_layers is not None:
        return made
    rank = fullest_rank(scenario)
    held, stays = rank.held, moment != "optimizer"
    if name == "workspace_bytes" and stays and held.gathered:
        made += say("gathered", held.gathered, "bytes", ENGINES)
    if name == "workspace_bytes" and stays and moment != "forward" and held.gathered_backward:
        made += say("gathered_backward", held.gathered_backward, "bytes", ENGINES)
    if name == "workspace_bytes" and not stays and held.temporaries:
        made += say("temporaries", held.temporaries, "bytes")
    if name == "activations_bytes" and stays and held.other_micro_batches:
        kept = rank.moments.kept_bytes(-(-scenario.sequences_together // rank.parts), scenario.rank_tokens, held)
        made += say("waiting", held.other_micro_batches, "micro-batches") * say("kept", kept, "bytes")
    if other := models_beside(scenario).get(name):
        made += say("other_models", other, "bytes", MODEL)
    return made


def _of_pass(scenario: Scenario, name: str, value: float, say: Say) -> float:
    """The logits of a pass of serving, those of ranks that share the vocabulary or of one that gathers it."""
    if name != "logits_bytes":
        return 0.0
    width, fixed = logits_of(scenario)
    served = pool_of(scenario) is not None
    vocabulary = scenario.model.architecture.vocab / (1 if served else scenario.tp)
    rows = (value - fixed) / (width * vocabulary)
    if abs(rows - round(rows)) > 1e-6 * rows:
        return 0.0
    made = say("sequences" if served else "tokens", round(rows)) * say("vocabulary", vocabulary, "", MODEL)
    made *= say("element_bytes", width, "bytes", ENGINES)
    return made + (say("sampler", fixed, "bytes", ENGINES) if fixed else 0.0)


def _tensors(estimate: Estimate) -> dict[str, tuple[TensorGroup, ...]]:
    """The tensors of the walk at the peak by component; none where it would take long or the optimizer has the peak."""
    scenario = estimate.scenario
    if scenario.offload_layers is not None:
        return {}
    if estimate.memory.peak_moment in ("optimizer", "decode") or scenario.model.architecture.layers > MOST_LAYERS:
        return {}
    rank, length = fullest_rank(scenario), scenario.rank_tokens
    share = 0.0 if rank.held.gradients is not None else rank.held.gradient_share
    found: dict[str, list[TensorGroup]] = {}
    batch = -(-scenario.sequences_together // rank.parts)
    for group in live_tensors(rank.setup, batch, length, estimate.memory.peak_moment, share):
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
    return {name: tuple(_told(groups)) for name, groups in found.items()}


def _told(groups: list[TensorGroup]) -> Iterator[TensorGroup]:
    """The largest groups, as many as make up most of it."""
    whole, told = sum(group.bytes for group in groups), 0.0
    for place, group in enumerate(groups[:MOST_GROUPS]):
        if place >= FEW_GROUPS and told >= MOST_OF_IT * whole:
            return
        told += group.bytes
        yield group


def runtime_bytes(scenario: Scenario, memory: Memory, say: Say) -> float:
    """The bytes that are no tensors; a remainder where something else was taken into account."""
    value = memory.components["runtime_bytes"]
    if pool_of(scenario) and not scenario.is_training:  # contexts lie outside of a server's share
        graphs = counted_graph_bytes(scenario)
        outside = say("outside", value - graphs, "bytes", ENGINES)
        return outside + (say("graphs", graphs, "bytes", ENGINES) if graphs else 0.0)
    tensors = {name: size for name, size in memory.components.items() if name != "runtime_bytes"}
    inside: float = 0.0
    if scenario.is_training:
        counted = training_memory(scenario)
        tensors, inside = dict(counted.components), counted.kernel_bytes
    made = say("context", context_bytes(scenario), "bytes", RUNTIME) + sum(overheads(scenario, tensors, say))
    made += say("inside_kernels", inside, "bytes", "PyTorch, SoftMax.cu") if inside else 0.0
    if share := growth_of(scenario):
        # Of what is free without it: (usable - all) = (1 - share) free.
        free = max(memory.usable_bytes - sum(memory.components.values()), 0.0) / (1.0 - share)
        made += say("grows", share, "", ENGINES) * say("free", free, "bytes")
    more = value - float(made)
    if abs(more) <= 1e-7 * value:
        return made
    if own_memory(scenario) is not None:
        return made + say("measured", more, "bytes", "own measurements")
    return made - say("given_back", -more, "bytes")
