"""Cut Cross Entropy: no logits, in forward or in backward."""

from __future__ import annotations

from llmfeas.catalog.store import catalog
from llmfeas.memory.training import TensorMemory, training_memory
from llmfeas.planning.answer import bare_answer


def memory(**asked: object) -> TensorMemory:
    asked = {"model": "llama-3-8b", "device": "h100-sxm", "task": "qlora", "micro_batch": 2, "seq_len": 2048, **asked}
    return training_memory(bare_answer(asked, catalog()).scenario)


def test_no_logits_are_held() -> None:
    public, cut = memory(), memory(engine="pytorch-cce")
    assert public.components["logits_bytes"] > 12 * 2 * 2047 * 128256 * 0.99
    assert cut.components["logits_bytes"] == 0
    assert cut.components["weights_bytes"] == public.components["weights_bytes"]
    assert cut.bytes < public.bytes - 5e9


def test_a_head_that_trains_gets_its_gradient() -> None:
    asked = {"model": "qwen2.5-0.5b", "task": "finetune", "checkpointing": "full"}
    assert memory(**asked, engine="axolotl-cce").bytes < memory(**asked).bytes
