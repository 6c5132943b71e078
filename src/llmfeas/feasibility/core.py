"""One settled question in, one Estimate out: the folds joined. Pure; it prints nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Generic, Literal, TypeVar

from ..contract import ABSENT, Absent
from ..derivation import Say, plain
from ..findings import cached_across_devices
from ..memory.floor import rank_floor_bytes
from ..memory.peak import CountedMemory, memory
from ..memory.runtime import own_memory
from ..memory.usable import usable_bytes
from ..ranges import Range
from ..record import replace
from ..scenario import Scenario
from ..settle import Resolution
from ..timing.inference import InferenceTime, inference_time
from ..timing.training import TrainingTime, loaded_tokens_per_second, training_time
from ..timing.work import forwards_beside
from ..units import format_count, format_percent
from ..workload.flops import Flops, Lora, inference_flop, training_flop
from ..workload.parameters import Parameters, bare_layers, lifts_input, parameters_of
from ..workload.serving import answer_tokens
from .cost import job_cost, serving_cost
from .load_verdict import is_followed, load_verdict
from .long_run import long_run
from .result import Cost, Estimate, Note, ServedLoad
from .software import software_support
from .verdict import host_exceeds, is_late, memory_status, verdict


@cached_across_devices
def parameter_counts(scenario: Scenario) -> Parameters:
    """Count the model's parameters; adapters train alone, inference trains none."""
    counts = parameters_of(scenario)
    return counts if scenario.is_training else _frozen(counts)


@lru_cache(maxsize=512)
def _frozen(counts: Parameters) -> Parameters:
    return replace(counts, trainable=0)


def flops(scenario: Scenario) -> Flops:
    """Count the FLOPs: of all tokens in training, of one request times concurrency in inference."""
    return _training_flops(scenario) if scenario.is_training else noted_flops(scenario, plain)


@cached_across_devices
def _training_flops(scenario: Scenario) -> Flops:
    return noted_flops(scenario, plain)


def noted_flops(scenario: Scenario, say: Say) -> Flops:
    """The same, of numbers that `say` names."""
    if not scenario.is_training:
        architecture = scenario.model.architecture
        return inference_flop(architecture, scenario.prompt, answer_tokens(scenario), scenario.concurrency, say)
    kind = scenario.adapter_kind
    lora = None
    if kind is not None:
        rank = scenario.lora_rank if kind.pairs else 0
        lora = Lora(rank, scenario.lora_targets, bare_layers(scenario), lifts_input(scenario))
    return training_flop(
        scenario.model.architecture,
        scenario.tokens or 0.0,
        scenario.seq_len,
        kernel=scenario.attention,
        checkpointing=scenario.checkpointing,
        lora=lora,
        dropout=scenario.dropout,
        learned=scenario.pass_tokens - scenario.seq_len,
        beside=forwards_beside(scenario),
        say=say,
    )


R = TypeVar("R")


class Once(Generic[R]):
    """Finds something out when it is first asked, and keeps it; it travels to other processes, unlike a closure."""

    def __init__(self, find: Callable[[], R]) -> None:
        self.find = find
        self.found: R | None = None

    def __call__(self) -> R:
        """What there is to find."""
        if self.found is None:
            self.found = self.find()
        return self.found


def estimate(settled: Resolution, counted: CountedMemory | None = None) -> Estimate:
    """Answer one settled question, whose memory may have been counted already."""
    scenario = settled.scenario
    counted = counted or memory(scenario)
    under_load = Once(partial(_load, scenario)) if scenario.has_load else None
    time = training_time(scenario) if scenario.is_training else _served(scenario, under_load)
    total = time.total_seconds
    cost = None if total is None else job_cost(scenario, total, _bound_by(time))
    failing = Once(partial(long_run, scenario, total)) if scenario.is_training and total is not None else None
    software, reasons = software_support(scenario, settled.backend)
    load = load_verdict(scenario, under_load)
    return Estimate(
        scenario=scenario,
        catalog=settled.digest,
        parameters=parameter_counts(scenario),
        flops=flops(scenario),
        memory=counted.memory,
        time=time,
        verdict=verdict(scenario, counted, total, None if cost is None else cost.usd, software, reasons, load),
        reads=reads_of(scenario),
        serving=counted.serving,
        warnings=(
            *settled.warnings,
            *counted.notes,
            *_speed_notes(scenario, time),
            *_calibrated(scenario, time.own_rows),
        ),
        under_load=under_load,
        failing=failing,
        priced=Once(partial(_serving_cost, scenario, time)) if cost is None else partial(_known, cost),
    )


