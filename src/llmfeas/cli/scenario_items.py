"""A scenario of a sweep as it was read, or as the line that it will be read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..errors import LlmfeasError
from ..record import dataclass

MAX_LINE_BYTES = 1_000_000
BLOCK_SCENARIOS = 256


@dataclass(frozen=True, slots=True)
class Item:
    """One scenario as read: its id (else its number), its line, and its settings or why there are none."""

    id: object
    line: int
    request: Mapping[str, object]
    error: LlmfeasError | None = None


class ScenarioLine(NamedTuple):
    """One line of NDJSON with its number, not read yet; a tuple, since many of them go to other processes."""

    raw: bytes
    number: int
