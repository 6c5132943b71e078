"""Every setting of a recipe arrives where its engine looks for it."""

from __future__ import annotations

import json
import re

import pytest
from launches import contents, launched, ready, value, words

from llmfeas.errors import UsageError
from llmfeas.workload.stages import stages

SHARED = {
    "model": "llama-3-8b",
    "tokens": "10M",
    "seq_len": 1024,
    "micro_batch": 2,
    "global_batch": 64,
    "optimizer": "adamw",
    "checkpointing": "full",
}
STEPS = 153  # 10e6 / (64 x 1024), rounded up
SERVED = {"model": "llama-3-8b", "task": "inference"}


def test_trainer_gets_batch_length_steps_and_recomputation() -> None:
    launch = launched("accelerate", **SHARED, device="8xh100-sxm", task="finetune", zero=0)
    recipe = contents(launch)["recipe.json"]
    training = recipe["training"]
    assert (training["per_device_train_batch_size"], training["gradient_accumulation_steps"]) == (2, 4)
    assert (training["max_steps"], recipe["data"]["seq_len"]) == (STEPS, 1024)
    assert (training["bf16"], training["fp16"], training["activation_checkpointing"]) == (True, False, True)
    assert recipe["model"]["options"] == {"dtype": "float32", "attn_implementation": "sdpa"}
    assert (training["optim"], recipe["lora"], recipe["quantization"]) == ("adamw_torch_fused", None, None)
    assert words(launch) == ["accelerate", "launch", "--config_file", "accelerate.yaml", "train.py", "recipe.json"]


def test_accelerate_divides_with_fsdp_and_copies_without() -> None:
    asked = {**SHARED, "device": "8xh100-sxm", "task": "finetune"}
    config = contents(launched("accelerate", **asked))["accelerate.yaml"]
    assert (config["distributed_type"], config["num_processes"], config["mixed_precision"]) == ("FSDP", 8, "bf16")
    assert config["fsdp_config"]["fsdp_reshard_after_forward"] is True
    assert config["fsdp_config"]["fsdp_activation_checkpointing"] is True
    config = contents(launched("accelerate", **asked, zero=2))["accelerate.yaml"]
    assert config["fsdp_config"]["fsdp_reshard_after_forward"] is False
    config = contents(launched("accelerate", **asked, zero=0))["accelerate.yaml"]
    assert (config["distributed_type"], "fsdp_config" in config) == ("MULTI_GPU", False)
    config = contents(launched("accelerate", **{**asked, "device": "rtx-4090"}))["accelerate.yaml"]
    assert (config["distributed_type"], config["num_processes"], config["num_machines"]) == ("NO", 1, 1)


@pytest.mark.parametrize(
    ("precision", "dtype", "bf16", "fp16"),
    [
        ("fp32", "float32", False, False),
        ("tf32", "float32", False, False),
        ("bf16-mixed", "float32", True, False),
        ("fp16-mixed", "float32", False, True),
        ("bf16", "bfloat16", False, False),
        ("fp16", "float16", False, False),
    ],
)
def test_formats_of_trainer(precision: str, dtype: str, bf16: bool, fp16: bool) -> None:
    recipe = contents(launched("torchrun-fsdp", model="gpt2", device="rtx-4090", precision=precision))["recipe.json"]
    training = recipe["training"]
    assert (recipe["model"]["options"]["dtype"], training["bf16"], training["fp16"]) == (dtype, bf16, fp16)
    assert training.get("tf32", False) is (precision == "tf32")


def test_qlora_is_nf4_with_double_quantization_and_adapters_of_the_rank() -> None:
    asked = {"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora", "lora_rank": 64, "lora_targets": "attention"}
    recipe = contents(launched("accelerate", **asked))["recipe.json"]
    assert recipe["quantization"]["bnb_4bit_quant_type"] == "nf4"
    assert recipe["quantization"]["bnb_4bit_use_double_quant"] is True
    assert (recipe["lora"]["r"], "q_proj" in recipe["lora"]["target_modules"]) == (64, True)
    assert recipe["model"]["options"]["dtype"] == "bfloat16"
    sft = contents(launched("trl", **asked))["sft.yaml"]
    assert (sft["load_in_4bit"], sft["lora_r"], sft["use_peft"]) == (True, 64, True)
    axolotl = contents(launched("axolotl", **asked))["axolotl.yaml"]
    assert (axolotl["adapter"], axolotl["load_in_4bit"], axolotl["lora_r"]) == ("qlora", True, 64)
    single = {"device": "rtx-4090", "task": "qlora", "quant": "nf4-single"}
    assert contents(launched("trl", model="llama-3-8b", **single))["sft.yaml"]["use_bnb_nested_quant"] is False


def test_pretraining_starts_from_fresh_weights_and_dropout_is_replaced() -> None:
    recipe = contents(launched("torchrun-fsdp", model="gpt2", device="rtx-4090", dropout=0.2))["recipe.json"]
    assert (recipe["model"]["from_scratch"], recipe["model"]["dropout"]) == (True, 0.2)
    assert recipe["data"]["streaming"] is True


