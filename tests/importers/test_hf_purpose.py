"""What a model is asked for: an embedding, a score of a pair, or an answer, as its files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.importers.hf.config import model_from_config
from llmfeas.workload.parameters import parameters

QWEN: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151669,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": True,
}
XLM_R: dict[str, Any] = {
    "architectures": ["XLMRobertaForSequenceClassification"],
    "model_type": "xlm-roberta",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "vocab_size": 250002,
    "id2label": {"0": "LABEL_0"},
}
LABELLED = {**QWEN, "architectures": ["Qwen3ForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
POOLS = [{"type": "sentence_transformers.models.Transformer"}, {"type": "sentence_transformers.models.Pooling"}]
SCORES = [{"type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}]


@pytest.mark.parametrize(
    ("config", "beside", "writes", "scored"),
    [
        (QWEN, {}, True, None),
        (QWEN, {"modules": POOLS}, False, None),
        (QWEN, {"modules": SCORES}, False, "tokens"),
        (QWEN, {"config_sentence_transformers": {"model_type": "CrossEncoder"}}, False, "tokens"),
        (QWEN, {"modules": "no list", "config_sentence_transformers": []}, True, None),
        (LABELLED, {}, False, None),  # a reward model has such a class too
        ({**LABELLED, "sentence_transformers": {"version": "4.1.0"}}, {}, False, "label"),
        (XLM_R, {}, False, "label"),
        ({**XLM_R, "id2label": {"0": "no", "1": "yes"}}, {}, False, None),
        ({**XLM_R, "architectures": ["XLMRobertaModel"]}, {}, False, None),
    ],
)
def test_files_say_what_a_model_is_asked_for(
    config: dict[str, Any], beside: dict[str, Any], writes: bool, scored: str | None, tmp_path: Path
) -> None:
    for name, content in {"config": config, **beside}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    found = model_from_config(tmp_path)
    assert found.architecture.writes is writes
    assert (None if found.reranker is None else found.reranker.by) == scored


def test_a_decoder_with_a_label_holds_its_row_in_place_of_the_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**LABELLED, "tie_word_embeddings": False}))
    assert parameters(model_from_config(tmp_path).architecture).total == 595_776_512 + 1024
