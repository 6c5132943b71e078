"""Text Embeddings Inference: the command line of its server."""

from __future__ import annotations

from ...scenario import Scenario
from ...workload.serving import longest_request
from ..expressed.servers import TEI_DTYPES, TEXT_EMBEDDINGS_INFERENCE
from ..repositories import model_name
from .launcher import Launch, Launcher, Reader
from .names import pair_notes
from .parsers import knows_options
from .shell import command, flags
from .vllm import weights_notes

CLIENT_BATCH = 32
"""Texts that a request may hold where nobody says."""


def write(scenario: Scenario) -> Launch:
    """Write the command; it needs no file."""
    texts = scenario.concurrency
    options = flags(
        [
            ("--model-id", model_name(scenario)),
            ("--dtype", TEI_DTYPES[scenario.precision]),
            ("--max-batch-tokens", texts * longest_request(scenario) if texts > 1 else None),
            ("--max-batch-requests", texts if texts > 1 else None),
            ("--max-client-batch-size", texts if texts > CLIENT_BATCH else None),
        ]
    )
    pairs = pair_notes(scenario, "/rerank takes a query and its texts")
    return Launch((), command(["text-embeddings-router"], *options), (*weights_notes(scenario, ()), *pairs))


LAUNCHER = Launcher(
    expressed=TEXT_EMBEDDINGS_INFERENCE,
    name="Text Embeddings Inference",
    release="text-embeddings-router 1.x, of its container images or built by cargo",
    install=(),
    write=write,
    reader=Reader("text-embeddings-inference", knows_options("{0}", "--help")),
)
