"""Schemes of methods that store narrow floats, or name their encodings one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..config_file import Config
from .modules import Modules
from .schemes import (
    FP8_ROW,
    FP8_TENSOR,
    INT8_ROW,
    MOST_NAMES,
    MXFP4,
    MXFP8,
    Packing,
    QuantPlan,
    bits_of,
    fp8_blocks,
    group_of,
    grouped,
    kept_modules,
    packed_integers,
    sections_of,
)

_MODELOPT: Final[Mapping[str, Callable[[int], Packing]]] = {
    "FP8": lambda _: FP8_TENSOR,
    "FP8_PER_CHANNEL_PER_TOKEN": lambda _: FP8_ROW,
    "FP8_PB_WO": lambda _: fp8_blocks((128, 128)),
    "FP8_PB_REAL": lambda _: fp8_blocks((128, 128)),
    "MXFP8": lambda _: MXFP8,
    "MXFP4": lambda _: MXFP4,
    "W4A8_MXFP4_FP8": lambda _: MXFP4,
    "NVFP4": lambda group: Packing("nvfp4", grouped(4, group or 16, 1.0)),
    "NVFP4_AWQ": lambda group: Packing("nvfp4", grouped(4, group or 16, 1.0)),
    "NVFP4_SVD": lambda group: Packing("nvfp4", grouped(4, group or 16, 1.0)),
    "W4A16_NVFP4": lambda group: Packing("nvfp4", grouped(4, group or 16, 1.0)),
    "W4A8_NVFP4_FP8": lambda group: Packing("nvfp4", grouped(4, group or 32, 1.0)),
    "W4A16_AWQ": lambda group: packed_integers(4, group or 128, symmetric=True),
    "W4A8_AWQ": lambda group: packed_integers(4, group or 128, symmetric=True),
    "W8A16": lambda _: INT8_ROW,
    "W8A8_SQ_PER_CHANNEL": lambda _: INT8_ROW,
    "INT8_SQ": lambda _: INT8_ROW,
}


def read_fp8(quant: Config) -> QuantPlan:
    """Fp8 as DeepSeek and transformers have it: one scale a block or a tensor; V4's routed experts in 4 bits."""
    scale = 1 if "ue8m0" in quant.text("scale_fmt") and quant.raw("expert_dtype") is not None else 4
    base = fp8_blocks(quant.numbers("weight_block_size", 8), scale)
    kept = kept_modules(quant, "modules_to_not_convert", "ignored_layers", "ignore")
    narrow = ((Modules.of([r"re:.*\bexperts\."]), MXFP4),) if quant.raw("expert_dtype") == "fp4" else ()
    return QuantPlan("fp8", base, (*kept, *narrow))


def read_fbgemm(quant: Config) -> QuantPlan:
    """FBGEMM: fp8 with a scale a row."""
    return QuantPlan("fbgemm-fp8", FP8_ROW, kept_modules(quant, "modules_to_not_convert"))


def read_mxfp4(quant: Config) -> QuantPlan:
    """OpenAI's mxfp4: the routed experts alone."""
    experts = Modules.of(["re:.*experts.*"])
    return QuantPlan("mxfp4", None, (*kept_modules(quant, "modules_to_not_convert"), (experts, MXFP4)))


def read_modelopt(quant: Config) -> QuantPlan | None:
    """Read Model Optimizer's section, of config.json or of hf_quant_config.json."""
    algorithm = quant.text("quant_algo").upper()
    kept = kept_modules(quant, "ignore", "exclude_modules")
    if algorithm == "MIXED_PRECISION" or quant.raw("quantized_layers") is not None:
        rules: list[tuple[Modules, Packing | None]] = [*kept]
        by_kind: dict[Packing, list[str]] = {}
        for name, part in sections_of(quant, "quantized_layers"):
            made = _MODELOPT.get(part.text("quant_algo").upper())
            if made is None:
                return None
            by_kind.setdefault(made(group_of(part, "group_size", default=0)), []).append(name)
        rules.extend((Modules.of(names), scheme) for scheme, names in by_kind.items())
        return QuantPlan("modelopt", None, tuple(rules), head=True) if by_kind else None
    made = _MODELOPT.get(algorithm)
    if made is None:
        return read_compressed(quant) if not algorithm and quant.raw("config_groups") is not None else None
    group = group_of(quant, "group_size", default=0)
    return QuantPlan("modelopt", made(group), kept, head=True)


