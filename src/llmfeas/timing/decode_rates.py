"""Effective rates of a device that decodes under an engine, for weights of a format."""

from __future__ import annotations

from functools import lru_cache

from ..catalog.device import Device
from ..catalog.efficiency import Efficiency
from ..catalog.engine import ServingSpeed
from ..record import dataclass
from ..units import GB
from .links import device_links
from .paths import Path, inference_path
from .rates import dot_products_per_s, product_flop_per_s, served_flop_per_s, served_share

SLOW_LINK_BYTES_PER_S = 64e9
PACKED = ("awq", "gptq")
"""Formats that kernels of servers unpack."""
EXPANDED_BYTES = 4.0
"""Bytes of a 4-bit weight that is written out in 16 bits and read again."""


def is_packed(quant: str) -> bool:
    """Whether weights must be unpacked before they are multiplied (fp8 and nvfp4 are multiplied as they are)."""
    return quant not in ("none", "fp8", "nvfp4")


def is_low(quant: str) -> bool:
    """Whether a format has 2 or 3 bits, whose decoding takes more steps."""
    return quant.removeprefix("ud-").startswith(("q2", "q3", "iq1", "iq2", "iq3", "exl2-2", "exl2-3"))


@dataclass(frozen=True, slots=True)
class DecodeRates:
    """Effective rates of one device under one engine (bytes/s, FLOP/s, seconds), and how many rest on judgement."""

    read: float
    cache: float
    unpack: float
    """Operations a second that turn stored bits into numbers; 0: the engine's kernels hide it."""
    expand: float
    """Weights a second that are written out before products of several tokens; 0: kernels read them as they are."""
    attention: float
    """FLOP a second of decoding tokens' attention to what is cached."""
    ahead: bool
    """Whether the host launches kernels while the device works on those before."""
    work: float
    layer_seconds: float
    moe_factor: float
    latent_factor: float
    """On the fixed cost of a layer with latent attention."""
    recurrent_factor: float
    """On that of a layer with a recurrent state."""
    sparse_factor: float
    """On that of a layer whose attention reads what an indexer picks."""
    reduce_seconds: float
    """An all-reduce of one token between two devices."""
    reduce_more: float
    """Share of it that each device beyond two adds: a ring passes once more through each."""
    sequence_seconds: float
    """What the host does for each sequence of a step: its place, its sampled token, its answer."""
    rows: float
    """Rows that a product is filled up to, however few tokens there are."""
    priors: int


def _fixed_name(efficiency: Efficiency, device: Device, path: Path) -> str:
    of_build, of_family = f"decode.fixed.{path.fixed}", f"decode.fixed.{path.family}"
    drivers = f"{path.backend}-{device.backend}"
    named = f"{of_build}.{path.backend}.{device.kind}", f"{of_build}.{path.backend}", of_build
    return efficiency.first(
        *(f"{of_family}.{drivers}", *named, f"{of_family}.{path.backend}", of_family),
        *(f"{of_family}.cuda", "decode.fixed.eager"),
    )


def _layer_factor(efficiency: Efficiency, device: Device, path: Path, quant: str) -> float:
    if path.family == "eager":
        return eager_factor(efficiency, device, quant)
    cuda = efficiency.value("decode.hbm") if path.backend == "cuda" and device.has_hbm else 1.0
    return float(device.cores or 1) if path.backend == "cpu" else cuda  # cores all meet after each operator


def _cache_name(path: Path, *, fused: bool) -> str:
    if path.family != "llama.cpp":
        return "decode.cache.eager" if path.family == "eager" else "decode.cache.fused"
    if path.backend == "metal":
        return "decode.cache.metal"
    return "decode.cache.fused" if fused else "decode.cache.plain"


def eager_factor(efficiency: Efficiency, device: Device, quant: str) -> float:
    """How much longer the host of public code takes on this kind of machine, and for weights in few bits."""
    host = efficiency.factor(f"decode.eager_host.{device.kind}")
    if quant.startswith("nf4"):
        twice = 1.0 if quant == "nf4-single" else efficiency.value("decode.eager_double")
        return host * efficiency.value("decode.eager_4bit") * twice
    return host * (
        efficiency.value("decode.eager_8bit") if quant == "int8" else efficiency.factor(f"decode.eager.{quant}")
    )


