"""What can be expected of an estimate, one row each: its name, its unit, what it reads, and which end is the worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from ..errors import UsageError
from ..feasibility.result import Estimate
from ..options import EVERY_TASK, INFERENCE, TRAINING
from ..ranges import Range
from ..record import dataclass
from ..text import printable
from ..timing.training import TrainingTime
from ..units import (
    GB,
    GIB,
    TB,
    Number,
    digits,
    format_bytes,
    format_count,
    format_duration,
    format_energy,
    format_flop,
    format_percent,
    format_usd,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_fraction,
    parse_money,
)

End = Literal["expected", "worst"]


@dataclass(frozen=True, slots=True)
class Unit:
    """How figures of one unit are read and written; `size` is one of them in base units."""

    name: str
    size: float
    parse: Callable[[Number, str], float]
    """Gives base units of a text with its unit.

    Raises:
        UsageError: it has another unit, or is no number.
    """
    written: Callable[[float], str]
    """Writes base units."""

    def read(self, value: object, what: str) -> float:
        """Read a figure, in this unit unless its text names another that fits.

        Raises:
            UsageError: no figure, or a unit that does not fit.
        """
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UsageError("bad-quantity", f"{what}: '{printable(value, 40)}' is no number", f"It is in {self.name}.")
        if isinstance(value, str):
            bare = value.strip()
            try:
                value = float(bare)
            except ValueError:
                return self.parse(bare, what) / self.size
        return float(self.parse(float(value) * self.size, what)) / self.size


def _counted(value: Number, what: str) -> float:
    return parse_count(value, what, 0, 1e40)


def _energy(value: Number, what: str) -> float:
    bare = value.lower().removesuffix("kwh").strip() if isinstance(value, str) else value
    return parse_count(bare, what, 0, 1e15, "500 or 1.2k")


def _rate(value: Number, what: str) -> float:
    bare = value.lower().removesuffix("tokens/s").strip() if isinstance(value, str) else value
    return parse_count(bare, what, 0, 1e15, "20 or 1.5k")


def _bytes(value: Number, what: str) -> float:
    return parse_bytes(value, what, 0)


def _rate_written(value: float) -> str:
    return f"{format_count(value)} tokens/s"


def _gb_written(value: float) -> str:
    return f"{digits(value / TB)} TB" if abs(value) >= 999.5 * GB else f"{digits(value / GB)} GB"


def _duration(value: Number, what: str) -> float:
    return parse_duration(value, what, 0)


GIBIBYTES = Unit("GiB", GIB, _bytes, format_bytes)
GIGABYTES = Unit("GB", GB, _bytes, _gb_written)
SECONDS = Unit("seconds", 1, _duration, format_duration)
USD = Unit("USD", 1, parse_money, format_usd)
KWH = Unit("kWh", 1, _energy, format_energy)
RATE = Unit("tokens/s", 1, _rate, _rate_written)
COUNT = Unit("", 1, _counted, format_count)
FLOP = Unit("FLOP", 1, _counted, format_flop)
SHARE = Unit("share", 1, parse_fraction, format_percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that an estimate gives; `read` is in base units, None where it is unknown."""

    name: str
    unit: Unit
    help: str
    read: Callable[[Estimate], Range | float | None]
    worst: Literal["low", "high"] = "high"
    """Which end of its range is the pessimistic one."""
    tasks: frozenset[str] = EVERY_TASK
    quantity: str = ""
    """What it measures; two figures of one quantity (in GiB and in GB) must not contradict each other."""

    def of(self, estimate: Estimate) -> Range | None:
        """The figure in its unit, with its range."""
        value = self.read(estimate)
        if value is None:
            return None
        return (value if isinstance(value, Range) else Range.exact(value)).scaled(1 / self.unit.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word that an estimate gives, out of a few."""

    name: str
    help: str
    words: tuple[str, ...]
    read: Callable[[Estimate], str | None]
    tasks: frozenset[str] = EVERY_TASK


def _time(key: str) -> Callable[[Estimate], Range | None]:
    def read(estimate: Estimate) -> Range | None:
        value = getattr(estimate.time, key, None)
        return value if isinstance(value, Range) else None

    return read


def _component(key: str) -> Callable[[Estimate], float]:
    return lambda estimate: estimate.memory.components.get(key, 0.0)


def _room(key: str) -> Callable[[Estimate], Range | None]:
    def read(estimate: Estimate) -> Range | None:
        return None if estimate.serving is None else getattr(estimate.serving, key)

    return read


def _headroom(estimate: Estimate) -> Range:
    usable, peak = estimate.memory.usable_bytes, estimate.memory.peak_bytes
    return Range(usable - peak.high, usable - peak.expected, usable - peak.low)


def _bound(estimate: Estimate) -> str:
    time = estimate.time
    return time.bound_by if isinstance(time, TrainingTime) else time.decode_bound_by


def _in_gib_and_gb(name: str, help: str, read: Callable[[Estimate], Range | float | None]) -> tuple[Figure, Figure]:
    return (
        Figure(name=f"{name}_gib", unit=GIBIBYTES, help=f"{help}, in GiB (2^30).", read=read, quantity=name),
        Figure(name=f"{name}_gb", unit=GIGABYTES, help=f"{help}, in GB (10^9).", read=read, quantity=name),
    )


# fmt: off
FIGURES: Mapping[str, Figure] = {figure.name: figure for figure in (
    *_in_gib_and_gb("peak", "Peak memory of one device", lambda e: e.memory.peak_bytes),
    *_in_gib_and_gb("weights", "Weights alive at the peak", _component("weights_bytes")),
    *_in_gib_and_gb("gradients", "Gradients alive at the peak", _component("gradients_bytes")),
    *_in_gib_and_gb("optimizer", "Optimizer states", _component("optimizer_bytes")),
    *_in_gib_and_gb("activations", "Activations alive at the peak", _component("activations_bytes")),
    *_in_gib_and_gb("kv_cache", "Key-value cache of the whole context", lambda e: e.memory.kv_cache_bytes),
    *_in_gib_and_gb("weights_file", "Weights as stored on disk", lambda e: e.memory.weights_file_bytes),
    *_in_gib_and_gb("host", "What the host's memory holds", lambda e: e.memory.host_bytes),
    *_in_gib_and_gb("usable", "What one device lets a process use", lambda e: e.memory.usable_bytes),
    Figure(name="headroom_gib", unit=GIBIBYTES, worst="low", read=_headroom,
           help="Usable memory that the peak leaves free, in GiB."),
    *_in_gib_and_gb("kv_pool", "Room that a server finds for its cache on one device", _room("kv_pool_bytes")),
    Figure(name="kv_pool_tokens", unit=COUNT, worst="low", read=_room("kv_pool_tokens"), tasks=INFERENCE,
           help="Tokens that a server's cache has room for."),
    Figure(name="requests_at_once", unit=COUNT, worst="low", read=_room("requests_at_once"), tasks=INFERENCE,
           help="Requests of the whole context that a server runs at the same time."),
    Figure(name="parameters", unit=COUNT, help="All parameters.", read=lambda e: e.parameters.total),
    Figure(name="active_parameters", unit=COUNT, help="Parameters active for a token.",
           read=lambda e: e.parameters.active),
    Figure(name="trainable_parameters", unit=COUNT, help="Parameters that train.",
           read=lambda e: e.parameters.trainable),
    Figure(name="rule_of_thumb_flop", unit=FLOP, help="6 N D of training, 2 N D of inference.",
           read=lambda e: e.flops.rule_of_thumb),
    Figure(name="model_flop", unit=FLOP, help="FLOPs that the model asks for.", read=lambda e: e.flops.model),
    Figure(name="hardware_flop", unit=FLOP, help="FLOPs that are executed.", read=lambda e: e.flops.hardware),
    Figure(name="total", unit=SECONDS, help="Time of the whole training, such as 3d.",
           read=_time("total_seconds"), tasks=TRAINING),
    Figure(name="step", unit=SECONDS, help="Time of one optimizer step.", read=_time("step_seconds"), tasks=TRAINING),
    Figure(name="tokens_per_second", unit=RATE, worst="low", help="Speed of training, all devices.",
           read=_time("tokens_per_second"), tasks=TRAINING),
    Figure(name="mfu", unit=SHARE, worst="low", help="Share of the dense peak that training reaches.",
           read=_time("mfu"), tasks=TRAINING),
    Figure(name="prefill_tokens_per_second", unit=RATE, worst="low", help="Speed of reading a prompt.",
           read=_time("prefill_tokens_per_second"), tasks=INFERENCE),
    Figure(name="decode_tokens_per_second", unit=RATE, worst="low", help="Speed of writing, all requests together.",
           read=_time("decode_tokens_per_second"), tasks=INFERENCE),
    Figure(name="time_to_first_token", unit=SECONDS, help="Wait before the first token.",
           read=_time("time_to_first_token_seconds"), tasks=INFERENCE),
    Figure(name="usd", unit=USD, help="Cost of the whole training.", read=lambda e: e.cost.usd, tasks=TRAINING),
    Figure(name="usd_per_million_tokens", unit=USD, help="Cost of a million tokens.",
           read=lambda e: e.cost.usd_per_million_tokens),
    Figure(name="energy_kwh", unit=KWH, help="Energy of the whole training.",
           read=lambda e: e.cost.energy_kwh, tasks=TRAINING),
    Figure(name="energy_kwh_per_million_tokens", unit=KWH, help="Energy of a million tokens.",
           read=lambda e: e.cost.energy_kwh_per_million_tokens),
)}

WORDS: Mapping[str, Word] = {word.name: word for word in (
    Word(name="fits", words=("true", "false"), help="Whether the peak is within usable memory.",
         read=lambda e: "false" if e.verdict.memory == "exceeds" else "true"),
    Word(name="status", words=("feasible", "tight", "infeasible", "unsupported"), help="The verdict.",
         read=lambda e: e.verdict.status),
    Word(name="memory", words=("fits", "tight", "exceeds"), help="The verdict on memory.",
         read=lambda e: e.verdict.memory),
    Word(name="software", words=("supported", "limited", "unsupported"), help="The verdict on software.",
         read=lambda e: e.verdict.software),
    Word(name="deadline", words=("ok", "over_deadline", "impractical", "not_asked"), help="The verdict on time.",
         read=lambda e: e.verdict.time),
    Word(name="budget", words=("ok", "over_budget", "not_asked"), help="The verdict on money.",
         read=lambda e: e.verdict.budget),
    Word(name="bound_by", words=("compute", "bandwidth", "host", "communication", "bubble", "data"),
         help="What limits the speed, of writing in inference.", read=_bound),
    Word(name="peak_moment", words=("forward", "loss", "backward", "optimizer", "prefill", "decode"),
         help="When the peak is reached.", read=lambda e: e.memory.peak_moment),
)}
# fmt: on

NAMES: tuple[str, ...] = (*WORDS, *FIGURES)

OTHER_NAMES: Mapping[str, str] = {
    "verdict": "status", "time": "total", "total_seconds": "total", "step_seconds": "step", "cost": "usd",
    "peak_bytes": "peak_gib", "memory_bytes": "peak_gib", "memory_gib": "peak_gib", "headroom_bytes": "headroom_gib",
    "ttft": "time_to_first_token", "time_to_first_token_seconds": "time_to_first_token",
    "peak": "peak_gib", "peak_memory": "peak_gib", "vram": "peak_gib", "decode": "decode_tokens_per_second",
    "prefill": "prefill_tokens_per_second", "throughput": "tokens_per_second", "price": "usd", "feasible": "status",
    "speed": "tokens_per_second", "flop": "model_flop", "energy": "energy_kwh",
}  # fmt: skip
"""What a figure is called in the JSON of an estimate, or in plain words, with its name here."""


def word_of(word: Word, estimate: Estimate, at: End = "expected") -> str | None:
    """The word; the peak fits at its pessimistic end only where memory is not tight."""
    if word.name == "fits" and at == "worst":
        return "true" if estimate.verdict.memory == "fits" else "false"
    return word.read(estimate)
