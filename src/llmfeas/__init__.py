"""llmfeas: can this language model be trained, fine-tuned or served on this hardware, and what would have to change."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["DataError", "LlmfeasError", "UsageError", "__version__", "estimate"]

if TYPE_CHECKING:
    from .errors import DataError, LlmfeasError, UsageError
    from .feasibility.result import Estimate


def estimate(**request: object) -> Estimate:
    """The answer to one question, by the names of the settings: `model`, `device`, `task`, `micro_batch`.

    Values are numbers in base units or text as on the command line (`"16GiB"`, `"10B"`, `"30d"`). The
    `to_dict()` of the answer is exactly the JSON of `llmfeas estimate --json`.

    Raises:
        UsageError: unknown names, values out of bounds, contradictions.
        DataError: a model file or catalog that cannot be used.
    """
    from .planning.answer import answer

    return answer(request)


def __getattr__(name: str) -> Any:
    if name in ("DataError", "LlmfeasError", "UsageError"):
        return getattr(import_module(".errors", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
