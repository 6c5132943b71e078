"""Tokens that an image makes, by the rule of a configuration class's processor in transformers 5.23."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...catalog.published import ImageEncoder
from ...record import dataclass
from ..config_file import Config
from .tower_parts import side_of
from .towers import defaults_of, encoder_kind, table

SIDE: Final = 1024
"""Pixels of an image's sides where a model takes any."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What an image of a size makes."""

    tokens: int
    size: str
    encoder: ImageEncoder


Rule = Callable[[Config, Config], Seen]
"""Of the whole configuration and of its encoder's."""


def _encoder(config: Config, positions: int, span: int = 0) -> ImageEncoder:
    layers = config.optional_count("depth", "layers") or config.count("num_hidden_layers", "layers")
    width = config.optional_count("embed_dim") or config.count("hidden_size")
    return ImageEncoder(positions=positions, layers=layers, width=width, span=span)


def _of_any_size(whole: Config, config: Config) -> Seen:
    """A token a square of patches (Qwen, GLM); some layers attend within windows (Qwen 2.5)."""
    patch, merge = side_of(config, "patch_size"), config.optional_count("spatial_merge_size", "few") or 2
    rows = max(1, round(SIDE / (patch * merge)))
    positions, span = (rows * merge) ** 2, 0
    window = config.optional_count("window_size", "tokens", zero=True)
    wide = config.numbers("fullatt_block_indexes", 1000)
    if window and wide is not None:
        layers = config.count("depth", "layers")
        whole_layers = min(layers, len(wide))
        span = round((whole_layers * positions + (layers - whole_layers) * (window // patch) ** 2) / layers)
    text = f"{SIDE} x {SIDE} pixels ({patch * merge} x {patch * merge} a token)"
    return Seen(rows * rows, text, _encoder(config, positions, span))


def _by_rows(whole: Config, config: Config) -> Seen:
    """A token a square of patches, and one behind each row (Pixtral, Mistral 3)."""
    patch, merge = side_of(config, "patch_size"), whole.optional_count("spatial_merge_size", "few") or 1
    rows = -(-SIDE // (patch * merge))
    text = f"{SIDE} x {SIDE} pixels ({patch * merge} x {patch * merge} a token, and one a row)"
    return Seen(rows * (rows + 1), text, _encoder(config, (rows * merge) ** 2))


def _of_one_size(whole: Config, config: Config) -> Seen:
    """Every image is made equally large (LLaVA, PaliGemma); pooled where the file says to how many (Gemma 3)."""
    side = side_of(config, "image_size")
    positions = (side // side_of(config, "patch_size")) ** 2
    tokens = whole.optional_count("mm_tokens_per_image", "tokens") or positions
    return Seen(tokens, f"{side} x {side} pixels", _encoder(config, max(1, positions)))


def _of_queries(whole: Config, config: Config) -> Seen:
    """Every image is made equally large, and what a few queries see of it is read (BLIP-2)."""
    side = side_of(config, "image_size")
    positions = (side // side_of(config, "patch_size")) ** 2 + 1
    return Seen(whole.optional_count("num_query_tokens") or 32, f"{side} x {side} pixels", _encoder(config, positions))


def _in_tiles(whole: Config, config: Config) -> Seen:
    """Three rows of three tiles and a small image of all (InternVL)."""
    side = side_of(config, "image_size")
    each = (side // side_of(config, "patch_size")) ** 2
    tokens = max(1, round(each * (whole.number("downsample_ratio", 0.5) or 0.5) ** 2))
    tiles = _TILES + 1
    text = f"{SIDE} x {SIDE} pixels ({tiles} tiles of {tokens} tokens)"
    return Seen(tiles * tokens, text, _encoder(config, tiles * (each + 1), each + 1))


_TILES: Final = 9

RULES: Final[Mapping[str, Rule]] = {
    "of_any_size": _of_any_size,
    "by_rows": _by_rows,
    "of_one_size": _of_one_size,
    "of_queries": _of_queries,
    "in_tiles": _in_tiles,
}
"""By the names that the table of encoders has for them."""


def seen_of(whole: Config) -> Seen | None:
    """What an image makes of a model of this configuration; None where its rule is not known.

    Raises:
        DataError: a size is missing or wrong.
    """
    section, row = whole.nested("vision_config"), table()["beside"].get(whole.text("model_type"))
    if section is None or row is None:
        return None
    said = section.text("model_type")
    rule = _by_rows if said == "pixtral" else RULES.get(row.get("images", ""))
    kind = encoder_kind(said, "sight") or encoder_kind(row.get("vision", ""), "sight")
    return rule(whole, section.with_defaults(defaults_of(kind))) if rule and kind else None
