"""Names that files, folders, catalogs and lines bring along are shown, never obeyed, wherever they come up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.files import gguf_files
from fuzz.holds import answered, faults
from llmfeas.catalog.overlay import use_overlays

HOSTILE = "x\x1b[31m\x9b2J\u202e[bold red]y[/]\nz"


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield tmp_path
    use_overlays([])


def held(*arguments: str, code: int | tuple[int, ...] = (0, 2, 3, 4)) -> str:
    found = answered([*arguments])
    assert list(faults(found)) == []
    assert found.code in (code if isinstance(code, tuple) else (code,))
    return found.out + found.err


def asked(path: Path) -> None:
    for end in ([], ["--json"], ["-f", "markdown"]):
        held("estimate", "-m", str(path), "-d", "rtx-4090", "-t", "inference", *end)


def test_shards(checkout: Path) -> None:
    index = {"metadata": {}, "weight_map": {"a.weight": HOSTILE, HOSTILE: "b.safetensors"}}
    path = checkout / "model.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    asked(path)


def test_folders(checkout: Path) -> None:
    folder = checkout / HOSTILE.replace("/", "")
    folder.mkdir()
    asked(folder)
    (folder / "config.json").write_text('{"model_type": "nothing"}', encoding="utf-8")
    asked(folder)
    held("sweep", str(folder / "none"), code=3)
    held("check", str(folder / "none.yaml"), code=3)
    held("schema", "-o", str(folder), code=2)


def test_metadata_of_gguf(checkout: Path) -> None:
    metadata, tensors = gguf_files.llama(layers=1, vocab=256)
    text = {key: value for key, value in metadata.items() if isinstance(value, str)}
    for key in (*text, "general.name", HOSTILE):
        path = checkout / "model.gguf"
        path.write_bytes(gguf_files.header({**metadata, key: HOSTILE}, tensors)[0])
        asked(path)


def test_fields_of_configurations(checkout: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
              "intermediate_size": 128, "vocab_size": 100}  # fmt: skip
    for key in (*config, "_name_or_path", "hidden_act", "torch_dtype", "quantization_config", HOSTILE):
        (checkout / "config.json").write_text(json.dumps({**config, key: HOSTILE}), encoding="utf-8")
        asked(checkout / "config.json")


@pytest.mark.parametrize("field", ["id", "name", "extends", "aliases", "generation", HOSTILE])
def test_catalogs_of_a_checkout(checkout: Path, field: str) -> None:
    entry = {
        "id": "rtx-4091",
        "name": "Mine",
        "extends": "rtx-4090",
        field: [HOSTILE] if field == "aliases" else HOSTILE,
    }
    (checkout / "llmfeas.yaml").write_text(json.dumps({"devices": [entry]}), encoding="utf-8")
    for line in (
        ["estimate", "-m", "gpt2", "-d", "rtx-4092"],
        ["compare", "-m", "gpt2", "-d", "rtx-4091", "-d", "t4"],
        ["devices", "list", "-f", "csv"],
        ["catalog", "check"],
    ):
        held(*line)


def test_lines_of_a_sweep(checkout: Path) -> None:
    lines = [
        {"id": HOSTILE, "model": HOSTILE, "device": "t4"},
        {"id": 1, HOSTILE: 1},
        {"id": 2, "model": "gpt2", "device": HOSTILE},
    ]
    path = checkout / "in.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for format in ("ndjson", "csv"):
        held("sweep", str(path), "-f", format, code=3)


def test_stores_of_measurements(checkout: Path) -> None:
    folder = checkout / "config" / "llmfeas"
    folder.mkdir(parents=True)
    row = {"id": HOSTILE, "scenario": {"model": HOSTILE, "device": "t4"}, "measured": {HOSTILE: 1}}
    (folder / "measured.yaml").write_text(json.dumps({"measurements": [row]}), encoding="utf-8")
    held("estimate", "-m", "gpt2", "-d", "t4", "--json", code=0)
    held("backtest", "--calibrate")


def test_a_catalog_that_nobody_asked_for_is_named(checkout: Path) -> None:
    (checkout / "llmfeas.yaml").write_text("devices:\n- {extends: t4, power_w: 60}\n", encoding="utf-8")
    for command in ("estimate", "plan", "compare"):
        assert "llmfeas.yaml" in "".join(held(command, "-m", "gpt2", "-d", "t4", "-t", "inference", code=0).split())
    assert "llmfeas.yaml@" in json.loads(held("devices", "list", "--json", code=0))["catalog"]


def test_a_shard_whose_name_the_system_refuses(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the file's fault wherever it is met: in a line of a sweep, of an agent or of the page as well."""
    from llmfeas.cli.commands.mcp import _answered
    from llmfeas.cli.tools import tools
    from llmfeas.page.answers import called

    path = checkout / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": {"a.weight": "x" * 10_000}}), encoding="utf-8")
    ask = {"model": str(path), "device": "rtx-4090", "task": "inference"}
    found = answered(["sweep", "-"], json.dumps(ask).encode())
    assert (found.code, list(faults(found))) == (3, [])
    assert json.loads(found.out)["error"]["code"] == "system-error"
    assert json.loads(called("answered", json.dumps([ask])))["error"]["code"] == "system-error"
    said, error, failed = _answered(tools()["estimate"], ask)
    assert failed and error["error"]["code"] == "system-error" and "File name too long" in said
