from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.planning.answer import bare_answer
from llmfeas.settle import resolution


def limits(device: str, **request: object) -> list[str]:
    answer = estimate(resolution({"model": "mistral-7b", "device": device, **request}, catalog()))
    return [reason.message.split(" on ")[0] for reason in answer.verdict.reasons if reason.code == "software-limited"]


@pytest.mark.parametrize(("device", "engine"), [("rx-6900xt", "llama.cpp"), ("t4", "vllm"), ("t4", "llama.cpp")])
def test_a_missing_library_is_no_limit_to_who_brings_attention_of_its_own(device: str, engine: str) -> None:
    assert "flash" not in limits(device, task="inference", engine=engine)


def test_it_is_one_to_who_takes_the_backends_kernels() -> None:
    assert "flash" in limits("t4", task="inference", engine="transformers")
    assert "flash" in limits("t4", task="qlora")


def test_quantized_weights_are_computed_on_in_whole_numbers_by_a_processor() -> None:
    assert "fp16" in limits("core-i5-12400", task="inference", precision="fp16")
    assert limits("core-i5-12400", task="inference", precision="fp16", quant="q4_k_m") == []


def test_a_dropped_card_still_runs_what_needs_none_of_what_dropped_it() -> None:
    def verdict(**request: object) -> str:
        asked = {"model": "gpt2", "device": "vega-64", "task": "inference", **request}
        return str(estimate(resolution(asked, catalog())).verdict.software)

    assert verdict(engine="llama.cpp-vulkan") != "unsupported"
    assert verdict(engine="transformers") == "unsupported"
    assert verdict(task="lora") == "unsupported"


def test_what_an_engine_does_not_run_is_said_by_estimate_and_launch_from_one_table() -> None:
    """LongCat has no decoder in MaxText and no name in llama.cpp; MaxText brings QLoRA to TPUs."""
    from llmfeas.errors import UsageError
    from llmfeas.planning.launch import launch, launcher

    ask = {"model": "longcat-flash", "device": "256xtpu-v5p", "task": "pretrain"}
    found = bare_answer({**ask, "engine": "maxtext"})
    assert found.verdict.software == "unsupported"
    assert (bare_answer(ask).scenario.engine, bare_answer(ask).verdict.software) == ("pytorch", "limited")
    with pytest.raises(UsageError, match="architecture"):
        launch(launcher("maxtext"), found.scenario)
    served = bare_answer({"model": "longcat-flash", "device": "m3-ultra", "task": "inference", "quant": "q4_k_m"})
    assert (served.scenario.engine, served.verdict.software) == ("llama.cpp", "unsupported")
    adapted = bare_answer({"model": "llama-3-8b", "device": "4xtpu-v5e", "task": "qlora", "micro_batch": 1})
    assert adapted.verdict.software == "supported"
    plain = bare_answer({"model": "llama-3-8b", "device": "4xtpu-v5e", "task": "qlora", "engine": "pytorch"})
    assert plain.verdict.software == "unsupported"


def test_an_engine_that_has_the_architecture_is_taken_before_the_usual_one() -> None:
    for device in ("epyc-9965", "rtx-4090"):
        found = bare_answer({"model": "longcat-flash-lite", "device": device, "task": "inference"})
        assert found.scenario.engine_record.runs(found.scenario.model.architecture)


def test_a_kind_of_model_that_an_engine_lacks_is_lacked_whatever_its_code() -> None:
    """NLLB's own code is no T5's; encoders write nothing that a trainer of chats could learn from."""
    for model in ("t5-base", "nllb-200-3.3b", "whisper-large-v3", "bert-base", "modernbert-base", "bge-m3"):
        asked = {"model": model, "device": "a100-80gb", "task": "finetune", "engine": "axolotl"}
        assert bare_answer(asked).verdict.software == "unsupported"
        usual = bare_answer({"model": model, "device": "m4-max-40c", "task": "finetune"})
        assert (usual.scenario.engine, usual.verdict.software) == ("pytorch", "limited")
    heard = {"model": "whisper-large-v3", "device": "a100-80gb"}
    assert bare_answer({**heard, "task": "finetune", "engine": "unsloth"}).verdict.software == "supported"
    assert bare_answer({**heard, "task": "inference", "engine": "vllm"}).verdict.software == "supported"


@pytest.mark.parametrize(("engine", "limited"), [("llama.cpp", False), ("ollama", False), ("vllm", True)])
def test_mxfp4_is_unpacked_by_those_without_kernels_in_whole_numbers(engine: str, limited: bool) -> None:
    asked = {"model": "gpt-oss-20b", "device": "rtx-3090", "task": "inference", "engine": engine}
    told = (reason.message for reason in bare_answer(asked).verdict.reasons)
    assert any("unpacks mxfp4" in text for text in told) == limited
