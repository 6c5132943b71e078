"""Unsloth: the YAML of its own command, which trains on one device."""

from __future__ import annotations

from ...scenario import Scenario
from ..expressed.tuners import UNSLOTH, UNSLOTH_CHECKPOINTING
from ..repositories import model_name
from .launcher import File, Launch, Launcher
from .names import DATASET, learning_rate, low_rank, steps, training_notes
from .shell import command
from .text import as_yaml

CONFIG = "unsloth.yaml"
ATTENTION = "q_proj,k_proj,v_proj,o_proj"
ALL_LINEAR = f"{ATTENTION},gate_proj,up_proj,down_proj"


def config(scenario: Scenario) -> dict[str, object]:
    """The configuration of `unsloth train`."""
    adapted = scenario.trains_adapters
    settings: dict[str, object] = {
        "model": model_name(scenario),
        "data": {"dataset": DATASET, "format_type": "raw"},
        "training": {
            "training_type": "lora" if adapted else "full",
            "max_seq_length": scenario.seq_len,
            "load_in_4bit": scenario.quant == "nf4",
            "output_dir": "output",
            "num_epochs": 1,
            "learning_rate": learning_rate(scenario),
            "batch_size": scenario.micro_batch,
            "gradient_accumulation_steps": scenario.micro_steps,
            "max_steps": steps(scenario),
            "packing": True,
            "gradient_checkpointing": UNSLOTH_CHECKPOINTING[scenario.checkpointing],
        },
    }
    if adapted:
        settings["lora"] = {
            **low_rank(scenario),
            "target_modules": ALL_LINEAR if scenario.lora_targets == "all-linear" else ATTENTION,
        }
    return settings


def write(scenario: Scenario) -> Launch:
    """Write its configuration."""
    line = command(["unsloth", "train", "--config", CONFIG])
    return Launch((File(CONFIG, as_yaml(config(scenario))),), line, training_notes(scenario))


LAUNCHER = Launcher(
    expressed=UNSLOTH,
    name="Unsloth",
    release="Unsloth 2026.10",
    install=("unsloth",),
    write=write,
)
