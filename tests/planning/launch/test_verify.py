"""`launch --verify`: the engine's own words on what is written for it; engines here are programs that play them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from launches import launched, words

from llmfeas.cli import main
from llmfeas.errors import CheckFailedError, UsageError
from llmfeas.planning.launch import LAUNCHERS
from llmfeas.planning.launch.verify import verified

ASK = {"model": "llama-3-8b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m"}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PATH", str(tmp_path))

    def play(name: str, says: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s\\n' '{says}'\n")
        (tmp_path / name).chmod(0o755)

    return play


def test_what_is_not_installed_is_not_asked(programs: Any) -> None:
    assert verified(LAUNCHERS["llama.cpp"], launched("llama.cpp", **ASK)) is None


def test_a_program_knows_its_options(programs: Any) -> None:
    launch = launched("llama.cpp", **ASK)
    names = [word for word in words(launch) if word.startswith("-")]
    programs("llama-server", "usage: " + ", ".join(names))
    assert verified(LAUNCHERS["llama.cpp"], launch) == "llama.cpp"
    programs("llama-server", "usage: " + ", ".join(names[1:]))
    with pytest.raises(CheckFailedError, match=f"does not name {names[0]}"):
        verified(LAUNCHERS["llama.cpp"], launch)


def test_a_program_reads_its_whole_command(programs: Any, tmp_path: Path) -> None:
    launch = launched("litgpt", model="llama-3.1-8b", device="16xh100-sxm", task="pretrain", tokens=1e9)
    programs("litgpt", "")
    assert str(verified(LAUNCHERS["litgpt"], launch)).startswith("litgpt")
    script = '#!/bin/sh\necho "got $*"; echo; echo "Expected an int"; exit 2\n'
    (tmp_path / "litgpt").write_text(script)
    with pytest.raises(CheckFailedError, match=r"got pretrain .* --print_config Expected an int"):
        verified(LAUNCHERS["litgpt"], launch)


def test_torchtune_lists_its_configurations(programs: Any) -> None:
    launch = launched("torchtune", model="llama-3.1-8b", device="rtx-4090", task="lora")
    programs("tune", "lora_finetune_single_device llama3_1/8B_lora_single_device")
    assert str(verified(LAUNCHERS["torchtune"], launch)).startswith("torchtune")
    programs("tune", "lora_finetune_single_device llama3_1/8B_lora")
    with pytest.raises(CheckFailedError, match="8B_lora_single_device"):
        verified(LAUNCHERS["torchtune"], launch)


def test_an_engine_without_a_parser_says_so() -> None:
    with pytest.raises(UsageError, match="no parser"):
        verified(LAUNCHERS["megatron"], launched("megatron", model="llama-3-8b", device="8xh100-sxm", task="pretrain"))


def test_what_is_refused_is_not_written(programs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs("llama-server", "usage: nothing")
    ask = ["launch", "--engine", "llama.cpp", "-m", "llama-3-8b", "-d", "rtx-4090", "--quant", "q4_k_m", "--verify"]
    assert main([*ask, "-o", str(tmp_path / "out")]) == 4
    assert not (tmp_path / "out").exists()
    assert "does not read this recipe" in capsys.readouterr().err
    (tmp_path / "llama-server").unlink()
    assert main([*ask, "--json"]) == 0
    said = capsys.readouterr()
    assert '"read_by": null' in said.out and "not installed here" in said.err
