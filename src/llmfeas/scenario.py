"""What is asked, in two states: a `Request` as a person gives it, a `Scenario` in which every setting is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property, wraps
from math import gcd
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from .catalog.architecture import Model
from .catalog.device import Device
from .catalog.quantization import StoredWeights
from .record import dataclass

if TYPE_CHECKING:
    from .catalog.engine import Engine
    from .catalog.tables import Tables

Task = Literal["pretrain", "finetune", "lora", "qlora", "inference"]
Origin = Literal["given", "default", "device", "model", "backend", "derived"]
ORIGINS: tuple[Origin, ...] = ("given", "default", "device", "model", "backend", "derived")
TRAINING_TASKS: tuple[Task, ...] = ("pretrain", "finetune", "lora", "qlora")
BATCH = ("micro_batch", "global_batch", "concurrency")
"""Settings of the batch: what many scenarios of one sweep differ in."""
MAX_SHARED = 64
"""Findings that scenarios share at most."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A fully decided question: one model on `num_devices` devices, with one recipe, and what it looks numbers up in.

    Bytes, seconds, bytes a second; `micro_batch` is in sequences per data-parallel rank, `global_batch` in sequences.
    `dp = num_devices / (tp * pp * cp)`; experts divide over `ep` of the data-parallel ranks.
    Settings without meaning for the task hold their neutral value (1, 0, "none", None).
    """

    model: Model
    model_path: str | None = None
    """Where the model was read from; None for the catalog's."""
    stored: StoredWeights | None = None
    """What the model's file really holds; replaces computed bytes of weights in inference."""
    device: Device
    tables: Tables = field(repr=False, compare=False)
    """What estimates look numbers up in: those of the catalog that the question was settled with."""
    offer: str | None = None
    """The offer that the device was named by: its hours and price hold."""
    num_devices: int = 1
    devices_per_node: int = 1
    network_bytes_per_s: float | None = None
    memory_bytes: float
    """Whole memory of one device, as given or by the catalog."""
    host_memory_bytes: float
    task: Task
    tokens: float | None = None
    """Tokens of the whole training; of examples: their number x the tokens of one x epochs."""
    examples: float | None = None
    example_tokens: int | None = None
    """Tokens of an example on average, at most `seq_len`; None where no examples are counted, as with `epochs`."""
    epochs: float | None = None
    seq_len: int = 1
    micro_batch: int = 1
    global_batch: int = 1
    precision: str = "bf16-mixed"
    quant: str = "none"
    optimizer: str = "adamw"
    checkpointing: Literal["none", "selective", "full"] = "none"
    attention: Literal["flash", "eager"] = "flash"
    dropout: float | None = None
    """None: as the model publishes; a number replaces all its dropout rates."""
    lora_rank: int = 16
    lora_targets: Literal["all-linear", "attention"] = "all-linear"
    lora_dropout: float = 0.0
    zero: int = 0
    tp: int = 1
    pp: int = 1
    interleave: int = 1
    ep: int = 1
    cp: int = 1
    offload: Literal["none", "activations", "optimizer", "all"] = "none"
    gpu_layers: int | None = None
    context: int | None = None
    prompt: int = 0
    output: int | None = None
    """Mean tokens of an answer; None in training."""
    concurrency: int = 1
    rate: float | None = None
    """Requests a second."""
    requests: int | None = None
    """None: a load that goes on."""
    length_spread: float = 0.0
    prefix_hit: float = 0.0
    disaggregate: str | None = None
    """Devices for prompts and for answers, `2:6`; None: the same ones."""
    draft: str | None = None
    """A model's name, `mtp` or `eagle`; None: nothing is drafted."""
    draft_model: Model | None = None
    spec_tokens: int | None = None
    acceptance: float | None = None
    ttft_seconds: float | None = None
    tpot_seconds: float | None = None
    kv_dtype: str = "fp16"
    gpu_memory_utilization: float | None = None
    """Share of a device that a server takes; None where the engine has no such share."""
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    enforce_eager: bool | None = None
    """A server captures no graphs; None where nobody could tell it."""
    engine: str = "pytorch"
    engine_version: str | None = None
    """Release of the engine; None: today's."""
    transformers: Literal["4", "5"] = "5"
    """Release that public code runs under."""
    mfu: float | None = None
    price_usd_per_hour: float | None = None
    price_provider: str | None = None
    price_as_of: str | None = None
    session_hours: float | None = None
    """Longest session of a free offer."""
    weekly_hours: float | None = None
    """Hours a week that a free offer gives."""
    purchase_usd: float | None = None
    """Price of one device, where it is bought; `price_usd_per_hour` is then the rent that it is compared with."""
    lifetime_seconds: float | None = None
    electricity_usd_per_kwh: float | None = None
    pue: float = 1.0
    deadline_seconds: float | None = None
    budget_usd: float | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Where each setting comes from, by its name; "given" marks what the user said."""
    shared: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was found out for scenarios that differ in their batch alone, which share it (`whatever_the_batch`)."""

    def with_batch(self, batch: Mapping[str, int], origins: Mapping[str, Origin]) -> Scenario:
        """The same scenario with other settings of `BATCH`, and where they come from."""
        twin = object.__new__(Scenario)
        vars(twin).update(vars(self), **batch, origins={**self.origins, **origins})
        return twin

    def with_tables(self, tables: Tables) -> Scenario:
        """The same scenario under other numbers."""
        twin = object.__new__(Scenario)
        vars(twin).update(vars(self), tables=tables, shared={})
        vars(twin).pop("engine_record", None)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what was found out: it can be found out again."""
        return {**vars(self), "shared": {}}

    @property
    def dp(self) -> int:
        """Data-parallel ranks that have work: a global batch below their number leaves some idle."""
        ranks = self.num_devices // (self.tp * self.pp * self.cp)
        return 1 if ranks < 2 else min(ranks, max(1, self.global_batch // self.micro_batch))

    @property
    def expert_tp(self) -> int:
        """Ranks that share an expert's matrices: 1 where the engine divides none, else tp or what `ep` leaves of it."""
        if not self.engine_record.training.splits_experts:
            return 1
        return self.tp if self.ep == 1 else gcd(self.tp, max(1, self.num_devices // (self.pp * self.ep)))

    @property
    def micro_steps(self) -> int:
        """Micro-batches one rank runs for one optimizer step (gradient accumulation), at least 1."""
        return max(1, -(-self.global_batch // (self.micro_batch * self.dp)))

    @property
    def is_training(self) -> bool:
        """Whether weights change."""
        return self.task != "inference"

    @property
    def pools(self) -> tuple[int, int]:
        """Devices that read prompts and those that write answers; all of them do both where nothing is divided."""
        if self.disaggregate is None:
            return self.num_devices, self.num_devices
        prompts, answers = self.disaggregate.split(":")
        return int(prompts), int(answers)

    @property
    def drafted(self) -> int:
        """Tokens that are drafted ahead in each step."""
        return self.spec_tokens or 0

    @property
    def tokens_a_step(self) -> float:
        """Mean tokens that a decoding step makes of one sequence: 1 + a + ... + a^k (Leviathan et al., ICML 2023)."""
        return float(sum((self.acceptance or 0.0) ** place for place in range(self.drafted + 1)))

    @property
    def has_load(self) -> bool:
        """Whether several requests, or targets for one, are asked for: then it is a server that is judged."""
        targets = self.ttft_seconds is not None or self.tpot_seconds is not None
        return not self.is_training and (targets or bool(self.rate or self.requests) or self.concurrency > 1)

    @property
    def states_on_host(self) -> bool:
        """Optimizer states lie in the memory of the host."""
        return self.offload in ("optimizer", "all")

    @cached_property
    def engine_record(self) -> Engine:
        """What is known of the engine."""
        return self.tables.engine(self.engine)

    def said(self, name: str) -> bool:
        """Whether the user gave this setting."""
        return self.origins.get(name) == "given"


P = ParamSpec("P")
R = TypeVar("R")


def whatever_the_batch(function: Callable[Concatenate[Scenario, P], R]) -> Callable[Concatenate[Scenario, P], R]:
    """Keep what a function finds in a scenario, for all that differ from it in their batch alone.

    The function looks at no setting of `BATCH` but through its further arguments, which are few and hashable.
    """

    @wraps(function)
    def kept(scenario: Scenario, *more: P.args, **named: P.kwargs) -> R:
        key = (function, *more) if more else function
        found = scenario.shared.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            if len(scenario.shared) >= MAX_SHARED:
                scenario.shared.clear()
            found = scenario.shared[key] = function(scenario, *more, **named)
        return found  # type: ignore[no-any-return]

    return kept  # type: ignore[return-value]


_UNKNOWN = object()
