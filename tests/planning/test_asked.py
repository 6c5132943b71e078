"""What one whole answer costs, by what it settles, counts and walks: equal questions are worked out once."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.planning.asked import Asked

COUNTED = """
import json, sys
from collections import Counter
from llmfeas.feasibility.core import estimate
from llmfeas.memory.training import _counted
from llmfeas.planning.answer import answer
from llmfeas.settle import resolution
from llmfeas.walk.step import walked_step

names = {each.__code__: each.__name__ for each in (resolution, estimate, _counted, walked_step)}
calls = Counter()
sys.setprofile(lambda frame, event, _: event == "call" and frame.f_code in names and calls.update([frame.f_code]))
answer(json.loads(sys.argv[1]))
sys.setprofile(None)
print(json.dumps({names[code]: count for code, count in calls.items()}))
"""

CASES = {
    "it fits, no task was said": ({"model": "gpt2", "device": "rtx-4090"}, (9, 9, 22, 4)),
    "it fits, to be served": ({"model": "llama-3-8b", "device": "h100", "task": "inference"}, (8, 8, 14, 4)),
    "it does not fit": ({"model": "gpt2-xl", "device": "rtx-4070ti"}, (43, 23, 46, 10)),
}
"""Requests, each with what it may take at most: resolutions, estimates, peaks of a training, walks."""


@pytest.mark.parametrize("case", CASES)
def test_a_whole_answer_works_little_out(case: str) -> None:
    request, most = CASES[case]
    command = [sys.executable, "-c", COUNTED, json.dumps(request)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    counts = json.loads(done.stdout)
    names = ("resolution", "estimate", "_counted", "walked_step")
    for name, limit in zip(names, most, strict=True):
        assert counts.get(name, 0) <= limit, counts


def test_an_equal_question_is_answered_once() -> None:
    asked = Asked(catalog())
    request = {"model": "gpt2", "device": "t4", "task": "lora"}
    assert asked.estimate(request) is asked.estimate(dict(request))
    assert asked.estimate({**request, "tp": 3}) is asked.settled({**request, "tp": 3}) is None
