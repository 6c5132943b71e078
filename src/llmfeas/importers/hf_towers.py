"""Encoders of images and sounds beside a language model, with their projectors: what a config.json says of their sizes.

Counts were compared with the classes of transformers 5.23 on the meta device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..record import dataclass, field
from .config_file import Config
from .hf_sight import SIGHT
from .hf_sound import SOUND
from .tower_parts import Encoder, TowerKind, linear

Projector = Callable[[Config, Config, Encoder, int], int]
"""Elements between an encoder and a language model: of the whole configuration, the encoder's, the encoder as it was
read, and the width of the language model."""


def _nothing(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """The encoder's own merger is the way into the stream."""
    return 0


def _one(*, bias: bool = True) -> Projector:
    return lambda whole, section, encoder, hidden: linear(encoder.width, hidden, bias=bias)


def _two(*, newline: bool = False, bias: bool = True) -> Projector:
    """Two products, of as many layers of the encoder as are named; `newline` is a row between lines of an image."""

    def count(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
        layers = whole.raw("vision_feature_layer")
        wide = encoder.width * (len(layers) if isinstance(layers, list) else 1)
        biased = bias and whole.raw("multimodal_projector_bias") is not False
        found = linear(wide, hidden, bias=biased) + linear(hidden, hidden, bias=biased)
        return found + (hidden if newline else 0)

    return count


def _normed_two(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """ViP-LLaVA: a norm over all layers that are named."""
    layers = whole.raw("vision_feature_layer")
    wide = encoder.width * (len(layers) if isinstance(layers, list) else 5)
    return 2 * wide + linear(wide, hidden) + linear(hidden, hidden)


def _gemma3(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    return encoder.width * hidden + encoder.width


def _gemma3n(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A table of hard tokens, two norms, a projection."""
    return section.count("vocab_size", "rows") * encoder.width + 2 * encoder.width + encoder.width * hidden


def _merged(key: str, default: int) -> Projector:
    """A norm, patches of a square as one token, two products (InternVL)."""

    def count(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
        wide = encoder.width * round(1 / (whole.number(key, 1 / default) or 1 / default)) ** 2
        return 2 * wide + linear(wide, hidden) + linear(hidden, hidden)

    return count


def _mistral(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    side = whole.optional_count("spatial_merge_size", "few") or 2
    biased = whole.flag("multimodal_projector_bias")
    width = encoder.width
    merged = width + width * width * side * side
    return merged + linear(width, hidden, bias=biased) + linear(hidden, hidden, bias=biased)


def _shuffled(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Idefics 3, SmolVLM: one product of a square of patches."""
    return int(encoder.width * (whole.optional_count("scale_factor", "few") or 2) ** 2 * hidden)


def _kimi(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = 4 * encoder.width
    return 2 * encoder.width + linear(wide, wide) + linear(wide, hidden)


def _minimax(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    inner = whole.optional_count("projector_hidden_size") or hidden
    wide = hidden * (section.optional_count("spatial_merge_size", "few") or 2) ** 2
    return linear(encoder.width, inner) + linear(inner, hidden) + linear(wide, inner) + linear(inner, hidden)


def _cohere(*, normed: bool) -> Projector:
    def count(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
        wide = encoder.width * (whole.optional_count("downsample_factor", "few") or 2) ** 2
        inner = whole.optional_count("alignment_intermediate_size") or (36864 if not normed else 2 * hidden)
        return (2 * wide if normed else 0) + linear(wide, inner) + linear(inner // 2, hidden)

    return count


def _lfm2(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = encoder.width * (whole.optional_count("downsample_factor", "few") or 2) ** 2
    inner = whole.optional_count("projector_hidden_size") or 2560
    normed = whole.raw("projector_use_layernorm") is not False
    biased = whole.raw("projector_bias") is not False
    return (2 * wide if normed else 0) + linear(wide, inner, bias=biased) + linear(inner, hidden, bias=biased)


def _ovis(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A head over words for images, and a table that reads them."""
    words = section.optional_count("vocab_size", "rows") or 16384
    hidden = whole.optional_count("hidden_size") or _OVIS_WIDTH
    kept = words - (section.optional_count("num_visual_indicator_tokens", "few", zero=True) or 0)
    wide = encoder.width * (section.optional_count("hidden_stride", "few") or 1) ** 2
    return wide * kept + 2 * kept + words * hidden


_OVIS_WIDTH: Final = 1536
"""Width of Ovis's table of images where the file leaves it out."""


def _joined_frames(*, step: bool) -> Projector:
    """As many frames as make the encoder's feed-forward wide, two products (Voxtral; GLM-ASR with a step between)."""

    def count(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
        wide = section.count("intermediate_size")
        inner = 2 * hidden if step else hidden
        return linear(wide, inner, bias=step) + linear(inner, hidden, bias=step)

    return count


def _through_itself(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    return linear(encoder.width, encoder.width) + linear(encoder.width, section.count("output_dim"))


def _ernie(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = encoder.width * (section.optional_count("spatial_merge_size", "few") or 2) ** 2
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


def _minicpm(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A norm over a square of positions and two products, once."""
    wide = 4 * encoder.width
    return 2 * wide + linear(wide, wide) + linear(wide, hidden)


def _muse(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    inner = whole.optional_count("projector_hidden_size") or 4096
    wide = encoder.width * (section.optional_count("merge_size", "few") or 2) ** 2
    return wide * inner + inner * inner + inner * hidden


def _upsampled(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Two convolutions that double the channels, and a product (GOT-OCR)."""
    out = encoder.width
    return 9 * (2 * out * out + 8 * out * out) + linear(4 * out, hidden)


def _queried(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """Queries that look at patches, then a feed-forward (Aria)."""
    width = encoder.width
    queries = whole.nested("projector_patch_to_query_dict")
    rows = max((queries.count(name, "tokens") for name in queries.fields), default=0) if queries else 256
    looks = 3 * width * width + 4 * linear(width, width) + linear(width, width) + 6 * width
    return rows * width + looks + width * hidden + hidden * hidden


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


def _merged_norm(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    """A norm, a square of patches as one token, two products (LFM 3)."""
    inner = whole.optional_count("projector_hidden_size") or 4096
    wide = encoder.width * (section.optional_count("spatial_merge_size", "few") or 2) ** 2
    return 2 * encoder.width + linear(wide, inner) + linear(inner, hidden)


def _nemotron(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    wide = encoder.width * round(1 / (whole.number("downsample_ratio", 0.5) or 0.5)) ** 2
    inner = whole.optional_count("projector_hidden_size") or 4096
    return wide + wide * inner + inner * hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What stands beside the language model of a configuration class."""

    vision: str = ""
    """The kind of its encoder of images, where the file names none."""
    see: Projector | None = None
    audio: str = ""
    hear: Projector | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Of its encoder of images where the file has none, if they are not those of the encoder's class."""
    patches: bool = False
    """It has no encoder: the pixels of a patch pass one product into the stream (Fuyu)."""

    def of(self, key: str) -> tuple[str, Projector | None]:
        """The kind and the projector of a section of the file."""
        return (self.vision, self.see) if key == "vision_config" else (self.audio, self.hear)


_LLAVA: Final = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "image_size": 336,
    "patch_size": 14,
}
_SO400M: Final = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 26,
    "image_size": 384,
    "patch_size": 14,
    "vision_use_head": False,
}
_COHERE: Final = {
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 27,
    "image_size": 512,
    "patch_size": 16,
}
_GEMMA4: Final = Beside(vision="gemma4_vision", see=_one(bias=False), audio="gemma4_audio", hear=_one(bias=False))
_LLAVA_NEXT: Final = Beside(vision="clip_vision_model", see=_two(newline=True), defaults=_LLAVA)
_MINICPM: Final = Beside(vision="minicpmv4_6_vision", see=_minicpm)
_WIDE_PIXTRAL: Final = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 30,
    "num_attention_heads": 16,
    "patch_size": 14,
}
_PIXTRAL: Final = Beside(vision="pixtral", see=_mistral, defaults={"patch_size": 14})
_WHISPERING: Final = Beside(audio="audioflamingo3_encoder", hear=_two())


def _normed_one(whole: Config, section: Config, encoder: Encoder, hidden: int) -> int:
    return linear(encoder.width, hidden) + 2 * hidden


ROWS: Final[Mapping[str, Beside]] = {
    "qwen2_vl": Beside(vision="qwen2_vl_vision", see=_nothing),
    "qwen2_5_vl": Beside(vision="qwen2_5_vl_vision", see=_nothing),
    "qwen3_vl": Beside(vision="qwen3_vl_vision", see=_nothing),
    "qwen3_vl_moe": Beside(vision="qwen3_vl_vision", see=_nothing),
    "cohere_compass": Beside(vision="qwen3_vl_vision", see=_nothing),
    "qwen3_5": Beside(vision="qwen3_5_vision", see=_nothing),
    "qwen3_5_moe": Beside(vision="qwen3_5_vision", see=_nothing),
    "qwen4_exp": Beside(vision="qwen3_5_vision", see=_nothing),
    "cosmos3_omni": Beside(vision="qwen3_vl_vision", see=_nothing),
    "exaone4_5": Beside(vision="exaone4_5_vision", see=_nothing),
    "hyperclovax_vision_v2": Beside(vision="qwen2_5_vl_vision", see=_one()),
    "qwen2_5_omni_thinker": Beside(
        vision="qwen2_5_vl_vision", see=_nothing, audio="qwen2_5_omni_audio_encoder", hear=_nothing
    ),
    "qwen3_omni_moe_thinker": Beside(
        vision="qwen3_vl_vision", see=_nothing, audio="qwen3_omni_moe_audio_encoder", hear=_nothing
    ),
    "fuyu": Beside(patches=True),
    "glm4v": Beside(vision="glm4v_vision", see=_nothing),
    "glm46v": Beside(vision="glm4v_vision", see=_nothing),
    "glmga": Beside(vision="glm4v_vision", see=_nothing),
    "glm4v_moe": Beside(vision="glm4v_vision", see=_nothing),
    "glm_ocr": Beside(vision="glm_ocr_vision", see=_nothing),
    "glm5_next": Beside(vision="glm5_next_vision", see=_nothing),
    "gemma3": Beside(vision="siglip_vision_model", see=_gemma3),
    "shieldgemma2": Beside(vision="siglip_vision_model", see=_gemma3),
    "gemma3n": Beside(vision="gemma3n_vision", see=_gemma3n, audio="gemma3n_audio", hear=_gemma3n),
    "gemma4": _GEMMA4,
    "gemma4_unified": Beside(
        vision="gemma4_unified_vision", see=_one(bias=False), audio="gemma4_unified_audio", hear=_one(bias=False)
    ),
    "paligemma": Beside(
        vision="siglip_vision_model", see=_one(), defaults={**_SO400M, "image_size": 224, "num_hidden_layers": 27}
    ),
    "git": Beside(vision="git_vision_model", see=_normed_one),
    "llama4": Beside(vision="llama4_vision_model", see=_one(bias=False)),
    "mllama": Beside(vision="mllama_vision_model", see=_one()),
    "mistral3": _PIXTRAL,
    "mistral_large4": Beside(vision="pixtral", see=_mistral, defaults=_WIDE_PIXTRAL),
    "lighton_ocr": _PIXTRAL,
    "pixtral": _PIXTRAL,
    "llava": Beside(vision="clip_vision_model", see=_two(), defaults=_LLAVA),
    "llava_next": _LLAVA_NEXT,
    "llava_next_video": _LLAVA_NEXT,
    "llava_onevision": Beside(vision="siglip_vision_model", see=_two(newline=True), defaults=_SO400M),
    "vipllava": Beside(vision="clip_vision_model", see=_normed_two, defaults=_LLAVA),
    "deepseek_vl": Beside(vision="siglip_vision_model", see=_two()),
    "video_llama_3": Beside(vision="video_llama_3_vision", see=_two()),
    "internvl": Beside(vision="internvl_vision", see=_merged("downsample_ratio", 2)),
    "internvl_chat": Beside(vision="intern_vit_6b", see=_merged("downsample_ratio", 2)),
    "qianfan_ocr": Beside(vision="qianfan_ocr_vision", see=_merged("downsample_ratio", 2)),
    "idefics3": Beside(vision="idefics3_vision", see=_shuffled),
    "smolvlm": Beside(vision="smolvlm_vision", see=_shuffled),
    "kimi_vl": Beside(vision="moonvit", see=_kimi),
    "kimi_k25": Beside(vision="kimi_k25_vision", see=_kimi),
    "paddleocr_vl": Beside(vision="paddleocr_vl_vision", see=_kimi),
    "minimax_m3_vl": Beside(vision="minimax_m3_vl_vision", see=_minimax),
    "cohere2_vision": Beside(vision="siglip_vision_model", see=_cohere(normed=False), defaults=_COHERE),
    "aya_vision": Beside(vision="siglip_vision_model", see=_cohere(normed=True), defaults=_SO400M),
    "lfm2_vl": Beside(vision="siglip2_vision_model", see=_lfm2),
    "ovis2": Beside(vision="ovis2_vision", see=_ovis),
    "step3p7": Beside(vision="step3p5_vision", see=_one(bias=False)),
    "ernie4_5_vl_moe": Beside(vision="ernie4_5_vl_moe_vision", see=_ernie),
    "minicpmv4_6": _MINICPM,
    "minicpmv4_7": _MINICPM,
    "minicpm_ocr": _MINICPM,
    "muse_glimmer": Beside(vision="muse_glimmer_vision", see=_muse),
    "ernie4_5_moe_vl": Beside(vision="ernie4_5_vl_moe_vision", see=_ernie),
    **dict.fromkeys(("phi3_v", "phi4mm", "phi4_multimodal", "dots_ocr", "granite_speech"), Beside()),
    **dict.fromkeys(("got_ocr2", "pp_chart2table"), Beside(vision="got_ocr2_vision", see=_upsampled)),
    "aria": Beside(vision="idefics3_vision", see=_queried, defaults={"hidden_size": 1152}),
    "molmo2": Beside(vision="molmo2_vision", see=_pooled),
    "lfm3_vl": Beside(vision="lfm3_vl_vision", see=_merged_norm),
    "nemotron_h_omni": Beside(vision="radio", see=_nemotron),
    "qwen2_audio": Beside(audio="qwen2_audio_encoder", hear=_one()),
    "audioflamingo3": _WHISPERING,
    "musicflamingo": _WHISPERING,
    "voxtral": Beside(audio="voxtral_encoder", hear=_joined_frames(step=False)),
    "voxtral_realtime": Beside(audio="voxtral_realtime_encoder", hear=_joined_frames(step=False)),
    "glmasr": Beside(audio="glmasr_encoder", hear=_joined_frames(step=True)),
    "qwen3_asr": Beside(audio="qwen3_asr_encoder", hear=_through_itself),
}
"""Every `model_type` of a whole model whose encoders can be counted."""

_KINDS: Final[Mapping[str, TowerKind]] = {**SIGHT, **SOUND}
_FOR_ANYBODY: Final = frozenset({"siglip_vision_model", "siglip2_vision_model", "clip_vision_model", "pixtral"})
"""Encoders that classes take in one another's place, as the file says; others belong to one class, whatever it says."""
_NEVER_NESTED: Final = frozenset({"git"})
"""Classes that have an encoder and say of their language model beside it."""
_NONE_BY_DEFAULT: Final = frozenset({"gemma4", "gemma4_unified", "nemotron_h_omni"})
"""Classes that have no encoder where the file names none."""


def towers_beside(whole: Config, hidden: int) -> int | None:
    """Parameters of the encoders and projectors that a configuration names, beside a language model of this width.

    A section that is not there is what its class makes of it, in files that nest their language model.
    None: one of them is of a kind that cannot be counted.

    Raises:
        DataError: a size is missing or wrong.
    """
    outer, found = whole.text("model_type"), 0
    row = ROWS.get(outer)
    if row is not None and row.patches:
        known = whole.with_defaults({"patch_size": 30, "num_channels": 3})
        return (known.count("patch_size") ** 2 * known.count("num_channels", "few") + 1) * hidden
    if row is not None and row.see is None and row.hear is None:
        return None
    nests = whole.nested("text_config") is not None or outer in _NEVER_NESTED
    implied = nests and outer not in _NONE_BY_DEFAULT
    for key in ("vision_config", "audio_config"):
        default, project = ("", None) if row is None else row.of(key)
        section = whole.nested(key)
        if section is None and not (implied and project is not None):
            continue
        own = row.defaults if row is not None and section is None else {}
        section = section or Config(whole.file, {}, {}, f"{key}.")
        said = section.text("model_type")
        kind = _KINDS.get(said if said and default in _FOR_ANYBODY else default)
        if row is None or kind is None or project is None:
            return None
        known = section.with_defaults({**kind.defaults, **own})
        encoder = kind.read(known)
        found += encoder.elements + project(whole, known, encoder, hidden)
    return found
