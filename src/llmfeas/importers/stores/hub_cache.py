"""The folders in which huggingface_hub keeps models: `models--org--name`, with one snapshot a revision.

Layout: https://huggingface.co/docs/huggingface_hub/guides/manage-cache: `refs/main` names the commit whose folder in
`snapshots/` holds links to the files; links are followed as every program that reads the cache does.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from ..weights.header import bad_file

_REPOSITORY: Final = re.compile(r"models--(?P<id>[A-Za-z0-9_.\-]{1,200})")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def is_repository(folder: Path) -> bool:
    """Whether a folder is that of one model in the cache."""
    return _REPOSITORY.fullmatch(_unfollowed(folder).name) is not None and (folder / "snapshots").is_dir()


def snapshot_in(folder: Path) -> Path:
    """The folder of the files that `refs/main` names, else of the snapshot that changed last.

    Raises:
        DataError: there is none.
    """
    reference = folder / "refs" / "main"
    try:
        with reference.open("rb") as stream:
            commit = stream.read(41).decode("ascii", "replace").strip()
        if _COMMIT.fullmatch(commit) and (folder / "snapshots" / commit).is_dir():
            return folder / "snapshots" / commit
    except OSError:
        pass
    try:
        found = [(each.stat().st_mtime, each) for each in (folder / "snapshots").iterdir() if each.is_dir()]
    except OSError:
        found = []
    if not found:
        raise bad_file(folder, "this folder of a cache holds no snapshot", hint="Download the model again.")
    return max(found)[1]


def name_of(path: Path) -> str:
    """What a model is called by where it lies: `org/name` in the cache, else its folder, or its file's own name.

    Links are not followed: what they point to has no name.
    """
    place = _unfollowed(path)
    if not place.is_dir():
        if place.name not in ("config.json", "hf_quant_config.json"):
            return place.stem
        place = place.parent
    for each in (place, *place.parents[:2]):
        match = _REPOSITORY.fullmatch(each.name)
        if match is not None:
            return match["id"].replace("--", "/", 1)
    return place.name


def _unfollowed(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
