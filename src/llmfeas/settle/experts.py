"""Experts that stay in main memory (`--n-cpu-moe`): of how many layers, where there are experts and such a memory."""

from __future__ import annotations

from ..catalog.architecture import Model
from ..catalog.engine import Engine
from ..options import ALL_LAYERS
from ..workload.serving import draws_on_host
from .draft import Draft


def settle_experts(draft: Draft, model: Model, engine: Engine) -> None:
    """Settle `n_cpu_moe`, at most all layers; where nobody said those of engines that keep all experts there."""
    layers, device = model.architecture.layers, draft.values["device"]
    apart = model.architecture.experts is not None and not (draws_on_host(device) or device.is_unified)
    by_itself = layers if engine.serving.experts_on_host and apart else None
    said = draft.settle("n_cpu_moe", by_itself, "backend" if by_itself else "derived")
    if said is None:
        return
    if model.architecture.experts is None:
        _ignore(draft, f"{model.name} has no experts")
    elif draws_on_host(device) or device.is_unified:
        _ignore(draft, f"{device.name} shares its memory with the host")
    elif said > layers:
        if said < ALL_LAYERS:
            draft.warn("experts-of-all-layers", f"--n-cpu-moe {said}: {model.name} has {layers} layers; all are meant")
        draft.override("n_cpu_moe", layers, draft.origins["n_cpu_moe"])


def _ignore(draft: Draft, why: str) -> None:
    draft.warn("option-unused", f"{why}: --n-cpu-moe was ignored")
    draft.override("n_cpu_moe", None, "derived")
