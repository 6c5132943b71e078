"""What the words of a command line say before they are parsed, and where parsing them failed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

COMPLETION_VARIABLE = "_LLMFEAS_COMPLETE"
"""Set by the shell when it asks what may stand at the cursor."""
_FORMAT_SPELLINGS = frozenset({"-f", "-fnd", "-f=", "-f=nd", "--format=", "--format=nd"})


def has_flag(arguments: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of the flags was given."""
    return any(argument in names for argument in _before_dashes(arguments))


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are for a script: `--json`, or a format of the JSON family."""
    words = _before_dashes(arguments)
    if "--json" in words:
        return True
    spelled = [f"{flag}={value}" for flag, value in itertools.pairwise(words) if flag in ("-f", "--format")]
    return any(word.removesuffix("json") in _FORMAT_SPELLINGS for word in (*words, *spelled) if word.endswith("json"))


def _before_dashes(arguments: Sequence[str]) -> list[str]:
    words = list(arguments)
    return words[: words.index("--")] if "--" in words else words
