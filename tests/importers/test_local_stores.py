"""Models in the stores of other programs: found by their ids, exact, and hostile stores refused in bounded time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import gguf_files
import pytest
import safetensors_files

from llmfeas.errors import DataError
from llmfeas.importers.stores.local import local_model
from llmfeas.planning.answer import bare_answer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "a" * 64


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def repository(home: dict[str, str], name: str) -> Path:
    folder = Path(home["HOME"], ".cache", "huggingface", "hub", f"models--{name.replace('/', '--')}")
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    return snapshot


def manifest(home: dict[str, str], place: str, layers: object) -> Path:
    path = Path(home["HOME"], ".ollama", "models", "manifests", place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    (Path(home["HOME"], ".ollama", "models") / "blobs").mkdir(exist_ok=True)
    return path


def weights(home: dict[str, str], **other: object) -> list[dict[str, object]]:
    blob = Path(home["HOME"], ".ollama", "models", "blobs", f"sha256-{DIGEST}")
    blob.parent.mkdir(parents=True, exist_ok=True)
    gguf_files.write(blob, *gguf_files.llama())
    layer = {
        "mediaType": "application/vnd.ollama.image.model",
        "digest": f"sha256:{DIGEST}",
        "size": blob.stat().st_size,
    }
    return [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:0"}, {**layer, **other}]


def test_ids_of_the_hugging_face_cache(home: dict[str, str]) -> None:
    snapshot = repository(home, "some/Small-8B")
    (snapshot / "config.json").write_text("{}")
    found = local_model("some/Small-8B", home)
    assert found is not None
    assert (found.path, found.store) == (snapshot / "config.json", "the Hugging Face cache")
    safetensors_files.write(snapshot / "model-00001-of-00002.safetensors", {"a": ([2], "F32")})
    part = local_model("some/Small-8B", home)
    assert part is not None and part.path.name == "config.json"
    safetensors_files.write(snapshot / "model-00002-of-00002.safetensors", {"b": ([2], "F32")})
    whole = local_model("some/Small-8B", home)
    assert whole is not None and whole.path == snapshot
    assert local_model("some/Other", home) is None
    moved = {"HF_HOME": str(Path(home["HOME"], ".cache", "huggingface"))}
    assert local_model("some/Small-8B", moved) is not None
    assert local_model("some/Small-8B", {"HF_HUB_CACHE": str(Path(home["HOME"], "nowhere")), **moved}) is None


def test_a_format_behind_a_colon_chooses_among_files(home: dict[str, str]) -> None:
    snapshot = repository(home, "some/Small-GGUF")
    for name in ("small-Q4_K_M.gguf", "small-Q4_K_S.gguf", "small-IQ4_XS.gguf", "mmproj-F16.gguf"):
        gguf_files.write(snapshot / name, *gguf_files.llama())
    for text in ("some/Small-GGUF:Q4_K_M", "hf.co/some/Small-GGUF:q4_k_m", "huggingface.co/some/Small-GGUF:Q4_K_M"):
        found = local_model(text, home)
        assert found is not None and found.path.name == "small-Q4_K_M.gguf"
    assert local_model("some/Small-GGUF:Q8_0", home) is None
    with pytest.raises(DataError, match="holds 3 GGUF models"):
        local_model("some/Small-GGUF", home)


def test_tags_of_ollama(home: dict[str, str]) -> None:
    layers = weights(home)
    for place, texts in (
        ("registry.ollama.ai/library/qwen3/8b", ("qwen3:8b", "registry.ollama.ai/library/qwen3:8b")),
        ("registry.ollama.ai/someone/tuned/latest", ("someone/tuned:latest",)),
        ("hf.co/some/Small-GGUF/Q4_K_M", ("hf.co/some/Small-GGUF:Q4_K_M",)),
    ):
        manifest(home, place, layers)
        for text in texts:
            found = local_model(text, home)
            assert found is not None and (found.store, found.path.name) == ("Ollama", f"sha256-{DIGEST}")
    assert local_model("qwen3:4b", home) is None
    assert local_model("qwen3", home) is None


def test_folders_of_lm_studio(home: dict[str, str]) -> None:
    folder = Path(home["HOME"], ".lmstudio", "models", "some", "Small-GGUF")
    folder.mkdir(parents=True)
    gguf_files.write(folder / "Small-Q4_K_M.gguf", *gguf_files.llama())
    found = local_model("some/Small-GGUF", home)
    assert found is not None and (found.store, found.path.name) == ("LM Studio", "Small-Q4_K_M.gguf")


def test_a_tag_is_answered_with_the_bytes_of_its_file(home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    manifest(home, "registry.ollama.ai/library/small/8b", weights(home))
    monkeypatch.setenv("HOME", home["HOME"])
    monkeypatch.delenv("OLLAMA_MODELS")
    answer = bare_answer({"model": "small:8b", "device": "rtx-4090", "task": "inference"}).to_dict()
    blob = Path(home["HOME"], ".ollama", "models", "blobs", f"sha256-{DIGEST}")
    assert answer["result"]["memory"]["weights_file_bytes"] == blob.stat().st_size  # type: ignore[index]
    assert any("Ollama" in warning["message"] for warning in answer["warnings"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("layers", "problem"),
    [
        (None, "names no weights"), ({}, "names no weights"), ([{"mediaType": 3}], "names no weights"),
        ([{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../../etc/passwd"}], "no weights"),
        ([{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "b" * 64}], "not there"),
    ],
)  # fmt: skip
def test_hostile_manifests_are_refused(home: dict[str, str], layers: object, problem: str) -> None:
    manifest(home, "registry.ollama.ai/library/evil/1b", layers)
    with pytest.raises(DataError, match=problem):
        local_model("evil:1b", home)


def test_what_is_no_whole_file_is_refused(home: dict[str, str]) -> None:
    manifest(home, "registry.ollama.ai/library/part/1b", weights(home, size=10**12))
    with pytest.raises(DataError, match="of the 1000000000000 bytes"):
        local_model("part:1b", home)
    path = manifest(home, "registry.ollama.ai/library/pipe/1b", [])
    path.unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        with pytest.raises(DataError, match="no regular file"):
            local_model("pipe:1b", home)
        path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(DataError, match="cannot be read"):
        local_model("pipe:1b", home)
    path.unlink()
    path.write_bytes(b"{" * 2_000_000)
    with pytest.raises(DataError, match="above 1 MiB"):
        local_model("pipe:1b", home)


@pytest.mark.parametrize(
    "text", ["../../etc:passwd", "a/../b", "a/b/c/d", "C:\\models", "a:b:c", "", "a" * 5000 + ":b", "x/\0"]
)
def test_paths_are_no_ids(home: dict[str, str], text: str) -> None:
    assert local_model(text, home) is None
