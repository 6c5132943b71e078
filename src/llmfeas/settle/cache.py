"""Number format of the cache (`kv_dtype`): 16 bits, or what was asked for and the engine holds; tokens of a pass."""

from __future__ import annotations

from ..catalog.architecture import Model
from ..catalog.engine import Engine
from ..catalog.store import Catalog
from ..errors import UsageError
from ..options import BLOCK_CACHES
from .draft import Draft

ONE_BYTE = ("int8", "fp8")
"""What engines whose caches are in blocks hold as `EIGHT`."""
EIGHT = "q8_0"


def asks_for_blocks(draft: Draft) -> bool:
    """Whether a cache in blocks was asked for, which few engines hold."""
    return draft.given.get("kv_dtype") in BLOCK_CACHES


def needs_fused(draft: Draft) -> bool:
    """Whether a cache in few bits was asked for, which llama.cpp has fused attention for alone."""
    return draft.given.get("kv_dtype") not in (None, "fp16", "bf16")


def settle_cache(draft: Draft, model: Model, engine: Engine, catalog: Catalog, *, fp8: bool) -> None:
    """Settle `kv_dtype`; `fp8`: the backend's servers keep the cache of fp8 weights in fp8 too.

    Raises:
        UsageError: for a format that the engine does not hold, whose blocks divide no head, or without fused attention.
    """
    sixteen = "bf16" if draft.values["precision"] == "bf16" else "fp16"
    quant = draft.values["quant"]
    follows = ((fp8 and quant == "fp8") or quant in engine.serving.fp8_caches) and model.architecture.writes
    asked = draft.settle("kv_dtype", "fp8" if follows else sixteen, "derived")
    held = engine.serving.caches
    if held and asked in ONE_BYTE:
        if asked == "fp8":
            draft.warn("cache-format", f"{engine.name} has no cache in fp8: {EIGHT}, its 8 bits, was taken")
        draft.values["kv_dtype"] = asked = EIGHT
    if asked not in BLOCK_CACHES:
        return
    if asked not in held:
        able = tuple(known.id for known in catalog.engines.values() if asked in known.serving.caches)
        here = ", ".join(("fp16", "bf16", *(held or ONE_BYTE)))
        problem = f"--kv-dtype {asked} is no cache of {engine.id}, which holds {here}"
        raise UsageError("contradiction", problem, f"engines that hold it: {', '.join(able)}", able)
    if draft.values["attention"] == "eager":
        raise UsageError(
            "contradiction",
            f"--kv-dtype {asked} needs fused attention: without it {engine.id} refuses to quantize cached values",
            "use --attention flash, or --kv-dtype fp16",
        )
    block, head = catalog.tables.quantization.encodings[asked].block, model.architecture.head_dim
    if model.architecture.mla is None and head % block:
        problem = f"--kv-dtype {asked} keeps blocks of {block} values, which do not divide the {head} of a head"
        raise UsageError("contradiction", f"{problem} of {model.name}", "use --kv-dtype fp16")


def settle_passes(draft: Draft, engine: Engine) -> None:
    """Settle `ubatch`: the engine's own where it leaves layers on the host, as llama.cpp and its kin do.

    Raises:
        UsageError: for an engine without.
    """
    if engine.serving.partial:
        draft.settle("ubatch", engine.serving.memory.pass_tokens, "backend")
        return
    if draft.was_said("ubatch"):
        there = "use --max-num-batched-tokens there" if engine.serving.memory.pool is not None else "leave it out"
        problem = f"--ubatch is a setting of llama.cpp, not of {engine.id}"
        raise UsageError("contradiction", problem, f"{there}, or take --engine llama.cpp")
    draft.override("ubatch", None, "derived")
