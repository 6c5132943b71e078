from __future__ import annotations

import os
import struct
from pathlib import Path

import gguf_files
import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import DataError
from llmfeas.importers.model_file import model_from_file
from llmfeas.importers.weights.gguf import MAX_TENSORS, read_gguf, table, tensor_types
from llmfeas.importers.weights.gguf_model import Traits
from llmfeas.workload.parameters import parameters
from llmfeas.workload.weights import weight_bytes


def refusal(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        model_from_file(path)
    assert caught.value.exit_code == 3
    assert path.name in caught.value.message
    return caught.value


@pytest.mark.parametrize(("version", "order"), [(1, "<"), (2, "<"), (3, "<"), (3, ">")])
def test_every_version_and_byte_order_gives_the_same_model(tmp_path: Path, version: int, order: str) -> None:
    reference = model_from_file(gguf_files.write(tmp_path / "a.gguf", *gguf_files.llama()))
    other = model_from_file(gguf_files.write(tmp_path / "b.gguf", *gguf_files.llama(), version=version, order=order))
    assert other.model.architecture == reference.model.architecture
    assert other.parameters == reference.parameters


def test_parameters_are_the_sum_of_the_tensors_and_equal_the_architecture(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama()
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", metadata, tensors))
    expected = 0
    for shape, _ in tensors.values():
        count = 1
        for side in shape:
            count *= side
        expected += count
    assert model.parameters == expected == parameters(model.model).total


def test_bytes_follow_the_types_of_the_header(tmp_path: Path) -> None:
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", *gguf_files.llama()))
    stored = model.stored
    assert dict(stored.by_type)["q6_k"] == stored.head == 1024 * 256 // 256 * 210
    assert stored.tables == 1024 * 256 // 256 * 144
    assert stored.total == sum(dict(stored.by_type).values())
    assert stored.layer_vectors == (2 * 256 * 4,) * 2
    assert (stored.quant, stored.label) == ("q4_k_m", "q4_k_m")
    assert model.model.published_quant == "q4_k_m"


def test_a_shared_table_is_head_and_no_look_up(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama()
    del tensors["output.weight"]
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", metadata, tensors))
    assert model.model.architecture.tied
    assert model.stored.tables == 0
    assert model.stored.head == 1024 * 256 // 256 * 144


@pytest.mark.parametrize(
    ("number", "kind", "label"),
    [(0, "f32", "none"), (1, "f16", "none"), (32, "bf16", "none"), (7, "q8_0", "q8_0"), (None, "iq4_xs", "iq4_xs")],
)
def test_quantization_is_recognised(tmp_path: Path, number: int | None, kind: str, label: str) -> None:
    metadata, tensors = gguf_files.llama(kind=kind)
    del metadata["general.file_type"]
    if number is not None:
        metadata["general.file_type"] = number
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", metadata, tensors))
    assert model.stored.label == label
    assert model.stored.quant == label


def test_a_file_type_that_the_tensors_contradict_is_not_believed(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama(kind="q8_0")
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", metadata, tensors))
    assert model.stored.label == "q8_0"
    assert any("file_type" in note for note in model.notes)


def test_all_parts_of_a_split_model_count(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama()
    whole = model_from_file(gguf_files.write(tmp_path / "whole.gguf", metadata, tensors))
    names = list(tensors)
    halves = [dict.fromkeys(names[:5]), dict.fromkeys(names[5:])]
    paths = [tmp_path / f"m-0000{part}-of-00002.gguf" for part in (1, 2)]
    for path, half, extra in zip(paths, halves, (metadata, {}), strict=True):
        split = {"split.count": 2, "split.tensors.count": len(names)}
        gguf_files.write(path, {**extra, **split}, {name: tensors[name] for name in half})
    for path in paths:
        model = model_from_file(path)
        assert model.parameters == whole.parameters
        assert model.paths == tuple(map(str, paths))
        assert model.file_bytes == sum(path.stat().st_size for path in paths)
    paths[1].unlink()
    assert "m-00002-of-00002.gguf" in refusal(paths[0]).message


def test_experts_shared_experts_and_dense_layers(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama(layers=3)
    metadata = {key.replace("llama.", "deepseek."): value for key, value in metadata.items()}
    metadata |= {"general.architecture": "deepseek", "deepseek.expert_count": 8, "deepseek.expert_used_count": 2}
    metadata |= {"deepseek.expert_shared_count": 2}
    for layer in (1, 2):
        for role in ("gate", "up", "down"):
            del tensors[f"blk.{layer}.ffn_{role}.weight"]
            side, other = (256, 64) if role == "down" else (64, 256)
            tensors[f"blk.{layer}.ffn_{role}_exps.weight"] = ((8, side, other), "f16")
            shared = (256, 256)
            tensors[f"blk.{layer}.ffn_{role}_shexp.weight"] = (shared, "f16")
        tensors[f"blk.{layer}.ffn_gate_inp.weight"] = ((8, 256), "f32")
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", metadata, tensors))
    experts = model.model.architecture.experts
    assert experts is not None
    assert (experts.count, experts.top_k, experts.width, experts.first_dense_layers) == (8, 2, 64, 1)
    assert (experts.shared, experts.shared_width) == (2, 128)
    assert parameters(model.model).total == model.parameters
    assert model.stored.routed == (0, 3 * 8 * 64 * 256 * 2, 3 * 8 * 64 * 256 * 2)


def test_windows_follow_the_pattern_of_the_file(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama(layers=6)
    metadata |= {"llama.attention.sliding_window": 512}
    metadata["llama.attention.sliding_window_pattern"] = [True, True, False] * 2
    window = model_from_file(gguf_files.write(tmp_path / "m.gguf", metadata, tensors)).model.architecture.window
    assert window is not None
    assert (window.size, window.local, window.full, window.full_first) == (512, 2, 1, False)
    metadata["llama.attention.sliding_window_pattern"] = [True, False, False, True, False, True]
    listed = model_from_file(gguf_files.write(tmp_path / "m.gguf", metadata, tensors)).model.architecture
    assert [kind.windowed for kind in listed.layer_kinds] == [True, False, False, True, False, True]


def test_a_header_without_weights_is_read_and_said(tmp_path: Path) -> None:
    raw, _ = gguf_files.header(*gguf_files.llama())
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    model = model_from_file(path)
    assert any("no weights" in note for note in model.notes)


@pytest.mark.parametrize("keep", [0, 3, 4, 7, 8, 20, 24, 60, 400, 12_000])
def test_a_cut_header_is_refused_with_its_offset(tmp_path: Path, keep: int) -> None:
    raw, _ = gguf_files.header(*gguf_files.llama())
    path = tmp_path / "cut.gguf"
    path.write_bytes(raw[:keep])
    assert "byte" in refusal(path).message


def test_cut_weights_are_an_incomplete_download(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "m.gguf", *gguf_files.llama())
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 4096)
    assert "incomplete" in refusal(path).hint


HUGE = struct.pack("<Q", 2**63)


@pytest.mark.parametrize(
    "raw",
    [
        b"GGUF" + struct.pack("<I", 3) + struct.pack("<Q", 10**6) + struct.pack("<Q", 0),
        b"GGUF" + struct.pack("<I", 3) + HUGE + HUGE,
        b"GGUF" + struct.pack("<I", 3) + struct.pack("<Q", 1) + HUGE,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + HUGE + b"x" * 64,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_files.text("k") + struct.pack("<I", 8) + HUGE,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_files.text("k") + struct.pack("<II", 9, 8) + HUGE,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_files.text("k") + struct.pack("<II", 9, 4) + HUGE,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_files.text("k") + struct.pack("<IIQ", 9, 9, 1) * 9,
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_files.text(b"\xff\xfe") + struct.pack("<II", 4, 1),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_files.text("k") + struct.pack("<II", 99, 1),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + gguf_files.text("t") + struct.pack("<I", 2**31) + b"\0" * 64,
        b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + gguf_files.text("t") + struct.pack("<IQQIQ", 2, 2**40, 2**40, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + gguf_files.text("t") + struct.pack("<IQIQ", 1, 33, 2, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + gguf_files.text("t") + struct.pack("<IQIQ", 1, 32, 4, 0),
        b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
        b"GGML" + b"\0" * 64,
        b"",
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(raw)
    refusal(path)


def test_enormous_metadata_is_refused_without_being_kept(tmp_path: Path) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + gguf_files.text("k")
    path = tmp_path / "big.gguf"
    with path.open("wb") as stream:
        stream.write(head + struct.pack("<IIQ", 9, 0, 2**30))
        stream.truncate(2**31)
    assert "64 MiB" in refusal(path).message
    many = head + struct.pack("<IIQ", 9, 8, 3_000_000)
    path.write_bytes(many + bytes(8 * 3_000_000))
    assert "2000000" in refusal(path).message
    path.write_bytes(head + struct.pack("<IIQ", 9, 9, 60_000) + bytes(12 * 60_000))
    assert "50000" in refusal(path).message


def test_twins_and_foreign_tensors_are_refused(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama()
    raw, weights = gguf_files.header(metadata, tensors)
    path = tmp_path / "twins.gguf"
    path.write_bytes(raw.replace(b"blk.1.attn_k.weight", b"blk.0.attn_k.weight") + bytes(weights))
    assert "same name" in refusal(path).message
    tensors["blk.0.time_mix_lerp.weight"] = ((256,), "f32")
    assert "time_mix_lerp" in refusal(gguf_files.write(path, metadata, tensors)).message


def test_metadata_that_contradicts_the_tensors_is_refused(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama()
    path = gguf_files.write(tmp_path / "m.gguf", {**metadata, "llama.embedding_length": 512}, tensors)
    assert "embedding_length is 512" in refusal(path).message
    path = gguf_files.write(tmp_path / "m.gguf", {**metadata, "llama.attention.head_count": [4, 8]}, tensors)
    assert "head_count differs between layers" in refusal(path).message


@pytest.mark.parametrize("name", sorted(table()["architectures"]))
def test_every_architecture_runs_on_an_implementation_that_exists(name: str) -> None:
    known = catalog().raw("implementations")["implementations"]
    traits = Traits(**table()["architectures"][name])
    for implementation in (
        traits.implementation,
        traits.experts_implementation,
        traits.corrected_implementation,
    ):
        assert implementation is None or implementation in known


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "no regular file" in refusal(tmp_path / "pipe.gguf").message


def test_no_language_model(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "mmproj.gguf", {"general.architecture": "clip"}, {})
    assert "no language model" in refusal(path).message


def test_names_are_shown_without_control_characters(tmp_path: Path) -> None:
    metadata, tensors = gguf_files.llama()
    model = model_from_file(gguf_files.write(tmp_path / "m.gguf", {**metadata, "general.name": "a\x1b[31mb"}, tensors))
    assert "\x1b" not in model.model.name
    assert model.model.id == "a-31mb"


def test_the_largest_type_table_entry_is_below_a_block(tmp_path: Path) -> None:
    for name, block, size in tensor_types().values():
        assert size <= 8 * block or block == 1, name
    assert MAX_TENSORS < 10**6
    assert read_gguf(gguf_files.write(tmp_path / "e.gguf", {}, {})).tensors == ()


def test_layers_that_run_again_are_stored_once_and_read_in_each_loop(tmp_path: Path) -> None:
    plain, tensors = gguf_files.llama()
    looped = {key.replace("llama.", "nanbeige."): value for key, value in plain.items()}
    looped |= {"general.architecture": "nanbeige", "nanbeige.num_loops": 2}
    once = model_from_file(gguf_files.write(tmp_path / "once.gguf", plain, tensors))
    twice = model_from_file(gguf_files.write(tmp_path / "twice.gguf", looped, tensors))
    assert (twice.model.architecture.layers, twice.model.architecture.held_layers) == (4, 2)
    assert parameters(twice.model) == parameters(once.model)
    table = catalog().tables.quantization
    one, two = (weight_bytes(table, each.model.architecture, "q4_k_m", stored=each.stored) for each in (once, twice))
    assert two.total == one.total == once.stored.total
    assert two.read - one.read == sum(layer.total for layer in one.layers)