def _expand_rate(efficiency: Efficiency, device: Device, quant: str, read: float) -> float:
    if not quant.startswith("nf4"):
        return 0.0
    return 1 / (EXPANDED_BYTES / read + efficiency.value("decode.expand") / device.fp32_flop_per_s)


def _unpack_rate(efficiency: Efficiency, device: Device, path: Path) -> float:
    if not path.unpacks:
        return 0.0
    if path.backend == "cpu":
        return dot_products_per_s(device) * efficiency.value("decode.unpack_cpu")
    return device.integer_op_per_s * efficiency.value("decode.unpack")


def _work_share(efficiency: Efficiency, device: Device, path: Path, quant: str) -> float:
    """Share of the matrix peak with many sequences; kernels that unpack come no nearer to a low ceiling."""
    name = efficiency.first(f"decode.compute.{path.backend}", "decode.compute")
    near = path.family == "server" and not is_packed(quant)
    return served_share(efficiency, device, name) if near else efficiency.value(name)


@lru_cache(maxsize=4096)
def decode_rates(
    efficiency: Efficiency, device: Device, speed: ServingSpeed, precision: str, quant: str, fused: bool
) -> DecodeRates:
    """The effective rates of a device in decoding under an engine, for weights of a format and products in another."""
    value, path = efficiency.value, inference_path(device, speed)
    bandwidth = f"decode.bandwidth.{path.bandwidth}"
    bandwidth = efficiency.first(f"{bandwidth}.{device.generation}", bandwidth)
    fixed = _fixed_name(efficiency, device, path)
    read = device.bandwidth_bytes_per_s * value("decode.read") * value(bandwidth)
    read *= value("decode.server_packed") if path.family == "server" and quant.startswith(PACKED) else 1.0
    attention = efficiency.first(f"decode.attention.{path.family}", "decode.attention")
    layer = value(fixed) * _layer_factor(efficiency, device, path, quant)
    layer *= efficiency.factor(f"decode.launch.{device.generation}")
    experts = f"decode.fixed_moe.{path.family}.{path.backend}"
    links = device_links(efficiency, device, device.devices_per_node, None)
    fast = links.fast and max((link.gb_per_s or 0.0) * GB for link in device.links) > SLOW_LINK_BYTES_PER_S
    link = "decode.link.nvlink" if fast else "decode.link.pcie"
    narrow = served_flop_per_s(device, quant)
    tuned = (f"{experts}.{device.generation}",) if narrow or quant == "none" else ()
    parameters = efficiency.parameters
    return DecodeRates(
        read=read,
        cache=read * value(_cache_name(path, fused=fused)),
        attention=product_flop_per_s(device, precision) * value(attention),
        unpack=_unpack_rate(efficiency, device, path),
        expand=_expand_rate(efficiency, device, quant, read) if path.family == "eager" else 0.0,
        ahead=path.family == "eager",
        work=(narrow or product_flop_per_s(device, precision)) * _work_share(efficiency, device, path, quant),
        layer_seconds=layer,
        moe_factor=value(efficiency.first(*tuned, f"{experts}.{quant}", experts, "decode.fixed_moe")),
        latent_factor=value(efficiency.first(f"decode.fixed_latent.{path.family}", "decode.fixed_latent")),
        recurrent_factor=value(efficiency.first(f"decode.fixed_recurrent.{path.family}", "decode.fixed_recurrent")),
        sparse_factor=efficiency.factor(f"decode.fixed_sparse.{path.family}"),
        reduce_seconds=value(efficiency.first(f"{link}.{path.fixed}", link)),
        reduce_more=value(efficiency.first(f"{link}_more.{path.fixed}", f"{link}_more.{path.family}", f"{link}_more")),
        sequence_seconds=value(sequence) if (sequence := f"decode.sequence.{path.family}") in parameters else 0.0,
        rows=efficiency.factor(f"decode.rows.{path.family}.{'packed' if is_packed(quant) else device.generation}"),
        priors=int(parameters[bandwidth].prior) + int(parameters[fixed].prior),
    )
