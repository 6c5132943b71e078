"""Changes of how a model is served, or of the frozen weights under adapters."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.backend import default_engine, support
from ..catalog.device import Device
from ..catalog.store import Catalog
from ..feasibility.result import Estimate
from ..workload.serving import replicas
from .change import AUTO, Change, Source

FORMATS = {
    8: ("q8_0", "int8", "fp8"),
    6: ("q6_k",),
    5: ("q5_k_m",),
    4: ("q4_k_m", "awq-int4", "gptq-int4", "nf4"),
    3: ("q3_k_m",),
    2: ("q2_k",),
}
"""Formats of about so many bits, the most common first."""

LOSS = {
    8: ("8-bit weights: hardly any loss of quality", 1.0),
    6: ("6-bit weights: hardly any loss of quality", 1.0),
    5: ("5-bit weights: little loss of quality", 1.2),
    4: ("4-bit weights: some loss of quality", 1.5),
    3: ("3-bit weights: a clear loss of quality", 5.0),
    2: ("2-bit weights: a large loss of quality", 7.0),
}
"""What weights of so many bits give up, and how much that hurts."""

FEW_REQUESTS = 16
"""Requests at once that a server is limited to where its cache finds too little room."""

LARGE_SHARE = 0.95
"""Of a device, for a server that is alone there; what is beyond it runs short of memory after the start."""

PARTS = (0.75, 0.5, 0.25, 0.0)
"""Shares of the layers that stay on the device; a plan then finds the most that fit."""


def common_format(bits: int, device: Device, catalog: Catalog) -> str:
    """The first format of a width that the backend supports, with the engine that people run it on."""
    backend = catalog.backends[device.backend]

    def limits(quant: str) -> int:
        engine = catalog.tables.engine(default_engine(backend, device, "inference", quant))
        order = ("supported", "limited", "unsupported")
        cases = (support(backend, device, quant), engine.support(backend, device))
        return sum(order.index(case.status) for case in cases)

    return min(FORMATS[bits], key=limits)


def quant_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield formats of fewer bits than now, one a width."""
    scenario = estimate.scenario
    if scenario.task != "inference" or scenario.stored is not None:
        return
    if scenario.said("quant") and estimate.verdict.software == "unsupported":
        yield Change({"quant": AUTO}, f"not {scenario.quant}, but the weights as published", 1)
    formats = scenario.tables.quantization
    now = formats.encoded_bits(scenario.quant)[0]
    for bits in FORMATS:
        quant = common_format(bits, scenario.device, catalog)
        if formats.encoded_bits(quant)[0] < 0.98 * now:
            engine = {"engine": AUTO} if scenario.said("engine") else {}
            yield Change({"quant": quant, **engine}, *LOSS[bits])


def kv_dtype_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield a cache of 8 bits."""
    scenario = estimate.scenario
    if scenario.task == "inference" and scenario.kv_dtype in ("fp16", "bf16"):
        yield Change({"kv_dtype": "fp8"}, "an 8-bit cache: little loss of quality", 1)


def concurrency_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield fewer requests at once."""
    requests = estimate.scenario.concurrency
    while estimate.scenario.task == "inference" and requests > 1:
        requests //= 2
        yield Change({"concurrency": requests}, "fewer requests at once")


def server_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield what a server may be told where it finds too little room: to run fewer requests, to take more."""
    scenario = estimate.scenario
    share, most = scenario.gpu_memory_utilization, scenario.max_num_seqs
    if share is None or most is None:
        return
    fewer = max(FEW_REQUESTS, -(-scenario.concurrency // replicas(scenario)))
    if most > fewer:
        yield Change({"max_num_seqs": fewer}, f"at most {fewer} requests at once", 0.5)
    if share < LARGE_SHARE:
        yield Change({"gpu_memory_utilization": LARGE_SHARE}, "hardly anything stays free beside the server", 1)
        if most > fewer:
            both: dict[str, object] = {"max_num_seqs": fewer, "gpu_memory_utilization": LARGE_SHARE}
            yield Change(both, f"at most {fewer} requests at once, hardly anything free beside the server", 1.5)


def context_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield shorter contexts, down to 1024 tokens."""
    scenario = estimate.scenario
    context = scenario.context or 0
    while scenario.task == "inference" and context > 1024:
        context = max(1024, context // 2)
        prompt = {"prompt": min(scenario.prompt, context)} if scenario.said("prompt") else {}
        yield Change({"context": context, **prompt}, "a shorter context", 3)


def layers_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield fewer layers on the device, the rest in main memory."""
    scenario = estimate.scenario
    shared = scenario.device.kind in ("cpu", "unified", "apu")
    if scenario.task != "inference" or shared or scenario.num_devices > 1:
        return
    layers = scenario.model.architecture.layers
    most = layers if scenario.gpu_layers is None else scenario.gpu_layers
    engine = {} if scenario.engine_record.serving.partial else {"engine": "llama.cpp"}
    for part in PARTS:
        kept = int(layers * part)
        if kept < most:
            text = "the other layers run on the host: far slower"
            yield Change({"gpu_layers": kept, **engine}, text, host_pain(kept, layers))


def host_pain(kept: int, layers: int) -> float:
    """Say how much it hurts that only `kept` layers stay on the device."""
    return 10 - 8 * kept / layers


SERVING_SOURCES: tuple[tuple[str, Source], ...] = (
    ("max_num_seqs", server_changes),
    ("concurrency", concurrency_changes),
    ("kv_dtype", kv_dtype_changes),
    ("quant", quant_changes),
    ("context", context_changes),
    ("gpu_layers", layers_changes),
)
"""What can change in serving, the least painful first."""
