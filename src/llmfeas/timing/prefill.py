"""Seconds to read a prompt: matrix products at an engine's rate, attention, weights read once a batch, pointwise work.

    seconds a token = sqrt((2 weights / rate + attention / its rate)^2 + read^2) + stream + fixed x layers / batch

Work and reading overlap in part; norms, activations and the copies between products do not. No head: only the last
position needs it. Batches hold at most 512 tokens.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ..catalog.device import Device
from ..catalog.efficiency import Efficiency
from ..catalog.engine import ServingSpeed
from ..derivation import BANDWIDTH, EFFICIENCY, MODEL, PEAK, Note, Say, largest, plain, soft_maximum, unnoted
from ..findings import cached_across_batches
from ..model.sums import Sums, architecture_sums
from ..record import dataclass
from ..scenario import Scenario
from ..units import TERA
from ..workload.serving import graphed_tokens, peers, widest_pass_tokens
from .decode import sum_seconds, summed
from .host import head_bytes, parts_with_shares, sent_seconds, streamed_seconds, weights_read_bytes
from .paths import EAGER, Path, inference_path
from .rates import product_flop_per_s, served_flop_per_s, served_share
from .spread import rank_weights_bytes

BATCH_TOKENS = 512
NOTIONAL_PROMPT = 512
"""Prompt for which speed is quoted when none is given."""
CPU_INTEGER_TOP_PER_S = 4.0
"""int8 rate of a CPU of 16 cores: where `prefill.cpu_quantized` is the share that is reached."""


@dataclass(frozen=True, slots=True)
class PrefillRates:
    """Effective rates of one device under one engine (FLOP/s, bytes/s, seconds), and how many rest on judgement."""

    matrix: float
    experts: float
    """Share of that rate in routed experts of many tokens, but on a CPU, whose units are narrow."""
    fill_tokens: float
    """Tokens of an expert at which its products run at half of that: kernels compute whole tiles of them."""
    fill_width: float
    """Inner width of an expert at which they do so again: a tile that is soon summed waits to be written."""
    attention: float
    read: float
    stream: float
    """Elements a second of pointwise work: llama.cpp keeps 4 bytes of each between products, others 2."""
    layer_seconds: float
    wired: float
    """Seconds a byte of weights to have all of them within reach of the device, before each prompt."""
    path: str
    priors: int


def _llama_cuda_rate(
    efficiency: Efficiency, device: Device, path: Path, half: float, *, quantized: bool
) -> tuple[float, str]:
    value, integers = efficiency.value, device.tflop_per_s.int8 if quantized else None
    if not device.has_matrix_units:
        if integers is not None:
            return integers * TERA * value("prefill.integer_vector"), "prefill.integer_vector"
        return device.fp32_flop_per_s * value("prefill.vector"), "prefill.vector"
    if integers is not None and device.has_integer_matrix_units:
        power = efficiency.first(f"prefill.integer_power.{path.fixed}", "prefill.integer_power")
        scale: float = (integers / 100) ** value(power)
        shared = efficiency.factor("prefill.unified") if device.is_unified else 1.0
        return value("prefill.integer") * scale * efficiency.factor(f"prefill.{path.fixed}") * shared, "prefill.integer"
    geforce = value("prefill.half_geforce") if device.is_geforce_like else 1.0
    return half * value("prefill.half") * geforce, "prefill.half"


@lru_cache(maxsize=256)
def _cpu_format(efficiency: Efficiency, products: str, quant: str) -> float:
    """How much slower or faster products of a format are on a CPU than of q4_0: few types have kernels that unpack a
    block for many columns at once, in one engine other ones than in another.
    """
    name = quant.removeprefix("ud-")
    for prefix in (f"prefill.cpu_format.{products}.", "prefill.cpu_format."):
        known = [key for key in efficiency.parameters if key.startswith(prefix) and name.startswith(key[len(prefix) :])]
        if known:
            return efficiency.value(max(known, key=len))
    return 1.0


def _matrix_rate(efficiency: Efficiency, device: Device, path: Path, precision: str, quant: str) -> tuple[float, str]:
    """The rate of matrix products in a prefill, FLOP/s, and the parameter that it rests on."""
    value, half, quantized = efficiency.value, product_flop_per_s(device, precision), quant not in ("none", "fp8")
    if path.vectors:
        half = min(half, (device.tflop_per_s.fp16 or 0.0) * TERA or device.fp32_flop_per_s)
    if path.backend == "cpu":
        if quantized and device.tflop_per_s.int8 is not None:
            scale: float = (device.tflop_per_s.int8 / CPU_INTEGER_TOP_PER_S) ** value("prefill.cpu_power")
            scale *= _cpu_format(efficiency, path.products, quant)
            return CPU_INTEGER_TOP_PER_S * TERA * scale * value("prefill.cpu_quantized"), "prefill.cpu_quantized"
        return half * value("prefill.cpu"), "prefill.cpu"
    kernels = efficiency.factor(f"prefill.server.{device.generation}")
    if path.family in ("server", "compiled") and (narrow := served_flop_per_s(device, quant)):
        shared = efficiency.factor(f"prefill.server.{quant}") * kernels
        return narrow * served_share(efficiency, device, "prefill.server") * shared, "prefill.server"
    if path.family == "compiled":
        tensor = device.tflop_per_s.fp16_matrix if half == device.peak16_flop_per_s else None
        return (tensor * TERA if tensor else half) * value("prefill.compiled"), "prefill.compiled"
    if path.family == "server":
        unpacked = 1.0 if quant == "none" else efficiency.factor("prefill.server_packed")
        return half * served_share(efficiency, device, "prefill.server") * unpacked * kernels, "prefill.server"
    if path.family in EAGER:
        return half * value("training.matrix"), "training.matrix"
    if path.backend == "cuda" or (path.backend == "vulkan" and device.backend == "cuda"):
        return _llama_cuda_rate(efficiency, device, path, half, quantized=quantized)
    name = efficiency.first(f"prefill.{path.family}", f"prefill.{path.backend}", "prefill.vulkan")
    held_back = efficiency.factor("prefill.apu") if device.kind == "apu" else 1.0
    kernels = efficiency.factor(f"{name}.{device.generation}")
    if device.has_matrix_units:
        kernels *= efficiency.factor(f"{name}.{path.products}.{device.backend}")
    return half * value(name) * held_back * kernels, name


@lru_cache(maxsize=4096)
def prefill_rates(
    efficiency: Efficiency, device: Device, speed: ServingSpeed, precision: str, quant: str, fused: bool
) -> PrefillRates:
    """The effective rates of a device in prefill under an engine, for weights of a format and products in another."""
    path = inference_path(device, speed)
    matrix, name = _matrix_rate(efficiency, device, path, precision, quant)
    kernel = "_metal" if device.backend == "metal" else ""
    flash = "_fused" if fused or path.family != "llama.cpp" else ""
    attention = f"prefill.attention{kernel}{flash}"
    element_bytes = 4 if path.family == "llama.cpp" else 2
    experts = efficiency.first(f"prefill.{path.family}_moe", f"prefill.{path.backend}_moe", "prefill.moe")
    own = f"prefill.attention.{path.family}", f"prefill.attention.{path.backend}"
    stream = efficiency.value(efficiency.first(f"prefill.{path.family}_stream", "prefill.stream"))
    return PrefillRates(
        matrix=matrix,
        experts=1.0 if path.backend == "cpu" else efficiency.value(experts),
        fill_tokens=0.0 if path.backend == "cpu" else efficiency.amount(f"{experts}_fill"),
        fill_width=0.0 if path.backend == "cpu" else efficiency.amount(f"{experts}_width"),
        attention=product_flop_per_s(device, precision) * efficiency.value(efficiency.first(*own, attention)),
        read=device.bandwidth_bytes_per_s * efficiency.value("prefill.read"),
        stream=device.bandwidth_bytes_per_s / (element_bytes * stream),
        layer_seconds=efficiency.value("prefill.fixed"),
        wired=efficiency.amount(f"prefill.wired.{path.family}.{device.generation}"),
        path=name,
        priors=int(efficiency.parameters[name].prior),
    )


def prompt_tokens(scenario: Scenario) -> int:
    """The prompt, or the one for which speed is quoted."""
    return scenario.prompt if scenario.prompt > 0 else NOTIONAL_PROMPT


def pass_tokens(scenario: Scenario, tokens: float) -> float:
    """Tokens that the engine takes through the layers at once, of `tokens` that wait."""
    return min(tokens, float(widest_pass_tokens(scenario) or tokens))


def batch_tokens(scenario: Scenario, tokens: float) -> float:
    """Tokens that share one reading of the weights: a pass of servers and llama.cpp, elsewhere at most 512."""
    serving = scenario.engine_record.serving
    if scenario.ubatch is not None or serving.memory.cache == "paged" or serving.speed.family == "server":
        return pass_tokens(scenario, tokens)
    return min(tokens, float(BATCH_TOKENS))


def split_gain(scenario: Scenario, tokens: float, stages: float = 0.0) -> float:
    """How much faster several cards are: stages that overlap over batches, or tensor parallel work.

    `stages`: as many equal ones as unequal ones are worth.
    """
    return stage_gain(scenario, tokens, stages) * tensor_gain(scenario)


def stage_gain(scenario: Scenario, tokens: float, stages: float = 0.0) -> float:
    """How much faster stages are that overlap over batches."""
    stages = stages or scenario.pp
    if stages <= 1:
        return 1.0
    batches = max(1.0, tokens / (scenario.ubatch or BATCH_TOKENS))
    overlap: float = stages * batches / (batches + stages - 1)
    return float(overlap ** scenario.tables.efficiency.value("prefill.pipeline_power"))


def tensor_gain(scenario: Scenario) -> float:
    """How much faster ranks that share each matrix multiply."""
    if scenario.tp == 1:
        return 1.0
    return max(1.0, scenario.tables.efficiency.value("prefill.tensor_parallel") * scenario.tp)


def prefill_parts(
    scenario: Scenario, prompt: int, sequences: float, busy: float = 1.0, note: Note = unnoted
) -> dict[str, float]:
    """Seconds a prompt token by part (matrix, attention, weights, offload, streaming, images, fixed); they add up."""
    return read_parts(scenario, prompt * sequences, prompt, busy, note)


def read_parts(
    scenario: Scenario, tokens: float, length: float, busy: float = 1.0, note: Note = unnoted
) -> dict[str, float]:
    """Seconds a token by part where `tokens` wait, of prompts of `length`; they attend to half of it on average.

    `busy`: tokens of all copies that share the experts, over as many as here on each.
    """
    unequal = [
        (_read_parts(part, tokens, length, 1.0, 1.0, unnoted), share) for part, share in parts_with_shares(scenario)
    ]
    if not unequal:
        return _read_parts(scenario, tokens, length, split_gain(scenario, tokens), busy, note)
    gain = split_gain(scenario, tokens, worth_stages(unequal))
    return {name: seconds / note(name)("gain", gain, "", EFFICIENCY) for name, seconds in summed(unequal, note).items()}


def expert_share(scenario: Scenario, rates: PrefillRates, batch: float) -> float:
    """Share of the dense rate that routed experts reach in a batch of so many tokens, which it deals out to them.

    llama.cpp computes tiles of up to 128 columns, mostly empty ones where an expert meets few tokens
    (github.com/ggml-org/llama.cpp/pull/26977, /24546).
    """
    experts = scenario.model.architecture.experts
    if experts is None:
        return rates.experts
    tokens = batch * (experts.expected_real or experts.top_k) / experts.count
    return rates.experts * tokens / (tokens + rates.fill_tokens) * experts.width / (experts.width + rates.fill_width)


def worth_stages(unequal: list[tuple[dict[str, float], float]]) -> float:
    """As many equal stages of a pipeline as unequal ones are worth, whose slowest sets the pace."""
    seconds = [share * sum(parts.values()) for parts, share in unequal]
    return sum(seconds) / max(seconds)


def _eager_parts(
    scenario: Scenario, tokens: float, length: float, gain: float, _busy: float, note: Note
) -> dict[str, float]:
    weights = weights_read_bytes(scenario, tokens) - head_bytes(scenario)
    from .reading import pass_seconds

    parts = {
        name: seconds / note(name)("tokens", tokens, "tokens") / note(name)("gain", gain, "", EFFICIENCY)
        for name, seconds in pass_seconds(scenario, tokens, length, note).items()
    }
    offload = crossing_seconds(scenario, weights, tokens, tokens, note("offload"))
    return {**parts, "weights": 0.0, "offload": offload, "link": link_seconds(scenario, note("link"))}


def crossing_seconds(scenario: Scenario, weights: float, batch: float, one_pass: float, say: Say) -> float:
    """Seconds a token in which weights come from main memory: the host's in each batch, streamed ones in each pass."""
    sent, streamed = sent_seconds(scenario, weights, batch), streamed_seconds(scenario, one_pass)
    seconds = say("sent_seconds", sent, "s") / say("batch", batch, "tokens") if sent else 0.0
    if streamed:
        seconds += say("crossing_seconds", streamed, "s") / say("pass_tokens", one_pass, "tokens")
    return seconds


