"""llama.cpp: the command line of its server."""

from __future__ import annotations

from ...catalog.joined import Joined
from ...record import replace
from ...scenario import Scenario
from ...workload.serving import longest_request
from ...workload.stages import stages_by_memory
from ..expressed.desks import CACHES, LLAMA_CPP, LLAMA_CPP_METHODS, NATIVE
from ..expressed.expressible import drafted_by, is_gguf
from ..nodes import nodes_of
from ..repositories import is_gguf_repository, model_name, repository
from . import serving
from .launcher import Launch, Launcher, Reader
from .names import model_notes, pair_notes
from .parsers import knows_options
from .shell import Variable, Word, command, flags

LOGICAL_BATCH = 2048
"""Its --batch-size, within which --ubatch-size stays."""


def file_type(scenario: Scenario) -> str:
    """Name the type of the GGUF file, as files are named: Q4_K_M, F16."""
    if scenario.quant == "none":
        return NATIVE[scenario.precision]
    return (
        scenario.tables.quantization.format(scenario.quant, scenario.engine_record.speaks)
        .id.removesuffix("-gguf")
        .upper()
    )


def source(scenario: Scenario) -> list[Word]:
    """The option that names the weights: a file, one of a repository in GGUF, or one to be made for a repository."""
    if is_gguf(scenario):
        return ["--model", model_name(scenario)]
    if is_gguf_repository(scenario):
        return ["-hf", f"{repository(scenario)}:{file_type(scenario)}"]
    return ["--model", f"{scenario.model.id}-{file_type(scenario)}.gguf"]


def _needs_towers(scenario: Scenario) -> bool:
    """Whether the model's encoder of images is a file to be named: a repository's own is found with the model."""
    return bool(scenario.images) and not is_gguf_repository(scenario)


def settings(scenario: Scenario) -> list[list[Word]]:
    """The options of llama-server behind the model."""
    slots = scenario.concurrency
    on_processor = scenario.device.backend == "cpu"
    several = scenario.num_devices > 1
    layers: Word = "all" if scenario.gpu_layers is None else scenario.gpu_layers
    fits_itself = scenario.spill is not None  # which it does where neither layers nor their split are said
    # Nobody asked for bf16: f16 is its default and as large; builds of 2025 run fused attention on a bf16 cache on the
    # processor (ggml-org/llama.cpp pull request 15261).
    unasked = scenario.kv_dtype == "bf16" and not scenario.was_given("kv_dtype")
    cache = "f16" if unasked else CACHES[scenario.kv_dtype]
    # what sees both sides of a text reads it whole
    whole = longest_request(scenario) if scenario.model.architecture.encoder else 0
    batch = max(scenario.ubatch or 0, whole) or None
    return flags(
        [
            ("--embeddings", not scenario.model.architecture.writes and scenario.model.reranker is None),
            ("--reranking", scenario.model.reranker is not None),
            ("--mmproj", f"{scenario.model.id}-mmproj-F16.gguf" if _needs_towers(scenario) else None),
            *speculation(scenario),
            ("--ctx-size", (scenario.context or 1) * slots),
            ("--parallel", slots),
            ("--no-kv-unified", slots > 1),
            ("--n-gpu-layers", 0 if on_processor else None if fits_itself else layers),
            ("--n-cpu-moe", scenario.n_cpu_moe or None),
            ("--fit", "on" if fits_itself else "off"),
            ("--flash-attn", "on" if scenario.attention == "flash" else "off"),
            ("--batch-size", batch if (batch or 0) > LOGICAL_BATCH else None),
            ("--ubatch-size", batch if scenario.was_given("ubatch") or batch != scenario.ubatch else None),
            ("--cache-type-k", cache),
            ("--cache-type-v", cache),
            ("--split-mode", ("row" if scenario.tp > 1 else "layer") if several and not on_processor else None),
            ("--numa", "distribute" if several and on_processor else None),
            ("--tensor-split", ",".join(str(layers) for layers in dealt_layers(scenario)) or None),
            ("--rpc", Variable("RPC_SERVERS") if nodes_of(scenario).several else None),
        ]
    )


def speculation(scenario: Scenario) -> list[tuple[str, Word | None]]:
    """The options of what drafts tokens ahead; its layers lie on the device where the model's do."""
    kind = drafted_by(scenario)
    if kind is None:
        return []
    file = draft_file(scenario)
    away = scenario.device.backend == "cpu"
    return [
        ("--spec-type", LLAMA_CPP_METHODS[kind]),
        ("--model-draft", file),
        ("--gpu-layers-draft", None if file is None else 0 if away else "all"),
        ("--spec-draft-n-max", scenario.drafted),
    ]


def draft_file(scenario: Scenario) -> str | None:
    """The file of what drafts: of a model as it is published, else in 16 bits; None where the model's own does."""
    model = scenario.draft_model
    if model is None:
        return f"{serving.HEAD}.gguf" if scenario.draft == "eagle" else None
    kind = replace(scenario, quant=model.published_quant or "none")
    return f"{model.id}-{file_type(kind)}.gguf"


def dealt_layers(scenario: Scenario) -> list[int]:
    """The layers on each of unequal devices, the head as one more; nothing of equal ones, or where the engine deals."""
    if not isinstance(scenario.device, Joined) or scenario.spill is not None:
        return []
    layers = scenario.model.architecture.layers
    kept = layers if scenario.gpu_layers is None else min(layers, scenario.gpu_layers)
    head = int(kept == layers)
    return [stage.layers + head * stage.heads for stage in stages_by_memory(kept, scenario.device.split, head)]


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Say where the file comes from and what the command cannot hold."""
    texts: list[str] = []
    repo = repository(scenario)
    if not (is_gguf(scenario) or is_gguf_repository(scenario)):
        where = f" of {repo}" if repo else ""
        kind = file_type(scenario)
        texts.append(
            f"convert the weights{where} to {kind} (convert_hf_to_gguf.py, llama-quantize), or download such a file"
        )
        texts += model_notes(scenario)
    if _needs_towers(scenario):
        texts.append("--mmproj is the encoder of images, a file of its own (convert_hf_to_gguf.py --mmproj)")
    if scenario.prompt:
        texts.append(f"the prompt of {scenario.prompt} tokens is a matter of the requests")
    if scenario.draft_model is not None:
        texts.append(f"convert {serving.weights_of(scenario)} to {draft_file(scenario)} too")
    texts += serving.draft_notes(scenario)
    if dealt_layers(scenario):
        assert isinstance(scenario.device, Joined)
        order = ", ".join(part.name for part in scenario.device.parts)
        texts.append(
            f"--tensor-split counts layers in the order in which llama-server --list-devices names the cards: {order}"
        )
    texts += pair_notes(scenario, "/rerank takes a query and its documents")
    nodes = nodes_of(scenario)
    if nodes.several:
        texts.append(
            f"start rpc-server on the other {nodes.count - 1} machines; RPC_SERVERS is their host:port, with commas"
        )
    return tuple(texts)


def write(scenario: Scenario) -> Launch:
    """Write the command; llama.cpp needs no file but the weights."""
    return Launch((), command(["llama-server"], source(scenario), *settings(scenario)), notes(scenario))


LAUNCHER = Launcher(
    expressed=LLAMA_CPP,
    name="llama.cpp",
    release="llama.cpp of 2026, from ggml-org/llama.cpp or a package manager",
    install=(),
    write=write,
    reader=Reader("llama.cpp", knows_options("{0}", "--help")),
)
