"""How public code runs an architecture: the traits that decide what stays in memory, one record an implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from ..errors import DataError
from ..record import dataclass, replace
from .architecture import Architecture
from .records import built
from .types import CountOrZero, Strict

# fmt: off
NormKind = Literal[
    "kernel", "fused", "compiled", "kernel-fp32", "kernel-narrow", "cast-scale", "scale-cast", "wide-scale-cast",
    "one-plus", "centred",
]
RotationKind = Literal[
    "halves", "halves-cast-back", "halves-fp32", "alternating", "apart", "interleaved", "complex", "kernel", "compiled",
    "in-place",
]
ScoreStep = Literal[
    "fp32", "name", "scale", "scale-in-place", "cap", "mask", "choose", "fill", "bias", "widen", "softmax",
    "softmax-fp32", "as-query", "as-value", "drop", "with-sinks", "softmax-raw", "without-sinks",
    "exponents",
]
RouterKind = Literal[
    "softmax", "softmax-back", "softmax-raw", "softmax-scaled", "softmax-corrected", "sigmoid", "top-softmax",
    "top-softmax-raw",
]
LossKind = Literal[
    "written", "plain", "kernel", "in-place", "in-pieces", "in-chunks", "in-parts", "in-eighths", "in-rows", "in-tiles",
    "cut", "compiled",
]
# fmt: on

FUSED = "fused"
"""The entry of `kernels` that those of frameworks with a model of their own are like."""

UNNAMED_KERNELS: Final = ("eager", "frameworks", "own")
"""What an engine may train with that is no such entry: the public code; that, or a framework's where pre-training
divides; code of its own that is counted as the public one.
"""

KINDS: Final[Mapping[str, Callable[[Architecture], bool]]] = {
    "encoders": lambda each: each.encoder,
    "encoder-decoders": lambda each: each.source is not None,
    "text-encoder-decoders": lambda each: each.source is not None and not each.source.bands,
}
"""What an engine may lack as a whole, whatever public code runs it."""

Fields = Mapping[str, Any]
"""A record as written."""


ExpertAdapters = Literal["none", "merged", "each", "shared"]
"""How all-linear adapters reach routed experts: data/implementations.yaml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation(Strict):
    """Traits of the code, not of the architecture. The header of data/implementations.yaml documents each field."""

    norm: NormKind = "cast-scale"
    qkv: Literal["separate", "split", "sliced", "interleaved", "selected", "picked"] = "separate"
    rotation: RotationKind = "halves"
    rotation_joins: bool = False
    clips_qkv: bool = False
    rotation_fp32: bool = False
    respreads_tables: bool = False
    scores: tuple[ScoreStep, ...] = ("scale", "mask", "softmax-fp32", "as-query", "drop")
    layer_buffer_bytes: CountOrZero = 0
    mask_buffer: bool = False
    activation: Literal["", "gelu-recomputed", "kernel"] = ""
    scales_query: bool = False
    copies_query: bool = False
    repeats_heads: bool = False
    gate_up: Literal["separate", "joint", "clamped", "kernel", "compiled"] = "separate"
    recurrence: Literal["written", "summed", "kernel"] = "written"
    router: RouterKind = "softmax"
    tempers_query: bool = False
    every_expert: bool = False
    experts_one_by_one: bool = False
    weighs_late: bool = False
    expert_adapters: ExpertAdapters = "none"
    adapts_router: bool = False
    norms_first: bool = False
    adds_in_place: bool = False
    adds_attended_first: bool = False
    norms_each_head: bool = False
    norms_values: bool = False
    scales_embedding: Literal["", "table", "model"] = ""
    rotary_tables: CountOrZero = 1
    scales_residual: bool = False
    scales_parts: bool = False
    residual_fp32: bool = False
    refuses_out_proj: bool = False
    experts_join_dense: bool = False
    scales_logits: bool = False
    biases_logits: bool = False
    caps_logits: bool = False
    positions_per_sequence: bool = False
    passes_places: bool = True
    transposes_weights: bool = False
    always_masks: bool = False
    masks_source: bool = False
    norms_sum: Literal["no", "alone", "beside"] = "no"
    drops_embedding: bool = False
    drops_attention: bool = True
    drops_residual: bool = False
    drops_inner: bool = False
    names_attended: bool = False
    returns_scores: bool = False
    eager_only: bool = False
    loss: LossKind = "written"
    compiled: bool = False
    patched: bool = False
    prepared: bool = False
    adapters: Literal["written", "native", "kernel", "parallel"] = "written"
    narrow_frozen: bool = False
    narrow_activations: bool = False
    narrows_again: bool = False
    streams_inputs: bool = False
    approximate: str = ""


