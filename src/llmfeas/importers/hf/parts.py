"""How structure is written in configurations: windows, experts, latent and linear attention, biases, dropout.

What is marked `reader` here and in the files beside is named by the table of model types (data/families.yaml).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from ...catalog.parts import Dropout, Experts, LinearAttention, Mla, Window
from ...record import replace
from ...text import printable
from ..config_file import Config

Parts = dict[str, Any]
"""Fields of an Architecture, and under `COLUMNS` what each of its layers is."""

COLUMNS: Final = (
    "mixer",
    "feed_forward",
    "windowed",
    "rotates",
    "shares_cache",
    "indexes",
    "own_ffn",
    "own_heads",
    "own_kv_heads",
    "own_rate",
    "beside",
    "weight_set",
)
"""Fields of a LayerKind that are read layer by layer where rules may not say them."""

Reader = Callable[..., Parts]
"""Reads some of a configuration; is given it, what was read before, and what the table of model types says beside."""
R = TypeVar("R", bound=Reader)

Matrices = Sequence[tuple[int, int]]
"""Small matrices beside operators, each by its sides."""

READERS: Final[dict[str, Reader]] = {}
"""All readers by name."""


def reader(function: R) -> R:
    """Let the table of model types name this function."""
    assert function.__name__ not in READERS, function.__name__
    READERS[function.__name__] = function
    return function


_WINDOWED: Final = ("sliding_attention", "chunked_attention", "local")
_WHOLE: Final = ("full_attention", "global", "attention")


@reader
def flags(config: Config, _: Parts, **names: str) -> Parts:
    """Take boolean fields of the architecture from boolean fields of the configuration."""
    return {field: config.flag(key) for field, key in names.items()}


@reader
def dropout(config: Config, _: Parts, **names: str) -> Parts:
    """Take dropout rates (`embedding`, `attention`, `residual`) from these fields."""
    return {"dropout": Dropout(**{field: config.rate(key) for field, key in names.items()})}


@reader
def qk_norm(config: Config, _: Parts, *, key: str = "use_qk_norm", kind: str = "head") -> Parts:
    """Read whether queries and keys have a norm of this kind."""
    return {"qk_norm": kind if config.flag(key) else "none"}


@reader
def rope_fraction(config: Config, _: Parts) -> Parts:
    """Read the rotated share of a head, old or new spelling."""
    nested = config.nested("rope_parameters")
    for key in ("partial_rotary_factor", "rotary_pct"):
        if nested is not None and nested.fields.get(key) is not None:
            return {"rope_fraction": nested.rate(key)}
        if config.raw(key) is not None:
            return {"rope_fraction": config.rate(key)}
    return {}


@reader
def rotated_channels(config: Config, parts: Parts) -> Parts:
    """Read the rotated share of a head, written as a number of its channels (MiniMax M2) or as that share."""
    rotated, wide = config.optional_count("rotary_dim", zero=True), config.optional_count("head_dim")
    if rotated is None or not wide:
        return rope_fraction(config, parts)
    return {"rope_fraction": min(1.0, rotated / wide)}


@reader
def every_layer_windowed(config: Config, _: Parts) -> Parts:
    """Read a window that all layers share (Mistral)."""
    size = config.optional_count("sliding_window", "tokens", zero=True)
    return {"window": Window(size=size)} if size else {}


@reader
def optional_window(config: Config, parts: Parts) -> Parts:
    """Read Qwen's window: off unless `use_sliding_window`, and then only from `max_window_layers` on."""
    size = config.optional_count("sliding_window", "tokens", zero=True)
    if not config.flag("use_sliding_window") or not size:
        return {}
    layers: int = parts["layers"]
    kinds = config.words("layer_types", 10_000)
    if kinds is None:
        start = config.count("max_window_layers", "layers", zero=True)
        kinds = tuple("sliding_attention" if index >= start else "full_attention" for index in range(layers))
    return pattern(config, "layer_types", kinds, layers, size)


@reader
def windows(
    config: Config,
    parts: Parts,
    *,
    period: int = 0,
    size_key: str = "sliding_window",
    period_key: str = "",
    chunked: bool = False,
) -> Parts:
    """Read `layer_types`; without it every `period`-th layer sees everything, none where that is 0."""
    size = config.optional_count(size_key, "tokens", zero=True)
    if not size:
        return {}
    layers: int = parts["layers"]
    kinds = config.words("layer_types", 10_000)
    if kinds is None:
        every = (config.optional_count(period_key, "layers") if period_key else None) or period or layers + 1
        windowed = "chunked_attention" if chunked else "sliding_attention"
        kinds = tuple(windowed if (i + 1) % every else "full_attention" for i in range(layers))
    return pattern(config, "layer_types", kinds, layers, size)


