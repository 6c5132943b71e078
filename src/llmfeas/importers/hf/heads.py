"""Readers of layers whose heads, widths or caches differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...catalog.parts import AltUp, Experts, HeadShape, PerLayerEmbedding, SideWeights
from ...record import replace
from ..config_file import Config
from . import parts as read
from .encoder import class_of, labels_of, square
from .parts import Parts, reader


@reader
def heads_by_layer(config: Config, parts: Parts) -> Parts:
    """Read Laguna's query heads, a number for each layer: of layers that see everything, and of the others.

    Raises:
        DataError: they follow no such rule.
    """
    numbers = config.numbers("num_attention_heads_per_layer", 10_000)
    windowed = parts.get("windowed")
    if not numbers or windowed is None:
        return {}
    whole = {n for n, flag in zip(numbers, windowed, strict=False) if not flag}
    local = {n for n, flag in zip(numbers, windowed, strict=False) if flag}
    if len(whole) != 1 or len(local) != 1:
        raise config.wrong("num_attention_heads_per_layer", "differs among layers of one kind, which is not supported")
    shape = HeadShape(heads=whole.pop(), kv_heads=parts["kv_heads"], head_dim=parts["head_dim"])
    return {"heads": local.pop(), "whole_heads": shape}


@reader
def other_heads(config: Config, parts: Parts) -> Parts:
    """Read Step's heads: those of windowed layers stand in a mapping of their own."""
    other = config.nested("attention_other_setting")
    if other is None or "windowed" not in parts:
        return {}
    shape = HeadShape(heads=parts["heads"], kv_heads=parts["kv_heads"], head_dim=parts["head_dim"])
    return {
        "whole_heads": shape,
        "heads": other.count("num_attention_heads", "heads"),
        "kv_heads": other.optional_count("num_attention_groups", "heads") or parts["kv_heads"],
    }


@reader
def mimo_layers(config: Config, parts: Parts) -> Parts:
    """Read MiMo V2: marks of windowed layers, which have other heads and sinks; values are narrower than keys.

    Files that transformers wrote name the kinds of layers, and leave out that heads of windowed ones are twice as many.
    """
    marks = config.numbers("hybrid_layer_pattern", 10_000)
    size = config.optional_count("sliding_window", "tokens")
    named = config.words("layer_types", 10_000) if marks is None else None
    if not (marks or named) or not size:
        return {}
    kinds = named or tuple("sliding_attention" if mark else "full_attention" for mark in marks or ())
    found = read.pattern(config, "hybrid_layer_pattern", kinds, parts["layers"], size)
    shape = HeadShape(
        heads=parts["heads"],
        kv_heads=parts["kv_heads"],
        head_dim=parts["head_dim"],
        sinks=config.flag("add_full_attention_sink_bias"),
    )
    return {
        **found,
        "whole_heads": shape,
        "heads": config.optional_count("swa_num_attention_heads", "heads") or parts["heads"],
        "kv_heads": config.optional_count("swa_num_key_value_heads", "heads")
        or parts["kv_heads"] * (2 if named else 1),
        "v_head_dim": config.optional_count("v_head_dim") or 0,
        "sinks": bool(named) or config.flag("add_swa_attention_sink_bias"),
    }


@reader
def inkling_layers(config: Config, parts: Parts) -> Parts:
    """Read Inkling: windowed layers have other heads; short convolutions and a bias by distance everywhere.

    Files call the width of an expert `intermediate_size` where they have a `dense_intermediate_size`.
    """
    layers, hidden = parts["layers"], parts["hidden"]
    listed = config.numbers("local_layer_ids", 10_000)
    widths = {True: config.optional_count("swa_head_dim") or parts["head_dim"], False: parts["head_dim"]}
    windowed = [i in listed if listed is not None else bool((i + 1) % 6) for i in range(layers)]
    heads = {True: config.count("swa_num_attention_heads", "heads"), False: parts["heads"]}
    kv_heads = {True: config.count("swa_num_key_value_heads", "heads"), False: parts["kv_heads"]}
    window, rank = config.count("sliding_window_size", "tokens"), config.count("d_rel", "few")
    marks = ["local" if local else "global" for local in windowed]
    extent = {True: window, False: config.count("rel_extent", "tokens")}
    kernel = config.optional_count("sconv_kernel_size", "few") or config.count("conv_kernel_size", "few")
    dense = config.optional_count("dense_mlp_idx", "layers", zero=True) or 0
    sinks = config.count("n_shared_experts", "experts")
    sides = []
    for index, local in enumerate(windowed):
        routed = () if index < dense else ((hidden, sinks),)
        vectors = rank * extent[local] + 2 * kernel * (kv_heads[local] * widths[local] + hidden) + 1
        sides.append(SideWeights(matrices=((hidden, heads[local] * rank), *routed), vectors=vectors))
    return {
        **read.pattern(config, "local_layer_ids", marks, layers, window),
        "whole_heads": HeadShape(heads=heads[False], kv_heads=kv_heads[False], head_dim=widths[False]),
        "heads": heads[True],
        "kv_heads": kv_heads[True],
        "head_dim": widths[True],
        "beside": sides,
    }


