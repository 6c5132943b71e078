"""Encoders of sound: how the elements of each follow from its configuration (data/towers.yaml)."""

from __future__ import annotations

from typing import Final

from ..config_file import Config
from .tower_parts import Encoder, blocks, counted, linear, sizes_of


def _sizes(config: Config) -> tuple[int, int, int]:
    """Layers, width and feed-forward, in the spelling of Whisper or in that of everybody else."""
    if config.raw("d_model") is not None:
        return config.count("encoder_layers", "layers"), config.count("d_model"), config.count("encoder_ffn_dim")
    return sizes_of(config)


def _stem(bands: int, width: int) -> int:
    """Two convolutions of three frames over the bands."""
    return linear(3 * bands, width) + linear(3 * width, width)


@counted
def _whisper(config: Config) -> Encoder:
    """Whisper's encoder: keys without a bias, a table of positions where it keeps one."""
    layers, width, ffn = _sizes(config)
    rows = config.optional_count("max_source_positions", "tokens", zero=True) or 0
    stack = blocks(layers, width, ffn, extra=-width)
    return Encoder(_stem(config.count("num_mel_bins"), width) + rows * width + stack + 2 * width, width)


@counted
def _with_marks(config: Config) -> Encoder:
    """Qwen 2.5 Omni's: its own way out, and two rows for where a sound begins and ends."""
    layers, width, ffn = _sizes(config)
    out = config.count("output_dim")
    stack = blocks(layers, width, ffn, extra=-width) + 2 * width
    return Encoder(_stem(config.count("num_mel_bins"), width) + stack + 2 * out + linear(width, out), out)


@counted
def _three_squares(config: Config) -> Encoder:
    """Three convolutions over time and bands, each halving both (Qwen 3)."""
    layers, width, ffn = _sizes(config)
    planes = config.count("downsample_hidden_size")
    bands = config.count("num_mel_bins")
    for _ in range(3):
        bands = (bands + 1) // 2
    stem = linear(9, planes) + 2 * linear(9 * planes, planes) + planes * bands * width
    return Encoder(stem + blocks(layers, width, ffn) + 2 * width, width)


@counted
def _with_way_out(config: Config) -> Encoder:
    inner = _three_squares(config)
    out = config.count("output_dim")
    return Encoder(inner.elements + linear(inner.width, inner.width) + linear(inner.width, out), out)


@counted
def _realtime(config: Config) -> Encoder:
    layers, width, ffn = _sizes(config)
    inner = config.count("num_attention_heads", "heads") * config.count("head_dim")
    # Queries, values and both ways out have a bias, keys and ways in have none.
    extra = 2 * inner + 2 * width
    stack = blocks(layers, width, ffn, gated=True, biases="", norm=1, inner=inner, extra=extra)
    return Encoder(_stem(config.count("num_mel_bins"), width) + stack + width, width)


