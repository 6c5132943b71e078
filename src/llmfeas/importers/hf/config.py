"""A Hugging Face `config.json` as a model: read, checked, never executed."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Final

from ...catalog.architecture import Architecture, Model
from ...catalog.published import Router
from ...errors import DataError, did_you_mean
from ...record import replace
from ...text import printable
from ..config_file import Config, read_config
from ..layers import with_layers
from ..quantized.methods import published_scheme, quantization_of
from ..quantized.schemes import QuantPlan
from ..stores.hub_cache import name_of
from ..tensors import ImportedModel
from .families import USUAL, Family, family, table
from .images import Seen, seen_of
from .parts import COLUMNS
from .purpose import as_asked
from .towers import towers_beside

_DTYPES: Final = ("float32", "bfloat16", "float16")


def _family_of(kind: str) -> Family | None:
    """The record of the language model in a model of this type: most add `_text` to their name."""
    for _ in range(2):
        if family(kind) is None:
            kind = table()["language_models"].get(kind, f"{kind}_text")
    return family(kind)


def model_from_config(path: Path) -> Model:
    """Read a model from its config.json, or from the folder that holds it: `checkpoint_from_config` without bytes."""
    return checkpoint_from_config(path).model


def checkpoint_from_config(path: Path) -> ImportedModel:
    """Read a model from its config.json, or from the folder that holds it, and how its weights are quantized.

    Of a model with images the language model is taken, its encoders held beside it. Fields that are not written have
    the defaults of their class in transformers 5.23.

    Raises:
        DataError: unreadable file, unknown model_type, a field that is missing, wrong or not supported.
    """
    whole = (file := read_config(path)).nested("thinker_config") or file  # Qwen Omni: what reads, beside what talks
    config, family, doubt = _language_model(whole)
    told, counted = _with_towers(whole, _checked_architecture(config, family))
    architecture, reranker = as_asked(whole, told)
    name, seen = _name(whole, path), seen_of(whole) if counted else None
    quant = quantization_of(whole, config, Path(whole.file).parent)
    published = None if quant is None else published_scheme(quant)
    model = Model(
        id=name,
        name=name,
        architecture=architecture,
        family=printable(config.text("model_type") or whole.text("model_type")),
        dtype=_dtype(config, whole),
        published_quant="none" if published is None else next((each.label for each in published.schemes), "none"),
        context=_context(config, family),
        reranker=reranker,
        rope_base=_rope_base(config),
        router=_router(config) if architecture.experts else None,
        notes="; ".join([*doubt, *_notes(config, family, quant, published, counted)]),
        sources=(config.file,),
    )
    return ImportedModel(
        model=model if seen is None else _with_images(model, seen),
        stored=None,
        parameters=None,
        format="config",
        paths=(str(path),),
        notes=(model.notes,) if model.notes else (),
        published=published,
        predicted=config.optional_count("num_nextn_predict_layers", "few", zero=True) or 0,
    )


def _with_images(model: Model, seen: Seen) -> Model:
    return replace(model, image_tokens=seen.tokens, image_size=seen.size, image_encoder=seen.encoder)


def _with_towers(whole: Config, architecture: Architecture) -> tuple[Architecture, bool]:
    """The architecture with the encoders that the file names, and whether they could be counted."""
    held = towers_beside(whole, architecture.hidden)
    return (replace(architecture, tower_parameters=held) if held else architecture), held is not None


def _language_model(whole: Config) -> tuple[Config, Family, list[str]]:
    """Find the configuration of the language model, the row of its type, and what is doubtful in that.

    Raises:
        DataError: unknown or missing model_type.
    """
    outer = whole.text("model_type")
    if outer in table()["unreadable"]:
        raise _unknown_type(whole, outer)
    text = next((found for key in _NESTED if (found := whole.nested(key)) is not None), None)
    inner = table()["language_models"].get(outer, outer)
    pair = {inner, text.text("model_type") if text else ""} & set(pairs := _encoder_decoders())
    if whole.raw("is_encoder_decoder") is True and not pair:
        raise whole.wrong(
            "is_encoder_decoder",
            f"is true: of encoder-decoders {', '.join(pairs)} are known, not {printable(outer, 40)}",
        )
    kind, config = outer, whole
    if text is not None:
        kind = text.text("model_type") or outer
        config = _tied_as(whole, text, outer)
    kind = table()["by_version"].get(kind, {}).get(str(config.raw("version")), kind)
    record, doubt = _family_of(kind), []
    if record is None and (alike := _type_of_class(config)):
        record = family(alike)
        doubt.append(f"model_type '{printable(kind, 40)}' is not known: read as {alike}, whose class it names")
    if record is None:
        raise _unknown_type(config, kind)
    return _respelled(config, record).with_defaults(record.defaults), record, doubt


def _type_of_class(config: Config) -> str | None:
    """The type whose name the class of the file begins with (`DeepseekV4ForCausalLM`)."""
    named = config.raw("architectures")
    word = named[0].partition("For")[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    return next((kind for kind in table()["families"] if word and _plain(kind) == _plain(word)), None)


def _plain(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def _respelled(config: Config, family: Family) -> Config:
    """The same fields under all names that classes know them by; what is written under a name stays."""
    sizes = [(family.names[size], usual) for size, usual in USUAL.items() if size in ("layers", "hidden", "heads")]
    more: dict[str, Any] = {}
    for names in (*sizes, *table()["same"]):
        found = [config.fields[name] for name in names if config.fields.get(name) is not None]
        more |= {name: found[0] for name in names if found and name not in config.fields}
    return replace(config, fields={**config.fields, **more})


def _encoder_decoders() -> list[str]:
    """Types whose files describe an encoder and a decoder."""
    return [kind for kind in table()["families"] if (found := family(kind)) and found.encoder_decoder]


_NESTED: Final = ("text_config", "llm_config", "language_config", "decoder", "decoder_config")
"""Where files keep their language model: the classes of transformers, InternVL's own code, DeepSeek's, T5Gemma's,
Canary's."""

