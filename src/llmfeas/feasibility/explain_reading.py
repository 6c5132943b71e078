"""The derivation of the seconds of a prompt token that public code reads, part by part."""

from __future__ import annotations

import math

from ..record import replace
from ..scenario import Scenario
from ..timing.experts import fill_tokens, product_rate, routing_seconds
from ..timing.inference import InferenceTime
from ..timing.prefill import prompt_tokens
from ..timing.products import attention_seconds, matrix_passes
from ..timing.rates import peak_flop_per_s
from ..timing.reading import SHARP, forward_of, packed_seconds, pass_seconds
from .explain_prompt import Prefill
from .result import TermInput
from .terms import EFFICIENCY, Written, number


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
