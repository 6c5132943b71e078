"""`llmfeas devices|models|backends|offers`: list, show, search."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from command_line import Outcome

from llmfeas.catalog.store import catalog

Run = Callable[..., Outcome]
KINDS = ("devices", "models", "backends", "offers")


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)["result"]["rows"]


def listed_ids(kind: str) -> list[str]:
    """Those that somebody browses for."""
    return [key for key, record in getattr(catalog(), kind).items() if getattr(record, "has_weights", True)]


@pytest.mark.parametrize("kind", KINDS)
def test_list_has_a_row_for_each_entry(run: Run, kind: str) -> None:
    envelope = json.loads(run(kind, "list", "--json").out)
    assert envelope["schema"] == f"llmfeas.{kind}.list/1"
    assert envelope["catalog"] == catalog().digest
    found = envelope["result"]["rows"]
    assert [row["id"] for row in found] == listed_ids(kind)
    assert all({"id", "name"} <= set(row) for row in found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_a_listing_keeps_the_width(run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = run(kind, "list").out
    assert max(map(len, out.splitlines())) <= columns
    assert "…" not in out
    assert all(key in out for key in listed_ids(kind))


def test_models_without_weights_are_listed_when_asked_for(run: Run) -> None:
    envelope = json.loads(run("models", "list", "--json").out)
    every = rows(run("models", "list", "--all", "--json"))
    assert [row["id"] for row in every] == list(catalog().models)
    shapes = {row["id"] for row in every if not row["has_weights"]}
    assert {"gpt3-175b", "megatron-gpt-18.4b", "mpt-foundry-7b", "palm-540b"} <= shapes
    assert not shapes & {row["id"] for row in envelope["result"]["rows"]}
    assert [note["code"] for note in envelope["warnings"]] == ["left-out"]
    assert len(rows(run("models", "list", "--family", "gpt3", "--json"))) == 8
    assert run("models", "list").err.endswith("models without published weights are left out; --all lists them too.\n")


def test_what_needs_weights_that_nobody_published_is_told_so(run: Run) -> None:
    asked = ("estimate", "-m", "gpt3-175b", "-d", "8xh100-sxm", "--json")
    codes = [note["code"] for note in json.loads(run(*asked, "-t", "inference").out)["warnings"]]
    assert "no-weights" in codes
    assert "no-weights" not in [note["code"] for note in json.loads(run(*asked).out)["warnings"]]
    largest = json.loads(
        run("solve", "max-model", "-d", "8xa100", "-t", "inference", "--quant", "q4_k_m", "--json").out
    )["result"]["answer"]
    assert all(catalog().models[row["model"]].has_weights for row in largest["models"])


@pytest.mark.parametrize("kind", KINDS)
def test_show_gives_the_whole_entry(run: Run, kind: str) -> None:
    key = next(iter(getattr(catalog(), kind)))
    envelope = json.loads(run(kind, "show", key, "--json").out)
    assert envelope["schema"] == f"llmfeas.{kind}.show/1"
    assert envelope["result"]["id"] == key
    assert envelope["warnings"] == []
    assert f"({key})" in run(kind, "show", key).out.splitlines()[0]


def test_show_takes_the_names_that_people_write(run: Run) -> None:
    result = run("devices", "show", "RTX", "4070", "Ti", "--json")
    assert json.loads(result.out)["result"]["id"] == "rtx-4070ti"
    assert json.loads(run("models", "show", "GPT-2 XL", "--json").out)["result"]["id"] == "gpt2-xl"


def test_a_model_shows_its_counts(run: Run) -> None:
    counts = json.loads(run("models", "show", "longcat-flash", "--json").out)["result"]["parameters"]
    assert counts["total"] == 560_664_958_976
    assert counts["active_min"] < counts["active"] < counts["active_max"]


@pytest.mark.parametrize("kind", ["devices", "models", "offers", "backends"])
def test_what_is_not_known(run: Run, kind: str) -> None:
    result = run(kind, "show", "no-such-thing-at-all", "--json")
    assert result.code == 2
    assert result.error["code"] == f"unknown-{kind.removesuffix('s')}"
    assert result.error["hint"]


def test_search_finds_parts_of_names(run: Run) -> None:
    found = rows(run("devices", "search", "4070", "--json"))
    assert {"rtx-4070", "rtx-4070ti"} <= {row["id"] for row in found}


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["devices", "list", "--backend", "tpu"], lambda row: row["backend"] == "tpu"),
        (["devices", "list", "--vendor", "AMD"], lambda row: row["vendor"] == "amd"),
        (["devices", "list", "--kind", "consumer"], lambda row: row["kind"] == "consumer"),
        (["devices", "list", "--min-memory", "80GiB"], lambda row: row["memory_gib"] >= 80),
        (["models", "list", "--family", "gpt2"], lambda row: row["family"] == "gpt2"),
        (["models", "list", "--min-parameters", "100B"], lambda row: row["parameters"] >= 1e11),
        (["models", "list", "--max-parameters", "1B"], lambda row: row["parameters"] <= 1e9),
        (["models", "list", "--organisation", "meta"], lambda row: "meta" in row["organisation"].lower()),
        (["offers", "list", "--provider", "Kaggle"], lambda row: row["provider"] == "kaggle"),
        (["offers", "list", "--tier", "free"], lambda row: row["tier"] == "free"),
    ],
)
def test_filters(run: Run, arguments: list[str], kept: Callable[[dict[str, Any]], bool]) -> None:
    everything = rows(run(*arguments[:2], "--json"))
    found = rows(run(*arguments, "--json"))
    assert found == [row for row in everything if kept(row)]
    assert 0 < len(found) < len(everything)


def test_nothing_left_is_said(run: Run) -> None:
    result = run("devices", "list", "--vendor", "nobody")
    assert (result.code, result.out) == (0, "0 devices\n")
    assert result.err.startswith("No device of ")
    assert "vendor nobody" in result.err


def test_other_formats(run: Run) -> None:
    table = list(csv.DictReader(io.StringIO(run("devices", "list", "-f", "csv").out)))
    lines = [json.loads(line) for line in run("devices", "list", "-f", "ndjson").out.splitlines()]
    assert [row["id"] for row in table] == [row["id"] for row in lines]
    assert run("devices", "list", "-f", "markdown").out.count("\n| --- | ---: |") == 1


def test_what_was_looked_for_is_shown_without_its_escape_codes(run: Run) -> None:
    assert run("models", "search", "\x1b[31mnothing").err == (
        f"No model of {len(catalog().models)} matches: query \\x1b[31mnothing.\n"
    )


def test_a_listed_price_is_the_one_that_an_estimate_takes(run: Run) -> None:
    row = rows(run("devices", "search", "h100-sxm", "--json"))[0]
    answer = json.loads(run("estimate", "-m", "gpt2", "-d", row["id"], "--json").out)
    assert row["usd_per_hour"] == answer["inputs"]["price"]["value"]


@pytest.mark.parametrize(
    ("name", "backend"),
    [("nvidia", "cuda"), ("AMD", "rocm"), ("google", "tpu"), ("apple", "metal"), ("habana", "hpu")],
)
def test_a_backend_is_found_by_its_vendor(run: Run, name: str, backend: str) -> None:
    assert json.loads(run("backends", "show", name, "--json").out)["result"]["id"] == backend


def test_a_listing_says_what_its_columns_are(run: Run) -> None:
    assert "dense, in 16 bits" in run("devices", "search", "4090").out
