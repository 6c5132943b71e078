from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.catalog.device import Device, Link, Rates
from llmfeas.catalog.parts import Experts, Mla, Window
from llmfeas.catalog.store import built_in, catalog
from llmfeas.feasibility.served_load import served_load
from llmfeas.model.sums import architecture_sums
from llmfeas.record import replace
from llmfeas.scenario import Origin, Scenario
from llmfeas.settle import resolution
from llmfeas.timing.inference import InferenceTime, inference_time
from llmfeas.timing.prefill import streamed_widths
from llmfeas.timing.regimes import decode_regime, interval
from llmfeas.timing.served import load_of

LLAMA = Model(
    id="llama-8b",
    name="Llama 8B",
    architecture=Architecture(layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256),
    context=8192,
)
WINDOWED = replace(LLAMA, architecture=replace(LLAMA.architecture, window=Window(size=512)))
LATENT = replace(
    LLAMA,
    architecture=replace(
        LLAMA.architecture,
        kv_heads=32,
        mla=Mla(kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64, v_head_dim=128),
    ),
)
MIXTURE = replace(
    LLAMA, architecture=replace(LLAMA.architecture, ffn=None, experts=Experts(count=8, top_k=2, width=14336))
)
CARD = Device(
    id="card",
    name="Card",
    backend="cuda",
    vendor="nvidia",
    kind="consumer",
    generation="ada",
    memory_gib=24,
    memory_type="GDDR6X",
    bandwidth_gb_per_s=1008,
    tflop_per_s=Rates(fp32=82.6, fp16_matrix=330.3, fp16_matrix_fp32=165.2, bf16=165.2, int8=660.6),
    links=(Link(kind="pcie", gb_per_s=31.5),),
)


def scenario(**changes: object) -> Scenario:
    origins: dict[str, Origin] = dict.fromkeys(changes, "given")
    start = Scenario(
        tables=catalog().tables,
        model=LLAMA,
        device=CARD,
        memory_bytes=24e9,
        host_memory_bytes=32e9,
        task="inference",
        precision="fp16",
        quant="q4_k_m",
        context=4096,
        output=512,
        engine="llama.cpp",
        origins=origins,
    )
    return replace(start, **changes)  # type: ignore[arg-type]


def decode(found: InferenceTime) -> float:
    return found.decode_tokens_per_second.expected


def test_a_short_chat_is_the_default() -> None:
    found = inference_time(scenario())
    assert found.at_cached_tokens == 256
    assert 130 < decode(found) < 180  # published: 163 tokens/s with an RTX 4090 (2026), 127 with builds of 2024
    assert found.decode_bound_by == "bandwidth"
    assert found.prefill_bound_by == "compute"


def test_parts_add_up() -> None:
    found = inference_time(scenario())
    assert sum(found.decode_parts.values()) == pytest.approx(1 / decode(found))
    assert sum(found.prefill_parts.values()) == pytest.approx(1 / found.prefill_tokens_per_second.expected)


@given(st.integers(1, 60))
def test_a_longer_cache_is_slower(thousands: int) -> None:
    near = inference_time(scenario(prompt=thousands * 1000, context=thousands * 1000 + 100))
    far = inference_time(scenario(prompt=thousands * 2000, context=thousands * 2000 + 100))
    assert decode(far) < decode(near)


def test_windows_and_latents_read_less_cache() -> None:
    long = {"prompt": 30000, "context": 32000}
    whole = inference_time(scenario(**long)).decode_parts["cache"]
    assert inference_time(scenario(model=WINDOWED, **long)).decode_parts["cache"] < whole / 30
    served = {**long, "engine": "vllm", "quant": "none"}
    whole = inference_time(scenario(**served)).decode_parts["cache"]
    assert inference_time(scenario(model=LATENT, **served)).decode_parts["cache"] < whole / 3


def test_experts_are_read_as_far_as_a_batch_touches_them() -> None:
    alone = inference_time(scenario(model=MIXTURE, engine="vllm", quant="none")).decode_parts["weights"]
    many = inference_time(scenario(model=MIXTURE, engine="vllm", quant="none", concurrency=64)).decode_parts["weights"]
    assert 2.5 * alone < many < 4.5 * alone