def test_fsdp_takes_states_of_8_bits_that_can_be_divided() -> None:
    asked = {"model": "llama-3-8b", "task": "finetune", "optimizer": "adamw-8bit"}
    one = contents(launched("torchrun-fsdp", **asked, device="h100-sxm"))["recipe.json"]["training"]
    many = contents(launched("torchrun-fsdp", **asked, device="8xh100-sxm"))["recipe.json"]["training"]
    assert (one["optim"], many["optim"]) == ("adamw_bnb_8bit", "adamw_torch_8bit")
    assert many["fsdp_config"]["reshard_after_forward"] is True


def test_quantized_weights_are_not_divided_by_fsdp() -> None:
    ask = {"model": "llama-3-70b", "device": "8xh100-sxm", "task": "qlora"}
    found = ready("accelerate", **ask)
    assert found.estimate.scenario.zero == 0
    assert not any("--zero" in warning.message for warning in found.warnings)
    with pytest.raises(UsageError, match="FSDP does not divide quantized weights"):
        ready("accelerate", **ask, zero=3)
    assert ready("deepspeed", **ask, zero=3).estimate.scenario.zero == 3


def test_accelerate_starts_several_cpus_with_fsdp_only() -> None:
    asked = {"model": "gpt2", "device": "2xryzen-9-7950x", "task": "finetune", "devices_per_node": 2}
    assert contents(launched("accelerate", **asked, zero=3))["accelerate.yaml"]["distributed_type"] == "FSDP"
    with pytest.raises(UsageError, match=r"--zero 0 is not something .* under MPI only"):
        launched("accelerate", **asked, zero=0)
    assert "fsdp" not in contents(launched("torchrun-fsdp", **asked, zero=0))["recipe.json"]["training"]


def test_several_machines_get_their_ranks_from_the_shell() -> None:
    launch = launched("torchrun-fsdp", model="llama-3-8b", device="32xh100-sxm", task="finetune")
    line = launch.command
    assert "--nnodes 4" in line
    assert "--nproc-per-node 8" in line
    assert '--node-rank "$NODE_RANK"' in line
    assert '--master-addr "$MASTER_ADDR"' in line
    assert any("each of the 4 machines" in note for note in launch.notes)
    hosts = contents(launched("deepspeed", model="llama-3-8b", device="32xh100-sxm", task="finetune"))["hostfile"]
    assert hosts.splitlines() == [f"machine-{i} slots=8" for i in range(1, 5)]


def test_deepspeed_gets_stage_offload_and_batch() -> None:
    launch = launched("deepspeed", **SHARED, device="8xh100-sxm", task="finetune", zero=2, offload="optimizer")
    config = contents(launch)["ds_config.json"]
    assert (config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]) == (2, 4)
    assert config["zero_optimization"]["stage"] == 2
    assert config["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
    assert "offload_param" not in config["zero_optimization"]
    assert (config["bf16"]["enabled"], config["fp16"]["enabled"]) == (True, False)
    everything = contents(launched("deepspeed", model="gpt2", device="rtx-4090", offload="all"))["ds_config.json"]
    assert everything["zero_optimization"]["stage"] == 3
    assert everything["zero_optimization"]["offload_param"]["device"] == "cpu"


@pytest.mark.parametrize(("engine", "file"), [("trl", "sft.yaml"), ("axolotl", "axolotl.yaml")])
def test_trainers_with_a_switch_for_it_keep_activations_on_the_host(engine: str, file: str) -> None:
    asked = {"model": "llama-3-8b", "device": "rtx-4090", "task": "lora"}
    assert contents(launched(engine, **asked, offload="activations"))[file]["activation_offloading"] is True
    assert "activation_offloading" not in contents(launched(engine, **asked))[file]


def test_deepspeed_divides_tensors_and_keeps_pure_formats() -> None:
    asked = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "finetune"}
    config = contents(launched("deepspeed", **asked, tp=2, zero=1))["ds_config.json"]
    assert config["tensor_parallel"] == {"autotp_size": 2}
    pure = contents(launched("deepspeed", **asked, precision="bf16"))["ds_config.json"]["bf16"]
    assert pure == {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}


def test_axolotl_gets_everything_in_one_file() -> None:
    launch = launched("axolotl", **SHARED, device="8xh100-sxm", task="finetune", tp=2)
    config = contents(launch)["axolotl.yaml"]
    assert (config["sequence_len"], config["micro_batch_size"], config["gradient_accumulation_steps"]) == (1024, 2, 8)
    assert (config["max_steps"], config["tensor_parallel_size"], config["dp_shard_size"]) == (STEPS, 2, 4)
    assert config["fsdp_config"]["activation_checkpointing"] is True
    assert words(launch)[-2:] == ["--nproc-per-node", "8"]


def test_axolotl_is_told_to_quantize_stacks_and_which_get_adapters() -> None:
    asked = {"model": "olmoe-1b-7b", "device": "rtx-3090", "task": "qlora", "engine": "axolotl", "seq_len": 2048}
    config = contents(launched("axolotl", **asked))["axolotl.yaml"]
    assert config["quantize_moe_experts"] is True
    assert config["lora_target_parameters"] == ["experts.gate_up_proj", "experts.down_proj"]
    assert "lora_target_linear" not in config


