"""TensorRT-LLM: its server, with a YAML of its settings."""

from __future__ import annotations

from ...scenario import Scenario
from ...workload.serving import peers
from ..expressed.expressible import drafted_by
from ..expressed.servers import (
    TENSORRT_CACHES,
    TENSORRT_DTYPES,
    TENSORRT_IN_CHECKPOINT,
    TENSORRT_LLM,
    TENSORRT_METHODS,
)
from ..repositories import model_name
from . import serving
from .launcher import File, Launch, Launcher, Reader
from .parsers import knows_options
from .serving import longest_served
from .shell import command
from .text import as_yaml
from .vllm import weights_notes

CONFIG = "tensorrt_llm.yaml"


def config(scenario: Scenario) -> dict[str, object]:
    """The settings of its LLM class."""
    cache: dict[str, object] = {"dtype": TENSORRT_CACHES[scenario.kv_dtype]}
    if scenario.gpu_memory_utilization is not None:
        cache["free_gpu_memory_fraction"] = scenario.gpu_memory_utilization
    settings: dict[str, object] = {
        "backend": "pytorch",
        "dtype": TENSORRT_DTYPES[scenario.precision],
        "tensor_parallel_size": scenario.tp * peers(scenario),
        "pipeline_parallel_size": scenario.pp,
        "max_seq_len": longest_served(scenario),
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


def speculation(scenario: Scenario) -> dict[str, object]:
    """What drafts tokens ahead; a model of its own runs without the overlap of steps, and MTP counts its layers."""
    kind = drafted_by(scenario)
    if kind is None:
        return {}
    found: dict[str, object] = {"decoding_type": TENSORRT_METHODS[kind], "max_draft_len": scenario.drafted}
    if kind == "mtp":
        return {"speculative_config": {**found, "num_nextn_predict_layers": scenario.drafted}}
    alone = {"disable_overlap_scheduler": True} if kind == "model" else {}
    return {"speculative_config": {**found, "speculative_model_dir": serving.weights_of(scenario)}, **alone}


def write(scenario: Scenario) -> Launch:
    """Write its settings and the command."""
    line = command(["trtllm-serve", "serve", model_name(scenario), "--config", CONFIG])
    return Launch(
        (File(CONFIG, as_yaml(config(scenario))),), line, tuple(weights_notes(scenario, TENSORRT_IN_CHECKPOINT))
    )


LAUNCHER = Launcher(
    expressed=TENSORRT_LLM,
    name="TensorRT-LLM",
    release="TensorRT-LLM 1.2 (before it: --extra_llm_api_options in place of --config)",
    install=("tensorrt-llm",),
    write=write,
    reader=Reader("tensorrt-llm", knows_options("trtllm-serve", "serve", "--help")),
)
