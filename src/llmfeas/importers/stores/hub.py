"""Models on the hub, by `hf:ORG/NAME`: their configuration and the headers of their files, no weights.

Only when asked, through huggingface_hub (`pip install llmfeas[hub]`), which knows endpoint, token and offline mode
(HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE). What arrives is bounded in bytes and time, lies in a temporary folder until the
program ends, and is read there as any folder of files is.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, Any, Final, cast

from ...errors import DataError
from ...text import printable
from ...units import MIB
from ..weights.gguf import HEADER_LIMIT as GGUF_LIMIT
from ..weights.gguf import header_of_stream
from ..weights.safetensors import HEADER_LIMIT, INDEX_LIMIT, MAX_PARTS

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


PREFIX: Final = "hf:"
CONFIG_LIMIT: Final = 8 * MIB
SECONDS: Final = 120.0
"""For all that a model asks for; a single answer may pause for `PAUSE_SECONDS`."""
PAUSE_SECONDS: Final = 10.0
AT_ONCE: Final = 8
REPOSITORY: Final = re.compile(
    r"(?P<id>[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96})(?:@(?P<revision>[\w.-]{1,100}))?(?::(?P<tag>[\w.-]{1,60}))?",
    re.ASCII,
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,200}\.safetensors", re.ASCII)
_OFF: Final = ("", "0", "false", "no", "off")


@lru_cache(maxsize=16)
def folder_from_hub(text: str) -> Path:
    """The folder with configuration and headers of `hf:ORG/NAME` (`@REVISION`, `:Q4_K_M` of one in GGUF), fetched once.

    Raises:
        DataError: no such model, no extra to fetch it with, offline, or an answer that is none: what, and what to do.
    """
    match = REPOSITORY.fullmatch(text[len(PREFIX) :].strip())
    if match is None:
        hint = "Write hf:ORG/NAME, with @REVISION where it is not main, and :Q4_K_M of files in GGUF."
        raise _fault(text, "is no id of the hub", hint)
    asked, tag = _Asked(match["id"], match["revision"] or "main"), match["tag"] or ""
    folder = _temporary() / (tag.lower() or "-") / f"models--{match['id'].replace('/', '--')}"
    folder.mkdir(parents=True, exist_ok=True)
    in_gguf = bool(tag) or "gguf" in match["id"].lower()
    config = None if in_gguf else asked.content("config.json", CONFIG_LIMIT)
    if config is None:
        for name in gguf_files(asked.name, asked.listing(), tag):
            (folder / Path(name).name).write_bytes(asked.gguf_header(name))
        return folder
    (folder / "config.json").write_bytes(_object("config.json", asked, config))
    names = _shards(asked, folder)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        headers = list(pool.map(asked.header, names))
    for name, header in zip(names, headers, strict=True):
        if header is not None:
            (folder / name).write_bytes(header)
    return folder


def _shards(asked: _Asked, folder: Path) -> list[str]:
    """The names of the files with weights, as the index has them; the single one where there is none."""
    index = asked.content("model.safetensors.index.json", INDEX_LIMIT)
    if index is None:
        return ["model.safetensors"]
    written = json.loads(_object("model.safetensors.index.json", asked, index)).get("weight_map")
    names = sorted({str(name) for name in written.values()}) if isinstance(written, dict) else []
    if not 0 < len(names) <= MAX_PARTS or not all(map(_PLAIN_NAME.fullmatch, names)):
        raise _fault(asked.name, "has an index that names no plain files of safetensors", "")
    (folder / "model.safetensors.index.json").write_bytes(index)
    return names


def _object(what: str, asked: _Asked, content: bytes) -> bytes:
    """The content, which is a JSON object.

    Raises:
        DataError: it is a page of a portal, or something else.
    """
    try:
        if isinstance(json.loads(content), dict):
            return content
    except (ValueError, RecursionError):
        pass
    shown = "a page" if content.lstrip()[:1] == b"<" else "something else"
    raise _fault(
        asked.name, f"is answered with {shown} in place of {what}", "Look at HF_ENDPOINT, or at what is between."
    )


class _Asked:
    """One model on the hub, and how long its answers may take together."""

    def __init__(self, repository: str, revision: str) -> None:
        self.name = f"{PREFIX}{repository}" + ("" if revision == "main" else f"@{revision}")
        self.repository, self.revision = repository, revision
        self.until = time.monotonic() + SECONDS
        self.hub = _library(self.name)

    def content(self, file: str, limit: int, url: str = "") -> bytes | None:
        """The whole of a small file; None where the model has none of this name."""
        found = bytearray()
        with self._answer(file, limit, url) as chunks:
            if chunks is None:
                return None
            for chunk in chunks:
                found += chunk
                if len(found) > limit:
                    raise _fault(self.name, f"has a {file} of more than {limit // MIB} MiB", "")
        return bytes(found)

    def header(self, file: str) -> bytes | None:
        """The first bytes of a file of weights: the length of its header, and the header."""
        found, wanted = bytearray(), 8
        with self._answer(file, 8 + HEADER_LIMIT) as chunks:
            if chunks is None:
                return None
            for chunk in chunks:
                found += chunk
                if len(found) >= 8:
                    wanted = 8 + int.from_bytes(found[:8], "little")
                if wanted > 8 + HEADER_LIMIT:
                    break
                if len(found) >= wanted > 8:
                    return bytes(found[:wanted])
        said = f"{file} says that its header has {wanted - 8} bytes"
        raise _fault(self.name, f"has no usable header: {said}, and {max(0, len(found) - 8)} came", "")

    def listing(self) -> list[str]:
        """The names of all files.

        Raises:
            DataError: no such model, or no list in the answer.
        """
        endpoint = os.environ.get("HF_ENDPOINT") or self.hub.constants.ENDPOINT
        url = f"{endpoint.rstrip('/')}/api/models/{self.repository}/revision/{self.revision}"
        found = self.content("its list of files", INDEX_LIMIT, url)
        if found is None:
            raise _fault(self.name, "has no config.json, and the hub lists no files of it", "Look at its name.")
        files = json.loads(_object("its list of files", self, found)).get("siblings")
        names = [file.get("rfilename") for file in files if isinstance(file, dict)] if isinstance(files, list) else []
        return [name for name in names if isinstance(name, str)]

    def gguf_header(self, file: str) -> bytes:
        """The header of a file in GGUF."""
        with self._answer(file, GGUF_LIMIT + MIB) as chunks:
            if chunks is None:
                raise _fault(self.name, f"has no {file}", "Look at its list of files.")
            return header_of_stream(Path(f"{self.name} {file}"), cast("IO[bytes]", Chunks(chunks)))

    @contextmanager
    def _answer(self, file: str, limit: int, url: str = "") -> Iterator[Iterator[bytes] | None]:
        """The bytes of a file from its start, as they come; None where there is no such file."""
        url = url or self.hub.hf_hub_url(
            self.repository, file, revision=self.revision, endpoint=os.environ.get("HF_ENDPOINT") or None
        )
        headers = self.hub.utils.build_hf_headers() | {"Range": f"bytes=0-{limit}", "Accept-Encoding": "identity"}
        session = self.hub.utils.get_session()
        # httpx, or what a later release of the library speaks with in its place
        http: Any = sys.modules[type(session).__module__.partition(".")[0]]
        how = {"headers": headers, "timeout": PAUSE_SECONDS, "follow_redirects": True}
        try:
            with session.stream("GET", url, **how) as answer:
                yield self._timed(answer.iter_raw()) if self._is_there(answer.status_code) else None
        except (http.HTTPError, http.InvalidURL, OSError) as error:
            slow = isinstance(error, http.TimeoutException)
            what = f"paused for {PAUSE_SECONDS:.0f} s" if slow else f"cannot be asked ({printable(error, 100)})"
            hint = "Look at the network and at HF_ENDPOINT, or give a config.json that lies here."
            raise _fault(self.name, f"the hub {what} at {file}", hint) from None

    def _is_there(self, status: int) -> bool:
        """Whether there is such a file.

        Raises:
            DataError: the hub refuses, or fails.
        """
        if status in (200, 206):
            return True
        if status in (401, 403):
            raise _fault(
                self.name,
                f"is not to be read ({status})",
                "Accept its terms on the hub, and set HF_TOKEN; or mend its name.",
            )
        if status in (404, 416):
            return False
        raise _fault(
            self.name, f"the hub answers with {status}", "Try again later, or give a config.json that lies here."
        )

    def _timed(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if time.monotonic() > self.until:
                raise _fault(self.name, f"takes the hub more than {SECONDS:.0f} s", "Try again later.")
            yield chunk


def _library(name: str) -> Any:
    """The library that speaks with the hub.

    Raises:
        DataError: it is not there, or told to stay offline.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() not in _OFF:
        raise _fault(name, "is on the hub, and HF_HUB_OFFLINE is set", "What lies in the cache is found as ORG/NAME.")
    try:
        import huggingface_hub
        import huggingface_hub.utils
    except ImportError:
        raise _fault(name, "takes huggingface_hub, which is not here", "Run: pip install 'llmfeas[hub]'") from None
    if not hasattr(huggingface_hub.utils, "get_session"):
        raise _fault(name, "takes a newer huggingface_hub", "Run: pip install -U 'llmfeas[hub]'")
    return huggingface_hub


@cache
def _temporary() -> Path:
    place = tempfile.mkdtemp(prefix="llmfeas-hub-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(place)


def _fault(name: str, problem: str, hint: str) -> DataError:
    return DataError("hub", f"{printable(name, 200)} {problem}", hint)
