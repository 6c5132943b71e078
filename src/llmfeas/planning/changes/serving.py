"""Changes of how a model is served, or of the frozen weights under adapters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...catalog.backend import default_engine, support
from ...catalog.store import Catalog
from ...feasibility.load_verdict import is_followed
from ...feasibility.result import Estimate
from ...feasibility.verdict import SOFTWARE_ORDER
from ...memory.inference import pads_experts
from ...memory.rollouts import colocated_bytes
from ...scenario import Scenario
from ...settle.copies import shared_experts
from ...settle.valid_layout import tensor_parallel_sizes
from ...workload.serving import replicas, shares_memory
from .change import AUTO, Change, Source, change

FORMATS = {
    8: ("q8_0", "int8", "fp8", "w8a8-int8"),
    6: ("q6_k",),
    5: ("q5_k_m",),
    4: ("q4_k_m", "awq-int4", "gptq-int4", "nf4"),
    3: ("q3_k_m",),
    2: ("q2_k",),
}
"""Formats of about so many bits, where an engine has no usual ones of its own: the most common first."""

FEW_REQUESTS = 16
"""Requests at once that a server is limited to where its cache finds too little room."""

DESK_FORMAT = "q4_k_m"
"""Who runs this is who people run at a desk."""
FEW = 4
"""Of requests or tokens so many times fewer than what was asked are another question."""
LARGE_SHARE = 0.95
"""Of a device, for a server that is alone there; what is beyond it runs short of memory after the start."""

PARTS = (0.75, 0.5, 0.25, 0.0)
"""Shares of the layers that stay on the device; a plan then finds the most that fit."""


def width(scenario: Scenario, quant: str) -> int:
    """Bits of most weights in a format, as people name them: 4 for q4_k_m, 16 where nothing is quantized."""
    return int(scenario.tables.quantization.encoded_bits(quant)[0])


def common_format(bits: int, scenario: Scenario, catalog: Catalog) -> str:
    """The first usual format of a width that the backend supports: of the engine at hand, else of any.

    An engine of training stands for the one that people serve with on its device.
    """
    backend, device = catalog.backends[scenario.device.backend], scenario.device

    def limits(quant: str) -> int:
        engine = catalog.tables.engine(default_engine(backend, device, "inference", quant))
        cases = (support(backend, device, quant), engine.support(backend, device))
        return sum(SOFTWARE_ORDER.index(case.status) for case in cases)

    server = scenario.engine_record
    if "serving" not in server.does:
        server = catalog.tables.engine(default_engine(backend, device, "inference"))
    own = [quant for quant in server.serving.usual if width(scenario, quant) == bits]
    works = [quant for quant in own if support(backend, device, quant).status != "unsupported"]
    return (
        min(works, key=lambda quant: SOFTWARE_ORDER.index(support(backend, device, quant).status))
        if works
        else min(FORMATS[bits], key=limits)
    )


def quant_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield formats of fewer bits than now, one a width, that the engine at hand runs."""
    scenario = estimate.scenario
    if scenario.task != "inference" or scenario.stored is not None:
        return
    if scenario.was_given("quant") and estimate.verdict.software == "unsupported":
        text = f"not {scenario.quant}, but the weights as published"
        yield change(scenario, "format-published", {"quant": AUTO}, text)
    now = scenario.tables.quantization.encoded_bits(scenario.quant)[0]
    for bits, quant in _formats(scenario, catalog):
        if scenario.tables.quantization.encoded_bits(quant)[0] < 0.98 * now:
            yield change(scenario, f"format-{bits}", _run_by(scenario, quant, catalog))


def _formats(scenario: Scenario, catalog: Catalog) -> Iterator[tuple[int, str]]:
    """Yield the first format of each width that the engine reads, the widest first; of a server, without limits."""
    engine, formats, device = scenario.engine_record, scenario.tables.quantization, scenario.device
    backend = catalog.backends[device.backend]

    def limits(quant: str) -> int:
        return SOFTWARE_ORDER.index(engine.format_support(formats.format(quant, engine.speaks), device).status)

    for bits, common in FORMATS.items():
        usual = [quant for quant in engine.serving.usual if width(scenario, quant) == bits]
        able = [
            quant
            for quant in dict.fromkeys((*usual, *common))
            if (engine.reads(formats.format(quant, engine.speaks)) or not engine.formats)
            and support(backend, device, quant).status != "unsupported"
        ]
        best = min(able, key=limits, default=None)
        if best is not None and (engine.serving.automatic or limits(best) == 0):
            yield bits, best


