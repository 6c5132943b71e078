"""Seconds in which a model writes the answers that it learns from."""

from __future__ import annotations

from ..memory.rollouts import rollout_tp
from ..record import replace
from ..scenario import Scenario
from .inference import inference_time

WRITER = "vllm"
"""The server that writes answers beside a training (trl 1.16)."""


def rollout_seconds(scenario: Scenario) -> float:
    """Seconds of the answers of one optimizer step: all begin at once, on all devices; 0 where none are written.

    Answers are taken to be of the length that they may have: a step waits for its longest.
    """
    length = scenario.response_length
    if length is None:
        return 0.0
    answers = float(scenario.micro_steps * scenario.sequences * scenario.dp)
    return answers * length / inference_time(_writing(scenario, int(answers), length)).output_tokens_per_second.expected


def _writing(scenario: Scenario, answers: int, length: int) -> Scenario:
    """The scenario in which a server writes the answers of a step."""
    sixteen = "fp16" if scenario.precision.startswith("fp16") else "bf16"
    return replace(
        scenario,
        task="inference",
        loss=None,
        adapters=None,
        engine=WRITER,
        precision=sixteen,
        quant="none",
        kv_dtype=sixteen,
        context=scenario.seq_len,
        prompt=scenario.seq_len - length,
        output=length,
        concurrency=max(1, answers),
        tp=rollout_tp(scenario),
        pp=1,
        cp=1,
        ep=1,
        offload="none",
        attention="flash",
        mfu=None,
        response_length=None,
        colocate=None,
    )
