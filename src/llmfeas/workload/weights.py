"""Bytes of a model's weights in a storage format: in memory, on disk, and read for one decoded token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from ..catalog.architecture import Architecture, Model
from ..catalog.device import FULL_PRECISION
from ..catalog.quantization import NATIVE, Encoding, Format, Quantization, StoredWeights, chosen
from ..model.build import Tape, build
from ..model.layer import Layer
from ..model.operator import Operator
from ..model.weight import Weight
from ..record import dataclass
from .parameters import block_parameters

DTYPE_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}

WITH_TOWERS = ("native", "bitsandbytes")
"""Kinds of formats whose files hold a model's towers; others convert the language model alone."""

ROLES = {
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "qkv": "attn_qkv",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "gate_up": "ffn_up",
    "down": "ffn_down",
    "expert_up": "ffn_up",
    "expert_down": "ffn_down",
    "router": "router",
    "shared_gate": "router",
    "conv": "vector",
    "input_gate": "vector",
    "decay_gate": "vector",
    "positions": "vector",
    "relative": "vector",
    "decay": "vector",
    "embedding": "embedding",
    "layer_embedding": "embedding",
    "ngram": "embedding",
    "head": "head",
}
"""The role by which formats choose an encoding, of each of the tape's matrices; others take the format's base."""


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """Bytes of one layer's weights by what they divide over."""

    split: float = 0.0
    """Divides over tensor-parallel ranks."""
    routed: float = 0.0
    """Routed experts: divides over tensor- and expert-parallel ranks."""
    whole: float = 0.0
    """On every rank."""

    @property
    def total(self) -> float:
        """All of the layer."""
        return self.split + self.routed + self.whole

    def part(self, share: float) -> LayerBytes:
        """So much of it."""
        return LayerBytes(share * self.split, share * self.routed, share * self.whole)

    def on_rank(self, tp: int, expert_ranks: float) -> float:
        """The bytes of one rank, where `expert_ranks` share the routed experts (ep x the tp of an expert)."""
        return self.split / tp + self.routed / expert_ranks + self.whole


@dataclass(frozen=True)
class WeightBytes:
    """Bytes of stored weights by what reads them."""

    tables: float
    """Looked up, one row a token: an untied token embedding, learned positions, n-gram tables."""
    head: float
    """The matrix that makes the logits, also where the token embedding shares it."""
    rest: float
    """Final norm, projections around the layers."""
    layers: tuple[LayerBytes, ...]
    """What each layer adds to those before it: what layers share counts where it is first run."""
    again: tuple[tuple[int, LayerBytes], ...] = ()
    """For each layer the first one that runs what it shares, and what that one holds for it; empty: none shares."""
    reader: float = 0.0
    """The encoder of an encoder-decoder, with the keys and values that it makes: not read for a decoded token."""

    @cached_property
    def total(self) -> float:
        """All weights."""
        return self.tables + self.head + self.rest + self.reader + sum(layer.total for layer in self.layers)

    @cached_property
    def read(self) -> float:
        """What a decoded token's pass reads if it reaches all experts: all but look-up tables.

        What layers share is read for each of them: no cache keeps it while those between them run.
        """
        return self.total - self.tables - self.reader + sum(run.total for _, run in self.again)

    def held_again(self, first: int, end: int) -> tuple[LayerBytes, ...]:
        """What layers `first` to `end` run of what only layers before them hold: a device of their own has it too."""
        elsewhere = {self.again[place][0]: place for place in reversed(range(first, end)) if self.again}
        return tuple(self.again[place][1] for start, place in elsewhere.items() if start < first)

    @cached_property
    def routed(self) -> float:
        """Those of all routed experts."""
        return sum(layer.routed for layer in self.layers)


def native_bytes(precision: str) -> float:
    """The bytes of one unquantized weight as it is read: 4 in fp32 and tf32, else 2."""
    return 4.0 if precision in FULL_PRECISION else 2.0


