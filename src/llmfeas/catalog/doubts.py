"""What is no fault of a catalog but to be looked at: processors that their cores contradict, implausible prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..record import dataclass
from .prices import doubt
from .processor import disagreements
from .store import Catalog


@dataclass(frozen=True, slots=True)
class Doubt:
    """One figure of an entry, and why it is doubted."""

    entry: str
    field: str
    message: str


def doubts(catalog: Catalog, ids: Iterable[str] | None = None) -> Iterator[Doubt]:
    """Yield what is to be doubted in devices: in all, or in those of `ids`.

    Entries that are at fault are left to those who say so.
    """
    from ..errors import DataError

    units = {"vector_units": catalog.raw("processors").get("vector_units") or {}}
    for key in catalog.devices if ids is None else ids:
        try:
            device = catalog.devices[key]
        except DataError:
            continue
        if device.backend == "cpu":
            yield from _of_cores(key, catalog.devices.raw(key), units)
        for place, price in enumerate(device.prices):
            found = doubt(device, price.usd_per_hour, catalog)
            if found:
                yield Doubt(key, f"prices.{place}", f"{price.provider}: {found}")


def _of_cores(key: str, entry: Mapping[str, Any], units: Mapping[str, Any]) -> Iterator[Doubt]:
    for field, stated, ruled in disagreements(entry, units):
        what = "channels and memory type" if field == "bandwidth_gb_per_s" else "cores, clock and vector units"
        yield Doubt(key, field, f"{stated:g} is stated, {what} say {ruled:g}")
