"""The server that writes answers to learn from: where it runs, what it takes of devices, whether it sleeps between."""

from __future__ import annotations

from ..catalog.engine import Engine
from ..memory.rollouts import least_share
from .draft import Draft


def settle_writer(draft: Draft, engine: Engine) -> None:
    """Settle `colocate`, and of a server on the devices that train its share of them and `sleep`."""
    traits = engine.training
    beside = traits.answers_beside
    if draft.settle("colocate", "false" if beside else "true", "backend" if beside else "default") == "true":
        _settle_share(draft, traits.server_share)
        draft.settle("sleep", "true" if traits.sleeps else "false", "backend" if traits.sleeps else "default")
        return
    for name, flag in (("gpu_memory_utilization", "--gpu-memory-utilization"), ("sleep", "--sleep")):
        if draft.was_given(name):
            draft.warn("option-unused", f"{flag} is about answers on the devices that train: ignored")


def _settle_share(draft: Draft, usual: float) -> None:
    """The engine's usual share of each device, or a larger one where that has no room for the weights."""
    held = draft.values["model"].architecture, draft.values["memory_bytes"], draft.values["num_devices"]
    share = least_share(*held, usual)
    draft.settle("gpu_memory_utilization", share or usual, "derived" if share and share > usual else "backend")
