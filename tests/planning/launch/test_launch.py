"""What holds for every engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches import contents, documented, every_launch, launched, ready, words

from llmfeas.catalog.store import built_in
from llmfeas.errors import UsageError
from llmfeas.options import BY_NAME
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.expressed.expressible import SPLITS
from llmfeas.planning.launch import LAUNCHERS, launcher, prepared
from llmfeas.planning.launch.serving import longest_served

CATALOG = built_in()
ASKED = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "finetune"}


def refused(engine: str, /, **request: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        prepared(request, LAUNCHERS[engine], CATALOG)
    return caught.value


def test_the_engines_of_the_command_line_are_all_there() -> None:
    names = """accelerate axolotl deepspeed infinity ktransformers litgpt llama-factory llama.cpp maxtext megatron
        mlx-lm ollama sentence-transformers sglang tensorrt-llm text-embeddings-inference torchrun-fsdp torchtune trl
        unsloth vllm"""
    assert list(LAUNCHERS) == names.split()


def test_an_unknown_engine_names_near_ones() -> None:
    with pytest.raises(UsageError, match="cannot launch 'megatron-lm'") as caught:
        launcher("megatron-lm")
    assert "megatron" in caught.value.candidates
    with pytest.raises(UsageError, match="cannot launch"):
        launcher("\x1b[31m")


@pytest.mark.parametrize("engine", LAUNCHERS)
def test_a_launcher_speaks_of_settings_that_exist(engine: str) -> None:
    found = LAUNCHERS[engine].expressed
    assert found.choices.keys() <= BY_NAME.keys()
    assert found.splits <= set(SPLITS)
    for name, values in found.choices.items():
        known = BY_NAME[name].choices
        assert not known or set(values) <= set(known), name
    assert documented({"torchrun-fsdp": "torchrun"}.get(engine, engine))["source"]


@pytest.mark.parametrize("engine", LAUNCHERS)
def test_a_launch_has_a_command_and_files_whose_names_it_uses(engine: str) -> None:
    for asked, launch in every_launch(engine):
        assert launch.command, asked
        contents(launch)
        assert words(launch)
        assert len({file.name for file in launch.files}) == len(launch.files)
        assert all("/" not in file.name and file.text.endswith("\n") for file in launch.files)
        assert all(note == note.strip() and not note.endswith(".") for note in launch.notes)


def test_what_an_engine_cannot_express_is_named_with_those_that_can() -> None:
    error = refused("trl", **ASKED, optimizer="muon")
    assert error.code == "engine-cannot"
    assert error.message == "--optimizer muon is not something TRL can express."
    assert set(error.candidates) == {"axolotl", "megatron", "maxtext", "mlx-lm"}
    assert error.hint == f"Engines that can: {', '.join(error.candidates)}."


@pytest.mark.parametrize(
    ("engine", "changes", "setting"),
    [
        ("vllm", {}, "--task finetune"),
        ("megatron", {"task": "lora"}, "--task lora"),
        ("mlx-lm", {"device": "rx-7900xtx"}, "a device of rocm"),
        ("accelerate", {"pp": 2}, "--pp 2"),
        ("accelerate", {"zero": 1}, "--zero 1"),
        ("torchrun-fsdp", {"offload": "optimizer"}, "--offload optimizer"),
        ("deepspeed", {"offload": "activations"}, "--offload activations"),
        ("deepspeed", {"checkpointing": "selective"}, "--checkpointing selective"),
        ("deepspeed", {"tp": 2, "zero": 3}, "--tp 2"),
        ("deepspeed", {"optimizer": "adafactor", "offload": "all"}, "--optimizer adafactor"),
        ("trl", {"dropout": 0.1}, "--dropout 0.1"),
        ("axolotl", {"device": "rtx-4090", "precision": "bf16-mixed"}, "--precision bf16-mixed"),
        ("maxtext", {"model": "gpt2", "device": "tpu-v5e"}, "the model GPT-2 small"),
        ("megatron", {"model": "gemma-2-2b"}, "the model Gemma 2 2B"),
        ("vllm", {"task": "inference", "quant": "q4_k_m"}, "--quant q4_k_m"),
        ("vllm", {"task": "inference", "attention": "eager"}, "--attention eager"),
    ],
)
def test_refusals(engine: str, changes: dict[str, object], setting: str) -> None:
    error = refused(engine, **{**ASKED, **changes})
    assert (error.code, setting in error.message) == ("engine-cannot", True), error.message


def test_engines_that_can_do_take_it() -> None:
    """The engines that an error names accept the setting: none of them refuses the same one."""
    for extra in ({"optimizer": "muon"}, {"zero": 2}, {"tp": 2}, {"offload": "optimizer"}, {"precision": "fp8-mixed"}):
        error = refused("trl" if "zero" not in extra else "maxtext", **{**ASKED, **extra})
        assert error.candidates
        for name in error.candidates:
            try:
                prepared({**ASKED, **extra}, LAUNCHERS[name], CATALOG)
            except UsageError as other:
                flag = f"--{next(iter(extra))} "
                assert flag not in other.message, (name, other.message)


def test_what_was_left_open_is_settled_so_that_the_engine_can_express_it() -> None:
    """Experts are spread over devices in pre-training; accelerate cannot, so they are not, and that is said."""
    found = ready("accelerate", model="mixtral-8x7b", device="8xh100-sxm", task="pretrain")
    scenario = found.estimate.scenario
    assert (scenario.ep, scenario.tp, scenario.pp) == (1, 1, 1)
    expected = "--ep 8 is not something Hugging Face accelerate can express; --ep 1 was taken"
    assert expected in [warning.message for warning in found.warnings if warning.code == "launch-changed"]


@pytest.mark.parametrize("name", ["accelerate", "torchrun-fsdp"])
@pytest.mark.parametrize(("engine", "compiles"), [("pytorch", False), ("pytorch-compile", True)])
def test_a_compiled_recipe_compiles(name: str, engine: str, compiles: bool) -> None:
    found = launched(name, model="gpt2", device="rtx-4090", task="pretrain", engine=engine)
    assert contents(found)["recipe.json"]["training"].get("torch_compile", False) == compiles


@pytest.mark.parametrize(
    ("name", "file", "place", "key"),
    [
        ("accelerate", "recipe.json", "training", "use_liger_kernel"),
        ("torchrun-fsdp", "recipe.json", "training", "use_liger_kernel"),
        ("trl", "sft.yaml", "", "use_liger_kernel"),
        ("axolotl", "axolotl.yaml", "", "liger_fused_linear_cross_entropy"),
    ],
)
@pytest.mark.parametrize(("engine", "patched"), [("pytorch", False), ("pytorch-liger", True)])
def test_a_recipe_with_ligers_kernels_turns_them_on(
    name: str, file: str, place: str, key: str, engine: str, patched: bool
) -> None:
    found = launched(name, model="qwen2.5-0.5b", device="rtx-4090", task="finetune", precision="bf16", engine=engine)
    settings = contents(found)[file]
    assert (settings[place] if place else settings).get(key, False) == patched


@pytest.mark.parametrize(
    ("name", "file"), [("accelerate", "recipe.json"), ("trl", "sft.yaml"), ("axolotl", "axolotl.yaml")]
)
def test_fused_attention_with_sinks_names_a_kernel_that_has_them(name: str, file: str) -> None:
    """PyTorch's own has none, and transformers refuses it for such a model."""
    found = launched(name, model="gpt-oss-20b", device="h100-sxm", task="lora", attention="flash")
    settings = contents(found)[file]
    settings = settings["model"]["options"] if name == "accelerate" else settings
    assert settings["attn_implementation"] == "kernels-community/vllm-flash-attn3"


