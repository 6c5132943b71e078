"""What a device reaches under an engine: peaks by number format times calibrated shares, kept per combination.

All rates are dense, in FLOP/s or bytes/s; a multiply-add counts two. Sources: the device catalog for peaks,
data/efficiency.yaml for shares. Causes are read off the device's own record, never off its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

from ..catalog.device import FULL_PRECISION, NARROW, Device
from ..catalog.efficiency import Efficiency
from ..catalog.engine import Style
from ..findings import cached_across_batches
from ..record import dataclass
from ..scenario import Scenario
from ..units import TERA


def peak_flop_per_s(device: Device, precision: str) -> float:
    """Dense peak of the format asked for, with fp32 accumulation, FLOP/s: what an MFU is measured against."""
    if NARROW.get(precision) == "fp8" and device.tflop_per_s.fp8_fp32 is not None:
        return device.tflop_per_s.fp8_fp32 * TERA
    return device.train_flop_per_s(precision)


def product_flop_per_s(device: Device, precision: str) -> float:
    """Dense rate of products in inference, FLOP/s: that of 16 bits, unless the run is in wider numbers."""
    return device.train_flop_per_s(precision) if precision in FULL_PRECISION else device.peak16_flop_per_s


def served_share(efficiency: Efficiency, device: Device, name: str) -> float:
    """Share of the peak that products of a server reach by a parameter, more below a low ceiling."""
    share = efficiency.value(name) * (efficiency.value("training.geforce") if device.has_low_ceiling else 1.0)
    return min(share, BEST_SHARE)


SERVED_PRODUCTS: Mapping[str, str] = {"fp8": "fp8-mixed", "nvfp4": "nvfp4-mixed", "mxfp4": "nvfp4-mixed"}
"""Formats whose weights servers multiply as they are, and the precision of those products."""
ACTIVATED_IN_4_BITS = ("rocm",)
"""Backends whose servers write activations in mxfp4 beside such weights; elsewhere these meet 8 or 16 bits."""


def served_flop_per_s(device: Device, quant: str) -> float | None:
    """Dense peak of a server's products in a format of stored weights, FLOP/s; None: they are in 16 bits or wider."""
    in_4_bits = quant in ("nvfp4", "mxfp4")
    if quant not in SERVED_PRODUCTS or (in_4_bits and device.tflop_per_s.fp4 is None):
        return None
    if quant == "mxfp4" and device.backend not in ACTIVATED_IN_4_BITS:
        return None
    return peak_flop_per_s(device, SERVED_PRODUCTS[quant])


VECTOR_INT8 = 4
"""8-bit operations beside one of fp32 at most in vectors; matrix units have more, and single tokens do not use them."""


def dot_products_per_s(device: Device) -> float:
    """8-bit operations a second of a processor's vectors: packed weights are multiplied in 8 bits."""
    fp32, int8 = device.fp32_flop_per_s, (device.tflop_per_s.int8 or 0.0) * TERA
    return max(fp32, min(int8, VECTOR_INT8 * fp32))


BEST_SHARE = 0.95
"""No product beats this share of its peak, whatever the shares of device and engine multiply to."""


GAINS: Mapping[str, tuple[str, ...]] = {
    "fp8-mixed": ("fp8_gain",),
    "mxfp8-mixed": ("fp8_gain", "mxfp8_gain"),
    "nvfp4-mixed": ("nvfp4_gain",),
}
"""The parameters whose product is the share of a narrow format's additional rate that matrix work gains."""


@dataclass(frozen=True, slots=True)
class ExpertRates:
    """What routed experts reach, and what it takes to bring tokens to them."""

    spread: float
    """FLOP/s where they are spread over devices."""
    local: float
    """... and where all are here."""
    wide: float
    """... and where they are held and multiplied in fp32."""
    fill_tokens: float
    """Tokens of one expert at which its products run at half of `local`."""
    moves: float
    """Times that a token's copy for an expert is moved in a pass, by kernels of their own."""
    moves_plain: float
    """The same in public code, whose operators sort, multiply and add by themselves."""
    imbalance: float
    """Work of the fullest rank over the mean where nobody balances tokens over experts by force."""
    merged_bytes: float
    """Bytes moved for one weight of stacked experts and pass where adapters are merged into them."""
    added_seconds: float
    """To add an element of a row's gradient to that of the bias which the row picked."""


