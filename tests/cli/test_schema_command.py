"""`llmfeas schema` and `llmfeas completion`: outputs fit their schemas, and shells get what they need."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from command_line import ESTIMATES, Outcome
from jsonschema import Draft202012Validator

from llmfeas.cli.commands.schema import schemas
from llmfeas.options import OPTIONS

Run = Callable[..., Outcome]


def faults(value: Any, schema: dict[str, Any]) -> list[str]:
    """What is wrong with a value by a schema, with its places."""
    found = Draft202012Validator(schema).iter_errors(value)
    return [f"{fault.json_path}: {fault.message}" for fault in found]


def printed(run: Run, name: str) -> dict[str, Any]:
    result = run("schema", name)
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


def test_all_schemas_are_listed(run: Run) -> None:
    assert run("schema").out.split() == list(schemas())


@pytest.mark.parametrize("name", schemas())
def test_every_schema_is_one(run: Run, name: str) -> None:
    schema = printed(run, name)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", sorted(ESTIMATES.glob("*.json")), ids=lambda path: path.stem)
def test_estimates_fit_their_schema(run: Run, path: Any) -> None:
    assert faults(json.loads(path.read_text(encoding="utf-8")), printed(run, "estimate")) == []


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("schema",), "llmfeas.estimate/2"),
        (("result", "verdict", "status"), "maybe"),
        (("result", "memory", "peak_bytes"), {"low": 1}),
        (("result", "memory", "peak_bytes"), None),
        (("inputs", "model"), "gpt2"),
        (("warnings",), [{"code": 1}]),
    ],
)
def test_the_schema_of_an_estimate_refuses(run: Run, path: tuple[str, ...], wrong: object) -> None:
    envelope = json.loads(next(iter(ESTIMATES.glob("*.json"))).read_text(encoding="utf-8"))
    place = envelope
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = wrong
    assert faults(envelope, printed(run, "estimate"))


def test_the_schema_of_a_scenario(run: Run) -> None:
    schema = printed(run, "scenario")
    assert set(schema["properties"]) == {"id"} | {name for option in OPTIONS for name in option.names}
    good = {"id": 1, "model": "gpt2", "device": "rtx-4090", "tokens": "10B", "micro_batch": 4, "fsdp": True}
    assert faults(good, schema) == []
    for bad in ({"model": "gpt2"}, {**good, "quant": "q7"}, {**good, "bogus": 1}, {**good, "task": 3}):
        assert faults(bad, schema)


def test_errors_fit_their_schema(run: Run) -> None:
    error = json.loads(run("estimate", "--json").err)
    assert faults(error, printed(run, "error")) == []


@pytest.mark.parametrize("arguments", [["devices", "list"], ["models", "show", "gpt2"], ["offers", "search", "t4"]])
def test_catalog_output_fits_its_schema(run: Run, arguments: list[str]) -> None:
    found = json.loads(run(*arguments, "--json").out)
    assert faults(found, printed(run, ".".join(arguments[:2]))) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    out = run("completion", shell).out
    assert "_LLMFEAS_COMPLETE" in out
    assert "llmfeas" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("llmfeas est", "estimate"),
        ("llmfeas estimate --micro", "--micro-batch"),
        ("llmfeas estimate --quant q4_", "q4_k_m"),
        ("llmfeas estimate --device rtx-407", "rtx-4070ti"),
        ("llmfeas estimate -m gpt2-x", "gpt2-xl"),
        ("llmfeas devices show rtx-409", "rtx-4090"),
        ("llmfeas estimate -d 8xh1", "8xh100-sxm"),
        ("llmfeas launch --engine llama-", "llama-factory"),
        ("llmfeas estimate --model = llama-3-8", "llama-3-8b"),
    ],
)
def test_completion(run: Run, monkeypatch: pytest.MonkeyPatch, words: str, expected: str) -> None:
    monkeypatch.setenv("_LLMFEAS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert f"plain,{expected}" in run().out.splitlines()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_value_behind_an_equals_sign_is_completed(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """These two take it for one word and replace all of it; tried in zsh 5.9 and fish 3.6."""
    monkeypatch.setenv("_LLMFEAS_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "llmfeas estimate --device=8xh1")
    monkeypatch.setenv("COMP_CWORD", "--device=8xh1" if shell == "fish" else "2")
    assert "--device=8xh100-sxm" in run().out.replace(",", "\n").splitlines()


@pytest.mark.parametrize(
    "words",
    ["estimate -m ./mod", "estimate -m mod/e", "estimate -o fi", "estimate --catalog ca", "sweep sc", "learn lo"],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_files_are_completed_by_the_shell(run: Run, monkeypatch: pytest.MonkeyPatch, words: str, shell: str) -> None:
    line = f"llmfeas {words}".split()
    monkeypatch.setenv("_LLMFEAS_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(line))
    monkeypatch.setenv("COMP_CWORD", line[-1] if shell == "fish" else str(len(line) - 1))
    assert run().out.replace("\n", ",").startswith(f"file,{line[-1]}")
