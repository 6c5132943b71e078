"""First questions with the answers of an expert, written down before they were asked.

Verdict, format, memory and speed as published runs or arithmetic have them: hobbyists' cards, Macs and boards, rented
nodes. Left out are those of which the expectation was no better known than the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from llmfeas.planning.answer import bare_answer
from llmfeas.units import GIB

SIGNS = {"feasible": "✓", "tight": "!", "infeasible": "✗"}
SECONDS = {"h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Expected:
    """What an expert says before asking."""

    model: str
    device: str
    task: str
    signs: str
    """Verdicts that are right."""
    gib: tuple[float, float]
    """Memory of one device."""
    speed: tuple[float, float] | None = None
    """Tokens a second of one user, or the time of the job."""
    unit: str = "tokens/s"
    quants: tuple[str, ...] = ()
    """Formats that people take."""
    more: Mapping[str, object] = field(default_factory=dict)


EXPECTED = (
    Expected("llama-3.1-8b", "rtx-4070ti", "inference", "✓", (8, 11), (40, 60), quants=("q8_0",)),
    Expected("qwen3-14b", "rtx-3060-12gb", "inference", "✓", (8.5, 11), (25, 36), quants=("q4_k_m",)),
    Expected("gemma-3-12b", "rtx-3060-12gb", "inference", "✓", (7, 11), (22, 40), quants=("q4_k_m", "q5_k_m", "q6_k")),
    Expected("gpt-oss-20b", "rtx-4070ti", "inference", "✓", (8, 11.5), (40, 120), quants=("mxfp4", "none")),
    Expected("gpt-oss-20b", "rtx-4090", "inference", "✓", (11, 15), (150, 260), quants=("mxfp4", "none")),
    Expected(
        "gpt-oss-120b",
        "rtx-3090",
        "inference",
        "✓",
        (14, 23.4),
        (15, 45),
        quants=("mxfp4", "none"),
        more={"host_memory": "64GiB"},
    ),
    Expected("gpt-oss-120b", "strix halo 128gb", "inference", "✓", (58, 70), (32, 58), quants=("mxfp4", "none")),
    Expected("qwen3-30b-a3b", "rtx-5090", "inference", "✓", (21, 31), (180, 320), quants=("q6_k", "q5_k_m")),
    Expected("qwen3.6-35b-a3b", "rtx-4090", "inference", "✓", (18.5, 23), (130, 240), quants=("q4_k_m",)),
    Expected("qwen3.6-27b", "rtx-3090", "inference", "✓", (16, 22.5), (28, 42), quants=("q4_k_m", "q5_k_m")),
    Expected("gemma-4-31b", "rx-7900xtx", "inference", "✓", (18, 22.5), (20, 36), quants=("q4_k_m",)),
    Expected("llama-3.3-70b", "2xrtx-3090", "inference", "✓", (19, 23.4), (14, 20), quants=("q4_k_m",)),
    Expected(
        "llama-3.3-70b",
        "rtx-4090",
        "inference",
        "✓",
        (18, 23.4),
        (1.5, 4.5),
        quants=("q4_k_m",),
        more={"host_memory": "64GiB"},
    ),
    Expected(
        "llama-3.3-70b",
        "m4-max-40c",
        "inference",
        "✓",
        (68, 90),
        (5.5, 8.5),
        quants=("mlx-8bit", "q8_0"),
        more={"memory": "128GiB"},
    ),
    Expected("qwen3-8b", "m2", "inference", "✓", (8, 11), (8, 13), quants=("mlx-8bit",), more={"memory": "16GiB"}),
    Expected("kimi-k2", "m3-ultra", "inference", "✗", (500, 640), more={"memory": "512GiB"}),
    Expected("llama-3-8b", "arc-b580", "inference", "✓", (7, 11.5), (20, 60), quants=("q8_0", "q6_k")),
    Expected("llama-2-13b", "rx-6900xt", "inference", "✓", (10, 14.5), (26, 45), quants=("q6_k", "q5_k_m")),
    Expected("llama-3.1-8b", "ryzen-9-7950x", "inference", "✓", (8, 20), (3, 11), quants=("none", "q8_0")),
    Expected("phi-4", "rtx-4060ti-16gb", "inference", "✓", (12, 15), (15, 24), quants=("q6_k",)),
    Expected("llama-3-8b", "rtx-4090", "qlora", "✓", (9, 20)),
    Expected("qwen3-14b", "rtx-4070ti-super", "qlora", "✓!", (10, 15.6)),
    Expected("llama-3.3-70b", "2xrtx-3090", "qlora", "✗!", (22, 40)),
    Expected("llama-3.1-8b", "rtx-4090", "lora", "✓!", (17, 23.5)),
    Expected("llama-3.1-8b", "rtx-4090", "finetune", "✗", (60, 140)),
    Expected("llama-3.1-8b", "8xh100-sxm", "finetune", "✓", (20, 79)),
    Expected("gpt2", "rtx-4090", "pretrain", "✓", (3, 23), (12, 45), unit="h", more={"tokens": "10B"}),
    Expected("llama-3.3-70b", "2xh100-sxm", "inference", "!✗", (66, 76), (25, 42), quants=("none",)),
    Expected("deepseek-v3", "8xh200", "inference", "✓", (85, 135), (45, 110), quants=("fp8", "none")),
    Expected("deepseek-v3", "8xh100-sxm", "inference", "✗", (84, 110)),
    Expected("deepseek-r1", "8xmi300x", "inference", "✓", (85, 180), (40, 110), quants=("fp8", "none")),
    Expected("kimi-k2-thinking", "8xh200", "inference", "✓", (70, 135), (40, 130)),
    Expected("gpt-oss-120b", "h100-sxm", "inference", "✓", (60, 73), (120, 280), quants=("mxfp4", "none")),
    Expected("qwen3-235b-a22b", "8xh100-sxm", "inference", "✓", (58, 73), (45, 110), quants=("none",)),
    Expected("glm-4.5", "8xh200", "inference", "✓", (45, 125), (40, 110), quants=("none", "fp8")),
    Expected("llama-3.1-405b", "8xh100-sxm", "inference", "✗", (96, 125), quants=("none",)),
    Expected(
        "llama-3.1-405b", "8xh100-sxm", "inference", "✓", (50, 73), (25, 45), quants=("fp8",), more={"quant": "fp8"}
    ),
    Expected("llama-3.1-405b", "8xmi300x", "inference", "✓", (95, 170), (20, 40), quants=("none",)),
    Expected("llama-3.1-8b", "v5e-8", "inference", "✓", (2, 15), quants=("none",)),
    Expected("llama-3.1-70b", "v5e-8", "inference", "✗", (16.5, 24), quants=("none",)),
    Expected("mixtral-8x7b", "2xrtx-3090", "inference", "✓", (16, 23.4), (40, 90), quants=("q6_k", "q5_k_m")),
    Expected("qwen2.5-coder-32b", "rtx-3090", "inference", "✓", (18.5, 22), (28, 40), quants=("q4_k_m",)),
    Expected("mistral-small-24b", "rtx-4090", "inference", "✓", (18, 22), (35, 52), quants=("q6_k",)),
    Expected("whisper-large-v3", "t4", "inference", "✓", (2, 8)),
    Expected("llama-3-8b", "h100-sxm", "dpo", "✗!", (75, 200)),
    Expected("llama-3-8b", "h100-sxm", "dpo", "✓", (20, 79), more={"adapters": "lora"}),
    Expected("kimi-k3", "8xb200", "inference", "✗", (180, 300)),
    Expected(
        "llama-3.3-70b",
        "rtx-5090",
        "inference",
        "✓",
        (26, 31.5),
        (3, 9),
        quants=("q4_k_m",),
        more={"host_memory": "64GiB"},
    ),
    Expected("gpt-oss-120b", "dgx-spark", "inference", "✓", (58, 75), (30, 60), quants=("mxfp4", "none")),
    Expected("llama-3.2-3b", "jetson-orin-nano-8gb", "inference", "✓", (2, 6.5), (10, 32)),
    Expected("llama-3.3-70b", "4xrtx-3090", "inference", "✓", (15, 23.4), (8, 16), quants=("q8_0", "q6_k")),
    Expected("llama-2-13b", "a100-sxm-40gb", "inference", "✓", (24, 36), (40, 62), quants=("none",)),
    Expected("llama-3.1-8b", "l4", "inference", "✓!", (15, 21), (13, 19), quants=("none",)),
    Expected("qwen3-8b", "rtx-4060", "inference", "✓", (4.8, 7.3), (30, 60), quants=("q4_k_m", "q5_k_m", "q6_k")),
    Expected("llama-3.1-8b", "16xmi300x", "finetune", "✓", (5, 150)),
    Expected("deepseek-v3", "16xmi300x", "lora", "✓!", (80, 190)),
    Expected("llama-3-8b", "64xv5p", "pretrain", "✓", (5, 94), (20, 60), unit="d", more={"tokens": "1T"}),
    Expected("qwen2.5-7b", "rtx-4090", "grpo", "✗", (40, 200)),
)


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda each: f"{each.model} {each.device} {each.task}")
def test_the_first_answer_is_that_of_an_expert(expected: Expected) -> None:
    found = bare_answer({"model": expected.model, "device": expected.device, "task": expected.task, **expected.more})
    assert SIGNS.get(found.verdict.status) in tuple(expected.signs)
    assert found.scenario.quant in (expected.quants or (found.scenario.quant,))
    least, most = expected.gib
    assert least <= found.memory.peak_bytes.expected / GIB <= most
    if expected.speed is None:
        return
    slow, fast = expected.speed
    if expected.unit in SECONDS:
        assert found.total_seconds is not None
        assert slow <= found.total_seconds.expected / SECONDS[expected.unit] <= fast
    else:
        assert slow <= found.speed.expected <= fast
