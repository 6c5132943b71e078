"""What every command writes with --json fits its published schema, and schemas change only by growing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome
from test_schema_command import faults, printed

from llmfeas.cli.app import COMMANDS
from llmfeas.cli.commands.schema import schemas
from llmfeas.machine import Machine
from llmfeas.machine.probe import Found
from llmfeas.planning.solve import QUESTIONS

Run = Callable[..., Outcome]
STORED = Path(__file__).parent.parent / "data" / "schemas"
LOGS = STORED.parent / "logs"
INPUTS = ("scenario", "check", "device", "model", "backend", "offer", "engine")
"""Schemas of what goes in: there nothing that was allowed may be refused."""

SMALL = ("-m", "gpt2", "-d", "rtx-4090")
CHECKS = "model: gpt2\ndevice: rtx-4090\nexpect: {fits: true, usd: {max: 1}}\n"
MEASURED = """\
groups:
- group: one-card
  source: a test
  url: https://example.org
  as_of: '2026-01'
  trust: high
  backend: cuda
  framework: pytorch
  scenario: {model: gpt2, device: rtx-4090, task: pretrain, micro_batch: 8, seq_len: 1024}
  rows:
  - {id: first, measured: {tokens_per_second: 90000}}
"""
OWN = "model=llama-3-8b device=rtx-4090 task=inference quant=q4_k_m decode=120"
ASKED: dict[str, list[tuple[str, ...]]] = {
    "estimate": [
        SMALL,
        (*SMALL, "-t", "inference", "--explain"),
        ("-m", "gpt2-xl", "-d", "rtx-4070ti"),
        ("-m", "longcat-flash", "-d", "8xh100-sxm", "-t", "qlora", "--deadline", "1d", "--budget", "5"),
        ("-m", "mixtral-8x7b", "-d", "m2-ultra", "-t", "inference", "--quant", "q4_k_m", "--electricity", "0.3"),
    ],
    "compare": [
        ("-m", "gpt2"),
        ("-m", "gpt2", "-m", "gpt2-xl", "-d", "t4", "-d", "m1", "-t", "inference", "--baseline", "t4"),
    ],
    "plan": [
        SMALL,
        ("-m", "llama-3-8b", "-d", "rtx-4090", "-t", "finetune"),
        ("-m", "gpt3-175b", "-d", "rtx-3050-laptop"),
    ],
    "solve": [
        ("max-model", "-d", "t4", "-t", "inference"),
        ("max-batch", *SMALL),
        ("max-context", *SMALL, "-t", "inference"),
        ("max-users", *SMALL, "-t", "inference", "--tpot", "1s"),
        ("max-rate", *SMALL, "-t", "inference"),
        ("max-rank", *SMALL, "-t", "lora"),
        ("min-devices", "-m", "llama-3-8b", "-d", "rtx-4090"),
        ("min-memory", *SMALL),
        ("tokens", *SMALL, "--deadline", "1d"),
        ("deadline", *SMALL, "--tokens", "1B"),
        ("optimal", "-d", "rtx-4090", "--deadline", "1d"),
        ("cheapest", "-m", "gpt2", "--tokens", "1B", "--deadline", "7d"),
        ("max-batch", "-m", "gpt3-175b", "-d", "t4"),
    ],
    "launch": [
        ("--engine", "accelerate", "-m", "llama-3-8b", "-d", "rtx-4090", "-t", "qlora"),
        ("--engine", "vllm", "-m", "llama-3-8b", "-d", "rtx-4090", "-t", "inference"),
    ],
    "check.result": [("checks.yaml",)],
    "claims": [("longcat-total-params", "mixtral-56b", "7b-training-memory")],
    "diff": [("a.json", "b.json"), ("a.json", "a.json")],
    "backtest": [("measured.yaml",), ("measured.yaml", "--naive", "--worst", "1")],
    "backtest.calibrate": [("own.yaml", "--calibrate", "--add", OWN)],
    "learn": [("run.log", "-d", "rtx-3090"), ("mixed.log", "-d", "rtx-3090")],
    "detect": [()],
    "catalog.path": [()],
    "catalog.check": [()],
    "sweep": [("scenarios.ndjson",)],
    **{f"{name}.list": [()] for name in ("devices", "models", "backends", "offers")},
    **{f"{name}.search": [(word,)] for name, word in [("devices", "h100"), ("models", "llama"), ("backends", "cuda")]},
    "offers.search": [("t4",)],
    **{f"{name}.show": [(word,)] for name, word in [("devices", "t4"), ("models", "gpt2"), ("backends", "cuda")]},
    "offers.show": [("kaggle-2xt4",)],
}
"""By schema: what its command is asked."""

SILENT = ("schema", "completion", "mcp", "page")
"""Commands that write no envelope."""


@pytest.fixture
def folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file for every command that reads one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    Path("checks.yaml").write_text(CHECKS, encoding="utf-8")
    Path("scenarios.ndjson").write_text('{"id": 1, "model": "gpt2", "device": "t4"}\n{"id": 2, "model": "nothing"}\n')
    assert run("estimate", *SMALL, "--json", "-o", "a.json").code == 0
    assert run("estimate", *SMALL, "--optimizer", "sgd", "--json", "-o", "b.json").code == 0
    Path("measured.yaml").write_text(MEASURED, encoding="utf-8")
    logs = {name: (LOGS / name).read_text(encoding="utf-8") for name in ("llama-server.log", "trainer-4.log")}
    Path("run.log").write_text(logs["llama-server.log"], encoding="utf-8")
    Path("mixed.log").write_text("".join(logs.values()), encoding="utf-8")
    return tmp_path


def asked(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from ((name, arguments) for arguments in ASKED[name])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [case for name in ASKED for case in asked(name)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_what_a_command_writes_fits_its_schema(run: Run, folder: Path, name: str, arguments: tuple[str, ...]) -> None:
    command = name.split(".")[:1] if name in ("check.result", "backtest.calibrate") else name.split(".")
    flag = "ndjson" if name == "sweep" else "json"
    result = run(*command, *arguments, "--format", flag)
    assert result.code in (0, 4) or (name == "sweep" and result.code == 3), result.err
    schema = printed(run, name)
    written = [json.loads(line) for line in result.out.splitlines()] if name == "sweep" else [json.loads(result.out)]
    assert written
    for envelope in written:
        assert faults(envelope, schema) == []
        assert list(unpublished(envelope, schema, "$")) == []


@pytest.mark.parametrize("memory_bytes", [2**34, None])
def test_a_machine_of_which_little_is_known_fits_the_schema(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, memory_bytes: int | None
) -> None:
    seen = Found(
        backend="cpu", vendor="intel", name="Some Processor", memory_bytes=memory_bytes, source="/proc/cpuinfo"
    )
    monkeypatch.setattr("llmfeas.machine.this_machine", lambda: Machine(accelerators=(), processor=seen))
    result = run("detect", "--json")
    assert result.code == 0, result.err
    assert faults(json.loads(result.out), printed(run, "detect")) == []


def unpublished(value: Any, schema: dict[str, Any], place: str) -> Iterator[str]:
    """Name the keys that a value has and its schema does not, wherever the schema says which there must be."""
    fitting = [each for each in schema.get("anyOf", [schema]) if faults(value, each) == []]
    known: dict[str, Any] = {key: inner for each in fitting for key, inner in each.get("properties", {}).items()}
    if isinstance(value, dict) and any("required" in each for each in fitting):
        for key, inner in value.items():
            if key not in known:
                yield f"{place}.{key}"
            else:
                yield from unpublished(inner, known[key], f"{place}.{key}")
    if isinstance(value, list):
        for item in value:
            yield from unpublished(item, next(iter(fitting), {}).get("items", {}), f"{place}[]")


def test_every_command_that_writes_json_is_asked() -> None:
    assert {name.split(".")[0] for name in ASKED} == set(COMMANDS) - set(SILENT)


def test_every_question_is_asked() -> None:
    assert {arguments[0] for arguments in ASKED["solve"]} == set(QUESTIONS)


@pytest.mark.parametrize("name", schemas())
def test_schemas_only_grow(name: str) -> None:
    """UPDATE_GOLDEN=1 stores the schemas: after a new field or command, never to get around a break."""
    path = STORED / f"{name}.json"
    now = json.loads(json.dumps(schemas()[name]()))
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert path.is_file(), f"{name} is new: UPDATE_GOLDEN=1 stores it"
    assert list(breaks(json.loads(path.read_text(encoding="utf-8")), now, name, given=name in INPUTS)) == []


def test_no_schema_has_gone() -> None:
    assert {path.stem for path in STORED.glob("*.json")} <= set(schemas())


def kinds(schema: dict[str, Any]) -> set[str]:
    found = schema.get("type", [])
    return {found} if isinstance(found, str) else set(found)


def breaks(old: Any, new: Any, place: str, *, given: bool) -> Iterator[str]:
    """Name what a reader (or with `given` a writer) of the old schema would stumble over."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    wrong = kinds(old) - kinds(new) if given else kinds(new) ^ kinds(old)
    if kinds(old) and kinds(new) and wrong:
        yield f"{place}: the type changed from {sorted(kinds(old))} to {sorted(kinds(new))}"
    gone = [word for word in old.get("enum", []) if word not in new.get("enum", old.get("enum", []))]
    if gone:
        yield f"{place}: {gone} are gone"
    if given:
        yield from (
            f"{place}: {key} is now required" for key in set(new.get("required", [])) - set(old.get("required", []))
        )
    else:
        yield from (
            f"{place}: {key} may be missing now" for key in set(old.get("required", [])) - set(new.get("required", []))
        )
    for group in ("properties", "$defs"):
        for key, inner in old.get(group, {}).items():
            if key not in new.get(group, {}):
                yield f"{place}: {key} is gone"
            else:
                yield from breaks(inner, new[group][key], f"{place}.{key}", given=given)
    for key in ("items", "additionalProperties"):
        yield from breaks(old.get(key), new.get(key), f"{place}[]", given=given)
    yield from _alternatives(old.get("anyOf", []), new.get("anyOf", []), place, given=given)


