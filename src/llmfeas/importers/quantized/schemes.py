"""How a checkpoint's configuration says that its weights are stored: which encoding, and which modules have it.

Sources, read 2026-11-22: transformers, utils/quantization_config.py; vllm, model_executor/layers/quantization/ (one
file a method); compressed-tensors, quant_args.py and quant_scheme.py; NVIDIA Model Optimizer, export/quant_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...catalog.quantization import Encoding
from ...record import dataclass
from ..config_file import Config
from .modules import Modules

MOST_NAMES: Final = 50_000
"""Entries of a list of modules that are read."""


@dataclass(frozen=True, slots=True)
class Packing:
    """One way to store a matrix, and the value of `--quant` that stands for it."""

    label: str
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class QuantPlan:
    """What a configuration says of its weights: the first rule whose modules hold a matrix decides, else `base`."""

    tool: str
    base: Packing | None
    rules: tuple[tuple[Modules, Packing | None], ...] = ()
    head: bool = False
    """Whether the output head is a matrix like all others, unless a rule says otherwise."""
    embedding: Packing | None = None

    @property
    def schemes(self) -> Iterator[Packing]:
        """All schemes that occur, the common one first."""
        found = (self.base, *(scheme for _, scheme in self.rules))
        return (scheme for scheme in found if scheme is not None)


def grouped(bits: float, group: int, scale_bytes: float, zero_bits: float = 0.0, column_bytes: float = 0.0) -> Encoding:
    """An encoding with one scale (and zero point) for each `group` elements of a row; for the whole row where it is 0.

    Formula: bits / 8 an element, scale and zero point a group, `column_bytes` for each input.
    """
    beside = scale_bytes + zero_bits / 8
    if group <= 0:
        return Encoding(block=1, bytes=bits / 8, row_bytes=beside, column_bytes=column_bytes)
    return Encoding(block=group, bytes=group * bits / 8 + beside, column_bytes=column_bytes)


NVFP4: Final = Packing("nvfp4", grouped(4, 16, 1.0))
MXFP4: Final = Packing("mxfp4", grouped(4, 32, 1.0))
MXFP8: Final = Packing("fp8", grouped(8, 32, 1.0))
FP8_TENSOR: Final = Packing("fp8", Encoding(block=1, bytes=1))
FP8_ROW: Final = Packing("fp8", grouped(8, 0, 4.0))
INT8_ROW: Final = Packing("w8a8-int8", grouped(8, 0, 4.0))
LLM_INT8: Final = Packing("int8", grouped(8, 0, 4.0))


def fp8_blocks(sides: tuple[int, ...] | None, scale_bytes: int = 4) -> Packing:
    """Fp8 with a scale (fp32, or an exponent of one byte) a block of `sides`; one a tensor where there are none."""
    if not sides or len(sides) != 2 or not all(sides):
        return FP8_TENSOR
    area = sides[0] * sides[1]
    return Packing("fp8", Encoding(block=area, bytes=area + scale_bytes))


def packed_integers(
    bits: int, group: int, *, symmetric: bool, column_bytes: float = 0.0, zeros: bool = False
) -> Packing:
    """Packed integers with a 16-bit scale a group, and a zero point where they are not symmetric or it is kept."""
    label = {8: "gptq-int8"}.get(bits, "gptq-int4" if symmetric else "awq-int4")
    return Packing(label, grouped(bits, group, 2.0, 0.0 if symmetric and not zeros else bits, column_bytes))


def bits_of(quant: Config, *keys: str, default: int = 4) -> int:
    """Read bits from the first key that is there.

    Raises:
        DataError: more than 16, or no whole number.
    """
    for key in keys:
        number = quant.optional_count(key, "few")
        if number is not None:
            if number > 16:
                raise quant.wrong(key, f"is {number}: no quantization has so many bits")
            return number
    return default


def group_of(quant: Config, *keys: str, default: int = 128) -> int:
    """Elements of a group; 0 for one a row (written -1 or 0)."""
    for key in keys:
        if quant.raw(key) in (-1, 0):
            return 0
        number = quant.optional_count(key)
        if number is not None:
            return number
    return default


def modules_named(quant: Config, *keys: str) -> Modules:
    """The modules that the lists under these keys name."""
    names: list[str] = []
    for key in keys:
        names.extend(quant.words(key, MOST_NAMES) or ())
    return Modules.of(names)


def sections_of(quant: Config, key: str) -> Iterator[tuple[str, Config]]:
    """The named mappings of a section, none where it is absent."""
    section = quant.nested(key)
    for name, value in () if section is None else section.fields.items():
        if isinstance(value, Mapping):
            yield name, Config(quant.file, value, {}, f"{quant.where}{key}.")


def kept_modules(quant: Config, *keys: str) -> tuple[tuple[Modules, Packing | None], ...]:
    """One rule: what a list names stays as it is."""
    return ((modules_named(quant, *keys), None),)
