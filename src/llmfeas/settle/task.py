"""The task that nobody said: pre-training, unless what was said means nothing to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ..catalog.device import Device
from ..catalog.joined import Joined
from ..catalog.named import engine_named
from ..catalog.store import Catalog
from ..contract import Note
from ..objectives import OBJECTIVES
from ..options import BY_NAME, EVERY_TASK, INFERENCE, TASKS, TRAINING, flag_of
from .draft import Draft

ORDER = ("pretrain", "inference", *(task for task in TASKS if task not in ("pretrain", "inference")))
"""What is meant first where several tasks could be."""


def settle_task(draft: Draft, asked: Iterable[str], device: Device, catalog: Catalog) -> None:
    """Settle `task`, and say so where settings decide it."""
    implied = None if draft.was_given("task") else implied_task(draft.given, asked, catalog)
    if implied is not None:
        draft.settle("task", implied[0], "derived")
        draft.warnings.append(implied[1])
    elif isinstance(device, Joined) and not draft.was_given("task"):
        draft.settle("task", "inference", "derived")
        draft.warn("task-implied", "unequal devices serve a model together but train none: --task inference was taken")
    else:
        draft.settle("task", "pretrain")
    model = draft.values["model"]
    if not model.has_weights and draft.values["task"] != "pretrain":
        draft.warn("no-weights", f"the weights of {model.name} were never published: only its shape is known")


def implied_task(given: Mapping[str, Any], asked: Iterable[str], catalog: Catalog) -> tuple[str, Note] | None:
    """The first task to which all that was said means something, and why it is not pre-training.

    None where that is pre-training, or no task is one.
    """
    names = tuple(asked)
    said = tuple(given.get(name) if name in DECIDED_BY_VALUE else None for name in names)
    able = _able(names, said, catalog)
    task = next((task for task in ORDER if task in able), "pretrain")
    if task == "pretrain":
        return None
    why = next(name for name in names if "pretrain" not in tasks_of(name, given.get(name), catalog))
    what = f"--engine {given[why]}" if why == "engine" else flag_of(why)
    return task, Note("task-implied", f"--task {task} was taken: {what} is about that")


DECIDED_BY_VALUE = ("engine", "quant", "loss")
"""Settings of which the value tells what they are about."""


@lru_cache(maxsize=512)
def _able(names: tuple[str, ...], values: tuple[Any, ...], catalog: Catalog) -> frozenset[str]:
    """The tasks to which all of these settings mean something."""
    return EVERY_TASK.intersection(*(tasks_of(name, value, catalog) for name, value in zip(names, values, strict=True)))


def tasks_of(name: str, value: Any, catalog: Catalog) -> frozenset[str]:
    """The tasks to which a setting with a value means something."""
    if name == "engine":
        does = catalog.tables.engine(engine_named(str(value), catalog)).does
        return (TRAINING if "training" in does else frozenset()) | (INFERENCE if "serving" in does else frozenset())
    if name == "quant" and value == "none":
        return EVERY_TASK
    if name == "loss":
        return frozenset({OBJECTIVES[str(value)].task})
    return BY_NAME[name].tasks
