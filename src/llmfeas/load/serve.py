"""The question: a server, lengths and arrivals in, the figures of the load out."""

from __future__ import annotations

from .batch import Batch
from .figures import Load
from .finite import finite
from .requests import Arrivals, Lengths
from .server import Server
from .steady import steady


def load(server: Server, lengths: Lengths, arrivals: Arrivals) -> Load:
    """What users and operators see: a load without end, or `arrivals.requests` from the first to the last."""
    batch = Batch(server, lengths)
    return finite(batch, arrivals) if arrivals.requests is not None else steady(batch, arrivals)
