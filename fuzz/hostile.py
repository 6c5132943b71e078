"""Values that nobody should say: texts that terminals act on, numbers beyond all bounds, wrong types."""

from __future__ import annotations

from random import Random
from typing import Any

TEXTS = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "\x90q\x9c",
    "\x85next\u2028line\ufeff",
    "[bold red]markup[/]",
    "[link=http://x]y[/link]",
    "\u202egnirts\u202c",
    "\u2066inside\u2069",
    "two\nlines",
    "carriage\rreturn",
    "tab\tbed",
    "nul\0",
    "zero\u200bwidth",
    "\ud800",
    "\ue000\ue001",
    "\u00a0",
    "x" * 10_000,
    "%s%n{0}{}",
    "$(touch hacked)",
    "`id`; rm -rf x",
    "../../etc/passwd",
    "=cmd|' /C calc'!A0",
    "::error::injected",
    "]]></failure>",
    "|pipe|",
    "",
    " ",
    "-",
    "--",
    "null",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 400,
    "0x10",
    "1_000",
    "１２",
    "½",
    "∞",
    "true",
    "None",
    "0",
    "-0.0",
    "-1",
)
NUMBERS = (
    *(0, 1, -1, 2, 7, 0.5, -0.0, 1e-300, 1e-9, 1e9, 1e15, 1e18, 1e25, 1e30, 1e300, 2**31, 2**63, 2**64, 10**15, 10**40),
    10**400,
    float("nan"),
    float("inf"),
    -float("inf"),
)


def text(chance: Random) -> str:
    """A hostile text, at times within or beside another one."""
    chosen = chance.choice(TEXTS)
    if chance.random() < 0.3:
        chosen = chance.choice(("rtx-4090", "gpt2", "a")) + chosen
    return chosen


def argument(chance: Random) -> str:
    """A hostile text that a process can be given."""
    return text(chance).replace("\0", "").replace("\ud800", "\udc80")


def value(chance: Random, depth: int = 0) -> Any:
    """Any value that JSON or YAML can hold."""
    kind = chance.randrange(8 if depth < 3 else 5)
    match kind:
        case 0 | 1:
            return chance.choice(NUMBERS)
        case 2 | 3:
            return text(chance)
        case 4:
            return chance.choice((None, True, False))
        case 5 | 6:
            return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
        case _:
            return {text(chance): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def mutated(document: Any, chance: Random, changes: int = 2) -> Any:
    """A copy of plain data in which some places are replaced, lost, doubled or added."""
    import copy

    whole = [copy.deepcopy(document)]
    for _ in range(chance.randint(1, changes)):
        places = list(_places(whole))
        holder, key = chance.choice(places)
        match chance.randrange(6):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[text(chance)] = holder[key]
            case 2 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 3:
                old = holder[key]
                if isinstance(old, int | float) and not isinstance(old, bool):
                    holder[key] = chance.choice(
                        (old * 10, -old, 0, old + 1, old // 7, old * 0.5 if abs(old) < 1e300 else old, old * 10**12)
                    )
                else:
                    holder[key] = value(chance)
            case 4:
                holder[key] = [holder[key]]
            case _:
                holder[key] = value(chance)
    return whole[0]


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every holder with every key in it, the document's own first."""
    found: list[tuple[Any, Any]] = []
    waiting = [data]
    while waiting and len(found) < 5000:
        holder = waiting.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def dumped(document: Any) -> str:
    """Plain data as JSON, which is YAML too, lone surrogates and numbers that are none included."""
    import json

    return json.dumps(document)
