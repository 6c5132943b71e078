"""The engines' own parsers read what is written, where they are installed: pip install 'llmfeas[launch]'.

Axolotl is no part of that, since it brings what runs on GPUs alone: pip install --no-deps axolotl pillow. Without
them test_documented.py checks the same names and types against stored tables.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from launches import contents, every_launch, words


def installed(module: str) -> Any:
    """Import an engine, or skip the test and say what is missing."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    what = "--no-deps axolotl pillow" if module.startswith("axolotl") else "'llmfeas[launch]'"
    reason = f"{module.split('.')[0]} is not installed: pip install {what}"
    pytest.importorskip(module.split(".")[0], reason=reason, exc_type=ImportError)
    return importlib.import_module(module)


def different(engine: str, name: str) -> list[tuple[str, Any]]:
    """The different contents of a file that an engine is launched with."""
    found = {}
    for asked, launch in every_launch(engine):
        if name in (read := contents(launch)):
            found[json.dumps(read[name])] = (asked, read[name])
    assert found
    return list(found.values())


@pytest.mark.parametrize("engine", ["accelerate", "trl"])
def test_accelerate_reads_its_yaml(engine: str, tmp_path: Path) -> None:
    config = installed("accelerate.commands.config.config_args").ClusterConfig
    for asked, launch in every_launch(engine):
        path = tmp_path / "accelerate.yaml"
        path.write_text(next(file.text for file in launch.files if file.name == "accelerate.yaml"))
        assert config.from_yaml_file(str(path)).num_processes >= 1, asked


def test_accelerate_reads_its_command() -> None:
    parser = installed("accelerate.commands.launch").launch_command_parser()
    for _, launch in every_launch("accelerate"):
        line = [word.replace("NODE_RANK", "0") for word in words(launch)]
        read = parser.parse_args(line[2:])
        assert (read.training_script, read.training_script_args) == ("train.py", ["recipe.json"])


@pytest.mark.parametrize("engine", ["accelerate", "deepspeed", "torchrun-fsdp"])
def test_transformers_and_peft_read_the_recipe(engine: str) -> None:
    transformers, peft = installed("transformers"), installed("peft")
    for _, recipe in different(engine, "recipe.json"):
        training = {**recipe["training"], "use_cpu": True}
        # These ask for a device, a process group or a file as they are read.
        for name in ("tf32", "deepspeed", "fsdp"):
            training.pop(name, None)
        read = transformers.TrainingArguments(**training)
        assert read.per_device_train_batch_size == training["per_device_train_batch_size"]
        if recipe["lora"]:
            assert peft.LoraConfig(**recipe["lora"]).r == recipe["lora"]["r"]
        if recipe["quantization"]:
            transformers.BitsAndBytesConfig(**recipe["quantization"])


def test_deepspeed_reads_its_json(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = installed("deepspeed.runtime.config")
    monkeypatch.setattr(runtime.dist, "get_world_size", lambda *_, **__: 8)
    monkeypatch.setattr(runtime.dist, "get_rank", lambda *_, **__: 0)
    auto = {"lr": 1e-4, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.0}
    for asked, config in different("deepspeed", "ds_config.json"):
        filled = {**config, "gradient_clipping": 1.0}
        if "optimizer" in filled:
            parameters = {name: auto[name] for name in filled["optimizer"]["params"]}
            filled["optimizer"] = {**filled["optimizer"], "params": parameters}
        read = runtime.DeepSpeedConfig(filled)
        assert read.zero_config.stage == config["zero_optimization"]["stage"], asked
        assert read.train_micro_batch_size_per_gpu == config["train_micro_batch_size_per_gpu"], asked


def test_trl_reads_its_yaml(tmp_path: Path) -> None:
    make_parser = installed("trl.scripts.sft").make_parser
    for asked, config in different("trl", "sft.yaml"):
        path = tmp_path / "sft.yaml"
        path.write_text(json.dumps({**config, "use_cpu": True, "tf32": None}))
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            read = make_parser().parse_args_and_config(["--config", str(path)], fail_with_unknown_args=True)
        assert read[1].max_length == config["max_length"], asked


def test_axolotl_reads_its_yaml() -> None:
    schema = installed("axolotl.utils.schemas.config").AxolotlInputConfig
    for asked, config in different("axolotl", "axolotl.yaml"):
        if config.get("context_parallel_size", 1) > 1:
            continue  # the schema wants ring-flash-attn, which needs a GPU to be installed
        assert schema(**config).sequence_len == config["sequence_len"], asked


def test_mlx_lm_knows_the_keys_of_its_yaml() -> None:
    lora = installed("mlx_lm.lora")
    actions = {action.dest: action for action in lora.build_parser()._actions}
    for asked, config in different("mlx-lm", "lora.yaml"):
        assert config.keys() <= lora.CONFIG_DEFAULTS.keys(), asked
        for name, value in config.items():
            choices = actions[name].choices if name in actions else None
            assert choices is None or value in choices, (asked, name)


def test_torchrun_reads_its_command() -> None:
    parser = installed("torch.distributed.run").get_args_parser()
    for _, launch in every_launch("torchrun-fsdp"):
        line = [word.replace("NODE_RANK", "0") for word in words(launch)[1:]]
        read = parser.parse_args(line)
        assert (read.training_script, read.training_script_args) == ("train.py", ["recipe.json"])


TOKENIZER = {"<unk>": 0, "<eos>": 1, **{letter: index for index, letter in enumerate("abcdefgh", start=2)}}


@pytest.mark.slow
@pytest.mark.parametrize("task", ["pretrain", "finetune", "lora"])
def test_the_program_trains_a_tiny_model(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers, tokenizers = installed("transformers"), installed("tokenizers")
    installed("datasets")
    installed("peft")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(TOKENIZER, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    folder = tmp_path / "model"
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>").save_pretrained(folder)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.LlamaConfig(vocab_size=16, max_position_embeddings=64, **sizes)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    (tmp_path / "data").mkdir()
    text = json.dumps({"text": "a b c d e f g h " * 8})
    (tmp_path / "data" / "train.jsonl").write_text(f"{text}\n" * 16)
    from launches import launched

    request = {"model": str(folder), "device": "ryzen-9-7950x", "task": task, "precision": "fp32", "dropout": 0.05}
    sizes = {"tokens": 256, "seq_len": 32, "micro_batch": 2, "global_batch": 4, "checkpointing": "full"}
    for file in launched("torchrun-fsdp", **request, **sizes).files:
        (tmp_path / file.name).write_text(file.text.replace('"DATASET"', json.dumps(str(tmp_path / "data"))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    spec = importlib.util.spec_from_file_location("train", tmp_path / "train.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.main("recipe.json")
    state = json.loads((tmp_path / "output" / "checkpoint-2" / "trainer_state.json").read_text())
    assert state["global_step"] == 2
    saved = "adapter_model.safetensors" if task == "lora" else "model.safetensors"
    assert (tmp_path / "output" / saved).is_file()
