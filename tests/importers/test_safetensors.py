from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors_files

from llmfeas.errors import DataError
from llmfeas.importers.model_file import model_from_file
from llmfeas.workload.parameters import parameters

CASES = json.loads((Path(__file__).parents[1] / "data" / "checkpoints.json").read_text())["cases"]
LLAMA = CASES["llama"]["tensors"]


def typed(tensors: dict[str, list[int]], kind: str = "BF16") -> dict[str, tuple[list[int], str]]:
    return {name: (shape, kind) for name, shape in tensors.items()}


def refusal(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        model_from_file(path)
    assert caught.value.exit_code == 3
    return caught.value


@pytest.mark.parametrize("name", sorted(CASES))
def test_shapes_alone_give_the_parameters_of_the_class(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    model = model_from_file(safetensors_files.write(tmp_path / f"{name}.safetensors", typed(case["tensors"])))
    assert parameters(model.model).total == case["parameters"]
    assert model.parameters - model.buffers == case["parameters"]
    assert model.stored.total == 2 * model.parameters
    assert model.stored.quant == "none"


def test_what_shapes_do_not_tell_is_listed(tmp_path: Path) -> None:
    model = model_from_file(safetensors_files.write(tmp_path / "some.safetensors", typed(LLAMA)))
    assert {item.split()[0] for item in model.assumed} == {"head_dim", "norm", "context"}


def test_a_known_model_of_the_same_shapes_fills_the_gaps(tmp_path: Path) -> None:
    path = safetensors_files.write(tmp_path / "some.safetensors", typed(LLAMA))
    first = model_from_file(path).model
    architecture = replace(first.architecture, heads=4, kv_heads=2, head_dim=16)
    known = replace(first, id="twin", context=999, architecture=architecture)
    model = model_from_file(path, [replace(known, architecture=replace(architecture, vocab=99)), known])
    assert model.assumed == ()
    assert (model.model.context, model.model.architecture.head_dim) == (999, 16)
    assert any("twin" in note for note in model.notes)


def sharded(folder: Path, index: bool) -> Path:
    names = list(LLAMA)
    files = [f"model-0000{part}-of-00002.safetensors" for part in (1, 2)]
    for file, part in zip(files, (names[:7], names[7:]), strict=True):
        safetensors_files.write(folder / file, typed({name: LLAMA[name] for name in part}))
    if index:
        weight_map = {name: files[0] if name in names[:7] else files[1] for name in names}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


@pytest.mark.parametrize("index", [True, False])
def test_shards_are_put_together(tmp_path: Path, index: bool) -> None:
    folder = sharded(tmp_path, index)
    for path in (folder, folder / "model-00002-of-00002.safetensors"):
        assert model_from_file(path).parameters == CASES["llama"]["parameters"]
    (folder / "model-00001-of-00002.safetensors").unlink()
    assert "model-00001-of-00002.safetensors" in refusal(folder).message


def test_an_index_leads_nowhere_else(tmp_path: Path) -> None:
    for name in ("../secret.safetensors", "/etc/passwd", "a\\b", ""):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
        assert "outside" in refusal(tmp_path).message


def write_raw(path: Path, raw: bytes, length: int | None = None) -> Path:
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw)
    return path


ENTRY = '{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "no JSON"),
        (b"[]", "no JSON object"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "deeply"),
        (b'{"' + b"n" * 5000 + b'":{}}', "too long"),
        (b'{"a":' * 50_000, ""),
        (b"\xff\xff", "UTF-8"),
        (f'{{"a":{ENTRY},"a":{ENTRY}}}'.encode(), "twice"),
        (b'{"a":1}', "lacks"),
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', "cannot take"),
        (b'{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}}', "unknown type"),
        (b'{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', "impossible shape"),
        (b'{"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', "impossible shape"),
        (b'{"a":{"dtype":"F32","shape":[1e3],"data_offsets":[0,8]}}', "impossible shape"),
        (b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}', "impossible shape"),
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}', "data_offsets"),
        (b'{"a":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,8]}}', ""),
        (b'{"__metadata__":{"a":1}}', "__metadata__"),
        (b'{"a":NaN}', "lacks"),
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, raw: bytes, reason: str) -> None:
    assert reason in refusal(write_raw(tmp_path / "hostile.safetensors", raw)).message


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 200_000_000, 10_000])
def test_lengths_that_cannot_be_are_refused(tmp_path: Path, length: int) -> None:
    assert "byte" in refusal(write_raw(tmp_path / "x.safetensors", b"{}", length)).message


