"""How weights are stored: encodings by block, and which tensors of a model a format gives which encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar, cast

from ..errors import UsageError
from ..record import dataclass
from .architecture import Architecture

Layers = Literal["all", "more_bits", "first_eighth", "first_sixteenth", "first_two", "first_four", "middle"]
NATIVE = "native"
"""The encoding that is no quantization: the type of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How a matrix is stored: blocks along its rows, with scales and offsets inside."""

    block: int
    bytes: float
    row_bytes: float = 0.0
    column_bytes: float = 0.0
    fallback: str = ""
    """Encoding of rows that the block does not divide; empty: every row will do."""

    def matrix_bytes(self, rows: float, columns: int) -> float:
        """Give the bytes of a matrix of `rows` x `columns`; a last block of a row that is not full counts by its share.

        Formula: rows x columns x bytes / block + rows x row_bytes + columns x column_bytes.
        """
        return rows * (columns * self.bytes / self.block + self.row_bytes) + columns * self.column_bytes

    @property
    def bits(self) -> float:
        """Bits of one weight, without what each row or column adds."""
        return 8.0 * self.bytes / self.block


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An exception of a format: where it applies, the encoding becomes `encoding`."""

    tensors: tuple[str, ...]
    encoding: str
    routed: bool = False
    layers: Layers = "all"
    was: tuple[str, ...] = ()
    min_gqa: int = 0
    experts: int | None = None
    not_experts: int | None = None
    min_experts: int = 0
    layer_count: int | None = None

    def applies(self, role: str, routed: bool, layer: int, encoding: str, architecture: Architecture) -> bool:
        """Tell whether a tensor of this role in this layer (from 0) is meant."""
        experts = architecture.experts.count if architecture.experts else 0
        return (
            role in self.tensors
            and (routed or not self.routed)
            and (not self.was or encoding in self.was)
            and self.min_gqa * architecture.kv_heads <= architecture.heads
            and self.experts in (None, experts)
            and (self.not_experts is None or self.not_experts != experts)
            and self.min_experts <= experts
            and self.layer_count in (None, architecture.layers)
            and _chosen(self.layers, layer, architecture.layers)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A value of `--quant`: the encodings of a model's tensors, and who can use them."""

    id: str
    base: str
    head: str = NATIVE
    head_fallback: str = ""
    embedding: str = NATIVE
    router: str = NATIVE
    vectors: str = NATIVE
    embedding_on: Literal["device", "host"] = "device"
    rules: tuple[Rule, ...] = ()
    under: Mapping[str, str] | None = None
    stored: str = ""
    container: Literal["", "gguf"] = ""
    skips_stacks: bool = False
    engines: tuple[str, ...] = ()
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


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """All encodings and formats. Compared by identity, so that what is derived from it can be cached."""

    encodings: Mapping[str, Encoding]
    formats: Mapping[str, Format]
    gguf_metadata_bytes_per_token: float
    engines_like: Mapping[str, str]
    """Engines that take the formats of another one."""

    def format(self, quant: str, engine: str = "") -> Format:
        """Give the format that an engine runs when asked for `quant`.

        Raises:
            UsageError: no such format.
        """
        found = self.formats.get(quant)
        if found is None:
            from difflib import get_close_matches

            near = get_close_matches(quant, list(self.formats), n=3)
            raise UsageError("unknown-quant", f"unknown quantization '{quant}'", "See --help for --quant.", near)
        other = (found.under or {}).get(self.engines_like.get(engine, engine))
        return self.formats[other] if other else found

    def fitting(self, encoding: str, columns: int) -> str:
        """Give the encoding, or its fallbacks, whose block divides rows of this many columns."""
        entry = self.encodings.get(encoding)
        while entry is not None and entry.fallback and columns % entry.block:
            encoding = entry.fallback
            entry = self.encodings.get(encoding)
        return encoding


def _chosen(layers: Layers, layer: int, count: int) -> bool:
    """Tell whether a layer (from 0) belongs to the named choice; eighths are rounded down as llama.cpp does."""
    eighth = count // 8
    if layers == "all":
        return True
    if layers == "more_bits":
        return layer < eighth or layer >= 7 * count // 8 or (layer - eighth) % 3 == 2
    if layers == "middle":
        return eighth <= layer < 7 * count // 8
    firsts = {"first_eighth": eighth, "first_sixteenth": count // 16, "first_two": 2, "first_four": 4}
    return layer < firsts[layers]


def quantization_from_mapping(raw: Mapping[str, object]) -> Quantization:
    """Build the table from a loaded data/quantization.yaml.

    Raises:
        KeyError, TypeError: a section or field is missing or unknown, or a name leads nowhere.
    """
    sections = cast(Mapping[str, Mapping[str, Mapping[str, object]]], raw)
    encodings = {name: _built(Encoding, entry) for name, entry in sections["encodings"].items()}
    sets = {
        name: tuple(_built(Rule, rule) for rule in cast(list[Mapping[str, object]], rules))
        for name, rules in sections["rule_sets"].items()
    }
    kinds = sections["kinds"]
    formats: dict[str, Format] = {}
    for name, entry in sections["formats"].items():
        merged = {**kinds[cast(str, entry["kind"])], **entry, "id": name}
        del merged["kind"]
        rules = tuple(rule for part in cast(list[str], merged.get("rules", [])) for rule in sets[part])
        base = cast(str, merged["base"])
        for place in ("head", "embedding", "router"):
            merged[place] = base if merged.get(place) == "base" else merged.get(place, NATIVE)
        built = _built(Format, {**merged, "rules": rules})
        for key in (name, *built.aliases):
            formats[key] = built
    per_token = cast(float, raw["gguf_metadata_bytes_per_token"])
    return Quantization(encodings, formats, per_token, cast(Mapping[str, str], raw.get("engines_like", {})))


_T = TypeVar("_T")


def _built(kind: type[_T], entry: Mapping[str, object]) -> _T:
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
