"""Configurations as files of Hugging Face's form, read as the command line reads them."""

from __future__ import annotations

import json
from pathlib import Path

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.importers.hf.config import model_from_config


def read(folder: Path, config: object) -> Model:
    """The model of a configuration, which is written down first: as it is where it is a text."""
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return model_from_config(folder)


def read_architecture(folder: Path, config: object) -> Architecture:
    """The same, its architecture alone."""
    return read(folder, config).architecture
