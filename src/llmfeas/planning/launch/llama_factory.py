"""LLaMA-Factory: one YAML for everything; on several devices it starts torchrun by itself."""

from __future__ import annotations

from ...scenario import Scenario
from ...workload.kernels import runs_patched
from ..expressed.trainers import LLAMA_FACTORY, divided_by_fsdp
from ..nodes import nodes_of
from ..repositories import model_name
from . import accelerate, trainer
from .launcher import File, Launch, Launcher
from .names import DATASET, low_rank
from .shell import PORT, command, meeting, nodes_note
from .text import as_yaml

CONFIG = "llama_factory.yaml"
ATTENTION = {"flash": "sdpa", "eager": "disabled"}


TAKEN = (*(f"{word}{more}" for word in trainer.RECOMPUTES.values() for more in ("", "_kwargs")), "use_liger_kernel")
"""Arguments of Trainer that it sets by words of its own."""


def config(scenario: Scenario) -> dict[str, object]:
    """LLaMA-Factory's configuration."""
    shared = trainer.training(scenario)
    adapted = scenario.trains_adapters
    settings: dict[str, object] = {
        "model_name_or_path": model_name(scenario),
        "stage": "pt" if scenario.task == "pretrain" else "sft",
        "do_train": True,
        "finetuning_type": "lora" if adapted else "full",
        "dataset": DATASET,
        "template": "default",
        "cutoff_len": scenario.seq_len,
        "packing": True,
        "flash_attn": ATTENTION[scenario.attention],
        "disable_gradient_checkpointing": scenario.checkpointing == "none",
        "enable_liger_kernel": runs_patched(scenario),
        "pure_bf16": scenario.precision == "bf16" and not adapted,
        **{name: value for name, value in shared.items() if name not in TAKEN},
    }
    if scenario.task == "pretrain":
        settings["train_from_scratch"] = True
    if adapted:
        settings |= {
            **low_rank(scenario, rank="rank"),
            **trainer.LORA_KINDS[scenario.lora_kind],
            "lora_target": "all" if scenario.lora_targets == "all-linear" else ATTENTION_LIST,
        }
    if scenario.quant != "none":
        settings |= {"quantization_bit": 8 if scenario.quant == "int8" else 4, "quantization_method": "bnb"}
        settings["double_quantization"] = scenario.quant != "nf4-single"
    return settings


def sharding(scenario: Scenario) -> dict[str, object]:
    """Accelerate's configuration without FSDP's own checkpointing, since its layers recompute themselves.

    Source: llamafactory 0.9.5, model/model_utils/checkpointing.py.
    """
    settings = accelerate.config(scenario)
    return {**settings, "fsdp_config": {**accelerate.fsdp_config(scenario), "fsdp_activation_checkpointing": False}}


ATTENTION_LIST = ",".join(trainer.ALSO_ELSEWHERE.get(name, name) for name in trainer.ATTENTION_NAMES)
"""It hands PEFT a list, each name of which need not be there."""


def needs(scenario: Scenario) -> tuple[str, ...]:
    """What a recipe takes beyond it, which stands on transformers 4.55 to 5.6."""
    return (*trainer.needs(scenario), *(("transformers<5",) if scenario.transformers == "4" else ()))


def write(scenario: Scenario) -> Launch:
    """Write LLaMA-Factory's configuration; where FSDP divides the model accelerate starts it."""
    nodes = nodes_of(scenario)
    files = [File(CONFIG, as_yaml(config(scenario)))]
    if divided_by_fsdp(scenario):
        files.append(File(accelerate.CONFIG, as_yaml(sharding(scenario))))
        line = command(
            ["accelerate", "launch", "--config_file", accelerate.CONFIG],
            *meeting(nodes, *accelerate.MACHINES),
            ["-m", "llamafactory.launcher", CONFIG],
        )
    else:
        machines = f'NNODES={nodes.count} NODE_RANK="$NODE_RANK" MASTER_ADDR="$MASTER_ADDR" MASTER_PORT={PORT} '
        line = f"{machines if nodes.several else ''}NPROC_PER_NODE={nodes.devices} llamafactory-cli train {CONFIG}"
    return Launch(tuple(files), line, (*trainer.notes(scenario), *notes(scenario), *nodes_note(nodes)))


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Say where its data is named."""
    return ("describe the data in data/dataset_info.json under the name in place of DATASET",)


LAUNCHER = Launcher(
    expressed=LLAMA_FACTORY,
    name="LLaMA-Factory",
    release="LLaMA-Factory 0.9.5",
    install=("llamafactory",),
    needs=needs,
    write=write,
)
