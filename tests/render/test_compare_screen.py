"""The comparison on screen: what fits a width, a bar that reads at a glance, one table a model."""

from __future__ import annotations

import re

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.planning.compare import comparison
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.compare import report


def screen(models: list[str], devices: list[str], width: int, **request: object) -> str:
    found = comparison(request, models, devices, catalog())
    rows = [row.ranked(rank).to_dict() for rank, row in enumerate(found.rows, 1)]
    return rendered(report(rows, models, str(request.get("task", "pretrain")), None, 0), width)


REPRESENTATIVE = [device.id for device in catalog().devices.values() if device.representative]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("request_", [{}, {"task": "inference", "quant": "q4_k_m"}, {"task": "finetune"}])
def test_no_line_is_longer_than_the_screen(width: int, request_: dict[str, object]) -> None:
    text = screen(["gpt2"], REPRESENTATIVE, width, **request_)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


@pytest.mark.parametrize("width", [100, 120])
@pytest.mark.parametrize(
    "ask", [("gpt2", {}), ("llama-3-70b", {"task": "inference", "quant": "q4_k_m"}), ("llama-2-7b", {"task": "lora"})]
)
def test_bars_show_time_on_a_logarithmic_scale(width: int, ask: tuple[str, dict[str, object]]) -> None:
    text = screen([ask[0]], ["h100-sxm", "rtx-4090", "ryzen-9-7950x"], width, **ask[1])
    bars = [len(found) for found in re.findall("[▏▎▍▌▋▊▉█]+", text)]
    assert len(bars) == 3
    assert (min(bars), max(bars)) == (1, 10)


@pytest.mark.parametrize("width", [100, 120])
def test_bars_of_like_figures_are_as_long_as_these(width: int) -> None:
    text = screen(["gpt2"], ["h100-sxm", "rtx-4090"], width)
    hours = [float(found) for found in re.findall(r"([\d.]+) h +\(", text)]
    bars = [len(found) for found in re.findall("[▏▎▍▌▋▊▉█]+", text)]
    assert max(bars) == 10 and abs(min(bars) - 10 * min(hours) / max(hours)) <= 1
    assert "bar" not in screen(["gpt2"], ["h100-sxm"], width)


def test_at_sixty_columns_a_row_is_a_line() -> None:
    text = screen(["gpt2"], ["h100-sxm", "jetson-agx-orin-64gb"], 60)
    assert re.search(r"^✓ jetson-agx-orin-64gb .* h .*\)$", text, re.MULTILINE)
    every = screen(["gpt2-xl"], REPRESENTATIVE, 60)
    assert re.search(r"^✗ tpu-v5e .* days .*2×$", every, re.MULTILINE)


def test_each_model_has_its_table_under_its_name() -> None:
    text = screen(["gpt2", "gpt2-xl"], ["rtx-4090", "h100-sxm"], 80, task="finetune")
    assert text.index("Model      gpt2\n") < text.index("Model      gpt2-xl\n")
    assert text.splitlines()[0] == "gpt2, gpt2-xl on 2 devices"


def test_what_says_nothing_is_left_out() -> None:
    text = screen(["llama-2-7b"], ["rtx-4090"], 120, task="finetune")
    assert "Speed" not in text
    assert "Takes" in text
    assert "Takes" not in screen(["gpt2"], ["rtx-4090"], 120)


def test_the_column_that_rows_are_sorted_by_is_shown() -> None:
    for sort, title in (("energy", "Energy"), ("cost", "Cost")):
        found = comparison({}, ["gpt2"], REPRESENTATIVE, catalog(), sort=sort)
        rows = [row.ranked(rank).to_dict() for rank, row in enumerate(found.rows, 1)]
        assert title in rendered(report(rows, ["gpt2"], "pretrain", None, 0, sort), 66)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_what_the_legend_explains_is_there(width: int) -> None:
    text = screen(["llama-2-7b"], ["rtx-4090", "h100-sxm"], width, task="finetune")
    assert text.count("Takes") >= 2


def test_what_is_lent_for_nothing_is_free() -> None:
    assert " free" in screen(["gpt2"], ["kaggle-2xt4"], 120)


def test_a_load_that_is_missed_is_said_in_a_word() -> None:
    load = {"task": "inference", "prompt": 1000, "output": 300, "concurrency": 256, "tpot": "10ms"}
    text = " ".join(screen(["llama-3-8b"], ["h100-sxm"], 100, **load).split())
    assert "tokens come slower than --tpot" in text


def test_the_memory_that_is_assumed_of_a_machine_is_said() -> None:
    text = screen(["llama-3.1-8b"], ["strix halo", "ryzen 7 5800x", "rtx-4090"], 100, task="inference")
    assert "strix-halo 32 GiB" in text and "5800x 32 GiB" in text and "rtx-4090 24" not in text
    named = screen(["llama-3.1-8b"], ["strix halo 64gb", "rtx-4090"], 100, task="inference")
    assert "Assumed" not in named
