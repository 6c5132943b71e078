"""Models that people name and nobody can run: those whose makers keep the weights."""

from __future__ import annotations

from ..errors import UsageError
from ..text import printable
from .search import tokens_of
from .store import data_file, data_folder


def unpublished(text: str) -> UsageError | None:
    """What to answer to the name of a model whose weights nobody published (data/unpublished.yaml); None of others."""
    words = tokens_of(text)
    for family in data_file(data_folder(), "unpublished", needed=False).data.get("families", ()):
        if family["word"] not in words:
            continue
        behind = words[words.index(family["word"]) + 1 :][:1]
        version = float(behind[0]) if behind and behind[0][0].isdigit() else None
        if "from" in family and (version is None or version < family["from"]):
            continue
        instead = family["instead"]
        hint = f"What they did publish: {' and '.join(instead)}." if instead else "See 'llmfeas models list'."
        problem = f"the weights of '{printable(text, 60)}' are not published by {family['maker']}"
        return UsageError("unknown-model", problem, hint, instead)
    return None
