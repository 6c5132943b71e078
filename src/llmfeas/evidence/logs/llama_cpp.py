"""llama.cpp's programs and servers on it (Ollama, LM Studio, KoboldCpp): what they load, and the timings at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...units import MIB
from .llama_bench import format_of
from .parser import NUMBER, LoggedRun, LogParser, first, number, whole

TIMING = re.compile(rf"(prompt )?eval time\s*=\s*{NUMBER} ms /\s*{NUMBER} (?:tokens|runs)")
FILE = re.compile(r"loaded meta data with .{0,80} from (.{1,400}?)(?: \(version|$)")
NAME = re.compile(r"general\.name\s*(?:str)?\s*= (.{1,100})$")
FORMAT = re.compile(r"(?:model ftype|file type)\s*= (.{1,60})$")
LAYERS = re.compile(r"offloaded (\d{1,5})/(\d{1,5}) layers to GPU")
CONTEXT = re.compile(rf"(?:n_ctx|n_ctx_seq|n_ctx_per_seq)\s*= {NUMBER}")
FLASH = re.compile(r"flash_attn\s*= (\w+)")
BUFFER = re.compile(rf"(?:CUDA0|ROCm0|Vulkan0|Metal|MTL0|SYCL0) (?:model|KV|RS|compute) buffer size\s*=\s*{NUMBER} MiB")
LEAST_PROMPT, LEAST_ANSWER = 64, 16
"""Tokens from which on a time is that of the work and not of its start."""


class LlamaCppLog(LogParser):
    """Reads what llama-cli, llama-server and their like print."""

    marks = (
        *("eval time", "loaded meta data", "general.name", "model ftype", "file type", "layers to GPU"),
        *("n_ctx", "flash_attn", "buffer size"),
    )

    def __init__(self) -> None:
        self.settings: dict[str, str | int | float] = {}
        self.buffer_mib = 0.0
        self.times: dict[str, tuple[float, float, int, int]] = {}
        """Of prompts and answers: tokens, seconds, how many, and the first line."""

    def take(self, text: str, line: int) -> None:
        """Read a line."""
        timing = TIMING.search(text)
        if timing is not None:
            self._time(timing, line)
            return
        for pattern, name in ((FILE, "model"), (NAME, "model")):
            found = pattern.search(text)
            if found is not None:
                self.settings.setdefault(name, found[1].strip())
        format = FORMAT.search(text)
        if format is not None and format_of(format[1]):
            self.settings["quant"] = format_of(format[1])
        layers, context, flash = LAYERS.search(text), first(CONTEXT, text), FLASH.search(text)
        if layers is not None:
            self.settings["gpu_layers"] = min(int(layers[1]), max(0, int(layers[2])))
        if context and context < 1e8:
            self.settings["context"] = int(context)
        if flash is not None and flash[1] in ("1", "enabled", "0", "disabled"):
            self.settings["attention"] = "flash" if flash[1] in ("1", "enabled") else "eager"
        self.buffer_mib += first(BUFFER, text) or 0.0

    def _time(self, timing: re.Match[str], line: int) -> None:
        seconds, tokens = number(timing[2]) / 1e3, whole(timing[3].replace(",", "")) or 0
        kind, least = ("prefill", LEAST_PROMPT) if timing[1] else ("decode", LEAST_ANSWER)
        if tokens < least or seconds <= 0:
            return
        before = self.times.get(kind, (0.0, 0.0, 0, line))
        self.times[kind] = (before[0] + tokens, before[1] + seconds, before[2] + 1, before[3])

    def runs(self) -> Iterator[LoggedRun]:
        """Prompts and answers, each at its mean length, with what was set aside on the device."""
        prompt = self._mean("prefill")
        if self.times:
            answer = self._mean("decode") or 1
            measured = {
                f"{kind}_tokens_per_second": tokens / seconds for kind, (tokens, seconds, _, _) in self.times.items()
            }
            if self.buffer_mib:
                measured["peak_bytes"] = self.buffer_mib * MIB
            lengths = {"prompt": max(1, prompt), "context": max(prompt + answer, int(self.settings.get("context", 0)))}
            yield LoggedRun(
                engine="llama.cpp",
                what=f"{prompt or 'no'} tokens read, {answer} written",
                settings={"task": "inference", "engine": "llama.cpp", **self.settings, **lengths, "output": answer},
                measured=measured,
                memory_kind="allocated",
                line=min(line for _, _, _, line in self.times.values()),
                samples=max(count for _, _, count, _ in self.times.values()),
            )

    def _mean(self, kind: str) -> int:
        tokens, _, count, _ = self.times.get(kind, (0.0, 0.0, 1, 0))
        return round(tokens / count)

    def about(self) -> Mapping[str, str | int | float]:
        """The model and its format, which llama-bench's table does not name as well."""
        return {name: self.settings[name] for name in ("model",) if name in self.settings}


PARSER = LlamaCppLog
