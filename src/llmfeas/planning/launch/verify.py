"""Whether an engine reads what was written for it: asked of its own parser, where it is installed here.

Only `launch --verify` comes here: it imports the engine, or asks its program for its options. Nothing is started.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ...errors import CheckFailedError, UsageError
from ...record import dataclass
from ...text import printable
from .launcher import Launch

LIMIT_SECONDS = 180.0
MOST_CHARACTERS = 4 * 2**20
ANYWHERE = {"use_cpu": True, "tf32": None}
"""What a Trainer's settings need to be read on a machine without the devices that they are for."""


class NotHereError(Exception):
    """The engine is not installed here."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How an engine's own parser is asked; it raises what it does not read."""

    package: str
    """The distribution whose version is told."""
    read: Callable[[Launch, Path], None]


def verified(engine: str, launch: Launch) -> str | None:
    """Who read the recipe, such as `accelerate 1.15.0`; None where the engine is not installed here.

    Raises:
        CheckFailedError: it does not take it; with its words.
        UsageError: it has no parser that can be asked without its devices.
    """
    reader = READERS.get(engine)
    if reader is None:
        problem = f"--verify: {engine} has no parser that can be asked without its devices."
        raise UsageError("cannot-verify", problem, f"These have: {', '.join(READERS)}.", list(READERS))
    with tempfile.TemporaryDirectory() as folder:
        for file in launch.files:
            (Path(folder) / file.name).write_text(file.text, encoding="utf-8")
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
                reader.read(launch, Path(folder))
        except NotHereError:
            return None
        except (Exception, SystemExit) as error:
            words = said.getvalue().strip().splitlines()[-1:] if isinstance(error, SystemExit) else [str(error)]
            problem = printable(" ".join(words) or type(error).__name__, 400)
            raise CheckFailedError("engine-refuses", f"{engine} does not read this recipe: {problem}") from None
    return f"{reader.package} {_version(reader.package)}".strip()


def words(launch: Launch) -> list[str]:
    """The last command of a launch as a shell splits it; variables stand as their names."""
    return shlex.split(launch.command.replace("\\\n", " ").splitlines()[-1].replace("$", ""))


def _version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def _module(name: str) -> Any:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        importlib.import_module(name.partition(".")[0])
    except ImportError:
        raise NotHereError(name) from None
    return importlib.import_module(name)


def _yaml(folder: Path, name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((folder / name).read_text(encoding="utf-8")))


def _json(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / name).read_text(encoding="utf-8")))


def _accelerate(launch: Launch, folder: Path) -> None:
    config = _module("accelerate.commands.config.config_args").ClusterConfig
    config.from_yaml_file(str(folder / "accelerate.yaml"))
    if (folder / "recipe.json").exists():
        parser = _module("accelerate.commands.launch").launch_command_parser()
        parser.parse_args([word.replace("NODE_RANK", "0") for word in words(launch)[2:]])
        _recipe(folder)


def _recipe(folder: Path) -> None:
    """The settings of transformers and peft. What asks for a device, a process group or a file is left out."""
    transformers, peft = _module("transformers"), _module("peft")
    recipe = _json(folder, "recipe.json")
    training = {**recipe["training"], **ANYWHERE, "output_dir": str(folder / "output")}
    for name in ("deepspeed", "fsdp"):
        training.pop(name, None)
    transformers.TrainingArguments(**training)
    if recipe["lora"]:
        peft.LoraConfig(**recipe["lora"])
    if recipe["quantization"]:
        transformers.BitsAndBytesConfig(**recipe["quantization"])


def _deepspeed(launch: Launch, folder: Path) -> None:
    runtime = _module("deepspeed.runtime.config")
    config = _json(folder, "ds_config.json")
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
    _recipe(folder)


def _torchrun(launch: Launch, folder: Path) -> None:
    parser = _module("torch.distributed.run").get_args_parser()
    parser.parse_args([word.replace("NODE_RANK", "0") for word in words(launch)[1:]])
    _recipe(folder)


def _trl(launch: Launch, folder: Path) -> None:
    _accelerate(launch, folder)
    name = words(launch)[words(launch).index("--config") + 1]
    script = _module(f"trl.scripts.{name.removesuffix('.yaml')}")
    here = folder / "here.yaml"
    settings, processes = _yaml(folder, name), _yaml(folder, "accelerate.yaml")["num_processes"]
    # one process stands for all of them
    settings["gradient_accumulation_steps"] *= processes
    here.write_text(json.dumps({**settings, **ANYWHERE}), encoding="utf-8")
    script.make_parser().parse_args_and_config(["--config", str(here)], fail_with_unknown_args=True)


def _axolotl(launch: Launch, folder: Path) -> None:
    _module("axolotl.utils.schemas.config").AxolotlInputConfig(**_yaml(folder, "axolotl.yaml"))


def _mlx(launch: Launch, folder: Path) -> None:
    lora = _module("mlx_lm.lora")
    actions = {action.dest: action for action in lora.build_parser()._actions}
    if not (folder / "lora.yaml").exists():
        return
    for name, value in _yaml(folder, "lora.yaml").items():
        if name not in lora.CONFIG_DEFAULTS:
            raise ValueError(f"unknown key {name}")
        choices = actions[name].choices if name in actions else None
        if choices is not None and value not in choices:
            raise ValueError(f"{name}: {value} is none of {', '.join(map(str, choices))}")


def _knows(*ask: str) -> Callable[[Launch, Path], None]:
    """A reader that looks for each option of the command in what its program says of itself; {n} is the nth word."""

    def read(launch: Launch, folder: Path) -> None:
        line = words(launch)
        program = [part.format(*line) for part in ask]
        told = set(re.findall(r"(?<![\w-])--?[\w.-]+", _told(program)))
        unknown = [option for option in _options(line) if option not in told and option.replace("_", "-") not in told]
        if unknown:
            raise ValueError(f"{shlex.join(program)} does not name {', '.join(unknown)}")

    return read


def _torchtune(launch: Launch, folder: Path) -> None:
    """Its own list names every recipe and configuration."""
    line, listed = words(launch), _told(["tune", "ls"]).split()
    recipe = line[line.index("--config") - 1]
    for name in (recipe, line[line.index("--config") + 1]):
        if name not in listed:
            raise ValueError(f"tune ls does not name {name}")


def _options(line: Sequence[str]) -> Iterator[str]:
    """The long options of a command; a `--` between two programs is none."""
    yield from (word.partition("=")[0] for word in line if word.startswith("--") and word != "--")


def _told(program: Sequence[str]) -> str:
    if shutil.which(program[0]) is None:
        raise NotHereError(program[0])
    done = subprocess.run(
        program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS
    )
    return done.stdout[:MOST_CHARACTERS].decode("utf-8", "replace")


READERS: Mapping[str, Reader] = {
    "accelerate": Reader("accelerate", _accelerate),
    "axolotl": Reader("axolotl", _axolotl),
    "deepspeed": Reader("deepspeed", _deepspeed),
    "litgpt": Reader("litgpt", _knows("litgpt", "{1}", "--help")),
    "llama.cpp": Reader("llama.cpp", _knows("{0}", "--help")),
    "mlx-lm": Reader("mlx-lm", _mlx),
    "tensorrt-llm": Reader("tensorrt-llm", _knows("trtllm-serve", "serve", "--help")),
    "torchrun-fsdp": Reader("torch", _torchrun),
    "torchtune": Reader("torchtune", _torchtune),
    "trl": Reader("trl", _trl),
    "vllm": Reader("vllm", _knows("vllm", "serve", "--help=all")),
}
"""By launcher, for those whose parser can be asked without their devices."""
