"""A line of a sweep is the envelope, to the letter, whatever was answered before it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from llmfeas.errors import UsageError
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.estimate import report
from llmfeas.render.pages.estimate_line import estimate_line
from llmfeas.settle import resolving as settle

MODELS = ("gpt2", "llama-3-8b", "mixtral-8x7b", "gpt-oss-20b", "phi-3-mini", "qwen3-next-80b-a3b", "gemma-2-9b")
DEVICES = ("rtx-4090", "gtx-1060-6gb", "m2-ultra", "8xh100-sxm", "4xmi300x", "kaggle-2xt4", "tpu-v5e")
TRAINED = {
    "micro_batch": st.sampled_from((1, 2, 3, 64, "8")),
    "global_batch": st.sampled_from((1, 8, 100, "4k")),
    "tokens": st.sampled_from(("10B", 10**9, 1e9)),
    "seq_len": st.sampled_from((256, 1024)),
    "optimizer": st.sampled_from(("adamw-8bit", "muon")),
    "checkpointing": st.sampled_from(("full", "selective")),
    "pp": st.sampled_from((1, 2)),
    "tp": st.sampled_from((1, 2)),
    "zero": st.sampled_from((0, 3)),
    "deadline": st.just("30d"),
    "budget": st.just(100),
}
SERVED = {
    "concurrency": st.sampled_from((1, 2, 16, "64")),
    "prompt": st.sampled_from((0, 512)),
    "context": st.sampled_from((1024, 4096)),
    "quant": st.sampled_from(("q4_k_m", "int8")),
}
COMMON = {"price": st.sampled_from((1, 1.0, 2.5)), "memory": st.just("40GiB"), "micro_batch": st.just(2)}


def requests(tasks: tuple[str, ...], more: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    question = {"model": st.sampled_from(MODELS), "device": st.sampled_from(DEVICES), "task": st.sampled_from(tasks)}
    return st.fixed_dictionaries(question, optional={**COMMON, **more})


REQUESTS = requests(("pretrain", "finetune", "lora", "qlora"), TRAINED) | requests(("inference",), SERVED)


def forget() -> None:
    settle._settled.cache_clear()
    settle._for_batch.cache_clear()


@settings(max_examples=50)
@given(REQUESTS, st.sampled_from((1, 2, 5, 32)), st.sampled_from((None, 1, 2.5, "a\u2028b%s", {"x": [1]})))
def test_a_line_is_the_envelope(request: dict[str, Any], other: int, id_: object) -> None:
    """Another batch is asked first, so that what both share was kept; then nothing is kept."""
    batch = "concurrency" if request["task"] == "inference" else "micro_batch"
    try:
        bare_answer({**request, batch: other})
        line = estimate_line(id_, bare_answer(request))
    except UsageError:
        assume(False)
    forget()
    plain = {"id": id_, **bare_answer(request).to_dict()}
    assert line == json.dumps(plain, separators=(",", ":")) + "\n"


def test_texts_of_the_catalog_and_of_users_are_written_safely(tmp_path: Any) -> None:
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 128,
        "vocab_size": 1000,
    }
    folder = tmp_path / 'odd "name" %s é'
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = bare_answer({"model": str(folder), "device": "rtx-4090", "micro_batch": 2})
    assert json.loads(estimate_line(1, found)) == {"id": 1, **found.to_dict()}


def test_a_file_is_read_again_for_each_request(tmp_path: Any) -> None:
    source = tmp_path / "config.json"
    request = {"model": str(source), "device": "rtx-4090"}
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 128, "vocab_size": 1000}
    layers = []
    for count in (2, 3):
        source.write_text(json.dumps({**config, "n_layer": count}), encoding="utf-8")
        layers.append(bare_answer(request).scenario.model.architecture.layers)
    assert layers == [2, 3]


def test_a_rung_that_another_engine_serves_says_which() -> None:
    """On a T4 vLLM serves 16 and 4 bits, llama.cpp 8: sizes of two engines do not compare."""
    found = answer({"model": "llama-3.1-8b", "device": "kaggle-2xt4", "task": "inference"}).to_dict()
    others = {rung["engine"] for rung in found["result"]["ladder"] if rung["task"] == "inference"} - {"vllm"}
    screen = " ".join(rendered(report(found), 100).split())
    assert others and all(f"({engine})" in screen for engine in others)
