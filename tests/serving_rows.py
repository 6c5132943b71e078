"""Builds scenarios of published rows for the tests of memory."""

from __future__ import annotations

from typing import Any

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.catalog.store import catalog
from llmfeas.scenario import Scenario


def model_of(name: str, configs: dict[str, Any] | None = None) -> Model:
    if configs and name in configs:
        return Model(id=name, name=name, architecture=Architecture(**configs[name]), context=8192)
    return catalog().models[{"gpt2-small": "gpt2"}.get(name, name)]


def serving(asked: dict[str, Any], configs: dict[str, Any] | None = None, **other: Any) -> Scenario:
    """The scenario of a published row; several devices without a layout each hold some of the layers."""
    row = {"device": "a100-sxm-80gb", "engine": "transformers", "precision": "bf16", **asked, **other}
    model = model_of(row.pop("model"), configs)
    device = catalog().devices[row.pop("device")]
    if row.get("num_devices", 1) > 1 and row.get("tp", 1) * row.get("pp", 1) == 1:
        row["pp"] = row["num_devices"]
    row.setdefault("context", min(model.context, 4096))
    row.setdefault("memory_bytes", device.memory_bytes)
    return Scenario(
        model=model, device=device, tables=catalog().tables, host_memory_bytes=2**38, task="inference", **row
    )


def training(asked: dict[str, Any], configs: dict[str, Any] | None = None) -> Scenario:
    """The scenario of a published training row, what it leaves out filled in as the defaults are."""
    adapted = asked["task"] in ("lora", "qlora")
    row: dict[str, Any] = {
        "checkpointing": "full" if adapted else "none",
        "quant": "nf4" if asked["task"] == "qlora" else "none",
        "num_devices": 1,
        **asked,
    }
    row.setdefault("zero", 0 if row["num_devices"] == 1 else {"pytorch": 3}.get(row["engine"], 1))
    ranks = row["num_devices"] // (row.get("tp", 1) * row.get("pp", 1))
    row.setdefault("global_batch", row["micro_batch"] * ranks)
    model = model_of(row.pop("model"), configs)
    device = catalog().devices[row.pop("device")]
    return Scenario(
        model=model,
        device=device,
        tables=catalog().tables,
        memory_bytes=device.memory_bytes,
        host_memory_bytes=2**40,
        **row,
    )
