"""Readers of latent attention, indexers, and caches pressed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...catalog.parts import (
    CompressedAttention,
    Experts,
    Indexer,
    LinearAttention,
    Mla,
    NgramEmbedding,
    SideWeights,
    Window,
)
from ...record import replace
from ..config_file import Config
from . import parts as read
from .hybrid import channel_decays, lightning_groups
from .parts import Matrices, Parts, reader


@reader
def ngrams(config: Config, _: Parts) -> Parts:
    """Read tables of n-grams beside the embedding (LongCat)."""
    return {
        "ngram": NgramEmbedding(
            ratio=config.number("ngram_vocab_size_ratio", 0.0),
            max_order=config.count("emb_neighbor_num", "few"),
            splits=config.count("emb_split_num", "few"),
        )
    }


@reader
def indexer(config: Config, parts: Parts) -> Parts:
    """Read the indexer of sparse attention, and which layers take the choice of the one before them."""
    heads = config.optional_count("index_n_heads", "heads")
    if heads is None:
        return {}
    found: Parts = {
        "indexer": Indexer(
            heads=heads, head_dim=config.count("index_head_dim"), top_k=config.count("index_topk", "tokens")
        )
    }
    kinds = config.words("indexer_types", 10_000)
    if kinds is not None:
        found["indexes"] = [kind != "shared" for kind in kinds[: parts["layers"]]]
    return found


_LATENT_FIELDS: Final = (
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "v_head_dim",
    "num_attention_heads",
    "head_dim",
)


def _windowed_latent(config: Config) -> Mla:
    """Read latent attention of windowed layers: older files mark its fields (`swa_`), newer ones keep what differs by
    layer."""
    layered = config.nested("per_layer_config")
    first = next(iter(layered.fields), None) if layered is not None else None
    same = {key: config.raw(key) for key in (*_LATENT_FIELDS, "qk_rope_head_dim")}
    own, mark = (layered.nested(first, same), "") if layered is not None and first is not None else (None, "swa_")
    source = config if own is None else own
    queries, latent, nope, values = (source.count(f"{mark}{key}") for key in _LATENT_FIELDS[:4])
    rope = source.optional_count(f"{mark}qk_rope_head_dim")
    return Mla(
        q_lora_rank=queries,
        kv_lora_rank=latent,
        nope_head_dim=nope,
        rope_head_dim=rope or source.count(f"{mark}head_dim") - nope,
        v_head_dim=values,
        heads=source.count(f"{mark}num_attention_heads", "heads"),
    )


@reader
def dots_layers(config: Config, parts: Parts) -> Parts:
    """Read dots3: windowed layers have latent attention of their own sizes, the others an indexer; all have a gate a
    head and a norm of the rotated key."""
    layers, hidden, mla = parts["layers"], parts["hidden"], parts["mla"]
    kinds = config.words("layer_types", 10_000)
    if kinds is None:
        slides = config.raw("use_sliding_window") is not False
        kinds = tuple(
            "sliding_attention" if slides and i > 1 and i % 4 != 1 else "full_attention" for i in range(layers)
        )
    picks = config.raw("use_dsa")
    if picks is None and config.raw("per_layer_config") is None:
        picks = True
    size = config.optional_count("sliding_window", "tokens") or config.count("sliding_window_size", "tokens")
    plain = ["full_attention" if kind == "indexed_attention" else kind for kind in kinds]
    found = read.pattern(config, "layer_types", plain, layers, size)
    windowed = found.get("windowed", [False] * layers)
    own = _windowed_latent(config)
    shapes = [(own.heads, own.rope_head_dim) if local else (parts["heads"], mla.rope_head_dim) for local in windowed]
    return {
        **found,
        **indexer(config, parts),
        "windowed_mla": own,
        "indexes": [
            not local and (picks or (picks is None and kind == "indexed_attention"))
            for kind, local in zip(kinds, windowed, strict=False)
        ],
        "beside": [SideWeights(matrices=((hidden, heads),), vectors=rope) for heads, rope in shapes],
    }


@reader
def hy_indexer(config: Config, parts: Parts) -> Parts:
    """Read an indexer that the first layer and every fourth behind it have (Hy 4)."""
    found = indexer(config, parts)
    return {"indexes": [i == 0 or (i - 1) % 4 == 0 for i in range(parts["layers"])], **found}


@reader
def gated_latent(config: Config, parts: Parts) -> Parts:
    """Read A.X K2: queries and an output gate from both sides of the queries' norm, norms with a gate of low rank."""
    heads, mla = parts["heads"], parts["mla"]
    rank, hidden = config.count("gated_norm_rank"), parts["hidden"]
    low = mla.q_lora_rank or hidden
    queries = [(low, heads * (mla.nope_head_dim + mla.rope_head_dim)), (low, 2 * heads * mla.v_head_dim)]
    gate = [(hidden, rank), (rank, hidden)]
    plain, gated = (SideWeights(matrices=(*queries, *gate * times)) for times in (1, 2))
    return {"beside": [gated if kind == "experts" else plain for kind in parts["feed_forward"]]}


