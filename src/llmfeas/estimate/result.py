"""The answer to one scenario, shaped as the JSON contract shapes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario
from .flops import Flops
from .parameters import Parameters
from .time.inference import InferenceTime
from .time.training import TrainingTime

SCHEMA = "llmfeas.estimate/1"

COMPONENTS = (
    "weights_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "logits_bytes",
    "kv_cache_bytes",
    "workspace_bytes",
    "runtime_bytes",
)
"""What memory is made of, in the order in which people read it."""

Status = Literal["feasible", "tight", "infeasible", "unsupported"]


def plain(record: object) -> dict[str, Any]:
    """Give the fields of a flat record in their order."""
    return {field.name: getattr(record, field.name) for field in fields(record)}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Note:
    """A warning or a reason: a stable code for scripts and one sentence for people."""

    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """Give the note as the contract shapes it."""
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes on one device, the worst one; `components` are those alive at the peak and add up to its expected value."""

    components: Mapping[str, float]
    peak_bytes: Range
    peak_moment: str
    runner_up_moment: str | None
    kv_cache_bytes: float
    weights_file_bytes: float
    host_bytes: float
    capacity_bytes: float
    usable_bytes: float

    @property
    def headroom_bytes(self) -> float:
        """Usable bytes that the expected peak leaves free; negative where it does not fit."""
        return self.usable_bytes - self.peak_bytes.expected

    @property
    def verdict(self) -> Literal["fits", "tight", "exceeds"]:
        """`fits`: even the high end is usable; `tight`: the expected value is; `exceeds` otherwise."""
        if self.peak_bytes.high <= self.usable_bytes:
            return "fits"
        return "tight" if self.peak_bytes.expected <= self.usable_bytes else "exceeds"

    def to_dict(self) -> dict[str, object]:
        """Give the memory as the contract shapes it."""
        return {
            "components": {name: self.components.get(name, 0.0) for name in COMPONENTS},
            "peak_bytes": self.peak_bytes.to_dict(),
            "peak_moment": self.peak_moment,
            "runner_up_moment": self.runner_up_moment,
            "kv_cache_bytes": self.kv_cache_bytes,
            "weights_file_bytes": self.weights_file_bytes,
            "host_bytes": self.host_bytes,
            "capacity_bytes": self.capacity_bytes,
            "usable_bytes": self.usable_bytes,
            "headroom_bytes": self.headroom_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Rent and electricity of the whole job (training) or per million generated tokens (inference)."""

    usd: Range | None
    energy_kwh: Range | None
    usd_per_million_tokens: float | None
    energy_kwh_per_million_tokens: float | None
    usd_per_device_hour: float | None
    provider: str | None
    as_of: str | None

    def to_dict(self) -> dict[str, object]:
        """Give the cost as the contract shapes it."""
        priced = self.usd_per_device_hour is not None
        return {
            "usd": self.usd.to_dict() if self.usd else None,
            "energy_kwh": self.energy_kwh.to_dict() if self.energy_kwh else None,
            "usd_per_million_tokens": self.usd_per_million_tokens,
            "energy_kwh_per_million_tokens": self.energy_kwh_per_million_tokens,
            "price": {
                "usd_per_device_hour": self.usd_per_device_hour,
                "provider": self.provider,
                "as_of": self.as_of,
            }
            if priced
            else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Can it be done; the worst of memory, time, budget and software."""

    status: Status
    memory: Literal["fits", "tight", "exceeds"]
    time: Literal["ok", "over_deadline", "impractical", "not_asked"]
    budget: Literal["ok", "over_budget", "not_asked"]
    software: Literal["supported", "limited", "unsupported"]
    reasons: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Give the verdict as the contract shapes it."""
        return {
            "status": self.status,
            "memory": self.memory,
            "time": self.time,
            "budget": self.budget,
            "software": self.software,
            "reasons": [reason.to_dict() for reason in self.reasons],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One line of a derivation: a quantity, its formula, what went in (with its origin) and what came out."""

    quantity: str
    formula: str
    inputs: tuple[tuple[str, object, str, str], ...]
    """(name, value, unit, origin) of each input."""
    value: float
    unit: str
    share: float | None = None
    """Part of the total that this term belongs to, 0 to 1."""

    def to_dict(self) -> dict[str, object]:
        """Give the term as `--explain --json` shows it."""
        return {
            "quantity": self.quantity,
            "formula": self.formula,
            "inputs": [
                {"name": name, "value": value, "unit": unit, "origin": origin}
                for name, value, unit, origin in self.inputs
            ],
            "value": self.value,
            "unit": self.unit,
            "share": self.share,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Everything that is known about one scenario. `to_dict()` is exactly the JSON of `llmfeas estimate --json`."""

    scenario: Scenario
    catalog: str
    parameters: Parameters
    flops: Flops
    memory: Memory
    time: TrainingTime | InferenceTime
    cost: Cost
    verdict: Verdict
    warnings: tuple[Note, ...] = ()
    ladder: tuple[Mapping[str, object], ...] = ()
    remedies: tuple[Mapping[str, object], ...] = ()
    explanation: tuple[Term, ...] = ()

    @property
    def total_seconds(self) -> Range | None:
        """The whole job; None in inference, which has no end."""
        return self.time.total_seconds if isinstance(self.time, TrainingTime) else None

    def to_dict(self) -> dict[str, object]:
        """Give the whole envelope: schema, version, catalog digest, inputs, result, warnings."""
        from .. import __version__
        from .inputs import inputs

        envelope: dict[str, object] = {
            "schema": SCHEMA,
            "llmfeas": __version__,
            "catalog": self.catalog,
            "inputs": inputs(self.scenario),
            "result": self.result(),
            "warnings": [warning.to_dict() for warning in self.warnings],
        }
        if self.explanation:
            envelope["explanation"] = [term.to_dict() for term in self.explanation]
        return envelope

    def result(self) -> dict[str, object]:
        """Give the `result` part of the envelope."""
        return {"parameters": plain(self.parameters), "flops": plain(self.flops), **self.judgement()}

    def judgement(self) -> dict[str, object]:
        """Give the parts of the result that follow parameters and FLOPs."""
        return {
            "memory": self.memory.to_dict(),
            "time": self.time.to_dict(),
            "cost": self.cost.to_dict(),
            "verdict": self.verdict.to_dict(),
            "ladder": [dict(rung) for rung in self.ladder],
            "remedies": [dict(remedy) for remedy in self.remedies],
        }
