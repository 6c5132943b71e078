"""LitGPT: the command line of its trainings; FSDP divides the model on several devices."""

from __future__ import annotations

import json

from ...catalog.device import is_mixed
from ...scenario import Scenario
from .launcher import Launch, Launcher, Objection, Reader
from .names import LORA_ALPHA_PER_RANK, learning_rate, model_name, repository, steps, training_notes
from .reading import parses
from .shell import Word, command, flags, nodes_note, nodes_of

PRECISIONS = {"fp32": "32-true", "bf16-mixed": "bf16-mixed", "bf16": "bf16-true", "fp16": "16-true"}
QUANTS = {"nf4": "bnb.nf4-dq", "int8": "bnb.int8-training"}
COMMANDS = {"pretrain": "pretrain", "finetune": "finetune_full", "lora": "finetune_lora", "qlora": "finetune_lora"}


def settings(scenario: Scenario) -> list[list[Word]]:
    """The options behind the checkpoint or the model's name."""
    nodes = nodes_of(scenario)
    adapted = scenario.trains_adapters
    everything = scenario.lora_targets == "all-linear"
    lora = [
        ("--lora_r", scenario.lora_rank),
        ("--lora_alpha", LORA_ALPHA_PER_RANK * scenario.lora_rank),
        ("--lora_dropout", scenario.lora_dropout),
        *((f"--lora_{name}", "true") for name in ("query", "key", "value", "projection")),
        ("--lora_mlp", "true" if everything else "false"),
    ]
    tokens = scenario.global_batch * scenario.seq_len * steps(scenario)
    return flags(
        [
            ("--precision", PRECISIONS[scenario.precision]),
            ("--quantize", QUANTS.get(scenario.quant)),
            ("--devices", nodes.devices),
            ("--num_nodes", nodes.count if nodes.several else None),
            *(lora if adapted else ()),
            ("--tokenizer_dir", model_name(scenario) if scenario.task == "pretrain" else None),
            ("--data", "TextFiles" if scenario.task == "pretrain" else "JSON"),
            ("--data.train_data_path" if scenario.task == "pretrain" else "--data.json_path", "DATASET"),
            ("--train.global_batch_size", scenario.global_batch),
            ("--train.micro_batch_size", scenario.micro_batch),
            ("--train.max_seq_length", scenario.seq_len),
            ("--train.max_tokens" if scenario.task == "pretrain" else "--train.max_steps", _length(scenario, tokens)),
            (
                "--optimizer",
                json.dumps({"class_path": "torch.optim.AdamW", "init_args": {"lr": learning_rate(scenario)}}),
            ),
            ("--out_dir", "output"),
        ]
    )


def _length(scenario: Scenario, tokens: int) -> int:
    return tokens if scenario.task == "pretrain" else steps(scenario)


def objection(scenario: Scenario) -> Objection | None:
    """Object to what its trainings fix themselves."""
    several = scenario.num_devices > 1
    if (scenario.checkpointing == "full") != several:
        return Objection("checkpointing", "it recomputes under FSDP alone", instead="full" if several else "none")
    if several and scenario.zero != 3:
        return Objection("zero", "on several devices it divides all by FSDP", instead=3)
    if several and scenario.quant != "none":
        return Objection("quant", "quantized weights train on one device")
    if scenario.quant != "none" and is_mixed(scenario.precision):
        return Objection("precision", "quantized weights train without autocast", instead="bf16")
    return None


def write(scenario: Scenario) -> Launch:
    """Write the command; fine-tuning begins with the download of a checkpoint."""
    name = model_name(scenario)
    program: list[Word] = ["litgpt", COMMANDS[scenario.task], name if scenario.task != "pretrain" else _short(name)]
    nodes = nodes_of(scenario)
    line = command(program, *settings(scenario))
    if nodes.several:
        line = f'MASTER_ADDR="$MASTER_ADDR" NODE_RANK="$NODE_RANK" {line}'
    return Launch((), line, (*training_notes(scenario), *_tokenizer(scenario), *_local(scenario), *nodes_note(nodes)))


def _short(name: str) -> str:
    """The name of a configuration of its own: the repository without its owner."""
    return name.rpartition("/")[2]


def _tokenizer(scenario: Scenario) -> tuple[str, ...]:
    """Say how a pre-training comes by its tokenizer, which nothing else downloads."""
    if scenario.task != "pretrain" or scenario.model_path is not None or repository(scenario) is None:
        return ()
    download = f"litgpt download {model_name(scenario)} --tokenizer_only true"
    return (f"first: {download}; DATASET is a folder of two .txt files or more",)


def _local(scenario: Scenario) -> tuple[str, ...]:
    if scenario.model_path is None or repository(scenario) is None:
        return ()
    return ("convert the local weights first: litgpt convert_to_litgpt FOLDER",)


LAUNCHER = Launcher(
    id="litgpt",
    name="LitGPT",
    release="LitGPT 0.5.13",
    install=("litgpt[extra]",),
    needs=lambda scenario: ("bitsandbytes",) if scenario.quant in QUANTS else (),
    tasks=("pretrain", "finetune", "lora", "qlora"),
    backends=frozenset({"cuda"}),
    choices={
        "precision": tuple(PRECISIONS),
        "optimizer": ("adamw", "adamw-foreach"),
        "checkpointing": ("none", "full"),
        "quant": ("none", *QUANTS),
        "attention": ("flash",),
        "offload": ("none",),
        "dropout": (None, 0.0),
        "lora_layers": (None,),
    },
    wide_bases=True,
    splits=frozenset({"num_devices"}),
    objection=objection,
    write=write,
    reader=Reader("litgpt", parses("--print_config")),
)
