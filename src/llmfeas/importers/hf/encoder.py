"""Readers of encoders: BERT and its kin, ModernBERT, the bodies of embedding and reranking models.

What stands behind the last layer is taken from `architectures`; it runs once a text, and no token's work counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...catalog.parts import Dropout, Experts, SideWeights
from ..config_file import Config
from . import parts as read
from .parts import Parts, reader

_ENCODER: Final = {"encoder": True, "norm": "layer", "tied": False}


BERT: Final = {
    **_ENCODER,
    "norm_bias": True,
    "norm_position": "post",
    "final_norm": False,
    "embedding_norm": True,
    "gated": False,
    "qkv_bias": True,
    "out_bias": True,
    "mlp_bias": True,
}


def class_of(config: Config) -> str:
    """What the class of the file is for: `Model` where none is named."""
    names = config.raw("architectures")
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else "Model"
    if name.endswith(("LMHeadModel", "Decoder")):
        return "CausalLM"
    _, found, purpose = name.rpartition("For")
    return purpose if found and purpose[:1].isupper() else "Model"  # RoFormerModel is for nothing


def labels_of(config: Config) -> int:
    """How many labels it tells apart: two where the file does not say."""
    named = config.raw("id2label")
    return len(named) if isinstance(named, Mapping) and named else config.optional_count("num_labels", "rows") or 2


def kinds_of(config: Config, width: int) -> int:
    """Numbers of the table of kinds of tokens."""
    return (config.optional_count("type_vocab_size", "rows", zero=True) or 0) * width


def square(hidden: int) -> int:
    """A product of the stream's width with its bias."""
    return hidden * hidden + hidden


def behind_last(config: Config, parts: Parts, *, pooled: bool) -> int:
    """Numbers behind the last layer: a pooler, what predicts masked tokens, or what classifies."""
    hidden: int = parts["hidden"]
    vocab: int = parts["vocab"]
    kind = class_of(config)
    table = own_head(config, parts, hidden + 1)
    if kind in ("MaskedLM", "CausalLM"):
        return square(hidden) + 2 * hidden + vocab + table
    if kind == "PreTraining":
        return 2 * square(hidden) + 2 * hidden + vocab + 2 * (hidden + 1) + table
    labels = labels_of(config) * (hidden + 1)
    if kind == "SequenceClassification":
        return square(hidden) + labels
    if kind == "Model":
        return square(hidden) if pooled else 0
    return labels


def own_head(config: Config, parts: Parts, width: int) -> int:
    """Numbers of a head, a row a word, that is not the embedding: of encoders, only where the file says so."""
    return int(parts["vocab"]) * width if config.fields.get("tie_word_embeddings") is False else 0


def predicts(config: Config) -> bool:
    """Whether its class predicts masked tokens, by the token table."""
    return class_of(config) in ("MaskedLM", "PreTraining") and config.fields.get("tie_word_embeddings") is not False


def dropout_of(config: Config) -> Parts:
    """Read the dropout of scores and of the stream."""
    rate, scores = config.rate("hidden_dropout_prob"), config.rate("attention_probs_dropout_prob")
    return {"dropout": Dropout(embedding=rate, attention=scores, residual=rate)}


@reader
def bert(config: Config, parts: Parts) -> Parts:
    """Read BERT: learned positions, kinds of tokens, a pooler."""
    side = SideWeights(vectors=kinds_of(config, parts["hidden"]) + behind_last(config, parts, pooled=True))
    return {"positions": "learned", "side": side, "masked": predicts(config), **dropout_of(config)}


@reader
def turning(config: Config, parts: Parts, *, gated: bool = False) -> Parts:
    """Read BERT with heads that rotate (Jina 3); with gates only the last product of a feed-forward has a bias, and
    there is no pooler (GTE, whose first files say `new`)."""
    hidden = parts["hidden"]
    biases = parts["layers"] * hidden if gated else 0
    vectors = kinds_of(config, hidden) + behind_last(config, parts, pooled=not gated) + biases
    return {"side": SideWeights(vectors=vectors), "masked": predicts(config), **dropout_of(config)}


def modern_windows(config: Config, parts: Parts, size: int) -> Parts:
    """Read which layers of a ModernBERT see everything: those that are listed, or every n-th from the first on."""
    layers: int = parts["layers"]
    every = config.optional_count("global_attn_every_n_layers", "layers") or 3
    kinds = config.words("layer_types", 10_000) or tuple(
        "sliding_attention" if index % every else "full_attention" for index in range(layers)
    )
    return read.pattern(config, "layer_types", kinds, layers, size)


