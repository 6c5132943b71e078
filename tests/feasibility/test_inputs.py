"""The `inputs` of an answer are a request: asked again, they give the same answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError, UsageError
from llmfeas.options import TASKS
from llmfeas.planning.answer import bare_answer

KNOWN = catalog()

EXTRAS: dict[str, list[object]] = {
    "num_devices": [2, 8, 64, 128],
    "price": [1.5],
    "electricity": [0.3],
    "pue": [1.2],
    "deadline": ["30d"],
    "budget": [500],
    "memory": ["80GiB"],
    "host_memory": ["64GiB"],
    "mtbf": ["20000h"],
    "storage": [2.5],
    "network": [12.5],
    "micro_batch": [1, 2],
    "global_batch": [1, 64],
    "checkpointing": ["full"],
    "attention": ["eager", "flash"],
    "dropout": [0, 0.1],
    "mfu": [0.4],
    "tp": [2],
    "interleave": [2],
    "context": [2048],
    "prompt": [128],
    "concurrency": [8],
    "kv_dtype": ["fp8"],
    "quant": ["q4_k_m", "int8"],
    "gpu_layers": [4],
}

REQUESTS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(list(KNOWN.models)),
        "device": st.sampled_from([*KNOWN.devices, *KNOWN.offers]),
        "task": st.sampled_from(TASKS),
    },
    optional={name: st.sampled_from(values) for name, values in EXTRAS.items()},
)


def through_json(envelope: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(envelope))


@given(request=REQUESTS)
@settings(max_examples=60, deadline=None)
def test_inputs_asked_again_give_the_same_answer(request: dict[str, object]) -> None:
    try:
        first = through_json(bare_answer(request).to_dict())
    except LlmfeasError:
        return
    again = through_json(bare_answer(first["inputs"]).to_dict())
    assert again["inputs"] == first["inputs"]
    assert again["result"] == first["result"]


def test_what_was_chosen_may_be_said() -> None:
    """A served model is quoted for a short chat, whoever says how long that is."""
    first = bare_answer({"model": "llama-3-8b", "device": "rtx-4090", "task": "inference"}).to_dict()
    values = {name: entry["value"] for name, entry in first["inputs"].items()}  # type: ignore[union-attr]
    assert bare_answer(first["inputs"]).to_dict()["result"]["time"] == first["result"]["time"]  # type: ignore
    assert bare_answer(values).to_dict()["result"]["time"] == first["result"]["time"]  # type: ignore


def test_an_offer_keeps_its_hours_and_its_price() -> None:
    request = {"model": "gpt2", "device": "kaggle-2xt4", "task": "finetune", "tokens": "10B"}
    first = through_json(bare_answer(request).to_dict())
    assert first["inputs"]["device"]["value"] == "kaggle-2xt4"
    again = through_json(bare_answer(first["inputs"]).to_dict())
    assert again["result"]["cost"]["price"] == first["result"]["cost"]["price"]
    assert again["result"]["verdict"] == first["result"]["verdict"]


@pytest.mark.parametrize("origin", ["guessed", None, 3, ["given"]])
def test_an_unknown_origin_is_refused(origin: object) -> None:
    request = {"model": "gpt2", "device": "rtx-4090", "tokens": {"value": 1e9, "origin": origin}}
    with pytest.raises(UsageError, match=r"--tokens: .* is no origin"):
        bare_answer(request)


def test_the_network_that_is_assumed_between_nodes_is_an_input() -> None:
    def network(**more: object) -> dict[str, object]:
        return bare_answer({"model": "llama-3-8b", "device": "h100-sxm", **more}).to_dict()["inputs"]["network"]  # type: ignore

    assert network(num_devices=8) == {"value": None, "origin": "default"}
    assert network(num_devices=64) == {"value": 50.0, "origin": "device"}
    assert network(num_devices=64, network=25) == {"value": 25.0, "origin": "given"}
    recorded = {"value": 50.0, "origin": "device"}
    assert network(num_devices=64, device="a100-sxm-80gb", network=recorded) == {"value": 25.0, "origin": "device"}
