"""Megatron-LM: its table of arguments, the line of every iteration, and the memory that it prints once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...units import MIB
from .parser import NUMBER, LoggedRun, LogParser, Samples, first, whole

STEP = re.compile(rf"elapsed time per iteration \(ms\): {NUMBER}")
BATCH = re.compile(r"global batch size:\s*(\d{1,9})")
PEAK = re.compile(rf"max allocated: {NUMBER}")
ARGUMENT = re.compile(r"^\W*(?:\w+:\s*)?(\w{1,60}) \.{2,} (\S{1,100})$")
NAMES = {
    "seq_length": "seq_len",
    "micro_batch_size": "micro_batch",
    "global_batch_size": "global_batch",
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "world_size": "num_devices",
}
WARM_UP = 2
"""Lines that hold the start: compiling, first allocations."""


class MegatronLog(LogParser):
    """Reads a training's log."""

    marks = ("elapsed time per iteration", "max allocated:", " ...")

    def __init__(self) -> None:
        self.settings: dict[str, str | int | float] = {}
        self.steps = Samples()
        self.peak_mib = 0.0

    def take(self, text: str, line: int) -> None:
        """Read a line."""
        argument = ARGUMENT.match(text)
        if argument is not None:
            value = whole(argument[2])
            if argument[1] in NAMES and value is not None:
                self.settings[NAMES[argument[1]]] = value
            return
        milliseconds, batch = first(STEP, text), BATCH.search(text)
        if milliseconds:
            self.steps.add(milliseconds / 1e3, line)
            size = whole(batch[1]) if batch else None
            if size is not None:
                self.settings["global_batch"] = size
        self.peak_mib = max(self.peak_mib, first(PEAK, text) or 0.0)

    def runs(self) -> Iterator[LoggedRun]:
        """A step, past the first ones."""
        if not self.steps.values:
            return
        late = Samples(values=self.steps.values[WARM_UP:] or self.steps.values)
        measured = {"step_seconds": late.median}
        if self.peak_mib:
            measured["peak_bytes"] = self.peak_mib * MIB
        yield LoggedRun(
            engine="megatron",
            what="training",
            settings={"task": "pretrain", "engine": "megatron", **self.settings},
            measured=measured,
            memory_kind="allocated",
            line=self.steps.line,
            samples=self.steps.count,
            missing=() if "seq_len" in self.settings else ("seq_len",),
        )


PARSER = MegatronLog
