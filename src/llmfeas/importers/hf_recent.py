"""Rows of model types of 2025 and 2026 that are made of known parts: ordinary or latent attention, experts or none.

`defaults` are those of the configuration classes of transformers 5.23, or of the published model without one:
a config.json may leave out what equals them. Sizes were compared with the classes on the meta device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..record import replace
from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, MLP_BIASED, QK_NORM, ROUTED_EXPERTS, Family, Parts, sizes

_EXPERTS: Final = read.experts(
    count=("num_experts", "n_routed_experts", "num_local_experts"),
    shared="num_shared_experts",
    first_dense="first_k_dense_replace",
    dense="intermediate_size",
)
_BIASED_EXPERTS: Final = read.experts(
    count=("num_experts",),
    shared="num_shared_experts",
    first_dense="first_k_dense_replace",
    dense="intermediate_size",
    router_bias=True,
)


def _uniform(config: Config, parts: Parts) -> Parts:
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
    reader = read.experts(count=("num_experts",), top_k="moe_topk", shared="num_shared_expert")
    return reader(plain, parts) if (plain.optional_count("num_experts", "experts") or 0) > 1 else {}


def _qk_norm(key: str) -> read.Part:
    return lambda config, _: {"qk_norm": "head" if config.flag(key) else "none"}


def _ernie_experts(config: Config, parts: Parts) -> Parts:
    """Read ERNIE's experts: from one layer to another, every so many."""
    found = read.experts(
        count=("moe_num_experts",),
        top_k="moe_k",
        shared="moe_num_shared_experts",
        dense="intermediate_size",
        first_dense="moe_layer_start_index",
        step="moe_layer_interval",
        router_bias=True,
    )(config, parts)
    last = config.raw("moe_layer_end_index")
    if type(last) is int and 0 <= last < parts["layers"] - 1:
        found["feed_forward"] = [kind if i <= last else "dense" for i, kind in enumerate(found["feed_forward"])]
    return found


def _afmoe_layers(config: Config, parts: Parts) -> Parts:
    """Read Trinity's layers: every n-th sees everything, and only the others rotate."""
    found = read.windows(4, period_key="global_attn_every_n_layers")(config, parts)
    return {**found, "rotates": found["windowed"]} if "windowed" in found else found


def _cohere_layers(config: Config, parts: Parts) -> Parts:
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
        count=("num_experts", "num_local_experts"),
        width="intermediate_size",
        shared="num_shared_experts",
        first_dense="first_dense",
        dense="dense_width",
    )(replace(config, fields=known), parts)
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


def _cwm_window(config: Config, parts: Parts) -> Parts:
    return read.windows(4)(config, parts)


def _dense(implementation: str, fixed: Mapping[str, Any], *parts: read.Part, **rest: Any) -> Family:
    """A row whose files say their sizes themselves."""
    return Family(
        implementation=implementation,
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048, **rest),
        fixed=fixed,
        parts=(BIASED, MLP_BIASED, *parts, ATTENTION_DROPOUT),
    )


_RELU2: Final = {"gated": False, "activation": "relu2"}
_LAYER: Final = {"norm": "layer", "norm_bias": True}

