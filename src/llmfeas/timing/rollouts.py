"""Seconds in which a model writes the answers that it learns from."""

from __future__ import annotations

import math

from ..derivation import EFFICIENCY, SETTING, Say, plain
from ..memory.rollouts import WRITER, answers_at_once, rollout_tp, sleeps, writes_itself
from ..model.sums import Sums, architecture_sums
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.serving import readers, writers
from .decode import cached_tokens, decode_parts, sequences_per_replica
from .inference import inference_time
from .launches import forward_launches
from .links import device_links
from .serving_floor import least_decode_seconds, least_prompt_seconds


@dataclass(frozen=True, slots=True)
class Rollout:
    """The answers of one optimizer step, and the tokens a second in which all devices read prompts and write."""

    answers: int
    length: int
    prompts: int
    prompt: int
    at_once: int
    """Answers that are written together."""
    read: float
    written: float
    longest: int
    """Tokens of the longest answer."""
    alone: float
    """Tokens a second of one answer that nobody writes beside."""
    most_read: float
    """What the stated peaks of the devices let be read and written at most, tokens a second."""
    most_written: float
    waking: float = 0.0
    """Seconds in which a server that slept takes its memory back, and gives it away again."""
    renewing: float = 0.0
    """Seconds in which the new weights reach those who write."""

    @property
    def seconds(self) -> float:
        """What prompts and answers of a step take."""
        return self.noted(plain)

    def noted(self, say: Say) -> float:
        """Prompts are read once a group by vLLM, which keeps what they share; answers are written to their end.

        The longest are written on, after as many tokens as an answer has on average: all tokens cost what they add to a
        pass, and the passes, of which the longest answer takes one a token, the rest.
        """
        length = say("response_length", self.length, "tokens", SETTING)
        seconds = say("prompts", self.prompts) * say("prompt", self.prompt, "tokens")
        seconds /= say("read", self.read, "tokens/s", EFFICIENCY)
        seconds += say("answers", self.answers) * length / say("written", self.written, "tokens/s", EFFICIENCY)
        if self.longest > self.length:
            longest = say("longest_response", self.longest, "tokens", SETTING)
            seconds += (longest - length) / say("alone", self.alone, "tokens/s", EFFICIENCY)
        if self.waking:
            seconds += say("waking", self.waking, "s", EFFICIENCY)
        return seconds + (say("renewing", self.renewing, "s") if self.renewing else 0.0)

    @property
    def least_seconds(self) -> float:
        """What prompts and answers take at the stated peaks."""
        return self.prompts * self.prompt / self.most_read + self.answers * self.length / self.most_written


