from __future__ import annotations

import pytest

from llmfeas.catalog.backend import Backend, Condition, EngineChoice, Support, default_engine, support
from llmfeas.catalog.store import catalog

CATALOG = catalog()
ENGINES = """pytorch megatron deepspeed maxtext mlx llm.c llama.cpp llama.cpp-vulkan llama.cpp-sycl vllm tensorrt-llm
    exllamav2 transformers"""
QUANTS = "none int8 nf4 q8_0 q6_k q5_k_m q4_k_m q4_k_s q4_0 q3_k_m q2_k awq-int4 gptq-int4 gptq-int8 mxfp4 fp8"


def status(device: str, technique: str) -> str:
    record = CATALOG.devices[device]
    backend = CATALOG.backends[record.backend]
    if technique in CATALOG.engines:
        return CATALOG.engines[technique].support(backend, record).status
    return support(backend, record, technique).status


@pytest.mark.parametrize(
    ("device", "technique", "expected"),
    [
        ("rtx-4070ti", "qlora", "supported"),
        ("tpu-v5e", "qlora", "unsupported"),
        ("tpu-v5e", "bf16-mixed", "supported"),
        ("t4", "bf16-mixed", "limited"),
        ("t4", "flash", "limited"),
        ("gtx-1080", "device", "limited"),
        ("gtx-1080", "int8", "unsupported"),
        ("k80", "device", "unsupported"),
        ("rtx-4090", "fp8-mixed", "supported"),
        ("rtx-3090", "fp8-mixed", "unsupported"),
        ("m1-max", "bf16-mixed", "limited"),
        ("m3-max-40c", "bf16-mixed", "supported"),
        ("m4-max-40c", "adamw-8bit", "unsupported"),
        ("mi300x", "qlora", "supported"),
        ("mi25", "device", "unsupported"),
        ("rx-6700xt", "device", "limited"),
        ("rx-7900xtx", "device", "supported"),
        ("rx-7900xtx", "vllm", "limited"),
        ("mi50-16gb", "qlora", "unsupported"),
        ("gaudi2", "q4_k_m", "unsupported"),
        ("ryzen-9-7950x", "pretrain", "limited"),
        ("arc-b580", "nf4", "supported"),
    ],
)
def test_what_really_works(device: str, technique: str, expected: str) -> None:
    assert status(device, technique) == expected


def test_limits_say_why_and_who_says_so() -> None:
    sources = CATALOG.raw("backends")["sources"]
    of_backends = [item for backend in CATALOG.backends.values() for item in backend.techniques.items()]
    for name, cases in [*of_backends, *(item for each in CATALOG.engines.values() for item in each.backends.items())]:
        for case in cases:
            assert case.status == "supported" or case.note or case.unverified or case.when != Condition(), name
            assert set(case.sources) <= set(sources), name


@pytest.mark.parametrize(
    "device", ["rtx-4070ti", "t4", "mi300x", "rx-6800", "tpu-v5e", "m1", "arc-a770-16gb", "epyc-9654", "gaudi3"]
)
def test_every_task_and_format_has_an_engine(device: str) -> None:
    record = CATALOG.devices[device]
    backend = CATALOG.backends[record.backend]
    for task in ("pretrain", "finetune", "lora", "qlora"):
        assert status(device, default_engine(backend, record, task)) != "unsupported"
    for quant in QUANTS.split():
        engine = default_engine(backend, record, "inference", quant)
        assert engine in ENGINES.split()
        assert status(device, engine) != "unsupported"


@pytest.mark.parametrize("backend", ["cuda", "rocm", "tpu", "metal", "xpu", "cpu", "hpu"])
def test_every_backend_answers_for_the_device_itself_and_has_devices(backend: str) -> None:
    assert "device" in CATALOG.backends[backend].techniques
    assert any(entry.backend == backend and entry.representative for entry in CATALOG.devices.values())


def test_where_an_engine_runs_is_said_by_its_own_record() -> None:
    for backend in CATALOG.backends.values():
        named = {name for names in backend.techniques for name in names.split()}
        assert not set(CATALOG.engines) & named, backend.id
        assert backend.refusal
    assert all(engine.backends for engine in CATALOG.engines.values())


def test_no_technique_is_named_twice() -> None:
    for backend in CATALOG.backends.values():
        named = [name for names in backend.techniques for name in names.split()]
        assert len(named) == len(set(named)), backend.id


def a_backend(**techniques: tuple[Support, ...]) -> Backend:
    return Backend(
        id="cuda",
        name="C",
        vendor="v",
        engines=(EngineChoice(engine="pytorch", tasks=("lora",)),),
        techniques=techniques,
    )


def test_the_first_case_that_holds_counts() -> None:
    old = Support(status="unsupported", when=Condition(below="8.0"))
    backend = a_backend(flash=(old, Support(status="supported", since="1.0")))
    assert support(backend, CATALOG.devices["t4"], "flash").status == "unsupported"
    assert support(backend, CATALOG.devices["h100-sxm"], "flash").since == "1.0"
    assert support(backend, CATALOG.devices["rtx-5090"], "flash").status == "supported"


def test_what_is_not_named_works() -> None:
    assert support(a_backend(), CATALOG.devices["t4"], "adamw").status == "supported"


def test_a_technique_must_answer_for_every_device() -> None:
    with pytest.raises(ValueError, match="must end with a case without"):
        a_backend(flash=(Support(status="limited", when=Condition(below="8.0")),)).check()


def test_a_task_without_engine_is_an_error_in_the_data() -> None:
    with pytest.raises(KeyError):
        default_engine(a_backend(), CATALOG.devices["t4"], "inference")


def test_an_engine_may_be_for_many_requests_only() -> None:
    card = CATALOG.devices["rtx-4090"]
    backend = CATALOG.backends["cuda"]
    assert default_engine(backend, card, "inference", "none", 4) == "llama.cpp"
    assert default_engine(backend, card, "inference", "none", 64) == "vllm"
    assert default_engine(backend, card, "inference", "q4_k_m", 64) == "llama.cpp"


def test_no_default_for_many_requests_is_unsupported() -> None:
    for device in CATALOG.devices.values():
        backend = CATALOG.backends[device.backend]
        for quant in QUANTS.split():
            few, many = (default_engine(backend, device, "inference", quant, n) for n in (1, 64))
            assert many == few or CATALOG.engines[many].support(backend, device).status != "unsupported"