def test_axolotl_says_that_it_loads_weights_in_16_bits() -> None:
    found = ready("axolotl", model="gpt2", device="rtx-4090", task="finetune")
    assert (found.estimate.scenario.precision, found.warnings) == ("bf16", ())
    wider = ready("axolotl", model="gpt2", device="rtx-4090", task="finetune", engine="pytorch")
    assert wider.estimate.scenario.precision == "bf16"
    assert "--precision bf16 was taken" in wider.warnings[0].message


def test_megatron_builds_the_architecture_and_divides_it() -> None:
    asked = {"model": "llama-3-8b", "device": "64xh100-sxm", "tp": 4, "pp": 2, "cp": 2, "interleave": 2, "zero": 1}
    launch = launched("megatron", **asked, micro_batch=1, global_batch=128, tokens="1B", checkpointing="selective")
    expected = {
        "--num-layers": "32",
        "--hidden-size": "4096",
        "--ffn-hidden-size": "14336",
        "--num-attention-heads": "32",
        "--num-query-groups": "8",
        "--normalization": "RMSNorm",
        "--vocab-size": "128256",
        "--seq-length": "2048",
        "--micro-batch-size": "1",
        "--global-batch-size": "128",
        "--train-samples": "488282",
        "--tensor-model-parallel-size": "4",
        "--pipeline-model-parallel-size": "2",
        "--num-virtual-stages-per-pipeline-rank": "2",
        "--context-parallel-size": "2",
        "--recompute-granularity": "selective",
        "--attention-backend": "flash",
        "--tokenizer-model": "meta-llama/Meta-Llama-3-8B",
    }
    assert {name: value(launch, name) for name in expected} == expected
    switches = ("--swiglu", "--bf16", "--sequence-parallel", "--use-distributed-optimizer", "--disable-bias-linear")
    assert [value(launch, name) for name in switches] == [""] * 5
    assert words(launch)[:3] == ["env", "CUDA_DEVICE_MAX_CONNECTIONS=1", "torchrun"]


def parsed_layout(text: str) -> list[str]:
    """Read a pipeline as Megatron-LM does: parentheses and letters times a number, a bar between chunks."""
    for pattern in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        text = re.sub(pattern, lambda found: found[1] * int(found[2]), text)
    return text.split("|")


@pytest.mark.parametrize(
    ("model", "device", "extra"),
    [
        ("llama-3.1-405b", "16384xh100-sxm", {"seq_len": 8192}),
        ("llama-3.1-405b", "16384xh100-sxm", {"pp": 16, "tp": 8, "interleave": 8}),
        ("deepseek-v3", "2048xh800", {"seq_len": 8192}),
        ("kimi-k2", "2048xh100-sxm", {"seq_len": 8192}),
    ],
)
def test_megatron_gets_the_stages_that_are_estimated(model: str, device: str, extra: dict[str, object]) -> None:
    """126 layers on 32 stages: three at both ends, four between."""
    found = ready("megatron", model=model, device=device, task="pretrain", **extra)
    scenario = found.estimate.scenario
    chunks = parsed_layout(value(found.launch, "--pipeline-model-parallel-layout") or "")
    assert len(chunks) == scenario.pp * scenario.interleave
    assert "".join(chunks) == f"E{'t' * scenario.model.architecture.layers}L" and all(chunks)
    ranks = [sum(chunk.count("t") for chunk in chunks[rank :: scenario.pp]) for rank in range(scenario.pp)]
    assert ranks == [stage.layers for stage in stages(scenario.model.architecture.layers, scenario.pp)]
    assert value(found.launch, "--num-virtual-stages-per-pipeline-rank") is None


def test_megatron_knows_gpt2_and_experts() -> None:
    gpt2 = launched("megatron", model="gpt2", device="8xh100-sxm")
    assert value(gpt2, "--position-embedding-type") == "learned_absolute"
    assert (value(gpt2, "--max-position-embeddings"), value(gpt2, "--hidden-dropout")) == ("1024", "0.1")
    assert value(gpt2, "--swiglu") is None
    mixtral = launched("megatron", model="mixtral-8x7b", device="64xh100-sxm", ep=8)
    assert (value(mixtral, "--num-experts"), value(mixtral, "--moe-router-topk")) == ("8", "2")
    assert value(mixtral, "--expert-model-parallel-size") == "8"
    deepseek = launched("megatron", model="deepseek-v3", device="512xh100-sxm", pp=1, tp=8)
    assert (value(deepseek, "--kv-lora-rank"), value(deepseek, "--qk-pos-emb-head-dim")) == ("512", "64")
    assert str(value(deepseek, "--moe-layer-freq")).startswith("[0,0,0,1,1")
    routed = {"score-function": "sigmoid", "num-groups": "8", "group-topk": "4", "topk-scaling-factor": "2.5"}
    assert {name: value(deepseek, f"--moe-router-{name}") for name in routed} == routed
    assert "--moe-router-enable-expert-bias" in words(deepseek)
    assert value(launched("megatron", model="llama-3-8b", device="8xh100-sxm"), "--rotary-base") == "500000"


