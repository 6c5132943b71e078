"""Kinds of adapters: one row each, which settings, parameters, memory and time read."""

from __future__ import annotations

from typing import Final, Literal

from .record import dataclass

LoraKind = Literal["lora", "rslora", "dora", "ia3", "prompt", "p-tuning", "prefix"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterKind:
    """What trains beside a frozen base. Source: peft 0.21, its tuners of these names."""

    pairs: bool = False
    """A low-rank pair beside each projection."""
    magnitudes: bool = False
    """And a number for each of its outputs (DoRA)."""
    scales: bool = False
    """Numbers by which keys, values and what enters the last product of a feed-forward are multiplied (Liu 2022)."""
    virtual: Literal["", "input", "cache"] = ""
    """Tokens that are learned: before the text (Lester 2021), or as keys and values of each layer (Li 2021)."""
    encoded: bool = False
    """Virtual tokens come from three products of their own (P-tuning, Liu 2021)."""


ADAPTERS: Final[dict[LoraKind, AdapterKind]] = {
    "lora": AdapterKind(pairs=True),
    "rslora": AdapterKind(pairs=True),
    "dora": AdapterKind(pairs=True, magnitudes=True),
    "ia3": AdapterKind(scales=True),
    "prompt": AdapterKind(virtual="input"),
    "p-tuning": AdapterKind(virtual="input", encoded=True),
    "prefix": AdapterKind(virtual="cache"),
}
"""By the name of `--lora-kind`."""

VIRTUAL_TOKENS: Final = 20
"""Tokens that are learned where nobody says (the example of peft's documentation)."""
OF_ADAPTERS: Final = (
    "base_dtype",
    "lora_rank",
    "lora_targets",
    "lora_kind",
    "lora_layers",
    "virtual_tokens",
    "lora_dropout",
)
"""Settings that say something of adapters alone."""
