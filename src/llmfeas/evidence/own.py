"""The user's own measurements: kept in a file of their own, and what they say of the ranges on that machine.

The file is an overlay with two sections, `measurements` (as in data/measurements, one list of rows) and
`efficiency.calibration`, which `calibrate` computes from them. It is written by the program; comments in it are lost.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..catalog.document import read_yaml
from ..catalog.overlay import use_overlays
from ..catalog.places import MEASURED_FILE, user_folder
from ..catalog.store import catalog
from ..contract import Published
from ..errors import DataError, LlmfeasError, UsageError
from ..memory.runtime import NORMAL_90
from ..options import BY_NAME
from ..record import dataclass
from ..text import printable
from ..units import parse_bytes, parse_count
from .compare import ComparedFigure, compared
from .measurements import Measurement, read_measurements
from .plausible import faults_of

T90 = (3.078, 1.886, 1.638, 1.533, 1.476, 1.44, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.35, 1.345, 1.341)
"""Student's t, 90th percentile, by degrees of freedom from 1."""
SCATTER = {"training": 0.14, "decode": 0.07, "prefill": 0.07, "training-memory": 0.17, "inference-memory": 0.03}
"""Median standard deviation of log errors among rows of one source on one device (data/measurements, 2026-11)."""
SCATTER_DEGREES = 3
"""Degrees of freedom that this scatter counts for beside that of the user's own rows."""
LEAST_OFFSET = 0.05
"""Standard deviation of a machine's offset, at least: no two machines are quite alike."""
KIND_OF = {"training-memory": "memory", "inference-memory": "memory"}

QUANTITIES = {
    "decode": "decode_tokens_per_second",
    "prefill": "prefill_tokens_per_second",
    "training": "tokens_per_second",
    "memory": "peak_bytes",
}
"""What a person writes -> the field of a measurement; the fields' own names will do too."""


def measured_file() -> Path:
    """The file that holds the user's own measurements."""
    return user_folder() / MEASURED_FILE


def parsed_measurement(text: str) -> dict[str, Any]:
    """Read `model=llama-3-8b device=rtx-4090 task=inference decode=120 memory=6.1GiB` as a row.

    Raises:
        UsageError: no `name=value`, an unknown name, nothing measured, or no model or device.
    """
    scenario: dict[str, Any] = {}
    measured: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        name = name.strip().lower().replace("-", "_")
        field = QUANTITIES.get(name, name)
        if not equals or not value:
            raise UsageError("bad-measurement", f"{printable(word, 60)!r} is no NAME=VALUE.", _EXAMPLE)
        if field in QUANTITIES.values() or field == "step_seconds":
            read = parse_bytes if field == "peak_bytes" else parse_count
            measured[field] = float(read(value, name, 1e-6))
        elif name in BY_NAME:
            scenario[BY_NAME[name].name] = value
        else:
            known = ", ".join([*QUANTITIES, "step_seconds"])
            raise UsageError(
                "bad-measurement", f"unknown name {printable(name, 40)!r}.", f"Measured: {known}. {_EXAMPLE}"
            )
    if not measured or not {"model", "device"} <= scenario.keys():
        raise UsageError("bad-measurement", "a measurement needs a model, a device and a figure.", _EXAMPLE)
    return {"scenario": scenario, "measured": measured}


_EXAMPLE = "For example: --add 'model=llama-3-8b device=rtx-4090 task=inference quant=q4_k_m decode=120 memory=6.1GiB'."


def read_own(path: Path) -> dict[str, Any]:
    """Read the file of own measurements; empty where there is none.

    Raises:
        DataError: it holds other sections too, so that writing it would lose them.
    """
    if not path.exists():
        return {"measurements": [], "efficiency": {"calibration": {}}}
    document = read_yaml(path)
    data = document.data or {}
    others = set(data) - {"measurements", "efficiency"} if isinstance(data, dict) else {"no mapping"}
    if others or set(data.get("efficiency") or {}) - {"calibration"}:
        listed = ", ".join(sorted(map(str, others))) or "efficiency"
        text = f"{document.name}:1: holds more than measurements ({printable(listed, 80)})"
        raise DataError("bad-data", text, "Keep own measurements in a file of their own.")
    return {
        "measurements": list(data.get("measurements") or []),
        "efficiency": {"calibration": dict((data.get("efficiency") or {}).get("calibration") or {})},
    }


