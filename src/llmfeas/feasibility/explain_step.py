"""The derivation of the seconds of a training step: each part as the formula of `timing.step`, with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..model.sums import Sums
from ..optimizers import OPTIMIZERS, Optimizer
from ..scenario import Scenario
from ..timing.experts import fill_tokens, fullest, product_rate
from ..timing.host import memory_bytes_per_s, products_flop_per_s
from ..timing.launches import launches_of
from ..timing.links import Links
from ..timing.offload import (
    activation_seconds,
    drive_seconds_per_byte,
    offload_seconds,
    swapped_bytes,
    weight_bytes_gathered,
)
from ..timing.products import CAST_BYTES, TURN_BYTES, WRITTEN_OUT_BYTES, casts_base, matrix_passes
from ..timing.rates import TrainingRates, host_rates, peak_flop_per_s, rates_of
from ..timing.rollouts import rollout_of
from ..timing.step import device_links_of, gathered_weights, host_seconds, shard_weights, sharpness
from ..timing.work import Work, work_of
from ..workload.kernels import launched_singly, multiplies_integers
from . import explain_parts, explain_scores
from .result import Term, TermInput
from .terms import EFFICIENCY, Written, number, term

DEVICE = ("matrix", "attention", "recurrence", "streaming", "routing", "decoding", "adapters", "merging")
"""Parts that are work of the device."""
HIDING = (*DEVICE, "host", "tensor_parallel", "expert_parallel")
"""Parts behind which gathers and copies hide."""


def step_terms(scenario: Scenario, parts: Mapping[str, float]) -> Iterator[Term]:
    """Derive each part of a step."""
    written, total = _Step(scenario, parts), sum(parts.values())
    for name, seconds in parts.items():
        if seconds:
            text, formula, inputs = getattr(written, name)()
            yield term(f"time.step.{name}", text, formula, inputs, seconds, "s", seconds / total)


class _Step:
    """What the formulas of a step's parts are made of."""

    routing, adapters, merging = explain_parts.routing, explain_parts.adapters, explain_parts.merging
    expert_parallel, gradient_sync = explain_parts.expert_parallel, explain_parts.gradient_sync

    def __init__(self, scenario: Scenario, parts: Mapping[str, float]) -> None:
        efficiency = scenario.tables.efficiency
        self.scenario, self.parts = scenario, parts
        self.rates: TrainingRates = rates_of(scenario)
        self.launches_singly = host_rates(scenario).eager and launched_singly(scenario)
        self.work: Work = work_of(scenario)
        self.sums: Sums = self.work.sums
        self.links: Links = device_links_of(scenario)
        self.ranks = scenario.shards
        self.shard = shard_weights(scenario, self.sums)
        self.peak = peak_flop_per_s(scenario.device, scenario.precision)
        self.bandwidth = scenario.device.bandwidth_bytes_per_s
        self.overlap = efficiency.value("link.overlap_tuned") if host_rates(scenario).tuned else 1.0
        self.steps = number("micro_steps", scenario.micro_steps, "", "derived")
        self.tokens = number("tokens", self.work.tokens, "tokens", "derived")
        self.sharing = number("sharing", self.work.divisor, "devices", "derived")
        self.again = number("replayed", self.work.replayed, "", "derived")

    def passes(self, backward: float) -> tuple[str, tuple[TermInput, ...]]:
        """A forward pass and so many backward, of some layers alone where adapters leave the others without."""
        if self.work.graded == 1:
            return f"{1 + backward:g}", ()
        return f"1 + {backward:g} * graded", (number("graded", self.work.graded, "", "derived"),)

    def peak_term(self) -> TermInput:
        """The device's peak in the format asked for."""
        return number("peak", self.peak, "FLOP/s", "device")

    def bandwidth_term(self) -> TermInput:
        return number("bandwidth", self.bandwidth, "bytes/s", "device")

    def _seconds(self, names: tuple[str, ...]) -> float:
        """Seconds of some parts in one micro-step."""
        return sum(self.parts[name] for name in names) / self.scenario.micro_steps

    def matrix(self) -> Written:
        work, rates, sums = self.work, self.rates, self.sums
        weights = sums.dense_weights * work.stage + sums.head_weights * work.head
        passes, routed_passes = matrix_passes(work)
        inputs = [
            self.steps,
            number("passes", passes, "", "derived"),
            self.tokens,
            number("fill_tokens", rates.fill_tokens, "tokens", EFFICIENCY),
            number("weights", weights, "", "model"),
            self.peak_term(),
            number("efficiency", rates.matrix / self.peak, "", EFFICIENCY),
            self.sharing,
        ]
        text = "matrix products, forward and backward"
        dense = "(tokens + fill_tokens) * weights / (peak * efficiency)"
        if not sums.routed_active:
            return text, f"micro_steps * 2 * passes * {dense} / sharing", tuple(inputs)
        inputs += [
            number("expert_weights", sums.routed_active * work.stage, "", "model"),
            number("crowding", work.crowding, "", "derived"),
            number("met", work.met, "", "derived"),
            number("expert_passes", routed_passes, "", "derived"),
            number("expert_efficiency", product_rate(work, rates) / fullest(work, rates) / self.peak, "", EFFICIENCY),
            number("fill_expert", fill_tokens(work, rates), "tokens", EFFICIENCY),
        ]
        routed = "(met * tokens + fill_expert * crowding) * expert_weights / (peak * expert_efficiency)"
        return text, f"micro_steps * 2 * (passes * {dense} + expert_passes * {routed}) / sharing", tuple(inputs)

    def attention(self) -> Written:
        return explain_scores.attention(self)

    def recurrence(self) -> Written:
        return explain_scores.recurrence(self)

    def streaming(self) -> Written:
        work, rates = self.work, self.rates
        passes, graded = self.passes(2)
        inputs: tuple[TermInput, ...] = (
            self.steps,
            number("element_bytes", work.width, "bytes", "derived"),
            self.tokens,
            number("stream_width", work.stream_width * work.stage, "", "model"),
            self.again,
            number("logits", self.sums.logits * work.head, "a token", "model"),
            self.bandwidth_term(),
            number("efficiency", rates.stream / self.bandwidth, "", EFFICIENCY),
            self.sharing,
            *graded,
        )
        moved = f"element_bytes * tokens * (stream_width * ({passes} + replayed) + 10 * logits)"
        text, seconds = (
            "norms, residuals, activations and loss, which wait for the memory",
            f"{moved} / (bandwidth * efficiency)",
        )
        more: list[str] = []
        if work.head_bytes:
            inputs += (number("head_bytes", work.head_bytes * work.head, "bytes", "model"),)
            more.append("head_bytes")
        if work.turns:
            inputs += (
                number("turns", work.turns, "", "derived"),
                number("loop_width", self.sums.loop_width * work.stage * work.graded, "", "model"),
                number("turn_bytes", TURN_BYTES, "bytes"),
            )
            more.append("turns * tokens * loop_width * turn_bytes")
        if more:
            inputs += (number("read_efficiency", rates.memory / self.bandwidth, "", EFFICIENCY),)
            seconds = f"({seconds} + ({' + '.join(more)}) / (bandwidth * read_efficiency))"
        return text, f"micro_steps * {seconds} / sharing", inputs

    def _casting(self) -> Written:
        inputs = (
            self.steps,
            number("weights", self.sums.active * self.work.stage, "", "model"),
            number("cast_bytes", CAST_BYTES, "bytes"),
            self.again,
            self.bandwidth_term(),
            number("efficiency", self.rates.memory / self.bandwidth, "", EFFICIENCY),
            self.sharing,
        )
        formula = "micro_steps * weights * cast_bytes * (1 + replayed) / (bandwidth * efficiency) / sharing"
        return "the frozen base copied to 16 bits in each forward pass", formula, inputs

    def _writing_out(self) -> Written:
        inputs = (
            self.steps,
            number("weights", self.sums.active * self.work.stage, "", "model"),
            number("written_bytes", WRITTEN_OUT_BYTES, "bytes"),
            number("graded", self.work.graded, "", "derived"),
            self.bandwidth_term(),
            number("efficiency", self.rates.memory / self.bandwidth, "", EFFICIENCY),
            self.sharing,
        )
        formula = "micro_steps * weights * written_bytes * graded / (bandwidth * efficiency) / sharing"
        return "the base in 8 bits written out in 16 for each backward pass", formula, inputs

    def decoding(self) -> Written:
        if casts_base(self.scenario):
            return self._casting()
        if multiplies_integers(self.scenario):
            return self._writing_out()
        packed = self.scenario.quant.startswith(("gptq", "awq"))
        rate = self.rates.decode_gptq if packed else self.rates.decode
        passes, graded = self.passes(1)
        inputs = (
            self.steps,
            number("weights", self.sums.active * self.work.stage, "", "model"),
            self.again,
            self.bandwidth_term(),
            number("weights_a_byte", rate / self.bandwidth, "", EFFICIENCY),
            self.sharing,
            *graded,
        )
        formula = f"micro_steps * weights * ({passes} + replayed) / (bandwidth * weights_a_byte) / sharing"
        return "4-bit weights unpacked in each pass", formula, inputs

    def host(self) -> Written:
        scenario = self.scenario
        host = host_seconds(scenario, self.work)
        inputs = (
            self.steps,
            number("device_seconds", self._seconds(DEVICE), "s", "derived"),
            number("host_seconds", host, "s", EFFICIENCY),
            number("sharpness", sharpness(scenario, self.work), "", EFFICIENCY),
        )
        both = "(device_seconds ** sharpness + host_seconds ** sharpness) ** (1 / sharpness)"
        formula = f"micro_steps * ({both} - device_seconds)"
        many = f"{launches_of(scenario):,.0f} kernels" if self.launches_singly else "kernels"
        return f"the host launches {many}, as far as the device has to wait for that", formula, inputs

    def tensor_parallel(self) -> Written:
        scenario, work = self.scenario, self.work
        inputs = (
            self.steps,
            number("exposed", self.overlap, "", EFFICIENCY),
            number("layers", self.sums.blocks * work.stage / scenario.pp, "", "model"),
            self.tokens,
            number("hidden", self.sums.hidden, "", "model"),
            number("tp", scenario.tp, "devices", scenario.origins.get("tp", "derived")),
            number("link", self.links.ring(scenario.tp), "bytes/s", EFFICIENCY),
        )
        moved = "4 * layers * tokens * hidden * 2 * 2 * (tp - 1) / tp"
        return "four sums over the devices in each layer", f"micro_steps * exposed * {moved} / link", inputs

    def _gathered(self, weights: float) -> tuple[TermInput, ...]:
        scenario = self.scenario
        return (
            number("weights", weights, "", "model"),
            number("ranks", self.ranks, "devices", "derived"),
            number("link", self.links.ring(self.ranks, scenario.tp), "bytes/s", EFFICIENCY),
            number("exposed", self.links.exposed, "", EFFICIENCY),
        )

    def zero(self) -> Written:
        wire = weight_bytes_gathered(self.scenario)
        moved = (2 + self.work.forwards) * wire + (0.0 if self.scenario.trains_adapters else wire)
        inputs = (
            self.steps,
            *self._gathered(gathered_weights(self.scenario, self.sums)),
            number("moved", moved, "bytes a weight", "derived"),
            number("busy_seconds", self._seconds(HIDING), "s", "derived"),
        )
        gathers = "weights * (ranks - 1) / ranks * moved / link"
        formula = f"micro_steps * max(exposed * {gathers}, {gathers} - busy_seconds)"
        return "weights gathered and gradients scattered, as far as work does not hide it", formula, inputs

    def offload(self) -> Written:
        inputs = (
            self.steps,
            number("weight_seconds", offload_seconds(self.scenario, self.shard, self.links), "s", "derived"),
            number("copy_seconds", activation_seconds(self.scenario, self.links), "s", "derived"),
            number("exposed", self.links.exposed, "", EFFICIENCY),
            number("busy_seconds", self._seconds(HIDING), "s", "derived"),
        )
        copies = "max(exposed * copy_seconds, copy_seconds - busy_seconds)"
        text = "weights and activations that travel between device and main memory"
        return text, f"micro_steps * (weight_seconds + {copies})", inputs

    def bubble(self) -> Written:
        busy = self._seconds((*HIDING, "zero", "offload"))
        share = self.parts["bubble"] / (busy * self.scenario.micro_steps)
        inputs = (
            self.steps,
            number("busy_seconds", busy, "s", "derived"),
            number("stages", self.scenario.pp, "", self.scenario.origins.get("pp", "derived")),
            number("slots", (self.scenario.pp - 1) / share, "", "derived"),
        )
        formula = "micro_steps * busy_seconds * (stages - 1) / slots"
        return "waiting while the pipeline fills and empties", formula, inputs

    def rollout(self) -> Written:
        rollout, origins = rollout_of(self.scenario), self.scenario.origins
        assert rollout is not None
        inputs = [
            number("prompts", rollout.prompts, "", "derived"),
            number("prompt", rollout.prompt, "tokens", "derived"),
            number("read", rollout.read, "tokens/s", EFFICIENCY),
            number("answers", rollout.answers, "", "derived"),
            number("response_length", rollout.length, "tokens", origins.get("response_length", "derived")),
            number("written", rollout.written, "tokens/s", EFFICIENCY),
        ]
        text = f"answers that the model writes before it learns from them, {rollout.at_once} at once"
        formula = "prompts * prompt / read + answers * response_length / written"
        if rollout.longest > rollout.length:
            inputs.append(
                number("longest_response", rollout.longest, "tokens", origins.get("longest_response", "derived"))
            )
            inputs.append(number("alone", rollout.alone, "tokens/s", EFFICIENCY))
            formula += " + (longest_response - response_length) / alone"
        if rollout.waking:
            inputs.append(number("waking", rollout.waking, "s", EFFICIENCY))
            formula += " + waking"
        if rollout.renewing:
            inputs.append(number("renewing", rollout.renewing, "s", "derived"))
            formula += " + renewing"
        return text, formula, tuple(inputs)

    def _calls(self, record: Optimizer) -> tuple[list[TermInput], str]:
        """What an optimizer costs beside the bytes of its weights and its products."""
        inputs, formula = list[TermInput](), ""
        if record.vector_flop:
            inputs += [
                number("vector_flop", record.vector_flop, "FLOP a weight", "derived"),
                number("vector_peak", self.rates.vector, "FLOP/s", "device"),
            ]
            formula += " + vector_flop * weights / vector_peak"
        if record.tensor_seconds:
            inputs += [
                number("tensors", self.sums.tensors / self.scenario.pp, "", "model"),
                number("tensor_seconds", record.tensor_seconds, "s", "derived"),
            ]
            formula += " + tensor_seconds * tensors"
        return inputs, formula

    def optimizer(self) -> Written:
        scenario = self.scenario
        record = OPTIMIZERS[scenario.optimizer]
        moved = record.step_bytes / (2 if scenario.precision in ("bf16", "fp16") and not record.wide else 1)
        owned = self.shard / (self.ranks if scenario.zero >= 1 else 1)
        inputs = [number("weights", owned, "", "model"), number("moved", moved, "bytes a weight", "derived")]
        text = "weights, gradients and states read and written once a step"
        rounds = number(
            "rounds", record.flop_per_width * scenario.model.architecture.hidden, "FLOP a weight", "derived"
        )
        if scenario.states_on_host:
            inputs += [
                number("host_bandwidth", memory_bytes_per_s(scenario), "bytes/s", EFFICIENCY),
                number("link", self.links.host_bytes_per_s, "bytes/s", EFFICIENCY),
            ]
            formula = "weights * moved / host_bandwidth + 4 * weights / link"
            if scenario.drive_gb_per_s is not None:
                drive = 1 / drive_seconds_per_byte(scenario)
                inputs += [
                    number("swapped", swapped_bytes(scenario), "bytes a weight", "derived"),
                    number("drive", drive, "bytes/s", scenario.origins.get("drive", "given")),
                ]
                formula += " + swapped * weights / drive"
            if record.flop_per_width:
                inputs += [rounds, number("host_rate", products_flop_per_s(scenario), "FLOP/s", EFFICIENCY)]
                formula += " + rounds * weights / host_rate"
            return f"{text}, by the processor", formula, tuple(inputs)
        inputs += [self.bandwidth_term(), number("efficiency", self.rates.memory / self.bandwidth, "", EFFICIENCY)]
        formula = "weights * moved / (bandwidth * efficiency)"
        calls, more = self._calls(record)
        inputs, formula = [*inputs, *calls], formula + more
        if record.flop_per_width:
            inputs += [
                rounds,
                self.peak_term(),
                number("matrix_efficiency", self.rates.matrix / self.peak, "", EFFICIENCY),
            ]
            formula += " + rounds * weights / (peak * matrix_efficiency)"
        return text, formula, tuple(inputs)