@lru_cache(maxsize=4096)
def weight_bytes(
    table: Quantization,
    architecture: Architecture,
    quant: str = "none",
    dialect: str = "",
    native: float = 2.0,
    stored: StoredWeights | None = None,
) -> WeightBytes:
    """The bytes of the weights as an engine of a dialect holds them under `--quant quant`.

    The file's own bytes where it is one that holds them in this format (`stored`), else computed:

    Each matrix takes the encoding that the format's rules give it, or its fallback where a row is no multiple of the
    block; `native` is the size of an unquantized weight in bytes. Source: data/quantization.yaml.

    Raises:
        UsageError: no such format.
    """
    if stored is not None and stored.serves(quant, native) and (found := _in_file(stored, build(architecture))):
        return found
    meant = table.format(quant, dialect)
    apart = meant is not table.formats[meant.id]
    return _computed(table, architecture, quant if apart else meant.id, dialect if apart else "", native)


@lru_cache(maxsize=4096)
def _computed(table: Quantization, architecture: Architecture, quant: str, dialect: str, native: float) -> WeightBytes:
    """The same for all dialects that run one format under this name."""
    sizes = _Sizes(table, table.format(quant, dialect), architecture, native)
    tape = build(architecture)
    edges = [weight for operator in (*tape.before, *tape.after) for weight in operator.weights]
    if sizes.format.kind not in WITH_TOWERS:
        edges = [weight for weight in edges if not weight.frozen]
    heads = [weight for weight in edges if ROLES.get(weight.name) == "head"]
    lookups = [weight for weight in edges if weight.is_matrix and not weight.uses]
    if architecture.tied:
        lookups = [weight for weight in lookups if weight.name != "embedding"]
    others = [w for w in edges if w not in heads and not (w.is_matrix and not w.uses)]
    reader = architecture.reader
    layers, again = _layers(sizes, architecture)
    return WeightBytes(
        tables=sum(sizes.tensor(weight, 0) for weight in lookups),
        head=sum(sizes.matrix(weight.shape, "head", 0) for weight in heads),
        rest=sum(sizes.tensor(weight, 0) for weight in others),
        layers=layers,
        again=again,
        reader=0.0 if reader is None else weight_bytes(table, reader, quant, dialect, native).total,
    )


def _in_file(stored: StoredWeights, tape: Tape) -> WeightBytes | None:
    """The bytes of a file; None where its layers are not those of the tape."""
    parts = zip(stored.layers, stored.routed, stored.layer_vectors, strict=True)
    layers = [LayerBytes(whole - routed - vectors, routed, vectors) for whole, routed, vectors in parts]
    held = [index for index in range(len(tape.layers)) if tape.held_in(index)]
    if len(layers) != len(held):
        return None
    if not tape.shares:
        return WeightBytes(stored.tables, stored.head, stored.rest, tuple(layers))
    of_place = dict(zip(held, layers, strict=True))
    added = tuple(of_place.get(index, LayerBytes()) for index in range(len(tape.layers)))
    again = tuple(
        (first, LayerBytes() if first == index else added[first].part(_shared_part(tape.layer(index))))
        for index, first in enumerate(tape.first_runs)
    )
    return WeightBytes(stored.tables, stored.head, stored.rest, added, again)


def _shared_part(layer: Layer) -> float:
    """Of the parameters of a layer those that other layers run too."""
    shared, whole = (
        sum(weight.elements for operator in operators for weight in operator.weights)
        for operators in (layer.shared, layer.operators)
    )
    return shared / whole


def _layers(sizes: _Sizes, a: Architecture) -> tuple[tuple[LayerBytes, ...], tuple[tuple[int, LayerBytes], ...]]:
    """What each layer adds, and, where layers share, the first one that runs it with what it then holds for them."""
    tape = build(a)
    layers = _of_kinds(sizes, a)
    if not tape.shares:
        return layers, ()
    added, again = list(layers), []
    for index, first in enumerate(tape.first_runs):
        if first != index:
            added[index] = _layer(sizes, tape.held_in(index), index)
        again.append((first, LayerBytes() if first == index else _layer(sizes, tape.layer(index).shared, first)))
    return tuple(added), tuple(again)


def _of_kinds(sizes: _Sizes, a: Architecture) -> tuple[LayerBytes, ...]:
    tape = build(a)
    kinds = [layer.operators for layer, _ in tape.kinds]
    if not sizes.format.rules:
        same = [_layer(sizes, operators, 0) for operators in kinds]
        return tuple(same[kind] for kind in tape.layers)
    # Rules tell layers apart by their place alone: those that they choose alike get the same encodings.
    choices = [*{rule.layers: None for rule in sizes.format.rules if rule.layers != "all"}]
    found: dict[tuple[object, ...], LayerBytes] = {}
    layers = []
    for index, kind in enumerate(tape.layers):
        alike = kind, *(chosen(choice, index, a.own_layers) for choice in choices)
        if alike not in found:
            found[alike] = _layer(sizes, kinds[kind], index)
        layers.append(found[alike])
    return tuple(layers)


