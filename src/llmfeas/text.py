"""Text from outside (names, file contents) made safe to show in a terminal, a log or a message.

It passes here at the doors: where an error is made, where a report is, and where a line goes to stderr. JSON and CSV
escape by themselves.
"""

from __future__ import annotations


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def printable(text: object, limit: int = 80) -> str:
    """`text` on one line without anything that a terminal would act on, at most `limit` characters.

    Control characters (C0, C1, line breaks), bidirectional overrides and other invisible format characters, surrogates
    and unassigned code points become visible escapes; longer text is cut in the middle.
    """
    raw = text if isinstance(text, str) else str(text)
    if len(raw) > limit:
        keep = max(1, (limit - 1) // 2)
        raw = f"{raw[:keep]}…{raw[-keep:]}"
    return raw if raw.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in raw)


GLUE = "\u00a0"
"""Stands for a space at which no line is broken, as inside `29.1 GiB (28.3 – 30.9)`."""


def shown(text: str, kept: str = GLUE) -> str:
    """`text` as it may be laid out: what a terminal would act on becomes a visible escape, `kept` stays."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else _escaped(c) for c in text)
