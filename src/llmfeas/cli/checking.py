"""When `--check` fails, and what it then says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

REFUSED = ("infeasible", "unsupported")
UNKNOWN = "no-price"
"""The reason of a budget that nothing could be held against: what could not be checked has not passed."""

HARMLESS = ("memory-fits", "software-limited", "software-supported", "weekly-hours")
"""Reasons of a verdict that never break a check."""


def fails(status: str, codes: Iterable[str], *, strict: bool = False) -> bool:
    """Tell whether a verdict breaks a check, given its status and the codes of its reasons."""
    return status in REFUSED or (strict and status == "tight") or UNKNOWN in codes


def failure(verdict: Mapping[str, Any]) -> str:
    """Say what breaks the check and nothing else: memory that is merely tight is no reason where something is worse."""
    status, reasons = verdict["status"], verdict["reasons"]
    left_out = {*HARMLESS, *(("memory-tight",) if status in REFUSED else ())}
    because = "; ".join(reason["message"] for reason in reasons if reason["code"] not in left_out)
    judged = status if status in (*REFUSED, "tight") else "not all could be checked"
    return f"the check failed, {judged}{f': {because}' if because else ''}"
