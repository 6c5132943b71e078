"""What is known of an engine: how it trains and serves, what it holds, how fast it is, where it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from ..adapters import LoraKind
from ..record import dataclass, field
from .architecture import Architecture
from .backend import WORKS, Backend, Build, Support, named_support, traits_of, unending
from .device import BackendId, Device
from .implementation import KINDS, Implementations
from .quantization import Format
from .records import Entry, LikeError
from .serving_pool import ServingPool, Step
from .types import Count, CountOrZero, Fraction, Identifier, PositiveOrZero, Strict

OLLAMA: Final = "ollama"
DATE: Final = r"20\d\d(-[01]\d(-[0-3]\d)?)?"

Style = Literal["plain", "tuned", "native"]
"""Framework code; fused and overlapping; the same without a framework."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme(Strict):
    """How an engine keeps a mixed-precision model on several devices. Bytes a trained parameter."""

    weight: Count
    gradient: Count
    master: CountOrZero = 0
    """fp32 master weights beside the working ones; sharded with the optimizer's states."""
    state: Count = 4
    """Each of the optimizer's moments."""
    gathers: bool = False
    """FSDP and DDP: 16-bit copies of fp32 shards, gradients in reduction buckets."""
    bucket: CountOrZero = 0
    """Elements in 16 bits that gradients are collected in from ZeRO 2 on, on one device too."""
    joins_gradients: bool = False
    """Up to ZeRO 2 a rank's gradients are joined in one copy before the optimizer's step, and that is widened."""
    whole_gradients: bool = False
    """Gradients live in one buffer from the start."""
    sequence_parallel: bool | None = None
    """Tensor-parallel ranks divide the residual stream too; None: where fused kernels run (torchtitan, MaxText)."""
    compiled: bool = False
    """A compiler lays out the step: 16-bit weights live where they are used, and there are no buckets."""
    remakes_latents: bool = False
    """Recomputing selectively, it makes queries, keys and values again from the latents (mla_up_proj)."""
    narrow_inputs: bool = False
    """In fp8 a product keeps its input in one byte; otherwise the 16-bit one, cast again in backward (torchao)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingOverhead(Strict):
    """What a training engine holds beside tensors. Compared by identity."""

    fixed_bytes: PositiveOrZero = 0.0
    gaps: Fraction = 0.0
    sharded_bytes: PositiveOrZero = 0.0
    whole_buckets: bool = False
    """Buckets are made in full size, however little is trained."""
    grows: Fraction = 0.0
    """Share of the free memory that the allocator takes where routed experts lie on several devices."""
    log_spread: Fraction = 0.2
    sharded_log_spread: Fraction = 0.2
    adapters_log_spread: Fraction | None = None
    sharded_adapters_log_spread: Fraction | None = None
    groups: CountOrZero = 0
    rows: CountOrZero = 0
    divided: TrainingOverhead | None = None
    """The same where `kernels: frameworks` runs fused kernels; None: as ever."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServingMemory(Strict):
    """Cache, passes over the prompt and overheads of a serving engine. Compared by identity."""

    cache: Literal["growing", "preallocated", "paged"]
    block_tokens: Count = 1
    appends: bool = False
    public_code: bool = False
    window_extra: CountOrZero | None = None
    mixed_windows: bool = False
    pass_tokens: Count | None = None
    reserves: bool = False
    value_bytes: PositiveOrZero | None = None
    score_bytes: PositiveOrZero = 0.0
    in_place: bool = False
    mask_bytes: PositiveOrZero = 0.0
    logits: Literal["last", "pass"] = "last"
    logit_bytes: PositiveOrZero | None = None
    fixed_bytes: PositiveOrZero = 0.0
    slack: Fraction = 0.0
    cache_slack: PositiveOrZero = 0.0
    pool: ServingPool | None = None
    """How a server sizes the room for its cache; None: it has no share of its own."""
    log_spread: Fraction = 0.15
    groups: CountOrZero = 0
    rows: CountOrZero = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServingSpeed(Strict):
    """Which calibrated path a serving engine takes. Compared by identity."""

    products: str = ""
    """Whose products of quantized weights it has, where those differ from its builds'."""
    vectors: Sequence[str] = ()
    """Generations of devices whose matrix units its kernels leave alone."""
    family: Literal["llama.cpp", "mlx", "compiled", "server", "autoawq", "eager"]
    backend: Literal["vulkan", "sycl"] | None = None
    """That it forces."""
    unpacks: bool = False
    """Quantized weights on integer lanes."""
    fixed: str = ""
    """Whose fixed cost a layer it has, where that differs from its family's."""
    launches_experts: bool = False
    """Products of packed routed experts are launched one after the other, whichever a token reaches."""
    texts: CountOrZero = 0
    """Of a batch where nobody says how many, where it makes the tokens itself; 0: it is given tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTraits(Strict):
    """How an engine trains."""

    zero: CountOrZero
    """ZeRO stage on several devices where nobody sets one."""
    layout: Literal["batches", "smallest", "fastest"] = "smallest"
    """How training is divided over several devices where nobody says: `batches` never divides a layer."""
    copies: bool = False
    """Where a copy of the model fits on each device and is as fast, nothing is divided unless somebody says so."""
    kernels: Identifier = "frameworks"
    """What runs: one of `UNNAMED_KERNELS`, or an entry of data/implementations.yaml."""
    checkpointing: Literal["none", "selective", "full"] | None = None
    """What it recomputes where nobody says; None: everything where adapters train, else nothing."""
    adapted_layers: Count | None = None
    """Last layers that get adapters where nobody says; None: all."""
    input_gradients: bool = True
    """Where layers are run again, the first one's input gets a gradient: backward runs below all adapters too."""
    drives: bool = False
    """It lays states and weights on drives (ZeRO-Infinity)."""
    answers_beside: bool = False
    """Answers to learn from are written on devices of their own where nobody says."""
    sleeps: bool = False
    """A server that writes them on the devices that train gives its memory back between where nobody says."""
    yields: bool = False
    """What trains goes to the host while a server writes that sleeps between."""
    server_share: Fraction = 0.3
    """Of each of these devices, which it takes where nobody says."""
    autocast: bool = True
    """Where nobody says, it trains in mixed precision; else in 16 bits, weights and states too."""
    narrow_weights: bool = False
    """Weights that all train stay in the 16 bits in which they are loaded, under autocast too, unless FSDP divides."""
    packs_stacks: bool = False
    """It quantizes stacked experts itself; those of a layer are in 16 bits while it runs, and until its backward."""
    optimizer: Identifier = "adamw"
    """What it trains with where nobody says, if the backend has it."""
    wide_base: bool = False
    """Under autocast it holds a frozen base in fp32, and copies it for each product; so adapters train in 16 bits."""
    trainer: bool = False
    """Fine-tuning runs in transformers' own Trainer, whose checkpoints are the models'."""
    splits_experts: bool = True
    """Tensor-parallel ranks share an expert's matrices where expert parallelism leaves them."""
    clusters: tuple[BackendId, ...] = ()
    """Backends on which people train with it on many devices."""
    style: Style
    launches_eagerly: bool | None = None
    """Its layers run in Python, operator by operator, whatever kernels it brings; None: plain frameworks' do."""
    graphs: bool = False
    """A step is one graph that the host starts, and what lies between the products of experts runs inside of them."""
    sends_once: bool = False
    """A token crosses to another node once, whatever experts it meets there, and is handed on (DeepEP)."""
    balanced: bool = False
    """Its published runs force tokens to be spread evenly over experts, or drop what is too many."""
    fused_without_bf16: bool = False
    """Has a fused kernel for cards that the flash kernels do not run on."""
    flash: Literal["first", "second", "vendor"] = "second"
    """Fused attention kernels that it runs: of a generation, or those that the device's maker writes for each."""
    flash_by_layer: bool = False
    """Layers whose heads are too wide for these leave the others theirs."""
    scheme: Scheme
    memory: TrainingOverhead

    def runs_public_code(self, known: Implementations) -> bool:
        """Whether a fine-tuning runs the code of transformers, as it is or with some of its operators replaced."""
        return self.kernels in ("eager", "frameworks") or (self.kernels != "own" and known.lies_over(self.kernels))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTraits(Strict):
    """How an engine serves."""

    split: Literal["layers", "tensors", "copies"]
    """How one served model spreads over several devices."""
    writes: bool = True
    """Else it makes vectors or scores of texts alone."""
    uneven: bool = False
    """Deals layers out to unequal devices by their memory."""
    shares_experts: bool = False
    """Its copies of a model may share the routed experts (data-parallel attention)."""
    asks_fused: bool = False
    """Fused attention runs only where it is asked for."""
    partial: bool = False
    """Can leave layers on the host, and routed experts."""
    contexts: tuple[Step, ...] = ()
    """Tokens of context that it gives where nobody says, by the memory of all its devices."""
    fit_margin_bytes: PositiveOrZero = 0.0
    """What it leaves free on a device where it decides by itself what stays on the host."""
    experts_on_host: bool = False
    """Keeps all routed experts on the host where nobody says."""
    crossing_tokens: PositiveOrZero = 0.0
    """Tokens of a pass from which experts that lie on the host come to the device; of fewer the host computes them."""
    crossing_by_expert: bool = False
    """As many tokens for each expert, on average, not in all."""
    server_host: bool = False
    """It is made for the processors of servers: their main memory where nobody states one."""
    streams: bool = False
    """Can serve with weights that lie on the host and pass through the device (`--offload all`)."""
    usual: tuple[Identifier, ...] = ()
    """Formats that people take for it where the published one is too large, the best first."""
    automatic: bool = False
    """Where nobody names a format, the published one is taken if it surely fits, else the best usual one that does."""
    settings: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """The server's own settings at their defaults, by its own names."""
    caches: tuple[Identifier, ...] = ()
    """Formats in blocks that its cache may have: encodings of data/quantization.yaml. Empty: it has other ones."""
    fp8_caches: tuple[Identifier, ...] = ()
    """Formats of weights whose published checkpoints keep the cache in fp8 too, where nobody says."""
    scheduler: Literal["vllm", "vllm-v0", "sglang", "tensorrt-llm"] = "vllm"
    """The engine in whose order it takes prompts and decodes."""
    speed: ServingSpeed
    memory: ServingMemory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine(Strict):
    """A catalog entry of one engine; data/engines.yaml documents the fields. Compared by identity."""

    id: Identifier
    name: str = ""
    aliases: tuple[Identifier, ...] = ()
    does: tuple[Literal["training", "serving"], ...]
    versions: str = ""
    """Releases that the record speaks of; empty: all of today."""
    older: Mapping[str, Identifier] = field(default_factory=dict)
    """Release -> the engine that those before it are."""
    released: Mapping[str, Identifier] = field(default_factory=dict)
    """Date -> the release that came out then, where a release changes an answer; the oldest first."""
    builds: tuple[Build, ...] = ()
    """The engines that its name means on some devices, of which it runs another build; the first that holds counts."""
    divided: Identifier = ""
    """The engine that its name means where layers, experts or tensors of them are divided over devices."""
    trains_as: Identifier = ""
    """The engine that its name means in training, where its own record is of serving alone."""
    fused: bool = False
    """Brings fused attention for every architecture."""
    dialect: str = ""
    """The engine whose names of formats it uses; empty: its own."""
    formats: tuple[Identifier, ...] = ()
    """Formats that it reads, or kinds of them."""
    limits: Mapping[Identifier, tuple[Support, ...]] = field(default_factory=dict)
    """By format or kind the cases in order: the first whose condition holds counts."""
    architectures: tuple[Identifier, ...] = ()
    """Implementations that it runs; none named: nobody said."""
    without: tuple[Identifier, ...] = ()
    """Implementations that it is known not to run, or kinds of models."""
    no_fp16: tuple[Identifier, ...] = ()
    """Implementations that it computes in bf16 or fp32 alone."""
    brings: tuple[Identifier, ...] = ()
    """Tasks and formats that it does by itself, whatever the libraries of a backend lack."""
    optimizers: tuple[Identifier, ...] = ()
    """Those that it brings, where it takes no others; empty: any that PyTorch code has."""
    objectives: tuple[Identifier, ...] = ()
    """Tasks with an objective of their own that it has trainers for, or single losses of them."""
    adapters: tuple[LoraKind, ...] = ("lora",)
    """Kinds of adapters that it has."""
    launchers: tuple[Identifier, ...] = ()
    """What `llmfeas launch` writes for it."""
    backends: Mapping[BackendId, tuple[Support, ...]] = field(default_factory=dict)
    """By backend the cases in order: the first whose condition holds counts."""
    training: TrainingTraits
    serving: ServingTraits

    def check(self) -> None:
        """Refuse a backend or format that leaves some device without an answer.

        Raises:
            ValueError: naming it.
        """
        for field_name, places in (("backends", self.backends), ("limits", self.limits)):
            for place, cases in places.items():
                if unending(cases):
                    raise ValueError(f"{field_name}.{place} must end with a case without `when`")

    def release_at(self, said: str) -> str:
        """The release of a year, month or day (2025, 2025-03), as far as releases differ; what is no date is one."""
        said = said.strip()
        if not self.released or re.fullmatch(DATE, said) is None:
            return said
        until = [name for date, name in self.released.items() if date[: len(said)] <= said]
        return until[-1] if until else next(iter(self.released.values()))

    @property
    def speaks(self) -> str:
        """The engine whose names of formats it uses."""
        return self.dialect or self.id

    def has_trainer(self, task: str, loss: str | None) -> bool:
        """Whether it has a trainer for a task with one of its losses."""
        return loss is None or task in self.objectives or loss in self.objectives

    def runs(self, architecture: Architecture) -> bool:
        """Whether it runs models of an architecture, as far as anybody said."""
        implementation = architecture.implementation
        if implementation in self.without:
            return False
        if any(name in self.without and is_kind(architecture) for name, is_kind in KINDS.items()):
            return False
        return not self.architectures or implementation in self.architectures

    def lacks_precision(self, architecture: Architecture, device: Device) -> bool:
        """Whether it computes an architecture in no 16 bits that a device has: in no fp16, on a card without bf16."""
        without = device.backend == "cuda" and device.tflop_per_s.bf16 is None
        return without and architecture.implementation in self.no_fp16

    def reads(self, form: Format) -> bool:
        """Whether it is known to read a format."""
        return form.id in self.formats or form.kind in self.formats

    def __hash__(self) -> int:
        return hash(self.id)

    def format_support(self, form: Format, device: Device) -> Support:
        """Say whether it runs a format that it reads on a device."""
        cases = self.limits.get(form.id) or self.limits.get(form.kind) or ()
        return next((case for case in cases if case.when.holds(traits_of(device))), WORKS)

    def support(self, backend: Backend, device: Device) -> Support:
        """Say whether it runs on a device: as a backend says of it by name, else as its own record does."""
        cases = self.cases(backend)
        return named_support(backend, device, self.id) or next(
            (case for case in cases if case.when.holds(traits_of(device))), WORKS
        )

    def cases(self, backend: Backend) -> tuple[Support, ...]:
        """What its record says of a backend, the first case that holds counts; empty where nobody said."""
        if not self.backends:
            return ()
        return self.backends.get(backend.id) or (Support(status="unsupported", note=backend.refusal),)


