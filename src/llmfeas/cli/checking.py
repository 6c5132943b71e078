"""When `--check` fails, and what it then says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..estimate.result import Verdict

REFUSED = ("infeasible", "unsupported")
UNKNOWN = "no-price"
"""The reason of a budget that nothing could be held against: what could not be checked has not passed."""


def fails(verdict: Verdict, *, strict: bool = False) -> bool:
    """Whether a verdict breaks a check."""
    status = verdict.status
    return status in REFUSED or (strict and status == "tight") or any(r.code == UNKNOWN for r in verdict.reasons)


def failure(verdict: Verdict) -> str:
    """What breaks the check, and nothing else."""
    from ..estimate.verdict import why

    judged = verdict.status if verdict.status in (*REFUSED, "tight") else "not all could be checked"
    return f"the check failed, {judged}: {why(verdict)}"
