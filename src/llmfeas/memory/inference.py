"""Memory of inference: weights, cache, the pass over the prompt, one more token; on the device that holds most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..catalog.architecture import Architecture
from ..catalog.serving_pool import ServingPool
from ..model.build import build
from ..model.layer import Layer
from ..model.operator import Operator
from ..model.sums import source_tokens
from ..record import dataclass, replace
from ..scenario import Scenario
from ..walk.prefill import prefill_bytes, prefill_polynomials
from ..workload.cache import kv_cache_bytes
from ..workload.serving import Serving, cached_value_bytes, sequences_of, serving_of
from ..workload.stages import Stage, stages, stages_by_memory
from ..workload.weights import WITH_TOWERS, WeightBytes, native_bytes, weight_bytes
from .prefill import pass_bytes

COPIED_FROM_TOKENS = 32
"""Tokens from which on llama.cpp multiplies on the device what lies on the host (op_offload_min_batch_size)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceMemory:
    """Tensors on one device, the worst one, in bytes; `components` are those alive at the peak and sum to `bytes`."""

    bytes: float
    components: Mapping[str, float]
    moment: str
    runner_up: str
    moments: Mapping[str, float]
    """Bytes at each moment."""
    cache_bytes: float
    """Cache on this device as the engine holds it, at its longest."""
    kv_cache_bytes: float
    """Logical: keys and values of the whole context of all sequences, on all devices together."""
    host_bytes: float
    """On the host, for one device: look-up tables, layers and their cache that stay there."""
    approximate: str = ""
    """Why the figure is uncertain; empty where it is not."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one device holds: weights, and of a request the cache at its longest, with the prompt only, of one layer."""

    weights: float
    cache: float
    prompt_cache: float
    layer_cache: float
    makes_logits: bool
    copied: float = 0.0
    """The most of one layer that the host keeps: prompts are computed on a copy of it."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the devices of a replica and its host hold, before anything is computed."""

    parts: tuple[Part, ...]
    host: float
    host_cache: float
    """Of each request."""

    def host_bytes(self, sequences: int) -> float:
        """With so many requests."""
        return self.host + sequences * self.host_cache


def inference_memory(scenario: Scenario) -> InferenceMemory:
    """What is alive at the peak of serving `concurrency` sequences, on the worst device.

    Prefill: weights + cache of the prompt + streams and the widest operator of a pass (or logits of every token, where
    the engine makes them). Decode: weights + cache of the whole context + logits + what appending copies. Engines
    differ by data/engines.yaml. Tensor parallel divides matrices, heads and logits; layers divide over `pp` stages.
    """
    found = _memory(serving_of(scenario), sequences_of(scenario), scenario.concurrency)
    return _with_others(scenario, found)


def _with_others(scenario: Scenario, found: InferenceMemory) -> InferenceMemory:
    """The same with what drafts, the encoder that reads images, and their keys and values that are no tokens."""
    if scenario.drafted:
        found = _with_draft(scenario, found)
    s = serving_of(scenario)
    if scenario.images and s.tables.quantization.format(s.quant, s.dialect).kind not in WITH_TOWERS:
        found = _with_more(found, native_bytes("fp16") * s.architecture.tower_parameters, 0.0, 0.0)  # a file beside
    each = scenario.images * scenario.model.image_cached_values * cached_value_bytes(scenario)
    held = each * sequences_of(scenario) / (scenario.tp * scenario.pp)
    return _with_more(found, 0.0, held, each * scenario.concurrency) if each else found


def _with_draft(scenario: Scenario, found: InferenceMemory) -> InferenceMemory:
    """The same with what drafts: a model with its cache, or as much as one layer of the model (MTP: its own size)."""
    layers, drafting, tp = scenario.model.architecture.layers, scenario.draft_model, scenario.tp
    cache = found.cache_bytes / layers
    weights = found.components["weights_bytes"] / layers
    logical = found.kv_cache_bytes / layers
    if scenario.draft == "mtp":
        # what published weights of 8 bits hold too; packers of fewer leave the block as it was
        width = 1 if scenario.quant.startswith("fp8") else native_bytes(scenario.precision)
        weights = scenario.model.mtp_parameters * width / tp
    if drafting is not None:
        asked = serving_of(scenario)
        quant = drafting.published_quant or "none"
        held = weight_bytes(asked.tables.quantization, drafting.architecture, quant, asked.dialect, asked.native, None)
        weights = sum(layer.on_rank(tp, 1) for layer in held.layers) + (held.tables + held.head) / tp
        logical = kv_cache_bytes(drafting.architecture, asked.context, scenario.concurrency, asked.value)
        cache = kv_cache_bytes(drafting.architecture, asked.context, sequences_of(scenario), asked.value) / tp
    return _with_more(found, weights, cache, logical)


