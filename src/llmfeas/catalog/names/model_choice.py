"""Which model a name means, and which others it may mean, of those in an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...record import replace
from .model_index import ModelIndex
from .models import (
    DISTILLED,
    GENERIC,
    LANGUAGES,
    MIXTURE,
    OTHER,
    PART,
    SAME,
    SIGHT,
    TypedName,
    Words,
    dates,
    distance,
    family_words,
    first_letters,
    is_size,
    other_version,
    revised,
    revisions,
    typed,
    version_of,
)

_BASE: Final = "base"
"""What most names say of how a model was trained, and some of how large it is (`whisper-base`)."""


def adds_version(index: ModelIndex, key: str, asked: TypedName) -> bool:
    """Whether every name of a model that has the words asked for has a version beyond them: `Qwen2-Audio`."""
    names = [name for name, owner in index.names if owner == key and set(asked.needed) <= set(name.needed)]
    if any(word.lstrip("v")[:1].isdigit() for word in asked.needed if not is_size(word)):
        return False
    return bool(names) and all(version_of(name)[0] for name in names)


def chosen(index: ModelIndex, asked: TypedName) -> tuple[str | None, tuple[str, ...]]:
    """The id that a name means, and all that it may mean; None where nothing, or several, may be meant."""
    for effective in (False, True):
        near = _nearest(index, asked, effective)
        if near:
            break
    else:
        return _base_inside(index, asked)
    named = {key for key, (_, name) in near.items() if _BASE in {*asked.optional} & {*name.optional}}
    if len(named) == 1 and near[next(iter(named))][1].needed == asked.needed:
        return next(iter(named)), tuple(near)
    default = (asked.tagged and index.tags.get(asked.needed)) or index.defaults.get(asked.needed)
    ids = tuple(near)
    if default is not None and (default in near or not revisions(asked.optional)):
        return default, tuple(dict.fromkeys((default, *ids)))
    best = min(distance for distance, _ in near.values())
    first = [key for key, (distance, _) in near.items() if distance <= best + 1e-9]
    if len(first) == 1 and _of_another_family(index, asked, near[first[0]][1]):
        return None, ()
    if len(first) == 1 and _part_of_an_offspring(first[0], asked, near[first[0]][1]):
        return None, ()
    if len(first) == 1:
        return first[0], (first[0],) if best < 1 else ids
    rests = {version_of(near[key][1])[1] for key in first}
    if len(rests) == 1:
        newest = max(first, key=lambda key: version_of(near[key][1])[0])
        return newest, (newest, *(key for key in first if key != newest))
    return None, tuple(sorted(near, key=lambda key: near[key][0]))


def _nearest(index: ModelIndex, asked: TypedName, effective: bool) -> dict[str, tuple[float, TypedName]]:
    """For each model that has all words asked for: its distance, and the name that has it."""
    near: dict[str, tuple[float, TypedName]] = {}
    if not any(word.isalpha() for word in asked.needed) or len("".join(asked.needed)) == 1:
        return near
    of: dict[bool, set[str]] = {False: set(), True: set()}
    blind = tuple(word for word in asked.needed if word not in SIGHT)
    plain = replace(asked, needed=blind) if asked.sizes and any(map(str.isalpha, blind)) else asked
    for name, key in index.candidates(plain):
        said = asked if key not in index.seeing or SIGHT & set(name.needed) else plain
        far = distance(said, name, effective=effective, count=index.counts.get(key, 0.0))
        if far is None:
            continue
        if key not in near or far < near[key][0]:
            near[key] = (far, name)
        agrees = revised(asked.optional, (*name.needed, *name.optional))
        if agrees is not None:
            of[agrees].add(key)
    kept = of[True] & set(near) or set(near) - of[False]
    if dates(asked.optional) and of[False] & set(near) and not of[True]:  # a release that is known under no name
        kept = {key for key in kept if near[key][0] < 1}
    return {key: found for key, found in near.items() if key in kept}


def _base_inside(index: ModelIndex, asked: TypedName) -> tuple[str | None, tuple[str, ...]]:
    words = set(asked.needed)
    near = [(name, key) for name, key in index.names if words.issuperset(name.needed) and not _other_part(words, key)]
    inside = [(name.needed, key) for name, key in near if held(asked, name)]
    own_words = (index.vocabulary | LANGUAGES) - SAME
    inside = inside or [(name.needed, key) for name, key in near if held_apart(asked, name, index.families, own_words)]
    if not inside:
        return None, ()
    longest = max(len(name) for name, _ in inside)
    keys = tuple(dict.fromkeys(key for name, key in inside if len(name) == longest))
    if len(keys) == 1 and not asked.sizes and _is_sold_smaller(index, asked, keys[0]):
        return None, ()
    names = {name for name, _ in inside if len(name) == longest}
    if len(keys) > 1 and len(names) == 1:  # releases of one model: what its name means by itself
        key, _ = chosen(index, TypedName(names.pop(), asked.optional))
        return (key, keys) if key in keys else (None, ())
    return (keys[0], (*keys, *_versions(index, keys[0], names))) if len(keys) == 1 else (None, ())


def _versions(index: ModelIndex, key: str, names: set[Words]) -> Iterator[str]:
    """Yield the models that are versions of one whose name says none: `X-Qwen-7B` may be made of any of them."""
    found = (other for name, other in index.names if version_of(name)[0] and version_of(name)[1] in names)
    yield from dict.fromkeys(other for other in found if other != key)


def _other_part(words: set[str], key: str) -> bool:
    """Whether another active part is asked for than a model has: of `Qwen3-30B-A1.5B` fewer experts run."""
    said, own = ({word for word in side if PART.fullmatch(word)} for side in (words, typed(key).needed))
    return bool(said and own) and not said & own


def _is_sold_smaller(index: ModelIndex, asked: TypedName, key: str) -> bool:
    """Whether others with the words of a name without a size have one: `DeepSeek-R1-Medical` may be made of those."""
    own = [
        name.needed for name, owner in index.names if owner == key and asked.needed[: len(name.needed)] == name.needed
    ]
    return any(
        owner != key and name.sizes and name.needed[: len(words)] == words and is_size(name.needed[len(words)])
        for words in own
        for name, owner in index.names
        if len(name.needed) > len(words)
    )


def _of_another_family(index: ModelIndex, asked: TypedName, found: TypedName) -> bool:
    """Whether a size that the family asked for lacks was met in a name of two more (`Mistral 8B` in Minitron)."""
    family = tuple(word for word in asked.needed if not is_size(word))
    beyond = [word for word in family_words(found.needed) if word not in asked.needed]
    return len(beyond) > 1 and len(family) < len(asked.needed) and family in index.families


def _part_of_an_offspring(key: str, asked: TypedName, found: TypedName) -> bool:
    """Whether only a part was asked for of the name that others gave to what they tuned from a model: no name of its.

    `fara` is, whose size alone is missing; `mythos` means no model that somebody calls `Qwythos 9B Claude Mythos 5`.
    """
    beyond = [word for word in found.needed if word.isalpha() and word not in asked.needed]
    own = typed(key).needed
    return bool(beyond) and (first_letters(found) not in own or other_version(asked.needed, own))


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
    behind = _behind(mine, inner) or (_apart(mine, inner, known) if name.sizes else None)
    if behind is None or not _may_hold(asked, name) or not set(name.needed) <= set(asked.needed):
        return False
    dated = bool(dates(asked.optional) & dates(name.optional))
    told = dated or (bool(name.sizes) and behind == len(inner))
    if _is_bare(inner) and (not told or len(inner) < _TELLING):
        return False
    taught = mine[: len(inner)] == inner and mine[behind : behind + 1] != (DISTILLED,)  # next comes who taught it
    if not name.sizes and (asked.sizes or (DISTILLED in mine and DISTILLED not in inner and not taught)):
        return False
    if not name.sizes and known.intersection(mine[: behind - len(inner)]):
        return False
    nexts = mine[behind : behind + 1]
    if not nexts:
        return True
    longer = (*inner, *nexts)
    known_longer = any(family[: len(longer)] == longer for family in families)
    return not known_longer and not _says_which(nexts[0])


def _apart(words: Words, inner: Words, known: frozenset[str]) -> int | None:
    """Where a family and its version end with words of no model between them: `Llama-Doctor-3.2-3B`; None: nowhere."""
    if len(inner) != len(("family", "version")) or "." not in inner[1] or not set(inner) <= set(words):
        return None
    start, end = words.index(inner[0]), words.index(inner[1])
    return end + 1 if start < end and not known.intersection(words[start + 1 : end]) else None


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
        and not (OTHER & set(asked.needed)) - set(name.needed) - _kind_of(name)
    )


def _kind_of(name: TypedName) -> set[str]:
    """The words that a name need not have to be so: one with an active part is a mixture."""
    mixed = any(PART.fullmatch(word) or (is_size(word) and "x" in word) for word in name.needed)
    return {MIXTURE} if mixed else set()


def _is_bare(family: Words) -> bool:
    """Whether a name has no version: `mistral`, which others begin with."""
    return not any(word.lstrip("v")[:1].isdigit() for word in family)


def _behind(words: Words, inner: Words) -> int | None:
    """Where words end that stand side by side in others; None where they do not."""
    ends = (i + len(inner) for i in range(len(words) - len(inner) + 1) if words[i : i + len(inner)] == inner)
    return next(ends, None)