@reader
def modern(config: Config, parts: Parts) -> Parts:
    """Read ModernBERT: every n-th layer from the first on sees everything, the others half a window on each side.

    The norm that the first layer lacks stands for that of the embedding.
    """
    found = modern_windows(config, parts, config.count("local_attention", "tokens"))
    hidden, kind = parts["hidden"], class_of(config)
    head = square(hidden)
    behind = {"Model": 0, "MaskedLM": head + parts["vocab"]}.get(kind, head + labels_of(config) * (hidden + 1))
    side = SideWeights(vectors=behind) if behind else None
    return {**found, "norm_bias": config.flag("norm_bias"), "side": side, "masked": predicts(config)}


@reader
def nomic(config: Config, parts: Parts) -> Parts:
    """Read Nomic's encoder, whose first files spell its sizes as GPT-2's."""
    older = {"layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "ffn": "n_inner", "context": "n_positions"}
    found: Parts = {name: config.count(key) for name, key in older.items() if config.fields.get(key) is not None}
    biased = config.raw("qkv_proj_bias") is True
    found |= {"qkv_bias": biased, "out_bias": biased, "mlp_bias": config.raw("mlp_fc1_bias") is True}
    if config.raw("activation_function") == "gelu":
        found |= {"gated": False, "activation": "gelu"}
    merged = {**parts, **found}
    every = config.optional_count("moe_every_n_layers", "layers", zero=True)
    if every:
        found |= _nomic_experts(config, merged, every)
    head = merged["hidden"] // merged["heads"]
    behind = behind_last(config, merged, pooled=False)
    side = SideWeights(vectors=kinds_of(config, merged["hidden"]) + behind)
    return {**found, "kv_heads": merged["heads"], "head_dim": head, "side": side}


def _nomic_experts(config: Config, parts: Parts, every: int) -> Parts:
    """The second of every so many layers holds experts, with one bias behind all of them."""
    count, chosen = config.count("num_experts", "experts"), config.count("moe_top_k", "experts")
    routed = [index % every == 1 for index in range(parts["layers"])]
    return {
        "experts": Experts(count=count, top_k=chosen, width=parts["ffn"], layer_step=every),
        "feed_forward": ["experts" if each else "dense" for each in routed],
        "beside": [SideWeights(vectors=parts["hidden"]) if each else None for each in routed],
    }


@reader
def distilled(config: Config, parts: Parts) -> Parts:
    """Read DistilBERT: no kinds of tokens, no pooler."""
    hidden, kind = parts["hidden"], class_of(config)
    behind = {"Model": 0, "MaskedLM": square(hidden) + 2 * hidden + parts["vocab"]}
    labels = labels_of(config) * (hidden + 1)
    classified = square(hidden) + labels if kind == "SequenceClassification" else labels
    count = behind.get(kind, classified)
    side = SideWeights(vectors=count) if count else None
    return {"positions": "learned", "side": side, "masked": predicts(config)}


@reader
def mpnet(config: Config, parts: Parts) -> Parts:
    """Read MPNet: BERT, with a table of distances."""
    buckets = config.count("relative_attention_num_buckets", "rows") * parts["heads"]
    behind = behind_last(config, parts, pooled=True)
    side = SideWeights(vectors=buckets + behind)
    return {"positions": "learned", "side": side, "masked": predicts(config), **dropout_of(config)}


@reader
def disentangled(config: Config, parts: Parts) -> Parts:
    """Read DeBERTa v2 and v3: a table of distances, which every layer's keys and queries project again."""
    hidden, layers = parts["hidden"], parts["layers"]
    words: Any = config.raw("pos_att_type") or ()
    words = words.split("|") if isinstance(words, str) else words
    vectors = kinds_of(config, hidden)
    if config.flag("relative_attention"):
        buckets = config.raw("position_buckets")
        reach = buckets if type(buckets) is int and buckets > 0 else parts["context"]
        vectors += 2 * reach * hidden
        vectors += 2 * hidden if "layer_norm" in config.text("norm_rel_ebd", "none") else 0
        if not config.flag("share_att_key"):
            vectors += layers * len(words) * square(hidden)
    kernel = config.optional_count("conv_kernel_size", "few", zero=True) or 0
    vectors += kernel * hidden * hidden + 3 * hidden if kernel else 0
    behind = 0 if class_of(config) == "Model" else behind_last(config, parts, pooled=False)
    positions: Parts = {"positions": "learned"} if config.raw("position_biased_input") is not False else _STILL
    return {**positions, "side": SideWeights(vectors=vectors + behind), **dropout_of(config)}


@reader
def albert_behind(config: Config, parts: Parts) -> Parts:
    """Read ALBERT's narrow embedding, kinds of tokens, and what stands behind its last layer."""
    hidden, narrow, kind = parts["hidden"], config.count("embedding_size"), class_of(config)
    pooled, labels = square(hidden), labels_of(config) * (hidden + 1)
    predicted = hidden * narrow + 3 * narrow + parts["vocab"]
    behind = {"Model": pooled, "MaskedLM": predicted, "SequenceClassification": pooled + labels}.get(kind, labels)
    side = SideWeights(vectors=kinds_of(config, narrow) + hidden + behind)
    found = {"positions": "learned", "embedding_dim": narrow, "side": side, **dropout_of(config)}
    return {**found, "masked": kind == "MaskedLM" and predicts(config)}


_STILL: Final[Parts] = {"positions": "rope", "rope_fraction": 0.0}


_AHEAD: Final = {"norm_position": "pre", "final_norm": True}


def _narrow(config: Config, parts: Parts, key: str = "embedding_size") -> tuple[Parts, int, int]:
    """A table narrower than the stream, its width, and the bias of the projection behind positions and norm."""
    hidden, narrow = parts["hidden"], config.optional_count(key) or parts["hidden"]
    if narrow == hidden:
        return {}, hidden, 0
    return {"embedding_dim": narrow, "projects_late": True}, narrow, hidden


def _predicted(parts: Parts, width: int, *, wide: int = 0) -> int:
    """The head that predicts tokens: a product and a norm of a table's width, a bias a token; `wide`: a table too."""
    hidden: int = parts["hidden"]
    return hidden * width + 3 * width + int(parts["vocab"]) * (1 + wide)


def _headed(config: Config, parts: Parts, heads: Mapping[str, int], beside: int) -> Parts:
    """What stands beside the layers: these numbers and those of the class's head, by default a number a label."""
    labels = labels_of(config) * (parts["hidden"] + 1)
    last = heads.get(class_of(config), labels)
    return {"side": SideWeights(vectors=beside + last), **dropout_of(config)}


def _classified(config: Config, parts: Parts) -> int:
    hidden: int = parts["hidden"]
    return square(hidden) + labels_of(config) * (hidden + 1)


@reader
def electra(config: Config, parts: Parts) -> Parts:
    """Read ELECTRA: `PreTraining` finds the tokens that `MaskedLM` replaced."""
    found, narrow, bias = _narrow(config, parts)
    return {**found, "positions": "learned", **_factored(config, parts, kinds_of(config, narrow) + bias, narrow)}


def _factored(config: Config, parts: Parts, beside: int, narrow: int) -> Parts:
    predicted, hidden = _predicted(parts, narrow) + own_head(config, parts, narrow), parts["hidden"]
    heads = {
        "Model": 0,
        "MaskedLM": predicted,
        "CausalLM": predicted,
        "PreTraining": square(hidden) + hidden + 1,
        "SequenceClassification": _classified(config, parts),
    }
    masked = class_of(config) == "MaskedLM" and predicts(config)
    return {**_headed(config, parts, heads, beside), "masked": masked}


@reader
def roformer(config: Config, parts: Parts) -> Parts:
    """Read RoFormer: rotated queries and keys, whose angles its files hold."""
    if config.flag("rotary_value"):
        raise config.wrong("rotary_value", "is true: rotated values are not read yet")
    found, narrow, bias = _narrow(config, parts)
    angles = parts["context"] * (parts["hidden"] // parts["heads"])
    return {**found, **_factored(config, parts, kinds_of(config, narrow) + bias + angles, narrow)}


@reader
def rembert(config: Config, parts: Parts) -> Parts:
    """Read RemBERT, which predicts tokens with a wide table of its own.

    Raises:
        DataError: a table of tokens as wide as the stream.
    """
    found, narrow, bias = _narrow(config, parts, "input_embedding_size")
    if not found:
        raise config.wrong("input_embedding_size", "equals hidden_size, which is not supported for this model_type")
    wide = config.count("output_embedding_size")
    masked = _predicted(parts, wide, wide=wide)
    heads = {
        "Model": square(parts["hidden"]),
        "MaskedLM": masked,
        "CausalLM": masked,
        "SequenceClassification": _classified(config, parts),
    }
    return {**found, "positions": "learned", **_headed(config, parts, heads, kinds_of(config, narrow) + bias)}


@reader
def ernie(config: Config, parts: Parts) -> Parts:
    """Read ERNIE: BERT, with a table of tasks in some."""
    found = bert(config, parts)
    if not config.flag("use_task_id"):
        return found
    tasks = config.count("task_type_vocab_size", "rows") * parts["hidden"]
    return {**found, "side": SideWeights(vectors=found["side"].vectors + tasks)}


@reader
def big_bird(config: Config, parts: Parts) -> Parts:
    """Read BigBird: a pooler under everything. It sees all tokens of a text, or blocks of them where it is long.

    Work is that of all tokens (its own for texts up to 1,024), an upper bound beyond.
    """
    hidden, kind = parts["hidden"], class_of(config)
    last = behind_last(config, parts, pooled=True) + (square(hidden) if kind not in ("Model", "PreTraining") else 0)
    side = SideWeights(vectors=kinds_of(config, hidden) + last)
    return {"positions": "learned", "side": side, **dropout_of(config)}


@reader
def generator(config: Config, parts: Parts) -> Parts:
    """Read the encoder of BERT for generation: no kinds of tokens, no pooler; one that writes has a bias a token."""
    head = parts["vocab"] + own_head(config, parts, parts["hidden"] + 1)
    side = SideWeights(vectors=head) if class_of(config) == "CausalLM" else None
    return {"positions": "learned", "side": side, **dropout_of(config)}


@reader
def sounds_and_shapes(config: Config, parts: Parts) -> Parts:
    """Read RoCBert: how a character sounds and looks stands beside it, and one product joins the three."""
    found, hidden = bert(config, parts), parts["hidden"]
    vectors, joined = found["side"].vectors, hidden
    for name in ("pronunciation", "shape"):
        width = config.count(f"{name}_embed_dim")
        vectors += config.count(f"{name}_vocab_size", "rows") * width
        joined += width if config.raw(f"enable_{name}") is not False else 0
    if class_of(config) == "PreTraining":
        vectors -= 2 * (hidden + 1)  # no sentences that follow one another
    if config.raw("concat_input") is False:
        return {**found, "side": SideWeights(vectors=vectors)}
    return {**found, "side": SideWeights(matrices=((joined, hidden),), vectors=vectors + hidden)}


@reader
def languages(config: Config, parts: Parts) -> Parts:
    """Read X-MOD: behind each feed-forward a narrow one for each language, of which a text passes its own."""
    hidden = parts["hidden"]
    narrow = hidden // config.count("adapter_reduction_factor", "few")
    named = len(config.words("languages", 10_000) or ("en_XX",))
    norm = 2 * hidden if config.flag("adapter_layer_norm") else 0
    one = SideWeights(
        matrices=((hidden, narrow), (narrow, hidden)),
        vectors=named * (narrow + hidden) + norm,
        table=(2 * (named - 1) * narrow, hidden) if named > 1 else None,
    )
    ahead = _AHEAD if config.flag("pre_norm") else {}
    return {"beside": [one] * parts["layers"], **ahead}


@reader
def xlm(config: Config, parts: Parts) -> Parts:
    """Read XLM: a table of languages where there are several."""
    hidden, named = parts["hidden"], config.optional_count("n_langs", "few") or 1
    spoken = named * hidden if named > 1 and config.raw("use_lang_emb") is not False else 0
    projects = config.raw("summary_use_proj") is not False
    labels = labels_of(config) if config.raw("summary_proj_to_labels") is not False else hidden
    heads = {
        "Model": 0,
        "CausalLM": parts["vocab"],
        "SequenceClassification": labels * (hidden + 1) if projects else 0,
    }
    found = _headed(config, parts, heads, spoken)
    rate = config.rate("dropout")
    rates = Dropout(embedding=rate, attention=config.rate("attention_dropout"), residual=rate)
    activation = "relu" if config.raw("gelu_activation") is False else "gelu"
    return {**found, "positions": "learned", "ffn": 4 * hidden, "activation": activation, "dropout": rates}


@reader
def xlnet(config: Config, parts: Parts) -> Parts:
    """Read XLNet as it reads a text: every token sees all others, by distances to both sides and by segments."""
    hidden = parts["hidden"]
    heads = {"Model": 0, "CausalLM": parts["vocab"], "SequenceClassification": _classified(config, parts)}
    rate = config.rate("dropout")
    return {
        **_headed(config, parts, heads, hidden),
        "beside": [SideWeights(vectors=3 * hidden)] * parts["layers"],
        "dropout": Dropout(embedding=rate, attention=rate, residual=rate),
    }
