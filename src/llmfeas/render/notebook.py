"""How a notebook shows an estimate."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .formats.html import rendered
from .pages.estimate import report
from .pictures import pictures

if TYPE_CHECKING:
    from ..feasibility.result import Estimate


def framed(found: Estimate) -> str:
    """The report with its pictures: in a frame, so that its style stays its own."""
    envelope = found.to_dict()
    page = rendered(report(envelope, found.scenario.model.name), pictures(envelope))
    return f'<iframe style="width:100%;height:40em;border:0" srcdoc="{escape(page)}"></iframe>'
