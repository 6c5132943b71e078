"""torchtune: its recipes under `tune run`, on the configurations that it ships, with the scenario laid over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...scenario import Scenario
from .launcher import Launch, Launcher, Objection, Reader
from .names import DATASET, LORA_ALPHA_PER_RANK, learning_rate, model_name, repository, steps, training_notes
from .reading import told, words
from .shell import Word, command, nodes_of

KINDS = ("full", "full_single_device", "lora", "lora_single_device", "qlora_single_device")
SHIPPED = {
    "gemma-2b": ("gemma/2B", "full lora lora_single_device qlora_single_device"),
    "gemma-7b": ("gemma/7B", "full lora lora_single_device qlora_single_device"),
    "gemma-2-2b": ("gemma2/2B", "full lora lora_single_device qlora_single_device"),
    "gemma-2-9b": ("gemma2/9B", "full lora lora_single_device qlora_single_device"),
    "gemma-2-27b": ("gemma2/27B", "full lora lora_single_device qlora_single_device"),
    "llama-2-7b": ("llama2/7B", "full lora lora_single_device qlora_single_device"),
    "llama-2-13b": ("llama2/13B", "full lora qlora_single_device"),
    "llama-2-70b": ("llama2/70B", "lora"),
    "llama-3-8b": ("llama3/8B", " ".join(KINDS)),
    "llama-3-70b": ("llama3/70B", "full lora"),
    "llama-3.1-8b": ("llama3_1/8B", " ".join(KINDS)),
    "llama-3.1-70b": ("llama3_1/70B", "full lora"),
    "llama-3.2-1b": ("llama3_2/1B", " ".join(KINDS)),
    "llama-3.2-3b": ("llama3_2/3B", " ".join(KINDS)),
    "llama-3.3-70b": ("llama3_3/70B", "full lora"),
    "mistral-7b": ("mistral/7B", "full lora lora_single_device qlora_single_device"),
    "phi-3-mini": ("phi3/mini", "full lora lora_single_device qlora_single_device"),
    "phi-4": ("phi4/14B", "full lora lora_single_device qlora_single_device"),
    "qwen2-1.5b": ("qwen2/1.5B", "full full_single_device lora lora_single_device"),
    "qwen2-7b": ("qwen2/7B", "full full_single_device lora lora_single_device"),
    "qwen2.5-0.5b": ("qwen2_5/0.5B", "full full_single_device lora lora_single_device"),
    "qwen2.5-1.5b": ("qwen2_5/1.5B", "full full_single_device lora lora_single_device"),
    "qwen2.5-3b": ("qwen2_5/3B", "full full_single_device lora lora_single_device"),
    "qwen2.5-7b": ("qwen2_5/7B", "full full_single_device lora lora_single_device"),
    "qwen2.5-14b": ("qwen2_5/14B", "lora_single_device"),
    "qwen2.5-32b": ("qwen2_5/32B", "lora"),
    "qwen2.5-72b": ("qwen2_5/72B", "lora"),
}
"""The configurations that torchtune 0.6.1 ships: by a model's id in the catalog their names, and in which kinds."""
PRECISIONS = {"fp32": "fp32", "bf16": "bf16"}
OPTIMIZERS = {
    "adamw": "torch.optim.AdamW",
    "adamw-foreach": "torch.optim.AdamW",
    "adamw-8bit": "bitsandbytes.optim.AdamW8bit",
}
ATTENTION = "[q_proj,k_proj,v_proj,output_proj]"


def kind(scenario: Scenario) -> str:
    """The kind of configuration that a scenario needs."""
    method = {"finetune": "full"}.get(scenario.method, scenario.method)
    return f"{method}_single_device" if scenario.num_devices == 1 else method


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
    yield "dtype", PRECISIONS[scenario.precision]
    yield "optimizer._component_", OPTIMIZERS[scenario.optimizer]
    yield "optimizer.lr", f"{learning_rate(scenario):g}"
    yield "enable_activation_checkpointing", scenario.checkpointing == "full"
    yield "enable_activation_offloading", scenario.offload == "activations"
    if scenario.method == "finetune":
        yield "optimizer_in_bwd", False
        return
    yield "model.lora_attn_modules", ATTENTION
    yield "model.apply_lora_to_mlp", scenario.lora_targets == "all-linear"
    yield "model.lora_rank", scenario.lora_rank
    yield "model.lora_alpha", LORA_ALPHA_PER_RANK * scenario.lora_rank
    yield "model.lora_dropout", scenario.lora_dropout


def objection(scenario: Scenario) -> Objection | None:
    """Object to models and layouts for which it ships no configuration."""
    shipped = SHIPPED.get(scenario.model.id)
    if shipped is None or scenario.model_path is not None:
        return Objection("model", "it ships no configuration of this model")
    if kind(scenario) not in shipped[1].split():
        return Objection("model", f"it ships no configuration {kind(scenario)} of this model")
    if scenario.num_devices > scenario.devices_per_node:
        return Objection("num_devices", "its recipes run on one machine")
    if scenario.num_devices > 1 and scenario.zero != 3:
        return Objection("zero", "on several devices it divides all by FSDP", instead=3)
    return None


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
        f"{SHIPPED[scenario.model.id][0]}_{kind(scenario)}",
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
    id="torchtune",
    name="torchtune",
    release="torchtune 0.6.1",
    install=("torchtune", "torchao"),
    needs=lambda scenario: ("bitsandbytes",) if scenario.optimizer == "adamw-8bit" else (),
    tasks=("finetune", "lora", "qlora"),
    backends=frozenset({"cuda", "rocm", "xpu"}),
    choices={
        "precision": tuple(PRECISIONS),
        "optimizer": tuple(OPTIMIZERS),
        "checkpointing": ("full", "none"),
        "quant": ("none", "nf4"),
        "attention": ("flash",),
        "offload": ("none", "activations"),
        "dropout": (None, 0.0),
        "lora_layers": (None,),
    },
    splits=frozenset({"num_devices"}),
    objection=objection,
    write=write,
    reader=Reader("torchtune", read),
)
