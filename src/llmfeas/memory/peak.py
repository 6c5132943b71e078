"""Memory of one device: tensors of the step or the serving, plus what is no tensor, beside what is usable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from ..catalog.joined import Joined
from ..contract import Added, Keys, MayBeNull, Note, Published, hidden, published
from ..findings import cached_across_batches, cached_across_devices
from ..ranges import Range
from ..record import dataclass, replace
from ..scenario import Scenario
from ..units import format_bytes
from ..workload.kernels import Code, code_of, runs_public_code
from ..workload.serving import pool_of, replicas
from ..workload.weights import weights_file_bytes
from .inference import InferenceMemory, inference_memory, part_memories
from .models_beside import models_beside
from .rollouts import beside_training, fullest, writer_refuses
from .runtime import anywhere, on_device, overhead_of, own_memory, runtime_memory
from .serving_room import ServingRoom, served_memory
from .training import TensorMemory, training_memory
from .usable import usable_bytes
from .written import refused_notes, stack_notes, wide_notes, written_notes

COMPONENTS = (
    "weights_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "logits_bytes",
    "kv_cache_bytes",
    "workspace_bytes",
    "runtime_bytes",
)
"""What memory is made of, in the order in which people read it."""


def components_of(found: Mapping[str, float]) -> dict[str, float]:
    """Every component in its order; what is not there is 0."""
    return {name: found.get(name, 0.0) for name in COMPONENTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartMemory(Published):
    """Bytes on one of several unequal devices."""

    device: str
    """Its id in the catalog."""
    name: str
    peak_bytes: Range
    usable_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Published):
    """Bytes on one device, the worst one; `components` are those alive at the peak and add up to its expected value."""

    components: Annotated[Mapping[str, float], Keys(COMPONENTS)]
    peak_bytes: Range
    peak_moment: str
    runner_up_moment: str | None
    kv_cache_bytes: MayBeNull[float]
    """The logical cache of the whole context."""
    weights_file_bytes: MayBeNull[float]
    """Weights as stored on disk."""
    host_bytes: MayBeNull[float]
    """What offloading and layers on the CPU take of the host's memory."""
    capacity_bytes: MayBeNull[float]
    usable_bytes: MayBeNull[float]
    """What one device lets a process use."""
    parts: Added[tuple[PartMemory, ...]] = ()
    """Of unequal devices each one, in their order; of equal ones nothing: all hold what the worst holds at most."""
    code: Added[Code | None] = None
    """Whose code a training is taken to run: a framework's fused kernels, or the model's public code, with a library's
    kernels in it, compiled, or as it is; null in inference."""
    device: str = hidden(default="")
    """The name of the worst of unequal devices; empty where they are equal."""

    @published
    def headroom_bytes(self) -> MayBeNull[float]:
        """Usable bytes that the expected peak leaves free; negative where it does not fit."""
        return self.usable_bytes - self.peak_bytes.expected

    @property
    def verdict(self) -> Literal["fits", "tight", "exceeds"]:
        """`fits`: even the high end is usable; `tight`: the expected value is; `exceeds` otherwise."""
        if self.peak_bytes.high <= self.usable_bytes:
            return "fits"
        return "tight" if self.peak_bytes.expected <= self.usable_bytes else "exceeds"


APPROXIMATE_FACTOR = 1.15
"""Spread of a peak where the walk is that of the nearest family: a prior, no measurement speaks for it."""


@dataclass(frozen=True, slots=True)
class CountedMemory:
    """Memory and what the user should know about how it was counted."""

    memory: Memory
    notes: tuple[Note, ...] = ()
    serving: ServingRoom | None = None
    """What a server makes of its share of the device; None where there is no such share."""
    refusal: Note | None = None
    """Why the server that writes answers for a training does not start."""

    @property
    def refuses(self) -> Note | None:
        """Why a server does not start; None where it does, or none is there."""
        return self.refusal if self.serving is None else self.serving.refusal


def with_runtime(components: Mapping[str, float], runtime: float) -> dict[str, float]:
    """All components: where own measurements say less than the tensors that were counted, each is as much less."""
    if runtime >= 0.0:
        return {**components, "runtime_bytes": runtime}
    counted = sum(components.values())
    part = max(counted + runtime, 0.0) / counted
    return {**{name: size * part for name, size in components.items()}, "runtime_bytes": 0.0}


def memory(scenario: Scenario) -> CountedMemory:
    """Count the bytes at the peak of one step (training) or of prefill and decode (inference), per device."""
    return _training(scenario) if scenario.is_training else _serving(scenario)


