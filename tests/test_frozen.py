"""Whole answers on a frozen catalog: what changes here changes for everybody, and is to be looked at.

`UPDATE_GOLDEN=1 pytest tests/test_frozen.py` writes the answers anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
START = """
import sys
from llmfeas.catalog import store
folder = sys.argv.pop(1)
store.data_folder = lambda: folder
from llmfeas.cli import main
sys.exit(main())
"""
ASKS = {
    "pretrain": "estimate -m gpt2-xl -d rtx-4070ti --json",
    "qlora": "estimate -m llama-3-8b -d t4 -t qlora --micro-batch 1 --json",
    "serving": "estimate -m mixtral-8x7b -d m2-ultra -t inference --quant q4_k_m --memory 128GiB --json",
    "cluster": "estimate -m llama-3-8b -d 16xh100-sxm -t pretrain --checkpointing full --tokens 1B --json",
    "processor": "estimate -m llama-3-8b -d ryzen-9-7950x -t inference --quant q4_k_m",
    "compare": "compare -m gpt2-xl -t lora --all",
    "plan": "plan -m llama-3-8b -d rtx-4070ti -t finetune",
    "solve": "solve max-context -m llama-3-8b -d rtx-4070ti -t inference --quant q4_k_m",
}


LONG = re.compile(r"\d+\.\d{9,}")


def rounded(text: str) -> str:
    """Long decimals to twelve digits: from Python 3.12 on `sum` loses less of the last ones."""
    return LONG.sub(lambda number: f"{float(number[0]):.12g}", text)


@pytest.mark.parametrize("name", ASKS)
def test_the_whole_answer_is_as_before(name: str) -> None:
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", START, str(DATA / "mini"), *ASKS[name].split(), "--no-user-catalog"]
    found = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True).stdout
    golden = DATA / "frozen" / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert rounded(found) == rounded(golden.read_text(encoding="utf-8"))
