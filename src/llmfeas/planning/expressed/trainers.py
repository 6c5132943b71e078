"""What programs that fine-tune can express: Hugging Face's Trainer under its starters, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping

from ...record import replace
from ...scenario import UNGUIDED, Scenario
from ...workload.kernels import adapts_experts, runs_patched
from ...workload.parameters import bare_layers
from ..nodes import nodes_of
from .expressible import DTYPES, READS_ALONE, WHOLE, Expressible, Objection

OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adamw-foreach": "adamw_torch",
    "adamw-8bit": "adamw_bnb_8bit",
    "adafactor": "adafactor",
    "sgd": "sgd",
    "sgd-momentum": "sgd",
    "lion": "lion_32bit",
    "adamw-schedule-free": "schedule_free_adamw",
    "galore": "galore_adamw",
    "apollo": "apollo_adamw",
}
"""Names of transformers' TrainingArguments.optim."""
LOW_RANK = ("galore", "apollo")
"""They project the gradients of whole matrices, which nothing may divide or flatten."""
CHOICES: Mapping[str, tuple[object, ...]] = {
    "precision": ("fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16", "fp16"),
    "optimizer": tuple(OPTIMIZERS),
    "checkpointing": ("none", "full"),
    "quant": ("none", "nf4", "nf4-single", "int8", "gptq-int4", "awq-int4"),
    "transformers": ("5", "4"),
}
"""What a recipe can say to Trainer."""


def divided_by_fsdp(scenario: Scenario) -> bool:
    """Whether FSDP divides the model."""
    return scenario.num_devices > 1 and scenario.zero >= 2


def fsdp_objection(scenario: Scenario) -> Objection | None:
    """Object to what FSDP does not do: move to the host what it does not divide, divide weights of 4 or 8 bits."""
    if scenario.offload == "all" and divided_by_fsdp(scenario) and scenario.quant != "none":
        return Objection(
            "offload", "only what FSDP divides moves to the host, and it does not divide quantized weights"
        )
    if moving := moving_objection(scenario):
        return moving
    if scenario.num_devices > 1 and scenario.device.backend == "metal":
        return Objection("num_devices", "PyTorch trains on one Apple device at a time")
    if divided_by_fsdp(scenario) and scenario.quant != "none":
        return Objection("zero", "FSDP does not divide quantized weights", instead=0)
    return low_rank_objection(scenario) or layers_objection(scenario) or sound_objection(scenario)


def pairs_objection(scenario: Scenario) -> Objection | None:
    """Object to adapters of another kind, where a trainer's configuration has pairs alone."""
    if scenario.adapter_kind is not None and not scenario.adapter_kind.pairs:
        return Objection("lora_kind", "its configuration has low-rank pairs alone", instead="lora")
    return None


def moving_objection(scenario: Scenario) -> Objection | None:
    """Object to moving to the host what FSDP does not divide."""
    if scenario.offload == "all" and not (divided_by_fsdp(scenario) and scenario.zero == 3):
        return Objection("offload", "only what FSDP divides (--zero 3 on several devices) moves to the host")
    return None


def layers_objection(scenario: Scenario) -> Objection | None:
    """Object to adapters on some layers where peft reaches stacked experts by its word for everything alone."""
    if bare_layers(scenario) and scenario.lora_targets == "all-linear" and adapts_experts(scenario):
        return Objection("lora_layers", "peft reaches stacked experts in every layer or in none")
    return None


def low_rank_objection(scenario: Scenario) -> Objection | None:
    """Object to dividing weights or gradients that an optimizer projects to a low rank."""
    if scenario.optimizer in LOW_RANK and divided_by_fsdp(scenario):
        return Objection("zero", f"{scenario.optimizer} projects whole matrices, which FSDP divides", instead=0)
    return None


def sinks_objection(scenario: Scenario) -> Objection | None:
    """Object to fused attention with sinks, whose kernels a program has no word for."""
    if scenario.attention == "flash" and scenario.model.architecture.sinks:
        return Objection("attention", "it has no word for a kernel of attention with sinks", instead="eager")
    return None


def sound_objection(scenario: Scenario) -> Objection | None:
    """Object to what hears: the program reads texts."""
    source = scenario.model.architecture.source
    return Objection("model", "its program reads texts, no sounds") if source is not None and source.bands else None