def read_compressed(quant: Config) -> QuantPlan | None:
    """Read compressed-tensors: groups of targets, each with its arguments, and what is ignored."""
    base, rules = None, [*kept_modules(quant, "ignore")]
    whole = quant.text("format")
    for _, part in sections_of(quant, "config_groups"):
        weights = part.nested("weights")
        scheme = None if weights is None else _compressed_scheme(weights, part.text("format") or whole)
        if weights is not None and scheme is None:
            return None
        targets = part.words("targets", MOST_NAMES) or ()
        classes = [name for name in targets if not name.startswith("re:") and "." not in name and name != "lm_head"]
        if classes or not targets:
            base = base or scheme
        named = [name for name in targets if name not in classes]
        if named:
            rules.append((Modules.of(named), scheme))
    known = base is not None or any(scheme is not None for _, scheme in rules)
    return QuantPlan("compressed-tensors", base, tuple(rules), head=True) if known else None


def _compressed_scheme(weights: Config, form: str) -> Packing | None:
    bits, group = bits_of(weights, "num_bits"), group_of(weights, "group_size", default=0)
    strategy, symmetric = weights.text("strategy"), weights.raw("symmetric") is not False
    if weights.text("type", "int") == "float":
        if bits == 4:
            return MXFP4 if "mxfp4" in form or group == 32 else Packing("nvfp4", grouped(4, group or 16, 1.0))
        if bits == 8 and (form.startswith("mxfp8") or group == 32):
            return MXFP8
        if bits == 8:
            sides = weights.numbers("block_structure", 8) if strategy == "block" else None
            whole = strategy in ("tensor", "block")
            return fp8_blocks(sides) if whole else Packing("fp8", grouped(8, group, 2.0))
        return None
    if form == "marlin-24":
        # Half of the elements, and two bits for each of these that say which.
        return Packing(f"gptq-int{8 if bits == 8 else 4}", grouped(bits / 2 + 1, group, 2.0))
    if bits == 8 and form != "pack-quantized":
        return Packing("w8a8-int8", grouped(8, group, 2.0, 0.0 if symmetric else 8))
    held = 32 / (32 // bits)
    reordered = weights.text("actorder") == "group" or weights.raw("actorder") is True
    scheme = packed_integers(bits, group, symmetric=symmetric, column_bytes=4.0 if reordered else 0.0)
    return Packing(scheme.label, grouped(held, group, 2.0, 0.0 if symmetric else held, 4.0 if reordered else 0.0))


def read_quark(quant: Config) -> QuantPlan | None:
    """AMD's Quark: one way for all, and layers of their own."""
    whole = quant.nested("global_quant_config")
    weight = None if whole is None else whole.nested("weight")
    scheme = None if weight is None else _quark_scheme(weight)
    if scheme is None:
        return None
    rules = [*kept_modules(quant, "exclude")]
    for name, part in sections_of(quant, "layer_quant_config"):
        inner = part.nested("weight")
        rules.append((Modules.of([name]), None if inner is None else _quark_scheme(inner)))
    return QuantPlan("quark", scheme, tuple(rules), head=True)


def _quark_scheme(weight: Config) -> Packing | None:
    kind, group = weight.text("dtype"), group_of(weight, "group_size", default=0)
    if kind in ("fp4", "mx", "mxfp4"):
        return MXFP4
    if kind.startswith(("fp8", "mxfp8")):
        return MXFP8 if group == 32 else FP8_ROW
    return {
        "int8": INT8_ROW,
        "int4": packed_integers(4, group, symmetric=True),
        "uint4": packed_integers(4, group, symmetric=False),
    }.get(kind)
