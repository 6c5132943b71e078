"""What a function found, the latest findings up to a total size: some are a hundred times as large as others."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def kept_by_size(most: int, size: Callable[[R], int]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep what a function finds as long as the sizes of all that is kept come to `most` at most; the oldest goes.

    All that the function is asked with is hashable, and none of it named.
    """

    def deciding(function: Callable[P, R]) -> Callable[P, R]:
        known: dict[Hashable, R] = {}
        held = 0

        @wraps(function)
        def kept(*asked: P.args, **named: P.kwargs) -> R:
            nonlocal held
            found = known.pop(asked, None)
            if found is None:
                found = function(*asked, **named)
                held += size(found)
                while held > most and known:
                    held -= size(known.pop(next(iter(known))))
            known[asked] = found
            return found

        return kept

    return deciding