_OF_BOTH: Final = ("encoder", "encoder_config", "dropout_rate", "attention_dropout")
"""What stands beside the two stacks of T5Gemma and Canary and replaces what is written in them."""


def _tied_as(whole: Config, text: Config, kind: str) -> Config:
    """The inner configuration with what both say of embedding and head, with the encoder that stands beside it, and the
    rates that hold for both.
    """
    if whole.raw("encoder") is not None or "decoder_config" in whole.fields:
        shared = {name: whole.fields[name] for name in _OF_BOTH if whole.fields.get(name) is not None}
        text = replace(text, fields={**text.fields, **shared})
    said = [place.fields.get("tie_word_embeddings") for place in (whole, text)]
    if said[0] is None and kind in table()["tied_outside"]:
        said[0] = False
    if said[0] is None or (kind in table()["tied_by_either"] and said[1] is True):
        return text
    return replace(text, fields={**text.fields, "tie_word_embeddings": said[0]})


def _unknown_type(config: Config, kind: str) -> DataError:
    shown = printable(kind, 60)
    if why := table()["unreadable"].get(kind):
        problem = f"{config.file}: {config.where}model_type '{shown}' {why}, which is not computed"
        return DataError("unknown-model-type", problem, _FILES_DO)
    near = difflib.get_close_matches(kind[:60], table()["families"], n=3, cutoff=0.6)
    problem = f"{config.where}model_type '{shown}' is not known" if kind else "no model_type"
    hint = f"{did_you_mean(near[:1])} {_FILES_DO}".lstrip()
    return DataError("unknown-model-type", f"{config.file}: {problem}", hint, near)


_FILES_DO: Final = (
    "Its weights (.safetensors) beside it would do: their headers say what the file does not. "
    "See 'llmfeas models list' for models that need no file."
)


def _checked_architecture(config: Config, family: Family) -> Architecture:
    for key, values in family.only.items():
        if config.raw(key) not in (*values, None):
            raise config.wrong(key, f"is {printable(config.raw(key), 40)}, which is not supported for this model_type")
    try:
        return _architecture(config, family)
    except ValueError as error:
        raise DataError("bad-config", f"{config.file}: {printable(error, 200)}") from None


