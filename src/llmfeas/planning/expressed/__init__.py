"""What the launchers of an engine can express, apart from how they write it: what is proposed for it asks for this."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .expressible import Expressible

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "trainers": (
        "accelerate",
        "torchrun-fsdp",
        "trl",
        "axolotl",
        "deepspeed",
        "llama-factory",
        "sentence-transformers",
    ),
    "tuners": ("litgpt", "torchtune", "unsloth"),
    "frameworks": ("megatron", "maxtext"),
    "servers": ("vllm", "sglang", "tensorrt-llm", "ktransformers", "text-embeddings-inference", "infinity"),
    "desks": ("llama.cpp", "ollama", "mlx-lm"),
}
"""The modules of this package, with the launchers that each speaks of."""


@lru_cache(maxsize=64)
def expressed_by(launcher: str) -> Expressible | None:
    """What a launcher of ours can express; None of another."""
    family = next((module for module, names in FAMILIES.items() if launcher in names), None)
    if family is None:
        return None
    found: Expressible = import_module(f".{family}", __name__).EXPRESSED[launcher]
    return found
