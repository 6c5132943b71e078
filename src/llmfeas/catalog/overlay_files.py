"""Where overlays are looked for, and laying them over the catalog: cheap where there are none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import DataError
from ..text import printable
from .store import built_in, install

PROJECT_FILE = "llmfeas.yaml"
USER_FILE = "catalog.yaml"
MEASURED_FILE = "measured.yaml"
"""The user's own measurements and what follows from them: written by `backtest --add` and `--calibrate`."""
VARIABLE = "LLMFEAS_CATALOG"


def user_folder(platform: str = sys.platform, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's own settings: XDG on Linux, Application Support on macOS, APPDATA on Windows."""
    home = _expanded(environment.get("HOME") or environment.get("USERPROFILE") or "~")
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData" / "Roaming") / "llmfeas"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "llmfeas"
    configured = environment.get("XDG_CONFIG_HOME", "")
    return (Path(configured) if Path(configured).is_absolute() else home / ".config") / "llmfeas"


def current_folder() -> Path:
    """The folder that we stand in; where it was removed or may not be seen, its name is all that is left."""
    try:
        return Path.cwd()
    except OSError:
        return Path()


def project_file(start: Path | None = None) -> Path | None:
    """Find the project's llmfeas.yaml: in this folder, or in one above it as far as the root of its repository."""
    here = start or current_folder()
    chain = [here, *here.parents]
    root = next((folder for folder in chain if _exists(folder / ".git")), here)
    for folder in chain[: chain.index(root) + 1]:
        if _is_file(folder / PROJECT_FILE):
            return folder / PROJECT_FILE
    return None


def overlay_paths(given: Iterable[str] = (), *, user: bool = True) -> list[Path]:
    """List the overlays in the order in which they apply: user's folder, project, LLMFEAS_CATALOG, then those given.

    Without `user` neither the user's folder nor LLMFEAS_CATALOG counts: what a project says is the same everywhere.

    Raises:
        DataError: LLMFEAS_CATALOG names what is no file.
    """
    paths = []
    folder = user_folder()
    paths += [folder / name for name in (USER_FILE, MEASURED_FILE) if user and _is_file(folder / name)]
    project = project_file()
    if project is not None:
        paths.append(project)
    if user:
        paths += [_named(text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    return [*paths, *(_expanded(text) for text in given)]


def _named(text: str) -> Path:
    """A file that LLMFEAS_CATALOG names.

    Raises:
        DataError: there is no such file; who set the variable long ago is told which one it is.
    """
    path = _expanded(text)
    if _exists(path) and not path.is_dir():
        return path
    problem = "is a folder" if _exists(path) else "does not exist"
    hint = f"Correct or unset {VARIABLE}, or say --no-user-catalog."
    raise DataError("file-missing", f"{VARIABLE} names {printable(path, 120)}, which {problem}", hint)


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - pathlib's raises for what may not be looked at


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - as in `_exists`


def _expanded(text: str) -> Path:
    return Path(os.path.expanduser(text))  # noqa: PTH111 - pathlib's raises for users that do not exist


def use_overlays(paths: Iterable[Path]) -> None:
    """Make the catalog with these overlays, in this order, that of the process.

    Raises:
        DataError: a file is missing or its outline is wrong.
    """
    listed = list(paths)
    if not listed:
        install(built_in())
        return
    from .overlay import with_overlays

    install(with_overlays(built_in(), listed))
