"""Published and tracked measurements, read from YAML: rows of one source on one device form a group.

A bad row does not spoil the others: `read_measurements` gives what can be used and the errors of the rest, each with
file and line. Fields: data/measurements/README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from ..catalog.document import Document, read_yaml
from ..catalog.store import data_directory
from ..catalog.types import Fraction, Identifier, Positive, Strict
from ..errors import DataError
from ..options import ALL_LAYERS
from ..record import dataclass, field, fields

Setting = str | int | float | bool
Kind = Literal[
    "training",
    "decode",
    "prefill",
    "training-memory",
    "inference-memory",
    "server-memory",
    "first-token",
    "token-time",
    "fits",
    "file-size",
    "tensor-memory",
    "flops",
    "cache",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Backend = Literal[
    "cuda", "rocm", "vulkan", "sycl", "metal", "mlx", "tpu", "hpu", "habana", "xpu", "cpu", "neuron", "npu"
]
MemoryKind = Literal["allocated", "reserved", "device", "unknown"]
Trust = Literal["high", "medium"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Strict):
    """What was measured, in base units (bytes, seconds, tokens a second, FLOP)."""

    tokens_per_second: Positive | None = None
    step_seconds: Positive | None = None
    mfu: Fraction | None = None
    hfu: Fraction | None = None
    model_flop_per_s_per_device: Positive | None = None
    decode_tokens_per_second: Positive | None = None
    output_tokens_per_second: Positive | None = None
    prefill_tokens_per_second: Positive | None = None
    ttft_seconds_p50: Positive | None = None
    ttft_seconds_p95: Positive | None = None
    tpot_seconds_p50: Positive | None = None
    peak_bytes: Positive | None = None
    peak_total_bytes: Positive | None = None
    kv_pool_bytes: Positive | None = None
    kv_pool_tokens: Positive | None = None
    requests_at_once: Positive | None = None
    fits: bool | None = None
    weights_bytes: Positive | None = None
    file_bytes: Positive | None = None
    bits_per_weight: Positive | None = None
    peak_tensor_bytes: Positive | None = None
    peak_moment: str | None = None
    prefill_peak_tensor_bytes: Positive | None = None
    decode_peak_tensor_bytes: Positive | None = None
    forward_flop: Positive | None = None
    model_flop: Positive | None = None
    executed_flop: Positive | None = None
    kv_cache_bytes: Positive | None = None
    parameters: Positive | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRow(Strict):
    """A row as written."""

    id: Identifier
    measured: Measured
    scenario: Mapping[str, Setting] = field(default_factory=dict)
    variant: bool = False
    url: str | None = None
    as_of: str | None = None
    trust: Trust | None = None
    memory_kind: MemoryKind | None = None
    notes: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementGroup(Strict):
    """A group as written, its rows unread."""

    group: Identifier
    source: str
    rows: list[Any]
    url: str = ""
    as_of: str = ""
    trust: Trust = "high"
    backend: Backend | None = None
    framework: str = ""
    memory_kind: MemoryKind = "unknown"
    weight: Fraction = 1.0
    notes: str = ""
    reason: str = ""
    scenario: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row with what its group says about it."""

    id: str
    group: str
    source: str
    url: str
    as_of: str
    trust: Trust
    backend: Backend | None
    framework: str
    memory_kind: MemoryKind
    weight: float
    variant: bool
    notes: str
    reason: str
    scenario: Mapping[str, Setting]
    measured: Measured
    document: Document = field(repr=False, compare=False)
    place: tuple[str | int, ...]
    folder: Path

    @property
    def where(self) -> str:
        """Say where the row stands: `training.yaml:12: groups[0].rows[3]`."""
        return self.document.where(self.place)


def measurement_files() -> list[Path]:
    """The files of built-in measurements."""
    return sorted((data_directory() / "measurements").glob("*.yaml"))


