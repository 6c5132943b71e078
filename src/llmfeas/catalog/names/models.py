"""What a model's name says as people write it: family, version, size, and the format that its uploader put into it.

A digit after a family is its version, a size has a unit (`8b`, `270m`, `8x7b`), `a3b` is the active part of a size and
`e4b` an effective one; four digits are a date, `128k` a context. A version never matches a size.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ...record import dataclass
from .formats import without_format
from .served import spelled_out

if TYPE_CHECKING:
    from ..architecture import Model

Words = tuple[str, ...]

LONGEST: Final = 200
_SHARD: Final = re.compile(r"-\d{5}-of-\d{5}")
_ENDINGS: Final = (".gguf", ".safetensors", ".bin")
_FILE_BEHIND: Final = re.compile(r"(.+):([^:/]+)\.gguf")
"""A repository and one of its files: the first says which model, the second in which format."""
_DECIMAL: Final = re.compile(r"(?<=\d)_(?:__)?(?=\d(?![\d.]*[bmt](?![a-z])))")
_WORD: Final = re.compile(
    r"(?<![a-z0-9])i1(?![a-z0-9])|\d+x\d+(?:\.\d+)?[bmt]?(?![a-z0-9])|(?<![a-z0-9])[ae]\d+(?:\.\d+)?[bmt](?![a-z])|(?<![a-z0-9])v\d+(?:\.\d+)?(?![a-z0-9])"
    r"|\d+(?:\.\d+)?[bmtk](?![a-z0-9])|[a-z]+|\d+(?:\.\d+)?"
)
DISTILLED: Final = "distill"
_SPELLED: Final = {"distil": DISTILLED, "distilled": DISTILLED}
_SIZE: Final = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bmt]")
PART: Final = re.compile(r"[ae]\d+(?:\.\d+)?[bmt]")
_NUMBER: Final = re.compile(r"v?\d+(?:\.\d+)?")
_DATE: Final = re.compile(r"2[3-7](?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])?|(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])|202\d")
_SAME_WORDS: Final = """
    instruct it chat base hf pt thinking think reasoning preview latest text gguf mlx unsloth qat imatrix i1
    abliterated heretic derestricted decensored ud dwq uncensored quantized dynamic cloud exp model the full
    community exl2 exl3 exl bpw meta crack derisked onnx hybrid npu obliterated optiq quark mtp mtplx optimized
    speed bare serve facebook google mistralai nvidia openai zai org ai microsoft huggingface ibm liquid
    bytedance arcee moonshot moonshotai alibaba tencent baidu xiaomi stepfun allenai databricks xai apple tiiuae
    cohere coherelabs sft dpo rlhf ppo grpo rlvr orpo simpo kto"""
SAME: Final = frozenset(_SAME_WORDS.split())
"""Words that say how a model was tuned, packed or by whom; they change none of its sizes."""
_FREED: Final = frozenset(("abliterated", "heretic", "derestricted", "decensored", "uncensored", "obliterated"))
"""Those of them that a number behind counts the tries of: `heretic-2`."""
_GENERIC_WORDS: Final = """large small mini base medium xl tiny flash air pro max plus nano super ultra micro
    turbo lite"""
GENERIC: Final = frozenset(_GENERIC_WORDS.split())
"""Words that many families use: sharing one makes no kinship."""
MOST_VERSION: Final = 20.0
"""Numbers beyond are dates and sizes."""
SIZE_SLACK: Final = 0.08
"""Between the parameters that two people say of one model: with and without embeddings, rounded."""
CONTEXT_SLACK: Final = 1.05
"""Between what people call a context and the power of two that it is: `128k` for 131072, `1m` for 1048576."""
UNITS_OF_SIZE: Final = (("b",), ("m",), ("t",))
_WITH_MORE: Final = (
    "blip instructblip clip siglip vit vision vl vlm mm mllm audio omni ocr tts asr speech voice image video internvl"
    " ovis ultravox llava vila mplug owl mantis cambrian points slime xgen bunny videochat"
)
SIGHT: Final = frozenset(("vl", "vlm", "vision"))
"""Words that say nothing of a model that sees anyway: `Qwen3.8-27B-MXFP4-VL`."""
_DRAFTS: Final = "eagle dflash dspark medusa speculator speculators draft assistant pard"
_CUT: Final = "reap ream thrift pruned loop trm gtr sentence"
_BUILT_ANEW: Final = "recurrent residual attn looped mamba rwkv random dummy"
_MADE_OF: Final = "t"
MIXTURE: Final = "moe"
OTHER: Final = frozenset(f"{_WITH_MORE} {_DRAFTS} {_CUT} {_BUILT_ANEW} {_MADE_OF} {MIXTURE}".split())
"""Words of models that hold another one and more, draft for it, are cut from it or built from it: not that one."""
_LANGUAGE_WORDS: Final = """
    arabic bengali bulgarian catalan chinese croatian czech danish dutch english estonian finnish french german
    greek hebrew hindi hungarian icelandic indonesian italian japanese korean latvian lithuanian malay norwegian
    persian polish portuguese romanian russian serbian slovak slovenian spanish swedish tamil thai turkish
    ukrainian urdu vietnamese"""
LANGUAGES: Final = frozenset(_LANGUAGE_WORDS.split())
"""Ahead of a name without a size they say that it has another vocabulary: `polish-gpt2-small`."""


@dataclass(frozen=True, slots=True)
class TypedName:
    """A name taken apart: words that a model must have, words that it may have, and a format (an id of `--quant`)."""

    needed: Words
    optional: Words
    format: str = ""
    tagged: bool = False
    """Written as a tag of Ollama's library: `qwen3:8b`, `ollama.com/library/qwen3`."""

    @property
    def sizes(self) -> Words:
        """The words that are sizes."""
        return tuple(word for word in self.needed if is_size(word))