def link_seconds(scenario: Scenario, say: Say) -> float:
    """What sums over ranks and ways to shared experts take for a token of a prompt."""
    seconds = sum_seconds(scenario, architecture_sums(scenario.model.architecture), reads=True)
    return say("sum_seconds", seconds, "s", EFFICIENCY)


def _read_parts(
    scenario: Scenario, tokens: float, length: float, gain: float, busy: float, note: Note
) -> dict[str, float]:
    """Seconds a token by part, of the engine's own kernels or of public code."""
    family = inference_path(scenario.device, scenario.engine_record.serving.speed).family
    parts = (_eager_parts if family in EAGER else _compiled_parts)(scenario, tokens, length, gain, busy, note)
    if scenario.images:
        say = note("images")
        seen = say("images", scenario.images) * image_seconds(scenario, say)
        parts["images"] = seen / say("prompt", scenario.prompt, "tokens")
    return parts


def _compiled_parts(
    scenario: Scenario, tokens: float, length: float, gain: float, busy: float, note: Note
) -> dict[str, float]:
    sums, rates, launch, graphed = _steady(scenario)
    one_pass, batch = pass_tokens(scenario, tokens), batch_tokens(scenario, tokens)
    together = batch * peers(scenario) * busy
    matrix = _matrix_seconds(scenario, sums, rates, together, busy, note("matrix"))
    say = note("attention")
    attention = say("attention_flop", sums.prompt_flop(length), "FLOP a token", MODEL)
    attention /= say("efficiency", rates.attention, "FLOP/s", PEAK)
    weights = scenario.tp * rank_weights_bytes(scenario, batch, together) - head_bytes(scenario)
    say = note("weights")
    read = say("weights", weights, "bytes", MODEL) / say("efficiency", rates.read, "bytes/s", BANDWIDTH)
    work = say("work_seconds", matrix + attention, "s")
    read = soft_maximum(work, read / say("batch", batch, "tokens"), 2) - work
    parts = {"matrix": matrix, "attention": attention, "weights": read}
    parts["streaming"] = _pointwise_seconds(scenario, rates, busy, note("streaming"))
    parts = {name: seconds / note(name)("gain", gain, "", EFFICIENCY) for name, seconds in parts.items()}
    parts["offload"] = crossing_seconds(scenario, weights, batch, one_pass, note("offload"))
    parts["link"] = link_seconds(scenario, note("link"))
    say = note("fixed")
    if launch:
        if batch <= graphed:  # the host starts what stands between the graphs, which hold all of a layer's experts
            launch = scenario.tables.efficiency.value("prefill.launch_graph") * sums.layers
        starting = say("launch_seconds", launch, "s", EFFICIENCY) / say("batch", batch, "tokens")
        fixed = largest(0.0, starting - say("work_seconds", sum(parts.values()), "s"))
    else:
        fixed = say("seconds_a_layer", rates.layer_seconds, "s", EFFICIENCY) * say("layers", sums.layers, "", MODEL)
        fixed = fixed / say("batch", batch, "tokens") / say("gain", gain, "", EFFICIENCY)
        if rates.wired:
            held = say("held", weights_read_bytes(scenario, math.inf), "bytes", MODEL)
            fixed += held * say("wired", rates.wired, "s a byte", EFFICIENCY) / say("tokens", tokens, "tokens")
    return {**parts, "fixed": fixed}