def reads_of(scenario: Scenario) -> Literal["texts", "pairs"] | Absent:
    """What a model is served with that writes nothing."""
    if scenario.is_training or scenario.model.architecture.writes:
        return ABSENT
    return "texts" if scenario.model.reranker is None else "pairs"


def is_feasible(settled: Resolution) -> bool:
    """Whether the verdict of an estimate is feasible, be it tightly: what is known at once is looked at first, and what
    no verdict hangs on not at all.
    """
    scenario = settled.scenario
    if software_support(scenario, settled.backend)[0] == "unsupported":
        return False
    if scenario.is_training:
        if rank_floor_bytes(scenario) > usable_bytes(scenario) and own_memory(scenario) is None:
            return False  # spares the walk
        if is_late(scenario, training_time(scenario).total_seconds):
            return False
    counted = memory(scenario)
    if memory_status(counted, host_exceeds(scenario, counted.memory)) == "exceeds":
        return False
    if scenario.is_training or scenario.tokens:
        return estimate(settled, counted).verdict.works()
    if scenario.has_load and is_followed(scenario):
        from ..timing.served import keeps_up

        return keeps_up(scenario)
    return True


def _speed_notes(scenario: Scenario, time: TrainingTime | InferenceTime) -> tuple[Note, ...]:
    """Say what stands behind a speed and the device's own figures, and whether the devices wait for data."""
    notes = (*evidence_notes(*time.evidence), *(() if time.own_rows else _by_rule(scenario)))
    if not isinstance(time, TrainingTime) or time.bound_by != "data":
        return notes
    comes, goes = loaded_tokens_per_second(scenario) or 0.0, time.unwaited_tokens_per_second
    text = f"data come in at {format_count(comes)} tokens/s (--loader, --storage) and could be trained on at"
    share = format_percent(1 - comes / goes)
    return *notes, Note("waits-for-data", f"{text} {format_count(goes)}: the devices wait for {share} of the time")


def _served(scenario: Scenario, under_load: Callable[[], ServedLoad] | None) -> InferenceTime:
    time = inference_time(scenario)
    return time if under_load is None else replace(time, served=partial(_output_speed, under_load))


def _bound_by(time: TrainingTime | InferenceTime) -> str:
    """What a job that ends waits for."""
    return time.bound_by if isinstance(time, TrainingTime) else time.prefill_bound_by


def _load(scenario: Scenario) -> ServedLoad:
    from .served_load import served_load

    return served_load(scenario)


def _output_speed(under_load: Callable[[], ServedLoad]) -> Range:
    return under_load().output_tokens_per_second


def _serving_cost(scenario: Scenario, time: TrainingTime | InferenceTime) -> Cost:
    """The cost of a million tokens: an encoder's are those that it reads."""
    assert isinstance(time, InferenceTime)
    reads = not scenario.model.architecture.writes
    made = time.prefill_tokens_per_second if reads else time.output_tokens_per_second
    return serving_cost(scenario, made, time.decode_bound_by)


def _known(cost: Cost) -> Cost:
    return cost


def _calibrated(scenario: Scenario, own_rows: int) -> tuple[Note, ...]:
    """Say that the user's own measurements were used."""
    memory_rows = own.rows if (own := own_memory(scenario)) is not None else 0
    if not own_rows + memory_rows:
        return ()
    parts = [f"{rows} of {what}" for what, rows in (("speed", own_rows), ("memory", memory_rows)) if rows]
    text = f"ranges rest on your own measurements on {scenario.device.name}: {', '.join(parts)}"
    return (Note("calibrated", text),)


BY_RULE = {
    "tflop_per_s": ("peak rates", "other figures of it"),
    "bandwidth_gb_per_s": ("bandwidth", "its type of memory"),
}
"""Figures of a device that a speed rests on, in words, and what they are computed from where no source gives them."""
OF_PROCESSOR = "its cores, clock and memory channels"


def _by_rule(scenario: Scenario) -> tuple[Note, ...]:
    """Say which figures of a device no source gives."""
    device = scenario.device
    found = [words for name, words in BY_RULE.items() if name in device.by_rule]
    if not found:
        return ()
    figures, rules = (" and ".join(words) for words in zip(*found, strict=True))
    rule = OF_PROCESSOR if device.kind == "cpu" else rules
    text = f"no source gives the {figures} of {device.name}: computed from {rule}, with a wider range"
    return (Note("figures-by-rule", text),)


EVIDENCE = {
    "none": (
        "unmeasured-speed",
        "nobody has published the speed of such a run ({}): its range is judgement, and no share of runs is claimed",
    ),
    "judged": (
        "unmeasured-speed",
        "no measured speed sets the range of such a run ({}): it is judgement, and no share of runs is claimed",
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
