"""Encoders of images: how the elements of each follow from its configuration (data/towers.yaml)."""

from __future__ import annotations

from typing import Final

from ..config_file import Config
from .tower_parts import Encoder, blocks, counted, grid, linear, nested, patches, side_of, sizes_of


@counted
def _siglip(config: Config) -> Encoder:
    """SigLIP and those like it: a table of positions, a norm behind, a head that pools where it is kept."""
    layers, width, ffn = sizes_of(config)
    rows = config.optional_count("num_patches", "tokens") or grid(config)
    found = patches(config, width) + rows * width + blocks(layers, width, ffn) + 2 * width
    if config.flag("vision_use_head"):
        found += width + linear(width, 3 * width) + linear(width, width) + 2 * width
        found += linear(width, ffn) + linear(ffn, width)
    return Encoder(found, width)


@counted
def segmenting(config: Config) -> Encoder:
    """SAM: positions added, and relative ones by a table of both directions in each layer; a neck behind."""
    layers, width = config.count("num_hidden_layers", "layers"), config.count("hidden_size")
    side, window = side_of(config, "image_size") // side_of(config, "patch_size"), config.count("window_size", "few")
    whole = sum(index < layers for index in config.numbers("global_attn_indexes", 1000) or ())
    head = width // config.count("num_attention_heads", "heads")
    relative = 2 * head * (whole * (2 * side - 1) + (layers - whole) * (2 * window - 1))
    tables = side * side * width * _unless(config, "use_abs_pos") + relative * _unless(config, "use_rel_pos")
    out, biases = config.count("output_channels"), "qkv out mlp" if _unless(config, "qkv_bias") else "out mlp"
    found = patches(config, width) + tables + blocks(layers, width, config.count("mlp_dim"), biases=biases)
    return Encoder(found + width * out + 9 * out * out + 4 * out, out)


def _unless(config: Config, key: str) -> bool:
    """Whether a file does not say false."""
    return config.raw(key) is not False


@counted
def _segmenting_first(config: Config) -> Encoder:
    """SAM, whose patches two convolutions join to those that CLIP reads without making its own; both are handed on."""
    first, rows = (nested(config, name, usual) for name, usual in (("sam_config", SAM), ("encoder_config", _CLIP)))
    inner, (layers, width, ffn) = segmenting(first), sizes_of(rows)
    wide, out = first.numbers("downsample_channels", 2) or (512, 1024)
    reads = (grid(rows) + 2) * width + 2 * width + blocks(layers, width, ffn)
    return Encoder(inner.elements + 9 * (inner.width * wide + wide * out) + reads, out + width)


SAM: Final = {
    "hidden_size": 768,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "mlp_dim": 3072,
    "patch_size": 16,
    "image_size": 1024,
    "window_size": 14,
    "global_attn_indexes": [2, 5, 8, 11],
    "output_channels": 256,
}
_CLIP: Final = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "patch_size": 14,
    "image_size": 224,
}
"""What the classes of both take where a file leaves it out."""


@counted
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


@counted
def _molmo(config: Config) -> Encoder:
    inner = _siglip(config)
    return Encoder(inner.elements - 2 * inner.width, inner.width)


