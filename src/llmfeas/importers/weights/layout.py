"""The tensors of a language model put in their places, per layer and role, and summed up by what reads them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

from ...catalog.quantization import StoredWeights
from ...record import dataclass, field
from ..tensors import StoredTensor, bytes_by_type
from .roles import EXPERT_ROLES, FROM_STREAM, NO_WEIGHT, TO_STREAM, place_of


@dataclass(slots=True)
class LayoutPart:
    """All tensors of one role in one layer (experts may be stored one by one): the first shape, and sums."""

    shape: tuple[int, ...]
    name: str
    elements: int = 0
    count: int = 0
    has_bias: bool = False
    bias_elements: int = 0


@dataclass(slots=True)
class StoredLayer:
    """Stored bytes of one layer: all, its routed experts, its norms and biases."""

    total: int = 0
    routed: int = 0
    vectors: int = 0


@dataclass(slots=True)
class TensorLayout:
    """A model's tensors by layer and role."""

    top: dict[str, LayoutPart] = field(default_factory=dict)
    layers: dict[int, dict[str, LayoutPart]] = field(default_factory=dict)
    layer_bytes: dict[int, StoredLayer] = field(default_factory=dict)
    top_bytes: dict[str, int] = field(default_factory=dict)
    buffers: int = 0
    other: int = 0
    """Elements of encoders of images or sound."""
    idle_bytes: int = 0
    """Stored bytes that a run on text does not use: those encoders, and multi-token prediction."""
    nextn: dict[int, int] = field(default_factory=dict)
    """Layers that belong to multi-token prediction, with their elements."""
    unknown: list[str] = field(default_factory=list)
    """Tensors whose names say nothing known."""

    def anywhere(self, role: str) -> LayoutPart | None:
        """The first layer's tensor of a role, None where no layer has one."""
        return next((parts[role] for _, parts in sorted(self.layers.items()) if role in parts), None)

    def width(self, role: str, axis: int) -> int | None:
        """One side of the first tensor of a role, None where no layer has one or it is no matrix."""
        part = self.anywhere(role)
        return part.shape[axis] if part is not None and len(part.shape) >= 2 else None


def layout_of(tensors: Iterable[StoredTensor]) -> TensorLayout:
    """Sort tensors by what they are for. What no rule knows is listed in `unknown`."""
    layout = TensorLayout()
    for tensor in tensors:
        layer, role, part = place_of(tensor.name)
        if role in NO_WEIGHT:
            layout.buffers += tensor.elements
        if role is None:
            layout.unknown.append(tensor.name)
        if role == "other":
            layout.other += tensor.elements
            layout.idle_bytes += tensor.bytes
        elif layer is not None:
            _add_to_layer(layout, layer, role, part, tensor)
        elif role is not None:
            _add(layout.top, role, part, tensor)
            if part == "weight":
                layout.top_bytes[role] = layout.top_bytes.get(role, 0) + tensor.bytes
    _set_prediction_layers_aside(layout)
    _turn_matrices(layout)
    return layout


def _add_to_layer(layout: TensorLayout, layer: int, role: str | None, part: str, tensor: StoredTensor) -> None:
    """Add a tensor to its layer; of what has no role, the bytes."""
    parts = layout.layers.setdefault(layer, {})
    sums = layout.layer_bytes.setdefault(layer, StoredLayer())
    sums.total += tensor.bytes
    if role is None:
        return
    _add(parts, role, part, tensor)
    if role in EXPERT_ROLES:
        sums.routed += tensor.bytes
    elif part == "bias" or len(tensor.shape) < 2:
        sums.vectors += tensor.bytes


def _add(parts: dict[str, LayoutPart], role: str, kind: str, tensor: StoredTensor) -> None:
    part = parts.get(role)
    if part is None:
        part = parts[role] = LayoutPart(tensor.shape, tensor.name)
    if kind == "bias":
        part.has_bias = True
        part.bias_elements += tensor.elements
        return
    if not part.count:
        part.shape, part.name = tensor.shape, tensor.name
    part.elements += tensor.elements
    part.count += 1


