"""What an engine does by itself with several devices, and which kernels it brings."""

from __future__ import annotations

from typing import ClassVar, Literal

from ..record import dataclass
from .types import STRICT, CountOrZero, Identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A catalog entry of one engine; the defaults are those of an engine that nobody described."""

    __pydantic_config__: ClassVar = STRICT
    id: Identifier
    does: tuple[Literal["training", "serving"], ...] = ("training", "serving")
    zero: CountOrZero = 3
    """ZeRO stage on several devices where nobody sets one."""
    layout: Literal["batches", "smallest", "fastest"] = "smallest"
    """How training is divided over several devices where nobody says: `batches` never divides a layer."""
    split: Literal["layers", "tensors"] = "layers"
    """How one served model spreads over several devices."""
    partial: bool = False
    """Can leave layers on the host."""
    streams: bool = False
    """Can serve with weights that lie on the host and pass through the device (`--offload all`)."""
    fused: bool = False
    """Brings fused attention for every architecture."""
    kernels: Literal[
        "eager",
        "fused",
        "megatron",
        "megatron-tuned",
        "megatron-narrow",
        "transformer-engine",
        "in-place",
        "in-pieces",
        "streaming",
        "streaming-2024",
        "compiled",
        "liger",
        "prepared",
        "frameworks",
    ] = "frameworks"
    """What training runs: public code, the engine's kernels (data/implementations.yaml), or fused ones where a
    pre-training is divided."""
    checkpointing: Literal["none", "selective", "full"] = "none"
    """What pre-training and full fine-tuning recompute where nobody says."""
    clusters: tuple[Identifier, ...] = ()
    """Backends on which people train with it on many devices."""
