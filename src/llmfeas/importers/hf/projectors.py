"""What lies between encoders of images and sounds and a language model (data/towers.yaml)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..config_file import Config
from .sight import SAM, segmenting
from .sound import downsampling
from .tower_parts import Encoder, blocks, linear, nested

Projector = Callable[..., int]
"""Elements between an encoder and a language model: of the whole configuration, the encoder's, the encoder as it was
read, the width of the language model, and what the table says beside."""
PROJECTORS: Final[dict[str, Projector]] = {}
"""All of them by name."""


def projector(function: Projector) -> Projector:
    """Let the table name this function, without the underscore before its name."""
    PROJECTORS[function.__name__.lstrip("_")] = function
    return function


def _biased(whole: Config) -> bool:
    return whole.raw("projector_bias") is not False


def _squared(encoder: Encoder, config: Config, field: str, side: int = 2) -> int:
    """The width of a square of patches as one token; `side`: patches along it where the file has no such field."""
    return int(encoder.width * (config.optional_count(field, "few") or side) ** 2)


@projector
def _one(
    whole: Config, section: Config, encoder: Encoder, hidden: int, *, bias: bool = True, out: Sequence[int | str] = ()
) -> int:
    """One product; `out`: the field that says how wide it writes, and what that is where the file is silent."""
    if out:
        hidden = whole.with_defaults({str(out[0]): out[1]}).count(str(out[0]))
    return linear(encoder.width, hidden, bias=bias or whole.raw("projector_bias") is True)


@projector
def _two(
    whole: Config, section: Config, encoder: Encoder, hidden: int, *, newline: bool = False, bias: bool = True
) -> int:
    """Two products, of as many layers of the encoder as are named; `newline` is a row between lines of an image."""
    layers = whole.raw("vision_feature_layer")
    wide = encoder.width * (len(layers) if isinstance(layers, list) else 1)
    biased = bias and whole.raw("multimodal_projector_bias") is not False and _biased(whole)
    found = linear(wide, hidden, bias=biased) + linear(hidden, hidden, bias=biased)
    return found + (hidden if newline else 0)


@projector
def _normed_two(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """ViP-LLaVA: a norm over all layers that are named."""
    layers = whole.raw("vision_feature_layer")
    wide = encoder.width * (len(layers) if isinstance(layers, list) else 5)
    return 2 * wide + linear(wide, hidden) + linear(hidden, hidden)


@projector
def _gemma3(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    return encoder.width * hidden + encoder.width


@projector
def _gemma3n(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A table of hard tokens, two norms, a projection."""
    return section.count("vocab_size", "rows") * encoder.width + 2 * encoder.width + encoder.width * hidden


