"""What codes and numbers of an envelope are called when a person reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..options import BY_NAME, flag_of
from ..ranges import Range
from ..text import printable
from ..units import GIB, digits, format_bytes, format_count, format_duration, format_range, format_usd, separated
from .report import GLUE, Json, Meaning, Pair, Phrase, Topic, glued

MEANINGS: Mapping[str, Meaning] = {
    "feasible": "feasible",
    "tight": "tight",
    "infeasible": "infeasible",
    "supported": "feasible",
    "limited": "tight",
    "unsupported": "infeasible",
    "holds": "feasible",
    "holds under conditions": "tight",
    "does not hold": "infeasible",
}
"""What verdicts on a scenario, a technique and a claim mean."""

COMPONENTS: Mapping[str, str] = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "optimizer_bytes": "optimizer states",
    "activations_bytes": "activations",
    "logits_bytes": "logits",
    "kv_cache_bytes": "key-value cache",
    "workspace_bytes": "work space",
    "runtime_bytes": "runtime",
}

MOMENTS: Mapping[str, str] = {
    "forward": "in the forward pass",
    "loss": "when the loss is computed",
    "backward": "in the backward pass",
    "optimizer": "in the optimizer step",
    "prefill": "while reading the prompt",
    "decode": "while writing",
}

LIMITS: Mapping[str, str] = {
    "compute": "computation",
    "bandwidth": "memory bandwidth",
    "host": "the overhead of many small steps",
    "communication": "communication between devices",
    "bubble": "waiting in the pipeline",
    "data": "data that come in more slowly",
}

TASKS: Mapping[str, str] = {
    "pretrain": "pre-training",
    "finetune": "full fine-tuning",
    "lora": "LoRA fine-tuning",
    "qlora": "QLoRA fine-tuning",
    "inference": "inference",
    "dpo": "preference tuning",
    "grpo": "reinforcement learning",
    "distill": "distillation",
    "reward": "training a reward model",
    "embed": "training embeddings",
    "rerank": "training a reranking model",
}


_LONG_NUMBER = re.compile(r"(?<!\S)(--\S+\s)?(\(?)(\d{5,})(?=[\s,.;:)]|$)")


def grouped(text: str) -> str:
    """`text` with separators in its long whole numbers (`37,193 tokens`), but in those that stand behind an option."""
    return _LONG_NUMBER.sub(lambda found: found[0] if found[1] else found[2] + separated(found[3]), text)


def sentence(text: str, longest: int = 400) -> str:
    """A message as a sentence; a word to type (`mlx on M1: ...`) or a name (`vLLM`) at its start keeps its spelling."""
    shown = grouped(printable(text, longest))
    first, _, rest = shown.partition(" ")
    typed = not (first.isalpha() and first.islower()) or first in TASKS
    typed = typed or (rest.startswith("on ") and first != "flash")
    shown = shown if typed else shown[:1].upper() + shown[1:]
    return shown + ("" if shown.endswith((".", "!", "?")) else ".")


def counted(count: int, device: str) -> str:
    """Devices with their number: `8 x NVIDIA H100`; unequal ones are named with theirs."""
    return f"{count} x {device}" if count > 1 and " + " not in device else device


def figure(value: Mapping[str, float], written: Callable[[float], str]) -> str:
    """A RANGE of the contract, kept on one line: `112 days (90 – 150)`."""
    return glued(format_range(Range(value["low"], value["expected"], value["high"]), written))


def rate(value: Mapping[str, float], thing: str = "tokens/s") -> str:
    """A RANGE of things a second: `3.22 k (2.42 – 4.03) tokens/s`."""
    return f"{figure(value, format_count)}{GLUE}{thing}"


def copies_of(inputs: Mapping[str, Any]) -> int:
    """Copies of the model that stand side by side on the devices of a request."""
    size = {name: (inputs.get(name) or {}).get("value") or 1 for name in ("num_devices", "tp", "pp", "cp")}
    return max(1, int(size["num_devices"]) // int(size["tp"] * size["pp"] * size["cp"]))


def speed_of(time: Mapping[str, Any], *, under_load: bool) -> Mapping[str, float]:
    """The RANGE of tokens a second of a model that is served: written, or read where it writes none."""
    written: Mapping[str, float] = time["output_tokens_per_second" if under_load else "decode_tokens_per_second"]
    read: Mapping[str, float] = time["prefill_tokens_per_second"]
    return written if written["expected"] else read


def judged(verdict: str, text: str = "") -> Phrase:
    """`text` with the sign of a verdict, or that sign alone; the words beside it say the same."""
    return Phrase(text, MEANINGS.get(verdict, "plain"), signed=True)


def verdict_words(verdict: Mapping[str, Any]) -> Phrase:
    """Whether it can be done, and if not what stands against it, in few words."""
    if verdict["status"] == "infeasible":
        causes = {
            "memory": {"exceeds": "does not fit"},
            "time": {"over_deadline": "misses the deadline", "impractical": "would take years"},
            "budget": {"over_budget": "over budget"},
            "load": {"missed": "misses its targets", "overloaded": "requests pile up"},
        }
        words = ", ".join(names[verdict[key]] for key, names in causes.items() if verdict.get(key) in names)
    else:
        words = {"feasible": "feasible", "tight": "tight", "unsupported": "not supported"}.get(verdict["status"], "")
    return judged(verdict["status"], glued(words or verdict["status"]))


def setting(name: str, value: object) -> str:
    """The value of a setting as one may type it: `16GiB`, `30d`, `31.2B`, `0.9`."""
    option = BY_NAME.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(value, 60)
    kind = option.kind if option else "number"
    if kind == "bytes":
        return f"{digits(value / GIB, 4)}GiB"
    if kind == "duration":
        return f"{digits(value / 86400, 4)}d" if value >= 86400 else f"{digits(value, 4)}s"
    if kind == "count":
        return format_count(value).replace(" ", "")
    return str(value) if isinstance(value, int) else digits(value, 6)


def flags(changes: Mapping[str, object]) -> str:
    """Settings as options of the command line, as people type them: `--task lora --micro-batch 1`, `-d 8xh100-sxm`."""
    if "device" in changes and "num_devices" in changes:
        changes = {**changes, "device": f"{changes['num_devices']}x{changes['device']}"}
        changes.pop("num_devices")
    words = []
    for name, value in changes.items():
        option = BY_NAME.get(name)
        flag = option.short if option and name in ("model", "device") else flag_of(name)
        words.append(glued(f"{flag} {setting(name, value)}"))
    return " ".join(words)


def amounts(way: Mapping[str, Any]) -> str:
    """What a way takes: `6.2 GiB, 41 h, $12.00`, or `21 GiB, 3.1 tokens/s, $42 a million tokens`."""
    peak, seconds = way["peak_bytes"], way.get("total_seconds")
    speed = way.get("output_tokens_per_second") or way.get("decode_tokens_per_second")
    usd, per_million = way.get("usd"), way.get("usd_per_million_tokens")
    parts = [
        glued(format_bytes(peak)) if peak is not None else "",
        glued(format_duration(seconds)) if seconds is not None else "",
        glued(f"{format_count(speed)} tokens/s") if speed is not None else "",
        glued(format_usd(usd) if usd else "free") if usd is not None else "",
        glued(f"{format_usd(per_million)} a million tokens") if per_million is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def ways_topic(label: str, ways: Iterable[Json], figure: Callable[[Json], str] = amounts) -> Topic | None:
    """What to change, a line each: what it comes to (`figure`), and what one gives up; None without any."""
    pairs = []
    for way in ways:
        right = [judged(way["status"]), Phrase(" " + figure(way))]
        if way.get("message"):
            right.append(Phrase(f": {printable(way['message'], 500)}", "dim"))
        pairs.append(Pair(flags(way["changes"]), tuple(right)))
    return Topic(label=label, pairs=tuple(pairs)) if pairs else None
