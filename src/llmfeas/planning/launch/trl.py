"""TRL's trainers: `trl sft`, `trl dpo` or `trl kto`, with a YAML of their own and accelerate's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...memory.rollouts import rollout_tp, writes_itself
from ...record import replace
from ...scenario import Scenario
from ..expressed.trainers import TRL, TRL_COMMANDS, divided_by_fsdp
from ..nodes import nodes_of
from ..repositories import model_name, repository_of
from . import accelerate, trainer
from .launcher import File, Launch, Reader
from .names import DATASET, low_rank
from .parsers import ANYWHERE, module, words, yaml_of
from .shell import command, meeting, nodes_note
from .text import as_yaml

REWARD = "REWARD"
"""What stands where a function that judges answers is named."""
LOSS_TYPES: Mapping[str, object] = {"dpo": ["sigmoid"], "ipo": ["ipo"], "kto": "kto", "grpo": "grpo"}
"""Losses in its words; sigmoid is DPO's own."""


def config(scenario: Scenario) -> dict[str, object]:
    """The settings of the trainer: fields of ModelConfig, ScriptArguments and SFTConfig, DPOConfig or KTOConfig."""
    settings: dict[str, object] = {
        "model_name_or_path": model_name(scenario),
        "dtype": trainer.weights_dtype(scenario),
        "attn_implementation": trainer.attention(scenario),
        "dataset_name": DATASET,
        "use_liger_kernel": False,
        **trainer.training(scenario),
    }
    if scenario.response_length is None:
        settings["max_length"] = scenario.seq_len
    if scenario.loss is None:
        settings |= {"packing": True, "packing_strategy": "wrapped"}
    else:
        settings |= {"loss_type": LOSS_TYPES[scenario.loss]} if scenario.loss in LOSS_TYPES else {}
        settings |= _rollouts(scenario) if scenario.response_length else {}
        settings |= {"precompute_ref_log_probs": True} if scenario.reference == "precomputed" else {}
    if divided_by_fsdp(scenario):
        settings |= trainer.left_to_fsdp(scenario)
    if scenario.trains_adapters:
        settings |= {
            "use_peft": True,
            **low_rank(scenario),
            **trainer.LORA_KINDS[scenario.lora_kind],
            "lora_target_modules": [trainer.lora_targets(scenario)],
        }
        settings |= {"lora_task_type": "SEQ_CLS"} if scenario.task == "reward" else {}
    if scenario.offload == "activations":
        settings["activation_offloading"] = True
    if scenario.quant in trainer.FOUR_BITS:
        nested = {"use_bnb_nested_quant": scenario.quant == "nf4"}
        settings |= {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", **nested}
    if scenario.quant == "int8":
        settings["load_in_8bit"] = True
    return settings


def _rollouts(scenario: Scenario) -> dict[str, object]:
    """Who writes the answers, how many and how long; the length of a sequence is that of prompt and answer."""
    settings: dict[str, object] = {
        "max_completion_length": scenario.longest_response,
        **_judged(scenario),
    }
    if writes_itself(scenario):
        return settings
    settings |= {
        "use_vllm": True,
        "vllm_mode": "colocate" if scenario.colocate == "true" else "server",
    }
    if scenario.colocate == "true":
        settings["vllm_gpu_memory_utilization"] = scenario.gpu_memory_utilization
        settings["vllm_tensor_parallel_size"] = rollout_tp(scenario)
        settings["vllm_max_model_length"] = scenario.seq_len
        settings |= {"vllm_enable_sleep_mode": True} if scenario.sleep == "true" else {}
    return settings


def _judged(scenario: Scenario) -> dict[str, object]:
    """What answers are judged by: a teacher, or others of their group; the teacher in 16 bits."""
    others = dict(scenario.beside)
    if "teacher" in others:
        name = repository_of(others["teacher"])
        return {"teacher_model_name_or_path": name, "teacher_model_init_kwargs": {"dtype": "bfloat16"}}
    rewards: dict[str, object] = {"reward_funcs": [REWARD]}
    if "reward_model" in others:
        rewards = {"reward_model_name_or_path": repository_of(others["reward_model"])}
    beta = 0.04 if scenario.reference == "loaded" else 0.0
    return {"num_generations": scenario.group_size, "beta": beta, **rewards}


def needs(scenario: Scenario) -> tuple[str, ...]:
    """What a recipe takes beyond transformers: an engine where the model writes."""
    return (*trainer.needs(scenario), *(("vllm",) if scenario.response_length and not writes_itself(scenario) else ()))


def write(scenario: Scenario) -> Launch:
    """Write TRL's and accelerate's configuration."""
    nodes = nodes_of(scenario)
    name = TRL_COMMANDS[scenario.loss]
    line = command(
        ["trl", name, "--config", f"{name}.yaml"],
        ["--accelerate_config", accelerate.CONFIG],
        *meeting(nodes, *accelerate.MACHINES),
    )
    files = (File(f"{name}.yaml", as_yaml(config(scenario))), accelerate.config_file(scenario))
    chunks = "TRL computes the loss in tiles: logits take less memory than estimated here (--engine trl says)"
    own = () if scenario.engine == "trl" or scenario.loss else (chunks,)
    return Launch(files, line, (*trainer.notes(scenario), *own, *_of_rollouts(scenario), *nodes_note(nodes)))


def _of_rollouts(scenario: Scenario) -> Iterator[str]:
    """Yield what a recipe leaves to the user where the model writes: who judges it, and a server beside."""
    if not scenario.response_length:
        return
    if not {"teacher", "reward_model"} & dict(scenario.beside).keys():
        yield f"put accuracy_reward, or a function of your own as module.function, in place of {REWARD}"
    if scenario.colocate != "true":
        sizes = f"--tensor_parallel_size {rollout_tp(scenario)} --max_model_len {scenario.seq_len}"
        served = f"trl vllm-serve --model {model_name(scenario)} {sizes}"
        yield f"start the server that writes on the other devices first: {served}"


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read a recipe."""
    accelerate.read(launch, folder)
    name = words(launch)[words(launch).index("--config") + 1]
    script = module(f"trl.scripts.{name.removesuffix('.yaml')}")
    here = folder / "here.yaml"
    settings, processes = yaml_of(folder, name), yaml_of(folder, "accelerate.yaml")["num_processes"]
    # one process stands for all of them
    settings["gradient_accumulation_steps"] *= processes
    here.write_text(json.dumps({**settings, **ANYWHERE}), encoding="utf-8")
    script.make_parser().parse_args_and_config(["--config", str(here)], fail_with_unknown_args=True)


LAUNCHER = replace(
    accelerate.LAUNCHER,
    expressed=TRL,
    name="TRL",
    release="TRL 1.16, transformers {transformers}, peft 0.21",
    install=(*trainer.PACKAGES, "trl>=1"),
    needs=needs,
    write=write,
    reader=Reader("trl", read),
)
