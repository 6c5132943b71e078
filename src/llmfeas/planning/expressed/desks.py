"""What programs that people run at their desks can express: llama.cpp, Ollama, mlx-lm."""

from __future__ import annotations

from ...catalog.device import is_mixed
from ...options import BLOCK_CACHES
from ...scenario import Scenario
from .expressible import ONE_COPY, Expressible, Objection

CACHES = {"fp16": "f16", "bf16": "bf16", **{each: each for each in BLOCK_CACHES}}
"""Types of llama.cpp's cache."""
NATIVE = {"bf16": "BF16", "fp16": "F16", "fp32": "F32", "tf32": "F32"}
LLAMA_CPP_METHODS = {"model": "draft-simple", "mtp": "draft-mtp", "eagle": "draft-eagle3"}
"""What drafts in its words since May 2026 (ggml-org/llama.cpp pull request 22964, which removed --draft-max)."""


def _llama_cpp(scenario: Scenario) -> Objection | None:
    """Object to what llama.cpp has no word for."""
    if scenario.tp > 1 and scenario.pp > 1:
        return Objection("tp", "it splits by rows or by layers, not both", instead=1)
    if scenario.num_devices > scenario.tp * scenario.pp:
        return ONE_COPY
    return None


LLAMA_CPP = Expressible(
    id="llama.cpp",
    tasks=("inference",),
    backends=frozenset({"cuda", "rocm", "metal", "xpu", "cpu"}),
    choices={"precision": tuple(NATIVE), "kv_dtype": tuple(CACHES), "offload": ("none",)},
    splits=frozenset({"num_devices", "tp", "pp"}),
    reads_gguf=True,
    drafts=frozenset(LLAMA_CPP_METHODS),
    objection=_llama_cpp,
)

OLLAMA_CACHES = {"fp16": "f16", "bf16": "f16", "int8": "q8_0"}
"""Types of Ollama's cache; nobody asked for bf16, and f16 is as large."""


def _ollama(scenario: Scenario) -> Objection | None:
    """Object to what Ollama has no word for."""
    if scenario.n_cpu_moe and not scenario.places_experts:
        return Objection(
            "n_cpu_moe", "it has no word for experts on the host, which llama-server places by itself", instead=0
        )
    if scenario.tp > 1:
        return Objection("tp", "it splits by layers", instead=1)
    if scenario.model_path is not None:
        from ..repositories import model_name

        if not model_name(scenario).isprintable() or " " in model_name(scenario):
            return Objection("model", "its path holds spaces")
    return _llama_cpp(scenario)


OLLAMA = Expressible(
    id="ollama",
    tasks=("inference",),
    backends=frozenset({"cuda", "rocm", "metal", "cpu"}),
    choices={"precision": tuple(NATIVE), "kv_dtype": tuple(OLLAMA_CACHES), "offload": ("none",)},
    splits=frozenset({"num_devices", "pp"}),
    reads_gguf=True,
    objection=_ollama,
)

MLX_OPTIMIZERS = {"adamw": "adamw", "adafactor": "adafactor", "sgd": "sgd", "muon": "muon"}
MLX_DTYPES = {
    "fp32": "float32",
    "bf16": "bfloat16",
    "bf16-mixed": "bfloat16",
    "fp16": "float16",
    "fp16-mixed": "float16",
}


def mlx_format(scenario: Scenario) -> str | None:
    """The one of MLX's own formats that stands for it: `4bit`, `mxfp4`; None for none, empty: it has no such."""
    if scenario.quant == "nf4":
        return "4bit"
    if scenario.quant == "none":
        return None
    from ..repositories import holds_format

    if holds_format(scenario):
        return None
    found = scenario.tables.quantization.format(scenario.quant, "mlx")
    return found.id.removeprefix("mlx-") if found.kind == "mlx" else ""


def _mlx(scenario: Scenario) -> Objection | None:
    """Object to what MLX has no word for."""
    if mlx_format(scenario) == "":
        return Objection("quant", "MLX has formats of its own")
    return _mlx_training(scenario) if scenario.is_training else _mlx_serving(scenario)


def _mlx_training(scenario: Scenario) -> Objection | None:
    architecture = scenario.model.architecture
    separate = not architecture.fused_qkv and architecture.positions == "rope"
    if scenario.trains_adapters and scenario.lora_targets == "attention" and not separate:
        return Objection("lora_targets", "mlx-lm wants the names of the matrices, which differ in this model")
    if scenario.num_devices > 1 and scenario.zero:
        return Objection("zero", "MLX keeps the whole model on each machine", instead=0)
    if scenario.method == "finetune" and is_mixed(scenario.precision):
        pure = scenario.precision.removesuffix("-mixed")
        return Objection("precision", "MLX keeps no fp32 weights beside the 16-bit ones", instead=pure)
    for name in ("tp", "pp"):
        if getattr(scenario, name) > 1:
            return Objection(name, "it trains with whole copies of the model", instead=1)
    return None


def _mlx_serving(scenario: Scenario) -> Objection | None:
    if scenario.tp > 1 and scenario.pp > 1:
        return Objection("tp", "its server divides by tensors or by layers, not both", instead=1)
    if scenario.num_devices > scenario.tp * scenario.pp:
        return ONE_COPY
    if scenario.draft is not None and scenario.num_devices > 1:
        return Objection("draft", "it drafts tokens on one machine only")
    if (scenario.kv_dtype == "int8" or scenario.draft is not None) and scenario.concurrency > 1:
        alone = "with a cache in 8 bits" if scenario.draft is None else "with what drafts tokens"
        return Objection("concurrency", f"{alone} its server answers one request at a time")
    return None


MLX_LM = Expressible(
    id="mlx-lm",
    tasks=("finetune", "lora", "qlora", "inference"),
    backends=frozenset({"metal", "cuda", "cpu"}),
    choices={
        "precision": tuple(MLX_DTYPES),
        "optimizer": tuple(MLX_OPTIMIZERS),
        "checkpointing": ("none", "full"),
        "attention": ("flash",),
        "dropout": (None, 0, 0.0),
        "offload": ("none",),
        "kv_dtype": ("fp16", "bf16", "int8"),
        "gpu_layers": (None,),
        "n_cpu_moe": (None,),
    },
    splits=frozenset({"num_devices", "tp", "pp"}),
    drafts=frozenset({"model"}),
    objection=_mlx,
)

EXPRESSED = {each.id: each for each in (LLAMA_CPP, OLLAMA, MLX_LM)}
