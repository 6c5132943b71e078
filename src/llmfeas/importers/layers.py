"""Architectures whose layers are told one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..catalog.architecture import Architecture, runs_of
from ..record import replace


def with_layers(architecture: Architecture, **columns: Sequence[object]) -> Architecture:
    """An architecture whose layers have these values of fields of `LayerKind`, one a layer, whatever its rules say.

    Where the rules say the same it is itself, else its layers are listed.

    Raises:
        ValueError: the fields that layers of such kinds need are missing.
    """
    kinds = architecture.layer_kinds
    rows: Iterable[tuple[Any, ...]] = zip(*(column[: len(kinds)] for column in columns.values()), strict=True)
    listed = tuple(replace(kind, **dict(zip(columns, row, strict=True))) for kind, row in zip(kinds, rows, strict=True))
    return architecture if listed == kinds else replace(architecture, layer_runs=runs_of(listed))
