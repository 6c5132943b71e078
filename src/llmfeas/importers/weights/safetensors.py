"""safetensors headers, single or sharded: the list of tensors and the file's own notes, never the weights.

Format: huggingface/safetensors, README.md: 8 bytes of length (little-endian), then that many bytes of JSON that map a
name to {dtype, shape, data_offsets}. The structure is counted before it is parsed, so a hostile header costs little.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from ...errors import reason_of
from ...record import dataclass
from ...text import printable
from ...units import MIB
from ..tensors import StoredTensor
from .header import HeaderReader, bad_file, bounded_bytes, numbered, opened, present

HEADER_LIMIT = 20 * MIB
INDEX_LIMIT = 40 * MIB
MAX_TENSORS = 50_000
MAX_TOTAL_TENSORS = 250_000
COMMAS_PER_TENSOR = 6
MAX_PARTS = 2000
MAX_NAME = 1024
MAX_ELEMENTS = 2**53
SHARD_NAME = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.safetensors$", re.IGNORECASE)

BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8,
    "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "C64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""Bits of one element. Source: huggingface/safetensors, safetensors/src/tensor.rs (Dtype::bitsize)."""


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """What the headers of one safetensors model say, all shards together."""

    tensors: tuple[StoredTensor, ...]
    metadata: dict[str, str]
    file_bytes: int
    paths: tuple[str, ...]
    weights_present: bool


def read_safetensors(paths: Iterable[Path]) -> SafetensorsHeader:
    """Read the headers of the shards of one model.

    Raises:
        DataError: with file, byte offset and reason, where a shard is damaged, cut off or hostile.
    """
    parts = []
    seen: set[str] = set()
    for path in paths:
        part = _read_shard(path)
        names = {tensor.name for tensor in part.tensors}
        twice = seen & names
        if twice:
            raise bad_file(path, f"tensor {min(twice)!r} is in another shard too")
        seen |= names
        if len(seen) > MAX_TOTAL_TENSORS:
            raise bad_file(path, f"the shards hold more than {MAX_TOTAL_TENSORS} tensors together")
        parts.append(part)
    return SafetensorsHeader(
        tensors=tuple(tensor for part in parts for tensor in part.tensors),
        metadata={key: text for part in reversed(parts) for key, text in part.metadata.items()},
        file_bytes=sum(part.file_bytes for part in parts),
        paths=tuple(text for part in parts for text in part.paths),
        weights_present=all(part.weights_present for part in parts),
    )


def shard_paths(path: Path) -> list[Path]:
    """List the shards of a model: given a folder, one of its shards, or a single file.

    Raises:
        DataError: where a shard that the index or the file's name promises is missing.
    """
    folder = path if path.is_dir() else path.parent
    if not path.is_dir():
        match = SHARD_NAME.match(path.name)
        return [path] if match is None else _numbered(path, match)
    index = _index_of(folder)
    if index is not None:
        return _indexed(index)
    single = folder / "model.safetensors"
    if single.is_file():
        return [single]
    paths = sorted(folder.glob("*.safetensors"))[: MAX_PARTS + 1]
    match = SHARD_NAME.match(paths[0].name) if paths else None
    return paths if match is None else _numbered(paths[0], match)


def _index_of(folder: Path) -> Path | None:
    preferred = folder / "model.safetensors.index.json"
    if preferred.is_file():
        return preferred
    others = sorted(folder.glob("*.safetensors.index.json"))
    return others[0] if others else None


def _numbered(path: Path, match: re.Match[str]) -> list[Path]:
    count = int(match["parts"])
    if not 1 <= count <= MAX_PARTS:
        raise bad_file(path, f"{count} shards are no possible number (at most {MAX_PARTS})")
    return _present(path, numbered(path, match["stem"], count))


def _indexed(index: Path) -> list[Path]:
    """List the shards that an index names, in order; only plain names in the index's own folder are followed."""
    content = parsed_json(index, bounded_bytes(index, INDEX_LIMIT, "an index"), MAX_TOTAL_TENSORS)
    shards = content.get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
        raise bad_file(index, "weight_map is missing or is no map from a tensor to a file")
    names = sorted(set(shards.values()))
    if not names or len(names) > MAX_PARTS:
        raise bad_file(index, f"it names {len(names)} shards (1 to {MAX_PARTS} are possible)")
    for name in names:
        if "/" in name or "\\" in name or "\0" in name or name in ("", ".", ".."):
            raise bad_file(index, f"shard {name!r} is outside of the model's folder")
    return _present(index, [index.parent / name for name in names])