def test_a_program_without_a_word_for_that_kernel_refuses_it() -> None:
    asked = {"model": "gpt-oss-20b", "device": "h100-sxm", "task": "lora", "attention": "flash"}
    assert refused("llama-factory", **asked).code == "engine-cannot"


def test_what_was_said_is_never_changed() -> None:
    assert refused("accelerate", model="mixtral-8x7b", device="8xh100-sxm", task="lora", ep=8).code == "engine-cannot"


def test_the_engine_of_the_time_model_follows_the_launcher() -> None:
    engines = {
        name: next(engine.id for engine in CATALOG.engines.values() if name in engine.launchers) for name in LAUNCHERS
    }
    assert engines["deepspeed"] == "deepspeed"
    assert {engines[name] for name in ("accelerate", "torchrun-fsdp", "trl", "axolotl")} == {"pytorch"}
    assert ready("deepspeed", **ASKED).estimate.scenario.engine == "deepspeed"
    kept = ready("llama.cpp", model="gpt2", device="arc-a770", task="inference", engine="llama.cpp-sycl")
    assert kept.estimate.scenario.engine == "llama.cpp-sycl"


def test_a_recipe_of_another_engine_is_estimated_again_and_that_is_said() -> None:
    inputs = bare_answer({**ASKED, "engine": "pytorch"}).to_dict()["inputs"]
    found = prepared(inputs, LAUNCHERS["deepspeed"], CATALOG)  # type: ignore[arg-type]
    assert found.warnings[0].message == "the recipe was made for pytorch: it was estimated again for deepspeed"


