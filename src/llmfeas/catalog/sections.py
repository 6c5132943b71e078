"""Kinds of entries of the catalog, and where each stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from ..record import dataclass
from .architecture import Model
from .backend import Backend
from .device import Device
from .engine import Engine, completed
from .offer import Offer

R = TypeVar("R")
Entry = Mapping[str, Any]
Completed = Callable[[Entry, Entry, Callable[[str], Entry | None]], dict[str, Any]]
"""Gives a whole entry of one as written, the section of defaults, and other entries as written by their id."""


@dataclass(frozen=True, slots=True)
class EntryKind(Generic[R]):
    """Where entries of a kind stand: in `file` under `key`.

    What an entry leaves out stands in the section `base`: under its `base_field`, or where `completed` finds it.
    """

    file: str
    key: str
    record: type[R]
    base: str = ""
    base_field: str = ""
    completed: Completed | None = None


DEVICES: Final = EntryKind("hardware", "devices", Device, "generations", "generation")
OFFERS: Final = EntryKind("hardware", "offers", Offer)
MODELS: Final = EntryKind("models", "models", Model, "families", "family")
BACKENDS: Final = EntryKind("backends", "backends", Backend)
ENGINES: Final = EntryKind("engines", "engines", Engine, "plain", completed=completed)
