"""Whether a measurement can be true: what no machine does is a mistyped figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import DataError
from ..scenario import Scenario
from .compare import BANDWIDTH_SHARE, MFU, ComparedFigure, compared, scenario_of
from .measurements import Measurement, own_measurement

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
LIGHTER = 3.0
"""The same of memory, most of which is counted tensor by tensor."""


def fault(item: ComparedFigure, capacity_bytes: float) -> str:
    """Why a measured figure cannot be true; empty where it can. `capacity_bytes` is the memory of one device."""
    what = f"{item.quantity} {item.measured:.4g}"
    if item.kind in ("training-memory", "inference-memory"):
        if item.measured > capacity_bytes:
            return f"{what} is more than the {capacity_bytes:.4g} that the device has"
        if item.measured * LIGHTER < item.found.low:
            return f"{what} is {item.found.expected / item.measured:.3g} times less than what is held there"
        return ""
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


def faults_among(items: Iterable[ComparedFigure], scenario: Scenario) -> list[str]:
    """Why figures of a scenario cannot be true."""
    most = max(scenario.memory_bytes, scenario.device.memory_bytes)
    totals = {"peak_total_bytes": most * scenario.num_devices}
    return [said for item in items if (said := fault(item, totals.get(item.quantity, most)))]


def faults_of(measurement: Measurement) -> list[str]:
    """Why figures of a measurement cannot be true.

    Raises:
        LlmfeasError: its scenario cannot be answered.
    """
    return faults_among(compared(measurement), scenario_of(measurement))


def check(row: Mapping[str, Any]) -> None:
    """Refuse a row that cannot be true, or of which we cannot tell.

    Raises:
        DataError: what no machine does.
        LlmfeasError: an unknown model or device, or what the scenario contradicts.
    """
    wrong = faults_of(own_measurement(row, "--add"))
    if wrong:
        hint = "Correct it; figures are tokens a second, bytes (6.1GiB) or seconds, of the run that is described."
        raise DataError("impossible-measurement", "; ".join(wrong), hint)
