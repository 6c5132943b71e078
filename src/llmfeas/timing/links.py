"""Bandwidth between devices, per direction, in bytes/s, and the seconds that collectives take.

Inside a node the fastest link of the device, else PCIe; across nodes the network, of which every member of a node
carries its part in a ring, while an all-to-all has one network card for each device. Consumer cards have no
peer-to-peer copies and reach a small share of PCIe; bridges of consumer and workstation cards are not assumed.
Source: Narayanan 2021 (tensor and pipeline parallel traffic), Rajbhandari 2020 (ZeRO traffic).
"""

from __future__ import annotations

import math
from functools import lru_cache

from ..catalog.device import Device, Link
from ..catalog.efficiency import Efficiency
from ..record import dataclass
from ..units import GB


@dataclass(frozen=True, slots=True)
class Links:
    """What collectives reach, bytes/s a direction: inside a node, on a network card, to the host.

    `exposed` is the share of gathers that no work hides.
    """

    node_bytes_per_s: float
    pair_bytes_per_s: float
    """Between two devices, which a bridge may join."""
    network_bytes_per_s: float
    host_bytes_per_s: float
    devices_per_node: int
    call_seconds: float
    """Of a collective, whatever it moves, inside a node."""
    hop_seconds: float
    """From a device to the next in a ring, whatever is passed on: inside a node, and ..."""
    network_hop_seconds: float
    exposed: float
    fast: bool
    """A link beyond PCIe joins the devices of a node."""

    def call(self, members: int, stride: int = 1) -> float:
        """Seconds that a collective of `members`, every `stride`-th device, takes whatever it moves."""
        across = members * stride > self.devices_per_node
        return self.call_seconds + (self.network_hop_seconds if across else 0.0)

    def hops(self, members: int, stride: int = 1) -> float:
        """Seconds in which something small has passed all members of such a ring, one after the other."""
        between = min(members, math.ceil(members * stride / self.devices_per_node)) - 1
        return (members - 1 - between) * self.hop_seconds + between * self.network_hop_seconds

    def ring(self, members: int, stride: int = 1) -> float:
        """Bandwidth of a ring of `members`, every `stride`-th device, bytes/s."""
        if members * stride <= self.devices_per_node:
            return self.pair_bytes_per_s if members * stride <= 2 else self.node_bytes_per_s
        carried = self.network_bytes_per_s * max(1.0, self.devices_per_node / stride)
        return min(self.node_bytes_per_s, carried)


RINGS = ("cuda", "rocm")
"""Backends whose libraries (NCCL, RCCL) gather and scatter in one ring; a TPU's torus has one for each axis."""


def _stated(device: Device, kind: str) -> float | None:
    return max((link.gb_per_s * GB for link in device.links if link.kind == kind and link.gb_per_s), default=None)


def pcie_bytes_per_s(device: Device) -> float:
    """PCIe bandwidth of a device, per direction; 16 GB/s where the catalog does not know it."""
    return _stated(device, "pcie") or 16.0 * GB


def stated_host_link_bytes_per_s(device: Device) -> float | None:
    """Bandwidth between a device and the host's memory, per direction; None where the catalog does not know it."""
    return _stated(device, "nvlink-c2c") or _stated(device, "pcie")


def host_link_bytes_per_s(device: Device) -> float:
    """Bandwidth between a device and the host's memory, per direction: a coherent link of its own, else PCIe."""
    return stated_host_link_bytes_per_s(device) or pcie_bytes_per_s(device)


def joining_link(device: Device, members: int) -> Link | None:
    """The fastest link beyond PCIe that joins `members` devices of a node.

    Bridges of consumer and workstation cards are not assumed to be there.
    """
    if device.kind != "datacenter":
        return None
    link = device.link_between(members)
    return None if link is None or link.kind == "pcie" else link


@lru_cache(maxsize=4096)
def device_links(
    efficiency: Efficiency, device: Device, devices_per_node: int, network_bytes_per_s: float | None
) -> Links:
    """The links that collectives of a device use, as effective bandwidths."""
    share, exposed = efficiency.value("link.share"), efficiency.value("link.exposed")
    pcie = pcie_bytes_per_s(device)
    whole, pair = joining_link(device, max(2, devices_per_node)), joining_link(device, 2)
    node = share * pcie
    if whole is not None:
        node = share * (whole.gb_per_s or 0.0) * GB
    elif device.kind not in ("datacenter", "workstation"):
        node, exposed = efficiency.value("link.pcie_consumer") * pcie, 1.0
    return Links(
        node_bytes_per_s=node,
        pair_bytes_per_s=share * (pair.gb_per_s or 0.0) * GB if pair else node,
        network_bytes_per_s=share * (network_bytes_per_s or card_bytes_per_s(efficiency, device)),
        host_bytes_per_s=efficiency.value("link.offload") * host_link_bytes_per_s(device),
        devices_per_node=max(1, devices_per_node),
        call_seconds=efficiency.value("link.call"),
        hop_seconds=efficiency.value("link.hop") if device.backend in RINGS else 0.0,
        network_hop_seconds=efficiency.value("link.hop_network") if device.backend in RINGS else 0.0,
        exposed=exposed,
        fast=whole is not None or pair is not None,
    )


def card_bytes_per_s(efficiency: Efficiency, device: Device) -> float:
    """Bandwidth of one network card, assumed by generation."""
    own = efficiency.generation(device.generation).nic_bytes_per_s
    return own or efficiency.generation("other").nic_bytes_per_s or 12.5e9