def _matrix_seconds(
    scenario: Scenario, sums: Sums, rates: PrefillRates, together: float, busy: float, say: Say
) -> float:
    weights = say("weights", sums.dense_weights, "", MODEL)
    if sums.routed_active:
        share = say("expert_share", expert_share(scenario, rates, together) / busy, "", EFFICIENCY)
        weights += say("expert_weights", sums.routed_active, "", MODEL) / share
    return 2 * weights / say("efficiency", rates.matrix, "FLOP/s", PEAK)


def _pointwise_seconds(scenario: Scenario, rates: PrefillRates, busy: float, say: Say) -> float:
    shared, held = streamed_widths(scenario, busy)
    width = say("stream_width", shared, "", MODEL)
    if held:
        width += say("held_width", held, "", MODEL) * say("ranks", tensor_gain(scenario), "", EFFICIENCY)
    return width / say("rate", rates.stream, "elements/s", EFFICIENCY)


def streamed_widths(scenario: Scenario, busy: float = 1.0) -> tuple[float, float]:
    """Elements of a token that move between products: those that tensor-parallel ranks share, and those each holds.

    Ranks of a server hold the whole residual stream, and the copies of a token that its experts read and write; those
    of copies that share experts a part of them, where not all are `busy`.
    """
    sums = architecture_sums(scenario.model.architecture)
    if inference_path(scenario.device, scenario.engine_record.serving.speed).family != "server":
        return sums.stream_width, 0.0
    copies = sums.moe_layers * sums.experts_per_token * sums.expert_reads
    routing = scenario.tables.efficiency.value("prefill.server_routing")
    return sums.stream_width - sums.residual_width, sums.residual_width + routing * copies * busy


