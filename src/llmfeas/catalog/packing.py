"""The data as a wheel carries it: each file of YAML as JSON, which is read faster and needs no library.

Of models, of which a question names one, each entry is a line of its own behind the rest of the file, after its id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from .source import read_yaml
from .store import digest

APART = "models"
"""The file and its section whose entries stand apart."""


def packed(data: Path) -> Mapping[str, str]:
    """Each file of the folder `data` as JSON by its name without ending, and the `digest` of them all.

    Raises:
        DataError: a file cannot be read.
    """
    files = sorted(data.rglob("*.yaml"))
    contents = {path.relative_to(data).with_suffix("").as_posix(): read_yaml(path).data for path in files}
    texts = {name: _json(content) for name, content in {**contents, "digest": digest(data)}.items()}
    if APART in contents:
        rest = {key: section for key, section in contents[APART].items() if key != APART}
        entries = (f"{entry['id']} {_json(entry)}" for entry in contents[APART][APART])
        texts[APART] = "\n".join((_json(rest), *entries))
    return texts


def _json(content: object) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)