def is_size(word: str) -> bool:
    """Whether a word is a count of parameters: `8b`, `8x7b`, not an active part (`a3b`) nor a version."""
    return _SIZE.fullmatch(word) is not None


def parameters(text: str) -> float:
    """The parameters that a text begins with (`567m`, `1.6T (135B of ...)`); 0 where it begins with none."""
    match = re.match(r"(\d+(?:\.\d+)?)([bmt])(?![a-z])", text.strip().lower())
    return float(match[1]) * {"m": 1e6, "b": 1e9, "t": 1e12}[match[2]] if match else 0.0


_LIBRARY: Final = re.compile(r"(?:https?://)?(?:registry\.ollama\.ai|ollama\.com)/|library/|ollama(?:_chat)?/(?!.*/)")
_GLUED: Final = re.compile(r"(?:(?<=[a-z])|(?<=[a-z]-)(?=\d\d-\d+b))([1-9])([1-9])(?![\w.])")
_REVISION: Final = re.compile(r"(?<![a-z0-9])v0(?=\d(?![\w.]))")
_UNDER: Final = re.compile(r"(?<=[_-]\d)_(?=\d[bmt](?![a-z0-9]))|(?<=[_-]\d\d)_(?=\d[bmt](?![a-z0-9]))")
_APART: Final = re.compile(r"(?<=\d)[_-](?=b(?![a-z0-9]))")


def dotted(text: str) -> str:
    """The text with a dot in two digits that are glued to a word, a version (`qwen25-7b`) more than a size."""
    return _GLUED.sub(r"\1.\2", text[:LONGEST].lower())


def with_points(text: str) -> str:
    """The text with a point for the underscore in a size, `solar-10_7b`, and none before its unit, `70_b`."""
    return _APART.sub("", _UNDER.sub(".", text[:LONGEST].lower()))


_ABBREVIATED: Final = (
    (re.compile(r"(?<![a-z0-9])l([23](?:\.[0-3])?)(?=-)"), r"llama-\1"),
    (re.compile(r"(?<![a-z0-9])l3([123])(?=-)"), r"llama-3.\1"),
    (re.compile(r"(?<![a-z0-9])mn(?=-)"), "mistral-nemo"),
    (re.compile(r"(?<![a-z0-9])ms(3\.[12])(?=-)"), r"mistral-small-\1"),
    (re.compile(r"(?<![a-z0-9])q(2\.5|3(?:\.\d)?)(?=-\d)"), r"qwen\1"),
    (re.compile(r"(?<![a-z0-9])qw(?!en)[a-z]+-?(?=3\.\d)"), "qwen"),  # blends: Qwopus, Qwythos, Qwable
    (re.compile(r"(?<![a-z0-9])(?<!mistral-)(?:nemo[-_]12b|12b[-_]nemo)(?![a-z0-9])"), "mistral-nemo-12b"),
)
"""What those who merge models call the ones that they start from."""


def unabbreviated(text: str) -> str:
    """The text with the names of families in place of what those who merge write: `L3.1-70B-Hanami`."""
    return functools.reduce(lambda name, rule: rule[0].sub(rule[1], name), _ABBREVIATED, text[:LONGEST].lower())


def repository(text: str) -> str:
    """The last part of a repository's name without its format: `qwen-7b-chat` of `you/Qwen-7B-Chat-Int4`."""
    return without_format(text[:LONGEST].lower().rsplit("/", 1)[-1])[0].strip(" -_.").removesuffix("-gguf")


