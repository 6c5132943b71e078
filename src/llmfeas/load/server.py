"""One engine as its scheduler sees it: what a step costs, what limits a batch, in which order it works.

An engine works in steps (Orca, Yu et al., OSDI 2022): each gives every decoding request a token and reads parts of
prompts. Engines differ in what one step may mix, in whether prompts are cut, and in what they keep free for answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ..errors import UsageError
from ..record import dataclass

StepSeconds = Callable[[float, float, float, float], float]
"""Seconds of one step, of (decoding sequences, mean cached tokens of each, prompt tokens read in the step, mean tokens
that each of those attends to). The last is (before + tokens / 2) for one piece of a prompt."""


@dataclass(frozen=True, slots=True)
class Policy:
    """In which order an engine works."""

    mixed: bool
    """Decoding goes on in steps that read prompts; else prompts that wait go first and decoding stands still."""
    chunked: bool
    """Prompts are cut to fill a step's tokens (Sarathi-Serve, Agrawal et al., OSDI 2024)."""
    reserved: float
    """Share of an answer for which the pool must have room when its request is let in."""


VLLM: Final = Policy(mixed=True, chunked=True, reserved=0.0)
"""vLLM V1, `vllm/v1/core/sched/scheduler.py`: running requests first, then new ones within the tokens that are left;
pages are taken when needed, the newest request is preempted and computed again when none is left."""
VLLM_V0: Final = Policy(mixed=False, chunked=False, reserved=0.0)
"""vLLM before V1 without chunked prefill."""
SGLANG: Final = Policy(mixed=False, chunked=True, reserved=0.2)
"""SGLang, `managers/schedule_policy.py`: a batch of prompts goes before decoding; a share of each answer that falls
from 0.7 to 0.1 in 600 steps is kept free (`new_token_ratio`)."""
TENSORRT_LLM: Final = Policy(mixed=True, chunked=False, reserved=1.0)
"""TensorRT-LLM, `pyexecutor/scheduler.py`: whole prompts join decoding; GUARANTEED_NO_EVICT keeps all of an answer."""


POLICIES: Final = {"vllm": VLLM, "vllm-v0": VLLM_V0, "sglang": SGLANG, "tensorrt-llm": TENSORRT_LLM}
"""By the engine that works so."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """Drafted tokens a step, each accepted with a probability that does not depend on the others."""

    tokens: int = 0
    acceptance: float = 0.0

    @property
    def made(self) -> float:
        """Mean tokens of a verified step: (1 - a^(k+1)) / (1 - a) (Leviathan et al., ICML 2023)."""
        if self.acceptance >= 1.0:
            return self.tokens + 1.0
        return float((1 - self.acceptance ** (self.tokens + 1)) / (1 - self.acceptance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Copies of a model that share the requests, least loaded first, and the limits of each."""

    step_seconds: StepSeconds
    """Of one replica; with speculation it includes drafting and verifying."""
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_pool_tokens: float = math.inf
    """Of one replica."""
    page_tokens: int = 16
    policy: Policy = VLLM
    replicas: int = 1
    speculation: Speculation = Speculation()
    overhead_seconds: float = 0.0
    """Of each request on its way in: network, tokenizer, queue of the front end."""
    ahead: bool = False
    """The next step is put together while one runs: who comes meanwhile waits for both."""

    def __post_init__(self) -> None:
        if min(self.max_num_seqs, self.max_num_batched_tokens, self.replicas, self.page_tokens) < 1:
            raise UsageError(
                "bad-server", "a limit of the server is below 1", "Give max-num-seqs, tokens and replicas of 1 or more."
            )
