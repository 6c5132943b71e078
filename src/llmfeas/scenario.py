"""The settled question: a `Scenario`, in which every setting is decided."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any, Literal, get_args

from .adapters import ADAPTERS, VIRTUAL_TOKENS, AdapterKind, LoraKind
from .catalog.architecture import Model
from .catalog.device import Device
from .catalog.quantization import StoredWeights
from .objectives import ADAPTED, OBJECTIVES, Objective, Task, method_of
from .record import dataclass, field

if TYPE_CHECKING:
    from .catalog.engine import Engine
    from .catalog.tables import Tables

Origin = Literal["given", "default", "device", "model", "backend", "derived"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
UNGUIDED: tuple[Task, ...] = ("pretrain", "finetune", "lora", "qlora")
"""Trainings on plain text, whose name says how weights change."""
BATCH = ("micro_batch", "global_batch", "concurrency")
"""Settings of the batch: what many scenarios of one sweep differ in."""


@dataclass(frozen=True, slots=True)
class Spill:
    """What an engine that fits a model by itself leaves on the host where it needs more than is expected."""

    settings: tuple[tuple[str, int], ...]
    """`n_cpu_moe`, `gpu_layers`, with which it surely fits."""
    share: float
    """Of all runs, those that need more than the device has."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A fully decided question: one model on `num_devices` devices, with one recipe, and what it looks numbers up in.

    Bytes, seconds, bytes a second; `micro_batch` is in sequences per data-parallel rank, `global_batch` in sequences;
    with an objective both count examples. `dp = num_devices / (tp * pp * cp)`; experts divide over `ep` of these ranks.
    Settings without meaning for the task hold their neutral value (1, 0, "none", None).
    """

    model: Model
    model_path: str | None = None
    """Where the model was read from; None for the catalog's."""
    asked_by: str = ""
    """The name by which one of the catalog was asked for; no figure depends on it."""
    model_context: int | None = None  # as said, by a person or by its name; None: as published under its id
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
    reserve_bytes: float = 0.0  # held by a screen and other programs on each device
    wired_limit_bytes: float | None = None
    """What macOS lets the GPU of a Mac have of its memory."""
    host_memory_bytes: float
    host_gb_per_s: float | None = None
    """Bandwidth of the host's memory as given; None: by its size."""
    power_limit_w: float | None = None  # of each device; None: its board's. `device` is what that leaves
    task: Task
    loss: str | None = None
    """What a task with an objective makes better, a row of `objectives`; None for the others."""
    reference: Literal["loaded", "precomputed", "none"] | None = None
    """Whether the model as it was is there, or its answers were computed in advance; None where the loss has none."""
    teacher: str | None = None  # the model that a student learns from
    reward_model: str | None = None  # the model that judges answers, or `function`
    critic: str | None = None  # the model that foresees rewards
    beside: tuple[tuple[str, Model], ...] = ()
    """These models, with the settings that name them."""
    group_size: int | None = None
    """Answers to one prompt that are compared; None: one answer alone."""
    response_length: int | None = None
    """Tokens of an answer that the model writes, on average; None where it writes none."""
    longest_response: int | None = None
    """Tokens of the longest of them, which the training waits for; None where none are written."""
    rollout_engine: Literal["vllm", "transformers"] | None = None
    """What writes answers: a server, or the model that trains by itself; None where none are written."""
    colocate: Literal["true", "false"] | None = None
    """Answers are written on the devices that train; false: on as many of the same kind beside them."""
    sleep: Literal["true", "false"] | None = None
    """The server among them gives its memory back while weights train; None where there is none."""
    adapters: Literal["none", "lora", "qlora"] | None = None
    """What trains in a task with an objective; the others say it by their name."""
    tokens: float | None = None
    """Tokens of the whole training; of examples: their number x the tokens of one x epochs."""
    examples: float | None = None
    example_tokens: int | None = None
    """Tokens of an example on average, at most `seq_len`; None where no examples are counted, as with `epochs`."""
    epochs: float | None = None
    text_bytes: float | None = None  # of the data set, where its text is what was counted
    bytes_per_token: float | None = None  # of that text
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
    base_dtype: Literal["fp32", "bf16", "fp16"] | None = None
    """Of a frozen base; None where nothing is frozen, or it is in few bits."""
    lora_rank: int = 16
    lora_targets: Literal["all-linear", "attention"] = "all-linear"
    lora_kind: LoraKind = "lora"
    lora_layers: int | None = None
    """So many last layers have adapters; None: all."""
    virtual_tokens: int = VIRTUAL_TOKENS
    """Learned beside the text of each sequence, by adapters that are tokens."""
    lora_dropout: float = 0.0
    zero: int = 0
    tp: int = 1
    pp: int = 1
    interleave: int = 1
    ep: int = 1
    cp: int = 1
    offload: Literal["none", "activations", "optimizer", "all"] = "none"
    offload_layers: int | None = None
    """Layers of which something moves; None: all."""
    drive_gb_per_s: float | None = None
    """Of the drive of a machine that takes what moves; None: it lies in main memory."""
    cache_held: Literal["whole", "written"] = "whole"  # by each request of a load, of a server's cache
    gpu_layers: int | None = None
    ubatch: int | None = None
    """Tokens of prompts that llama.cpp takes through the layers at once; None: the engine has another way."""
    n_cpu_moe: int | None = None
    """The first so many layers keep their routed experts in the host's memory; None: none do."""
    spill: Spill | None = None
    """What the engine's own fit does where all is expected to fit, but may not; None: there is no such doubt."""
    context: int | None = None
    prompt: int = 0
    images: int = 0
    """Images in each prompt, whose tokens `prompt` holds."""
    output: int | None = None
    """Mean tokens of an answer; None in training."""
    concurrency: int = 1
    rate: float | None = None  # requests a second
    requests: int | None = None  # None: a load that goes on
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
    transformers: Literal["4", "4.48", "5"] = "5"
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
    region: str | None = None
    """Where it runs; None: its CO2 is not counted."""
    device_mtbf_seconds: float | None = None
    """Mean time between failures of one device; None where failures are not counted."""
    storage_gb_per_s: float | None = None
    """Where checkpoints go and tokens come from, of the whole job; None where they are not counted."""
    loader_tokens_per_s: float | None = None
    """What the data loaders of the whole job bring; None: enough."""
    deadline_seconds: float | None = None
    budget_usd: float | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Where each setting comes from, by its name; "given" marks what the user said."""
    shared: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was found out for scenarios that differ in their batch alone, which share it (`findings`)."""

    def with_batch(self, batch: Mapping[str, int], origins: Mapping[str, Origin]) -> Scenario:
        """The same scenario with other settings of `BATCH`, and where they come from."""
        twin = object.__new__(Scenario)
        vars(twin).update(vars(self), **batch)
        if origins:
            vars(twin)["origins"] = {**self.origins, **origins}
        return twin

    def in_batch_of(self, other: Scenario) -> Scenario:
        """The same with the batch of another one, for what is kept across batches and found in one of them."""
        return self.with_batch({name: getattr(other, name) for name in (*BATCH, "max_num_seqs", "length_spread")}, {})

    def on(self, part: Device) -> Scenario:
        """The same question as if all of its devices were as one of its unequal ones."""
        twin = object.__new__(Scenario)
        shared = self.shared.setdefault(("on", part.id), {})
        vars(twin).update(vars(self), device=part, memory_bytes=part.memory_bytes, shared=shared)
        return twin

    def __replace__(self, **settings: Any) -> Scenario:
        """The same question with other settings (`record.replace`), in a tenth of the time that its fields take one by
        one: searches try many.
        """
        twin = object.__new__(Scenario)
        vars(twin).update(vars(self), **settings, shared={})
        vars(twin).pop("engine_record", None)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what was found out: it can be found out again."""
        return {**vars(self), "shared": {}}

    @property
    def method(self) -> str:
        """How weights change: `pretrain`, `finetune`, `lora`, `qlora`, or `inference` where they do not."""
        return self.task if self.adapters is None else method_of(self.task, self.adapters)

    @property
    def trains_adapters(self) -> bool:
        """Whether adapters train, beside a base that is frozen."""
        return self.method in ADAPTED

    @property
    def adapter_kind(self) -> AdapterKind | None:
        """What trains beside a frozen base; None where the weights train."""
        return ADAPTERS[self.lora_kind] if self.method in ADAPTED else None

    @property
    def pass_tokens(self) -> int:
        """Tokens of a sequence as the model sees it: its own, and learned ones before them."""
        kind = self.adapter_kind
        return self.seq_len + (self.virtual_tokens if kind is not None and kind.virtual == "input" else 0)

    @property
    def rank_tokens(self) -> int:
        """Of these the ones that one rank computes on."""
        return -(-self.pass_tokens // self.cp)

    @property
    def objective(self) -> Objective | None:
        """What a task with an objective makes better; None for the others."""
        return None if self.loss is None else OBJECTIVES[self.loss]

    @property
    def sequences_an_example(self) -> int:
        """Sequences of one example of a batch: 2 where a chosen answer stands beside a rejected one."""
        return 1 if self.loss is None else OBJECTIVES[self.loss].sequences

    @property
    def sequences(self) -> int:
        """Sequences that pass through the model on one rank: those of the examples of a micro-batch."""
        return self.micro_batch * self.sequences_an_example

    @property
    def turns(self) -> int:
        """Passes, one after the other, in which those sequences see the model."""
        return 1 if self.loss is None else OBJECTIVES[self.loss].turns

    @property
    def sequences_together(self) -> int:
        """Sequences of one such pass."""
        return self.sequences // self.turns

    @property
    def paid_devices(self) -> int:
        """Devices that the job takes: those that train, and as many again where answers are written beside them."""
        return self.num_devices * (2 if self.colocate == "false" else 1)

    @property
    def dp(self) -> int:
        """Data-parallel ranks that have work: a global batch below their number leaves some idle."""
        ranks = self.num_devices // (self.tp * self.pp * self.cp)
        return 1 if ranks < 2 else min(ranks, max(1, self.global_batch // self.micro_batch))

    @property
    def shards(self) -> int:
        """Ranks that ZeRO divides over: data-parallel and context-parallel ones hold the same weights."""
        return self.dp * self.cp

    @property
    def devices_a_machine(self) -> int:
        """Devices that one machine has of the job."""
        return min(self.num_devices, self.devices_per_node)

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
    def places_experts(self) -> bool:
        """Whether the engine's own fit decided how many layers keep their experts on the host."""
        return self.n_cpu_moe is not None and self.origins.get("n_cpu_moe") == "derived"

    @property
    def has_load(self) -> bool:
        """Whether several requests, or targets for one, are asked for: then it is a server that is judged.

        Not of an encoder, which writes no answers that others could wait for, nor of an encoder-decoder, whose prompts
        no server takes in parts beside its answers.
        """
        targets = self.ttft_seconds is not None or self.tpot_seconds is not None
        many = targets or bool(self.rate or self.requests) or self.concurrency > 1
        architecture = self.model.architecture
        return many and architecture.writes and not (self.is_training or architecture.source)

    @property
    def states_on_host(self) -> bool:
        """Optimizer states lie in the memory of the host."""
        return self.offload in ("optimizer", "all")

    @cached_property
    def engine_record(self) -> Engine:
        """What is known of the engine."""
        return self.tables.engine(self.engine)

    def was_given(self, name: str) -> bool:
        """Whether the user gave this setting."""
        return self.origins.get(name) == "given"
