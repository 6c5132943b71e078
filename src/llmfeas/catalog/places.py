"""Where overlays are looked for: the user's folder, the project, LLMFEAS_CATALOG.

Every command asks for them and most find none, so that paths are text until there is one: pathlib takes as long to
import as the catalog to read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from os.path import dirname, exists, expanduser, isabs, isdir, isfile, join
from typing import TYPE_CHECKING

from ..errors import DataError
from ..text import printable

if TYPE_CHECKING:
    from pathlib import Path

PROJECT_FILE = "llmfeas.yaml"
USER_FILE = "catalog.yaml"
MEASURED_FILE = "measured.yaml"
"""The user's own measurements and what follows from them: written by `backtest --add` and `--calibrate`."""
VARIABLE = "LLMFEAS_CATALOG"


def user_folder(platform: str = sys.platform, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's own settings: XDG on Linux, Application Support on macOS, APPDATA on Windows."""
    return _path(_user_folder(platform, environment))


def _user_folder(platform: str, environment: Mapping[str, str]) -> str:
    home = expanduser(environment.get("HOME") or environment.get("USERPROFILE") or "~")
    if platform == "win32":
        return join(environment.get("APPDATA") or join(home, "AppData", "Roaming"), "llmfeas")
    if platform == "darwin":
        return join(home, "Library", "Application Support", "llmfeas")
    configured = environment.get("XDG_CONFIG_HOME", "")
    return join(configured if isabs(configured) else join(home, ".config"), "llmfeas")


def current_folder() -> Path:
    """The folder that we stand in; where it was removed or may not be seen, its name is all that is left."""
    return _path(_current_folder())


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.curdir


def project_file(start: Path | None = None) -> Path | None:
    """Find the project's llmfeas.yaml: in this folder, or in one above it as far as the root of its repository."""
    found = _project_file(_current_folder() if start is None else str(start))
    return None if found is None else _path(found)


def _project_file(here: str) -> str | None:
    chain = [here, *_above(here)]
    root = next((folder for folder in chain if exists(join(folder, ".git"))), here)
    files = (join(folder, PROJECT_FILE) for folder in chain[: chain.index(root) + 1])
    return next(filter(isfile, files), None)


def _above(folder: str) -> Iterator[str]:
    while (above := dirname(folder)) != folder and above:
        folder = above
        yield folder


def overlay_paths(given: Iterable[str] = (), *, user: bool = True) -> list[Path]:
    """List the overlays in the order in which they apply: user's folder, project, LLMFEAS_CATALOG, then those given.

    Without `user` neither the user's folder nor LLMFEAS_CATALOG counts: what a project says is the same everywhere.

    Raises:
        DataError: LLMFEAS_CATALOG names what is no file.
    """
    own = [join(_user_folder(sys.platform, os.environ), name) for name in (USER_FILE, MEASURED_FILE) if user]
    project = _project_file(_current_folder())
    variable = os.environ.get(VARIABLE, "").split(os.pathsep) if user else ()
    return [
        *map(_path, filter(isfile, own)),
        *map(_path, () if project is None else (project,)),
        *(_named(text) for text in variable if text),
        *(_path(expanduser(text)) for text in given),
    ]


def _named(text: str) -> Path:
    """A file that LLMFEAS_CATALOG names.

    Raises:
        DataError: there is no such file; who set the variable long ago is told which one it is.
    """
    path = expanduser(text)
    if isfile(path) or path == os.devnull:
        return _path(path)
    problem = "is a folder" if isdir(path) else "is no file" if exists(path) else "does not exist"
    hint = f"Correct or unset {VARIABLE}, or say --no-user-catalog."
    raise DataError("file-missing", f"{VARIABLE} names {printable(_path(path), 120)}, which {problem}", hint)


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)
