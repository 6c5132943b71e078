"""How weights are stored: encodings by block, which of them a format gives which tensors, what a file really holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Literal

from ..errors import UsageError
from ..record import dataclass, replace
from .architecture import Architecture
from .files import told
from .records import Built
from .types import Count, CountOrZero, Identifier, Positive, PositiveOrZero, Strict

Layers = Literal["all", "more_bits", "first_eighth", "first_sixteenth", "first_two", "first_four", "middle"]
NarrowUnit = Literal["fp8", "int8", "fp4"]
NATIVE = "native"
"""The encoding that is no quantization: the type of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding(Strict):
    """How a matrix is stored: blocks along its rows, with scales and offsets inside."""

    block: Count
    bytes: Positive
    row_bytes: PositiveOrZero = 0.0
    column_bytes: PositiveOrZero = 0.0
    table_bytes: PositiveOrZero = 0.0
    """What each matrix has beside: codebooks."""
    fallback: str = ""
    """Encoding of rows that the block does not divide; empty: every row will do."""

    def matrix_bytes(self, rows: float, columns: int) -> float:
        """The bytes of a matrix of `rows` x `columns`; a last block of a row that is not full counts by its share.

        Formula: rows x columns x bytes / block + rows x row_bytes + columns x column_bytes + table_bytes.
        """
        of_rows = rows * (columns * self.bytes / self.block + self.row_bytes)
        return of_rows + columns * self.column_bytes + self.table_bytes

    @property
    def bits(self) -> float:
        """Bits of one weight, without what each row, column or matrix adds."""
        return 8.0 * self.bytes / self.block


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Strict):
    """An exception of a format: where it applies, the encoding becomes `encoding`."""

    tensors: tuple[str, ...]
    encoding: str
    routed: bool = False
    layers: Layers = "all"
    was: tuple[str, ...] = ()
    min_gqa: CountOrZero = 0
    experts: int | None = None
    not_experts: int | None = None
    min_experts: CountOrZero = 0
    layer_count: int | None = None

    def applies(self, role: str, routed: bool, layer: int, encoding: str, architecture: Architecture) -> bool:
        """Whether a tensor of this role in this layer (from 0) is meant."""
        experts = architecture.experts.count if architecture.experts else 0
        held = architecture.own_layers
        return (
            role in self.tensors
            and (routed or not self.routed)
            and (not self.was or encoding in self.was)
            and self.min_gqa * architecture.kv_heads <= architecture.heads
            and self.experts in (None, experts)
            and (self.not_experts is None or self.not_experts != experts)
            and self.min_experts <= experts
            and self.layer_count in (None, held)
            and chosen(self.layers, layer, held)
        )


STACKED = "transformers-5"
"""Dialect of public code that stacks experts in one tensor, which formats with `skips_stacks` leave as it is."""
LEFT_OUT = Rule(tensors=("ffn_gate", "ffn_up", "ffn_down"), encoding=NATIVE, routed=True)
"""What becomes of such experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Strict):
    """A value of `--quant`: the encodings of a model's tensors, and who can use them."""

    id: Identifier
    kind: Identifier
    """What it shares with others of one family."""
    base: Identifier
    head: str = NATIVE
    head_fallback: str = ""
    embedding: str = NATIVE
    router: str = NATIVE
    vectors: str = NATIVE
    embedding_on: Literal["device", "host"] = "device"
    rules: tuple[Rule, ...] = ()
    under: Mapping[str, str] | None = None
    """By dialect of an engine the format that it runs under this name."""
    stored: str = ""
    container: Literal["", "gguf"] = ""
    skips_stacks: bool = False
    spread: float = 0.0
    """Standard deviation of the logarithm of a file's size where files of one name differ from model to model."""
    units: tuple[NarrowUnit, ...] = ()
    """Narrow units that its products may run on, beside 16-bit ones."""
    tasks: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    source: str = ""
    notes: str = ""

    def encoding_of(self, role: str, routed: bool, layer: int, architecture: Architecture) -> str:
        """Name the encoding of a matrix of this role in this layer (from 0)."""
        named = {"router": self.router, "head": self.head, "embedding": self.embedding}.get(role)
        if named is not None:
            return named
        encoding = self.base
        for rule in self.rules:
            if rule.applies(role, routed, layer, encoding, architecture):
                encoding = rule.encoding
        return encoding


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Quantization(Strict):
    """All encodings and formats. Compared by identity, so that what is derived from it can be cached."""

    as_of: str = ""
    encodings: Mapping[str, Encoding]
    formats: Mapping[str, Format]
    """By name and by other names."""
    gguf_metadata_bytes_per_token: PositiveOrZero

    def check(self) -> None:
        """Refuse a name that leads nowhere.

        Raises:
            ValueError: naming where it stands.
        """
        for key, form in self.formats.items():
            places = (form.base, form.head, form.head_fallback, form.embedding, form.router, form.vectors)
            encodings = (*places, *(rule.encoding for rule in form.rules))
            wrong = next((name for name in encodings if name not in self.encodings and name not in ("", NATIVE)), None)
            if wrong is not None:
                raise ValueError(f"formats.{key} names the encoding '{wrong}', which there is not")
            formats = (form.stored, *(form.under or {}).values())
            wrong = next((name for name in formats if name and name not in self.formats), None)
            if wrong is not None:
                raise ValueError(f"formats.{key} names the format '{wrong}', which there is not")
        for key, encoding in self.encodings.items():
            if encoding.fallback and encoding.fallback not in self.encodings:
                raise ValueError(f"encodings.{key} names the encoding '{encoding.fallback}', which there is not")

    def format(self, quant: str, dialect: str = "") -> Format:
        """The format that an engine of a dialect runs when asked for `quant`.

        Raises:
            UsageError: no such format.
        """
        known = self.formats.get(quant)
        if known is not None and dialect == STACKED and known.skips_stacks:
            return replace(known, rules=(*known.rules, LEFT_OUT))
        if known is None:
            from difflib import get_close_matches

            near = get_close_matches(quant, list(self.formats), n=3)
            raise UsageError("unknown-quant", f"unknown quantization '{quant}'", "See --help for --quant.", near)
        other = (known.under or {}).get(dialect)
        return self.formats[other] if other else known

    def encoded_bits(self, quant: str) -> tuple[float, ...]:
        """Bits of a weight in each encoding of a format, the common one first; 16 where nothing is quantized."""
        return _encoded_bits(self, quant)

    def fitting(self, encoding: str, columns: int) -> str:
        """The encoding, or its fallbacks, whose block divides rows of this many columns."""
        entry = self.encodings.get(encoding)
        while entry is not None and entry.fallback and columns % entry.block:
            encoding = entry.fallback
            entry = self.encodings.get(encoding)
        return encoding


