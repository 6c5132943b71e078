"""What no recipe can go below, from counts alone: spares a search the walk of hopeless combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..catalog.device import FULL_PRECISION, NARROW, Device
from ..catalog.store import Catalog
from ..memory.floor import FROZEN_BYTES, SAFE, Each, frozen_bytes, pure_bytes, scheme_bytes
from ..memory.serving_room import seen_bytes
from ..memory.usable import usable_part
from ..objectives import method_of
from ..options import TRAINING
from ..scenario import Scenario
from ..settle.hardware import default_host_bytes, default_memory_bytes
from ..timing.rates import peak_flop_per_s
from ..timing.training import least_job_seconds
from ..units import parse_bytes
from ..workload.parameters import block_parameters, parameters
from .purchase import SECONDS_PER_HOUR, hourly_usd
from .verdict import IMPRACTICAL_SECONDS

WITH_GRADIENTS = 0.95
"""Share of that floor of the layers that gets gradients at least: relative positions get none."""

FEW_BITS = 5.0
"""Bits of a weight below which layers may be left on the host without a word."""

COUNTED = ("examples", "example_tokens", "epochs", "seq_len", "data_size", "bytes_per_token")
"""What the tokens of a training on examples depend on."""

STORED = 0.95
"""In inference the floor stays so much lower, for what a format stores otherwise."""


def memory_lower_bound(settings: Mapping[str, object], requested: Scenario) -> float:
    """A floor for the memory of one device, bytes: what the layers need at least, divided over all devices.

    Embeddings and tables that are looked up are left out where they do not train, since they may lie elsewhere. 0 where
    weights may lie on the host or the format is left open.
    """
    method = _method(settings, requested)
    offload = str(settings.get("offload", requested.offload))
    states_stay = offload not in ("optimizer", "all")
    if _lies_on_host(settings, requested) or offload == "all":
        return 0.0
    if method == "inference":
        each = 0.0 if _may_lie_on_host(settings, requested) else _served_bytes(settings, requested)
    elif method in FROZEN_BYTES:
        each = _frozen_bytes(method, settings, requested) if states_stay else 0.0
    else:
        weights, gradients, states = _trained_bytes(settings, requested)
        held = weights + (states if states_stay else 0.0)
        whole = parameters(requested.model.architecture).trainable
        return (whole * held + WITH_GRADIENTS * _layers(requested) * gradients) / _count(settings, requested)
    return _layers(requested) * each / _count(settings, requested)


def host_lower_bound(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> float:
    """A floor for what offloading puts on one machine, bytes."""
    method = _method(settings, requested)
    offload = str(settings.get("offload", requested.offload))
    moved_in_part = requested.drive_gb_per_s is not None or requested.offload_layers is not None
    if offload not in ("optimizer", "all") or method not in TRAINING or moved_in_part:
        return 0.0
    if method in FROZEN_BYTES:
        each = frozen_bytes(method, _precision(settings, requested)) if offload == "all" else 0.0
    else:
        weights, gradients, states = _trained_bytes(settings, requested)
        each = gradients + states + (weights if offload == "all" else 0.0)
    return _layers(requested) * each * _together(settings, requested, catalog) / _count(settings, requested)


def machine_lower_bound(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> float:
    """A floor for what devices and host of one machine hold together where layers lie on either, bytes."""
    if not _lies_on_host(settings, requested):
        return 0.0
    held = _layers(requested) * _served_bytes(settings, requested)
    return held * _together(settings, requested, catalog) / _count(settings, requested)


def machine_upper_bound(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> float:
    """A ceiling for the same, bytes."""
    devices = _together(settings, requested, catalog) * memory_upper_bound(settings, requested, catalog)
    return devices + host_upper_bound(settings, requested, catalog)


def _method(settings: Mapping[str, object], requested: Scenario) -> str:
    """How weights change under the settings (`Scenario.method`)."""
    adapters = settings.get("adapters", requested.adapters)
    return method_of(str(settings.get("task", requested.task)), None if adapters is None else str(adapters))


def _lies_on_host(settings: Mapping[str, object], requested: Scenario) -> bool:
    """Whether layers or experts are left on the host."""
    return any(name in settings or getattr(requested, name) is not None for name in ("gpu_layers", "n_cpu_moe"))


def _count(settings: Mapping[str, object], requested: Scenario) -> int:
    return int(str(settings.get("num_devices", requested.num_devices)))


def _device(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> Device:
    name = settings.get("device", requested.device.id)
    return requested.device if name == requested.device.id else catalog.devices[str(name)]


def _together(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> int:
    """Devices of one machine."""
    device = _device(settings, requested, catalog)
    return min(
        _count(settings, requested),
        requested.devices_per_node if device is requested.device else device.devices_per_node,
    )


def _layers(requested: Scenario) -> float:
    return SAFE * sum(kind.repeat * kind.total for kind in block_parameters(requested.model.architecture))


def _served_bytes(settings: Mapping[str, object], requested: Scenario) -> float:
    quant = str(settings.get("quant", requested.quant if requested.was_given("quant") else "auto"))
    if quant == "auto" or requested.stored is not None:
        return 0.0
    return STORED * min(requested.tables.quantization.encoded_bits(quant)) / 8


def _may_lie_on_host(settings: Mapping[str, object], requested: Scenario) -> bool:
    """Whether some engine may leave layers on the host by itself, as at a desk: of few bits, or experts."""
    formats = requested.tables.quantization
    quant = str(settings.get("quant", requested.quant))
    few = formats.encoded_bits("none" if quant == "auto" else quant)[0] <= FEW_BITS
    mixture = requested.model.architecture.experts is not None
    return (few or mixture) and (
        "engine" in settings or "device" in settings or requested.engine_record.serving.partial
    )


def _precision(settings: Mapping[str, object], requested: Scenario) -> str:
    return str(settings.get("precision", requested.precision if requested.was_given("precision") else "fp32"))


def _frozen_bytes(task: str, settings: Mapping[str, object], requested: Scenario) -> float:
    """The least bytes of a frozen weight: four where the device at hand trains in fp32."""
    at_hand = requested.is_training and settings.get("device", requested.device.id) == requested.device.id
    known = at_hand or requested.was_given("precision")
    precision = settings.get("precision", requested.precision if known else "auto")
    if task == "lora" and precision in FULL_PRECISION:
        return 4.0
    return frozen_bytes(task, _precision(settings, requested))


def _trained_bytes(settings: Mapping[str, object], requested: Scenario) -> Each:
    """The least bytes of weight, gradient and states of a trained parameter."""
    precision = _precision(settings, requested)
    optimizer = str(settings.get("optimizer", requested.optimizer))
    if precision in ("bf16", "fp16", "auto"):
        return pure_bytes(2.0, optimizer)
    engines = (requested.tables.plain, requested.tables.engine(str(settings.get("engine", requested.engine))))
    return min((scheme_bytes(engine.training.scheme, optimizer) for engine in engines), key=sum)


def time_lower_bound(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> float:
    """A floor for the whole job, seconds: the products of the weights at the peak of all devices.

    0 where the tokens are left open.
    """
    task = str(settings.get("task", requested.task))
    if task not in TRAINING or (task != requested.task and "tokens" not in settings):
        return 0.0
    if (requested.examples or requested.text_bytes) and not settings.keys().isdisjoint(COUNTED):
        return 0.0
    tokens = float(str(settings.get("tokens", requested.tokens or 0.0)))
    weights = parameters(requested.model.architecture).active_without_input_embedding
    device = _device(settings, requested, catalog)
    precision = str(settings.get("precision", requested.precision if requested.was_given("precision") else "auto"))
    peak = max(device.peak16_flop_per_s, device.fp32_flop_per_s)
    if precision in NARROW:
        peak = max(peak, peak_flop_per_s(device, precision))
    each = 4.0 if _method(settings, requested) in FROZEN_BYTES else 6.0
    return tokens * weights * each / (peak * _count(settings, requested))


def cost_lower_bound(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> float:
    """A floor for the cost of the whole job, USD: the rent or wear of all devices for the floor of its time.

    0 where another device, whose price is another one, is tried, or no price is known.
    """
    if "device" in settings:
        return 0.0
    seconds = time_lower_bound(settings, requested, catalog)
    return least_usd(requested, seconds) * _count(settings, requested) / requested.num_devices


def least_usd(scenario: Scenario, seconds: float) -> float:
    """The rent or wear of all devices of a scenario for so many seconds, USD; 0 where no price is known."""
    return (hourly_usd(scenario) or 0.0) * scenario.num_devices * seconds / SECONDS_PER_HOUR


def _memory(settings: Mapping[str, object], requested: Scenario, device: Device) -> float:
    if settings.get("memory", "auto") != "auto":
        return parse_bytes(str(settings["memory"]), "--memory")
    return requested.memory_bytes if device is requested.device else default_memory_bytes(device)


def memory_upper_bound(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> float:
    """A ceiling for the tensors of one device, bytes: what is usable with these settings, less the context."""
    device = _device(settings, requested, catalog)
    runtime, memory = requested.tables.runtime, _memory(settings, requested, device)
    # a server takes its share of all that it sees
    usable = max(usable_part(runtime, device, memory), seen_bytes(runtime, device, memory))
    said = settings.get("wired_limit", requested.wired_limit_bytes if requested.was_given("wired_limit") else "auto")
    if device.backend == "metal" and said != "auto":
        usable = max(usable, said if isinstance(said, float) else parse_bytes(str(said), "--wired-limit"))
    return usable - runtime.contexts[device.backend]


def host_upper_bound(settings: Mapping[str, object], requested: Scenario, catalog: Catalog) -> float:
    """What the host of the devices that are tried has, bytes."""
    said = settings.get("host_memory", "auto")
    if said != "auto":
        return parse_bytes(str(said), "--host-memory")
    device = _device(settings, requested, catalog)
    if requested.was_given("host_memory") or (device is requested.device and requested.offer is not None):
        return requested.host_memory_bytes
    return default_host_bytes(device, _memory(settings, requested, device), _together(settings, requested, catalog))


def time_limit_seconds(requested: Scenario) -> float:
    """How long the whole job may take."""
    return requested.deadline_seconds or IMPRACTICAL_SECONDS


def least_miss(scenario: Scenario) -> float:
    """How far a job is beyond its deadline or budget at least, in any layout; 0 for what is served."""
    if not scenario.is_training:
        return 0.0
    seconds = least_job_seconds(scenario)
    cost = least_usd(scenario, seconds) / (scenario.budget_usd or math.inf)
    return max(seconds / time_limit_seconds(scenario), cost)
