"""What one micro-step of a training asks of one device, as numbers."""

from __future__ import annotations

from functools import lru_cache

from ..autograd.loss import parts_of
from ..catalog.device import is_mixed
from ..catalog.engine import TrainingTraits
from ..catalog.implementation import Implementation
from ..derivation import Say
from ..findings import cached_across_devices
from ..model.sums import Sums, architecture_sums, trained_sums
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.kernels import (
    WIDE_HEADS,
    adapts_experts,
    loops_over_experts,
    loops_over_sequences,
    merges_into_experts,
    multiplies_wide,
    picks_biases,
    runs_compiled,
    runs_fused,
    runs_wide,
    sums_products,
    traits_of,
    wide_heads,
    widens_experts,
)
from ..workload.parameters import NO_ADAPTERS, AdaptedWidths, adapted_share, adapted_widths, graded_share
from ..workload.stages import Stage, fullest_and_last


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
    tp: int = 1
    """Devices that divide each matrix."""
    met: float = 1.0
    """Experts that compute on a token for each one that it is routed to: all of them where code runs every expert."""
    normed: float = 0.0
    """Weights whose norms adapters with magnitudes take in every pass, as if all were adapted."""
    merged: float = 0.0
    """Weights of experts on this rank that adapters are merged into anew in every pass; their gradients are made."""
    graded: float = 1.0
    """Share of the layers that a backward pass runs through, and that checkpointing runs again."""
    adapted: float = 1.0
    """Share of the layers that have adapters, where any does."""
    adapters: AdaptedWidths = NO_ADAPTERS
    """What projections with adapters of public code read and write."""
    head_bytes: float = 0.0
    """Moved for head and loss in parts, whatever the tokens: the head is read, and its gradient grows, in each part."""
    uneven: bool = False
    """Experts are spread over devices, and nobody gives them equally many tokens."""
    plain_routing: bool = False
    """Tokens are sorted to their experts by operators of PyTorch, not by kernels of a framework."""
    score_bytes: float = 20.0
    """Moved for an attention score, all passes together, where scale, mask and softmax are one kernel."""
    added_biases: float = 0.0
    """Elements a token of gradients of experts' biases that are added up one row after the other."""
    expert_calls: float = 0.0
    """Experts that are run one after the other in a micro-step."""
    inside_moves: float = 2.0
    """Times that what lies between an expert's products is moved in a pass."""
    wide: bool = False
    """Attention and the head are multiplied in fp32, whatever the precision of the run."""
    wide_experts: bool = False
    """Routed experts are held and multiplied in fp32."""
    broadcast: float = 0.0
    """Elements a token of products that are written out, in fp32, and summed up."""
    wide_heads: WIDE_HEADS = "fused"
    """How attention runs beside heads that are too wide for flash kernels."""
    masks_windows: bool = False
    """Fused attention computes all scores of layers with a window, under a mask."""
    recurrent_flop: float = 0.0
    """Forward FLOP of a token in recurrences that kernels of their own run."""
    turns: float = 0.0
    """Turns of the loops that public code runs over a sequence; 0: there are none, or kernels in their place."""

    @property
    def stream_width(self) -> float:
        """Elements of two bytes a token that pointwise parts read and write in a pass; each product is written in four,
        and read.
        """
        return self.sums.stream_width + 4 * self.broadcast


def passed(work: Work, backward: float, say: Say) -> float:
    """A forward pass and so many backward, of some layers alone where adapters leave the others without."""
    return 1 + backward if work.graded == 1 else 1 + backward * say("graded", work.graded)


def on_slowest_stage(seconds: float, work: Work, say: Say) -> float:
    """Seconds of the whole model as those of one of the devices that share it, on the stage with most layers."""
    if work.stage != 1:
        seconds *= say("stage", work.stage, "of an even share")
    return seconds / say("sharing", work.divisor, "devices")


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


def work_of(scenario: Scenario) -> Work:
    """Read off a scenario what a micro-step asks of one device."""
    tokens = scenario.sequences * scenario.pass_tokens / scenario.cp
    return replace(_work_of(scenario, scenario.shards > 1), tokens=tokens, tp=scenario.tp)


@cached_across_devices
def _work_of(scenario: Scenario, _spread: bool) -> Work:
    engine, sums = scenario.engine_record.training, trained_sums(scenario.model.architecture, scenario.seq_len)
    stage, traits = slowest_stage(sums, scenario.pp), traits_of(scenario) if sums.experts else None
    looped, full = loops_over_experts(scenario), scenario.checkpointing == "full"
    beside, graded, adapted = forwards_beside(scenario), graded_share(scenario), adapted_share(scenario)
    return Work(
        sums=sums,
        tokens=0.0,
        seq_len=scenario.seq_len,
        passes=2.0 if scenario.trains_adapters else 3.0,
        repeated=graded * _repeated(scenario) + beside,
        attention_again=(graded if full or _repeats_scores(scenario) else 0.0) + beside,
        replayed=(graded if full else 0.0) + beside,
        graded=graded,
        divisor=float(scenario.tp * scenario.pp),
        stage=stage.layers * scenario.pp / sums.layers,
        head=stage.heads * scenario.pp / (scenario.seq_len if scenario.model.architecture.last_token else 1),
        crowding=max(1.0, sums.experts / (sums.experts_per_token * scenario.ep)) if sums.experts else 1.0,
        spread=scenario.ep > 1,
        width=4.0 if runs_wide(scenario) else 2.0,
        wide=multiplies_wide(scenario),
        met=sums.experts / sums.experts_per_token if traits is not None and traits.every_expert else 1.0,
        merged=adapted * sums.routed_weights / scenario.ep if merges_into_experts(scenario) and not looped else 0.0,
        head_bytes=_head_bytes(scenario, sums),
        normed=adapted * sums.dense_weights if _takes_norms(scenario) else 0.0,
        adapted=adapted,
        adapters=adapted_widths(scenario) if scenario.trains_adapters else NO_ADAPTERS,
        plain_routing=engine.flash != "vendor",
        added_biases=sums.picked_biases if picks_biases(scenario) and not looped else 0.0,
        uneven=scenario.ep > 1 and not engine.balanced,
        score_bytes=score_bytes(scenario),
        expert_calls=_expert_calls(scenario, sums, adapted) if looped else 0.0,
        inside_moves=_inside_moves(engine, traits),
        wide_experts=sums.experts > 0 and widens_experts(scenario),
        broadcast=sums.broadcast_width if sums_products(scenario) else 0.0,
        wide_heads=wide_heads(scenario),
        recurrent_flop=0.0 if loops_over_sequences(scenario) or not sums.recurrent_layers else sums.linear_flop,
        turns=_turns(scenario, sums),
    )


