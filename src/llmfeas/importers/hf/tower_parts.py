"""What encoders of images and sounds are made of: blocks of attention and feed-forward, products, their elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...record import dataclass
from ..config_file import Config


@dataclass(frozen=True, slots=True)
class Encoder:
    """One encoder: its elements, and the width of what it hands to the projector."""

    elements: int
    width: int


Count = Callable[[Config], Encoder]
"""Counts an encoder by its configuration."""
COUNTS: Final[dict[str, Count]] = {}
"""All of them by name."""


def counted(function: Count) -> Count:
    """Let the table of encoders name this function, without the underscore before its name."""
    COUNTS[function.__name__.lstrip("_")] = function
    return function


def linear(inputs: int, outputs: int, *, bias: bool = True) -> int:
    """Elements of a product."""
    return outputs * (inputs + bias)


def blocks(
    layers: int,
    width: int,
    ffn: int,
    *,
    gated: bool = False,
    biases: str = "qkv out mlp",
    norm: int = 2,
    norms: int = 2,
    inner: int = 0,
    kv: int = 0,
    extra: int = 0,
) -> int:
    """Elements of a stack of attention and feed-forward.

    `norm` is the vectors of one norm, `norms` how many a layer has; `inner` and `kv` are the widths of all queries, and
    of all keys, where they are not `width`; `extra` is what else a layer holds.
    """
    inner = inner or width
    kv = kv or inner
    said = biases.split()
    attention = linear(width, inner + 2 * kv, bias="qkv" in said) + linear(inner, width, bias="out" in said)
    up = (1 + gated) * linear(width, ffn, bias="mlp" in said)
    return layers * (attention + up + linear(ffn, width, bias="mlp" in said) + norms * norm * width + extra)


def nested(config: Config, name: str, usual: Mapping[str, Any]) -> Config:
    """A section of a configuration over what its class takes where a file leaves it out."""
    return (config.nested(name) or Config(config.file, {}, {}, f"{config.where}{name}.")).with_defaults(usual)


def side_of(config: Config, key: str) -> int:
    """Read a length of a square, which some write as two numbers.

    Raises:
        DataError: missing, two different ones, or no number.
    """
    written = config.raw(key)
    if isinstance(written, list):
        sides = config.numbers(key, 2) or ()
        if len(set(sides)) != 1 or not 0 < sides[0] <= _LONGEST_SIDE:
            raise config.wrong(key, "is no square")
        return sides[0]
    side = config.count(key)
    if side > _LONGEST_SIDE:
        raise config.wrong(key, f"is above {_LONGEST_SIDE}")
    return side


_LONGEST_SIDE = 100_000


def sizes_of(config: Config) -> tuple[int, int, int]:
    """Layers, width and width of the feed-forward, as most classes spell them."""
    return config.count("num_hidden_layers", "layers"), config.count("hidden_size"), config.count("intermediate_size")


def patches(config: Config, width: int, *, frames: int = 1, bias: bool = True) -> int:
    """Elements of the convolution that makes positions of patches, over some frames at once."""
    patch = side_of(config, "patch_size")
    channels = config.optional_count("num_channels", "few") or config.optional_count("in_channels", "few") or 3
    return linear(channels * frames * patch * patch, width, bias=bias)


def grid(config: Config) -> int:
    """Patches of an image of the size that the table of positions is for."""
    return int((side_of(config, "image_size") // side_of(config, "patch_size")) ** 2)
