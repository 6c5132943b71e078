"""How a job is spread over devices where the user left it open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd, inf
from typing import Any

from ..catalog.architecture import Model
from ..errors import UsageError
from ..ranges import Range
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.kernels import runs_fused
from .draft import Draft
from .lengths import OF_TEXTS
from .valid_layout import check_layout, divisors, tensor_parallel_sizes


def default_zero(engine_zero: int, num_devices: int) -> int:
    """The ZeRO stage that nobody set: the engine's own on several devices, 0 on one."""
    return engine_zero if num_devices > 1 else 0


def default_ep(model: Model, num_devices: int, tp: int, pp: int) -> int:
    """The largest expert-parallel size that divides experts and data-parallel ranks."""
    experts = model.architecture.experts
    if experts is None or num_devices == 1:
        return 1
    ranks = max(1, num_devices // (tp * pp))
    return max(size for size in divisors(experts.count, ranks) if ranks % size == 0)


CONTEXT_PARALLEL_TOKENS = 8192
"""Tokens of a sequence that a rank keeps at least when a sequence is spread over several."""

FEWEST_TOKENS = 4096
"""The same where sequences are spread because nothing else fits."""


MOST_SPLITTING = 8
"""How much more than needed a layout may split the model where that is faster."""

WORTH_SPLITTING = 0.97
"""A layout that splits less is taken where it has this share of the speed of the fastest."""

WORTH_ROOM = 0.9
"""A layout that surely fits is taken instead of a tight one where it has this share of its speed."""

MAX_STAGES = 128
"""Stages of a pipeline that nobody asked for."""


def _with_cp(scenario: Scenario, draft: Draft, batch: int) -> Scenario:
    """Spread sequences over ranks that a given global batch would leave idle (context parallel); 0: none was given."""
    ranks = scenario.num_devices // (scenario.tp * scenario.pp)
    if scenario.cp > 1 or draft.was_given("cp") or not batch or ranks <= batch or ranks % batch:
        return scenario
    cp = ranks // batch
    if scenario.seq_len % cp or scenario.seq_len // cp < CONTEXT_PARALLEL_TOKENS:
        return scenario
    return replace(scenario, cp=cp)


def _is_whole(scenario: Scenario) -> bool:
    """Whether a model is not divided: by what fine-tunes public code (accelerate, TRL, torchrun)."""
    return scenario.task != "pretrain" and not runs_fused(scenario)


def longer_spread(scenario: Scenario, draft: Draft) -> Iterator[Scenario]:
    """Yield the same with each sequence over more and more devices: one may be too long for its own."""
    if draft.was_given("cp") or _is_whole(scenario):
        return
    most = min(scenario.num_devices, scenario.seq_len // FEWEST_TOKENS)
    sizes = [size for size in divisors(gcd(scenario.num_devices, scenario.seq_len), most) if size & (size - 1) == 0]
    yield from (replace(scenario, cp=size) for size in sizes[1:])


def _candidates(scenario: Scenario, draft: Draft) -> Iterator[tuple[int, int]]:
    """Yield (tp, pp), least splitting first, tensor parallel inside a node before pipeline stages."""
    architecture, n = scenario.model.architecture, scenario.num_devices
    node = min(scenario.devices_per_node, n)
    sizes = [s for s in tensor_parallel_sizes(architecture, min(node, 16)) if s & (s - 1) == 0]
    whole = _is_whole(scenario)
    tps = [scenario.tp] if draft.was_given("tp") else [1] if whole else sizes
    # Who shards weights (ZeRO-3, FSDP) has no pipeline.
    stages = [1] if whole or scenario.zero >= 3 else divisors(n, min(architecture.layers, MAX_STAGES))
    pps = [scenario.pp] if draft.was_given("pp") else stages
    ep = scenario.ep if architecture.experts else 1
    if scenario.zero == 0 and scenario.engine_record.training.zero > 0 and not draft.was_given("zero"):
        tps, pps = tps[:1], pps[:1]  # each device holds it all
    pairs = [(tp, pp) for tp in tps for pp in pps if n % (tp * pp * scenario.cp) == 0 and n // pp % ep == 0]
    yield from sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair[1]))


@dataclass(frozen=True, slots=True)
class Judge:
    """What layouts are chosen by: whether the engine is after speed, bytes of the peak and of its quick floor, what is
    usable, and tokens a second.
    """

    fastest: bool
    peak_bytes: Callable[[Scenario], Range]
    floor_bytes: Callable[[Scenario], float]
    usable_bytes: float
    tokens_per_second: Callable[[Scenario], float]

    def hopeless(self, candidate: Scenario) -> bool:
        """Whether not even weights and states fit."""
        return self.floor_bytes(candidate) > self.usable_bytes


def fitted_layout(scenario: Scenario, draft: Draft, judge: Judge, batch: int = 0) -> Scenario:
    """Choose tp, pp and the ZeRO stage of a quantized base where the user left them open.

    The first that surely fits, else the first whose expected peak does. An engine that aims at the fastest layout
    splits up to MOST_SPLITTING times as much as it must where that is faster, or where it surely fits and the fastest
    may not; others, and who shards all weights, no more than they must. Where nothing fits, sequences are spread too,
    over as few devices as it takes; where that does not help, the layout with the smallest peak is taken, or, where not
    even weights and states fit, the one with the least of them. `batch` is a global batch that was given, else 0.
    Raises UsageError where none can run, all for one reason.
    """
    if scenario.num_devices == 1:
        return scenario
    laid_out = layouts(scenario, draft, batch)
    if _is_said(scenario, draft):
        return _chunked(laid_out[0], draft, judge)
    _check_any(laid_out)
    if all(judge.hopeless(candidate) for candidate in laid_out):
        return min(laid_out, key=judge.floor_bytes)
    peaks: dict[float, Scenario] = {}
    chosen = _chosen(laid_out, draft, judge, peaks)
    longer = [] if chosen else list(longer_spread(scenario, draft))
    if longer and not _chosen(layouts(longer[-1], draft, batch), draft, judge, {}):
        longer = []  # even the most devices do not help
    spread = (_chosen(layouts(each, draft, batch), draft, judge, {}) for each in longer)
    return chosen or next(filter(None, spread), None) or peaks[min(peaks)]


def _chosen(laid_out: Sequence[Scenario], draft: Draft, judge: Judge, peaks: dict[float, Scenario]) -> Scenario | None:
    """The one of these layouts that is taken; None where none fits."""
    # A quantized base is divided only where it must be: few programs can.
    several = len({each.zero for each in laid_out}) > 1 and laid_out[0].method != "qlora"
    searches = (judge.fastest and laid_out[0].zero < 3) or several
    fitting: list[tuple[Scenario, bool]] = []
    for candidate, sure in _fitting(laid_out, draft, judge, peaks):
        if sure and not searches:
            return candidate
        fitting.append((candidate, sure))
    if not fitting:
        return None
    return _worthiest(fitting, judge) if searches else fitting[0][0]


def first_fitting(scenario: Scenario, draft: Draft, judge: Judge, batch: int) -> Scenario | None:
    """The layout that splits least of those that fit; None where none does. What is chosen fits if any does."""
    for each in (scenario, *longer_spread(scenario, draft)):
        laid_out = layouts(each, draft, batch)
        found = next((fits for fits, _ in _fitting(laid_out, draft, judge, {})), None)
        if found or all(judge.hopeless(candidate) for candidate in laid_out):
            return found
    return None


def _fitting(
    laid_out: Sequence[Scenario], draft: Draft, judge: Judge, peaks: dict[float, Scenario]
) -> Iterator[tuple[Scenario, bool]]:
    """Yield those that fit, and whether they surely do; `peaks` gets the expected peaks of all that were tried."""
    most = inf
    for candidate in laid_out:
        if _ranks(candidate) > most:
            return
        if judge.hopeless(candidate):
            continue
        candidate = _chunked(candidate, draft, judge)
        peak = judge.peak_bytes(candidate)
        peaks.setdefault(peak.expected, candidate)
        if peak.expected <= judge.usable_bytes:
            most = min(most, MOST_SPLITTING * _ranks(candidate))
            yield candidate, peak.high <= judge.usable_bytes


def _check_any(laid_out: Sequence[Scenario]) -> None:
    """Refuse layouts of which none can run before they are weighed; where reasons differ the chosen one tells."""
    refusals: dict[str, UsageError] = {}
    for each in laid_out:
        try:
            check_layout(each)
        except UsageError as error:
            refusals[error.message] = error
        else:
            return
    if len(refusals) == 1:
        raise refusals.popitem()[1]


def _is_said(scenario: Scenario, draft: Draft) -> bool:
    """Whether somebody said the whole layout."""
    return draft.was_given("tp") and draft.was_given("pp") and len(_zero_stages(scenario, draft)) == 1


def layouts(scenario: Scenario, draft: Draft, batch: int) -> list[Scenario]:
    """The layouts to choose among, the least splitting first, before one does with fewer chunks."""
    staged = [replace(scenario, zero=zero) for zero in _zero_stages(scenario, draft)]
    if _is_said(scenario, draft):
        return [_completed(staged[0], draft, batch)]
    return [
        _completed(replace(each, tp=tp, pp=pp), draft, batch) for each in staged for tp, pp in _candidates(each, draft)
    ] or [_completed(scenario, draft, batch)]


def with_fewer_chunks(scenario: Scenario, draft: Draft) -> Iterator[Scenario]:
    """Yield a layout, then those that are taken instead where it does not fit."""
    yield scenario
    while _may_have_fewer(scenario, draft):
        scenario = _with_fewer(scenario)
        yield scenario


def _zero_stages(scenario: Scenario, draft: Draft) -> tuple[int, ...]:
    """The ZeRO stages to choose among: many programs divide nothing (DDP) but where they must or where that is faster,
    and few a quantized base; who keeps weights in main memory (DeepSpeed, FSDP) divides them.
    """
    few_bits, texts = scenario.method == "qlora" and not runs_fused(scenario), scenario.task in OF_TEXTS
    copies = scenario.engine_record.training.copies or few_bits
    # accelerate starts copies on several CPUs under MPI only
    apart = scenario.device.backend == "cpu" and not few_bits and not texts
    if not copies or apart or scenario.offload == "all" or draft.was_given("zero") or scenario.zero == 0:
        return (scenario.zero,)
    # FSDP divides bases of 4 bits alone, and trl, whose objectives these are, none; Sentence Transformers nothing
    bits = int(scenario.tables.quantization.encoded_bits(scenario.quant)[0])
    whole = texts or (few_bits and (scenario.loss is not None or bits > 4))
    return (0,) if whole else (0, scenario.zero)


def _worthiest(fitting: list[tuple[Scenario, bool]], judge: Judge) -> Scenario:
    """Choose among layouts that fit, each with whether it surely does: the least split of the fastest ones."""
    if len(fitting) == 1:
        return fitting[0][0]
    speeds = [judge.tokens_per_second(candidate) for candidate, _ in fitting]
    fast = WORTH_SPLITTING * max(speeds)
    ranked = list(zip(fitting, speeds, strict=True))
    (best, sure), speed = next(one for one in ranked if one[1] >= fast)
    roomy = [one for one in ranked if one[0][1]]
    if sure or not roomy:
        return best
    slowest = max(WORTH_ROOM * speed, WORTH_SPLITTING * max(one[1] for one in roomy))
    return next((candidate for (candidate, _), reached in roomy if reached >= slowest), best)


def _ranks(scenario: Scenario) -> int:
    """Devices that share one copy of the model."""
    return scenario.tp * scenario.pp


def default_interleave(scenario: Scenario, most: int = 4) -> int:
    """The chunks of layers, at most so many, that a stage holds where nobody says: tuned engines interleave if layers
    divide so.
    """
    if scenario.pp == 1 or scenario.engine_record.training.style == "plain":
        return 1
    layers = scenario.model.architecture.layers
    return next((each for each in range(most, 1, -1) if layers % (each * scenario.pp) == 0), 1)


def _chunked(scenario: Scenario, draft: Draft, judge: Judge) -> Scenario:
    """Fewer chunks where nobody said how many and they do not fit: each more keeps micro-batches for longer."""
    while _may_have_fewer(scenario, draft) and judge.peak_bytes(scenario).expected > judge.usable_bytes:
        scenario = _with_fewer(scenario)
    return scenario


def _may_have_fewer(scenario: Scenario, draft: Draft) -> bool:
    return scenario.interleave > 1 and not draft.was_given("interleave")


def _with_fewer(scenario: Scenario) -> Scenario:
    return replace(scenario, interleave=default_interleave(scenario, scenario.interleave - 1))


def _completed(scenario: Scenario, draft: Draft, batch: int) -> Scenario:
    scenario = _with_cp(scenario, draft, batch)
    settled: dict[str, Any] = {}
    if not draft.was_given("interleave"):
        settled["interleave"] = default_interleave(scenario)
    # Nor does public code that is fine-tuned spread experts: each device runs all of them on its own tokens.
    if not draft.was_given("ep") and runs_fused(scenario):
        settled["ep"] = default_ep(scenario.model, scenario.num_devices, scenario.tp, scenario.pp)
    return replace(scenario, **settled)
