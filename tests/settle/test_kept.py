"""What a process keeps of earlier answers is bounded, so that one that answers for days does not grow."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import llmfeas
from llmfeas import findings
from llmfeas.memory import training
from llmfeas.planning.answer import bare_answer
from llmfeas.settle import resolving as settle
from llmfeas.walk import fold

OF_OUR_OWN = {
    "record",
    "kind",
    "count",
    "more",
    "name",
    "mixer",
    "feed_forward",
    "windowed",
    "rotates",
    "shares_cache",
    "module",
}
"""Arguments of which there are only as many values as our code has: modules, classes, their fields, kinds of layers."""


def caches() -> Iterator[Any]:
    for module in pkgutil.walk_packages(llmfeas.__path__, "llmfeas."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper) and found.__module__.startswith("llmfeas"):
            yield found


def test_caches_are_bounded_or_of_our_own_code() -> None:
    unbounded = [each for each in caches() if each.cache_parameters()["maxsize"] is None]
    assert unbounded, "some are"
    outside = {each.__qualname__: set(inspect.signature(each).parameters) - OF_OUR_OWN for each in unbounded}
    assert {name for name, more in outside.items() if more} == set()


def test_what_weighs_is_kept_for_few_questions() -> None:
    """A question keeps some 50 kB, a walk with its levels 40 to 200 kB, those of a number of experts 30 kB."""
    for heavy in (settle._settled, settle._for_batch, settle._for_requests, fold._folded):
        assert heavy.cache_parameters()["maxsize"] <= 384
    assert fold.peak_candidates.cache_parameters()["maxsize"] <= 1536
    assert training._MAX_PLANS <= 384


def test_plans_do_not_grow_with_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_MAX_PLANS", 3)
    monkeypatch.setattr(training, "_plans", {})
    for rank in range(1, 9):
        bare_answer({"model": "gpt2", "device": "t4", "task": "lora", "lora_rank": rank, "micro_batch": 1})
        assert 0 < len(training._plans) <= 3


def test_the_oldest_findings_go_first_and_are_let_go_of_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They refer to themselves: kept until somebody looks for garbage, they would weigh more than all that is kept."""
    monkeypatch.setattr(findings, "MAX_COMMON", 3)
    monkeypatch.setattr(findings, "_questions", {})
    kept: list[dict[object, Any]] = []
    for rank in range(31, 36):
        bare_answer({"model": "gpt2", "device": "t4", "task": "lora", "lora_rank": rank, "micro_batch": 1})
        kept += [each for each in findings._questions.values() if not any(each is other for other in kept)]
    left = list(findings._questions.values())
    assert len(left) == 3 < len(kept)
    assert all(any(each is other for other in left) == bool(each) for each in kept)
    assert left[-1] is kept[-1]
