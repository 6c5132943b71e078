"""The svg format: one picture of an answer, with its style, for documents and slides."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import UsageError
from ...text import printable
from ..drawing import Picture


def rendered(pictures: Sequence[Picture], name: str | None = None) -> str:
    """The picture of that name, else the first.

    Raises:
        UsageError: the answer has no pictures, or none of that name.
    """
    if not pictures:
        raise UsageError("no-picture", "this answer has no picture.", "Try --format html or table.")
    known = {picture.name: picture for picture in pictures}
    chosen = known.get(name) if name else pictures[0]
    if chosen is None:
        problem = f"--picture: there is no picture {printable(name, 40)!r} of this answer."
        raise UsageError("no-picture", problem, f"There is {', '.join(known)}.", list(known))
    return chosen.svg(alone=True) + "\n"
