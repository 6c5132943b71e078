"""The room that a server finds for its cache, and whether it starts: its share of a device less what it holds."""

from __future__ import annotations

from math import floor, hypot, inf
from typing import TYPE_CHECKING

from ..catalog.device import Device
from ..catalog.serving_pool import ServingPool, default_gib, step_value
from ..catalog.tables import Runtime
from ..contract import Note, Published, hidden
from ..model.build import build
from ..ranges import Range
from ..record import dataclass, replace
from ..scenario import Scenario
from ..units import digits, format_bytes
from ..workload.serving import cached_value_bytes, pool_of, replicas, sequences_of, widest_pass_tokens
from ..workload.stages import stages
from ..workload.weights import native_bytes
from .inference import InferenceMemory
from .profile_pass import encoder_bytes
from .runtime import NORMAL_90, own_memory
from .usable import reported_bytes, usable_part

if TYPE_CHECKING:
    from .written_requests import WrittenRequests

GRAPH_STEP = 8
"""Graphs are captured for every so many sequences."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Requests that the cache of one copy of the model holds at once."""

    tokens: int
    """That each holds: the whole context, or on average what a load has written of it."""
    at_once: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRoom(Published):
    """What a server says of its cache when it starts; bytes on one device, the fullest."""

    starts: bool
    """Whether it starts at all: its share holds weights, passes, and one request of the whole context."""
    kv_pool_bytes: Range
    """Room for the cache on one device."""
    kv_pool_tokens: Range
    """Tokens that the cache of one copy of the model holds, in requests of the whole context."""
    requests_at_once: Range
    """Requests of the whole context that the server runs at the same time, all copies of the model together."""
    request_bytes: float = hidden()
    """Cache of one request of the whole context on one device, without states that lie apart."""
    most_at_once: int = hidden()
    """Requests that one copy of the model lets in at most, by its settings and by the states set aside."""
    together: AtOnce = hidden()
    """How many of the requests that are asked for run at once in its cache."""
    is_free: bool = hidden(default=True)
    """Whether as much of the device is free as its share, where it looks for that."""
    refusal: Note | None = hidden(default=None)
    """Why it does not start, or does not run all requests at once, whatever the room."""
    doubt: Note | None = hidden(default=None)
    """Why it may refuse to start, or run out of memory once it has made its cache."""
    sure_share: float | None = hidden(default=None)
    """The largest share of the device at which neither is to be feared, in hundredths; None where it takes none."""


@dataclass(frozen=True, slots=True)
class ServedMemory:
    """Memory of a server: its peak with all requests, what of the device it may use, what is no tensor, its room."""

    peak_bytes: Range
    usable_bytes: float
    runtime_bytes: float
    room: ServingRoom
    tensors: InferenceMemory
    """With what its requests really hold."""


def seen_bytes(runtime: Runtime, device: Device, capacity: float) -> float:
    """The bytes of a device that a process sees: as the driver reports, less what it keeps (data/runtime.yaml)."""
    if device.has_host_memory:
        counted = runtime.usable["seen"] if device.backend == "cuda" else 0.0
        return max(counted * capacity, usable_part(runtime, device, capacity))
    return reported_bytes(device, capacity) - runtime.unseen.get(device.backend, 0.0)


