"""What else can be done with a model on a device: the line of rungs below an estimate."""

from __future__ import annotations

from ...text import printable
from ...units import GIB, format_bytes
from ..report import Json, Phrase, Topic, glued
from ..words import judged


def devices_of_machine(inputs: Json) -> int:
    """Devices that share a host; the contract has the host's bytes for one of them."""
    node = (inputs.get("devices_per_node") or {}).get("value") or 1
    return max(1, min(int(inputs["num_devices"]["value"]), int(node)))


def _is_asked(rung: Json, inputs: Json) -> bool:
    """Whether a rung is what was asked: then the answer above says it, with the settings that were given."""
    task, quant, adapters = (inputs.get(name, {}).get("value") for name in ("task", "quant", "adapters"))
    same = rung["task"] == task and rung.get("adapters") == adapters
    return bool(same and (task in ("pretrain", "finetune", "lora") or rung["quant"] == quant))


SEEN_HOST_BYTES = 2 * GIB
"""Look-up tables that lie in main memory are no more than that."""


AGAINST = {"impractical": " (years)", "over_deadline": " (too late)", "over_budget": " (too dear)"}
"""What stands against a rung that memory has room for."""


def ladder_topic(ladder: list[Json], inputs: Json) -> Topic | None:
    """What else can be done here; rungs take defaults where the question may have said otherwise.

    A rung of few bits has room for more sequences at once, and may need more for them than one above it.
    """
    items = []
    server = _server(ladder, inputs)
    for rung in (rung for rung in ladder if not _is_asked(rung, inputs)):
        size = glued(format_bytes(rung["peak_bytes"])) if rung.get("peak_bytes") is not None else ""
        on_host = rung.get("host_bytes", 0.0) * devices_of_machine(inputs)
        if on_host >= SEEN_HOST_BYTES:
            size += f" and {glued(format_bytes(on_host) + ' of main memory')}"
        size = {"unsupported": glued("not supported"), "tight": size + glued(" (tight)")}.get(rung["status"], size)
        size += glued(AGAINST.get(rung.get("because") or "", ""))
        own, batch = inputs["micro_batch"]["value"], rung.get("micro_batch") or 0
        if rung["status"] in ("feasible", "tight"):
            size += glued(f" (micro-batch {batch})") if batch and batch != (own or 1) else ""
            other = rung["task"] == "inference" and rung.get("engine") not in (None, server)
            size += glued(f" ({printable(rung['engine'], 40)})") if other else ""
        label = glued(f"{printable(rung['label'], 40)} ")
        items.append((Phrase(label), judged(rung["status"]), Phrase(glued(" ") + size)))
    return Topic(label="Also here", items=tuple(items)) if items else None


def _server(ladder: list[Json], inputs: Json) -> object:
    """The engine that serves where nothing else is said: that of the question, else that of the first such rung."""
    if inputs["task"]["value"] == "inference":
        return inputs["engine"]["value"]
    return next((rung.get("engine") for rung in ladder if rung["task"] == "inference"), None)
