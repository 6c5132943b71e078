"""Catalog entries that are like others: what a model takes from its family, or from the model that it is tuned from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .records import Entry, LikeError, merged

_OWN = "id name aliases contexts default_for has_weights like released published_parameters training_tokens rope_base"
OF_ITS_OWN = frozenset((*_OWN.split(), "training_tokens_source", "notes", "sources", "unverified"))
"""What a model does not take from the one that it is like."""
OF_ITS_MAKER = frozenset({"license", "training_tokens", "training_tokens_source", "notes", "sources"})
"""What a model of another maker does not take from its family: of that it has the shapes alone."""


def completed_model(
    entry: Entry, families: Entry, written: Callable[[str], Entry | None], seen: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An entry over its family, or over the model that it is `like`: the same weights trained otherwise.

    Raises:
        LikeError: naming the model that it cannot be like.
    """
    like = entry.get("like")
    if like is None:
        base = families.get(str(entry.get("family")))
        if not isinstance(base, Mapping):
            return dict(entry)
        if entry.get("organisation", base.get("organisation")) != base.get("organisation"):
            base = {key: value for key, value in base.items() if key not in OF_ITS_MAKER}
        return merged(base, entry)
    other = written(like) if isinstance(like, str) and like not in seen else None
    if other is None:
        raise LikeError(like)
    whole = completed_model(other, families, written, (*seen, str(like)))
    result = merged({key: value for key, value in whole.items() if key not in OF_ITS_OWN}, entry)
    del result["like"]
    return result
