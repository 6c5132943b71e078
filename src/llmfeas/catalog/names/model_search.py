"""Models by the names that people have for them, as `models` takes them apart."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...errors import UsageError
from ...record import replace
from ...text import printable
from ..architecture import Model
from ..engine import OLLAMA
from ..records import Match
from ..search import Tokens, alike, ambiguous, index_of, joined, taken_note, tokens_of, unknown
from ..store import data_file, data_folder
from .slips import mended

if TYPE_CHECKING:
    from ..store import Catalog, Records
    from .model_index import ModelIndex
    from .models import TypedName

LONGEST_REGION: Final = 2
"""Letters of a region ahead of a maker and a family: `us.anthropic.claude-sonnet`."""
LIBRARY: Final = "library/"
"""What stands before a name of Ollama's library where it is written out."""
OLLAMA_FORMAT: Final = "q4_k_m"
"""What Ollama's library holds under a tag that says no format; of a model trained for few bits, and of an encoder."""
OLLAMA_TRAINED: Final = "q4_0"
OLLAMA_ENCODER: Final = "none"
LATEST: Final = "latest"
"""What makers call the last model of a family in."""
CLOUD: Final = "cloud"
"""What tags end in of models that Ollama runs on its own servers: its library holds no weights under them."""
ADAPTERS: Final = frozenset(("lora", "qlora", "dora", "adapter", "adapters", "peft"))
"""Words of repositories that hold an adapter of a model, which runs as that model with a little more."""
WIDE_BITS: Final = 8.0
"""Weights of as many, which llama.cpp does not read, lie in GGUF files of fewer."""


_FILE: Final = re.compile(r"(?:([\w-][\w.-]*)/[\w.-]+/)?[\w-][\w.-]*\.(?:gguf|safetensors)", re.ASCII | re.IGNORECASE)


def published_file(text: str, catalog: Catalog) -> Match[Model] | None:
    """The model that a published file's name says; `find_published_file` says the rest."""
    match = _FILE.fullmatch(text)
    if match is None or os.path.exists(match[1] or text):  # noqa: PTH110 - pathlib costs more than the test
        return None
    try:
        found = model_named(text, catalog)
    except UsageError:
        return None
    note = found.note or taken_note(text, found.record.id, ())
    return Match(found.record, f"no file of this name is here: {note}, by its name", found.others)


def pulled_model(text: str, catalog: Catalog) -> Match[Model]:
    """The model that a name of Ollama's library means; `find_model` says the rest."""
    return model_named(LIBRARY + text, catalog)


@functools.lru_cache(maxsize=1024)
def model_named(text: str, catalog: Catalog) -> Match[Model]:
    """The model that a name means which is no id; `find_model` says the rest."""
    from .models import context_named, kindred, lacks, newest, typed
    from .served import undeployed

    text = undeployed(text)
    index, known, asked = index_of(catalog.models), _models(catalog.models), typed(text)
    exact = index.exact.get(joined(tokens_of(text)))
    if exact and "/" not in text and not asked.optional:
        # A repository is itself; words are what most people mean by them: `Qwen/Qwen-72B`, and `qwen 72b`.
        exact = known.defaults.get(asked.needed, exact)
    last = exact is None and LATEST in asked.optional and not asked.tagged and len(asked.needed) == 1
    if last and (kept := _without_answer(text, newest=True)):
        raise kept
    key, ids = _sought(text, asked, exact, known)
    text = text.removeprefix(LIBRARY)
    if key is None and len(ids) > 1:
        raise ambiguous("model", text, ids)
    if key is None:
        if kept := _without_answer(text, begins=known.beginning(asked)):
            raise kept
        own = ((tokens_of(each), each) for each in catalog.models)  # no fine-tune says what a family's last version is
        near = newest(own, tokens_of(text)) or alike(index, text, kindred) or known.of_size(asked)
        raise unknown(index, "model", text, [key for key in near if not lacks(key, asked)])
    model = catalog.models[key]
    others = tuple(other for other in ids if other != key)
    wanted, remark = _format_named(asked, model, catalog)
    context = context_named(asked, model)
    if context != model.context:
        remark += f", with a context of {context:,} tokens"
    if ADAPTERS & set(tokens_of(text)) - set(tokens_of(key)):
        remark += ", of which it is an adapter: the model itself is computed"
    note = None if key == exact and not remark else taken_note(text, key, others, remark)
    return Match(_as_named(model, wanted, context), note, others)


def _as_named(model: Model, wanted: str, context: int) -> Model:
    """The model with the format and the context that its name says."""
    same = wanted == model.published_quant and context == model.context
    base = model.rope_base if context == model.context else None  # what was trained further may turn more slowly
    return model if same else replace(model, published_quant=wanted, context=context, rope_base=base)