def _inside_moves(engine: TrainingTraits, traits: Implementation | None) -> float:
    """Times that what lies between the products of an expert is moved in a pass."""
    if engine.graphs:
        return 0.0
    return CLAMPED_MOVES if traits is not None and traits.gate_up == "clamped" else 2.0


def _takes_norms(scenario: Scenario) -> bool:
    return scenario.adapter_kind is not None and scenario.adapter_kind.magnitudes


CLAMPED_MOVES = 9.0
"""Between products with biases, whose halves are clamped (gpt-oss, modeling_gpt_oss.py): forward biases picked and
added (10 widths of a half), both halves taken apart and clamped (6), gate scaled, its sigmoid, both multiplied (7), one
added to the other and both multiplied (5), in all 28; backward some 50. A pass of three is a third of it, of three
widths.
"""


def _expert_calls(scenario: Scenario, sums: Sums, adapted: float) -> float:
    """Experts of one rank that a loop runs in a micro-step, and their adapters."""
    return sums.moe_layers * sums.experts / scenario.ep * (1 + adapts_experts(scenario) * adapted)


def _turns(scenario: Scenario, sums: Sums) -> float:
    """Turns of loops over a sequence of one rank."""
    if not sums.loop_tokens or not loops_over_sequences(scenario):
        return 0.0
    return float(-(-scenario.pass_tokens // (scenario.cp * sums.loop_tokens)))


def _repeated(scenario: Scenario) -> float:
    """Forward passes that checkpointing repeats in products."""
    value = scenario.tables.efficiency.value
    if scenario.checkpointing == "full":
        return value("training.recompute.full")
    plain = scenario.engine_record.training.style == "plain"
    return value("training.recompute.selective") if scenario.checkpointing == "selective" and plain else 0.0


def _repeats_scores(scenario: Scenario) -> bool:
    """Whether selective checkpointing runs attention again: what is made again from latents takes none of it."""
    remakes = scenario.model.architecture.mla is not None and scenario.engine_record.training.scheme.remakes_latents
    return scenario.checkpointing == "selective" and not remakes


def score_bytes(scenario: Scenario) -> float:
    """Bytes that unfused attention moves for a score in a step, all passes together.

    Where scale, mask and softmax are one kernel 20. In public code, one operator after the other: forward the product
    written (2), scaled (4), masked (4), in fp32 (6) to its softmax (6) and back, read (2), 24 in all; backward 32;
    sinks are joined, the highest is taken off and they are cut away again: 18 forward, 10 backward. All in fp32 there
    is nothing to cast: 32 forward.
    """
    if runs_fused(scenario) or runs_compiled(scenario) or scenario.device.backend == "hpu":
        return 20.0
    forward, backward = (42.0, 42.0) if scenario.model.architecture.sinks else (24.0, 32.0)
    forward += 8.0 if multiplies_wide(scenario) else 0.0
    graded = graded_share(scenario)
    again = (graded if scenario.checkpointing != "none" else 0.0) + forwards_beside(scenario)
    return forward * (1 + again) + backward * graded


def _head_bytes(scenario: Scenario, sums: Sums) -> float:
    """Bytes that a loss in parts (Liger) moves for the head: read by two products in 16 bits, of masters copied twice
    before (12); where it trains its gradient is added up in fp32 by the product (8) or after it, in 16 bits (20).
    """
    if traits_of(scenario).loss != "in-parts" or not sums.head_weights:
        return 0.0
    adapts, mixed = scenario.trains_adapters, is_mixed(scenario.precision)
    each = 4.0 + (0.0 if adapts else 20.0)  # both ways to train come to the same
    each += 12.0 if adapts and mixed and scenario.base_dtype == "fp32" else 0.0
    return parts_of(round(sums.logits), sums.hidden) * sums.head_weights * each


@lru_cache(maxsize=4096)
def slowest_stage(sums: Sums, pp: int) -> Stage:
    """The stage of a pipeline that the others wait for: whole layers, and on the last one the head, weigh what a token
    multiplies with.
    """
    layer = sums.active / sums.layers
    return max(
        fullest_and_last(sums.layers, pp), key=lambda stage: stage.layers * layer + stage.heads * sums.head_weights
    )
