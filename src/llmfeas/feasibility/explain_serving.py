"""The derivation of inference speed: the parts of a decoding step and of a prompt token, with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..model.sums import architecture_sums
from ..scenario import Scenario
from ..timing.decode import (
    cache_bytes,
    cached_tokens,
    decode_parts,
    decode_rates,
    device_weights,
    draft_seconds,
    filled_rows,
    is_low,
    is_packed,
    latent_layers,
    looped_experts,
    sequences_in_pass,
    sequences_per_replica,
)
from ..timing.host import (
    head_bytes,
    host_expert_layers,
    host_experts_bytes,
    host_share,
    memory_bytes_per_s,
    parts_with_shares,
)
from ..timing.inference import InferenceTime, busy_peers, reader_of
from ..timing.paths import EAGER, inference_path
from ..timing.prefill import (
    prefill_parts,
    prompt_tokens,
    split_gain,
    unequal_read_parts,
    worth_stages,
)
from ..timing.spread import rank_weights_bytes
from ..workload.serving import peers, readers, writers
from .explain_prompt import EagerPrefill, Prefill, summed_blocks
from .result import ServedLoad, Term, TermInput
from .terms import EFFICIENCY, Written, number, setting, term

ROUNDING = 1e-12
"""What is a smaller share of the whole is no part of it, but what differences of floats leave."""


def serving_terms(scenario: Scenario, serving: InferenceTime) -> Iterator[Term]:
    """Derive the speed of decoding, of the prompt, and the time to the first token."""
    step, token = sum(serving.decode_parts.values()), sum(serving.prefill_parts.values())
    writes = bool(serving.decode_parts)  # encoders do not
    for kind, parts, whole, written in (
        ("decode", serving.decode_parts, step, _of_decode(scenario, serving)),
        ("prefill", serving.prefill_parts, token, _of_prefill(scenario, serving)),
    )[0 if writes else 1 :]:
        felt = {name: seconds for name, seconds in parts.items() if seconds > ROUNDING * whole}
        for name, seconds in felt.items():
            text, formula, inputs = written(name)
            yield term(f"time.{kind}.{name}", text, formula, inputs, seconds, "s", seconds / whole)
        yield term(
            f"time.{kind}_seconds",
            "one step of all sequences" if kind == "decode" else "one token of the prompt",
            " + ".join(felt),
            [number(name, seconds, "s") for name, seconds in felt.items()],
            whole,
            "s",
        )
    if writes:
        yield from _decode_speeds(scenario, serving, step)
    yield _prefill_speed(scenario, serving, token)
    if scenario.prompt:
        yield _first_token(scenario, serving, step)


def _of_decode(scenario: Scenario, serving: InferenceTime) -> Callable[[str], Written]:
    """What writes the parts of a decoding step."""
    cached, sequences = cached_tokens(scenario), sequences_in_pass(scenario)
    each = [(part, decode_parts(part, cached, sequences), share) for part, share in parts_with_shares(scenario)]
    return partial(_on_unequal, each, 1.0) if each else partial(_part, _Decode(scenario, serving))


def _of_prefill(scenario: Scenario, serving: InferenceTime) -> Callable[[str], Written]:
    """What writes the parts of a prompt token, which an encoder reads where there is one."""
    prompt, scenario = prompt_tokens(scenario), reader_of(scenario)
    waiting = prompt * sequences_per_replica(scenario)
    unequal = unequal_read_parts(scenario, waiting, prompt)
    if not unequal:
        family = inference_path(scenario.device, scenario.engine_record.serving.speed).family
        return partial(_part, (EagerPrefill if family in EAGER else Prefill)(scenario, serving))
    gain = split_gain(scenario, waiting, worth_stages(unequal))
    parts = [part for part, _ in parts_with_shares(scenario)]
    return partial(_on_unequal, [(part, *found) for part, found in zip(parts, unequal, strict=True)], gain)


def _part(written: object, name: str) -> Written:
    found: Written = getattr(written, name)()
    return found


def _on_unequal(each: list[tuple[Scenario, dict[str, float], float]], gain: float, name: str) -> Written:
    """A part of the time on unequal devices: what each would take for all layers, by its share of them."""
    inputs, terms = [number("gain", gain, "", EFFICIENCY)], []
    for index, (_, parts, share) in enumerate(each, start=1):
        inputs += [
            number(f"share_{index}", share, "of the weights"),
            number(f"seconds_{index}", parts[name], "s", "derived"),
        ]
        terms.append(f"share_{index} * seconds_{index}")
    names = ", ".join(scenario.device.name for scenario, _, _ in each)
    return f"one device after the other, each for its share ({names})", f"({' + '.join(terms)}) / gain", tuple(inputs)


def _measured(ratio: float) -> TermInput:
    """What the user's own measurements say of the computed speed; 1 where there are none."""
    return number("measured", ratio, "", "own measurements" if ratio != 1 else "default")


