"""Rows of encoders of images: what the configuration of each says of its size.

`defaults` are those of the configuration classes of transformers 5.23. Counts were compared with the classes on the
meta device, part by part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .config_file import Config
from .tower_parts import Encoder, TowerKind, blocks, grid, linear, patches, side_of, sizes_of


def _siglip(config: Config) -> Encoder:
    """SigLIP and those like it: a table of positions, a norm behind, a head that pools where it is kept."""
    layers, width, ffn = sizes_of(config)
    rows = config.optional_count("num_patches", "tokens") or grid(config)
    found = patches(config, width) + rows * width + blocks(layers, width, ffn) + 2 * width
    if config.flag("vision_use_head"):
        found += width + linear(width, 3 * width) + linear(width, width) + 2 * width
        found += linear(width, ffn) + linear(ffn, width)
    return Encoder(found, width)


def _segmenting(config: Config) -> Encoder:
    """SAM: positions added, and relative ones by a table of both directions in each layer; a neck behind."""
    layers, width = config.count("num_hidden_layers", "layers"), config.count("hidden_size")
    side, window = side_of(config, "image_size") // side_of(config, "patch_size"), config.count("window_size", "few")
    whole = len(config.numbers("global_attn_indexes", 1000) or ())
    head = width // config.count("num_attention_heads", "heads")
    relative = 2 * head * (whole * (2 * side - 1) + (layers - whole) * (2 * window - 1))
    out = config.count("output_channels")
    found = patches(config, width) + side * side * width + blocks(layers, width, config.count("mlp_dim")) + relative
    return Encoder(found + width * out + 9 * out * out + 4 * out, out)


def _convolving(config: Config) -> Encoder:
    """LFM 3's: gated convolutions over patches, or attention with norms of its heads."""
    layers, width, ffn = sizes_of(config)
    kinds = config.words("layer_types", 10_000) or ()
    attends = kinds[:layers].count("full_attention")
    head = width // config.count("num_attention_heads", "heads")
    kv = config.count("num_key_value_heads", "heads") * head
    attention = blocks(attends, width, ffn, gated=True, biases="", norm=1, kv=kv, extra=2 * head)
    convolutions = (layers - attends) * (4 * width * width + 9 * width + 3 * width * ffn + 2 * width)
    frames = config.count("temporal_patch_size", "few")
    return Encoder(patches(config, width, frames=frames, bias=False) + width + attention + convolutions, width)


def _molmo(config: Config) -> Encoder:
    inner = _siglip(config)
    return Encoder(inner.elements - 2 * inner.width, inner.width)


