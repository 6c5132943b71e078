"""Rows of encoders: BERT and its kin, ModernBERT, the bodies of embedding and reranking models.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
What stands behind the last layer is taken from `architectures`; it runs once a text, and no token's work counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import Dropout, SideWeights
from . import hf_parts as read
from .config_file import Config
from .hf_parts import BIASED, MLP_BIASED, Family, Parts, sizes

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
ALBERT_FIXED: Final = {**BERT, "projects_late": True}


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
    if kind in ("MaskedLM", "CausalLM"):
        return square(hidden) + 2 * hidden + vocab
    if kind == "PreTraining":
        return 2 * square(hidden) + 2 * hidden + vocab + 2 * (hidden + 1)
    labels = labels_of(config) * (hidden + 1)
    if kind == "SequenceClassification":
        return square(hidden) + labels
    if kind == "Model":
        return square(hidden) if pooled else 0
    return labels


def dropout_of(config: Config) -> Parts:
    """Read the dropout of scores and of the stream."""
    rate, scores = config.rate("hidden_dropout_prob"), config.rate("attention_probs_dropout_prob")
    return {"dropout": Dropout(embedding=rate, attention=scores, residual=rate)}


def bert(config: Config, parts: Parts) -> Parts:
    """Read BERT: learned positions, kinds of tokens, a pooler."""
    side = SideWeights(vectors=kinds_of(config, parts["hidden"]) + behind_last(config, parts, pooled=True))
    return {"positions": "learned", "side": side, **dropout_of(config)}


def modern_windows(config: Config, parts: Parts, size: int) -> Parts:
    """Read which layers of a ModernBERT see everything: those that are listed, or every n-th from the first on."""
    layers: int = parts["layers"]
    every = config.optional_count("global_attn_every_n_layers", "layers") or 3
    kinds = config.words("layer_types", 10_000) or tuple(
        "sliding_attention" if index % every else "full_attention" for index in range(layers)
    )
    return read.pattern(config, "layer_types", kinds, layers, size)


def _modern(config: Config, parts: Parts) -> Parts:
    """Read ModernBERT: every n-th layer from the first on sees everything, the others half a window on each side.

    The norm that the first layer lacks stands for that of the embedding.
    """
    found = modern_windows(config, parts, config.count("local_attention", "tokens"))
    hidden, kind = parts["hidden"], class_of(config)
    head = square(hidden)
    behind = {"Model": 0, "MaskedLM": head + parts["vocab"]}.get(kind, head + labels_of(config) * (hidden + 1))
    return {**found, "norm_bias": config.flag("norm_bias"), "side": SideWeights(vectors=behind) if behind else None}


def _nomic(config: Config, parts: Parts) -> Parts:
    """Read Nomic's encoder, whose first files spell its sizes as GPT-2's."""
    older = {"layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "ffn": "n_inner", "context": "n_positions"}
    found: Parts = {name: config.count(key) for name, key in older.items() if config.fields.get(key) is not None}
    experts = config.optional_count("num_experts", "experts", zero=True)
    if experts:
        raise config.wrong("num_experts", "is above 0: its experts are not read yet")
    merged = {**parts, **found}
    head = merged["hidden"] // merged["heads"]
    behind = behind_last(config, merged, pooled=False)
    side = SideWeights(vectors=kinds_of(config, merged["hidden"]) + behind)
    return {**found, "kv_heads": merged["heads"], "head_dim": head, "side": side}


def _distilled(config: Config, parts: Parts) -> Parts:
    hidden, kind = parts["hidden"], class_of(config)
    behind = {"Model": 0, "MaskedLM": square(hidden) + 2 * hidden + parts["vocab"]}
    labels = labels_of(config) * (hidden + 1)
    classified = square(hidden) + labels if kind == "SequenceClassification" else labels
    count = behind.get(kind, classified)
    return {"positions": "learned", "side": SideWeights(vectors=count) if count else None}


def _mpnet(config: Config, parts: Parts) -> Parts:
    buckets = config.count("relative_attention_num_buckets", "rows") * parts["heads"]
    behind = behind_last(config, parts, pooled=True)
    return {"positions": "learned", "side": SideWeights(vectors=buckets + behind), **dropout_of(config)}


def _disentangled(config: Config, parts: Parts) -> Parts:
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


def albert_behind(config: Config, parts: Parts) -> Parts:
    """Read ALBERT's narrow embedding, kinds of tokens, and what stands behind its last layer."""
    hidden, narrow, kind = parts["hidden"], config.count("embedding_size"), class_of(config)
    pooled, labels = square(hidden), labels_of(config) * (hidden + 1)
    masked = hidden * narrow + 3 * narrow + parts["vocab"]
    behind = {"Model": pooled, "MaskedLM": masked, "SequenceClassification": pooled + labels}.get(kind, labels)
    side = SideWeights(vectors=kinds_of(config, narrow) + hidden + behind)
    return {"positions": "learned", "embedding_dim": narrow, "side": side, **dropout_of(config)}


