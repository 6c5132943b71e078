"""Trainings on a CPU by the scripts that `launch` writes: measured peaks beside the ranges, and what differs."""

from __future__ import annotations

from pathlib import Path

import yaml

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.settle import resolution

MEASURED = Path(__file__).parents[2] / "data" / "measurements" / "cpu_training.yaml"
GPT2 = {"model": "gpt2-small", "task": "finetune", "precision": "fp32", "seq_len": 256, "tokens": 1024}


def test_measured_peaks_lie_within_the_ranges() -> None:
    inside = []
    for group in yaml.safe_load(MEASURED.read_text(encoding="utf-8"))["groups"]:
        for row in group["rows"]:
            peak = estimate(resolution({**group["scenario"], **row["scenario"]}, catalog())).memory.peak_bytes
            inside.append(peak.low <= row["measured"]["peak_bytes"] <= peak.high)
    assert len(inside) >= 5
    assert sum(inside) >= 0.8 * len(inside)


def activations(device: str, **settings: object) -> float:
    found = estimate(resolution({**GPT2, "device": device, **settings}, catalog()))
    return found.memory.components["activations_bytes"]


def test_dropout_takes_fused_attention_away_on_a_cpu() -> None:
    fused = activations("xeon-w3-2435", dropout=0)
    assert activations("xeon-w3-2435") > 1.3 * activations("h100-sxm")
    assert activations("xeon-w3-2435", attention="eager") == activations("xeon-w3-2435")
    assert fused == activations("h100-sxm", dropout=0)


def test_tiles_of_the_loss_are_folded_in_torch_without_triton() -> None:
    request = {
        "model": "smollm2-135m",
        "task": "lora",
        "engine": "trl",
        "seq_len": 512,
        "tokens": 2048,
        "precision": "bf16",
    }
    logits = {
        device: estimate(resolution({**request, "device": device}, catalog())).memory.components["logits_bytes"]
        for device in ("h100-sxm", "xeon-w3-2435")
    }
    assert logits["xeon-w3-2435"] > 10 * logits["h100-sxm"]