def read_measurements(paths: Iterable[Path]) -> tuple[list[Measurement], list[DataError]]:
    """Read measurement files: the rows that can be used, and an error for each that cannot.

    Raises:
        DataError: a file is missing, no YAML, or has no list of groups.
    """
    usable: list[Measurement] = []
    errors: list[DataError] = []
    for path in paths:
        document = read_yaml(path)
        groups = document.data.get("groups") if isinstance(document.data, dict) else None
        own = document.data.get("measurements") if isinstance(document.data, dict) else None
        if groups is None and isinstance(own, list):
            group = MeasurementGroup(group="own", source="own measurement", rows=own)
            _read_rows(document, path.parent, ("measurements",), group, usable, errors)
            continue
        if not isinstance(groups, list):
            raise DataError("bad-data", f"{document.name}:1: no list of groups", "Begin with 'groups:'.")
        for index, raw in enumerate(groups):
            _read_group(document, path.parent, index, raw, usable, errors)
    return usable, errors


def _read_group(
    document: Document, folder: Path, index: int, raw: object, usable: list[Measurement], errors: list[DataError]
) -> None:
    from ..catalog.validation import validated

    place: tuple[str | int, ...] = ("groups", index)
    try:
        group = validated(MeasurementGroup, raw, document, place)
    except DataError as error:
        errors.append(error)
        return
    _read_rows(document, folder, (*place, "rows"), group, usable, errors)


def _read_rows(
    document: Document,
    folder: Path,
    place: tuple[str | int, ...],
    group: MeasurementGroup,
    usable: list[Measurement],
    errors: list[DataError],
) -> None:
    from ..catalog.validation import validated

    for number, entry in enumerate(group.rows):
        spot = (*place, number)
        try:
            row = validated(MeasurementRow, entry, document, spot)
            usable.append(_joined(group, row, document, spot, folder))
        except DataError as error:
            errors.append(error)


def _joined(
    group: MeasurementGroup, row: MeasurementRow, document: Document, place: tuple[str | int, ...], folder: Path
) -> Measurement:
    if all(getattr(row.measured, each.name) is None for each in fields(Measured)):
        raise DataError("bad-data", f"{document.where(place)}: nothing is measured", "Give measured a value.")
    return Measurement(
        id=row.id,
        group=group.group,
        source=group.source,
        url=row.url or group.url,
        as_of=row.as_of or group.as_of,
        trust=row.trust or group.trust,
        backend="hpu" if group.backend == "habana" else group.backend,
        framework=group.framework,
        memory_kind=row.memory_kind or group.memory_kind,
        weight=group.weight,
        variant=row.variant,
        notes=row.notes or group.notes,
        reason=row.reason or group.reason,
        scenario={**group.scenario, **row.scenario},
        measured=row.measured,
        document=document,
        place=place,
        folder=folder,
    )


def own_measurement(row: Mapping[str, Any], name: str) -> Measurement:
    """A row of one's own that is in no file yet; `name` says where it comes from."""
    return Measurement(
        id="the measurement",
        group="own",
        source="own",
        url="",
        as_of="",
        trust="high",
        backend=None,
        framework="",
        memory_kind=row.get("memory_kind", "unknown"),
        weight=1.0,
        variant=False,
        notes="",
        reason="",
        scenario=row["scenario"],
        measured=Measured(**row["measured"]),
        document=Document(name, {}, ""),
        place=(),
        folder=Path(),
    )


def settings_of(measurement: Measurement) -> dict[str, Setting]:
    """The scenario as the command line takes it: paths made whole, the engine that its backend implies.

    llama.cpp's tables name flash attention where it was asked for; by itself it was off until August 2025 (build 6325),
    so that what names none ran without, but for a cache in few bits, which needs it. What names no layers ran with all
    of them on the device, and what names no chunks of a pipeline's stages had one each. What was timed request by
    request is a load, of one user too.
    """
    settings = dict(measurement.scenario)
    model = settings.get("model")
    if isinstance(model, str) and model.endswith(".json"):
        settings["model"] = str(measurement.folder / model)
    engine = settings.get("engine")
    if engine == "llama.cpp" and measurement.backend in ("vulkan", "sycl"):
        settings["engine"] = f"llama.cpp-{measurement.backend}"
    if "pp" in settings:
        settings.setdefault("interleave", 1)
    if measurement.measured.ttft_seconds_p50 or measurement.measured.tpot_seconds_p50:
        settings.setdefault("ttft", "1h")
    if str(engine or "").startswith("llama.cpp"):
        settings.setdefault("gpu_layers", ALL_LAYERS)
        timed = measurement.measured.decode_tokens_per_second or measurement.measured.prefill_tokens_per_second
        if timed and settings.get("kv_dtype") in (None, "fp16", "bf16"):
            settings.setdefault("attention", "eager")
    return settings
