"""Seconds in which the devices that share a layer or a sequence hand parts of it to each other, in a micro-step."""

from __future__ import annotations

from ..derivation import EFFICIENCY, MODEL, SETTING, Say
from ..scenario import Scenario
from .links import Links
from .work import Work, on_slowest_stage, passed


def tensor_parallel_seconds(scenario: Scenario, work: Work, links: Links, say: Say) -> float:
    """Four all-reduces a layer of the residual stream in 16 bits: `2 (tp-1)/tp` of its bytes each (Narayanan 2021), in
    two calls each: gathered, then reduced and scattered.
    """
    if scenario.tp == 1:
        return 0.0
    tp, width = say("tp", scenario.tp, "devices", SETTING), say("hidden", work.sums.hidden, "", MODEL)
    layers = say("layers", work.sums.blocks * work.stage / scenario.pp, "", MODEL)
    moved = 4 * layers * say("tokens", work.tokens, "tokens") * width * 2 * 2 * (tp - 1) / tp
    calls = CALLS_A_LAYER * layers * say("call_seconds", links.call(scenario.tp), "s", EFFICIENCY)
    return moved / say("link", links.ring(scenario.tp), "bytes/s", EFFICIENCY) + calls


CALLS_A_LAYER = 8


def context_parallel_seconds(scenario: Scenario, work: Work, links: Links, say: Say) -> float:
    """Keys and values handed round, forward once and backward, with their gradients, twice (Liu 2023, Ring Attention);
    or all of a token sent to the rank of its heads and back, where that is less (Jacobs 2023, Ulysses).

    Latents are written out before.
    """
    if scenario.cp == 1:
        return 0.0
    cp, latent = scenario.cp, scenario.model.architecture.mla is not None
    width = 0.0
    for span in work.sums.spans:
        cached = 2 * span.width if latent else span.cached
        width += span.blocks * min((cp - 1) * cached, (1 - 1 / cp) * (2 * span.width + cached))
    passes = passed(work, 2, say) + say("again", work.attention_again)
    moved = 2 * say("tokens", work.tokens, "tokens") * say("handed_on", width, "elements a token", MODEL)
    seconds = on_slowest_stage(moved / say("link", links.ring(cp, scenario.tp), "bytes/s", EFFICIENCY), work, say)
    layers = say("layers", work.sums.blocks * work.stage / scenario.pp, "", MODEL)
    calls = layers * (say("cp", cp, "devices", SETTING) - 1)
    return passes * (seconds + calls * say("call_seconds", links.call(cp, scenario.tp), "s", EFFICIENCY))
