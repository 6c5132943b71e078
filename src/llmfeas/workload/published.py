"""The bytes of a published checkpoint whose weights are not here, by what its configuration says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..catalog.architecture import Model
from ..catalog.quantization import StoredWeights
from ..importers.quantized.modules import layer_paths
from ..importers.quantized.schemes import Packing, QuantPlan
from ..importers.tensors import ImportedModel
from ..model.build import Tape, build
from ..model.operator import Operator
from ..model.weight import Weight
from ..record import dataclass, replace
from .weights import DTYPE_BYTES

UNTOUCHED: Final = ("router", "conv", "decay", "relative", "shared_gate")
"""Matrices that no method quantizes: too small, or no linear layers."""


@dataclass(slots=True)
class _PublishedSums:
    """Bytes of the parts of a checkpoint while they are added up."""

    published: QuantPlan
    native: float
    by_type: dict[str, float]

    def of(self, weight: Weight, paths: tuple[str, ...], base: Packing | None) -> float:
        """The bytes of a weight of which `paths` are the modules, all copies."""
        scheme = self._scheme(weight, paths, base)
        if scheme is None:
            kind, held = "native", weight.elements * self.native
        else:
            rows, columns = weight.shape
            kind, held = scheme.label, weight.copies * scheme.encoding.matrix_bytes(rows, columns)
        self.by_type[kind] = self.by_type.get(kind, 0.0) + held
        return held

    def _scheme(self, weight: Weight, paths: tuple[str, ...], base: Packing | None) -> Packing | None:
        if not weight.is_matrix or weight.name in UNTOUCHED:
            return None
        for modules, scheme in self.published.rules:
            if any(modules.hold(path) for path in paths):
                return scheme
        return base


def with_published_bytes(imported: ImportedModel) -> ImportedModel:
    """An imported model with the bytes that its configuration says of weights that are not there."""
    if imported.published is None or imported.stored is not None:
        return imported
    stored = stored_as_published(imported.model, imported.published, imported.predicted)
    return replace(imported, stored=stored, model=replace(imported.model, published_quant=stored.quant))


def stored_as_published(model: Model, published: QuantPlan, predicted: int = 0) -> StoredWeights:
    """What a checkpoint of this model holds where `published` says how, computed from the shapes of its matrices.

    `predicted`: blocks of multi-token prediction behind the layers, as large as the last one, with tables of their own.
    """
    a = model.architecture
    tape = build(a)
    sums = _PublishedSums(published, DTYPE_BYTES[model.dtype], {})
    places = [tape.held_in(index) for index in range(len(tape.layers))]
    layers = [tuple(_layer(sums, operators, index)) for index, operators in enumerate(places)]
    tables, head, rest = _edges(sums, tape, tied=a.tied)
    blocks = [_layer(sums, places[-1], len(places) + index) for index in range(predicted)]
    joints = predicted * sums.native * (2 * a.hidden**2 + 2 * a.vocab * a.hidden)
    idle = joints + sum(size for block in blocks for size, _ in block)
    kinds = sorted(sums.by_type.items(), key=lambda item: -item[1])
    label = next((kind for kind, _ in kinds if kind != "native"), "none")
    vectors = [
        [size for size, weight in layer if not weight.is_matrix and weight.split != "expert"] for layer in layers
    ]
    whole = [sum(size for size, _ in layer) for layer in layers]
    return StoredWeights(
        quant=label,
        container="config",
        label=label,
        by_type=tuple((kind, round(size)) for kind, size in kinds),
        file_bytes=round(tables + head + rest + idle + sum(whole)),
        tables=round(tables),
        head=round(head),
        rest=round(rest),
        idle=round(idle),
        layers=tuple(round(size) for size in whole),
        routed=tuple(round(sum(size for size, weight in layer if weight.split == "expert")) for layer in layers),
        layer_vectors=tuple(round(sum(sizes)) for sizes in vectors),
    )


def _edges(sums: _PublishedSums, tape: Tape, *, tied: bool) -> tuple[float, float, float]:
    """Bytes of look-up tables, of the head (an embedding that it shares counts here), and of what else is outside."""
    published = sums.published
    tables = head = rest = 0.0
    for weight in (weight for operator in (*tape.before, *tape.after) for weight in operator.weights):
        if weight.name == "head":
            head += sums.of(weight, ("lm_head",), published.base if published.head else None)
        elif weight.is_matrix and not weight.uses:
            held = sums.of(weight, ("embed_tokens", weight.name), published.embedding)
            if tied and weight.name == "embedding":
                head += held
            else:
                tables += held
        else:
            rest += sums.of(weight, (weight.name,), None)
    return tables, head, rest


def _layer(sums: _PublishedSums, operators: tuple[Operator, ...], index: int) -> Iterator[tuple[float, Weight]]:
    for operator in operators:
        for weight in operator.weights:
            paths = layer_paths(index, type(operator).__name__, weight.name)
            yield sums.of(weight, paths, sums.published.base), weight
