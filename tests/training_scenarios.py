"""Scenarios for the tests of training memory: any card, a model of the catalog, one change at a time."""

from __future__ import annotations

from typing import Any

from llmfeas.catalog.device import Device, Rates
from llmfeas.catalog.store import catalog
from llmfeas.memory.training import TensorMemory
from llmfeas.scenario import Scenario

CARD = Device(
    id="card",
    name="Card",
    backend="cuda",
    vendor="nvidia",
    kind="datacenter",
    generation="hopper",
    memory_gib=80,
    memory_type="HBM3",
    bandwidth_gb_per_s=3350,
    tflop_per_s=Rates(fp32=67),
)


def scenario(**changes: Any) -> Scenario:
    settings = {
        "model": "gpt2",
        "task": "pretrain",
        "memory_bytes": 80e9,
        "host_memory_bytes": 256e9,
        "seq_len": 1024,
        **changes,
    }
    known = Scenario.__dataclass_fields__
    settings = {key: value for key, value in settings.items() if key in known}
    model = settings["model"]
    settings["model"] = catalog().models[{"gpt2-small": "gpt2"}.get(model, model)]
    return Scenario(**{**settings, "device": CARD, "tables": catalog().tables})


def parts(found: TensorMemory) -> float:
    return sum(found.components.values())
