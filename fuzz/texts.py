"""Texts as nobody should write them, for every command that reads some: bombs, endless nesting, other encodings; logs,
recipes, what an agent or the page asks, and surroundings in which nothing is where it should be.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from . import hostile
from .files import TESTS, damaged
from .holds import answered, faults
from .words import DEVICES, MODELS, question

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
PIECES = (
    BOMB,
    "&a [*a]\n",
    "a: &a {b: *a}\n",
    "base: &b {x: 1}\nmine:\n  <<: *b\n",
    "<<: [1, 2]\n",
    "? [a, b]\n: c\n",
    "? {a: b}\n: c\n",
    "!!python/object/apply:os.system ['touch hacked']\n",
    "!!binary aGVsbG8=\n",
    "a: !!timestamp 2001-12-14\nb: 2001-12-14t21:59:43.10-05:00\n",
    "a: 190:20:30\nb: 0o17\nc: 017\nd: 0b11\ne: 1_000\n",
    "%YAML 9.9\n---\na: 1\n",
    "%TAG ! tag:x,2000:\n---\n!y a\n",
    "a: 1\n---\nb: 2\n",
    "a: 1\na: 2\n",
    "- " * 5000 + "x\n",
    "[" * 5000,
    '{"a":' * 5000 + "1" + "}" * 5000,
    "a: |\n  \x1b[31mred\n  two\n",
    "a: >+\n\n\n  x\n",
    "\ta: 1\n",
    "a: " + "9" * 5000 + "\n",
    "[NaN, Infinity, -Infinity, 1e999, -1e999, 1E+400]\n",
    "[.nan, .inf, -.inf]\n",
    '{"a": 1, "a": 2}\n',
    '["\\ud800"]\n',
    '"\\u0000\\u001b[2J"\n',
    "# nothing\n",
    "",
    "\n" * 10_000,
    "null\n",
    "x" * 100_000,
    "'",
    "{[}]",
    "id,model,device\n1,gpt2,t4\n",
    "model,model\ngpt2,gpt2\n",
    '"a\nb",c\n1,2\n',
    "=1+1,@x,-2\n",
)
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp037", "utf-7")


@functools.cache
def good() -> tuple[str, ...]:
    """Texts that commands take: an overlay, a sweep, expectations, a stored answer, a configuration."""
    stored = sorted((TESTS / "data" / "estimates").glob("*.json"))
    ask = {"model": "gpt2", "device": "t4", "task": "lora"}
    return (
        "devices:\n  - {id: mine, name: Mine, extends: rtx-4090, memory_gib: 48}\n",
        "models:\n  - {id: mine, name: M, extends: llama-3-8b}\n",
        "model: [gpt2, qwen3-0.6b]\ndevice: t4\ntask: [lora, inference]\n",
        json.dumps(ask) + "\n" + json.dumps({**ask, "id": [1, {"a": None}]}) + "\n",
        "- {id: one, model: gpt2, device: t4, expect: {fits: true, peak_gib: {max: 20}}}\n",
        stored[0].read_text("utf-8"),
        json.dumps({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}),
    )


def document(chance: Random) -> bytes:
    """A text of which a part is as it should not be, in some encoding."""
    text = chance.choice(good()) if chance.random() < 0.6 else ""
    for _ in range(chance.randint(0, 2)):
        place = chance.choice((0, len(text), chance.randrange(len(text) + 1)))
        text = text[:place] + chance.choice(PIECES) + text[place:]
    if chance.random() < 0.2:
        text = text.replace("\n", chance.choice(("\r\n", "\r", "\x0b", "\x85", "\u2028", "\n\n")))
    raw = text.encode(chance.choice(ENCODINGS), "replace")
    return damaged(raw, chance.randrange(2**32)) if chance.random() < 0.3 else raw


READERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mine.yaml", ("catalog", "check", "mine.yaml")),
    ("mine.yaml", ("estimate", "-m", "gpt2", "-d", "t4", "--catalog", "mine.yaml", "--json")),
    ("llmfeas.yaml", ("compare", "-m", "gpt2", "-d", "t4,mine", "-t", "inference")),
    ("in.yaml", ("sweep", "in.yaml")),
    ("in.ndjson", ("sweep", "in.ndjson", "-f", "csv")),
    ("in.csv", ("sweep", "in.csv")),
    ("in.tsv", ("sweep", "in.tsv")),
    ("in", ("check", "in", "-f", "junit")),
    ("in.yaml", ("check", "in.yaml", "--json")),
    ("a.json", ("diff", "a.json", "a.json")),
    ("in.log", ("learn", "in.log", "-m", "gpt2", "-d", "t4")),
    ("in.json", ("launch", "in.json")),
    ("config.json", ("estimate", "-m", "config.json", "-d", "t4", "-t", "inference")),
    ("config.json", ("models", "show", ".")),
    ("config/llmfeas/measured.yaml", ("estimate", "-m", "gpt2", "-d", "t4", "-t", "inference")),
    ("config/llmfeas/catalog.yaml", ("devices", "show", "t4", "--json")),
    ("model.safetensors.index.json", ("estimate", "-m", "model.safetensors.index.json", "-d", "t4")),
)
"""Files with the command that reads each."""


def texts(chance: Random, folder: Path) -> Iterator[str]:
    """A text in place of any file that a command reads; at times from stdin."""
    name, line = chance.choice(READERS)
    raw = document(chance)
    if line[0] in ("sweep", "check", "learn", "launch") and chance.random() < 0.2:
        found = answered([line[0], "-", *line[2:]], raw)
    else:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        found = answered(line)
    yield from faults(found)
    if (folder / "hacked").exists():
        yield "a text was executed"


@functools.cache
def printed() -> tuple[bytes, ...]:
    """What engines printed."""
    return tuple(path.read_bytes() for path in sorted((TESTS / "data" / "logs").iterdir()) if path.suffix != ".md")


def logs(chance: Random, folder: Path) -> Iterator[str]:
    """What an engine printed, damaged, or with other numbers and hostile names in it."""
    raw = chance.choice(printed())
    if chance.random() < 0.5:
        words = raw.decode("utf-8", "replace").split(" ")
        for _ in range(chance.randint(1, 5)):
            words[chance.randrange(len(words))] = str(
                chance.choice((hostile.text(chance), chance.choice(hostile.NUMBERS)))
            )
        raw = " ".join(words).encode("utf-8", "surrogatepass")
    else:
        raw = damaged(raw, chance.randrange(2**32))
    (folder / "in.log").write_bytes(raw)
    line = ["learn", "in.log", *chance.choice(([], ["--keep"]))]
    line += [word for flag, names in (("-m", MODELS), ("-d", DEVICES)) for word in (flag, chance.choice(names))]
    yield from faults(answered([*line, "-f", chance.choice(("table", "json", "csv"))]))
    if "--keep" in line:
        yield from faults(answered(["estimate", "-m", "gpt2", "-d", "rtx-4090", "-t", "inference", "--json"]))


@functools.cache
def recipe() -> Any:
    """A stored answer whose recipe a launcher writes."""
    line = ["estimate", "-m", "llama-3-8b", "-d", "8xh100-sxm", "-t", "lora", "--json"]
    return json.loads(answered(line).out)


def recipes(chance: Random, folder: Path) -> Iterator[str]:
    """The JSON of an answer with a few places changed, as a launcher reads it: it writes nowhere else."""
    changed = {**recipe(), "inputs": hostile.mutated(recipe()["inputs"], chance, 3)}
    (folder / "in.json").write_text(hostile.dumped(changed), "utf-8", "surrogatepass")
    line = ["launch", "in.json", *chance.choice(([], ["-o", "out"], ["--json"], ["--on", "slurm", "-o", "out"]))]
    yield from faults(answered(line))
    there = sorted(path.name for path in folder.iterdir())
    if not set(there) <= {"in.json", "out", "config"}:
        yield f"launch wrote {there}"


def _said_elsewhere(asked: Any, chance: Random) -> Any:
    """The same question with some settings under names that other tools have for them."""
    from llmfeas.elsewhere import ELSEWHERE
    from llmfeas.request import MOST_LETTERS, option_called

    theirs = [name for name, ours in ELSEWHERE.items() if ours.same and chance.random() < 0.3]
    names = {option_called(name).name: name.replace("-", "_") for name in theirs if len(name) > MOST_LETTERS}
    return {names.get(name, name): value for name, value in asked.items()} if isinstance(asked, dict) else asked


def calls(chance: Random, folder: Path) -> Iterator[str]:
    """What the page and agents ask, with values of any kind: an answer or an error, never a bug."""
    from llmfeas.cli.commands.mcp import _answered
    from llmfeas.cli.tools import tools
    from llmfeas.page.answers import CALLS, FURTHER, called

    asked: Any = question(chance)
    mutated = hostile.mutated(asked, chance)
    asked = (
        mutated
        if isinstance(mutated, dict) and isinstance(mutated.get("device"), str) and chance.random() < 0.8
        else asked
    )
    asked = _said_elsewhere(asked, chance) if chance.random() < 0.3 else asked
    if chance.random() < 0.5:
        name = chance.choice([each for each in CALLS if each != "start"])
        more = {"curves": [chance.choice(list(FURTHER))], "beside": [hostile.text(chance)]}.get(name, [])
        arguments = [chance.choice(("models", "devices")), hostile.text(chance)] if name == "found" else [asked, *more]
        error = json.loads(called(name, json.dumps(arguments))).get("error")
    else:
        name, arguments = chance.choice(list(tools())), asked
        if name.startswith(("search", "show")):
            arguments = {chance.choice(("query", "name", "names", "limit")): hostile.value(chance)}
        _, envelope, failed = _answered(tools()[name], arguments)
        error = envelope["error"] if failed else None
    if isinstance(error, dict):
        if error["code"] == "bug":
            yield f"{name}: {error['message']} for {arguments!r:.500}"
        if not all(line.isprintable() for line in str(error["message"]).split("\n")):
            yield f"{name}: an error with {error['message']!r:.300}"


VARIABLES = {
    "COLUMNS": ("1", "0", "-1", "7", "100000", "x", ""),
    "LINES": ("1", "x"),
    "TERM": ("dumb", "", "x" * 1000),
    "NO_COLOR": ("1", ""),
    "LANG": ("C", "xx_XX.utf8", ""),
    "LC_ALL": ("C", "POSIX"),
    "LANGUAGE": ("de:fr", "../../x"),
    "HOME": (None, "", "/nonexistent", "file", "relative", "loop", "\x1b[31m"),
    "XDG_CONFIG_HOME": (None, "", "file", "loop", "/dev/null", "x" * 5000, "~"),
    "XDG_CACHE_HOME": ("", "file", "loop"),
    "HF_HOME": ("", "file", "loop", "x" * 5000),
    "OLLAMA_MODELS": ("", "file", "loop"),
    "LLMFEAS_CATALOG": ("", "file", "loop", "fifo", "/dev/zero", "folder", "x" * 5000, "a:b:c", "\x1b[31m"),
}
PATHS = (
    *("loop", "folder", "fifo", "file", "/dev/zero", "/dev/full", "/dev/null", "x" * 300, "x" * 5000, "nul", "CON"),
    *(
        "C:\\models\\x.gguf",
        "\\\\server\\share",
        "file/inside",
        "loop/inside",
        "\x1b[31m.gguf",
        "hf:x/y",
        "~",
        "~nobody",
    ),
    *("/proc/self/mem", "/proc/self/fd/0", "folder/../file", ".", "/", "dangling", "locked", "\udcff.safetensors"),
)


def surroundings(chance: Random, folder: Path) -> Iterator[str]:
    """Variables that say nonsense, and paths that lead nowhere."""
    for name, target in (("loop", "loop"), ("dangling", "nothing")):
        (folder / name).symlink_to(target)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "file").write_bytes(document(chance))
    (folder / "locked").touch(0)
    before = dict(os.environ)
    try:
        for name in chance.sample(list(VARIABLES), chance.randint(0, 3)):
            value = chance.choice(VARIABLES[name])
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        yield from faults(answered(_misled(chance)))
    finally:
        os.environ.clear()
        os.environ.update(before)


def _misled(chance: Random) -> list[str]:
    """A command line with a path to nowhere in it."""
    path = chance.choice(PATHS)
    ask = ["-m", "gpt2", "-d", "t4", "-t", "inference"]
    regular = path not in ("fifo", "/dev/zero")  # what a shell may pipe into a command is read until it ends
    match chance.randrange(8 if regular else 4):
        case 0:
            return ["estimate", "-m", path, *ask[2:]]
        case 1:
            return ["models", "show", path, "--json"]
        case 2:
            return ["estimate", *ask]
        case 3:
            return ["compare", *ask, "-f", "markdown"]
        case 4:
            return ["estimate", *ask, "-o", path, *chance.choice(([], ["--json"]))]
        case 5:
            return ["catalog", *chance.choice((["check", path], ["init", path], ["path"]))]
        case 6:
            return ["launch", "-m", "gpt2", "-d", "t4", "-t", "lora", "-o", path]
        case _:
            return [chance.choice(("sweep", "check", "learn", "launch")), path]
