"""The derivation of what a training step spends on experts and on adapters beside products."""

from __future__ import annotations

from typing import Protocol

from ..model.sums import Sums
from ..scenario import Scenario
from ..timing.adapters import GRADIENT_BYTES, NORM_BYTES, input_bytes, output_bytes
from ..timing.experts import (
    copies_across,
    copy_bytes,
    exchanges,
    expert_nodes,
    fullest,
    picking_flop,
    routing_widths,
)
from ..timing.links import Links
from ..timing.rates import TrainingRates
from ..timing.step import gradient_rings
from ..timing.work import Work
from .result import TermInput
from .terms import EFFICIENCY, Written, number


class DerivedStep(Protocol):
    """What is known of a step whose parts are derived."""

    scenario: Scenario
    rates: TrainingRates
    work: Work
    sums: Sums
    links: Links
    peak: float
    bandwidth: float
    overlap: float
    ranks: int
    steps: TermInput
    tokens: TermInput
    sharing: TermInput
    again: TermInput

    def passes(self, backward: float) -> tuple[str, tuple[TermInput, ...]]:
        """A forward pass and so many backward, and what is named in them."""

    def peak_term(self) -> TermInput:
        """The device's peak in the format asked for."""

    def bandwidth_term(self) -> TermInput:
        """The device's bandwidth."""


def routing(step: DerivedStep) -> Written:
    """What the copies of tokens for their experts cost beside products."""
    work, rates = step.work, step.rates
    passes, graded = step.passes(2)
    copies = work.met * step.sums.experts_per_token * step.sums.moe_layers * work.stage
    inputs: tuple[TermInput, ...] = (
        step.steps,
        step.tokens,
        number("copies", copies, "a token", "model"),
        number("width", routing_widths(work, rates), "elements", EFFICIENCY),
        number("unevenness", fullest(work, rates), "", EFFICIENCY),
        step.again,
        step.bandwidth_term(),
        number("efficiency", rates.memory / step.bandwidth, "", EFFICIENCY),
        step.sharing,
        *graded,
    )
    seconds = f"{copy_bytes(work):g} * width / (bandwidth * efficiency)"
    if work.plain_routing:
        inputs += (
            number("picking_flop", picking_flop(work), "FLOP a copy", "derived"),
            number("vector_peak", rates.vector, "FLOP/s", "device"),
        )
        seconds = f"({seconds} + picking_flop / vector_peak)"
    text = "tokens sorted by their experts and back, a copy for each"
    each = f"copies * unevenness * ({passes} + replayed) * {seconds}"
    if work.added_biases:
        inputs += (
            number("added", work.added_biases * work.stage, "elements a token", "model"),
            number("adding", rates.experts.added_seconds, "s", EFFICIENCY),
        )
        each = f"({each} + added * adding)"
    formula = f"micro_steps * tokens * {each} / sharing"
    return text, formula, inputs


def expert_parallel(step: DerivedStep) -> Written:
    """What sending them to other devices costs."""
    scenario, links, sums = step.scenario, step.links, step.sums
    nodes = expert_nodes(scenario, links)
    inputs = (
        step.steps,
        number("exposed", step.overlap, "", EFFICIENCY),
        number("exchanges", exchanges(step.work), "a layer", "derived"),
        number("layers", sums.moe_layers * step.work.stage / scenario.pp, "", "model"),
        number("tp", scenario.tp, "devices", scenario.origins.get("tp", "derived")),
        step.tokens,
        number("width", sums.expert_reads, "", "model"),
        number("experts_a_token", sums.experts_per_token, "", "model"),
        number("ep", scenario.ep, "devices", scenario.origins.get("ep", "derived")),
        number("link", links.node_bytes_per_s, "bytes/s", EFFICIENCY),
        number("copies_across", copies_across(scenario, nodes, sums.experts_per_token), "a token", "derived"),
        number("network", links.network_bytes_per_s, "bytes/s", EFFICIENCY),
    )
    inside = "experts_a_token * (ep - 1) / ep / link"
    across = "copies_across / network"
    formula = f"micro_steps * exposed * exchanges * layers * tokens / tp * width * 2 * max({inside}, {across})"
    return "tokens sent to the devices of their experts and back", formula, inputs


def gradient_sync(step: DerivedStep) -> Written:
    """What it takes to add gradients up, those of experts between fewer devices."""
    (rest, ranks, stride), (experts, alike, apart) = gradient_rings(step.scenario, step.sums, step.ranks)
    ring = step.links.ring
    inputs = [
        number("exposed", step.links.exposed, "", EFFICIENCY),
        number("weights", rest, "", "model"),
        number("ranks", ranks, "devices", "derived"),
        number("link", ring(ranks, stride), "bytes/s", EFFICIENCY),
    ]
    text, moved = "gradients added up over the devices once a step", "weights * (ranks - 1) / ranks / link"
    if experts and alike > 1:
        inputs += [
            number("expert_weights", experts, "", "model"),
            number("alike", alike, "devices", "derived"),
            number("expert_link", ring(alike, apart), "bytes/s", EFFICIENCY),
        ]
        moved = f"({moved} + expert_weights * (alike - 1) / alike / expert_link)"
    return text, f"exposed * 4 * {moved}", tuple(inputs)


def adapters(step: DerivedStep) -> Written:
    """What public code copies, scales and adds."""
    work = step.work
    inputs = (
        step.steps,
        step.tokens,
        number("inputs", work.adapters.inputs * work.stage, "", "model"),
        number("input_bytes", input_bytes(work), "bytes"),
        number("outputs", work.adapters.outputs * work.stage, "", "model"),
        number("output_bytes", output_bytes(work), "bytes"),
        step.bandwidth_term(),
        number("efficiency", step.rates.memory / step.bandwidth, "", EFFICIENCY),
        step.sharing,
    )
    moved = "tokens * (inputs * input_bytes + outputs * output_bytes)"
    text = "what adapters read, scale and add beside their base, forward and backward"
    return text, f"micro_steps * {moved} / (bandwidth * efficiency) / sharing", inputs


def merging(step: DerivedStep) -> Written:
    """What merging adapters into stacks and taking norms of weights cost."""
    work, rates = step.work, step.rates
    inputs = [
        step.steps,
        step.again,
        step.bandwidth_term(),
        number("efficiency", rates.memory / step.bandwidth, "", EFFICIENCY),
        step.sharing,
    ]
    moved: list[str] = []
    if work.merged:
        inputs += [
            number("merged_weights", work.merged * work.stage, "", "model"),
            number("merged_bytes", rates.experts.merged_bytes, "bytes", EFFICIENCY),
            number("gradient_bytes", GRADIENT_BYTES, "bytes"),
        ]
        moved.append("merged_weights * (merged_bytes * (1 + replayed) + gradient_bytes)")
    if work.normed:
        inputs += [
            number("normed_weights", work.normed * work.stage, "", "model"),
            number("norm_bytes", NORM_BYTES, "bytes"),
        ]
        moved.append("normed_weights * norm_bytes * (1 + replayed)")
    formula = f"micro_steps * ({' + '.join(moved)}) / (bandwidth * efficiency) / sharing"
    done = [("adapters merged into the stacked experts", work.merged), ("norms of weights taken", work.normed)]
    return " and ".join(text for text, there in done if there) + " in each pass", formula, tuple(inputs)
