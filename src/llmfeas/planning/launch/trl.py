"""TRL's supervised fine-tuning: `trl sft` with a YAML of its own and accelerate's."""

from __future__ import annotations

from ...scenario import Scenario
from ...workload.kernels import runs_patched
from . import accelerate, trainer
from .launcher import File, Launch, Launcher
from .names import DATASET, LORA_ALPHA_PER_RANK, model_name
from .shell import command, nodes_note, nodes_of
from .text import as_yaml

CONFIG = "sft.yaml"


def config(scenario: Scenario) -> dict[str, object]:
    """The settings of `trl sft`: fields of ModelConfig, ScriptArguments and SFTConfig."""
    settings: dict[str, object] = {
        "model_name_or_path": model_name(scenario),
        "dtype": trainer.weights_dtype(scenario),
        "attn_implementation": trainer.ATTENTION[scenario.attention],
        "dataset_name": DATASET,
        "max_length": scenario.seq_len,
        "packing": True,
        "packing_strategy": "wrapped",
        "use_liger_kernel": False,
        **trainer.training(scenario),
    }
    if trainer.is_sharded(scenario):
        settings["gradient_checkpointing"] = False
        settings.pop("gradient_checkpointing_kwargs", None)
    if scenario.task in ("lora", "qlora"):
        settings |= {
            "use_peft": True,
            "lora_r": scenario.lora_rank,
            "lora_alpha": LORA_ALPHA_PER_RANK * scenario.lora_rank,
            "lora_dropout": scenario.lora_dropout,
            "lora_target_modules": [trainer.lora_targets(scenario)],
        }
    if scenario.offload == "activations":
        settings["activation_offloading"] = True
    if scenario.quant == "nf4":
        settings |= {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "use_bnb_nested_quant": True}
    if scenario.quant == "int8":
        settings["load_in_8bit"] = True
    return settings


def write(scenario: Scenario) -> Launch:
    """Write TRL's and accelerate's configuration."""
    nodes = nodes_of(scenario)
    line = command(
        ["trl", "sft", "--config", CONFIG],
        ["--accelerate_config", accelerate.CONFIG],
        *accelerate.machine_options(nodes),
    )
    files = (File(CONFIG, as_yaml(config(scenario))), accelerate.config_file(scenario))
    chunks = "TRL computes the loss in chunks of the sequence: logits take less memory than estimated"
    own = () if runs_patched(scenario) else (chunks,)
    return Launch(files, line, (*trainer.notes(scenario), *own, *nodes_note(nodes)))


LAUNCHER = Launcher(
    id="trl",
    name="TRL",
    tasks=("finetune", "lora", "qlora"),
    backends=accelerate.LAUNCHER.backends,
    choices={**accelerate.LAUNCHER.choices, "offload": ("none", "activations", "all"), "dropout": (None,)},
    splits=accelerate.LAUNCHER.splits,
    objection=accelerate.objection,
    write=write,
)
