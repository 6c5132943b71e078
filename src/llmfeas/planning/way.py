"""A way to yes: changes that make a request work, what they hurt and where an expert tries them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..feasibility.result import Estimate, Remedy
from ..record import dataclass
from .changes.change import Changes
from .changes.serving import host_pain

TIGHT = 0.9
"""Pain of memory that may run out: a milder change that is tight comes before the next harsher one."""


@dataclass(frozen=True, slots=True)
class Way:
    """A set of changes that makes the request feasible, with the estimate that proves it."""

    changes: Changes
    settings: Mapping[str, object]
    request: Mapping[str, object]
    estimate: Estimate
    asked_engine: str = ""
    """What ran it before the changes."""

    @property
    def total_seconds(self) -> float | None:
        """Expected seconds of the whole job; None in inference."""
        total = self.estimate.total_seconds
        return None if total is None else total.expected

    @property
    def slowness(self) -> float:
        """Seconds of the whole job; in inference of one generated token."""
        seconds = self.total_seconds
        return 1 / (self.estimate.unloaded_speed.expected or 1e-9) if seconds is None else seconds

    @property
    def usd(self) -> float | None:
        """Expected cost: of the job, in inference of a million tokens; None where no price is known."""
        cost = self.estimate.cost
        return cost.usd.expected if cost.usd else cost.usd_per_million_tokens

    @property
    def spilled(self) -> int | None:
        """Layers that stay on the device where the others went to the host by themselves; None where none did."""
        scenario = self.estimate.scenario
        return None if scenario.was_given("gpu_layers") else scenario.gpu_layers

    @property
    def pain(self) -> float:
        """Add up what the changes hurt; running out of memory now and then hurts too, and so do layers on the host."""
        tight = self.estimate.verdict.status == "tight"
        layers = self.estimate.scenario.model.architecture.layers
        # whoever adds memory to the host wants layers there
        wanted = self.spilled is None or "host_memory" in self.settings
        spilled = 0.0 if wanted or self.spilled is None else host_pain(self.spilled, layers)
        return sum(change.pain for change in self.changes) + (TIGHT if tight else 0.0) + spilled + self._experts_pain

    @property
    def tier(self) -> int:
        """The tier of the worst change."""
        return max((change.tier for change in self.changes), default=0)

    @property
    def rank(self) -> tuple[int, bool, int, float, float]:
        """Where an expert tries it: by tier, what is sure first, then by number of changes, pain and speed."""
        tight = self.estimate.verdict.status == "tight"
        return self.tier, tight, len(self.changes), self.pain, self.slowness

    @property
    def _experts_pain(self) -> float:
        """What experts on the host hurt by themselves: half of what whole layers would."""
        scenario = self.estimate.scenario
        layers, moved = scenario.model.architecture.layers, scenario.n_cpu_moe
        nothing = moved is None or not scenario.places_experts or "host_memory" in self.settings
        return 0.0 if nothing else host_pain(layers - (moved or 0), layers) / 2

    def _unsaid(self) -> Iterator[str]:
        """What the changes bring with them: another engine, another format, layers on the host."""
        scenario = self.estimate.scenario
        if self.asked_engine and scenario.engine != self.asked_engine and "engine" not in self.settings:
            yield f"{scenario.engine} instead of {self.asked_engine}"
        other = "engine" in self.settings or not scenario.engine_record.serving.automatic
        if other and "quant" not in self.settings and scenario.origins["quant"] == "derived":
            yield f"{scenario.quant} weights"
        if scenario.places_experts:
            layers = scenario.model.architecture.layers
            yield f"the experts of {scenario.n_cpu_moe} of {layers} layers stay in main memory"
        if self.spilled is not None:
            layers = self.estimate.scenario.model.architecture.layers
            yield f"{self.spilled} of {layers} layers stay on the device, the others run on the host"

    @property
    def remedy(self) -> Remedy:
        """The way as the contract has it."""
        return Remedy(
            changes=self.settings,
            status=self.estimate.verdict.status,
            peak_bytes=self.estimate.memory.peak_bytes.expected,
            total_seconds=self.total_seconds,
            decode_tokens_per_second=self.estimate.unloaded_speed.expected if self.total_seconds is None else None,
            output_tokens_per_second=self.estimate.speed.expected if self.estimate.scenario.has_load else None,
            message="; ".join((*(change.gives_up for change in self.changes), *self._unsaid())),
        )
