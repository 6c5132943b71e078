"""The models that are there beside the one that trains: a teacher, one that judges answers, a critic."""

from __future__ import annotations

from ..catalog.architecture import Model
from ..catalog.named import find_model
from ..catalog.store import Catalog
from ..errors import UsageError
from ..objectives import OBJECTIVES, Objective
from ..text import printable
from .draft import Draft

FUNCTION = "function"
"""What stands for rules in place of a model that judges."""


def settle_models_beside(draft: Draft, model: Model, catalog: Catalog) -> None:
    """Settle `teacher`, `reward_model` and `critic`, and find them.

    Raises:
        UsageError: one that the loss needs and nobody named, or that it does not have; an unknown one; a teacher with
            another vocabulary; a critic without a reward.
    """
    loss = draft.values.get("loss")
    objective = None if loss is None else OBJECTIVES[loss]
    found: list[tuple[str, Model]] = []
    if objective is not None and objective.teacher:
        found.append(("teacher", _teacher(draft, model, catalog)))
    if objective is not None and objective.task == "grpo":
        found += _judges(draft, model, objective, catalog)
    draft.values["beside"] = tuple(found)


def _teacher(draft: Draft, model: Model, catalog: Catalog) -> Model:
    if not draft.was_given("teacher"):
        hint = "give --teacher, a larger model with the same vocabulary"
        raise UsageError("missing-option", "--task distill needs a model to learn from, and none was given", hint)
    name = printable(draft.settle("teacher", None), 80)
    found = find_model(name, catalog).record
    draft.values["teacher"] = found.id
    ours, theirs = model.architecture.vocab, found.architecture.vocab
    if ours != theirs:
        text = f"--teacher {found.id} has {theirs} tokens in its vocabulary, {model.name} has {ours}"
        raise UsageError("other-vocabulary", text, "take one of its family: what it expects is compared token by token")
    return found


def _judges(draft: Draft, model: Model, objective: Objective, catalog: Catalog) -> list[tuple[str, Model]]:
    if draft.was_given("critic") and not objective.critic:
        text = f"--loss {draft.values['loss']} compares answers of a group and has no critic"
        raise UsageError("contradiction", text, "use --loss ppo, or leave --critic out")
    if objective.critic and not draft.was_given("reward_model"):
        hint = "give --reward-model, a model or 'function' for rules"
        raise UsageError("missing-option", "a critic foresees rewards, and nothing gives any", hint)
    found: list[tuple[str, Model]] = []
    if draft.settle("reward_model", FUNCTION) != FUNCTION:
        found.append(_named(draft, "reward_model", catalog))
    if objective.critic and draft.was_given("critic"):
        found.append(_named(draft, "critic", catalog))
    elif objective.critic:
        draft.settle("critic", model.id, "model")
        found.append(("critic", model))
    return found


def _named(draft: Draft, setting: str, catalog: Catalog) -> tuple[str, Model]:
    found = find_model(printable(draft.settle(setting, None), 80), catalog).record
    draft.values[setting] = found.id
    return setting, found
