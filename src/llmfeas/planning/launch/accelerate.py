"""Hugging Face accelerate: its YAML, and the recipe for Trainer."""

from __future__ import annotations

from pathlib import Path

from ...scenario import Scenario
from ..expressed.trainers import ACCELERATE, divided_by_fsdp
from ..nodes import nodes_of
from . import trainer
from .launcher import File, Launch, Launcher, Reader
from .parsers import module, read_recipe, words
from .shell import command, meeting, nodes_note
from .text import as_yaml

CONFIG = "accelerate.yaml"
MACHINES = ("--machine_rank", "--main_process_ip", "--main_process_port")
DISTRIBUTED = {"cuda": "MULTI_GPU", "rocm": "MULTI_GPU", "xpu": "MULTI_XPU", "hpu": "MULTI_HPU"}
MIXED = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}


def config(scenario: Scenario) -> dict[str, object]:
    """Accelerate's configuration of one run, as `accelerate config` writes it."""
    nodes = nodes_of(scenario)
    distributed = "FSDP" if divided_by_fsdp(scenario) else DISTRIBUTED.get(scenario.device.backend)
    settings: dict[str, object] = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": distributed if scenario.num_devices > 1 else "NO",
        "machine_rank": 0,
        "main_training_function": "main",
        "mixed_precision": MIXED.get(scenario.precision, "no"),
        "num_machines": nodes.count,
        "num_processes": nodes.count * nodes.devices,
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": scenario.device.backend == "cpu",
    }
    if divided_by_fsdp(scenario):
        settings["fsdp_config"] = fsdp_config(scenario)
    return settings


def fsdp_config(scenario: Scenario) -> dict[str, object]:
    """FSDP's settings under accelerate's names."""
    own = {f"fsdp_{name}": value for name, value in trainer.fsdp(scenario).items()}
    own["fsdp_offload_params"] = own.pop("fsdp_cpu_offload")
    return own


def config_file(scenario: Scenario) -> File:
    """Write the configuration."""
    return File(CONFIG, as_yaml(config(scenario)))


def write(scenario: Scenario) -> Launch:
    """Write accelerate's configuration, the recipe and the program."""
    nodes = nodes_of(scenario)
    arguments = trainer.training(scenario)
    if divided_by_fsdp(scenario):
        arguments |= trainer.left_to_fsdp(scenario)
    line = command(
        ["accelerate", "launch", "--config_file", CONFIG],
        *meeting(nodes, *MACHINES),
        [trainer.PROGRAM, trainer.RECIPE],
    )
    files = (config_file(scenario), trainer.recipe(scenario, arguments), trainer.program())
    return Launch(files, line, (*trainer.notes(scenario), *nodes_note(nodes)))


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read a recipe."""
    config = module("accelerate.commands.config.config_args").ClusterConfig
    config.from_yaml_file(str(folder / "accelerate.yaml"))
    if (folder / "recipe.json").exists():
        parser = module("accelerate.commands.launch").launch_command_parser()
        parser.parse_args([word.replace("NODE_RANK", "0") for word in words(launch)[2:]])
        read_recipe(folder)


LAUNCHER = Launcher(
    expressed=ACCELERATE,
    name="Hugging Face accelerate",
    release="accelerate 1.15, transformers {transformers}, peft 0.21",
    install=trainer.PACKAGES,
    needs=trainer.needs,
    write=write,
    reader=Reader("accelerate", read),
)
