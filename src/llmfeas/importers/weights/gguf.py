"""GGUF headers, versions 1 to 3, either byte order, single or split: metadata and the list of tensors, no weights.

Format: ggml-org/ggml, docs/gguf.md. Version 1 writes its lengths in 32 bits. Nothing in a file is believed: counts,
lengths and depths have limits that no real model comes near, so a hostile header costs little time and memory.
Types and their numbers: data/gguf.yaml.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from struct import calcsize
from typing import IO, Any

from ...catalog.store import data_file, data_folder
from ...errors import reason_of
from ...record import dataclass
from ...units import MIB
from ..tensors import StoredTensor
from .header import HeaderReader, bad_file, numbered, opened, present

PLAIN_TYPES = frozenset({"f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64"})


@functools.cache
def table() -> Mapping[str, Any]:
    """The file of types and architectures."""
    return data_file(data_folder(), "gguf").data


@functools.cache
def tensor_types() -> Mapping[int, tuple[str, int, int]]:
    """Number in the file -> name, elements of a block, bytes of a block."""
    return {number: (name, block, size) for name, (number, block, size) in table()["tensor_types"].items()}


HEADER_LIMIT = 64 * MIB
MAX_STREAM_BYTES = 2**62
"""Length of a file that nobody told: no header reaches it."""
MAX_TENSORS = 65_536
MAX_KEYS = 4_000
MAX_NAME_BYTES = 1024
MAX_TEXT_BYTES = 4096
MAX_STRINGS = 2_000_000
MAX_LISTS = 50_000
MAX_KEPT_NUMBERS = 65_536
MAX_ELEMENTS = 2**53
MAX_PARTS = 1000

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
SPLIT_NAME = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArrayLength:
    """An array that was passed over: only its length is kept."""

    length: int


@dataclass(slots=True)
class _Budget:
    """What the metadata of one file may still take: texts and lists to walk over, numbers to keep."""

    strings: int = MAX_STRINGS
    lists: int = MAX_LISTS
    numbers: int = MAX_KEPT_NUMBERS


Value = int | float | bool | str | tuple[int | float | bool, ...] | ArrayLength


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What the header of one GGUF model says; of a split one, all parts together."""

    version: int
    metadata: dict[str, Value]
    tensors: tuple[StoredTensor, ...]
    file_bytes: int
    paths: tuple[str, ...]
    weights_present: bool


def read_gguf(path: Path) -> GgufHeader:
    """Read the header of a GGUF file, and of its sister files where it is one part of several.

    Raises:
        DataError: with file, byte offset and reason, where the file is damaged, cut off, hostile or incomplete.
    """
    parts = [_read_part(part) for part in _part_paths(path)]
    first = parts[0]
    if len(parts) == 1:
        return first
    tensors = tuple(tensor for part in parts for tensor in part.tensors)
    promised = first.metadata.get("split.tensors.count")
    if isinstance(promised, int) and promised != len(tensors):
        raise bad_file(path, f"the parts hold {len(tensors)} tensors together, split.tensors.count says {promised}")
    return GgufHeader(
        version=first.version,
        metadata=first.metadata,
        tensors=tensors,
        file_bytes=sum(part.file_bytes for part in parts),
        paths=tuple(text for part in parts for text in part.paths),
        weights_present=all(part.weights_present for part in parts),
    )


def _part_paths(path: Path) -> list[Path]:
    """List the files of one model: itself, or all parts of a split one."""
    match = SPLIT_NAME.match(path.name)
    if match is None:
        return [path]
    count = int(match["parts"])
    if not 1 <= int(match["part"]) <= count <= MAX_PARTS:
        raise bad_file(path, f"part {match['part']} of {match['parts']} is no possible part (at most {MAX_PARTS})")
    hint = "Download all parts into one folder, then give any one of them."
    return present(path, numbered(path, match["stem"], count), "parts", hint)


def _read_part(path: Path) -> GgufHeader:
    try:
        with opened(path) as stream:
            return _header(HeaderReader(path, stream, os.fstat(stream.fileno()).st_size, HEADER_LIMIT))
    except OSError as error:
        raise bad_file(path, f"cannot be read ({reason_of(error)})") from error


def header_of_stream(path: Path, stream: IO[bytes]) -> bytes:
    """The header that a stream begins with, as it is written: read little further than it reaches.

    Raises:
        DataError: it is none, is damaged, or is longer than `HEADER_LIMIT`; `path` is what messages call it.
    """
    reader = HeaderReader(path, stream, MAX_STREAM_BYTES, HEADER_LIMIT)
    _header(reader)
    return reader.passed


def _header(reader: HeaderReader) -> GgufHeader:
    if reader.bytes(4, "the magic number") != b"GGUF":
        reader.fail("no GGUF file (it does not start with the letters GGUF)", 0)
    version = reader.integer("I", "the version")
    if version & 0xFFFF == 0:
        reader.order = ">"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in (1, 2, 3):
        reader.fail(f"version {version} of GGUF is not known (1 to 3 are)", 4)
    length = "I" if version == 1 else "Q"
    tensor_count = _count(reader, length, "tensors", MAX_TENSORS)
    key_count = _count(reader, length, "metadata keys", MAX_KEYS)
    metadata = _metadata(reader, length, key_count)
    infos = [_tensor_info(reader, length) for _ in range(tensor_count)]
    names = {info[0].name for info in infos}
    if len(names) != len(infos):
        reader.fail("two tensors have the same name")
    whole = _whole_bytes(reader, metadata, infos)
    tensors = tuple(info[0] for info in infos)
    return GgufHeader(version, metadata, tensors, max(whole, reader.size), (str(reader.path),), whole <= reader.size)


