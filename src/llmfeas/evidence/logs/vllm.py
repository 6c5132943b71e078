"""vLLM: the configuration that it starts with, the room of its cache, and its speed every ten seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...units import GIB
from .parser import DRAFTED, NUMBER, ServerLog, SkippedLines, Unused, first, number, options, unused_counts, whole

VERSION = re.compile(r"(?:engine \(v|server version )([0-9][\w.]{0,20})")
POOL_TOKENS = re.compile(rf"[A-Z]{{2,8}}(?: \+ host)? KV cache size: {NUMBER} tokens")
BLOCKS = re.compile(rf"# (?:GPU|cuda) blocks: {NUMBER}")
POOL_GIB = re.compile(rf"Available KV cache memory: {NUMBER} GiB")
AT_ONCE = re.compile(rf"Maximum concurrency for {NUMBER} tokens per request: {NUMBER}x")
SPEED = re.compile(
    rf"Avg prompt throughput: {NUMBER} tokens/s, Avg generation throughput: {NUMBER} tokens/s, Running: {NUMBER} reqs"
)
USED = re.compile(rf"KV cache usage: {NUMBER}%")
BLOCK_TOKENS = 16
PROMPTS = "prompts were read in the same ten seconds, and the line does not say how long"
CHANGED = "another number of requests ran when they began"
IDLE = "no request ran at their end, or nothing was written"
UNKNOWN = "their form is not known: one line says reading, writing and how many requests run"
NAMES = {
    "max_seq_len": "context",
    "max_model_len": "context",
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
}
"""Its names of settings -> ours."""


class VllmLog(ServerLog):
    """Reads a server's or an offline run's log."""

    engine = "vllm"
    marks = (
        *("engine (v", "server version", "non-default args", "KV cache", "blocks: ", "Maximum concurrency"),
        *("Avg prompt throughput", "max_num_batched_tokens=", "SpecDecoding metrics"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.unused = Unused("Windows of throughput")

    def take(self, text: str, number_: int) -> None:
        """Read a line."""
        if "SpecDecoding metrics" in text:
            self.drafted = True
            return
        speed = SPEED.search(text)
        if speed is not None:
            self._speed(speed, text, number_)
            return
        if "Avg prompt throughput" in text:
            self.unused.add(UNKNOWN, number_)
            return
        self._configured(text)
        tokens, blocks, gib, at_once = (first(each, text) for each in (POOL_TOKENS, BLOCKS, POOL_GIB, AT_ONCE))
        if blocks is not None and "kv_pool_tokens" not in self.pool:
            tokens = blocks * BLOCK_TOKENS
        if tokens:
            self.pool["kv_pool_tokens"] = tokens
        if gib:
            self.pool["kv_pool_bytes"] = gib * GIB
        if at_once:
            found = AT_ONCE.search(text)
            assert found is not None
            self.settings["context"] = int(at_once)
            self.pool["requests_at_once"] = number(found[2])
        if self.pool:
            self.line = self.line or number_

    def _configured(self, text: str) -> None:
        version = VERSION.search(text)
        if version is not None:
            self.settings["engine_version"] = version[1]
        if version is None and "non-default args" not in text and "max_num_batched_tokens=" not in text:
            return
        said = options(text, (*NAMES, "model", "quantization", "kv_cache_dtype", "enforce_eager"))
        for name, value in said.items():
            if name in NAMES:
                share = name == "gpu_memory_utilization"
                read = _share(value) if share else whole(value)
                if read is not None:
                    self.settings[NAMES[name]] = read
        if said.get("model"):
            self.settings["model"] = said["model"]
        if said.get("enforce_eager", "").lower() == "true":
            self.settings["enforce_eager"] = "true"
        if said.get("kv_cache_dtype", "").startswith("fp8"):
            self.settings["kv_dtype"] = "fp8"

    def _speed(self, found: re.Match[str], text: str, line: int) -> None:
        """Keep what is written while nothing is read, in a window in which as many ran as in the one before."""
        prompt, written, running = number(found[1]), number(found[2]), int(number(found[3]))
        if not running or written == 0:
            if prompt or written:
                self.unused.add(IDLE, line)
        elif prompt:
            self.unused.add(PROMPTS, line)
        elif running != self.before:
            self.unused.add(CHANGED, line)
        else:
            self.keep(running, written, first(USED, text) or 0.0, line)
        self.before = running

    def skipped(self) -> Iterator[SkippedLines]:
        """Windows in which something else happened than decoding a fixed number of requests."""
        yield from self.unused.lines()
        yield from unused_counts(self.unused.what, self.speeds, DRAFTED if self.drafted else "")

    def held(self, running: int) -> float:
        """Tokens of one request in the cache; 0 where the log does not say."""
        return self.filled[running].median / 100 * self.pool.get("kv_pool_tokens", 0) / running


def _share(text: str) -> float | None:
    try:
        share = float(text[:20])
    except ValueError:
        return None
    return share if 0 < share <= 1 else None


PARSER = VllmLog
