"""This machine as devices of the catalog: what its tools and its system say, asked at the same time."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from ..catalog.search import Hardware
from ..errors import UsageError
from ..record import dataclass
from .adapters import intel_by_kernel, nvidia_by_kernel, windows_adapters
from .amd import amd_devices
from .apple import apple_devices
from .cpu import cpu_devices
from .intel import gaudi_devices, intel_devices
from .match import DetectedDevice, DetectedMachine, Matched, detected, device_of, entry_of, matched
from .nvidia import nvidia_devices
from .probe import Found, together
from .tpu import tpu_devices

if TYPE_CHECKING:
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

    @property
    def devices(self) -> tuple[Found, ...]:
        """Everything that could run a model, accelerators first."""
        return (*self.accelerators, *((self.processor,) if self.processor else ()))


@cache
def this_machine() -> Machine:
    """Ask every tool and the system at the same time; once, in at most two and a half seconds."""
    probes = [
        nvidia_devices,
        amd_devices,
        lambda: tpu_devices(os.environ),
        gaudi_devices,
        intel_devices,
        apple_devices,
        cpu_devices,
    ]
    answers = [answer or [] for answer in together(probes)]
    accelerators = [probed for answer in answers[:-1] for probed in answer]
    return Machine((*accelerators, *_by_system(accelerators)), answers[-1][0] if answers[-1] else None)


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
    for match in matches:
        device = device_of(match, catalog)
        if device is not None:
            others = tuple(other.entry.id for other in matches if other is not match and other.entry is not None)
            return Hardware(device, match.found.count, None, _note(match, matches), others)
    names = ", ".join(probed.name for probed in here.devices) or "nothing"
    raise UsageError(
        "unknown-this-device",
        f"the catalog has none of the devices of this machine ({names}).",
        "Write 'llmfeas detect --yaml' to a file, fill in what is null, and give it with --catalog FILE.",
    )


def _note(match: Matched, matches: list[Matched]) -> str:
    passed = [other.found.name for other in matches[: matches.index(match)]]
    entry = match.entry.id if match.entry is not None else f"a processor of generation {match.found.generation}"
    note = f"this machine: {match.found.name}, taken as {entry}"
    if match.differences:
        unlike = ", ".join(f"{each.field} {each.here} (catalog {each.catalog})" for each in match.differences)
        note += f"; different: {unlike}"
    return note + (f"; not in the catalog: {', '.join(passed)}" if passed else "")