@reader
def gpt_neo_window(config: Config, parts: Parts) -> Parts:
    """Read GPT-Neo's alternation, which masks but does not shorten the cache."""
    layers: int = parts["layers"]
    kinds = config.words("attention_layers", 10_000)
    if kinds is None:
        kinds = tuple(_expanded(config, config.raw("attention_types"), layers))
    size = config.count("window_size", "tokens")
    fields = pattern(config, "attention_types", kinds, layers, size)
    window: Window | None = fields.get("window")
    if window is None:
        return {}
    return {**fields, "window": replace(window, in_cache=False)}


def _expanded(config: Config, written: Any, layers: int) -> Sequence[str]:
    kinds: list[str] = []
    wrong = config.wrong("attention_types", 'must look like [[["global", "local"], 12]]')
    if not isinstance(written, list) or len(written) > layers:
        raise wrong
    for item in written:
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], list) and type(item[1]) is int):
            raise wrong
        if not 0 <= item[1] * len(item[0]) <= layers:
            raise wrong
        kinds += [str(kind) for kind in item[0]] * item[1]
    return kinds


def pattern(config: Config, key: str, kinds: Sequence[str], layers: int, size: int) -> Parts:
    """Turn a list of kinds into groups of windowed and whole layers, and say of each layer which it is.

    Raises:
        DataError: fewer kinds than there are layers, or an unknown one.
    """
    names = {**dict.fromkeys(_WINDOWED, "windowed"), **dict.fromkeys(_WHOLE, "whole")}
    windowed = [name == "windowed" for name in named_layers(config, key, kinds, names, layers)]
    if not any(windowed):
        return {}
    first = next((i for i, value in enumerate(windowed) if value != windowed[0]), layers)
    second = next((i for i in range(first, layers) if windowed[i] == windowed[0]), layers)
    local, full = (first, second - first) if windowed[0] else (second - first, first)
    window = Window(
        size=size,
        local=local,
        full=full,
        full_first=not windowed[0],
        chunked="chunked_attention" in kinds,
    )
    return {"window": window, "windowed": windowed}


@reader
def latent(config: Config, _: Parts) -> Parts:
    """Read multi-head latent attention; some files of such types say that there is none (DeepSeek-OCR)."""
    if config.raw("use_mla") is False:
        return {}
    mla = Mla(
        q_lora_rank=config.optional_count("q_lora_rank"),
        kv_lora_rank=config.count("kv_lora_rank"),
        nope_head_dim=config.count("qk_nope_head_dim"),
        rope_head_dim=config.count("qk_rope_head_dim", zero=True),
        v_head_dim=config.count("v_head_dim"),
    )
    return {"mla": mla, "head_dim": mla.nope_head_dim + mla.rope_head_dim, "kv_heads": 0}


@reader
def linear_attention_apart(config: Config, parts: Parts) -> Parts:
    """Read gated delta-rule layers whose gate, step and decay have projections of their own (Qwen3.5)."""
    return linear_attention(config, parts, apart=True)


@reader
def linear_attention(config: Config, parts: Parts, *, apart: bool = False) -> Parts:
    """Read gated delta-rule layers (Qwen3-Next): unless they are listed, every n-th layer keeps full attention."""
    layers: int = parts["layers"]
    kinds = config.words("layer_types", 10_000)
    interval = config.optional_count("full_attention_interval", "layers") or 4
    listed: Parts = {}
    if kinds is not None:
        if len(kinds) < layers:
            raise config.wrong("layer_types", f"names {len(kinds)} of {layers} layers")
        interval = kinds.index("full_attention") + 1 if "full_attention" in kinds else layers + 1
        listed["mixer"] = ["linear_attention" if kind == "linear_attention" else "attention" for kind in kinds[:layers]]
        if "sliding_attention" in kinds[:layers]:
            listed["window"] = Window(size=config.count("sliding_window", "tokens"))
            listed["windowed"] = [kind == "sliding_attention" for kind in kinds[:layers]]
    return {
        **listed,
        "linear_attention": LinearAttention(
            key_heads=config.count("linear_num_key_heads", "heads"),
            value_heads=config.count("linear_num_value_heads", "heads"),
            key_head_dim=config.count("linear_key_head_dim"),
            value_head_dim=config.count("linear_value_head_dim"),
            conv_kernel=config.count("linear_conv_kernel_dim"),
            interval=interval,
            apart=apart,
        ),
    }


