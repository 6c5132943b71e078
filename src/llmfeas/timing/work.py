"""What one micro-step of a training asks of one device, as numbers."""

from __future__ import annotations

from functools import lru_cache

from ..model.sums import Sums, architecture_sums, trained_sums
from ..record import dataclass, replace
from ..scenario import Scenario, cached_across_batches
from ..workload.kernels import adapts_experts, loops_over_experts, merges_into_experts, runs_wide, traits_of
from ..workload.parameters import adapted_share, graded_share
from ..workload.stages import Stage, stages

ADAPTER_TASKS = ("lora", "qlora")


@dataclass(frozen=True, slots=True)
class Work:
    """What one micro-step asks of one device, with the settings that the formulas need as numbers."""

    sums: Sums
    tokens: float
    """Tokens of a micro-step on this rank."""
    seq_len: int
    passes: float
    """Matrix passes: forward, activation gradients, weight gradients (not for adapters)."""
    repeated: float
    """Forwards that checkpointing repeats."""
    attention_again: float
    """1 where attention is recomputed."""
    replayed: float
    """1 where the pointwise work of a whole forward is repeated."""
    divisor: float
    """Devices that share one copy of the model, tp x pp."""
    stage: float
    """Layers of the slowest pipeline stage, relative to an even share."""
    head: float
    """Output head on that stage, relative to an even share."""
    crowding: float
    """Tokens that a micro-step must bring for each one that an expert gets; 1 without experts."""
    spread: bool
    """Experts are spread over devices."""
    width: float
    """Bytes of an element between products."""
    met: float = 1.0
    """Experts that compute on a token for each one that it is routed to: all of them where code runs every expert."""
    normed: float = 0.0
    """Weights whose norms adapters with magnitudes take in every pass, as if all were adapted."""
    merged: float = 0.0
    """Weights of experts on this rank that adapters are merged into anew in every pass; their gradients are made."""
    forwards: float = 0.0
    """Forward passes without a gradient beside the step's own; they are in `repeated`, `replayed` and the like."""
    graded: float = 1.0
    """Share of the layers that a backward pass runs through, and that checkpointing runs again."""
    adapted: float = 1.0
    """Share of the layers that have adapters, where any does."""
    expert_calls: float = 0.0
    """Experts that are run one after the other in a micro-step."""


def forwards_beside(scenario: Scenario) -> float:
    """Forward passes without a gradient over the tokens of a step, of the model or of the one that it was.

    Answers of a reference that were computed in advance cost a pass over the data, not one in each epoch.
    """
    objective = scenario.objective
    if objective is None:
        return 0.0
    others = _of_others(scenario)
    if scenario.reference not in ("loaded", "precomputed"):
        return objective.forwards + others
    once = (scenario.epochs or 1.0) if scenario.reference == "precomputed" else 1.0
    return objective.forwards + objective.reference_forwards / max(1.0, once) + others


CRITIC_PASSES = 4
"""Forward passes that a critic's work comes to: one before the update, and an update of forward and backward."""


def _of_others(scenario: Scenario) -> float:
    """Passes of the models beside the one that trains, as passes of that one: by the weights that a token meets."""
    if not scenario.beside:
        return 0.0
    own = architecture_sums(scenario.model.architecture)
    again = 1 if scenario.checkpointing == "full" else 0
    passes = 0.0
    for role, model in scenario.beside:
        sums = architecture_sums(model.architecture)
        times = CRITIC_PASSES + again if role == "critic" else 1
        passes += times * (sums.active + sums.head_weights) / (own.active + own.head_weights)
    return passes


def work_of(scenario: Scenario, tuned: bool) -> Work:
    """Read off a scenario what a micro-step asks of one device."""
    return replace(_work_of(scenario, tuned), tokens=scenario.sequences * scenario.pass_tokens / scenario.cp)


@cached_across_batches
def _work_of(scenario: Scenario, tuned: bool) -> Work:
    efficiency = scenario.tables.efficiency
    full, selective = scenario.checkpointing == "full", scenario.checkpointing == "selective"
    # Queries, keys and values made again from latents take none of the attention.
    scores = selective and (
        scenario.model.architecture.mla is None or not scenario.engine_record.training.scheme.remakes_latents
    )
    repeated = efficiency.value("training.recompute.full") if full else 0.0
    if selective and not tuned:
        repeated = efficiency.value("training.recompute.selective")
    sums = trained_sums(scenario.model.architecture, scenario.seq_len)
    stage = slowest_stage(sums, scenario.pp)
    traits = traits_of(scenario) if sums.experts else None
    beside, graded = forwards_beside(scenario), graded_share(scenario)
    kind, adapted = scenario.adapter_kind, adapted_share(scenario)
    calls = sums.moe_layers * sums.experts / scenario.ep
    looped, merged = loops_over_experts(scenario), merges_into_experts(scenario)
    return Work(
        sums=sums,
        tokens=0.0,
        seq_len=scenario.seq_len,
        passes=2.0 if scenario.method in ADAPTER_TASKS else 3.0,
        repeated=graded * repeated + beside,
        attention_again=(graded if full or scores else 0.0) + beside,
        replayed=(graded if full else 0.0) + beside,
        forwards=beside,
        graded=graded,
        divisor=float(scenario.tp * scenario.pp),
        stage=stage.layers * scenario.pp / sums.layers,
        head=float(stage.heads * scenario.pp),
        crowding=max(1.0, sums.experts / (sums.experts_per_token * scenario.ep)) if sums.experts else 1.0,
        spread=scenario.ep > 1,
        width=4.0 if runs_wide(scenario) else 2.0,
        met=sums.experts / sums.experts_per_token if traits is not None and traits.every_expert else 1.0,
        merged=adapted * sums.routed_weights / scenario.ep if merged and not looped else 0.0,
        normed=adapted * sums.dense_weights if kind is not None and kind.magnitudes else 0.0,
        adapted=adapted,
        expert_calls=calls * (1 + adapts_experts(scenario) * adapted) if looped else 0.0,
    )


@lru_cache(maxsize=4096)
def slowest_stage(sums: Sums, pp: int) -> Stage:
    """The stage of a pipeline that the others wait for: whole layers, and on the last one the head, weigh what a token
    multiplies with.
    """
    layer = sums.active / sums.layers
    return max(stages(sums.layers, pp), key=lambda stage: stage.layers * layer + stage.heads * sums.head_weights)