def test_maxtext_gets_mesh_batch_and_policy() -> None:
    launch = launched("maxtext", **SHARED, device="16xtpu-v5p", task="pretrain", tp=2)
    config = contents(launch)["maxtext.yml"]
    assert (config["model_name"], config["hardware"]) == ("llama3-8b", "tpu")
    assert (config["ici_tensor_parallelism"], config["ici_fsdp_parallelism"]) == (2, 8)
    assert (config["per_device_batch_size"], config["gradient_accumulation_steps"]) == (1.0, 4)
    assert (config["max_target_length"], config["steps"], config["remat_policy"]) == (1024, STEPS, "full")
    own = contents(launched("maxtext", model="tinyllama-1.1b", device="tpu-v5e"))["maxtext.yml"]
    assert (own["model_name"], own["base_num_kv_heads"], own["base_emb_dim"]) == ("default", 4, 2048)


def test_maxtext_gives_the_whole_batch_to_its_pipeline() -> None:
    asked = {"model": "llama-3-8b", "device": "8xtpu-v5p", "pp": 2, "interleave": 2, "micro_batch": 1}
    config = contents(launched("maxtext", **asked, global_batch=32))["maxtext.yml"]
    assert (config["num_pipeline_microbatches"], config["num_layers_per_pipeline_stage"]) == (8, 8)
    assert (config["per_device_batch_size"], config["gradient_accumulation_steps"]) == (4.0, 1)


def test_maxtext_joins_machines_by_the_network() -> None:
    config = contents(launched("maxtext", model="llama-3-8b", device="32xh100-sxm"))["maxtext.yml"]
    assert (config["ici_fsdp_parallelism"], config["dcn_fsdp_parallelism"]) == (8, 4)


def test_mlx_trains_adapters_on_its_own_4_bits() -> None:
    launch = launched("mlx-lm", model="llama-3-8b", device="m2-max", task="qlora", micro_batch=1, global_batch=4)
    config = contents(launch)["lora.yaml"]
    assert launch.command.splitlines()[0].startswith("mlx_lm.convert --hf-path meta-llama/Meta-Llama-3-8B")
    assert "--q-bits 4" in launch.command
    assert (config["model"], config["fine_tune_type"], config["num_layers"]) == ("mlx_model", "lora", 16)
    assert (config["batch_size"], config["grad_accumulation_steps"]) == (1, 4)
    assert any("MLX has no nf4" in note for note in launch.notes)


def test_mlx_starts_on_several_machines() -> None:
    launch = launched("mlx-lm", model="llama-3-8b", device="2xm2-ultra", task="lora", micro_batch=2)
    assert words(launch) == ["mlx.launch", "--hosts", "HOSTS", "--", "mlx_lm.lora", "--config", "lora.yaml"]
    assert contents(launch)["lora.yaml"]["batch_size"] == 4


def test_mlx_serves_in_the_format_that_stands_for_the_one_asked_for() -> None:
    launch = launched("mlx-lm", **SERVED, device="m2-max", quant="q8_0", concurrency=4)
    assert "--q-bits 8" in launch.command
    assert (value(launch, "--model"), value(launch, "--decode-concurrency")) == ("mlx_model", "4")
    plain = launched("mlx-lm", **SERVED, device="m2-max", quant="none", precision="bf16")
    assert value(plain, "--model") == "meta-llama/Meta-Llama-3-8B-Instruct"


def test_llama_cpp_keeps_its_own_16_bit_cache_unless_told_otherwise() -> None:
    """Fused attention on a bf16 cache runs on the processor in many builds."""
    asked = {**SERVED, "device": "rtx-4090", "quant": "q4_k_m"}
    assert value(launched("llama.cpp", **asked), "--cache-type-k") == "f16"
    assert value(launched("llama.cpp", **asked, kv_dtype="bf16"), "--cache-type-k") == "bf16"


def test_llama_cpp_gets_slots_layers_and_cache() -> None:
    asked = {"quant": "q4_k_m", "context": 4096, "concurrency": 4, "gpu_layers": 20, "kv_dtype": "int8"}
    launch = launched("llama.cpp", **SERVED, device="rtx-4090", **asked)
    assert value(launch, "--model") == "llama-3-8b-Q4_K_M.gguf"
    assert (value(launch, "--ctx-size"), value(launch, "--parallel")) == ("16384", "4")
    assert (value(launch, "--n-gpu-layers"), value(launch, "--cache-type-v")) == ("20", "q8_0")
    assert value(launch, "--flash-attn") == "on"
    several = launched("llama.cpp", **SERVED, device="2xrtx-3090")
    assert (value(several, "--split-mode"), value(several, "--n-gpu-layers")) == ("layer", "all")


def test_llama_cpp_fits_by_itself_what_may_not_fit() -> None:
    """Its fit stands aside where layers or their split are said."""
    ask = {"model": "llama-2-70b", "task": "inference", "engine": "llama.cpp"}
    for device in ("2xrtx-3090", "rtx-3090+rtx-4090"):
        launch = launched("llama.cpp", **ask, device=device)
        assert value(launch, "--fit") == "on"
        assert (value(launch, "--n-gpu-layers"), value(launch, "--tensor-split")) == (None, None)
    said = launched("llama.cpp", **ask, device="2xrtx-3090", gpu_layers=70)
    assert (value(said, "--fit"), value(said, "--n-gpu-layers")) == ("off", "70")


