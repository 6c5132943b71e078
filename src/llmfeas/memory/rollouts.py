"""What writing answers for a training takes of the devices: a server on the same ones, or the model's own cache."""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..contract import Note
from ..record import replace
from ..scenario import Scenario
from ..workload.cache import kv_cache_bytes
from ..workload.parameters import parameters
from .serving_room import graph_bytes
from .training import TensorMemory

WRITER = "vllm"
"""The server that writes answers beside a training (trl 1.16)."""
SERVED_BYTES = 2.0
"""Of a weight that answers are written with: 16 bits, whatever the training computes in."""
ROOM_FOR_WEIGHTS = 0.8
"""Of the server's share at most; the rest is cache."""
SHARE_BESIDE = 0.9
"""Of a device that does nothing but write answers (trl 1.16, trl vllm-serve)."""


AT_REST = ("weights_bytes", "optimizer_bytes")
"""Components that a training holds between two steps."""


def writes_itself(scenario: Scenario) -> bool:
    """Whether the model that trains writes the answers, without a server."""
    return scenario.rollout_engine == "transformers"


def colocated_bytes(scenario: Scenario) -> float:
    """What the server that writes answers takes of each device while the model trains."""
    serves = scenario.colocate == "true" and not writes_itself(scenario)
    return (scenario.gpu_memory_utilization or 0.0) * scenario.memory_bytes if serves else 0.0


def least_share(model: Architecture, memory_bytes: float, devices: int, usual: float) -> float | None:
    """The share of each device in which a server has room for weights and a cache: the usual one if that is enough,
    else the least tenth; None where all of the device is too little."""
    needed = served_bytes(model) / (1 << (devices.bit_length() - 1)) / ROOM_FOR_WEIGHTS
    shares = (usual, *(tenth / 10 for tenth in range(1, 10) if tenth / 10 > usual))
    return next((share for share in shares if needed <= share * memory_bytes), None)


def rollout_tp(scenario: Scenario) -> int:
    """Devices over which the server divides its weights: the fewest, in powers of two, that leave room for a cache."""
    if writes_itself(scenario):
        return scenario.tp
    share = colocated_bytes(scenario) or scenario.memory_bytes
    devices = 1
    while _weights(scenario) / devices > ROOM_FOR_WEIGHTS * share and 2 * devices <= scenario.num_devices:
        devices *= 2
    return devices


def answers_at_once(scenario: Scenario) -> int:
    """Answers, with their prompts, for which all devices together have room in their caches; 1 at least each server."""
    if writes_itself(scenario):
        return scenario.micro_steps * scenario.sequences * scenario.dp
    tp = rollout_tp(scenario)
    share = colocated_bytes(scenario) or SHARE_BESIDE * scenario.memory_bytes
    each = kv_cache_bytes(scenario.model.architecture, scenario.seq_len)
    servers = max(1, scenario.num_devices // tp)
    return servers * max(1, int((tp * share - _weights(scenario)) / each))


def served_bytes(model: Architecture) -> float:
    """Bytes of the weights that a server writes answers with."""
    return SERVED_BYTES * parameters(model).total


def _weights(scenario: Scenario) -> float:
    return served_bytes(scenario.model.architecture)


def sleeps(scenario: Scenario) -> bool:
    """Whether the server holds nothing while weights train (vLLM's sleep mode: weights and cache go)."""
    return scenario.sleep == "true" and colocated_bytes(scenario) > 0


def while_writing(scenario: Scenario, tensors: TensorMemory) -> TensorMemory:
    """What the training holds while answers are written: weights and the states of their optimizer, or nothing where
    its engine takes them to the host until then.
    """
    stays = () if scenario.engine_record.training.yields else AT_REST
    held = {name: size if name in stays else 0.0 for name, size in tensors.components.items()}
    return replace(tensors, bytes=sum(held.values()), components=held, moment="decode", runner_up=tensors.moment)


def fullest(
    scenario: Scenario, tensors: TensorMemory, server: dict[str, float]
) -> tuple[TensorMemory, dict[str, float]]:
    """The fuller of both moments where the server sleeps between, or where there is none and the model writes itself:
    tensors of the training, and those of the writing.
    """
    if writes_itself(scenario):
        server, asleep = {"kv_cache_bytes": _own_cache(scenario), **_gathered(scenario, tensors)}, {}
    elif sleeps(scenario):
        asleep = {"workspace_bytes": _graphs(scenario)}
    else:
        return tensors, server
    writing = while_writing(scenario, tensors)
    fuller = writing.bytes + sum(server.values()) > tensors.bytes + sum(asleep.values())
    return (writing, server) if fuller else (tensors, asleep)


def _gathered(scenario: Scenario, tensors: TensorMemory) -> dict[str, float]:
    """Bytes of the other ranks' shards, which each one gathers to write with (trl 1.16, ds3_gather_for_generation)."""
    others = scenario.shards - 1 if scenario.zero >= 3 else 0
    return {"weights_bytes": others * tensors.components["weights_bytes"]} if others else {}


def _own_cache(scenario: Scenario) -> float:
    """Bytes of the cache of a model that writes all answers of a step at once (trl 1.16: one call of generate)."""
    answers = scenario.micro_steps * scenario.sequences
    return kv_cache_bytes(scenario.model.architecture, scenario.seq_len, answers) / (scenario.tp * scenario.pp)


def _graphs(scenario: Scenario) -> float:
    """Bytes of captured graphs, which a server that sleeps keeps (vLLM: their pool is none of those that it unmaps)."""
    tp = rollout_tp(scenario)
    together = scenario.micro_steps * scenario.sequences * scenario.dp * tp // scenario.num_devices
    serving = replace(scenario, task="inference", loss=None, adapters=None, engine=WRITER, tp=tp, pp=1)
    return graph_bytes(replace(serving, max_num_seqs=max(1, together)))


def beside_training(scenario: Scenario) -> dict[str, float]:
    """Bytes by component of the server's share of each device, its weights first; none where it runs elsewhere."""
    share = colocated_bytes(scenario)
    if not share:
        return {}
    weights = _weights(scenario) / rollout_tp(scenario)
    return {"weights_bytes": weights, "kv_cache_bytes": max(0.0, share - weights)}


def writer_refuses(scenario: Scenario) -> Note | None:
    """Say when the server that writes answers does not start: its share has no room for weights and a cache."""
    share = colocated_bytes(scenario)
    if not share or _weights(scenario) / rollout_tp(scenario) <= ROOM_FOR_WEIGHTS * share:
        return None
    least = least_share(scenario.model.architecture, scenario.memory_bytes, scenario.num_devices, 0.0)
    more = f"it needs {least:g}" if least else "--colocate false writes on devices of its own"
    text = (
        f"the server that writes answers has no room for weights and a cache in"
        f" --gpu-memory-utilization {scenario.gpu_memory_utilization:g}: {more}"
    )
    return Note("rollout-share", text)
