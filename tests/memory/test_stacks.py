"""Formats that do not reach experts which public code stacks in one tensor."""

from __future__ import annotations

import pytest

from llmfeas.planning.answer import bare_answer

NOTE = (
    "experts are counted in nf4, as transformers 4 and Unsloth hold them; bitsandbytes under transformers 5 leaves "
    "them in 16 bits: 62.3 GiB more in all"
)


def notes(**asked: object) -> list[str]:
    found = bare_answer({"model": "mixtral-8x7b", "device": "h200", "task": "qlora", "micro_batch": 1, **asked})
    return [note.message for note in found.warnings if note.code == "experts-in-16-bits"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"num_devices": 4},
        {"engine": "pytorch-kbit"},
        {"task": "inference", "quant": "nf4", "engine": "transformers"},
    ],
    ids=str,
)
def test_what_today_s_public_code_takes_more_is_said(asked: dict[str, object]) -> None:
    assert notes(**asked) == [NOTE]


@pytest.mark.parametrize(
    "asked",
    [
        {"engine": "unsloth"},
        {"quant": "gptq-int4"},
        {"model": "llama-3-8b"},
        {"task": "lora"},
        {"task": "inference", "quant": "nf4", "engine": "vllm"},
        {"task": "inference", "quant": "q4_k_m"},
    ],
    ids=str,
)
def test_nothing_is_said_where_the_format_reaches_all(asked: dict[str, object]) -> None:
    assert notes(**asked) == []
