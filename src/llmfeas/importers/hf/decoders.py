"""Readers of decoders that spell something in a way of their own: kin of GPT-2, kin of Llama, routed experts."""

from __future__ import annotations

from typing import Any, Final

from ...catalog.parts import Dropout, SideWeights
from ...record import replace
from ..config_file import Config
from . import parts as read
from .encoder import modern_windows
from .parts import Parts, reader


@reader
def capped(config: Config, _: Parts) -> Parts:
    """Read whether logits pass through a scaled tanh (VaultGemma)."""
    return {"softcap": config.raw("final_logit_softcapping") is not None}


@reader
def bigcode(config: Config, parts: Parts) -> Parts:
    """Read whether all queries share one head of keys (StarCoder)."""
    heads: int = parts["heads"]
    return {"kv_heads": 1 if config.flag("multi_query") else heads}


@reader
def gptj_rotation(config: Config, parts: Parts) -> Parts:
    """Read the rotated share of a head as a number of its channels (GPT-J)."""
    rotated = config.optional_count("rotary_dim", zero=True)
    return {} if rotated is None else {"rope_fraction": min(1.0, rotated * parts["heads"] / parts["hidden"])}


@reader
def neox_block(config: Config, _: Parts) -> Parts:
    """Read whether both branches read the same stream (GPT-NeoX)."""
    return {"parallel_block": config.flag("use_parallel_residual")}


@reader
def opt_block(config: Config, parts: Parts) -> Parts:
    """Biases, norms before or behind, a narrower embedding; two rows of the position table are never used."""
    biased, before = config.flag("enable_bias"), config.flag("do_layer_norm_before")
    width = config.optional_count("word_embed_proj_dim") or parts["hidden"]
    return {
        **dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), biased),
        "norm_position": "pre" if before else "post",
        "final_norm": before and not config.flag("_remove_final_layer_norm"),
        "embedding_dim": None if width == parts["hidden"] else width,
        "learned_positions": parts["context"] + 2,
    }


@reader
def bloom_width(config: Config, parts: Parts) -> Parts:
    """A feed-forward of four times the width, which BLOOM does not say."""
    return {"ffn": 4 * parts["hidden"]}


@reader
def mpt_block(config: Config, parts: Parts) -> Parts:
    """MPT's class has a feed-forward of four times the width, whatever `expansion_ratio` says."""
    attention = config.nested("attn_config")
    rate = attention.rate("attn_pdrop") if attention is not None else 0.0
    return {"ffn": 4 * parts["hidden"], "dropout": Dropout(attention=rate, residual=rate)}


@reader
def falcon_block(config: Config, parts: Parts) -> Parts:
    """Falcon's two generations: one key head or groups; one norm, or one for each of the parallel branches."""
    new = config.flag("new_decoder_architecture")
    groups = config.optional_count("num_kv_heads", "heads") or parts["heads"]
    heads = groups if new or not config.flag("multi_query") else 1
    norms = config.optional_count("num_ln_in_parallel_attn", "layers") or (2 if new else 1)
    parallel = new or config.flag("parallel_attn")
    return {
        **dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), config.flag("bias")),
        "kv_heads": heads,
        "ffn": config.optional_count("ffn_hidden_size") or 4 * parts["hidden"],
        "parallel_block": parallel,
        "norms_per_layer": (2 if new and norms == 2 else 1) if parallel else 2,
        "positions": "alibi" if config.flag("alibi") else "rope",
    }


_FIRST_ACTIVATIONS: Final = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}


@reader
def first_gpt(config: Config, parts: Parts) -> Parts:
    """Read the first GPT's activation, whose names mean others than those of later classes."""
    word = config.text("afn", "gelu")
    if word not in _FIRST_ACTIVATIONS:
        raise config.wrong("afn", f"is not one of {', '.join(_FIRST_ACTIVATIONS)}")
    return {"activation": _FIRST_ACTIVATIONS[word], "ffn": 4 * parts["hidden"]}


@reader
def persimmon(config: Config, parts: Parts) -> Parts:
    """Read Persimmon, whose norms of heads have biases."""
    if config.raw("qk_layernorm") is False:
        return {}
    width = parts["hidden"] // parts["heads"]
    return {"qk_norm": "head", "beside": [SideWeights(vectors=2 * width)] * parts["layers"]}


@reader
def one_bias(config: Config, parts: Parts) -> Parts:
    """Read the width of the feed-forward, and the one bias, which the last layer's attention has."""
    hidden, layers = parts["hidden"], parts["layers"]
    width = hidden * config.count("intermediate_multiple_size", "few")
    return {"ffn": width, "beside": [None] * (layers - 1) + [SideWeights(vectors=hidden)]}