def _hyper_connections(config: Config, parts: Parts, kinds: int, scales: int) -> tuple[Matrices, int]:
    """Two of a layer, each a matrix from all streams to `kinds` numbers, with a bias and scales."""
    streams = config.count("hc_mult", "few")
    return [(streams * parts["hidden"], kinds)] * 2, 2 * (kinds + scales)


def _hyper_head(config: Config, parts: Parts) -> SideWeights:
    streams = config.count("hc_mult", "few")
    return SideWeights(matrices=((streams * parts["hidden"], streams),), vectors=streams + 1)


@reader
def hy_layers(config: Config, parts: Parts) -> Parts:
    """Read Hy 4: sinks and an output gate beside latent attention, and connections of parallel streams."""
    matrices, vectors = _hyper_connections(config, parts, 2 * config.count("hc_mult", "few"), 2)
    heads, mla = parts["heads"], parts["mla"]
    side = SideWeights(matrices=(*matrices, (parts["hidden"], heads * mla.v_head_dim)), vectors=vectors + heads)
    return {"beside": [side] * parts["layers"], "side": _hyper_head(config, parts)}


_PRESSED: Final = {
    "sliding_attention": (True, False),
    "compressed_sparse_attention": (False, True),
    "heavily_compressed_attention": (False, False),
}


@reader
def pressed_layers(config: Config, parts: Parts) -> Parts:
    """Read DeepSeek-V4: what each layer presses together, connections of parallel streams."""
    layers: int = parts["layers"]
    rates = config.nested("compress_rates", {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128})
    assert rates is not None
    kinds = _pressed_kinds(config, layers)
    return {
        **_pressing(
            config,
            parts,
            rate=config.optional_count("compress_rate_csa", "tokens") or rates.count("compressed_sparse_attention"),
            heavy_rate=config.optional_count("compress_rate_hca", "tokens")
            or rates.count("heavily_compressed_attention"),
        ),
        "windowed": [_PRESSED[kind][0] for kind in kinds],
        "indexes": [_PRESSED[kind][1] for kind in kinds],
    }


def _pressing(config: Config, parts: Parts, *, rate: int, heavy_rate: int, apart: bool = False) -> Parts:
    """What all layers of DeepSeek-V4 and V4.1 have: sizes of their attention, connections of parallel streams."""
    layers, streams = parts["layers"], config.count("hc_mult", "few")
    matrices, vectors = _hyper_connections(config, parts, (2 + streams) * streams, 3)
    return {
        "compressed_attention": CompressedAttention(
            q_rank=config.count("q_lora_rank"),
            rope_head_dim=config.optional_count("qk_rope_head_dim")
            or int(parts["head_dim"] * config.rate("partial_rotary_factor"))
            or 64,
            window=config.count("sliding_window", "tokens"),
            out_groups=config.count("o_groups", "few"),
            out_rank=config.count("o_lora_rank"),
            rate=rate,
            heavy_rate=heavy_rate,
            index_heads=config.count("index_n_heads", "heads"),
            index_head_dim=config.count("index_head_dim"),
            top_k=config.count("index_topk", "tokens"),
            apart=apart,
        ),
        "window": Window(size=config.count("sliding_window", "tokens")),
        "mixer": ["compressed_attention"] * layers,
        "beside": [SideWeights(matrices=tuple(matrices), vectors=vectors)] * layers,
        "side": _hyper_head(config, parts),
    }


