"""Tensor memory of one training step on one rank, the worst one: walks of its ranks under what the layout holds."""

from __future__ import annotations

from collections.abc import Iterator

from ..autograd.storage import numeric_sizes
from ..catalog.architecture import Architecture
from ..catalog.implementation import Implementation
from ..findings import cached_across_devices
from ..model.build import build
from ..model.setup import Recipe, Setup
from ..record import dataclass, field, replace
from ..scenario import Scenario
from ..walk.candidates import MomentLines, Peak, PeakCandidates, RankState, candidate_at
from ..walk.fold import peak_candidates
from ..walk.step import walked_step
from ..workload.kernels import (
    has_host,
    kernels_of,
    traits_of,
)
from ..workload.stages import Stage, fullest_stages
from .recipe import in_kernels, program_of_batch, recipe_of
from .runtime import Anywhere
from .training_layout import Layout, host_bytes, layout_of, moved_share, rank_state
from .written import filled_tokens, whole_length

_MAX_PLANS = 384
_MAX_BATCHES = 32
_MAX_PEAKS = 32
_MAX_LENGTHS = 64


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """Bytes of tensors at the fullest moment; `components` add up to `bytes`."""

    bytes: float
    components: dict[str, float]
    moment: str
    runner_up: str
    host_bytes: float
    approximate: str
    """Why the figure is that of a related program; empty where the program itself was measured."""
    kernel_bytes: float = 0.0
    """What kernels write out besides, at the moment that is fullest with it."""
    anywhere: list[Anywhere] = field(default_factory=list, init=False, repr=False, compare=False)
    """What the peak comes to on any device, once somebody asked: devices on which it is tried share it."""