@dataclass(frozen=True, slots=True)
class HostRates:
    """What the host adds to a step under an engine, whatever the device: seconds, and exponents of the soft maximum of
    device and host time.
    """

    tuned: bool
    """Fused, compiled, overlapping."""
    eager: bool
    """Layers are launched from Python, operator by operator."""
    seconds_per_layer: float
    sharpness: float
    """1 where the two take turns."""
    seconds_with_experts: float
    """More of a layer with experts: tokens counted, sorted and sent, which no graph holds."""
    seconds_waited: float
    """The same in public code, beside the kernels that its walk counts."""
    seconds_each: float
    """Of one expert, forward and backward, where experts run one after the other."""
    sharpness_of_mixtures: float
    """Between the large products of a mixture are kernels so small, and counts that the host reads, that now one waits
    and now the other."""


@dataclass(frozen=True, slots=True)
class TrainingRates:
    """Effective rates of one device in training (FLOP/s, bytes/s, seconds), and how many rest on judgement alone."""

    matrix: float
    attention: float
    attention_eager: float
    attention_wide: float
    """FLOP/s of fused attention with heads that are too wide for flash kernels."""
    wide: float
    """FLOP/s of products in fp32 beside those of the run's precision."""
    recurrence: float
    """FLOP/s of kernels that run recurrences in chunks."""
    stream: float
    """Bytes a second of pointwise work, already divided by the engine's overhead."""
    memory: float
    vector: float
    """FLOP/s of the vector units in fp32, at their peak."""
    decode: float
    decode_gptq: float
    fill_tokens: float
    """Tokens of a micro-step at which matrix products run at half of their rate."""
    wave: float
    """Numbers of a product that all units make at once: what the last of them wait for."""
    experts: ExpertRates
    priors: int


@lru_cache(maxsize=4096)
def training_rates(
    efficiency: Efficiency,
    device: Device,
    precision: str,
    style: Style,
    flash: str = "second",
) -> TrainingRates:
    """The effective rates of a device in training at a precision under an engine of a style."""
    value, traits = efficiency.value, efficiency.generation(device.generation, device.backend)
    generation = efficiency.parameters[f"training.generation.{traits.training}"]
    half, sustained = _sustained_flop_per_s(efficiency, device, precision)
    share = _matrix_share(efficiency, device, precision, style) * generation.value
    peak = peak_flop_per_s(device, precision) * sustained
    gain = 1 + max(0.0, peak / half - 1) * _gain(efficiency, precision)
    matrix = min(half * share * gain, BEST_SHARE * peak)
    unfused = generation.value if traits.attention == "scaled" else 1.0
    memory = device.bandwidth_bytes_per_s * value("memory.stream")
    wide = min(matrix, min(share, BEST_SHARE) * device.fp32_flop_per_s)
    width = 2.0 if precision in FULL_PRECISION else 1.0
    decode = memory / (2.6 * value("training.dequant"))
    return TrainingRates(
        matrix=matrix,
        attention=half * _fused_share(efficiency, device, generation.value, flash),
        attention_eager=half * value("training.attention_eager") * unfused,
        attention_wide=device.fp32_flop_per_s * value("training.attention_wide"),
        wide=wide,
        recurrence=half * value("training.recurrence"),
        stream=memory / (width * value(f"training.stream.{style}")),
        memory=memory,
        vector=device.fp32_flop_per_s,
        decode=decode,
        decode_gptq=decode / value("training.dequant_gptq"),
        fill_tokens=value("training.fill_tokens_cpu" if device.backend == "cpu" else "training.fill_tokens"),
        wave=value("training.wave"),
        experts=_expert_rates(efficiency, device, matrix, wide),
        priors=int(generation.prior) + int(traits.attention == "scaled"),
    )


def _matrix_share(efficiency: Efficiency, device: Device, precision: str, style: Style) -> float:
    """Share of the peak in matrix products, whatever the generation."""
    value, plain = efficiency.value, efficiency.generation(device.generation, device.backend).plain
    share = value("training.matrix")
    if device.has_low_ceiling and precision not in FULL_PRECISION:
        share *= value("training.geforce")
    if plain and style == "plain":
        share *= value(f"training.plain.{plain}")
    return share * value("training.native") if style == "native" else share


@cached_across_batches
def rates_of(scenario: Scenario) -> TrainingRates:
    """The rates of a scenario's device under its engine."""
    style, numbers = scenario.engine_record.training.style, scenario.tables.efficiency
    return training_rates(numbers, scenario.device, scenario.precision, style, flash_of(scenario))


def host_rates(scenario: Scenario) -> HostRates:
    """What the host adds to a scenario's steps under its engine."""
    engine = scenario.engine_record.training
    tuned, eager = engine.style != "plain", engine.launches_eagerly
    return _host_rates(scenario.tables.efficiency, tuned, not tuned if eager is None else eager)