@reader
def written_modern(config: Config, parts: Parts) -> Parts:
    """Read ModernBERT as a decoder: every n-th layer from the first on sees everything behind it; a product and a norm
    stand before the head. The norm that the first layer lacks stands for that of the embedding."""
    hidden = parts["hidden"]
    size = config.optional_count("sliding_window", "tokens") or config.count("local_attention", "tokens") // 2
    vectors = hidden * (2 if config.flag("norm_bias") else 1)
    if config.flag("classifier_bias"):
        vectors += hidden
    return {
        **modern_windows(config, parts, size),
        "norm_bias": config.flag("norm_bias"),
        "head_bias": config.raw("decoder_bias") is not False,
        "side": SideWeights(matrices=((hidden, hidden),), vectors=vectors),
    }


@reader
def dbrx(config: Config, parts: Parts) -> Parts:
    """Read DBRX, which says of attention and experts in mappings of their own."""
    defaults: dict[str, Any] = {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}
    fed = config.nested("ffn_config", defaults) or Config(config.file, {}, defaults, "ffn_config.")
    attends = config.nested("attn_config") or Config(config.file, {}, {}, "attn_config.")
    routed = read.experts(fed, parts, count=("moe_num_experts",), top_k="moe_top_k", width="ffn_hidden_size")
    return {
        **routed,
        "kv_heads": attends.optional_count("kv_n_heads", "heads") or 1,
        "dropout": Dropout(
            embedding=config.rate("emb_pdrop"),
            attention=attends.rate("attn_pdrop"),
            residual=config.rate("resid_pdrop"),
        ),
    }