@reader
def shared_entries(config: Config, parts: Parts) -> Parts:
    """Read DeepSeek-V4.1: a few layers press tokens for all that come behind them, some choose anew among the entries,
    and some look up pieces of text in large tables, which a matrix joins to all streams and a gate.

    Its configuration says no layer that presses by itself: `compress_ratios` names the entries that a layer reads.
    """
    layers: int = parts["layers"]
    ratios = config.numbers("compress_ratios", 10_000) or ()
    sources = config.numbers("kv_source_layer_ids", 10_000) or ()
    if len(ratios) < layers or not sources:
        raise config.wrong("compress_ratios", f"does not name {layers} layers and those that press")
    chooses = {*(config.numbers("index_source_layer_ids", 10_000) or ()), *sources}
    rates = [int(ratio) for ratio in ratios[:layers]]
    found = _pressing(config, parts, rate=max(*rates, 1), heavy_rate=max(*rates, 1), apart=True)
    beside = found["beside"]
    tables = config.numbers("engram_num_embeddings", 10_000) or ()
    for layer, rows in zip(config.numbers("engram_layer_ids", 10_000) or (), tables, strict=True):
        beside[int(layer)] = _looked_up(config, parts, beside[int(layer)], int(rows))
    return {
        **found,
        "windowed": [rate == 0 for rate in rates],
        "indexes": [index in chooses for index in range(layers)],
        "shares_cache": [rate > 0 and index not in sources for index, rate in enumerate(rates)],
        "own_rate": [0 if rate == max(rates) else rate for rate in rates],
    }


def _looked_up(config: Config, parts: Parts, beside: SideWeights, rows: int) -> SideWeights:
    width, heads = config.count("engram_head_dim"), config.count("engram_n_heads", "heads")
    joined = (config.count("engram_max_ngram_size", "few") - 1) * heads * width
    out = parts["hidden"] * (config.count("hc_mult", "few") + 1)
    return replace(beside, matrices=(*beside.matrices, (joined, out)), table=(rows, width))


def _pressed_kinds(config: Config, layers: int) -> Sequence[str]:
    kinds = config.words("layer_types", 10_000)
    ratios = config.numbers("compress_ratios", 10_000)
    if kinds is None and ratios is not None:
        names = dict(zip((0, 4, 128), _PRESSED, strict=True))
        kinds = tuple(names.get(ratio, "") for ratio in ratios)
    if kinds is None:
        by_turns = ("heavily_compressed_attention", "compressed_sparse_attention")
        kinds = tuple(by_turns[index % 2 if index > 1 else 0] for index in range(layers))
    if len(kinds) < layers or any(kind not in _PRESSED for kind in kinds[:layers]):
        raise config.wrong("layer_types", f"does not name {layers} known layers")
    return kinds[:layers]


@reader
def bailing_layers(config: Config, parts: Parts) -> Parts:
    """Read Ling 3: every n-th layer keeps latent attention with a gate a head, the others a delta rule by channel.

    Ling and Ring 2.5 have the same model_type, and lightning attention in these.
    """
    layers: int = parts["layers"]
    if config.fields.get("group_norm_size") is not None and config.fields.get("short_conv_kernel_size") is None:
        return lightning_groups(config, parts)
    group = config.count("layer_group_size", "layers")
    kinds = config.words("layer_types", 10_000) or tuple(
        "linear_attention" if (index + 1) % group else "full_attention" for index in range(layers)
    )
    heads, width = config.optional_count("linear_num_heads", "heads") or parts["heads"], 128
    width = config.optional_count("linear_head_dim") or width
    shape = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=config.count("short_conv_kernel_size", "few"),
        by_channel=True,
    )
    gate = SideWeights(matrices=((parts["hidden"], parts["heads"]),))
    names = {"linear_attention": "linear_attention", "full_attention": "attention", "attention": "attention"}
    mixer = read.named_layers(config, "layer_types", kinds, names, layers)
    return {
        "linear_attention": shape,
        "mixer": mixer,
        "beside": [gate if kind == "attention" else None for kind in mixer],
    }