def rollout_of(scenario: Scenario) -> Rollout | None:
    """The answers of one optimizer step, on as many devices as train; None where none are written.

    As many at once as the cache has room for.
    """
    length = scenario.response_length
    if length is None:
        return None
    answers = scenario.micro_steps * scenario.sequences * scenario.dp
    together = min(answers, answers_at_once(scenario))
    before = scenario.seq_len - length
    writing = _writing(scenario, together, length, before)
    time, sequences, prompt = inference_time(writing), sequences_per_replica(writing), float(before)
    pace = scenario.tables.efficiency.value("rollout.pace")
    slower = _slowdown(scenario, writing) if writes_itself(scenario) else pace
    reading = least_prompt_seconds(writing, prompt * sequences, prompt) / (prompt * sequences)
    step = least_decode_seconds(writing, cached_tokens(writing), sequences)
    return Rollout(
        answers=answers,
        length=length,
        prompts=answers if writes_itself(scenario) else max(1, answers // (scenario.group_size or 1)),
        prompt=before,
        at_once=together,
        read=time.prefill_tokens_per_second.expected,
        written=time.decode_tokens_per_second.expected / slower,
        longest=scenario.longest_response or length,
        alone=_alone(scenario, together, length) / slower,
        most_read=readers(writing) / reading,
        most_written=writers(writing) * sequences / step,
        waking=scenario.tables.efficiency.value("rollout.waking") if sleeps(scenario) else 0.0,
        renewing=renewing_seconds(scenario),
    )


def _alone(scenario: Scenario, together: int, length: int) -> float:
    """Tokens a second of the longest answer when the others have ended; the model itself carries them on as padding."""
    longest = scenario.longest_response or length
    replicas = max(1, scenario.num_devices // rollout_tp(scenario))
    beside = together if writes_itself(scenario) else min(together, replicas)
    writing = _writing(scenario, beside, longest, scenario.seq_len - length)
    return inference_time(writing).decode_tokens_per_second.expected / beside


def _slowdown(scenario: Scenario, writing: Scenario) -> float:
    """How much longer a token takes as the model trains than as it serves: kernels of autocast and of adapters, which
    are not merged, keep the host busy too.
    """
    bare = replace(scenario, task="finetune", loss=None, adapters=None, precision="bf16", checkpointing="none")
    more = forward_launches(scenario) / forward_launches(bare)
    parts = decode_parts(writing, cached_tokens(writing), sequences_per_replica(writing))
    whole, host = sum(parts.values()), parts["fixed"]
    device = whole - host
    launching = math.sqrt(whole**2 - device**2)
    return math.hypot(device, more * launching) / whole


def renewing_seconds(scenario: Scenario) -> float:
    """Every weight goes to the engine that writes, tensor by tensor, each expert's by itself, and all devices gather it
    in 16 bits, for its engine to take its part; adapters are next to nothing.

    Formula: tensors x seconds of one + 2 x weights x (devices - 1) / devices / link.
    """
    devices = scenario.num_devices
    if writes_itself(scenario) or scenario.trains_adapters:
        return 0.0
    sums = architecture_sums(scenario.model.architecture)
    handed = handed_tensors(sums) * scenario.tables.efficiency.value("rollout.handing")
    if devices == 1:
        return handed
    links = device_links(
        scenario.tables.efficiency, scenario.device, scenario.devices_per_node, scenario.network_bytes_per_s
    )
    return handed + 2 * sums.parameters * (devices - 1) / devices / links.ring(devices)


def handed_tensors(sums: Sums) -> int:
    """Tensors under which public code knows the weights: of each expert its own."""
    return sums.tensors + EXPERT_TENSORS * sums.moe_layers * sums.experts


EXPERT_TENSORS = 3
"""Of one expert: gate, up and down."""


def rollout_seconds(scenario: Scenario, say: Say = plain) -> float:
    """Seconds of the answers of one optimizer step; 0 where none are written."""
    rollout = rollout_of(scenario)
    return 0.0 if rollout is None else rollout.noted(say)


def least_rollout_seconds(scenario: Scenario) -> float:
    """The least seconds of the answers of one optimizer step; 0 where none are written."""
    rollout = rollout_of(scenario)
    return 0.0 if rollout is None else rollout.least_seconds


def _writing(scenario: Scenario, answers: int, length: int, prompt: int) -> Scenario:
    """The scenario in which a server writes so many answers at once."""
    sixteen = "fp16" if scenario.precision.startswith("fp16") else "bf16"
    return replace(
        scenario,
        task="inference",
        loss=None,
        adapters=None,
        engine=scenario.rollout_engine or WRITER,
        precision=sixteen,
        quant=scenario.quant if writes_itself(scenario) and scenario.method == "qlora" else "none",
        kv_dtype=sixteen,
        context=prompt + length,
        prompt=prompt,
        output=length,
        concurrency=answers,
        tp=rollout_tp(scenario),
        pp=1,
        cp=1,
        ep=1,
        offload="none",
        attention="flash",
        mfu=None,
        response_length=None,
        longest_response=None,
        rollout_engine=None,
        colocate=None,
        sleep=None,
        origins={"prompt": "given", "output": "given"},
    )