def test_a_batch_that_followed_from_the_layout_follows_the_new_one() -> None:
    inputs = bare_answer({**ASKED, "device": "8xrtx-4090", "task": "pretrain", "model": "llama-3-8b"}).to_dict()[
        "inputs"
    ]
    assert inputs["tp"]["value"] * inputs["pp"]["value"] > 1  # type: ignore[index]
    scenario = prepared(inputs, LAUNCHERS["deepspeed"], CATALOG).estimate.scenario  # type: ignore[arg-type]
    assert scenario.dp * scenario.tp == 8
    kept = {**inputs, "global_batch": {"value": 64, "origin": "given"}}  # type: ignore[dict-item]
    assert prepared(kept, LAUNCHERS["deepspeed"], CATALOG).estimate.scenario.global_batch == 64


def test_what_does_not_work_is_launched_with_a_warning() -> None:
    found = ready("accelerate", model="llama-3-70b", device="rtx-4090", task="finetune")
    assert any(warning.code == "not-feasible" and "llmfeas plan" in warning.message for warning in found.warnings)
    found = ready("accelerate", model="llama-3.1-8b", device="rtx-4070ti", task="qlora")
    assert any(warning.code == "tight" and "it may run out" in warning.message for warning in found.warnings)


def test_devices_without_work_are_refused() -> None:
    error = refused("accelerate", **ASKED, global_batch=2, micro_batch=1)
    assert (error.code, error.hint) == ("engine-cannot", "Give --global-batch 8 or more, or fewer devices.")


def test_a_model_without_a_repository_keeps_its_id_and_a_note() -> None:
    launch = launched("megatron", model="megatron-gpt-1.7b", device="8xh100-sxm")
    assert any("no repository of" in note for note in launch.notes)
    recipe = contents(launched("accelerate", model="gpt3-125m", device="rtx-4090"))["recipe.json"]
    assert recipe["model"]["name"] == "gpt3-125m"


CONFIG = """{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
"num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 256, "max_position_embeddings": 128,
"architectures": ["LlamaForCausalLM"]}"""


def test_a_local_model_keeps_its_path_whatever_it_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "my $(model); `x`"
    folder.mkdir()
    (folder / "config.json").write_text(CONFIG)
    for path in (folder, folder / "config.json"):
        asked = {"model": str(path), "device": "rtx-4090"}
        assert contents(launched("trl", **asked, task="finetune"))["sft.yaml"]["model_name_or_path"] == str(folder)
        served = launched("vllm", **asked, task="inference")
        assert words(served)[2] == str(folder).replace("$", "")
        assert f"'{folder}'" in served.command


