"""The page of all settings, for the documentation: read off the one table, so that it cannot fall behind."""

from __future__ import annotations

from ...options import OPTIONS, TASKS, Option, flag_of
from ...units import digits, format_bytes, format_duration
from ..report import Column, Phrase, Report, Table, Topic

COLUMNS = tuple(Column(title=title) for title in ("Option", "What it is", "Values", "When it is not said", "For"))
INTRODUCTION = (
    "Every command takes them under these names; a sweep, Python and the inputs of the JSON write them with "
    "underscores: micro_batch is --micro-batch. Numbers without a unit are counts; k M B T are decimal, GiB and GB "
    "differ."
)


def page() -> Report:
    """A table of settings for each heading of `llmfeas estimate --help`."""
    groups: dict[str, list[Option]] = {}
    for option in OPTIONS:
        groups.setdefault(option.group, []).append(option)
    blocks: list[Topic | Table] = []
    for title, options in groups.items():
        blocks += [Topic(label=title), Table(columns=COLUMNS, rows=tuple(_row(option) for option in options))]
    return Report(title="Settings of an estimate", context=(INTRODUCTION,), blocks=tuple(blocks))


def _row(option: Option) -> tuple[Phrase, ...]:
    flags = dict.fromkeys((*([option.short] if option.short else []), *option.flags, *map(flag_of, option.switches)))
    texts = (", ".join(flags), option.help, _values(option), option.default, _tasks(option))
    return tuple(Phrase(text) for text in texts)


def _values(option: Option) -> str:
    if option.choices:
        return ", ".join(_choice(option, choice) for choice in option.choices)
    if option.kind == "text":
        return "text"
    written = {"bytes": format_bytes, "duration": format_duration}.get(option.kind, _number)
    unit = f" {option.unit}" if option.unit and option.kind not in ("bytes", "duration") else ""
    return f"{written(option.minimum)} to {written(option.maximum)}{unit}"


def _choice(option: Option, choice: str) -> str:
    """A choice with its other spellings: `finetune (or sft, full)`."""
    others = [name for name, meant in option.synonyms.items() if meant == choice]
    return f"{choice} (or {', '.join(others)})" if others else choice


def _number(value: float) -> str:
    return digits(value, 7)


def _tasks(option: Option) -> str:
    return "every task" if option.tasks == set(TASKS) else ", ".join(task for task in TASKS if task in option.tasks)