def _run_by(scenario: Scenario, quant: str, catalog: Catalog) -> dict[str, object]:
    """The settings of a format under the engine at hand, which is named where people use another one for it."""
    backend, many = catalog.backends[scenario.device.backend], scenario.concurrency
    usual = default_engine(backend, scenario.device, "inference", quant, many)
    named = usual != scenario.engine and not scenario.was_given("engine")
    return {"quant": quant, **({"engine": scenario.engine} if named else {})}


def _serves_many(scenario: Scenario, catalog: Catalog) -> bool:
    """Whether so many users are why a server was taken: what runs at a desk is no way for them."""
    backend, many = catalog.backends[scenario.device.backend], scenario.concurrency
    usual = default_engine(backend, scenario.device, "inference", "none", many)
    return many > 1 and not catalog.tables.engine(usual).serving.automatic


def desk_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield what runs at a desk, by its name, where a server is too large for one, or for one user of one card."""
    scenario = estimate.scenario
    server = "serving" in scenario.engine_record.does and not scenario.engine_record.serving.automatic
    alone = scenario.num_devices == scenario.concurrency == 1 and scenario.rate is None
    if scenario.task == "inference" and _serves_many(scenario, catalog):
        return
    if scenario.task == "inference" and server and (alone or scenario.device.kind != "datacenter"):
        desk = default_engine(catalog.backends[scenario.device.backend], scenario.device, "inference", DESK_FORMAT)
        if catalog.tables.engine(desk).serving.automatic:
            text = f"{desk} instead of {scenario.engine}: smaller formats, far slower for many requests"
            yield change(scenario, "engine-usual", {"engine": desk}, text, more=2)


def kv_dtype_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield a cache of 8 bits."""
    scenario = estimate.scenario
    if scenario.task == "inference" and scenario.kv_dtype in ("fp16", "bf16"):
        eight = next((each for each in scenario.engine_record.serving.caches if each.startswith("q8")), "fp8")
        yield change(scenario, "cache-8-bit", {"kv_dtype": eight})


