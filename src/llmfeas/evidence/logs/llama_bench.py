"""llama-bench: its table in markdown, and its JSON, a key a line or an object a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .parser import MOST_RUNS, NUMBER, LoggedRun, LogParser, number, whole

TEST = re.compile(r"^(pp|tg)(\d{1,7})(?: @ d(\d{1,7}))?$")
RATE = re.compile(rf"^{NUMBER}(?: ± {NUMBER})?$")
KEY = re.compile(r'"(\w{1,40})":\s*("(?:[^"\\]|\\.){0,400}"|-?[0-9.eE+]{1,30}|true|false)')
KEYS = (
    "model_filename",
    "model_type",
    "n_gpu_layers",
    "n_prompt",
    "n_gen",
    "n_depth",
    "gpu_info",
    "flash_attn",
    "avg_ts",
)
ALL_OF_THEM = 99
"""Layers on the device that mean: all."""
SIZES = {"Small": "s", "Medium": "m", "Large": "l"}


class LlamaBenchLog(LogParser):
    """Reads tables and JSON."""

    marks = ("t/s |", " pp", " tg", *(f'"{key}"' for key in KEYS))

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.object: dict[str, str] = {}
        self.found: list[LoggedRun] = []

    def take(self, text: str, line: int) -> None:
        """Read a line."""
        if text.lstrip().startswith("|"):
            self._row(text, line)
            return
        for key, value in KEY.findall(text):
            if key in KEYS:
                self.object[key] = value.strip('"')
            if key == "avg_ts":
                self._object(line)

    def _row(self, text: str, line: int) -> None:
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        if "t/s" in cells and "test" in cells:
            self.columns = cells
            return
        row = dict(zip(self.columns, cells, strict=False)) if len(cells) == len(self.columns) else {}
        test, rate = TEST.match(row.get("test", "")), RATE.match(row.get("t/s", ""))
        if test is None or rate is None:
            return
        values = {
            "model_type": row.get("model", ""),
            "n_gpu_layers": row.get("ngl", ""),
            "flash_attn": row.get("fa", ""),
        }
        self._add(values, test[1], int(test[2]), int(test[3] or 0), number(rate[1]), line)

    def _object(self, line: int) -> None:
        values, self.object = self.object, {}
        prompt, answer, depth = (whole(values.get(key)) or 0 for key in ("n_prompt", "n_gen", "n_depth"))
        rate = RATE.match(values["avg_ts"])
        if rate is not None and (prompt > 0) != (answer > 0):
            self._add(values, "pp" if prompt else "tg", prompt or answer, depth, number(rate[1]), line)

    def _add(self, values: dict[str, str], test: str, tokens: int, depth: int, rate: float, line: int) -> None:
        if rate <= 0 or len(self.found) >= MOST_RUNS or not tokens:
            return
        settings: dict[str, str | int | float] = {"task": "inference", "engine": "llama.cpp", "concurrency": 1}
        settings |= {"attention": "flash" if values.get("flash_attn") in ("1", "true") else "eager"}
        settings |= _named(values)
        layers = values.get("n_gpu_layers", "")
        if layers.isdecimal() and int(layers[:9]) < ALL_OF_THEM:
            settings["gpu_layers"] = int(layers)
        prefill = test == "pp"
        settings |= {"prompt": depth + tokens if prefill else max(1, depth), "context": depth + tokens}
        if prefill and depth:
            return  # only the last of a prompt: no figure of ours is that
        name = "prefill_tokens_per_second" if prefill else "decode_tokens_per_second"
        what = f"{test}{tokens}" + (f" @ d{depth}" if depth else "")
        self.found.append(LoggedRun(engine="llama.cpp", what=what, settings=settings, measured={name: rate}, line=line))

    def runs(self) -> Iterator[LoggedRun]:
        """Each test."""
        yield from self.found


def _named(values: dict[str, str]) -> dict[str, str | int | float]:
    """Model, format and device by what the table or the JSON calls them."""
    said: dict[str, str | int | float] = {}
    kind = values.get("model_type", "")
    if values.get("model_filename"):
        said["model"] = values["model_filename"]
    elif kind:
        said["model"] = " ".join(word for word in kind.split(" ")[:2])
    format = format_of(kind)
    if format:
        said["quant"] = format
    if values.get("gpu_info"):
        said["device"] = values["gpu_info"].split(",")[0]
    return said


def format_of(kind: str) -> str:
    """The format that `llama 8B Q4_K - Medium` names; empty where there is none."""
    found = re.search(r"\b((?:IQ|Q|F|BF|MXFP|TQ|NVFP)\d+(?:_[0-9A-Z]+)*)(?: - (Small|Medium|Large))?", kind)
    if found is None:
        return ""
    name = found[1].lower() + (f"_{SIZES[found[2]]}" if found[2] else "")
    return "none" if name in ("f16", "bf16", "f32") else name


PARSER = LlamaBenchLog