@reader
def inkling2_layers(config: Config, parts: Parts) -> Parts:
    """Read Inkling 2: as Inkling, with gates and sinks of each token, learned scales of heads, and queries that pick
    from the sums of blocks of layers what a layer reads; layers that see everything norm their queries, keys and
    values apart and mix neighbours by weights of each token."""
    layers, hidden, width = parts["layers"], parts["hidden"], parts["head_dim"]
    kinds = config.words("layer_types", 10_000) or tuple("" if (i + 1) % 6 else "hybrid" for i in range(layers))
    windowed = [kind != "hybrid" for kind in kinds[:layers]]
    window, rank = config.count("sliding_window_size", "tokens"), config.count("d_rel", "few")
    kernel = config.optional_count("conv_kernel_size", "few") or config.count("sconv_kernel_size", "few")
    whole = HeadShape(heads=parts["heads"], kv_heads=parts["kv_heads"], head_dim=width)
    local = HeadShape(
        heads=config.count("swa_num_attention_heads", "heads"),
        kv_heads=config.count("swa_num_key_value_heads", "heads"),
        head_dim=config.count("swa_head_dim"),
    )
    sides = []
    for index, slides in enumerate(windowed):
        shape, extent = (local, window) if slides else (whole, config.count("rel_extent", "tokens"))
        heads, wide = shape.heads, shape.heads * shape.head_dim
        mixing = [] if slides else [(hidden, shape.kv_heads * kernel)] * 2
        picks = (0 if not index else 1 if slides else 3) + 1
        vectors = rank * extent + 2 * kernel * (shape.kv_heads * shape.head_dim + hidden) + wide + heads * rank
        sides.append(
            SideWeights(
                matrices=((hidden, heads * rank), (hidden, wide), (hidden, heads), *mixing),
                vectors=vectors + (picks + (0 if slides else 2)) * hidden,
            )
        )
    marks = ["local" if slides else "global" for slides in windowed]
    return {
        **read.pattern(config, "layer_types", marks, layers, window),
        "whole_heads": whole,
        "heads": local.heads,
        "kv_heads": local.kv_heads,
        "head_dim": local.head_dim,
        "beside": sides,
        "side": SideWeights(vectors=hidden),
    }


@reader
def inkling_experts(config: Config, parts: Parts) -> Parts:
    """Read Inkling's experts, whose width is spelt in two ways."""
    dense = config.optional_count("dense_intermediate_size")
    fields = {"moe_intermediate_size": config.raw("intermediate_size"), "intermediate_size": dense} if dense else {}
    whole = replace(config, fields={**config.fields, **fields})
    found = read.experts(
        whole,
        parts,
        count=("n_routed_experts",),
        shared="n_shared_experts",
        first_dense="dense_mlp_idx",
        dense="intermediate_size",
    )
    return {**found, **read.listed_experts(whole, {**parts, **found})}


@reader
def gates(config: Config, _: Parts) -> Parts:
    """Read whether attention has a gate a head, or one a channel (Laguna)."""
    by_head = config.raw("gating") in (None, True, "per-head")
    return {"head_gate": by_head, "output_gate": not by_head}


@reader
def gemma4_layers(config: Config, parts: Parts) -> Parts:
    """Read Gemma 4: other heads where a layer sees everything, shared caches, embeddings of each layer, experts."""
    found = read.windows(config, parts, period=6)
    if "windowed" in found:
        found["windowed"][-1] = False  # the class sees to it
    keys_are_values = config.flag("attention_k_eq_v")
    kv_heads = config.optional_count("num_global_key_value_heads", "heads") if keys_are_values else None
    shape = HeadShape(
        heads=parts["heads"],
        kv_heads=kv_heads or parts["kv_heads"] or parts["heads"],
        head_dim=config.optional_count("global_head_dim") or parts["head_dim"],
        keys_are_values=keys_are_values,
    )
    found["whole_heads"] = _own_heads(config, parts, shape)
    found |= _shared_layers(config, parts)
    if found["shared_cache_layers"] and config.flag("use_double_wide_mlp"):
        found["shared_cache_ffn"] = 2 * parts["ffn"]
    if config.flag("enable_moe_block"):
        found["implementation"] = "hf-gemma4-moe"
        found["experts"] = Experts(
            count=config.count("num_experts", "experts"),
            top_k=config.count("top_k_experts", "experts"),
            width=config.optional_count("moe_intermediate_size") or config.count("expert_intermediate_size"),
            parallel_dense=True,
            norms=3,
            scales=True,
        )
    return found


