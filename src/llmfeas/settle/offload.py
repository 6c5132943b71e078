"""What moves to the host, of how many layers, which experts stay there, and whether it lies on a drive."""

from __future__ import annotations

from ..catalog.architecture import Model
from ..catalog.device import Device
from ..catalog.engine import Engine
from ..catalog.store import Catalog
from ..errors import UsageError
from ..options import ALL_LAYERS
from ..text import printable
from ..workload.serving import draws_on_host
from .draft import Draft


def settle_offload(draft: Draft, device: Device) -> None:
    """Settle `offload`; in serving only weights can lie on the host, and only where that has a memory of its own."""
    offload = draft.settle("offload", "none")
    inference = draft.values["task"] == "inference"
    if offload == "none" or not (inference or offload == "activations"):
        return
    if inference and offload != "all":
        draft.warn("option-unused", f"--offload {offload} has no meaning for --task inference and was ignored")
    elif device.backend == "cpu" or device.is_unified:
        draft.warn("option-unused", f"{device.name} shares its memory with the host: --offload {offload} was ignored")
    else:
        return
    draft.override("offload", "none", "default")


def settle_moved(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    """Settle of how many layers something moves to the host, and whether it lies on a drive there.

    Raises:
        UsageError: more layers than there are, weights that train, or an engine that uses no drive.
    """
    offload, layers = draft.values["offload"], model.architecture.layers
    moved = draft.settle("offload_layers", None)
    trains = offload == "all" and not draft.trains_adapters
    if moved is not None and offload == "none":
        draft.warn("option-unused", "--offload-layers was ignored: --offload none moves nothing")
        draft.override("offload_layers", None, "default")
    elif moved is not None and moved > layers:
        text = f"--offload-layers {moved} is more than the {layers} layers of {printable(model.name, 60)}"
        raise UsageError("contradiction", text, f"use {layers} or less")
    elif moved is not None and (offload == "optimizer" or trains):
        text = f"--offload-layers {moved} contradicts --offload {offload}: an optimizer's states move all at once"
        raise UsageError("contradiction", text, "use --offload activations, or --offload all with adapters")
    drive = draft.settle("drive", field="drive_gb_per_s")
    if drive is not None and offload not in ("optimizer", "all"):
        draft.warn("option-unused", f"--drive was ignored: --offload {offload} lays nothing on a drive")
        drive = None
    elif drive is not None and not engine.training.drives:
        able = [each.id for each in catalog.engines.values() if "training" in each.does and each.training.drives]
        text = f"--engine {engine.id} lays nothing on a drive"
        raise UsageError("contradiction", text, f"engines that do: {', '.join(able)}", able)
    draft.values["drive_gb_per_s"] = drive


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
