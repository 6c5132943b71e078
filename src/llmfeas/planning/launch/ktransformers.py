"""KTransformers: SGLang's server with its kernels, which run the routed experts on the processor."""

from __future__ import annotations

from ...scenario import Scenario
from . import sglang
from .launcher import Launch, Launcher, Objection
from .names import is_gguf, model_name
from .shell import Variable, Word, command, flags
from .vllm import weights_notes

METHODS = {"none": "BF16", "fp8": "FP8"}
"""Formats of experts on the processor by what it calls them; GGUF files run by llamafile's kernels."""


def method(scenario: Scenario) -> str | None:
    """Its name of the experts' format; None where it has none."""
    container = scenario.tables.quantization.format(scenario.quant, scenario.engine).container
    return METHODS.get(scenario.quant) or ("LLAMAFILE" if container == "gguf" else None)


def objection(scenario: Scenario) -> Objection | None:
    """Object to models without experts, and to formats that its kernels do not have."""
    if scenario.model.architecture.experts is None:
        return Objection("model", "it is for mixtures of experts")
    if method(scenario) is None:
        return Objection("quant", "its kernels have no such format")
    return None


def write(scenario: Scenario) -> Launch:
    """Write the command."""
    experts = flags(
        [
            ("--kt-weight-path", Variable("EXPERTS")),
            ("--kt-method", method(scenario)),
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
    id="ktransformers",
    name="KTransformers",
    release="KTransformers 0.7.2, on its own build of SGLang",
    install=("ktransformers", "sglang-kt"),
    tasks=("inference",),
    backends=frozenset({"cuda"}),
    choices={
        "precision": ("bf16", "fp16"),
        "attention": ("flash",),
        "kv_dtype": tuple(sglang.CACHES),
        "offload": ("none",),
        "gpu_layers": (None,),
    },
    splits=frozenset({"num_devices", "tp"}),
    reads_gguf=True,
    objection=objection,
    write=write,
)
