"""The calibrated numbers of the time model (data/efficiency.yaml), typed: shares of peaks, fixed costs, ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, cast

from ..record import dataclass

AttentionKind = Literal["standard", "new", "scaled"]
Style = Literal["plain", "tuned", "native"]
"""Framework code; fused and overlapping; the same without a framework."""

STYLES: tuple[Style, ...] = ("tuned", "native")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One calibrated number and what stands behind it."""

    value: float
    spread: float = 0.2
    rows: int = 0
    groups: int = 0
    prior: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """What devices of one generation have in common for software."""

    training: str = "other"
    attention: AttentionKind = "standard"
    nic_bytes_per_s: float | None = None
    plain: str = ""
    """Whose factor `training.plain.*` holds back matrix products under plain frameworks; empty: nothing does."""


@dataclass(frozen=True, slots=True)
class InferenceEngine:
    """How an inference engine behaves: the family it is calibrated with, and a backend that it forces."""

    family: str = "eager"
    backend: str | None = None
    unpacks: bool = False
    fixed: str = ""
    """Whose fixed cost a layer it has, where that differs from its family's."""


@dataclass(frozen=True, slots=True)
class Regime:
    """How far a left-out group of one kind of run was off, and the half-width factor of the 80 % interval."""

    sigma: float
    groups: int
    rows: int
    width: float


@dataclass(frozen=True, slots=True)
class Own:
    """What the user's own measurements on one device say of one kind of run: an overlay's `efficiency.calibration`."""

    factor: float
    """Measured over computed (speed, or peak memory), shrunk towards 1."""
    width: float
    """From the expected value to each end of the 80 % interval."""
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Efficiency:
    """The whole file. Compared and hashed by identity, so that what is derived from it can be cached."""

    parameters: Mapping[str, Parameter]
    generations: Mapping[str, Generation]
    training_engines: Mapping[str, Style]
    """Training engines that are not plain framework code."""
    inference_engines: Mapping[str, InferenceEngine]
    regimes: Mapping[str, Mapping[str, Regime]] = field(default_factory=dict)
    calibration: Mapping[str, Mapping[str, Mapping[str, Own]]] = field(default_factory=dict)
    """Device id -> kind (training, decode, prefill, memory) -> kind of run -> what was measured there."""

    def own(self, device: str, kind: str, regime: str) -> Own | None:
        """Give what the user measured on a device, None where nothing was."""
        return self.calibration.get(device, {}).get(kind, {}).get(regime) if self.calibration else None

    def value(self, name: str) -> float:
        """Give a parameter's value.

        Raises:
            KeyError: no such parameter (an error in the data file).
        """
        return self.parameters[name].value

    def generation(self, name: str) -> Generation:
        """Give the traits of a device generation; unknown ones behave like `other`."""
        return self.generations.get(name) or self.generations["other"]

    def style(self, engine: str) -> Style:
        """Tell how a training engine behaves; one that nobody described is plain framework code."""
        return self.training_engines.get(engine, "plain")

    def first(self, *names: str) -> str:
        """Give the first of several parameter names that exists."""
        return next(name for name in names if name in self.parameters)


def efficiency_from_mapping(raw: Mapping[str, object]) -> Efficiency:
    """Build the typed view of a loaded data/efficiency.yaml.

    Raises:
        KeyError, TypeError: a section or field is missing or unknown.
    """
    sections = cast(Mapping[str, Mapping[str, Mapping[str, object]]], raw)
    engines = cast(Mapping[str, Mapping[str, object]], raw["engines"])
    inference = cast(Mapping[str, Mapping[str, object]], engines["inference"])
    regimes = cast(Mapping[str, Mapping[str, Mapping[str, float]]], raw["regimes"])
    return Efficiency(
        parameters={name: Parameter(**entry) for name, entry in sections["parameters"].items()},  # type: ignore[arg-type]
        generations={name: Generation(**entry) for name, entry in sections["generations"].items()},  # type: ignore[arg-type]
        training_engines={
            name: style for style in STYLES for name in cast(list[str], engines["training"].get(style, []))
        },
        inference_engines={name: InferenceEngine(**entry) for name, entry in inference.items()},  # type: ignore[arg-type]
        regimes={
            kind: {name: Regime(**entry) for name, entry in entries.items()}  # type: ignore[arg-type]
            for kind, entries in regimes.items()
        },
        calibration=_calibration(cast(Mapping[str, Mapping[str, Mapping[str, object]]], raw.get("calibration") or {})),
    )


def _calibration(
    raw: Mapping[str, Mapping[str, Mapping[str, object]]],
) -> Mapping[str, Mapping[str, Mapping[str, Own]]]:
    return {
        device: {kind: {name: _own(entry) for name, entry in names.items()} for kind, names in kinds.items()}
        for device, kinds in raw.items()
    }


def _own(entry: object) -> Own:
    """Build one calibration.

    Raises:
        TypeError, ValueError: a field is missing or unknown, or a figure is impossible.
    """
    own = Own(**cast(Mapping[str, float], entry))  # type: ignore[arg-type]
    if not (0.01 <= own.factor <= 100 and 1 <= own.width <= 100 and own.rows >= 1):
        raise ValueError(f"an impossible calibration: factor {own.factor}, width {own.width}, rows {own.rows}")
    return own
