"""Engines that hold a model in 16 bits beside fp32 masters: no autocast, adapters too, and a step's own copies."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog, data_directory
from llmfeas.memory.training import TensorMemory, training_memory
from llmfeas.settle import resolution

QWEN = str(data_directory() / "measurements" / "configs" / "qwen-1.8b.json")


def tensors(**ask: object) -> TensorMemory:
    ask = {"device": "a100-sxm-80gb", "micro_batch": 1, "checkpointing": "full", **ask}
    return training_memory(resolution(ask, catalog()).scenario)


def test_an_optimizers_step_joins_gradients_and_widens_them() -> None:
    """16-bit weights and gradients, masters and two moments, a copy of the gradients and a wide one: 22 bytes."""
    found = tensors(model="llama-3.2-1b", task="finetune", engine="deepspeed", seq_len=256, global_batch=8)
    assert found.moment == "optimizer"
    assert found.bytes / 1_235_814_400 == pytest.approx(22, rel=0.01)


def test_two_ranks_join_half_of_them_each_and_stage_3_none() -> None:
    ask = {"model": "llama-3.2-1b", "task": "finetune", "engine": "deepspeed", "seq_len": 256, "global_batch": 8}
    two = tensors(**ask, num_devices=2, zero=2)
    assert two.components["workspace_bytes"] == pytest.approx(3 * 1_235_814_400, rel=0.01)
    three = tensors(**ask, num_devices=2, zero=3)
    assert three.components["workspace_bytes"] < 2 * 1_235_814_400


def test_a_bucket_of_gradients_is_made_on_one_device_too() -> None:
    ask = {"model": "llama-3.2-1b", "task": "lora", "engine": "deepspeed", "seq_len": 256}
    assert tensors(**ask, zero=2).bytes - tensors(**ask).bytes == pytest.approx(1e9)


def test_adapters_train_in_16_bits_with_masters() -> None:
    ask = {"model": "llama-3.2-1b", "task": "lora", "lora_rank": 64, "seq_len": 256, "precision": "bf16-mixed"}
    count = 45_088_768
    plain, cast = tensors(**ask, engine="pytorch"), tensors(**ask, engine="deepspeed")
    assert plain.components["weights_bytes"] - cast.components["weights_bytes"] == pytest.approx(2 * count, rel=1e-3)
    assert plain.components["optimizer_bytes"] == pytest.approx(8 * count, rel=1e-3)
    assert cast.components["optimizer_bytes"] == pytest.approx(12 * count, rel=1e-3)


def test_a_loss_in_the_type_of_the_logits_takes_8_bytes_each_without_autocast() -> None:
    """And under autocast 10 besides what passes: the log-softmax is made in fp32, of logits that stay in 16 bits."""
    ask = {"model": QWEN, "task": "qlora", "quant": "gptq-int4", "precision": "fp16-mixed"}

    def slope(engine: str) -> float:
        few, many = (tensors(**ask, engine=engine, seq_len=length).bytes for length in (4096, 8192))
        return (many - few) / 4096

    logit = 151936
    assert 6 < slope("deepspeed") / logit < 9
    assert 10 < slope("pytorch") / logit < 12
