"""The JSON format: the envelope, indented; ASCII, so that it survives any terminal and pipe."""

from __future__ import annotations

import json
from collections.abc import Mapping


def rendered(envelope: Mapping[str, object]) -> str:
    """The envelope as one JSON document.

    Raises:
        ValueError: a number is not finite, which the contract rules out.
    """
    return json.dumps(envelope, indent=2, allow_nan=False) + "\n"
