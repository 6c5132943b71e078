"""Models that score pairs: what is said of them, and how engines are told."""

from __future__ import annotations

import json

import pytest
from launches import contents, launched, value, words

from llmfeas import estimate
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.render.pages.estimate import report

SERVED = {"device": "l4", "task": "inference", "precision": "fp16"}
RERANKERS = [name for name, model in catalog().models.items() if model.reranker is not None]


@pytest.mark.parametrize("model", RERANKERS)
def test_a_model_that_scores_pairs_is_called_so(model: str) -> None:
    found = estimate(model=model, device="h100-sxm", task="inference").to_dict()
    assert found["result"]["reads"] == "pairs"
    assert report(found).context[0] == "reranking"


def test_others_make_vectors_or_write() -> None:
    read = estimate(model="bge-m3", **SERVED).to_dict()
    assert read["result"]["reads"] == "texts"
    assert report(read).context[0] == "embedding"
    assert "reads" not in estimate(model="qwen3-0.6b", **SERVED).to_dict()["result"]
    assert estimate(model="bge-reranker-base", device="l4").uses[0].label == "reranking"


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("bge-reranker-v2-m3", None), ("qwen3-reranker-0.6b", ["no", "yes"]), ("mxbai-rerank-base-v2", ["0", "1"])],
)
def test_sentence_transformers_scores_pairs_with_a_cross_encoder(model: str, tokens: list[str] | None) -> None:
    launch = launched("sentence-transformers", **SERVED, model=model)
    recipe = contents(launch)["recipe.json"]
    program = next(file.text for file in launch.files if file.name == "score.py")
    assert "CrossEncoder(" in program
    assert "SentenceTransformer(" not in program
    assert (recipe["data"]["columns"], recipe["tokens"]) == (["query", "text"], tokens)


@pytest.mark.parametrize("adapters", ["none", "lora"])
@pytest.mark.parametrize(("model", "kind"), [("bge-reranker-v2-m3", "SEQ_CLS"), ("qwen3-reranker-0.6b", "CAUSAL_LM")])
def test_pairs_are_learned_by_its_trainer_for_them(model: str, kind: str, adapters: str) -> None:
    asked = {"device": "l4", "task": "rerank", "model": model, "adapters": adapters}
    launch = launched("sentence-transformers", **asked)
    recipe = contents(launch)["recipe.json"]
    assert "CrossEncoderTrainer(" in next(file.text for file in launch.files if file.name == "rerank.py")
    assert recipe["loss"] == {"class": "BinaryCrossEntropyLoss"}
    assert recipe["data"]["columns"] == ["query", "text", "label"]
    assert (recipe["lora"] or {"task_type": kind})["task_type"] == kind


def test_vllm_is_told_the_class_and_the_tokens_of_a_decoder() -> None:
    launch = launched("vllm", **SERVED, model="qwen3-reranker-0.6b")
    assert value(launch, "--runner") == "pooling"
    assert json.loads(str(value(launch, "--hf-overrides"))) == {
        "architectures": ["Qwen3ForSequenceClassification"],
        "classifier_from_token": ["no", "yes"],
        "method": "from_2_way_softmax",
    }
    assert any("--chat-template" in note for note in launch.notes)
    assert "--hf-overrides" not in words(launched("vllm", **SERVED, model="bge-reranker-v2-m3"))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp", "text-embeddings-inference", "infinity"])
def test_servers_say_how_pairs_are_asked(engine: str) -> None:
    asked = {**SERVED, "attention": "flash"} if engine == "sglang" else SERVED
    launch = launched(engine, **asked, model="bge-reranker-v2-m3")
    assert any("/rerank" in note for note in launch.notes)


def test_llama_cpp_and_sglang_know_scores_from_vectors() -> None:
    scored, vectors = (words(launched("llama.cpp", **SERVED, model=name)) for name in ("bge-reranker-base", "bge-m3"))
    assert "--reranking" in scored
    assert "--embeddings" not in scored
    assert "--embeddings" in vectors
    assert "--is-embedding" in words(launched("sglang", **SERVED, model="bge-reranker-base"))
    assert "--is-embedding" not in words(launched("sglang", **SERVED, model="qwen3-reranker-0.6b"))


@pytest.mark.parametrize("engine", ["text-embeddings-inference", "infinity"])
def test_servers_of_encoders_refuse_decoders_that_score(engine: str) -> None:
    with pytest.raises(UsageError, match="label of an encoder"):
        launched(engine, **SERVED, model="qwen3-reranker-0.6b")


def test_a_list_of_texts_in_one_sequence_is_no_pair() -> None:
    with pytest.raises(UsageError, match="one sequence"):
        launched("sentence-transformers", **SERVED, model="jina-reranker-v3")


def test_a_decoder_projects_one_token_of_each_pair_and_an_encoder_none() -> None:
    one, all_ = (
        estimate(model="qwen3-0.6b", device="h100-sxm", task=task, tokens="10M", seq_len=512, micro_batch=4)
        for task in ("rerank", "finetune")
    )
    head = 2 * 151936 * 1024 * 10e6
    assert all_.flops.model - one.flops.model == pytest.approx(3 * head * 511 / 512)  # type: ignore[operator]
    assert one.memory.peak_bytes.expected < all_.memory.peak_bytes.expected
