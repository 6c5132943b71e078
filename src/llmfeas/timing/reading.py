"""Seconds in which public code reads texts, operator by operator: the forward pass of the step that trains the model.

    seconds of a pass = (device^4 + host^4)^(1/4) + batch + words x tokens
    device = products + attention + what is written between products x moves / bandwidth

Products, attention and kernels are those of training, from the same walk and the same rates; without a graph to record
the host launches a kernel in less time. All sequences of a batch pass at once.
"""

from __future__ import annotations

import math

from ..derivation import BANDWIDTH, EFFICIENCY, Note, Say, plain, soft_maximum, unnoted
from ..findings import cached_across_batches
from ..memory.training import training_plan
from ..record import dataclass, replace
from ..scenario import Scenario
from ..walk.candidates import PeakCandidates
from .attention import attention_seconds
from .decode_rates import eager_factor
from .experts import routing_seconds
from .products import decoding_seconds, matrix_seconds
from .rates import HostRates, TrainingRates, host_rates, rates_of
from .work import Work, work_of

PUBLIC_TRAINING = "pytorch"
"""The engine that trains by public code."""
UNPACKED = ("nf4", "gptq", "awq")
"""Formats whose weights are unpacked to 16 bits before each product."""

SHARP = 4
"""Exponent of the soft maximum of device and host time in a forward pass, all of whose layers are alike."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A forward pass of the model's public code over texts of one length: its work, rates, walk, and launches."""

    work: Work
    rates: TrainingRates
    moments: PeakCandidates
    host_seconds: float

    def written_bytes(self, tokens: float) -> float:
        """What a pass over so many tokens writes between its products."""
        return self.moments.written_bytes(1, self.work.seq_len) * tokens / self.work.seq_len


def pass_seconds(scenario: Scenario, tokens: float, length: float, note: Note = unnoted) -> dict[str, float]:
    """Seconds by part of a pass that takes `tokens` in texts of `length`; they add up."""
    value, forward = scenario.tables.efficiency.value, forward_of(scenario, max(1, math.ceil(length)))
    work, rates = replace(forward.work, tokens=tokens), forward.rates
    say = note("streaming")
    moved = say("moves", value("prefill.eager_moves"), "", EFFICIENCY)
    moved *= say("written_bytes", forward.written_bytes(tokens), "bytes")
    moved /= say("efficiency", rates.memory, "bytes/s", BANDWIDTH)
    matrix = matrix_seconds(work, rates, note("matrix")) + packed_seconds(scenario, work, rates, note("matrix"))
    parts = {
        "matrix": matrix,
        "attention": attention_seconds(work, rates, fused=scenario.attention == "flash", say=note("attention")),
        "streaming": moved + routing_seconds(work, rates, say),
    }
    say = note("fixed")
    device, host = say("device_seconds", sum(parts.values()), "s"), forward.host_seconds
    parts["fixed"] = soft_maximum(device, say("host_seconds", host, "s", EFFICIENCY), SHARP) - device
    if scenario.engine_record.serving.speed.texts:
        words = say("words", value("prefill.words"), "s", EFFICIENCY) * say("tokens", tokens, "tokens")
        parts["fixed"] += say("a_batch", value("prefill.batch"), "s", EFFICIENCY) + words
    return parts


def packed_seconds(scenario: Scenario, work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Bring packed weights to 16 bits, once a pass."""
    return decoding_seconds(work, rates, scenario.quant, say) if scenario.quant.startswith(UNPACKED) else 0.0


@cached_across_batches
def forward_of(scenario: Scenario, length: int) -> Forward:
    """The forward pass over texts of a length on one device, without a head."""
    architecture = scenario.model.architecture
    if architecture.encoder and architecture.source is not None:
        # that of an encoder-decoder, without what it makes for the decoder
        architecture = replace(architecture, source=None)
    step = replace(
        scenario,
        model=replace(scenario.model, architecture=architecture),
        task="finetune",
        engine=PUBLIC_TRAINING,
        micro_batch=1,
        global_batch=1,
        seq_len=length,
        num_devices=1,
        tp=1,
        pp=1,
        ep=1,
        checkpointing="none",
        optimizer="adamw",
        dropout=0.0,
        tokens=float(length),
    )
    rates, moments = rates_of(step), training_plan(step).ranks[0].moments
    work = replace(
        work_of(step),
        passes=1.0,
        graded=0.0,
        repeated=0.0,
        replayed=0.0,
        attention_again=0.0,
        head=0.0,
        masks_windows=scenario.engine_record.serving.speed.family == "eager",
        score_bytes=0.0,  # what is written between the two products of attention is in the walk
    )
    return Forward(work, rates, moments, _host_seconds(scenario, work, host_rates(step), moments.forward))


def _host_seconds(scenario: Scenario, work: Work, host: HostRates, kernels: int) -> float:
    """What the host needs to launch a pass: more of weights in few bits, and of experts that it visits."""
    efficiency = scenario.tables.efficiency
    visits = host.seconds_each * work.expert_calls + host.seconds_waited * work.sums.moe_layers
    launches = efficiency.value("prefill.eager_launch") * kernels
    return (launches + visits / 3) * eager_factor(efficiency, scenario.device, scenario.quant)
