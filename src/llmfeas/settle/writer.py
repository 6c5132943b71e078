"""Who writes answers to learn from: the model itself, or a server: where it runs, its share, whether it sleeps."""

from __future__ import annotations

from ..catalog.engine import Engine
from ..errors import UsageError
from ..memory.rollouts import least_share
from .draft import Draft


def settle_writer(draft: Draft, engine: Engine) -> None:
    """Settle `colocate`, and of a server on the devices that train its share of them and `sleep`."""
    traits = engine.training
    if draft.settle("rollout_engine", "vllm") == "transformers":
        _settle_own(draft)
        return
    beside = traits.answers_beside
    if draft.settle("colocate", "false" if beside else "true", "backend" if beside else "default") == "true":
        _settle_share(draft, traits.server_share)
        draft.settle("sleep", "true" if traits.sleeps else "false", "backend" if traits.sleeps else "default")
        return
    _unused(draft, "answers on the devices that train")


def _settle_own(draft: Draft) -> None:
    """The model writes where it trains, and nothing serves it.

    Raises:
        UsageError: devices beside those that train, for a model that writes its answers itself.
    """
    if draft.settle("colocate", "true", "derived") == "false":
        raise UsageError(
            "contradiction",
            "--rollout-engine transformers contradicts --colocate false: the model that trains writes where it is",
            "leave --colocate out, or use --rollout-engine vllm",
        )
    _unused(draft, "a server that writes answers")


def _unused(draft: Draft, about: str) -> None:
    for name, flag in (("gpu_memory_utilization", "--gpu-memory-utilization"), ("sleep", "--sleep")):
        if draft.was_given(name):
            draft.warn("option-unused", f"{flag} is about {about}: ignored")


def _settle_share(draft: Draft, usual: float) -> None:
    """The engine's usual share of each device, or a larger one where that has no room for the weights."""
    held = draft.values["model"].architecture, draft.values["memory_bytes"], draft.values["num_devices"]
    share = least_share(*held, usual)
    draft.settle("gpu_memory_utilization", share or usual, "derived" if share and share > usual else "backend")
