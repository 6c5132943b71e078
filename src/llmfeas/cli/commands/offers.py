"""`llmfeas offers`: machines to rent or borrow as a whole, such as a free notebook service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...record import dataclass
from ..listings import Filter, Kind, ListedEntry, group

if TYPE_CHECKING:
    from ...catalog.device import Offer
    from ...catalog.store import Catalog
    from ...render.report import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffer(ListedEntry):
    """An offer in a listing."""

    provider: str
    tier: str
    device: str
    count: int
    hours_per_session: float | None
    hours_per_week: float | None
    usd_per_hour: float | None
    """Of the whole offer."""

    @staticmethod
    def computed(offer: Offer) -> Json:
        """The backend of its device."""
        from ...catalog.store import catalog

        return {"backend": catalog().devices[offer.device].backend}


def _found(name: str, catalog: Catalog) -> tuple[Any, str | None]:
    from ...catalog.search import find_offer

    match = find_offer(name, catalog)
    return match.record, match.note


KIND = Kind(
    singular="offer",
    plural="offers",
    records=lambda catalog: catalog.offers,
    found=_found,
    listed=ListedOffer,
    filters=(
        Filter(name="provider", help="come from this provider.", keeps=lambda row, v: row["provider"] == v.lower()),
        Filter(name="tier", help="are free, paid or retired.", keeps=lambda row, v: row["tier"] == v.lower()),
    ),
)

command = group(KIND, "Machines to rent or borrow as a whole: list, show, search.")
