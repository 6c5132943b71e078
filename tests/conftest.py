from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog

settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", parent=settings.get_profile("suite"), derandomize=False)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background jobs ignore interrupts, and so would the processes that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def models() -> dict[str, Model]:
    """Every model of the catalog, by id."""
    return dict(catalog().models.items())