OWN_NAMES: Final = (
    "id", "name", "aliases", "versions", "older", "released", "builds", "divided", "trains_as", "no_fp16",
)  # fmt: skip
"""What an engine does not take from the one that it is like."""

FACETS: Final = ("training", "serving")


def completed(
    entry: Entry, plain: Entry, written: Callable[[str], Entry | None], seen: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An entry with what it takes from other ones (`written`, by id), and from `plain` what nobody said.

    Raises:
        LikeError: naming the engine that it cannot be like.
    """

    def of(name: object) -> dict[str, Any]:
        found = written(name) if isinstance(name, str) and name not in seen else None
        if found is None:
            raise LikeError(name)
        return completed(found, plain, written, (*seen, str(name)))

    other = plain if entry.get("like") is None else of(entry["like"])
    base = {key: value for key, value in other.items() if other is plain or key not in OWN_NAMES}
    result = {key: value for key, value in {**base, **entry}.items() if key != "like"}
    for facet in FACETS:
        given = entry.get(facet, {})
        if isinstance(given, Mapping):
            changes = {key: _laid_over(value, facet, key, of) for key, value in given.items()}
            result[facet] = {**_mapping(base[facet]), **changes}
    return result


def _laid_over(value: Any, facet: str, key: str, of: Callable[[object], Entry]) -> Any:
    """A mapping with `like` over that of the other engine; all else as it is."""
    if not isinstance(value, Mapping) or "like" not in value:
        return value
    own = {name: each for name, each in value.items() if name != "like"}
    return {**_mapping(_mapping(of(value["like"])[facet]).get(key)), **own}


def _mapping(value: Any) -> Entry:
    return value if isinstance(value, Mapping) else {}
