"""What one can rent or borrow as a whole: a notebook service's machine with its devices, memory and hours."""

from __future__ import annotations

from typing import ClassVar, Literal

from ..record import dataclass
from .types import STRICT, Count, Identifier, Positive, PositiveOrZero, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A catalog entry of one offer: `count` devices in one machine, for a number of hours."""

    __pydantic_config__: ClassVar = STRICT
    id: Identifier
    name: Identifier
    provider: Identifier
    device: Identifier
    """The catalog id of its device."""
    count: Count = 1
    share: Share = 1.0
    """Part of the device that is lent: some cores of a processor, a slice of a card."""
    aliases: tuple[Identifier, ...] = ()
    default_for: tuple[Identifier, ...] = ()
    tier: Literal["free", "paid", "retired"] = "paid"
    memory_gib: Positive | None = None
    """What a process sees on one device; None: what the device has."""
    host_memory_gib: Positive | None = None
    host_cpus: Count | None = None
    hours_per_session: Positive | None = None
    hours_per_week: Positive | None = None
    usd_per_hour: PositiveOrZero | None = None
    """Price of the whole offer; None: not known."""
    as_of: str | None = None
    """Day of the price (yyyy-mm-dd); None: the source gives none."""
    notes: str = ""
    sources: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
