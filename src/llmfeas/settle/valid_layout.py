"""Whether a job can be spread over devices as a layout says, and by which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isqrt

from ..catalog.architecture import Architecture
from ..catalog.engine import Engine
from ..catalog.joined import Joined
from ..errors import UsageError
from ..scenario import Scenario
from ..workload.serving import peers
from .draft import Draft

MAX_SHOWN = 12
PLACES_OF_ENDS = 2
"""Embedding and head can stand where a layer would in a pipeline (Megatron Core:
account_for_embedding_in_pipeline_split)."""


@lru_cache(maxsize=256)
def divisors(number: int, limit: int) -> tuple[int, ...]:
    """Divisors up to a limit, the least first: each below the root with the one above it."""
    low = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    both = (*low, *(number // each for each in reversed(low) if each * each != number))
    return tuple(each for each in both if each <= limit)


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:MAX_SHOWN])
    return shown + (", ..." if len(numbers) > MAX_SHOWN else "")


def tensor_parallel_sizes(architecture: Architecture, limit: int) -> list[int]:
    """The tensor-parallel sizes up to `limit` that divide the heads; kv heads divide or are copied."""
    kv = architecture.kv_heads
    return [
        tp for tp in divisors(architecture.heads, limit) if architecture.mla is not None or kv % tp == 0 or tp % kv == 0
    ]


def _refusal(message: str, works: str) -> UsageError:
    return UsageError("impossible-layout", message, works)


def check_engine(draft: Draft, engine: Engine) -> None:
    """Refuse to divide layers where the engine divides batches alone.

    Raises:
        UsageError: naming the options.
    """
    divided = [f"--{name} {draft.given[name]}" for name in ("tp", "pp", "cp", "ep") if draft.given.get(name, 1) != 1]
    if divided and engine.training.layout == "batches":
        raise _refusal(
            f"{' '.join(divided)}: {engine.id} divides batches over devices, never a layer",
            "leave that out, or take another --engine",
        )


def check_layout(scenario: Scenario) -> None:
    """Refuse a layout that cannot run, naming the sizes that would.

    Raises:
        UsageError: where tp does not divide the heads, pp exceeds the layers, ep the experts, or the product the count.
    """
    model, architecture, n = scenario.model, scenario.model.architecture, scenario.num_devices
    tp, pp, cp, ep = scenario.tp, scenario.pp, scenario.cp, scenario.ep
    _check_parts(scenario)
    if tp == pp == cp == ep == scenario.interleave == 1:
        return
    if n % (tp * pp * cp):
        parts = " x ".join(f"{name} {size}" for name, size in (("tp", tp), ("pp", pp), ("cp", cp)) if size > 1)
        there = f"there are {n}" if n > 1 else "there is 1"
        raise _refusal(
            f"{parts} needs {tp * pp * cp} devices, or a multiple of that, and {there}",
            f"the product may be {_listed(divisors(n, n))}" if n > 1 else "--num-devices says how many there are",
        )
    sizes = tensor_parallel_sizes(architecture, max(tp, 1024))
    if tp not in sizes:
        raise _refusal(f"--tp {tp} does not divide the {architecture.heads} heads of {model.name}", _works("tp", sizes))
    if pp > architecture.layers:
        raise _refusal(
            f"--pp {pp} is more stages than the {architecture.layers} layers of {model.name}",
            f"use at most {architecture.layers}",
        )
    chunks = architecture.layers + PLACES_OF_ENDS
    if scenario.interleave > 1 and pp * scenario.interleave > chunks:
        raise _refusal(
            f"--pp {pp} x --interleave {scenario.interleave} is more chunks than the {architecture.layers} layers, "
            "the embedding and the head",
            f"use --interleave {max(1, chunks // pp)} or less",
        )
    if scenario.is_training and scenario.seq_len % cp:
        raise _refusal(
            f"--cp {cp} does not divide the sequence of {scenario.seq_len} tokens",
            _works("cp", divisors(scenario.seq_len, 64)),
        )
    _check_experts(scenario, ep)


def _check_parts(scenario: Scenario) -> None:
    if isinstance(scenario.device, Joined) and (scenario.pp != scenario.num_devices or scenario.disaggregate):
        raise _refusal(
            f"unequal devices take layers one after the other: {scenario.num_devices} stages of a pipeline",
            "leave --tp, --pp and --disaggregate out",
        )


def _works(name: str, sizes: Sequence[int]) -> str:
    return f"--{name} may be {_listed(sizes)}"


def _check_experts(scenario: Scenario, ep: int) -> None:
    if ep == 1:
        return
    experts = scenario.model.architecture.experts
    if experts is None:
        raise _refusal(f"--ep {ep}: {scenario.model.name} has no experts", "leave --ep out")
    ranks = scenario.num_devices // scenario.pp
    if ep not in (works := [size for size in divisors(experts.count, experts.count) if ranks % size == 0]):
        over = f"{ranks} devices" + (f" of each of {scenario.pp} stages" if scenario.pp > 1 else "")
        raise _refusal(f"--ep {ep} does not divide the {experts.count} experts over {over}", _works("ep", works))
    if not (scenario.is_training or scenario.engine_record.serving.shares_experts) and peers(scenario) > 1:
        text = f"--ep {ep} beyond --tp {scenario.tp}: copies of a model share no experts under {scenario.engine}"
        raise _refusal(text, "use --engine vllm, sglang or tensorrt-llm, or --ep no larger than --tp")
