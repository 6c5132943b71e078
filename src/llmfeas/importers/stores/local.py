"""Models that other programs have downloaded: ids of the Hugging Face cache, tags of Ollama, LM Studio's folders.

Layouts: huggingface_hub, guides/manage-cache; ollama, types/model/name.go and manifest/ (a manifest names its layers by
digest, a blob is called after it); LM Studio, `lms import` (publisher/repository/file). Nothing is fetched, and what a
manifest names is only ever looked for in its own store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from ...errors import DataError, reason_of
from ...record import dataclass
from ...text import printable
from ...units import MIB
from ..weights.header import bad_file, bounded_bytes, first_parts
from ..weights.safetensors import SHARD_NAME, parsed_json
from .hub_cache import is_repository, snapshot_in

MOST_FILES: Final = 2000
MANIFEST_LIMIT: Final = MIB
WEIGHTS_OF_OLLAMA: Final = "application/vnd.ollama.image.model"
_WORD: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_HOST: Final = r"hf\.co|huggingface\.co|registry\.ollama\.ai"
_NAME: Final = re.compile(rf"(?:(?P<host>{_HOST})/)?(?:(?P<org>{_WORD})/)?(?P<name>{_WORD})(?::(?P<tag>{_WORD}))?")
_DIGEST: Final = re.compile(r"sha256[:-]([0-9a-f]{64})")
_HUB_HOSTS: Final = ("hf.co", "huggingface.co")


@dataclass(frozen=True, slots=True)
class InStore:
    """A model that lies in the store of another program."""

    path: Path
    store: str
    """Whose store it is, in words."""


def local_model(text: str, environment: Mapping[str, str] | None = None) -> InStore | None:
    """Find a model by the id that its program has for it: `org/name`, `name:tag`, `hf.co/org/name:Q4_K_M`.

    A bare word is none of these. None: no store has it.

    Raises:
        DataError: a store has it, but what lies there cannot be used, or is several models.
    """
    match = _NAME.fullmatch(text)
    if match is None or (match["org"] is None and match["tag"] is None) or ".." in text:
        return None
    here = os.environ if environment is None else environment
    host, org, name, tag = match["host"], match["org"], match["name"], match["tag"]
    if host != "registry.ollama.ai" and org is not None:
        for store, folder in _folders(org, name, here):
            found = _chosen(folder, tag)
            if found is not None:
                return InStore(found, store)
    if tag is not None or host is not None:
        hub = host in _HUB_HOSTS
        manifest = _manifest(host if hub else None, org, name, tag or "latest", here)
        if manifest is not None:
            return InStore(_blob(manifest), "Ollama")
    return None


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or environment.get("USERPROFILE") or os.path.expanduser("~"))  # noqa: PTH111


def hub_folder(environment: Mapping[str, str]) -> Path:
    """Where huggingface_hub keeps its models, by the variables that it reads."""
    for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(key):
            return Path(environment[key])
    if environment.get("HF_HOME"):
        return Path(environment["HF_HOME"]) / "hub"
    base = Path(environment["XDG_CACHE_HOME"]) if environment.get("XDG_CACHE_HOME") else _home(environment) / ".cache"
    return base / "huggingface" / "hub"


def _folders(org: str, name: str, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The folders in which a repository may lie, that are there."""
    cached = hub_folder(environment) / f"models--{org}--{name}"
    if is_repository(cached):
        yield "the Hugging Face cache", snapshot_in(cached)
    home = _home(environment)
    for base in (home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"):
        if (base / org / name).is_dir():
            yield "LM Studio", base / org / name


def _chosen(folder: Path, tag: str | None) -> Path | None:
    """The model in a folder: the folder itself, or that of its GGUF files which the tag names."""
    try:
        files = sorted(islice(folder.iterdir(), MOST_FILES))
    except OSError as error:
        raise bad_file(folder, f"cannot be read ({reason_of(error)})") from error
    there = [file for file in files if file.exists()]
    ggufs = [file for file in there if file.suffix.lower() == ".gguf" and not file.name.lower().startswith("mmproj")]
    firsts = first_parts(ggufs)
    if not firsts:
        return _whole(folder, there)
    if tag is None:
        return firsts[0] if len(firsts) == 1 else _several(folder, firsts)
    spelled = re.compile(rf"(?<![A-Za-z0-9]){re.escape(tag)}(?![A-Za-z0-9_])", re.IGNORECASE)
    named = [file for file in firsts if spelled.search(file.stem)]
    return named[0] if len(named) == 1 else None if not named else _several(folder, named)


def _several(folder: Path, files: list[Path]) -> Path:
    names = [file.name for file in files[:10]]
    hint = "Name one: its path, or its format behind a colon, such as ':Q4_K_M'."
    raise DataError("ambiguous-model-folder", f"{printable(folder, 200)} holds {len(files)} GGUF models", hint, names)


def _whole(folder: Path, files: list[Path]) -> Path | None:
    """The folder where all of its weights are there; its config.json where some are missing, or there are none."""
    shards = [file for file in files if file.suffix == ".safetensors"]
    parts = [match for file in shards if (match := SHARD_NAME.match(file.name)) is not None]
    promised = int(parts[0]["parts"]) if parts else len(shards)
    if shards and len(shards) >= promised:
        return folder
    config = folder / "config.json"
    return config if config.is_file() else None


def _manifest(host: str | None, org: str | None, name: str, tag: str, environment: Mapping[str, str]) -> Path | None:
    """The manifest of a tag in Ollama's store."""
    said = environment.get("OLLAMA_MODELS")
    places = (
        [Path(said)] if said else [_home(environment) / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")]
    )
    for base in places:
        inner = base / "manifests" / (host or "registry.ollama.ai") / (org or "library") / name / tag
        if inner.exists() or inner.is_symlink():
            return inner
    return None


def _blob(manifest: Path) -> Path:
    """The weights that a manifest names.

    Raises:
        DataError: it is none, names no weights, or they are not there or not whole.
    """
    content = parsed_json(manifest, bounded_bytes(manifest, MANIFEST_LIMIT, "a manifest"), 10_000)
    layers = content.get("layers")
    hint = "Pull the model again with Ollama."
    entries = [layer for layer in layers if isinstance(layer, dict)] if isinstance(layers, list) else []
    weights = [layer for layer in entries if layer.get("mediaType") == WEIGHTS_OF_OLLAMA]
    digest = _DIGEST.fullmatch(str(weights[0].get("digest"))) if weights else None
    if digest is None:
        raise bad_file(manifest, "this manifest names no weights", hint=hint)
    blob = manifest.parents[4] / "blobs" / f"sha256-{digest[1]}"
    if not blob.is_file():
        raise bad_file(manifest, "the weights that this manifest names are not there", hint=hint)
    size = weights[0].get("size")
    if isinstance(size, int) and size != blob.stat().st_size:
        raise bad_file(blob, f"holds {blob.stat().st_size} of the {size} bytes that its manifest names", hint=hint)
    return blob
