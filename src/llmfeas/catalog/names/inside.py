"""Whether a name that somebody gave to what they made holds the name of the model that it is made of."""

from __future__ import annotations

from typing import Final

from .models import DISTILLED, GENERIC, OTHER, PART, TypedName, Words, dates, is_size

_TELLING: Final = 2
"""Words of a family without a version that tell it from others: `mistral nemo`, not `hunyuan`."""


def held(asked: TypedName, name: TypedName) -> bool:
    """Whether the name asked for holds a whole model's name, and no size that is not that model's.

    So is `Dolphin3.0-Llama3.1-8B` made of Llama 3.1 8B, and `GLM-4.5-Air-REAP-82B` of no model that is known.
    """
    inner = name.needed
    if not _may_hold(asked, name) or not name.sizes:
        return False
    return _behind(asked.needed, inner) is not None


def held_apart(asked: TypedName, name: TypedName, families: frozenset[Words], known: frozenset[str]) -> bool:
    """Whether the name asked for holds a model's family whole and its size elsewhere: `Wayfarer-70B-Llama-3.3`.

    What follows the family must not make it another one (`Qwen3-Coder-8B`, `GLM-5V`). One without a version has two
    words and begins the name, or the date of its release; a name without a size is in none that has one, of a
    distillation, or with a `known` word ahead of it: `DeepSeek-V3.1-Nex-N1`.
    """
    inner, mine = family_of(name.needed), family_of(asked.needed)
    behind = _behind(mine, inner)
    if behind is None or not _may_hold(asked, name) or not set(name.needed) <= set(asked.needed):
        return False
    dated = bool(dates(asked.optional) & dates(name.optional))
    told = dated or (bool(name.sizes) and behind == len(inner))
    if _is_bare(inner) and (not told or len(inner) < _TELLING):
        return False
    if not name.sizes and (asked.sizes or (DISTILLED in mine and DISTILLED not in inner)):
        return False
    if not name.sizes and known.intersection(mine[: behind - len(inner)]):
        return False
    nexts = mine[behind : behind + 1]
    if not nexts:
        return True
    longer = (*inner, *nexts)
    known_longer = any(family[: len(longer)] == longer for family in families)
    return not known_longer and not _says_which(nexts[0])


def _says_which(word: str) -> bool:
    """Whether a word behind a family tells one model of it from others: `air`, `flashx`, a number, a letter.

    That of `R1` is none: so people call what they tuned to reason.
    """
    return word in GENERIC or word[:-1] in GENERIC or word[0].isdigit() or (len(word) == 1 and word != "r")


def family_of(words: Words) -> Words:
    """What is left of a name without its sizes and the parts of them."""
    return tuple(word for word in words if not is_size(word) and not PART.fullmatch(word))


def _may_hold(asked: TypedName, name: TypedName) -> bool:
    """Whether a name may stand in the one asked for: it has a word of its own, and no size or kind is added to it."""
    return (
        any(word.isalpha() and len(word) > 1 for word in name.needed)
        and set(asked.sizes) <= set(name.sizes)
        and not (OTHER & set(asked.needed)) - set(name.needed)
    )


def _is_bare(family: Words) -> bool:
    """Whether a name has no version: `mistral`, which others begin with."""
    return not any(word.lstrip("v")[:1].isdigit() for word in family)


def _behind(words: Words, inner: Words) -> int | None:
    """Where words end that stand side by side in others; None where they do not."""
    ends = (i + len(inner) for i in range(len(words) - len(inner) + 1) if words[i : i + len(inner)] == inner)
    return next(ends, None)
