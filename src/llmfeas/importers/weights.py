"""What is stored, summed up: bytes by part of the model, and the format of `--quant` that comes nearest."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from ..catalog.stored import StoredWeights
from .layout import TensorLayout
from .tensors import StoredTensor, bytes_by_type

Formats = Container[str]
"""Names of formats that a file can stand for."""

NOMINAL_BITS = {
    "q2_k": 3.0, "q3_k_m": 3.91, "q4_0": 4.55, "q4_k_s": 4.58, "q4_k_m": 4.85, "q5_k_m": 5.69, "q6_k": 6.57,
    "q8_0": 8.5,
}  # fmt: skip
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
        quant=_format(formats, label, 8 * total / max(1, sum(tensor.elements for tensor in tensors))),
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


def _format(formats: Formats, label: str, bits: float) -> str:
    """The format of this name, else the mix of llama.cpp that is nearest in bits per weight."""
    if label in formats:
        return label
    return min(NOMINAL_BITS, key=lambda name: abs(NOMINAL_BITS[name] - bits))


def identifier(name: str) -> str:
    """Make a catalog id of a name: lower case letters, digits, dots and dashes."""
    plain = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")
    return plain[:100] or "model"
