"""The ladder: what else this model can do on this device, from pre-training down to 4-bit inference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..adapters import OF_ADAPTERS
from ..feasibility.result import Estimate, Rung, Verdict
from ..objectives import METHODS
from ..options import BY_NAME
from ..scenario import Scenario
from .asked import GIVES_WAY, Asked, Request
from .changes.serving import common_format, width

REFUSED = (*GIVES_WAY, "precision", "gpu_layers", "n_cpu_moe")
"""What a rung of another task may refuse."""

TRAININGS = (("pretrain", "pretrain"), ("fine-tune", "finetune"), ("LoRA", "lora"), ("QLoRA", "qlora"))
"""Label and task of each rung of training."""

READERS_TRAIN = ("finetune", "lora")
"""What people train of a model that writes nothing: others have made it."""

WIDTHS = (16, 8, 4)
"""Bits of a weight of the rungs of inference; one of another width is there where that was asked for."""


KNOWN_BY_LOSS = ("dpo", "grpo")
"""Tasks whose trainings are called by their loss."""


def rungs(request: Request, estimated: Estimate, beside: Asked) -> Iterator[Rung]:
    """Yield the rungs of the ladder: the request's estimates with nothing but task or format changed.

    The rung of what was asked is `estimated` itself. A task with an objective has rungs of its own, a model that writes
    nothing none of what others have done. A layout or engine that a task refuses gives way to one of ours; a rung that
    cannot be asked at all is left out.
    """
    scenario = estimated.scenario
    own, reads = scenario.task, not scenario.model.architecture.writes
    for label, task in TRAININGS:
        if reads and task not in (*READERS_TRAIN, own):
            continue
        found = estimated if own == task else _found({**_meant(request, scenario, task), "task": task}, beside)
        if found is not None:
            yield _rung(label, found)
    if scenario.loss is not None:
        yield from _guided(request, estimated, beside)
    yield from _served(request, estimated, beside)


def _guided(request: Request, estimated: Estimate, beside: Asked) -> Iterator[Rung]:
    """Yield the rungs of a task with an objective: all weights, adapters, and adapters on a 4-bit base."""
    scenario = estimated.scenario
    names = dict(zip(METHODS.values(), ("", " with LoRA", " with QLoRA"), strict=True))
    name = str(scenario.loss).upper() if scenario.task in KNOWN_BY_LOSS else scenario.task
    for adapters, method in METHODS.items():
        found: Estimate | None = estimated
        if scenario.method != method:
            unsaid = (*OF_ADAPTERS, "adapters") if adapters == "none" else ("adapters",)
            kept = {name: value for name, value in request.items() if name not in (*unsaid, "quant")}
            found = _found({**kept, "adapters": adapters}, beside)
        if found is not None:
            yield _rung(f"{name}{names[method]}", found)


def _served(request: Request, estimated: Estimate, beside: Asked) -> Iterator[Rung]:
    """Yield the rungs of inference: all run on the engine of the first of them.

    A rung is called by what it holds: weights published in 4 bits are a rung of 4 bits, also where 16 were tried.
    """
    own = estimated.scenario
    asked = {**_meant(request, own, "inference"), "task": "inference"}
    own_width = None if own.is_training else width(own, own.quant)
    known = {} if own_width is None else {own_width: estimated}
    engine: Scenario | None = None if own.is_training else own
    for bits in WIDTHS:
        if bits in known:
            continue
        quant = "none" if bits == 16 else common_format(bits, engine or own, beside.catalog)
        found = _found({**asked, "quant": quant}, beside)
        if found is not None:
            engine = engine or found.scenario
            known.setdefault(width(found.scenario, found.scenario.quant), found)
    for bits in sorted(known, reverse=True):
        yield _rung(f"inference, {bits} bits", known[bits])


def _meant(request: Request, own: Scenario, task: str) -> dict[str, object]:
    """What the request says that means something to its task and to another one; the format is the rung's own."""
    tasks = {task} if own.origins["task"] in ("default", "model") else {own.task, task}
    return {name: value for name, value in request.items() if name != "quant" and tasks <= BY_NAME[name].tasks}


def _found(rung: Request, beside: Asked) -> Estimate | None:
    """Estimate a rung, if need be without layout and engine that were asked for; None where it is refused."""
    return beside.estimate(rung) or beside.estimate({n: value for n, value in rung.items() if n not in REFUSED})


def _against(verdict: Verdict) -> Literal["impractical", "over_deadline", "over_budget"] | None:
    """What stands against a job that memory has room for."""
    if verdict.status != "infeasible" or verdict.memory == "exceeds":
        return None
    if verdict.time in ("impractical", "over_deadline"):
        return verdict.time
    return "over_budget" if verdict.budget == "over_budget" else None


def _rung(label: str, found: Estimate) -> Rung:
    scenario, peak, host = found.scenario, found.memory.peak_bytes.expected, found.memory.host_bytes
    status = found.verdict.status
    return Rung(
        label=label,
        task=scenario.task,
        quant=scenario.quant,
        precision=scenario.precision,
        status=status,
        peak_bytes=peak,
        host_bytes=host,
        adapters=scenario.adapters,
        micro_batch=scenario.micro_batch if scenario.is_training else None,
        because=_against(found.verdict),
        engine=scenario.engine,
    )