@projector
def _merged(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A norm, patches of a square as one token, two products (InternVL)."""
    wide = encoder.width * round(1 / (whole.number("downsample_ratio", 0.5) or 0.5)) ** 2
    return 2 * wide + linear(wide, hidden) + linear(hidden, hidden)


@projector
def _mistral(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    side = whole.optional_count("spatial_merge_size", "few") or 2
    biased = whole.flag("multimodal_projector_bias")
    width = encoder.width
    merged = width + width * width * side * side
    return merged + linear(width, hidden, bias=biased) + linear(hidden, hidden, bias=biased)


@projector
def _shuffled(
    whole: Config, section: Config, encoder: Encoder, hidden: int, *, by: str = "scale_factor", side: int = 2
) -> int:
    """Idefics 3, SmolVLM: one product of a square of patches, whose side the file says in the field `by`."""
    return _squared(encoder, whole, by, side) * hidden


@projector
def _kimi(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = 4 * encoder.width
    return 2 * encoder.width + linear(wide, wide) + linear(wide, hidden)


@projector
def _minimax(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    inner = whole.optional_count("projector_hidden_size") or hidden
    wide = hidden * (section.optional_count("spatial_merge_size", "few") or 2) ** 2
    return linear(encoder.width, inner) + linear(inner, hidden) + linear(wide, inner) + linear(inner, hidden)


@projector
def _cohere(whole: Config, section: Config, encoder: Encoder, hidden: int, *, normed: bool = False) -> int:
    wide = _squared(encoder, whole, "downsample_factor")
    inner = whole.optional_count("alignment_intermediate_size") or (36864 if not normed else 2 * hidden)
    return (2 * wide if normed else 0) + linear(wide, inner) + linear(inner // 2, hidden)


@projector
def _lfm2(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = _squared(encoder, whole, "downsample_factor")
    inner = whole.optional_count("projector_hidden_size") or 2560
    normed = whole.raw("projector_use_layernorm") is not False
    biased = _biased(whole)
    return (2 * wide if normed else 0) + linear(wide, inner, bias=biased) + linear(inner, hidden, bias=biased)


@projector
def _ovis(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A head over words for images, and a table that reads them."""
    words = section.optional_count("vocab_size", "rows") or 16384
    hidden = whole.optional_count("hidden_size") or _OVIS_WIDTH
    kept = words - (section.optional_count("num_visual_indicator_tokens", "few", zero=True) or 0)
    wide = _squared(encoder, section, "hidden_stride", 1)
    return wide * kept + 2 * kept + words * hidden


_OVIS_WIDTH: Final = 1536
"""Width of Ovis's table of images where the file leaves it out."""


@projector
def _joined_frames(whole: Config, section: Config, encoder: Encoder, hidden: int, *, step: bool = False) -> int:
    """As many frames as make the encoder's feed-forward wide, two products (Voxtral; GLM-ASR with a step between)."""
    frames = whole.optional_count("downsample_factor", "few")
    wide = encoder.width * frames if frames else section.count("intermediate_size")
    inner = 2 * hidden if step else hidden
    return linear(wide, inner, bias=step) + linear(inner, hidden, bias=step)


@projector
def _through_itself(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    return linear(encoder.width, encoder.width) + linear(encoder.width, section.count("output_dim"))


@projector
def _ernie(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = _squared(encoder, section, "spatial_merge_size")
    frames = section.optional_count("temporal_merge_size", "few") or 2
    each = linear(wide, wide) + 2 * wide
    resampler = linear(wide, wide) + linear(frames * wide, wide) + 2 * each + linear(wide, hidden) + hidden
    return resampler + _experts_for_images(whole.nested("text_config") or whole, hidden)


def _experts_for_images(text: Config, hidden: int) -> int:
    """The second of ERNIE's pairs of experts, which no token of text goes to."""
    text = text.with_defaults({"moe_intermediate_size": [1536, 512], "num_hidden_layers": 28, "moe_num_experts": 64})
    if not isinstance(text.raw("moe_intermediate_size"), list):
        return 0
    width = (text.numbers("moe_intermediate_size", 2) or (0,))[-1]
    one_for_both = not isinstance(text.raw("moe_num_experts"), list)
    count = (
        text.count("moe_num_experts", "experts") if one_for_both else (text.numbers("moe_num_experts", 2) or (0,))[-1]
    )
    layers, kinds = text.count("num_hidden_layers", "layers"), text.words("mlp_layer_types", 10_000)
    routed: int = kinds[:layers].count("sparse") if kinds else layers - 1
    return routed * count * (hidden + 1 + 3 * hidden * width)


@projector
def _minicpm(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A norm over a square of positions and two products, once."""
    wide = 4 * encoder.width
    return 2 * wide + linear(wide, wide) + linear(wide, hidden)


@projector
def _muse(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    inner = whole.optional_count("projector_hidden_size") or 4096
    wide = _squared(encoder, section, "merge_size")
    return wide * inner + inner * inner + inner * hidden


@projector
def _upsampled(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Two convolutions that double the channels, and a product (GOT-OCR)."""
    out = encoder.width
    return 9 * (2 * out * out + 8 * out * out) + linear(4 * out, hidden)


@projector
def _queried(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Queries that look at patches, then a feed-forward (Aria)."""
    width = encoder.width
    queries = whole.nested("projector_patch_to_query_dict")
    rows = max((queries.count(name, "tokens") for name in queries.fields), default=0) if queries else 256
    looks = 3 * width * width + 4 * linear(width, width) + linear(width, width) + 6 * width
    return rows * width + looks + width * hidden + hidden * hidden


@projector
def _pooled(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Attention from the mean of a square of patches, of several layers, then a gated product (Molmo 2)."""
    known = (whole.nested("adapter_config") or section).with_defaults({"vision_feature_layer": [24, 18]})
    wide = encoder.width * len(known.numbers("vision_feature_layer", 100) or (0, 0))
    ffn = known.optional_count("intermediate_size") if "adapter_config" in whole.fields else None
    return (
        3 * linear(wide, encoder.width)
        + linear(encoder.width, encoder.width)
        + (ffn or 18944) * (2 * encoder.width + (known.optional_count("text_hidden_size") or hidden))
    )


@projector
def _merged_norm(whole: Config, section: Config, encoder: Encoder, hidden: int, *, inner: int = 4096) -> int:
    """A norm, a square of patches as one token, two products (LFM 3, Cosmos 3 Edge)."""
    inner = whole.optional_count("projector_hidden_size") or inner
    wide = _squared(encoder, section, "spatial_merge_size")
    biased = _biased(whole)
    return 2 * encoder.width + linear(wide, inner, bias=biased) + linear(inner, hidden, bias=biased)


@projector
def _nemotron(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = encoder.width * round(1 / (whole.number("downsample_ratio", 0.5) or 0.5)) ** 2
    inner = whole.optional_count("projector_hidden_size") or 4096
    return wide + wide * inner + inner * hidden


@projector
def _normed_one(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    return linear(encoder.width, hidden) + 2 * hidden


@projector
def _perceived(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A gated product into the stream's width, then latents that look at it, layer by layer (Idefics 2)."""
    usual = {"resampler_n_latents": 64, "resampler_depth": 3, "resampler_n_heads": 16, "resampler_head_dim": 96}
    said = whole.nested("perceiver_config") or Config(whole.file, {}, {}, "perceiver_config.")
    known = said.with_defaults({**usual, "num_key_value_heads": 4})
    head = known.count("resampler_head_dim")
    queries = known.count("resampler_n_heads", "heads") * head
    keys = known.count("num_key_value_heads", "heads") * head
    text = (whole.nested("text_config") or whole).with_defaults({"intermediate_size": 14336})
    inner = text.count("intermediate_size")
    looks = 2 * hidden * (queries + keys) + 3 * hidden * 4 * hidden + 3 * hidden
    gate = 2 * encoder.width * inner + inner * hidden
    return gate + (known.count("resampler_n_latents", "tokens") + 1) * hidden + known.count("resampler_depth") * looks


@projector
def _joined_norm(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Frames side by side through two products and a norm (MOSS Transcribe)."""
    wide = encoder.width * (whole.optional_count("audio_merge_size", "few") or 4)
    biased = _biased(whole)
    return linear(wide, hidden, bias=biased) + linear(hidden, hidden, bias=biased) + 2 * hidden


@projector
def _stacked(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Two products, then layers of attention of their own (Fun-ASR)."""
    said = whole.nested("adaptor_config") or Config(whole.file, {}, {}, "adaptor_config.")
    known = said.with_defaults({"num_hidden_layers": 2, "intermediate_size": 256, "projector_hidden_size": 2048})
    inner, layers = known.count("projector_hidden_size"), known.count("num_hidden_layers", "layers")
    stack = blocks(layers, hidden, known.count("intermediate_size"))
    return linear(encoder.width, inner) + linear(inner, hidden) + stack


@projector
def _two_routes(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Squares of patches, coarse ones and fine ones, with those of layers that are named through mergers of their own,
    then a product between norms (Granite Docling).
    """
    known = section.with_defaults({"scale_factor": 4, "use_fine_route": True, "out_hidden_size": hidden})
    out, side = known.count("out_hidden_size"), known.count("scale_factor", "few")
    layers = section.raw("deepstack_visual_indexes")
    deep = len(layers) if isinstance(layers, list) else 3
    wides = [encoder.width * side**2, *([encoder.width * side] if known.flag("use_fine_route") else [])]
    merger = sum(2 * wide + linear(wide, out) + linear(out, out) for wide in wides)
    return 2 * encoder.width + sum(wides) * out + deep * merger + out * out + 4 * out


_ASKING: Final = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "cross_attention_frequency": 2,
}
_READING: Final = {"vocab_size": 30522, "max_position_embeddings": 512, "use_qformer_text_input": False}


def _asking(known: Config, seen: int, hidden: int, *, reads: bool = False) -> tuple[int, int]:
    """A BERT whose queries look at what an encoder of width `seen` made in every n-th layer, a product behind it, and
    its width; one that reads has a feed-forward for texts beside that for queries.
    """
    width, ffn = known.count("hidden_size"), known.count("intermediate_size")
    layers, every = known.count("num_hidden_layers", "layers"), known.count("cross_attention_frequency", "layers")
    looks = 2 * linear(width, width) + 2 * linear(seen, width) + 2 * width
    texts = layers * (linear(width, ffn) + linear(ffn, width) + 2 * width) if reads else 0
    return 2 * width + blocks(layers, width, ffn) + -(-layers // every) * looks + texts + linear(width, hidden), width


@projector
def _asked(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Queries of windows of frames (Granite Speech)."""
    known = nested(whole, "projector_config", {**_ASKING, **_READING, "encoder_hidden_size": 1408})
    reads = known.flag("use_qformer_text_input")
    held, width = _asking(known, known.count("encoder_hidden_size"), hidden, reads=reads)
    window = whole.optional_count("window_size") or 15
    return held + window // (whole.optional_count("downsample_rate", "few") or 5) * width


@projector
def _queried_by(whole: Config, section: Config, encoder: Encoder, hidden: int, *, reads: bool = False) -> int:
    """Queries of an image (BLIP-2); with tables of tokens and positions where they know the question (InstructBLIP)."""
    known = nested(whole, "qformer_config", {**_ASKING, **_READING})
    held, width = _asking(known, encoder.width, hidden, reads=reads or known.flag("use_qformer_text_input"))
    tables = known.count("vocab_size", "rows") + known.count("max_position_embeddings", "rows") if reads else 0
    return held + ((whole.optional_count("num_query_tokens", "tokens") or 32) + tables) * width


@projector
def _beside_finer(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A finer encoder (SAM) with a neck of its own and two convolutions; a product of each, side by side, and one more
    (DeepSeek-VL 7B).
    """
    finer = nested(whole, "high_res_vision_config", SAM)
    inner, width = segmenting(finer), finer.count("hidden_size")
    out = inner.width
    neck = width * out + 9 * out * out + 4 * out
    joined = 9 * (out * 2 * out + 2 * out * 4 * out)
    aligner = linear(encoder.width, hidden // 2) + linear(4 * out, hidden // 2) + linear(hidden, hidden)
    return inner.elements + neck + joined + 1 + aligner


@projector
def _with_marks(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """One product, a row between lines of an image and one between views (Unlimited-OCR)."""
    return linear(encoder.width, hidden) + 2 * hidden


@projector
def _beside_meaning(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Two products with a norm between, of sound and of what a second encoder makes of its meaning (VibeVoice-ASR)."""
    meaning = downsampling(nested(whole, "semantic_tokenizer_encoder_config", {**section.defaults, "hidden_size": 128}))
    ways = sum(linear(width, hidden) + hidden + linear(hidden, hidden) for width in (encoder.width, meaning.width))
    return meaning.elements + ways
