"""The folder of the page: its files, the package in an archive, the runtime or its address."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from ..catalog.packing import packed
from ..catalog.store import data_directory
from ..errors import UsageError
from ..text import printable

STATIC = Path(__file__).parent / "static"
PAGES = ("index.html", "page.css", "page.js", "worker.js")
MANIFEST, OFFLINE, ARCHIVE, RUNTIME = "page.json", "offline.js", "llmfeas.zip", "pyodide"
LEFT_OUT = ("cli", "page/static")
"""Parts of the package that a browser has no use for."""
OLDEST = (1980, 1, 1, 0, 0, 0)
"""The time that every file of the archive bears, so that equal packages give equal archives."""


def write_page(folder: Path, pyodide: Path | None = None) -> Mapping[str, Any]:
    """Write the page into `folder`, with the runtime of the folder `pyodide` or else with its public address.

    What comes back is its manifest: version, runtime, files. A folder that holds an older page is replaced as a whole.

    Raises:
        UsageError: the folder holds something else or cannot be written, the runtime is not the one that is pinned.
    """
    if folder.exists() and not (folder.is_dir() and (_is_ours(folder) or not any(folder.iterdir()))):
        hint = "Name a new folder, or one that llmfeas page has written."
        raise UsageError("not-ours", f"{printable(str(folder))} holds something else.", hint)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".llmfeas-", dir=folder.parent) as place:
            new = Path(place, "page")
            new.mkdir()
            manifest = _filled(new, pyodide)
            if folder.exists():
                folder.rename(Path(place, "old"))
            new.rename(folder)
    except OSError as error:
        text = f"cannot write {printable(str(folder))}: {error.strerror or type(error).__name__}."
        raise UsageError("cannot-write", text, "Name another folder.") from None
    return manifest


def _is_ours(folder: Path) -> bool:
    try:
        return "llmfeas" in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _filled(folder: Path, pyodide: Path | None) -> Mapping[str, Any]:
    runtime = json.loads((STATIC / "runtime.json").read_text(encoding="utf-8"))
    for name in PAGES:
        shutil.copyfile(STATIC / name, folder / name)
    (folder / ARCHIVE).write_bytes(_archive())
    base = runtime["address"] if pyodide is None else f"{RUNTIME}/"
    if pyodide is not None:
        _copied(pyodide, folder / RUNTIME, runtime)
    manifest = {
        "llmfeas": __version__,
        "pyodide": base,
        "integrity": runtime["integrity"],
        "archive": ARCHIVE,
        "files": ["./", *PAGES, MANIFEST, ARCHIVE, *(base + name for name in runtime["integrity"])],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    script = (STATIC / OFFLINE).read_text(encoding="utf-8")
    (folder / OFFLINE).write_text(script.replace("DIGEST", _digest(folder)), encoding="utf-8")
    return manifest


def _copied(pyodide: Path, folder: Path, runtime: Mapping[str, Any]) -> None:
    """Copy the runtime, each file of which is checked.

    Raises:
        UsageError: a file is missing or is not that of the pinned version.
    """
    folder.mkdir()
    where = f"npm pack pyodide@{runtime['version']}, unpacked, has it in its folder package."
    for name, expected in runtime["integrity"].items():
        try:
            content = (pyodide / name).read_bytes()
        except OSError:
            raise UsageError("no-runtime", f"{printable(str(pyodide))} has no {name}.", where) from None
        if "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode() != expected:
            text = f"{printable(str(pyodide))}: {name} is not that of Pyodide {runtime['version']}."
            raise UsageError("no-runtime", text, where)
        (folder / name).write_bytes(content)


def _digest(folder: Path) -> str:
    """A digest of all that the page is made of."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _archive() -> bytes:
    """The package and its packed data, as they lie in a wheel."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(_files()):
            archive.writestr(zipfile.ZipInfo(f"llmfeas/{name}", OLDEST), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _files() -> Iterator[tuple[str, bytes]]:
    package = STATIC.parent.parent
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if not name.startswith(LEFT_OUT):
            yield name, path.read_bytes()
    data = data_directory()
    is_wheel = (data / "digest.json").exists()
    ready = (
        {path.relative_to(data).with_suffix("").as_posix(): path for path in data.rglob("*.json")} if is_wheel else {}
    )
    texts = {name: path.read_text("utf-8") for name, path in ready.items()} or packed(data)
    for name, text in texts.items():
        if not name.startswith("measurements/"):
            yield f"data/{name}.json", text.encode()
