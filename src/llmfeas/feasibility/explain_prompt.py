"""The derivation of the seconds of a prompt token, part by part."""

from __future__ import annotations

import math

from ..model.sums import Sums, architecture_sums
from ..record import replace
from ..scenario import Scenario
from ..timing.attention import attention_seconds
from ..timing.decode import sequences_per_replica
from ..timing.experts import fill_tokens, product_rate, routing_seconds
from ..timing.host import head_bytes, sent_seconds, streamed_seconds
from ..timing.inference import InferenceTime, busy_peers
from ..timing.prefill import (
    batch_tokens,
    expert_share,
    image_flop,
    image_rate,
    pass_tokens,
    prefill_rates,
    prompt_tokens,
    split_gain,
    streamed_widths,
    tensor_gain,
)
from ..timing.products import matrix_passes
from ..timing.rates import peak_flop_per_s
from ..timing.reading import SHARP, forward_of, packed_seconds, pass_seconds
from ..timing.spread import exchanges, rank_weights_bytes, summed_over_copy
from ..workload.serving import peers, readers
from .result import TermInput
from .terms import EFFICIENCY, Written, number


def summed_blocks(scenario: Scenario, sums: Sums, seconds: float) -> Written:
    """Sums over ranks, which take so many seconds, and ways to shared experts."""
    if peers(scenario) > 1:
        passes = summed_over_copy(scenario, sums) * (scenario.tp > 1) + exchanges(scenario, sums)
        inputs = number("passes", passes, "", "model"), number("seconds_each", seconds / passes, "s", EFFICIENCY)
        return "tokens on their way to experts that copies share, and back", "passes * seconds_each", inputs
    inputs = (
        number("blocks", sums.blocks, "", "model"),
        number("seconds_a_sum", seconds / (2 * sums.blocks), "s", EFFICIENCY),
    )
    return "two sums over the devices in each block", "2 * blocks * seconds_a_sum", inputs


