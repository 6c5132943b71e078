"""mlx-lm: the YAML of mlx_lm.lora, or the command line of mlx_lm.server."""

from __future__ import annotations

from pathlib import Path

from ...catalog.parts import Dropout
from ...scenario import Scenario
from ...workload.parameters import bare_layers
from ..expressed.desks import MLX_DTYPES, MLX_LM, MLX_OPTIMIZERS, mlx_format
from ..repositories import model_name
from . import serving
from .launcher import File, Launch, Launcher, Reader
from .names import DATASET, LEARNING_RATES, model_notes, steps, training_notes
from .parsers import module, yaml_of
from .shell import Variable, Word, command, flags
from .text import as_yaml

CONFIG = "lora.yaml"
CONVERTED = "mlx_model"
ATTENTION_KEYS = tuple(f"self_attn.{name}_proj" for name in "qkvo")
LATENT_KEYS = tuple(f"self_attn.{name}" for name in ("q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "o_proj"))
"""Of attention over a latent vector; a name that a model has not is passed over."""
LORA_SCALE = 2.0
"""The factor of the adapters' output: alpha / rank."""


def is_converted(scenario: Scenario) -> bool:
    """Whether weights are needed in another format than the published one."""
    published = scenario.quant == scenario.model.published_quant
    return mlx_format(scenario) is not None or (published and MLX_DTYPES[scenario.precision] != scenario.model.dtype)


def conversion(scenario: Scenario) -> tuple[str, ...]:
    """The command that converts the weights, if it is needed."""
    if not is_converted(scenario):
        return ()
    own = mlx_format(scenario)
    options: list[list[Word]] = [["--dtype", MLX_DTYPES[scenario.precision]]]
    if own is not None and own.endswith("bit"):
        options += [["--quantize"], ["--q-bits", int(own.removesuffix("bit"))], ["--q-group-size", 64]]
    elif own is not None:
        options += [["--quantize"], ["--q-mode", own]]
    program: list[Word] = ["mlx_lm.convert", "--hf-path", model_name(scenario), "--mlx-path", CONVERTED]
    return (command(program, *options),)


def source(scenario: Scenario) -> str:
    """Name the weights: the published ones, or the converted ones."""
    return CONVERTED if is_converted(scenario) else model_name(scenario)


def hosts(scenario: Scenario) -> list[Word]:
    """What starts a program on several machines; nothing for one."""
    return ["mlx.launch", "--hosts", Variable("HOSTS"), "--"] if scenario.num_devices > 1 else []


def hosts_note(scenario: Scenario) -> tuple[str, ...]:
    """Say what HOSTS is."""
    return ("set HOSTS to the machines' names, with commas",) if scenario.num_devices > 1 else ()


def trained_layers(scenario: Scenario) -> int:
    """How many last layers get adapters; -1: all of them."""
    layers = scenario.lora_layers
    return -1 if layers is None or not bare_layers(scenario) else layers


def config(scenario: Scenario) -> dict[str, object]:
    """The configuration of mlx_lm.lora; its batch counts all machines."""
    adapted = scenario.trains_adapters
    settings: dict[str, object] = {
        "model": source(scenario),
        "train": True,
        "data": DATASET,
        "fine_tune_type": "lora" if adapted else "full",
        "num_layers": trained_layers(scenario) if adapted else scenario.model.architecture.own_layers,
        "optimizer": MLX_OPTIMIZERS[scenario.optimizer],
        "learning_rate": LEARNING_RATES[scenario.method],
        "batch_size": scenario.micro_batch * scenario.dp,
        "grad_accumulation_steps": scenario.micro_steps,
        "iters": steps(scenario) * scenario.micro_steps,
        "max_seq_length": scenario.seq_len,
        "grad_checkpoint": scenario.checkpointing == "full",
        "adapter_path": "adapters",
    }
    if adapted:
        parameters: dict[str, object] = {
            "rank": scenario.lora_rank,
            "dropout": scenario.lora_dropout,
            "scale": LORA_SCALE,
        }
        if scenario.lora_targets == "attention":
            parameters["keys"] = list(LATENT_KEYS if scenario.model.architecture.mla else ATTENTION_KEYS)
        settings["lora_parameters"] = parameters
    return settings


def served(scenario: Scenario) -> Launch:
    """Write the command of the server."""
    options = flags(
        [
            ("--model", source(scenario)),
            ("--decode-concurrency", scenario.concurrency),
            ("--prompt-concurrency", scenario.concurrency),
            ("--max-tokens", max(1, (scenario.context or 1) - scenario.prompt)),
            ("--kv-bits", 8 if scenario.kv_dtype == "int8" else None),
            ("--draft-model", serving.weights_of(scenario)),
            ("--num-draft-tokens", scenario.drafted or None),
            ("--pipeline", scenario.pp > 1),
        ]
    )
    line = command([*hosts(scenario), "mlx_lm.server"], *options)
    text = f"its cache grows as needed: the context of {scenario.context} tokens is kept by the requests"
    notes = (*model_notes(scenario), text, *serving.draft_notes(scenario), *hosts_note(scenario))
    return Launch((), "\n".join([*conversion(scenario), line]), notes)


def training(scenario: Scenario) -> Launch:
    """Write the configuration and the command of mlx_lm.lora."""
    line = command([*hosts(scenario), "mlx_lm.lora", "--config", CONFIG])
    notes = [*training_notes(scenario), *hosts_note(scenario)]
    if scenario.quant == "nf4":
        notes.append("MLX has no nf4: its own 4-bit format, groups of 64, is what was estimated and is written here")
    if scenario.model.architecture.dropout != Dropout():
        notes.append("MLX runs models without dropout")
    lines = "\n".join([*conversion(scenario), line])
    return Launch((File(CONFIG, as_yaml(config(scenario))),), lines, tuple(notes))


def write(scenario: Scenario) -> Launch:
    """Write what trains or what serves."""
    return training(scenario) if scenario.is_training else served(scenario)


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read a recipe."""
    lora = module("mlx_lm.lora")
    actions = {action.dest: action for action in lora.build_parser()._actions}
    if not (folder / "lora.yaml").exists():
        return
    for name, value in yaml_of(folder, "lora.yaml").items():
        if name not in lora.CONFIG_DEFAULTS:
            raise ValueError(f"unknown key {name}")
        choices = actions[name].choices if name in actions else None
        if choices is not None and value not in choices:
            raise ValueError(f"{name}: {value} is none of {', '.join(map(str, choices))}")


LAUNCHER = Launcher(
    expressed=MLX_LM,
    name="mlx-lm",
    release="mlx-lm 0.32",
    install=("mlx-lm",),
    write=write,
    reader=Reader("mlx-lm", read),
)
