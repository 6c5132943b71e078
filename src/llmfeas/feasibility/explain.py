"""The derivation of an estimate: for each figure the formula, what went in and where that came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..scenario import Scenario
from ..timing.decode import cached_tokens
from ..timing.inference import InferenceTime
from ..timing.training import TrainingTime
from ..timing.work import ADAPTER_TASKS
from ..workload.kernels import runs_compiled, runs_fused, runs_patched
from .inputs import network_and_origin
from .result import Estimate, Term
from .result import TermInput as Input

COMPONENT_FORMULAS: Mapping[str, str] = {
    "weights_bytes": "stored weights on this device: parameters x bytes each, divided by tp, pp, ep and ZeRO 3",
    "gradients_bytes": "gradients that exist at the peak: trainable parameters so far x bytes each",
    "optimizer_bytes": "optimizer states: trainable parameters x bytes each, divided by ZeRO",
    "activations_bytes": "tensors kept for the backward pass at the peak, operator by operator (a walk along the step)",
    "logits_bytes": "tensors as wide as the vocabulary: tokens x vocabulary x bytes, up to three at once",
    "kv_cache_bytes": "cached values a token x context x sequences x bytes a value",
    "workspace_bytes": "16-bit copies of weights, temporaries of backward and optimizer",
    "runtime_bytes": "context, libraries and allocator slack: no tensor (data/engines.yaml, runtime.yaml)",
}

SERVING_FORMULAS: Mapping[str, str] = {
    "weights_bytes": "stored weights on this device: each tensor x the bits of its format, divided by tp, pp and ep",
    "activations_bytes": "the widest operator of one pass and what waits beside it",
    "logits_bytes": "tensors as wide as the vocabulary: rows of logits x vocabulary x bytes",
    "workspace_bytes": "weights unpacked or copied for one product",
}
"""What differs from training, where nothing is kept for a backward pass."""

TRAINING_FORMULAS: Mapping[str, str] = {
    "matrix": "2 tokens x passes x active matrix weights / (peak x efficiency)",
    "attention": "4 layers x heads x head_dim x length x tokens x half (causal) x passes / attention rate",
    "streaming": "bytes of pointwise operators / (0.8 bandwidth)",
    "decoding": "bytes of quantized weights unpacked / (0.8 bandwidth)",
    "host": "host work a layer that the device does not hide",
    "tensor_parallel": "4 all-reduces a layer of tokens x hidden x 2 bytes / link",
    "expert_parallel": "4 all-to-alls a layer of tokens x experts a token x hidden x 2 bytes / link",
    "zero": "gathered weights and scattered gradients / link, what is not hidden",
    "offload": "weights over PCIe in each micro-step",
    "bubble": "(stages - 1) / micro-batches of the pipeline",
    "gradient_sync": "gradients over the link once a step, what is not hidden",
    "optimizer": "30 bytes a parameter / (0.8 bandwidth)",
}

DECODE_FORMULAS: Mapping[str, str] = {
    "draft": "drafted tokens x a step of what drafts them; the step then verifies all of them and makes one more",
    "weights": "bytes of active weights / (bandwidth x efficiency)",
    "cache": "bytes of cached values at the mean length / (bandwidth x efficiency)",
    "compute": "work of all sequences, or unpacking of quantized weights, that reading does not hide",
    "fixed": "time a layer whatever its size: launches and small operators",
    "link": "all-reduces between the devices of one instance",
    "host_layers": "layers that stayed on the host, at its memory bandwidth",
    "offload": "weights of the layers over PCIe once a step",
}


PREFILL_FORMULAS: Mapping[str, str] = {
    "matrix": "2 x active matrix weights / (peak x efficiency)",
    "attention": "scores and values over the prompt / attention rate",
    "weights": "bytes of weights, read once a batch, that work does not hide",
    "offload": "the host's layers over PCIe once a batch, offloaded weights once a pass over the prompt",
    "fixed": "time a layer whatever its size, once a batch",
}


def _input(scenario: Scenario, name: str, value: object, unit: str = "") -> Input:
    return Input(name, value, unit, scenario.origins.get(name, "derived"))


def _parameter_terms(estimate: Estimate) -> Iterator[Term]:
    scenario, counts = estimate.scenario, estimate.parameters
    source = Input("architecture", scenario.model.id, "", "model")
    yield Term(
        quantity="parameters.total",
        formula="sum of all tensors of the architecture, tied matrices once",
        inputs=(source,),
        value=counts.total,
        unit="parameters",
    )
    yield Term(
        quantity="parameters.active",
        formula="total - experts that a token is not routed to - n-gram tables",
        inputs=(source,),
        value=counts.active,
        unit="parameters",
        share=counts.active / counts.total,
    )


def _flop_terms(estimate: Estimate) -> Iterator[Term]:
    scenario, flops = estimate.scenario, estimate.flops
    active = Input("active parameters", estimate.parameters.active, "", "model")
    if scenario.is_training:
        given = (active, _input(scenario, "tokens", scenario.tokens, "tokens"))
        rule = "6 x active parameters x tokens (Kaplan 2020)"
        backward = "2 x forward" if scenario.task not in ADAPTER_TASKS else "gradients of activations and adapters"
        exact = f"forward + {backward}, attention over the full square"
    else:
        given = (active, _input(scenario, "context", scenario.context, "tokens"))
        rule, exact = "2 x active parameters x tokens", "forward, one token after the other beyond the prompt"
    yield Term(quantity="flops.rule_of_thumb", formula=rule, inputs=given, value=flops.rule_of_thumb, unit="FLOP")
    yield Term(quantity="flops.model", formula=exact, inputs=given[1:], value=flops.model, unit="FLOP")
    replayed = "what runs: the fused kernel's second scores, checkpointing's replay"
    executed = replayed if scenario.is_training else "what runs: the same"
    yield Term(quantity="flops.hardware", formula=executed, inputs=given[1:], value=flops.hardware, unit="FLOP")


def _kernels(scenario: Scenario) -> str:
    """Say whose code keeps the activations."""
    if runs_fused(scenario):
        return "fused, of a training framework"
    if runs_patched(scenario):
        return "the model's public code, with a library's kernels in it"
    return "the model's public code" + (", compiled with its loss" if runs_compiled(scenario) else "")


def _memory_terms(estimate: Estimate) -> Iterator[Term]:
    scenario, memory = estimate.scenario, estimate.memory
    names = (
        ("precision", "optimizer", "micro_batch", "seq_len", "checkpointing", "attention", "zero", "tp", "pp")
        if scenario.is_training
        else ("precision", "quant", "context", "concurrency", "kv_dtype", "tp", "pp")
    )
    given = tuple(_input(scenario, name, getattr(scenario, name)) for name in names)
    if scenario.is_training:
        given = (*given, Input("kernels", _kernels(scenario), "", "backend"))
    formulas = COMPONENT_FORMULAS if scenario.is_training else {**COMPONENT_FORMULAS, **SERVING_FORMULAS}
    for name, value in memory.components.items():
        if value:
            yield Term(
                quantity=f"memory.{name}",
                formula=formulas[name],
                inputs=(),
                value=value,
                unit="bytes",
                share=value / memory.peak_bytes.expected,
            )
    yield Term(
        quantity="memory.peak_bytes",
        formula=f"all that is alive at the peak, which is in: {memory.peak_moment}",
        inputs=given,
        value=memory.peak_bytes.expected,
        unit="bytes",
    )
    yield Term(
        quantity="memory.usable_bytes",
        formula="what a process may use of the device's memory",
        inputs=(_input(scenario, "memory", memory.capacity_bytes, "bytes"),),
        value=memory.usable_bytes,
        unit="bytes",
    )


def _parts(quantity: str, parts: Mapping[str, float], formulas: Mapping[str, str]) -> Iterator[Term]:
    total = sum(parts.values())
    for name, seconds in parts.items():
        if seconds:
            yield Term(
                quantity=f"{quantity}.{name}",
                formula=formulas.get(name, name.replace("_", " ")),
                inputs=(),
                value=seconds,
                unit="s",
                share=seconds / total,
            )


def _time_terms(estimate: Estimate) -> Iterator[Term]:
    scenario = estimate.scenario
    network = network_and_origin(scenario)
    device = (
        Input("bandwidth", scenario.device.bandwidth_gb_per_s, "GB/s", "device"),
        *((Input("network", network[0], "GB/s a device", network[1]),) if network[0] is not None else ()),
        _input(scenario, "engine", scenario.engine),
    )
    if isinstance(estimate.time, InferenceTime):
        yield from _serving_terms(scenario, estimate.time, device)
    else:
        yield from _training_terms(scenario, estimate.time, device)


def _training_terms(scenario: Scenario, training: TrainingTime, device: tuple[Input, ...]) -> Iterator[Term]:
    if scenario.mfu is None:
        yield from _parts("time.step", training.parts, TRAINING_FORMULAS)
        formula = f"sum of the parts; range of '{training.regime}' runs that were left out of the fit"
    else:
        formula = "FLOP of the model in a step / (devices x dense peak x mfu)"
        device = (_input(scenario, "mfu", scenario.mfu),)
    yield Term(
        quantity="time.step_seconds", formula=formula, inputs=device, value=training.step_seconds.expected, unit="s"
    )
    yield Term(
        quantity="time.total_seconds",
        formula="tokens / tokens a second",
        inputs=(_input(scenario, "tokens", scenario.tokens, "tokens"),),
        value=training.total_seconds.expected,
        unit="s",
    )


def _serving_terms(scenario: Scenario, serving: InferenceTime, device: tuple[Input, ...]) -> Iterator[Term]:
    yield from _parts("time.decode", serving.decode_parts, DECODE_FORMULAS)
    yield Term(
        quantity="time.decode_tokens_per_second",
        formula=f"sequences / sum of the parts, at {cached_tokens(scenario):g} cached; range of '{serving.regime}'",
        inputs=device,
        value=serving.decode_tokens_per_second.expected,
        unit="tokens/s",
    )
    yield from _parts("time.prefill", serving.prefill_parts, PREFILL_FORMULAS)
    yield Term(
        quantity="time.prefill_tokens_per_second",
        formula=f"replicas / sum of the parts, which are of one token; range of '{serving.prefill_regime}'",
        inputs=device,
        value=serving.prefill_tokens_per_second.expected,
        unit="tokens/s",
    )
    yield Term(
        quantity="time.time_to_first_token_seconds",
        formula="prompt / its speed alone + one step of decoding",
        inputs=(_input(scenario, "prompt", scenario.prompt, "tokens"),),
        value=serving.time_to_first_token_seconds.expected,
        unit="s",
    )


def _cost_terms(estimate: Estimate) -> Iterator[Term]:
    scenario, cost = estimate.scenario, estimate.cost
    if cost.energy_kwh is not None:
        power = Input("power", scenario.device.power_w, "W", "device")
        formula = "time x devices x board power x share drawn x PUE (data/power.yaml)"
        inputs = (power, _input(scenario, "pue", scenario.pue))
        yield Term(
            quantity="cost.energy_kwh", formula=formula, inputs=inputs, value=cost.energy_kwh.expected, unit="kWh"
        )
    if cost.usd is not None:
        given: tuple[Input, ...] = ()
        if (bought := cost.purchase) is not None:
            unit = "USD/h, purchase price over lifetime"
            given = (Input("wear", bought.usd_per_device_hour, unit, "given"),)
        elif (rent := cost.price) is not None:
            unit = f"USD/h, {rent.provider}, {rent.as_of or 'undated'}"
            given = (Input("price", rent.usd_per_device_hour, unit, scenario.origins.get("price", "device")),)
        if scenario.electricity_usd_per_kwh is not None:
            given = (*given, _input(scenario, "electricity", scenario.electricity_usd_per_kwh, "USD/kWh"))
        yield Term(
            quantity="cost.usd",
            formula=f"hours x devices x {'wear' if cost.purchase else 'price'} + energy x electricity",
            inputs=given,
            value=cost.usd.expected,
            unit="USD",
        )


def explanation(estimate: Estimate) -> tuple[Term, ...]:
    """Derive every figure of an estimate."""
    return (
        *_parameter_terms(estimate),
        *_flop_terms(estimate),
        *_memory_terms(estimate),
        *_time_terms(estimate),
        *_cost_terms(estimate),
    )
