"""Names of models as those who serve them write them: `glm-4p7`, `meta.llama3-3-70b-instruct-v1:0`, `kimi-k3:free`.

Such names have a version's point as a letter or a hyphen, the maker or a region in front, and how it is served behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 200
_LETTER: Final = re.compile(r"(?<=\d)p(?=\d)")
_HYPHEN: Final = re.compile(r"(?<![\d.])(\d)-(\d)(?![\d.]|[bmtkx](?![a-z]))")
"""Between two numbers of one digit of which the second is no size: `3-3-70b` begins with a version, `3-8b` does not."""
_FIRST_VERSION: Final = re.compile(r"(?<=[a-z]-)v(?=\d(?:\.\d)?(?:-|$))")
_REVISION: Final = re.compile(r"-v0:(\d)$")
_DEPLOYED: Final = re.compile(
    r"-v\d{1,2}:\d{1,2}(?::\w+)?$|@(?:latest|default|\d{1,3})$|:variant\d+$"
    r"|:(?:free|nitro|floor|exacto|online|extended|beta|priority)$"
)
_PAGE: Final = re.compile(r"(?<=/)([^/]+/[^/]+)/(?:tree|commits?|discussions)(?:/.*)?$")
"""A page of a repository on the hub that is none of its files."""
_PLUS: Final = re.compile(r"(?<=[a-z\d])(?<!hqq)\+(?![a-z\d])", re.IGNORECASE)
_DATED: Final = re.compile(r"@(\d{4})(?:-\d{1,3})?$")
_REGION: Final = re.compile(r"^(?:us|us-gov|eu|apac|ap|jp|au|ca|sa|in|global)\.(?=[a-z0-9]+\.)")
_IN_FRONT: Final = re.compile(r"^(?:fw|databricks|system\.ai|coding|cc|spot|hosted|open)[-.](?=[a-z])")
_BEHIND: Final = re.compile(r"(?:-(?:litert(?:-lm)?|maas|fast|highspeed|ultrafast|lightning|spot|us|eu|tee|basic))+$")


def undeployed(text: str) -> str:
    """The text without how it is deployed (`-v1:0`, `@001`, `:free`), which is no tag, without the page that it was
    read on, and with a word for a sign (`r+`); behind `v0` is a revision.
    """
    text = spelled_out(_PAGE.sub(r"\1", text))
    if ":" not in text and "@" not in text:
        return text
    return _DEPLOYED.sub("", _DATED.sub(r"-\1", _REVISION.sub(r"-v0.\1", text)))


def spelled_out(text: str) -> str:
    """The text with a word for a sign that stands for one: `command-r+`."""
    return _PLUS.sub("-plus", text) if "+" in text else text


def spellings(text: str) -> Iterator[str]:
    """Yield how a served name is written elsewhere, the least changed first; nothing where it has no such marks."""
    tail = text[:LONGEST].strip().lower().rsplit("/", 1)[-1]
    pointed = _HYPHEN.sub(r"\1.\2", _LETTER.sub(".", tail))
    bare = _BEHIND.sub("", _IN_FRONT.sub("", _REGION.sub("", pointed)))
    yield from dict.fromkeys((pointed, bare, _FIRST_VERSION.sub("", bare)))


def hyphenated(text: str) -> str:
    """The text with points in versions that are written with a hyphen; itself where it has none."""
    head, slash, tail = text[:LONGEST].lower().rpartition("/")
    return head + slash + _HYPHEN.sub(r"\1.\2", tail)
