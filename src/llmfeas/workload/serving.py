"""What a served model's memory depends on, apart from everything else that a scenario says."""

from __future__ import annotations

from functools import cached_property

from ..catalog.architecture import Architecture
from ..catalog.device import Device
from ..catalog.engine import ServingMemory
from ..catalog.joined import Joined
from ..catalog.quantization import StoredWeights
from ..catalog.serving_pool import ServingPool
from ..catalog.tables import Tables
from ..findings import cached_across_batches
from ..model.sums import architecture_sums
from ..record import dataclass, fields
from ..scenario import Scenario
from .kernels import dialect_of
from .weights import native_bytes

KV_VALUE_BYTES = {"fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0}
"""Bytes of a cached value that stands alone; others stand in blocks, whose scales count."""

CHAT_PROMPT_TOKENS = 256
"""Of a short chat, where only a load is described."""

USUAL_CONTEXT = 4096
"""Tokens that a cache has room for where neither user nor engine says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What memory depends on, of one replica, beside the requests at once: a key for caches."""

    tables: Tables
    architecture: Architecture
    quant: str
    dialect: str
    """Whose names of formats the engine uses."""
    behaviour: ServingMemory
    native: float
    context: int
    prompt: int
    value: float
    """Bytes of a cached value."""
    fused: bool
    tp: int
    expert_ranks: int
    """Ranks that share the routed experts."""
    expert_tp: int
    """Of these, as many share the width of one expert; the others share the experts."""
    pp: int
    memories: tuple[float, ...] = ()
    """Of unequal devices the memory of each, by which layers are dealt out; of others nothing."""
    host_layers: int
    host_experts: int
    """The first so many layers keep their routed experts on the host."""
    streamed: bool
    """Weights stay on the host and pass through the device layer by layer."""
    one_pool: bool
    """Host and device draw on the same memory."""
    stored: StoredWeights | None
    pool: ServingPool | None
    """How a server sizes its pool, in the release that runs; None: the engine has none on this device."""
    pass_tokens: int
    """Tokens of the widest pass; 0: as many as the prompt has."""
    pass_sequences: int
    """Requests that a server may run at once."""

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, each.name) for each in fields(self)))

    def __hash__(self) -> int:
        return self._hash


def shares_memory(scenario: Scenario) -> bool:
    """Whether host and device draw on one pool."""
    return draws_on_host(scenario.device)


def spills(scenario: Scenario) -> bool:
    """Whether layers or experts lie on the host that nobody asked to lie there."""
    layers = scenario.gpu_layers is not None and not scenario.was_given("gpu_layers")
    return layers or scenario.places_experts


def draws_on_host(device: Device) -> bool:
    """Whether a device has no memory of its own: CPUs, unified memory (Metal limits the device's part alone)."""
    return device.backend == "cpu" or (device.is_unified and device.backend != "metal")


def cached_value_bytes(scenario: Scenario) -> float:
    """Bytes of a cached value, its part of a block's scale included."""
    alone = KV_VALUE_BYTES.get(scenario.kv_dtype)
    return scenario.tables.quantization.encodings[scenario.kv_dtype].bits / 8 if alone is None else alone


def streams_weights(scenario: Scenario) -> bool:
    """Whether the layers' weights stay on a host with memory of its own and pass through the device."""
    return scenario.offload == "all" and not shares_memory(scenario)


def replicas(scenario: Scenario) -> int:
    """How many copies of the model serve side by side: devices / (tp pp cp), at least 1."""
    return _copies(scenario, scenario.pools[1])


