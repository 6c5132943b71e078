"""Every method by which a configuration may say that its weights are quantized, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ..config_file import Config, read_config
from .floats import read_compressed, read_fbgemm, read_fp8, read_modelopt, read_mxfp4, read_quark
from .integers import (
    read_aqlm,
    read_auto_round,
    read_awq,
    read_bitnet,
    read_bitsandbytes,
    read_eetq,
    read_exl3,
    read_gptq,
    read_hqq,
    read_mlx,
    read_quanto,
    read_torchao,
)
from .schemes import QuantPlan

SIDECAR: Final = "hf_quant_config.json"
"""Where Model Optimizer says how it stored a checkpoint."""
KEYS: Final = ("quantization_config", "compression_config", "quantization")


def quantization_of(whole: Config, inner: Config, folder: Path | None = None) -> Config | None:
    """The section of a configuration that says how the weights are stored, wherever its exporter put it.

    `folder`: where hf_quant_config.json is looked for if the configuration says nothing.

    Raises:
        DataError: it is no mapping, or the file beside cannot be read.
    """
    for place in (whole, inner):
        for key in KEYS:
            # A bare word under another tool's key says nothing of how weights are stored.
            section = place.nested(key) if key == KEYS[0] or isinstance(place.raw(key), Mapping) else None
            if section is not None and section.fields:
                experts = inner.raw("expert_dtype") or whole.raw("expert_dtype")
                fields = section.fields if experts is None else {"expert_dtype": experts, **section.fields}
                return Config(section.file, fields, {}, section.where)
    beside = None if folder is None else folder / SIDECAR
    if beside is None or not beside.is_file():
        return None
    config = read_config(beside)
    section = config.nested("quantization") or config
    return Config(section.file, {"quant_method": "modelopt", **section.fields}, {}, section.where)


def published_scheme(quant: Config) -> QuantPlan | None:
    """Read a `quantization_config`; None where nobody here knows its method.

    Raises:
        DataError: a field of a known method is wrong.
    """
    method = quant.text("quant_method").lower().replace("_", "-")
    if not method:
        method = _unnamed(quant)
    read = _METHODS.get(method)
    return None if read is None else read(quant)


def _unnamed(quant: Config) -> str:
    if quant.raw("config_groups") is not None:
        return "compressed-tensors"
    if quant.raw("quant_algo") is not None:
        return "modelopt"
    if quant.flag("load_in_4bit") or quant.flag("load_in_8bit"):
        return "bitsandbytes"
    return "mlx" if quant.raw("group_size") is not None and quant.raw("bits") is not None else ""


_METHODS: Final[Mapping[str, Callable[[Config], QuantPlan | None]]] = {
    "gptq": read_gptq,
    "gptqmodel": read_gptq,
    "awq": read_awq,
    "auto-round": read_auto_round,
    "autoround": read_auto_round,
    "intel/auto-round": read_auto_round,
    "bitsandbytes": read_bitsandbytes,
    "fp8": read_fp8,
    "fbgemm-fp8": read_fbgemm,
    "mxfp4": read_mxfp4,
    "modelopt": read_modelopt,
    "modelopt-fp4": read_modelopt,
    "compressed-tensors": read_compressed,
    "torchao": read_torchao,
    "quark": read_quark,
    "hqq": read_hqq,
    "aqlm": read_aqlm,
    "bitnet": read_bitnet,
    "exl2": read_exl3,
    "exl3": read_exl3,
    "mlx": read_mlx,
    "eetq": read_eetq,
    "quanto": read_quanto,
}
"""By method, as configurations name it, what reads it."""
