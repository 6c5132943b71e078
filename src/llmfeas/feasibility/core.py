"""One settled question in, one Estimate out: the folds joined. Pure; it prints nothing."""

from __future__ import annotations

from functools import lru_cache, partial

from ..memory.peak import memory
from ..memory.runtime import own_memory
from ..scenario import Scenario, whatever_the_batch
from ..settle import Resolution
from ..timing.inference import InferenceTime, inference_time
from ..timing.training import TrainingTime, training_time
from ..workload.flops import Flops, Lora, inference_flop, training_flop
from ..workload.kernels import traits_of
from ..workload.parameters import Parameters, parameters
from .cost import serving_cost, training_cost
from .load_verdict import load_verdict
from .result import Estimate, Note
from .served_load import served_load
from .software import software_support
from .verdict import verdict

ADAPTERS = ("lora", "qlora")


@whatever_the_batch
def parameter_counts(scenario: Scenario) -> Parameters:
    """Count the model's parameters; adapters train alone, inference trains none."""
    architecture = scenario.model.architecture
    if scenario.task in ADAPTERS:
        return parameters(architecture, scenario.lora_rank, scenario.lora_targets, traits=traits_of(scenario))
    counts = parameters(architecture)
    return counts if scenario.is_training else _frozen(counts)


@lru_cache(maxsize=512)
def _frozen(counts: Parameters) -> Parameters:
    from dataclasses import replace

    return replace(counts, trainable=0)


def flops(scenario: Scenario) -> Flops:
    """Count the FLOPs: of all tokens in training, of one request times concurrency in inference."""
    if not scenario.is_training:
        architecture = scenario.model.architecture
        answer = (scenario.context or 1) - scenario.prompt
        if scenario.said("output"):
            answer = min(answer, scenario.output or answer)
        return inference_flop(architecture, scenario.prompt, answer, scenario.concurrency)
    return _training_flops(scenario)


@whatever_the_batch
def _training_flops(scenario: Scenario) -> Flops:
    lora = Lora(scenario.lora_rank, scenario.lora_targets) if scenario.task in ADAPTERS else None
    return training_flop(
        scenario.model.architecture,
        scenario.tokens or 0.0,
        scenario.seq_len,
        kernel=scenario.attention,
        checkpointing=scenario.checkpointing,
        lora=lora,
        dropout=scenario.dropout,
    )


def estimate(settled: Resolution) -> Estimate:
    """Answer one settled question."""
    scenario, total = settled.scenario, None
    counted = memory(scenario)
    time: TrainingTime | InferenceTime
    if scenario.is_training:
        time = training_time(scenario)
        total = time.total_seconds
        cost = training_cost(scenario, total, time.bound_by)
    else:
        time = inference_time(scenario)
        cost = serving_cost(scenario, time.output_tokens_per_second, time.decode_bound_by)
    software, reasons = software_support(scenario, settled.backend)
    under_load = lru_cache(maxsize=1)(partial(served_load, scenario)) if scenario.has_load else None
    load = load_verdict(scenario, under_load)
    return Estimate(
        scenario=scenario,
        catalog=settled.digest,
        parameters=parameter_counts(scenario),
        flops=flops(scenario),
        memory=counted.memory,
        time=time,
        cost=cost,
        verdict=verdict(scenario, counted.memory, total, cost, software, reasons, counted.serving, load),
        serving=counted.serving,
        warnings=(
            *settled.warnings,
            *counted.notes,
            *evidence_notes(*time.evidence),
            *_calibrated(scenario, time.own_rows),
        ),
        under_load=under_load,
    )


def _calibrated(scenario: Scenario, own_rows: int) -> tuple[Note, ...]:
    """Say that the user's own measurements were used."""
    memory_rows = own.rows if (own := own_memory(scenario)) is not None else 0
    if not own_rows + memory_rows:
        return ()
    parts = [f"{rows} of {what}" for what, rows in (("speed", own_rows), ("memory", memory_rows)) if rows]
    text = f"ranges rest on your own measurements on {scenario.device.name}: {', '.join(parts)}"
    return (Note("calibrated", text),)


EVIDENCE = {
    "none": (
        "unmeasured-speed",
        "nobody has published the speed of such a run ({}): its range is judgement, and no share of runs is claimed",
    ),
    "single-source": (
        "single-source-speed",
        "one source alone has published the speed of such runs ({}): another machine may lie outside of the range",
    ),
    "few": (
        "thin-evidence",
        "few measurements stand behind the speed of this kind of run ({}): the range is wide",
    ),
}
"""What stands behind the range of a speed -> the code and the words of a warning; nothing where that is enough."""


def evidence_notes(evidence: str, regime: str) -> tuple[Note, ...]:
    """Say what stands behind the range of a speed, where that is little."""
    if evidence not in EVIDENCE:
        return ()
    code, text = EVIDENCE[evidence]
    return (Note(code, text.format(regime)),)
