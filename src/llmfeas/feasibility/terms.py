"""Terms of a derivation: a quantity, its formula over named numbers, and where each number comes from.

A formula is arithmetic on the names of its inputs: `+ - * / **`, brackets, `max`, `min`, `sqrt`, `exp` and `expm1`.
Whoever puts the numbers in gets the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..derivation import Parts, formula_of
from ..scenario import Scenario
from ..timing.rates import peak_flop_per_s
from .result import Term, TermInput

Texts = Mapping[str, str | Mapping[str, str]]
"""What each part is; where that depends on how it is made, by the first of these numbers in its formula, else ""."""
_NAME = re.compile(r"[a-z_][a-z_0-9]*")


def number(name: str, value: float, unit: str = "", origin: str = "derived") -> TermInput:
    """A number of a formula."""
    return TermInput(name, value, unit, origin)


def setting(scenario: Scenario, name: str, value: object, unit: str = "") -> TermInput:
    """A setting of the question, with its origin."""
    return TermInput(name, value, unit, scenario.origins.get(name, "derived"))


def term(
    quantity: str,
    text: str,
    formula: str,
    inputs: Iterable[TermInput],
    value: float,
    unit: str,
    share: float | None = None,
) -> Term:
    """One line of a derivation; `formula` holds no other names than those of `inputs`."""
    return Term(
        quantity=quantity, text=text, formula=formula, inputs=tuple(inputs), value=value, unit=unit, share=share
    )


def noted(scenario: Scenario) -> Parts:
    """What keeps the numbers that the time of a question is computed from."""
    device = scenario.device
    return Parts(scenario.origins, peak_flop_per_s(device, scenario.precision), device.bandwidth_bytes_per_s)


def part_terms(
    prefix: str, notes: Parts, made: Mapping[str, float], parts: Mapping[str, float], texts: Texts
) -> Iterator[Term]:
    """The terms of an estimate's parts, in the words of `made`: the same parts, of numbers with names."""
    whole = sum(parts.values())
    for name, seconds in parts.items():
        formula, inputs = written(notes, name, made[name])
        text = _said(texts[name], [each.name for each in inputs])
        yield term(f"{prefix}.{name}", text, formula, inputs, seconds, "s", seconds / whole)


def written(notes: Parts, part: str, made: float) -> tuple[str, tuple[TermInput, ...]]:
    """The formula of a part of numbers with names, and these in their order."""
    formula, known = formula_of(made), notes.numbers[part]
    numbers = (known[name] for name in dict.fromkeys(_NAME.findall(formula)) if name in known)
    return formula, tuple(number(each.name, each.value, each.unit, each.origin) for each in numbers)


def _said(text: str | Mapping[str, str], there: Sequence[str]) -> str:
    if isinstance(text, str):
        return text
    return next(said for name, said in text.items() if name in there or not name)
