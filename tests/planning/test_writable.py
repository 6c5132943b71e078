"""Ways are those that an engine has: what its launchers have no word for is not proposed for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.planning.expressed import FAMILIES, expressed_by
from llmfeas.planning.launch import LAUNCHERS
from llmfeas.planning.plan import plan
from llmfeas.planning.writable import is_surely_written, is_written
from llmfeas.settle import resolution

BASE = {"model": "qwen3-0.6b", "task": "finetune"}


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ({"device": "m2", "checkpointing": "selective"}, False),
        ({"device": "m2", "checkpointing": "full"}, True),
        ({"device": "rtx-4090", "offload": "all"}, False),
        ({"device": "rtx-4090", "offload": "all", "engine": "deepspeed"}, True),
        ({"device": "rtx-4090", "offload": "all", "engine": "deepspeed", "optimizer": "adafactor"}, False),
        ({"device": "8xrtx-4090", "offload": "all"}, True),
        ({"device": "8xh100-sxm", "checkpointing": "selective", "engine": "megatron"}, True),
    ],
)
def test_a_change_is_written_where_the_engine_has_it(asked: dict[str, object], written: bool) -> None:
    """MLX recomputes all or nothing; FSDP moves only what it divides; DeepSpeed moves the states that it brings."""
    scenario = resolution({**BASE, **asked}, catalog()).scenario
    assert is_written(scenario, asked) == written


def test_an_engine_that_nothing_writes_for_tells_nothing() -> None:
    scenario = resolution({**BASE, "device": "8xh100-sxm", "engine": "torchtitan"}, catalog()).scenario
    assert not scenario.engine_record.launchers
    changed = {"checkpointing": "selective"}
    assert is_written(scenario, changed) and not is_surely_written(scenario, changed)


def test_what_moves_to_the_host_takes_the_engine_that_moves_it() -> None:
    """Unless the user named one."""
    asked = {"model": "llama-3-8b", "device": "rtx-4090", "task": "finetune"}
    moved = [way.settings for way in plan(asked, catalog()).ways if way.settings.get("offload") == "all"]
    assert moved and all(settings["engine"] == "deepspeed" for settings in moved)
    named = plan({**asked, "engine": "pytorch"}, catalog())
    assert not any(way.settings.get("offload") == "all" for way in named.ways if "num_devices" not in way.settings)


def test_what_is_proposed_is_held_against_what_the_launchers_refuse() -> None:
    """Both ask the same record."""
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted(LAUNCHERS)
    for name, launcher in LAUNCHERS.items():
        assert expressed_by(name) is launcher.expressed, name
    assert expressed_by("rapid") is None


def test_an_answer_with_remedies_imports_nothing_that_writes_recipes() -> None:
    program = (
        "import sys; from llmfeas import estimate; answer = estimate('gpt2-xl', 'rtx-4070ti')\n"
        "assert answer.remedies and 'llmfeas.planning.expressed.trainers' in sys.modules\n"
        "print([name for name in sys.modules if name.startswith('llmfeas.planning.launch')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
