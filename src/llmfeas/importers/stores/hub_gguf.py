"""Files in GGUF of a model on the hub: which of them a tag means, and their headers as they come."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...errors import DataError
from ...text import printable
from ..weights.safetensors import MAX_PARTS

USUAL: Final = "Q4_K_M"
"""What llama.cpp takes from the hub where nobody names another."""
_NAME: Final = re.compile(r"(?:[A-Za-z0-9][\w.+-]{0,100}/)?[A-Za-z0-9][\w.+-]{0,200}\.gguf", re.ASCII | re.IGNORECASE)
_PART: Final = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.gguf)", re.IGNORECASE)
_FORMAT: Final = re.compile(r"(?:UD-)?(?:I?Q\d\w*|TQ\d\w*|BF16|F16|F32|MXFP4\w*)", re.IGNORECASE)


class Chunks:
    """Bytes that come in pieces, to be read as from a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left = chunks, bytearray()

    def read(self, count: int) -> bytes:
        """Up to `count` bytes; fewer at the end alone."""
        while len(self._left) < count and (chunk := next(self._chunks, None)) is not None:
            self._left += chunk
        found = bytes(self._left[:count])
        del self._left[:count]
        return found


def gguf_files(model: str, listed: Sequence[str], tag: str) -> list[str]:
    """The file that a tag (`Q4_K_M`) means, all parts of a split one.

    Raises:
        DataError: there is none in GGUF, none of the tag, or no tag where there are several.
    """
    files = [name for name in listed if _NAME.fullmatch(name) and "mmproj" not in name.lower()]
    firsts = [name for name in files if (part := _PART.fullmatch(name)) is None or int(part[2]) == 1]
    wanted = re.compile(rf"(?<![A-Za-z0-9]){re.escape(tag or USUAL)}(?![A-Za-z0-9_])", re.IGNORECASE)
    meant = sorted((name for name in firsts if wanted.search(name)), key=len) or (firsts if len(firsts) == 1 else [])
    if not meant or (tag and not wanted.search(meant[0])):
        formats = sorted({found[0] for name in firsts if (found := _FORMAT.search(name.rsplit("/", 1)[-1]))})
        what = f"no file of {printable(tag or USUAL, 60)}" if firsts else "neither a config.json nor a file in GGUF"
        hint = f"Name one of its formats, such as :{formats[0]}." if formats else "Look at its list of files."
        raise DataError("hub", f"{printable(model, 200)} has {what}", hint, formats[:12])
    part = _PART.fullmatch(meant[0])
    if part is None:
        return meant[:1]
    count = int(part[3])
    names = [f"{part[1]}-{index:05d}-of-{count:05d}{part[4]}" for index in range(1, count + 1)]
    if count > MAX_PARTS or not set(names) <= set(files):
        raise DataError(
            "hub", f"{printable(model, 200)} lacks parts of {printable(meant[0], 200)}", "Name another format."
        )
    return names