def _without_table(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    return Encoder(patches(config, width) + blocks(layers, width, ffn) + 2 * width, width)


def _clip(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    table = (grid(config) + 2) * width
    return Encoder(patches(config, width, bias=False) + table + blocks(layers, width, ffn) + 4 * width, width)


def _pixtral(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    inner = (config.optional_count("head_dim") or 0) * config.count("num_attention_heads", "heads")
    stack = blocks(layers, width, ffn, gated=True, biases="", norm=1, inner=inner)
    return Encoder(patches(config, width, bias=False) + width + stack, width)


def _intern(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    norm = 1 if config.text("norm_type").startswith("rms") else 2
    biases = "qkv out mlp" if config.flag("attention_bias") or config.flag("qkv_bias") else "out mlp"
    heads = config.flag("use_qk_norm") or config.flag("qk_normalization")
    extra = 2 * width + (2 * width if heads else 0)
    table = (grid(config) + 2) * width
    stack = blocks(layers, width, ffn, biases=biases, norm=norm, extra=extra)
    pooled = 0 if config.flag("use_mean_pooling") else norm * width
    return Encoder(patches(config, width) + table + stack + pooled, width)


def _merger(config: Config, width: int, *, norm: int) -> int:
    """Patches beside one another as one token of the language model (Qwen)."""
    wide = width * config.count("spatial_merge_size", "few") ** 2
    return norm + linear(wide, wide) + linear(wide, config.count("out_hidden_size"))


def _qwen2(config: Config) -> Encoder:
    layers, width = config.count("depth", "layers"), config.count("embed_dim")
    out = config.with_defaults({**config.defaults, "out_hidden_size": config.raw("hidden_size")})
    stack = blocks(layers, width, int(width * config.number("mlp_ratio", 4)))
    found = patches(config, width, frames=config.count("temporal_patch_size", "few"), bias=False) + stack
    return Encoder(found + _merger(out, width, norm=2 * width), width)


def _qwen25(config: Config) -> Encoder:
    layers, width, ffn = config.count("depth", "layers"), config.count("hidden_size"), config.count("intermediate_size")
    heads = config.count("num_heads", "heads")
    kv = (config.optional_count("num_key_value_heads", "heads") or heads) * (width // heads)
    stack = blocks(layers, width, ffn, gated=True, norm=1, kv=kv)
    found = patches(config, width, frames=config.count("temporal_patch_size", "few"), bias=False) + stack
    return Encoder(found + _merger(config, width, norm=width), width)


def _qwen3(config: Config) -> Encoder:
    layers, width, ffn = config.count("depth", "layers"), config.count("hidden_size"), config.count("intermediate_size")
    wide = width * config.count("spatial_merge_size", "few") ** 2
    deep = len(config.numbers("deepstack_visual_indexes", 10_000) or ())
    found = patches(config, width, frames=config.count("temporal_patch_size", "few"))
    found += config.count("num_position_embeddings", "tokens") * width + blocks(layers, width, ffn)
    found += _merger(config, width, norm=2 * width) + deep * _merger(config, width, norm=2 * wide)
    return Encoder(found, width)


def _glm_merger(out: int, inner: int) -> int:
    return out * out + 2 * out + 3 * out * inner


def _glm(config: Config) -> Encoder:
    layers, width, out = config.count("depth", "layers"), config.count("hidden_size"), config.count("out_hidden_size")
    biases = "qkv" if config.flag("attention_bias") else ""
    found = patches(config, width, frames=config.count("temporal_patch_size", "few")) + grid(config) * width
    found += blocks(layers, width, out, gated=True, biases=biases, norm=1) + 2 * width
    found += linear(width * config.count("spatial_merge_size", "few") ** 2, out)
    return Encoder(found + _glm_merger(out, config.count("intermediate_size")), width)


def _glm_without_table(config: Config) -> Encoder:
    layers, width, out = config.count("depth", "layers"), config.count("hidden_size"), config.count("out_hidden_size")
    head = width // config.count("num_heads", "heads")
    biases = "qkv out mlp" if config.flag("attention_bias") else ""
    stack = blocks(layers, width, config.count("intermediate_size"), gated=True, biases=biases, norm=1, extra=2 * head)
    found = patches(config, width, frames=config.count("temporal_patch_size", "few")) + stack + width
    found += linear(width * config.count("spatial_merge_size", "few") ** 2, out)
    inner = config.optional_count("projection_intermediate_size") or 3 * out
    return Encoder(found + _glm_merger(out, inner), width)


def _llama4(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    table = (grid(config) + 2) * width
    adapter = ffn * config.count("projector_input_dim")
    adapter += config.count("projector_input_dim") * config.count("projector_output_dim")
    found = patches(config, width, bias=False) + table + 4 * width + blocks(layers, width, ffn) + adapter
    return Encoder(found, config.count("vision_output_dim"))


def _mllama(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    above = config.count("num_global_layers", "layers")
    cells, tiles = grid(config) + 1, config.count("max_num_tiles", "few")
    ratios = config.raw("supported_aspect_ratios")
    rows = (len(ratios) if isinstance(ratios, list) else 8) + 1
    tables = cells * width * (1 + rows * tiles) + 2 * rows * tiles * width + 3
    found = patches(config, width, bias=False) + width + tables + 4 * width
    found += blocks(layers, width, ffn, biases="mlp") + blocks(above, width, ffn, biases="mlp", extra=2)
    return Encoder(found, config.count("vision_output_dim"))


def _moon(config: Config) -> Encoder:
    """MoonViT (Kimi): a table of positions in two dimensions, under two spellings."""
    names = ("num_hidden_layers", "hidden_size", "intermediate_size")
    own = any(config.fields.get(f"vt_{name}") is not None for name in names)
    layers, width, ffn = (
        config.count(f"vt_{name}" if own else name, "layers" if name == "num_hidden_layers" else "width")
        for name in names
    )
    sides = ("pos_emb_height", "pos_emb_width")
    rows = 1
    for side in sides:
        written = config.fields.get(f"init_{side}") is not None
        rows *= config.count(f"init_{side}" if written else side, "few")
    return Encoder(patches(config, width) + rows * width + blocks(layers, width, ffn) + 2 * width, width)


def _minimax(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    frames = config.count("temporal_patch_size", "few")
    found = patches(config, width, frames=frames, bias=False) + 2 * width + blocks(layers, width, ffn)
    return Encoder(found, width)


def _gemma4(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    heads, head = config.count("num_attention_heads", "heads"), config.count("head_dim")
    kv = (config.optional_count("num_key_value_heads", "heads") or heads) * head
    biases = "qkv out" if config.flag("attention_bias") else ""
    stack = blocks(
        layers, width, ffn, gated=True, biases=biases, norm=1, norms=4, inner=heads * head, kv=kv, extra=2 * head
    )
    table = 2 * config.count("position_embedding_size", "rows") * width
    return Encoder(patches(config, width, bias=False) + table + stack, width)


def _gemma4_plain(config: Config) -> Encoder:
    """Gemma 4 without an encoder: patches go straight into the stream."""
    width = config.count("mm_embed_dim")
    patch = 3 * (config.count("patch_size", "few") * config.count("pooling_kernel_size", "few")) ** 2
    table = 2 * config.count("mm_posemb_size", "rows") * width
    return Encoder(table + 2 * patch + linear(patch, width) + 4 * width, width)


def _mobilenet(config: Config) -> Encoder:
    """Gemma 3n's MobileNet v5, a net of one size. Source: timm, `mobilenetv5_300m_enc` on the meta device."""
    name = config.text("architecture")
    if name != "mobilenetv5_300m_enc":
        raise config.wrong("architecture", "is not known: mobilenetv5_300m_enc is")
    return Encoder(_MOBILENET_V5_PARAMETERS, config.count("hidden_size"))


_MOBILENET_V5_PARAMETERS: Final = 294_126_912


def _ovis(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    biases = " ".join((["qkv out"] if config.flag("qkv_bias") else []) + (["mlp"] if config.flag("mlp_bias") else []))
    stack = blocks(layers, width, ffn, gated=True, biases=biases, norm=1)
    return Encoder(patches(config, width) + grid(config) * width + 2 * width + stack, width)


def _step(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    found = patches(config, width, bias=False) + config.count("max_position_embeddings", "tokens") * width
    found += 2 * width + blocks(layers, width, ffn, extra=2 * width)
    found += linear(9 * width, 2 * width) + linear(9 * 2 * width, 4 * width)
    return Encoder(found, 4 * width)


def _minicpm(config: Config) -> Encoder:
    """SigLIP with a merger in its midst: attention and a feed-forward over a square of positions."""
    inner, (_, width, _) = _siglip(config), sizes_of(config)
    merger = 4 * linear(width, width) + 2 * width + 8 * width + linear(4 * width, 16 * width)
    return Encoder(inner.elements + merger + linear(16 * width, width), width)


def _muse(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    found = patches(config, width, frames=config.count("patch_temporal", "few"), bias=False)
    found += config.count("max_position_embeddings", "tokens") * width + 4 * width
    return Encoder(found + blocks(layers, width, ffn), width)


def _ernie(config: Config) -> Encoder:
    layers, width = config.count("depth", "layers"), config.count("hidden_size")
    ffn = config.optional_count("intermediate_size") or int(width * config.number("mlp_ratio", 4))
    found = patches(config, width, bias=False) + blocks(layers, width, ffn) + 2 * width
    return Encoder(found, width)


def _radio(config: Config) -> Encoder:
    layers, width = config.count("num_hidden_layers", "layers"), config.count("hidden_size")
    patch = config.count("patch_size", "few")
    rows = (config.count("max_img_size") // patch) ** 2
    cell, frames = 3 * patch * patch, 1 + config.count("video_temporal_patch_size", "few")
    stack = blocks(layers, width, int(width * config.number("mlp_ratio", 4)), extra=2 * width)
    registers = config.count("num_cls_tokens", "few", zero=True) + config.count("num_registers", "few", zero=True)
    return Encoder((rows + registers + frames * cell) * width + stack, width)


def _vit(width: int, ffn: int, layers: int, patch: int, image: int | None = None, **other: Any) -> dict[str, Any]:
    """Defaults of a class in the order width, feed-forward, layers, patch, image."""
    found = {"hidden_size": width, "intermediate_size": ffn, "num_hidden_layers": layers, "patch_size": patch}
    return {**found, **({"image_size": image} if image else {}), **other}


_QWEN: Final = {"depth": 32, "patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2, "num_heads": 16}
_QWEN25: Final = {**_QWEN, "hidden_size": 3584, "intermediate_size": 3420, "out_hidden_size": 3584}
_QWEN3: Final = {
    **_QWEN25,
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "patch_size": 16,
    "num_position_embeddings": 2304,
}
_DEEP: Final = {**_QWEN3, "deepstack_visual_indexes": [8, 16, 24]}
_GLM: Final = {
    **_QWEN,
    "depth": 24,
    "num_heads": 12,
    "hidden_size": 1536,
    "intermediate_size": 13696,
    "out_hidden_size": 4096,
    "image_size": 336,
}
_GLM_OCR: Final = {
    **_GLM,
    "num_heads": 16,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "out_hidden_size": 1536,
    "attention_bias": True,
}
_MOON: Final = _vit(1152, 4304, 27, 14, pos_emb_height=64, pos_emb_width=64)
_INTERN: Final = _vit(1024, 4096, 24, 14, 448, use_mean_pooling=True)
_SMOL: Final = _vit(1152, 3072, 12, 32, 224)

SIGHT: Final[Mapping[str, TowerKind]] = {
    "siglip_vision_model": TowerKind(_siglip, _vit(768, 3072, 12, 16, 224, vision_use_head=True)),
    "siglip2_vision_model": TowerKind(_siglip, _vit(768, 3072, 12, 16, num_patches=256, vision_use_head=True)),
    "idefics2_vision": TowerKind(_siglip, _vit(768, 3072, 12, 32, 224)),
    "idefics3_vision": TowerKind(_siglip, _SMOL),
    "smolvlm_vision": TowerKind(_siglip, _SMOL),
    "paddleocr_vl_vision": TowerKind(_siglip, _vit(1152, 4304, 27, 14, 384)),
    "video_llama_3_vision": TowerKind(_without_table, _vit(768, 3072, 12, 16)),
    "clip_vision_model": TowerKind(_clip, _vit(768, 3072, 12, 32, 224)),
    "git_vision_model": TowerKind(_clip, _vit(768, 3072, 12, 16, 224)),
    "pixtral": TowerKind(_pixtral, _vit(1024, 4096, 24, 16, num_attention_heads=16)),
    "internvl_vision": TowerKind(_intern, _INTERN),
    "intern_vit_6b": TowerKind(_intern, _INTERN),
    "qianfan_ocr_vision": TowerKind(_intern, {**_INTERN, "attention_bias": True}),
    "qwen2_vl_vision": TowerKind(_qwen2, {**_QWEN, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4}),
    "qwen2_5_vl_vision": TowerKind(_qwen25, _QWEN25),
    "qwen2_5_omni_vision_encoder": TowerKind(_qwen25, _QWEN25),
    "exaone4_5_vision": TowerKind(_qwen25, {**_QWEN25, "num_key_value_heads": 8}),
    "qwen3_vl_vision": TowerKind(_qwen3, _DEEP),
    "qwen3_5_vision": TowerKind(_qwen3, _QWEN3),
    "glm4v_vision": TowerKind(_glm, _GLM),
    "glm_ocr_vision": TowerKind(_glm_without_table, _GLM_OCR),
    "glm5_next_vision": TowerKind(_glm_without_table, {**_GLM_OCR, "projection_intermediate_size": 10240}),
    "llama4_vision_model": TowerKind(
        _llama4,
        _vit(
            *(768, 5632, 34, 14, 448),
            vision_output_dim=7680,
            projector_input_dim=4096,
            projector_output_dim=4096,
        ),
    ),
    "mllama_vision_model": TowerKind(
        _mllama, _vit(1280, 5120, 32, 14, 448, num_global_layers=8, vision_output_dim=7680, max_num_tiles=4)
    ),
    "kimi_k25_vision": TowerKind(_moon, _MOON),
    "moonvit": TowerKind(_moon, _MOON),
    "minimax_m3_vl_vision": TowerKind(_minimax, _vit(1280, 5120, 32, 14, temporal_patch_size=2, spatial_merge_size=2)),
    "gemma4_vision": TowerKind(
        _gemma4,
        _vit(
            *(768, 3072, 16, 16),
            num_attention_heads=12,
            num_key_value_heads=12,
            head_dim=64,
            position_embedding_size=10240,
        ),
    ),
    "gemma4_unified_vision": TowerKind(
        _gemma4_plain, {"patch_size": 16, "pooling_kernel_size": 3, "mm_embed_dim": 3840, "mm_posemb_size": 1120}
    ),
    "gemma3n_vision": TowerKind(
        _mobilenet, {"architecture": "mobilenetv5_300m_enc", "hidden_size": 2048, "vocab_size": 128}
    ),
    "minicpmv4_6_vision": TowerKind(_minicpm, _vit(768, 3072, 12, 16, 224)),
    "muse_glimmer_vision": TowerKind(_muse, _vit(1536, 8960, 50, 14, patch_temporal=2, max_position_embeddings=1024)),
    "got_ocr2_vision": TowerKind(
        _segmenting,
        _vit(
            *(768, 3072, 12, 16, 1024),
            mlp_dim=3072,
            window_size=14,
            global_attn_indexes=[2, 5, 8, 11],
            num_attention_heads=12,
            output_channels=256,
        ),
    ),
    "lfm3_vl_vision": TowerKind(
        _convolving,
        _vit(
            *(1024, 2560, 14, 16),
            temporal_patch_size=2,
            num_attention_heads=16,
            num_key_value_heads=8,
            layer_types=[*["conv", "conv", "full_attention"] * 4, "conv", "conv"],
        ),
    ),
    "molmo2_vision": TowerKind(_molmo, _vit(1152, 4304, 25, 14, 378)),
    "ovis2_vision": TowerKind(_ovis, _vit(1024, 2816, 24, 14, 224)),
    "step3p5_vision": TowerKind(_step, _vit(1536, 8960, 47, 14, max_position_embeddings=2704)),
    "ernie4_5_vl_moe_vision": TowerKind(_ernie, {**_QWEN, "hidden_size": 1280, "intermediate_size": 5120}),
    "radio": TowerKind(
        _radio,
        _vit(
            *(1280, 5120, 32, 16),
            max_img_size=2048,
            video_temporal_patch_size=2,
            num_cls_tokens=3,
            num_registers=7,
        ),
    ),
}
"""Every kind of encoder of images that can be counted, by its `model_type`."""