def served_memory(scenario: Scenario, tensors: InferenceMemory) -> ServedMemory:
    """The memory of a server whose tensors are `tensors` with requests of the whole context.

    Formula: pool = share x device - weights - pass - outside - graphs where it measures a pass (vLLM); share x what was
    free - weights - outside, the rest being for passes and graphs, where it does not (SGLang); share x what weights and
    a pass leave free (TensorRT-LLM). Sources: vllm/v1/worker/gpu_worker.py (determine_available_memory), SGLang's
    model_runner_kv_cache_mixin.py, TensorRT-LLM's free_gpu_memory_fraction; figures in data/engines.yaml.
    """
    pool = pool_of(scenario)
    assert pool is not None
    each, written = tensors.cache_bytes / sequences_of(scenario), None
    if scenario.has_load:
        from .written_requests import with_written

        tensors, written = with_written(scenario, tensors)
    tensors = _with_images_read(scenario, pool, tensors)
    held = _Held.of(scenario, tensors, pool)
    own = own_memory(scenario)
    base = held.base if own is None else held.base * own.factor
    usable = max(_usable(held, pool, scenario.gpu_memory_utilization or 1.0, base), 0.0)
    unnamed = 0.0 if scenario.engine_version is not None else pool.unnamed_share * held.seen
    error = NORMAL_90 * hypot(
        pool.weight_spread * held.weights, pool.other_spread * (base - held.weights), pool.spread_bytes, unnamed
    )
    if own is not None:
        error = (own.width - 1) * base
    peak = Range(max(base - error, 0.0), base, base + error).shifted(held.cache)
    apart = _Apart.of(scenario, pool)
    room = Range(*(max(usable - base - beside, 0.0) / apart.parts for beside in (error, 0.0, -error)))
    return ServedMemory(
        peak_bytes=peak,
        usable_bytes=usable,
        runtime_bytes=base + held.cache - sum(tensors.components.values()),
        room=_room(scenario, pool, held, room, usable - base, each, written, apart),
        tensors=tensors,
    )


def _with_images_read(scenario: Scenario, pool: ServingPool, tensors: InferenceMemory) -> InferenceMemory:
    """The tensors of a server that reads images first, where that takes more than its widest pass over tokens."""
    model, components = scenario.model, tensors.components
    if not pool.reads_images or model.image_encoder is None or not model.image_tokens:
        return tensors
    tokens, value = widest_pass_tokens(scenario) or 0, native_bytes(scenario.precision)
    needed = encoder_bytes(model.image_encoder, model.image_tokens, tokens, value, scenario.tp)
    more = needed - components["activations_bytes"] - components["logits_bytes"]
    if more <= 0.0:
        return tensors
    return replace(
        tensors,
        bytes=tensors.bytes + more,
        components={**components, "activations_bytes": needed, "logits_bytes": 0.0},
        moments={name: moment + more for name, moment in tensors.moments.items()},
    )


