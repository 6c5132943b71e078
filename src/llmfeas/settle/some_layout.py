"""A training in some layout of its devices: enough to tell that it works, where any layout is far from every limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..record import replace
from ..request import parsed, recorded_origins
from . import lengths
from .draft import Draft
from .resolving import Resolution
from .weighed import fitting_layout


def that_fits(request: Mapping[str, object], known: Resolution) -> Resolution | None:
    """A training in the first layout whose memory does: where one does, so does the one that is chosen.

    `known` is what is known of the request before its layout. None where no layout does.

    Raises:
        UsageError: for batches that contradict each other.
    """
    assert known.open_draft is not None
    given: dict[str, Any] = parsed(request, known.scenario.tables.quantization)
    batches = given.get("micro_batch", 0), given.get("global_batch", 0)
    laid_out = fitting_layout(known.scenario, known.open_draft, *batches)
    if laid_out is None:
        return None
    draft = Draft(given, recorded_origins(request))
    lengths.settle_batches(draft, laid_out)
    return replace(known, scenario=laid_out.with_batch(draft.values, draft.origins), open_draft=None)