def _turn_matrices(layout: TensorLayout) -> None:
    """Bring every matrix of a layer into the order [outputs, inputs].

    GPT-2 stores its own the other way round, bitsandbytes stores them flat; one side of each is the model's width.
    """
    table, projected = layout.top.get("token_embd"), layout.top.get("project_in")
    source = table if projected is None else projected
    if source is None or len(source.shape) != 2 or 0 in source.shape:
        return
    hidden = source.shape[0] if source is projected else source.shape[1]
    for parts in layout.layers.values():
        for role, part in parts.items():
            if role in FROM_STREAM:
                part.shape = _turned(part.shape, hidden, 1)
            elif role in TO_STREAM:
                part.shape = _turned(part.shape, hidden, 0)


def _turned(shape: tuple[int, ...], hidden: int, axis: int) -> tuple[int, ...]:
    if len(shape) != 2 or shape[axis] == hidden:
        return shape
    if shape[1 - axis] == hidden:
        return shape[::-1]
    other, rest = divmod(shape[0] * shape[1], hidden)
    if shape[1] == 1 and other and not rest:
        return (other, hidden) if axis else (hidden, other)
    return shape


def _set_prediction_layers_aside(layout: TensorLayout) -> None:
    """Take layers of multi-token prediction out: the model's own layers come before them."""
    for index in [index for index, parts in layout.layers.items() if "nextn" in parts]:
        parts = layout.layers.pop(index)
        layout.idle_bytes += layout.layer_bytes.pop(index).total
        layout.nextn[index] = sum(part.elements + part.bias_elements for part in parts.values())


Formats = Container[str]
"""Names of formats that a file can stand for."""

NOMINAL_BITS = {"safetensors": {"gptq-int4": 4.2, "gptq-int8": 8.2, "none": 16.0}, "gguf": {
    "q2_k": 3.0, "q3_k_m": 3.91, "q4_0": 4.55, "q4_k_s": 4.58, "q4_k_m": 4.85, "q5_k_m": 5.69, "q6_k": 6.57,
    "q8_0": 8.5,
}}  # fmt: skip
"""Bits per weight of a whole file in these mixes. Source: sizes of Llama 3 files, llama.cpp quantize README."""


def stored_weights(
    tensors: Sequence[StoredTensor],
    layout: TensorLayout,
    formats: Formats,
    container: str,
    label: str,
    file_bytes: int,
    by_type: tuple[tuple[str, int], ...] | None = None,
) -> StoredWeights:
    """Sum up a model's tensors by what reads them; `label` names the format that is stored, "none" where plain."""
    total = sum(tensor.bytes for tensor in tensors)
    table = layout.top_bytes.get("token_embd", 0)
    head = layout.top_bytes.get("output", 0)
    tables = layout.top_bytes.get("position_embd", 0) + (table if head else 0)
    indices = sorted(layout.layers)
    layers = tuple(layout.layer_bytes[index].total for index in indices)
    return StoredWeights(
        quant=_format(formats, container, label, 8 * total / max(1, sum(tensor.elements for tensor in tensors))),
        container=container,
        label=label,
        by_type=bytes_by_type(tensors) if by_type is None else by_type,
        file_bytes=file_bytes,
        tables=tables,
        head=head or table,
        rest=total - tables - (head or table) - sum(layers) - layout.idle_bytes,
        idle=layout.idle_bytes,
        layers=layers,
        routed=tuple(layout.layer_bytes[index].routed for index in indices),
        layer_vectors=tuple(layout.layer_bytes[index].vectors for index in indices),
    )


def _format(formats: Formats, container: str, label: str, bits: float) -> str:
    """The format of this name, else that of its kind of file which is nearest in bits per weight."""
    if label in formats:
        return label
    nominal = NOMINAL_BITS[container]
    return min(nominal, key=lambda name: abs(nominal[name] - bits))


def identifier(name: str) -> str:
    """Make a catalog id of a name: lower case letters, digits, dots and dashes."""
    plain = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")
    return plain[:100] or "model"
