"""What a device is: memory, rates by number format, links, power, prices; one entry is what one process sees;
and offers, what one can rent or borrow as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from ..record import dataclass, fields, replace
from ..units import GB, GIB, MIB, TERA
from .types import Count, Fraction, GbPerS, Gib, Identifier, Limits, Positive, Share, Strict, TflopPerS, Usd, Watts

BackendId = Literal["cuda", "rocm", "tpu", "metal", "xpu", "cpu", "hpu", "npu", "neuron", "port"]
DeviceClass = Literal["consumer", "workstation", "datacenter", "unified", "cpu", "apu", "edge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates(Strict):
    """Dense peaks in : TflopPerSOP/s (int8: TOP/s). None: the device has no such rate."""

    fp32: TflopPerS | None = None
    """fp32 on the vector units; None where fp32 products run as several bf16 passes (TPU)."""
    fp32_matrix: TflopPerS | None = None
    """fp32 on the matrix units (CDNA)."""
    tf32: TflopPerS | None = None
    fp16: TflopPerS | None = None
    """fp16 on the vector units."""
    fp16_matrix: TflopPerS | None = None
    """fp16 on the matrix units with fp16 accumulation."""
    fp16_matrix_fp32: TflopPerS | None = None
    """fp16 on the matrix units with fp32 accumulation: what fp16 training gets."""
    bf16: TflopPerS | None = None
    """bf16, always with fp32 accumulation: what bf16 training gets."""
    fp8: TflopPerS | None = None
    fp8_fp32: TflopPerS | None = None
    """fp8 with fp32 accumulation, where slower."""
    int8: TflopPerS | None = None
    fp4: TflopPerS | None = None

    def scaled(self, factor: float) -> Rates:
        """Multiply every rate that exists."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Rates(**{name: None if value is None else value * factor for name, value in values.items()})


NARROW: Mapping[str, str] = {"fp8-mixed": "fp8", "mxfp8-mixed": "fp8", "nvfp4-mixed": "fp4"}
"""The units that the products of a precision run on, where they are narrower than 16 bits: one scale a tensor, one for
32 numbers, one for 16 (Transformer Engine's recipes)."""
FULL_PRECISION = ("fp32", "tf32")
"""Precisions that hold 32 bits of a number, whatever a product takes of them."""