@lru_cache(maxsize=256)
def _encoded_bits(quantization: Quantization, quant: str) -> tuple[float, ...]:
    if quant == "none":
        return (16.0,)
    form, encodings = quantization.formats[quant], quantization.encodings
    names = (form.base, *(rule.encoding for rule in form.rules))
    return tuple(encodings[name].bits for name in names if name in encodings) or (16.0,)


def chosen(layers: Layers, layer: int, count: int) -> bool:
    """Whether a layer (from 0) belongs to the named choice; eighths are rounded down as llama.cpp does."""
    eighth = count // 8
    if layers == "all":
        return True
    if layers == "more_bits":
        return layer < eighth or layer >= 7 * count // 8 or (layer - eighth) % 3 == 2
    if layers == "middle":
        return eighth <= layer < 7 * count // 8
    firsts = {"first_eighth": eighth, "first_sixteenth": count // 16, "first_two": 2, "first_four": 4}
    return layer < firsts[layers]


def expanded(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A loaded data/quantization.yaml with every format whole, under its name and its other ones.

    Raises:
        KeyError, TypeError: a section is missing, or a name leads nowhere.
    """
    formats = raw["formats"]
    owners: dict[str, str] = {}
    for name in formats:
        owners |= dict.fromkeys((name, *(told(formats, name, "aliases") or ())), name)
    kept = {name: value for name, value in raw.items() if name not in ("kinds", "rule_sets")}
    return {**kept, "formats": Built(owners, partial(_whole, raw))}


def _whole(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    entry = raw["formats"][name]
    merged = {**raw["kinds"][entry["kind"]], **entry, "id": name}
    merged["rules"] = [rule for part in merged.get("rules", ()) for rule in raw["rule_sets"][part]]
    for place in ("head", "embedding", "router"):
        merged[place] = merged["base"] if merged.get(place) == "base" else merged.get(place, NATIVE)
    return merged


PLAIN_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0}
"""Types of tensors that are not quantized -> bytes of an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWeights:
    """Bytes of the tensors of a model's file, read from its header, by what reads them.

    `tables`, `head`, `rest`, `layers`, `routed` and `layer_vectors` mean what they mean in `estimate.weights`, with
    scales, zero points and block overheads, without header and padding. Hashable, so that it can key a cache.
    """

    quant: str
    """The name in data/quantization.yaml of what is stored, or the nearest by bits; "none": nothing is quantized."""
    container: str
    """The kind of file: `gguf` or `safetensors`."""
    label: str
    """What is stored in the file's own words, such as `iq3_xxs`, `q4_k_m` or `awq-int4`."""
    by_type: tuple[tuple[str, int], ...]
    """Bytes by type of tensor, largest first."""
    file_bytes: int
    """The files on disk, all parts together."""
    tables: int
    """Looked up, one row a token: an untied token embedding, learned positions."""
    head: int
    """The matrix that makes the logits, also where the token embedding shares it."""
    rest: int
    """Final norm, projections around the layers."""
    layers: tuple[int, ...]
    routed: tuple[int, ...]
    """The part of `layers` that is routed experts."""
    layer_vectors: tuple[int, ...]
    """Norms and biases of each layer, part of `layers`."""
    idle: int = 0
    """Not run for text: multi-token prediction, encoders of images and sound."""

    @property
    def total(self) -> int:
        """All tensors."""
        return self.tables + self.head + self.rest + self.idle + sum(self.layers)

    def serves(self, quant: str, native: float) -> bool:
        """Whether a run in this format, with unquantized weights of `native` bytes, holds what the file holds."""
        if quant != self.quant:
            return False
        return quant != "none" or PLAIN_BYTES.get(self.by_type[0][0] if self.by_type else "") == native
