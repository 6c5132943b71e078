"""SGLang: the command line of its server."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from ...scenario import Scenario
from ...workload.serving import peers
from ..expressed.expressible import DTYPES, drafted_by
from ..expressed.servers import SGLANG, SGLANG_CACHES, SGLANG_METHODS, SGLANG_ON_LOAD, server_copies
from ..nodes import nodes_of
from ..repositories import holds_format, model_name
from . import serving
from .launcher import Launch, Launcher, Reader
from .names import pair_notes
from .parsers import commands, module
from .serving import longest_served
from .shell import PORT, Variable, Word, command, flags, nodes_note, started
from .vllm import weights_notes

SERVER = ("python", "-m", "sglang.launch_server")


def settings(scenario: Scenario) -> list[list[Word]]:
    """The options of `python -m sglang.launch_server` behind the model's name."""
    published, tokens = holds_format(scenario), scenario.max_num_batched_tokens
    nodes, copies, shared = nodes_of(scenario), server_copies(scenario), peers(scenario)
    same_cache = scenario.kv_dtype == scenario.precision
    return flags(
        [
            ("--is-embedding", not scenario.model.architecture.writes and not _by_tokens(scenario)),
            ("--disable-radix-cache", _crosses(scenario)),
            ("--attention-backend", "triton" if _crosses(scenario) else None),
            ("--dtype", DTYPES[scenario.precision]),
            ("--quantization", None if published else SGLANG_ON_LOAD.get(scenario.quant)),
            ("--kv-cache-dtype", "auto" if same_cache else SGLANG_CACHES.get(scenario.kv_dtype)),
            ("--context-length", longest_served(scenario)),
            ("--mem-fraction-static", scenario.gpu_memory_utilization),
            ("--max-running-requests", scenario.max_num_seqs and scenario.max_num_seqs * shared),
            ("--chunked-prefill-size", -1 if _crosses(scenario) else tokens and tokens * shared),  # it divides them
            ("--disable-cuda-graph", scenario.enforce_eager),
            ("--tp-size", scenario.tp * shared),
            ("--pp-size", scenario.pp if scenario.pp > 1 else None),
            ("--dp-size", copies if copies > 1 else None),
            ("--enable-dp-attention", shared > 1),
            ("--ep-size", scenario.ep if scenario.ep > 1 else None),
            *speculation(scenario),
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


def speculation(scenario: Scenario) -> list[tuple[str, Word | None]]:
    """The options of what drafts tokens ahead, in a row: it checks one token more than are drafted."""
    kind = drafted_by(scenario)
    if kind is None:
        return []
    return [
        ("--speculative-algorithm", SGLANG_METHODS[kind]),
        ("--speculative-draft-model-path", serving.weights_of(scenario)),
        ("--speculative-num-steps", scenario.drafted),
        ("--speculative-eagle-topk", 1),
        ("--speculative-num-draft-tokens", scenario.drafted + 1),
    ]


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Say what the user has to provide."""
    pairs = pair_notes(scenario, "/v1/rerank takes a query and its documents", "examples/chat_template of SGLang")
    return (*weights_notes(scenario), *pairs, *nodes_note(nodes_of(scenario)))


PORTS, BOOTSTRAP, ROUTER = 30000, 8998, 8000


def disaggregated(scenario: Scenario) -> Launch:
    """Write a server for each copy of the model, and the router before them.

    Source: sglang, docs/advanced_features/pd_disaggregation.md and router.md.
    """
    lines, router = [], list[list[Word]]()
    for server in serving.servers(scenario):
        address, meets = f"http://{serving.HERE}:{PORTS + server.index}", BOOTSTRAP + server.index
        options: list[list[Word]] = [
            *settings(server.scenario),
            ["--disaggregation-mode", "prefill" if server.reads else "decode"],
            ["--disaggregation-transfer-backend", "nixl"],
            *flags([("--disaggregation-bootstrap-port", meets if server.reads else None)]),
            ["--base-gpu-id", server.first],
            ["--port", PORTS + server.index],
        ]
        lines.append(started(command([*SERVER, "--model-path", model_name(scenario)], *options)))
        router.append(["--prefill", address, meets] if server.reads else ["--decode", address])
    before = ["python", "-m", "sglang_router.launch_router", "--pd-disaggregation"]
    lines.append(command(before, *router, ["--host", serving.HERE], ["--port", ROUTER]))
    return Launch((), "\n".join(lines), (*notes(scenario), f"requests go to port {ROUTER}"))


def needs(scenario: Scenario) -> tuple[str, ...]:
    """What carries caches from one server to another, and stands before them."""
    return ("nixl", "sglang-router") if scenario.disaggregate is not None else ()


def write(scenario: Scenario) -> Launch:
    """Write the command; SGLang needs no file."""
    if scenario.disaggregate is not None:
        return disaggregated(scenario)
    return Launch((), command([*SERVER, "--model-path", model_name(scenario)], *settings(scenario)), notes(scenario))


def read(launch: Launch, folder: Path) -> None:
    """Let its own parser read the command; what it makes of the arguments would ask for its devices."""
    parser = ArgumentParser()
    module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    for line in commands(launch, *SERVER):
        parser.parse_args(line)


LAUNCHER = Launcher(
    expressed=SGLANG,
    name="SGLang",
    release="SGLang 0.5.10",
    install=("sglang",),
    needs=needs,
    write=write,
    reader=Reader("sglang", read),
)