def _present(requested: Path, paths: list[Path]) -> list[Path]:
    return present(requested, paths, "shards", "Download all shards into one folder, then give the folder.")


def parsed_json(path: Path, raw: bytes, max_entries: int, offset: int = 0, commas: int = 1) -> dict[str, object]:
    """Parse JSON from outside into an object, after its brackets and commas were counted.

    `commas`: how many an entry may bring.

    Raises:
        DataError: where it is no JSON object, not UTF-8, nests too deeply, or holds more than `max_entries` entries.
    """
    if max(raw.count(b"{"), raw.count(b"[") // 2, raw.count(b",") // commas) > max_entries + 64:
        raise bad_file(path, f"the header holds more than {max_entries} entries", offset)
    try:
        content = _loaded(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise bad_file(path, "the header is not valid UTF-8", offset + error.start) from error
    except RecursionError as error:
        raise bad_file(path, "the header nests too deeply", offset) from error
    except json.JSONDecodeError as error:
        raise bad_file(path, f"the header is no JSON ({error.msg})", offset + error.pos) from error
    except ValueError as error:
        raise bad_file(path, f"the header is no usable JSON ({error})", offset) from error
    if not isinstance(content, dict):
        raise bad_file(path, "the header is no JSON object", offset)
    return content


def _loaded(text: str) -> object:
    """Parse JSON; keys that occur twice are an error. Looking for them is slow, so only where some are missing."""
    content = json.loads(text)
    entries = text.count('"data_offsets"')
    whole = isinstance(content, dict) and len(content) - ("__metadata__" in content) == entries
    return content if whole else json.loads(text, object_pairs_hook=_without_twins)


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) != len(pairs):
        seen: set[str] = set()
        twin = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{printable(twin)!r} occurs twice")
    return content


def _read_shard(path: Path) -> SafetensorsHeader:
    try:
        with opened(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            reader = HeaderReader(path, stream, size, HEADER_LIMIT + 8)
            length = reader.integer("Q", "the length of the header")
            if length > HEADER_LIMIT:
                reader.fail(f"a header of {length} bytes is too long (limit {HEADER_LIMIT // MIB} MiB)", 0)
            raw = reader.bytes(length, "the header")
    except OSError as error:
        raise bad_file(path, f"cannot be read ({reason_of(error)})") from error
    content = parsed_json(path, raw, MAX_TENSORS, 8, COMMAS_PER_TENSOR)
    notes = content.pop("__metadata__", None) or {}
    if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
        raise bad_file(path, "__metadata__ is no map from texts to texts", 8)
    data_bytes = size - 8 - length
    tensors = tuple(_tensor(path, name, entry, data_bytes) for name, entry in content.items())
    return SafetensorsHeader(tensors, notes, size, (str(path),), data_bytes > 0 or not tensors)


def _tensor(path: Path, name: str, entry: object, data_bytes: int) -> StoredTensor:
    if len(name) > MAX_NAME:
        raise bad_file(path, f"a tensor's name of {len(name)} characters is too long (limit {MAX_NAME})", 8)
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise bad_file(path, f"tensor {name!r} lacks dtype, shape or data_offsets", 8)
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in BITS:
        raise bad_file(path, f"tensor {name!r} has the unknown type {str(kind)[:40]!r}", 8)
    if not _naturals(shape) or len(shape) > 8:
        raise bad_file(path, f"tensor {name!r} has an impossible shape", 8)
    if not _naturals(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise bad_file(path, f"tensor {name!r} has impossible data_offsets", 8)
    elements = 1
    for side in shape:
        elements *= side
        if elements > MAX_ELEMENTS:
            raise bad_file(path, f"tensor {name!r} has an impossible shape", 8)
    stored = offsets[1] - offsets[0]
    if elements * BITS[kind] != stored * 8:
        raise bad_file(
            path, f"tensor {name!r} of {elements} x {kind} cannot take {stored} bytes (data_offsets {offsets})", 8
        )
    if data_bytes > 0 and offsets[1] > data_bytes:
        raise bad_file(
            path,
            f"the file holds {data_bytes} bytes of weights, but tensor {name!r} reaches to {offsets[1]}",
            hint="The download is incomplete: fetch the file again.",
        )
    return StoredTensor(name, tuple(shape), kind.lower(), stored)


def _naturals(value: object) -> bool:
    return isinstance(value, list) and all(type(side) is int and 0 <= side < 2**63 for side in value)
