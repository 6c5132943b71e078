"""torchrun with PyTorch's FSDP: the recipe for Trainer says how the model is divided."""

from __future__ import annotations

from pathlib import Path

from ...record import replace
from ...scenario import Scenario
from ..expressed.trainers import TORCHRUN_FSDP, divided_by_fsdp
from ..nodes import Nodes, nodes_of
from . import accelerate, trainer
from .launcher import Launch, Reader
from .parsers import module, read_recipe, words
from .shell import Word, command, meeting, nodes_note


def processes(nodes: Nodes) -> list[list[Word]]:
    """Torchrun's options for so many machines and devices."""
    if not nodes.several:
        return [["--standalone"], ["--nproc-per-node", nodes.devices]]
    return [
        ["--nnodes", nodes.count],
        ["--nproc-per-node", nodes.devices],
        *meeting(nodes, "--node-rank", "--master-addr", "--master-port"),
    ]


def write(scenario: Scenario) -> Launch:
    """Write the recipe with FSDP's settings, and the program."""
    nodes = nodes_of(scenario)
    arguments = trainer.training(scenario)
    if divided_by_fsdp(scenario):
        arguments |= {"fsdp": True, "fsdp_config": trainer.fsdp(scenario)}
        arguments |= trainer.left_to_fsdp(scenario)
    line = command(["torchrun"], *processes(nodes), [trainer.PROGRAM, trainer.RECIPE])
    files = (trainer.recipe(scenario, arguments), trainer.program())
    return Launch(files, line, (*trainer.notes(scenario), *nodes_note(nodes)))


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read a recipe."""
    parser = module("torch.distributed.run").get_args_parser()
    parser.parse_args([word.replace("NODE_RANK", "0") for word in words(launch)[1:]])
    read_recipe(folder)


LAUNCHER = replace(
    accelerate.LAUNCHER,
    expressed=TORCHRUN_FSDP,
    name="torchrun with FSDP",
    release="torch 2.13, transformers {transformers}, peft 0.21",
    write=write,
    reader=Reader("torch", read),
)
