from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from command_line import Outcome

from llmfeas.cli.commands.launch import CLUSTERS
from llmfeas.cli.files import write_folder
from llmfeas.errors import UsageError
from llmfeas.planning.launch.clusters import CLUSTERS as WRITTEN

Run = Callable[..., Outcome]
CONFIGS = Path(__file__).parents[2] / "data" / "measurements" / "configs"
ASKED = ("--model", "llama-3-8b", "--device", "8xh100-sxm", "--task", "finetune")


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put text into stdin."""

    def put(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    return put


def test_files_and_command_are_printed(run: Run) -> None:
    found = run("launch", "--engine", "axolotl", *ASKED)
    assert found.code == 0
    assert (
        "\naxolotl.yaml\n# for Axolotl 0.19: pip install axolotl\nbase_model: meta-llama/Meta-Llama-3-8B\n" in found.out
    )
    assert "\nCommand\naxolotl train axolotl.yaml " in found.out
    assert "Put your data in place of DATASET" in found.out


def test_json_holds_files_and_command(run: Run) -> None:
    found = run("launch", "--engine", "deepspeed", *ASKED, "--json")
    envelope = json.loads(found.out)
    assert envelope["schema"] == "llmfeas.launch/1"
    assert envelope["inputs"]["engine"]["value"] == "deepspeed"
    files = {file["name"]: file["text"] for file in envelope["result"]["files"]}
    assert list(files) == ["ds_config.json", "recipe.json", "train.py"]
    assert envelope["result"]["command"] == "deepspeed --num_gpus 8 train.py recipe.json"


def test_markdown_fences_what_is_to_be_copied(run: Run) -> None:
    found = run("launch", "--engine", "vllm", "-m", "gpt2", "-d", "rtx-4090", "-t", "inference", "-f", "markdown")
    assert "**Command**\n\n```\nvllm serve openai-community/gpt2" in found.out


def test_other_formats_are_refused(run: Run) -> None:
    assert run("launch", "--engine", "vllm", *ASKED, "-f", "csv").code == 2


@pytest.mark.parametrize("width", ["40", "200"])
def test_no_line_of_a_file_is_broken(run: Run, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    found = run("launch", "--engine", "accelerate", *ASKED)
    assert (
        '\n    dataset = load_dataset(data["dataset"], split=data["split"], streaming=data["streaming"])\n' in found.out
    )


def test_a_plan_is_launched_from_stdin(run: Run, stdin: Callable[[str], None]) -> None:
    """`llmfeas plan ... --json | llmfeas launch --engine X -` takes the first way."""
    planned = run("plan", "-m", "llama-3-8b", "-d", "rtx-3060", "-t", "lora", "--json")
    first = json.loads(planned.out)["result"]["plans"][0]
    stdin(planned.out)
    found = run("launch", "--engine", "unsloth", "-", "--json")
    assert found.code == 0, found.err
    launched = json.loads(found.out)
    for name, value in first["changes"].items():
        assert launched["inputs"][name]["value"] == value
    assert launched["inputs"]["micro_batch"] == first["estimate"]["micro_batch"]


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (("-m", "llama-3-8b", "-d", "rtx-4090", "-t", "finetune", "--keep", "task"), "deepspeed"),
        (("-m", "llama-3.1-8b", "-d", "rtx-4070ti", "-t", "finetune"), "unsloth"),
        (("-m", "qwen3-32b", "-d", "rtx-4090", "-t", "dpo"), "trl"),
        (("-m", "qwen3-0.6b", "-d", "macbook air m2 16gb", "-t", "finetune"), "mlx-lm"),
    ],
)
def test_the_first_way_of_a_plan_can_be_launched(
    run: Run, stdin: Callable[[str], None], asked: tuple[str, ...], taken: str
) -> None:
    planned = run("plan", *asked, "--json").out
    stdin(planned)
    found = run("launch", "-", "--json")
    assert found.code == 0, found.err
    launched = json.loads(found.out)
    assert launched["result"]["engine"] == taken
    first = json.loads(planned)["result"]["plans"][0]
    assert first["changes"]
    for name in first["changes"]:
        assert launched["inputs"][name]["value"] == first["estimate"][name]["value"]


def test_an_estimate_is_launched_from_a_file_and_options_replace_its_settings(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "estimate.json"
    assert run("estimate", *ASKED, "--json", "-o", str(path)).code == 0
    found = run("launch", "--engine", "trl", str(path), "--seq-len", "512", "--json")
    inputs = json.loads(found.out)["inputs"]
    assert (inputs["seq_len"]["value"], inputs["model"]["value"]) == (512, "llama-3-8b")
    files = {file["name"]: file["text"] for file in json.loads(found.out)["result"]["files"]}
    assert yaml.safe_load(files["sft.yaml"])["max_length"] == 512


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "bad-json"),
        ("{", "bad-json"),
        ("[" * 100_000, "bad-json"),
        ("[]", "schema-version"),
        ("{}", "schema-version"),
        ('{"schema": "llmfeas.plan/2", "result": {"plans": []}}', "schema-version"),
        ('{"schema": "llmfeas.compare/1"}', "schema-version"),
        ('{"schema": ["llmfeas.plan/1"]}', "schema-version"),
        ('{"error": {"code": "x"}}', "schema-version"),
        ('{"schema": "llmfeas.plan/1"}', "bad-recipe"),
        ('{"schema": "llmfeas.plan/1", "result": {"plans": []}}', "no-way"),
        ('{"schema": "llmfeas.plan/1", "result": {"plans": [3]}}', "bad-recipe"),
        ('{"schema": "llmfeas.plan/1", "result": {"plans": {"a": 1}}}', "bad-recipe"),
        ('{"schema": "llmfeas.estimate/1", "inputs": 3}', "bad-recipe"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {"tokens": {"value": "x"}}}', "bad-recipe"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {"nothing": {"value": 1}}}', "bad-recipe"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {"tokens": {"value": 1, "origin": "guessed"}}}', "bad-recipe"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {"tokens": {"value": {"value": 1}}}}', "bad-recipe"),
    ],
)
def test_what_is_no_recipe_ends_with_3(run: Run, stdin: Callable[[str], None], text: str, code: str) -> None:
    stdin(text)
    found = run("launch", "--engine", "trl", "-", "--json")
    assert (found.code, found.error["code"]) == (3, code)
    assert found.error["hint"]


def test_a_recipe_that_cannot_be_read_ends_with_3(run: Run, tmp_path: Path) -> None:
    assert run("launch", "--engine", "trl", str(tmp_path / "none.json"), "--json").error["code"] == "file-unreadable"
    assert (
        run("launch", "vllm", "-m", "gpt2", "--json").error["hint"]
        == "An engine stands behind --engine: --engine vllm."
    )
    assert run("launch", "--engine", "trl", str(tmp_path)).code == 3


def test_what_an_engine_cannot_express_ends_with_2_and_names_those_that_can(run: Run) -> None:
    found = run("launch", "--engine", "trl", *ASKED, "--optimizer", "muon", "--json")
    assert (found.code, found.error["code"]) == (2, "engine-cannot")
    assert "axolotl" in found.error["candidates"]


def test_missing_and_unknown_names(run: Run) -> None:
    assert run("launch", "--engine", "trl", "--json").error["code"] == "missing-option"
    unknown = run("launch", "--engine", "axolotle", *ASKED, "--json").error
    assert (unknown["code"], unknown["candidates"]) == ("unknown-engine", ["axolotl"])


def test_files_are_written_into_a_folder_with_a_script(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "run"
    found = run("launch", "--engine", "deepspeed", *ASKED, "-o", str(target))
    assert (found.code, found.out) == (0, "")
    assert sorted(path.name for path in target.iterdir()) == ["ds_config.json", "recipe.json", "run.sh", "train.py"]
    assert (
        (target / "run.sh")
        .read_text()
        .endswith('set -e\ncd "$(dirname "$0")"\ndeepspeed --num_gpus 8 train.py recipe.json\n')
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_paths_are_right_from_the_folder_that_is_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "here" / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text((CONFIGS / "qwen-1.8b.json").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    asked = ("launch", "--engine", "vllm", "-m", "./model", "-d", "h100-sxm", "-t", "inference")
    assert "vllm serve ./model" in run(*asked).out.replace(" \\\n", " ")
    assert run(*asked, "-o", "../there/run").code == 2  # there is no such place
    assert run(*asked, "-o", "../run").code == 0
    assert f"vllm serve {model}" in (tmp_path / "run" / "run.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("device", ["16xh100-sxm", "rtx-4090", "8xmi300x"])
def test_a_scheduler_runs_the_same_script_on_each_machine(run: Run, tmp_path: Path, cluster: str, device: str) -> None:
    asked = ("-m", "llama-3-8b", "-d", device, "-t", "finetune")
    assert run("launch", "--engine", "torchrun-fsdp", *asked, "--on", cluster, "-o", str(tmp_path / "run")).code == 0
    script = (tmp_path / "run" / "run.sh").read_text(encoding="utf-8")
    nodes, each = (2, 8) if device.startswith("16") else (1, 8 if device.startswith("8") else 1)
    name = {"slurm": "job.sbatch", "kubernetes": "jobset.yaml", "skypilot": "sky.yaml"}[cluster]
    text = (tmp_path / "run" / name).read_text(encoding="utf-8")
    assert "run.sh" in text and "run the command on each" not in script
    if cluster == "slurm":
        assert f"--nodes={nodes}\n" in text and f"--gpus-per-node={each}\n" in text
        assert subprocess.run(["bash", "-n", tmp_path / "run" / name], check=False).returncode == 0
    elif cluster == "skypilot":
        task = yaml.safe_load(text)
        known = {"16xh100-sxm": "H100", "rtx-4090": "RTX4090", "8xmi300x": "MI300X"}[device]
        assert (task["num_nodes"], task["resources"]["accelerators"]) == (nodes, f"{known}:{each}")
        assert "ACCELERATOR" not in script
        assert "transformers" in task["setup"]
    else:
        config, jobs = yaml.safe_load_all(text)
        assert "torchrun" in config["data"]["run.sh"] and "train.py" in config["data"]
        job = jobs["spec"]["replicatedJobs"][0]["template"]["spec"]
        (container,) = job["template"]["spec"]["containers"]
        device_name = "amd.com/gpu" if "mi300" in device else "nvidia.com/gpu"
        assert job["parallelism"] == job["completions"] == nodes
        assert container["resources"]["limits"] == {device_name: each}
        assert {entry["name"] for entry in container["env"]} == {"MASTER_ADDR", "NODE_RANK"}


@pytest.mark.parametrize(
    ("engine", "device", "layout"),
    [("vllm", "16xh100-sxm", "--tp 16"), ("llama.cpp", "16xh100-sxm", "--pp 16"), ("mlx-lm", "2xm2-ultra", "--pp 2")],
)
def test_a_scheduler_starts_no_engine_whose_machines_take_different_commands(
    run: Run, engine: str, device: str, layout: str
) -> None:
    """vLLM's other machines are headless; the others are started from one machine alone."""
    asked = ("-m", "llama-3-8b", "-d", device, "-t", "inference", *layout.split())
    found = run("launch", "--engine", engine, *asked, "--on", "slurm", "--json")
    assert found.code == 2 and "the same command on each machine" in found.error["message"], found.err


