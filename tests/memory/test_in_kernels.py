"""What kernels of GPUs write out beside tensors where attention is written out."""

from __future__ import annotations

from llmfeas.catalog.store import catalog
from llmfeas.memory.peak import memory
from llmfeas.memory.training import TensorMemory, training_memory
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution

SCORES = 32 * 2048**2
"""Of a layer of TinyLlama for one sequence."""
ASKED = {"model": "tinyllama-1.1b", "task": "lora", "engine": "pytorch", "lora_rank": 32, "lora_targets": "attention"}
STEP = {"seq_len": 2048, "micro_batch": 2, "global_batch": 2, "checkpointing": "full", "transformers": "5"}


def settled(**asked: object) -> Scenario:
    return resolution({**ASKED, **STEP, "device": "t4", "precision": "fp16", **asked}, catalog()).scenario


def counted(**asked: object) -> TensorMemory:
    return training_memory(settled(**asked))


def test_backward_of_softmax_writes_out_a_layers_scores_in_fp32() -> None:
    """On a T4, 4 sequences of 1024 and 2 of 2048 took as much more than fused kernels (fitcheck 0.3.1)."""
    assert counted(attention="eager").kernel_bytes == 2 * SCORES * 4
    assert counted(attention="flash").kernel_bytes == 0.0


def test_it_is_no_tensor_but_it_is_there() -> None:
    asked = {"attention": "eager", "device": "rtx-3090", "precision": "bf16"}
    written = memory(settled(**asked)).memory
    fused = memory(settled(**asked | {"attention": "flash"})).memory
    more = written.components["runtime_bytes"] - fused.components["runtime_bytes"]
    assert more >= 2 * SCORES * 4


def test_processors_write_none() -> None:
    assert counted(attention="eager", device="xeon-w3-2435", precision="bf16").kernel_bytes == 0.0


def test_a_softmax_of_fp16_makes_no_copy_in_fp32() -> None:
    """A measured peak with scores in fp16: 6.616e9 bytes less what its loop holds of logits, 0.262e9."""
    half, brain = (counted(attention="eager", precision=each, device="rtx-3090") for each in ("fp16", "bf16"))
    assert half.bytes + half.kernel_bytes < brain.bytes + brain.kernel_bytes
    assert abs(half.bytes + half.kernel_bytes - (6.937e9 - 0.262e9)) < 0.01 * 6.937e9
