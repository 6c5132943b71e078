"""Infinity: the command line of its server."""

from __future__ import annotations

from ...scenario import Scenario
from .launcher import PAIRS_BY_LABEL, READS_ALONE, WHOLE, Launch, Launcher, Objection, Reader
from .names import model_name, pair_notes
from .reading import knows_options
from .shell import command, flags
from .vllm import weights_notes

DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
DEVICES = {"cuda": "cuda", "rocm": "cuda", "metal": "mps", "cpu": "cpu"}


def objection(scenario: Scenario) -> Objection | None:
    """Object to what is no reader of texts."""
    if scenario.model.architecture.writes:
        return READS_ALONE
    decodes = scenario.model.reranker is not None and not scenario.model.architecture.encoder
    return PAIRS_BY_LABEL if decodes else None


def write(scenario: Scenario) -> Launch:
    """Write the command; it needs no file."""
    devices = scenario.num_devices
    options = flags(
        [
            ("--model-id", model_name(scenario)),
            ("--engine", "torch"),
            ("--dtype", "int8" if scenario.quant == "int8" else DTYPES[scenario.precision]),
            ("--batch-size", scenario.concurrency if scenario.concurrency > 1 else None),
            ("--device", DEVICES[scenario.device.backend]),
            ("--device-id", ",".join(map(str, range(devices))) if devices > 1 else None),
        ]
    )
    pairs = pair_notes(scenario, "/rerank takes a query and its documents")
    return Launch((), command(["infinity_emb", "v2"], *options), (*weights_notes(scenario, ()), *pairs))


LAUNCHER = Launcher(
    id="infinity",
    name="Infinity",
    release="infinity-emb 0.0.78",
    install=("infinity-emb[all]",),
    tasks=("inference",),
    backends=frozenset(DEVICES),
    choices={
        "precision": tuple(DTYPES),
        "quant": ("none", "int8"),
        **WHOLE,
    },
    splits=frozenset({"num_devices"}),
    objection=objection,
    write=write,
    reader=Reader("infinity-emb", knows_options("{0}", "v2", "--help")),
)
