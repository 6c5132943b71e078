"""The derivation of an estimate: for each figure the formula, what went in and where that came from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ..contract import ABSENT
from ..model.sums import architecture_sums
from ..scenario import Scenario
from ..timing.floor import counted_flop_per_token, least_step_seconds
from ..timing.inference import InferenceTime
from ..timing.rates import peak_flop_per_s
from ..timing.step import noted_parts
from ..timing.training import TrainingTime, loading_seconds, run_interval, step_tokens
from ..timing.work import forwards_beside
from ..units import GB
from ..workload.flops import Flops
from ..workload.parameters import block_parameters
from .cost import kwh_a_second, usd_of
from .explain_memory import memory_terms
from .explain_serving import load_terms, serving_terms
from .long_run import LongRun
from .result import Estimate, Term, TermInput
from .terms import Texts, noted, number, part_terms, setting, term, written


def explanation(estimate: Estimate) -> tuple[Term, ...]:
    """Derive every figure of an estimate."""
    time, run = estimate.time, estimate.long_run
    return (
        *_parameter_terms(estimate),
        *_flop_terms(estimate),
        *memory_terms(estimate),
        *(
            serving_terms(estimate.scenario, time)
            if isinstance(time, InferenceTime)
            else _training_terms(estimate, time)
        ),
        *(load_terms(estimate.load) if estimate.load is not ABSENT else ()),
        *(() if run is ABSENT else long_run_terms(estimate.scenario, run)),
        *_cost_terms(estimate),
    )


def _parameter_terms(estimate: Estimate) -> Iterator[Term]:
    counts, kinds = estimate.parameters, block_parameters(estimate.scenario.model.architecture)
    layers = sum(kind.repeat * kind.total for kind in kinds)
    inputs = []
    for index, kind in enumerate(kinds, start=1):
        suffix = f"_{index}" if len(kinds) > 1 else ""
        inputs += [
            number(f"layers{suffix}", kind.repeat, "", "model"),
            number(f"layer{suffix}", kind.total, "", "model"),
        ]
    inputs.append(number("outside", counts.total - layers, "", "model"))
    pairs = [f"{count.name} * {each.name}" for count, each in zip(inputs[0:-1:2], inputs[1::2], strict=False)]
    text = "all weights: those of the layers, and embeddings, last norm and head outside of them"
    yield term("parameters.total", text, " + ".join([*pairs, "outside"]), inputs, counts.total, "parameters")
    idle = number("idle", counts.total - counts.active, "", "model")
    yield term(
        "parameters.active",
        "what one token uses: without experts that it is not sent to and tables that are looked up",
        "total - idle",
        (number("total", counts.total, "", "model"), idle),
        counts.active,
        "parameters",
    )


def _flop_terms(estimate: Estimate) -> Iterator[Term]:
    scenario, flops = estimate.scenario, estimate.flops
    sums = architecture_sums(scenario.model.architecture)
    weights = sums.active + sums.head_weights
    active = number("active", estimate.parameters.active, "", "model")
    forward = flops.forward_per_token
    if not scenario.is_training:
        context = setting(scenario, "context", scenario.context, "tokens")
        count = setting(scenario, "concurrency", scenario.concurrency)
        each = flops.rule_of_thumb / (2 * estimate.parameters.active * scenario.concurrency)
        tokens = context if each == scenario.context else number("context", each, "tokens")
        rule = "2 * active * context * concurrency"
        yield term("flops.rule_of_thumb", "2 N D", rule, (active, tokens, count), flops.rule_of_thumb, "FLOP")
        request = number("request", flops.model / scenario.concurrency, "FLOP", "model")
        text = "prompt and answer of each request, one token after the other"
        yield term("flops.model", text, "request * concurrency", (request, count), flops.model, "FLOP")
        return
    tokens = setting(scenario, "tokens", scenario.tokens, "tokens")
    rule = "6 * active * tokens"
    learned = scenario.pass_tokens - scenario.seq_len
    if learned:  # before each sequence
        rule = "6 * active * tokens * (seq_len + virtual_tokens) / seq_len"
        length = setting(scenario, "seq_len", scenario.seq_len, "tokens")
        lengths = (length, setting(scenario, "virtual_tokens", learned, "tokens"))
    rule_of_thumb = (active, tokens, *(lengths if learned else ()))
    yield term("flops.rule_of_thumb", "6 N D (Kaplan 2020)", rule, rule_of_thumb, flops.rule_of_thumb, "FLOP")
    attention = number("attention", forward - 2 * weights, "FLOP a token", "model")
    matrices = number("weights", weights, "", "model")
    text = "matrix products, and attention over the full square"
    yield term("flops.forward_per_token", text, "2 * weights + attention", (matrices, attention), forward, "FLOP")
    yield _asked(scenario, flops, tokens)
    again = number("again", flops.hardware - flops.model, "FLOP", "derived")
    text = "what runs: scores that the fused kernel makes twice, blocks that checkpointing runs again"
    once = number("model", flops.model, "FLOP", "derived")
    yield term("flops.hardware", text, "model + again", (once, again), flops.hardware, "FLOP")


def _asked(scenario: Scenario, flops: Flops, tokens: TermInput) -> Term:
    """Derive the FLOPs that the model asks for."""
    forward, total = flops.forward_per_token or 0.0, scenario.tokens or 1.0
    beside, model = forwards_beside(scenario), flops.model or 0.0
    inputs = [
        tokens,
        number("forward", forward, "FLOP a token", "model"),
        number("backward", model / total - (1 + beside) * forward, "FLOP a token", "model"),
    ]
    text = "what the model asks for; adapters need no gradients of the weights below them"
    formula = "forward + backward"
    if beside:
        inputs.append(number("beside", beside, "", "derived"))
        formula = "forward * (1 + beside) + backward"
        text += "; passes without a gradient, of the model or of the one that it was"
    return term("flops.model", text, f"tokens * ({formula})", inputs, model, "FLOP")


def _training_terms(estimate: Estimate, training: TrainingTime) -> Iterator[Term]:
    scenario = estimate.scenario
    step, tokens = training.step_seconds.expected, number("step_tokens", step_tokens(scenario), "tokens")
    peak = number("peak", peak_flop_per_s(scenario.device.unlimited, scenario.precision), "FLOP/s", "device")
    devices = setting(scenario, "num_devices", scenario.num_devices, "devices")
    flop = number("flop_a_token", counted_flop_per_token(scenario), "FLOP", "model")
    if scenario.mfu is None:
        yield from step_terms(scenario, training.parts)
        names = [name for name, seconds in training.parts.items() if seconds]
        origin = "own measurements" if training.own_rows else "default"
        inputs = [number(name, training.parts[name], "s") for name in names]
        inputs.append(number("measured", run_interval(scenario, training.parts).factor, "", origin))
        formula = f"({' + '.join(names)}) / measured"
        if (least := least_step_seconds(scenario, step_tokens(scenario))) >= step:
            inputs.append(number("least", least, "s", "device"))
            formula = f"max({formula}, least)"
        text = f"one optimizer step; range of {training.regime} runs that were left out of the fit"
    else:
        formula = "step_tokens * flop_a_token / (num_devices * peak * mfu)"
        inputs = [tokens, flop, devices, peak, setting(scenario, "mfu", scenario.mfu)]
        text = "one optimizer step at the share given"
    if (loading := loading_seconds(scenario, step_tokens(scenario))) >= step:
        inputs.append(number("loading", loading, "s", "given"))
        formula = f"max({formula}, loading)"
    yield term("time.step_seconds", text, formula, inputs, step, "s")
    seconds = number("step_seconds", step, "s")
    speed = training.tokens_per_second.expected
    yield term("time.tokens_per_second", "", "step_tokens / step_seconds", (tokens, seconds), speed, "tokens/s")
    rate = number("tokens_per_second", speed, "tokens/s")
    seen = "the tokens that each one sees" if scenario.mfu is None else "the full square, as papers do"
    text = f"share of the peak that the work of the model reaches; attention counts {seen}"
    formula = "tokens_per_second * flop_a_token / (num_devices * peak)"
    yield term("time.mfu", text, formula, (rate, flop, devices, peak), training.mfu.expected, "fraction")
    whole = setting(scenario, "tokens", scenario.tokens, "tokens")
    value = training.total_seconds.expected
    yield term("time.total_seconds", "", "tokens / tokens_per_second", (whole, rate), value, "s")


def _cost_terms(estimate: Estimate) -> Iterator[Term]:
    scenario, cost = estimate.scenario, estimate.cost
    total, notes = estimate.total_seconds, noted(estimate.scenario)
    if total is None:
        return
    energy = None if cost.energy_kwh is None else cost.energy_kwh.expected
    if energy is not None:
        say, part = notes("energy"), kwh_a_second(scenario)
        drawn = say("drawn", energy / (total.expected * part), "", "data/power.yaml")
        made = say("seconds", total.expected, "s") * drawn * kwh_a_second(scenario, say)
        formula, inputs = written(notes, "energy", made)
        yield term("cost.energy_kwh", "the power that the devices draw", formula, inputs, energy, "kWh")
    paid = usd_of(scenario, total.expected, energy, notes("usd"))
    if cost.usd is not None and paid is not None:
        formula, inputs = written(notes, "usd", paid)
        yield term("cost.usd", "rent and electricity", formula, inputs, cost.usd.expected, "USD")


def long_run_terms(scenario: Scenario, run: LongRun) -> Iterator[Term]:
    """Derive what checkpoints and failures leave of a training's time."""
    writing = number("writing", run.checkpoint_seconds, "s")
    failure = number("failure", run.failure_seconds, "s")
    interval = number("interval", run.interval_seconds, "s")
    size = number("checkpoint", run.checkpoint_bytes, "bytes", "model")
    bandwidth = (run.checkpoint_bytes / run.checkpoint_seconds if run.checkpoint_seconds else GB) / GB
    storage = setting(scenario, "storage", bandwidth, "GB/s")
    text = "trained weights, masters and states, which the training waits for"
    formula = "checkpoint / (storage * 1000000000)"
    yield term("long_run.checkpoint_seconds", text, formula, (size, storage), run.checkpoint_seconds, "s")
    mtbf = setting(scenario, "mtbf", scenario.device_mtbf_seconds, "s")
    devices = number("devices", scenario.paid_devices, "devices")
    text = "mean time between failures of the job: any device stops it"
    yield term("long_run.failure_seconds", text, "mtbf / devices", (mtbf, devices), run.failure_seconds, "s")
    if run.checkpoint_seconds < 2 * run.failure_seconds:
        text = "the best time of work between two checkpoints (Young 1974, Daly 2006)"
        half = "writing / (2 * failure)"
        formula = f"(2 * writing * failure) ** 0.5 * (1 + ({half}) ** 0.5 / 3 + {half} / 9) - writing"
        yield term("long_run.interval_seconds", text, formula, (writing, failure), run.interval_seconds, "s")
    if not run.useful_share:
        return
    restart, e = number("restart", run.restart_seconds, "s"), number("e", math.e, "", "mathematics")
    text = "share of the time that is work which is not lost (Daly 2006)"
    formula = "interval / (failure * e ** (restart / failure) * (e ** ((interval + writing) / failure) - 1))"
    inputs = (interval, failure, e, restart, writing)
    yield term("long_run.useful_share", text, formula, inputs, run.useful_share, "fraction")
    total, share = run.total_seconds, number("useful_share", run.useful_share, "fraction")
    if total is None:
        return
    work = number("work", run.work_seconds.expected, "s")
    text = "from beginning to end, with checkpoints and failures"
    yield term("long_run.total_seconds", text, "work / useful_share", (work, share), total.expected, "s")
    whole = number("total", total.expected, "s")
    text = "failures that are to be expected"
    yield term("long_run.failures", text, "total / failure", (whole, failure), total.expected / run.failure_seconds, "")


