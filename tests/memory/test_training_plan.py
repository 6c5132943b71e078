from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.memory import training
from llmfeas.planning.answer import bare_answer
from llmfeas.settle import resolution

FAMILIES = {model.architecture.implementation: model.id for model in catalog().models.values()}


@pytest.mark.parametrize("engine", ["pytorch", "pytorch-compile", "pytorch-liger", "unsloth", "megatron"])
@pytest.mark.parametrize("model", sorted(FAMILIES.values()))
def test_every_family_needs_a_sane_amount_under_every_engine(model: str, engine: str) -> None:
    for asked in ({"task": "finetune"}, {"task": "lora", "checkpointing": "none", "attention": "eager"}):
        length = min(256, catalog().models[model].context)
        found = bare_answer({"model": model, "device": "h200", "engine": engine, "seq_len": length, **asked}, catalog())
        weights = 1.9 * found.parameters.total
        assert weights < found.memory.peak_bytes.expected < 40 * weights + 2e12


DEVICES = (
    "rtx-4090",
    "t4",
    "v100-sxm2-32gb",
    "rx-7900xtx",
    "arc-b580",
    "m4-max-40c",
    "tpu-v5e",
    "gaudi2",
    "ryzen-9-7950x",
)


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(DEVICES).map(lambda names: names[:3]),
    st.sampled_from(("gpt2", "llama-3.2-1b", "qwen3-0.6b", "gemma-2-2b", "smollm2-135m")),
    st.sampled_from(("pretrain", "finetune", "lora", "dpo")),
    st.sampled_from(("fp32", "bf16-mixed", "fp16-mixed")),
    st.sampled_from((0, 0.1)),
)
def test_a_plan_is_the_same_whatever_was_planned_before(
    devices: list[str], model: str, task: str, precision: str, dropout: float
) -> None:
    more = {"model": model, "task": task, "precision": precision, "dropout": dropout, "micro_batch": 2}
    for name in devices:
        settled = resolution({**more, "device": name}, catalog()).scenario
        sizes = settled.sequences_together, -(-settled.pass_tokens // settled.cp)
        assert training.training_memory(settled) == training._counted(training._planned(settled), *sizes)


@pytest.mark.parametrize("engine", ["trl", "litgpt", "pytorch"])
def test_batches_planned_before_decide_no_program(engine: str) -> None:
    """TRL's loss runs in one tile up to 4096 tokens of text, litgpt's leaves the last logits of one sequence alone."""
    ask = {"model": "llama-3.2-1b", "device": "h100-sxm", "task": "finetune", "engine": engine, "seq_len": 1024}
    batches, found = (1, 2, 8), []
    for order in (batches, batches[::-1]):
        training._plans.clear()
        memory = {each: resolution({**ask, "micro_batch": each}, catalog()).scenario for each in order}
        found.append({each: training.training_memory(memory[each]).components for each in order})
        for scenario in memory.values():
            scenario.shared.clear()
    assert found[0] == found[1]