@given(st.integers(2, 256))
def test_a_batch_serves_more_and_each_user_less(concurrency: int) -> None:
    alone, many = (
        inference_time(scenario(engine="vllm")),
        inference_time(scenario(engine="vllm", concurrency=concurrency)),
    )
    assert decode(many) > decode(alone)
    assert many.tokens_per_second_per_sequence.expected <= alone.tokens_per_second_per_sequence.expected


def test_a_request_writes_its_answer_over_its_first_token_and_the_rest() -> None:
    without = inference_time(scenario(engine="vllm", quant="none", prompt=0, context=512, output=512))
    assert without.output_tokens_per_second.expected == pytest.approx(decode(without))
    found = inference_time(scenario(engine="vllm", quant="none", prompt=4096, context=4608, output=512))
    first, each = found.time_to_first_token_seconds.expected, 1 / decode(found)
    assert found.output_tokens_per_second.expected == pytest.approx(512 / (first + 511 * each))
    assert found.output_tokens_per_second.low < found.output_tokens_per_second.expected


def test_decoding_is_that_of_all_users_together() -> None:
    found = inference_time(scenario(engine="vllm", quant="none", concurrency=32, prompt=4096, context=4608))
    assert decode(found) == pytest.approx(32 * found.tokens_per_second_per_sequence.expected)


def test_layers_on_the_host_rule_the_speed() -> None:
    device, half = inference_time(scenario()), inference_time(scenario(gpu_layers=16))
    assert decode(half) < decode(device) / 3
    assert half.decode_bound_by == "host"
    assert half.prefill_tokens_per_second.expected < device.prefill_tokens_per_second.expected
    assert decode(inference_time(scenario(gpu_layers=32))) == pytest.approx(decode(device))


PCIE_BYTES_PER_S = 0.7 * 31.5e9


@pytest.mark.parametrize("users", [2, 8, 31, 32, 64, 300])
def test_a_host_multiplies_for_each_of_its_users_or_sends_its_layers_to_the_device(users: int) -> None:
    ask: dict[str, object] = {"model": "llama-3.3-70b", "device": "rx-6600xt", "task": "inference", "gpu_layers": 0}
    ask |= {"engine": "llama.cpp", "quant": "q4_k_m", "host_memory": "512GiB"}
    alone, together = (
        inference_time(resolution({**ask, "concurrency": count, "context": 512, "prompt": 100}, catalog()).scenario)
        for count in (1, users)
    )
    assert together.decode_parts["host_layers"] > alone.decode_parts["host_layers"]
    written, read = together.decode_tokens_per_second.expected, together.prefill_tokens_per_second.expected
    assert written <= 2 * max(read, alone.decode_tokens_per_second.expected)


def streamed(**changes: object) -> Scenario:
    return scenario(engine="vllm", quant="none", offload="all", **changes)


def test_offloaded_weights_cross_pcie_for_each_token() -> None:
    found = inference_time(streamed())
    layers = 2 * 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    assert found.decode_parts["offload"] == pytest.approx(layers / PCIE_BYTES_PER_S, rel=1e-3)
    assert decode(found) < PCIE_BYTES_PER_S / layers
    assert found.decode_bound_by == found.prefill_bound_by == "communication"
    assert inference_time(streamed(concurrency=16)).decode_parts["offload"] == found.decode_parts["offload"]


def test_offloaded_weights_cross_pcie_for_each_pass_over_a_prompt() -> None:
    short, once, twice = (
        inference_time(streamed(prompt=length)).prefill_parts["offload"] * length for length in (64, 2048, 4096)
    )
    assert short == pytest.approx(once)
    assert twice == pytest.approx(2 * once)
    whole = streamed(prompt=4096)
    eager = inference_time(replace(whole, engine="transformers")).prefill_parts["offload"] * 4096
    assert eager == pytest.approx(once)
    assert inference_time(whole).time_to_first_token_seconds.expected > twice


def test_prompts_of_a_service_wait_for_offloaded_weights_too() -> None:
    asked = {"concurrency": 32, "prompt": 4096, "context": 4608}
    seconds = 32 * 512 / served_load(streamed(**asked, output=512)).output_tokens_per_second.expected
    crossings = inference_time(streamed(**asked)).decode_parts["offload"] * (512 + 32 * 4096 / 2048)
    assert seconds > 0.99 * crossings, "a pass that reads prompts carries tokens of those who decode"