@dataclass(frozen=True, slots=True)
class _Apart:
    """Fixed states for which a server sets memory aside beside the cache (SGLang, kv_cache_configurator.py)."""

    parts: float
    """All of that memory over the cache's part."""
    each: float
    """Bytes of one state on one device; 0: none lie apart."""
    slots: int
    """States that a request must find free: its own, those that a cache of prefixes keeps and writes meanwhile."""

    @classmethod
    def of(cls, scenario: Scenario, pool: ServingPool) -> _Apart:
        """Look up what a model's states take; they are divided over ranks and stages."""
        value = cached_value_bytes(scenario)
        operators = build(scenario.model.architecture).operators if pool.state_share else ()
        bytes_ = sum(n * (op.cached_values(1) * value + op.state_bytes) for op, n in operators if op.state_bytes)
        each = bytes_ / (scenario.tp * scenario.pp)
        return cls(1 + pool.state_share if each else 1.0, each, pool.state_slots)

    def most(self, room: float) -> float:
        """The requests for which there are states, beside a cache of so many bytes."""
        return max(1.0, room * (self.parts - 1) // (self.slots * self.each)) if self.each else inf


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Bytes on the fullest device of a server."""

    seen: float
    unfree: float
    """Of a memory shared with the processor, what the system holds."""
    context: float
    held_by_others: float
    """What a screen and other programs hold."""
    joined: float
    """Communication, before the server looks what is free."""
    surely_joined: float
    """Of that, what it takes on any machine: over PCIe there were servers that started with hardly any."""
    weights: float
    widest: float
    """Its widest pass."""
    outside: float
    graphs: float
    counted: float
    """Of these, what is taken off the share."""
    cache: float
    """Of all requests that are asked for."""
    sequences: int
    """Of these, on one copy of the model."""

    @classmethod
    def of(cls, scenario: Scenario, tensors: InferenceMemory, pool: ServingPool) -> _Held:
        """Look up what a server holds besides the tensors that were counted."""
        runtime, parts, tp = scenario.tables.runtime, tensors.components, scenario.tp
        joins, linked = tp > 1 and scenario.device.backend in pool.joined_on, _linked(scenario.device)
        joined = pool.joined_bytes if joins else 0.0
        buffers = min(pool.most_rank_bytes, pool.rank_bytes * tp) if tp > 1 and linked else 0.0
        cache, graphs = parts["kv_cache_bytes"], _graphs(scenario, pool)
        device = scenario.device
        seen = scenario.wired_limit_bytes or seen_bytes(runtime, device, scenario.memory_bytes)
        shared = device.is_unified and device.backend == "cuda"
        return cls(
            seen=seen,
            unfree=(1 - runtime.usable["free"]) * seen if shared else 0.0,
            context=runtime.contexts[scenario.device.backend],
            held_by_others=scenario.reserve_bytes,
            joined=joined,
            surely_joined=joined if linked else 0.0,
            weights=parts["weights_bytes"],
            widest=sum(parts.values()) - cache - parts["weights_bytes"],
            outside=pool.outside_bytes + buffers,
            graphs=graphs,
            counted=counted_graph_bytes(scenario),
            cache=cache,
            sequences=sequences_of(scenario),
        )

    @property
    def base(self) -> float:
        """What the share has to hold besides the cache. Contexts lie outside of it."""
        return self.weights + self.widest + self.outside + self.counted

    @property
    def free(self) -> float:
        """What is free when the server looks."""
        return self.seen - self.unfree - self.context - self.held_by_others - self.joined

    def spare(self, pool: ServingPool) -> float:
        """What must stay free beside the share: graphs it does not count, gaps that the allocator may leave."""
        return self.graphs - self.counted + pool.gaps * self.widest


def _linked(device: Device) -> bool:
    """Whether all devices of a node are joined by links of their own, for which buffers are reserved."""
    return any(link.kind in ("nvlink", "xgmi") and link.group is None for link in device.links)


def _graphs(scenario: Scenario, pool: ServingPool) -> float:
    """Bytes of captured graphs: so many a layer and captured batch."""
    if scenario.enforce_eager:
        return 0.0
    gib = default_gib(pool, scenario.device, scenario.memory_bytes)
    widest = min(step_value(pool.captured, gib), 2 * (scenario.max_num_seqs or 1))
    layers = max(stage.layers for stage in stages(scenario.model.architecture.layers, scenario.pp))
    return pool.graph_bytes * layers * (3 + widest // GRAPH_STEP)


def graph_bytes(scenario: Scenario) -> float:
    """Bytes of a server's captured graphs; 0 where it captures none."""
    pool = pool_of(scenario)
    return 0.0 if pool is None else _graphs(scenario, pool)


def counted_graph_bytes(scenario: Scenario) -> float:
    """Bytes of captured graphs that a server takes off its share."""
    pool = pool_of(scenario)
    if pool is None or not (pool.counts_graphs or pool.share_of != "device"):
        return 0.0
    return _graphs(scenario, pool)


def _usable(held: _Held, pool: ServingPool, share: float, base: float) -> float:
    """What weights, passes, cache and all else may take of a device together."""
    match pool.share_of:
        case "device":
            return share * held.seen
        case "free":
            return held.free - max(0.0, (1 - share) * held.free - held.widest - held.graphs)
        case _:
            return held.free - (1 - share) * max(0.0, held.free - base)


def _room(
    scenario: Scenario,
    pool: ServingPool,
    held: _Held,
    room: Range,
    left: float,
    each: float,
    written: WrittenRequests | None,
    apart: _Apart,
) -> ServingRoom:
    context, copies = scenario.context or 1, replicas(scenario)
    cached = each - apart.each
    at_once = room.scaled(1 / cached) if cached > 0 else Range.exact(float(scenario.max_num_seqs or 1))
    most = min(float(scenario.max_num_seqs or 1), apart.most(room.expected))
    greedy = _not_free(scenario, pool, held)
    # a smaller share of the device makes no room
    refusal = _no_room(scenario, held, left, each) or greedy
    starts = refusal is None
    return ServingRoom(
        starts=starts,
        is_free=greedy is None,
        kv_pool_bytes=room,
        kv_pool_tokens=at_once.scaled(context),
        requests_at_once=Range(*(copies * min(most, value) for value in (at_once.low, at_once.expected, at_once.high))),
        request_bytes=cached,
        most_at_once=int(most),
        together=_together(room, apart, cached, context, written),
        refusal=refusal or _too_few(scenario, held),
        doubt=_cramped(scenario, pool, held),
        sure_share=floor(100 * (held.free - held.spare(pool)) / held.seen) / 100 if pool.share_of == "device" else None,
    )


def _together(room: Range, apart: _Apart, cached: float, context: int, written: WrittenRequests | None) -> AtOnce:
    """The requests that one copy of the model has room for at once, by what they hold."""
    most = apart.most(room.expected)
    if written is None:
        return AtOnce(context, room.scaled(1 / cached).at_most(most) if cached > 0 else room)
    free, own = written.free_bytes, max(written.request_bytes - apart.each, 1.0)
    at_once = Range(*(max(1.0, (value - free) / own) for value in (room.low, room.expected, room.high)))
    return AtOnce(round(written.tokens), at_once.at_most(most))


def _not_free(scenario: Scenario, pool: ServingPool, held: _Held) -> Note | None:
    """Say when less is free than the server's share of the device."""
    free = held.seen - held.context - held.held_by_others - held.surely_joined
    share = scenario.gpu_memory_utilization or 1.0
    if not pool.needs_free or free >= share * held.seen:
        return None
    text = (
        f"{scenario.engine_record.name} refuses to start: it wants {digits(share)} of {format_bytes(held.seen)}, of "
        f"which {format_bytes(free)} are free at most ({_flag(pool)} {free / held.seen:.2f} or less)"
    )
    return Note("server-refuses", text)


def _no_room(scenario: Scenario, held: _Held, left: float, each: float) -> Note | None:
    """Say when one request of the whole context finds no room."""
    if left >= each:
        return None
    name, context = scenario.engine_record.name, scenario.context or 1
    if left <= 0:
        text = (
            f"{name} refuses to start: with its passes, weights of {format_bytes(held.weights)} take "
            f"{format_bytes(-left)} more than its share of the device"
        )
    else:
        text = (
            f"{name} refuses to start: its share of the device has room for a cache of {format_bytes(left)}, "
            f"one request of {context} tokens needs {format_bytes(each)}"
        )
    return Note("server-refuses", text)


def _too_few(scenario: Scenario, held: _Held) -> Note | None:
    """Say when more requests are asked for than the server may run at once."""
    most = scenario.max_num_seqs
    if most is None or held.sequences <= most:
        return None
    text = f"--max-num-seqs {most} runs fewer requests at once than the {held.sequences} that are asked for"
    return Note("requests-wait", text)


def _cramped(scenario: Scenario, pool: ServingPool, held: _Held) -> Note | None:
    """Say when less may be free than the share, or too little beside it for what an allocator may need."""
    if pool.share_of != "device":
        return None
    name, share = scenario.engine_record.name, (scenario.gpu_memory_utilization or 1.0) * held.seen
    if pool.needs_free and held.free < share:
        when = " once its devices are connected" if held.joined else ""
        text = (
            f"{name} may refuse to start: of the {format_bytes(share)} that it wants about {format_bytes(held.free)} "
            f"are free{when} ({_flag(pool)})"
        )
        return Note("server-cramped", text)
    left = held.free - share
    if left >= held.spare(pool):
        return None
    beside = max(left - (held.graphs - held.counted), 0.0)
    text = (
        f"{format_bytes(beside)} stay free beside the share that {name} takes: it may "
        f"run out of memory once its cache is made ({_flag(pool)})"
    )
    return Note("server-cramped", text)


def _flag(pool: ServingPool) -> str:
    return "--" + pool.setting.replace("_", "-")
