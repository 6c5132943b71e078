"""Readers of small weights beside operators: norms, routers, scales, parallel streams, tables of n-grams."""

from __future__ import annotations

from math import isqrt
from typing import Final

from ...catalog.parts import Experts, Indexer, SideWeights
from ...record import replace
from ..config_file import Config
from . import parts as read
from .encoder import class_of
from .parts import Matrices, Parts, reader
from .sound import MIMI, mimi
from .tower_parts import nested


def _everywhere(parts: Parts, vectors: int) -> Parts:
    """The same small weights in every layer."""
    return {"beside": [SideWeights(vectors=vectors)] * parts["layers"]}


@reader
def inner_norms(_: Config, parts: Parts) -> Parts:
    """BitNet's norms before the products out of attention and feed-forward."""
    head = parts["head_dim"] or parts["hidden"] // parts["heads"]
    return _everywhere(parts, parts["heads"] * head + parts["ffn"])


@reader
def lambdas(_: Config, parts: Parts) -> Parts:
    """Four vectors of a head that weigh its two attention maps (differential attention)."""
    return _everywhere(parts, 4 * (parts["head_dim"] or parts["hidden"] // parts["heads"]))


@reader
def head_biases(_: Config, parts: Parts) -> Parts:
    """A bias a head in every layer (Beam)."""
    return _everywhere(parts, parts["heads"])


@reader
def jetmoe(config: Config, parts: Parts) -> Parts:
    """Read JetMoE: queries and outputs of a token are those of the experts that it chooses, as many heads as if they
    were one; the other experts lie idle beside them."""
    hidden, kv_heads, width = parts["hidden"], parts["kv_heads"], parts["head_dim"]
    count, chosen = config.count("num_local_experts", "experts"), config.count("num_experts_per_tok", "experts")
    if chosen > count:
        raise config.wrong("num_experts_per_tok", f"is {chosen} of {count} experts")
    idle = 2 * (count - chosen) * kv_heads * width
    side = SideWeights(matrices=((hidden, count),), vectors=2 * hidden, table=(idle, hidden) if idle else None)
    return {"heads": kv_heads * chosen, "beside": [side] * parts["layers"]}


@reader
def zaya(config: Config, parts: Parts) -> Parts:
    """Read ZAYA: two convolutions over queries and keys, a router of three layers with a choice of no expert, scales
    and shifts of the stream. The rows of the router that experts have are the first of its product."""
    layers, hidden, head = parts["layers"], parts["hidden"], parts["head_dim"]
    count, rank = config.count("num_experts", "experts"), config.count("router_hidden_size")
    channels = (parts["heads"] + parts["kv_heads"]) * head
    if rank <= count + 1:
        raise config.wrong("router_hidden_size", f"is {rank}, not above the {count + 1} choices that it has")
    matrices = (
        (head * config.count("cca_time1", "few"), channels),
        (hidden, rank - count - 1),
        (rank, rank),
        (rank, rank),
        (rank, count + 1),
    )
    vectors = channels * (config.count("cca_time0", "few") + 2) + parts["kv_heads"] + 4 * rank + 8 * hidden
    kinds = config.words("layer_types", 10_000)
    found: Parts = {}
    if kinds is not None and "hybrid_sliding" in kinds:
        marks = ["local" if kind == "hybrid_sliding" else "global" for kind in kinds]
        found = read.pattern(config, "layer_types", marks, layers, config.count("sliding_window", "tokens"))
    first = SideWeights(matrices=matrices, vectors=vectors)
    return {
        **found,
        "experts": Experts(
            count=count, top_k=1, width=config.count("moe_intermediate_size"), zero=1, expected_real=count / (count + 1)
        ),
        "ffn": None,
        "beside": [first, *[SideWeights(matrices=matrices, vectors=vectors + rank)] * (layers - 1)],
        "side": SideWeights(vectors=2 * hidden),
        "head_bias": config.flag("lm_head_bias"),
    }


@reader
def doge(config: Config, parts: Parts) -> Parts:
    """Read Doge: values make a mask of their own; scales of the stream around both branches."""
    kv_heads = parts["kv_heads"] or parts["heads"]
    width = kv_heads * (parts["hidden"] // parts["heads"])
    vectors = kv_heads * (2 if config.flag("attention_bias") else 1) + 2 * parts["hidden"]
    side = SideWeights(matrices=((width, kv_heads),), vectors=vectors)
    return {"beside": [side] * parts["layers"], **read.every_layer_windowed(config, parts)}


_MOST_TABLES: Final = 256


"""Tables of n-grams that are sized by a prime each."""


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _primes(first: int, count: int) -> list[int]:
    """So many prime numbers, from `first` on."""
    found: list[int] = []
    while len(found) < count:
        if _is_prime(first):
            found.append(first)
        first += 1
    return found


def _ngram_layers(config: Config, parts: Parts) -> dict[int, SideWeights]:
    """Read layers (from 0) with hashed tables of n-grams: a prime number of rows for each head, projections to every
    stream, norms and a convolution.

    Raises:
        DataError: more tables than can be sized, or a width that they do not divide.
    """
    hidden, streams = parts["hidden"], config.count("hc_count", "few")
    layers = sorted(set(config.numbers("ple_layer_ids", 10_000) or ()))
    heads = (config.count("ngram_size", "few") - 1) * config.count("heads_per_ngram", "heads")
    width = config.optional_count("ple_embed_dim") or hidden
    if not layers:
        return {}
    if not 0 < heads * len(layers) <= _MOST_TABLES or width % heads:
        raise config.wrong("heads_per_ngram", f"makes {heads} tables of a width of {width} in {len(layers)} layers")
    grain = config.count("make_ngram_vocab_size_divisible_by", "rows")
    rows = _primes(config.count("ngram_vocab_size_base", "rows"), heads * len(layers))
    wide, kernel = streams * hidden, config.count("ple_conv_kernel_size", "few")
    return {
        layer - 1: SideWeights(
            matrices=((width, wide), (width, hidden)),
            vectors=(3 + kernel) * wide,
            table=(-(-sum(rows[place * heads : (place + 1) * heads]) // grain) * grain, width // heads),
        )
        for place, layer in enumerate(layers)
    }


def _connection(config: Config, hidden: int, *, last: bool = False) -> tuple[Matrices, int]:
    """A branch's way from all streams into one and back, beyond the norm of one stream that each branch has."""
    streams, rank = config.count("hc_count", "few"), config.count("hc_lowrank")
    wide = streams * hidden
    mixing = [(wide, rank), (rank, wide)]
    return (mixing if last else [*mixing, (wide, streams)]), wide - hidden


@reader
def qwen4_layers(config: Config, parts: Parts) -> Parts:
    """Read Qwen4-Exp: a delta rule, or attention to blocks that an indexer picks; parallel streams around both."""
    hidden = parts["hidden"]
    names = {"linear_attention": "linear_attention", "indexed_attention": "attention", "full_attention": "attention"}
    found: Parts = dict(read.linear_attention_apart(config, parts))
    if config.raw("layer_types") is not None:
        found |= read.mixers(config, parts, "layer_types", names)
    matrices, vectors = _connection(config, hidden)
    plain = SideWeights(matrices=(*matrices, *matrices), vectors=2 * vectors)
    listed = _ngram_layers(config, parts)
    beside = [
        SideWeights(matrices=(*plain.matrices, *more.matrices), vectors=plain.vectors + more.vectors, table=more.table)
        if (more := listed.get(index)) is not None
        else plain
        for index in range(parts["layers"])
    ]
    last, more_vectors = _connection(config, hidden, last=True)
    return {
        **found,
        "indexer": Indexer(
            heads=config.count("indexer_n_heads", "heads"),
            head_dim=config.count("indexer_head_dim"),
            top_k=config.count("indexer_budget", "tokens"),
            block=config.count("indexer_compress_ratio", "tokens"),
        ),
        "beside": beside,
        "side": SideWeights(matrices=tuple(last), vectors=more_vectors),
    }


@reader
def time_norm(_: Config, parts: Parts) -> Parts:
    """Two narrow products a layer that scale its norm by how far the sound has come (Voxtral Realtime)."""
    hidden = parts["hidden"]
    side = SideWeights(matrices=((hidden, _TIME_RANK), (_TIME_RANK, hidden)))
    return {"beside": [side] * parts["layers"]}


_TIME_RANK: Final = 32


@reader
def further_words(config: Config, parts: Parts) -> Parts:
    """Rows of the embedding that the head lacks (Molmo)."""
    rows = config.optional_count("additional_vocab_size", "rows", zero=True) or 0
    return {"side": SideWeights(vectors=rows * parts["hidden"])} if rows else {}


@reader
def shorter_head(config: Config, parts: Parts, *, key: str) -> Parts:
    """Read how many rows the head has, where they are fewer than the embedding's."""
    rows = config.optional_count(key, "rows")
    if rows is None or rows >= parts["vocab"]:
        return {}
    side = parts.get("side") or SideWeights()
    more = side.vectors + (parts["vocab"] - rows) * parts["hidden"]
    return {"vocab": rows, "side": replace(side, vectors=more)}


@reader
def spark_layers(config: Config, parts: Parts) -> Parts:
    """Read Muse Spark: gates on both ways into the stream, one of whose four norms has no weights; experts work in a
    narrower width, with two norms there."""
    hidden, narrow = parts["hidden"], config.count("moe_hidden_size")
    plain, routed = (SideWeights(vectors=hidden + more) for more in (0, 2 * narrow))
    return {
        "experts": replace(parts["experts"], latent_width=narrow),
        "beside": [routed if kind == "experts" else plain for kind in parts["feed_forward"]],
    }


@reader
def git(config: Config, parts: Parts) -> Parts:
    """Read GIT, which looks at frames of a film with a vector for each of them."""
    frames = config.optional_count("num_image_with_embedding", "few", zero=True) or 0
    seen = config.nested("vision_config")
    width = (seen.optional_count("hidden_size") if seen is not None else None) or 768
    return {"side": SideWeights(vectors=frames * width)} if frames else {}


@reader
def moshi(config: Config, parts: Parts) -> Parts:
    """Read Moshi: half of the width that it says is its feed-forward's; a class that speaks has tables for two voices,
    a small decoder with weights for each book of sounds, and what makes sound of them."""
    hidden = parts["hidden"]
    found: Parts = {"ffn": parts["ffn"] // 2, **read.every_layer_windowed(config, parts)}
    if class_of(config) == "CausalLM":
        return {**found, "side": SideWeights(vectors=hidden)}
    books = config.count("num_codebooks", "few")
    codec = (
        config.nested("audio_encoder_config") or Config(config.file, {}, {}, "audio_encoder_config.")
    ).with_defaults(MIMI)
    rows = config.optional_count("audio_vocab_size", "rows") or codec.count("codebook_size", "rows")
    depth = config.nested("depth_decoder_config") or Config(config.file, {}, {}, "depth_decoder_config.")
    return {
        **found,
        "side": SideWeights(vectors=hidden, table=(2 * books * (rows + 1), hidden)),
        "tower_parameters": _depth(depth, parts, books, rows) + mimi(codec),
    }


@reader
def books_read(config: Config, parts: Parts) -> Parts:
    """Read Kyutai's transcriber: one table for words and for the books of sounds that Mimi makes, which it holds."""
    books, rows = config.count("num_codebooks", "few"), config.count("codebook_vocab_size", "rows")
    codec = nested(config, "codec_config", MIMI)
    return {
        "ffn": parts["ffn"] // 2,
        **read.every_layer_windowed(config, parts),
        "side": SideWeights(table=(books * rows + 1, parts["hidden"])),
        "tower_parameters": mimi(codec),
    }


def _depth(config: Config, parts: Parts, books: int, rows: int) -> int:
    """Parameters of Moshi's decoder of the books of sounds of one moment, each with weights of its own."""
    config = config.with_defaults(
        {"hidden_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 16, "ffn_dim": 5632}
    )
    width, heads = config.count("hidden_size"), config.count("num_attention_heads", "heads")
    outer: int = parts["hidden"]
    head = config.optional_count("head_dim") or width // heads
    keys = config.optional_count("num_key_value_heads", "heads") or heads
    ffn = config.count("ffn_dim")
    attention = 2 * width * (heads + keys) * head
    layer = books * (attention + width * ffn + ffn // 2 * width) + 2 * width
    tables: int = (parts["vocab"] + 1 + (books - 1) * (rows + 1)) * width
    return tables + books * width * (outer + rows) + config.count("num_hidden_layers", "layers") * layer