def _with_more(found: InferenceMemory, weights: float, cache: float, logical: float) -> InferenceMemory:
    components = dict(found.components)
    components["weights_bytes"] += weights
    components["kv_cache_bytes"] += cache
    return replace(
        found,
        bytes=found.bytes + weights + cache,
        components=components,
        moments={name: moment + weights + cache for name, moment in found.moments.items()},
        cache_bytes=found.cache_bytes + cache,
        kv_cache_bytes=found.kv_cache_bytes + logical,
    )


def part_memories(scenario: Scenario) -> tuple[InferenceMemory, ...]:
    """The same on each of unequal devices, in their order."""
    found = _memories(serving_of(scenario), sequences_of(scenario), scenario.concurrency)
    return tuple(_with_others(scenario, each) for each in found)


def _memories(s: Serving, sequences: int, requests: int) -> tuple[InferenceMemory, ...]:
    held = _held(s)
    host = held.host_bytes(sequences)
    return tuple(_counted(s, _moments(s, part, sequences), host, requests) for part in held.parts)


@lru_cache(maxsize=384)
def _memory(s: Serving, sequences: int, requests: int) -> InferenceMemory:
    held = _held(s)
    candidates = [_moments(s, part, sequences) for part in dict.fromkeys(held.parts)]
    worst = max(candidates, key=lambda moments: max(sum(found.values()) for found in moments.values()))
    return _counted(s, worst, held.host_bytes(sequences), requests)


def _counted(s: Serving, worst: dict[str, dict[str, float]], host: float, requests: int) -> InferenceMemory:
    totals = {name: sum(parts.values()) for name, parts in worst.items()}
    # where buffers are reserved both are alike: then it is decoding that lasts
    order = sorted(totals, key=lambda name: (-totals[name], name))
    return InferenceMemory(
        bytes=totals[order[0]],
        components=worst[order[0]],
        moment=order[0],
        runner_up=order[-1],
        moments=totals,
        cache_bytes=worst["decode"]["kv_cache_bytes"],
        kv_cache_bytes=kv_cache_bytes(s.architecture, s.context, requests, s.value),
        host_bytes=host / s.pp,
    )


@lru_cache(maxsize=1024)
def _held(s: Serving) -> Held:
    """What each pipeline stage holds, and what stays on the host."""
    weights = weight_bytes(s.tables.quantization, s.architecture, s.quant, s.dialect, s.native, s.stored)
    tape = build(s.architecture)
    caches = _pages(s) or _unpaged(s, [layer for layer, _ in tape.kinds])
    held, padded = zip(weights.layers, tape.layers, strict=True), _padding(s)
    layers = [(layer.on_rank(s.tp, s.expert_ranks / padded), *caches[kind]) for layer, kind in held]
    host, host_cache = (sum(each[place] for each in layers[: s.host_layers]) for place in (0, 1))
    copied = 0.0 if s.one_pool else max((weight for weight, _, _ in layers[: s.host_layers]), default=0.0)
    for place in range(s.host_layers, s.host_experts):
        experts = weights.layers[place].routed / (s.expert_ranks / padded)
        host, copied = host + experts, max(copied, experts)
        layers[place] = (layers[place][0] - experts, *layers[place][1:])
    tables, head = weights.tables / s.tp, weights.head / s.tp
    if s.tables.quantization.format(s.quant, s.dialect).embedding_on == "host" and not s.one_pool:
        host, tables = host + tables, 0.0
    if s.host_layers:
        host, head = host + head, 0.0
    streamed = 0.0
    if s.streamed:
        host += sum(weight for weight, _, _ in layers[s.host_layers :])
        streamed = 2 * max(weight for weight, _, _ in layers)
        layers = [(0.0, cache, prompt) for _, cache, prompt in layers]
    kept = layers[s.host_layers :]
    parts: list[Part] = []
    for stage in _stages(s, len(kept), int(head > 0 and s.pool is None)):
        own = kept[stage.first : stage.end]
        edge = (tables + weights.reader / s.tp if stage.embeds else 0.0) + (head + weights.rest if stage.heads else 0.0)
        own_caches = [cache for _, cache, _ in own]
        parts.append(
            Part(
                sum(weight for weight, _, _ in own) + _again(s, weights, stage) + edge + streamed,
                sum(own_caches),
                sum(prompt for _, _, prompt in own),
                max(own_caches, default=0.0),
                stage.heads and bool(head),
                copied,
            )
        )
    return Held(tuple(parts), host, host_cache)


