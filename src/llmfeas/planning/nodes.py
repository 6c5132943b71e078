"""How the devices of a job stand in machines."""

from __future__ import annotations

from ..record import dataclass
from ..scenario import Scenario


@dataclass(frozen=True, slots=True)
class Nodes:
    """How devices stand in machines."""

    count: int
    devices: int
    """Devices in each machine."""

    @property
    def several(self) -> bool:
        """Whether there is more than one machine."""
        return self.count > 1


def nodes_of(scenario: Scenario) -> Nodes:
    """Count machines: num_devices / devices_per_node, rounded up; machines are alike."""
    count = -(-scenario.num_devices // scenario.devices_per_node)
    return Nodes(count, -(-scenario.num_devices // count))