def test_offloaded_experts_cross_as_far_as_a_batch_touches_them() -> None:
    alone, many = (inference_time(streamed(model=MIXTURE, concurrency=n)).decode_parts["offload"] for n in (1, 64))
    assert 2.5 * alone < many < 4.5 * alone


def test_several_devices_share_the_crossing_and_the_memory_of_the_host() -> None:
    one, two, eight = (
        inference_time(streamed(num_devices=n, devices_per_node=8, tp=n)).decode_parts["offload"] for n in (1, 2, 8)
    )
    assert two == pytest.approx(one / 2)
    assert one / 8 < eight < two


def test_layer_split_is_as_fast_as_one_card_and_tensor_parallel_faster() -> None:
    one = decode(inference_time(scenario()))
    assert decode(inference_time(scenario(num_devices=4, pp=4))) == pytest.approx(one)
    assert decode(inference_time(scenario(num_devices=4, tp=4, engine="exllamav2"))) != pytest.approx(one)


@pytest.mark.parametrize("model", [LLAMA, MIXTURE])
def test_ranks_of_a_server_hold_the_stream_whole(model: Model) -> None:
    """They share the products, but each norms and adds whole rows, and sends whole ones to experts."""
    server = {"engine": "vllm", "quant": "none", "prompt": 2000, "context": 2100}
    one, four = (
        inference_time(scenario(model=model, num_devices=n, tp=n, **server)).prefill_parts["streaming"] for n in (1, 4)
    )
    assert one / 4 < four / 1.2 < one
    shared, held = streamed_widths(scenario(model=model))
    assert (shared, held) == (architecture_sums(model.architecture).stream_width, 0.0)


def test_first_token_waits_for_the_prompt() -> None:
    found = inference_time(scenario(prompt=2000, context=2100))
    reading = 2000 / found.prefill_tokens_per_second.expected
    assert found.time_to_first_token_seconds.expected == pytest.approx(reading + 1 / decode(found))


def test_what_stands_behind_a_range_is_said() -> None:
    cpu = replace(CARD, backend="cpu", kind="cpu", generation="zen5", memory_type="DDR5", links=())
    found = [inference_time(scenario(device=each)).evidence for each in (cpu, replace(CARD, backend="tpu", links=()))]
    assert found == [("enough", "llama.cpp-cpu"), ("none", "llama.cpp-tpu")]


def test_four_bits_cost_eager_code_more_with_two_scales_than_with_one() -> None:
    steps = [
        sum(inference_time(scenario(engine="transformers", quant=quant)).decode_parts.values())
        for quant in ("nf4-single", "nf4")
    ]
    assert 1.02 * steps[0] < steps[1] < 1.5 * steps[0]


def test_graphics_that_share_a_chip_read_prompts_at_a_smaller_share_of_their_peak() -> None:
    card = replace(CARD, backend="rocm", vendor="amd", generation="rdna3", links=())
    rates = [
        inference_time(scenario(device=replace(card, kind=kind), engine="llama.cpp")).prefill_parts["matrix"]
        for kind in ("consumer", "apu")
    ]
    assert 1.1 * rates[0] < rates[1]


def test_few_bits_by_another_name_are_unpacked_as_long() -> None:
    parts = [inference_time(scenario(engine="llama.cpp", quant=quant)).decode_parts for quant in ("q2_k", "ud-q2_k_xl")]
    assert parts[1]["compute"] > 0.95 * parts[0]["compute"]


def test_experts_that_meet_few_tokens_or_are_narrow_read_prompts_at_a_smaller_share() -> None:
    many, narrow = Experts(count=64, top_k=4, width=7168), Experts(count=64, top_k=32, width=896)

    def share(experts: Experts, **more: object) -> float:
        model = replace(LLAMA, architecture=replace(LLAMA.architecture, ffn=None, experts=experts))
        asked = {"quant": "q4_k_m", "engine": "llama.cpp", "prompt": 4096, **more}
        return inference_time(scenario(model=model, **asked)).prefill_parts["matrix"]

    assert share(many, ubatch=2048) < share(many, ubatch=512) < share(many, ubatch=128)
    assert share(many, ubatch=16384) < share(narrow, ubatch=16384)  # both meet thousands of tokens, of 28672 in all