def test_a_path_that_does_not_show_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[31mb"
    folder.mkdir()
    (folder / "config.json").write_text(CONFIG)
    assert refused("vllm", model=str(folder), device="rtx-4090", task="inference").code == "bad-value"


def test_mlx_converts_into_its_modes_of_blocks() -> None:
    found = launched("mlx-lm", model="llama-3-8b", device="m4-max", task="inference", quant="mlx-nvfp4")
    assert "--q-mode nvfp4" in found.script().text


def test_torchtune_takes_the_configuration_of_the_devices() -> None:
    one = words(launched("torchtune", model="llama-3.1-8b", device="rtx-4090", task="qlora"))
    assert one[:5] == ["tune", "run", "lora_finetune_single_device", "--config", "llama3_1/8B_qlora_single_device"]
    several = words(launched("torchtune", model="llama-3.1-8b", device="8xh100-sxm", task="finetune"))
    assert several[2:7] == ["--nproc_per_node", "8", "full_finetune_distributed", "--config", "llama3_1/8B_full"]
    assert "dtype=bf16" in several and "enable_activation_checkpointing=True" in several
    assert "it ships no configuration" in refused("torchtune", model="gpt2", device="rtx-4090", task="lora").message


def test_who_judges_answers_stands_in_the_recipe() -> None:
    asked = {"model": "qwen2.5-0.5b", "device": "h100-sxm", "seq_len": 512}
    judged = contents(launched("trl", **asked, task="grpo", reward_model="qwen2.5-1.5b"))["grpo.yaml"]
    assert judged["reward_model_name_or_path"] == "Qwen/Qwen2.5-1.5B" and "reward_funcs" not in judged
    ruled = launched("trl", **asked, task="grpo", colocate="false")
    assert contents(ruled)["grpo.yaml"]["reward_funcs"] == ["REWARD"] and "vllm" in ruled.notes[0]
    assert any("in place of REWARD" in note for note in ruled.notes)
    assert any("trl vllm-serve --model Qwen/Qwen2.5-0.5B" in note for note in ruled.notes)
    own = launched("trl", **asked, task="grpo", rollout_engine="transformers")
    assert "vllm" not in own.command + "".join(own.notes) + str(contents(own))
    taught = contents(launched("trl", **asked, task="distill", teacher="qwen2.5-3b"))["distillation.yaml"]
    assert (taught["teacher_model_name_or_path"], taught["max_completion_length"]) == ("Qwen/Qwen2.5-3B", 256)
    assert "num_generations" not in taught


def test_megatron_keeps_moments_in_16_bits_where_it_is_asked_to() -> None:
    found = launched("megatron", model="gpt2", device="8xh100-sxm", task="pretrain", optimizer="adamw-bf16").command
    for option in ("--use-precision-aware-optimizer", "--exp-avg-dtype bf16", "--exp-avg-sq-dtype bf16"):
        assert option in found


@pytest.mark.parametrize(
    ("engine", "device", "task", "said"),
    [
        ("accelerate", "rx-7900xtx", "qlora", "the one for ROCm"),
        ("vllm", "mi300x", "inference", "its wheels for ROCm"),
        ("accelerate", "arc-b580", "finetune", "the one for XPU"),
        ("vllm", "gaudi3", "inference", "vllm-gaudi"),
        ("accelerate", "rtx-4090", "qlora", ""),
        ("llama.cpp", "rx-7900xtx", "inference", ""),
    ],
)
def test_builds_that_pip_does_not_find_are_named(engine: str, device: str, task: str, said: str) -> None:
    found = prepared({"model": "gpt2", "device": device, "task": task}, launcher(engine), built_in()).launch
    others = [note for note in found.notes if "built for CUDA" in note or "container" in note]
    assert [said in note for note in others] == ([True] if said else [])


def test_the_encoder_of_images_is_a_file_of_its_own_for_llama_cpp() -> None:
    asked = {"model": "qwen2.5-vl-7b", "device": "rtx-4090", "task": "inference"}
    assert "--mmproj qwen2.5-vl-7b-mmproj-F16.gguf" in launched("llama.cpp", **asked, images=2).command
    assert "--mmproj" not in launched("llama.cpp", **asked).command


def test_several_processors_share_the_work_of_llama_cpp() -> None:
    command = launched("llama.cpp", model="llama-3-8b", device="dual epyc 9654", task="inference").command
    assert "--numa distribute" in command and "--split-mode" not in command


def test_an_engine_is_launched_by_the_names_that_it_goes_by() -> None:
    assert launcher("tei", built_in()).id == "text-embeddings-inference"
    assert launcher("LLaMA Factory", built_in()).id == "llama-factory"


@pytest.mark.parametrize(("share", "longest"), [(0.9, 4096), (0.72, 1300)])
def test_a_server_is_told_no_longer_request_than_it_starts_with(share: float, longest: int) -> None:
    """Lengths on average are no limit, but a cache without room for one request of the usual length is."""
    asked = {"model": "llama-3.1-8b", "device": "rtx-4090", "task": "inference", "engine": "vllm", "quant": "none"}
    request = {**asked, "prompt": 1000, "output": 300, "concurrency": 1, "gpu_memory_utilization": share}
    resolved = prepared(request, LAUNCHERS["vllm"], CATALOG)
    assert longest_served(resolved.estimate.scenario) == longest
