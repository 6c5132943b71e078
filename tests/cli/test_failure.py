"""Whatever goes wrong: what, where, what to do; the right exit code; nothing on stdout; never a traceback."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from llmfeas.cli import main
from llmfeas.cli.commands.solve import MEANT
from llmfeas.cli.failure import wants_json
from llmfeas.planning.solve import QUESTIONS

Run = Callable[..., Outcome]
ASK = ("estimate", "-m", "gpt2", "-d", "rtx-4090")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["estimat"], "Did you mean 'estimate'?"),
        (["devices", "lst"], "Did you mean 'list'?"),
        (["xyzzy"], "See 'llmfeas --help'."),
        (["estimate", "--bad"], "there is no option --bad. See 'llmfeas estimate --help'."),
        (["estimate", "--modle", "x"], "Did you mean --model"),
        (["--bogus"], "there is no option --bogus."),
        (["-m", "gpt2", "-d", "t4"], "Write it behind a command: llmfeas estimate ... -m."),
        (["solve", "-d", "t4"], "Write it behind a command: llmfeas solve COMMAND ... -d."),
        ([*ASK, "--batch-size", "4"], "Here it is --micro-batch in training, --concurrency in inference."),
        ([*ASK, "--nnodes", "4"], "Here it is --num-devices"),
        ([*ASK, "-ot", "exps=CPU"], "there is no option -ot. Here it is --n-cpu-moe."),
        (["compare", "-m", "gpt2", "--load-in-8bit"], "Here it is --quant int8."),
        (["devices", "list", "--batch-size", "4"], "there is no option --batch-size. See"),
        ([*ASK, "-d", "rtx 3090"], """takes several: --device rtx-4090 --device "rtx 3090"."""),
        ([*ASK, "--model", "gpt2-xl"], "--model is given 2 times: gpt2, gpt2-xl."),
        (["estimate", "-m", "llama", "3", "8b", "-d", "rtx", "4090"], """quotes: -m "llama 3 8b" -d "rtx 4090"."""),
        (["estimate", "gpt2-xl", "4090"], "Did you mean --model gpt2-xl --device 4090?"),
        (["estimate", "-m", "gpt2-xl", "4090"], """quotes: -m "gpt2-xl 4090"; a device stands behind --device."""),
        (["compare", "-m=gpt2-xl", "gpt2 medium"], """Did you mean --device "gpt2 medium"?"""),
        ([*ASK, "-q", "4bit"], "-q is --quiet; a format stands behind --quant: --quant 4bit."),
        (["gpt2-xl"], "To ask about a model: llmfeas estimate -m MODEL -d DEVICE."),
        (["estimate", "-m", "./Meta-Llama.gguf", "-d", "t4"], "./Meta-Llama.gguf: there is no such file"),
        (["estimate", "-m", "gemma 4", "-d", "t4"], "'gemma 4' can mean several models. Choose 'gemma-4-"),
        (["estimate"], "--model is missing. For example: llmfeas estimate"),
        (["estimate", "-m", "gpt2"], "--device is missing."),
        (["estimate", "--model"], "'--model' requires an argument"),
        (["estimate", "surplus"], "surplus"),
        ([*ASK, "-f", "xml"], "--format: 'xml' is not one of"),
        ([*ASK, "-f", "jsno"], "Did you mean 'json' or 'ndjson'?"),
        ([*ASK, "-t", "trian"], "Did you mean 'pretrain'?"),
        (["devices", "show"], "name is missing."),
        (["sweep"], "file is missing. - reads standard input."),
        (["devices", "list", "--min-memory", "12"], "--min-memory: '12' has no unit"),
        (["schema", "estimat"], "Did you mean 'estimate'?"),
        (["completion", "ksh"], "shell: 'ksh' is not one of"),
        (["sweep", "-", "--jobs", "0"], "--jobs must be a whole number from 1 to 256"),
    ],
)
def test_wrong_use(run: Run, arguments: list[str], said: str) -> None:
    text = run(*arguments)
    assert text.code == (3 if ".gguf" in said else 2)
    assert text.err.startswith("Error: ")
    assert said in text.err
    assert text.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("max-concurrency", "max-users"),
        ("max_seq_len", "max-context"),
        ("min-gpus", "min-devices"),
        ("qps", "max-rate"),
    ],
)
def test_a_question_of_another_name_is_known_by_its_words(run: Run, name: str, question: str) -> None:
    assert run("solve", name, "--json").error["candidates"] == [question]


def test_words_lead_to_questions_that_exist() -> None:
    assert set(MEANT.values()) <= set(QUESTIONS)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["estimat", "--json"], "unknown-command"),
        (["estimate", "--json", "--modle", "x"], "unknown-option"),
        (["estimate", "--json"], "missing-option"),
        (["estimate", "--json", "--model"], "bad-option"),
        (["estimate", "--json", "surplus"], "usage"),
        (["--json", "estimate", "-m", "gpt2"], "unknown-option"),
        ([*ASK, "--json", "-f", "csv"], "contradiction"),
        (["devices", "list", "--json", "--min-memory", "12"], "bad-quantity"),
    ],
)
def test_wrong_use_told_to_a_script(run: Run, arguments: list[str], code: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert list(result.error) == ["code", "message", "hint", "candidates"]
    assert result.error["code"] == code


@pytest.mark.parametrize(
    "wrong",
    [
        ["--tokens", "-1"],
        ["--tokens", "minus"],
        ["--tokens", "1e30"],
        ["--micro-batch", "0"],
        ["--micro-batch", "1.5"],
        ["--seq-len", "1000000000000"],
        ["--seq-len", "10^12"],
        ["--mfu", "3"],
        ["--mfu", "nan"],
        ["--num-devices", "0"],
        ["--memory", "24"],
        ["--memory", "-3GiB"],
        ["--deadline", "soon"],
        ["--deadline", "30"],
        ["--budget", "inf"],
        ["--quant", "q4_z"],
        ["--precision", "bf61"],
        ["--zero", "4"],
        ["--fsdp", "--zero", "1"],
        ["--model", ""],
    ],
)
@pytest.mark.usefixtures("stored_answers")
def test_wrong_values(run: Run, wrong: list[str]) -> None:
    text, script = run(*ASK, *wrong), run(*ASK, *wrong, "--json")
    assert text.code == script.code == 2
    assert text.err.startswith("Error: ")
    assert script.error["code"]
    assert script.error["hint"] or script.error["candidates"]
    flag = "--zero" if "--fsdp" in wrong else wrong[0]
    assert flag in script.error["message"]


@pytest.mark.usefixtures("stored_answers")
def test_an_error_of_the_core(run: Run) -> None:
    assert run("estimate", "-m", "x", "-d", "nothing").err == (
        "Error: unknown device 'nothing'. Did you mean 'rtx-4090'?\n"
    )
    assert run("estimate", "-m", "x", "-d", "nothing", "--json").error == {
        "code": "unknown-device",
        "message": "unknown device 'nothing'",
        "hint": "Did you mean 'rtx-4090'?",
        "candidates": ["rtx-4090"],
    }


@pytest.mark.usefixtures("stored_answers")
def test_a_bug_of_ours_is_called_one(run: Run) -> None:
    result = run("estimate", "-m", "x", "-d", "boom")
    assert result.code == 1
    assert "this is a bug of llmfeas (ZeroDivisionError: a bug\\x1b[31m)" in result.err
    assert run("estimate", "-m", "x", "-d", "boom", "--json").error["code"] == "bug"


@pytest.mark.usefixtures("stored_answers")
def test_a_bug_keeps_its_traceback_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMFEAS_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["estimate", "-m", "x", "-d", "boom"])


@pytest.mark.usefixtures("stored_answers")
def test_an_interrupt(run: Run) -> None:
    assert run("estimate", "-m", "x", "-d", "stop") == Outcome(130, "", "Interrupted.\n")
    assert run("estimate", "-m", "x", "-d", "stop", "--json").error["code"] == "interrupted"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ("estimate --json", True),
        ("estimate -f json", True),
        ("estimate -fjson", True),
        ("estimate --format=ndjson", True),
        ("estimate --format ndjson", True),
        ("estimate -f csv", False),
        ("estimate -o x.json", False),
        ("estimate -m json", False),
        ("sweep -- --json", False),
        ("", False),
    ],
)
def test_who_reads_errors(arguments: str, wanted: bool) -> None:
    assert wants_json(arguments.split()) == wanted


def test_errors_in_json_are_one_ascii_line(run: Run) -> None:
    result = run("estimate", "--modéle", "x", "--json")
    assert result.err.isascii()
    assert result.err.count("\n") == 1
    assert json.loads(result.err)["error"]["code"] == "unknown-option"


def test_what_the_system_refuses_is_no_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("catalog", "init", "a" * 5000)
    assert result.code == 2
    assert "File name too long" in result.err

    def full(group: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("llmfeas.cli.app.run", full)
    monkeypatch.setattr("llmfeas.cli.output.discard", lambda: None)
    result = run("--help")
    assert result.code == 2
    assert "cannot write standard output: No space left on device" in result.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a folder that somebody stands in")
def test_a_folder_that_was_removed_under_us(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run("devices", "show", "rtx-4090").code == 0
    assert run("catalog", "path").code == 0
    assert run("devices", "show", "rtx-4090", "-o", "x").code == 2


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--zero", "4"), "Write for instance 3."),
        (("--dropout", "1"), "Write for instance 0.1 or 10%."),
        (("--network", "400Gb/s"), "'400Gb/s' is no number. Write for instance 1.5, in GB/s."),
        (("--price", "x"), "Write for instance 0.35, in USD/h."),
        (("--micro-batch", "0"), "Write for instance 8 or 2k."),
    ],
)
def test_the_example_in_an_error_would_work(run: Run, flags: tuple[str, str], says: str) -> None:
    assert says in run("estimate", "-m", "gpt2", "-d", "t4", *flags).err


def test_a_count_before_a_device_is_bounded_like_the_option(run: Run) -> None:
    assert run("estimate", "-m", "gpt2", "-d", "10000000xt4", "-q").code == 0
    for count in (10_000_001, 10**11):
        assert "above the largest that makes sense, 10000000" in run("estimate", "-m", "gpt2", "-d", f"{count}xt4").err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sweep", "x", "--jobs", "0"), "--jobs must be a whole number from 1 to 256."),
        (("sweep", "x", "--jobs", "many"), "--jobs must be a whole number from 1 to 256."),
        (("compare", "-m", "gpt2", "--top", "0"), "--top must be a whole number of at least 1."),
    ],
)
def test_a_number_out_of_bounds_is_told_in_words(run: Run, arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert (result.code, says in result.err) == (2, True)


@pytest.mark.parametrize("command", ["estimate", "compare", "plan", "sweep", "backtest", "launch", "check"])
def test_help_names_values_in_plain_words(run: Run, command: str) -> None:
    assert not re.search(r"\b(TEXT|INTEGER)\b", run(command, "--help").out)


def test_a_device_said_twice_in_the_same_words_is_one(run: Run) -> None:
    assert run(*ASK, "-d", "rtx-4090", "-q").code == 0


@pytest.mark.parametrize(
    "variables",
    [
        {"_LLMFEAS_COMPLETE": "bash_complete"},
        {"_LLMFEAS_COMPLETE": "bash_complete", "COMP_WORDS": "llmfeas esti", "COMP_CWORD": "x"},
        {"_LLMFEAS_COMPLETE": "no such instruction\x1b[31m"},
    ],
)
def test_broken_variables_of_completion_are_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name in ("COMP_WORDS", "COMP_CWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = run()
    assert result.code == 2
    assert "is nothing that a shell asks" in result.err
    assert "\x1b" not in result.err


def test_an_interrupt_while_the_program_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, builtins\nreal = builtins.__import__\n"
    code += "def stop(name, *rest):\n    if name == 'app' or 'app' in (rest[2] or ()): raise KeyboardInterrupt\n"
    code += "    return real(name, *rest)\n"
    code += "from llmfeas.cli import main\nbuiltins.__import__ = stop\nsys.exit(main(['--help']))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "Interrupted.\n")