def concurrency_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield fewer requests at once."""
    requests = estimate.scenario.concurrency
    while estimate.scenario.task == "inference" and requests > 1:
        requests //= 2
        kind = "concurrency-few" if requests * FEW < estimate.scenario.concurrency else "concurrency"
        yield change(estimate.scenario, kind, {"concurrency": requests})


def server_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield what a server may be told where it finds too little room: to run fewer requests, to take more."""
    scenario = estimate.scenario
    share, most = scenario.gpu_memory_utilization, scenario.max_num_seqs
    if share is None or most is None:
        return
    fewer = max(FEW_REQUESTS, -(-scenario.concurrency // replicas(scenario)))
    if most > fewer:
        yield change(scenario, "server-requests", {"max_num_seqs": fewer})
    sure = None if estimate.serving is None else estimate.serving.sure_share
    if sure is not None and 0 < sure < share:
        text = "more stays free beside the server, for its communication and passes"
        yield change(scenario, "server-share", {"gpu_memory_utilization": sure}, text)
    if share < LARGE_SHARE:
        text = "hardly anything stays free beside the server"
        yield change(scenario, "server-share", {"gpu_memory_utilization": LARGE_SHARE}, text)
        if most > fewer:
            both: dict[str, object] = {"max_num_seqs": fewer, "gpu_memory_utilization": LARGE_SHARE}
            text = f"at most {fewer} requests at once, hardly anything free beside the server"
            yield change(scenario, "server-share", both, text, more=0.5)


def copies_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield the same devices as more copies of the model, the fewest first, where a load is not kept up with.

    Copies that share the requests get more done than one whose ranks wait for each other.
    """
    scenario = estimate.scenario
    if estimate.verdict.load not in ("missed", "overloaded") or scenario.was_given("pp"):
        return
    now, fewer = replicas(scenario), tensor_parallel_sizes(scenario.model.architecture, scenario.tp)
    for tp in [scenario.tp] if scenario.was_given("tp") else reversed(fewer):
        copies = scenario.num_devices // tp
        if copies > now and scenario.num_devices % tp == 0 and scenario.disaggregate is None:
            yield change(scenario, "layout", {"tp": tp, "pp": 1}, f"{copies} copies of the model on the same devices")


def experts_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield whole experts on each device, where kernels pad the parts that tensor parallelism cuts them into, or where
    copies with a cache of their own may share them.
    """
    scenario = estimate.scenario
    tp, experts = scenario.tp, scenario.model.architecture.experts
    shared = shared_experts(scenario, scenario.num_devices)
    if shared is not None and scenario.disaggregate is None and not scenario.was_given("tp"):
        text = "each device attends to requests of its own, with a cache of its own; all share the experts"
        yield change(scenario, "layout", shared, text)
    cut = experts is not None and tp > 1 == scenario.ep and experts.count % tp == 0
    if cut and pads_experts(scenario):
        text = "each device holds whole experts, which need no padding"
        yield change(scenario, "layout", {"ep": tp}, text)


def context_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield shorter contexts, down to 1024 tokens; none shorter than the requests that were described."""
    scenario = estimate.scenario
    context, least = scenario.context or 0, 1024
    if is_followed(scenario) or scenario.was_given("prompt"):
        least = max(least, scenario.prompt + (scenario.output or 0))
    while scenario.task == "inference" and context > least:
        context = max(least, context // 2)
        kind = "context-short" if context * FEW < (scenario.context or 0) else "context"
        yield change(scenario, kind, {"context": context})


def layers_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield fewer layers on the device, the rest in main memory."""
    scenario = estimate.scenario
    shared = shares_memory(scenario)  # on a Mac the processor may take what Metal's limit leaves
    if scenario.task != "inference" or shared or scenario.num_devices > 1:
        return
    layers = scenario.model.architecture.layers
    most = layers if scenario.gpu_layers is None else scenario.gpu_layers
    partial = scenario.engine_record.serving.partial
    if not partial and (scenario.device.kind == "datacenter" or _serves_many(scenario, catalog)):
        return
    for part in PARTS:
        kept = int(layers * part)
        if kept < most:
            yield layers_change(scenario, kept, {} if partial else {"engine": "llama.cpp"})


def layers_change(scenario: Scenario, kept: int, others: Mapping[str, object]) -> Change:
    """The change that leaves so many layers on the device; `others` is what it sets besides."""
    shared = scenario.device.backend == "metal"
    text = "the other layers run on the processor" if shared else "the other layers run on the host: far slower"
    if others.get("engine", scenario.engine) != scenario.engine:
        text = f"{others['engine']} instead of {scenario.engine}; {text}"
    hurt = host_pain(kept, scenario.model.architecture.layers)
    return change(scenario, "layers-on-host", {**others, "gpu_layers": kept}, text, more=hurt)


def host_pain(kept: int, layers: int) -> float:
    """Say how much more it hurts that only `kept` layers stay on the device than that a few do not."""
    return 8 * (1 - kept / layers)


SERVING_SOURCES: tuple[tuple[str, Source], ...] = (
    ("tp", copies_changes),
    ("max_num_seqs", server_changes),
    ("ep", experts_changes),
    ("concurrency", concurrency_changes),
    ("kv_dtype", kv_dtype_changes),
    ("quant", quant_changes),
    ("context", context_changes),
    ("gpu_layers", layers_changes),
    ("engine", desk_changes),
)
"""What can change in serving, the least painful first."""


def writer_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield a server that holds nothing while weights train, where one stays awake on their devices, and none."""
    scenario = estimate.scenario
    if scenario.sleep == "false":
        yield change(scenario, "server-sleeps", {"sleep": "true"})
    if colocated_bytes(scenario):
        yield change(scenario, "writes-itself", {"rollout_engine": "transformers"})
