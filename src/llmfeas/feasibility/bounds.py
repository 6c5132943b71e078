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
from ..record import dataclass
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """Floors and ceilings of what was requested, with some settings changed."""

    settings: Mapping[str, object]
    requested: Scenario
    catalog: Catalog | None = None
    """Needed where the settings may name a device, but for `least_device_bytes`, which is the same on any."""

    @property
    def least_device_bytes(self) -> float:
        """A floor for the memory of one device: what the layers need at least, divided over all devices.

        Embeddings and tables that are looked up are left out where they do not train, since they may lie elsewhere. 0
        where weights may lie on the host or the format is left open.
        """
        method = self._method
        states_stay = self._offload not in ("optimizer", "all")
        if self._lies_on_host or self._offload == "all":
            return 0.0
        if method == "inference":
            each = 0.0 if self._may_lie_on_host else self._served_bytes
        elif method in FROZEN_BYTES:
            each = self._frozen_bytes if states_stay else 0.0
        else:
            weights, gradients, states = self._trained_bytes
            held = weights + (states if states_stay else 0.0)
            whole = parameters(self.requested.model.architecture).trainable
            return (whole * held + WITH_GRADIENTS * self._layers * gradients) / self._count
        return self._layers * each / self._count

    @property
    def least_host_bytes(self) -> float:
        """A floor for what offloading puts on one machine."""
        method, requested = self._method, self.requested
        moved_in_part = requested.drive_gb_per_s is not None or requested.offload_layers is not None
        if self._offload not in ("optimizer", "all") or method not in TRAINING or moved_in_part:
            return 0.0
        if method in FROZEN_BYTES:
            each = frozen_bytes(method, self._said("precision", "fp32")) if self._offload == "all" else 0.0
        else:
            weights, gradients, states = self._trained_bytes
            each = gradients + states + (weights if self._offload == "all" else 0.0)
        return self._layers * each * self._together / self._count

    @property
    def least_machine_bytes(self) -> float:
        """A floor for what devices and host of one machine hold together where layers lie on either."""
        if not self._lies_on_host:
            return 0.0
        return self._layers * self._served_bytes * self._together / self._count

    @property
    def least_seconds(self) -> float:
        """A floor for the whole job: the products of the weights at the peak of all devices; 0 where the tokens are
        left open.
        """
        settings, requested = self.settings, self.requested
        task = str(self._get("task"))
        if task not in TRAINING or (task != requested.task and "tokens" not in settings):
            return 0.0
        if (requested.examples or requested.text_bytes) and not settings.keys().isdisjoint(COUNTED):
            return 0.0
        tokens = float(str(settings.get("tokens", requested.tokens or 0.0)))
        weights = parameters(requested.model.architecture).active_without_input_embedding
        device, precision = self._device, self._said("precision", "auto")
        peak = max(device.peak16_flop_per_s, device.fp32_flop_per_s)
        if precision in NARROW:
            peak = max(peak, peak_flop_per_s(device, precision))
        each = 4.0 if self._method in FROZEN_BYTES else 6.0
        return tokens * weights * each / (peak * self._count)

    @property
    def least_usd(self) -> float:
        """A floor for the cost of the whole job: the rent or wear of all devices for the floor of its time.

        0 where another device, whose price is another one, is tried, or no price is known.
        """
        if "device" in self.settings:
            return 0.0
        return least_usd(self.requested, self.least_seconds) * self._count / self.requested.num_devices

    @property
    def most_device_bytes(self) -> float:
        """A ceiling for the tensors of one device: what is usable with these settings, less the context."""
        requested, device, memory = self.requested, self._device, self._memory
        runtime = requested.tables.runtime
        # a server takes its share of all that it sees
        usable = max(usable_part(runtime, device, memory), seen_bytes(runtime, device, memory))
        known = requested.wired_limit_bytes if requested.was_given("wired_limit") else "auto"
        said = self.settings.get("wired_limit", known)
        if device.backend == "metal" and said != "auto":
            usable = max(usable, said if isinstance(said, float) else parse_bytes(str(said), "--wired-limit"))
        return usable - runtime.contexts[device.backend]

    @property
    def most_host_bytes(self) -> float:
        """What the host of the devices that are tried has."""
        said, requested = self.settings.get("host_memory", "auto"), self.requested
        if said != "auto":
            return parse_bytes(str(said), "--host-memory")
        device = self._device
        if requested.was_given("host_memory") or (device is requested.device and requested.offer is not None):
            return requested.host_memory_bytes
        return default_host_bytes(device, self._memory, self._together)

    @property
    def most_machine_bytes(self) -> float:
        """A ceiling for what devices and host of one machine hold together."""
        return self._together * self.most_device_bytes + self.most_host_bytes

    def _get(self, name: str) -> object:
        """A setting as it is tried, else as it was requested."""
        return self.settings.get(name, getattr(self.requested, name))

    @property
    def _method(self) -> str:
        """How weights change (`Scenario.method`)."""
        adapters = self._get("adapters")
        return method_of(str(self._get("task")), None if adapters is None else str(adapters))

    @property
    def _offload(self) -> str:
        return str(self._get("offload"))

    @property
    def _count(self) -> int:
        return int(str(self._get("num_devices")))

    @property
    def _device(self) -> Device:
        name = self.settings.get("device", self.requested.device.id)
        if name == self.requested.device.id:
            return self.requested.device
        assert self.catalog is not None
        return self.catalog.devices[str(name)]

    @property
    def _together(self) -> int:
        """Devices of one machine."""
        same = self._device is self.requested.device
        return min(self._count, self.requested.devices_per_node if same else self._device.devices_per_node)

    @property
    def _memory(self) -> float:
        """Memory of one device, bytes."""
        device = self._device
        if self.settings.get("memory", "auto") != "auto":
            return parse_bytes(str(self.settings["memory"]), "--memory")
        return self.requested.memory_bytes if device is self.requested.device else default_memory_bytes(device)

    @property
    def _layers(self) -> float:
        """A floor for the weights of all layers."""
        return SAFE * sum(kind.repeat * kind.total for kind in block_parameters(self.requested.model.architecture))

    @property
    def _lies_on_host(self) -> bool:
        """Whether layers or experts are left on the host."""
        named = ("gpu_layers", "n_cpu_moe")
        return any(name in self.settings or getattr(self.requested, name) is not None for name in named)

    @property
    def _may_lie_on_host(self) -> bool:
        """Whether some engine may leave layers on the host by itself, as at a desk: of few bits, or experts."""
        settings, requested = self.settings, self.requested
        quant = str(self._get("quant"))
        few = requested.tables.quantization.encoded_bits("none" if quant == "auto" else quant)[0] <= FEW_BITS
        mixture = requested.model.architecture.experts is not None
        partial = "engine" in settings or "device" in settings or requested.engine_record.serving.partial
        return (few or mixture) and partial

    def _said(self, name: str, unsaid: str) -> str:
        """A setting as it is tried, else as the user gave it."""
        known = getattr(self.requested, name) if self.requested.was_given(name) else unsaid
        return str(self.settings.get(name, known))

    @property
    def _served_bytes(self) -> float:
        """The least bytes of a weight that is served."""
        quant = self._said("quant", "auto")
        if quant == "auto" or self.requested.stored is not None:
            return 0.0
        return STORED * min(self.requested.tables.quantization.encoded_bits(quant)) / 8

    @property
    def _frozen_bytes(self) -> float:
        """The least bytes of a frozen weight: four where the device at hand trains in fp32."""
        requested, method = self.requested, self._method
        at_hand = self.settings.get("device", requested.device.id) == requested.device.id
        precision = (
            str(self._get("precision")) if at_hand and requested.is_training else self._said("precision", "auto")
        )
        if method == "lora" and precision in FULL_PRECISION:
            return 4.0
        return frozen_bytes(method, self._said("precision", "fp32"))

    @property
    def _trained_bytes(self) -> Each:
        """The least bytes of weight, gradient and states of a trained parameter."""
        precision, optimizer = self._said("precision", "fp32"), str(self._get("optimizer"))
        if precision in ("bf16", "fp16", "auto"):
            return pure_bytes(2.0, optimizer)
        tables = self.requested.tables
        engines = (tables.plain, tables.engine(str(self._get("engine"))))
        return min((scheme_bytes(engine.training.scheme, optimizer) for engine in engines), key=sum)


def least_usd(scenario: Scenario, seconds: float) -> float:
    """The rent or wear of all devices of a scenario for so many seconds, USD; 0 where no price is known."""
    return (hourly_usd(scenario) or 0.0) * scenario.num_devices * seconds / SECONDS_PER_HOUR


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
