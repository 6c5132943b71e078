"""Infinity: the command line of its server."""

from __future__ import annotations

from ...scenario import Scenario
from ..expressed.servers import INFINITY, INFINITY_DEVICES, INFINITY_DTYPES
from ..repositories import model_name
from .launcher import Launch, Launcher, Reader
from .names import pair_notes
from .parsers import knows_options
from .shell import command, flags
from .vllm import weights_notes


def write(scenario: Scenario) -> Launch:
    """Write the command; it needs no file."""
    devices = scenario.num_devices
    options = flags(
        [
            ("--model-id", model_name(scenario)),
            ("--engine", "torch"),
            ("--dtype", "int8" if scenario.quant == "int8" else INFINITY_DTYPES[scenario.precision]),
            ("--batch-size", scenario.concurrency if scenario.concurrency > 1 else None),
            ("--device", INFINITY_DEVICES[scenario.device.backend]),
            ("--device-id", ",".join(map(str, range(devices))) if devices > 1 else None),
        ]
    )
    pairs = pair_notes(scenario, "/rerank takes a query and its documents")
    return Launch((), command(["infinity_emb", "v2"], *options), (*weights_notes(scenario, ()), *pairs))


LAUNCHER = Launcher(
    expressed=INFINITY,
    name="Infinity",
    release="infinity-emb 0.0.78",
    install=("infinity-emb[all]",),
    write=write,
    reader=Reader("infinity-emb", knows_options("{0}", "v2", "--help")),
)
