"""How public code runs an architecture: the traits that decide what stays in memory, one record an implementation."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from ..catalog.store import catalog
from ..errors import DataError
from ..record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """Traits of the code, not of the architecture. The header of data/implementations.yaml documents each field."""

    norm: str = "cast-scale"
    qkv: str = "separate"
    rotation: str = "halves"
    rotation_joins: bool = False
    clips_qkv: bool = False
    rotation_fp32: bool = False
    respreads_tables: bool = False
    scores: tuple[str, ...] = ("scale", "mask", "softmax-fp32", "as-query", "drop")
    layer_buffer_bytes: int = 0
    mask_buffer: bool = False
    activation: str = ""
    scales_query: bool = False
    gate_up: str = "separate"
    router: str = "softmax"
    tempers_query: bool = False
    every_expert: bool = False
    experts_one_by_one: bool = False
    adapts_experts: bool = False
    norms_first: bool = False
    adds_in_place: bool = False
    adds_attended_first: bool = False
    norms_each_head: bool = False
    scales_embedding: str = ""
    rotary_tables: int = 1
    scales_residual: bool = False
    scales_logits: bool = False
    positions_per_sequence: bool = False
    passes_places: bool = True
    transposes_weights: bool = False
    always_masks: bool = False
    drops_embedding: bool = False
    drops_attention: bool = True
    drops_residual: bool = False
    names_attended: bool = False
    returns_scores: bool = False
    eager_only: bool = False
    loss: str = "written"
    compiled: bool = False
    patched: bool = False
    prepared: bool = False
    adapters: str = "written"
    narrow_frozen: bool = False
    narrow_activations: bool = False
    streams_inputs: bool = False
    approximate: str = ""


@cache
def implementation(name: str) -> Implementation:
    """A record of data/implementations.yaml.

    Raises:
        DataError: no such record, or a field of it is unknown.
    """
    records = _records()
    if name not in records:
        from difflib import get_close_matches

        near = get_close_matches(name, list(records), n=3)
        raise DataError("unknown-implementation", f"no implementation '{name}' in implementations.yaml", "", near)
    try:
        return _built(records, name)
    except (KeyError, TypeError) as error:
        message = f"implementations.yaml: implementations[{name}]: {error}"
        raise DataError("bad-data", message, "The header of the file names every field.") from None


@cache
def fused_implementation(name: str, kernels: str = "fused") -> Implementation:
    """How a training framework with kernels of its own, a compiler, or a library of kernels runs what the record
    `name` describes.

    Of a framework's own model only where it drops out is taken from the record; a compiler or a library runs the public
    code, so it changes what its entry of `kernels` in that file says and leaves the rest.
    Source: Korthikanti 2022, table 2; the code of the frameworks that data/engines.yaml names; that file.

    Raises:
        KeyError: no such record (an error in the catalog).
    """
    public = implementation(name)
    entry = _kernels()[kernels]
    if lies_over(kernels):
        changed = {field: value for field, value in entry.items() if field != "families"}
        return replace(public, **changed) if name in entry.get("families", (name,)) else public
    own = _built(_kernels(), kernels)
    return replace(
        own,
        drops_embedding=public.drops_embedding,
        drops_attention=public.drops_attention,
        drops_residual=public.drops_residual,
    )


def compiles(kernels: str) -> bool:
    """Whether an entry of `kernels` is the model's public code through a compiler."""
    return bool(kernels) and bool(_kernels()[kernels].get("compiled"))


def patches(kernels: str) -> bool:
    """Whether an entry of `kernels` is the model's public code with some operators replaced."""
    return bool(kernels) and bool(_kernels()[kernels].get("patched"))


def lies_over(kernels: str) -> bool:
    """Whether an entry of `kernels` changes the model's public code instead of replacing it."""
    return compiles(kernels) or patches(kernels) or (bool(kernels) and bool(_kernels()[kernels].get("prepared")))


@cache
def _kernels() -> dict[str, Any]:
    return dict(catalog().raw("implementations")["kernels"])


def _built(records: dict[str, Any], name: str) -> Implementation:
    """Lay a record over the one that it is `like`."""
    chain = [name]
    while "like" in records[chain[-1]]:
        chain.append(records[chain[-1]]["like"])
    fields: dict[str, Any] = {}
    for each in reversed(chain):
        fields.update(records[each])
    fields.pop("like", None)
    if "scores" in fields:
        fields["scores"] = tuple(fields["scores"])
    return Implementation(**fields)


@cache
def _records() -> dict[str, Any]:
    return dict(catalog().raw("implementations")["implementations"])


def implementation_names() -> tuple[str, ...]:
    """The names of all records."""
    return tuple(_records())