TEXTS: Texts = {
    "matrix": "matrix products, forward and backward",
    "attention": {
        "wide_flop": "scores and values, of heads too wide for flash kernels in PyTorch's memory-efficient one",
        "flash_flop": "scores and values of the causal half, in a fused kernel",
        "": "scores and values over the full square, written out",
    },
    "recurrence": "recurrences, a chunk of the sequence after the other",
    "streaming": "norms, residuals, activations and loss, which wait for the memory",
    "routing": "tokens sorted by their experts and back, a copy for each",
    "decoding": {
        "cast_bytes": "the frozen base copied to 16 bits in each forward pass",
        "written_bytes": "the base in 8 bits written out in 16 for each backward pass",
        "": "4-bit weights unpacked in each pass",
    },
    "adapters": "what adapters read, scale and add beside their base, forward and backward",
    "merging": {
        "merged_weights": "adapters merged into the stacked experts in each pass",
        "": "norms of weights taken in each pass",
    },
    "host": "the host launches kernels, as far as the device has to wait for that",
    "tensor_parallel": "four sums over the devices in each layer",
    "context_parallel": "keys and values handed round to the devices that share a sequence",
    "expert_parallel": "tokens sent to the devices of their experts and back",
    "zero": "weights gathered and gradients scattered, as far as work does not hide it",
    "offload": "weights and activations that travel between device and main memory",
    "bubble": "waiting while the pipeline fills and empties",
    "gradient_sync": "gradients added up over the devices once a step",
    "optimizer": {
        "host_bandwidth": "weights, gradients and states read and written once a step, by the processor",
        "": "weights, gradients and states read and written once a step",
    },
    "rollout": "answers that the model writes before it learns from them",
}
"""What each part of a step is."""


def step_terms(scenario: Scenario, parts: Mapping[str, float]) -> Iterator[Term]:
    """Derive each part of a step."""
    notes, felt = noted(scenario), {name: seconds for name, seconds in parts.items() if seconds}
    return part_terms("time.step", notes, noted_parts(scenario, notes), felt, TEXTS)