def _training(scenario: Scenario) -> CountedMemory:
    tensors, server = fullest(scenario, training_memory(scenario), beside_training(scenario))
    runtime = _runtime(scenario, tensors)
    others = models_beside(scenario)
    peak = _training_peak(tensors, runtime, server, others)
    components = {
        name: size + server.get(name, 0.0) + others.get(name, 0.0)
        for name, size in components_of(tensors.components).items()
    }
    notes = (Note("memory-approximate", tensors.approximate),) if tensors.approximate else ()
    found = Memory(
        components=with_runtime(components, runtime.expected),
        peak_bytes=peak,
        peak_moment=tensors.moment,
        runner_up_moment=tensors.runner_up,
        kv_cache_bytes=server.get("kv_cache_bytes", 0.0),
        weights_file_bytes=_file_bytes(scenario),
        host_bytes=tensors.host_bytes,
        capacity_bytes=scenario.memory_bytes,
        usable_bytes=usable_bytes(scenario),
        code=code_of(scenario),
    )
    notes = (*notes, *_unmeasured(scenario), *_told(scenario, scenario.micro_batch, scenario.global_batch))
    return CountedMemory(found, notes, refusal=writer_refuses(scenario))


def _told(scenario: Scenario, micro_batch: int, global_batch: int) -> tuple[Note, ...]:
    """What is said of a training, whatever the device is called."""
    before, behind = _of_recipe(scenario, micro_batch, global_batch)
    return *before, *_on_drive(scenario), *behind


@cached_across_devices
def _of_recipe(scenario: Scenario, _micro_batch: int, _global_batch: int) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    told = (_unlike, stack_notes, wide_notes, written_notes, refused_notes)
    return tuple(note for say in told for note in say(scenario)), tuple(_alone(scenario))


def _alone(scenario: Scenario) -> Iterator[Note]:
    """Say where texts are compared with those of a batch that has no others."""
    objective = scenario.objective
    if objective is None or objective.turns == 1:
        return
    option, together = "--micro-batch", scenario.micro_batch
    if not objective.kept:
        option, together = "--global-batch", scenario.global_batch // scenario.dp
    if together < 2:
        text = (
            f"texts are told apart from the others of their batch on a device, and this one has no others: with "
            f"{option} larger, and a shorter --seq-len where memory wants it, something is learned"
        )
        yield Note("nothing-to-compare", text)


def _runtime(scenario: Scenario, tensors: TensorMemory) -> Range:
    """`runtime_memory` of a training, of which the plan that the tensors are of tells all but the device's memory."""
    if not tensors.anywhere:
        tensors.anywhere.append(anywhere(scenario, tensors.components, tensors.kernel_bytes))
    return on_device(scenario, tensors.anywhere[0])


def _training_peak(tensors: TensorMemory, runtime: Range, *beside: Mapping[str, float]) -> Range:
    peak = runtime.shifted(tensors.bytes + sum(sum(each.values()) for each in beside))
    if tensors.approximate:
        return Range(peak.low / APPROXIMATE_FACTOR, peak.expected, peak.high * APPROXIMATE_FACTOR)
    return peak


def _on_drive(scenario: Scenario) -> tuple[Note, ...]:
    """Say what lies on a drive, which has no size here."""
    if scenario.drive_gb_per_s is None:
        return ()
    there = training_memory(replace(scenario, drive_gb_per_s=None)).host_bytes
    machine = there * scenario.devices_a_machine
    text = f"about {format_bytes(machine)} lie on the drive of each machine, less what main memory keeps of it"
    return (Note("on-drive", text),)


def _unmeasured(scenario: Scenario) -> tuple[Note, ...]:
    """Say that nobody measured what an engine holds beside tensors."""
    if _is_measured(scenario) or own_memory(scenario) is not None:
        return ()
    name = scenario.engine_record.name
    text = (
        f"nobody has published a peak of training under {name}: tensors are counted, the rest of the range is judgement"
    )
    return (Note("unmeasured-memory", text),)


@cached_across_devices
def _is_measured(scenario: Scenario) -> bool:
    return bool(overhead_of(scenario).groups)


def _unlike(scenario: Scenario) -> Iterator[Note]:
    """Say where a setting that is meant to save memory does not."""
    if scenario.offload == "activations" and scenario.checkpointing == "selective" and runs_public_code(scenario):
        text = (
            "selective checkpointing keeps the products that it does not compute again on the device, where nothing "
            "offloads them: --offload activations takes less memory with --checkpointing none or full"
        )
        yield Note("selective-stays", text)
    if scenario.checkpointing == "full" and scenario.model.architecture.gated_recurrence and runs_public_code(scenario):
        text = (
            "each recurrence names its last state until its next pass, and with it all that full checkpointing ran "
            "again for that state: on short sequences --checkpointing none takes less memory"
        )
        yield Note("states-stay", text)
    if scenario.trains_adapters and scenario.precision in ("bf16", "fp16") and runs_public_code(scenario):
        text = (
            f"adapters stay in fp32: without autocast each of their inputs is copied in 4 bytes, so that "
            f"--precision {scenario.precision}-mixed takes less memory"
        )
        yield Note("adapters-in-fp32", text)


