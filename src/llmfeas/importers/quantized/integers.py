"""Schemes of methods that store packed integers, each read from its section of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...catalog.quantization import Encoding
from ..config_file import Config
from .modules import Modules
from .schemes import (
    FP8_ROW,
    INT8_ROW,
    LLM_INT8,
    MXFP4,
    MXFP8,
    NVFP4,
    Packing,
    QuantPlan,
    bits_of,
    group_of,
    grouped,
    kept_modules,
    packed_integers,
    sections_of,
)


def read_gptq(quant: Config) -> QuantPlan:
    """GPTQ: zero points and a index are always stored; `dynamic` changes or leaves out what its patterns match."""
    bits, group = bits_of(quant, "bits"), group_of(quant, "group_size")
    base = packed_integers(bits, group, symmetric=True, zeros=True, column_bytes=4.0)
    rules: list[tuple[Modules, Packing | None]] = []
    for pattern, changed in sections_of(quant, "dynamic"):
        other = packed_integers(
            bits_of(changed, "bits", default=bits),
            group_of(changed, "group_size", default=group),
            symmetric=True,
            zeros=True,
            column_bytes=4.0,
        )
        rules.append((Modules.of([f"re:{pattern.lstrip('+-:')}"]), None if pattern.startswith("-") else other))
    return QuantPlan("gptq", base, tuple(rules), head=quant.flag("lm_head"))


def read_awq(quant: Config) -> QuantPlan:
    """AWQ: zero points unless `zero_point` is false."""
    bits, group = bits_of(quant, "bits", "w_bit"), group_of(quant, "group_size", "q_group_size")
    zero = quant.raw("zero_point") is not False
    return QuantPlan(
        "awq", packed_integers(bits, group, symmetric=not zero), kept_modules(quant, "modules_to_not_convert")
    )


def read_auto_round(quant: Config) -> QuantPlan:
    """AutoRound: one of several packings, with modules of their own in `extra_config`."""

    def scheme(part: Config, bits: int, group: int) -> Packing | None:
        kind = part.text("data_type", quant.text("data_type", "int"))
        bits = bits_of(part, "bits", default=bits)
        group = group_of(part, "group_size", default=group)
        if bits >= 16:
            return None
        if "nv_fp" in kind or "nvfp" in kind:
            return NVFP4
        if kind.startswith("mx"):
            return MXFP8 if bits == 8 else MXFP4
        if kind.startswith("fp"):
            return FP8_ROW
        symmetric = part.raw("sym") if part.raw("sym") is not None else quant.raw("sym")
        packed = "awq" in quant.text("packing_format") or "gptq" in quant.text("packing_format", "gptq")
        return packed_integers(bits, group, symmetric=symmetric is not False, zeros=packed)

    bits, group = bits_of(quant, "bits"), group_of(quant, "group_size")
    rules = [*kept_modules(quant, "modules_to_not_convert")]
    for name, part in sections_of(quant, "extra_config"):
        wild = any(sign in name for sign in "*\\[(^$|+?")
        rules.append((Modules.of([f"re:{name}" if wild else name]), scheme(part, bits, group)))
    return QuantPlan("auto-round", scheme(quant, bits, group), tuple(rules))


def read_bitsandbytes(quant: Config) -> QuantPlan:
    """bitsandbytes: 4 bits, with or without double quantization, or LLM.int8()."""
    four = quant.flag("load_in_4bit") or quant.flag("_load_in_4bit")
    double = quant.flag("bnb_4bit_use_double_quant")
    nested = Packing("nf4", Encoding(block=16384, bytes=8452))
    plain = Packing("nf4-single", grouped(4, 64, 4.0))
    base = (nested if double else plain) if four else LLM_INT8
    return QuantPlan("bitsandbytes", base, kept_modules(quant, "llm_int8_skip_modules"))


def read_torchao(quant: Config) -> QuantPlan | None:
    """torchao: a type of its own, or the old name of one; None for one that nobody here knows."""
    kind = quant.raw("quant_type")
    arguments: Mapping[str, Any] = {}
    if isinstance(kind, Mapping):
        default = kind.get("default")
        if not isinstance(default, Mapping) or not isinstance(default.get("_type"), str):
            return None
        held = default.get("_data")
        kind, arguments = default["_type"], held if isinstance(held, Mapping) else {}
    elif isinstance(quant.raw("quant_type_kwargs"), Mapping):
        arguments = quant.raw("quant_type_kwargs") or {}
    if not isinstance(kind, str):
        return None
    part = Config(quant.file, arguments, {}, f"{quant.where}quant_type.")
    word = kind.lower().replace("_", "").removesuffix("config")
    group = group_of(part, "group_size", default=128)
    scheme = None
    if word.startswith("int4weightonly"):  # a scale and a zero point of 16 bits each
        scheme = Packing("torchao-int4", grouped(4, group, 4.0))
    elif word.startswith(("int8dynamicactivationint4", "float8dynamicactivationint4")):
        scheme = packed_integers(4, group, symmetric=False)
    elif word.startswith(("int8weightonly", "int8dynamicactivationint8")):
        scheme = INT8_ROW
    elif word.startswith("float8"):
        scheme = FP8_ROW
    elif word.startswith("nvfp4"):
        scheme = NVFP4
    if scheme is None:
        return None
    tables = scheme if quant.flag("include_input_output_embeddings") else None
    rules = kept_modules(quant, "modules_to_not_convert")
    return QuantPlan("torchao", scheme, rules, head=tables is not None, embedding=tables)


def read_hqq(quant: Config) -> QuantPlan | None:
    """HQQ: a scale and a zero point a group; None where its arguments are missing."""
    inner = quant.nested("quant_config")
    weight = (inner or quant).nested("weight_quant_params")
    if weight is None:
        return None
    bits, group = bits_of(weight, "nbits"), group_of(weight, "group_size", default=64)
    # A scale and a zero point of 16 bits each a group; ten values of 3 bits lie in 32.
    near = min((1, 2, 3, 4, 8), key=lambda known: abs(known - bits))
    scheme = Packing(f"hqq-{near}bit", grouped(3.2 if bits == 3 else bits, group, 4.0))
    return QuantPlan("hqq", scheme, kept_modules(quant, "skip_modules"))


def read_aqlm(quant: Config) -> QuantPlan:
    """AQLM: a code of each group into each codebook, 16-bit codebooks for each matrix, a 16-bit scale a row."""
    bits, books = bits_of(quant, "nbits_per_codebook"), quant.optional_count("num_codebooks", "few") or 1
    size, tall = (quant.optional_count(f"{side}_group_size") or 1 for side in ("in", "out"))
    known = {(16, 1, 8): "2bit-1x16", (16, 1, 16): "1bit-1x16", (16, 2, 8): "4bit-2x16", (8, 8, 32): "2bit-8x8"}
    code_bytes = 2 if bits > 8 else 1
    encoding = Encoding(
        block=size * tall,
        bytes=books * code_bytes,
        row_bytes=2.0 / tall,
        table_bytes=2.0 * books * 2**bits * size * tall,
    )
    label = f"aqlm-{known.get((bits, books, size), '2bit-2x8')}"
    return QuantPlan("aqlm", Packing(label, encoding), kept_modules(quant, "linear_weights_not_to_quantize"))


def read_bitnet(quant: Config) -> QuantPlan:
    """BitNet: four ternary weights a byte, a scale a matrix."""
    scheme = Packing("bitnet", Encoding(block=4, bytes=1, table_bytes=2))
    return QuantPlan("bitnet", scheme, kept_modules(quant, "modules_to_not_convert"))


def read_exl3(quant: Config) -> QuantPlan | None:
    """exl2 and exl3: bits on average, and those of the head."""
    bits = quant.number("bits", 0.0)
    if not 1 <= bits <= 16:
        return None
    head = quant.number("head_bits", 6.0)
    near = min((2.5, 3.0, 3.5, 4.0, 4.25, 5.0, 6.0, 8.0), key=lambda known: abs(known - bits))
    label = f"exl2-{near}bpw"
    rules = ((Modules.of(["lm_head"]), Packing(label, grouped(head or 16.0, 64, 0.0))),)
    return QuantPlan(quant.text("quant_method"), Packing(label, grouped(bits, 64, 0.0)), rules)


def read_mlx(quant: Config) -> QuantPlan:
    """Read mlx-lm's own section: scales and offsets of 16 bits a group, tables and head too; parts named beside."""

    def scheme(part: Config, bits: int, group: int) -> Packing:
        bits, group = bits_of(part, "bits", default=bits), group_of(part, "group_size", default=group)
        mode = part.text("mode", quant.text("mode", "affine"))
        if mode in ("mxfp4", "nvfp4", "mxfp8"):
            return {"mxfp4": MXFP4, "nvfp4": NVFP4, "mxfp8": MXFP8}[mode]
        return Packing(f"mlx-{bits if bits in (2, 3, 4, 5, 6, 8) else 4}bit", grouped(bits, group, 4.0))

    bits, group = bits_of(quant, "bits"), group_of(quant, "group_size", default=64)
    base = scheme(quant, bits, group)
    rules: list[tuple[Modules, Packing | None]] = []
    for name, value in quant.fields.items():
        if isinstance(value, Mapping):
            rules.append((Modules.of([name]), scheme(Config(quant.file, value, {}, f"{quant.where}"), bits, group)))
        elif value is False:
            rules.append((Modules.of([name]), None))
    return QuantPlan("mlx", base, tuple(rules), head=True, embedding=base)


def read_eetq(quant: Config) -> QuantPlan:
    """EETQ: 8-bit integers with a scale a row."""
    return QuantPlan("eetq", Packing("int8", grouped(8, 0, 2.0)), kept_modules(quant, "modules_to_not_convert"))


def read_quanto(quant: Config) -> QuantPlan | None:
    """Quanto: by the name of its type of weights."""
    schemes = {"int8": INT8_ROW, "float8": FP8_ROW, "int4": packed_integers(4, 128, symmetric=False)}
    scheme = schemes.get(quant.text("weights"))
    return None if scheme is None else QuantPlan("quanto", scheme, kept_modules(quant, "modules_to_not_convert"))
