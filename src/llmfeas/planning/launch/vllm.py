"""vLLM: the command line of its server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ...memory.peak import memory
from ...scenario import Scenario
from ...units import GIB
from ..expressed.expressible import DTYPES, drafted_by
from ..expressed.servers import (
    IN_CHECKPOINT,
    VLLM,
    VLLM_CACHES,
    VLLM_METHODS,
    VLLM_ON_LOAD,
    server_copies,
)
from ..nodes import nodes_of
from ..repositories import holds_format, model_name
from . import serving
from .launcher import Launch, Launcher, Reader
from .names import model_notes, pair_notes
from .parsers import commands, module
from .serving import longest_served
from .shell import Variable, Word, command, flags, nodes_note, started

TEMPLATES = "examples/pooling/score/template of vLLM"
"""Where the forms of pairs stand."""


def settings(scenario: Scenario) -> list[list[Word]]:
    """The options of `vllm serve` behind the model's name."""
    published = holds_format(scenario)
    nodes, copies = nodes_of(scenario), server_copies(scenario)
    offloaded = None
    if scenario.offload == "all":
        offloaded = round(memory(scenario).memory.weights_file_bytes / (scenario.tp * scenario.pp) / GIB + 0.5)
    same_cache = scenario.kv_dtype == scenario.precision
    reads = not scenario.model.architecture.writes
    return flags(
        [
            ("--runner", "pooling" if reads else None),
            ("--hf-overrides", _overrides(scenario)),
            ("--dtype", DTYPES[scenario.precision]),
            ("--quantization", None if published else VLLM_ON_LOAD.get(scenario.quant)),
            ("--kv-cache-dtype", "auto" if same_cache else VLLM_CACHES[scenario.kv_dtype]),
            ("--max-model-len", longest_served(scenario)),
            ("--gpu-memory-utilization", scenario.gpu_memory_utilization),
            ("--max-num-seqs", scenario.max_num_seqs or -(-scenario.concurrency // copies)),
            ("--max-num-batched-tokens", scenario.max_num_batched_tokens),
            ("--enforce-eager", scenario.enforce_eager),
            ("--tensor-parallel-size", scenario.tp),
            ("--pipeline-parallel-size", scenario.pp),
            ("--data-parallel-size", copies if copies > 1 else None),
            ("--enable-expert-parallel", scenario.ep > 1),
            ("--cpu-offload-gb", offloaded),
            ("--speculative-config", speculation(scenario)),
            ("--nnodes", nodes.count if nodes.several else None),
            ("--node-rank", Variable("NODE_RANK") if nodes.several else None),
            ("--master-addr", Variable("MASTER_ADDR") if nodes.several else None),
        ]
    )


def _overrides(scenario: Scenario) -> str | None:
    """The class that a model which scores pairs is served as, and the tokens whose rows of the vocabulary its labels
    are made of (docs/models/pooling_models/scoring.md)."""
    scored = scenario.model.reranker
    if scored is None or not (scored.served_as or scored.tokens):
        return None
    fields: dict[str, object] = {"architectures": [scored.served_as]} if scored.served_as else {}
    if scored.tokens:
        method = "from_2_way_softmax" if len(scored.tokens) > 1 else "no_post_processing"
        fields |= {"classifier_from_token": list(scored.tokens), "method": method}
    return json.dumps(fields)


def speculation(scenario: Scenario) -> str | None:
    """What drafts tokens ahead, as its JSON; None where nothing does."""
    kind, draft = drafted_by(scenario), serving.weights_of(scenario)
    if kind is None:
        return None
    model = {} if draft is None else {"model": draft}
    return json.dumps({"method": VLLM_METHODS[kind], **model, "num_speculative_tokens": scenario.drafted})


def weights_notes(scenario: Scenario, stored: Sequence[str] = IN_CHECKPOINT) -> list[str]:
    """Say which weights and requests the user has to bring; `stored`: formats that the weights must have already."""
    if scenario.quant in stored and not holds_format(scenario):
        texts = [f"name a version of the model whose weights are in {scenario.quant}"]
    else:
        texts = [*model_notes(scenario)]
    if scenario.prompt:
        texts.append(f"the prompt of {scenario.prompt} tokens is a matter of the requests")
    return [*texts, *serving.draft_notes(scenario)]


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Say what the user has to provide."""
    pairs = pair_notes(scenario, "/score and /rerank take a query and its documents", TEMPLATES)
    return (*weights_notes(scenario), *pairs, *nodes_note(nodes_of(scenario), "; on all but the first add --headless"))


TRANSFER = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
"""How caches go from a server that reads to one that writes (vllm, docs/features/nixl_connector_usage.md)."""
PORTS, SIDE_CHANNEL, PROXY = 8100, 5600, 8000


def disaggregated(scenario: Scenario) -> Launch:
    """Write a server for each copy of the model, and the proxy before them."""
    lines, known = [], list(serving.servers(scenario))
    for server in known:
        channel = f"VLLM_NIXL_SIDE_CHANNEL_PORT={SIDE_CHANNEL + server.index}"
        options: list[list[Word]] = [
            *settings(server.scenario),
            ["--port", PORTS + server.index],
            ["--kv-transfer-config", json.dumps(TRANSFER)],
        ]
        program = [f"CUDA_VISIBLE_DEVICES={server.devices}", channel, "vllm", "serve", model_name(scenario)]
        lines.append(started(command(program, *options)))
    proxy: list[list[Word]] = [["--port", PROXY]]
    for name, reads in (("prefiller", True), ("decoder", False)):
        ports = [PORTS + server.index for server in known if server.reads is reads]
        proxy += [[f"--{name}-hosts", *[serving.HERE] * len(ports)], [f"--{name}-ports", *ports]]
    lines.append(command(["python", "toy_proxy_server.py"], *proxy))
    where = (
        "toy_proxy_server.py is in vLLM's repository (tests/v1/kv_connector/nixl_integration): copy it beside this; "
        f"requests go to port {PROXY}"
    )
    return Launch((), "\n".join(lines), (*notes(scenario), where))


def needs(scenario: Scenario) -> tuple[str, ...]:
    """What carries caches from one server to another."""
    return ("nixl",) if scenario.disaggregate is not None else ()


def write(scenario: Scenario) -> Launch:
    """Write the command; vLLM needs no file."""
    if scenario.disaggregate is not None:
        return disaggregated(scenario)
    line = command(["vllm", "serve", model_name(scenario)], *settings(scenario))
    return Launch((), line, notes(scenario))


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read the command, on a machine without its devices as for a processor."""
    platforms = module("vllm.platforms")
    if not platforms.current_platform.device_type:
        platforms._current_platform = platforms.current_platform = module("vllm.platforms.cpu").CpuPlatform()
    options = module("vllm.entrypoints.common.cli_args")
    parser = options.make_arg_parser(module("vllm.utils.argparse_utils").FlexibleArgumentParser())
    for line in commands(launch, "vllm", "serve"):
        options.validate_parsed_serve_args(parser.parse_args(line))


LAUNCHER = Launcher(
    expressed=VLLM,
    name="vLLM",
    release="vLLM 0.33",
    install=("vllm",),
    needs=needs,
    write=write,
    reader=Reader("vllm", read),
)
