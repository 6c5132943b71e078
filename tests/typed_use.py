"""How Python code asks, for the type checker: it refuses what is wrong, and knows what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

import llmfeas
from llmfeas.errors import LlmfeasError
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.compare import Comparison
from llmfeas.planning.plan import Plan
from llmfeas.planning.solve.answer import Answer
from llmfeas.ranges import Range


def right() -> None:
    answer = llmfeas.estimate(model="gpt2", device="t4", task="lora", micro_batch="auto", deadline="30d")
    assert_type(answer, Estimate)
    assert_type(answer.memory.peak_bytes, Range)
    assert_type(llmfeas.compare(["gpt2"], ["t4", "a100"], task="qlora", sort="cost"), Comparison)
    assert_type(llmfeas.plan("gpt2", "t4", task="pretrain", keep=["precision"]), Plan)
    assert_type(llmfeas.solve("max-model", device="t4", task="inference"), Answer)
    assert_type(llmfeas.sweep([{"model": "gpt2", "device": "t4"}]), Iterator[Estimate | LlmfeasError])


def wrong() -> None:
    llmfeas.estimate(modle="gpt2", device="t4")  # type: ignore[call-arg]
    llmfeas.estimate(model="gpt2", device="t4", task="nonsense")  # type: ignore[arg-type]
    llmfeas.estimate(model="gpt2", device="t4", zero=7.5)  # type: ignore[arg-type]
    llmfeas.compare(["gpt2"], ["t4"], sort="beauty")  # type: ignore[arg-type]
    llmfeas.plan("gpt2", "t4", keep=["precison"])  # type: ignore[list-item]
    llmfeas.solve("max-fun", "gpt2", "t4")  # type: ignore[arg-type]