@counted
def _without_table(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    return Encoder(patches(config, width) + blocks(layers, width, ffn) + 2 * width, width)


@counted
def _clip(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    table = (grid(config) + 2) * width
    return Encoder(patches(config, width, bias=False) + table + blocks(layers, width, ffn) + 4 * width, width)


@counted
def _blip(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    biases = "qkv out mlp" if _unless(config, "qkv_bias") else "out mlp"
    table = (grid(config) + 2) * width
    return Encoder(patches(config, width) + table + blocks(layers, width, ffn, biases=biases) + 2 * width, width)


@counted
def _pixtral(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    stack = blocks(layers, width, ffn, gated=True, biases="", norm=1)
    return Encoder(patches(config, width, bias=False) + width + stack, width)


@counted
def _intern(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    norm = 1 if config.text("norm_type").startswith("rms") else 2
    biases = "qkv out mlp" if config.flag("attention_bias") or config.flag("qkv_bias") else "out mlp"
    heads = config.flag("use_qk_norm") or config.flag("qk_normalization")
    extra = 2 * width + (2 * width if heads else 0)
    rows = 1 if config.raw("use_absolute_position_embeddings") is False else grid(config) + 2
    table = (rows + config.flag("use_mask_token")) * width
    stack = blocks(layers, width, ffn, biases=biases, norm=norm, extra=extra)
    pooled = 0 if config.flag("use_mean_pooling") else norm * width
    return Encoder(patches(config, width) + table + stack + pooled, width)


def _merger(config: Config, width: int, *, norm: int) -> int:
    """Patches beside one another as one token of the language model (Qwen)."""
    wide = width * config.count("spatial_merge_size", "few") ** 2
    return norm + linear(wide, wide) + linear(wide, config.count("out_hidden_size"))


@counted
def _qwen2(config: Config) -> Encoder:
    layers, width = config.count("depth", "layers"), config.count("embed_dim")
    out = config.with_defaults({**config.defaults, "out_hidden_size": config.raw("hidden_size")})
    stack = blocks(layers, width, int(width * config.number("mlp_ratio", 4)))
    found = patches(config, width, frames=config.count("temporal_patch_size", "few"), bias=False) + stack
    return Encoder(found + _merger(out, width, norm=2 * width), width)


@counted
def _qwen25(config: Config) -> Encoder:
    layers, width, ffn = config.count("depth", "layers"), config.count("hidden_size"), config.count("intermediate_size")
    heads = config.count("num_heads", "heads")
    kv = (config.optional_count("num_key_value_heads", "heads") or heads) * (width // heads)
    stack = blocks(layers, width, ffn, gated=True, norm=1, kv=kv)
    found = patches(config, width, frames=config.count("temporal_patch_size", "few"), bias=False) + stack
    return Encoder(found + _merger(config, width, norm=width), width)


@counted
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


@counted
def _glm(config: Config) -> Encoder:
    layers, width, out = config.count("depth", "layers"), config.count("hidden_size"), config.count("out_hidden_size")
    biases = "qkv" if config.flag("attention_bias") else ""
    found = patches(config, width, frames=config.count("temporal_patch_size", "few")) + grid(config) * width
    found += blocks(layers, width, out, gated=True, biases=biases, norm=1) + 2 * width
    found += linear(width * config.count("spatial_merge_size", "few") ** 2, out)
    return Encoder(found + _glm_merger(out, config.count("intermediate_size")), width)


@counted
def _glm_without_table(config: Config) -> Encoder:
    layers, width, out = config.count("depth", "layers"), config.count("hidden_size"), config.count("out_hidden_size")
    head = width // config.count("num_heads", "heads")
    biases = "qkv out mlp" if config.flag("attention_bias") else ""
    stack = blocks(layers, width, config.count("intermediate_size"), gated=True, biases=biases, norm=1, extra=2 * head)
    found = patches(config, width, frames=config.count("temporal_patch_size", "few")) + stack + width
    found += linear(width * config.count("spatial_merge_size", "few") ** 2, out)
    inner = config.optional_count("projection_intermediate_size") or 3 * out
    return Encoder(found + _glm_merger(out, inner), width)


@counted
def _llama4(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    table = (grid(config) + 2) * width
    adapter = ffn * config.count("projector_input_dim")
    adapter += config.count("projector_input_dim") * config.count("projector_output_dim")
    found = patches(config, width, bias=False) + table + 4 * width + blocks(layers, width, ffn) + adapter
    return Encoder(found, config.count("vision_output_dim"))


@counted
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


@counted
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


@counted
def _minimax(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    frames = config.count("temporal_patch_size", "few")
    found = patches(config, width, frames=frames, bias=False) + 2 * width + blocks(layers, width, ffn)
    return Encoder(found, width)


@counted
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


@counted
def _gemma4_plain(config: Config) -> Encoder:
    """Gemma 4 without an encoder: patches go straight into the stream."""
    width = config.count("mm_embed_dim")
    patch = 3 * (config.count("patch_size", "few") * config.count("pooling_kernel_size", "few")) ** 2
    table = 2 * config.count("mm_posemb_size", "rows") * width
    return Encoder(table + 2 * patch + linear(patch, width) + 4 * width, width)


@counted
def _mobilenet(config: Config) -> Encoder:
    """Gemma 3n's MobileNet v5, a net of one size. Source: timm, `mobilenetv5_300m_enc` on the meta device."""
    name = config.text("architecture")
    if name != "mobilenetv5_300m_enc":
        raise config.wrong("architecture", "is not known: mobilenetv5_300m_enc is")
    return Encoder(_MOBILENET_V5_PARAMETERS, config.count("hidden_size"))


_MOBILENET_V5_PARAMETERS: Final = 294_126_912


@counted
def _ovis(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    biases = " ".join((["qkv out"] if config.flag("qkv_bias") else []) + (["mlp"] if config.flag("mlp_bias") else []))
    stack = blocks(layers, width, ffn, gated=True, biases=biases, norm=1)
    return Encoder(patches(config, width) + grid(config) * width + 2 * width + stack, width)


@counted
def _step(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    found = patches(config, width, bias=False) + config.count("max_position_embeddings", "tokens") * width
    found += 2 * width + blocks(layers, width, ffn, extra=2 * width)
    found += linear(9 * width, 2 * width) + linear(9 * 2 * width, 4 * width)
    return Encoder(found, 4 * width)


@counted
def _minicpm(config: Config) -> Encoder:
    """SigLIP with a merger in its midst: attention and a feed-forward over a square of positions."""
    inner, (_, width, _) = _siglip(config), sizes_of(config)
    merger = 4 * linear(width, width) + 2 * width + 8 * width + linear(4 * width, 16 * width)
    return Encoder(inner.elements + merger + linear(16 * width, width), width)


@counted
def _muse(config: Config) -> Encoder:
    layers, width, ffn = sizes_of(config)
    found = patches(config, width, frames=config.count("patch_temporal", "few"), bias=False)
    found += config.count("max_position_embeddings", "tokens") * width + 4 * width
    return Encoder(found + blocks(layers, width, ffn), width)


@counted
def _ernie(config: Config) -> Encoder:
    layers, width = config.count("depth", "layers"), config.count("hidden_size")
    ffn = config.optional_count("intermediate_size") or int(width * config.number("mlp_ratio", 4))
    found = patches(config, width, bias=False) + blocks(layers, width, ffn) + 2 * width
    return Encoder(found, width)


@counted
def _radio(config: Config) -> Encoder:
    layers, width = config.count("num_hidden_layers", "layers"), config.count("hidden_size")
    patch = config.count("patch_size", "few")
    rows = (config.count("max_img_size") // patch) ** 2
    cell, frames = 3 * patch * patch, 1 + config.count("video_temporal_patch_size", "few")
    stack = blocks(layers, width, int(width * config.number("mlp_ratio", 4)), extra=2 * width)
    registers = config.count("num_cls_tokens", "few", zero=True) + config.count("num_registers", "few", zero=True)
    return Encoder((rows + registers + frames * cell) * width + stack, width)


@counted
def _hy(config: Config) -> Encoder:
    """Hy 4: a square of patches as one token by a convolution and a product, and a row between lines of an image."""
    layers, width, ffn = sizes_of(config)
    out, square = config.count("out_hidden_size"), config.count("spatial_merge_size", "few") ** 2
    rows = (config.count("max_image_size", "tokens") // config.count("patch_size", "few")) ** 2
    found = patches(config, width) + rows * width + 2 * width + blocks(layers, width, ffn)
    return Encoder(found + linear(square * width, out) + linear(out, out) + out, width)


@counted
def _turning_both_ways(config: Config) -> Encoder:
    """Inkling 2's: positions turn along both sides of the image and stand in a table too; each layer has two scales."""
    layers, width, ffn = sizes_of(config)
    patch = 3 * side_of(config, "patch_size") ** 2 * width
    table = config.count("posemb_grid_size") ** 2 * width + 2 * width + 2 * width
    merged = width * config.count("spatial_merge_size", "few") ** 2
    inner, out = config.count("projection_hidden_dim"), config.count("text_hidden_size")
    stack = blocks(layers, width, ffn, extra=2 * width)
    return Encoder(patch + table + stack + merged * inner + inner * out, out)