def _shared_layers(config: Config, parts: Parts) -> Parts:
    """Read how many of the last layers share a cache, and embeddings of each layer."""
    found: Parts = {
        "shared_cache_layers": config.optional_count("num_kv_shared_layers", "layers", zero=True) or 0,
    }
    width = config.optional_count("hidden_size_per_layer_input", zero=True)
    if width:
        rows = config.optional_count("vocab_size_per_layer_input", "rows") or parts["vocab"]
        found["per_layer_embedding"] = PerLayerEmbedding(width=width, rows=rows)
    if found["shared_cache_layers"]:
        layers: int = parts["layers"]
        found["shares_cache"] = [index >= layers - found["shared_cache_layers"] for index in range(layers)]
    return found


def _own_heads(config: Config, parts: Parts, shape: HeadShape) -> HeadShape:
    """The heads that layers which see everything say of themselves, all alike (since transformers 5.24): what they do
    not say is that of all layers; `shape` where none says anything.
    """
    own = config.nested("per_layer_config")
    if own is None:
        return shape
    first = next((own.nested(str(layer)) for layer in own.fields), None)
    heads, head_dim = (first and first.optional_count(key) for key in ("num_key_value_heads", "head_dim"))
    return replace(shape, kv_heads=heads or parts["kv_heads"] or parts["heads"], head_dim=head_dim or parts["head_dim"])


@reader
def embedding_gemma(config: Config, parts: Parts) -> Parts:
    """Read EmbeddingGemma 2: Gemma 4's layers over windows to both sides, what each layer gets made of the embedding
    alone, and a projection of the stream to the vector of a text."""
    found = gemma4_layers(config, parts)
    if "window" in found:
        found["window"] = replace(found["window"], size=2 * found["window"].size)
    if config.nested("per_layer_config") is None:  # which says what differs from all other layers
        shape: HeadShape = found["whole_heads"]
        kv_heads = config.optional_count("num_global_key_value_heads", "heads") or shape.kv_heads
        found["whole_heads"] = replace(shape, kv_heads=kv_heads)
    if "per_layer_embedding" in found:
        found["per_layer_embedding"] = replace(found["per_layer_embedding"], rows=0)
    found["side"] = SideWeights(matrices=((config.count("embedding_dim"), parts["hidden"]),))
    return found


@reader
def block_diffusion(config: Config, parts: Parts) -> Parts:
    """Read DiffusionGemma: Gemma 4 whose layers that see everything say their own heads, and a gated product by which
    each pass reads the guess of the last one."""
    found = gemma4_layers(config, parts)
    hidden, ffn = parts["hidden"], parts["ffn"]
    found["side"] = SideWeights(matrices=((hidden, ffn), (hidden, ffn), (ffn, hidden)), vectors=hidden)
    return found


@reader
def gemma3n_layers(config: Config, parts: Parts) -> Parts:
    """Read Gemma 3n: parallel streams, shared caches, embeddings of each layer, feed-forwards of some widths."""
    found = {**read.windows(config, parts, period=5), **_shared_layers(config, parts)}
    listed = isinstance(config.raw("intermediate_size"), list)
    if listed:
        found |= read.widths(config, "intermediate_size", parts["layers"])
    else:
        found["ffn"] = config.count("intermediate_size")
    found["altup"] = AltUp(streams=config.count("altup_num_inputs", "few"), rank=config.count("laurel_rank"))
    return found


_GRAIN: Final = 256


"""Widths of feed-forwards that a factor gives are rounded up to a multiple of this."""


