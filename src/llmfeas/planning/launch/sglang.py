"""SGLang: the command line of its server."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from ...scenario import Scenario
from ...workload.serving import longest_request, peers
from . import drafts, pools
from .launcher import WHOLE, Launch, Launcher, Objection, Reader
from .names import holds_format, model_name, pair_notes
from .reading import commands, module
from .shell import PORT, Variable, Word, command, flags, nodes_note, nodes_of, started
from .vllm import DTYPES, IN_CHECKPOINT, ep_objection, precision_objection, replicas, weights_notes

ON_LOAD = {"fp8": "fp8"}
"""Formats into which SGLang converts 16-bit weights as it loads them."""
SERVER = ("python", "-m", "sglang.launch_server")
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


METHODS = {"model": "STANDALONE", "mtp": "EAGLE", "eagle": "EAGLE3"}
"""What drafts in its words (sglang 0.5.10, srt/server_args.py); a model's own layers run as EAGLE's."""


def speculation(scenario: Scenario) -> list[tuple[str, Word | None]]:
    """The options of what drafts tokens ahead, in a row: it checks one token more than are drafted."""
    kind = drafts.kind_of(scenario)
    if kind is None:
        return []
    return [
        ("--speculative-algorithm", METHODS[kind]),
        ("--speculative-draft-model-path", drafts.weights_of(scenario)),
        ("--speculative-num-steps", scenario.drafted),
        ("--speculative-eagle-topk", 1),
        ("--speculative-num-draft-tokens", scenario.drafted + 1),
    ]


def objection(scenario: Scenario) -> Objection | None:
    """Object to what SGLang ties together."""
    if scenario.disaggregate is not None and nodes_of(scenario).several:
        return pools.SEVERAL
    if scenario.draft is not None and scenario.pp > 1:
        return Objection("pp", "it drafts tokens on one stage only", instead=1)
    if peers(scenario) > 1 and drafts.kind_of(scenario) == "model":
        return Objection("draft", "a model that drafts does not run where ranks attend apart; mtp and eagle do")
    found = ep_objection(scenario) or precision_objection(scenario)
    if found is None and scenario.kv_dtype not in (*CACHES, scenario.precision):
        return Objection("kv_dtype", "its 16-bit cache is bf16, or of the type of the computation", instead="bf16")
    return found


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
    for server in pools.servers(scenario):
        address, meets = f"http://{pools.HERE}:{PORTS + server.index}", BOOTSTRAP + server.index
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
    lines.append(command(before, *router, ["--host", pools.HERE], ["--port", ROUTER]))
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
    id="sglang",
    name="SGLang",
    release="SGLang 0.5.10",
    install=("sglang",),
    needs=needs,
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
    drafts=frozenset(METHODS),
    disaggregates=frozenset({"cuda"}),
    objection=objection,
    write=write,
    reader=Reader("sglang", read),
)