def _decode_speeds(scenario: Scenario, serving: InferenceTime, step: float) -> Iterator[Term]:
    sequences = sequences_per_replica(scenario)
    inputs = [
        _measured(serving.tokens_per_second_per_sequence.expected * step / scenario.tokens_a_step),
        number("replicas", writers(scenario)),
        number("sequences", sequences),
        number("made", scenario.tokens_a_step, "tokens a step"),
        number("step_seconds", step, "s"),
    ]
    text = f"all sequences together, at {cached_tokens(scenario):g} cached tokens; range of {serving.regime} runs"
    formula = "measured * replicas * sequences * made / step_seconds"
    value = serving.decode_tokens_per_second.expected
    yield term("time.decode_tokens_per_second", text, formula, inputs, value, "tokens/s")


def load_terms(load: ServedLoad) -> Iterator[Term]:
    """Derive what a server writes under its load; how many requests it finishes is found by its scheduler's steps."""
    finished, written = load.requests_per_second.expected, load.output_tokens_per_second.expected
    inputs = (number("finished", finished, "requests/s"), number("answer", written / finished, "tokens"))
    yield term(
        "load.output_tokens_per_second", "what the requests get", "finished * answer", inputs, written, "tokens/s"
    )


def _prefill_speed(scenario: Scenario, serving: InferenceTime, token: float) -> Term:
    value = serving.prefill_tokens_per_second.expected
    inputs = (
        _measured(value * token / readers(scenario)),
        number("replicas", readers(scenario)),
        number("token_seconds", token, "s"),
    )
    text = f"all prompts together; range of {serving.prefill_regime} runs"
    formula = "measured * replicas / token_seconds"
    return term("time.prefill_tokens_per_second", text, formula, inputs, value, "tokens/s")


def _first_token(scenario: Scenario, serving: InferenceTime, step: float) -> Term:
    copies = peers(scenario)
    one = sequences_per_replica(scenario) == copies == 1
    alone = serving.prefill_parts
    if not one:
        alone = prefill_parts(reader_of(scenario), prompt_tokens(scenario), 1.0, 1 / copies)
    read = serving.prefill_tokens_per_second.expected * sum(serving.prefill_parts.values()) / readers(scenario)
    inputs = [
        setting(scenario, "prompt", scenario.prompt, "tokens"),
        number("token_seconds", sum(alone.values()), "s"),
        number("measured_prompt", read),
    ]
    formula, text = "prompt * token_seconds / measured_prompt", "the prompt of one request alone"
    if step:
        measured = serving.tokens_per_second_per_sequence.expected * step / scenario.tokens_a_step
        inputs += [number("step_seconds", step, "s"), number("measured_step", measured)]
        formula, text = f"{formula} + step_seconds / measured_step", f"{text}, and one step"
    value = serving.time_to_first_token_seconds.expected
    return term("time.time_to_first_token_seconds", text, formula, inputs, value, "s")


