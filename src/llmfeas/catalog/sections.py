"""Kinds of entries of the catalog, and where each stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from ..record import dataclass
from .architecture import Model
from .backend import Backend
from .device import Device
from .engine import Engine
from .offer import Offer
from .processor import completed

R = TypeVar("R")
Complete = Callable[[dict[str, Any], Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Section(Generic[R]):
    """Where entries of a kind stand: in `file` under `key`; `base` is a section of defaults, chosen by `base_field`.

    More entries of the kind stand in the files `more`, which are read where one is asked for that `file` does not have.
    """

    file: str
    key: str
    record: type[R]
    base: str = ""
    base_field: str = ""
    complete: Complete | None = None
    """Fills in what follows from the rest of an entry and from its file."""
    more: tuple[str, ...] = ()
    needed: bool = True
    """A directory without `file` is no catalog."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files that hold entries of the kind, in the order in which they are read."""
        return (self.file, *self.more)


DEVICES: Final = Section("hardware", "devices", Device, "generations", "generation", completed, ("processors",))
OFFERS: Final = Section("offers", "offers", Offer, needed=False)
MODELS: Final = Section("models", "models", Model, "families", "family")
BACKENDS: Final = Section("backends", "backends", Backend)
ENGINES: Final = Section("engines", "engines", Engine)
