"""What the inverse questions share: the answer's shape, and one estimate that may be refused."""

from __future__ import annotations

from collections.abc import Mapping

from ...catalog.store import Catalog
from ...contract import Added, Json, Published, envelope, hidden
from ...errors import LlmfeasError
from ...feasibility.bounds import time_limit_seconds
from ...feasibility.core import estimate
from ...feasibility.load_verdict import is_followed
from ...feasibility.result import Estimate, Status
from ...feasibility.software import software_support
from ...feasibility.verdict import why
from ...record import dataclass
from ...settle import before_layout, resolution
from ...timing.served import keeps_up
from ...timing.training import least_job_seconds
from ...workload.serving import spills
from ..asked import unless_refused

Request = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Instead(Published):
    """A change with which what was asked would fit, and what the answer then is."""

    changes: Mapping[str, object]
    status: Status
    answer: float
    message: str
    """What one gives up."""


@dataclass(frozen=True, slots=True)
class Answer(Published):
    """The answer of an inverse question, the estimate there, and what happens one step beyond."""

    question: str
    answer: Mapping[str, object]
    at: Estimate | None = None
    beyond: Mapping[str, object] | None = None
    notes: tuple[str, ...] = ()
    ways: Added[tuple[Instead, ...]] = ()
    """Where the answer is of a job that does not fit."""
    inputs: Json = hidden(default_factory=dict, compare=False)
    """What was asked."""
    catalog: str = hidden(default="", compare=False)
    """The data's digest."""

    def __repr__(self) -> str:
        found = {name: value for name, value in self.answer.items() if not isinstance(value, list | tuple)}
        return f"<Answer to {self.question}: {found}, there {self.at!r}, beyond {self.beyond}>"

    def to_dict(self) -> Json:
        """The JSON of `llmfeas solve --json`."""
        warnings = self.at.warnings if self.at else ()
        return envelope("solve", self.catalog, self.inputs, self, warnings)


def estimated(request: Request, catalog: Catalog) -> Estimate | None:
    """Estimate a request; None where this value of a setting is refused.

    Raises:
        UsageError: for anything else that is wrong with the request.
    """
    settled = unless_refused(request, catalog)
    return None if settled is None else estimate(settled)


def kept_up(request: Request, catalog: Catalog) -> Estimate | None:
    """The same, None too where a server does not keep up with its load: that is seen at a quarter of the work."""
    settled = unless_refused(request, catalog)
    if settled is None:
        return None
    scenario = settled.scenario
    lags = scenario.has_load and is_followed(scenario) and not keeps_up(scenario)
    return None if lags else estimate(settled)


def may_run(request: Request, catalog: Catalog) -> bool:
    """Whether software runs a request, which is known before a layout is; a refused one may."""
    try:
        known = before_layout(request, catalog)
    except LlmfeasError:
        return True
    return software_support(known.scenario, known.backend)[0] != "unsupported"


def never_in_time(request: Request, catalog: Catalog) -> bool:
    """Whether software runs a training, and no layout of its devices ends in time."""
    return lateness(request, catalog) > 1.0


def lateness(request: Request, catalog: Catalog) -> float:
    """By what factor any layout of a training's devices misses the time at least; 0 where none is known to."""
    try:
        known = before_layout(request, catalog)
    except LlmfeasError:
        return 0.0
    scenario = known.scenario
    if not scenario.is_training:
        return 0.0
    factor = least_job_seconds(scenario) / time_limit_seconds(scenario)
    if factor <= 1.0:
        return factor
    return 0.0 if software_support(scenario, known.backend)[0] == "unsupported" else factor


def works(result: Estimate | None, *, on_host: bool) -> bool:
    """Whether a request that was estimated works, be it tightly: on the device alone unless layers may lie on the host
    (`on_host`).
    """
    return result is not None and result.verdict.works() and (on_host or not spills(result.scenario))


def outcome(request: Request, catalog: Catalog) -> dict[str, object]:
    """Say what becomes of a request: its status with reasons, or why it is refused."""
    try:
        result = estimate(resolution(request, catalog))
    except LlmfeasError as error:
        return {"status": "refused", "because": error.message}
    reasons = why(result.verdict)
    if result.verdict.works() and spills(result.scenario):
        scenario, layers = result.scenario, result.scenario.model.architecture.layers
        reasons = f"only {scenario.gpu_layers} of {layers} layers stay on the device, the rest runs on the host"
        if scenario.gpu_layers is None:
            reasons = f"the experts of {scenario.n_cpu_moe} of {layers} layers would stay in main memory"
    return {"status": result.verdict.status, "because": reasons}


def without(request: Request, *names: str) -> dict[str, object]:
    """The request without some settings."""
    return {name: value for name, value in request.items() if name not in names}
