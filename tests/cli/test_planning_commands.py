"""`llmfeas plan`, `solve` and `compare`: formats, widths, checks, and what they refuse."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome

Run = Callable[..., Outcome]

PLAN = ("plan", "-m", "llama-2-7b", "-d", "rtx-4090", "-t", "finetune")
SCREENS = (
    PLAN,
    ("plan", "-m", "llama-3-70b", "-d", "rtx-4090", "-t", "inference"),
    ("plan", "-m", "gpt2-xl", "-d", "h100-sxm", "--deadline", "1h", "--keep", "tokens,task,num_devices"),
    ("plan", "-m", "gpt2-xl", "-d", "rtx-4070ti", "--any-device"),
    ("solve", "max-model", "-d", "rtx-4070ti", "-t", "inference", "--quant", "q4_k_m"),
    ("solve", "min-devices", "-m", "llama-2-7b", "-d", "rtx-4090", "-t", "finetune"),
    ("solve", "optimal", "-d", "rtx-3060-12gb", "--deadline", "300d"),
    ("solve", "cheapest", "-m", "gpt2", "--deadline", "7d"),
    ("compare", "-m", "gpt2", "-m", "gpt2-xl"),
)


def result(outcome: Outcome) -> Any:
    return json.loads(outcome.out)["result"]


def error(outcome: Outcome) -> Any:
    return json.loads(outcome.err)["error"]


@pytest.mark.parametrize("command", SCREENS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """At any width; the question is answered once."""
    for place in ("plan.plan", "solve.solved", "compare.comparison"):
        module, name = place.split(".")
        find = getattr(import_module(f"llmfeas.planning.{module}"), name)
        monkeypatch.setattr(f"llmfeas.planning.{place}", once(find))
    for width in (40, 60, 80, 100, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = run(*command).out.splitlines()
        assert lines and max(map(len, lines)) <= width, width


def once(find: Callable[..., Any]) -> Callable[..., Any]:
    """The same, whose first answer stands for all."""
    found: list[Any] = []

    def kept(*values: Any, **named: Any) -> Any:
        if not found:
            found.append(find(*values, **named))
        return found[0]

    return kept


def test_a_plan_says_what_to_change_and_what_that_gives_up(run: Run) -> None:
    text = " ".join(run(*PLAN).out.split())
    assert "✗ does not fit" in text
    assert "weights and states wait in main memory" in text


def test_what_works_already_is_said(run: Run) -> None:
    assert "Nothing has to change: 52.3 GiB, 2." in run("plan", "-m", "gpt2", "-d", "h100-sxm").out


def test_settings_to_keep_are_kept_however_they_are_written(run: Run) -> None:
    for keep in ("task,num_devices", "--task, --num-devices", "task,num-devices"):
        plans = result(run(*PLAN, "--keep", keep, "--json"))["plans"]
        assert plans and not any({"task", "num_devices"} & set(plan["changes"]) for plan in plans)


def test_a_plan_that_may_change_nothing_says_what_forbids_it(run: Run) -> None:
    keep = "attention,checkpointing,precision,optimizer,task,offload,seq_len,host_memory,num_devices,device"
    outcome = run(*PLAN, "--keep", keep, "--json")
    assert outcome.code == 0
    assert result(outcome)["plans"] == []
    assert "optimizer" in result(outcome)["nearest"]["emptied_by"]
    assert json.loads(outcome.out)["warnings"][-1]["code"] == "empty-search"
    assert "--keep holds" in run(*PLAN, "--keep", keep).out
    assert run(*PLAN, "--keep", keep, "--check").code == 4


def test_what_is_nearest_says_by_how_much_it_misses(run: Run) -> None:
    ask = ("plan", "-m", "gpt2-xl", "-d", "h100-sxm", "--deadline", "1h", "--keep", "tokens,task,num_devices")
    nearest = result(run(*ask, "--json"))["nearest"]
    assert nearest["missing_bytes"] == 0 and nearest["missing_seconds"] > 0 and nearest["missing_usd"] is None
    assert "misses by" in " ".join(run(*ask).out.split())


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--keep", "colour"), "unknown-setting"),
        (("--keep", ","), "bad-value"),
        (("--keep", "device", "--any-device"), "contradiction"),
        (("--deadline", "soon"), "bad-quantity"),
        (("--budget", "much"), "bad-quantity"),
        (("--quant", "nf4"), "contradiction"),
    ],
)
def test_a_plan_refuses_what_makes_no_sense(run: Run, more: tuple[str, ...], code: str) -> None:
    outcome = run(*PLAN, *more, "--json")
    assert outcome.code == 2
    assert error(outcome)["code"] == code
    assert error(outcome)["message"]


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (("tokens", "-m", "gpt2", "-d", "rtx-4090", "--deadline", "soon"), "bad-quantity"),
        (("tokens", "-m", "gpt2", "-d", "rtx-4090", "--budget", "-3"), "bad-quantity"),
        (("tokens", "-m", "gpt2", "-d", "rtx-4090"), "missing-option"),
        (("max-batch", "-d", "rtx-4090"), "missing-option"),
        (("max-model", "-m", "gpt2", "-d", "rtx-4090"), "contradiction"),
        (("max-rank", "-m", "gpt2", "-d", "rtx-4090"), "contradiction"),
        (("min-devices", "-m", "gpt2", "-d", "4xrtx-4090"), "contradiction"),
    ],
)
def test_solve_refuses_what_it_cannot_ask(run: Run, ask: tuple[str, ...], code: str) -> None:
    outcome = run("solve", *ask, "--json")
    assert outcome.code == 2
    assert error(outcome)["code"] == code


def test_solve_checks(run: Run) -> None:
    ask = ("solve", "max-batch", "-m", "llama-2-7b", "-t", "finetune", "--check")
    assert run(*ask, "-d", "h200").code == 0
    assert run(*ask, "-d", "rtx-4090").code == 4


def test_solve_takes_prices_and_devices_of_ones_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    price = "{provider: mine, usd_per_hour: 0.0001}"
    path.write_text(
        f"devices:\n- {{extends: rtx-4090, id: my-card, name: My Card, prices: [{price}]}}\n", encoding="utf-8"
    )
    ask = ("solve", "cheapest", "-m", "gpt2-xl", "-t", "lora", "--deadline", "7d", "--json", "--catalog", str(path))
    ranked = result(run(*ask))["answer"]["ranked"]
    assert next(row["provider"] for row in ranked if row["usd"]) == "mine"
    assert result(run("solve", "max-batch", "-m", "gpt2", "-d", "my-card", "--json", "--catalog", str(path)))["at"]


def test_a_thousand_devices_are_compared_once_each(run: Run) -> None:
    outcome = run("compare", "-m", "gpt2", *(["-d", "rtx-4090", "-d", "rtx-3090"] * 500), "--json")
    assert outcome.code == 0
    assert [row["rank"] for row in result(outcome)["rows"]] == [1, 2]
    assert run("compare", "-m", "gpt2", *(["-d", "rtx-4090"] * 1001)).code == 2


def test_compare_writes_every_format(run: Run) -> None:
    ask = ("compare", "-m", "gpt2", "-d", "rtx-4090", "-d", "8xh100-sxm", "--top", "2")
    rows = result(run(*ask, "--json"))["rows"]
    table = list(csv.DictReader(io.StringIO(run(*ask, "-f", "csv").out)))
    lines = [json.loads(line) for line in run(*ask, "-f", "ndjson").out.splitlines()]
    assert [row["device"] for row in table] == [row["device"] for row in rows] == [line["device"] for line in lines]
    assert float(table[0]["time.total_seconds.expected"]) == rows[0]["time"]["total_seconds"]["expected"]
    assert "| Device | GiB |" in run(*ask, "-f", "markdown").out


def test_a_table_of_devices_that_nobody_named_ends_with_the_screen(run: Callable[..., Outcome]) -> None:
    ask = ("compare", "-m", "gpt2", "--backend", "rocm", "-t", "lora")
    every = len(json.loads(run(*ask, "--json").out)["result"]["rows"])
    screen = run(*ask).out
    assert f"on {every} devices" in screen
    assert f"{every - 24} more not shown; --top {every} shows all." in " ".join(screen.split())
    assert "more not shown" not in run(*ask, "--top", str(every)).out


def test_compare_takes_the_whole_catalog(run: Run) -> None:
    outcome = run("compare", "-m", "gpt2", "--all", "--top", "5", "--json")
    assert [row["rank"] for row in result(outcome)["rows"]] == [1, 2, 3, 4, 5]
    assert "more not shown" in run("compare", "-m", "gpt2", "--all", "--top", "5").out


def test_a_baseline_that_cannot_run_it_is_said_on_stderr(run: Run) -> None:
    ask = ("compare", "-m", "llama-2-7b", "-t", "finetune", "-d", "h200", "--baseline", "gtx-1060-6gb")
    outcome = run(*ask, "--json")
    assert result(outcome)["rows"][0]["relative_speed"] is None
    assert json.loads(outcome.out)["warnings"][0]["code"] == "baseline-cannot"
    assert "cannot run this" in outcome.err
    assert "Speed" not in run(*ask).out


def test_compare_checks_that_a_row_works(run: Run) -> None:
    ask = ("compare", "-m", "llama-2-7b", "-t", "finetune", "--check")
    assert run(*ask, "-d", "rtx-4090", "-d", "h200").code == 0
    assert run(*ask, "-d", "rtx-4090").code == 4


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            ("tokens", "-m", "gpt2", "-d", "rtx-4090", "--budget", "100"),
            "Beyond more tokens: infeasible, over the budget",
        ),
        (("max-rank", "-m", "gpt2-xl", "-d", "t4", "-t", "lora"), "Beyond rank "),
        (("max-context", "-m", "llama-3-70b", "-d", "t4", "-t", "inference"), "Beyond 1 token of context: infeasible"),
    ],
)
def test_the_step_beyond_an_answer_reads_as_one_would_say_it(run: Run, ask: tuple[str, ...], says: str) -> None:
    assert says in " ".join(run("solve", *ask).out.split())


def test_the_time_that_something_takes_ends_with_that(run: Run) -> None:
    shown = run("solve", "deadline", "-m", "gpt2", "-d", "t4").out
    assert "Beyond" not in shown and "infeasible" not in shown


def test_nothing_that_works_is_said_once(run: Run) -> None:
    text = run("solve", "max-context", "-m", "llama-3-70b", "-d", "t4", "-t", "inference").out
    assert "none works" in text
    assert "No value works" not in text


def test_the_step_beyond_gives_the_reason_that_binds(run: Run) -> None:
    ask = ("min-devices", "-m", "llama-3-8b", "-d", "h100-sxm", "--deadline", "90d", "--json")
    because = result(run("solve", *ask))["beyond"]["because"]
    assert because.startswith("takes ")
    assert "may run out" not in because


def test_a_device_under_two_names_is_compared_once(run: Run) -> None:
    rows = result(run("compare", "-m", "gpt2", "-d", "t4", "-d", "T4", "-d", "1xt4", "-d", "2xt4", "--json"))["rows"]
    assert sorted(row["num_devices"] for row in rows) == [1, 2]


def test_names_behind_commas_are_compared_as_if_the_option_were_repeated(run: Run) -> None:
    once = run("compare", "-m", "gpt2,gpt2-xl", "-d", "rtx 4090, h100", "--json")
    often = run("compare", "-m", "gpt2", "-m", "gpt2-xl", "-d", "rtx 4090", "-d", "h100", "--json")
    assert once.out == often.out
    assert len(result(once)["rows"]) == 4
    alone = run("estimate", "-m", "gpt2", "-d", "rtx-4090,h100", "--json")
    assert error(alone)["code"] == "unknown-device"
    assert "Several devices side by side: 'llmfeas compare'." in error(alone)["hint"]


def test_a_file_whose_name_has_a_comma_stays_one_model(run: Run, tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 256, "n_positions": 64}
    (tmp_path / "a,b.json").write_text(json.dumps(config), encoding="utf-8")
    assert len(result(run("compare", "-m", str(tmp_path / "a,b.json"), "-d", "rtx-4090", "--json"))["rows"]) == 1


def test_rows_of_a_comparison_say_the_format_in_which_each_device_holds_the_weights(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("compare", "-m", "qwen3-8b", "-d", "rtx-4090,b580", "-t", "inference")
    rows = result(run(*asked, "--json"))["rows"]
    for row in rows:
        alone = json.loads(run("estimate", "-m", "qwen3-8b", "-d", row["device"], "-t", "inference", "--json").out)
        settled = {name: alone["inputs"][name]["value"] for name in ("engine", "precision", "quant")}
        assert {name: row[name] or "none" for name in settled} == settled
    assert len({row["quant"] for row in rows}) == 2
    for width in (60, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        assert "Format" in run(*asked).out
    assert "Format" not in run(*asked, "--quant", "q4_k_m").out


def test_a_comparison_says_what_was_given_and_what_was_not(run: Run) -> None:
    open_, given = (
        json.loads(run("compare", "-m", "gpt2", *more, "--json").out)["inputs"]
        for more in ((), ("-d", "t4", "--baseline", "t4"))
    )
    assert (open_["devices"]["origin"], open_["baseline"]["origin"]) == ("default", "default")
    assert (given["devices"]["origin"], given["baseline"]["origin"]) == ("given", "given")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("plan", "-m", "llama-3-8b", "-d", "m3-max", "-t", "finetune"), "Took 'm3-max-40c' for 'm3-max'"),
        (("solve", "max-context", "-m", "llama-3-8b", "-d", "rtx-4090", "-t", "inference"), "is beyond the context"),
        (
            ("solve", "max-batch", "-m", "gpt2", "-d", "t4", "-t", "inference", "--budget", "5"),
            "--budget has no meaning",
        ),
    ],
)
def test_warnings_stand_below_plans_and_answers(run: Run, command: tuple[str, ...], says: str) -> None:
    assert says in " ".join(run(*command).out.split())
