"""Devices as lists of a bus write them: `NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)`.

The chip stands in front, and in brackets what is sold with it: several, divided by slashes, where the bus cannot tell.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 200
_NUMBERS: Final = r"\[[0-9a-f]{4}:[0-9a-f]{4}\]"
_SOLD: Final = re.compile(
    rf".*\S\s*(?!{_NUMBERS})\[([^\[\]]*\d[^\[\]]*)\](?:\s*{_NUMBERS})?(?:\s*\(rev [0-9a-f]{{2}}\))?\s*", re.IGNORECASE
)


def sold_as(text: str) -> tuple[str, ...]:
    """What a chip on a bus is sold as; empty where a text is no such line."""
    match = _SOLD.fullmatch(text[:LONGEST])
    return tuple(name for part in match[1].split("/") if (name := part.strip())) if match else ()
