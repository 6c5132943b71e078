"""What the shapes of tensors do not tell about a model, and the error of one that no architecture can say."""

from __future__ import annotations

from typing import Literal

from ..catalog.architecture import Activation, Indexer, Window
from ..record import dataclass


class CannotExpressError(ValueError):
    """The tensors make a model that no field of an architecture can say; the message names tensor or field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What no shape tells. None: unknown; then it is inferred or assumed, and the assumption is written down."""

    heads: int | None = None
    head_dim: int | None = None
    context: int | None = None
    activation: Activation | None = None
    norm: Literal["rms", "layer", "layer-plain"] | None = None
    positions: Literal["rope", "alibi"] = "rope"
    parallel_block: bool = False
    softcap: bool = False
    l2_norm: bool = False
    rope_fraction: float = 1.0
    no_rope_every: int | None = None
    window: Window | None = None
    windowed: tuple[bool, ...] = ()
    """Which layers have the window, where that is listed."""
    indexer: Indexer | None = None
    top_k: int | None = None
    shared_experts: int | None = None
    rope_head_dim: int | None = None
    key_heads: int | None = None
    implementation: str | None = None
