"""No layout is faster than the ceiling by which slow ones are left out, whatever micro-batch fits."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError
from llmfeas.scenario import Scenario
from llmfeas.settle import before_layout, layout, lengths
from llmfeas.settle.variants import variants
from llmfeas.settle.weighed import reached, reached_at_most

TASKS = ("pretrain", "pretrain", "finetune", "lora", "dpo", "grpo")
SEEDS, LAYOUTS = 24, 4


def drawn(seed: int) -> Iterator[Scenario]:
    """Some layouts of a training of a random model on several random devices; none where it is refused."""
    draw, known = random.Random(seed), catalog()
    ask: dict[str, object] = {"model": draw.choice(list(known.models)), "task": draw.choice(TASKS)}
    ask |= {"device": draw.choice(list(known.devices)), "num_devices": draw.choice((2, 4, 8, 24, 64, 512))}
    if draw.random() < 0.3:
        ask["seq_len"] = draw.choice((128, 512, 4096))
    try:
        found = before_layout(ask, known)
    except LlmfeasError:
        return
    if found.open_draft is None:
        return
    probe = found.scenario.with_batch({"micro_batch": 1, "global_batch": lengths.MANY}, {})
    laid_out = [each for one in layout.layouts(probe, found.open_draft, 0) for each in variants(one, found.open_draft)]
    yield from draw.sample(laid_out, min(LAYOUTS, len(laid_out)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_micro_batch_beats_the_ceiling(seed: int) -> None:
    batch = (0, 48, 1024)[seed % 3]
    for each in drawn(seed):
        ceiling, micro_batch = reached_at_most(each, 0, batch), 1
        while micro_batch <= lengths.largest_batch(each, batch):
            speed = reached(each, micro_batch, batch)
            assert speed <= ceiling * (1 + 1e-9), (each.model.id, each.device.id, micro_batch)
            micro_batch *= 2


def test_a_micro_batch_that_is_said_is_told_exactly() -> None:
    for each in drawn(3):
        assert reached_at_most(each, 2, 0) == reached(each, 2, 0)
