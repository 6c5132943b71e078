"""torchrun with PyTorch's FSDP: the recipe for Trainer says how the model is divided."""

from __future__ import annotations

from pathlib import Path

from ...record import replace
from ...scenario import Scenario
from . import accelerate, trainer
from .launcher import Launch, Objection, Reader
from .reading import module, read_recipe, words
from .shell import PORT, Nodes, Variable, Word, command, nodes_note, nodes_of


def processes(nodes: Nodes) -> list[list[Word]]:
    """Torchrun's options for so many machines and devices."""
    if not nodes.several:
        return [["--standalone"], ["--nproc-per-node", nodes.devices]]
    return [
        ["--nnodes", nodes.count],
        ["--nproc-per-node", nodes.devices],
        ["--node-rank", Variable("NODE_RANK")],
        ["--master-addr", Variable("MASTER_ADDR")],
        ["--master-port", PORT],
    ]


def objection(scenario: Scenario) -> Objection | None:
    """Object to what FSDP does not do, and to the Trainer that has only its first version."""
    if trainer.is_sharded(scenario) and scenario.transformers != "5":
        return Objection("transformers", "its Trainer has no second version of FSDP", instead="5")
    return trainer.fsdp_objection(scenario)


def write(scenario: Scenario) -> Launch:
    """Write the recipe with FSDP's settings, and the program."""
    nodes = nodes_of(scenario)
    arguments = trainer.training(scenario)
    if trainer.is_sharded(scenario):
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
    id="torchrun-fsdp",
    name="torchrun with FSDP",
    release="torch 2.13, transformers {transformers}, peft 0.21",
    backends=accelerate.LAUNCHER.backends - {"metal"},
    objection=objection,
    write=write,
    reader=Reader("torch", read),
)
