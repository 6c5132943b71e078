"""A plan ends: its work is counted, what it leaves out is said, and what no software runs costs nothing."""

from __future__ import annotations

import json

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.bounds import Bounds
from llmfeas.planning import trials as searches
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.plan import plan
from llmfeas.planning.trials import MOST_WORK, Search
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.plan import report
from llmfeas.settle import before_layout, resolution

LATE = {"model": "gpt2-xl", "device": "h100-sxm", "deadline": "1d"}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    """The searches that plans make."""
    found: list[Search] = []

    class Kept(Search):
        def __init__(self, *more: object) -> None:
            super().__init__(*more)  # type: ignore[arg-type]
            found.append(self)

    monkeypatch.setattr("llmfeas.planning.plan.Search", Kept)
    return found


def test_what_no_software_runs_is_not_laid_out(made: list[Search]) -> None:
    found = plan({"model": "llama-3-8b", "device": "1000xmi50-16gb", "task": "finetune"}, catalog())
    assert found.requested.verdict.status == "unsupported" and found.ways
    assert made[0].tries < 200


def test_a_search_ends_and_says_so(made: list[Search], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plan(LATE, catalog())
    assert not made[0].ended and "search-ended" not in {note.code for note in whole.warnings}
    bound = made[0].work // 2
    monkeypatch.setattr(searches, "MOST_WORK", bound)
    cut = plan(LATE, catalog())
    assert made[1].ended and made[1].work < bound + 100
    assert [note.code for note in cut.warnings].count("search-ended") == 1
    assert cut.ways[0].settings == whole.ways[0].settings, "the first way is found first"
    written = json.loads(json.dumps(cut.to_dict(), default=str))
    assert written["warnings"][-1]["code"] == "search-ended"
    assert "search ended" in " ".join(rendered(report(cut.to_dict(), "GPT-2 XL", "H100"), 100).split())


@pytest.mark.parametrize("limits", [{}, {"deadline": "60d"}])
def test_fewer_tokens_are_tried_although_recipes_and_devices_took_all_the_work(limits: dict[str, object]) -> None:
    asked = {"model": "llama-3-70b", "device": "2048xh100-sxm", "task": "pretrain", "tokens": "15T", "budget": "5M"}
    found = plan({**asked, **limits}, catalog())
    assert found.ended and found.ways[0].estimate.verdict.status == "feasible"
    tokens = [float(str(way.settings["tokens"])) for way in found.ways if set(way.settings) == {"tokens"}]
    assert limits or tokens[0] > 6e12  # with a deadline another device has been found by then


def test_the_work_is_the_same_whatever_was_asked_before(made: list[Search]) -> None:
    for _ in range(2):
        plan({"model": "llama-3-70b", "device": "16xh100-sxm", "task": "pretrain"}, catalog())
    assert 0 < made[0].work == made[1].work <= MOST_WORK


def test_a_budget_that_the_products_alone_exceed_spares_the_walk() -> None:
    found = bare_answer({"model": "gpt2-xl", "device": "h100-sxm", "budget": 1})
    floor = Bounds({}, found.scenario, catalog()).least_usd
    assert found.cost.usd is not None and 1 < floor < found.cost.usd.low
    assert Search({"model": "gpt2-xl", "device": "h100-sxm", "budget": 1}, found.scenario, catalog()).hopeless(())
    assert Bounds({"device": "t4"}, found.scenario, catalog()).least_usd == 0.0


def test_what_runs_it_is_known_before_the_layout() -> None:
    ask = {"model": "llama-3-8b", "device": "64xh100-sxm", "task": "pretrain"}
    before, whole = before_layout(ask, catalog()), resolution(ask, catalog())
    assert before.scenario.engine == whole.scenario.engine and before.backend == whole.backend
    assert 1 == before.work < whole.work


def test_a_layout_counts_by_the_stages_that_are_walked_for_it() -> None:
    asked = {"model": "llama-3-70b", "device": "64xh100-sxm", "engine": "megatron", "micro_batch": 1}
    whole, staged = (resolution({**asked, "pp": stages}, catalog()).work for stages in (1, 8))
    assert staged > whole