def is_mixed(precision: str) -> bool:
    """Whether a precision computes in other numbers than it holds weights in."""
    return precision.endswith("-mixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreGroup(Strict):
    """Cores of one kind in a processor that has several: fast ones and thrifty ones."""

    cores: Count
    clock_ghz: Positive
    simd: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Strict):
    """A way out of the device, in 10^9 bytes a second, per direction."""

    kind: Literal["pcie", "nvlink", "nvlink-c2c", "xgmi", "ici", "roce", "xelink", "thunderbolt", "neuronlink", "hccs"]
    gb_per_s: GbPerS | None
    generation: str = ""
    group: Count | None = None
    """How many devices it joins (2 for a bridge); None: all of a node."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSizes(Strict):
    """What memory a machine is sold with, first what is assumed of it."""

    machine: Identifier
    memory_gib: tuple[Gib, ...]
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(Strict):
    """Rent of one device. `as_of` None: the source gives no date."""

    provider: Identifier
    usd_per_hour: Usd
    as_of: str | None = None
    kind: Literal["on-demand", "spot", "marketplace", "reserved"] = "on-demand"
    source: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device(Strict):
    """A catalog entry of one device: what one process sees (one GCD of an MI250X, one core of a TPU v3)."""

    id: Identifier
    name: Identifier
    backend: BackendId
    vendor: Identifier
    kind: DeviceClass
    generation: Identifier
    """Micro-architecture, such as `ada`, `hopper`, `rdna2`, `apple-m2`, `zen4`: key of the calibrated efficiencies."""
    memory_gib: Gib
    memory_type: Identifier
    bandwidth_gb_per_s: GbPerS
    tflop_per_s: Rates
    aliases: tuple[Identifier, ...] = ()
    default_for: tuple[Identifier, ...] = ()
    """Names of a family (`A100`) that mean this variant when nothing more is said."""
    machines: tuple[Identifier, ...] = ()
    """Machines that it comes in (`mac mini`, `dgx h100`), `devices_per_node` of it each; one may have others too."""
    machine_sizes: tuple[MachineSizes, ...] = ()
    """Machines that are sold with fewer sizes than the device."""
    slice_cores: Count = 1
    """What the number in the name of a TPU slice counts of one device: of v4-8 two cores each, so four devices."""
    mig_slices: Count | None = None
    """Into how many slices of its compute units NVIDIA's Multi-Instance GPU divides it; None: it does not."""
    assumption: str = ""
    """What choosing this entry assumes, such as a typical desktop; every answer says it."""
    architecture: str = ""
    target: str = ""
    """CUDA compute capability (`8.9`) or ROCm target (`gfx1030`)."""
    integer_share: Fraction = 1.0
    """32-bit integer operations a cycle as a share of fp32 ones (0.5 where only half of the lanes do integers)."""
    released: str = ""
    memory_reported_mib: Positive | None = None
    """What the driver shows as total memory."""
    memory_options_gib: tuple[Gib, ...] = ()
    """Sizes it is sold with (Macs, PCs, boards), first the one that is assumed; `memory_gib` is the largest."""
    memory_channels: Count | None = None
    cores: Count | None = None
    gpu_cores: Count | None = None
    clock_ghz: Positive | None = None
    """All-core clock that the CPU's rates assume."""
    simd: str = ""
    """Vector units: a key of `vector_units` of the file, or in words."""
    core_groups: tuple[CoreGroup, ...] = ()
    """The cores by kind, where their clocks or vector units differ; `cores` is their sum."""
    by_rule: tuple[str, ...] = ()
    """Figures that no source gives: they follow from others (of a processor from cores, clock and memory channels), and
    every range is wider."""
    devices_per_node: Count = 1
    links: tuple[Link, ...] = ()
    power_w: Watts | None = None
    launch_usd: Usd | None = None
    prices: tuple[Price, ...] = ()
    representative: bool = False
    """Stands for its backend and class when `compare` is asked without devices."""
    notes: str = ""
    sources: Annotated[tuple[str, ...], Limits(max_length=60)] = ()
    unverified: tuple[str, ...] = ()
    """Fields for which no source could be read."""

    @property
    def memory_bytes(self) -> float:
        """Whole memory in bytes: `memory_gib * 2^30`; of machines sold in several sizes the largest."""
        return self.memory_gib * GIB

    @property
    def reported_bytes(self) -> float | None:
        """Memory that the driver reports, in bytes; None where nobody wrote it down."""
        return None if self.memory_reported_mib is None else self.memory_reported_mib * MIB

    @property
    def unlimited(self) -> Device:
        """The device without a limit of its power: itself, but of one that has such a limit."""
        return self

    def part(self, share: float, of_memory: float | None = None) -> Device:
        """What a share of the device is, such as some cores of a processor: rates, memory, bandwidth, power.

        `of_memory`: the share of memory and bandwidth where that is another one.
        """
        if share == 1:
            return self
        memory = share if of_memory is None else of_memory
        return replace(
            self,
            memory_gib=self.memory_gib * memory,
            memory_reported_mib=None,
            bandwidth_gb_per_s=self.bandwidth_gb_per_s * memory,
            tflop_per_s=self.tflop_per_s.scaled(share),
            cores=None if self.cores is None else max(1, round(self.cores * share)),
            power_w=None if self.power_w is None else self.power_w * share,
            devices_per_node=1,
            prices=(),
        )

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Theoretical memory bandwidth in bytes a second."""
        return self.bandwidth_gb_per_s * GB

    def link_between(self, devices: int) -> Link | None:
        """The fastest link that joins so many devices of one node; None where the catalog knows no rate.

        A link to the host's memory (`nvlink-c2c`) joins no devices.
        """
        joining = [link for link in self.links if link.gb_per_s and link.kind != "nvlink-c2c"]
        wide = [link for link in joining if link.group is None or devices <= link.group]
        return max(wide, key=lambda link: link.gb_per_s or 0.0, default=None)

    @property
    def is_unified(self) -> bool:
        """Whether GPU and CPU share the memory: on a card for a data center LPDDR is its own."""
        shared = "LPDDR" in self.memory_type.upper() and self.kind != "datacenter"
        return self.kind in ("unified", "apu") or shared

    @property
    def has_host_memory(self) -> bool:
        """Whether its memory is that of its machine: of CPUs, and where GPU and CPU share one."""
        return self.kind == "cpu" or self.is_unified

    @property
    def has_bf16(self) -> bool:
        """Whether it computes in bf16 natively."""
        return self.tflop_per_s.bf16 is not None

    @property
    def has_matrix_units(self) -> bool:
        """Whether 16-bit products have units of their own (tensor cores, matrix cores, MXU, XMX, AMX)."""
        rates = self.tflop_per_s
        return (rates.fp16_matrix_fp32 or 0) > (rates.fp32 or 0) or (rates.bf16 or 0) > 1.9 * (rates.fp32 or 0)

    @property
    def has_tiles(self) -> bool:
        """Whether it is a processor that multiplies tiles of a matrix in 16 bits (AMX)."""
        rates = self.tflop_per_s
        return self.backend == "cpu" and (rates.bf16 or 0) >= 8 * (rates.fp32 or 1e9)

    @property
    def has_integer_matrix_units(self) -> bool:
        """Whether products of 8-bit integers have such units too; elsewhere vector units make four of them at once."""
        rates = self.tflop_per_s
        return self.has_matrix_units and (rates.int8 or 0) > (rates.fp16_matrix or 0)

    @property
    def is_geforce_like(self) -> bool:
        """Whether matrix products with fp32 accumulation run at a fraction of their fp16-accumulate rate."""
        rates = self.tflop_per_s
        fast, slow = rates.fp16_matrix, rates.fp16_matrix_fp32
        return fast is not None and slow is not None and slow < 0.75 * fast

    @property
    def has_low_ceiling(self) -> bool:
        """Whether the vendor holds its matrix units below what the rest of the chip feeds: they run near their peak.

        GeForce cards, and server cards with stacked memory whose matrix units do less than 4 times what the vector
        units do (H20: 3.4; H100: 15).
        """
        rates = self.tflop_per_s
        return self.is_geforce_like or (
            self.backend == "cuda"
            and self.has_hbm
            and self.has_matrix_units
            and (rates.bf16 or 9e9) < 4 * (rates.fp32 or 0)
        )

    @property
    def is_phone(self) -> bool:
        """Whether it is in a phone, whose system divides memory otherwise than a Mac's."""
        return self.backend == "metal" and self.kind == "edge"

    @property
    def has_hbm(self) -> bool:
        """Whether its memory is stacked (HBM)."""
        return self.memory_type.upper().startswith("HBM")

    @property
    def fp32_flop_per_s(self) -> float:
        """Dense fp32 rate in FLOP/s, matrix units included.

        A device without fp32 units (TPU) runs an fp32 product as six bf16 passes (XLA precision HIGHEST).
        """
        rates = self.tflop_per_s
        known = max(rates.fp32 or 0.0, rates.fp32_matrix or 0.0)
        return (known or self._peak16_tflop_per_s / 6) * TERA

    @property
    def integer_op_per_s(self) -> float:
        """Rate of 32-bit integer operations, on which quantized weights are unpacked: a share of the fp32 rate."""
        return self.integer_share * (self.tflop_per_s.fp32 or self._peak16_tflop_per_s / 6) * TERA

    @property
    def peak16_flop_per_s(self) -> float:
        """Dense rate of mixed-precision training in FLOP/s.

        bf16, or fp16 with fp32 accumulation where faster (on a P100 no faster than fp32); without a rate of that kind
        vector fp16 (RDNA 2, Vega, Apple); where that is below fp32 (Pascal GP10x) fp32.
        """
        return self._peak16_tflop_per_s * TERA

    @property
    def _peak16_tflop_per_s(self) -> float:
        rates = self.tflop_per_s
        matrix = max(rates.bf16 or 0.0, rates.fp16_matrix_fp32 or 0.0)
        return matrix or max(rates.fp16 or 0.0, rates.fp32 or 0.0)

    def train_flop_per_s(self, precision: str) -> float:
        """The dense peak in FLOP/s that training in `precision` is measured against.

        A format that the device lacks falls back to what it would run instead: fp4 to fp8, fp8 and 16 bits to
        `peak16_flop_per_s`, tf32 to fp32.
        """
        rates = self.tflop_per_s
        if precision == "fp32":
            return self.fp32_flop_per_s
        if precision == "tf32":
            return rates.tf32 * TERA if rates.tf32 else self.fp32_flop_per_s
        if precision in NARROW:
            narrow = rates.fp4 if NARROW[precision] == "fp4" else None
            return (narrow or rates.fp8 or self._peak16_tflop_per_s) * TERA
        if precision.startswith("bf16") and rates.bf16:
            return rates.bf16 * TERA
        if precision.startswith("fp16") and rates.fp16_matrix_fp32:
            return rates.fp16_matrix_fp32 * TERA
        return self.peak16_flop_per_s

    def __hash__(self) -> int:
        return hash((self.id, self.memory_gib))

    def __post_init__(self) -> None:
        """Refuse what no device can be.

        Raises:
            ValueError: naming the fields that contradict one another.
        """
        rates = self.tflop_per_s
        if rates.fp32 is None and not self._peak16_tflop_per_s:
            raise ValueError("tflop_per_s has neither fp32 nor bf16")
        if self.memory_reported_mib is not None and self.memory_reported_mib > self.memory_gib * 1024:
            raise ValueError(
                f"memory_reported_mib ({self.memory_reported_mib:g}) is above memory_gib ({self.memory_gib:g})"
            )
        for name, rate, limit, of in self._rate_limits():
            if rate is not None and limit and rate > limit * 1.03:
                raise ValueError(
                    f"tflop_per_s.{name} ({rate:g}) is above {limit:g}, {of}: a rate with sparsity? Give dense rates"
                )

    def _rate_limits(self) -> tuple[tuple[str, float | None, float, str], ...]:
        """For each dense rate the most it can be, from the others: each halving of the bits at most doubles it."""
        rates = self.tflop_per_s
        matrix = max(rates.fp16_matrix or 0.0, rates.fp16_matrix_fp32 or 0.0, rates.bf16 or 0.0)
        vector = max(rates.fp32 or 0.0, rates.fp16 or 0.0)
        return (
            ("fp16_matrix_fp32", rates.fp16_matrix_fp32, rates.fp16_matrix or 0.0, "the fp16-accumulate rate"),
            ("fp8", rates.fp8, 2 * matrix, "twice the 16-bit matrix rate"),
            ("fp8_fp32", rates.fp8_fp32, rates.fp8 or 0.0, "the fp8 rate"),
            ("int8", rates.int8, max(2 * matrix, 4 * vector), "twice the 16-bit matrix rate"),
            ("tf32", rates.tf32, max(matrix / 2, rates.fp32 or 0.0), "half of the 16-bit matrix rate"),
            ("fp4", rates.fp4, 3 * (rates.fp8 or 2 * matrix), "three times the fp8 rate"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Strict):
    """A catalog entry of one offer: `count` devices in one machine, for a number of hours."""

    id: Identifier
    name: Identifier
    provider: Identifier
    device: Identifier
    """The catalog id of its device."""
    count: Count = 1
    share: Share = 1.0
    """Part of the device that is lent: some cores of a processor, a slice of a card."""
    aliases: tuple[Identifier, ...] = ()
    default_for: tuple[Identifier, ...] = ()
    tier: Literal["free", "paid", "retired"] = "paid"
    memory_gib: Gib | None = None
    """What a process sees on one device; None: what the device has."""
    host_memory_gib: Gib | None = None
    host_cpus: Count | None = None
    hours_per_session: Positive | None = None
    hours_per_week: Positive | None = None
    usd_per_hour: Usd | None = None
    """Price of the whole offer; None: not known."""
    as_of: str | None = None
    """Day of the price (yyyy-mm-dd); None: the source gives none."""
    notes: str = ""
    sources: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