@reader
def experts(
    config: Config,
    parts: Parts,
    *,
    count: Sequence[str],
    top_k: str = "num_experts_per_tok",
    width: str = "moe_intermediate_size",
    shared: str = "",
    shared_width: str = "",
    first_dense: str = "",
    step: str = "",
    dense: str = "",
    zero: str = "",
    expected_real: bool = False,
    **fixed: Any,
) -> Parts:
    """Read a mixture of experts whose fields have these names; `dense` is the width of layers without experts."""
    key = next((name for name in count if config.fields.get(name) is not None), count[0])
    number = config.count(key, "experts")
    fields: Parts = {"count": number, "top_k": config.count(top_k, "experts"), "width": config.count(width)}
    if shared:
        fields["shared"] = config.optional_count(shared, "experts", zero=True) or 0
    if shared_width and (size := config.optional_count(shared_width, zero=True)) and fields.get("shared", 1):
        fields |= {"shared": 1, "shared_width": size * fields.get("shared", 1)}
    if first_dense:
        fields["first_dense_layers"] = config.optional_count(first_dense, "layers", zero=True) or 0
    dense_only = _dense_only(config, parts["layers"])
    if sorted(dense_only) == list(range(len(dense_only))):
        fields["first_dense_layers"] = fields.get("first_dense_layers", 0) or len(dense_only)
    fields["layer_step"] = (config.optional_count(step, "layers") if step else None) or 1
    fields["zero"] = (config.optional_count(zero, "experts", zero=True) if zero else None) or 0
    if expected_real and fields["zero"]:
        fields["expected_real"] = _even_share(fields)
    record = Experts(**fields, **fixed)
    routed = [record.holds(index) and index not in dense_only for index in range(parts["layers"])]
    width_of_dense = config.count(dense) if dense and (record.parallel_dense or not all(routed)) else None
    return {"experts": record, "ffn": width_of_dense, "feed_forward": _kinds(routed)}


@reader
def listed_experts(config: Config, parts: Parts) -> Parts:
    """Read which layers hold experts from `mlp_layer_types` or a list `moe_layer_freq`, where either is written."""
    layers: int = parts["layers"]
    words = config.words("mlp_layer_types", 10_000)
    routed = [word not in ("dense",) for word in words] if words else None
    if routed is None and isinstance(config.raw("moe_layer_freq"), list):
        routed = [bool(mark) for mark in config.numbers("moe_layer_freq", 10_000) or ()]
    if routed is None:
        return {}
    if len(routed) < layers:
        raise config.wrong("mlp_layer_types", f"names {len(routed)} of {layers} layers")
    found: Parts = {"feed_forward": _kinds(routed[:layers])}
    if not all(routed[:layers]) and parts.get("ffn") is None:
        found["ffn"] = config.count("intermediate_size")
    return found


@reader
def still_when_whole(config: Config, parts: Parts) -> Parts:
    """Layers that see everything do not rotate (EXAONE 4, Trinity, Command)."""
    return {"rotates": parts["windowed"]} if "windowed" in parts else {}


def widths(config: Config, key: str, layers: int) -> Parts:
    """Read a list of the widths of feed-forwards, one a layer: the most frequent is the architecture's.

    Raises:
        DataError: fewer widths than layers, or a 0 among them.
    """
    listed = config.numbers(key, 10_000) or ()
    if len(listed) < layers or not all(listed[:layers]):
        raise config.wrong(key, f"does not name the widths of {layers} layers")
    usual = max(sorted(set(listed[:layers])), key=listed[:layers].count)
    return {"ffn": usual, "own_ffn": [0 if width == usual else width for width in listed[:layers]]}


def mixers(config: Config, parts: Parts, key: str, names: Mapping[str, str]) -> Parts:
    """Read what mixes the tokens of each layer from a list of words.

    Raises:
        DataError: fewer words than layers, or an unknown one.
    """
    return {"mixer": named_layers(config, key, config.words(key, 10_000) or (), names, parts["layers"])}


def named_layers(config: Config, key: str, words: Sequence[str], names: Mapping[str, str], layers: int) -> list[str]:
    """What each layer is called here, of which a file says it in a word.

    Raises:
        DataError: fewer words than layers, or an unknown one.
    """
    if len(words) < layers:
        raise config.wrong(key, f"names {len(words)} of {layers} layers")
    strange = next((word for word in words[:layers] if word not in names), None)
    if strange is not None:
        raise config.wrong(key, f"'{printable(strange, 40)}' is not known")
    return [names[word] for word in words[:layers]]


def _kinds(routed: Sequence[bool]) -> list[str]:
    return ["experts" if holds else "dense" for holds in routed]


def _dense_only(config: Config, layers: int) -> set[int]:
    """Read `mlp_only_layers`.

    Raises:
        DataError: it names layers that there are not.
    """
    found = set(config.numbers("mlp_only_layers", 10_000) or ())
    if any(index >= layers for index in found):
        raise config.wrong("mlp_only_layers", f"names layers that a model of {layers} layers has not")
    return found


def _even_share(fields: Mapping[str, Any]) -> float:
    """Assume that routing is even: real experts get their share of the choices."""
    share: float = fields["top_k"] * fields["count"] / (fields["count"] + fields["zero"])
    return share


def headless(hidden: int) -> Parts:
    """Heads where no layer has attention."""
    return {"heads": 1, "kv_heads": 1, "head_dim": hidden}
