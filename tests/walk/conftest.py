"""Models that a file of tracked steps describes."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def described_models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of the models of the test module's `DATA`, written as configurations."""
    described = request.module.DATA["models"]
    folder = tmp_path_factory.mktemp("models")
    for name, config in described.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    return {name: str(folder / f"{name}.json") for name in described}
