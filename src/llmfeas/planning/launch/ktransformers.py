"""KTransformers: SGLang's server with its kernels, which run the routed experts on the processor."""

from __future__ import annotations

from ...scenario import Scenario
from ..expressed.expressible import is_gguf
from ..expressed.servers import KTRANSFORMERS, ktransformers_method
from ..repositories import model_name
from . import sglang
from .launcher import Launch, Launcher
from .shell import Variable, Word, command, flags
from .vllm import weights_notes


def write(scenario: Scenario) -> Launch:
    """Write the command."""
    experts = flags(
        [
            ("--kt-weight-path", Variable("EXPERTS")),
            ("--kt-method", ktransformers_method(scenario)),
            ("--kt-num-gpu-experts", 0),
            ("--kt-cpuinfer", Variable("CPU_THREADS")),
        ]
    )
    plain: list[list[Word]] = [each for each in sglang.settings(scenario) if each[0] != "--quantization"]
    line = command(["python", "-m", "sglang.launch_server", "--model-path", model_name(scenario)], *plain, *experts)
    where = "the GGUF file" if is_gguf(scenario) else "the folder of the experts' weights"
    told = (f"set EXPERTS to {where}, and CPU_THREADS to the processor's cores (two sockets: --kt-threadpool-count 2)",)
    return Launch((), line, (*weights_notes(scenario), *told))


LAUNCHER = Launcher(
    expressed=KTRANSFORMERS,
    name="KTransformers",
    release="KTransformers 0.7.2, on its own build of SGLang",
    install=("ktransformers", "sglang-kt"),
    write=write,
)