class Prefill:
    """What the formulas of a prompt token are made of."""

    def __init__(self, scenario: Scenario, serving: InferenceTime) -> None:
        self.scenario, self.sums = scenario, architecture_sums(scenario.model.architecture)
        speed = scenario.engine_record.serving.speed
        self.rates = prefill_rates(
            scenario.tables.efficiency, scenario.device, speed, scenario.precision, scenario.quant, fused=False
        )
        self.parts = serving.prefill_parts
        self.waiting = prompt_tokens(scenario) * sequences_per_replica(scenario)
        self.launched = scenario.engine_record.serving.memory.cache == "paged"
        self.batch = batch_tokens(scenario, self.waiting)
        gain = split_gain(scenario, self.waiting)
        self.gain = number("gain", gain, "", EFFICIENCY)
        self.work = (self.parts["matrix"] + self.parts["attention"]) * gain
        self.busy = busy_peers(scenario, readers) / peers(scenario)
        self.together = self.batch * peers(scenario) * self.busy
        read = scenario.tp * rank_weights_bytes(scenario, self.batch, self.together)
        self.read = read - head_bytes(scenario)
        self.peak = peak_flop_per_s(scenario.device, "fp8-mixed" if scenario.quant == "fp8" else scenario.precision)

    def _rate(self, rate: float) -> tuple[TermInput, ...]:
        return number("peak", self.peak, "FLOP/s", "device"), number("efficiency", rate / self.peak, "", EFFICIENCY)

    def matrix(self) -> Written:
        """Products."""
        weights = number("weights", self.sums.dense_weights, "", "model")
        rate = (*self._rate(self.rates.matrix), self.gain)
        if not self.sums.routed_active:
            return "matrix products of a token", "2 * weights / (peak * efficiency) / gain", (weights, *rate)
        reached = expert_share(self.scenario, self.rates, self.together) / self.busy
        share = number("expert_share", reached, "", EFFICIENCY)
        inputs = (weights, number("expert_weights", self.sums.routed_active, "", "model"), share, *rate)
        formula = "2 * (weights + expert_weights / expert_share) / (peak * efficiency) / gain"
        return "matrix products of a token", formula, inputs

    def attention(self) -> Written:
        """Scores and values."""
        flop = self.sums.prompt_flop(prompt_tokens(self.scenario))
        inputs = (
            number("attention_flop", flop, "FLOP a token", "model"),
            *self._rate(flop / self.parts["attention"] / float(str(self.gain.value))),
            self.gain,
        )
        return "scores and values over the prompt", "attention_flop / (peak * efficiency) / gain", inputs

    def images(self) -> Written:
        """The encoder, spread over the prompt."""
        seen = number("images", self.scenario.images, ""), number("prompt", prompt_tokens(self.scenario), "tokens")
        flop = number("image_flop", image_flop(self.scenario), "FLOP", "model")
        inputs = (*seen, flop, *self._rate(image_rate(self.scenario)))
        return "the encoder that reads the images", "images * image_flop / (peak * efficiency) / prompt", inputs

    def weights(self) -> Written:
        """Reading the weights."""
        inputs = (
            number("work_seconds", self.work, "s"),
            number("weights", self.read, "bytes", "model"),
            number("rate", self.rates.read, "bytes/s", EFFICIENCY),
            number("batch", self.batch, "tokens"),
            self.gain,
        )
        formula = "((work_seconds ** 2 + (weights / rate / batch) ** 2) ** 0.5 - work_seconds) / gain"
        return "weights read once a batch, as far as work does not hide it", formula, inputs

    def offload(self) -> Written:
        """Weights from the host."""
        one_pass = pass_tokens(self.scenario, self.waiting)
        inputs = (
            number("sent_seconds", sent_seconds(self.scenario, self.read, self.batch), "s"),
            number("batch", self.batch, "tokens"),
            number("crossing_seconds", streamed_seconds(self.scenario, one_pass), "s"),
            number("pass_tokens", one_pass, "tokens"),
        )
        return "weights that come from main memory", "sent_seconds / batch + crossing_seconds / pass_tokens", inputs

    def streaming(self) -> Written:
        """Pointwise work."""
        shared, held = streamed_widths(self.scenario, self.busy)
        rate = number("rate", self.rates.stream, "elements/s", EFFICIENCY)
        inputs = (number("stream_width", shared, "", "model"), rate, self.gain)
        if not held:
            return "norms, residuals and activations of a token", "stream_width / rate / gain", inputs
        whole = number("held_width", held, "", "model"), number("ranks", tensor_gain(self.scenario), "", EFFICIENCY)
        text = "norms, residuals, activations and what goes to experts, of a token, in part whole on each rank"
        return text, "(stream_width + held_width * ranks) / rate / gain", (*inputs, *whole)

    def link(self) -> Written:
        """Sums over ranks."""
        return summed_blocks(self.scenario, self.sums, self.parts["link"])

    def fixed(self) -> Written:
        """Launches."""
        if self.launched:
            return self._launched()
        each = self.parts["fixed"] * self.batch / self.sums.layers
        inputs = (
            number("seconds_a_layer", each, "s", EFFICIENCY),
            number("layers", self.sums.layers, "", "model"),
            number("batch", self.batch, "tokens"),
        )
        return "launches and small operators, once a batch", "seconds_a_layer * layers / batch", inputs

    def _launched(self) -> Written:
        others = sum(seconds for name, seconds in self.parts.items() if name not in ("fixed", "images"))
        inputs = (
            number("launch_seconds", (self.parts["fixed"] + others) * self.batch, "s", EFFICIENCY),
            number("batch", self.batch, "tokens"),
            number("work_seconds", others, "s"),
        )
        text = "starting a pass over prompts, as far as the device has to wait for it"
        return text, "max(0, launch_seconds / batch - work_seconds)", inputs


