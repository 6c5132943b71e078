"""Speculative decoding: what drafts tokens ahead, how many, and how many of them hold."""

from __future__ import annotations

from ..catalog.architecture import Model
from ..catalog.named import find_model
from ..catalog.store import Catalog
from ..errors import UsageError
from .draft import Draft

HEADS = ("mtp", "eagle")
"""Drafts that are a layer beside the model: its own multi-token prediction, one trained for it (EAGLE)."""
TOKENS, ACCEPTANCE = 3, 0.7


def settle_speculation(draft: Draft, model: Model, catalog: Catalog) -> None:
    """Settle `draft`, `spec_tokens` and `acceptance`.

    Raises:
        UsageError: tokens without a draft, an unknown one, one with another vocabulary, heads that the model has not.
    """
    name = draft.settle("draft", None)
    draft.values["draft_model"] = None
    if name is None:
        for setting in ("spec_tokens", "acceptance"):
            if draft.was_given(setting):
                flag = "--" + setting.replace("_", "-")
                raise UsageError("contradiction", f"{flag} is given, but no --draft", "Give a model, mtp or eagle.")
            draft.settle(setting, None)
        return
    draft.settle("spec_tokens", TOKENS)
    draft.settle("acceptance", ACCEPTANCE)
    if name.strip().lower() in HEADS:
        draft.values["draft"] = name.strip().lower()
        if draft.values["draft"] == "mtp" and not model.mtp_parameters:
            text = f"--draft mtp: no multi-token prediction of {model.name} is known"
            raise UsageError("no-mtp", text, "Give a model as --draft, or eagle.")
        return
    drafting = find_model(name, catalog).record
    ours, theirs = model.architecture.vocab, drafting.architecture.vocab
    if ours != theirs:
        text = f"--draft {drafting.id} has {theirs} tokens in its vocabulary, {model.name} has {ours}"
        raise UsageError("other-vocabulary", text, "A draft must speak the model's tokens: take one of its family.")
    draft.values["draft_model"] = drafting
    draft.values["draft"] = drafting.id
