"""Kinds of entries of the catalog, and where each stands."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from ..record import dataclass
from .architecture import Model
from .backend import Backend
from .device import Device
from .engine import Engine
from .offer import Offer

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Section(Generic[R]):
    """Where entries of a kind stand: in `file` under `key`; `base` is a section of defaults, chosen by `base_field`."""

    file: str
    key: str
    record: type[R]
    base: str = ""
    base_field: str = ""


DEVICES: Final = Section("hardware", "devices", Device, "generations", "generation")
OFFERS: Final = Section("hardware", "offers", Offer)
MODELS: Final = Section("models", "models", Model, "families", "family")
BACKENDS: Final = Section("backends", "backends", Backend)
ENGINES: Final = Section("engines", "engines", Engine)
