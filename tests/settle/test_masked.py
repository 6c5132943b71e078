"""An encoder that is pre-trained predicts masked tokens; one that is tuned has a few labels there."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.answer import bare_answer
from llmfeas.workload.parameters import parameters

ASK = {"device": "h100-sxm", "micro_batch": 8, "global_batch": 8, "seq_len": 512, "tokens": "1M"}


def logits_bytes(found: Estimate) -> float:
    return found.memory.components["logits_bytes"]


@pytest.mark.parametrize("model", ["bert-base", "albert-base-v2", "modernbert-base", "bge-m3", "embeddinggemma-300m"])
def test_logits_of_all_tokens_are_held_in_pretraining_alone(model: str) -> None:
    vocab = catalog().models[model].architecture.vocab
    pretrained, tuned = (bare_answer({**ASK, "model": model, "task": task}) for task in ("pretrain", "finetune"))
    assert logits_bytes(pretrained) >= 4 * vocab * 8 * 512
    assert logits_bytes(tuned) < 2**20
    assert pretrained.flops.model > tuned.flops.model + 5 * vocab * 1e6


def test_what_predicts_is_counted_as_the_class_has_it() -> None:
    """ModernBertForMaskedLM: a product, a norm and a bias a token beside the model (transformers 5.24)."""
    model = catalog().models["modernbert-base"]
    settled = bare_answer({**ASK, "model": "modernbert-base", "task": "pretrain"}).scenario.model
    hidden, vocab = model.architecture.hidden, model.architecture.vocab
    assert parameters(settled).total == parameters(model).total + hidden**2 + hidden + vocab