@reader
def glm_next_layers(config: Config, parts: Parts) -> Parts:
    """Read GLM 5.3 Flash: every fourth layer keeps latent attention, whose indexer presses keys together; the others
    a delta rule with decays of each channel. All connect parallel streams."""
    layers, hidden = parts["layers"], parts["hidden"]
    names = {"linear_attention": "linear_attention", "indexed_attention": "attention", "full_attention": "attention"}
    if config.raw("layer_types") is None:
        mixer = ["linear_attention" if (index + 1) % 4 else "attention" for index in range(layers)]
    else:
        mixer = read.mixers(config, parts, "layer_types", names)["mixer"]
    streams = config.count("hc_mult", "few")
    matrices, vectors = _hyper_connections(config, parts, (2 + streams) * streams, 3)
    plain = SideWeights(matrices=tuple(matrices), vectors=vectors)
    key = config.count("index_head_dim")
    press = SideWeights(matrices=(*matrices, (hidden, key)), vectors=vectors + config.count("index_kpool", "few") * key)
    found = indexer(config, parts)
    indexes = found.get("indexes", [True] * layers)
    return {
        **found,
        "linear_attention": channel_decays(config),
        "mixer": mixer,
        "indexes": [kind == "attention" and has for kind, has in zip(mixer, indexes, strict=False)],
        "beside": [press if kind == "attention" else plain for kind in mixer],
    }


@reader
def minimax_layers(config: Config, parts: Parts) -> Parts:
    """Read MiniMax M3: experts with a shared one, and indexers of blocks where attention is sparse."""
    layers: int = parts["layers"]
    sparse = config.nested("sparse_attention_config") or Config(config.file, {}, {})
    experts = Experts(
        count=config.count("num_local_experts", "experts"),
        top_k=config.count("num_experts_per_tok", "experts"),
        width=config.count("intermediate_size"),
        shared=1,
        shared_width=config.count("shared_intermediate_size"),
    )
    found: Parts = {"experts": experts, "ffn": None, "feed_forward": ["experts"] * layers}
    listed = read.listed_experts(config, {**parts, "ffn": 1})
    if "dense" in listed.get("feed_forward", ()):
        found |= {**listed, "ffn": config.count("dense_intermediate_size")}
    kinds = config.words("layer_types", 10_000)
    marks = sparse.numbers("sparse_attention_freq", 10_000)
    if kinds is None and marks is not None:
        kinds = tuple("minimax_m3_sparse" if mark else "full_attention" for mark in marks)
    heads = sparse.optional_count("sparse_num_index_heads", "heads") or config.count("index_n_heads", "heads")
    width = sparse.optional_count("sparse_index_dim") or config.count("index_head_dim")
    index = SideWeights(matrices=((parts["hidden"], heads * width), (parts["hidden"], width)), vectors=2 * width)
    if kinds is not None:
        found["beside"] = [index if kind == "minimax_m3_sparse" else None for kind in kinds[:layers]]
    return found


@reader
def scaled_index(config: Config, parts: Parts) -> Parts:
    """Mistral Large 4: a norm before each indexer, and two numbers a head that scale what both softmaxes see.

    Layers without rotation make no rotated key and unpack that much more of the latent one.
    """
    found, hidden, mla = indexer(config, parts), parts["hidden"], parts["mla"]
    vectors = 2 * parts["heads"]
    if "indexer" in found:
        vectors += 2 * hidden + 2 * found["indexer"].heads
    more = mla.rope_head_dim * (parts["heads"] * mla.kv_lora_rank - hidden)
    rotates = config.numbers("no_rope_layers", 10_000) or [(index + 1) % 4 for index in range(parts["layers"])]
    if len(rotates) < parts["layers"]:
        raise config.wrong("no_rope_layers", f"names {len(rotates)} of {parts['layers']} layers")
    sides = [SideWeights(vectors=vectors + (0 if turns else max(0, more))) for turns in rotates]
    learned = SideWeights(vectors=mla.rope_head_dim // 2)  # what scales its rotation, once
    return {**found, "side": learned, "beside": sides, "rotates": [bool(turns) for turns in rotates]}