def test_a_device_without_a_name_in_the_cloud_is_left_to_the_user(run: Run) -> None:
    asked = ("-m", "gpt2", "-d", "rx-7900xtx", "-t", "finetune", "--engine", "accelerate", "--on", "skypilot", "--json")
    result = json.loads(run("launch", *asked).out)["result"]
    (task,) = (yaml.safe_load(file["text"]) for file in result["files"] if file["name"] == "sky.yaml")
    assert task["resources"]["accelerators"] == "ACCELERATOR:1"
    assert "put what SkyPilot calls Radeon RX 7900 XTX in place of ACCELERATOR" in result["notes"][-1]


def test_the_schedulers_of_the_command_line_are_all_there() -> None:
    assert set(WRITTEN) == set(CLUSTERS)


def test_a_script_ends_where_a_variable_is_not_set(run: Run, tmp_path: Path) -> None:
    sixteen = ("-m", "llama-3-8b", "-d", "16xh100-sxm", "-t", "finetune")
    assert run("launch", "--engine", "torchrun-fsdp", *sixteen, "-o", str(tmp_path / "run")).code == 0
    script = tmp_path / "run" / "run.sh"
    (tmp_path / "torchrun").write_text("#!/bin/sh\necho ran in $(pwd) as $*\n", encoding="utf-8")
    (tmp_path / "torchrun").chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    refused = subprocess.run(["sh", str(script)], env=path, capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "NODE_RANK" in refused.stderr and not refused.stdout
    known = {**path, "NODE_RANK": "1", "MASTER_ADDR": "one"}
    found = subprocess.run(["sh", str(script)], env=known, capture_output=True, text=True, check=False)
    assert found.returncode == 0 and f"ran in {tmp_path / 'run'} as" in found.stdout


def test_files_are_not_overwritten_unless_forced(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "run"
    target.mkdir()
    (target / "recipe.json").write_text("mine")
    refused = run("launch", "--engine", "deepspeed", *ASKED, "-o", str(target), "--json")
    assert (refused.code, refused.error["code"]) == (2, "file-exists")
    assert [path.name for path in target.iterdir()] == ["recipe.json"]
    assert run("launch", "--engine", "deepspeed", *ASKED, "-o", str(target), "--force").code == 0
    assert json.loads((target / "recipe.json").read_text())["training"]["max_steps"] > 0
    assert not [path.name for path in target.iterdir() if path.name.startswith(".")]


def test_a_place_that_cannot_be_written_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "none" / "below"):
        found = run("launch", "--engine", "vllm", "-m", "gpt2", "-d", "rtx-4090", "-t", "inference", "-o", str(target))
        assert found.code == 2, target
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_where_one_file_cannot_be_exchanged_none_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
    rename, calls = Path.rename, []

    def failing(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 5:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(UsageError, match="No space left"):
        write_folder({"c": "new", "a": "new", "b": "new"}, str(tmp_path), force=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old", "b": "old"}


def test_nothing_is_left_where_a_new_folder_cannot_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(UsageError, match="No space left"):
        write_folder({"a": "1"}, str(tmp_path / "new"))
    assert not list(tmp_path.iterdir())


def test_help_names_the_engines(run: Run) -> None:
    help_text = run("launch", "--help").out
    for name in ("accelerate", "deepspeed", "llama.cpp", "vllm"):
        assert name in help_text


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (("-m", "llama-3.1-8b", "-d", "rtx-4090", "-t", "qlora"), "accelerate"),
        (("-m", "llama-3.1-8b", "-d", "8xh100-sxm", "-t", "inference"), "vllm"),
        (("-m", "llama-3.1-8b", "-d", "rtx-4090", "-t", "inference"), "llama.cpp"),
        (("-m", "qwen2.5-7b", "-d", "8xh100-sxm", "-t", "grpo"), "trl"),
        (("-m", "llama-3.1-8b", "-d", "m3-max-40c", "-t", "lora"), "mlx-lm"),
    ],
)
def test_who_names_no_engine_gets_the_usual_one(run: Run, asked: tuple[str, ...], taken: str) -> None:
    found = run("launch", *asked)
    assert found.code == 0
    assert f"Took --engine {taken}: nobody named one." in found.err


def test_an_error_of_the_usual_engine_is_json_alone(run: Run) -> None:
    found = run("launch", "-m", "gpt2", "-d", "tpu-v5e", "-t", "qlora", "--json")
    assert found.code == 2 and json.loads(found.err)["error"]["code"] == "engine-cannot"


def test_where_nothing_is_written_for_the_usual_engine_others_are_named(run: Run) -> None:
    error = run("launch", "-m", "qwen3-8b", "-d", "tpu-v5e", "-t", "embed", "--json").error
    assert error["code"] == "missing-option" and "nothing is written for maxtext" in error["message"]
    assert error["candidates"] == [] and error["hint"] == "No engine that llmfeas writes for can."
    error = run("launch", "-m", "whisper-large-v3", "-d", "h100-sxm", "--json").error
    assert (error["code"], error["candidates"]) == ("engine-cannot", [])
