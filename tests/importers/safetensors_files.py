"""Write small safetensors files: a real header, and weights as a hole in the file."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

from llmfeas.importers.weights.safetensors import BITS


def header(
    tensors: Mapping[str, tuple[Sequence[int], str]], notes: Mapping[str, str] | None = None
) -> tuple[bytes, int]:
    entries: dict[str, object] = {"__metadata__": dict(notes)} if notes else {}
    offset = 0
    for name, (shape, kind) in tensors.items():
        end = offset + prod(shape) * BITS[kind] // 8
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    raw = json.dumps(entries).encode()
    return struct.pack("<Q", len(raw)) + raw, offset


def write(path: Path, tensors: Mapping[str, tuple[Sequence[int], str]], notes: Mapping[str, str] | None = None) -> Path:
    head, weights = header(tensors, notes)
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + weights)
    return path
