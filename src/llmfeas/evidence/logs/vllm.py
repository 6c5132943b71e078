"""vLLM: the configuration that it starts with, the room of its cache, and its speed every ten seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .parser import (
    NUMBER,
    LoggedRun,
    LogParser,
    Samples,
    SkippedLines,
    Unused,
    first,
    model_of,
    number,
    options,
    unused_counts,
    whole,
)

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
DRAFTED = "tokens were drafted ahead, and the log does not say by what: no figure of plain decoding"
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


class VllmLog(LogParser):
    """Reads a server's or an offline run's log."""

    marks = (
        *("engine (v", "server version", "non-default args", "KV cache", "blocks: ", "Maximum concurrency"),
        *("Avg prompt throughput", "max_num_batched_tokens=", "SpecDecoding metrics"),
    )

    def __init__(self) -> None:
        self.settings: dict[str, str | int | float] = {}
        self.pool: dict[str, float] = {}
        self.line = 0
        self.speeds: dict[int, Samples] = {}
        self.used: dict[int, Samples] = {}
        self._before = 0
        self.unused = Unused("Windows of throughput")
        self.drafts = 0

    def take(self, text: str, number_: int) -> None:
        """Read a line."""
        if "SpecDecoding metrics" in text:
            self.drafts = self.drafts or number_
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
            self.pool["kv_pool_bytes"] = gib * 2**30
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
        elif running != self._before:
            self.unused.add(CHANGED, line)
        else:
            self.speeds.setdefault(running, Samples()).add(written, line)
            share = first(USED, text)
            self.used.setdefault(running, Samples()).add(share or 0.0, line)
        self._before = running

    def runs(self) -> Iterator[LoggedRun]:
        """The start, and decoding at the number of requests that was measured most often."""
        if self.pool:
            yield LoggedRun(
                engine="vllm", what="start-up", settings=_whole(self.settings), measured=self.pool, line=self.line
            )
        if self.speeds and not self.drafts:
            running, samples = max(self.speeds.items(), key=lambda each: each[1].count)
            held = self._held(running)
            settings = {**self.settings, "concurrency": running, "prompt": held, "context": held + 2}
            yield LoggedRun(
                engine="vllm",
                what=f"decoding {running} request{'s' * (running > 1)} of {held} tokens",
                settings=_whole(settings),
                measured={"decode_tokens_per_second": samples.median},
                line=samples.line,
                samples=samples.count,
            )

    def skipped(self) -> Iterator[SkippedLines]:
        """Windows in which something else happened than decoding a fixed number of requests."""
        yield from self.unused.lines()
        yield from unused_counts(self.unused.what, self.speeds, DRAFTED if self.drafts else "")

    def _held(self, running: int) -> int:
        """Tokens of one request in the cache on average; 1 where the log does not say."""
        return max(1, round(self.used[running].median / 100 * self.pool.get("kv_pool_tokens", 0) / running))

    def about(self) -> Mapping[str, str | int | float]:
        """The model."""
        return model_of(self.settings)


def _share(text: str) -> float | None:
    try:
        share = float(text[:20])
    except ValueError:
        return None
    return share if 0 < share <= 1 else None


def _whole(settings: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
    """Settings of a run on as many devices as the layout takes."""
    tp, pp = settings.get("tp", 1), settings.get("pp", 1)
    return {"task": "inference", "engine": "vllm", **settings, "num_devices": int(tp) * int(pp)}


PARSER = VllmLog
