"""Help, version, and commands that are imported only when used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module

import click
import pytest
from command_line import Outcome

from llmfeas import __version__
from llmfeas.cli.app import COMMANDS
from llmfeas.options import OPTIONS

Run = Callable[..., Outcome]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_a_file_with_help(run: Run, name: str) -> None:
    command = import_module(f"llmfeas.cli.commands.{name}").command
    assert isinstance(command, click.Command)
    assert command.name == name
    result = run(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: llmfeas {name}")
    assert max(map(len, result.out.splitlines())) <= 100


def test_help_names_every_command(run: Run) -> None:
    for asked in (["--help"], ["-h"], []):
        result = run(*asked)
        assert result.code == 0
        assert all(f"  {name} " in result.out for name in COMMANDS)


def test_help_of_estimate_names_every_setting(run: Run) -> None:
    out = run("estimate", "--help").out
    for option in OPTIONS:
        assert option.flag in out
        assert option.group in out


def test_version(run: Run) -> None:
    assert run("--version") == Outcome(0, f"llmfeas {__version__}\n", "")


def loaded_by(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_by("from llmfeas.cli import main; main(['--help'])")
    assert not loaded & {"rich", "pydantic", "yaml", "llmfeas.cli.commands.estimate", "llmfeas.catalog.store", "json"}


def test_reading_the_options_of_estimate_loads_nothing_heavy() -> None:
    loaded = loaded_by("from llmfeas.cli import main; main(['estimate', '--help'])")
    assert not loaded & {"rich", "pydantic", "yaml", "llmfeas.catalog.store"}


def test_short_help_fits_two_screens_and_names_the_options_of_every_day(run: Run) -> None:
    short, long = run("estimate", "-h"), run("estimate", "--help")
    assert (short.code, short.err) == (0, "")
    assert short.out.count("\n") <= 2 * 24
    for option in OPTIONS:
        assert (f"{option.flag} " in short.out or f"{option.flag}," in short.out) == option.everyday, option.name
    assert "--help shows all options" in short.out
    assert "--help shows all options" not in long.out


@pytest.mark.parametrize("command", [("devices", "list"), ("schema",), ("sweep",)])
def test_where_all_options_are_few_there_is_one_help(run: Run, command: tuple[str, ...]) -> None:
    assert run(*command, "-h") == run(*command, "--help")
