"""The load on a server: how requests come, and what they may wait."""

from __future__ import annotations

from .draft import Draft

TARGETS = {"ttft": "ttft_seconds", "tpot": "tpot_seconds"}


def settle_load(draft: Draft) -> None:
    """Settle `rate`, `requests`, `length_spread`, `prefix_hit` and the targets."""
    for name in ("rate", "requests"):
        draft.settle(name, None)
    for name in ("length_spread", "prefix_hit"):
        draft.settle(name, 0.0)
    for name, field in TARGETS.items():
        draft.settle(name, None)
        draft.values[field] = draft.values.pop(name)
