from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

sys.path.insert(0, str(Path(__file__).parents[1] / "importers"))
import gguf_files

Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LLMFEAS_CATALOG", raising=False)
    monkeypatch.chdir(tmp_path)


def overlay(path: Path, text: str = "devices:\n- {extends: rtx-4090, power_w: 123}\n") -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def power(outcome: Outcome) -> float:
    return float(json.loads(outcome.out)["result"]["power_w"])


SHOW = ("devices", "show", "rtx-4090", "--json")


def test_an_overlay_changes_every_command_and_is_named(run: Run, tmp_path: Path) -> None:
    path = overlay(tmp_path / "mine.yaml")
    outcome = run(*SHOW, "--catalog", path)
    assert power(outcome) == 123
    assert "mine.yaml@" in json.loads(outcome.out)["catalog"]
    assert power(run(*SHOW)) != 123


def test_the_last_of_several_overlays_wins(run: Run, tmp_path: Path) -> None:
    first = overlay(tmp_path / "a.yaml")
    second = overlay(tmp_path / "b.yaml", "devices:\n- {extends: rtx-4090, power_w: 99}\n")
    assert power(run(*SHOW, "--catalog", first, "--catalog", second)) == 99


def test_project_user_and_variable(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay(tmp_path / "llmfeas.yaml")
    assert power(run(*SHOW)) == power(run(*SHOW, "--no-user-catalog")) == 123
    elsewhere = overlay(tmp_path / "env.yaml", "devices:\n- {extends: rtx-4090, power_w: 77}\n")
    monkeypatch.setenv("LLMFEAS_CATALOG", elsewhere)
    assert power(run(*SHOW)) == 77
    assert power(run(*SHOW, "--no-user-catalog")) == 123


def test_an_estimate_names_the_overlay(run: Run, tmp_path: Path) -> None:
    path = overlay(tmp_path / "mine.yaml")
    outcome = run("estimate", "-m", "gpt2", "-d", "rtx-4090", "--json", "--catalog", path)
    codes = [warning["code"] for warning in json.loads(outcome.out)["warnings"]]
    assert "overlay" in codes


def test_a_bad_overlay_is_exit_3_with_file_and_line(run: Run, tmp_path: Path) -> None:
    path = overlay(tmp_path / "bad.yaml", "devices:\n- extends: rtx-4090\n  power_w: -3\n")
    for arguments in ((*SHOW, "--catalog", path), ("catalog", "check", path)):
        outcome = run(*arguments)
        assert (outcome.code, outcome.out) == (3, "")
        assert "bad.yaml:3" in outcome.err
    assert run(*SHOW, "--catalog", "none.yaml").code == 3


def test_check_tells_every_problem(run: Run, tmp_path: Path) -> None:
    text = "devices:\n- {extends: rtx-4090, power_w: -3}\n- {extends: rtx-3090, power_w: -3}\n"
    outcome = run("catalog", "check", overlay(tmp_path / "bad.yaml", text))
    assert outcome.code == 3
    assert "bad.yaml:2" in outcome.err and "bad.yaml:3" in outcome.err


def test_init_begins_a_file_that_is_valid_and_never_overwrites(run: Run, tmp_path: Path) -> None:
    assert run("catalog", "init").code == 0
    assert (tmp_path / "config" / "llmfeas" / "catalog.yaml").is_file()
    assert run("catalog", "init").code == 2
    assert run("catalog", "check").code == 0
    shown = json.loads(run("catalog", "path", "--json").out)["result"]
    assert shown["overlays"] == [str(tmp_path / "config" / "llmfeas" / "catalog.yaml")]


@pytest.mark.parametrize(("kind", "name"), [("devices", "h100-sxm"), ("models", "deepseek-v3"), ("offers", "colab-t4")])
def test_what_show_writes_as_yaml_is_the_entry(run: Run, tmp_path: Path, kind: str, name: str) -> None:
    written = run(kind, "show", name, "--yaml")
    assert written.code == 0
    path = overlay(tmp_path / "entry.yaml", written.out)
    assert run("catalog", "check", path).code == 0
    before = json.loads(run(kind, "show", name, "--json").out)["result"]
    after = json.loads(run(kind, "show", name, "--json", "--catalog", path).out)["result"]
    assert after == before


def test_models_show_a_file(run: Run, tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "tiny.gguf", *gguf_files.llama())
    outcome = run("models", "show", str(path), "--json")
    result = json.loads(outcome.out)["result"]
    assert result["stored_parameters"] == result["parameters"]["total"]
    assert result["stored"]["label"] == "q4_k_m"
    written = run("models", "show", str(path), "--yaml").out
    own = overlay(tmp_path / "own.yaml", written)
    shown = json.loads(run("models", "show", "tiny-llama", "--json", "--catalog", own).out)["result"]
    assert shown["architecture"] == result["architecture"]


def test_models_show_what_is_no_model(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"\x80\x02.")
    outcome = run("models", "show", "m.bin")
    assert outcome.code == 3
    assert "safetensors" in outcome.err


def test_detect(run: Run, tmp_path: Path) -> None:
    result = json.loads(run("detect", "--json").out)["result"]
    assert {"id", "backend", "matched", "differences", "detected", "host_memory_bytes", "others"} <= result.keys()
    assert run("detect").code == 0
    assert run("detect", "--yaml").out.startswith("devices:\n- ")


def test_a_machine_that_nothing_is_known_of_fits_the_schema(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_schema_command import faults, printed

    from llmfeas.machine import Machine
    from llmfeas.machine.probe import Found

    unknown = (
        Found(backend="cpu", vendor="intel", name="Some Processor", cores=2, memory_bytes=24 * 2**30),
        Found(backend="cuda", vendor="nvidia", name="Some Card"),
    )
    for found in unknown:
        monkeypatch.setattr("llmfeas.machine.this_machine", lambda found=found: Machine((found,), None))
        assert faults(json.loads(run("detect", "--json").out), printed(run, "detect")) == []
        said = " ".join(run("detect").out.split())
        then = "taken: what its cores" if found.backend == "cpu" else "write 'llmfeas detect --yaml' to a file"
        assert f"{found.name} is not in the catalog; {then}" in said
        assert f"{found.name}: {found.name}" not in said


def test_checking_no_file_says_so(run: Run, tmp_path: Path) -> None:
    assert run("catalog", "check").out.startswith("No file of one's own is in use\n\nDoubts ")
    assert run("catalog", "check", overlay(tmp_path / "mine.yaml")).out.startswith("No problem found\n\nField ")


def test_checking_doubts_prices_and_processors(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "devices:\n"
        "- {extends: rtx-3060-12gb, prices: [{provider: mine, usd_per_hour: 1.5}]}\n"
        "- {id: box, name: Box, extends: ryzen-7-5800x, bandwidth_gb_per_s: 204.8}\n"
    )
    checked = json.loads(run("catalog", "check", str(path), "--json").out)["result"]
    assert [(found["entry"], found["field"]) for found in checked["doubts"]] == [
        ("rtx-3060-12gb", "prices.0"),
        ("box", "bandwidth_gb_per_s"),
    ]
    assert "1.5 USD an hour" in checked["doubts"][0]["message"]
    assert checked["doubts"][1]["message"] == "204.8 is stated, channels and memory type say 51.2"
    ours = json.loads(run("catalog", "check", "--json").out)["result"]["doubts"]
    assert {found["field"] for found in ours} == {"tflop_per_s.int8"}


def test_this_machine_is_a_device(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import recorded
    from llmfeas import machine
    from llmfeas.machine.cpu import parse_cpuinfo
    from llmfeas.machine.nvidia import parse_nvidia_smi

    cards = parse_nvidia_smi(recorded.NVIDIA_SEVEN_A100)
    here = machine.Machine(tuple(cards), parse_cpuinfo(recorded.CPUINFO_9654P, 2**39))
    monkeypatch.setattr(machine, "this_machine", lambda: here)
    envelope = json.loads(run("estimate", "-m", "gpt2", "-d", "this", "--json").out)
    assert envelope["inputs"]["device"]["value"] == "a100-pcie-80gb"
    assert envelope["inputs"]["num_devices"]["value"] == 6


def test_own_measurements_are_kept_and_calibrate(run: Run, tmp_path: Path) -> None:
    text = "model=llama-3-8b device=rtx-4090 task=inference quant=q4_k_m decode=120"
    outcome = run("backtest", "--add", text, "--calibrate", "--json")
    assert outcome.code == 0
    (found,) = json.loads(outcome.out)["result"]["calibration"]
    assert (found["kind"], found["rows"]) == ("decode", 1)
    assert found["width"] < found["width_before"]
    question = ("estimate", "-m", "llama-3-8b", "-d", "rtx-4090", "-t", "inference", "--quant", "q4_k_m", "--json")
    codes = [warning["code"] for warning in json.loads(run(*question).out)["warnings"]]
    assert {"calibrated", "overlay"} <= set(codes)
    alone = [warning["code"] for warning in json.loads(run(*question, "--no-user-catalog").out)["warnings"]]
    assert "calibrated" not in alone
    assert run("backtest", "--add", text, "other.yaml").code == 0
    assert json.loads(run("backtest", "other.yaml", "--json").out)["result"]["kinds"][0]["kind"] == "decode"


def test_a_measurement_that_is_none(run: Run) -> None:
    outcome = run("backtest", "--add", "fast")
    assert outcome.code == 2
    assert "NAME=VALUE" in outcome.err
    assert run("backtest", "--calibrate").code == 2


def test_the_example_of_the_documentation_is_valid(run: Run, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "files-and-machines.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    path = overlay(tmp_path / "example.yaml", example)
    assert run("catalog", "check", path).code == 0
    assert json.loads(run("devices", "show", "my-48gb", "--json", "--catalog", path).out)["result"]["memory_gib"] == 48


def test_a_script_gets_all_faults_of_a_catalog_file_in_one_object(run: Run, tmp_path: Path) -> None:
    entries = "- {id: a, name: A, extends: rtx-4090, power_w: -1}\n- {id: b, name: B, extends: nope}\n"
    path = overlay(tmp_path / "bad.yaml", f"devices:\n{entries}")
    outcome = run("catalog", "check", path, "--json")
    assert (outcome.code, outcome.out) == (3, "")
    assert "power_w" in outcome.error["message"] and "nope" in outcome.error["message"]
    assert len(run("catalog", "check", path).err.splitlines()) == 2


def test_a_script_gets_unusable_measurements_in_the_answer_and_one_error(run: Run, tmp_path: Path) -> None:
    rows = "  - {id: good, measured: {tokens_per_second: 9e4}}\n  - {id: bad, measured: {tokens_per_second: -5}}\n"
    group = (
        "group: g, source: s, url: 'https://example.org', as_of: '2026-01', trust: high, backend: cuda, framework: f"
    )
    asked = "scenario: {model: gpt2, device: rtx-4090, task: pretrain, micro_batch: 8}"
    head = "".join(f"  {part}\n" for part in (*group.split(", "), asked))
    (tmp_path / "m.yaml").write_text("groups:\n-" + head[1:] + "  rows:\n" + rows)
    outcome = run("backtest", "m.yaml", "--json")
    assert outcome.code == 3
    assert outcome.error["code"] == "bad-rows"
    (warning,) = json.loads(outcome.out)["warnings"]
    assert "m.yaml:" in warning["message"] and "-5." in warning["message"]
    assert "-5. The header" in run("backtest", "m.yaml").err


def test_measurements_are_found_by_any_name_of_their_device(run: Run) -> None:
    by_id, by_name = (run("backtest", "--kind", "decode", "-d", name, "--json") for name in ("rtx-4090", "RTX 4090"))
    assert json.loads(by_name.out)["result"] == json.loads(by_id.out)["result"]
    assert run("backtest", "-d", "nothing").code == 2


@pytest.mark.parametrize("command", [("devices", "show", "rtx-4090"), ("models", "show", "gpt2"), ("detect",)])
@pytest.mark.parametrize("other", [("--json",), ("--format", "csv")])
def test_an_entry_is_asked_in_one_format(run: Run, command: tuple[str, ...], other: tuple[str, ...]) -> None:
    result = run(*command, "--yaml", *other)
    assert result.code == 2
    assert "exclude each other" in result.err