def _weights(operators: Iterable[Operator]) -> Iterator[Weight]:
    return (weight for operator in operators for weight in operator.weights)


def _role(weight: Weight) -> tuple[str, bool]:
    """What a format's rules see of a weight: its role, and whether it belongs to routed experts."""
    return (ROLES.get(weight.name, "other") if weight.is_matrix else "vector"), weight.split == "expert"


def _layer(sizes: _Sizes, operators: Iterable[Operator], index: int) -> LayerBytes:
    parts = {"tensor": 0.0, "expert": 0.0, "none": 0.0}
    for weight in _weights(operators):
        parts[weight.split] += sizes.tensor(weight, index)
    return LayerBytes(parts["tensor"], parts["expert"], parts["none"])


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of single tensors of one model in one format."""

    quantization: Quantization
    format: Format
    architecture: Architecture
    native: float

    def tensor(self, weight: Weight, layer: int) -> float:
        """Bytes of a tensor of the tape in layer `layer` (from 0), all copies."""
        role, routed = _role(weight)
        if role == "vector":
            return weight.elements * self._encoding(self.format.vectors).bytes
        return weight.copies * self.matrix(weight.shape, role, layer, routed=routed)

    def matrix(self, shape: tuple[int, ...], role: str, layer: int, *, routed: bool = False) -> float:
        """Bytes of one matrix (outputs, inputs)."""
        rows, columns = shape
        name = self.format.encoding_of(role, routed, layer, self.architecture)
        base = self.quantization.encodings.get(self.format.base)
        if role == "head" and self.format.head_fallback and base is not None and columns % base.block:
            name = self.format.head_fallback
        return self._encoding(self.quantization.fitting(name, columns)).matrix_bytes(rows, columns)

    def _encoding(self, name: str) -> Encoding:
        return Encoding(block=1, bytes=self.native) if name == NATIVE else self.quantization.encodings[name]


@lru_cache(maxsize=4096)
def layer_weight_bytes(table: Quantization, architecture: Architecture, quant: str, dialect: str = "") -> float:
    """The mean bytes of a weight of the layers in a format, with scales, and norms as they are."""
    elements = sum(kind.repeat * kind.total for kind in block_parameters(architecture))
    return sum(layer.total for layer in weight_bytes(table, architecture, quant, dialect).layers) / elements


def weights_file_bytes(
    table: Quantization, model: Model, precision: str, quant: str = "none", dialect: str = ""
) -> float:
    """The bytes of the model's weights as stored on disk.

    GGUF files hold what is run, plus the vocabulary; formats that are made while loading (nf4, LLM.int8) and
    unquantized runs read the published type of the weights. Prediction heads in no other count are left out.
    """
    form = table.format(quant, dialect)
    if form.container == "gguf":
        stored = weight_bytes(table, model.architecture, form.id, "", native_bytes(precision)).total
        return stored + table.gguf_metadata_bytes_per_token * model.architecture.vocab
    return weight_bytes(table, model.architecture, form.stored or form.id, "", DTYPE_BYTES[model.dtype]).total


@lru_cache(maxsize=4096)
def distinct_experts(architecture: Architecture, tokens: float) -> float:
    """The expected number of different routed experts in a layer that `tokens` tokens reach.

    Formula: E (1 - (1 - k / E)^tokens), k the real experts a token reaches on average. Assumes even routing.
    """
    experts = architecture.experts
    if experts is None:
        return 0.0
    share = (experts.expected_real or experts.top_k) / experts.count
    return experts.count * (1.0 - (1.0 - share) ** tokens) if share < 1 else float(experts.count)


def decode_read_bytes(weights: WeightBytes, architecture: Architecture, sequences: float = 1.0) -> float:
    """The bytes of weights that one decoding step of `sequences` sequences reads, without look-up tables.

    Formula: head + rest + layers - routed (1 - distinct / E). Source: data/quantization.yaml.
    """
    experts = architecture.experts
    if experts is None:
        return weights.read
    return weights.read - weights.routed * (1.0 - distinct_experts(architecture, sequences) / experts.count)
