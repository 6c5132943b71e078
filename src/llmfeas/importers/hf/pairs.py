"""Readers of encoder-decoders: T5 and its kin, BART and its kin, T5Gemma, LED and the Longformer in it, what hears."""

from __future__ import annotations

import json
from typing import Final

from ...catalog.parts import Dropout, SideWeights, SourceEncoder, Window
from ...record import replace
from ..config_file import Config
from .parts import Parts, reader
from .tower_parts import linear, nested, sizes_of

_T5_ACTIVATIONS: Final = {"gated-gelu": (True, "gelu_new"), "gated-silu": (True, "silu"), "relu": (False, "relu")}


@reader
def t5(config: Config, parts: Parts, *, each_layer: bool = False) -> Parts:
    """Read T5: heads of a width of their own, a table of distances in the first layer of each stack, or in each."""
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


@reader
def expert_source(config: Config, parts: Parts) -> Parts:
    """Read an encoder of which every so manyth layer holds experts, as the decoder's does (Switch, NLLB-MoE)."""
    return {"source": replace(parts["source"], expert_step=config.count("encoder_sparse_step", "layers"))}


@reader
def near_source(config: Config, parts: Parts) -> Parts:
    """Read LongT5's encoder: a window on both sides; with sums of the rest, a norm of them in each layer and a second
    table of distances, of which half is counted in either stack.
    """
    source = replace(parts["source"], window=2 * config.count("local_radius", "tokens"))
    if config.text("encoder_attention_type") == "local":
        return {"source": source}
    tables = parts["side"].vectors * 3 // 2
    return {"source": replace(source, beside=SideWeights(vectors=parts["hidden"])), "side": SideWeights(vectors=tables)}


@reader
def bart(config: Config, parts: Parts, *, still: bool = False, sound: bool = False) -> Parts:
    """Read BART's spelling, in which encoder and decoder have sizes of their own.

    `still`: positions are waves in a table that does not train; `sound`: the encoder reads frames.
    """
    rows = config.count("max_source_positions", "tokens") if sound else 0
    heads = config.count("encoder_attention_heads", "heads")
    source = SourceEncoder(
        layers=config.count("encoder_layers", "layers"),
        tokens=rows,
        heads=heads,
        head_dim=0 if heads == parts["heads"] else parts["hidden"] // heads,
        ffn=config.count("encoder_ffn_dim"),
        learned_positions=rows,
        bands=config.count("num_mel_bins", "few") if sound else 0,
        still=still,
    )
    rate = config.rate("dropout")
    dropout = Dropout(embedding=rate, attention=config.rate("attention_dropout"), residual=rate)
    return {"source": source, "dropout": dropout}


@reader
def stack_beside(config: Config, parts: Parts, *, every: int = 2, merged: bool = False) -> Parts:
    """Read T5Gemma's encoder: a stack of its own sizes, with a token table of its own, windows on both sides.

    `every`: so manyth layers see all; `merged`: it is that of T5Gemma 2, which the decoder's own attention sees, beside
    an encoder of images.
    """
    stack = config.nested("encoder", config.defaults)
    if stack is not None and merged:
        stack = stack.nested("text_config", config.defaults)
    if stack is None:
        raise config.wrong("encoder", "is missing")
    layers, size = (
        stack.count("num_hidden_layers", "layers"),
        stack.optional_count("sliding_window", "tokens", zero=True),
    )
    turn = ("sliding_attention",) * (every - 1) + ("full_attention",)
    kinds = stack.words("layer_types", 10_000) or turn * layers
    if any(kinds[i] != turn[i % every] for i in range(min(layers, len(kinds)))):
        raise stack.wrong("layer_types", "is no turn of windows and whole layers, which is not supported")
    source = SourceEncoder(
        layers=layers,
        heads=stack.count("num_attention_heads", "heads"),
        kv_heads=stack.count("num_key_value_heads", "heads"),
        head_dim=stack.count("head_dim"),
        hidden=stack.count("hidden_size"),
        ffn=stack.count("intermediate_size"),
        window=2 * size - 1 if size else 0,
        whole_every=every,
        own_table=not merged,
        merged=merged,
    )
    # The row that ends an image stands beside the table.
    return {"source": source, **({"side": SideWeights(vectors=parts["hidden"])} if merged else {})}


@reader
def long_source(config: Config, parts: Parts) -> Parts:
    """Read LED: an encoder with positions of its own, whose tokens see those near to them, a few of them all."""
    source = replace(
        parts["source"],
        learned_positions=config.count("max_encoder_position_embeddings", "tokens"),
        window=nearby(config),
        blocks=True,
    )
    return {"source": source}


def nearby(config: Config) -> int:
    """The tokens that Longformer's layers see: one number, or one a layer."""
    value = config.raw("attention_window")
    if isinstance(value, list) and len(set(map(str, value))) == 1:
        config = config.with_defaults({"nearby": value[0]})
        return config.count("nearby", "tokens")
    return config.count("attention_window", "tokens")


@reader
def near_and_global(config: Config, parts: Parts) -> Parts:
    """Read Longformer: BERT whose tokens see those near to them, and a few of them all."""
    layers: int = parts["layers"]
    return {"window": Window(size=nearby(config), blocks=True), "windowed": [True] * layers}


