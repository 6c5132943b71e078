"""What servers of many requests can express, and those that read texts alone."""

from __future__ import annotations

from ...scenario import Scenario
from ...workload.serving import peers, replicas
from ..nodes import nodes_of
from .expressible import (
    DTYPES,
    ONE_COPY,
    PAIRS_BY_LABEL,
    READS_ALONE,
    WHOLE,
    Expressible,
    Objection,
    drafted_by,
)

IN_CHECKPOINT = (
    *("awq-int4", "gptq-int4", "gptq-int8", "autoround-int4", "w4a16", "mxfp4", "mxfp8", "nvfp4", "w8a8-int8"),
)
"""Formats that are a property of the published weights; vLLM and SGLang find them there."""
APART = Objection("disaggregate", "on several machines its servers are started apart from each other")


def server_copies(scenario: Scenario) -> int:
    """Count the copies of the model that one server has side by side: all of them, one in pools."""
    return replicas(scenario) if scenario.disaggregate is None else 1


def _precision(scenario: Scenario) -> Objection | None:
    """Object to fp32 where kernels unpack weights."""
    if scenario.quant in ("awq-int4", "gptq-int4", "gptq-int8") and scenario.precision == "fp32":
        return Objection("precision", f"its kernels for {scenario.quant} compute in 16 bits")
    return None


def _experts(scenario: Scenario) -> Objection | None:
    """Object to dividing experts otherwise than tensors are, or over all copies that one server has."""
    if scenario.ep in (1, scenario.tp) or (
        peers(scenario) > 1 and scenario.ep == scenario.tp * server_copies(scenario)
    ):
        return None
    return Objection("ep", f"it divides experts over the {scenario.tp} devices of tensor parallel", instead=1)


VLLM_ON_LOAD = {"fp8": "fp8", "int8": "int8_per_channel_weight_only"}
"""Formats into which vLLM converts 16-bit weights as it loads them."""
VLLM_CACHES = {"fp16": "float16", "bf16": "bfloat16", "fp8": "fp8", "int8": "int8_per_token_head"}
VLLM_METHODS = {"model": "draft_model", "mtp": "mtp", "eagle": "eagle3"}
"""What drafts in its words (vllm 0.26, config/speculative.py)."""


def _vllm(scenario: Scenario) -> Objection | None:
    """Object to what vLLM ties together."""
    if scenario.device.backend == "tpu" and nodes_of(scenario).several:
        return Objection("num_devices", "on TPUs of several hosts it runs under Ray, which is set up apart from it")
    if scenario.disaggregate is not None and nodes_of(scenario).several:
        return APART
    group = scenario.tp * server_copies(scenario)
    if scenario.ep > 1 and scenario.ep != group:
        return Objection("ep", f"it divides experts over tp x replicas = {group} devices or not at all", instead=1)
    return _precision(scenario)


VLLM = Expressible(
    id="vllm",
    tasks=("inference",),
    backends=frozenset({"cuda", "rocm", "tpu", "xpu", "cpu", "hpu"}),
    choices={
        "precision": tuple(DTYPES),
        "quant": ("none", *IN_CHECKPOINT, *VLLM_ON_LOAD),
        "attention": ("flash",),
        "kv_dtype": tuple(VLLM_CACHES),
        "offload": ("none", "all"),
        "gpu_layers": (None,),
        "n_cpu_moe": (None,),
    },
    splits=frozenset({"num_devices", "tp", "pp", "ep"}),
    drafts=frozenset(VLLM_METHODS),
    disaggregates=frozenset({"cuda"}),
    objection=_vllm,
)

SGLANG_ON_LOAD = {"fp8": "fp8"}
"""Formats into which SGLang converts 16-bit weights as it loads them."""
SGLANG_CACHES = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
"""Types of SGLang's cache by their names there; another one is that of the computation."""
SGLANG_METHODS = {"model": "STANDALONE", "mtp": "EAGLE", "eagle": "EAGLE3"}
"""What drafts in its words (sglang 0.5.10, srt/server_args.py); a model's own layers run as EAGLE's."""


def _sglang(scenario: Scenario) -> Objection | None:
    """Object to what SGLang ties together."""
    if scenario.disaggregate is not None and nodes_of(scenario).several:
        return APART
    if scenario.draft is not None and scenario.pp > 1:
        return Objection("pp", "it drafts tokens on one stage only", instead=1)
    if peers(scenario) > 1 and drafted_by(scenario) == "model":
        return Objection("draft", "a model that drafts does not run where ranks attend apart; mtp and eagle do")
    found = _experts(scenario) or _precision(scenario)
    if found is None and scenario.kv_dtype not in (*SGLANG_CACHES, scenario.precision):
        return Objection("kv_dtype", "its 16-bit cache is bf16, or of the type of the computation", instead="bf16")
    return found


SGLANG = Expressible(
    id="sglang",
    tasks=("inference",),
    backends=frozenset({"cuda", "rocm", "tpu", "xpu"}),
    choices={
        "precision": tuple(DTYPES),
        "quant": ("none", *IN_CHECKPOINT, *SGLANG_ON_LOAD),
        "attention": ("flash",),
        "kv_dtype": ("fp16", *SGLANG_CACHES),
        **WHOLE,
    },
    splits=frozenset({"num_devices", "tp", "pp", "ep"}),
    drafts=frozenset(SGLANG_METHODS),
    disaggregates=frozenset({"cuda"}),
    objection=_sglang,
)

