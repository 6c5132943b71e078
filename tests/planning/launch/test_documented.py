"""Whatever is written, the engines know its names, and values have the documented types.

The tables in data/launch name their sources; test_parsers.py asks the engines themselves where they are installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from launches import contents, documented, every_launch, is_of, options, words

from llmfeas.planning.launch import LAUNCHERS, Launch
from llmfeas.planning.launch.parsers import commands
from llmfeas.planning.launch.sglang import SERVER


def unknown(content: Mapping[str, Any], table: Mapping[str, str]) -> list[str]:
    """Name the entries that a table does not have, or whose value has another type."""
    return [f"{name}: {value!r}" for name, value in content.items() if not is_of(value, table.get(name, "-"))]


def unknown_options(found: Iterator[tuple[str, list[str]]], table: Mapping[str, Any]) -> list[str]:
    """Name the options that a table does not have, with a value they do not take, or without one they need."""
    wrong = []
    for name, behind in found:
        kind = table.get(name)
        if (
            kind is None
            or (kind == "switch" and behind)
            or (kind in ("int", "str", "float") and not behind)
            or (kind == "int" and not (behind[0].isdigit() or behind[0].isupper()))
            or (isinstance(kind, list) and behind[0] not in kind)
        ):
            wrong.append(f"{name} {behind}: {kind}")
    return wrong


def recipe_errors(launch: Launch) -> list[str]:
    table, recipe = documented("transformers"), contents(launch)["recipe.json"]
    training = recipe["training"]
    wrong = unknown(training, table["training"])
    wrong += unknown(recipe["lora"] or {}, table["lora"])
    wrong += unknown(recipe["quantization"] or {}, table["quantization"])
    wrong += unknown(training.get("fsdp_config") or {}, table["fsdp"])
    return wrong + [training["optim"]] * (training["optim"] not in table["optimizers"])


def accelerate_errors(launch: Launch) -> list[str]:
    table, config = documented("accelerate"), contents(launch)["accelerate.yaml"]
    fsdp = config.get("fsdp_config", {})
    return unknown(config, table["config"]) + [name for name in fsdp if name not in table["fsdp"]]


def of_accelerate(launch: Launch) -> list[str]:
    found = options(words(launch)[:-2])
    return recipe_errors(launch) + accelerate_errors(launch) + unknown_options(found, documented("accelerate")["flags"])


def of_deepspeed(launch: Launch) -> list[str]:
    table, config = documented("deepspeed"), contents(launch)["ds_config.json"]
    wrong = unknown(config, table["config"]) + recipe_errors(launch)
    for section in ("bf16", "fp16", "tensor_parallel"):
        wrong += unknown(config.get(section, {}), table[section])
    zero = config["zero_optimization"]
    for section in ("offload_optimizer", "offload_param"):
        wrong += [f"{name} in {section}" for name in zero.get(section, {}) if name not in table[section]]
    wrong += [name for name in zero if name not in table["zero"]]
    wrong += (
        [config["optimizer"]["type"]]
        if config.get("optimizer", {}).get("type", "AdamW") not in table["optimizers"]
        else []
    )
    return wrong + unknown_options(options(words(launch)[:-2]), table["flags"])


def of_torchrun(launch: Launch) -> list[str]:
    return recipe_errors(launch) + unknown_options(options(words(launch)[:-2]), documented("torchrun")["flags"])


TRAINERS = ("sft", "dpo", "kto", "grpo", "rloo", "reward", "distillation")


def of_trl(launch: Launch) -> list[str]:
    found, table = contents(launch), documented("trl")
    trainer = next(name for name in TRAINERS if f"{name}.yaml" in found)
    wrong = unknown(found[f"{trainer}.yaml"], table["config" if trainer == "sft" else trainer])
    wrong += accelerate_errors(launch)
    flags = {**documented("accelerate")["flags"], "--config": "str", "--accelerate_config": "str"}
    return wrong + unknown_options(options(words(launch)), flags)


def of_axolotl(launch: Launch) -> list[str]:
    table, config = documented("axolotl"), contents(launch)["axolotl.yaml"]
    line = words(launch)
    behind = line[line.index("--") + 1 :] if "--" in line else []
    wrong = unknown(config, table["config"]) + unknown(config.get("fsdp_config", {}), table["fsdp"])
    return wrong + unknown_options(options(behind), documented("torchrun")["flags"])


def of_megatron(launch: Launch) -> list[str]:
    line = words(launch)
    program = line.index("pretrain_gpt.py")
    wrong = unknown_options(options(line[:program]), documented("torchrun")["flags"])
    return wrong + unknown_options(options(line[program:]), documented("megatron")["flags"])


def of_maxtext(launch: Launch) -> list[str]:
    table, config = documented("maxtext"), dict(contents(launch)["maxtext.yml"])
    assert config.pop("base_config") in ("base.yml", "post_train/sft.yml")
    wrong = unknown(config, table["config"]) + unknown(config.get("lora", {}), table["lora"])
    return wrong + [config["remat_policy"]] * (config["remat_policy"] not in table["remat_policies"])


def of_mlx(launch: Launch) -> list[str]:
    table, line = documented("mlx-lm"), words(launch)
    wrong: list[str] = []
    for program in launch.command.replace("\\\n", " ").splitlines():
        name = next(part for part in program.split() if part.startswith("mlx_lm."))
        kinds = {**table[name.removeprefix("mlx_lm.")], **(table["launch"] if program.startswith("mlx.launch") else {})}
        wrong += unknown_options(options(program.split()), kinds)
    if "lora.yaml" in contents(launch):
        config = contents(launch)["lora.yaml"]
        wrong += unknown(config, table["config"]) + unknown(config.get("lora_parameters", {}), table["lora_parameters"])
        wrong += [config["optimizer"]] * (config["optimizer"] not in table["optimizers"])
    return wrong + ([] if line else ["no command"])


def of_llama_cpp(launch: Launch) -> list[str]:
    table = documented("llama.cpp")
    wrong = unknown_options(options(words(launch)), table["flags"])
    for name, behind in options(words(launch)):
        allowed = {"--cache-type-k": "cache_types", "--cache-type-v": "cache_types", "--split-mode": "split_modes"}
        if name in allowed and behind[0] not in table[allowed[name]]:
            wrong.append(f"{name} {behind[0]}")
    return wrong


def of_server(name: str, launch: Launch) -> list[str]:
    table, program = documented(name), {"vllm": ("vllm", "serve"), "sglang": SERVER}[name]
    found = [option for line in commands(launch, *program) for option in options(line)]
    wrong = unknown_options(iter(found), table["flags"]) if found else ["no command"]
    for name, behind in found:
        allowed = {"--kv-cache-dtype": "kv_cache_dtype", "--quantization": "quantization", "--dtype": "dtype"}
        if name in allowed and behind[0] not in table[allowed[name]]:
            wrong.append(f"{name} {behind[0]}")
    return wrong


def of_llama_factory(launch: Launch) -> list[str]:
    table, config = documented("llama-factory"), contents(launch)["llama_factory.yaml"]
    trainer = documented("transformers")["training"]
    wrong = unknown(config, {**table["config"], **{name: trainer[name] for name in table["trainer"]}})
    wrong += [
        word for name, word in (("stages", "stage"), ("attention", "flash_attn")) if config[word] not in table[name]
    ]
    variables = [word.partition("=")[0] for word in words(launch) if "=" in word]
    return wrong + [name for name in variables if name not in table["environment"]]


def of_unsloth(launch: Launch) -> list[str]:
    table, config = documented("unsloth"), contents(launch)["unsloth.yaml"]
    wrong = unknown(config, table["config"])
    for section in ("data", "training", "lora"):
        wrong += unknown(config.get(section, {}), table[section])
    said = {**config["data"], **config["training"]}
    return wrong + [said[name] for name, allowed in table["words"].items() if said[name] not in allowed]


def of_ollama(launch: Launch) -> list[str]:
    table, lines = documented("ollama"), contents(launch)["Modelfile"].splitlines()
    parameters = [line.split() for line in lines if line.startswith("PARAMETER")]
    wrong = [name for _, name, value in parameters if name not in table["parameters"] or not value.isdigit()]
    wrong += [line for line in lines if line.split()[0] not in ("#", "FROM", "PARAMETER")]
    variables = dict(word.split("=") for word in launch.command.splitlines()[0].split() if "=" in word)
    wrong += [name for name in variables if name not in table["environment"]]
    cache = variables["OLLAMA_KV_CACHE_TYPE"]
    return wrong + ([] if cache in table["cache_types"] else [cache])


def of_tensorrt_llm(launch: Launch) -> list[str]:
    table, config = documented("tensorrt-llm"), contents(launch)["tensorrt_llm.yaml"]
    wrong = unknown(config, table["config"]) + unknown(config["kv_cache_config"], table["kv_cache_config"])
    drafts = config.get("speculative_config", {"decoding_type": "MTP"})
    wrong += unknown(drafts, table["speculative_config"])
    wrong += [drafts["decoding_type"]] * (drafts["decoding_type"] not in table["decoding_types"])
    return wrong + unknown_options(options(words(launch)), table["flags"])


def of_litgpt(launch: Launch) -> list[str]:
    return unknown_options(options(words(launch)), documented("litgpt")["flags"])


def of_torchtune(launch: Launch) -> list[str]:
    table, line = documented("torchtune"), words(launch)
    recipe, (_, configuration) = line[line.index("--config") - 1], line[line.index("--config") :][:2]
    keys = [word.partition("=")[0] for word in line if "=" in word]
    wrong = [name for name in (recipe,) if name not in table["recipes"]]
    wrong += [name for name in (configuration,) if name not in table["configurations"]]
    return wrong + [name for name in keys if name not in (*table["keys"], *table["adapter_keys"])]


def of_ktransformers(launch: Launch) -> list[str]:
    flags = {**documented("sglang")["flags"], **documented("ktransformers")["flags"]}
    return unknown_options(options(words(launch)), flags)


def of_sentence_transformers(launch: Launch) -> list[str]:
    table, recipe, trainer = (
        documented("sentence-transformers"),
        contents(launch)["recipe.json"],
        documented("transformers"),
    )
    wrong = unknown(recipe["quantization"] or {}, trainer["quantization"])
    if "training" not in recipe:
        return wrong
    loss = dict(recipe["loss"])
    wrong += [loss["class"]] * (loss.pop("class") not in table["losses"]) + unknown(loss, table["loss"])
    wrong += unknown(recipe["training"], {**trainer["training"], **table["training"]})
    wrong += unknown(recipe["lora"] or {}, trainer["lora"])
    return wrong + unknown_options(options(words(launch)[:-2]), documented("torchrun")["flags"])


def of_flags(name: str, launch: Launch) -> list[str]:
    return unknown_options(options(words(launch)), documented(name)["flags"])


CHECKS = {
    "sentence-transformers": of_sentence_transformers,
    "text-embeddings-inference": partial(of_flags, "text-embeddings-inference"),
    "infinity": partial(of_flags, "infinity"),
    "accelerate": of_accelerate,
    "deepspeed": of_deepspeed,
    "torchrun-fsdp": of_torchrun,
    "trl": of_trl,
    "axolotl": of_axolotl,
    "megatron": of_megatron,
    "maxtext": of_maxtext,
    "mlx-lm": of_mlx,
    "llama.cpp": of_llama_cpp,
    "vllm": partial(of_server, "vllm"),
    "sglang": partial(of_server, "sglang"),
    "llama-factory": of_llama_factory,
    "unsloth": of_unsloth,
    "ollama": of_ollama,
    "tensorrt-llm": of_tensorrt_llm,
    "litgpt": of_litgpt,
    "ktransformers": of_ktransformers,
    "torchtune": of_torchtune,
}


def test_every_engine_is_checked() -> None:
    assert CHECKS.keys() == LAUNCHERS.keys()


@pytest.mark.parametrize("engine", LAUNCHERS)
def test_names_and_types_are_documented(engine: str) -> None:
    launches = every_launch(engine)
    assert len(launches) >= 20
    for asked, launch in launches:
        assert CHECKS[engine](launch) == [], asked


def test_the_check_can_fail() -> None:
    table = {"steps": "int", "name": "str|null"}
    assert unknown({"steps": 3, "name": None}, table) == []
    assert unknown({"steps": "3"}, table) == ["steps: '3'"]
    assert unknown({"step": 3}, table) == ["step: 3"]
    assert unknown_options(options(["--n", "3", "--on"]), {"--n": "int", "--on": "switch"}) == []
    assert unknown_options(options(["--n", "x"]), {"--n": "int"})
    assert unknown_options(options(["--m", "3"]), {"--n": "int"})