def _alternatives(old: list[Any], new: list[Any], place: str, *, given: bool) -> Iterator[str]:
    for index, one in enumerate(old):
        found = [list(breaks(one, other, f"{place}|{index}", given=given)) for other in new]
        if [] not in found:
            yield from found[index] if index < len(found) else [f"{place}: an alternative is gone"]


OLD: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "b": {
            "type": "array",
            "items": {"type": "object", "properties": {"c": {"type": "string", "enum": ["x", "y"]}}},
        },
    },
}


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(OLD))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    "new",
    [
        changed(("properties", "b"), None),
        changed(("properties", "a", "anyOf", 0, "type"), "string"),
        changed(("properties", "b", "type"), "object"),
        changed(("properties", "b", "items", "properties"), {"renamed": {}}),
        changed(("properties", "b", "items", "properties", "c", "enum"), ["x"]),
        changed(("required",), []),
    ],
)
def test_a_break_is_found(new: dict[str, Any]) -> None:
    assert list(breaks(OLD, new, "$", given=False))


def test_growth_is_no_break() -> None:
    grown = changed(("properties", "new"), {"type": "string"})
    grown["properties"]["b"]["items"]["properties"]["c"]["enum"].append("z")
    assert list(breaks(OLD, grown, "$", given=False)) == []
    assert list(breaks(OLD, changed(("required",), ["a", "b"]), "$", given=True)) == ["$: b is now required"]
