from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog

settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", parent=settings.get_profile("suite"), derandomize=False, max_examples=1000)
settings.load_profile("suite")

for store in ("HF_HUB_CACHE", "OLLAMA_MODELS"):
    # What others have downloaded to this machine is no part of a test.
    os.environ[store] = os.devnull

for name, handler in (("SIGINT", signal.default_int_handler), ("SIGQUIT", signal.SIG_DFL), ("SIGHUP", signal.SIG_DFL)):
    # Jobs in the background and under nohup ignore these, and so would the processes that tests send them to.
    number = getattr(signal, name, None)
    if number is not None and signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def models() -> dict[str, Model]:
    """Every model of the catalog, by id."""
    return dict(catalog().models.items())
