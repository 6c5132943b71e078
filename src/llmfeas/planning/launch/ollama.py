"""Ollama: a Modelfile, and the server's settings, which are variables of its environment."""

from __future__ import annotations

import json
import re

from ...scenario import Scenario
from ..expressed.desks import OLLAMA, OLLAMA_CACHES
from ..expressed.expressible import is_gguf
from ..repositories import is_gguf_repository
from . import llama_cpp
from .launcher import File, Launch, Launcher

MODELFILE = "Modelfile"
TAG = re.compile(r"[a-z0-9][\w.-]*:[\w.-]+", re.ASCII | re.IGNORECASE)


def source(scenario: Scenario) -> str:
    """Where the weights are: a file here, a repository in GGUF, or a model of Ollama's library by its tag."""
    if is_in_library(scenario):
        return scenario.asked_by
    named = str(llama_cpp.source(scenario)[1])
    if is_gguf(scenario):
        return named
    return f"hf.co/{named}" if is_gguf_repository(scenario) else f"./{named}"


def is_in_library(scenario: Scenario) -> bool:
    """Whether the model was asked for by a tag of Ollama's library, in the format that lies there."""
    return TAG.fullmatch(scenario.asked_by) is not None and scenario.quant == scenario.model.published_quant


def modelfile(scenario: Scenario) -> str:
    """The weights and what each request gets."""
    lines = [f"FROM {source(scenario)}", f"PARAMETER num_ctx {scenario.context or 1}"]
    if scenario.output and scenario.was_given("output"):  # what is assumed on average is no limit
        lines.append(f"PARAMETER num_predict {scenario.output}")
    if scenario.device.backend == "cpu" or scenario.gpu_layers is not None:
        lines.append(f"PARAMETER num_gpu {scenario.gpu_layers or 0}")
    return "".join(f"{line}\n" for line in lines)


def asked(scenario: Scenario, name: str) -> str:
    """The command that asks the server: for an answer, or for the vector of a text where the model writes nothing."""
    if scenario.model.architecture.writes:
        return f"ollama run {name} --verbose"
    body = json.dumps({"model": name, "input": "TEXT"})
    return f"curl http://localhost:11434/api/embed -d '{body}'"


def _pulled(scenario: Scenario) -> tuple[str, ...]:
    """Say that Ollama's library may hold the file, under a tag that is not known here."""
    if is_gguf(scenario) or is_gguf_repository(scenario):
        return ()
    return (
        f"where ollama.com/library holds the model in {scenario.quant}, put its tag behind FROM: nothing to convert",
    )


def write(scenario: Scenario) -> Launch:
    """Write the Modelfile; one line starts the server with its settings, the other makes the model."""
    name = f"{scenario.model.id}-{llama_cpp.file_type(scenario)}".lower()
    variables = {
        "OLLAMA_NUM_PARALLEL": scenario.concurrency,
        "OLLAMA_CONTEXT_LENGTH": scenario.context or 1,
        "OLLAMA_FLASH_ATTENTION": int(scenario.attention == "flash"),
        "OLLAMA_KV_CACHE_TYPE": OLLAMA_CACHES[scenario.kv_dtype],
        "OLLAMA_SCHED_SPREAD": int(scenario.num_devices > 1),
    }
    settings = " ".join(f"{key}={value}" for key, value in variables.items())
    waits = "until ollama list > /dev/null 2>&1; do sleep 1; done"
    line = f"{settings} ollama serve &\n{waits}\nollama create {name} -f {MODELFILE}\n{asked(scenario, name)}"
    texts = () if is_in_library(scenario) else (*_pulled(scenario), *llama_cpp.notes(scenario))
    serves = "a server that runs already has its own settings: stop it first (systemctl stop ollama)"
    return Launch((File(MODELFILE, modelfile(scenario)),), line, (*texts, serves))


LAUNCHER = Launcher(
    expressed=OLLAMA,
    name="Ollama",
    release="Ollama 0.33, from ollama.com",
    install=(),
    write=write,
)