class EagerPrefill(Prefill):
    """What the formulas are made of where a pass is the forward half of the step that trains."""

    def __init__(self, scenario: Scenario, serving: InferenceTime) -> None:
        super().__init__(scenario, serving)
        self.forward = forward_of(scenario, math.ceil(prompt_tokens(scenario)))
        self.pass_work = replace(self.forward.work, tokens=self.waiting)
        self.tokens = number("tokens", self.waiting, "tokens")
        self.device_peak = number("peak", peak_flop_per_s(scenario.device, scenario.precision), "FLOP/s", "device")

    def _efficiency(self, name: str, rate: float) -> TermInput:
        return number(name, rate / float(str(self.device_peak.value)), "", EFFICIENCY)

    def matrix(self) -> Written:
        """Products, of weights that are unpacked before."""
        work, rates = self.pass_work, self.forward.rates
        inputs = [
            self.tokens,
            number("fill_tokens", rates.fill_tokens, "tokens", EFFICIENCY),
            number("weights", work.sums.dense_weights, "", "model"),
            self.device_peak,
            self._efficiency("efficiency", rates.matrix),
            self.gain,
        ]
        formula = "2 * (tokens + fill_tokens) * weights / (peak * efficiency)"
        if work.sums.routed_active:
            inputs += [
                number("expert_weights", work.sums.routed_active * matrix_passes(work)[1], "", "model"),
                number("expert_tokens", work.met * self.waiting + fill_tokens(work, rates) * work.crowding, "tokens"),
                self._efficiency("expert_efficiency", product_rate(work, rates)),
            ]
            formula += " + 2 * expert_tokens * expert_weights / (peak * expert_efficiency)"
        unpacking = packed_seconds(self.scenario, work, rates)
        if unpacking:
            inputs.append(number("unpacking_seconds", unpacking, "s", EFFICIENCY))
            formula += " + unpacking_seconds"
        return "matrix products of a pass", f"({formula}) / tokens / gain", tuple(inputs)

    def attention(self) -> Written:
        """Scores and values."""
        fused = self.scenario.attention == "flash"
        seconds = number("attention_seconds", attention_seconds(self.pass_work, self.forward.rates, fused=fused), "s")
        text = "scores and values of a pass, " + ("in a fused kernel" if fused else "operator by operator")
        return text, "attention_seconds / tokens / gain", (seconds, self.tokens, self.gain)

    def streaming(self) -> Written:
        """What lies between the products."""
        work, rates = self.pass_work, self.forward.rates
        written = self.forward.written_bytes(self.waiting)
        inputs = [
            number("written_bytes", written, "bytes", "derived"),
            number("moves", self.scenario.tables.efficiency.value("prefill.eager_moves"), "", EFFICIENCY),
            number("rate", rates.memory, "bytes/s", EFFICIENCY),
            self.tokens,
            self.gain,
        ]
        formula = "moves * written_bytes / rate"
        if routing := routing_seconds(work, rates):
            inputs.append(number("routing_seconds", routing, "s", EFFICIENCY))
            formula += " + routing_seconds"
        return "what is written between the products, and read", f"({formula}) / tokens / gain", tuple(inputs)

    def fixed(self) -> Written:
        """Launches, and what a batch takes beside its pass."""
        parts = pass_seconds(self.scenario, self.waiting, prompt_tokens(self.scenario))
        device = sum(seconds for name, seconds in parts.items() if name != "fixed")
        host = self.forward.host_seconds
        beside = parts["fixed"] - ((device**SHARP + host**SHARP) ** (1 / SHARP) - device)
        inputs = (
            number("device_seconds", device, "s"),
            number("kernels", self.forward.moments.forward, "", "derived"),
            number("launch_seconds", host / self.forward.moments.forward, "s", EFFICIENCY),
            number("beside_seconds", beside, "s", EFFICIENCY),
            self.tokens,
            self.gain,
        )
        waits = f"(device_seconds ** {SHARP} + (kernels * launch_seconds) ** {SHARP}) ** (1 / {SHARP}) - device_seconds"
        text = "launches, as far as the device waits for them, and what a batch takes beside its pass"
        return text, f"({waits} + beside_seconds) / tokens / gain", inputs