def _serving(scenario: Scenario) -> CountedMemory:
    if scenario.requests is not None:
        scenario = _without_queue(scenario)
    return _serving_of(scenario, scenario.concurrency, scenario.max_num_seqs)


def _without_queue(scenario: Scenario) -> Scenario:
    """The same with as many of a number of requests as a server surely takes at once, one at least: the rest wait."""
    copies = replicas(scenario)
    alone = scenario.with_batch({"concurrency": copies}, {})
    room = _serving_of(alone, copies, scenario.max_num_seqs).serving
    if room is None or not room.starts:
        return scenario
    return scenario.with_batch(
        {"concurrency": max(copies, min(scenario.concurrency, int(room.requests_at_once.low)))}, {}
    )


@cached_across_batches
def _serving_of(scenario: Scenario, _concurrency: int, _seqs: int | None) -> CountedMemory:
    if isinstance(scenario.device, Joined):
        return _on_parts(scenario, scenario.device)
    tensors = inference_memory(scenario)
    served = served_memory(scenario, tensors) if pool_of(scenario) is not None else None
    notes = (*stack_notes(scenario), *_may_spill(scenario))
    if served is None:
        return CountedMemory(_served(scenario, tensors), notes)
    from .server_releases import doubted_by_releases

    found = _found(scenario, served.tensors, served.runtime_bytes, served.peak_bytes, served.usable_bytes)
    return CountedMemory(found, notes, doubted_by_releases(scenario, served.room))


def _on_parts(scenario: Scenario, machine: Joined) -> CountedMemory:
    """The worst of unequal devices, and beside it all of them."""
    counted = zip(machine.parts, part_memories(scenario), strict=True)
    found = [(part, _served(scenario.on(part), tensors)) for part, tensors in counted]
    parts = tuple(
        PartMemory(device=part.id, name=part.name, peak_bytes=held.peak_bytes, usable_bytes=held.usable_bytes)
        for part, held in found
    )
    part, worst = max(found, key=lambda each: each[1].peak_bytes.high / each[1].usable_bytes)
    notes = (*stack_notes(scenario), *_may_spill(scenario))
    return CountedMemory(replace(worst, parts=parts, device=part.name), notes)


def _may_spill(scenario: Scenario) -> Iterator[Note]:
    """Say what the engine's own fit does where weights and buffers turn out larger than expected."""
    if scenario.spill is None:
        return
    left, layers = dict(scenario.spill.settings), scenario.model.architecture.layers
    what = f"{layers - left['gpu_layers']} of {layers} layers" if "gpu_layers" in left else ""
    if "n_cpu_moe" in left:
        what = " and ".join(filter(None, (f"the experts of {left['n_cpu_moe']} of {layers} layers", what)))
    name = scenario.engine_record.name
    text = f"a file that is larger than most may not fit as a whole: by itself {name} then leaves up to {what} "
    yield Note("may-spill", f"{text}on the host, and the ranges of speed hold that")


def _served(scenario: Scenario, tensors: InferenceMemory) -> Memory:
    """Where the engine fits a model by itself, it takes no more than there is."""
    runtime, usable = runtime_memory(scenario, tensors.components), usable_bytes(scenario)
    peak = runtime.shifted(tensors.bytes)
    if scenario.spill is not None:
        peak = peak.at_most(usable)
    return _found(scenario, tensors, runtime.expected, peak, usable)


def _found(scenario: Scenario, tensors: InferenceMemory, beside: float, peak: Range, usable: float) -> Memory:
    return Memory(
        components=components_of(with_runtime(tensors.components, beside)),
        peak_bytes=peak,
        peak_moment=tensors.moment,
        runner_up_moment=tensors.runner_up,
        kv_cache_bytes=tensors.kv_cache_bytes,
        weights_file_bytes=_file_bytes(scenario),
        host_bytes=tensors.host_bytes,
        capacity_bytes=scenario.memory_bytes,
        usable_bytes=usable,
    )


@cached_across_devices
def _file_bytes(scenario: Scenario) -> float:
    if scenario.stored is not None:
        return float(scenario.stored.file_bytes)
    return weights_file_bytes(
        scenario.tables.quantization, scenario.model, scenario.precision, scenario.quant, scenario.engine_record.speaks
    )


def peak_bytes(scenario: Scenario) -> Range:
    """The peak alone, for searches over recipes."""
    if not scenario.is_training:
        return _serving(scenario).memory.peak_bytes
    tensors, server = fullest(scenario, training_memory(scenario), beside_training(scenario))
    runtime = _runtime(scenario, tensors)
    return _training_peak(tensors, runtime, server, models_beside(scenario))


def on_machine_bytes(scenario: Scenario, memory: Memory) -> float:
    """The bytes that the host of one machine holds for all of its devices."""
    return memory.host_bytes * scenario.devices_a_machine
