"""Rows of encoders in BERT's manner that differ from it in what they embed, where they norm and how they place tokens:
ELECTRA, RemBERT, RoFormer, ERNIE, Megatron's BERT, RoBERTa with norms ahead, data2vec, XLM-R XL and XXL, BigBird,
RoCBert, X-MOD, XLM, XLNet.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import Dropout, SideWeights
from ..record import replace
from .config_file import Config
from .hf_encoder import BERT, behind_last, bert, bert_like, class_of, dropout_of, kinds_of, labels_of, square
from .hf_parts import Family, Part, Parts, sizes

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


def _electra(config: Config, parts: Parts) -> Parts:
    """Read ELECTRA: `PreTraining` finds the tokens that `MaskedLM` replaced."""
    found, narrow, bias = _narrow(config, parts)
    return {**found, "positions": "learned", **_factored(config, parts, kinds_of(config, narrow) + bias, narrow)}


def _factored(config: Config, parts: Parts, beside: int, narrow: int) -> Parts:
    masked, hidden = _predicted(parts, narrow), parts["hidden"]
    heads = {
        "Model": 0,
        "MaskedLM": masked,
        "CausalLM": masked,
        "PreTraining": square(hidden) + hidden + 1,
        "SequenceClassification": _classified(config, parts),
    }
    return _headed(config, parts, heads, beside)


def _roformer(config: Config, parts: Parts) -> Parts:
    """Read RoFormer: rotated queries and keys, whose angles its files hold."""
    if config.flag("rotary_value"):
        raise config.wrong("rotary_value", "is true: rotated values are not read yet")
    found, narrow, bias = _narrow(config, parts)
    angles = parts["context"] * (parts["hidden"] // parts["heads"])
    return {**found, **_factored(config, parts, kinds_of(config, narrow) + bias + angles, narrow)}


def _rembert(config: Config, parts: Parts) -> Parts:
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
    last = behind_last(config, parts, pooled=True) + (square(hidden) if kind not in ("Model", "PreTraining") else 0)
    side = SideWeights(vectors=kinds_of(config, hidden) + last)
    return {"positions": "learned", "side": side, **dropout_of(config)}


def _generator(config: Config, parts: Parts) -> Parts:
    """Read the encoder of BERT for generation: no kinds of tokens, no pooler; one that writes has a bias a token."""
    side = SideWeights(vectors=parts["vocab"]) if class_of(config) == "CausalLM" else None
    return {"positions": "learned", "side": side, **dropout_of(config)}


def _sounds_and_shapes(config: Config, parts: Parts) -> Parts:
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


def _languages(config: Config, parts: Parts) -> Parts:
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


def _xlm(config: Config, parts: Parts) -> Parts:
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


def _xlnet(config: Config, parts: Parts) -> Parts:
    """Read XLNet as it reads a text: every token sees all others, by distances to both sides and by segments."""
    hidden = parts["hidden"]
    heads = {"Model": 0, "CausalLM": parts["vocab"], "SequenceClassification": _classified(config, parts)}
    rate = config.rate("dropout")
    return {
        **_headed(config, parts, heads, hidden),
        "beside": [SideWeights(vectors=3 * hidden)] * parts["layers"],
        "dropout": Dropout(embedding=rate, attention=rate, residual=rate),
    }


def _kin(part: Part, fixed: Mapping[str, Any], size: Mapping[str, Any]) -> Family:
    rates = {"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    return Family(
        implementation="hf-bert-kin",
        defaults={**size, **rates},
        fixed={**BERT, **fixed},
        parts=(part,),
        only={"is_decoder": (False,)},
    )


_ROC: Final[dict[str, Any]] = {
    "pronunciation_embed_dim": 768,
    "pronunciation_vocab_size": 910,
    "shape_embed_dim": 512,
    "shape_vocab_size": 24858,
}
_BARE: Final = {**_AHEAD, "embedding_norm": False}


def _changed(layers: int, hidden: int, heads: int, ffn: int, vocab: int) -> dict[str, int]:
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
    return dict(zip(names, (layers, hidden, heads, ffn, vocab), strict=True))


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
    "megatron-bert": bert_like("hf-bert-kin", fixed=_BARE, **_changed(24, 1024, 16, 4096, 29056)),
    "xlm-roberta-xl": bert_like(
        "hf-bert-kin",
        fixed=_BARE,
        **_changed(36, 2560, 32, 10240, 250880),
        max_position_embeddings=514,
        type_vocab_size=1,
    ),
    "roc_bert": replace(bert_like("hf-bert-kin", **_ROC), parts=(_sounds_and_shapes,)),
    "xmod": replace(bert_like("hf-bert-kin", adapter_reduction_factor=2), parts=(bert, _languages)),
    "xlm": Family(
        implementation="hf-bert-kin",
        names={"layers": "n_layers", "hidden": "emb_dim", "heads": "n_heads"},
        defaults={
            "n_layers": 12,
            "emb_dim": 2048,
            "n_heads": 16,
            "vocab_size": 30145,
            "max_position_embeddings": 512,
            "dropout": 0.1,
            "attention_dropout": 0.1,
        },
        fixed=BERT,
        parts=(_xlm,),
        only={"asm": (False,), "is_encoder": (True,)},
    ),
    "xlnet": Family(
        implementation="hf-bert-kin",
        names={
            "layers": "n_layer",
            "hidden": "d_model",
            "heads": "n_head",
            "ffn": "d_inner",
            "activation": "ff_activation",
        },
        defaults={
            "n_layer": 24,
            "d_model": 1024,
            "n_head": 16,
            "d_inner": 4096,
            "vocab_size": 32000,
            "max_position_embeddings": 512,
            "ff_activation": "gelu",
            "dropout": 0.1,
        },
        fixed={**BERT, "embedding_norm": False, "qkv_bias": False, "out_bias": False, "positions": "relative-xl"},
        parts=(_xlnet,),
        only={"attn_type": ("bi",)},
    ),
}