class Rank:
    """One that can be the fullest: its stage, its moments, what it holds, and its levels at the lengths asked for."""

    __slots__ = ("held", "lines", "moments", "parts", "setup", "stage")

    def __init__(self, stage: Stage, setup: Setup, moments: PeakCandidates, held: RankState, parts: int = 1) -> None:
        self.stage = stage
        self.parts = parts
        """Parts of a local batch of which it holds one at a time."""
        self.setup = setup
        self.moments = moments
        self.held = held
        self.lines: dict[int, tuple[MomentLines, ...]] = {}

    def peak(self, micro_batch: int, seq_len: int) -> Peak:
        """Find the fullest moment."""
        lines = self.lines.get(seq_len)
        if lines is None:
            if len(self.lines) >= _MAX_LENGTHS:
                self.lines.clear()
            lines = self.lines[seq_len] = self.moments.lines(seq_len, self.held)
        return self.moments.peak(-(-micro_batch // self.parts), seq_len, self.held, lines)

    def streamed_bytes(self, micro_batch: int, seq_len: int) -> float:
        """What waits in the memory of the host between forward and backward, of all micro-batches in flight."""
        return (1 + self.held.other_micro_batches) * self.moments.streamed_bytes(micro_batch, seq_len)


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """The ranks of a scenario, whatever its batch."""

    ranks: tuple[Rank, ...]
    host_bytes: float
    approximate: str
    in_kernels: tuple[Rank, ...] = ()
    """The ranks with what kernels write out beside tensors; none where that is nothing."""
    peaks: dict[tuple[int, int], TensorMemory] = field(default_factory=dict, repr=False, compare=False)
    """What was counted so far, by micro-batch and length: devices on which it is tried share it."""


_plans: dict[tuple[object, ...], dict[tuple[object, ...], TrainingPlan]] = {}
"""What was planned so far."""


def training_memory(scenario: Scenario) -> TensorMemory:
    """The bytes of tensors at the peak of a training step, per device, the worst pipeline stage.

    Weights, gradients, optimizer states and activations as PyTorch holds them (walk), without context, libraries and
    allocator slack. Assumes that routed tokens spread evenly over experts. Sources: the walk reproduces tracked steps
    of Hugging Face code; sharding after Rajbhandari 2020, Korthikanti 2022, Narayanan 2021.
    """
    return _training_memory(scenario, scenario.micro_batch, scenario.global_batch)


@cached_across_devices
def _training_memory(scenario: Scenario, _micro_batch: int, _global_batch: int) -> TensorMemory:
    if scenario.offload_layers is not None:
        return _between(scenario)
    plan = training_plan(scenario)
    sizes = scenario.sequences_together, scenario.rank_tokens
    found = plan.peaks.get(sizes)
    if found is None:
        if len(plan.peaks) >= _MAX_PEAKS:
            plan.peaks.clear()
        found = plan.peaks[sizes] = _counted(plan, *sizes)
    return found


def _between(scenario: Scenario) -> TensorMemory:
    """The bytes where some layers' tensors move and the others stay: as much of the way from one to the other."""
    moved = training_memory(replace(scenario, offload_layers=None))
    stays = training_memory(replace(scenario, offload_layers=None, offload="none"))
    share = moved_share(scenario)
    mixed = {name: share * moved.components[name] + (1 - share) * size for name, size in stays.components.items()}
    fuller = moved if share * moved.bytes > (1 - share) * stays.bytes else stays
    return replace(fuller, bytes=sum(mixed.values()), components=mixed, host_bytes=share * moved.host_bytes)


def fullest_rank(scenario: Scenario) -> Rank:
    """The rank whose peak is the highest."""
    sizes = scenario.sequences_together, scenario.rank_tokens
    return max(training_plan(scenario).ranks, key=lambda rank: rank.peak(*sizes).bytes)


def _counted(plan: TrainingPlan, sequences: int, seq_len: int) -> TensorMemory:
    peaks = [rank.peak(sequences, seq_len) for rank in plan.ranks]
    worst = peaks[0] if len(peaks) == 1 else max(peaks, key=lambda peak: peak.bytes)
    host = plan.host_bytes + max(rank.streamed_bytes(sequences, seq_len) for rank in plan.ranks)
    full = max((rank.peak(sequences, seq_len).bytes for rank in plan.in_kernels), default=worst.bytes)
    parts, kernels = _components(worst), full - worst.bytes
    return TensorMemory(worst.bytes, parts, worst.moment, worst.runner_up, host, plan.approximate, kernels)


def _components(peak: Peak) -> dict[str, float]:
    return {
        "weights_bytes": peak.weights,
        "gradients_bytes": peak.gradients,
        "optimizer_bytes": peak.optimizer,
        "activations_bytes": peak.activations,
        "logits_bytes": peak.logits,
        "workspace_bytes": peak.workspace,
    }


def training_plan(scenario: Scenario) -> TrainingPlan:
    """The plan of a scenario; scenarios that differ only in what no rank's program sees share one."""
    s, plans = scenario, _plans_of(scenario)
    micro_steps = s.micro_steps
    batch = s.dp, min(s.pp, micro_steps), micro_steps > 1, program_of_batch(s)
    plan = plans.get(batch)
    if plan is None:
        if len(plans) >= _MAX_BATCHES:
            plans.clear()
        plan = plans[batch] = _planned(scenario)
    return plan


@cached_across_devices
def _plans_of(scenario: Scenario) -> dict[tuple[object, ...], TrainingPlan]:
    """The plans for batches of different kinds, shared by scenarios that no rank's program can tell apart."""
    s = scenario
    a = s.model.architecture
    key = (
        s.tables,
        s.device.backend,
        a,
        (s.method, s.loss, s.reference),
        (
            s.precision,
            (s.quant, s.base_dtype),
            s.optimizer,
            s.checkpointing,
            s.attention,
            s.dropout,
            s.offload,
            s.drive_gb_per_s is None,
        ),
        (s.engine, s.transformers),
        (s.lora_rank, s.lora_targets, s.adapter_kind, s.lora_layers, s.virtual_tokens, s.lora_dropout > 0),
        (s.zero, s.tp, s.pp, s.interleave, s.ep, s.cp, s.num_devices > 1, s.expert_tp),
        has_host(s),
        a.window is not None and s.rank_tokens >= a.window.size,
        filled_tokens(s),
        whole_length(s),
    )
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= _MAX_PLANS:
            _plans.pop(next(iter(_plans)), {}).clear()  # who still holds it plans anew
        found = _plans[key] = {}
    return found


def _planned(scenario: Scenario) -> TrainingPlan:
    architecture = scenario.model.architecture
    traits = traits_of(scenario)
    layout = layout_of(scenario)
    recipe = replace(recipe_of(scenario, traits, layout), length=whole_length(scenario))
    ranks, host = _ranks(scenario, traits, layout, recipe)
    full = in_kernels(scenario, recipe)
    unpatched = not scenario.tables.implementations.covers(architecture.implementation, kernels_of(scenario))
    doubt = _doubt(architecture, traits, recipe, unpatched, own=bool(kernels_of(scenario)))
    doubt = doubt or _doubted_objective(scenario, recipe)
    return TrainingPlan(ranks, host, doubt, _ranks(scenario, traits, layout, full)[0] if full else ())


def _ranks(
    scenario: Scenario, traits: Implementation, layout: Layout, recipe: Recipe
) -> tuple[tuple[Rank, ...], float]:
    """The ranks that can be the fullest, and what the host holds."""
    ranks: list[Rank] = []
    host = 0.0
    for stage, in_flight in fullest_stages(scenario):
        setup = Setup(
            architecture=scenario.model.architecture,
            implementation=traits,
            recipe=recipe,
            first_layer=stage.first,
            layers=stage.layers,
            embeds=stage.embeds,
            heads=stage.heads,
        )
        moments = peak_candidates(setup)
        for held in _turns(scenario, rank_state(scenario, layout, moments, setup, in_flight)):
            ranks.append(Rank(stage, setup, moments, held, _parts(scenario, layout, stage)))
        host = max(host, host_bytes(scenario, layout, moments, setup))
    return tuple(ranks), host


def _turns(scenario: Scenario, held: RankState) -> Iterator[RankState]:
    """Yield what a rank holds where several turns share a backward: in that of the last one, and in the one before it,
    which adds to gradients that are there.
    """
    if scenario.objective is None or not scenario.objective.kept:
        yield held
        return
    for behind in range(min(2, scenario.turns)):
        others = (1 + held.other_micro_batches) * scenario.turns - 1 - behind
        state = replace(held, other_micro_batches=others)
        yield replace(state, gradients=held.final_gradients, backward_alone=True) if behind else state


def _parts(scenario: Scenario, layout: Layout, stage: Stage) -> int:
    """Parts of a local batch of which a stage holds one: plain PyTorch's pipeline cuts a batch that comes whole into as
    many as it has stages, and the last one is done with each before the next (torchtitan, pipeline_parallel.py).
    """
    cuts = scenario.pp > 1 and scenario.micro_steps == 1 and layout.scheme.gathers and not layout.scheme.compiled
    return scenario.pp if cuts and stage.heads else 1


def _doubt(a: Architecture, traits: Implementation, recipe: Recipe, unpatched: bool, *, own: bool) -> str:
    if traits.approximate:
        return traits.approximate
    if traits.adapters == "parallel" and recipe.adapters:
        return "no step with adapters was measured under this engine; they are taken as its code runs them"
    if recipe.adapter_dropout and (traits.adapters != "written" or traits.compiled):
        return "no step with dropout before the adapters was measured under this engine"
    if recipe.fp8:
        return "no step in so few bits was measured; the walk is that of bf16-mixed with 8-bit inputs kept"
    other = not all(operator.is_common for operator, _ in build(a).operators)
    if traits.adapters == "kernel" and (other or not recipe.adapters):
        return "no step of this kind was measured under this engine; adapters on dense models were"
    if unpatched:
        return "no code of the engine's own is known for this family; it is computed as the model's public code"
    if traits.patched and other:
        return (
            "no step of this kind was measured with the library's kernels; experts are taken as public code runs them"
        )
    if recipe.offloads and own:
        return "no step with activations on the host was measured under this engine; those of public code were"
    if traits.compiled and (other or recipe.checkpointing != "none"):
        return "no compiled step of this kind was measured; dense models without checkpointing were"
    return ""


def _doubted_objective(scenario: Scenario, recipe: Recipe) -> str:
    """Why the figure of a step with an objective is that of a related program; empty where it was tracked."""
    if scenario.objective is None or scenario.objective.scores:
        return ""
    if scenario.objective.critic:
        return "no step with a critic was measured; it is taken to be at its peak together with the model"
    if not recipe.loss:
        return f"no step with the {scenario.loss} loss was measured; its logits are taken to be held as for plain text"
    known, program = scenario.tables.implementations, scenario.model.architecture.implementation
    public = known.public(program)
    # What replaces the loss of plain text alone (TRL's tiles) changes nothing here.
    if replace(known.under(program, kernels_of(scenario)), loss=public.loss) != public:
        return f"no step with the {scenario.loss} loss was measured under this engine; those of public code were"
    return ""


MOST_MOMENTS = 150
"""Moments of a timeline; of more, neighbours are told by the fullest among them."""


def step_timeline(scenario: Scenario) -> tuple[Peak, ...]:
    """The local maxima of a step in their order, and the optimizer's step; the fullest is the peak of `memory`."""
    rank = fullest_rank(scenario)
    batch, length = -(-scenario.sequences_together // rank.parts), scenario.rank_tokens
    marks = walked_step(rank.setup, numeric_sizes(batch, length)).marks
    levels = [candidate_at(level, moment) for level, moment, _ in marks]
    found = [rank.moments.filled(level, batch, length, rank.held) for level in levels]
    stride = -(-len(found) // MOST_MOMENTS)
    shown = [max(found[at : at + stride], key=lambda peak: peak.bytes) for at in range(0, len(found), stride)]
    end = rank.moments.filled(rank.moments.end, batch, length, rank.held)
    return (*shown, end)
