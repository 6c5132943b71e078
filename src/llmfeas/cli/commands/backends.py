"""`llmfeas backends`: what works on which backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...record import dataclass
from ..listings import Kind, ListedEntry, group

if TYPE_CHECKING:
    from ...catalog.backend import Backend
    from ...catalog.store import Catalog
    from ...render.report import Json, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBackend(ListedEntry):
    """A backend in a listing."""

    vendor: str
    software: str
    """What runs on it."""

    @staticmethod
    def computed(backend: Backend) -> Json:
        """Itself."""
        return {"backend": backend.id}


def _found(name: str, catalog: Catalog) -> tuple[Any, str | None]:
    from ...catalog.search import find_backend

    match = find_backend(name, catalog)
    return match.record, match.note


def _page(title: str, fields: Mapping[str, Any], remarks: Sequence[str]) -> Report:
    from ...render.pages.backend import page

    return page(title, fields, remarks)


def _with_engines(backend: Backend, catalog: Catalog) -> Json:
    """The techniques with the engines among them, those of equal cases together."""
    from dataclasses import asdict

    found = asdict(backend)["techniques"]
    alike: dict[str, list[str]] = {}
    cases = {}
    for engine in catalog.engines.values():
        own = engine.cases(backend)
        if own:
            key = repr(own)
            alike.setdefault(key, []).append(engine.id)
            cases[key] = [asdict(case) for case in own]
    return {"techniques": {**found, **{" ".join(names): cases[key] for key, names in alike.items()}}}


KIND = Kind(
    singular="backend",
    plural="backends",
    records=lambda catalog: catalog.backends,
    found=_found,
    listed=ListedBackend,
    page=_page,
    joined=_with_engines,
)

command = group(KIND, "What works on which backend: list, show, search.")