def _conformer(config: Config, prefix: str = "", stem: str = "subsampling_conv_channels") -> Encoder:
    """Gemma's conformer: two feed-forwards around attention and a convolution in each layer."""
    layers, width = config.count(f"{prefix}num_hidden_layers", "layers"), config.count("hidden_size")
    first, second = config.numbers(stem, 2) or (128, 32)
    kernel, head = (
        config.count(f"{prefix}conv_kernel_size", "few"),
        width // config.count(f"{prefix}num_attention_heads", "heads"),
    )
    found = 9 * first + first + 9 * first * second + second + (_BANDS // 4 * second) * width
    feeds = 2 * (8 * width * width + 2 * width)
    attention = 5 * width * width + head
    convolution = 3 * width * width + kernel * width + 2 * width
    return Encoder(found + layers * (feeds + attention + convolution + 3 * width), width)


@counted
def _conformer_with_way_out(config: Config) -> Encoder:
    inner, out = _conformer(config), config.count("output_proj_dims")
    return Encoder(inner.elements + linear(inner.width, out), out)


@counted
def _older_conformer(config: Config) -> Encoder:
    """Gemma 3n's, in its own spelling."""
    return _conformer(config, "conf_", "sscp_conv_channel_size")


@counted
def _blocked_conformer(config: Config) -> Encoder:
    """Granite Speech's conformer: attention within blocks, a way out to letters in the middle and back."""
    layers, width = config.count("num_layers", "layers"), config.count("hidden_dim")
    head = config.count("dim_head")
    inner, ffn = config.count("num_heads", "heads") * head, width * config.count("feedforward_mult", "few")
    wide, kernel = width * config.count("conv_expansion_factor", "few"), config.count("conv_kernel_size", "few")
    feed = 2 * width + linear(width, ffn) + linear(ffn, width)
    attention = 2 * width + 3 * width * inner + linear(inner, width) + (2 * config.count("max_pos_emb") + 1) * head
    convolution = 2 * width + linear(width, 2 * wide) + kernel * wide + 2 * wide + linear(wide, width)
    letters = config.count("output_dim")
    ways = linear(config.count("input_dim"), width) + linear(width, letters) + linear(letters, width)
    joined = config.raw("cat_hidden_layers")
    out = width * (1 + (len(joined) if isinstance(joined, list) else 0))
    return Encoder(ways + layers * (2 * feed + attention + convolution + 2 * width), out)


@counted
def downsampling(config: Config) -> Encoder:
    """VibeVoice's: filters a channel at a time and feed-forwards, between convolutions that widen and shorten."""
    width, kernel = config.count("num_filters"), config.count("kernel_size", "few")
    depths, ratios = config.numbers("depths", 100) or (), config.numbers("downsampling_ratios", 100) or ()
    found, inner = linear(config.count("channels", "few") * kernel, width), config.count("ffn_expansion", "few")
    for depth, ratio in zip(depths, (*ratios, 0), strict=False):
        block = 4 * width + linear(width, inner * width) + linear(inner * width, width) + (kernel + 1) * width
        found += depth * block
        if ratio:
            found += linear(2 * ratio * width, 2 * width)
            width *= 2
    out = config.count("hidden_size")
    return Encoder(found + linear(kernel * width, out), out)


@counted
def _memorizing(config: Config) -> Encoder:
    """Fun-ASR's: bands of several frames side by side, attention beside a filter over time in each layer."""
    layers, width, ffn = _sizes(config)
    more = config.count("num_mel_bins") * config.count("num_stacked_frames", "few") - width
    filters = layers * width * config.count("fsmn_kernel_size", "few")
    return Encoder(blocks(layers, width, ffn) + filters + 3 * width * more + 2 * more + 4 * width, width)


@counted
def _waves(config: Config) -> Encoder:
    """wav2vec's: convolutions over the wave itself, positions by one over its neighbours (Omnilingual ASR)."""
    layers, width, ffn = _sizes(config)
    widths, kernels = config.numbers("conv_dim", 16) or (512,) * 7, config.numbers("conv_kernel", 16) or ()
    kernels = kernels or (10, 3, 3, 3, 3, 2, 2)
    inputs = (1, *widths[:-1])
    stem = sum(a * b * kernel + 3 * b for a, b, kernel in zip(inputs, widths, kernels, strict=False))
    stem += 2 * widths[-1] + linear(widths[-1], width)
    near = config.count("num_conv_pos_embeddings") * width // config.count("num_conv_pos_embedding_groups")
    return Encoder(stem + (near + 1) * width + blocks(layers, width, ffn) + 2 * width, width)


_BANDS: Final = 128
"""Bands of Gemma's sounds, which two convolutions halve twice."""


@counted
def _bare(config: Config) -> Encoder:
    """Frames of sound go straight into the stream (Gemma 4 unified)."""
    return Encoder(0, config.count("audio_embed_dim"))


def mimi(config: Config) -> int:
    """Parameters of Mimi, which makes sound of books of codes and codes of sound: each of its ways there and back has
    convolutions that stretch time, between blocks, and a stack of attention.

    Raises:
        DataError: a size is missing or wrong, or it is of a form that nobody published.
    """
    for key, usual in (("num_residual_layers", 1), ("use_conv_shortcut", False)):
        if config.raw(key) not in (None, usual):
            raise config.wrong(key, "is not what Mimi's published files have, which is not supported")
    layers, width, ffn = sizes_of(config)
    filters, channels = config.count("num_filters"), config.count("audio_channels", "few")
    ends, within = config.count("kernel_size", "few"), config.count("residual_kernel_size", "few")
    last, ratios = config.count("last_kernel_size", "few"), config.numbers("upsampling_ratios", 100) or (8, 6, 5, 4)
    found, wide = 0, filters
    for ratio in reversed(ratios):
        inner = wide // config.count("compress", "few")
        block = linear(within * wide, inner) + linear(inner, wide)
        stretch = 2 * ratio * 2 * wide * wide
        found += 2 * block + 2 * stretch + 3 * wide
        wide *= 2
    found += linear(ends * channels, filters) + linear(last * wide, width)
    found += linear(ends * width, wide) + linear(last * filters, channels)
    stack = blocks(layers, width, ffn, biases="", extra=2 * width)
    books = 4 * width * config.count("vector_quantization_hidden_dimension")
    paces = 4 * width * width + 4 * width * width // config.count("upsample_groups")
    return found + 2 * stack + books + paces


MIMI: Final = {
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 8,
    "num_filters": 64,
    "audio_channels": 1,
    "kernel_size": 7,
    "last_kernel_size": 3,
    "residual_kernel_size": 3,
    "compress": 2,
    "codebook_size": 2048,
    "upsample_groups": 512,
    "vector_quantization_hidden_dimension": 256,
}


@counted
def _stages(config: Config) -> Encoder:
    """Muse Spark: stages of convolutions a channel at a time, each of which joins frames and widens; a way out."""
    lists = [config.numbers(key, 100) or () for key in ("patch_sizes", "hidden_sizes", "depths")]
    ratio, kernel, found, before = config.number("mlp_ratio", 4.0), config.count("conv_kernel_size", "few"), 0, 1
    for frames, width, depth in zip(*lists, strict=False):
        inner = int(ratio * width)
        block = (kernel + 2) * width + linear(width, inner) + linear(inner, width)
        found += linear(before * frames, width) + width + depth * block
        before = width
    out = config.count("out_hidden_size")
    return Encoder(found + before + linear(before, out) + out, out)
