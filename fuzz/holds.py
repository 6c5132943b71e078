"""What must hold of every answer, whatever was asked: exit codes, safe text, possible figures, time and memory."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

CODES = (0, 2, 3, 4)
CPU_SECONDS = 2.0
WHOLE_CPU_SECONDS = 20.0
WHOLE = (("backtest",), ("solve", "max-model"))
"""Commands that answer thousands of questions: every measurement, every model of the catalog."""
SLOW = "s of CPU"
"""How the fault of what takes longer ends."""
MEMORY_BYTES = 300_000_000
LONGEST_ERROR = 20_000
FORMATS = ("json", "ndjson")
GLUE = "\u00a0"
SHARES = re.compile(r"(^|_)(mfu|hfu|utilization|(?<!even_)share|acceptance|prefix_hit)$")
"""Keys whose values are parts of a whole."""
AMOUNTS = re.compile(r"(_bytes|_seconds|_flop|usd|_kwh|_per_second)$")
"""Keys whose values nothing can be below zero of."""
SIGNED = re.compile(r"headroom|free|change|difference|saved|delta|error|missing|inputs|before|after|low|^a$|^b$")


@dataclass(frozen=True)
class Outcome:
    """What one command line did in this process."""

    arguments: Sequence[str]
    code: int
    out: str
    err: str
    cpu_seconds: float


def answered(arguments: Sequence[str], stdin: bytes = b"") -> Outcome:
    """Run a command line here, as its own process would, but for signals."""
    from llmfeas.cli import main

    out, err, given = io.StringIO(), io.StringIO(), io.TextIOWrapper(io.BytesIO(stdin), "utf-8", "surrogateescape")
    before, sys.stdin = sys.stdin, given
    begin = time.process_time()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
    finally:
        sys.stdin = before
    return Outcome(arguments, code, out.getvalue(), err.getvalue(), time.process_time() - begin)


def faults(found: Outcome) -> Iterator[str]:
    """Yield what does not hold of an outcome."""
    if found.code not in CODES:
        yield f"exit code {found.code}: {found.err[-300:]!r}"
    if "Traceback" in found.err:
        yield f"traceback: {found.err[-300:]!r}"
    if found.code and not found.err and not {"-q", "--quiet"} & set(found.arguments):
        yield f"exit code {found.code} without a word"
    if len(found.err) > LONGEST_ERROR:
        yield f"an error of {len(found.err)} characters"
    for name, text in (("stdout", found.out), ("stderr", found.err)):
        unsafe = set() if _plain(text) else {c for c in text if not c.isprintable()} - {"\n", GLUE}
        if unsafe:
            yield f"{name} holds {sorted(unsafe)[:5]!r}: {_around(text, min(unsafe))}"
    whole = any(tuple(found.arguments[: len(words)]) == words for words in WHOLE)
    if found.cpu_seconds > (WHOLE_CPU_SECONDS if whole else CPU_SECONDS):
        # by its words too: its name asks something else once commands or the catalog have grown
        yield f"llmfeas {' '.join(map(ascii, found.arguments))[:200]}: {found.cpu_seconds:.1f} {SLOW}"
    yield from _of_json(found)


def _plain(text: str) -> bool:
    """Whether all is safe, told at once for most texts."""
    return text.replace("\n", "").replace(GLUE, "").isprintable()


def _around(text: str, character: str) -> str:
    place = text.index(character)
    return repr(text[max(0, place - 60) : place + 60])


def _of_json(found: Outcome) -> Iterator[str]:
    words = list(itertools.takewhile(lambda word: word != "--", found.arguments))
    pairs = itertools.pairwise(words)
    wanted = "--json" in words or any(flag in ("-f", "--format") and each in FORMATS for flag, each in pairs)
    own = found.arguments[0] in ("completion", "schema") or list(found.arguments[:2]) == ["catalog", "init"]
    if not wanted or own or (found.arguments[0] == "check" and "--init" in words):
        return  # what is written there is a file of its own
    told = found.err.splitlines(keepends=True)[-1:] if {"-v", "--verbose"} & set(words) else [found.err]
    for text in (found.out, *(told if found.code else ())):
        for document in _documents(text):
            if document is None:
                yield f"no JSON: {text[:200]!r}"
                return
            yield from impossible(document)


def _documents(text: str) -> Iterator[Any]:
    """Each JSON document of a text; None for what is none."""

    def refused(word: str) -> Any:
        raise ValueError(word)

    pieces = [text] if text.startswith("{\n") else text.splitlines()
    for piece in pieces:
        if piece.strip() and not piece.startswith("Note: "):
            try:
                yield json.loads(piece, parse_constant=refused)
            except ValueError:
                yield None


def impossible(data: Any, path: str = "") -> Iterator[str]:
    """Yield the figures of an answer that no machine can have."""
    if isinstance(data, dict):
        if data.keys() >= {"low", "expected", "high"}:
            ends = [data["low"], data["expected"], data["high"]]
            if all(isinstance(end, int | float) for end in ends) and not ends[0] <= ends[1] <= ends[2]:
                yield f"{path}: {ends} are out of order"
            yield from (fault for end in ends for fault in _impossible_number(end, path))
            return
        for key, value in data.items():
            if key not in ("inputs", "explanation", "error", "schema"):
                yield from impossible(value, f"{path}.{key}")
    elif isinstance(data, list):
        for item in data:
            yield from impossible(item, path)
    else:
        yield from _impossible_number(data, path)


def _impossible_number(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    key = path.rpartition(".")[2]
    if not abs(value) <= sys.float_info.max:
        yield f"{path} is {value}"
    elif SHARES.search(key) and not 0 <= value <= 1 + 1e-9:
        yield f"{path} is {value}, a share"
    elif AMOUNTS.search(key) and not SIGNED.search(path) and value < 0:
        yield f"{path} is {value}"