class _Decode:
    """What the formulas of a decoding step are made of."""

    def __init__(self, scenario: Scenario, serving: InferenceTime) -> None:
        self.scenario, self.sums = scenario, architecture_sums(scenario.model.architecture)
        speed = scenario.engine_record.serving.speed
        self.rates = decode_rates(
            scenario.tables.efficiency, scenario.device, speed, scenario.precision, scenario.quant, fused=False
        )
        self.parts = serving.decode_parts
        self.sequences = sequences_in_pass(scenario)
        self.positions = self.sequences * (1 + scenario.drafted)
        self.apart = host_experts_bytes(scenario, self.positions)
        together = self.positions * busy_peers(scenario, writers)
        self.read = scenario.tp * rank_weights_bytes(scenario, self.positions, together) - self.apart
        bandwidth = scenario.device.bandwidth_bytes_per_s
        self.bandwidth = number("bandwidth", bandwidth, "bytes/s", "device")
        self.stays = number("on_device", 1 - host_share(scenario), "of the layers")
        self.tp = setting(scenario, "tp", scenario.tp, "devices")

    def draft(self) -> Written:
        seconds = draft_seconds(self.scenario, cached_tokens(self.scenario), self.sequences)
        inputs = (
            number("drafted", self.scenario.drafted, "tokens"),
            number("draft_seconds", seconds, "s", "derived"),
        )
        return "tokens drafted, which the step then checks", "drafted * draft_seconds", inputs

    def weights(self) -> Written:
        share = number("efficiency", self.rates.read / self.bandwidth.value, "", EFFICIENCY)  # type: ignore[operator]
        inputs = (number("weights", self.read, "bytes", "model"), self.stays, self.bandwidth, share, self.tp)
        return "the weights of a step, read once", "weights * on_device / (bandwidth * efficiency) / tp", inputs

    def cache(self) -> Written:
        tokens, tp = cached_tokens(self.scenario), self.scenario.tp
        cached = cache_bytes(self.scenario, self.sums, tokens, tp)
        read = self.sequences * (1 - host_share(self.scenario)) / self.parts["cache"]
        shared = (number("sequences", self.sequences), self.stays)
        flop = self.sums.decode_flop(tokens) / tp
        if flop / self.rates.attention > cached / self.rates.cache:
            rate = number("rate", flop * read, "FLOP/s", EFFICIENCY)
            text = f"all heads on the latents of {tokens:g} tokens, on each device"
            attended = number("attention_flop", flop, "FLOP a sequence", "model")
            return text, "attention_flop * sequences * on_device / rate", (attended, *shared, rate)
        efficiency = number("efficiency", cached * read / self.bandwidth.value, "", EFFICIENCY)  # type: ignore[operator]
        inputs = (number("cached", cached, "bytes a sequence", "model"), *shared, self.bandwidth, efficiency)
        text = f"keys and values of {tokens:g} tokens, read once by each device that holds them"
        return text, "cached * sequences * on_device / (bandwidth * efficiency)", inputs

    def compute(self) -> Written:
        scenario, rates, sums = self.scenario, self.rates, self.sums
        low = scenario.tables.efficiency.value("decode.unpack_low") if is_low(scenario.quant) else 1.0
        unpacks = bool(rates.unpack) and is_packed(scenario.quant)
        inputs = [
            number("read_seconds", self.parts["weights"] + self.parts["cache"], "s"),
            number("weights", device_weights(scenario, sums), "", "model"),
            number("weights_seconds", self.parts["weights"], "s"),
            number("rows", filled_rows(rates, self.positions)),
            number("rows_alone", filled_rows(rates, 1.0)),
            number("positions", self.positions),
            number("rate", rates.work, "FLOP/s", EFFICIENCY),
            self.tp,
        ]
        row = "2 * weights / rate / tp"
        work, unpack = f"min({row} * rows, positions * max(weights_seconds, {row} * rows_alone))", ""
        if unpacks:
            inputs += [
                self.stays,
                number("unpacking", low, "", EFFICIENCY),
                number("integer_rate", rates.unpack, "operations/s", EFFICIENCY),
            ]
            unpack = "2 * weights * on_device * unpacking / integer_rate / tp"
        elif rates.expand and self.positions > 1:
            inputs += [self.stays, number("written_out", rates.expand, "weights/s", EFFICIENCY)]
            unpack = "weights * on_device / written_out / tp"
        formula = f"max(read_seconds, {work}) - read_seconds"
        if unpack:
            formula = f"(max(read_seconds, {work}) ** 3 + ({unpack}) ** 3) ** (1 / 3) - read_seconds"
        return "work and unpacking that reading does not hide", formula, tuple(inputs)

    def fixed(self) -> Written:
        inputs = [
            number("seconds_a_layer", self.rates.layer_seconds, "s", EFFICIENCY),
            number("layers", self.sums.layers, "", "model"),
        ]
        layers, loop = "layers", ""
        looped, each = looped_experts(self.scenario, self.sums)
        kinds = (
            ("expert_factor", self.rates.moe_factor, "expert_layers", self.sums.moe_layers),
            ("latent_factor", self.rates.latent_factor, "latent", latent_layers(self.scenario, self.sums)),
            ("recurrent_factor", self.rates.recurrent_factor, "recurrent", self.sums.recurrent_layers),
            ("sparse_factor", self.rates.sparse_factor, "sparse", self.sums.picking_blocks),
        )
        for factor, times, which, count in kinds:
            if count and times != 1:
                inputs += [number(factor, times, "", EFFICIENCY), number(which, count, "", "model")]
                layers += f" + ({factor} - 1) * {which}"
        if looped:
            inputs += [number("experts", looped, "", "model"), number("expert_seconds", each, "s", EFFICIENCY)]
            loop = " + experts * expert_seconds"
        formula = f"seconds_a_layer * ({layers}){loop}"
        if self.rates.sequence_seconds:
            inputs += [
                number("sequences", self.sequences),
                number("seconds_a_sequence", self.rates.sequence_seconds, "s", EFFICIENCY),
            ]
            formula += " + sequences * seconds_a_sequence"
        if not self.rates.ahead:
            return "launches and small operators, whatever the size", formula, tuple(inputs)
        inputs.append(number("busy", sum(self.parts[name] for name in ("weights", "cache", "compute")), "s"))
        formula = f"(busy ** 2 + ({formula}) ** 2) ** 0.5 - busy"
        return "launches and small operators, as far as the device waits for them", formula, tuple(inputs)

    def link(self) -> Written:
        return summed_blocks(self.scenario, self.sums, self.parts["link"])

    def host_experts(self) -> Written:
        scenario, value = self.scenario, self.scenario.tables.efficiency.value
        inputs = (
            number("experts", self.apart, "bytes", "model"),
            number("host_bandwidth", memory_bytes_per_s(scenario), "bytes/s", scenario.origins["host_bandwidth"]),
            number("efficiency", value("host.experts"), "", EFFICIENCY),
            number("unpacked", value("host.unpack"), "bytes/s", EFFICIENCY),
            number("layers", host_expert_layers(scenario), "", "model"),
            number("handover", value("host.handover"), "s", EFFICIENCY),
        )
        formula = "experts / (host_bandwidth * efficiency) + experts / unpacked + layers * handover"
        return "experts that stay in main memory, which the processor computes", formula, inputs

    def host_layers(self) -> Written:
        bandwidth = self.read * host_share(self.scenario) / self.parts["host_layers"]
        inputs = (
            number("weights", self.read, "bytes", "model"),
            self.stays,
            number("host_bandwidth", bandwidth, "bytes/s", EFFICIENCY),
        )
        text = "layers that the processor computes, as fast as it reads them"
        return text, "weights * (1 - on_device) / host_bandwidth", inputs

    def offload(self) -> Written:
        layers = self.read - head_bytes(self.scenario)
        moved = layers * (1 - host_share(self.scenario)) / self.scenario.tp
        inputs = (
            number("layers", layers, "bytes", "model"),
            self.stays,
            self.tp,
            number("crossing", moved / self.parts["offload"], "bytes/s", EFFICIENCY),
        )
        return "weights that come from main memory in each step", "layers * on_device / tp / crossing", inputs
