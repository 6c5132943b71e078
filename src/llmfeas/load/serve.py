"""The question: a batch on a server and arrivals in, the figures of the load out."""

from __future__ import annotations

from .batch import Batch
from .figures import Load
from .finite import finite
from .requests import Arrivals
from .steady import steady


def load(batch: Batch, arrivals: Arrivals) -> Load:
    """What users and operators see: a load without end, or `arrivals.requests` from the first to the last."""
    return finite(batch, arrivals) if arrivals.requests is not None else steady(batch, arrivals)
