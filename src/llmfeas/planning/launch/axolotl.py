"""Axolotl: one YAML for everything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...scenario import Scenario
from ...workload.kernels import adapts_experts, kernels_of, packs_stacks, runs_patched
from ...workload.parameters import bare_layers
from ..expressed.trainers import AXOLOTL, AXOLOTL_OPTIMIZERS, divided_by_fsdp
from ..nodes import nodes_of
from ..repositories import model_name
from . import torchrun_fsdp, trainer
from .launcher import File, Launch, Launcher, Reader
from .names import DATASET, low_rank
from .parsers import module, yaml_of
from .shell import Word, command, nodes_note
from .text import as_yaml

CONFIG = "axolotl.yaml"
LIGER: Mapping[str, object] = {
    "plugins": ["axolotl.integrations.liger.LigerPlugin"],
    "liger_rope": True,
    "liger_rms_norm": True,
    "liger_glu_activation": True,
    "liger_fused_linear_cross_entropy": True,
}
"""What turns on the kernels that Hugging Face's Trainer takes by default."""


CUT: Mapping[str, object] = {
    "plugins": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"],
    "cut_cross_entropy": True,
}
"""What turns on Cut Cross Entropy, which is installed beside it."""


def attention(scenario: Scenario) -> str:
    """Name the kernel; only flash attention's own divides a sequence."""
    return "flash_attention_2" if scenario.cp > 1 else trainer.attention(scenario)


def data(scenario: Scenario) -> dict[str, object]:
    """The data's section: a stream of text in pre-training, else texts to complete."""
    if scenario.task == "pretrain":
        return {
            "reinit_weights": True,
            "pretraining_dataset": [{"path": DATASET, "type": "pretrain", "text_column": "text"}],
        }
    return {"datasets": [{"path": DATASET, "type": "completion", "field": "text"}]}


def adapters(scenario: Scenario) -> dict[str, object]:
    """The adapters' settings; none where all weights train."""
    if not scenario.trains_adapters:
        return {}
    four_bits = scenario.quant == "nf4"
    return {
        "adapter": "qlora" if four_bits else "lora",
        "load_in_4bit": four_bits,
        "load_in_8bit": scenario.quant == "int8",
        **low_rank(scenario),
        **{f"peft_{name}": value for name, value in trainer.LORA_KINDS[scenario.lora_kind].items()},
        **_targets(scenario),
    }


STACKS = ("experts.gate_up_proj", "experts.down_proj")
"""Parameters of stacked experts, by the ends of their names."""


def _targets(scenario: Scenario) -> dict[str, object]:
    """What gets adapters; stacks of experts, which Axolotl quantizes itself, are no linear layers to it."""
    everything = scenario.lora_targets == "all-linear" and not bare_layers(scenario)
    packed: dict[str, object] = {}
    if scenario.quant != "none" and packs_stacks(scenario):
        packed = {"quantize_moe_experts": True}
        if adapts_experts(scenario):
            packed["lora_target_parameters"] = list(STACKS)
            return {"lora_target_modules": trainer.ATTENTION_MATRICES, **packed}
    if everything and not packed:
        return {"lora_target_linear": True}
    return {"lora_target_modules": trainer.lora_targets(scenario), **packed}


def layout(scenario: Scenario) -> dict[str, object]:
    """How the model is divided; nothing for one device."""
    settings: dict[str, object] = {}
    if divided_by_fsdp(scenario):
        sharding = trainer.fsdp(scenario)
        sharding["offload_params"] = sharding.pop("cpu_offload")
        settings["fsdp_version"] = sharding.pop("version")
        settings["fsdp_config"] = sharding
        settings["dp_shard_size"] = scenario.num_devices // (scenario.tp * scenario.cp)
    if scenario.tp > 1:
        settings["tensor_parallel_size"] = scenario.tp
    if scenario.cp > 1:
        settings["context_parallel_size"] = scenario.cp
    return settings


def config(scenario: Scenario) -> dict[str, object]:
    """Axolotl's configuration."""
    shared = trainer.training(scenario)
    sharded = divided_by_fsdp(scenario)
    settings: dict[str, object] = {
        "base_model": model_name(scenario),
        "sequence_len": scenario.seq_len,
        "sample_packing": scenario.cp == 1,
        "pad_to_sequence_len": True,
        "micro_batch_size": scenario.micro_batch,
        "gradient_accumulation_steps": scenario.micro_steps,
        "max_steps": shared["max_steps"],
        "num_epochs": 1,
        "optimizer": AXOLOTL_OPTIMIZERS[scenario.optimizer] if scenario.optimizer == "muon" else shared["optim"],
        "learning_rate": shared["learning_rate"],
        "lr_scheduler": shared.get("lr_scheduler_type", "cosine"),
        "bf16": scenario.precision in ("bf16-mixed", "bf16"),
        "fp16": scenario.precision == "fp16-mixed",
        "tf32": scenario.precision == "tf32",
        "attn_implementation": attention(scenario),
        "gradient_checkpointing": scenario.checkpointing == "full" and not sharded,
        "output_dir": "output",
    }
    if runs_patched(scenario):
        settings |= LIGER
    if kernels_of(scenario) == "cut":
        settings |= CUT
    if scenario.offload == "activations":
        settings["activation_offloading"] = True
    settings |= {name: shared[name] for name in ("optim_args", "optim_target_modules") if name in shared}
    return {**settings, **data(scenario), **adapters(scenario), **layout(scenario)}


def needs(scenario: Scenario) -> tuple[str, ...]:
    """What a recipe takes beyond Axolotl, which brings bitsandbytes and Liger."""
    sharded_bits = scenario.optimizer == "adamw-8bit" and divided_by_fsdp(scenario)
    return (*(("torchao",) if sharded_bits else ()), *(("ring-flash-attn",) if scenario.cp > 1 else ()))


def write(scenario: Scenario) -> Launch:
    """Write Axolotl's configuration."""
    nodes = nodes_of(scenario)
    launcher: list[list[Word]] = [["--launcher", "python"]]
    if scenario.num_devices > 1:
        launcher = [["--launcher", "torchrun", "--"], *torchrun_fsdp.processes(nodes)]
    line = command(["axolotl", "train", CONFIG], *launcher)
    files = (File(CONFIG, as_yaml(config(scenario))),)
    return Launch(files, line, (*trainer.notes(scenario), *nodes_note(nodes)))


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read a recipe."""
    module("axolotl.utils.schemas.config").AxolotlInputConfig(**yaml_of(folder, "axolotl.yaml"))


LAUNCHER = Launcher(
    expressed=AXOLOTL,
    name="Axolotl",
    release="Axolotl 0.19",
    install=("axolotl",),
    needs=needs,
    write=write,
    reader=Reader("axolotl", read),
)
