"""The answer to one scenario, shaped as the JSON contract shapes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

from ..contract import ABSENT, Absent, Added, Json, MayBeNull, Published, envelope, hidden, plain, published, written
from ..contract import Note as Note
from ..memory.peak import Memory
from ..memory.serving_room import ServingRoom
from ..objectives import Task
from ..ranges import LoadBound, Range, Wait
from ..record import dataclass
from ..scenario import Scenario
from ..timing.inference import InferenceTime
from ..timing.training import TrainingTime
from ..units import format_bytes, format_duration
from ..workload.flops import Flops
from ..workload.parameters import Parameters
from .long_run import LongRun
from .purchase import Purchase

SCHEMA = "llmfeas.estimate/1"

LoadVerdict = Literal["ok", "tight", "missed", "overloaded", "not_asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles(Published):
    """What half of the requests, and what 19 of 20, stay below; null where that grows without end."""

    p50: Wait | None
    p95: Wait | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLoad(Published):
    """What a server does for the requests that come, all replicas together."""

    ttft_seconds: Percentiles
    """From sending a request to its first token, over requests."""
    tpot_seconds: Percentiles
    """Per token after the first, over requests."""
    output_tokens_per_second: Range
    requests_per_second: Range
    """Requests that are finished."""
    waiting: Wait | None
    """Requests that wait to be let in, on average; null where they grow without end."""
    running: Range
    """Requests that are worked on at once, on average."""
    largest_requests_per_second: Range
    """What can be finished at most, with these lengths."""
    bound_by: LoadBound
    prompt_tokens: Added[int]
    """Of a request on average: as asked, else of a short chat."""
    answer_tokens: Added[int]
    is_stable: bool = hidden()
    """Requests do not come faster than they are finished."""


Status = Literal["feasible", "tight", "infeasible", "unsupported"]


@dataclass(frozen=True, slots=True)
class Rent(Published):
    """What one device costs, who says so, and when."""

    usd_per_device_hour: float
    provider: str | None
    as_of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission(Published):
    """CO2 equivalents of the energy, by the mean of a year of the region's electricity."""

    region: str
    as_of: str
    g_per_kwh: float
    kg: Range | None
    """Of the whole job (training)."""
    kg_per_million_tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Published):
    """Rent and electricity of the whole job (training) or per million generated tokens (inference)."""

    usd: Range | None
    energy_kwh: Range | None
    usd_per_million_tokens: float | None
    energy_kwh_per_million_tokens: float | None
    price: Rent | None
    purchase: Added[Purchase | None] = None
    """What is bought, where something is; `usd` then counts its wear, not the rent."""
    co2: Added[Emission | None] = None
    """What the energy stands for where it is generated, where a region was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Published):
    """Can it be done; the worst of memory, time, budget and software."""

    status: Status
    memory: Literal["fits", "tight", "exceeds"]
    time: Literal["ok", "over_deadline", "impractical", "not_asked"]
    budget: Literal["ok", "over_budget", "not_asked"]
    software: Literal["supported", "limited", "unsupported"]
    load: Added[LoadVerdict] = "not_asked"
    """Whether the server keeps up with the rate, and its users' waits with the targets."""
    reasons: tuple[Note, ...] = ()

    def works(self, *, surely: bool = False) -> bool:
        """Whether it can be done; unless `surely`, also where it may just do."""
        return self.status == "feasible" or (self.status == "tight" and not surely)

    @property
    def takes_too_long(self) -> bool:
        """Whether it ends past the deadline, or past what is practical."""
        return self.time in ("over_deadline", "impractical")

    @property
    def is_late(self) -> bool:
        """Whether more speed or less cost would help."""
        return self.takes_too_long or self.budget == "over_budget"


@dataclass(frozen=True, slots=True)
class TermInput(Published):
    """What went into a term."""

    name: str
    value: object
    unit: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGroup(Published):
    """Tensors alike that are alive at the peak."""

    operator: str
    """What makes them."""
    shape: tuple[int, ...]
    bytes_per_element: int
    count: int
    bytes: float
    """Of all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term(Published):
    """One line of a derivation: a quantity, its formula, what went in (with its origin) and what came out."""

    quantity: str
    text: Added[str]
    """What it is, in words."""
    formula: str
    """Arithmetic (`+ - * / **`, `max`, `min`) on the names of the inputs; it gives the value."""
    inputs: tuple[TermInput, ...]
    value: float
    unit: str
    share: float | None = None
    """Part of the total that this term belongs to, 0 to 1."""
    tensors: Added[tuple[TensorGroup, ...] | Absent] = ABSENT
    """What the bytes of a component are made of at the peak, where they were walked."""


@dataclass(frozen=True, slots=True)
class Rung(Published):
    """Another job for the same model and device: one rung of the ladder."""

    label: str
    task: Task
    quant: str | None
    precision: str | None
    status: Status
    peak_bytes: MayBeNull[float]
    """The expected peak on one device."""
    host_bytes: Added[float] = 0.0
    """What layers, experts or states take of the host's memory, for one device."""
    adapters: Added[str | None] = None
    """What trains in a task with an objective, as `--adapters` has it."""
    micro_batch: Added[int | None] = None
    """Sequences of a training that a device takes at once: the smaller a rung, the more of them may fit."""
    because: Added[Literal["impractical", "over_deadline", "over_budget"] | None] = None
    """What stands against a job that memory has room for."""
    engine: Added[str | None] = None
    """The software that runs it."""