@reader
def two_more(config: Config, parts: Parts) -> Parts:
    """BART's tables of positions begin with two rows that nothing looks up."""
    return {"learned_positions": parts["context"] + 2}


@reader
def bias_where_said(config: Config, parts: Parts) -> Parts:
    """Read whether BigBird's Pegasus has biases in attention.

    Its encoder sees all tokens of a text, or blocks of them where it is long: work is that of all of them (its own up
    to 704 tokens of its usual blocks), an upper bound beyond.
    """
    return dict.fromkeys(("qkv_bias", "out_bias"), config.flag("use_bias"))


@reader
def conformer_source(config: Config, parts: Parts, *, learned: bool = False) -> Parts:
    """Read an encoder of sound whose layers hold a convolution and a second feed-forward (Canary, Cohere's).

    `learned`: the decoder has a table of positions. What the encoder holds once counts with what stands beside, less
    two norms that it lacks, and what keys and values read less than its stream where a product narrows it.
    """
    encoder = nested(config, "encoder_config", _CONFORMER)
    for key, usual in _PUBLISHED_CONFORMER.items():
        if encoder.raw(key) != usual:
            raise encoder.wrong(key, f"is not {json.dumps(usual)} as in published files, which is not supported")
    layers, width, ffn = sizes_of(encoder)
    if width != parts["hidden"] and not learned:
        raise encoder.wrong("hidden_size", "is not the decoder's, which is not supported")
    kernel, heads = encoder.count("conv_kernel_size", "few"), encoder.count("num_attention_heads", "heads")
    beside = SideWeights(
        matrices=((width, ffn), (ffn, width), (width, width), (width, 2 * width), (width, width)),
        vectors=ffn + (15 + kernel) * width,
    )
    source = SourceEncoder(
        layers=layers,
        tokens=_FRAMES_OF_A_WINDOW // encoder.count("subsampling_factor", "few"),
        heads=heads,
        head_dim=width // heads,
        hidden=width,
        ffn=ffn,
        beside=beside,
    )
    hidden, keys = parts["hidden"], (parts["kv_heads"] or parts["heads"]) * parts["head_dim"]
    narrowed = linear(width, hidden) - 2 * parts["layers"] * (width - hidden) * keys if width != hidden else 0
    rows = parts["context"] * hidden if learned else 0
    return {"source": source, "tower_parameters": _halving(encoder, width) + narrowed + rows - 4 * width}


_FRAMES_OF_A_WINDOW: Final = 3000
"""Frames of 10 ms in 30 seconds, the window that is assumed where an encoder reads sounds of any length."""
_PUBLISHED_CONFORMER: Final = {
    "attention_bias": True,
    "convolution_bias": True,
    "subsampling_conv_kernel_size": 3,
    "subsampling_conv_stride": 2,
}
_CONFORMER: Final = {
    "num_hidden_layers": 48,
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_attention_heads": 8,
    "conv_kernel_size": 9,
    "subsampling_factor": 8,
    "subsampling_conv_channels": 256,
    "num_mel_bins": 128,
    **_PUBLISHED_CONFORMER,
}


def _halving(encoder: Config, width: int) -> int:
    """Parameters of convolutions that halve frames and bands until the factor is reached, and a product."""
    planes, factor = encoder.count("subsampling_conv_channels"), encoder.count("subsampling_factor", "few")
    more = factor.bit_length() - 2
    joined = planes * (encoder.count("num_mel_bins") // factor)
    return (1 + more) * linear(9, planes) + more * linear(planes, planes) + linear(joined, width)


@reader
def wave_source(config: Config, parts: Parts) -> Parts:
    """Read Moonshine, whose encoder reads the wave itself through three convolutions and has no gates."""
    hidden, heads = parts["hidden"], config.count("encoder_num_attention_heads", "heads")
    source = SourceEncoder(
        layers=config.count("encoder_num_hidden_layers", "layers"),
        tokens=_SAMPLES_OF_A_WINDOW // _SAMPLES_OF_A_POSITION,
        heads=heads,
        kv_heads=config.optional_count("encoder_num_key_value_heads", "heads") or heads,
        head_dim=hidden // heads,
        plain=True,
    )
    stem = 127 * hidden + linear(7 * hidden, 2 * hidden) + linear(6 * hidden, hidden) + 2 * hidden
    return {"source": source, "tower_parameters": stem}


_SAMPLES_OF_A_WINDOW: Final = 480_000
_SAMPLES_OF_A_POSITION: Final = 384
"""30 seconds of 16,000 samples; the steps of the three convolutions (64, 3, 2) multiplied."""


@reader
def one_vocabulary(config: Config, parts: Parts) -> Parts:
    """Refuse a decoder with words of its own.

    Raises:
        DataError: the two vocabularies differ.
    """
    other = config.optional_count("decoder_vocab_size", "rows")
    if config.raw("share_encoder_decoder_embeddings") is False or other not in (None, parts["vocab"]):
        raise config.wrong("decoder_vocab_size", "is not the encoder's: two vocabularies are not read yet")
    return {}
