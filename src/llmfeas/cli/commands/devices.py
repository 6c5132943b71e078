"""`llmfeas devices`: the catalog of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...record import dataclass
from ...units import GIB, parse_bytes
from ..listings import Filter, Kind, ListedEntry, group

if TYPE_CHECKING:
    from ...catalog.device import Device
    from ...catalog.store import Catalog
    from ...render.report import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDevice(ListedEntry):
    """A device in a listing."""

    vendor: str
    kind: str
    generation: str
    memory_gib: float
    bandwidth_gb_per_s: float
    tflop_per_s_16bit: float | None
    """Dense, in 16 bits with fp32 accumulation where it has that."""
    usd_per_hour: float | None
    """What an estimate takes."""

    @staticmethod
    def computed(device: Device) -> Json:
        """Its rate in 16 bits, and a price."""
        from ...catalog.prices import cheapest_price
        from ...catalog.store import catalog

        rates, price = device.tflop_per_s, cheapest_price(device, catalog())
        return {
            "tflop_per_s_16bit": rates.bf16 or rates.fp16_matrix_fp32 or rates.fp16 or rates.fp32,
            "usd_per_hour": None if price is None else price.usd_per_hour,
        }


def _found(name: str, catalog: Catalog) -> tuple[Any, str | None]:
    from ...catalog.hardware import find_hardware

    match = find_hardware(name, catalog)
    lent = (
        match.offer and f"'{match.offer.id}' is {match.offer.count} x {match.offer.device}: see 'llmfeas offers show'"
    )
    return catalog.devices[match.device.id], lent or match.note


def _near(text: str, catalog: Catalog) -> list[str]:
    from ...catalog.hardware import near_devices

    return near_devices(text, catalog)


def _backend(name: str) -> str:
    from ...catalog.search import find_backend
    from ...catalog.store import catalog

    return str(find_backend(name, catalog()).record.id)


KIND = Kind(
    singular="device",
    plural="devices",
    records=lambda catalog: catalog.devices,
    found=_found,
    near=_near,
    listed=ListedDevice,
    filters=(
        Filter(name="backend", help="run on this backend.", keeps=lambda row, v: row["backend"] == v, read=_backend),
        Filter(name="vendor", help="come from this vendor.", keeps=lambda row, v: row["vendor"].lower() == v.lower()),
        Filter(name="kind", help="are of this kind (consumer ...).", keeps=lambda row, v: row["kind"] == v.lower()),
        Filter(
            name="min_memory",
            help="have at least this much memory.",
            keeps=lambda row, v: row["memory_gib"] * GIB >= v,
            read=lambda text: parse_bytes(text, "--min-memory"),
            metavar="SIZE",
        ),
    ),
)

command = group(KIND, "Devices that the catalog knows: list, show, search.")
