"""A processor's rates and bandwidth by one rule, where no source gives them: cores, clock, vector units, channels.

    rate      = sum over groups of cores of  cores x clock x operations a cycle of their vector units
    bandwidth = channels x transfers a second x 8 bytes

Operations a cycle stand in data/processors.yaml (`vector_units`). The clock is that of all cores at work, which sources
seldom state, and real memory is often slower than the fastest allowed: what rests on the rule has wider ranges
(`Device.by_rule`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

BYTES_A_TRANSFER: Final = 8
"""A channel is 64 bits wide."""
RATES: Final = ("fp32", "fp16", "bf16", "int8")
DIFFERENT: Final = 0.05
"""From which difference on a catalog figure is not what the rule gives."""
_SPEED: Final = r"(?i)DDR\dX?-(\d{3,5})"


def with_rule(entry: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what the rule gives of a processor, named in `by_rule`; other devices as they are."""
    if entry.get("backend") != "cpu" or ("tflop_per_s" in entry and "bandwidth_gb_per_s" in entry):
        return entry
    missing = [name for name in ("tflop_per_s", "bandwidth_gb_per_s") if name not in entry]
    found = {
        "tflop_per_s": rates(entry, data.get("vector_units") or {}),
        "bandwidth_gb_per_s": bandwidth_gb_per_s(entry),
    }
    filled = {name: found[name] for name in missing if found[name]}
    return {**entry, **filled, "by_rule": list(filled)} if filled else entry


def rates(entry: Mapping[str, Any], units: Mapping[str, Mapping[str, float]]) -> dict[str, float] | None:
    """TFLOP/s (int8: TOP/s) of all groups of cores, in formats that every group has; None: not known."""
    groups = list(_groups(entry))
    known = [units[simd] for _, _, simd in groups if simd in units]
    if not groups or len(known) != len(groups):
        return None
    return {
        name: _rounded(sum(cores * clock * of[name] for (cores, clock, _), of in zip(groups, known, strict=True)) / 1e3)
        for name in RATES
        if all(name in of for of in known)
    }


def _groups(entry: Mapping[str, Any]) -> Iterator[tuple[float, float, str]]:
    """Yield cores, GHz and vector units of each group; nothing where a figure is missing or none."""
    listed = entry.get("core_groups")
    groups = listed if isinstance(listed, list) and listed else [entry]
    for group in groups:
        cores, clock = (group.get(name) if isinstance(group, dict) else None for name in ("cores", "clock_ghz"))
        if isinstance(cores, int | float) and isinstance(clock, int | float):
            yield float(cores), float(clock), str(group.get("simd"))


def bandwidth_gb_per_s(entry: Mapping[str, Any]) -> float | None:
    """Channels x transfers a second x 8 bytes, in 10^9 bytes a second; None where type or channels are unknown."""
    channels, speed = entry.get("memory_channels"), re.search(_SPEED, str(entry.get("memory_type")))
    if speed is None or not isinstance(channels, int | float):
        return None
    return _rounded(channels * float(speed[1]) * BYTES_A_TRANSFER / 1000)


def disagreements(entry: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield the figures of a processor that are stated, are not what the rule gives, and what the rule gives.

    An entry whose vector units are described in words only is compared by its memory alone; a bandwidth below that of
    its channels is what its makers say that the dies behind them read.
    """
    by_rule = rates(entry, data.get("vector_units") or {}) or {}
    stated = entry.get("tflop_per_s") or {}
    pairs: list[tuple[str, object, float | None]] = [
        (f"tflop_per_s.{name}", stated.get(name), value) for name, value in by_rule.items()
    ]
    pairs.append(("bandwidth_gb_per_s", entry.get("bandwidth_gb_per_s"), bandwidth_gb_per_s(entry)))
    for name, ours, ruled in pairs:
        below = name == "bandwidth_gb_per_s" and isinstance(ours, int | float) and ours < (ruled or 0.0)
        if isinstance(ours, int | float) and ruled and abs(ours / ruled - 1) > DIFFERENT and not below:
            yield name, float(ours), ruled


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