KTRANSFORMERS_METHODS = {"none": "BF16", "fp8": "FP8"}
"""Formats of experts on the processor by what KTransformers calls them; GGUF files run by llamafile's kernels."""


def ktransformers_method(scenario: Scenario) -> str | None:
    """KTransformers' name of the experts' format; None where it has none."""
    container = scenario.tables.quantization.format(scenario.quant, scenario.engine).container
    return KTRANSFORMERS_METHODS.get(scenario.quant) or ("LLAMAFILE" if container == "gguf" else None)


def _ktransformers(scenario: Scenario) -> Objection | None:
    """Object to models without experts, and to formats that its kernels do not have."""
    if scenario.model.architecture.experts is None:
        return Objection("model", "it is for mixtures of experts")
    if ktransformers_method(scenario) is None:
        return Objection("quant", "its kernels have no such format")
    return None


KTRANSFORMERS = Expressible(
    id="ktransformers",
    tasks=("inference",),
    backends=frozenset({"cuda"}),
    choices={
        "precision": ("bf16", "fp16"),
        "attention": ("flash",),
        "kv_dtype": tuple(SGLANG_CACHES),
        "offload": ("none",),
        "gpu_layers": (None,),
    },
    splits=frozenset({"num_devices", "tp"}),
    reads_gguf=True,
    objection=_ktransformers,
)

TENSORRT_DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
TENSORRT_IN_CHECKPOINT = ("fp8", "nvfp4", "mxfp4", "awq-int4", "gptq-int4", "w8a8-int8")
"""Formats that are a property of published weights (ModelOpt's, for example)."""
TENSORRT_CACHES = {"bf16": "auto", "fp16": "auto", "fp8": "fp8"}
TENSORRT_METHODS = {"model": "DraftTarget", "mtp": "MTP", "eagle": "Eagle3"}
"""What drafts in its words (TensorRT-LLM, docs/source/features/speculative-decoding.md)."""


def _tensorrt(scenario: Scenario) -> Objection | None:
    """Object to what one server of TensorRT-LLM has no word for."""
    if nodes_of(scenario).several:
        return Objection("num_devices", "on several machines it runs under MPI, which is set up apart from it")
    shared = peers(scenario)
    if shared > 1 and scenario.tp > 1:
        return Objection("tp", "beside shared experts each device attends by itself", instead=1)
    if server_copies(scenario) > shared:
        return ONE_COPY
    return _experts(scenario)


TENSORRT_LLM = Expressible(
    id="tensorrt-llm",
    tasks=("inference",),
    backends=frozenset({"cuda"}),
    choices={
        "precision": tuple(TENSORRT_DTYPES),
        "quant": ("none", *TENSORRT_IN_CHECKPOINT),
        "attention": ("flash",),
        "kv_dtype": tuple(TENSORRT_CACHES),
        **WHOLE,
    },
    splits=frozenset({"num_devices", "tp", "pp", "ep"}),
    drafts=frozenset(TENSORRT_METHODS),
    objection=_tensorrt,
)

TEI_DTYPES = {"fp16": "float16", "fp32": "float32"}


def _text_embeddings_inference(scenario: Scenario) -> Objection | None:
    """Object to what is no reader of texts, to several devices, and to types that it has not."""
    if scenario.model.architecture.writes:
        return READS_ALONE
    if scenario.model.reranker is not None and not scenario.model.architecture.encoder:
        return PAIRS_BY_LABEL
    if scenario.num_devices > 1:
        return ONE_COPY
    if scenario.precision not in TEI_DTYPES:
        return Objection("precision", f"it has {' and '.join(TEI_DTYPES.values())} alone", instead="fp16")
    return None


TEXT_EMBEDDINGS_INFERENCE = Expressible(
    id="text-embeddings-inference",
    tasks=("inference",),
    backends=frozenset({"cuda", "cpu", "metal"}),
    choices={"quant": ("none",), **WHOLE},
    splits=frozenset({"num_devices"}),
    objection=_text_embeddings_inference,
)

INFINITY_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
INFINITY_DEVICES = {"cuda": "cuda", "rocm": "cuda", "metal": "mps", "cpu": "cpu"}


def _infinity(scenario: Scenario) -> Objection | None:
    """Object to what is no reader of texts."""
    if scenario.model.architecture.writes:
        return READS_ALONE
    decodes = scenario.model.reranker is not None and not scenario.model.architecture.encoder
    return PAIRS_BY_LABEL if decodes else None


INFINITY = Expressible(
    id="infinity",
    tasks=("inference",),
    backends=frozenset(INFINITY_DEVICES),
    choices={"precision": tuple(INFINITY_DTYPES), "quant": ("none", "int8"), **WHOLE},
    splits=frozenset({"num_devices"}),
    objection=_infinity,
)

EXPRESSED = {each.id: each for each in (VLLM, SGLANG, KTRANSFORMERS, TENSORRT_LLM, TEXT_EMBEDDINGS_INFERENCE, INFINITY)}
