"""SGLang: the command line of its server."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from ...scenario import Scenario
from ...workload.serving import longest_request, peers
from .launcher import WHOLE, Launch, Launcher, Objection, Reader
from .names import holds_format, model_name, pair_notes
from .reading import arguments, module
from .shell import PORT, Variable, Word, command, flags, nodes_note, nodes_of
from .vllm import DTYPES, IN_CHECKPOINT, ep_objection, precision_objection, replicas, weights_notes

ON_LOAD = {"fp8": "fp8"}
"""Formats into which SGLang converts 16-bit weights as it loads them."""
CACHES = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
"""Types of the cache by their names there; another one is that of the computation."""


def settings(scenario: Scenario) -> list[list[Word]]:
    """The options of `python -m sglang.launch_server` behind the model's name."""
    published, tokens = holds_format(scenario), scenario.max_num_batched_tokens
    nodes, copies, shared = nodes_of(scenario), replicas(scenario), peers(scenario)
    same_cache = scenario.kv_dtype == scenario.precision
    return flags(
        [
            ("--is-embedding", not scenario.model.architecture.writes and not _by_tokens(scenario)),
            ("--disable-radix-cache", _crosses(scenario)),
            ("--attention-backend", "triton" if _crosses(scenario) else None),
            ("--dtype", DTYPES[scenario.precision]),
            ("--quantization", None if published else ON_LOAD.get(scenario.quant)),
            ("--kv-cache-dtype", "auto" if same_cache else CACHES.get(scenario.kv_dtype)),
            ("--context-length", longest_request(scenario)),
            ("--mem-fraction-static", scenario.gpu_memory_utilization),
            ("--max-running-requests", scenario.max_num_seqs and scenario.max_num_seqs * shared),
            ("--chunked-prefill-size", -1 if _crosses(scenario) else tokens and tokens * shared),  # it divides them
            ("--disable-cuda-graph", scenario.enforce_eager),
            ("--tp-size", scenario.tp * shared),
            ("--pp-size", scenario.pp if scenario.pp > 1 else None),
            ("--dp-size", copies if copies > 1 else None),
            ("--enable-dp-attention", shared > 1),
            ("--ep-size", scenario.ep if scenario.ep > 1 else None),
            ("--nnodes", nodes.count if nodes.several else None),
            ("--node-rank", Variable("NODE_RANK") if nodes.several else None),
            ("--dist-init-addr", Variable("MASTER_ADDR", f":{PORT}") if nodes.several else None),
        ]
    )


def _by_tokens(scenario: Scenario) -> bool:
    """Whether pairs are scored by tokens: it then runs as a model that writes (docs, rerank models)."""
    return scenario.model.reranker is not None and scenario.model.reranker.by == "tokens"


def _crosses(scenario: Scenario) -> bool:
    """Whether an encoder scores pairs, which has no cache to share."""
    return scenario.model.reranker is not None and scenario.model.architecture.encoder


def objection(scenario: Scenario) -> Objection | None:
    """Object to what SGLang ties together."""
    found = ep_objection(scenario) or precision_objection(scenario)
    if found is None and scenario.kv_dtype not in (*CACHES, scenario.precision):
        return Objection("kv_dtype", "its 16-bit cache is bf16, or of the type of the computation", instead="bf16")
    return found


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Say what the user has to provide."""
    pairs = pair_notes(scenario, "/v1/rerank takes a query and its documents", "examples/chat_template of SGLang")
    return (*weights_notes(scenario), *pairs, *nodes_note(nodes_of(scenario)))


def write(scenario: Scenario) -> Launch:
    """Write the command; SGLang needs no file."""
    server = ["python", "-m", "sglang.launch_server", "--model-path", model_name(scenario)]
    return Launch((), command(server, *settings(scenario)), notes(scenario))


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read the command; what it makes of the arguments would ask for its devices."""
    parser = ArgumentParser()
    module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    parser.parse_args(arguments(launch)[3:])


LAUNCHER = Launcher(
    id="sglang",
    name="SGLang",
    release="SGLang 0.5.10",
    install=("sglang",),
    tasks=("inference",),
    backends=frozenset({"cuda", "rocm", "tpu", "xpu"}),
    choices={
        "precision": tuple(DTYPES),
        "quant": ("none", *IN_CHECKPOINT, *ON_LOAD),
        "attention": ("flash",),
        "kv_dtype": ("fp16", *CACHES),
        **WHOLE,
    },
    splits=frozenset({"num_devices", "tp", "pp", "ep"}),
    objection=objection,
    write=write,
    reader=Reader("sglang", read),
)
