"""Whether an engine reads what was written for it: asked of its own parser, where it is installed here.

Only `launch --verify` comes here: it imports the engine, or asks its program for its options. Nothing is started.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import tempfile
from pathlib import Path

from ...errors import CheckFailedError, UsageError
from ...text import printable
from .launcher import Launch, Launcher
from .parsers import NotHereError


def verified(engine: Launcher, launch: Launch) -> str | None:
    """Who read the recipe, such as `accelerate 1.15.0`; None where the engine is not installed here.

    Raises:
        CheckFailedError: it does not take it; with its words.
        UsageError: it has no parser that can be asked without its devices.
    """
    reader = engine.reader
    if reader is None:
        from . import LAUNCHERS  # which is made of this package's modules

        able = [each.id for each in LAUNCHERS.values() if each.reader is not None]
        problem = f"--verify: {engine.name} has no parser that can be asked without its devices."
        raise UsageError("cannot-verify", problem, f"These have: {', '.join(able)}.", able)
    with tempfile.TemporaryDirectory() as folder:
        for file in launch.files:
            (Path(folder) / file.name).write_text(file.text, encoding="utf-8")
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
                reader.read(launch, Path(folder))
        except NotHereError:
            return None
        except (Exception, SystemExit) as error:
            words = said.getvalue().strip().splitlines()[-1:] if isinstance(error, SystemExit) else [str(error)]
            problem = printable(" ".join(words) or type(error).__name__, 400)
            raise CheckFailedError("engine-refuses", f"{engine.name} does not read this recipe: {problem}") from None
    return f"{reader.package} {_version(reader.package)}".strip()


def _version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""