RECENT: Final[Mapping[str, Family]] = {
    "ministral3": Family(
        implementation="hf-llama",
        defaults=sizes(34, 4096, 32, 8, 14336, 131072, 262144, head_dim=128, sliding_window=None),
        parts=(read.every_layer_windowed, ATTENTION_DROPOUT),
    ),
    "arcee": _dense("hf-recent", _RELU2, num_key_value_heads=4),
    "apertus": _dense("hf-recent", {"gated": False, "activation": "xielu", **QK_NORM}),
    "jais2": Family(
        implementation="hf-recent-layer-norm",
        defaults=sizes(
            32, 3328, 26, 26, 26624, 150272, 8192, head_dim=128, attention_bias=True, mlp_bias=True, hidden_act="relu2"
        )
        | {"hidden_act": "relu2"},
        fixed={**_RELU2, **_LAYER},
        parts=(BIASED, MLP_BIASED, ATTENTION_DROPOUT),
    ),
    "nemotron": Family(
        implementation="hf-recent-layer-norm",
        defaults=sizes(32, 6144, 48, None, 24576, 256000, 4096, partial_rotary_factor=0.5) | {"hidden_act": "relu2"},
        fixed={**_RELU2, **_LAYER},
        parts=(BIASED, MLP_BIASED, read.rope_fraction, ATTENTION_DROPOUT),
    ),
    "exaone": Family(
        implementation="hf-llama",
        names={"layers": "num_layers", "activation": "activation_function"},
        defaults={**sizes(32, 4096, 32, 8, 14336, 102400, 32768), "num_layers": 32, "activation_function": "silu"},
    ),
    "internlm2": Family(implementation="hf-llama", defaults=sizes(32, 4096, 32, 8, 14336, 92544, 32768)),
    "minicpm": Family(implementation="hf-llama", defaults=sizes(32, 4096, 32, None, 11008, 73448, 32768)),
    "cwm": Family(
        implementation="hf-llama",
        defaults=sizes(64, 6144, 48, 8, 21504, 128256, 131072, head_dim=128, sliding_window=8192),
        parts=(_cwm_window, ATTENTION_DROPOUT),
    ),
    "vaultgemma": Family(
        implementation="hf-gemma2",
        names={"activation": "hidden_activation"},
        defaults={
            **sizes(26, 1152, 4, 4, 6912, 256000, 1024, head_dim=256, tie_word_embeddings=True),
            "hidden_activation": "gelu_pytorch_tanh",
        },
        parts=(BIASED, ATTENTION_DROPOUT),
    ),
    "hunyuan_v1_dense": Family(
        implementation="hf-qwen3",
        defaults=sizes(32, 4096, 32, 8, 14336, 128167, 32768, head_dim=128, tie_word_embeddings=True),
        fixed=QK_NORM,
        parts=(BIASED, ATTENTION_DROPOUT),
    ),
    "hunyuan_v1_moe": Family(
        implementation="hf-qwen3-moe",
        defaults=sizes(32, 4096, 32, 8, 3072, 128167, 32768, head_dim=128, tie_word_embeddings=True),
        fixed=QK_NORM,
        parts=(BIASED, _uniform, ATTENTION_DROPOUT),
    ),
    "ernie4_5_moe": Family(
        implementation="hf-ernie",
        defaults=sizes(
            *(28, 2560, 20, 4, 12288, 103424, 131072),
            head_dim=128,
            tie_word_embeddings=True,
            moe_k=6,
            moe_num_experts=64,
            moe_num_shared_experts=2,
            moe_intermediate_size=1536,
            moe_layer_start_index=1,
            moe_layer_interval=1,
        ),
        parts=(read.flags(qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias"), _ernie_experts),
    ),
    "dots1": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(
            62, 4096, 32, 32, 10944, 152064, 32768, head_dim=128, n_shared_experts=2, first_k_dense_replace=1
        ),
        fixed=QK_NORM,
        parts=(BIASED, ROUTED_EXPERTS, ATTENTION_DROPOUT),
    ),
    "exaone_moe": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(
            48, 6144, 64, 8, 18432, 153600, 262144, head_dim=128, sliding_window=128, first_k_dense_replace=1
        ),
        fixed=QK_NORM,
        parts=(
            _EXPERTS,
            read.listed_experts,
            read.windows(4, period_key="sliding_window_pattern"),
            read.still_when_whole,
            ATTENTION_DROPOUT,
        ),
    ),
    "granitemoeshared": Family(
        implementation="hf-granitemoe",
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048, num_local_experts=8, num_experts_per_tok=2),
        parts=(
            BIASED,
            read.experts(
                count=("num_local_experts",), width="intermediate_size", shared_width="shared_intermediate_size"
            ),
            ATTENTION_DROPOUT,
        ),
    ),
    "afmoe": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(
            *(32, 2048, 32, 4, 6144, 200192, 131072),
            head_dim=128,
            sliding_window=2048,
            num_dense_layers=2,
            num_shared_experts=1,
        ),
        fixed={**QK_NORM, "output_gate": True, "norms_per_layer": 4},
        parts=(
            read.experts(
                count=("num_experts",),
                shared="num_shared_experts",
                first_dense="num_dense_layers",
                dense="intermediate_size",
                router_bias=True,
            ),
            _afmoe_layers,
            ATTENTION_DROPOUT,
        ),
    ),
    "solar_open": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(48, 4096, 64, 8, 10240, 196608, 131072, head_dim=128, n_shared_experts=1),
        parts=(BIASED, ROUTED_EXPERTS, ATTENTION_DROPOUT),
    ),
    "hy_v3": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(80, 4096, 64, 8, 13312, 120832, 131072, head_dim=128, num_shared_experts=1),
        fixed=QK_NORM,
        parts=(BIASED, _EXPERTS, read.listed_experts, ATTENTION_DROPOUT),
    ),
    "bailing_moe": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(
            20, 2048, 16, 4, 5120, 157184, 32768, head_dim=128, num_shared_experts=1, partial_rotary_factor=0.5
        ),
        parts=(
            _qk_norm("use_qk_norm"),
            _BIASED_EXPERTS,
            read.rope_fraction,
        ),
    ),
    "sarvam_moe": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(
            19, 4096, 64, 4, 8192, 262144, 131072, head_dim=64, num_shared_experts=1, first_k_dense_replace=1
        ),
        fixed=QK_NORM,
        parts=(_BIASED_EXPERTS,),
    ),
    "mellum": Family(
        implementation="hf-qwen3-moe",
        defaults=sizes(
            *(28, 2304, 32, 4, 7168, 98304, 131072),
            head_dim=128,
            num_local_experts=64,
            num_experts_per_tok=8,
            sliding_window=1024,
        ),
        fixed=QK_NORM,
        parts=(
            BIASED,
            read.experts(count=("num_local_experts", "num_experts"), dense="intermediate_size"),
            read.listed_experts,
            read.windows(4),
            ATTENTION_DROPOUT,
        ),
    ),
    "cohere2_moe": Family(
        implementation="hf-cohere",
        defaults=sizes(
            *(40, 8192, 64, None, 22528, 256000, 8192),
            head_dim=128,
            num_experts=8,
            num_experts_per_tok=2,
            tie_word_embeddings=True,
            sliding_window=4096,
        ),
        fixed={"norm": "layer", "norms_per_layer": 1, "parallel_block": True},
        parts=(BIASED, _cohere_layers, ATTENTION_DROPOUT),
    ),
}