def written(data: Mapping[str, Any]) -> str:
    """Write the file: a row, and a calibrated device, a line."""
    lines = ["# Own measurements, written by 'llmfeas backtest --add' and '--calibrate'.", "measurements:"]
    lines += [f"- {json.dumps(row)}" for row in data["measurements"]]
    lines += ["efficiency:", "  calibration:"]
    lines += [
        f"    {json.dumps(device)}: {json.dumps(kinds)}" for device, kinds in data["efficiency"]["calibration"].items()
    ]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While this lasts nobody else of us reads and writes own measurements in a folder.

    Where the system or its file system knows no locks, nothing keeps others out.
    """
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def added(data: Mapping[str, Any], row: Mapping[str, Any], day: str) -> dict[str, Any]:
    """The data with one more row; its id is its number."""
    rows = [*data["measurements"], {"id": f"own-{len(data['measurements']) + 1}", "as_of": day, **row}]
    return {**data, "measurements": rows}


@dataclass(frozen=True, slots=True)
class Narrowed(Published):
    """What own measurements say of one kind of run on one device, beside the interval without them."""

    device: str
    kind: str
    regime: str
    rows: int
    factor: float
    width: float
    width_before: float


@dataclass(frozen=True, slots=True)
class CalibrationResult(Published):
    """What own measurements narrowed."""

    calibration: tuple[Narrowed, ...]


def calibration(comparisons: Sequence[tuple[str, str, ComparedFigure]]) -> list[Narrowed]:
    """Combine own measurements with what is known of the kind of run; (device, regime, comparison) each.

    Formula: machines are off by N(0, b^2), rows scatter by s around their machine, b^2 = sigma^2 - s^2. Then n rows of
    mean m leave an offset of m (n / s^2) v with variance v = 1 / (1 / b^2 + n / s^2), and a further row lies within
    exp(t sqrt(v + s^2)) of it. s is pooled from the rows and from SCATTER; no interval becomes wider than it was.
    """
    groups: dict[tuple[str, str, str, str], list[ComparedFigure]] = {}
    for device, regime, item in comparisons:
        if item.found.low <= 0:
            continue  # a range that begins at nothing has no width to narrow
        groups.setdefault((device, KIND_OF.get(item.kind, item.kind), regime, item.kind), []).append(item)
    narrowed = []
    for (device, kind, regime, source), items in groups.items():
        ratios = [-item.log_error for item in items]
        before = math.sqrt(items[0].width)
        factor, width = _posterior(ratios, math.log(before) / NORMAL_90, SCATTER[source])
        narrowed.append(Narrowed(device, kind, regime, len(items), factor, min(before, width), before))
    return narrowed


def _posterior(ratios: Sequence[float], sigma: float, scatter: float) -> tuple[float, float]:
    count, mean = len(ratios), sum(ratios) / len(ratios)
    degrees = SCATTER_DEGREES + count - 1
    within = (SCATTER_DEGREES * scatter**2 + sum((ratio - mean) ** 2 for ratio in ratios)) / degrees
    between = max(sigma**2 - within, LEAST_OFFSET**2)
    left = 1 / (1 / between + count / within)
    t = T90[min(degrees, len(T90)) - 1]
    return math.exp(mean * left * count / within), math.exp(t * math.sqrt(left + within))


def calibrated_file(path: Path, others: Iterable[Path]) -> tuple[dict[str, Any], list[Narrowed], list[LlmfeasError]]:
    """Compute the calibration of a file of own measurements; `others` are the overlays besides it.

    Raises:
        DataError: the file cannot be read.
        UsageError: it holds no measurement.
    """
    data = read_own(path)
    if not data["measurements"]:
        raise UsageError("nothing-measured", "there are no measurements of your own yet.", _EXAMPLE)
    used = catalog().overlay_paths
    use_overlays(others)
    try:
        rows, errors = read_measurements([path])
        pairs: list[tuple[str, str, ComparedFigure]] = []
        bad: list[LlmfeasError] = list(errors)
        for row in rows:
            try:
                wrong = faults_of(row)
                if wrong:
                    raise DataError(
                        "impossible-measurement", f"{row.where} ({row.id}): {'; '.join(wrong)}", "Correct it."
                    )
                pairs += _placed(row)
            except LlmfeasError as error:
                bad.append(error)
    finally:
        use_overlays(used)
    narrowed = calibration(pairs)
    table: dict[str, Any] = {}
    for each in narrowed:
        entry = {"factor": round(each.factor, 4), "width": round(each.width, 4), "rows": each.rows}
        table.setdefault(each.device, {}).setdefault(each.kind, {})[each.regime] = entry
    return {**data, "efficiency": {"calibration": table}}, narrowed, bad


def _placed(row: Measurement) -> list[tuple[str, str, ComparedFigure]]:
    """What a row compares, with the device and the kind of run that it speaks for."""
    from ..timing.inference import inference_time
    from ..timing.training import training_time
    from .compare import scenario_of

    scenario = scenario_of(row)
    device = scenario.device.id
    if scenario.is_training:
        regimes = {"training": training_time(scenario).regime}
    else:
        serving = inference_time(scenario)
        regimes = {"decode": serving.regime, "prefill": serving.prefill_regime}
    regimes |= dict.fromkeys(KIND_OF, scenario.engine)
    return [(device, regimes[item.kind], item) for item in compared(row) if item.kind in regimes]
