"""What is said of this machine's devices: known, known but unlike, unknown."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.render.pages.detect import OPEN, report

KNOWN: dict[str, Any] = {
    "id": "rtx-4090",
    "name": "GeForce RTX 4090",
    "backend": "cuda",
    "count": 2,
    "matched": "rtx-4090",
    "differences": [],
    "bandwidth_gb_per_s": 1008.0,
    "notes": "",
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "2 x GeForce RTX 4090: as the catalog's rtx-4090."),
        (
            {"count": 1, "differences": [{"field": "power_w", "here": 300, "catalog": 450}]},
            "GeForce RTX 4090: the catalog's rtx-4090, but power_w 300 instead of 450.",
        ),
        ({"matched": None}, "GeForce RTX 4090 is not in the catalog."),
        ({"matched": None, "bandwidth_gb_per_s": None}, f"GeForce RTX 4090 is not in the catalog{OPEN}."),
        (
            {"matched": None, "name": "Some CPU", "backend": "cpu", "notes": "rates of another"},
            "Some CPU is not in the catalog; taken: rates of another.",
        ),
    ],
)
def test_what_is_said_of_a_device(changed: dict[str, Any], said: str) -> None:
    shown = report([{**KNOWN, **changed}, KNOWN])
    assert shown.context == (said, "2 x GeForce RTX 4090: as the catalog's rtx-4090.")
    assert shown.title.startswith("This machine: ")
