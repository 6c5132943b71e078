"""LitGPT: the command line of its trainings; FSDP divides the model on several devices."""

from __future__ import annotations

import json

from ...scenario import Scenario
from ..expressed.tuners import LITGPT, LITGPT_PRECISIONS, LITGPT_QUANTS
from ..nodes import nodes_of
from ..repositories import model_name, repository
from .launcher import Launch, Launcher, Reader
from .names import learning_rate, low_rank, steps, training_notes
from .parsers import parses
from .shell import Word, command, flags, nodes_note

COMMANDS = {"pretrain": "pretrain", "finetune": "finetune_full", "lora": "finetune_lora", "qlora": "finetune_lora"}


def settings(scenario: Scenario) -> list[list[Word]]:
    """The options behind the checkpoint or the model's name."""
    nodes = nodes_of(scenario)
    adapted = scenario.trains_adapters
    everything = scenario.lora_targets == "all-linear"
    lora = [
        *low_rank(scenario, "--lora_").items(),
        *((f"--lora_{name}", "true") for name in ("query", "key", "value", "projection")),
        ("--lora_mlp", "true" if everything else "false"),
    ]
    tokens = scenario.global_batch * scenario.seq_len * steps(scenario)
    return flags(
        [
            ("--precision", LITGPT_PRECISIONS[scenario.precision]),
            ("--quantize", LITGPT_QUANTS.get(scenario.quant)),
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


def write(scenario: Scenario) -> Launch:
    """Write the command; fine-tuning begins with the download of a checkpoint."""
    name = model_name(scenario)
    configured = name.rpartition("/")[2] if scenario.task == "pretrain" else name
    program: list[Word] = ["litgpt", COMMANDS[scenario.task], configured]
    nodes = nodes_of(scenario)
    line = command(program, *settings(scenario))
    if nodes.several:
        line = f'MASTER_ADDR="$MASTER_ADDR" NODE_RANK="$NODE_RANK" {line}'
    return Launch((), line, (*training_notes(scenario), *_tokenizer(scenario), *_local(scenario), *nodes_note(nodes)))


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
    expressed=LITGPT,
    name="LitGPT",
    release="LitGPT 0.5.13",
    install=("litgpt[extra]",),
    needs=lambda scenario: ("bitsandbytes",) if scenario.quant in LITGPT_QUANTS else (),
    write=write,
    reader=Reader("litgpt", parses("--print_config")),
)
