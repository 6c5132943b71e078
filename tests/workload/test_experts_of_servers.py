"""Experts one after the other are a matter of public code: servers have programs of their own."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.settle import resolution
from llmfeas.workload.kernels import loops_over_experts

ASKED = {"model": "longcat-flash", "device": "h200", "num_devices": 8}


@pytest.mark.parametrize(("engine", "loops"), [("vllm", False), ("mlx", False), ("transformers", True)])
def test_only_public_code_loops_over_experts(engine: str, loops: bool) -> None:
    device = {"device": "m3-ultra", "memory": "512GiB", "num_devices": 1} if engine == "mlx" else {}
    asked = {**ASKED, **device, "task": "inference", "engine": engine}
    assert loops_over_experts(resolution(asked, catalog()).scenario) is loops


def test_training_runs_it_as_the_code_does() -> None:
    assert loops_over_experts(resolution({**ASKED, "task": "lora", "engine": "pytorch"}, catalog()).scenario)
