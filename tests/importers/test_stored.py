"""The bytes of a file and those that are computed from the architecture: the same where nothing is quantized."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import gguf_files
import pytest
import safetensors_files

from llmfeas.catalog.store import catalog
from llmfeas.importers.model_file import model_from_file
from llmfeas.planning.answer import bare_answer
from llmfeas.workload.weights import decode_read_bytes, weight_bytes

FORMATS = catalog().tables.quantization


CASES = json.loads((Path(__file__).parents[1] / "data" / "checkpoints.json").read_text())["cases"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_plain_file_holds_what_is_computed(tmp_path: Path, name: str) -> None:
    tensors = {key: (shape, "BF16") for key, shape in CASES[name]["tensors"].items()}
    safetensors_files.write(tmp_path / "model.safetensors", tensors)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": name, **CASES[name]["config"]}))
    model = model_from_file(tmp_path)
    architecture, stored = model.model.architecture, model.stored
    assert stored is not None
    computed, read = weight_bytes(FORMATS, architecture), weight_bytes(FORMATS, architecture, stored=stored)
    assert read.total + stored.idle == stored.total
    assert (read.tables, read.head) == (computed.tables, computed.head)
    assert read.total == computed.total + 2 * model.buffers
    for one, other in zip(read.layers, computed.layers, strict=True):
        assert one.routed == other.routed
    if not model.buffers:
        assert decode_read_bytes(read, architecture) == decode_read_bytes(computed, architecture)


def test_a_file_stands_only_for_its_own_format(tmp_path: Path) -> None:
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", *gguf_files.llama()))
    stored, architecture = model.stored, model.model.architecture
    assert stored is not None
    assert weight_bytes(FORMATS, architecture, "q4_k_m", stored=stored).total == stored.total
    assert weight_bytes(FORMATS, architecture, "q8_0", stored=stored) == weight_bytes(FORMATS, architecture, "q8_0")
    plain = replace(stored, quant="none", by_type=(("f16", stored.total),))
    assert weight_bytes(FORMATS, architecture, "none", "", 2.0, plain).total == stored.total
    assert weight_bytes(FORMATS, architecture, "none", "", 4.0, plain) == weight_bytes(
        FORMATS, architecture, "none", "", 4.0
    )


def test_an_estimate_of_a_file_holds_its_bytes(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", *gguf_files.llama())
    stored = model_from_file(path).stored
    assert stored is not None
    request = {"model": str(path), "device": "rtx-4090", "task": "inference"}
    memory = bare_answer(request).to_dict()["result"]["memory"]  # type: ignore[index]
    assert memory["weights_file_bytes"] == path.stat().st_size
    # llama.cpp keeps the token embedding on the host
    assert memory["components"]["weights_bytes"] == stored.total - stored.tables
    other = bare_answer({**request, "quant": "q8_0"}).to_dict()["result"]["memory"]  # type: ignore[index]
    assert other["components"]["weights_bytes"] > memory["components"]["weights_bytes"]


def test_a_file_of_another_number_of_layers_stands_for_nothing(tmp_path: Path) -> None:
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", *gguf_files.llama()))
    stored, architecture = model.stored, model.model.architecture
    assert stored is not None
    deeper = replace(architecture, layers=3)
    assert weight_bytes(FORMATS, deeper, "q4_k_m", stored=stored) == weight_bytes(FORMATS, deeper, "q4_k_m")


def test_blocks_that_no_role_knows_belong_to_their_layer(tmp_path: Path) -> None:
    tensors = {key: (shape, "BF16") for key, shape in CASES["llama"]["tensors"].items()}
    tensors |= {f"model.layers.{index}.other_attn.0.mystery.weight": ([10, 10], "BF16") for index in range(4)}
    tensors["vision_tower.encoder.layers.0.self_attn.q_proj.weight"] = ([8, 8], "BF16")
    safetensors_files.write(tmp_path / "model.safetensors", tensors)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **CASES["llama"]["config"]}))
    stored = model_from_file(tmp_path).stored
    plain = weight_bytes(FORMATS, model_from_file(tmp_path).model.architecture)
    assert stored is not None
    assert stored.idle == 128
    assert [each - other.total for each, other in zip(stored.layers, plain.layers, strict=True)] == [200] * 4


def test_a_gguf_of_16_bits_runs_on_what_opens_it(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", *gguf_files.llama(kind="bf16"))
    for device in ("m2-max", "rtx-4090", "ryzen-9-7950x"):
        scenario = bare_answer({"model": str(path), "device": device, "task": "inference"}).scenario
        assert (scenario.engine, scenario.quant) == ("llama.cpp", "none")
    assert bare_answer({"model": str(path), "device": "rtx-4090", "task": "finetune"}).scenario.engine == "pytorch"


def test_a_bare_folder_name_is_a_model_unless_the_catalog_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "gpt2"):
        (tmp_path / name).mkdir()
        gguf_files.write(tmp_path / name / "m.gguf", *gguf_files.llama())
    question = {"device": "rtx-4090", "task": "inference"}
    assert bare_answer({**question, "model": "mine"}).scenario.model.id == "tiny-llama"
    assert bare_answer({**question, "model": "gpt2"}).scenario.model.id == "gpt2"
    assert bare_answer({**question, "model": "./gpt2"}).scenario.model.id == "tiny-llama"


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", *gguf_files.llama())
    question = {"model": str(path), "device": "rtx-4090", "task": "inference"}
    assert bare_answer(question).scenario.model.architecture.layers == 2
    gguf_files.write(path, *gguf_files.llama(layers=3))
    assert bare_answer(question).scenario.model.architecture.layers == 3