def image_flop(scenario: Scenario) -> float:
    """FLOPs of the encoder for one image; 0 where nobody wrote them down."""
    model = scenario.model
    return 0.0 if model.image_encoder is None else model.image_encoder.flop(model.architecture.tower_parameters)


def image_rate(scenario: Scenario) -> float:
    """FLOP/s at which the encoder runs: that of weights in 16 bits, on one device."""
    speed, efficiency = scenario.engine_record.serving.speed, scenario.tables.efficiency
    return prefill_rates(efficiency, scenario.device, speed, scenario.precision, "none", fused=False).matrix


def image_seconds(scenario: Scenario, say: Say = plain) -> float:
    """Seconds of the encoder for one image, before the prompt is read."""
    flop = image_flop(scenario)
    return say("image_flop", flop, "FLOP", MODEL) / say("efficiency", image_rate(scenario), "", PEAK) if flop else 0.0


@cached_across_batches
def _steady(scenario: Scenario) -> tuple[Sums, PrefillRates, float, int]:
    """What depends on no length: the model's sums, the rates, seconds of a launch, tokens that graphs launch at once.

    The third is 0 where the host launches nothing that a pass waits for.
    """
    sums = architecture_sums(scenario.model.architecture)
    fused = scenario.attention == "flash"
    efficiency, serving = scenario.tables.efficiency, scenario.engine_record.serving
    rates = prefill_rates(efficiency, scenario.device, serving.speed, scenario.precision, scenario.quant, fused)
    launch = launch_seconds(scenario, sums) if serving.memory.cache == "paged" else 0.0
    if launch and not scenario.model.architecture.writes:
        # nothing is sampled or kept: what its public code launches
        from .reading import forward_of

        launch = forward_of(scenario, NOTIONAL_PROMPT).host_seconds
    return sums, rates, launch, graphed_tokens(scenario)


def launch_seconds(scenario: Scenario, sums: Sums) -> float:
    """Seconds that a serving engine's host needs to start a pass over prompts: its kernels are in no graph.

    The device works meanwhile, so that it shows in short passes only.
    """
    value = scenario.tables.efficiency.value
    experts = value("prefill.launch_moe") - 1
    return value("prefill.launch") * (sums.layers + experts * sums.moe_layers)
