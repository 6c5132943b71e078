"""Rows of encoders in BERT's manner that differ from it in what they embed, where they norm and how they place tokens:
ELECTRA, RemBERT, RoFormer, ERNIE, Megatron's BERT, RoBERTa with norms ahead, data2vec, XLM-R XL and XXL, BigBird.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import SideWeights
from .config_file import Config
from .hf_encoder import BERT, behind_last, bert, bert_like, class_of, dropout_of, labels_of
from .hf_parts import Family, Part, Parts, sizes

_AHEAD: Final = {"norm_position": "pre", "final_norm": True}


def _kinds(config: Config, width: int) -> int:
    """Numbers of the table of kinds of tokens."""
    return (config.optional_count("type_vocab_size", "rows", zero=True) or 0) * width


def _square(hidden: int) -> int:
    return hidden * hidden + hidden


def _narrow(config: Config, parts: Parts, key: str = "embedding_size") -> tuple[Parts, int, int]:
    """A table narrower than the stream, its width, and the bias of the projection behind positions and norm."""
    hidden, narrow = parts["hidden"], config.optional_count(key) or parts["hidden"]
    if narrow == hidden:
        return {}, hidden, 0
    return {"embedding_dim": narrow, "projects_late": True}, narrow, hidden


def _electra(config: Config, parts: Parts) -> Parts:
    """Read ELECTRA: `PreTraining` finds the tokens that `MaskedLM` replaced."""
    hidden, vocab, kind = parts["hidden"], parts["vocab"], class_of(config)
    found, narrow, bias = _narrow(config, parts)
    labels = labels_of(config) * (hidden + 1)
    masked = hidden * narrow + 3 * narrow + vocab
    heads = {"Model": 0, "MaskedLM": masked, "CausalLM": masked, "PreTraining": _square(hidden) + hidden + 1}
    last = heads.get(kind, _square(hidden) + labels if kind == "SequenceClassification" else labels)
    side = SideWeights(vectors=_kinds(config, narrow) + bias + last)
    return {**found, "positions": "learned", "side": side, **dropout_of(config)}


def _roformer(config: Config, parts: Parts) -> Parts:
    """Read RoFormer: rotated queries and keys, whose angles its files hold."""
    hidden, vocab, kind = parts["hidden"], parts["vocab"], class_of(config)
    if config.flag("rotary_value"):
        raise config.wrong("rotary_value", "is true: rotated values are not read yet")
    found, narrow, bias = _narrow(config, parts)
    angles = parts["context"] * (hidden // parts["heads"])
    labels = labels_of(config) * (hidden + 1)
    masked = hidden * narrow + 3 * narrow + vocab
    heads = {"Model": 0, "MaskedLM": masked, "CausalLM": masked}
    last = heads.get(kind, _square(hidden) + labels if kind == "SequenceClassification" else labels)
    side = SideWeights(vectors=_kinds(config, narrow) + bias + angles + last)
    return {**found, "side": side, **dropout_of(config)}


def _rembert(config: Config, parts: Parts) -> Parts:
    """Read RemBERT, which predicts tokens with a wide table of its own.

    Raises:
        DataError: a table of tokens as wide as the stream.
    """
    hidden, vocab, kind = parts["hidden"], parts["vocab"], class_of(config)
    found, narrow, bias = _narrow(config, parts, "input_embedding_size")
    if not found:
        raise config.wrong("input_embedding_size", "equals hidden_size, which is not supported for this model_type")
    wide = config.count("output_embedding_size")
    masked = hidden * wide + 3 * wide + vocab * wide + vocab
    labels = labels_of(config) * (hidden + 1)
    pooled = _square(hidden)
    heads = {"Model": pooled, "MaskedLM": masked, "CausalLM": masked, "SequenceClassification": pooled + labels}
    side = SideWeights(vectors=_kinds(config, narrow) + bias + heads.get(kind, labels))
    return {**found, "positions": "learned", "side": side, **dropout_of(config)}


def _ernie(config: Config, parts: Parts) -> Parts:
    """Read ERNIE: BERT, with a table of tasks in some."""
    found = bert(config, parts)
    if not config.flag("use_task_id"):
        return found
    tasks = config.count("task_type_vocab_size", "rows") * parts["hidden"]
    return {**found, "side": SideWeights(vectors=found["side"].vectors + tasks)}


def _big_bird(config: Config, parts: Parts) -> Parts:
    """Read BigBird: a pooler under everything. It sees all tokens of a text, or blocks of them where it is long.

    Work is that of all tokens (its own for texts up to 1,024), an upper bound beyond.
    """
    hidden, kind = parts["hidden"], class_of(config)
    last = behind_last(config, parts, pooled=True) + (_square(hidden) if kind not in ("Model", "PreTraining") else 0)
    side = SideWeights(vectors=_kinds(config, hidden) + last)
    return {"positions": "learned", "side": side, **dropout_of(config)}


def _generator(config: Config, parts: Parts) -> Parts:
    """Read the encoder of BERT for generation: no kinds of tokens, no pooler; one that writes has a bias a token."""
    side = SideWeights(vectors=parts["vocab"]) if class_of(config) == "CausalLM" else None
    return {"positions": "learned", "side": side, **dropout_of(config)}


def _kin(part: Part, fixed: Mapping[str, Any], size: Mapping[str, Any]) -> Family:
    rates = {"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    return Family(
        implementation="hf-bert-kin",
        defaults={**size, **rates},
        fixed={**BERT, **fixed},
        parts=(part,),
        only={"is_decoder": (False,)},
    )


KIN: Final[Mapping[str, Family]] = {
    "electra": _kin(
        _electra,
        {},
        sizes(12, 256, 4, None, 1024, 30522, 512, embedding_size=128, type_vocab_size=2),
    ),
    "ernie": _kin(_ernie, {}, sizes(12, 768, 12, None, 3072, 30522, 512, type_vocab_size=2, task_type_vocab_size=3)),
    "roformer": _kin(_roformer, {}, sizes(12, 768, 12, None, 3072, 50000, 1536, type_vocab_size=2)),
    "rembert": _kin(
        _rembert,
        {},
        sizes(
            *(32, 1152, 18, None, 4608, 250300, 512),
            input_embedding_size=256,
            output_embedding_size=1664,
            type_vocab_size=2,
        ),
    ),
    "big_bird": _kin(_big_bird, {}, sizes(12, 768, 12, None, 3072, 50358, 4096, type_vocab_size=2)),
    "bert-generation": _kin(_generator, {}, sizes(24, 1024, 16, None, 4096, 50358, 512)),
    "data2vec-text": bert_like(),
    "roberta-prelayernorm": bert_like("hf-bert-kin", fixed=_AHEAD, vocab_size=50265),
    "megatron-bert": bert_like(
        "hf-bert-kin",
        fixed={**_AHEAD, "embedding_norm": False},
        vocab_size=29056,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
    ),
    "xlm-roberta-xl": bert_like(
        "hf-bert-kin",
        fixed={**_AHEAD, "embedding_norm": False},
        vocab_size=250880,
        hidden_size=2560,
        num_hidden_layers=36,
        num_attention_heads=32,
        intermediate_size=10240,
        max_position_embeddings=514,
        type_vocab_size=1,
    ),
}
