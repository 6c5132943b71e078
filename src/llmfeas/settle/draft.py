"""A scenario in the making: settled values, where each came from, and what the user should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract import Note
from ..objectives import ADAPTED, method_of
from ..scenario import Origin


class Draft:
    """Values settled so far. `given` is what the user said, parsed; a name is settled once.

    `recorded` names the origins of values that an earlier answer had settled: replayed, they keep them.
    """

    __slots__ = ("given", "origins", "recorded", "values", "warnings")

    def __init__(self, given: Mapping[str, Any], recorded: Mapping[str, Origin] | None = None) -> None:
        self.given = given
        self.recorded = recorded or {}
        self.values: dict[str, Any] = {}
        self.origins: dict[str, Origin] = {}
        self.warnings: list[Note] = []

    def settle(self, name: str, default: Any = None, origin: Origin = "default", field: str = "") -> Any:
        """Take what the user gave, else the default with its origin; return the value.

        `field`: what the scenario calls it, where that is not its name.
        """
        value = self.given.get(name)
        if value is None:
            value = default
        else:
            origin = self.origin_of_given(name)
        self.values[field or name] = value
        self.origins[name] = origin
        return value

    def override(self, name: str, value: Any, origin: Origin) -> None:
        """Overwrite a value, for instance where a device name implies a count."""
        self.values[name] = value
        self.origins[name] = origin

    def origin_of_given(self, name: str) -> Origin:
        """The origin of a value in `given`: the user, or what an earlier answer had recorded."""
        return self.recorded.get(name, "given")

    @property
    def method(self) -> str:
        """How weights change, once task and adapters are settled (`Scenario.method`)."""
        return method_of(self.values["task"], self.values.get("adapters"))

    @property
    def trains_adapters(self) -> bool:
        """Whether adapters train, beside a base that is frozen."""
        return self.method in ADAPTED

    def was_given(self, name: str) -> bool:
        """Whether the user gave this setting."""
        return self.given.get(name) is not None

    def was_said(self, name: str) -> bool:
        """Whether a person gave it, not an earlier answer that had settled it."""
        return self.was_given(name) and self.origin_of_given(name) == "given"

    def warn(self, code: str, message: str) -> None:
        """Add a warning."""
        self.warnings.append(Note(code, message))
