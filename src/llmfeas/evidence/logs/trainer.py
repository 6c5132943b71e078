"""The Trainer of transformers and those on it (TRL, Axolotl, LLaMA-Factory, Unsloth): options, rates at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..printed_options import PrintedOptions
from .parser import NUMBER, LoggedRun, LogParser, first, model_of, whole

KEYS = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "num_tokens")
RATES = {key: re.compile(rf"'{key}': '?{NUMBER}") for key in KEYS}
MICRO = re.compile(r"(?:Instantaneous batch|Batch) size per device = (\d{1,9})")
GLOBAL = re.compile(r"Total (?:train )?batch size \(.{0,80}\) = (\d{1,9})")
CARDS = re.compile(r"\|\s{1,20}(\S.{2,60}?)\. Num GPUs = (\d{1,4})\. Max memory")
"""What Unsloth prints of the machine."""
REPOSITORY = re.compile(r"models--([\w.-]{1,96})--([\w.-]{1,96})")


class TrainerLog(LogParser):
    """Reads the banner of a training and its summary."""

    marks = (
        "Instantaneous batch size",
        "Total train batch size",
        "Batch size per device",
        "Total batch size",
        "'train_",
        "'num_tokens'",
        "models--",
        "Num GPUs",
        *PrintedOptions.marks,
    )

    def __init__(self) -> None:
        self.options = PrintedOptions()
        self.settings: dict[str, str | int | float] = {}
        self.rates: dict[str, float] = {}
        self.line = 0

    def take(self, text: str, line: int) -> None:
        """Read a line."""
        self.options.take(text)
        for pattern, name in ((MICRO, "micro_batch"), (GLOBAL, "global_batch")):
            found = pattern.search(text)
            value = whole(found[1]) if found else None
            if value is not None:
                self.settings[name] = value
        cards = CARDS.search(text)
        if cards is not None:
            self.settings.setdefault("device", cards[1])
            self.settings.setdefault("num_devices", whole(cards[2]) or 1)
        repository = REPOSITORY.search(text)
        if repository is not None:
            self.settings.setdefault("model", f"{repository[1]}/{repository[2]}")
        for key, rate in RATES.items():
            value_ = first(rate, text)
            if value_ is not None:
                self.rates[key] = value_
                self.line = line

    def runs(self) -> Iterator[LoggedRun]:
        """The whole training, its last summary: tokens a second where they were counted, else seconds a step."""
        runtime, steps = self.rates.get("train_runtime"), self.rates.get("train_steps_per_second")
        samples, tokens = self.rates.get("train_samples_per_second"), self.rates.get("num_tokens")
        if not runtime or not steps:
            return
        settings = {**self.options.settings(), **self.settings}
        if samples:
            settings.setdefault("global_batch", max(1, round(samples / steps)))
        measured = {"tokens_per_second": tokens / runtime} if tokens else {"step_seconds": 1 / steps}
        if tokens and samples:
            settings["seq_len"] = max(1, round(tokens / (samples * runtime)))
        yield LoggedRun(
            engine="pytorch",
            what="training",
            settings=settings,
            measured=measured,
            line=self.line,
            missing=tuple(name for name in ("task", "seq_len") if name not in settings),
        )

    def about(self) -> Mapping[str, str | int | float]:
        """The model, where its files were named."""
        return model_of(self.settings)


PARSER = TrainerLog