@functools.lru_cache(maxsize=8192)
def typed(text: str) -> TypedName:
    """What a name says. Of a repository or path only the last part counts."""
    plain = spelled_out(_SHARD.sub("", text[:LONGEST].lower().strip()).replace("\\", "/"))
    if not _FILE_BEHIND.fullmatch(plain):
        for ending in _ENDINGS:
            plain = plain.removesuffix(ending)
    tagged = _LIBRARY.match(plain) is not None or (":" in plain and "/" not in plain)
    plain = plain.rsplit("/", 1)[-1]
    of_file = _FILE_BEHIND.fullmatch(plain)
    plain, wanted = without_format(f"{of_file[1]}:{without_format(of_file[2])[1] or 'gguf'}" if of_file else plain)
    words = _words(_REVISION.sub("v0.", _DECIMAL.sub(".", plain)))
    needed, optional = _parted(words)
    return TypedName(needed, optional, wanted, tagged)


def _words(plain: str) -> Iterator[str]:
    before = ""
    for word in _WORD.findall(plain):
        word = _SPELLED.get(word, word.removesuffix(".0") if _NUMBER.fullmatch(word) else word)
        if word != before:
            yield word
        before = word


def _parted(words: Iterable[str]) -> tuple[Words, Words]:
    """The words that a model must have, and those that it may have."""
    needed: list[str] = []
    optional: list[str] = []
    sized, before = False, ""
    for word in words:
        revision = word[0] == "v" and _NUMBER.fullmatch(word) and sized
        again = word.isdigit() and before in _FREED and bool(needed)
        month = word.isdigit() and len(word) == 2 and word[0] in "01" and bool(needed) and word.startswith("0")
        if word in SAME or is_context(word) or revision or month or again or _DATE.fullmatch(word):
            optional.append(word)
        else:
            needed.append(word)
        sized, before = sized or is_size(word) or bool(_DATE.fullmatch(word)), word
    if any(is_size(word) and word[-1] == "b" for word in needed):  # millions beside them are of data: `3M-Llama3-70B`
        of_data = [word for word in needed if is_size(word) and word[-1] == "m"]
        needed, optional = [word for word in needed if word not in of_data], optional + of_data
    return (tuple(needed), tuple(optional)) if needed else (tuple(optional), ())


def context_said(word: str) -> int:
    """The tokens that a word names as a context: a power of two in thousands or millions (`128k`); 0: it names none."""
    count = int(word[:-1]) * {"k": 10**3, "m": 10**6}[word[-1]] if is_context(word) else 0
    power = 1 << max(0, count - 1).bit_length()
    return power if 0 < power <= count * CONTEXT_SLACK else 0


def is_context(word: str) -> bool:
    """Whether a word is a number of tokens: `128k`, `1m`."""
    return (word[-1] == "k" and word[:-1].isdigit()) or word == "1m"


def context_named(asked: TypedName, model: Model) -> int:
    """The context of a model by what its name says: as published under these words, or a longer one that it names."""
    words = {*asked.needed, *asked.optional}
    for known in model.contexts:
        if words.issuperset(known.words):
            return known.context
    longest = max(map(context_said, words))
    return longest if longest > model.context * CONTEXT_SLACK else model.context


def agree(wanted: str, word: str) -> bool:
    """Whether a word of a name stands for a model's: the same, or a size without its unit (`120` for `120b`)."""
    unsaid = (wanted.isdigit() and int(wanted) >= 10) or (wanted[0].isdigit() and "x" in wanted)
    return wanted == word or (unsaid and word == f"{wanted}b")


def distance(asked: TypedName, name: TypedName, *, effective: bool = False, count: float = 0.0) -> float | None:
    """How far a model's name is from the one asked for: words that it has beyond; None where it lacks one.

    With `effective` an effective size may stand for a size (`4b` for `e4b`). `count`: the parameters of a model whose
    names say no size; one that says about as many is its (`bge-m3:567m`).
    """
    built = _MADE_OF in name.needed and _MADE_OF not in asked.needed  # `gemma 5` is no T5Gemma
    if built or other_version(asked.needed, name.needed):
        return None
    left = Counter((*name.needed, *name.optional))
    before = ""
    for wanted in asked.needed:
        taken = next((word for word in left if left[word] and agree(wanted, word)), None)
        if taken is None and wanted.isdigit() and before[:1].isdigit() and left[f"{wanted}b"]:
            taken = f"{wanted}b"  # behind a version a number is a size
        if taken is None and wanted[0].isdigit() and (before, f"v{wanted}") in pairwise(name.needed):
            taken = f"v{wanted}"  # `deepseek 3.2`
        before = wanted
        if taken is None and effective and is_size(wanted) and left[f"e{wanted}"]:
            taken = f"e{wanted}"
        if taken is None and count and is_size(wanted) and abs(parameters(wanted) / count - 1) < SIZE_SLACK:
            continue
        if taken is None:
            return None
        left[taken] -= 1
    beyond = sum(0.1 if PART.fullmatch(word) else 1.0 for word in name.needed for _ in range(min(1, left[word])))
    optional = set(asked.optional) ^ set(name.optional)
    return beyond + 0.01 * len(optional) + 0.5 * (first_letters(asked) != first_letters(name))