def test_a_million_tensors_are_refused(tmp_path: Path) -> None:
    raw = b"{" + b",".join(b'"%d":{}' % number for number in range(1_000_000)) + b"}"
    assert "50000" in refusal(write_raw(tmp_path / "x.safetensors", raw)).message


def test_cut_weights_are_an_incomplete_download(tmp_path: Path) -> None:
    path = safetensors_files.write(tmp_path / "m.safetensors", typed(LLAMA))
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 10)
    assert "incomplete" in refusal(path).hint


def test_pickles_are_refused_with_the_way_out(tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "model.pt", "a.pth", "b.ckpt"):
        (tmp_path / name).write_bytes(b"\x80\x02}q\x00.")
        error = refusal(tmp_path / name)
        assert error.code == "pickle"
        assert "safetensors" in error.hint
    assert refusal(tmp_path).code == "pickle"
    disguised = tmp_path / "m.safetensors"
    disguised.write_bytes(b"PK\x03\x04" + bytes(64))
    assert refusal(disguised).code == "pickle"


def test_a_folder_without_weights_and_a_missing_file(tmp_path: Path) -> None:
    assert "holds no" in refusal(tmp_path).message
    assert "no such file" in refusal(tmp_path / "none.gguf").message
    for name in ("x" * 300 + ".gguf", "~nobody-of-this-name/m.gguf", "a\0b.gguf"):
        assert refusal(Path(name)).code == "bad-model-file"


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_config_beside_the_weights_agrees_with_them(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    safetensors_files.write(tmp_path / "model.safetensors", typed(case["tensors"]))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": name, **case["config"]}))
    model = model_from_file(tmp_path)
    assert parameters(model.model).total == case["parameters"] == (model.parameters or 0) - model.buffers
    assert (model.assumed, model.notes) == ((), ())


def test_a_config_that_contradicts_the_weights_is_noted(tmp_path: Path) -> None:
    safetensors_files.write(tmp_path / "model.safetensors", typed(LLAMA))
    config = {"model_type": "llama", **CASES["llama"]["config"], "num_hidden_layers": 3, "vocab_size": 99}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert len(model_from_file(tmp_path).notes) == 2


def test_an_unknown_type_is_read_from_its_shapes(tmp_path: Path) -> None:
    safetensors_files.write(tmp_path / "model.safetensors", typed(LLAMA))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "nobody-knows", "num_attention_heads": 4}))
    model = model_from_file(tmp_path)
    assert model.model.architecture.heads == 4
    assert "head_dim" not in " ".join(model.assumed)


def test_a_config_alone_is_a_model_without_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **CASES["llama"]["config"]}))
    for path in (tmp_path, tmp_path / "config.json"):
        model = model_from_file(path)
        assert (model.format, model.stored, model.parameters) == ("config", None, None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
@pytest.mark.parametrize("name", ["model.safetensors.index.json", "other.safetensors.index.json"])
@pytest.mark.parametrize("kind", ["fifo", "endless"])
def test_an_index_that_is_no_regular_file_is_not_read(tmp_path: Path, name: str, kind: str) -> None:
    """Nobody waits for a FIFO's writer, and nothing without an end is read."""
    if kind == "fifo":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    if not name.startswith("model."):
        assert refusal(tmp_path).message == f"{tmp_path / name}: no regular file"
        return
    (tmp_path / "model.safetensors").symlink_to("/dev/zero")
    refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_an_index_whose_shards_are_no_regular_files(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    os.mkfifo(tmp_path / "one.safetensors")
    (tmp_path / "two.safetensors").symlink_to("/dev/zero")
    assert "2 of 2 shards are missing" in refusal(tmp_path).message


def test_a_file_that_grows_after_its_size_was_asked_is_bounded(tmp_path: Path) -> None:
    """What the system says of a size is not believed: /proc says 0."""
    from llmfeas.importers.weights.header import bounded_bytes

    path = tmp_path / "x.json"
    path.write_bytes(bytes(2**20 + 1))
    with pytest.raises(DataError, match="above 1 MiB is not read"):
        bounded_bytes(path, 2**20, "an index")
