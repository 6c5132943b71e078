"""The file of own measurements, which the program writes: one that cannot be used is left out, not to spoil all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import DataError
from ..text import printable
from .efficiency import Own
from .overlay_file import read_overlay
from .places import MEASURED_FILE, user_folder
from .types import beyond_limits

HINT = "It is left out. Mend it, or remove it and add the measurements again."


def usable(paths: Iterable[Path]) -> tuple[list[Path], list[DataError]]:
    """Overlays without a file of own measurements that cannot be used, and what is wrong with that."""
    good, errors = [], []
    own = user_folder() / MEASURED_FILE
    for path in paths:
        fault = _fault(path) if path == own else None
        if fault is None:
            good.append(path)
        else:
            errors.append(fault)
    return good, errors


def _fault(path: Path) -> DataError | None:
    """What is wrong with a file of own measurements; None where nothing is."""
    try:
        overlay = read_overlay(path)
        calibration = (overlay.data.get("efficiency") or {}).get("calibration") or {}
        entries = [entry for kinds in calibration.values() for each in kinds.values() for entry in each.values()]
        wrong = [text for entry in entries for text in _wrong(entry)]
    except DataError as error:
        return DataError(error.code, error.message, HINT)
    except (TypeError, AttributeError, ValueError) as error:
        wrong = [f"does not fit ({printable(error, 80)})"]
    return DataError("bad-data", f"{printable(path, 120)}: calibration: {wrong[0]}", HINT) if wrong else None


def _wrong(entry: dict[str, object]) -> list[str]:
    odd = [name for name, value in entry.items() if not isinstance(value, int | float)]
    return [f"{printable(odd[0], 40)} must be a number"] if odd else list(beyond_limits(Own(**entry)))  # type: ignore[arg-type]
