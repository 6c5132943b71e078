"""The ladder: what else this model can do on this device, from pre-training down to 4-bit inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.store import Catalog
from ..errors import LlmfeasError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate, Rung
from ..settle import resolution
from .serving_changes import common_format

HARDWARE = (
    "model", "device", "num_devices", "devices_per_node", "network", "memory", "host_memory", "seq_len", "context",
    "tp", "pp", "zero", "cp", "offload",
)  # fmt: skip
"""Settings of the request that hold on every rung; the rest is that of a modest run: one sequence, defaults."""

GIVES_WAY = ("tp", "pp", "cp", "zero", "offload", "engine")
"""What a task may refuse."""

RUNGS: tuple[tuple[str, dict[str, object]], ...] = (
    ("pretrain", {"task": "pretrain", "micro_batch": 1}),
    ("fine-tune", {"task": "finetune", "micro_batch": 1}),
    ("LoRA", {"task": "lora", "micro_batch": 1}),
    ("QLoRA", {"task": "qlora", "micro_batch": 1}),
    ("inference, 16 bits", {"task": "inference", "quant": "none"}),
    ("inference, 8 bits", {"task": "inference", "bits": 8}),
    ("inference, 4 bits", {"task": "inference", "bits": 4}),
)
"""Label and settings of each rung; `bits` stands for the backend's common format of that width."""


def _rung_request(
    request: Mapping[str, object], settings: Mapping[str, object], estimated: Estimate, catalog: Catalog
) -> dict[str, object]:
    unused = "context" if estimated.scenario.is_training else "seq_len"
    kept = {name: request[name] for name in HARDWARE if request.get(name) is not None and name != unused}
    bits = settings.get("bits")
    chosen = {name: value for name, value in settings.items() if name != "bits"}
    if bits is not None:
        chosen["quant"] = common_format(int(str(bits)), estimated.scenario.device, catalog)
    if settings["task"] == "inference":
        for name in ("seq_len", "zero", "cp", "offload"):
            kept.pop(name, None)
    else:
        kept.pop("context", None)
        if estimated.scenario.is_training and request.get("engine") is not None:
            kept["engine"] = request["engine"]
    return {**kept, **chosen}


def _found(rung: Mapping[str, object], catalog: Catalog) -> Estimate | None:
    """Estimate a rung, if need be without layout and engine that were asked for; None where it is refused."""
    for request in (rung, {name: value for name, value in rung.items() if name not in GIVES_WAY}):
        try:
            return estimate(resolution(request, catalog))
        except LlmfeasError:
            continue
    return None


def rungs(request: Mapping[str, object], estimated: Estimate, catalog: Catalog) -> Iterator[Rung]:
    """Yield the rungs of the ladder.

    Memory and software decide a rung, and three years for pre-training; deadline and budget of the request do not.
    Training is shown under the engine that the request names for it. A layout or engine that a task refuses gives way
    to one of ours; a rung that cannot be asked at all is left out.
    """
    for label, settings in RUNGS:
        rung = _found(_rung_request(request, settings, estimated, catalog), catalog)
        if rung is None:
            continue
        scenario, peak = rung.scenario, rung.memory.peak_bytes.expected
        yield Rung(label, scenario.task, scenario.quant, scenario.precision, rung.verdict.status, peak)
