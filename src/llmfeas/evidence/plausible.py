"""Whether a measurement can be true: what no machine does is a mistyped figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..catalog.source import Document
from ..errors import DataError
from .compare import BANDWIDTH_SHARE, MFU, ComparedFigure, compared, scenario_of
from .measurements import Measured, Measurement

BEYOND: Mapping[str, tuple[float, float, str]] = {
    "decode": (BANDWIDTH_SHARE, 4.0, "reading the active weights once a token at full bandwidth"),
    "prefill": (MFU, 6.0, "two operations a weight and token at the full 16-bit peak"),
    "training": (MFU, 4.0, "six operations a weight and token at the full 16-bit peak"),
}
"""Kind -> the share of the peak that its rule of thumb takes, how often that peak is allowed, and what it is.

Several tokens from one reading (drafts), formats of fewer bits with higher peaks, frozen weights and caches of prompts
are allowed for; ten times the peak is none of them.
"""
SLOWER = 60.0
"""So much slower than computed a run is another one than it is said to be, or its figure is mistyped."""


def fault(item: ComparedFigure, capacity_bytes: float) -> str:
    """Why a measured figure cannot be true; empty where it can. `capacity_bytes` is the memory of one device."""
    what = f"{item.quantity} {item.measured:.4g}"
    if item.kind in ("training-memory", "inference-memory"):
        return (
            f"{what} is more than the {capacity_bytes:.4g} that the device has"
            if item.measured > capacity_bytes
            else ""
        )
    if item.kind not in BEYOND or item.naive is None:
        return ""
    share, allowed, words = BEYOND[item.kind]
    peak = item.naive / share
    if item.measured > allowed * peak:
        return f"{what} is {item.measured / peak:.3g} times what {words} gives ({peak:.4g})"
    if item.measured * SLOWER < item.found.low:
        ours = item.found.expected
        return f"{what} is {ours / item.measured:.3g} times slower than computed ({ours:.4g})"
    return ""


def faults_of(measurement: Measurement) -> list[str]:
    """Why figures of a measurement cannot be true.

    Raises:
        LlmfeasError: its scenario cannot be answered.
    """
    scenario = scenario_of(measurement)
    most = max(scenario.memory_bytes, scenario.device.memory_bytes)
    totals = {"peak_total_bytes": most * scenario.num_devices}
    items = compared(measurement)
    return [said for item in items if (said := fault(item, totals.get(item.quantity, most)))]


def check(row: Mapping[str, Any]) -> None:
    """Refuse a row that cannot be true, or of which we cannot tell.

    Raises:
        DataError: what no machine does.
        LlmfeasError: an unknown model or device, or what the scenario contradicts.
    """
    measurement = Measurement(
        id="the measurement",
        group="own",
        source="own",
        url="",
        as_of="",
        trust="high",
        backend=None,
        framework="",
        memory_kind="unknown",
        weight=1.0,
        variant=False,
        notes="",
        reason="",
        scenario=row["scenario"],
        measured=Measured(**row["measured"]),
        document=Document("--add", {}, ""),
        place=(),
        folder=Path(),
    )
    wrong = faults_of(measurement)
    if wrong:
        hint = "Correct it; figures are tokens a second, bytes (6.1GiB) or seconds, of the run that is described."
        raise DataError("impossible-measurement", "; ".join(wrong), hint)
