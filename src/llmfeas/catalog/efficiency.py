"""The calibrated numbers of the time model (data/efficiency.yaml), typed: shares of peaks, fixed costs, ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from ..record import dataclass, field
from .device import BackendId
from .types import Count, CountOrZero, Identifier, Limits, Positive, PositiveOrZero, Spread, Strict

AttentionKind = Literal["standard", "new", "newest", "scaled"]
Factor = Annotated[float, Limits(ge=1, le=100)]


@dataclass(frozen=True, slots=True)
class CalibratedNumber(Strict):
    """One calibrated number and what stands behind it."""

    value: Positive
    spread: Spread = 0.2
    rows: CountOrZero = 0
    groups: CountOrZero = 0
    prior: bool = False
    note: str = ""


SHARES = {
    f"{part}.{name}"
    for part, names in {
        "training": ("matrix", "attention", "attention_eager", "recurrence", "moe", "moe_local"),
        "link": ("share", "exposed", "offload", "pcie_consumer"),
        "memory": ("stream",),
        "decode": ("read", "unpack", "unpack_cpu", "compute", "service"),
        "prefill": ("half", "compiled", "vector", "cpu_quantized", "attention", "moe"),
    }.items()
    for name in names
}
"""Parameters that are shares of a peak or of a whole: no machine has more than all of it."""
JOBS = tuple(f"{whose}{method}" for whose in ("", "moe-") for method in ("pretrain", "finetune", "lora", "qlora"))
"""What software is measured in: a method, of a dense model or a mixture of experts."""
SHARE_GROUPS = ("decode.bandwidth.", "decode.cache.")
"""Beginnings of further ones."""


def is_share(name: str) -> bool:
    """Whether a parameter is a share of a peak or of a whole."""
    return name in SHARES or name.startswith(SHARE_GROUPS)


@dataclass(frozen=True, slots=True)
class Generation(Strict):
    """What devices of one generation have in common for software."""

    training: str = "other"
    attention: AttentionKind = "standard"
    vendor_attention: bool = False
    """Public code of today prefers the attention kernels of the device's maker there."""
    whole_ratio: Positive | None = None
    """16-bit rate over that of the vectors on a whole chip. Kernels behind the hardware reach a share of that one, also
    on a chip that was held back.
    """
    nic_bytes_per_s: Positive | None = None
    plain: str = ""
    """Whose factor `training.plain.*` holds back matrix products under plain frameworks; empty: nothing does."""
    watts_per_tflop_per_s: Positive | None = None
    """Power for 1 TFLOP/s of the 16-bit peak; a card with less does not sustain its peak. None: nobody said."""


@dataclass(frozen=True, slots=True)
class Regime(Strict):
    """How far a left-out group of one kind of run was off, and the half-width factor of the 80 % interval."""

    sigma: Spread
    groups: CountOrZero
    rows: CountOrZero
    width: Factor
    sources: CountOrZero = 0
    """Who measured it: groups of one source are its devices."""


@dataclass(frozen=True, slots=True)
class Own(Strict):
    """What the user's own measurements on one device say of one kind of run: an overlay's `efficiency.calibration`."""

    factor: Annotated[float, Limits(ge=0.01, le=100)]
    """Measured over computed (speed, or peak memory), shrunk towards 1."""
    width: Factor
    """From the expected value to each end of the 80 % interval."""
    rows: Count


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Efficiency(Strict):
    """The whole file. Compared and hashed by identity, so that what is derived from it can be cached."""

    as_of: str = ""
    parameters: Mapping[str, CalibratedNumber]
    generations: Mapping[str, Generation]
    left_out: Mapping[str, Mapping[str, PositiveOrZero]] = field(default_factory=dict)
    """Kind -> how far the speed of left-out rows is off."""
    regimes: Mapping[str, Mapping[str, Regime]] = field(default_factory=dict)
    trained: Mapping[BackendId, Mapping[str, Mapping[Identifier, Count]]] = field(default_factory=dict)
    """Backend -> job (pretrain, finetune, lora, qlora; moe- before it of a mixture) -> engine -> sources that measured
    it. What is not named nobody measured."""
    calibration: Mapping[str, Mapping[str, Mapping[str, Own]]] = field(default_factory=dict)
    """Device id -> kind (training, decode, prefill, memory) -> kind of run -> what was measured there."""

    def check(self) -> None:
        """Refuse a share of a peak above all of it, a generation that names a parameter which there is not, and a job
        that there is not.

        Raises:
            ValueError: naming the parameter, the generation or the job.
        """
        for name, parameter in self.parameters.items():
            if parameter.value > 1 and is_share(name):
                raise ValueError(f"parameters.{name} is {parameter.value:g}: a share is at most 1")
        for name, traits in self.generations.items():
            needed = [
                f"training.generation.{traits.training}",
                *([f"training.plain.{traits.plain}"] if traits.plain else []),
            ]
            if not self.parameters.keys() >= set(needed):
                raise ValueError(f"generations.{name} needs the parameters {' and '.join(needed)}")
        for backend, jobs in self.trained.items():
            if unknown := sorted(set(jobs) - set(JOBS)):
                raise ValueError(f"trained.{backend}.{unknown[0]} is no job: {', '.join(JOBS)}")

    def own(self, device: str, kind: str, regime: str) -> Own | None:
        """What the user measured on a device, None where nothing was."""
        return self.calibration.get(device, {}).get(kind, {}).get(regime) if self.calibration else None

    def value(self, name: str) -> float:
        """A parameter's value.

        Raises:
            KeyError: no such parameter (an error in the data file).
        """
        return self.parameters[name].value

    def factor(self, name: str) -> float:
        """A parameter's value; 1 where there is no such parameter."""
        known = self.parameters.get(name)
        return 1.0 if known is None else known.value

    def amount(self, name: str) -> float:
        """A parameter's value; 0 where there is no such parameter."""
        known = self.parameters.get(name)
        return 0.0 if known is None else known.value

    def generation(self, name: str, backend: str = "") -> Generation:
        """The traits of a device generation; unknown ones behave like their backend's, else like `other`."""
        return self.generations.get(name) or self.generations.get(backend) or self.generations["other"]

    def first(self, *names: str) -> str:
        """The first of several parameter names that exists."""
        return next(name for name in names if name in self.parameters)