def _architecture(config: Config, family: Family) -> Architecture:
    names = family.names
    layers = config.count(names["layers"], "layers")
    parts: dict[str, Any] = {
        "layers": layers,
        "hidden": config.count(names["hidden"]),
        "heads": config.count(names["heads"], "heads"),
        "kv_heads": config.optional_count(names["kv_heads"], "heads") or 0,
        "head_dim": config.optional_count(names["head_dim"], zero=True) or 0,
        "ffn": config.optional_count(names["ffn"], zero=True),
        "vocab": config.count(names["vocab"], "rows"),
        "context": _context(config, family),
        "activation": _activation(config, names["activation"]),
        "tied": config.flag("tie_word_embeddings"),
        "implementation": family.implementation,
        **family.fixed,
    }
    for read in family.readers:
        parts |= read(config, parts)
    context = parts.pop("context")
    if parts.get("positions") == "learned":
        parts.setdefault("learned_positions", context)
    if parts["ffn"] is None and "experts" not in parts:
        # transformers takes a feed-forward of four times the width where a GPT-2 does not say.
        parts["ffn"] = 4 * parts["hidden"]
    if parts["ffn"] == 0:
        raise config.wrong(names["ffn"], "is 0: a layer without experts has a feed-forward")
    side = parts.pop("side", None)
    columns = {name: parts.pop(name) for name in COLUMNS if name in parts}
    architecture = Architecture(**parts, beside=side)
    return with_layers(architecture, **columns) if columns else architecture


def _activation(config: Config, key: str) -> str:
    name = config.text(key, "silu")
    known = table()["activations"]
    if name not in known:
        raise config.wrong(key, f"'{printable(name, 40)}' is not known", f"Known: {', '.join(sorted(known))}.")
    return str(known[name])


def _context(config: Config, family: Family) -> int:
    # Nomic's first files spell it as GPT-2 does
    older = config.fields.get("n_positions") is not None
    return config.count("n_positions" if older else family.names["context"], "tokens")


def _rope_base(config: Config) -> float | None:
    """The base of the rotation, in the old spelling or in those of transformers 5; None: none is written."""
    rules = config.nested("rope_parameters")
    whole = rules.nested("full_attention") if rules is not None and "full_attention" in rules.fields else rules
    places = [place for place in (whole, config) if place is not None and place.fields.get("rope_theta") is not None]
    base = places[0].fields["rope_theta"] if places else None
    return float(base) if isinstance(base, int | float) and not isinstance(base, bool) and 0 < base < 1e12 else None


def _router(config: Config) -> Router | None:
    """How the router weighs, where the file says it as DeepSeek's do."""
    scores = config.fields.get("scoring_func")
    if scores not in ("softmax", "sigmoid"):
        return None
    groups, top_groups = (config.optional_count(key, "experts", zero=True) or 0 for key in ("n_group", "topk_group"))
    return Router(
        scores=scores,
        groups=groups if groups > 1 else 0,
        top_groups=top_groups if groups > 1 else 0,
        scale=config.number("routed_scaling_factor", 1.0) or 1.0,
        balanced=config.fields.get("topk_method") == "noaux_tc",
    )


def _name(whole: Config, path: Path) -> str:
    """Name the model after its folder, or its file where that is not called config.json."""
    written = whole.fields.get("_name_or_path")
    if isinstance(written, str) and written.strip():
        return printable(written.strip(), 100)
    return printable(name_of(path) or "config", 100)


def _dtype(config: Config, whole: Config) -> Any:
    for source in (config, whole):
        for key in ("dtype", "torch_dtype"):
            word = source.fields.get(key)
            if isinstance(word, str) and word.removeprefix("torch.") in _DTYPES:
                return word.removeprefix("torch.")
    return "bfloat16"


def _notes(
    config: Config, family: Family, quant: Config | None, published: QuantPlan | None, counted: bool
) -> list[str]:
    notes = []
    names = family.names
    unsaid = [key for key in (names["hidden"], names["layers"], names["vocab"]) if key not in config.fields]
    if unsaid:
        notes.append(f"{', '.join(unsaid)} not in the file: taken as its class in transformers has it")
    if config.where.startswith("thinker_config."):
        notes.append("what reads and writes alone: what speaks beside it is not counted")
    if not counted:
        notes.append("language model alone, without its encoders")
    if quant is not None and published is None:
        method = quant.text("quant_algo") or quant.text("quant_method") or "without a name"
        notes.append(
            f"its quantization ({printable(method, 40)}) is not known: counted in 16 bits, likely too much; "
            "with the safetensors files beside it the bytes are exact"
        )
    elif published is not None:
        notes.append(f"quantized by {published.tool}: bytes computed from what the configuration says, not from files")
    if config.optional_count("num_nextn_predict_layers", "layers", zero=True):
        notes.append("the multi-token-prediction block is not counted")
    return notes
