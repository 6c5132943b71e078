"""Settings as type checkers and editors know them, as the table of settings has them."""

from __future__ import annotations

import textwrap
from pathlib import Path

from llmfeas.options import OPTIONS, Option
from llmfeas.planning.solve import QUESTIONS

FILE = Path(__file__).parent.parent / "src" / "llmfeas" / "settings.py"
HEAD = '''"""The settings of a question as type checkers and editors know them; only they read this file.

tests/test_python_page.py writes it from the table of settings (`options`) with UPDATE_GOLDEN=1.
"""

from __future__ import annotations

from typing import Literal, TypedDict

# fmt: off
'''


def _literal(start: str, values: list[str], more: str = "") -> str:
    """`start` and the values, in as few lines as they take."""
    named = ", ".join(f'"{value}"' for value in values)
    line = f"{start}{more}Literal[{named}]"
    if len(line) <= 120:
        return line
    indent = " " * (len(start) - len(start.lstrip()))
    inside = indent + "    "
    listed = textwrap.fill(named, 120, initial_indent=inside, subsequent_indent=inside, break_on_hyphens=False)
    return f"{start}{more}Literal[\n{listed}\n{indent}]"


def _field(option: Option) -> str:
    start, truth = f"    {option.name}: ", "bool | " if option.name in option.switches else ""
    if option.choices and not option.extensible:
        numbers = "int | " if all(choice.isdecimal() for choice in option.choices) else ""
        return _literal(start, [*option.choices, *option.synonyms, "auto"], truth + numbers)
    plain = {"text": "str", "integer": "int | str"}
    return start + truth + plain.get(option.kind, "float | str")


def written() -> str:
    """The whole file."""
    lines = [
        _literal("Question = ", [*QUESTIONS]),
        '"""What `solve` answers."""',
        _literal("Setting = ", [option.name for option in OPTIONS]),
        '"""Names of settings."""',
        "",
        "",
        "class Settings(TypedDict, total=False):",
        '    """What a question may say beside model and device; what it leaves out is decided."""',
        "",
    ]
    for option in OPTIONS:
        if option.name not in ("model", "device"):
            lines += [_field(option), f'    """{option.help.replace(chr(34), chr(39))}"""']
    return HEAD + "\n".join(lines) + "\n"
