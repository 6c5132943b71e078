"""Rows of encoder-decoders: T5 and its kin, BART and its kin, Whisper.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import Dropout, SideWeights, SourceEncoder
from .config_file import Config
from .hf_parts import Family, Part, Parts

_T5_ACTIVATIONS: Final = {"gated-gelu": (True, "gelu_new"), "gated-silu": (True, "silu"), "relu": (False, "relu")}


def _t5(*, each_layer: bool = False) -> Part:
    """Read T5: heads of a width of their own, a table of distances in the first layer of each stack, or in each."""

    def read(config: Config, parts: Parts) -> Parts:
        word = config.text("feed_forward_proj", "relu")
        if word not in _T5_ACTIVATIONS:
            raise config.wrong("feed_forward_proj", f"is not one of {', '.join(_T5_ACTIVATIONS)}")
        gated, activation = _T5_ACTIVATIONS[word]
        reads, writes = parts["layers"], config.optional_count("num_decoder_layers", "layers") or parts["layers"]
        table = config.count("relative_attention_num_buckets", "few") * parts["heads"]
        beside = SideWeights(vectors=table)
        rate = config.rate("dropout_rate")
        return {
            "layers": writes,
            "gated": gated,
            "activation": activation,
            "source": SourceEncoder(layers=reads),
            "dropout": Dropout(embedding=rate, attention=rate, residual=rate),
            **({"beside": [beside] * writes} if each_layer else {"side": beside}),
        }

    return read


def _bart(*, still: bool = False, sound: bool = False) -> Part:
    """Read BART's spelling, in which encoder and decoder have sizes of their own.

    `still`: positions are waves in a table that does not train; `sound`: the encoder reads frames.
    """

    def read(config: Config, parts: Parts) -> Parts:
        rows = config.count("max_source_positions", "tokens") if sound else 0
        source = SourceEncoder(
            layers=config.count("encoder_layers", "layers"),
            tokens=rows,
            heads=config.count("encoder_attention_heads", "heads"),
            ffn=config.count("encoder_ffn_dim"),
            learned_positions=rows,
            bands=config.count("num_mel_bins", "few") if sound else 0,
            still=still,
        )
        rate = config.rate("dropout")
        dropout = Dropout(embedding=rate, attention=config.rate("attention_dropout"), residual=rate)
        return {"source": source, "dropout": dropout}

    return read


def _two_more(config: Config, parts: Parts) -> Parts:
    """BART's tables of positions begin with two rows that nothing looks up."""
    return {"learned_positions": parts["context"] + 2}


def _bias_where_said(config: Config, parts: Parts) -> Parts:
    """Read whether BigBird's Pegasus has biases in attention.

    Its encoder sees all tokens of a text, or blocks of them where it is long: work is that of all of them (its own up
    to 704 tokens of its usual blocks), an upper bound beyond.
    """
    return dict.fromkeys(("qkv_bias", "out_bias"), config.flag("use_bias"))


def _one_vocabulary(config: Config, parts: Parts) -> Parts:
    """Refuse a decoder with words of its own.

    Raises:
        DataError: the two vocabularies differ.
    """
    other = config.optional_count("decoder_vocab_size", "rows")
    if config.raw("share_encoder_decoder_embeddings") is False or other not in (None, parts["vocab"]):
        raise config.wrong("decoder_vocab_size", "is not the encoder's: two vocabularies are not read yet")
    return {}


_T5_NAMES: Final = {
    "layers": "num_layers",
    "hidden": "d_model",
    "heads": "num_heads",
    "head_dim": "d_kv",
    "ffn": "d_ff",
    "context": "n_positions",
    "activation": "hidden_act",
}
_BART_NAMES: Final = {
    "layers": "decoder_layers",
    "hidden": "d_model",
    "heads": "decoder_attention_heads",
    "ffn": "decoder_ffn_dim",
    "activation": "activation_function",
}
_BIASED: Final = {
    "norm": "layer",
    "norm_bias": True,
    "gated": False,
    "qkv_bias": True,
    "out_bias": True,
    "mlp_bias": True,
}


def _t5_like(*, each_layer: bool = False, **changed: Any) -> Family:
    defaults = {
        "vocab_size": 32128,
        "d_model": 512,
        "d_kv": 64,
        "d_ff": 2048,
        "num_layers": 6,
        "num_heads": 8,
        "n_positions": 512,
        "relative_attention_num_buckets": 32,
        "dropout_rate": 0.1,
        "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
    }
    return Family(
        implementation="hf-t5",
        names=_T5_NAMES,
        defaults=defaults | changed,
        fixed={"positions": "distances"},
        parts=(_t5(each_layer=each_layer),),
    )


