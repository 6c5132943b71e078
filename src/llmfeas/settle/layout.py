"""How a job is spread over devices where the user left it open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from ..errors import UsageError
from ..record import replace
from ..scenario import Scenario
from ..workload.kernels import runs_fused
from .draft import Draft
from .lengths import OF_TEXTS
from .valid_layout import check_layout, divisors, tensor_parallel_sizes
from .variants import recomputations, variants
from .weighing import Judge, Weighing, least_variant


def default_zero(engine_zero: int, num_devices: int) -> int:
    """The ZeRO stage that nobody set: the engine's own on several devices, 0 on one."""
    return engine_zero if num_devices > 1 else 0


CONTEXT_PARALLEL_TOKENS = 8192
"""Tokens of a sequence that a rank keeps at least when a sequence is spread over several."""

FEWEST_TOKENS = 4096
"""The same where sequences are spread because nothing else fits."""


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


def fitted_layout(scenario: Scenario, draft: Draft, judge: Judge, batch: int = 0) -> Scenario:
    """Choose the layout, what a pre-training recomputes and the ZeRO stage of a quantized base where they are open.

    The first that surely fits, else the first whose expected peak does. An engine that aims at the fastest layout
    splits more than it must where that is faster, or where it surely fits and the fastest may not; others, and who
    shards all weights, no more than they must. All is recomputed where that is faster by as much. Where nothing fits,
    sequences are spread too, over as few devices as it takes; where that does not help, the layout with the smallest
    peak is taken, or, where not even weights and states fit, the one with the least of them. `batch` is a global batch
    that was given, else 0. Raises UsageError where none can run, all for one reason.
    """
    if scenario.num_devices == 1:
        return scenario
    laid_out, weighing = layouts(scenario, draft, batch), Weighing(draft, judge)
    _check_any(laid_out)
    least = [least_variant(candidate, draft) for candidate in laid_out]
    if all(map(judge.hopeless, least)):
        return min(least, key=judge.floor_bytes)
    if _is_said(scenario, draft):  # what such runs do not say of recomputing they did not do
        weighing.weigh(laid_out)
        return weighing.chosen() or least[0]
    jobs = list(recomputations(scenario, draft))
    fits = [weighing.weigh(laid_out if each is scenario else layouts(each, draft, batch)) for each in jobs]
    for job, here in zip(jobs, fits, strict=True):
        if not here and (job is scenario or not any(fits)):
            _spread_longer(job, draft, judge, batch, weighing)
    return weighing.chosen() or weighing.peaks[min(weighing.peaks)]


def _spread_longer(job: Scenario, draft: Draft, judge: Judge, batch: int, weighing: Weighing) -> None:
    """Weigh layouts with sequences over as few devices as it takes to fit, if even the most devices help."""
    longer = list(longer_spread(job, draft))
    if longer and Weighing(draft, judge).weigh(layouts(longer[-1], draft, batch)):
        any(weighing.weigh(layouts(each, draft, batch)) for each in longer)


def first_fitting(scenario: Scenario, draft: Draft, judge: Judge, batch: int) -> Scenario | None:
    """The layout that splits least of those that fit; None where none does. What is chosen fits if any does."""
    weighing = Weighing(draft, judge)
    for spread in (scenario, *longer_spread(scenario, draft)):
        for each in recomputations(spread, draft):
            hopeful = weighing.hopeful(layouts(each, draft, batch))
            found = next((fits for one in hopeful for fits, _ in weighing.fitting(one)), None)
            if found or not hopeful:
                return found
    return None


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
    """The layouts to choose among, the least splitting first, in the variant that shares and cuts most."""
    staged = [replace(scenario, zero=zero) for zero in _zero_stages(scenario, draft)]
    if _is_said(scenario, draft):
        return [_completed(staged[0], draft, batch)]
    return [
        _completed(replace(each, tp=tp, pp=pp), draft, batch) for each in staged for tp, pp in _candidates(each, draft)
    ] or [_completed(scenario, draft, batch)]


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


def _completed(scenario: Scenario, draft: Draft, batch: int) -> Scenario:
    """The layout with sequences spread, in its first variant."""
    return next(variants(_with_cp(scenario, draft, batch), draft))
