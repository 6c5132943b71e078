"""What estimates look numbers up in: built once from a catalog, and carried by every question that it settles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ranges import Range
from ..record import dataclass
from .efficiency import Efficiency, efficiency_from_mapping
from .engine import Engine
from .implementation import Implementations, implementations_from_mapping
from .quantization import Quantization, quantization_from_mapping
from .runtime import Runtime, runtime_from_mapping


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tables:
    """The numbers of one catalog. Compared by identity, so that what is derived from them can be cached."""

    efficiency: Efficiency
    runtime: Runtime
    quantization: Quantization
    implementations: Implementations
    engines: Mapping[str, Engine]
    power_shares: Mapping[str, Range]
    """Share of its power limit that a device draws, by what binds it."""

    def engine(self, name: str) -> Engine:
        """What is known of an engine; one that nobody described gets the defaults."""
        return self.engines[name] if name in self.engines else Engine(id=name)


def tables_from(raw: Callable[[str], Mapping[str, Any]], engines: Mapping[str, Engine]) -> Tables:
    """Build the tables of a catalog, whose data files `raw` gives by name.

    Raises:
        DataError: a file is missing or unusable.
        KeyError, TypeError: a section or field is missing or unknown.
    """
    shares = raw("power")["power_share"]
    return Tables(
        efficiency=efficiency_from_mapping(raw("efficiency")),
        runtime=runtime_from_mapping(raw("runtime")),
        quantization=quantization_from_mapping(raw("quantization")),
        implementations=implementations_from_mapping(raw("implementations")),
        engines=engines,
        power_shares={name: Range(share["low"], share["expected"], share["high"]) for name, share in shares.items()},
    )