def first_letters(name: TypedName) -> str:
    """The word that a name begins with: that of its family, or of whoever made something else of it."""
    return next((word for word in name.needed if word[0].isalpha()), "")


def other_version(asked: Words, name: Words) -> bool:
    """Whether a word has another version behind it in a name than in the one asked for (`qwen 1`, `... qwen 3 8b`)."""
    for word, version in pairwise(asked):
        if word.isalpha() and _NUMBER.fullmatch(version):
            theirs = [after for before, after in pairwise(name) if before == word and _NUMBER.fullmatch(after)]
            theirs = [each.lstrip("v") for each in theirs]
            if (
                theirs
                and version.lstrip("v") not in theirs
                and not any(is_size(size) and agree(version, size) for size in name)
            ):
                return True
    return False


def revisions(words: Words) -> set[str]:
    """The revisions among words: `1.6` of `v1.6`."""
    return {word[1:] for word in words if word[0] == "v" and "." in word}


def dates(words: Words) -> set[str]:
    """The dates of releases among words: `2512`, `0528`, no years."""
    return {word for word in words if _DATE.fullmatch(word) and not word.startswith("20")}


def revised(asked: Words, name: Words) -> bool | None:
    """Whether a name has the revision asked for behind a size (`13b-v1.6`), or another one; None: it has none.

    So with the date of a release: `mistral-large-2512`.
    """
    released, theirs = dates(asked), dates(name)
    if released and theirs:
        return bool(released & theirs)
    wanted = revisions(asked)
    versions = {word.lstrip("v") for word in name if _NUMBER.fullmatch(word) and "." in word}
    near = any(one.split(".")[0] == two.split(".")[0] for one in wanted for two in versions)
    return bool(wanted & versions) if near else None


def version_of(name: TypedName) -> tuple[tuple[float, ...], Words]:
    """The versions in a name, and the rest of it: two names with one rest are versions of one model."""
    numbers = [word for word in name.needed if _NUMBER.fullmatch(word)]
    rest = tuple(word for word in name.needed if not _NUMBER.fullmatch(word))
    return tuple(float(number.lstrip("v")) for number in numbers), rest


def lacks(key: str, asked: TypedName) -> bool:
    """Whether a model is less than the one asked for is or drafts for: no answer to its name, and no hint."""
    return bool((OTHER & set(asked.needed)) - set(typed(key).needed))


def lacks_family(key: str, asked: TypedName) -> bool:
    """Whether somebody's repository names no family at all, and a letter that is no model's own: `you/s1-mini`."""
    own = first_letters(asked)
    return (
        len(own) == 1
        and not family_words(tuple(w for w in asked.needed if len(w) > 1))
        and own != first_letters(typed(key))
    )


def kindred(asked: Words, name: Words) -> bool:
    """Whether a model may be what a misspelled name meant: a word of the family is spelled alike."""
    mine, theirs = family_words(asked), family_words(name)
    close = any(_spelled_alike(one, other) for one in mine for other in theirs if min(len(one), len(other)) > 2)
    return close or any(one[:3] == other[:3] and min(len(one), len(other)) > 3 for one in mine for other in theirs)


@functools.lru_cache(maxsize=8192)
def _spelled_alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one, other).ratio() >= 0.7 or sorted(one) == sorted(other)


def newest(names: Iterable[tuple[Words, str]], asked: Words) -> list[str]:
    """The models of a family's last version that is known, of which a later one is asked for; none: it is not that."""
    family, wanted = _version(asked)
    known: dict[float, list[str]] = {}
    for name, key in names:
        word, number = _version(name)
        if word and word == family:
            known.setdefault(number, []).append(key)
    if not known or wanted <= max(known):
        return []
    return list(dict.fromkeys(known[max(known)]))[:2]


def _version(words: Words) -> tuple[str, float]:
    """The family that a name begins with (`kimik` for Kimi K2), and the number of its version; no size, no date."""
    letters = 2 if len(words) > 1 and len(words[1]) == 1 and words[1].isalpha() else 1
    family, number, unit = "".join(words[:letters]), words[letters : letters + 1], words[letters + 1 : letters + 2]
    if not family.isalpha() or len(family) < 3 or not number or not number[0][0].isdigit() or unit in UNITS_OF_SIZE:
        return "", 0.0
    version = float(number[0])
    return (family, version) if version < MOST_VERSION else ("", 0.0)


def family_words(words: Words) -> list[str]:
    """The words that tell one family from another."""
    return [word for word in words if word.isalpha() and word not in GENERIC and word not in SAME]