@lru_cache(maxsize=16)
def _host_rates(efficiency: Efficiency, tuned: bool, eager: bool) -> HostRates:
    value = efficiency.value
    return HostRates(
        tuned=tuned,
        eager=eager,
        seconds_per_layer=value("training.host.plain" if eager else "training.host.tuned"),
        sharpness=max(1.0, value("training.host.sharpness")),
        seconds_with_experts=value("training.host.routing"),
        seconds_waited=value("training.host.routing_waited"),
        seconds_each=value("training.host.expert"),
        sharpness_of_mixtures=max(1.0, value("training.host.sharpness_moe")),
    )


def flash_of(scenario: Scenario) -> str:
    """Fused attention kernels of a training: where public code of today prefers those of the device's maker these, else
    those of the engine. What pre-trains is often code of its own, which leaves the choice to PyTorch.
    """
    engine, device, tables = scenario.engine_record.training, scenario.device, scenario.tables
    tuning = scenario.method != "pretrain"
    public = engine.runs_public_code(tables.implementations)
    if tuning and public and scenario.model.architecture.sinks and scenario.attention == "flash":
        return "vendor"  # the only kernels with sinks: FlashAttention 3 and 4, AITER's
    prefers = tuning and tables.efficiency.generation(device.generation, device.backend).vendor_attention
    if prefers and scenario.transformers == "5" and public:
        return "vendor"
    return engine.flash


def _expert_rates(efficiency: Efficiency, device: Device, matrix: float, wide: float) -> ExpertRates:
    """What experts reach of the rate of dense products, in the precision of the run and in fp32."""
    spread, local, rest = _of_any_device(efficiency, device.backend == "cpu")
    return ExpertRates(spread=matrix * spread, local=matrix * local, wide=wide * local, **rest)


@lru_cache(maxsize=16)
def _of_any_device(efficiency: Efficiency, is_cpu: bool) -> tuple[float, float, Mapping[str, float]]:
    """The shares of a device's rate that experts reach spread and here, and the figures that no device changes."""
    value = efficiency.value
    rest = {
        "fill_tokens": value("training.fill_tokens_cpu" if is_cpu else "training.fill_expert"),
        "moves": value("training.routing.tuned"),
        "moves_plain": value("training.routing.plain"),
        "imbalance": value("training.imbalance"),
        "merged_bytes": value("training.merged_bytes"),
        "added_seconds": value("training.added_bias"),
    }
    return value("training.moe"), value("training.moe_local"), rest


def _fused_share(efficiency: Efficiency, device: Device, generation: float, flash: str) -> float:
    """Share of the 16-bit peak in fused attention, at most `BEST_SHARE`."""
    value, traits = efficiency.value, efficiency.generation(device.generation, device.backend)
    share, kind = value("training.attention"), traits.attention
    if kind == "scaled":
        share *= value("training.attention_scaled") * generation
    elif kind in ("new", "newest") and flash != "vendor":
        held_back = max(1.0, (traits.whole_ratio or 0.0) * device.fp32_flop_per_s / device.peak16_flop_per_s)
        share *= min(value("training.attention_second"), held_back * value(f"training.attention_{kind}"))
    elif kind == "standard" and flash != "first" and device.backend == "cuda":
        share *= value("training.attention_second")
    if device.has_low_ceiling:
        share *= value("training.geforce")
    return min(share, BEST_SHARE)


def _gain(efficiency: Efficiency, precision: str) -> float:
    """Share of a narrow format's additional rate that matrix work gains; 0 in 16 bits and wider."""
    return prod(efficiency.value(f"training.{name}") for name in GAINS[precision]) if precision in GAINS else 0.0


def _sustained_flop_per_s(efficiency: Efficiency, device: Device, precision: str) -> tuple[float, float]:
    """Peak without narrow formats, or of it what the card's power, or a processor that multiplies tiles, sustains,
    FLOP/s; and the share of any peak that the power does.
    """
    peak = _base_peak(device, precision)
    if precision in FULL_PRECISION:
        return peak, 1.0
    if device.has_tiles:
        return peak * efficiency.value("training.tiles"), 1.0
    each = efficiency.generation(device.generation, device.backend).watts_per_tflop_per_s
    if device.power_w is None or each is None:
        return peak, 1.0
    share = min(1.0, device.power_w / each * TERA / peak)
    return peak * share, share


def _base_peak(device: Device, precision: str) -> float:
    if precision in NARROW:
        return device.peak16_flop_per_s
    return peak_flop_per_s(device, precision)
