"""The derivation of an estimate: for each figure the formula, what went in and where that came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..contract import ABSENT
from ..scenario import Scenario
from ..timing.inference import InferenceTime
from ..timing.step import noted_parts
from ..timing.training import TrainingTime, training_time
from ..workload.parameters import block_parameters
from .core import noted_flops
from .cost import kwh_a_second, usd_of
from .explain_memory import memory_terms
from .explain_serving import load_terms, serving_terms
from .long_run import LongRun, best_interval_seconds, failure_seconds, useful_share, writing_seconds
from .result import Estimate, Term
from .terms import Texts, noted, number, part_terms, term, written


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
            else _training_terms(estimate.scenario, time)
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


TRAINING_FLOPS = {
    "rule_of_thumb": "6 N D (Kaplan 2020)",
    "forward_per_token": "matrix products, and attention over the full square",
    "model": "what the model asks for; adapters need no gradients of the weights below them",
    "hardware": "what runs: scores that the fused kernel makes twice, blocks that checkpointing runs again",
}
INFERENCE_FLOPS = {
    "rule_of_thumb": "2 N D",
    "model": "prompt and answer of each request, one token after the other",
}


def _flop_terms(estimate: Estimate) -> Iterator[Term]:
    scenario, notes = estimate.scenario, noted(estimate.scenario)
    made = noted_flops(scenario, notes("flops"))
    for name, text in (TRAINING_FLOPS if scenario.is_training else INFERENCE_FLOPS).items():
        formula, inputs = written(notes, "flops", getattr(made, name))
        if any(each.name == "beside" for each in inputs):
            text += "; passes without a gradient, of the model or of the one that it was"
        yield term(f"flops.{name}", text, formula, inputs, getattr(estimate.flops, name), "FLOP")


AT_LIMITS = {
    "least": "one optimizer step, which takes no less at the stated peaks of the devices",
    "loading": "one optimizer step, which waits for its data",
}


def _training_terms(scenario: Scenario, training: TrainingTime) -> Iterator[Term]:
    paced, seen = "one optimizer step at the share given", "the full square, as papers do"
    if scenario.mfu is None:
        yield from step_terms(scenario, training.parts)
        paced = f"one optimizer step; range of {training.regime} runs that were left out of the fit"
        seen = "the tokens that each one sees"
    notes = noted(scenario)
    made = training_time(scenario, training.parts, notes("time"))
    for name, known, unit in (
        ("step_seconds", paced, "s"),
        ("tokens_per_second", "", "tokens/s"),
        ("mfu", f"share of the peak that the work of the model reaches; attention counts {seen}", "fraction"),
        ("total_seconds", "", "s"),
    ):
        formula, inputs = written(notes, "time", getattr(made, name).expected)
        text = AT_LIMITS.get(formula, known)
        yield term(f"time.{name}", text, formula, inputs, getattr(training, name).expected, unit)


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


LONG_RUN = {
    "checkpoint_seconds": ("trained weights, masters and states, which the training waits for", "s"),
    "failure_seconds": ("mean time between failures of the job: any device stops it", "s"),
    "interval_seconds": ("the best time of work between two checkpoints (Young 1974, Daly 2006)", "s"),
    "useful_share": ("share of the time that is work which is not lost (Daly 2006)", "fraction"),
    "total_seconds": ("from beginning to end, with checkpoints and failures", "s"),
    "failures": ("failures that are to be expected", ""),
}


def long_run_terms(scenario: Scenario, run: LongRun) -> Iterator[Term]:
    """Derive what checkpoints and failures leave of a training's time."""
    notes = noted(scenario)
    say, total = notes("long_run"), run.total_seconds
    writing, failure = say("writing", run.checkpoint_seconds, "s"), say("failure", run.failure_seconds, "s")
    interval, restart = say("interval", run.interval_seconds, "s"), say("restart", run.restart_seconds, "s")
    made = {
        "checkpoint_seconds": writing_seconds(scenario, run.checkpoint_bytes, say),
        "failure_seconds": failure_seconds(scenario, say),
        "interval_seconds": best_interval_seconds(writing, failure),
        "useful_share": useful_share(interval, writing, failure, restart),
    }
    if total is not None:
        share = say("useful_share", run.useful_share, "fraction")
        made["total_seconds"] = say("work", run.work_seconds.expected, "s") / share
        made["failures"] = say("total", total.expected, "s") / failure
    for name, value in made.items():
        if value:
            formula, inputs = written(notes, "long_run", value)
            yield term(f"long_run.{name}", LONG_RUN[name][0], formula, inputs, float(value), LONG_RUN[name][1])


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