class Implementations:
    """All records of data/implementations.yaml. Compared by identity, so that what follows from them can be cached."""

    def __init__(self, records: Mapping[str, Fields], kernels: Mapping[str, Fields]) -> None:
        self._records = records
        self._kernels = kernels
        self._built: dict[tuple[str, str], Implementation] = {}
        self._over: dict[str, bool] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All records."""
        return tuple(self._records)

    @property
    def kernels(self) -> tuple[str, ...]:
        """All entries of `kernels`."""
        return tuple(self._kernels)

    def public(self, name: str) -> Implementation:
        """How the public code of a record runs.

        Raises:
            DataError: there is no such record.
        """
        return self._kept(name, "")

    def under(self, name: str, kernels: str) -> Implementation:
        """How a training framework with kernels of its own, a compiler, or a library of kernels runs what a record
        describes; empty `kernels`: as the public code.

        Of a framework's own model only where it drops out is taken from the record; a compiler or a library runs the
        public code, so it changes what its entry of `kernels` in that file says and leaves the rest.
        Source: Korthikanti 2022, table 2; the code of the frameworks that data/engines.yaml names; that file.

        Raises:
            DataError: there is no such record.
        """
        return self._kept(name, kernels)

    def compiles(self, kernels: str) -> bool:
        """Whether an entry of `kernels` is the model's public code through a compiler."""
        return self._says(kernels, "compiled")

    def patches(self, kernels: str) -> bool:
        """Whether an entry of `kernels` is the model's public code with some operators replaced."""
        return self._says(kernels, "patched")

    def covers(self, name: str, kernels: str) -> bool:
        """Whether an entry of `kernels` changes a record at all: one that names families leaves others as they are."""
        return not kernels or name in flattened(self._kernels, kernels).get("families", (name,))

    def lies_over(self, kernels: str) -> bool:
        """Whether an entry of `kernels` changes the model's public code instead of replacing it by fused kernels."""
        found = self._over.get(kernels)
        if found is None:
            root = kernels
            for _ in self._kernels:
                root = str((self._kernels.get(root) or {}).get("like", root))
            found = self._over[kernels] = root not in ("", FUSED)
        return found

    def _says(self, kernels: str, field: str) -> bool:
        return bool(kernels) and bool(flattened(self._kernels, kernels).get(field))

    def _kept(self, name: str, kernels: str) -> Implementation:
        found = self._built.get((name, kernels))
        if found is None:
            found = self._built[name, kernels] = self._changed(name, kernels) if kernels else self._record(name)
        return found

    def _record(self, name: str) -> Implementation:
        if name not in self._records:
            from difflib import get_close_matches

            near = get_close_matches(name, list(self._records), n=3)
            raise DataError("unknown-implementation", f"no implementation '{name}' in implementations.yaml", "", near)
        return built(Implementation, flattened(self._records, name))

    def _changed(self, name: str, kernels: str) -> Implementation:
        public, entry = self.public(name), flattened(self._kernels, kernels)
        if self.lies_over(kernels):
            changed = {field: value for field, value in entry.items() if field != "families"}
            return replace(public, **changed) if name in entry.get("families", (name,)) else public
        return replace(
            built(Implementation, entry),
            drops_embedding=public.drops_embedding,
            drops_attention=public.drops_attention,
            drops_residual=public.drops_residual,
        )


def flattened(records: Mapping[str, Fields], name: str) -> dict[str, Any]:
    """A record laid over the one that it is `like`.

    Raises:
        KeyError: there is no record of a name, or one is like itself.
    """
    chain = [name]
    while (like := records[chain[-1]].get("like")) is not None:
        if like in chain:
            raise KeyError(like)
        chain.append(like)
    fields: dict[str, Any] = {}
    for each in reversed(chain):
        fields.update(records[each])
    fields.pop("like", None)
    return fields
