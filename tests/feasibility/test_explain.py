"""The derivation names each figure of the screen and speaks of what is done, not of what is not."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.explain import explanation
from llmfeas.feasibility.result import Term
from llmfeas.settle import resolution
from llmfeas.timing import inference, training


def terms(**request: object) -> dict[str, Term]:
    asked = {"model": "llama-3-8b", "device": "rtx-4090", **request}
    return {term.quantity: term for term in explanation(estimate(resolution(asked, catalog())))}


def inputs(term: Term) -> dict[str, object]:
    return {each.name: each.value for each in term.inputs}


@pytest.mark.parametrize("more", [{}, {"quant": "q4_k_m"}, {"prompt": 512, "context": 2048}, {"num_devices": 4}])
def test_serving_is_derived_without_a_word_of_training(more: dict[str, object]) -> None:
    found = terms(task="inference", **more)
    said = " ".join(term.formula for term in found.values())
    assert not [word for word in ("backward", "checkpointing", "ZeRO", "optimizer") if word in said]
    for figure in ("decode_tokens_per_second", "prefill_tokens_per_second", "time_to_first_token_seconds"):
        assert found[f"time.{figure}"].value > 0


def test_parts_of_a_prompt_token_add_up_to_all_of_it() -> None:
    found = terms(task="inference", prompt=512, context=2048)
    shares = [term.share for name, term in found.items() if name.startswith("time.prefill.")]
    assert sum(share for share in shares if share is not None) == pytest.approx(1)


def test_a_given_share_of_the_peak_is_the_derivation() -> None:
    found = terms(task="finetune", mfu=0.4)
    assert not [name for name in found if name.startswith("time.step.")]
    assert inputs(found["time.step_seconds"]) == {"mfu": 0.4}


def test_the_network_stands_where_nodes_need_one() -> None:
    one, several = (terms(task="finetune", device="h100-sxm", num_devices=n)["time.step_seconds"] for n in (8, 64))
    assert "network" not in inputs(one)
    assert inputs(several)["network"] == 50.0


def test_adapters_are_not_said_to_have_the_gradients_of_all_weights() -> None:
    full, adapted = (terms(task=task)["flops.model"].formula for task in ("finetune", "lora"))
    assert full == "forward + 2 x forward, attention over the full square"
    assert adapted == "forward + gradients of activations and adapters, attention over the full square"


@pytest.mark.parametrize("ask", [{"task": "pretrain"}, {"task": "inference", "quant": "q4_k_m"}], ids=str)
def test_a_derivation_computes_no_time_again(ask: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its terms are those of the estimate, whose record keeps the parts."""
    found = estimate(resolution({"model": "gpt2", "device": "rtx-4090", **ask}, catalog()))
    for module in (inference, training):
        for name in ("step_parts", "decode_parts", "prefill_parts"):
            monkeypatch.setattr(module, name, None, raising=False)
    seconds = {term.quantity: term.value for term in explanation(found)}
    trained = isinstance(found.time, training.TrainingTime)
    kind, parts = ("step", found.time.parts) if trained else ("decode", found.time.decode_parts)  # type: ignore[union-attr]
    assert sum(parts.values()) > 0
    for name, value in parts.items():
        assert seconds.get(f"time.{kind}.{name}", 0.0) == value
