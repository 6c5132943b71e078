"""Questions asked backwards: the largest, the fewest, how many tokens. Each inverts `estimate`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from ...contract import Note, given
from ...errors import UsageError
from ...record import replace
from ...request import parsed
from ...settle.task import implied_task

if TYPE_CHECKING:
    from ...catalog.store import Catalog
    from .answer import Answer

QUESTIONS: Mapping[str, tuple[str, str, str]] = {
    "max-model": ("largest_model", "max_model", "The largest models that this hardware takes for a task."),
    "max-batch": ("settings", "max_batch", "The largest micro-batch; in inference, the most requests at once."),
    "max-users": ("served", "max_users", "The most users, each with a request under way, that keep to targets."),
    "max-rate": ("served", "max_rate", "The most requests a second that a server keeps up with."),
    "max-context": ("settings", "max_context", "The longest sequence or context."),
    "max-rank": ("settings", "max_rank", "The largest rank of LoRA."),
    "min-devices": ("devices", "min_devices", "The fewest devices, with their layout."),
    "min-memory": ("settings", "min_memory", "The least memory that one device must have."),
    "tokens": ("work", "tokens", "How many tokens until a deadline, or for a budget."),
    "deadline": ("work", "deadline", "How long these tokens take."),
    "optimal": ("optimal", "optimal", "Compute-optimal model size and tokens for a device, count and time."),
    "cheapest": ("cheapest", "cheapest", "Device, count and provider that cost least within a deadline."),
}
"""By question: the module and function that answer it, and what it asks."""
SERVED_CONTEXT = (
    "the context of --task inference was taken; with --task finetune or another training, its longest sequence"
)
OPTIONAL: Mapping[str, Collection[str]] = {"model": ("max-model", "optimal"), "device": ("cheapest",)}
"""Settings that every estimate needs, and the questions that find them."""


def solved(question: str, request: Mapping[str, object], catalog: Catalog) -> Answer:
    """Answer an inverse question.

    Raises:
        UsageError: for an unknown question or name, or where the question lacks what it needs.
    """
    if question not in QUESTIONS:
        raise UsageError(
            "unknown-question", f"there is no question '{question}'", f"Ask one of {', '.join(QUESTIONS)}."
        )
    values = parsed(request, catalog.tables.quantization)
    for name, finds in OPTIONAL.items():
        if name not in values and question not in finds:
            raise UsageError("missing-option", f"--{name} is missing.", f"See 'llmfeas solve {question} --help'.")
    module, function, _ = QUESTIONS[question]
    solver: Callable[[Mapping[str, object], Catalog], Answer] = getattr(import_module(f"{__name__}.{module}"), function)
    unsaid = "task" not in values and module != "served"
    implied = implied_task(values, values, catalog) if unsaid else None
    if question == "max-context" and implied is None and unsaid:
        implied = "inference", Note("task-implied", SERVED_CONTEXT)
    found = solver(values if implied is None else {**values, "task": implied[0]}, catalog)
    notes = found.notes if implied is None else (implied[1].message, *found.notes)
    return replace(found, notes=notes, inputs=given(request), catalog=catalog.digest)
