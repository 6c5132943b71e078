"""torchtune: its recipes under `tune run`, on the configurations that it ships, with the scenario laid over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...scenario import Scenario
from ..expressed.tuners import (
    TORCHTUNE,
    TORCHTUNE_OPTIMIZERS,
    TORCHTUNE_PRECISIONS,
    torchtune_kind,
    torchtune_shipped,
)
from ..nodes import nodes_of
from ..repositories import model_name, repository
from .launcher import Launch, Launcher, Reader
from .names import DATASET, learning_rate, low_rank, steps, training_notes
from .parsers import told, words
from .shell import Word, command

ATTENTION = "[q_proj,k_proj,v_proj,output_proj]"


def settings(scenario: Scenario) -> Iterator[tuple[str, object]]:
    """What is laid over the configuration."""
    yield "tokenizer.max_seq_len", scenario.seq_len
    yield "dataset._component_", "torchtune.datasets.text_completion_dataset"
    yield "dataset.source", DATASET
    yield "dataset.packed", True
    yield "batch_size", scenario.micro_batch
    yield "gradient_accumulation_steps", scenario.micro_steps
    yield "epochs", 1
    yield "max_steps_per_epoch", steps(scenario)
    yield "dtype", TORCHTUNE_PRECISIONS[scenario.precision]
    yield "optimizer._component_", TORCHTUNE_OPTIMIZERS[scenario.optimizer]
    yield "optimizer.lr", f"{learning_rate(scenario):g}"
    yield "enable_activation_checkpointing", scenario.checkpointing == "full"
    yield "enable_activation_offloading", scenario.offload == "activations"
    if scenario.method == "finetune":
        yield "optimizer_in_bwd", False
        return
    yield "model.lora_attn_modules", ATTENTION
    yield "model.apply_lora_to_mlp", scenario.lora_targets == "all-linear"
    yield from low_rank(scenario, "model.lora_", "rank").items()


def write(scenario: Scenario) -> Launch:
    """Write the command; the weights are downloaded before it."""
    several = scenario.num_devices > 1
    method = "full" if scenario.method == "finetune" else "lora"
    program: list[Word] = ["tune", "run"]
    if several:
        program += ["--nproc_per_node", nodes_of(scenario).devices]
    program += [
        f"{method}_finetune_{'distributed' if several else 'single_device'}",
        "--config",
        f"{torchtune_shipped(scenario)['name']}_{torchtune_kind(scenario)}",
    ]
    laid = [[f"{name}={value}"] for name, value in settings(scenario)]
    return Launch((), command(program, *laid), (*training_notes(scenario), *_weights(scenario)))


def _weights(scenario: Scenario) -> tuple[str, ...]:
    name = model_name(scenario) if repository(scenario) else "REPOSITORY"
    return (
        f"the configuration reads weights and tokenizer from a folder in /tmp: tune download {name} --output-dir DIR, "
        "and name another one with checkpointer.checkpoint_dir and tokenizer.path",
    )


def read(launch: Launch, folder: Path) -> None:
    """Its own list names every recipe and configuration."""
    line, listed = words(launch), told(["tune", "ls"]).split()
    recipe = line[line.index("--config") - 1]
    for name in (recipe, line[line.index("--config") + 1]):
        if name not in listed:
            raise ValueError(f"tune ls does not name {name}")


LAUNCHER = Launcher(
    expressed=TORCHTUNE,
    name="torchtune",
    release="torchtune 0.6.1",
    install=("torchtune", "torchao"),
    needs=lambda scenario: ("bitsandbytes",) if scenario.optimizer == "adamw-8bit" else (),
    write=write,
    reader=Reader("torchtune", read),
)