@dataclass(frozen=True, slots=True)
class MemorySize(Published):
    """A memory size that the machine is sold in, and the answer there."""

    memory_bytes: float
    status: Status
    assumed: bool
    """The one that the estimate is for, since none was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use(Published):
    """What the machine does with the model in one use that people make of it."""

    label: str
    task: Task
    changes: Mapping[str, object]
    """Settings that make it so, by name: the task, and what else the request has to say."""
    quant: str | None
    """Format of the weights; null where none are stored in fewer bits than the model was published in."""
    gpu_layers: int | None
    """Layers on the device where others stay on the host."""
    n_cpu_moe: Added[int | None]
    """Layers whose experts stay in main memory."""
    verdict: Verdict
    peak_bytes: float
    """The expected peak on one device."""
    tokens: float | None
    """Tokens that are trained on; null in inference."""
    total_seconds: float | None
    decode_tokens_per_second: float | None
    part: Added[Mapping[str, object] | None] = None
    """Where it does not work for want of memory alone: the settings with as much as would do, of what the machine is
    sold with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy(Published):
    """What would have to change, and what it then comes to."""

    changes: Mapping[str, object]
    """Settings by name; `auto` as a value means: as if nothing had been said."""
    status: Status
    peak_bytes: MayBeNull[float]
    total_seconds: float | None
    decode_tokens_per_second: Added[float | None]
    output_tokens_per_second: Added[float | None]
    """Of all requests under their load, where one was asked: prompts included."""
    message: str
    """What one gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Published):
    """Everything that is known about one scenario. `to_dict()` is exactly the JSON of `llmfeas estimate --json`."""

    scenario: Scenario = hidden()
    catalog: str = hidden()
    parameters: Parameters
    flops: Flops
    memory: Memory
    time: TrainingTime | InferenceTime
    verdict: Verdict
    failing: Callable[[], LongRun | None] | None = hidden(default=None, compare=False, repr=False)
    """Gives checkpoints and failures of a training; they cost a walk of their own."""
    reads: Added[Literal["texts", "pairs"] | Absent] = ABSENT
    """What a model that writes nothing is served with: texts, of which it makes vectors or numbers, or a query and a
    text together, which it scores."""
    serving: Added[ServingRoom | None] = None
    """What a server makes of its share of the device; null where the engine takes no share, and in training."""
    warnings: tuple[Note, ...] = hidden(default=())
    ladder: tuple[Rung, ...] = ()
    """What else this model can do on this device, from pre-training down to 4-bit inference."""
    uses: Added[tuple[Use, ...] | Absent] = ABSENT
    """What this machine does with this model, use by use; there where the request says no task."""
    memory_sizes: Added[tuple[MemorySize, ...] | Absent] = ABSENT
    """The sizes that the machine is sold in, the smallest first; there where the request says none of several."""
    remedies: tuple[Remedy, ...] = ()
    """The nearest ways to yes, where it is not feasible as asked."""
    faster: Added[tuple[Remedy, ...] | Absent] = ABSENT
    """The nearest ways to keep all on the device; there where the engine's own fit leaves layers or experts on the
    host."""
    explanation: tuple[Term, ...] = hidden(default=())
    under_load: Callable[[], ServedLoad] | None = hidden(default=None, compare=False, repr=False)
    """Gives the figures of the load, where there is one: they cost more than all others together."""
    priced: Callable[[], Cost] = hidden(compare=False, repr=False)
    """Gives the cost, which in serving follows from the load."""
    _repr_html_: ClassVar[Callable[[Estimate], str]]
    """How a notebook shows it; the package itself attaches it, since drawing stands above this room."""

    def __repr__(self) -> str:
        scenario, memory, total = self.scenario, self.memory, self.total_seconds
        asked = f"{scenario.model.id}, {scenario.task} on {scenario.num_devices} x {scenario.device.id}"
        room = f"{format_bytes(memory.peak_bytes.expected)} of {format_bytes(memory.usable_bytes)}"
        speed = format_duration(total.expected) if total else f"{self.speed.expected:,.0f} tokens/s"
        return f"<Estimate {asked}: {self.verdict.status}, {room}, {speed}>"

    @property
    def total_seconds(self) -> Range | None:
        """Time of the whole job; None in inference without an end."""
        return self.time.total_seconds

    @property
    def speed(self) -> Range:
        """Tokens a second: of the training, or of all requests together: written, under the load where there is one,
        or read where none are written.
        """
        time = self.time
        if self.scenario.has_load and isinstance(time, InferenceTime):
            return time.output_tokens_per_second
        return self.unloaded_speed

    @property
    def unloaded_speed(self) -> Range:
        """The same while all requests decode and none is read."""
        time = self.time
        if isinstance(time, TrainingTime):
            return time.tokens_per_second
        return (
            time.decode_tokens_per_second if self.scenario.model.architecture.writes else time.prefill_tokens_per_second
        )

    @published
    def cost(self) -> Cost:
        """Rent and electricity."""
        return self.priced()

    @published
    def long_run(self) -> Added[LongRun | Absent]:
        """Checkpoints and failures of a training on several machines, or where --mtbf or --storage is given."""
        return (self.failing() if self.failing is not None else None) or ABSENT

    @published
    def load(self) -> ServedLoad | Absent:
        """The server under its load; there where a rate, several requests or a target are given."""
        return ABSENT if self.under_load is None else self.under_load()

    def to_dict(self) -> Json:
        """The whole envelope: schema, version, catalog digest, inputs, result, warnings, derivation if there is one."""
        from .inputs import inputs

        found = envelope("estimate", self.catalog, inputs(self.scenario), self.result(), self.warnings)
        return {**found, "explanation": plain(self.explanation)} if self.explanation else found

    def result(self) -> Json:
        """The `result` part of the envelope."""
        return written(self)