_STILL: Final[Parts] = {"positions": "rope", "rope_fraction": 0.0}


def bert_like(implementation: str = "hf-bert", *, fixed: Mapping[str, Any] | None = None, **changed: Any) -> Family:
    """A row of BERT's fields, with what a class fixes otherwise and the defaults that it changes."""
    defaults = sizes(12, 768, 12, None, 3072, 30522, 512, type_vocab_size=2, tie_word_embeddings=True)
    return Family(
        implementation=implementation,
        defaults={**defaults, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
        | changed,
        fixed={**BERT, **(fixed or {})},
        parts=(bert,),
        only={"position_embedding_type": ("absolute",), "is_decoder": (False,)},
    )


ENCODERS: Final[Mapping[str, Family]] = {
    "bert": bert_like(),
    "roberta": bert_like(vocab_size=50265),
    "xlm-roberta": bert_like(),
    "camembert": bert_like(),
    "modernbert": Family(
        implementation="hf-bert",
        names={"activation": "hidden_activation"},
        defaults={
            **sizes(22, 768, 12, None, 1152, 50368, 8192, local_attention=128, tie_word_embeddings=True),
            "hidden_activation": "gelu",
        },
        fixed={**_ENCODER, "fused_qkv": True, "fused_gate_up": True},
        parts=(BIASED, MLP_BIASED, _modern),
    ),
    "nomic_bert": Family(
        implementation="hf-bert",
        defaults=sizes(12, 768, 12, None, 3072, 30528, 2048, type_vocab_size=2, tie_word_embeddings=True),
        fixed={**BERT, "gated": True, "qkv_bias": False, "out_bias": False, "mlp_bias": False},
        parts=(_nomic,),
    ),
    "distilbert": Family(
        implementation="hf-bert",
        names={
            "layers": "n_layers",
            "hidden": "dim",
            "heads": "n_heads",
            "ffn": "hidden_dim",
            "activation": "activation",
        },
        defaults={
            **sizes(6, 768, 12, None, 3072, 30522, 512, tie_word_embeddings=True),
            "n_layers": 6,
            "dim": 768,
            "n_heads": 12,
            "hidden_dim": 3072,
            "activation": "gelu",
        },
        fixed=BERT,
        parts=(_distilled, read.dropout(embedding="dropout", attention="attention_dropout", residual="dropout")),
    ),
    "mpnet": Family(
        implementation="hf-bert",
        defaults={
            **sizes(12, 768, 12, None, 3072, 30527, 512, relative_attention_num_buckets=32, tie_word_embeddings=True),
            "hidden_act": "gelu",
        },
        fixed=BERT,
        parts=(_mpnet,),
    ),
    "deberta-v2": Family(
        implementation="hf-bert",
        defaults={
            **sizes(24, 1536, 24, None, 6144, 128100, 512, type_vocab_size=0, tie_word_embeddings=True),
            "hidden_act": "gelu",
        },
        fixed=BERT,
        parts=(_disentangled,),
    ),
}