def _again(s: Serving, weights: WeightBytes, stage: Stage) -> float:
    """Bytes of one rank in what a stage runs and layers before it hold too."""
    first = s.host_layers + stage.first
    again = () if s.streamed else weights.held_again(first, first + stage.layers)
    return sum(layer.on_rank(s.tp, s.expert_ranks / _padding(s)) for layer in again)


def _stages(s: Serving, layers: int, head: int) -> tuple[Stage, ...]:
    return stages_by_memory(layers, s.memories, head) if s.memories else stages(layers, s.pp, head)


def pads_experts(scenario: Scenario) -> bool:
    """Whether a server's kernels pad the routed experts of a rank."""
    return scenario.task == "inference" and _padding(serving_of(scenario)) > 1


def _padding(s: Serving) -> float:
    """By which factor a server's kernels pad the width of a rank's routed experts."""
    experts = s.architecture.experts
    if s.pool is None or experts is None or s.quant not in s.pool.padded:
        return 1.0
    width = experts.width / s.expert_tp
    return -(-width // s.pool.padded_to) * s.pool.padded_to / width


def _pages(s: Serving) -> list[tuple[float, float]]:
    """Bytes of a request in one layer of each kind in a server's pool, on one rank; nothing where there is none."""
    if s.pool is None:
        return []
    from .paged_cache import PagedCache, request_bytes

    pages = PagedCache(
        pool=s.pool,
        architecture=s.architecture,
        block_tokens=s.behaviour.block_tokens,
        context=s.context,
        pass_tokens=s.pool.batches * s.pass_tokens,
        value=s.value,
        tp=s.tp,
    )
    return [(held, held) for held in request_bytes(pages)]


def _unpaged(s: Serving, kinds: Sequence[Layer]) -> list[tuple[float, float]]:
    """Bytes of a request's cache in one layer of each kind; windows where the engine reads those of such a model."""
    whole = [op for layer in kinds if layer.window is None for op in layer.operators if op.cached_values(1)]
    reads = not s.behaviour.mixed_windows or whole or s.architecture.compressed_attention is not None
    return [_caches(s, layer, layer.window if reads else None) for layer in kinds]


def _caches(s: Serving, layer: Layer, window: int | None) -> tuple[float, float]:
    """Bytes of a request's cache in one layer of a kind on one rank: the whole context, and right after the prompt.

    `window`: that of the layer where the engine reads it.
    """
    behaviour, block = s.behaviour, s.behaviour.block_tokens
    operators = [op for op in layer.operators if op.cached_values(1) or op.state_bytes or op.source_values]
    whole = -(-s.context // block) * block
    prompt = whole if behaviour.cache != "growing" else -(-s.prompt // block) * block
    if behaviour.window_extra is not None and window is not None:
        whole = prompt = min(whole, window + behaviour.window_extra)
        window = None
    # right after a pass a windowed layer still stores the whole prompt
    full = sum(_cache_bytes(s, operator, whole, windowed=window is not None) for operator in operators)
    return full, sum(_cache_bytes(s, operator, prompt, windowed=False) for operator in operators)


def _cache_bytes(s: Serving, operator: Operator, tokens: int, *, windowed: bool) -> float:
    fixed = operator.state_bytes > 0
    values = operator.cached_values(tokens) if windowed or fixed else operator.cached_values(1) * tokens
    values += operator.source_values
    return (values * s.value + operator.state_bytes) / min(s.tp, operator.cache_parts)


def logits_of(scenario: Scenario) -> tuple[float, float]:
    """Bytes of a logit with the copies that a sampler makes of it, and what that sampler holds in any case."""
    s = serving_of(scenario)
    if s.pool is not None:
        return s.native + s.pool.sampler_bytes, s.pool.sampler_fixed_bytes
    return s.behaviour.logit_bytes or s.behaviour.value_bytes or s.native, 0.0


def _moments(s: Serving, part: Part, sequences: int) -> dict[str, dict[str, float]]:
    """Components of the two moments on one device."""
    if s.pool is not None:
        return _profiled(s, s.pool, part, sequences)
    behaviour = s.behaviour
    value = behaviour.value_bytes or s.native
    logit = (
        (behaviour.logit_bytes or value) * s.architecture.vocab / s.tp
        if part.makes_logits and s.architecture.writes
        else 0.0
    )
    layers, logits = _prompt_pass(s, value, logit, part.copied, sequences)
    step = pass_bytes(s.architecture, 1, 1, sequences, value_bytes=value, fused_attention=True).layers / s.tp
    prefill = {
        "weights_bytes": part.weights,
        "kv_cache_bytes": sequences * part.prompt_cache,
        "activations_bytes": layers,
        "logits_bytes": logits,
    }
    if not s.architecture.writes:
        # Nothing is written: there is no other moment, and what there is of one is never the fullest.
        return {"prefill": prefill, "decode": {"weights_bytes": part.weights, "kv_cache_bytes": 0.0}}
    decode = {
        "weights_bytes": part.weights,
        "kv_cache_bytes": sequences * part.cache,
        "activations_bytes": max(step, layers if behaviour.reserves else 0.0),
        "logits_bytes": max(logit * sequences, logits if behaviour.reserves else 0.0),
        "workspace_bytes": sequences * _appended(s, part) if behaviour.appends else 0.0,
    }
    return {"prefill": prefill, "decode": decode}


def _profiled(s: Serving, pool: ServingPool, part: Part, sequences: int) -> dict[str, dict[str, float]]:
    """Components on one device of a server, which has room for its widest pass at any moment."""
    from .profile_pass import WidestPass, widest_bytes

    widest = widest_bytes(
        WidestPass(
            pool=pool,
            architecture=s.architecture,
            tokens=s.pass_tokens,
            sequences=min(s.pass_sequences, s.pass_tokens),
            value=s.native,
            quant=s.quant,
            tp=s.tp,
            expert_tp=s.expert_tp,
            samples=part.makes_logits and s.context <= (pool.whole_prompts or s.context),
        )
    )
    held = {
        "weights_bytes": part.weights,
        "kv_cache_bytes": sequences * part.cache,
        "activations_bytes": widest.activations,
        "logits_bytes": widest.logits,
    }
    return {"prefill": held, "decode": held}


def _appended(s: Serving, part: Part) -> float:
    """What a token more of a request copies: old and new keys (or values) of a layer; repeated heads in eager code."""
    a = s.architecture
    repeats = not s.fused and a.mla is None and a.kv_heads < a.heads
    repeated = part.layer_cache * a.heads / a.kv_heads if repeats else 0.0
    return max(part.layer_cache / 2, repeated)


def _prompt_pass(s: Serving, value: float, logit: float, copied: float, sequences: int) -> tuple[float, float]:
    """Activations and logits of the widest pass over the prompt on one rank, beside a copy of a layer of the host."""
    behaviour, limit = s.behaviour, s.pass_tokens
    tokens = min(s.prompt, limit or s.prompt)
    if limit and behaviour.reserves:
        tokens, sequences = min(limit, max(s.context, 1)), 1
    seen = s.context if behaviour.reserves else s.prompt
    reads = s.architecture.reader or s.architecture
    if reads is not s.architecture:
        tokens = seen = source_tokens(s.architecture)
    layers = (_walked(s, reads, tokens, sequences) if behaviour.public_code else None) or pass_bytes(
        reads,
        tokens,
        seen,
        sequences,
        value_bytes=value,
        fused_attention=s.fused,
        score_bytes=behaviour.score_bytes,
        in_place=behaviour.in_place,
    ).layers
    layers = layers / s.tp + (copied if tokens >= COPIED_FROM_TOKENS else 0.0)
    if s.fused:
        layers += tokens * sequences * seen * behaviour.mask_bytes
    if behaviour.logits == "last":
        return layers, 0.0
    # logits of a whole pass come after its layers, which let go of the mask
    streams, logits = tokens * sequences * s.architecture.hidden * value, tokens * sequences * logit
    return (layers, 0.0) if layers >= logits + streams else (streams, logits)


def _walked(s: Serving, a: Architecture, tokens: int, sequences: int) -> float | None:
    """The bytes of a pass as the public code runs it; None where its program is not known to the operator."""
    traits = s.tables.implementations.public(a.implementation)
    if traits.approximate or not tokens:
        return None
    polynomials = prefill_polynomials(
        a,
        traits,
        value_bytes=int(s.native),
        eager=not s.fused or traits.eager_only,
        windowed=a.window is not None and tokens >= a.window.size,
    )
    return float(prefill_bytes(polynomials, sequences, tokens))
