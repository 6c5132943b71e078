"""An engine without kernels of its own is one record, and one file more where `launch` writes for it: every command
then knows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from llmfeas.planning import launch

Run = Callable[..., Outcome]

RECORDS = """\
engines:
- id: rapid
  name: Rapid Server
  aliases: [rapid-serve]
  like: vllm
  launchers: [rapid, vllm]
  backends: {cuda: [{status: limited, note: is young}]}
  serving: {partial: true, memory: {like: vllm-2023, fixed_bytes: 2.0e+9}}
- id: steady
  name: Steady Trainer
  does: [training]
  fused: true
  training:
    zero: 2
    kernels: fused
    style: tuned
    scheme: {weight: 2, gradient: 4, master: 4, whole_gradients: true}
    memory: {fixed_bytes: 1.0e+9, gaps: 0.02}
"""
LAUNCHER = '''\
"""Rapid: the command line of its server."""

from __future__ import annotations

from llmfeas.planning.expressed.expressible import Expressible
from llmfeas.planning.launch.launcher import Launch, Launcher
from llmfeas.scenario import Scenario


def write(scenario: Scenario) -> Launch:
    """Write the command."""
    return Launch((), f"rapid serve --model {scenario.model.id}")


LAUNCHER = Launcher(
    expressed=Expressible(id="rapid", tasks=("inference",), backends=frozenset({"cuda"})),
    name="Rapid",
    release="Rapid 1",
    install=("rapid",),
    write=write,
)
'''
SERVED = ("-m", "llama-3-8b", "-d", "rtx-4090", "-t", "inference", "--engine", "rapid")
TRAINED = ("-m", "gpt2-xl", "-d", "8xh100-sxm", "--engine", "steady")
COMMANDS = (
    ("estimate", *SERVED),
    ("estimate", *SERVED, "--explain", "--quant", "awq-int4"),
    ("estimate", *TRAINED),
    ("estimate", *TRAINED, "-t", "finetune", "--explain"),
    ("compare", *SERVED[:2], "--backend", "cuda", *SERVED[4:]),
    ("compare", *TRAINED[:2], "-d", "h200", "-d", "rtx-5090", *TRAINED[4:]),
    ("plan", "-m", "llama-3-70b", "-d", "rtx-4090", *SERVED[4:]),
    ("plan", "-m", "llama-3-8b", "-d", "rtx-4090", "-t", "finetune", "--engine", "steady"),
    ("solve", "max-context", *SERVED),
    ("solve", "max-batch", *TRAINED),
    ("solve", "min-devices", "-m", "llama-3-70b", "-d", "rtx-4090", *SERVED[4:]),
    ("check", "checks.yaml"),
    ("backtest", "measured.yaml"),
    ("sweep", "asks.ndjson"),
    ("catalog", "check"),
    ("backends", "show", "cuda"),
)


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("LLMFEAS_CATALOG", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("llmfeas.yaml").write_text(RECORDS)
    Path("checks.yaml").write_text(
        "model: llama-3-8b\ndevice: rtx-4090\ntask: inference\nengine: rapid\nexpect: {fits: true}\n"
    )
    ask = {"model": "llama-3-8b", "device": "rtx-4090", "task": "inference", "engine": "Rapid Server"}
    Path("asks.ndjson").write_text(json.dumps(ask) + "\n" + json.dumps({**ask, "gpu_layers": 20}) + "\n")
    Path("measured.yaml").write_text(
        "groups:\n- {group: one, source: a test, url: 'https://example.org', as_of: '2026-01', trust: high,"
        " backend: cuda, framework: rapid,\n   scenario: {model: llama-3-8b, device: rtx-4090, task: inference,"
        " engine: rapid},\n   rows: [{id: a, measured: {decode_tokens_per_second: 50}}]}\n"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_knows_an_engine_by_its_record(run: Run, command: tuple[str, ...]) -> None:
    outcome = run(*command)
    assert outcome.code == 0, outcome.err
    said = outcome.out + outcome.err
    assert "not known: taken as a plain one" not in said
    if command[0] in ("estimate", "sweep"):
        assert "rapid" in said or "steady" in said


def test_the_record_says_what_the_answer_rests_on(run: Run) -> None:
    served = json.loads(run("estimate", *SERVED[:-1], "rapid-serve", "--json").out)
    assert served["inputs"]["engine"]["value"] == "rapid"
    assert "rapid on GeForce RTX 4090: it is young" in [
        one["message"] for one in served["result"]["verdict"]["reasons"]
    ]
    plain = json.loads(run("estimate", *SERVED[:-1], "vllm-2023", "--json").out)
    more = [one["result"]["memory"]["components"]["runtime_bytes"] for one in (served, plain)]
    assert more[0] - more[1] == pytest.approx(1.2e9)
    trained = json.loads(run("estimate", *TRAINED, "--json").out)
    assert trained["inputs"]["zero"] == {"value": 2, "origin": "backend"}
    elsewhere = json.loads(run("estimate", *SERVED[:2], "-d", "mi300x", *SERVED[4:], "--json").out)
    assert elsewhere["result"]["verdict"]["status"] == "unsupported"


def test_a_launcher_is_one_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "launchers"
    folder.mkdir()
    (folder / "rapid.py").write_text(LAUNCHER)
    monkeypatch.setattr(launch, "__path__", [*launch.__path__, str(folder)])
    known = launch.Launchers()
    assert set(known) == {*launch.LAUNCHERS, "rapid"}
    monkeypatch.setattr(launch, "LAUNCHERS", known)
    outcome = run("launch", *SERVED, "--json")
    written = json.loads(outcome.out)
    assert written["result"]["command"] == "rapid serve --model llama-3-8b"
    assert written["inputs"]["engine"]["value"] == "rapid"
    kept = json.loads(run("launch", *SERVED[:-1], "vllm", "--json").out)
    assert kept["inputs"]["engine"]["value"] == "vllm"


def test_a_launcher_that_no_record_names_is_refused(run: Run) -> None:
    Path("llmfeas.yaml").write_text("engines:\n- {extends: vllm, launchers: []}\n")
    outcome = run("launch", *SERVED[:-2], "--engine", "vllm")
    assert (outcome.code, "no engine is launched by it" in outcome.err) == (2, True)


def test_a_launcher_of_ones_own_says_what_is_worth_proposing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    folder = tmp_path / "launchers"
    folder.mkdir()
    narrow = LAUNCHER.replace('frozenset({"cuda"})', 'frozenset({"cuda"}), choices={"max_num_seqs": (None,)}')
    (folder / "narrow.py").write_text(narrow.replace("rapid", "narrow"))
    Path("llmfeas.yaml").write_text("engines:\n- {id: rapid, name: Rapid, like: vllm, launchers: [narrow]}\n")
    ask = ("plan", "-m", "qwen3-32b", "-d", "rtx-4090", *SERVED[4:], "--json")

    def changed() -> set[str]:
        return {name for plan in json.loads(run(*ask).out)["result"]["plans"] for name in plan["changes"]}

    assert "max_num_seqs" in changed()
    monkeypatch.setattr(launch, "__path__", [*launch.__path__, str(folder)])
    monkeypatch.setattr(launch, "LAUNCHERS", launch.Launchers())
    assert "max_num_seqs" not in changed() and changed()