def _accelerate(scenario: Scenario) -> Objection | None:
    """Object to what accelerate or FSDP does not do."""
    if scenario.device.backend == "cpu" and scenario.num_devices > 1 and not divided_by_fsdp(scenario):
        return Objection("zero", "without FSDP it starts processes on several CPUs under MPI only", instead=3)
    return fsdp_objection(scenario)


ACCELERATE = Expressible(
    id="accelerate",
    tasks=UNGUIDED,
    backends=frozenset({"cuda", "rocm", "xpu", "hpu", "cpu", "metal"}),
    choices={**CHOICES, "zero": (0, 2, 3), "offload": ("none", "all")},
    wide_bases=True,
    splits=frozenset({"num_devices"}),
    objection=_accelerate,
)


def _torchrun(scenario: Scenario) -> Objection | None:
    """Object to what FSDP does not do, and to the Trainer that has only its first version."""
    if divided_by_fsdp(scenario) and scenario.transformers != "5":
        return Objection("transformers", "its Trainer has no second version of FSDP", instead="5")
    return fsdp_objection(scenario)


TORCHRUN_FSDP = replace(ACCELERATE, id="torchrun-fsdp", backends=ACCELERATE.backends - {"metal"}, objection=_torchrun)

TRL_COMMANDS: Mapping[str | None, str] = {
    None: "sft",
    "dpo": "dpo",
    "ipo": "dpo",
    "kto": "kto",
    "grpo": "grpo",
    "rloo": "rloo",
    "bradley-terry": "reward",
    "reverse-kl": "distillation",
}
"""What `trl` is called with, by the loss."""


def _trl(scenario: Scenario) -> Objection | None:
    """Object to losses without a command, and to a dropout rate, which its trainers do not take."""
    if pairs := pairs_objection(scenario):
        return pairs
    if scenario.loss not in TRL_COMMANDS:
        return Objection("loss", "its trainer is experimental and has no command")
    if scenario.dropout is not None and scenario.loss is None:
        return Objection("dropout")
    if scenario.offload == "activations" and scenario.response_length:
        return Objection("offload", "its trainers that write answers do not move activations")
    return _accelerate(scenario)


TRL = replace(
    ACCELERATE,
    id="trl",
    tasks=("finetune", "lora", "qlora", "dpo", "grpo", "distill", "reward"),
    choices={**ACCELERATE.choices, "offload": ("none", "activations", "all"), "dropout": (None, 0.0)},
    objection=_trl,
)

AXOLOTL_OPTIMIZERS = {**OPTIMIZERS, "muon": "muon"}


def _axolotl(scenario: Scenario) -> Objection | None:
    """Object to formats that Axolotl does not keep: it loads weights in 16 bits, FSDP alone holds them in fp32."""
    if pairs := pairs_objection(scenario):
        return pairs
    adapted, sharded = scenario.trains_adapters, divided_by_fsdp(scenario)
    if not adapted and not sharded and scenario.precision == "bf16-mixed":
        return Objection("precision", "it keeps fp32 weights beside 16-bit ones under FSDP only", instead="bf16")
    if (adapted or sharded) and scenario.precision == "bf16":
        return Objection("precision", "its adapters and FSDP's weights are fp32", instead="bf16-mixed")
    if not adapted and scenario.precision == "fp16-mixed":
        return Objection("precision", "it trains fp16 weights as adapters only")
    if scenario.tp > 1 and runs_patched(scenario):
        return Objection("tp", "Liger's norms do not run on weights that tensor parallelism divides", instead=1)
    if scenario.cp > 1 and scenario.attention != "flash":
        return Objection("attention", "only the flash kernel divides a sequence")
    if scenario.quant == "int8" and sharded:
        return Objection("zero", "FSDP does not divide 8-bit weights", instead=0)
    return moving_objection(scenario) or low_rank_objection(scenario) or layers_objection(scenario)


AXOLOTL = Expressible(
    id="axolotl",
    tasks=UNGUIDED,
    backends=frozenset({"cuda", "rocm"}),
    choices={
        "precision": ("fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16"),
        "optimizer": tuple(AXOLOTL_OPTIMIZERS),
        "checkpointing": ("none", "full"),
        "quant": ("none", "nf4", "int8"),
        "zero": (0, 2, 3),
        "offload": ("none", "activations", "all"),
        "transformers": ("5",),
        "dropout": (None,),
    },
    splits=frozenset({"num_devices", "tp", "cp"}),
    objection=_axolotl,
)

DEEPSPEED_OPTIMIZERS = {"adamw": "AdamW", "lion": "Lion"}
"""Optimizers that DeepSpeed brings; it moves only these to the host."""