@reader
def first_qwen(config: Config, parts: Parts) -> Parts:
    """Read the first Qwen's feed-forward, whose two halves are said as one width, and the biases of its products."""
    biased = config.raw("no_bias") is False
    return {"ffn": config.count("intermediate_size") // 2, "out_bias": biased, "mlp_bias": biased}


@reader
def ant(config: Config, parts: Parts) -> Parts:
    """Read CPM-Ant: a table of distances between the segments of a text, rows for prompts that stand before each."""
    kinds = config.count("segment_types", "few")
    buckets = kinds * kinds + config.count("position_bias_num_buckets", "rows")
    prompts = config.count("prompt_types", "few") * config.count("prompt_length", "tokens")
    rate = config.rate("dropout_p")
    return {
        "kv_heads": parts["heads"],
        "side": SideWeights(vectors=buckets * parts["heads"] + (kinds + prompts) * parts["hidden"]),
        "dropout": Dropout(embedding=rate, attention=rate, residual=rate),
    }


@reader
def stablelm_block(config: Config, _: Parts) -> Parts:
    """Read StableLM: biases, one norm for parallel branches, a norm of queries and keys."""
    parallel = config.flag("use_parallel_residual")
    return {
        "qkv_bias": config.flag("use_qkv_bias"),
        "parallel_block": parallel,
        "norms_per_layer": 1 if parallel else 2,
        "qk_norm": "full" if config.flag("qk_layernorm") else "none",
    }


@reader
def olmo_clip(config: Config, _: Parts) -> Parts:
    """Read whether queries, keys and values are clamped (OLMo)."""
    return {} if config.raw("clip_qkv") is None else {"implementation": "hf-olmo-clipped"}


@reader
def no_rope(config: Config, parts: Parts) -> Parts:
    """Read which layers do not rotate: unless they are listed, every n-th."""
    layers: int = parts["layers"]
    interval = config.optional_count("no_rope_layer_interval", "layers") or 4
    marks = config.numbers("no_rope_layers", 10_000)
    if not marks:
        return {"no_rope_every": interval}
    if len(marks) < layers:
        raise config.wrong("no_rope_layers", f"names {len(marks)} of {layers} layers")
    still = [index for index, mark in enumerate(marks[:layers]) if not mark]
    if not still:
        return {}
    return {"no_rope_every": still[0] + 1, "rotates": [index not in still for index in range(layers)]}


@reader
def compass_layers(config: Config, parts: Parts) -> Parts:
    """Read Cohere Compass: layers see everything unless listed; kinds of layers without angles do not rotate."""
    kinds = config.words("layer_types", 10_000)
    size = config.optional_count("sliding_window", "tokens", zero=True)
    if kinds is None or not size:
        return {}
    found = read.pattern(config, "layer_types", kinds, parts["layers"], size)
    angles = config.nested("rope_parameters")
    listed = {} if angles is None else {kind: angles.fields[kind] for kind in set(kinds) if kind in angles.fields}
    if listed:
        found["rotates"] = [bool(listed.get(kind)) for kind in kinds[: parts["layers"]]]
    return found


@reader
def llama4_layers(config: Config, parts: Parts) -> Parts:
    """Read which layers hold experts, and which do not rotate."""
    found: Parts = {"no_rope_every": config.optional_count("no_rope_layer_interval", "layers") or 4}
    listed = config.numbers("moe_layers", 10_000)
    if listed is not None:
        found["feed_forward"] = ["experts" if i in listed else "dense" for i in range(parts["layers"])]
        if "dense" in found["feed_forward"]:
            found["ffn"] = config.count("intermediate_size_mlp")
    return found


@reader
def uniform(config: Config, parts: Parts) -> Parts:
    """Read Hunyuan's experts, whose fields are lists of one value a layer.

    Raises:
        DataError: the layers differ.
    """
    fields = dict(config.fields)
    for key in ("moe_topk", "moe_intermediate_size", "num_shared_expert"):
        value = config.raw(key)
        if isinstance(value, list) and value:
            if len(set(map(str, value))) > 1:
                raise config.wrong(key, "differs by layer, which is not supported")
            fields[key] = value[0]
    plain = Config(config.file, fields, config.defaults, config.where)
    if (plain.optional_count("num_experts", "experts") or 0) <= 1:
        return {}
    return read.experts(plain, parts, count=("num_experts",), top_k="moe_topk", shared="num_shared_expert")


@reader
def ernie_experts(config: Config, parts: Parts) -> Parts:
    """Read ERNIE's experts: from one layer to another, every so many."""
    found = read.experts(
        config,
        parts,
        count=("moe_num_experts",),
        top_k="moe_k",
        shared="moe_num_shared_experts",
        dense="intermediate_size",
        first_dense="moe_layer_start_index",
        step="moe_layer_interval",
        router_bias=True,
    )
    last = config.raw("moe_layer_end_index")
    if type(last) is int and 0 <= last < parts["layers"] - 1:
        found["feed_forward"] = [kind if i <= last else "dense" for i, kind in enumerate(found["feed_forward"])]
    return found


@reader
def ernie_pairs(config: Config, parts: Parts) -> Parts:
    """Read ERNIE's pairs of experts for text and for images; the former are the language model's."""
    fields = {key: _first(config.raw(key)) for key in _PAIRED}
    whole = replace(config, fields={**config.fields, **{key: value for key, value in fields.items() if value}})
    found = ernie_experts(whole, parts)
    return {**found, **read.listed_experts(whole, {**parts, **found})}


_PAIRED: Final = ("moe_intermediate_size", "moe_num_experts", "moe_layer_start_index", "moe_layer_end_index")


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


@reader
def whole_first(config: Config, parts: Parts) -> Parts:
    """Read Granite's windows: every fourth layer from the first on sees all; none rotates where its base is 0."""
    size = config.optional_count("sliding_window", "tokens", zero=True)
    layers: int = parts["layers"]
    kinds = config.words("layer_types", 10_000) or tuple(
        "sliding_attention" if index % 4 else "full_attention" for index in range(layers)
    )
    found = read.pattern(config, "layer_types", kinds, layers, size) if size else {}
    bases = config.raw("layer_rope_theta")
    if isinstance(bases, list) and len(bases) >= layers:
        found["rotates"] = [bool(base) for base in bases[:layers]]
    return found


@reader
def post_norms(config: Config, _: Parts) -> Parts:
    """Read whether what leaves attention and feed-forward has norms of its own (HyperCLOVA X)."""
    return {"norms_per_layer": 2 if config.raw("use_post_norm") is False else 4}


@reader
def cohere_layers(config: Config, parts: Parts) -> Parts:
    """Read Cohere's experts, which are as wide as `intermediate_size`, and the windows of layers, whose pattern begins
    anew behind the first dense ones."""
    layers: int = parts["layers"]
    words = config.words("mlp_layer_types", 10_000)
    first = config.optional_count("first_k_dense_replace", "layers", zero=True) or 0
    if words is not None:
        first = next((index for index, word in enumerate(words) if word != "dense"), layers)
    wide = config.optional_count("prefix_dense_intermediate_size")
    known = {**config.fields, "dense_width": wide or config.count("intermediate_size"), "first_dense": first}
    found = read.experts(
        replace(config, fields=known),
        parts,
        count=("num_experts", "num_local_experts"),
        width="intermediate_size",
        shared="num_shared_experts",
        first_dense="first_dense",
        dense="dense_width",
    )
    if words is not None:
        found |= read.listed_experts(config, {**parts, **found})
    kinds = config.words("layer_types", 10_000)
    if kinds is None:
        every = [config.optional_count(f"{key}sliding_window_pattern", "layers") for key in ("prefix_dense_", "")]
        ahead, rest = every[0] or 1, every[1] or 4
        windowed = [bool((i + 1) % ahead if i < first else (i - first + 1) % rest) for i in range(layers)]
        kinds = tuple("sliding_attention" if each else "full_attention" for each in windowed)
    size = config.optional_count("sliding_window", "tokens", zero=True)
    return {**found, **(read.pattern(config, "layer_types", kinds, layers, size) if size else {})}