def _sought(text: str, asked: TypedName, exact: str | None, known: ModelIndex) -> tuple[str | None, tuple[str, ...]]:
    """The id that a name means, and all that it may mean: as it is written, else with a slip or two mended."""
    from .model_choice import adds_version, chosen
    from .models import dotted, lacks_family, repository, typed, unabbreviated, with_points
    from .served import hyphenated, spellings

    if exact and not asked.format and not asked.tagged:
        return exact, ()
    of_hub = "/" in text.removeprefix(LIBRARY)
    published = known.repositories.get(repository(text)) if of_hub and not asked.tagged else None
    if published is not None:
        return published, ()
    # `3-3-70b` is a version first, and `p` or a region only where the name as it stands means nothing
    for spelled in dict.fromkeys(
        (
            *(dotted(hyphenated(text)), text, with_points(text), *spellings(text), unabbreviated(text)),
            *((known.without_owner(text),) if of_hub else ()),
        )
    ):
        key, ids = chosen(known, typed(spelled))
        if key and of_hub and (lacks_family(key, asked) or adds_version(known, key, asked)):
            return None, ()
        if key or ids:
            return key, ids
    typed_by_hand = not of_hub and not _without_answer(text)  # a repository's name is copied
    words = mended((*asked.needed, *asked.optional), known.vocabulary) if typed_by_hand else ()
    key, ids = chosen(known, typed(" ".join(words))) if words else (None, ())
    return key, ids if key else ()


def _format_named(asked: TypedName, model: Model, catalog: Catalog) -> tuple[str, str]:
    """The format that a name gives to a model's weights, and what a note says of it."""
    known = catalog.tables.quantization.formats
    library = OLLAMA_TRAINED if "qat" in asked.optional else OLLAMA_FORMAT
    library = OLLAMA_ENCODER if model.architecture.encoder else library
    kept = _in_library(model.published_quant, catalog)
    clouded = asked.tagged and CLOUD in asked.optional
    wanted = asked.format or (library if asked.tagged and not kept and not clouded else "")
    wide = min(catalog.tables.quantization.encoded_bits(model.published_quant)) >= WIDE_BITS
    if not wanted and "gguf" in asked.optional and not kept and wide and model.published_quant != "none":
        return library, f", in {library}, since no GGUF is in {model.published_quant} and none of its files was named"
    if not wanted:
        return model.published_quant, ", as published (Ollama runs cloud tags on its own servers)" if clouded else ""
    if wanted not in known:
        return model.published_quant, f" (its format, {wanted}, is not known here: as published)"
    if "gguf" in asked.optional and keeps_published(wanted, model, catalog):
        return model.published_quant, f" (a GGUF keeps {model.published_quant} whatever its name says)"
    whose = "" if asked.format else ", which is what Ollama's library holds"
    return wanted, f", in {wanted}{whose}" if wanted != "none" else ", in 16 bits"


def _in_library(published: str, catalog: Catalog) -> bool:
    """Whether Ollama's library holds weights as they were published: those of few bits that it reads, no fp8."""
    if published == "none":
        return False
    engine = catalog.engines[OLLAMA]
    return engine.reads(catalog.tables.quantization.format(published, engine.speaks))


def keeps_published(wanted: str, model: Model, catalog: Catalog) -> bool:
    """Whether a format has more whole bits than the published one, which llama.cpp reads: its GGUFs keep those.

    So has one whose blocks do not divide the model's width, for what stands in for it.
    """
    table, published = catalog.tables.quantization, model.published_quant
    if not _in_library(published, catalog):
        return False
    base = "" if wanted == "none" else table.fitting(table.formats[wanted].base, model.architecture.hidden)
    bits = table.encodings[base].bits if base in table.encodings else table.encoded_bits(wanted)[0]
    return int(bits) > int(min(table.encoded_bits(published)))


@functools.lru_cache(maxsize=32)
def _models(records: Records[Model]) -> ModelIndex:
    from .model_index import ModelIndex, index_of_models

    told = records.indexed()
    if told:
        return ModelIndex.of_json(told["models"])
    return index_of_models(records.names(), data_file(data_folder(), "names", needed=False).data)


def _version_behind(word: str, words: Tokens) -> float:
    """The number behind a word; 0 where there is none."""
    behind = words[words.index(word) + 1 :][:1]
    return float(behind[0]) if behind and behind[0][0].isdigit() else 0.0


def _is_told_of(family: Mapping[str, Any], text: str) -> bool:
    """Whether a repository's name has words of others ahead of a family's: what it learned from (`vicuna-gpt4`)."""
    from .models import SAME

    words = tokens_of(text.rpartition("/")[2])
    ahead = words[: words.index(family["word"])] if family["word"] in words else ()
    return any(
        len(word) > LONGEST_REGION and word not in SAME and word not in family["maker"].lower() for word in ahead
    )


def _without_answer(text: str, *, newest: bool = False, begins: str = "") -> UsageError | None:
    """What to answer to the name of a model whose weights nobody published, or that writes no text; None of others.

    By data/unpublished.yaml; `newest`: a name without a version means the last one. `begins`: the family of known
    models that the name begins with: what else it names is what that was tuned by (`gemma-3-12b-GPT-5.1-High`).
    """
    words = tokens_of(text)
    known = data_file(data_folder(), "unpublished", needed=False).data
    for other in known.get("others", ()):
        if set(other["words"]) <= set(words):
            problem = f"'{printable(text, 60)}' makes {other['makes']}: {other.get('so', 'it is no language model')}"
            return UsageError("unknown-model", problem, "See 'llmfeas models list' for those that are known.")
    for family in known.get("families", ()):
        if family["word"] not in words or (begins and begins != family["word"]):
            continue
        if "/" in text and _is_told_of(family, text):
            continue
        if "from" in family and not newest and _version_behind(family["word"], words) < family["from"]:
            continue
        instead = family["instead"]
        hint = f"What they did publish: {' and '.join(instead)}." if instead else "See 'llmfeas models list'."
        problem = f"the weights of '{printable(text, 60)}' are not published by {family['maker']}"
        return UsageError("unknown-model", problem, hint, instead)
    return None
