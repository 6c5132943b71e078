"""Build hook: a wheel carries its data as validated JSON beside the YAML; starting then needs no YAML, no pydantic."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DataHook(BuildHookInterface):  # type: ignore[type-arg]
    """Validates data/*.yaml and packs each file; an editable install reads the YAML itself."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the packed files and include them; any problem in the data fails the build."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, str(root / "src"))
        try:
            from llmfeas.catalog.integrity import problems
            from llmfeas.catalog.packing import packed
        finally:
            sys.path.pop(0)
        data = root / "data"
        found = [f"{problem.message} {problem.hint}" for problem in problems(data)]
        if found:
            raise ValueError("the catalogs do not validate:\n" + "\n".join(found))
        self._directory = tempfile.TemporaryDirectory()
        for name, content in packed(data).items():
            target = Path(self._directory.name, f"{name}.json")
            target.parent.mkdir(exist_ok=True)
            target.write_text(content, encoding="utf-8")
            build_data["force_include"][str(target)] = f"llmfeas/data/{name}.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary files."""
        directory = getattr(self, "_directory", None)
        if directory is not None:
            directory.cleanup()
