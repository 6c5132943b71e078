"""Rows of model types whose layers follow no rule: found by a search (Nemotron-NAS), scaled by depth (OpenELM), or some
of which attend to images (Llama 3.2 Vision).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import SideWeights
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, MLP_BIASED, Family, Parts, sizes

_GRAIN: Final = 256
"""Widths of feed-forwards that a factor gives are rounded up to a multiple of this."""


def _rounded(width: int) -> int:
    return -(-width // _GRAIN) * _GRAIN


def _searched_layers(config: Config, parts: Parts) -> Parts:
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


def _cross_layers(config: Config, parts: Parts) -> Parts:
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


def _scaled_heads(config: Config, parts: Parts) -> Parts:
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


_SEARCHED: Final = Family(
    implementation="hf-llama",
    names={"ffn": "dense_width"},
    defaults=sizes(80, 8192, 64, None, 0, 128256, 131072, dense_width=1),
    parts=(BIASED, MLP_BIASED, _searched_layers, ATTENTION_DROPOUT),
)

IRREGULAR: Final[Mapping[str, Family]] = {
    "nemotron-nas": _SEARCHED,
    "deci": _SEARCHED,
    "mllama_text_model": Family(
        implementation="hf-llama",
        defaults=sizes(40, 4096, 32, 8, 14336, 128256, 131072, cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38]),
        parts=(_cross_layers,),
    ),
    "openelm": Family(
        implementation="hf-llama",
        names={
            "layers": "num_transformer_layers",
            "hidden": "model_dim",
            "heads": "most_heads",
            "context": "max_context_length",
            "ffn": "dense_width",
            "activation": "activation_fn_name",
        },
        defaults={
            **sizes(28, 2048, 1, None, 0, 32000, 2048, dense_width=1, most_heads=1),
            "num_transformer_layers": 28,
            "model_dim": 2048,
            "max_context_length": 2048,
            "activation_fn_name": "swish",
            "ffn_dim_divisor": 256,
            "share_input_output_layers": True,
            "tie_word_embeddings": True,
        },
        fixed={"qk_norm": "head", "fused_qkv": True, "fused_gate_up": True},
        parts=(_scaled_heads,),
    ),
}