def test_vllm_gets_lengths_layout_and_formats() -> None:
    asked = {"context": 8192, "concurrency": 32, "kv_dtype": "fp8", "quant": "fp8", "tp": 4, "pp": 1}
    launch = launched("vllm", **SERVED, device="8xh100-sxm", **asked)
    expected = {
        "--dtype": "bfloat16",
        "--quantization": "fp8",
        "--kv-cache-dtype": "fp8",
        "--max-model-len": "8192",
        "--gpu-memory-utilization": "0.92",
        "--max-num-seqs": "1024",
        "--max-num-batched-tokens": "8192",
        "--enforce-eager": None,
        "--tensor-parallel-size": "4",
        "--pipeline-parallel-size": "1",
        "--data-parallel-size": "2",
    }
    assert {name: value(launch, name) for name in expected} == expected
    assert words(launch)[:3] == ["vllm", "serve", "meta-llama/Meta-Llama-3-8B-Instruct"]
    offloaded = launched("vllm", **SERVED, device="rtx-4090", offload="all")
    assert value(offloaded, "--cpu-offload-gb") == "15"


def test_a_server_is_told_what_the_estimate_assumed() -> None:
    said = {
        "gpu_memory_utilization": 0.85,
        "max_num_seqs": 64,
        "max_num_batched_tokens": 4096,
        "enforce_eager": True,
    }
    vllm = launched("vllm", **SERVED, device="h100-sxm", **said)
    names = ("--gpu-memory-utilization", "--max-num-seqs", "--max-num-batched-tokens")
    assert [value(vllm, name) for name in names] == ["0.85", "64", "4096"]
    assert "--enforce-eager" in words(vllm)
    sglang = launched("sglang", **SERVED, device="h100-sxm", **said)
    names = ("--mem-fraction-static", "--max-running-requests", "--chunked-prefill-size")
    assert [value(sglang, name) for name in names] == ["0.85", "64", "4096"]
    assert "--disable-cuda-graph" in words(sglang)


@pytest.mark.parametrize(
    ("engine", "name", "place", "note"),
    [
        ("vllm", "qwen3-4b", "serve Qwen/Qwen3-4B ", ""),
        ("vllm", "Qwen/Qwen3-8B-AWQ", "serve Qwen/Qwen3-8B-AWQ ", ""),
        ("vllm", "qwen3 8b awq", "serve Qwen/Qwen3-8B ", "name a version of the model whose weights are in awq-int4"),
        ("vllm", "qwen3 8b fp8", "--quantization fp8", ""),
        ("vllm", "meta-llama/Meta-Llama-3-8B", "serve meta-llama/Meta-Llama-3-8B ", ""),
        ("vllm", "llama-3-8b", "serve meta-llama/Meta-Llama-3-8B-Instruct ", "was taken, which was taught to chat"),
        ("llama.cpp", "unsloth/Qwen3-8B-GGUF:Q4_K_M", "-hf unsloth/Qwen3-8B-GGUF:Q4_K_M", ""),
        ("llama.cpp", "library/qwen3:8b", "--model qwen3-8b-Q4_K_M.gguf", "convert the weights of Qwen/Qwen3-8B to"),
        ("llama.cpp", "Qwen/Qwen3-8B-AWQ", "--model qwen3-8b-Q4_K_M.gguf", "convert the weights of Qwen/Qwen3-8B to"),
    ],
)
def test_a_server_gets_the_weights_by_the_name_that_was_typed(engine: str, name: str, place: str, note: str) -> None:
    launch = launched(engine, model=name, device="rtx-4090", task="inference")
    assert place in launch.command.replace("\\\n", "")
    assert note in "; ".join(launch.notes)


def test_ollama_takes_a_tag_of_its_library_and_a_repository_as_they_are() -> None:
    asked = {"device": "rtx-4090", "task": "inference"}
    for name, place in (
        ("qwen3:8b", "qwen3:8b"),
        ("unsloth/Qwen3-8B-GGUF:Q4_K_M", "hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M"),
    ):
        assert f"\nFROM {place}\n" in launched("ollama", model=name, **asked).files[0].text


def test_vllm_reads_published_formats_from_the_checkpoint() -> None:
    launch = launched("vllm", model="gpt-oss-20b", device="h100-sxm", task="inference")
    assert value(launch, "--quantization") is None
    assert launch.notes == ("for vLLM 0.33: pip install vllm",)
    other = launched("vllm", **SERVED, device="rtx-4090", quant="awq-int4")
    assert other.notes[1:] == ("name a version of the model whose weights are in awq-int4",)


