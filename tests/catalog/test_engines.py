"""One record an engine says everything, every other file only names it, and a new engine is one record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.document import read_yaml
from llmfeas.catalog.named import engine_named
from llmfeas.catalog.overlay import OverlaidCatalog, with_overlays
from llmfeas.catalog.store import Catalog, built_in, data_directory
from llmfeas.errors import DataError
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.launch import LAUNCHERS

CATALOG = built_in()
ENGINES = CATALOG.engines
FILES = sorted(path for path in data_directory().rglob("*.yaml"))
SERVED: dict[str, object] = {"model": "llama-3-8b", "device": "rtx-4090", "task": "inference"}


def named(data: Any) -> Iterator[str]:
    """Every engine that a data file names, wherever it stands."""
    for key, value in data.items() if isinstance(data, dict) else ():
        if key == "engine" and isinstance(value, str):
            yield value
        elif key == "engines" and isinstance(value, list):
            yield from (each for each in value if isinstance(each, str))
        elif key == "under":
            yield from value
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from named(each)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(data_directory()).as_posix())
def test_every_engine_that_a_file_names_is_one(path: Path) -> None:
    assert set(named(read_yaml(path).data)) <= set(ENGINES)


def test_files_name_engines() -> None:
    found = [name for path in FILES for name in named(read_yaml(path).data)]
    assert len(found) > 300
    assert {"pytorch", "vllm-2023", "onnxruntime", "tinychat"} <= set(found)


def test_what_an_engine_names_is_there() -> None:
    speakers = {engine.speaks for engine in ENGINES.values()}
    assert speakers <= set(ENGINES)
    for engine in ENGINES.values():
        assert not list(CATALOG.tables.faults(engine))
        assert engine.name
        assert set(engine.launchers) <= set(LAUNCHERS)
    assert {name for engine in ENGINES.values() for name in engine.launchers} == set(LAUNCHERS)


def test_an_engine_runs_the_formats_that_people_use_with_it() -> None:
    formats = CATALOG.tables.quantization
    for engine in ENGINES.values():
        usual = [formats.format(quant, engine.speaks) for quant in engine.serving.usual]
        assert not engine.formats or all(engine.reads(each) for each in usual), engine.id


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("lm-studio", "lm-studio"),
        ("LM Studio", "lm-studio"),
        ("Hugging Face transformers", "transformers"),
        ("megatron-core", "megatron"),
        ("TensorRT-LLM", "tensorrt-llm"),
        ("llama-server", "llama.cpp"),
        ("llama.cpp-2025", "llama.cpp-2025"),
        ("llama.cpp-2023", "llama.cpp-2023"),
        ("no such thing", "no such thing"),
    ],
)
def test_an_engine_is_found_by_what_people_call_it(text: str, engine: str) -> None:
    assert engine_named(text, CATALOG) == engine


def test_an_engine_that_is_called_otherwise_is_settled_by_its_id() -> None:
    found = bare_answer({**SERVED, "engine": "LM Studio"})
    assert found.to_dict()["inputs"]["engine"] == {"value": "lm-studio", "origin": "given"}  # type: ignore[index]
    assert "unknown-engine" not in [warning.code for warning in found.warnings]


def test_kin_share_what_is_said_once() -> None:
    first, studio = ENGINES["llama.cpp"], ENGINES["lm-studio"]
    assert studio.serving.memory.window_extra == first.serving.memory.window_extra == 512
    assert (studio.serving.partial, studio.formats, studio.speaks) == (True, ("gguf", "mlx"), "llama.cpp")
    assert ENGINES["llama.cpp-vulkan"].serving.speed.unpacks and ENGINES["llama.cpp-vulkan"].serving.split == "layers"
    tuned = ENGINES["nemo-tuned"].training.scheme
    assert (tuned.gradient, tuned.master, tuned.whole_gradients) == (2, 4, True)
    assert ENGINES["tgi"].serving.memory.cache == "paged"
    assert "tpu" not in ENGINES["tgi"].backends


def overlaid(folder: Path, text: str) -> Catalog:
    path = folder / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return with_overlays(CATALOG, [path])


def test_an_engine_that_nobody_described_is_a_plain_one(tmp_path: Path) -> None:
    catalog = overlaid(tmp_path, "engines:\n- {id: mine, does: [serving]}\n")
    mine, unknown = (bare_answer({**SERVED, "engine": name}, catalog) for name in ("mine", "yours"))
    assert mine.result() == unknown.result()
    assert [w.code for w in unknown.warnings if w not in mine.warnings] == ["unknown-engine"]


def test_an_overlay_adds_and_changes_engines_down_to_their_kin(tmp_path: Path) -> None:
    catalog = overlaid(
        tmp_path,
        "engines:\n"
        "- {id: mine, name: My Server, like: vllm, serving: {memory: {like: vllm-2023, fixed_bytes: 3.0e+9}}}\n"
        "- {extends: llama.cpp, serving: {speed: {family: llama.cpp, unpacks: false}}}\n",
    )
    mine, served = catalog.engines["mine"], catalog.engines["vllm"].serving
    assert (mine.serving.memory.fixed_bytes, mine.serving.memory.cache, mine.serving.split) == (3e9, "paged", "tensors")
    assert (mine.serving.speed.fixed, mine.aliases, mine.launchers) == (served.speed.fixed, (), ("vllm",))
    assert not catalog.engines["ollama"].serving.speed.unpacks
    assert ENGINES["ollama"].serving.speed.unpacks
    assert catalog.engines["ollama"].serving.memory.pass_tokens == 512
    more = bare_answer({**SERVED, "engine": "mine"}, catalog).memory.peak_bytes.expected
    less = bare_answer({**SERVED, "engine": "vllm-2023"}, catalog).memory.peak_bytes.expected
    assert more - less == pytest.approx(2.2e9)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("engines:\n- {id: a, like: vlm}\n", 2, "there is no 'vlm' to be like"),
        ("engines:\n- {id: a, like: b}\n- {id: b, like: a}\n", 2, "leads back to itself"),
        ("engines:\n- {id: a, like: [vllm]}\n", 2, "to be like"),
        ("engines:\n- id: a\n  serving: {memory: {like: nobody}}\n", 2, "there is no 'nobody' to be like"),
        ("engines:\n- id: a\n  serving: 3\n", 3, "serving: must be a mapping"),
        ("engines:\n- id: a\n  serving: {memory: {like: vllm, cash: paged}}\n", 3, "unknown key"),
        ("engines:\n- id: a\n  serving: {memory: {cache: paged, slack: 2}}\n", 3, "less than or equal to 1"),
        ("engines:\n- id: a\n  training: {zero: -1}\n", 3, "greater than or equal to 0"),
        ("engines:\n- id: a\n  does: [dreaming]\n", 3, "'training' or 'serving'"),
        ("engines:\n- id: a\n  speed: fast\n", 3, "unknown key"),
        ("engines:\n- id: a\n  training: {kernels: fusd}\n", 2, "no kernels 'fusd'; did you mean 'fused'"),
        ("engines:\n- id: a\n  formats: [gguff]\n", 2, "no format 'gguff'; did you mean 'gguf'"),
        ("engines:\n- id: a\n  serving: {speed: {family: server, fixed: warp}}\n", 2, "no parameter decode.fixed.warp"),
        (
            "engines:\n- id: a\n  backends: {cuda: [{status: limited, when: {below: '8.0'}}]}\n",
            2,
            "must end with a case",
        ),
        ("engines:\n- id: a\n  backends: {kuda: [{status: limited}]}\n", 3, "must be"),
    ],
)
def test_what_is_wrong_with_an_engine_is_said_with_file_and_line(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    catalog = overlaid(tmp_path, text)
    assert isinstance(catalog, OverlaidCatalog)
    found = next(iter(catalog.problems()))
    assert (says in found.message, f"own.yaml:{line}:" in found.message) == (True, True), found.message
    with pytest.raises(DataError):
        bare_answer({**SERVED, "engine": "a"}, catalog)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("efficiency: {parameters: {decode.read: {value: fast}}}", "decode.read.value: must be a number"),
        ("efficiency: {parameters: {decode.read: {value: 0}}}", "greater than 0"),
        ("efficiency: {generations: {ada: {training: mine}}}", "training.generation.mine"),
        ("efficiency: {engines: {training: {}}}", "unknown key"),
        ("quantization: {formats: {mine: {kind: gguf, base: q4_m}}}", "names the encoding 'q4_m'"),
        ("quantization: {formats: {mine: {kind: guf, base: q4_0}}}", "does not fit"),
        ("quantization: {encodings: {q4_0: {block: 0}}}", "greater than 0"),
        ("implementations: {implementations: {hf-llama: {norm: fuzzy}}}", "norm: must be"),
        ("implementations: {implementations: {hf-llama: {like: hf-lama}}}", "does not fit"),
        ("implementations: {implementations: [true]}", "no mapping of names"),
        ("implementations: {kernels: x}", "no mapping of names"),
        ("runtime: {contexts: {cuda: much}}", "must be a number"),
        ("power: {power_share: {compute: {low: 2}}}", "less than or equal to 1"),
    ],
)
def test_numbers_of_one_s_own_are_checked_before_they_count(tmp_path: Path, text: str, says: str) -> None:
    catalog = overlaid(tmp_path, text + "\n")
    with pytest.raises(DataError) as caught:
        bare_answer(SERVED, catalog)
    assert (says in caught.value.message, "own.yaml:1:" in caught.value.message) == (True, True), caught.value.message
