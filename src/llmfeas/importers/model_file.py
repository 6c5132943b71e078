"""Models from files: tell a path from a catalog id, and read what the path holds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..catalog.architecture import Model
from ..catalog.store import built_in
from ..catalog.types import beyond_limits
from ..errors import DataError, reason_of
from ..text import printable
from .stores.hub_cache import is_repository, snapshot_in
from .tensors import ImportedModel
from .weights.header import bad_file, first_parts
from .weights.layout import Formats

WEIGHTS = (".gguf", ".safetensors")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
OTHERS = (".onnx", ".h5", ".msgpack", ".npz", ".tflite", ".mlmodel", ".ggml", ".llamafile")


def is_model_path(text: str) -> bool:
    """Whether a text is a path to a model and no catalog id: a known ending, or what exists and is no bare word."""
    if not text or "\0" in text or len(text) > 4096:
        return False
    lowered = text.lower()
    if lowered.endswith((*WEIGHTS, *PICKLES, *OTHERS, ".json")):
        return True
    path = Path(os.path.expanduser(text))  # noqa: PTH111 - as in `stamps`
    try:
        if text.startswith((".", "~", "/")) or "\\" in text:
            return True
        if path.is_dir():
            return (path / "config.json").is_file() or has_weights(path) or is_repository(path)
        return "/" in text and path.exists()
    except OSError:
        return False


def model_from_file(path: str | Path, known: Iterable[Model] = (), formats: Formats | None = None) -> ImportedModel:
    """Read a model from a .gguf or .safetensors file (one part of several will do), a config.json, or their folder.

    Only headers are read; nothing is downloaded or executed. `known` helps where a safetensors file has no config.json;
    `formats` are the values of --quant that a file can stand for (default: those of the built-in catalog).

    Raises:
        DataError: with file, offset and reason, and the way out.
    """
    place = _reached(path)
    formats = built_in().tables.quantization.formats if formats is None else formats
    found = _read(place, known, formats)
    for fault in beyond_limits(found.model):
        raise bad_file(place, f"no model has these sizes: {fault.removeprefix('architecture.')}")
    return found


def _read(place: Path, known: Iterable[Model], formats: Formats) -> ImportedModel:
    _refuse_other_formats(place)
    if place.is_dir():
        return _from_folder(snapshot_in(place) if is_repository(place) else place, known, formats)
    if place.suffix.lower() == ".gguf" or _starts_with(place, b"GGUF"):
        from .weights.gguf_model import model_from_gguf

        return model_from_gguf(place, formats)
    if place.suffix.lower() == ".safetensors":
        from .weights.safetensors_model import model_from_safetensors

        return model_from_safetensors(place, known, formats)
    if place.name.endswith(".safetensors.index.json"):
        return _read(place.parent, known, formats)
    if place.suffix.lower() == ".json":
        return _from_config(place)
    raise bad_file(
        place, "neither a GGUF nor a safetensors file", hint="Give a .gguf, a .safetensors or a config.json."
    )


def _reached(path: str | Path) -> Path:
    """The path of something that is there: a file or a folder.

    Raises:
        DataError: it is not there, cannot be looked at, or is neither.
    """
    try:
        place = Path(path).expanduser()
        there, usable = place.exists(), place.is_file() or place.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        reason = printable(reason_of(error))
        raise bad_file(printable(path, 120), f"cannot be opened ({reason})", hint="Check the path.") from error
    if usable:
        return place
    if not there:
        _refuse_ending(place)
        raise bad_file(printable(path, 200), "there is no such file", hint="Check the path.")
    raise bad_file(place, "no regular file", hint="Give a .gguf, a .safetensors or a config.json.")


def stamps(path: str) -> tuple[tuple[int, int], ...]:
    """Size and time of change of a file or folder, and of a config.json in it: equal while nothing changed."""
    place = Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib's raises for users that do not exist
    states = []
    for each in (place, place / "config.json", place.parent / "config.json"):
        try:
            state = each.stat()
            states.append((state.st_size, state.st_mtime_ns))
        except (OSError, ValueError):
            states.append((-1, -1))
    return tuple(states)


def has_weights(path: Path) -> bool:
    """Whether a path names weights (a file of them, or a folder with some) and not just a config.json."""
    if path.is_dir():
        return any(path.glob("*.safetensors")) or any(path.glob("*.gguf"))
    return path.suffix.lower() in WEIGHTS or path.name.endswith(".safetensors.index.json")


def _from_folder(folder: Path, known: Iterable[Model], formats: Formats) -> ImportedModel:
    if any(folder.glob("*.safetensors")) or any(folder.glob("*.safetensors.index.json")):
        from .weights.safetensors_model import model_from_safetensors

        return model_from_safetensors(folder, known, formats)
    files = sorted(folder.glob("*.gguf"))
    firsts = first_parts(files)
    if len(firsts) == 1:
        return _read(firsts[0], known, formats)
    if firsts:
        names = [file.name for file in firsts]
        raise DataError("ambiguous-model-folder", f"{folder} holds {len(firsts)} GGUF models", "Name one.", names[:10])
    if (folder / "config.json").is_file():
        return _from_config(folder)
    pickles = [file for ending in PICKLES for file in folder.glob(f"*{ending}")]
    if pickles:
        _refuse_other_formats(pickles[0])
    raise bad_file(folder, "the folder holds no .gguf, .safetensors or config.json", hint="Give the file itself.")


def _from_config(path: Path) -> ImportedModel:
    from .hf.config import checkpoint_from_config

    try:
        return checkpoint_from_config(path)
    except DataError as error:
        if error.code != "unknown-model-type" or not has_weights(path.parent):
            raise
        hint = (
            f"Its weights lie beside it: give the folder, '{printable(path.parent, 200)}', and their headers are read."
        )
        raise DataError(error.code, error.message, hint, error.candidates) from None


def _refuse_other_formats(path: Path) -> None:
    _refuse_ending(path, pickled=_is_pickle(path))


def _refuse_ending(path: Path, *, pickled: bool = False) -> None:
    """Refuse what no reader is for, by its ending; a pickle also where it is not there, to say what to do."""
    ending = path.suffix.lower()
    if ending in PICKLES or pickled:
        raise DataError(
            "pickle",
            f"{printable(path, 200)}: a pickle can run any code when it is opened, so it is not read",
            "Convert it to safetensors (transformers: model.save_pretrained(..., safe_serialization=True)), "
            "or give the model's config.json.",
        )
    if ending in OTHERS:
        raise bad_file(path, f"{ending} files are not supported", hint="Give a .gguf, a .safetensors or a config.json.")


def _is_pickle(path: Path) -> bool:
    """Whether its first bytes are those of a pickle, or of a zip archive as torch.save writes it, under any name."""
    return path.suffix.lower() in WEIGHTS and (_starts_with(path, b"PK\x03\x04") or _starts_with(path, b"\x80\x02"))


def _starts_with(path: Path, magic: bytes) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(len(magic)) == magic
    except OSError:
        return False