def test_a_recipe_says_what_it_is_for_and_installs_what_it_takes() -> None:
    asked = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "finetune"}
    note = launched("accelerate", **asked, optimizer="adamw-8bit").notes[0]
    assert (
        note.startswith("for accelerate 1.15, transformers 5.23") and "torchao" in note and "bitsandbytes" not in note
    )
    assert "bitsandbytes" in launched("accelerate", **{**asked, "device": "h100-sxm", "task": "qlora"}).notes[0]
    assert "ring-flash-attn" in launched("axolotl", **asked, cp=2).notes[0]
    config = launched("axolotl", **asked).files[0].text
    assert config.startswith("# for Axolotl 0.19: pip install axolotl\n")


def test_unsloth_takes_its_own_optimizer_and_one_device() -> None:
    asked = {"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora", "lora_targets": "attention"}
    found = ready("unsloth", **asked)
    config = contents(found.launch)["unsloth.yaml"]
    assert found.estimate.scenario.optimizer == "adamw-8bit"
    assert (config["training"]["load_in_4bit"], config["training"]["training_type"]) == (True, "lora")
    assert config["lora"]["target_modules"] == "q_proj,k_proj,v_proj,o_proj"
    with pytest.raises(UsageError):
        launched("unsloth", **{**asked, "device": "8xh100-sxm"})


def test_adapters_of_the_attention_alone_are_written_by_name() -> None:
    asked = {"model": "qwen3-30b-a3b", "task": "qlora", "lora_targets": "attention"}
    factory = contents(launched("llama-factory", **asked, device="h100-sxm"))["llama_factory.yaml"]["lora_target"]
    assert {"q_proj", "o_proj", "attn.c_proj"} < set(factory.split(",")) and "c_proj" not in factory.split(",")
    asked |= {"model": "deepseek-v2-lite", "device": "m3-ultra"}
    keys = contents(launched("mlx-lm", **asked))["lora.yaml"]["lora_parameters"]["keys"]
    assert {"self_attn.q_proj", "self_attn.kv_a_proj_with_mqa"} < set(keys)


def test_llama_factory_divides_with_fsdp_and_copies_without() -> None:
    asked = {**SHARED, "device": "16xh100-sxm", "task": "finetune"}
    sharded = launched("llama-factory", **asked)
    assert words(sharded)[:2] == ["accelerate", "launch"] and words(sharded)[-2:] == [
        "llamafactory.launcher",
        "llama_factory.yaml",
    ]
    config = contents(sharded)["llama_factory.yaml"]
    assert (config["cutoff_len"], config["per_device_train_batch_size"], config["max_steps"]) == (1024, 2, STEPS)
    # Its layers recompute themselves: FSDP on top would run them a third time.
    recomputed = contents(sharded)["accelerate.yaml"]["fsdp_config"]["fsdp_activation_checkpointing"]
    assert (config["disable_gradient_checkpointing"], recomputed) == (False, False)
    copies = launched("llama-factory", **{**asked, "zero": 0, "task": "lora"})
    assert {"NNODES=2", "NPROC_PER_NODE=8"} <= set(words(copies))
    assert contents(copies)["llama_factory.yaml"]["lora_target"] == "all"


def test_ollama_gets_weights_context_and_the_settings_of_its_server() -> None:
    asked = {"device": "rtx-4090", "context": 8192, "output": 100, "concurrency": 4, "quant": "q4_k_m"}
    launch = launched("ollama", **SERVED, **asked)
    lines = contents(launch)["Modelfile"].splitlines()[1:]
    assert lines == ["FROM ./llama-3-8b-Q4_K_M.gguf", "PARAMETER num_ctx 8192", "PARAMETER num_predict 100"]
    chat = contents(launched("ollama", **SERVED, device="rtx-4090"))["Modelfile"]
    assert "num_predict" not in chat, "an answer that is assumed is no limit"
    first = launch.command.splitlines()[0].split()
    assert {"OLLAMA_NUM_PARALLEL=4", "OLLAMA_CONTEXT_LENGTH=8192", "OLLAMA_KV_CACHE_TYPE=f16"} <= set(first)


def test_tensorrt_llm_gets_the_settings_of_its_llm() -> None:
    asked = {"device": "8xh100-sxm", "tp": 8, "context": 8192, "kv_dtype": "fp8", "gpu_memory_utilization": 0.8}
    config = contents(launched("tensorrt-llm", **SERVED, **asked))["tensorrt_llm.yaml"]
    assert (config["tensor_parallel_size"], config["max_seq_len"]) == (8, 8192)
    assert config["kv_cache_config"] == {"dtype": "fp8", "free_gpu_memory_fraction": 0.8}


@pytest.mark.parametrize(("engine", "told"), [("tensorrt-llm", True), ("vllm", False), ("sglang", False)])
def test_weights_that_an_engine_does_not_quantize_itself_are_to_be_named(engine: str, told: bool) -> None:
    launch = launched(engine, **SERVED, device="h100-sxm", quant="fp8")
    assert ("name a version of the model whose weights are in fp8" in launch.notes) is told


