"""What programs that fine-tune without Hugging Face's Trainer can express: LitGPT, torchtune, Unsloth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...catalog.device import is_mixed
from ...catalog.store import built_in
from ...scenario import UNGUIDED, Scenario
from .expressible import Expressible, Objection

LITGPT_PRECISIONS = {"fp32": "32-true", "bf16-mixed": "bf16-mixed", "bf16": "bf16-true", "fp16": "16-true"}
LITGPT_QUANTS = {"nf4": "bnb.nf4-dq", "int8": "bnb.int8-training"}


def _litgpt(scenario: Scenario) -> Objection | None:
    """Object to what its trainings fix themselves."""
    several = scenario.num_devices > 1
    if (scenario.checkpointing == "full") != several:
        return Objection("checkpointing", "it recomputes under FSDP alone", instead="full" if several else "none")
    if several and scenario.zero != 3:
        return Objection("zero", "on several devices it divides all by FSDP", instead=3)
    if several and scenario.quant != "none":
        return Objection("quant", "quantized weights train on one device")
    if scenario.quant != "none" and is_mixed(scenario.precision):
        return Objection("precision", "quantized weights train without autocast", instead="bf16")
    return None


LITGPT = Expressible(
    id="litgpt",
    tasks=UNGUIDED,
    backends=frozenset({"cuda"}),
    choices={
        "precision": tuple(LITGPT_PRECISIONS),
        "optimizer": ("adamw", "adamw-foreach"),
        "checkpointing": ("none", "full"),
        "quant": ("none", *LITGPT_QUANTS),
        "attention": ("flash",),
        "offload": ("none",),
        "dropout": (None, 0.0),
        "lora_layers": (None,),
    },
    wide_bases=True,
    splits=frozenset({"num_devices"}),
    objection=_litgpt,
)

TORCHTUNE_PRECISIONS = {"fp32": "fp32", "bf16": "bf16"}
TORCHTUNE_OPTIMIZERS = {
    "adamw": "torch.optim.AdamW",
    "adamw-foreach": "torch.optim.AdamW",
    "adamw-8bit": "bitsandbytes.optim.AdamW8bit",
}


def torchtune_shipped(scenario: Scenario) -> Mapping[str, Any]:
    """The `name` of a model and the `kinds` of configurations that torchtune ships of it (data/launch/torchtune.yaml);
    empty where it ships none.
    """
    return built_in().raw("launch/torchtune")["models"].get(scenario.model.id, {})  # type: ignore[no-any-return]


def torchtune_kind(scenario: Scenario) -> str:
    """The kind of configuration of torchtune that a scenario needs."""
    method = {"finetune": "full"}.get(scenario.method, scenario.method)
    return f"{method}_single_device" if scenario.num_devices == 1 else method


def _torchtune(scenario: Scenario) -> Objection | None:
    """Object to models and layouts for which it ships no configuration."""
    shipped = torchtune_shipped(scenario)
    if not shipped or scenario.model_path is not None:
        return Objection("model", "it ships no configuration of this model")
    if torchtune_kind(scenario) not in shipped["kinds"]:
        return Objection("model", f"it ships no configuration {torchtune_kind(scenario)} of this model")
    if scenario.num_devices > scenario.devices_per_node:
        return Objection("num_devices", "its recipes run on one machine")
    if scenario.num_devices > 1 and scenario.zero != 3:
        return Objection("zero", "on several devices it divides all by FSDP", instead=3)
    return None


TORCHTUNE = Expressible(
    id="torchtune",
    tasks=("finetune", "lora", "qlora"),
    backends=frozenset({"cuda", "rocm", "xpu"}),
    choices={
        "precision": tuple(TORCHTUNE_PRECISIONS),
        "optimizer": tuple(TORCHTUNE_OPTIMIZERS),
        "checkpointing": ("full", "none"),
        "quant": ("none", "nf4"),
        "attention": ("flash",),
        "offload": ("none", "activations"),
        "dropout": (None, 0.0),
        "lora_layers": (None,),
    },
    splits=frozenset({"num_devices"}),
    objection=_torchtune,
)

UNSLOTH_CHECKPOINTING = {"full": "unsloth", "none": "none"}


def _unsloth(scenario: Scenario) -> Objection | None:
    """Object to what its command has no word for."""
    if scenario.lora_kind != "lora":
        return Objection("lora_kind", "its command has no word for it", instead="lora")
    architecture = scenario.model.architecture
    if architecture.encoder or architecture.source is not None:
        return Objection("model", "its command trains models that write on")
    if scenario.num_devices > 1:
        return Objection("num_devices", "its command trains on one device")
    return None


UNSLOTH = Expressible(
    id="unsloth",
    tasks=("finetune", "lora", "qlora"),
    backends=frozenset({"cuda", "rocm", "xpu"}),
    choices={
        "precision": ("bf16-mixed", "fp16-mixed", "bf16", "fp16"),
        "optimizer": ("adamw-8bit",),
        "checkpointing": tuple(UNSLOTH_CHECKPOINTING),
        "quant": ("none", "nf4"),
        "offload": ("none", "activations"),
        "attention": ("flash",),
        "dropout": (None, 0.0),
        "lora_layers": (None,),
    },
    objection=_unsloth,
)

EXPRESSED = {each.id: each for each in (LITGPT, TORCHTUNE, UNSLOTH)}