def _rounded(width: int) -> int:
    return -(-width // _GRAIN) * _GRAIN


@reader
def searched_layers(config: Config, parts: Parts) -> Parts:
    """Read `block_configs`: attention and feed-forward of each layer, which may be gone or a single product.

    Raises:
        DataError: fewer blocks than layers, or a block of another form.
    """
    layers, hidden, heads = parts["layers"], parts["hidden"], parts["heads"]
    blocks = config.raw("block_configs")
    if not isinstance(blocks, list) or not layers <= len(blocks) <= 10_000:
        raise config.wrong("block_configs", f"does not describe {layers} layers")
    found: Parts = {"mixer": [], "feed_forward": [], "own_kv_heads": [], "beside": []}
    widths = []
    for block in blocks[:layers]:
        if not isinstance(block, Mapping):
            raise config.wrong("block_configs", "must be a list of mappings")
        whole = Config(config.file, block, {}, f"{config.where}block_configs.")
        attention, fed = (
            whole.nested(name) or Config(config.file, {"no_op": True}, {}) for name in ("attention", "ffn")
        )
        linears = sum(part.flag("replace_with_linear") for part in (attention, fed))
        attends = not (attention.flag("no_op") or attention.flag("replace_with_linear"))
        feeds = not (fed.flag("no_op") or fed.flag("replace_with_linear"))
        if linears and not (attends or feeds):
            raise config.wrong("block_configs", "has a layer of nothing but single products, which is not supported")
        found["mixer"].append("attention" if attends else "none")
        found["feed_forward"].append("dense" if feeds else "none")
        found["own_kv_heads"].append(heads // attention.count("n_heads_in_group", "heads") if attends else 0)
        found["beside"].append(
            SideWeights(matrices=((hidden, hidden),) * linears, vectors=linears * hidden) if linears else None
        )
        widths.append(_width(fed, hidden) if feeds else 0)
    usual = max(sorted(set(widths)), key=lambda width: (width > 0, widths.count(width)))
    found["own_ffn"] = [0 if width == usual else width for width in widths]
    return {**found, "ffn": usual, "kv_heads": max(found["own_kv_heads"]) or heads}


def _width(fed: Config, hidden: int) -> int:
    return fed.optional_count("intermediate_size") or _rounded(int(2 * fed.number("ffn_mult", 0.0) * hidden / 3))


@reader
def cross_layers(config: Config, parts: Parts) -> Parts:
    """Read which layers attend to images: their weights are held, and no cache of the text's tokens."""
    marks = config.numbers("cross_attention_layers", 10_000) or ()
    hidden, head = parts["hidden"], parts["head_dim"] or parts["hidden"] // parts["heads"]
    q, kv = parts["heads"] * head, (parts["kv_heads"] or parts["heads"]) * head
    # A norm before it, norms of queries and keys, two gates of one number.
    cross = SideWeights(matrices=((hidden, q), (hidden, kv), (hidden, kv), (q, hidden)), vectors=hidden + 2 * head + 2)
    seeing = [index in marks for index in range(parts["layers"])]
    return {
        "mixer": ["none" if sees else "attention" for sees in seeing],
        "beside": [cross if sees else None for sees in seeing],
        # Rows of the embedding for what stands for images.
        "side": SideWeights(vectors=8 * hidden),
    }


@reader
def scaled_heads(config: Config, parts: Parts) -> Parts:
    """Read OpenELM's heads and feed-forwards, which grow with depth."""
    layers, hidden = parts["layers"], parts["hidden"]
    queries, keys = (config.numbers(key, 10_000) or () for key in ("num_query_heads", "num_kv_heads"))
    factors: Any = config.raw("ffn_multipliers")
    if not (isinstance(factors, list) and min(len(queries), len(keys), len(factors)) >= layers):
        raise config.wrong("num_query_heads", f"does not name the heads of {layers} layers")
    grain = config.count("ffn_dim_divisor")
    widths = [_divisible(factor * hidden, grain) for factor in factors[:layers] if isinstance(factor, int | float)]
    if len(widths) < layers:
        raise config.wrong("ffn_multipliers", "must be numbers")
    most, usual = max(queries[:layers]), widths[-1]
    return {
        "heads": most,
        "kv_heads": max(keys[:layers]),
        "ffn": usual,
        "own_heads": [0 if n == most else n for n in queries[:layers]],
        "own_kv_heads": list(keys[:layers]),
        "own_ffn": [0 if width == usual else width for width in widths],
    }


def _divisible(value: float, grain: int) -> int:
    """Nearest multiple, raised where it would lose a tenth (OpenELM's `make_divisible`)."""
    near = max(grain, int(value + grain / 2) // grain * grain)
    return near + grain if near < 0.9 * value else near


@reader
def looking_back(config: Config, parts: Parts, *, around: bool = False) -> Parts:
    """Read EuroBERT: a decoder's layers that see both sides, with a product before what classifies.

    `around`: some see so many tokens on each side; two narrow products stand before what predicts, none before what
    classifies.
    """
    kind, hidden = class_of(config), parts["hidden"]
    found = read.windows(config, parts) if around else {}
    if "window" in found:
        found["window"] = replace(found["window"], size=2 * found["window"].size)
    head = 0 if config.fields.get("tie_word_embeddings") is True else hidden * parts["vocab"]
    head += 2 * hidden * (config.optional_count("prediction_head_size") or 0)
    labels = labels_of(config) * (hidden + 1)
    classified = labels if around else square(hidden) + labels
    behind = {"Model": 0, "MaskedLM": head, "SequenceClassification": classified}.get(kind, labels)
    return {**found, "side": SideWeights(vectors=behind) if behind else None}
