"""This machine as devices of the catalog: what its tools and its system say, asked at the same time."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from ..catalog.hardware import Hardware
from ..errors import UsageError
from ..record import dataclass, replace
from ..units import GIB
from .amd import amd_devices
from .apple import apple_devices
from .cards import intel_by_kernel, nvidia_by_kernel, windows_adapters
from .cpu import cpu_devices
from .entry import DetectedDevice, DetectedMachine, detected, device_of, entry_of
from .huawei import ascend_devices
from .intel import gaudi_devices, intel_devices
from .match import Matched, matched, named_by
from .nvidia import nvidia_devices
from .probe import Found, together
from .tpu import tpu_devices

if TYPE_CHECKING:
    from ..catalog.device import Device
    from ..catalog.store import Catalog

__all__ = [
    "DetectedDevice",
    "DetectedMachine",
    "Found",
    "Machine",
    "Matched",
    "detected",
    "device_of",
    "entry_of",
    "matched",
    "this_hardware",
    "this_machine",
]


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine has: accelerators (the most capable kind first), and its processor with the main memory."""

    accelerators: tuple[Found, ...]
    processor: Found | None
    trouble: tuple[str, ...] = ()
    """What tools that are there failed with."""

    @property
    def devices(self) -> tuple[Found, ...]:
        """Everything that could run a model, accelerators first."""
        return (*self.accelerators, *((self.processor,) if self.processor else ()))


@cache
def this_machine() -> Machine:
    """Ask every tool and the system at the same time; once, in at most two and a half seconds."""
    trouble: list[str] = []
    environment = os.environ
    rocm = environment.get("HIP_VISIBLE_DEVICES", environment.get("ROCR_VISIBLE_DEVICES"))
    probes = [
        lambda: nvidia_devices(trouble, environment.get("CUDA_VISIBLE_DEVICES")),
        lambda: amd_devices(trouble, rocm),
        lambda: tpu_devices(environment),
        lambda: gaudi_devices(trouble),
        lambda: intel_devices(trouble),
        lambda: ascend_devices(trouble, environment.get("ASCEND_RT_VISIBLE_DEVICES")),
        apple_devices,
        cpu_devices,
    ]
    answers = [answer or [] for answer in together(probes)]
    accelerators = [probed for answer in answers[:-1] for probed in answer]
    chosen = {"nvidia": environment.get("CUDA_VISIBLE_DEVICES"), "amd": rocm}
    by_system = [probed for probed in _by_system(accelerators) if chosen.get(probed.vendor) is None]
    processor = answers[-1][0] if answers[-1] else None
    named = [named_by(each, processor) for each in (*accelerators, *by_system)]
    return Machine(tuple(named), processor, tuple(dict.fromkeys(trouble)))


def _by_system(answered: list[Found]) -> list[Found]:
    """The adapters of those vendors whose tools said nothing, as the system lists them."""
    spoken = {probed.vendor for probed in answered}
    listed = [*nvidia_by_kernel(), *intel_by_kernel(), *windows_adapters()]
    return [probed for probed in listed if probed.vendor not in spoken]


def this_hardware(catalog: Catalog, machine: Machine | None = None) -> Hardware:
    """This machine for `--device this`: its first accelerator that the catalog knows, else its processor.

    The count is how many of it are here; the note says what was taken and how it differs from the catalog.

    Raises:
        UsageError: `unknown-this-device`, where the catalog knows nothing of what is here.
    """
    here = this_machine() if machine is None else machine
    matches = [matched(probed, catalog) for probed in here.devices]
    known = [(match, device) for match in matches if (device := device_of(match, catalog)) is not None]
    cards = [pair for pair in known if pair[0].found.backend != "cpu"]
    if here.trouble and not cards:
        raise UsageError(
            "silent-device",
            f"{here.trouble[0]}, so that this machine's accelerators are not known",
            "Mend the driver, or name a device with --device: an accelerator, or 'cpu' for a processor.",
        )
    if not known:
        names = ", ".join(probed.name for probed in here.devices) or "nothing"
        raise UsageError(
            "unknown-this-device",
            f"the catalog has none of the devices of this machine ({names}).",
            "Write 'llmfeas detect --yaml' to a file, fill in what is null, and give it with --catalog FILE.",
        )
    match, device = max(cards, key=lambda pair: pair[0].found.count * pair[1].memory_gib) if cards else known[0]
    others = tuple(other.entry.id for other in matches if other is not match and other.entry is not None)
    host = None if here.processor is None else here.processor.memory_bytes
    device = _with_host(device, match.found.memory_bytes, host)
    said, board = match.found.power_w, device.power_w
    return Hardware(
        device,
        match.found.count,
        None,
        _note(match, matches, device),
        others,
        host_memory_bytes=host,
        power_limit_w=said if said is not None and board is not None and said < board else None,
    )


def _with_host(device: Device, own: int | None, host: int | None) -> Device:
    """Graphics that share the main memory have what is set apart for them and what the system has, together."""
    if device.kind not in ("apu", "edge") or own is None or host is None or not device.memory_options_gib:
        return device
    size = max(own, host) if device.kind == "edge" else own + host
    fitting = [option for option in sorted(device.memory_options_gib) if option * GIB >= 0.93 * size]
    gib = min(fitting, default=size / GIB)
    return replace(device, memory_gib=gib, memory_reported_mib=None, memory_options_gib=(gib,))


def _note(match: Matched, matches: list[Matched], device: Device) -> str:
    """What was taken, how it differs, and what else is here that was not."""
    rest = [other for other in matches if other is not match and other.found.backend != "cpu"]
    entry = match.entry.id if match.entry is not None else device.notes
    note = f"this machine: {match.found.name}, taken as {entry}"
    if match.alike:
        note += f" (its name may also mean {', '.join(match.alike)}: give --device where it is one of them)"
    if match.differences:
        unlike = ", ".join(f"{each.field} {each.here} (catalog {each.catalog})" for each in match.differences)
        note += f"; different: {unlike}"
    if match.found.limits:
        note += f"; {', '.join(match.found.limits)}"
    unused = [f"{other.found.count} x {other.found.name}" for other in rest if other.entry is not None]
    strange = [other.found.name for other in rest if other.entry is None]
    note += f"; also here, not counted: {', '.join(unused)}" if unused else ""
    return note + (f"; not in the catalog: {', '.join(strange)}" if strange else "")
