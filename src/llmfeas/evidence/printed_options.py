"""The recipe of a training, read off what trainers print of their options: dumps of configurations, command lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..optimizers import OPTIMIZERS
from ..options import BY_NAME

Setting = str | int | float

WHOLE: Mapping[str, tuple[str, ...]] = {
    "micro_batch": ("per_device_train_batch_size", "micro_batch_size"),
    "lora_rank": ("lora_rank", "lora_r"),
}
"""Options that are one of ours with its number."""
LENGTHS = ("sequence_len", "max_seq_length", "max_seq_len", "cutoff_len", "max_length", "model_max_length")
PACKING = ("sample_packing", "packing", "pad_to_sequence_len")
"""Where one of these is on, every sequence is as long as it may be."""
RECOMPUTING = ("gradient_checkpointing", "activation_checkpointing", "use_gradient_checkpointing")
OPTIMIZER = ("optimizer", "optim")
METHOD = ("adapter", "finetuning_type", "train_type", "tuner_type", "sft_type")
FOUR_BITS = ("load_in_4bit", "quantization_bit", "quant_bits")
EIGHT_BITS = ("load_in_8bit", "quantization_bit", "quant_bits")
MODEL = ("base_model", "model_name_or_path", "model_name")
PRECISION = ("bf16", "fp16")
NAMES = frozenset(
    {
        *(name for names in WHOLE.values() for name in names),
        *(name for names in (LENGTHS, PACKING, RECOMPUTING, OPTIMIZER, METHOD) for name in names),
        *(name for names in (FOUR_BITS, EIGHT_BITS, MODEL, PRECISION) for name in names),
    }
)
WRITTEN = re.compile(
    r"(?<![\w.-])(?:--|['\"])?(" + "|".join(sorted(NAMES, key=len, reverse=True)) + r")['\"]?(?:\s?[=:]\s?|\s(?!-))"
    r"(<?[\w.]{1,60}: )?['\"]?([\w./-]{1,200})"
)
"""An option with its value: `"optimizer": "adamw_8bit"`, `optim=<OptimizerNames.LION: 'lion_32bit'>`, `--bf16 true`."""
ON, OFF = frozenset({"true", "yes", "1", "unsloth"}), frozenset({"false", "no", "0", "none", "null"})
BANNERS = (
    ("unsloth", re.compile(r"\bUnsloth\b.{0,80}(?:patching|finetuning)")),
    ("axolotl", re.compile(r"\[axolotl\.")),
    ("llama-factory", re.compile(r"\bllamafactory\b")),
)
"""What trainers print of themselves."""
RELEASE = re.compile(r"\bTransformers(?: version)?: (\d{1,2})\.(\d{1,3})\b", re.IGNORECASE)
COPIES_LOGITS = (4, 48)
"""The last release of transformers that is asked for as `4.48`."""


class PrintedOptions:
    """Options as they are first printed: trainers print theirs before they start."""

    marks = (*sorted(NAMES), "Unsloth", "[axolotl.", "llamafactory", "ransformers")
    """A line is worth a look where one of these stands in it."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._found: dict[str, Setting] = {}

    def take(self, text: str) -> None:
        """Read a line."""
        for found in WRITTEN.finditer(text):
            self._said.setdefault(found[1], found[3])
        for engine, banner in BANNERS:
            if banner.search(text):
                self._found.setdefault("engine", engine)
        release = RELEASE.search(text)
        if release is not None:
            whole, part = int(release[1]), int(release[2])
            old = "4.48" if (whole, part) <= COPIES_LOGITS else "4"
            self._found.setdefault("transformers", "5" if whole >= 5 else old)

    def settings(self) -> dict[str, Setting]:
        """Ours, as far as the options say them."""
        return {**self._found, **dict(self._numbers()), **dict(self._words()), **self._method()}

    def _first(self, names: tuple[str, ...]) -> str | None:
        return next((self._said[name] for name in names if name in self._said), None)

    def _is(self, names: tuple[str, ...], values: frozenset[str]) -> bool:
        return any(self._said.get(name, "").lower() in values for name in names)

    def _numbers(self) -> Iterator[tuple[str, int]]:
        for setting, names in WHOLE.items():
            value = self._first(names)
            if value is not None and value.isdecimal() and int(value[:9]) > 0:
                yield setting, int(value[:9])
        length = self._first(LENGTHS)
        if length is not None and length.isdecimal() and int(length[:9]) > 0 and self._is(PACKING, ON):
            yield "seq_len", int(length[:9])

    def _words(self) -> Iterator[tuple[str, str]]:
        model = self._first(MODEL)
        if model is not None:
            yield "model", model
        if self._is(RECOMPUTING, ON | OFF):
            yield "checkpointing", "full" if self._is(RECOMPUTING, ON) else "none"
        optimizer = optimizer_called(self._first(OPTIMIZER) or "")
        if optimizer is not None:
            yield "optimizer", optimizer
        for name in PRECISION:
            if self._is((name,), ON):
                yield "precision", f"{name}-mixed"
                return

    def _method(self) -> dict[str, Setting]:
        """The task, and the format of a frozen base."""
        method = (self._first(METHOD) or "").lower()
        four = self._is(FOUR_BITS, frozenset({*ON - {"1"}, "4"}))
        eight = self._is(EIGHT_BITS, frozenset({*ON - {"1"}, "8"}))
        adapted = method in ("lora", "qlora") or "lora_rank" in dict(self._numbers())
        if adapted and (four or eight):
            return {"task": "qlora", "quant": "nf4" if four else "int8"}
        if adapted:
            return {"task": "lora"}
        return {"task": "finetune"} if method == "full" else {}


def optimizer_called(name: str) -> str | None:
    """Our optimizer of a trainer's name for it (`OptimizerNames.ADAMW_TORCH_FUSED`), or None."""
    plain = name.rpartition(".")[2].lower().replace("_", "-")
    called = BY_NAME["optimizer"].synonyms.get(plain, plain)
    return called if called in OPTIMIZERS else None
