"""DeepSpeed: its JSON, and the recipe for Trainer."""

from __future__ import annotations

from pathlib import Path

from ...scenario import Scenario
from ..expressed.trainers import DEEPSPEED, DEEPSPEED_OPTIMIZERS, zero_stage
from ..nodes import nodes_of
from . import trainer
from .launcher import File, Launch, Launcher, Reader
from .parsers import json_of, module, read_recipe
from .shell import Word, command, meeting, nodes_note
from .text import as_json

CONFIG = "ds_config.json"
DRIVE = "/nvme"
"""The folder of the drive, which its user changes."""


def place(scenario: Scenario) -> dict[str, object]:
    """Where what moves lies: in main memory, or in a folder of a drive."""
    if scenario.drive_gb_per_s is None:
        return {"device": "cpu", "pin_memory": True}
    return {"device": "nvme", "nvme_path": DRIVE, "pin_memory": True}


def zero(scenario: Scenario) -> dict[str, object]:
    """The section zero_optimization."""
    stage = zero_stage(scenario)
    section: dict[str, object] = {"stage": stage}
    if stage:
        section |= {"overlap_comm": True, "contiguous_gradients": True}
    if stage == 3:
        section["stage3_gather_16bit_weights_on_model_save"] = True
    if scenario.states_on_host:
        section["offload_optimizer"] = place(scenario)
    if scenario.offload == "all":
        section["offload_param"] = place(scenario)
    return section


def precision(scenario: Scenario) -> dict[str, object]:
    """The sections bf16 and fp16: mixed formats keep fp32 master weights, pure bf16 keeps none."""
    bf16: dict[str, object] = {"enabled": scenario.precision in ("bf16-mixed", "bf16")}
    if scenario.precision == "bf16":
        bf16 |= {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}
    return {"bf16": bf16, "fp16": {"enabled": scenario.precision == "fp16-mixed"}}


def config(scenario: Scenario) -> dict[str, object]:
    """DeepSpeed's configuration; "auto" is filled in by Trainer from the recipe.

    The whole batch is left out: DeepSpeed counts ranks itself, and counts them otherwise than Trainer where tensors
    are divided.
    """
    settings: dict[str, object] = {
        "train_micro_batch_size_per_gpu": scenario.micro_batch,
        "gradient_accumulation_steps": scenario.micro_steps,
        "gradient_clipping": "auto",
        **precision(scenario),
        "zero_optimization": zero(scenario),
    }
    if scenario.optimizer in DEEPSPEED_OPTIMIZERS:
        parameters = dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")
        if scenario.optimizer == "lion":
            del parameters["eps"]
        settings["optimizer"] = {"type": DEEPSPEED_OPTIMIZERS[scenario.optimizer], "params": parameters}
    else:
        settings["zero_allow_untested_optimizer"] = True
    if scenario.tp > 1:
        settings["tensor_parallel"] = {"autotp_size": scenario.tp}
    return settings


def write(scenario: Scenario) -> Launch:
    """Write DeepSpeed's configuration, the recipe and the program."""
    nodes = nodes_of(scenario)
    machines: list[list[Word]] = [["--num_gpus", nodes.devices]]
    hosts: tuple[File, ...] = ()
    if nodes.several:
        hosts = (File("hostfile", "".join(f"machine-{i} slots={nodes.devices}\n" for i in range(1, nodes.count + 1))),)
        machines = [
            ["--hostfile", "hostfile"],
            ["--no_ssh"],
            *meeting(nodes, "--node_rank", "--master_addr", "--master_port"),
        ]
    arguments = trainer.training(scenario) | {"deepspeed": CONFIG}
    mixed = scenario.precision.removesuffix("-mixed")
    if mixed in ("bf16", "fp16"):
        arguments["bf16"], arguments["fp16"] = mixed == "bf16", mixed == "fp16"
    dtype = {"bf16": "bfloat16", "fp16": "float16"}.get(mixed)
    files = (File(CONFIG, as_json(config(scenario))), *hosts, trainer.recipe(scenario, arguments, dtype))
    line = command(["deepspeed"], *machines, [trainer.PROGRAM, trainer.RECIPE])
    named = ("put the names of your machines in hostfile",) if hosts else ()
    notes = (*trainer.notes(scenario), *named, *nodes_note(nodes))
    return Launch((*files, trainer.program()), line, notes)


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read a recipe."""
    runtime = module("deepspeed.runtime.config")
    config = json_of(folder, "ds_config.json")
    # transformers fills in what is auto
    filled = {"lr": 1e-4, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.0}
    if "optimizer" in config:
        config["optimizer"]["params"] = {name: filled[name] for name in config["optimizer"]["params"]}
    micro = config["train_micro_batch_size_per_gpu"] * config.get("gradient_accumulation_steps", 1)
    ranks = config["train_batch_size"] // micro if "train_batch_size" in config else 1
    communication = runtime.dist
    kept = communication.get_world_size, communication.get_rank
    communication.get_world_size, communication.get_rank = (lambda *_, **__: ranks), (lambda *_, **__: 0)
    try:
        runtime.DeepSpeedConfig({**config, "gradient_clipping": 1.0})
    finally:
        communication.get_world_size, communication.get_rank = kept
    read_recipe(folder)


LAUNCHER = Launcher(
    expressed=DEEPSPEED,
    name="DeepSpeed",
    release="DeepSpeed 0.19, transformers {transformers}, peft 0.21",
    install=(*trainer.PACKAGES, "deepspeed"),
    needs=trainer.needs,
    write=write,
    reader=Reader("deepspeed", read),
)
