"""What is not said is decided as the contract says, and what cannot be is refused with a way out."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.inputs import inputs
from llmfeas.memory.peak import peak_bytes
from llmfeas.memory.usable import usable_bytes
from llmfeas.planning.answer import bare_answer
from llmfeas.settle import Resolution, resolution
from llmfeas.settle import resolving as settle
from llmfeas.walk.fold import walked_layers


def settled(model: str = "gpt2-xl", device: str = "rtx-4070ti", **request: object) -> Resolution:
    return resolution({"model": model, "device": device, **request}, catalog())


def codes(found: Resolution) -> list[str]:
    return [warning.code for warning in found.warnings]


@pytest.mark.parametrize(
    ("device", "task", "precision"),
    [
        ("rtx-4070ti", "pretrain", "bf16-mixed"),
        ("t4", "pretrain", "fp16-mixed"),
        ("rx-6900xt", "pretrain", "fp16-mixed"),
        ("p100-pcie-16gb", "pretrain", "fp16-mixed"),
        ("mi60", "pretrain", "fp16-mixed"),
        ("gtx-1080", "pretrain", "fp32"),
        ("m2-ultra", "pretrain", "fp32"),
        ("m2-ultra", "lora", "fp16-mixed"),
        ("gtx-1080", "lora", "fp32"),
        ("t4", "inference", "fp16"),
        ("rtx-4090", "inference", "bf16"),
    ],
)
def test_precision_is_what_the_device_runs_at_full_rate(device: str, task: str, precision: str) -> None:
    assert settled("llama-3-8b", device, task=task).scenario.precision == precision


def test_fp16_models_stay_fp16_in_inference() -> None:
    assert settled("llama-2-7b", "rtx-4090", task="inference").scenario.precision == "fp16"


@pytest.mark.parametrize(
    ("task", "expected"),
    [("pretrain", "none"), ("finetune", "none"), ("lora", "full"), ("qlora", "full")],
)
def test_checkpointing_follows_the_task(task: str, expected: str) -> None:
    assert settled(task=task).scenario.checkpointing == expected


def test_adapters_keep_what_their_engine_does_not_recompute_by_itself() -> None:
    ask = {"task": "lora", "model": "llama-3-70b", "device": "8xh100-sxm"}
    assert settled(**ask, engine="megatron").scenario.checkpointing == "none"
    assert settled(**ask, engine="trl").scenario.checkpointing == "full"


def test_tokens_are_as_published_else_twenty_a_parameter() -> None:
    assert settled("gpt2-xl").scenario.tokens == 20 * 1_557_611_200
    assert settled("llama-3-8b").scenario.tokens == 15e12
    assert settled("llama-3-8b", task="lora").scenario.tokens == 10e6


def test_quantization_follows_task_and_publication() -> None:
    assert settled(task="qlora").scenario.quant == "nf4"
    assert settled("gpt-oss-20b", "rtx-4090", task="inference").scenario.quant == "mxfp4"
    assert settled("deepseek-v3", "h200", task="inference").scenario.quant == "fp8"
    assert settled(task="inference").scenario.quant == "none"


@pytest.mark.parametrize(
    ("asked", "held"), [("q8_0", "mxfp4"), ("q4_k_m", "mxfp4"), ("none", "mxfp4"), ("q2_k", "q2_k")]
)
def test_a_wider_gguf_keeps_the_published_few_bits(asked: str, held: str) -> None:
    """Every GGUF of gpt-oss holds its experts in MXFP4, 12.1 to 13.8 GB of the smaller one, whatever its name says."""
    found = settled("gpt-oss-20b", "rtx-4090", task="inference", engine="llama.cpp", quant=asked)
    assert found.scenario.quant == held
    assert settled("gpt-oss-20b", "h100-sxm", task="inference", engine="vllm", quant="none").scenario.quant == "none"


def test_automatic_micro_batch_is_a_power_of_two_that_fits() -> None:
    found = settled("gpt2", "rtx-4070ti").scenario
    assert found.micro_batch in (1, 2, 4, 8)
    assert found.micro_batch * found.seq_len <= 8192
    assert found.global_batch * found.seq_len >= 2**19


def test_micro_batch_is_one_where_nothing_fits() -> None:
    assert settled("gpt2-xl", "rtx-4070ti").scenario.micro_batch == 1


def test_a_name_with_a_count_and_an_offer_set_the_count() -> None:
    assert settled("gpt2", "8xh100-sxm").scenario.num_devices == 8
    offer = settled("gpt2", "kaggle-2xt4").scenario
    assert (offer.num_devices, offer.weekly_hours, offer.price_usd_per_hour) == (2, 30, 0)


def test_the_smallest_common_memory_stands_for_machines_sold_in_several() -> None:
    assert settled("gpt2", "m2-ultra").scenario.memory_bytes == 64 * 2**30
    assert settled("gpt2", "ryzen-9-7950x").scenario.memory_bytes == 32 * 2**30
    assert settled("gpt2", "epyc-9654").scenario.memory_bytes == 256 * 2**30
    assert settled("gpt2", "m2-ultra", memory="192GiB").scenario.memory_bytes == 192 * 2**30


def test_electricity_of_ones_own_replaces_rent() -> None:
    assert settled("gpt2", "rtx-4090").scenario.price_usd_per_hour is not None
    assert settled("gpt2", "rtx-4090", electricity=0.3).scenario.price_usd_per_hour is None


def test_origins_tell_what_was_given() -> None:
    found = settled(seq_len=512).scenario
    assert found.was_given("seq_len")
    assert not found.was_given("micro_batch")
    assert found.origins["micro_batch"] == "derived"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"task": "pretrain", "prompt": 10}, "option-unused"),
        ({"task": "inference", "micro_batch": 4}, "option-unused"),
        ({"model": "llama-2-7b", "seq_len": 8192}, "beyond-context"),
        ({"model": "llama-2-7b", "task": "inference", "context": 100000}, "beyond-context"),
        ({"model": "gemma-2-9b", "device": "h100-sxm", "attention": "flash"}, "eager-only"),
        ({"model": "gpt-oss-20b", "task": "lora", "device": "t4", "attention": "flash"}, "eager-only"),
        ({"device": "t4", "precision": "bf16-mixed"}, "no-bf16"),
        ({"device": "A100"}, "device-variant"),
        ({"task": "inference", "quant": "int8", "engine": "llama.cpp"}, "int8-is-q8_0"),
        ({"model": "gpt-oss-20b", "task": "inference", "quant": "q8_0"}, "gguf-keeps-published"),
    ],
)
def test_what_is_odd_is_warned_of(request_: dict[str, object], code: str) -> None:
    assert code in codes(settled(**request_))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        ({"task": "pretrain", "quant": "nf4"}, "contradiction", "--task pretrain"),
        ({"task": "qlora", "quant": "q4_k_m"}, "contradiction", "nf4"),
        ({"task": "inference", "precision": "bf16-mixed"}, "contradiction", "training recipe"),
        ({"seq_len": 2048}, "beyond-positions", "1024"),
        ({"model": "llama-2-7b", "task": "inference", "context": 100, "prompt": 200}, "contradiction", "--context 712"),
        ({"device": "8xh100-sxm", "num_devices": 4}, "contradiction", "8 devices"),
        ({"device": "8xh100-sxm", "tp": 3}, "impossible-layout", "or a multiple of that"),
        ({"model": "llama-2-7b", "device": "8xh100-sxm", "pp": 64}, "impossible-layout", "or a multiple of that"),
        ({"model": "gpt2", "device": "16xh100-sxm", "pp": 16}, "impossible-layout", "12 layers"),
        ({"model": "gpt2", "device": "8xh100-sxm", "ep": 2}, "impossible-layout", "no experts"),
        (
            {"model": "mixtral-8x7b", "device": "8xh100-sxm", "pp": 2, "ep": 8},
            "impossible-layout",
            "over 4 devices of each of 2 stages",
        ),
        ({"task": "inference", "gpu_layers": 4, "engine": "vllm"}, "contradiction", "llama.cpp"),
        ({"model": "gpt5-ultra"}, "unknown-model", "gpt5-ultra"),
        ({"device": "rtx-4075"}, "unknown-device", "rtx-4070"),
        ({"tokens": -1}, "bad-quantity", "--tokens"),
        ({"micro_batch": 0}, "bad-quantity", "--micro-batch"),
        ({"seq_len": 10**12}, "bad-quantity", "--seq-len"),
        ({"mfu": 3}, "bad-quantity", "--mfu"),
    ],
)
def test_what_cannot_be_is_refused(request_: dict[str, object], code: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        settled(**request_)  # type: ignore[arg-type]
    error = caught.value
    assert error.code == code
    assert words in f"{error.message} {error.hint}"
    assert error.exit_code == 2


def test_many_devices_train_on_a_tuned_engine() -> None:
    assert settled("gpt3-175b", "1024xa100-sxm-80gb").scenario.engine == "megatron"
    assert settled("llama-3-8b", "8xh100-sxm").scenario.engine == "pytorch"
    assert settled("llama-3-8b", "8xh100-sxm").scenario.zero == 3


def test_a_served_model_spreads_by_layers_or_tensors_as_the_engine_does() -> None:
    layers = settled("llama-2-70b", "4xrtx-4090", task="inference", engine="llama.cpp").scenario
    tensors = settled("llama-2-70b", "4xh100-sxm", task="inference", engine="vllm").scenario
    assert (layers.pp, layers.tp) == (4, 1)
    assert (tensors.pp, tensors.tp) == (1, 4)


def test_long_sequences_spread_over_ranks_that_the_batch_leaves_idle() -> None:
    long = {"num_devices": 256, "task": "pretrain", "seq_len": 131072, "tp": 1, "pp": 1}
    spread = settled("llama-3.1-70b", "tpu-v7x", global_batch=64, **long).scenario
    assert (spread.cp, spread.dp) == (4, 64)
    assert settled("llama-3.1-70b", "tpu-v7x", global_batch=256, **long).scenario.cp == 1
    assert settled("llama-3.1-70b", "tpu-v7x", global_batch=64, cp=2, **long).scenario.cp == 2


@pytest.mark.parametrize(
    ("engine", "quant", "refused"),
    [
        ("exllamav2", "q4_k_m", True),
        ("gpt-fast", "q4_k_m", True),
        ("transformers", "q4_k_m", True),
        ("llama.cpp", "mlx-4bit", True),
        ("llama.cpp", "awq-int4", True),
        ("ctranslate2", "nvfp4", True),
        ("vllm", "q4_k_m", False),
        ("tensorrt-llm", "int8", False),
        ("lm-studio", "mlx-4bit", False),
        ("exllamav2", "gptq-int4", False),
        ("llama.cpp-vulkan", "q4_k_m", False),
        ("ollama", "q4_k_m", False),
        ("sglang", "awq-int4", False),
        ("an-engine-of-mine", "q4_k_m", False),
    ],
)
def test_a_format_that_the_engine_does_not_run_is_refused(engine: str, quant: str, refused: bool) -> None:
    if not refused:
        assert settled("llama-3-8b", "rtx-4090", task="inference", engine=engine, quant=quant).scenario.engine == engine
        return
    with pytest.raises(UsageError, match=f"{engine} does not run {quant}") as caught:
        settled("llama-3-8b", "rtx-4090", task="inference", engine=engine, quant=quant)
    assert caught.value.candidates and engine not in caught.value.candidates
    assert f"formats of {engine}: " in (caught.value.hint or "")


@pytest.mark.parametrize("form", sorted({form.id for form in catalog().tables.quantization.formats.values()}))
@pytest.mark.parametrize("device", ["rtx-4090", "m4-max", "epyc-9654"])
def test_the_engine_follows_the_format(device: str, form: str) -> None:
    """Whoever names a format and no engine gets one that runs it, and launch and ladder ask the same question."""
    found = settled("llama-3-8b", device, task="inference", quant=form).scenario
    engine = found.engine_record
    assert form == "none" or engine.reads(found.tables.quantization.format(form, engine.speaks))


@pytest.mark.parametrize(
    ("quant", "device", "engine", "status"),
    [
        ("q4_k_m", "b200", "vllm", "limited"),
        ("nvfp4", "h100-sxm", "sglang", "unsupported"),
        ("nvfp4", "b200", "sglang", "supported"),
        ("mlx-4bit", "rtx-4090", "lm-studio", "unsupported"),
        ("mlx-4bit", "m4-max", "lm-studio", "supported"),
    ],
)
def test_a_format_has_limits_by_device(quant: str, device: str, engine: str, status: str) -> None:
    found = settled("llama-3-8b", device, task="inference", engine=engine, quant=quant).scenario
    form = found.tables.quantization.format(quant, found.engine_record.speaks)
    assert found.engine_record.format_support(form, found.device).status == status


def test_published_weights_that_an_engine_does_not_run_are_taken_otherwise_and_said() -> None:
    found = settled("gpt-oss-20b", "h100-sxm", task="inference", engine="tgi")
    assert (found.scenario.quant, "engine-format" in codes(found)) == ("none", True)


def test_interleaving_without_stages_is_told() -> None:
    assert "option-unused" in codes(settled("llama-3-8b", "8xh100-sxm", interleave=4))
    piped = settled("llama-3-8b", "8xh100-sxm", interleave=4, pp=2, engine="megatron")
    assert "option-unused" not in codes(piped)


@pytest.mark.parametrize(
    ("device", "gib"),
    [("rtx-4090", 32), ("2xrtx-4090", 48), ("8xrtx-a5000", 192), ("h100-sxm", 256), ("8xh100-sxm", 1280)],
)
def test_a_machine_has_as_much_main_memory_as_its_devices_a_server_twice_that(device: str, gib: int) -> None:
    found = resolution({"model": "gpt2", "device": device}, catalog()).scenario
    assert found.host_memory_bytes == gib * 2**30


@pytest.mark.parametrize(
    ("device", "each", "machine"), [("m7i.48xlarge", 384, 768), ("m7i.24xlarge", 384, 384), ("2xcobalt-100", 256, 512)]
)
def test_processors_divide_the_memory_of_their_machine(device: str, each: int, machine: int) -> None:
    """Whether somebody says it or not."""
    for said in ({}, {"host_memory": f"{machine}GiB"}):
        found = settled("gpt2", device, **said).scenario
        assert (found.memory_bytes, found.host_memory_bytes) == (each * 2**30, machine * 2**30)


@pytest.mark.parametrize(
    ("device", "task", "asked", "offload"),
    [
        ("rtx-4090", "inference", "all", "all"),
        ("rtx-4090", "inference", "optimizer", "none"),
        ("rtx-4090", "inference", "activations", "none"),
        ("m4-max-40c", "inference", "all", "none"),
        ("gb10", "inference", "all", "none"),
        ("epyc-9654", "inference", "all", "none"),
        ("rtx-4090", "lora", "activations", "activations"),
        ("rtx-4090", "pretrain", "activations", "activations"),
        ("gb10", "lora", "activations", "none"),
        ("epyc-9654", "lora", "activations", "none"),
    ],
)
def test_what_a_task_can_spare_goes_to_a_host_that_has_its_own_memory(
    device: str, task: str, asked: str, offload: str
) -> None:
    found = settled("llama-3-8b", device, task=task, offload=asked)
    assert found.scenario.offload == offload
    assert ("option-unused" in codes(found)) == (offload == "none")


def test_offloaded_weights_are_served_by_what_streams_them() -> None:
    def asked(**said: str) -> Resolution:
        return settled("llama-3-8b", "rtx-4090", task="inference", **said)

    assert asked(offload="all").scenario.engine == "transformers"
    assert asked(offload="all", quant="awq-int4").scenario.engine == "vllm"
    assert "engine-offload" in codes(asked(offload="all", quant="q4_k_m"))
    assert "engine-offload" not in codes(asked(offload="all"))


@pytest.mark.parametrize(
    ("device", "asked", "engine", "told"),
    [
        ("rtx-4090", {"concurrency": 4}, "llama.cpp", False),
        ("rtx-4090", {"concurrency": 64}, "vllm", True),
        ("rtx-4090", {"concurrency": 64, "quant": "q4_k_m"}, "llama.cpp", False),
        ("rtx-4090", {"concurrency": 64, "gpu_layers": 8}, "llama.cpp", False),
        ("rtx-4090", {"concurrency": 64, "engine": "transformers"}, "transformers", False),
        ("rtx-4090", {"concurrency": 64, "quant": "gptq-int4"}, "vllm", True),
        ("rx-7900xtx", {"concurrency": 64}, "vllm", True),
        ("rx-6900xt", {"concurrency": 64}, "llama.cpp", False),
        ("gtx-1080ti", {"concurrency": 64}, "llama.cpp", False),
        ("h100-sxm", {"concurrency": 64}, "vllm", False),
    ],
)
def test_many_requests_are_served_by_what_people_take_for_them(
    device: str, asked: dict[str, object], engine: str, told: bool
) -> None:
    found = settled("llama-3-8b", device, task="inference", **asked)
    assert (found.scenario.engine, found.scenario.concurrency) == (engine, asked["concurrency"])
    assert ("engine-for-many" in codes(found)) == told


@pytest.mark.parametrize(
    "device", ["rtx-4090", "rtx-3090", "rtx-4060ti-16gb", "rtx-4070ti-super", "rtx-5080", "rx-7900xtx"]
)
def test_the_automatic_micro_batch_surely_fits(device: str) -> None:
    ask = {"model": "llama-3-8b", "device": device, "task": "qlora", "seq_len": 1024}
    found = estimate(resolution(ask, catalog()))
    assert found.verdict.status == "feasible"
    micro_batch = found.scenario.micro_batch
    if 2 * micro_batch * 1024 <= 8192:
        more = estimate(resolution({**ask, "micro_batch": 2 * micro_batch}, catalog()))
        assert more.memory.verdict != "fits"


@pytest.mark.parametrize(
    "ask",
    [
        {"model": "smollm2-135m", "device": "h100-sxm", "num_devices": 8, "task": "finetune"},
        {"model": "qwen3-0.6b", "device": "h100-sxm", "num_devices": 8, "task": "lora"},
        {"model": "llama-3-70b", "device": "h100-sxm", "num_devices": 256, "task": "pretrain"},
        {"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora"},
        {"model": "gemma-3-27b", "device": "rtx-3060", "task": "inference"},
        {"model": "llama-3-70b", "device": "h100-sxm", "num_devices": 8, "task": "inference", "quant": "fp8"},
    ],
    ids=str,
)
def test_saying_what_was_chosen_changes_nothing(ask: dict[str, object]) -> None:
    found = estimate(resolution(ask, catalog()))
    values = {name: entry["value"] for name, entry in inputs(found.scenario).items() if entry["value"] is not None}
    for name, value in values.items():
        # speed is quoted for a short chat until a length is named; a price said has no source
        if name in ("context", "prompt", "output", "price"):
            continue
        again = estimate(resolution({**ask, name: value}, catalog()))
        assert (again.memory, again.time, again.verdict.status) == (found.memory, found.time, found.verdict.status), (
            name
        )


def test_a_batch_is_not_walked_for_where_weights_and_states_alone_are_too_much() -> None:
    """What no other test asks for, so that nothing is kept from before."""
    asked = {"model": "gemma-3-27b", "device": "t4", "task": "finetune", "dropout": 0.123}
    walked = walked_layers.cache_info().misses
    settled = resolution(asked, catalog()).scenario
    assert settled.micro_batch == 1
    assert walked_layers.cache_info().misses == walked
    assert peak_bytes(settled).expected > usable_bytes(settled)
    assert walked_layers.cache_info().misses == walked + 1


def test_adapters_that_train_nothing_are_refused() -> None:
    asked = {"model": "mamba-2.8b", "device": "rtx-4090", "task": "lora"}
    assert resolution(asked, catalog()).scenario.lora_targets == "all-linear"
    with pytest.raises(UsageError, match="has no attention"):
        resolution({**asked, "lora_targets": "attention"}, catalog())


def test_ranks_beyond_the_matrices_are_refused() -> None:
    assert settled("llama-3-8b", "h100-sxm", task="lora", lora_rank=4096).scenario.lora_rank == 4096
    with pytest.raises(UsageError, match="--lora-rank 4097 is beyond the matrices of Llama 3 8B, which are 4096 wide"):
        settled("llama-3-8b", "h100-sxm", task="lora", lora_rank=4097)


def test_an_optimizer_that_an_engine_has_not_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(UsageError, match="--engine megatron has no --optimizer shampoo") as caught:
        settled("llama-3-8b", "8xh100-sxm", engine="megatron", optimizer="shampoo")
    assert "adamw, adamw-bf16, sgd, sgd-momentum, lion, muon; engines that take any: pytorch" in str(caught.value.hint)
    assert settled("llama-3-8b", "512xh100-sxm", optimizer="soap").scenario.engine == "pytorch"


@pytest.mark.parametrize(
    ("ask", "batch"),
    [
        ({"model": "gpt2", "device": "v100-pcie-32gb", "task": "inference"}, "concurrency"),
        ({"model": "t5-3b", "device": "8xh100-sxm", "tp": 1, "pp": 1, "task": "inference"}, "concurrency"),
        ({"model": "qwen3-30b-a3b", "device": "rtx-4070ti", "task": "inference"}, "concurrency"),
        ({"model": "llama-3-8b", "device": "8xrtx-4090", "task": "lora"}, "micro_batch"),
    ],
    ids=str,
)
def test_batches_of_a_question_answer_alike_in_any_order(ask: dict[str, object], batch: str) -> None:
    """What is found out in one of them and kept holds for the others too."""

    def answers(sizes: tuple[int, ...]) -> list[dict[str, object]]:
        for kept in (settle._settled, settle._for_requests, settle._for_batch):
            kept.cache_clear()
        return [bare_answer({**ask, batch: size}).to_dict() for size in sizes]

    sizes = (1, 2, 4, 8, 32, 600)
    assert answers(sizes) == answers(sizes[::-1])[::-1]


@pytest.mark.parametrize(
    ("model", "prompt", "context", "output"),
    (
        ("llama-3-8b", 6000, 6512, 512),
        ("llama-3-8b", 3900, 4412, 512),
        ("llama-3-8b", 100, 612, 512),
        ("gpt2", 1000, 1024, 24),
        ("gpt2", 1024, 1024, 1),
    ),
)
def test_a_prompt_leaves_room_for_an_answer(model: str, prompt: int, context: int, output: int) -> None:
    ask = {"model": model, "device": "h100-sxm", "task": "inference", "prompt": prompt}
    scenario = resolution(ask, catalog()).scenario
    assert (scenario.context, scenario.output) == (context, output)


@pytest.mark.parametrize(
    ("asked", "prompt", "context"),
    [({"output": 200}, 56, 256), ({}, 128, 256), ({"prompt": 256, "output": 100}, 256, 356)],
)
def test_a_request_of_a_short_context_has_tokens_to_write(asked: dict[str, int], prompt: int, context: int) -> None:
    ask = {"model": "ctrl", "device": "rtx-4090", "task": "inference", "rate": 5, **asked}
    scenario = resolution(ask, catalog()).scenario
    assert (scenario.prompt, scenario.context) == (prompt, context)


def test_a_prompt_beyond_learned_positions_is_named_as_it_was_written() -> None:
    with pytest.raises(UsageError, match="--prompt 1025 is beyond the 1024 learned positions"):
        resolution({"model": "gpt2", "device": "h100-sxm", "task": "inference", "prompt": 1025}, catalog())


def test_an_engine_trains_with_its_own_optimizer_and_types_where_nobody_says() -> None:
    asked = {"model": "llama-3.2-1b", "task": "finetune"}
    unsloth = resolution({**asked, "device": "rtx-4090", "engine": "unsloth"}, catalog()).scenario
    assert (unsloth.optimizer, unsloth.origins["optimizer"]) == ("adamw-8bit", "backend")
    mac = resolution({**asked, "device": "m4-max-40c", "engine": "unsloth"}, catalog()).scenario
    assert (mac.optimizer, mac.origins["optimizer"]) == ("adamw", "default")
    axolotl = resolution({**asked, "device": "rtx-4090", "engine": "axolotl"}, catalog()).scenario
    assert axolotl.precision == "bf16"
    divided = resolution({**asked, "device": "2xrtx-4090", "engine": "axolotl"}, catalog()).scenario
    assert divided.precision == "bf16-mixed"
    adapted = resolution({**asked, "task": "lora", "device": "rtx-4090", "engine": "axolotl"}, catalog()).scenario
    assert adapted.precision == "bf16-mixed"
    for macs in (1, 2):  # MLX widens nothing, on one Mac or on several
        taken = resolution({**asked, "device": "m4-max-40c", "num_devices": macs, "engine": "mlx"}, catalog()).scenario
        assert taken.precision == "bf16"


def test_a_name_of_two_trainers_is_the_one_that_divides_a_model_where_that_is_asked_for() -> None:
    asked = {"model": "qwen3-30b-a3b", "device": "8xh100-sxm", "task": "lora", "engine": "swift"}
    assert resolution(asked, catalog()).scenario.engine == "ms-swift"
    assert resolution({**asked, "ep": 8}, catalog()).scenario.engine == "megatron-swift"
    home = bare_answer({"model": "qwen3-8b", "device": "rtx-4090", "task": "qlora", "engine": "ms-swift"}, catalog())
    assert home.verdict.status == "feasible"
    assert (home.scenario.checkpointing, home.scenario.origins["checkpointing"]) == ("full", "backend")


@pytest.mark.parametrize("named", ["transformers", "hf", "peft", "accelerate", "fsdp", "optimum-habana"])
def test_a_library_that_serves_means_in_training_what_trains_with_it(named: str) -> None:
    device = "gaudi2" if named == "optimum-habana" else "h100-sxm"
    asked = {"model": "qwen3-8b", "device": device, "engine": named}
    assert resolution({**asked, "task": "lora"}, catalog()).scenario.engine == "pytorch"


def test_an_engine_that_is_known_for_serving_alone_says_so() -> None:
    with pytest.raises(UsageError, match="known here for serving alone, not for training"):
        resolution({"model": "qwen3-8b", "device": "h100-sxm", "engine": "vllm", "task": "lora"}, catalog())


def test_a_frozen_base_in_nvfp4_is_one_that_an_engine_has_kernels_of_its_own_for() -> None:
    asked = {"model": "qwen3-8b", "device": "rtx-5090", "task": "qlora", "quant": "nvfp4"}
    found = bare_answer({**asked, "engine": "axolotl"}, catalog())
    assert (found.verdict.status, found.scenario.quant) == ("feasible", "nvfp4")
    with pytest.raises(UsageError, match="nvfp4 contradicts --task qlora") as caught:
        resolution({**asked, "engine": "pytorch"}, catalog())
    assert "with such a base: --engine axolotl" in str(caught.value.hint)


@pytest.mark.parametrize("device", ["l40s", "h100-sxm", "b200", "mi300x"])
def test_code_with_sinks_runs_fused_where_it_is_told_to(device: str) -> None:
    asked = {"model": "gpt-oss-20b", "task": "lora", "device": device, "engine": "pytorch"}
    assert settled(**asked).scenario.attention == "eager"
    told = settled(**asked, attention="flash")
    assert told.scenario.attention == "flash" and "eager-only" not in codes(told)