def _bart_like(
    *parts: Part, fixed: Mapping[str, Any], only: Mapping[str, tuple[Any, ...]] | None = None, **changed: Any
) -> Family:
    defaults = {
        "vocab_size": 50265,
        "d_model": 1024,
        "encoder_layers": 12,
        "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16,
        "decoder_layers": 12,
        "decoder_ffn_dim": 4096,
        "decoder_attention_heads": 16,
        "activation_function": "gelu",
        "max_position_embeddings": 1024,
        "dropout": 0.1,
        "tie_word_embeddings": True,
    }
    return Family(
        implementation="hf-bart",
        names=_BART_NAMES,
        defaults=defaults | changed,
        fixed={**_BIASED, **fixed},
        parts=parts,
        only=only or {},
    )


_MT5: Final[dict[str, Any]] = {
    "vocab_size": 250112,
    "d_ff": 1024,
    "num_layers": 8,
    "num_heads": 6,
    "feed_forward_proj": "gated-gelu",
}
_POST: Final = {"norm_position": "post", "final_norm": False}
_LEARNED: Final = {"positions": "learned"}


def _stacks(hidden: int, layers: tuple[int, int], heads: int) -> dict[str, Any]:
    """Defaults of an encoder and a decoder with so many layers, of one width."""
    found: dict[str, Any] = {"d_model": hidden}
    for stack, count in zip(("encoder", "decoder"), layers, strict=True):
        found |= {f"{stack}_layers": count, f"{stack}_ffn_dim": 4 * hidden, f"{stack}_attention_heads": heads}
    return found


PAIRS: Final[Mapping[str, Family]] = {
    "t5": _t5_like(),
    "mt5": _t5_like(**_MT5),
    "umt5": _t5_like(each_layer=True, **_MT5),
    "bart": _bart_like(_bart(), _two_more, fixed={**_LEARNED, **_POST, "embedding_norm": True}),
    "mbart": _bart_like(_bart(), _two_more, fixed={**_LEARNED, "embedding_norm": True}),
    "plbart": _bart_like(
        _bart(),
        _two_more,
        fixed={**_LEARNED, **_POST, "embedding_norm": True},
        vocab_size=50005,
        **_stacks(768, (6, 6), 12),
        attention_dropout=0.1,
    ),
    "mvp": _bart_like(
        _bart(),
        _two_more,
        fixed={**_LEARNED, **_POST, "embedding_norm": True},
        only={"use_prompt": (False,)},
        vocab_size=50267,
    ),
    "blenderbot-small": _bart_like(
        _bart(),
        fixed={**_LEARNED, **_POST, "embedding_norm": True},
        **_stacks(512, (8, 8), 16),
        max_position_embeddings=512,
    ),
    "blenderbot": _bart_like(
        _bart(), fixed=_LEARNED, **_stacks(2560, (2, 24), 32), max_position_embeddings=128, vocab_size=8008
    ),
    "pegasus": _bart_like(_bart(still=True), fixed=_LEARNED),
    "bigbird_pegasus": _bart_like(
        _bart(),
        _bias_where_said,
        fixed=_LEARNED,
        **_stacks(1024, (16, 16), 16),
        activation_function="gelu_new",
        max_position_embeddings=4096,
        vocab_size=96103,
    ),
    "marian": _bart_like(_bart(still=True), _one_vocabulary, fixed={**_LEARNED, **_POST}, vocab_size=58101),
    "m2m_100": _bart_like(
        _bart(),
        fixed={"rope_fraction": 0.0},
        vocab_size=128112,
        activation_function="relu",
        attention_dropout=0.1,
    ),
    "whisper": Family(
        implementation="hf-whisper",
        names={**_BART_NAMES, "context": "max_target_positions"},
        defaults={
            "vocab_size": 51865,
            "num_mel_bins": 80,
            "encoder_layers": 4,
            "encoder_attention_heads": 6,
            "decoder_layers": 4,
            "decoder_attention_heads": 6,
            "decoder_ffn_dim": 1536,
            "encoder_ffn_dim": 1536,
            "activation_function": "gelu",
            "d_model": 384,
            "max_source_positions": 1500,
            "max_target_positions": 448,
            "tie_word_embeddings": True,
        },
        fixed={**_BIASED, **_LEARNED, "key_bias": False},
        parts=(_bart(sound=True),),
    ),
}