def peers(scenario: Scenario) -> int:
    """Copies of the model that share one set of routed experts (data-parallel attention); 1: each has its own."""
    if scenario.model.architecture.experts is None:
        return 1
    return max(1, scenario.ep * scenario.expert_tp // (scenario.tp * scenario.cp))


def writers(scenario: Scenario) -> int:
    """Copies of the model that have a sequence to work on."""
    return min(replicas(scenario), scenario.concurrency)


def readers(scenario: Scenario) -> int:
    """Copies of the model that have a prompt to read."""
    return min(_copies(scenario, scenario.pools[0]), scenario.concurrency)


def _copies(scenario: Scenario, devices: int) -> int:
    return max(1, devices // (scenario.tp * scenario.pp * scenario.cp))


def sequences_of(scenario: Scenario) -> int:
    """Requests at once on the replica that has most."""
    return -(-scenario.concurrency // replicas(scenario))


def serving_of(scenario: Scenario) -> Serving:
    """Reduce a scenario to what its memory depends on."""
    return _serving_of(scenario, scenario.max_num_seqs)


@cached_across_batches
def _serving_of(scenario: Scenario, most: int | None) -> Serving:
    layers, one_pool = scenario.model.architecture.layers, shares_memory(scenario)
    kept = layers if scenario.gpu_layers is None or one_pool else min(scenario.gpu_layers, layers)
    return Serving(
        tables=scenario.tables,
        architecture=scenario.model.architecture,
        quant=scenario.quant,
        dialect=dialect_of(scenario),
        behaviour=scenario.engine_record.serving.memory,
        native=native_bytes(scenario.precision),
        context=_context(scenario),
        prompt=1 if scenario.model.architecture.source else min(scenario.prompt, _context(scenario)),
        value=cached_value_bytes(scenario),
        fused=scenario.attention == "flash",
        tp=scenario.tp,
        expert_ranks=scenario.ep * scenario.expert_tp,
        expert_tp=scenario.expert_tp,
        pp=scenario.pp,
        memories=scenario.device.split if isinstance(scenario.device, Joined) else (),
        host_layers=layers - kept,
        host_experts=scenario.n_cpu_moe or 0,
        streamed=streams_weights(scenario),
        one_pool=one_pool,
        stored=scenario.stored,
        pool=pool_of(scenario),
        pass_tokens=widest_pass_tokens(scenario) or 0,
        pass_sequences=most or 0,
    )


def widest_pass_tokens(scenario: Scenario) -> int | None:
    """Tokens that the engine takes through the layers at once at most; None: the whole prompt."""
    said = scenario.max_num_batched_tokens or scenario.ubatch
    return said or scenario.engine_record.serving.memory.pass_tokens


def answer_tokens(scenario: Scenario) -> int:
    """Tokens of an answer, which ends where the context does."""
    before = scenario.prompt if scenario.model.architecture.source is None else 0
    return min(scenario.output or 0, (scenario.context or 1) - before)


def prompt_of(scenario: Scenario) -> int:
    """Tokens of the prompt that a request comes with: as said, else that of a short chat as far as there is room."""
    room = max(1, (scenario.context or CHAT_PROMPT_TOKENS + 1) - answer_tokens(scenario))
    return scenario.prompt or min(CHAT_PROMPT_TOKENS, room)


def longest_request(scenario: Scenario) -> int:
    """Tokens of the longest request that a server is told to take; a length on average is no limit."""
    context, model = _context(scenario), scenario.model
    if not model.architecture.writes or scenario.origins.get("context") != "derived":
        return context
    return min(model.context, max(USUAL_CONTEXT, context))


def pool_of(scenario: Scenario) -> ServingPool | None:
    """How the server sizes its pool in its release; None where the engine has none here, or nothing is cached."""
    architecture = scenario.model.architecture
    if scenario.gpu_memory_utilization is None or not architecture.writes or architecture.source:
        return None
    pool = scenario.engine_record.serving.memory.pool
    return None if pool is None else pool.of(scenario.engine_version, scenario.device.backend)


def graphed_tokens(scenario: Scenario) -> int:
    """Tokens of a pass over prompts up to which the server runs pieces of it from graphs; 0: in no pass."""
    pool = None if scenario.enforce_eager else pool_of(scenario)
    if pool is None:
        return 0
    model = scenario.model
    bare = not (scenario.drafted or scenario.pp > 1 or peers(scenario) > 1 or model.architecture.tower_parameters)
    bare = bare and not (
        architecture_sums(model.architecture).picking_blocks or model.architecture.compressed_attention
    )
    return pool.prompt_graphs if bare or not pool.plain_graphs else 0


def _context(scenario: Scenario) -> int:
    return scenario.context or max(scenario.prompt, 1)
