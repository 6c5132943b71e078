"""Terms of a derivation: a quantity, its formula over named numbers, and where each number comes from.

A formula is arithmetic on the names of its inputs: `+ - * / **`, brackets, `max` and `min`. Whoever puts the numbers in
gets the value.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..scenario import Scenario
from .result import Term, TermInput

Written = tuple[str, str, tuple[TermInput, ...]]
"""What a part is, its formula, and the numbers in it."""
EFFICIENCY = "data/efficiency.yaml"
"""Origin of what was calibrated on measurements."""


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