def zero_stage(scenario: Scenario) -> int:
    """DeepSpeed's ZeRO stage; pure bf16 and what moves to the host need one even where it divides nothing."""
    least = {"optimizer": 1 if scenario.drive_gb_per_s is None else 3, "all": 3}.get(scenario.offload, 0)
    return max(scenario.zero, least, 1 if scenario.precision == "bf16" else 0)


def _deepspeed(scenario: Scenario) -> Objection | None:
    """Object to what DeepSpeed does not combine."""
    if scenario.states_on_host and scenario.optimizer not in DEEPSPEED_OPTIMIZERS:
        moved = f"with --offload {scenario.offload} it has {' and '.join(DEEPSPEED_OPTIMIZERS)} only"
        return Objection("optimizer", moved)
    if scenario.optimizer in LOW_RANK and scenario.num_devices > 1:
        return Objection("optimizer", f"{scenario.optimizer} projects whole matrices, and DeepSpeed flattens them")
    if scenario.tp > 1 and zero_stage(scenario) == 3:
        return Objection("tp", "its tensor parallelism goes with --zero 0, 1 or 2", instead=1)
    if zero_stage(scenario) == 3 and scenario.quant == "int8":
        return Objection("zero", "ZeRO 3 does not divide 8-bit weights", instead=2)
    return layers_objection(scenario) or sound_objection(scenario)


DEEPSPEED = Expressible(
    id="deepspeed",
    tasks=UNGUIDED,
    backends=frozenset({"cuda", "rocm", "xpu", "hpu", "cpu"}),
    choices={
        **CHOICES,
        "precision": ("fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16"),
        "offload": ("none", "optimizer", "all"),
    },
    splits=frozenset({"num_devices", "tp"}),
    objection=_deepspeed,
)


def _llama_factory(scenario: Scenario) -> Objection | None:
    """Object to what it has no word for."""
    if scenario.offload == "all":
        return Objection("offload", "what it divides stays on the devices", instead="none")
    return sinks_objection(scenario) or fsdp_objection(scenario)


LLAMA_FACTORY = Expressible(
    id="llama-factory",
    tasks=UNGUIDED,
    backends=frozenset({"cuda", "rocm"}),
    choices={
        **CHOICES,
        "precision": ("fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16"),
        "quant": ("none", "nf4", "nf4-single", "int8"),
        "zero": (0, 2, 3),
        "offload": ("none",),
        "dropout": (None,),
        "lora_layers": (None,),
    },
    splits=frozenset({"num_devices"}),
    objection=_llama_factory,
)

DEVICES = {"cuda": "cuda", "rocm": "cuda", "xpu": "xpu", "hpu": "hpu", "metal": "mps", "cpu": "cpu"}
"""Backends in PyTorch's words, as Sentence Transformers takes them."""


def _sentence_transformers(scenario: Scenario) -> Objection | None:
    """Object to what its trainer does not do."""
    scored = scenario.model.reranker
    if scored is not None and scored.by == "vectors":
        return Objection("model", "it scores pairs, and this model reads a query and all its texts as one sequence")
    if scenario.task == "inference":
        if scenario.model.architecture.writes:
            return READS_ALONE
        alone = scenario.device.backend in ("cpu", "metal")
        if nodes_of(scenario).several or (alone and scenario.num_devices > 1):
            return Objection("num_devices", "it starts a process on each accelerator of one machine")
        return None
    if scenario.adapter_kind is not None and not scenario.adapter_kind.pairs:
        return Objection("lora_kind", "its recipe has low-rank pairs alone", instead="lora")
    return None


SENTENCE_TRANSFORMERS = Expressible(
    id="sentence-transformers",
    tasks=("inference", "embed", "rerank"),
    backends=frozenset(DEVICES),
    choices={
        **CHOICES,
        "precision": tuple(dict.fromkeys((*DTYPES, *CHOICES["precision"]))),
        "quant": ("none", "nf4", "int8"),
        "transformers": ("5",),
        "zero": (0,),
        "dropout": (None,),
        **WHOLE,
    },
    splits=frozenset({"num_devices"}),
    objection=_sentence_transformers,
)

EXPRESSED = {
    each.id: each for each in (ACCELERATE, TORCHRUN_FSDP, TRL, AXOLOTL, DEEPSPEED, LLAMA_FACTORY, SENTENCE_TRANSFORMERS)
}
