"""SGLang: its arguments, the room of its cache, and the speed of each stretch of decoding."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...units import GIB
from .parser import DRAFTED, NUMBER, ServerLog, SkippedLines, Unused, first, number, options, unused_counts, whole

POOL = re.compile(
    r"KV Cache (?:is allocated|VA upper bound)\.(?: dtype: [\w.]{1,30},)? #tokens: "
    rf"{NUMBER}(?:, K size: {NUMBER} GB, V size: {NUMBER} GB)?"
)
POOL_ONE = re.compile(rf"KV size: {NUMBER} GB")
MOST_TOKENS = re.compile(rf"max_total_num_tokens={NUMBER}")
CONTEXT = re.compile(rf"context_len={NUMBER}")
REQUESTS = re.compile(rf"max_running_requests={NUMBER}")
RUNNING = re.compile(rf"#running-req: {NUMBER}")
TOKENS = re.compile(rf"#(?:full )?token: {NUMBER}")
PROMPT_SPEED = "input throughput"
SPEED = re.compile(rf"gen throughput \(token/s\): {NUMBER}")
DRAFTS = "accept len:"
AFTER_PROMPT = "their time holds that of a prompt, which is not said"
CHANGED = "another number of requests ran in the stretch before"
IDLE = "no request ran, or nothing was written"
BETWEEN = "their time is that since the prompt before, whatever ran between"
NAMES = {
    "tp_size": "tp",
    "tensor_parallel_size": "tp",
    "pp_size": "pp",
    "context_length": "context",
    "chunked_prefill_size": "max_num_batched_tokens",
    "max_running_requests": "max_num_seqs",
}


class SglangLog(ServerLog):
    """Reads a server's log."""

    engine = "sglang"
    marks = ("ServerArgs(", "server_args=", "KV Cache ", "max_total_num_tokens=", "Decode batch", "Prefill batch")

    def __init__(self) -> None:
        super().__init__()
        self.unused = Unused("Stretches of decoding")
        self.prompts = Unused("Prompts")

    def take(self, text: str, number_: int) -> None:
        """Read a line."""
        if "Prefill batch" in text:
            self.before = 0
            if PROMPT_SPEED in text:
                self.prompts.add(BETWEEN, number_)
        elif "Decode batch" in text:
            self._speed(text, number_)
        elif "ServerArgs(" in text or "server_args=" in text:
            self._configured(text)
        elif self._room(text):
            self.line = self.line or number_

    def _configured(self, text: str) -> None:
        said = options(text, (*NAMES, "model_path", "mem_fraction_static", "kv_cache_dtype"))
        for name, ours in NAMES.items():
            value = whole(said.get(name))
            if value is not None:
                self.settings[ours] = value
        if "model_path" in said:
            self.settings["model"] = said["model_path"]
        share = said.get("mem_fraction_static", "")
        if re.fullmatch(r"0\.[0-9]{1,6}", share) and float(share) > 0:
            self.settings["gpu_memory_utilization"] = float(share)
        if said.get("kv_cache_dtype", "").startswith("fp8"):
            self.settings["kv_dtype"] = "fp8"

    def _room(self, text: str) -> bool:
        """Read the sizes of the cache; whether the line says any."""
        pool, one = POOL.search(text), first(POOL_ONE, text)
        if pool is not None:
            if tokens := number(pool[1]):
                self.pool["kv_pool_tokens"] = tokens
            size = one if pool[2] is None else number(pool[2]) + number(pool[3])
            if size:
                self.pool["kv_pool_bytes"] = size * GIB
        most, context, requests = (first(each, text) for each in (MOST_TOKENS, CONTEXT, REQUESTS))
        if most:
            self.pool["kv_pool_tokens"] = most
        if context:
            self.settings["context"] = int(context)
        if requests:
            self.settings["max_num_seqs"] = int(requests)
        return any((pool, most, context, requests))

    def _speed(self, text: str, line: int) -> None:
        """Keep a stretch that follows on another of as many requests: the first one after a prompt holds its time."""
        running, tokens, speed = (first(each, text) for each in (RUNNING, TOKENS, SPEED))
        if speed is None:
            return
        count = int(running or 0)
        if not count or not speed:
            self.unused.add(IDLE, line)
        elif DRAFTS in text:
            self.unused.add(DRAFTED, line)
        elif not self.before:
            self.unused.add(AFTER_PROMPT, line)
        elif count != self.before:
            self.unused.add(CHANGED, line)
        else:
            self.keep(count, speed, (tokens or 0) / count, line)
        self.before = count

    def held(self, running: int) -> float:
        """Tokens of one request in the cache."""
        return self.filled[running].median

    def skipped(self) -> Iterator[SkippedLines]:
        """Stretches that hold something else than decoding a fixed number of requests."""
        yield from self.unused.lines()
        yield from self.prompts.lines()
        yield from unused_counts(self.unused.what, self.speeds)


PARSER = SglangLog