def test_litgpt_counts_as_the_recipe_does() -> None:
    launch = launched("litgpt", **{**SHARED, "checkpointing": "none"}, device="rtx-4090", task="qlora")
    assert (value(launch, "--quantize"), value(launch, "--train.max_steps")) == ("bnb.nf4-dq", str(STEPS))
    assert words(launch)[:2] == ["litgpt", "finetune_lora"]
    # It refuses quantized weights under autocast, and AdamW by its name alone takes torch's own rate.
    assert value(launch, "--precision") == "bf16-true"
    assert json.loads(str(value(launch, "--optimizer"))) == {
        "class_path": "torch.optim.AdamW",
        "init_args": {"lr": 0.0002},
    }


def test_litgpt_is_told_where_the_tokenizer_of_a_pretraining_is() -> None:
    launch = launched("litgpt", model="pythia-160m", device="rtx-4090", task="pretrain", tokens="10M")
    assert value(launch, "--tokenizer_dir") == "EleutherAI/pythia-160m"
    assert any("litgpt download EleutherAI/pythia-160m --tokenizer_only true" in note for note in launch.notes)
    assert "--tokenizer_dir" not in words(
        launched("litgpt", **{**SHARED, "checkpointing": "none"}, task="lora", device="h100")
    )


def test_ktransformers_keeps_experts_on_the_processor() -> None:
    launch = launched("ktransformers", model="deepseek-v3", device="8xh100-sxm", task="inference")
    assert (value(launch, "--kt-method"), value(launch, "--kt-num-gpu-experts")) == ("FP8", "0")
    with pytest.raises(UsageError):
        launched("ktransformers", **SERVED, device="rtx-4090")


def test_adapters_on_the_last_layers_are_a_number_for_mlx_and_a_pattern_for_peft() -> None:
    asked = {"model": "llama-3-8b", "device": "h100-sxm", "task": "lora", "lora_layers": 2}
    recipe = contents(launched("accelerate", **asked))["recipe.json"]
    pattern = re.compile(recipe["lora"]["target_modules"])
    assert pattern.fullmatch("model.layers.31.mlp.down_proj")
    assert pattern.fullmatch("model.layers.30.self_attn.q_proj")
    assert not pattern.fullmatch("model.layers.29.mlp.down_proj")
    assert not pattern.fullmatch("model.layers.31.input_layernorm")
    mlx = launched("mlx-lm", **{**asked, "device": "m2-max", "lora_layers": "all"})
    assert contents(mlx)["lora.yaml"]["num_layers"] == -1
    with pytest.raises(UsageError, match="every layer or in none"):
        launched("accelerate", **{**asked, "model": "qwen3-30b-a3b"})
    with pytest.raises(UsageError, match="--lora-layers 2 is not something"):
        launched("llama-factory", **asked)


DRAFTED = {"model": "qwen3-32b", "device": "2xh100-sxm", "task": "inference", "draft": "qwen3-0.6b", "spec_tokens": 4}


