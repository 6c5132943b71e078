"""Tokens and time of training, each from the other: both are proportional, so the inversion is a division."""

from __future__ import annotations

from collections.abc import Callable

from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.core import estimate
from ...feasibility.result import Estimate
from ...feasibility.verdict import why
from ...record import replace
from ...settle import resolution
from ...timing.training import training_time
from .answer import Answer, Request, without
from .ways import ways_of

REFERENCE_TOKENS = 1e9


def _training_only(question: str, request: Request) -> None:
    if request.get("task") == "inference":
        raise UsageError("contradiction", f"solve {question} is about training", "Choose a training task.")


def tokens(request: Request, catalog: Catalog) -> Answer:
    """How many tokens can be trained on until `deadline` or for `budget`, whichever ends first.

    Raises:
        UsageError: without deadline and budget, without a price for a budget, or for inference.
    """
    _training_only("tokens", request)
    request = without(request, "examples", "example_tokens", "epochs", "data_size", "bytes_per_token")
    if request.get("deadline") is None and request.get("budget") is None:
        raise UsageError("missing-option", "solve tokens needs --deadline or --budget", "For example --deadline 30d.")
    return _with_ways(request, _tokens(request, catalog), catalog, _tokens, "tokens")


def _tokens(request: Request, catalog: Catalog) -> Answer:
    limited = resolution({**request, "tokens": REFERENCE_TOKENS}, catalog).scenario
    probe = estimate(resolution({**without(request, "deadline", "budget"), "tokens": REFERENCE_TOKENS}, catalog))
    seconds = training_time(probe.scenario).total_seconds.expected
    limits = {}
    if limited.deadline_seconds is not None:
        limits["deadline"] = REFERENCE_TOKENS * limited.deadline_seconds / seconds
    if limited.budget_usd is not None:
        limits["budget"] = REFERENCE_TOKENS * limited.budget_usd / _price_of(probe)
    binds, count = min(limits.items(), key=lambda item: item[1])
    at = estimate(resolution({**request, "tokens": count * (1 - 1e-12)}, catalog))
    window = count / REFERENCE_TOKENS * seconds
    answer: dict[str, object] = {
        "tokens": count,
        "tokens_by_rule_of_thumb": _tokens_by_rule(at, window),
        "model_flop": at.flops.model,
        "hardware_flop": at.flops.hardware,
        "seconds": window,
        "memory": at.memory.verdict,
        "binds": binds,
    }
    more = {"tokens": count * 1.001, "status": "infeasible", "because": f"over the {binds}"}
    return Answer("tokens", answer, at, more)


def _with_ways(
    request: Request, found: Answer, catalog: Catalog, solver: Callable[[Request, Catalog], Answer], figure: str
) -> Answer:
    """An answer of a job that does not fit, with the first ways of a plan and what the answer is under each of them."""
    if found.at is None or found.at.memory.verdict != "exceeds":
        return found
    endless = without(request, "deadline", "budget")
    if figure == "tokens":
        endless["tokens"] = found.answer["tokens"]
    ways = tuple(ways_of(request, endless, catalog, solver, figure))
    return replace(found, notes=(why(found.at.verdict),), ways=ways)


def _price_of(probe: Estimate) -> float:
    if probe.cost.usd is None or probe.cost.usd.expected <= 0:
        device = probe.scenario.device.name
        raise UsageError("no-price", f"no price is known for {device}", "Give one with --price or --electricity.")
    return probe.cost.usd.expected


def _tokens_by_rule(at: Estimate, seconds: float) -> float:
    """The tokens that 6 N D gives for the FLOP of this time at the same MFU."""
    flop = (
        at.flops.model / (at.scenario.tokens or 1.0) * training_time(at.scenario).tokens_per_second.expected * seconds
    )
    return flop / (6 * at.parameters.active)


def deadline(request: Request, catalog: Catalog) -> Answer:
    """How long the tokens of the request take, expected and at both ends of the range.

    Raises:
        UsageError: for inference.
    """
    _training_only("deadline", request)
    return _with_ways(request, _deadline(request, catalog), catalog, _deadline, "seconds")


def _deadline(request: Request, catalog: Catalog) -> Answer:
    at = estimate(resolution(without(request, "deadline"), catalog))
    seconds = training_time(at.scenario).total_seconds
    answer = {"seconds": seconds.expected, "low": seconds.low, "high": seconds.high, "tokens": at.scenario.tokens}
    return Answer("deadline", answer, at)