@pytest.mark.parametrize(
    ("device", "engine", "sequences", "regime", "evidence"),
    [
        ("h100-sxm", "vllm", 1, "server", "enough"),
        ("mi300x", "vllm", 1, "server-rocm", "enough"),
        ("mi300x", "vllm", 32, "server-rocm", "enough"),
        ("gaudi2", "vllm", 1, "server-hpu", "single-source"),
        ("max-1550", "vllm", 1, "server-xpu", "none"),
        ("rtx-4090", "llama.cpp", 1, "llama.cpp-cuda", "enough"),
        ("rtx-4090", "llama.cpp", 4, "llama.cpp-batched", "none"),
        ("m2-ultra", "mlx", 1, "mlx", "enough"),
        ("epyc-9654", "transformers", 1, "eager-cpu", "none"),
    ],
)
def test_speeds_of_other_software_stand_behind_no_range(
    device: str, engine: str, sequences: int, regime: str, evidence: str
) -> None:
    catalog = built_in()
    speed = catalog.tables.engine(engine).serving.speed
    kind = decode_regime(catalog.devices[device], speed, sequences > 1, 1)
    assert (kind, interval(catalog.tables.efficiency, "decode", kind, 0).evidence) == (regime, evidence)


@pytest.mark.parametrize(
    ("model", "device", "quant", "measured"),
    [
        ("llama-2-7b", "p40", "q4_0", 934.74),
        ("llama-2-7b", "p40", "q5_0", 880.04),
        ("qwen3-8b", "gtx-1080ti", "q1_0", 1007.8),
        ("llama-3-8b", "v100-pcie-32gb", "q5_0", 3326.19),
    ],
)
def test_cards_without_integer_matrix_units_read_quantized_prompts_as_published(
    model: str, device: str, quant: str, measured: float
) -> None:
    """A Pascal card multiplies four 8-bit integers at once, a V100 unpacks to 16 bits (older_cards.yaml)."""
    ask = {"model": model, "device": device, "task": "inference", "engine": "llama.cpp", "prompt": 512, "context": 512}
    found = inference_time(resolution({**ask, "quant": quant}, catalog()).scenario)
    assert found.prefill_tokens_per_second.expected == pytest.approx(measured, rel=0.25)


def written_by(device: str, **changed: object) -> float:
    """Tokens a second of a processor that writes packed weights."""
    found = resolution({"model": "llama-3.2-1b", "device": device, "task": "inference", "quant": "q4_k_m"}, catalog())
    other = replace(found.scenario.device, **changed)
    return inference_time(replace(found.scenario, device=other)).decode_tokens_per_second.expected


def test_packed_weights_are_multiplied_in_eight_bits_where_vectors_do_so() -> None:
    """Matrix units do not count: they wait for many tokens."""
    rates = (Rates(fp32=0.154, int8=0.154), Rates(fp32=0.154, int8=0.614), Rates(fp32=0.154, bf16=4.9, int8=9.8))
    slow, vectors, matrices = (written_by("raspberry-pi-5", tflop_per_s=each) for each in rates)
    assert 1.3 * slow < vectors == pytest.approx(matrices, rel=0.01)


def test_more_cores_wait_longer_for_each_other() -> None:
    few, many = (written_by("epyc-9554", cores=cores) for cores in (16, 192))
    assert many < 0.9 * few


def test_answers_of_one_token_take_time_under_a_load() -> None:
    """Nothing is decoded: how long prompts take is asked between none and the length that they have."""
    asked = {"task": "inference", "prompt": 0, "output": 1, "context": 256, "concurrency": 16, "rate": 0.5}
    for device, engine in (("core-i7-14700hx", "transformers"), ("h100-sxm", "vllm")):
        found = served_load(
            resolution({"model": "laguna-m.1", "device": device, "engine": engine, **asked}, catalog()).scenario
        )
        assert found.largest_requests_per_second.expected > 0.0


def test_stages_of_a_pipeline_read_one_prompt_no_sooner_than_a_device_alone() -> None:
    """One pass carries it through all stages; what the others have to do meanwhile waits for it."""
    asked = {"model": "llama-3.1-8b", "device": "h100-sxm", "engine": "vllm", "prompt": 4000, "output": 100}
    alone, staged = (
        load_of(resolution({**asked, "num_devices": stages, "pp": stages, "concurrency": 1}, catalog()).scenario, 1, 1)
        for stages in (1, 4)
    )
    assert staged.ttft_seconds.p50 > 0.9 * alone.ttft_seconds.p50