def _count(reader: HeaderReader, code: str, what: str, limit: int) -> int:
    at = reader.position
    count = reader.integer(code, f"the number of {what}")
    if count > limit:
        reader.fail(f"{count} {what} is more than any model has (limit {limit})", at)
    return count


def _text(reader: HeaderReader, code: str, what: str, limit: int) -> str:
    at = reader.position
    length = reader.integer(code, f"the length of {what}")
    if length > limit:
        reader.fail(f"{what} of {length} bytes is too long (limit {limit})", at)
    raw = reader.bytes(length, what)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        reader.fail(f"{what} is not valid UTF-8", reader.position - length + error.start)


def _metadata(reader: HeaderReader, length: str, count: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    budget = _Budget()
    for _ in range(count):
        at = reader.position
        key = _text(reader, length, "a metadata key", MAX_NAME_BYTES)
        if key in metadata:
            reader.fail(f"metadata key {key!r} occurs twice", at)
        metadata[key] = _value(reader, length, key, budget)
    return metadata


def _value(reader: HeaderReader, length: str, key: str, budget: _Budget) -> Value:
    at = reader.position
    kind = reader.integer("I", f"the type of {key!r}")
    if kind == STRING:
        return _string_value(reader, length, key)
    if kind == ARRAY:
        return _array(reader, length, key, budget, 1)
    code = SCALARS.get(kind)
    if code is None:
        reader.fail(f"metadata key {key!r} has the unknown type {kind}", at)
    return reader.scalar(code, repr(key))


def _string_value(reader: HeaderReader, length: str, key: str) -> Value:
    """Keep a text of up to 4 KiB; pass over a longer one (chat templates, embedded tokenizers)."""
    at = reader.position
    count = reader.integer(length, f"the length of {key!r}")
    if count > MAX_TEXT_BYTES:
        reader.need(count, repr(key))
        return ArrayLength(count)
    reader.position = at
    return _text(reader, length, repr(key), MAX_TEXT_BYTES)


def _array(reader: HeaderReader, length: str, key: str, budget: _Budget, depth: int) -> Value:
    at = reader.position
    kind = reader.integer("I", f"the type of the entries of {key!r}")
    count = reader.integer(length, f"the number of entries of {key!r}")
    if kind == STRING:
        budget.strings -= count
        if budget.strings < 0:
            reader.fail(f"{key!r} brings the texts of the metadata above {MAX_STRINGS}", at)
        reader.skip_strings(length, count, repr(key))
        return ArrayLength(count)
    if kind == ARRAY:
        if depth >= 3:
            reader.fail(f"{key!r} nests lists deeper than 3", at)
        budget.lists -= count
        if budget.lists < 0:
            reader.fail(f"{key!r} brings the lists of the metadata above {MAX_LISTS}", at)
        for _ in range(count):
            _array(reader, length, key, budget, depth + 1)
        return ArrayLength(count)
    code = SCALARS.get(kind)
    if code is None:
        reader.fail(f"the entries of {key!r} have the unknown type {kind}", at)
    budget.numbers -= count
    if depth > 1 or budget.numbers < 0:
        reader.need(count * calcsize(code), repr(key))
        return ArrayLength(count)
    return reader.numbers(code, count, repr(key))


def _tensor_info(reader: HeaderReader, length: str) -> tuple[StoredTensor, int]:
    """Read one tensor's entry: the tensor, and where its data starts behind the header."""
    at = reader.position
    name = _text(reader, length, "a tensor's name", MAX_NAME_BYTES)
    dimensions = reader.integer("I", f"the dimensions of tensor {name!r}")
    if dimensions > 8:
        reader.fail(f"tensor {name!r} has {dimensions} dimensions", at)
    sides = [int(side) for side in reader.numbers(length, dimensions, f"the shape of tensor {name!r}")]
    kind = reader.integer("I", f"the type of tensor {name!r}")
    offset = reader.integer("Q", f"the offset of tensor {name!r}")
    if kind not in tensor_types():
        reader.fail(f"tensor {name!r} has the unknown type {kind}", at)
    type_name, block, block_bytes = tensor_types()[kind]
    elements = 1
    for side in sides:
        elements *= side
        if elements > MAX_ELEMENTS:
            reader.fail(f"tensor {name!r} has an impossible shape {sides}", at)
    if sides and sides[0] % block:
        reader.fail(f"tensor {name!r} has rows of {sides[0]}, no multiple of the {block} of {type_name}", at)
    tensor = StoredTensor(name, tuple(reversed(sides)), type_name, elements // block * block_bytes)
    return tensor, offset


def _whole_bytes(reader: HeaderReader, metadata: dict[str, Value], infos: list[tuple[StoredTensor, int]]) -> int:
    """The bytes that the file has with its weights, all of which are there, or none."""
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 2**20:
        reader.fail(f"general.alignment is {alignment!r}")
    start = -(-reader.position // alignment) * alignment
    if not infos:
        return reader.position
    last, end = max(((tensor, offset + tensor.bytes) for tensor, offset in infos), key=lambda pair: pair[1])
    if start < reader.size < start + end:
        raise bad_file(
            reader.path,
            f"the file ends at byte {reader.size}, but tensor {last.name!r} reaches to byte {start + end}",
            hint="The download is incomplete: fetch the file again.",
        )
    return start + end
