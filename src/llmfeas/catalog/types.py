"""Constrained field types of the catalog's records.

The records are plain frozen dataclasses: cheap to import and to build. pydantic reads the same annotations whenever
data comes from outside (`catalog.validation`), so that a constraint is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any


class Limits:
    """Bounds of a value, in pydantic's words; pydantic asks for them, and nobody else pays for them."""

    __slots__ = ("bounds",)

    def __init__(self, **bounds: float) -> None:
        self.bounds = bounds

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], dict[str, Any]]) -> Any:
        """Add the bounds to the schema of the bare type."""
        return {**handler(source), **self.bounds}


Count = Annotated[int, Limits(gt=0, le=10**15)]
CountOrZero = Annotated[int, Limits(ge=0, le=10**15)]
Layers = Annotated[int, Limits(gt=0, le=10_000)]
Few = Annotated[int, Limits(gt=0, le=100)]
"""What is unrolled one by one: far above any real model, low enough to stay quick."""
Positive = Annotated[float, Limits(gt=0, le=1e30)]
PositiveOrZero = Annotated[float, Limits(ge=0, le=1e30)]
Fraction = Annotated[float, Limits(ge=0, le=1)]
Identifier = Annotated[str, Limits(min_length=1, max_length=100)]
Text = Annotated[str, Limits(max_length=2000)]

STRICT = {"extra": "forbid", "allow_inf_nan": False, "arbitrary_types_allowed": False}
"""The pydantic configuration of every record: unknown keys and non-finite numbers are errors."""