def test_servers_are_told_what_drafts() -> None:
    """A model, the model's own layers, a head that the user names; as many tokens as were estimated."""
    config = json.loads(value(launched("vllm", **DRAFTED), "--speculative-config") or "")
    assert config == {"method": "draft_model", "model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 4}
    heads = {**DRAFTED, "draft": "eagle"}
    config = json.loads(value(launched("vllm", **heads), "--speculative-config") or "")
    assert (config["method"], config["model"]) == ("eagle3", "HEAD")
    assert any("in place of HEAD" in note for note in launched("vllm", **heads).notes)
    mtp = {**DRAFTED, "model": "deepseek-v3", "device": "8xh200", "draft": "mtp"}
    config = json.loads(value(launched("vllm", **mtp), "--speculative-config") or "")
    assert config == {"method": "mtp", "num_speculative_tokens": 4}
    sglang = launched("sglang", **DRAFTED)
    assert value(sglang, "--speculative-algorithm") == "STANDALONE"
    assert value(sglang, "--speculative-draft-model-path") == "Qwen/Qwen3-0.6B"
    assert (value(sglang, "--speculative-num-steps"), value(sglang, "--speculative-num-draft-tokens")) == ("4", "5")
    assert value(launched("sglang", **mtp), "--speculative-draft-model-path") is None
    config = contents(launched("tensorrt-llm", **DRAFTED))["tensorrt_llm.yaml"]
    drafts = {"decoding_type": "DraftTarget", "max_draft_len": 4, "speculative_model_dir": "Qwen/Qwen3-0.6B"}
    assert (config["speculative_config"], config["disable_overlap_scheduler"]) == (drafts, True)
    llama = launched("llama.cpp", **{**DRAFTED, "device": "rtx-4090"})
    assert (value(llama, "--spec-type"), value(llama, "--spec-draft-n-max")) == ("draft-simple", "4")
    assert value(llama, "--model-draft") == "qwen3-0.6b-BF16.gguf"
    assert "--speculative-config" not in launched("vllm", **{**DRAFTED, "draft": None, "spec_tokens": None}).command


def test_what_cannot_draft_names_those_that_can() -> None:
    asked = {**DRAFTED, "device": "rtx-4090", "quant": "q4_k_m"}
    with pytest.raises(UsageError, match=r"--draft qwen3-0\.6b is not something Ollama can express") as caught:
        ready("ollama", **asked)
    assert caught.value.candidates == ("llama.cpp", "mlx-lm")
    with pytest.raises(UsageError, match="answers one request at a time"):
        ready("mlx-lm", **{**DRAFTED, "device": "m2-max", "concurrency": 2})
    with pytest.raises(UsageError, match="--pp 2 is not something SGLang can express"):
        ready("sglang", **DRAFTED, pp=2, tp=1)


POOLS = {"model": "qwen3-32b", "device": "8xh100-sxm", "task": "inference", "disaggregate": "2:6", "tp": 2}


def test_prompts_and_answers_on_devices_of_their_own_are_servers_of_their_own() -> None:
    """A server for each copy of the model, on devices in a row; what stands before them knows all of them."""
    vllm = launched("vllm", **POOLS, concurrency=8)
    servers = [line for line in vllm.command.replace(" \\\n ", "").splitlines() if "vllm serve" in line]
    assert [line.split()[0] for line in servers] == [f"CUDA_VISIBLE_DEVICES={i},{i + 1}" for i in (0, 2, 4, 6)]
    assert all("NixlConnector" in line and "--tensor-parallel-size 2" in line for line in servers)
    assert all(line.endswith(" &") and "--data-parallel-size" not in line for line in servers)
    assert words(vllm)[words(vllm).index("--decoder-ports") + 1 :] == ["8101", "8102", "8103"]
    assert "nixl" in vllm.notes[0]
    sglang = launched("sglang", **POOLS)
    servers = [line for line in sglang.command.replace(" \\\n ", "").splitlines() if "launch_server" in line]
    assert [("mode prefill" in line, line.split("--base-gpu-id ")[1][0]) for line in servers] == [
        (True, "0"), (False, "2"), (False, "4"), (False, "6"),
    ]  # fmt: skip
    assert words(sglang).count("--prefill") == 1 and words(sglang).count("--decode") == 3


def test_what_has_no_pools_names_those_that_have() -> None:
    with pytest.raises(UsageError, match="--disaggregate 2:6 is not something TensorRT-LLM can express") as caught:
        ready("tensorrt-llm", **POOLS)
    assert caught.value.candidates == ("sglang", "vllm")
    with pytest.raises(UsageError, match="on several machines its servers are started apart"):
        ready("vllm", **{**POOLS, "device": "16xh100-sxm", "disaggregate": "8:8"})


STACKED = {"model": "qwen3-30b-a3b", "device": "a100-sxm-40gb", "task": "qlora"}


@pytest.mark.parametrize("engine", ["accelerate", "deepspeed", "torchrun-fsdp", "trl", "llama-factory"])
def test_a_recipe_asks_for_the_release_that_was_estimated(engine: str) -> None:
    """Bitsandbytes under transformers 5 leaves stacked experts in 16 bits: four bits are estimated under 4."""
    found = ready(engine, **STACKED)
    assert found.estimate.scenario.transformers == "4"
    assert re.search(r"'transformers(>=4\.57,)?<5'", found.launch.notes[0]), found.launch.notes[0]
    text = "".join(file.text for file in found.launch.files if file.name != "train.py")
    assert "activation_checkpointing" not in text and "gradient_checkpointing" in text
    newer = launched(engine, **STACKED, transformers="5").notes[0]
    assert "<5" not in newer and ("llama" in engine or "'transformers>=5.23'" in newer)


def test_what_stands_on_one_release_and_quantizes_stacks_itself_is_estimated_under_it() -> None:
    found = ready("axolotl", **STACKED)
    assert found.estimate.scenario.transformers == "5" and found.estimate.verdict.memory == "tight"
    assert not any("--transformers" in warning.message for warning in found.warnings)
    with pytest.raises(UsageError, match="--transformers 4 is not something Axolotl can express"):
        ready("axolotl", **STACKED, transformers="4")


def test_what_writes_answers_keeps_no_longer_sequences_than_train() -> None:
    """VLLM refuses to start where the model's whole context, 131072 tokens, does not fit its share."""
    asked = {"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "grpo", "seq_len": 4096}
    assert contents(launched("trl", **asked))["grpo.yaml"]["vllm_max_model_length"] == 4096
    beside = launched("trl", **asked, colocate="false")
    assert any("trl vllm-serve" in note and "--max_model_len 4096" in note for note in beside.notes)


def test_ollama_asks_what_only_reads_for_a_vector() -> None:
    asked = {"device": "rtx-4090", "task": "inference"}
    reads = launched("ollama", model="qwen3-embedding-0.6b", **asked).command
    assert "ollama run" not in reads and "curl http://localhost:11434/api/embed -d '" in reads
    assert launched("ollama", model="qwen3-8b", **asked).command.endswith("ollama run qwen3-8b-q4_k_m --verbose")


def test_ollama_says_that_its_library_may_hold_the_file() -> None:
    asked = {"device": "rtx-4090", "task": "inference"}
    named = launched("ollama", model="qwen3-8b", **asked)
    assert any("ollama.com/library" in note and "behind FROM" in note for note in named.notes)
    tagged = launched("ollama", model="qwen3:8b", **asked)
    assert "FROM qwen3:8b\n" in tagged.files[0].text and not any("ollama.com/library" in each for each in tagged.notes)
