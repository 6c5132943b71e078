"""Text Embeddings Inference: the command line of its server."""

from __future__ import annotations

from ...scenario import Scenario
from ...workload.serving import longest_request
from .launcher import ONE_COPY, PAIRS_BY_LABEL, READS_ALONE, WHOLE, Launch, Launcher, Objection, Reader
from .names import model_name, pair_notes
from .reading import knows_options
from .shell import command, flags
from .vllm import weights_notes

DTYPES = {"fp16": "float16", "fp32": "float32"}
CLIENT_BATCH = 32
"""Texts that a request may hold where nobody says."""


def objection(scenario: Scenario) -> Objection | None:
    """Object to what is no reader of texts, to several devices, and to types that it has not."""
    if scenario.model.architecture.writes:
        return READS_ALONE
    if scenario.model.reranker is not None and not scenario.model.architecture.encoder:
        return PAIRS_BY_LABEL
    if scenario.num_devices > 1:
        return ONE_COPY
    if scenario.precision not in DTYPES:
        return Objection("precision", f"it has {' and '.join(DTYPES.values())} alone", instead="fp16")
    return None


def write(scenario: Scenario) -> Launch:
    """Write the command; it needs no file."""
    texts = scenario.concurrency
    options = flags(
        [
            ("--model-id", model_name(scenario)),
            ("--dtype", DTYPES[scenario.precision]),
            ("--max-batch-tokens", texts * longest_request(scenario) if texts > 1 else None),
            ("--max-batch-requests", texts if texts > 1 else None),
            ("--max-client-batch-size", texts if texts > CLIENT_BATCH else None),
        ]
    )
    pairs = pair_notes(scenario, "/rerank takes a query and its texts")
    return Launch((), command(["text-embeddings-router"], *options), (*weights_notes(scenario, ()), *pairs))


LAUNCHER = Launcher(
    id="text-embeddings-inference",
    name="Text Embeddings Inference",
    release="text-embeddings-router 1.x, of its container images or built by cargo",
    install=(),
    tasks=("inference",),
    backends=frozenset({"cuda", "cpu", "metal"}),
    choices={
        "quant": ("none",),
        **WHOLE,
    },
    splits=frozenset({"num_devices"}),
    objection=objection,
    write=write,
    reader=Reader("text-embeddings-inference", knows_options("{0}", "--help")),
)
