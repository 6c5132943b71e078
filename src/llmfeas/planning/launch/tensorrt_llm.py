"""TensorRT-LLM: its server, with a YAML of its settings."""

from __future__ import annotations

from ...scenario import Scenario
from ...workload.serving import longest_request, peers
from . import drafts
from .launcher import ONE_COPY, WHOLE, File, Launch, Launcher, Objection, Reader
from .names import model_name
from .reading import knows_options
from .shell import command, nodes_of
from .text import as_yaml
from .vllm import ep_objection, replicas, weights_notes

CONFIG = "tensorrt_llm.yaml"
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
IN_CHECKPOINT = ("fp8", "nvfp4", "mxfp4", "awq-int4", "gptq-int4", "w8a8-int8")
"""Formats that are a property of published weights (ModelOpt's, for example)."""
CACHES = {"bf16": "auto", "fp16": "auto", "fp8": "fp8"}


def config(scenario: Scenario) -> dict[str, object]:
    """The settings of its LLM class."""
    cache: dict[str, object] = {"dtype": CACHES[scenario.kv_dtype]}
    if scenario.gpu_memory_utilization is not None:
        cache["free_gpu_memory_fraction"] = scenario.gpu_memory_utilization
    settings: dict[str, object] = {
        "backend": "pytorch",
        "dtype": DTYPES[scenario.precision],
        "tensor_parallel_size": scenario.tp * peers(scenario),
        "pipeline_parallel_size": scenario.pp,
        "max_seq_len": longest_request(scenario),
        "max_batch_size": scenario.max_num_seqs or scenario.concurrency,
        "kv_cache_config": cache,
    }
    if scenario.max_num_batched_tokens:
        settings["max_num_tokens"] = scenario.max_num_batched_tokens
    if scenario.ep > 1:
        settings["moe_expert_parallel_size"] = scenario.ep
    if peers(scenario) > 1:
        settings["enable_attention_dp"] = True
    settings |= speculation(scenario)
    if scenario.enforce_eager:
        settings["cuda_graph_config"] = None
    return settings


METHODS = {"model": "DraftTarget", "mtp": "MTP", "eagle": "Eagle3"}
"""What drafts in its words (TensorRT-LLM, docs/source/features/speculative-decoding.md)."""


def speculation(scenario: Scenario) -> dict[str, object]:
    """What drafts tokens ahead; a model of its own runs without the overlap of steps, and MTP counts its layers."""
    kind = drafts.kind_of(scenario)
    if kind is None:
        return {}
    found: dict[str, object] = {"decoding_type": METHODS[kind], "max_draft_len": scenario.drafted}
    if kind == "mtp":
        return {"speculative_config": {**found, "num_nextn_predict_layers": scenario.drafted}}
    alone = {"disable_overlap_scheduler": True} if kind == "model" else {}
    return {"speculative_config": {**found, "speculative_model_dir": drafts.weights_of(scenario)}, **alone}


def objection(scenario: Scenario) -> Objection | None:
    """Object to what one server has no word for."""
    if nodes_of(scenario).several:
        return Objection("num_devices", "on several machines it runs under MPI, which is set up apart from it")
    shared = peers(scenario)
    if shared > 1 and scenario.tp > 1:
        return Objection("tp", "beside shared experts each device attends by itself", instead=1)
    if replicas(scenario) > shared:
        return ONE_COPY
    return ep_objection(scenario)


def write(scenario: Scenario) -> Launch:
    """Write its settings and the command."""
    line = command(["trtllm-serve", "serve", model_name(scenario), "--config", CONFIG])
    return Launch((File(CONFIG, as_yaml(config(scenario))),), line, tuple(weights_notes(scenario, IN_CHECKPOINT)))


LAUNCHER = Launcher(
    id="tensorrt-llm",
    name="TensorRT-LLM",
    release="TensorRT-LLM 1.2 (before it: --extra_llm_api_options in place of --config)",
    install=("tensorrt-llm",),
    tasks=("inference",),
    backends=frozenset({"cuda"}),
    choices={
        "precision": tuple(DTYPES),
        "quant": ("none", *IN_CHECKPOINT),
        "attention": ("flash",),
        "kv_dtype": tuple(CACHES),
        **WHOLE,
    },
    splits=frozenset({"num_devices", "tp", "pp", "ep"}),
    drafts=frozenset(METHODS),
    objection=objection,
    write=write,
    reader=Reader("tensorrt-llm", knows_options("trtllm-serve", "serve", "--help")),
)
