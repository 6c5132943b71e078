"""`llmfeas claims`: the review, in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

from command_line import Outcome

Run = Callable[..., Outcome]


def test_the_overview(run: Run) -> None:
    result = run("claims")
    assert (result.code, result.err) == (0, "")
    assert "✗ longcat-total-params" in result.out and "560.7 billion" in result.out
    assert "Training LLMs without NVIDIA GPUs" in result.out and "Training GPT-2 on one GPU" in result.out
    assert max(map(len, result.out.splitlines())) <= 100


def test_one_claim_with_its_reason(run: Run) -> None:
    out = " ".join(run("claims", "7b-training-memory").out.split())
    assert "1 claim: holds under conditions" in out
    assert "Where it holds: mixed precision with 8-bit AdamW and full checkpointing." in out
    assert "What is right:" in out


def test_the_contract(run: Run) -> None:
    envelope = json.loads(run("claims", "mixtral-56b", "longcat-total-params", "--json").out)
    claims = envelope["result"]["claims"]
    assert [claim["id"] for claim in claims] == ["longcat-total-params", "mixtral-56b"]
    assert {claim["verdict"] for claim in claims} == {"does not hold"}
    assert [document["id"] for document in envelope["result"]["documents"]] == ["without-nvidia", "rules-of-thumb"]


def test_rows(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("claims", "-f", "csv").out)))
    assert len(rows) > 28 and rows[0]["id"] == "longcat-total-params"
    lines = run("claims", "-f", "ndjson").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [row["id"] for row in rows]


def test_an_unknown_claim(run: Run) -> None:
    result = run("claims", "longcat-params", "--json")
    assert result.code == 2
    assert result.error["code"] == "unknown-claim" and "longcat-total-params" in result.error["candidates"]


def test_quiet(run: Run) -> None:
    assert run("claims", "-q") == Outcome(0, "", "")


def test_one_claim_is_spoken_of_as_one(run: Run) -> None:
    assert run("claims", "longcat-total-params").out.startswith("1 claim: does not hold\n")
