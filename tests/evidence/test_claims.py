"""Claims: the file is sound, each is answered by computation, and answers follow the data."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from llmfeas.catalog.document import read_yaml
from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.store import Catalog, built_in, data_directory
from llmfeas.catalog.validation import validated
from llmfeas.errors import DataError, UsageError
from llmfeas.evidence.claims.answer import AnsweredClaim, Judged, answered, filled
from llmfeas.evidence.claims.kinds import KINDS, Case, of_quotients
from llmfeas.evidence.claims.records import Claim, ClaimPart, Claims, all_claims
from llmfeas.ranges import Range

STATEMENTS = [
    "longcat-total-params",
    "longcat-active-params",
    "7b-inference-memory",
    "7b-training-memory",
    "non-nvidia-slowdown",
    "7b-4bit-memory",
    "cpu-trains-1b-to-7b",
    "cpu-longcat-infeasible",
    "cpu-tokens-per-second",
    "amd-consumer-memory",
    "amd-longcat-multi-gpu",
    "tpu-cheaper-than-a100",
    "apple-max-memory",
    "apple-longcat-infeasible",
    "arc-small-models-only",
    "qlora-7b-24gb",
    "qlora-longcat-64gb-ram",
    "runpod-3090-price",
    "kaggle-free-hours",
    "rtx-4070ti-year",
    "gpt2-xl-train-flops",
    "gopher-1b4-train-flops",
    "year-covers-gpt2-12x",
    "gpt2-small-optimal-flops",
    "gpt2-xl-train-memory",
    "gpt2-small-days",
    "mixed-precision-gain",
    "gpt2-finetune-hours",
]
"""The 28 statements of the two articles."""

CLAIMS = all_claims(built_in())
BY_ID = {claim.id: claim for claim in CLAIMS.claims}


@cache
def answer(name: str) -> AnsweredClaim:
    return answered(BY_ID[name], built_in())


def test_the_file_is_as_its_records_say() -> None:
    document = read_yaml(data_directory() / "claims.yaml")
    assert validated(Claims, document.data, document) == CLAIMS


def test_every_statement_of_the_articles_is_a_claim() -> None:
    assert len(STATEMENTS) == 28
    assert set(STATEMENTS) <= set(BY_ID)
    assert len(BY_ID) == len(CLAIMS.claims) > 28
    known = {document.id for document in CLAIMS.documents}
    assert {name for claim in CLAIMS.claims for name in claim.documents} == known


def test_every_part_is_judged_or_told() -> None:
    """A part that nothing judges is named in a text or divides another; else it is idle."""
    for claim in CLAIMS.claims:
        assert any(part.expect for part in claim.parts), claim.id
        used = " ".join([claim.found, claim.because, claim.right, *(str(part.ask) for part in claim.parts)])
        for part in claim.parts:
            assert part.expect or f"{part.name}." in used, f"{claim.id}: {part.name}"


@pytest.mark.parametrize("name", list(BY_ID))
def test_each_is_answered_with_numbers(name: str) -> None:
    found = answer(name)
    assert found.verdict in ("holds", "holds under conditions", "does not hold")
    for text in (found.found, found.because, found.right or ""):
        assert "{" not in text and "None" not in text and "nan" not in text
    assert re.search(r"\d", found.because), found.because
    assert 1 <= len(re.findall(r"\.(?:\s+[A-Z0-9]|$)", found.because)) <= 2, found.because
    if found.verdict == "holds under conditions":
        assert found.holds_for and found.fails_for
    if found.verdict == "does not hold":
        assert found.right


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("longcat-total-params", "does not hold"),
        ("longcat-active-params", "holds"),
        ("7b-inference-memory", "holds under conditions"),
        ("7b-training-memory", "holds under conditions"),
        ("cpu-longcat-infeasible", "holds"),
        ("amd-consumer-memory", "holds under conditions"),
        ("amd-longcat-multi-gpu", "holds"),
        ("apple-max-memory", "holds under conditions"),
        ("apple-longcat-infeasible", "holds"),
        ("qlora-7b-24gb", "holds"),
        ("qlora-longcat-64gb-ram", "does not hold"),
        ("kaggle-free-hours", "holds under conditions"),
        ("rtx-4070ti-year", "holds under conditions"),
        ("gpt2-xl-train-flops", "holds"),
        ("gopher-1b4-train-flops", "holds under conditions"),
        ("year-covers-gpt2-12x", "holds"),
        ("gpt2-xl-train-memory", "holds under conditions"),
        ("mixtral-56b", "does not hold"),
        ("kv-cache-by-hidden-size", "does not hold"),
        ("rtx-4090-330-tflops", "does not hold"),
    ],
)
def test_verdicts_that_no_calibration_moves(name: str, verdict: str) -> None:
    assert answer(name).verdict == verdict


def test_figures_beside_those_of_their_sources() -> None:
    """560 B in total (technical report), 46.7 B (Mixtral's announcement), 40.09 TFLOP/s (the card's data sheet)."""
    assert "560.7 billion" in answer("longcat-total-params").found
    assert "46.7 B" in answer("mixtral-56b").found
    assert "40.09" in answer("rtx-4070ti-year").found


@pytest.mark.parametrize(
    ("overlay", "names"),
    [
        ("models: [{extends: longcat-flash, architecture: {layers: 31}}]", ["longcat-active-params"]),
        (
            "models: [{extends: llama-2-7b, architecture: {layers: 35}}]",
            ["7b-inference-memory", "7b-training-memory"],
        ),
        ("models: [{extends: gpt2-xl, architecture: {layers: 53}}]", ["gpt2-xl-train-flops", "year-covers-gpt2-12x"]),
        ("models: [{extends: gopher-1.4b, architecture: {layers: 27}}]", ["gopher-1b4-train-flops"]),
        ("models: [{extends: gpt2, architecture: {layers: 14}}]", ["gpt2-small-optimal-flops"]),
        ("devices: [{extends: rx-6900xt, memory_gib: 17.6}]", ["amd-consumer-memory"]),
        ("devices: [{extends: m1-ultra, memory_gib: 140.8}]", ["apple-max-memory"]),
        ("devices: [{extends: rtx-4070ti, tflop_per_s: {fp32: 44.1}}]", ["rtx-4070ti-year", "year-covers-gpt2-12x"]),
        ("offers:\n- {extends: kaggle-2xt4, hours_per_week: 33}", ["kaggle-free-hours"]),
        ("devices: [{extends: rtx-3090, memory_gib: 10, memory_reported_mib: 10000}]", ["qlora-7b-24gb"]),
    ],
)
def test_other_data_flips_what_depends_on_it(tmp_path: Path, overlay: str, names: list[str]) -> None:
    """A tenth more memory, layers or speed (of 24 GB cards far less memory) changes the verdict."""
    path = tmp_path / "other.yaml"
    path.write_text(overlay + "\n", encoding="utf-8")
    other = with_overlays(built_in(), [path])
    for name in names:
        assert answered(BY_ID[name], other).verdict != answer(name).verdict, name


def test_other_data_leaves_the_rest_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("devices: [{extends: rx-6900xt, memory_gib: 17.6}]\n", encoding="utf-8")
    other = with_overlays(built_in(), [path])
    for name in ("longcat-active-params", "gpt2-xl-train-flops", "apple-max-memory"):
        assert answered(BY_ID[name], other).verdict == answer(name).verdict
        assert answered(BY_ID[name], other).because == answer(name).because


def test_a_price_that_only_the_statement_knows_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(
        "devices: [{extends: rtx-3090, prices: [{provider: runpod, usd_per_hour: 0.43, source: unverified}]}]\n",
        encoding="utf-8",
    )
    with pytest.raises(DataError, match="no case"):
        answered(BY_ID["runpod-3090-price"], with_overlays(built_in(), [path]))


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [claim.id for claim in CLAIMS.named(("mixtral-56b", "7b-4bit-memory"))] == ["7b-4bit-memory", "mixtral-56b"]
    assert CLAIMS.named(()) == CLAIMS.claims
    with pytest.raises(UsageError) as caught:
        CLAIMS.named(("longcat-params",))
    assert "longcat-total-params" in caught.value.candidates


def claim_of(parts: tuple[ClaimPart, ...], found: str = "{a.ratio}") -> Claim:
    return Claim(id="x", documents=("d",), says="x", parts=parts, found=found, because="{a.cases}")


def quotient(name: str, value: float, *, essential: bool = False) -> ClaimPart:
    ask = {"of": value, "to": 1}
    return ClaimPart(name=name, kind="quotient", label=name, ask=ask, expect={"ratio": {"max": 1}}, essential=essential)


@pytest.mark.parametrize(
    ("values", "essential", "verdict"),
    [
        ((1, 1), False, "holds"),
        ((1, 2), False, "holds under conditions"),
        ((2, 2), False, "does not hold"),
        ((1, 2), True, "does not hold"),
        ((2, 1), True, "holds under conditions"),
    ],
)
def test_the_verdict_follows_from_the_cases(values: tuple[int, int], essential: bool, verdict: str) -> None:
    parts = (quotient("a", values[0]), quotient("b", values[1], essential=essential))
    found = answered(claim_of(parts), built_in())
    assert found.verdict == verdict
    assert found.holds_for == tuple(name for name, value in zip("ab", values, strict=True) if value == 1)


def judged(*cases: tuple[str, Range | float | str]) -> dict[str, list[Judged]]:
    return {"p": [Judged(Case(label, {"peak_gb": value}), passes=label < "b") for label, value in cases]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{p.peak_gb}", "14 GB"),
        ("{p.peak_gb.max}", "28 GB"),
        ("{p.peak_gb.span}", "14 GB to 28 GB"),
        ("{p.peak_gb.low} {p.peak_gb.high}", "12 GB 31 GB"),
        ("{p.peak_gb.most} {p.peak_gb.least}", "b a"),
        ("{p.peak_gb.median|whole}", "21"),
        ("{p.cases} {p.passed} {p.failed} {p.holds_for} {p.fails_for}", "2 1 1 a b"),
        ("{not a field} {}", "{not a field} {}"),
    ],
)
def test_texts_are_filled(template: str, text: str) -> None:
    assert filled(template, judged(("a", Range(12, 14, 15)), ("b", Range(24, 28, 31)))) == text


def test_one_figure_has_no_span() -> None:
    assert filled("{p.peak_gb.span}", judged(("a", 14.0), ("b", 14.0))) == "14 GB"
    assert filled("{p.peak_gb}", judged(("a", "some"), ("b", "words"))) == "some, words"


@pytest.mark.parametrize("template", ["{q.peak_gb}", "{p.nothing}"])
def test_a_text_that_names_what_there_is_not_is_an_error(template: str) -> None:
    with pytest.raises(DataError):
        filled(template, judged(("a", 14.0)))


def test_quotients_go_case_by_case() -> None:
    before = {"a": [Case("x", {"n": 6.0}), Case("y", {"n": 9.0})], "b": [Case("x", {"n": 2.0}), Case("y", {"n": 3.0})]}
    catalog = Catalog()
    found = list(of_quotients({"of": "a.n", "to": "b.n"}, catalog, before))
    assert [(case.label, case.figures["ratio"]) for case in found] == [("x", 3.0), ("y", 3.0)]
    found = list(of_quotients({"of": "a.n", "to": 3}, catalog, before))
    assert [case.figures["ratio"] for case in found] == [2.0, 3.0]


def test_every_kind_is_used() -> None:
    assert {part.kind for claim in CLAIMS.claims for part in claim.parts} == set(KINDS)
