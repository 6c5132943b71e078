"""What no recipe can go below, from counts alone: spares a search the walk of hopeless combinations."""

from __future__ import annotations

from collections.abc import Mapping

from ..catalog.runtime import runtime
from ..catalog.store import Catalog
from ..estimate.floor import FROZEN_BYTES, SAFE, Each, frozen_bytes, pure_bytes, scheme_bytes
from ..estimate.parameters import block_parameters
from ..estimate.resolve.hardware import default_memory_bytes
from ..estimate.training_layout import SCHEMES
from ..estimate.usable_memory import usable_part
from ..scenario import TRAINING_TASKS, Scenario
from ..units import parse_bytes
from .serving_changes import encoded_bits

STORED = 0.95
"""In inference the floor stays so much lower, for what a format stores otherwise."""


def least_bytes(settings: Mapping[str, object], asked: Scenario) -> float:
    """Give a floor for the memory of one device, bytes: what the layers need at least, divided over all devices.

    Embeddings and tables that are looked up are left out, since they may lie elsewhere. 0 where weights may lie on the
    host or the format is left open.
    """
    task = str(settings.get("task", asked.task))
    offload = str(settings.get("offload", asked.offload))
    states_stay = offload not in ("optimizer", "all")
    if "gpu_layers" in settings or asked.gpu_layers is not None or offload == "all":
        return 0.0
    if task == "inference":
        each = _served_bytes(settings, asked)
    elif task in FROZEN_BYTES:
        each = frozen_bytes(task, _precision(settings, asked)) if states_stay else 0.0
    else:
        weights, gradients, states = _trained_bytes(settings, asked)
        each = weights + gradients + (states if states_stay else 0.0)
    return _layers(asked) * each / int(str(settings.get("num_devices", asked.num_devices)))


def least_host_bytes(settings: Mapping[str, object], asked: Scenario) -> float:
    """Give a floor for what offloading puts on one machine, bytes; 0 where that depends on the device."""
    task = str(settings.get("task", asked.task))
    offload = str(settings.get("offload", asked.offload))
    other = settings.get("device", asked.device.id) != asked.device.id
    if offload not in ("optimizer", "all") or other or task not in TRAINING_TASKS:
        return 0.0
    if task in FROZEN_BYTES:
        each = frozen_bytes(task, _precision(settings, asked)) if offload == "all" else 0.0
    else:
        weights, gradients, states = _trained_bytes(settings, asked)
        each = gradients + states + (weights if offload == "all" else 0.0)
    count = int(str(settings.get("num_devices", asked.num_devices)))
    return _layers(asked) * each * min(count, asked.devices_per_node) / count


def _layers(asked: Scenario) -> float:
    return SAFE * sum(kind.repeat * kind.total for kind in block_parameters(asked.model.architecture))


def _served_bytes(settings: Mapping[str, object], asked: Scenario) -> float:
    quant = str(settings.get("quant", asked.quant))
    if quant == "auto" or asked.stored is not None:
        return 0.0
    return STORED * min(encoded_bits(quant)) / 8


def _precision(settings: Mapping[str, object], asked: Scenario) -> str:
    return str(settings.get("precision", asked.precision if asked.said("precision") else "fp32"))


def _trained_bytes(settings: Mapping[str, object], asked: Scenario) -> Each:
    """Give the least bytes of weight, gradient and states of a trained parameter."""
    precision = _precision(settings, asked)
    optimizer = str(settings.get("optimizer", asked.optimizer))
    if precision in ("bf16", "fp16", "auto"):
        return pure_bytes(2.0, optimizer)
    names = {"pytorch", str(settings.get("engine", asked.engine))}
    return min((scheme_bytes(SCHEMES[name], optimizer) for name in names if name in SCHEMES), key=sum)


def most_bytes(settings: Mapping[str, object], asked: Scenario, catalog: Catalog) -> float:
    """Give a ceiling for the tensors of one device, bytes: what is usable with these settings, less the context."""
    same = settings.get("device", asked.device.id) == asked.device.id
    device = asked.device if same else catalog.devices[str(settings["device"])]
    capacity = asked.memory_bytes if same else default_memory_bytes(device)
    if settings.get("memory", "auto") != "auto":
        capacity = parse_bytes(str(settings["memory"]), "--memory")
    return usable_part(device, capacity) - runtime().contexts[device.backend]


def most_host_bytes(settings: Mapping[str, object], asked: Scenario) -> float:
    """Give what the host of the device at hand has, bytes."""
    said = settings.get("host_memory", "auto")
    return asked.host_memory_bytes if said == "auto" else parse_bytes(str(said), "--host-memory")
