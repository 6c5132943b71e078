"""What users send: how long prompts and answers are, around their means, and when requests come."""

from __future__ import annotations

import math
from typing import Final, Literal

from ..errors import UsageError
from ..record import dataclass
from .points import normal

Shape = Literal["fixed", "uniform", "lognormal"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Lengths relative to their mean.

    `width` of a uniform shape is its half width as a share of the mean (`vllm bench serve --random-range-ratio`; 1 is
    SGLang's `--random-range-ratio 0`, 1 to twice the mean), of a lognormal one standard deviation / mean (ShareGPT:
    about 1).
    """

    shape: Shape = "fixed"
    width: float = 0.0

    def __post_init__(self) -> None:
        most = {"fixed": 0.0, "uniform": 1.0, "lognormal": 10.0}.get(self.shape, -1.0)
        if not 0.0 <= self.width <= most:
            raise UsageError(
                "bad-spread",
                f"a spread of lengths '{self.shape}' with width {self.width:g} does not exist",
                "Use fixed, uniform with a width of 0 to 1, or lognormal with a width of 0 to 10.",
            )

    @property
    def _sigma(self) -> float:
        return math.sqrt(math.log1p(self.width**2))

    @property
    def squared_variation(self) -> float:
        """Variance / mean²."""
        return self.width**2 / 3 if self.shape == "uniform" else self.width**2

    def quantile(self, share: float) -> float:
        """The length, as a multiple of the mean, that a share (0 < share < 1) of requests stays below."""
        if self.width == 0.0:
            return 1.0
        if self.shape == "uniform":
            return 1.0 + self.width * (2 * share - 1)
        return math.exp(self._sigma * normal(share) - self._sigma**2 / 2)

    def beyond(self, length: float) -> float:
        """The share of requests that are longer than a multiple of the mean."""
        if self.width == 0.0:
            return 1.0 if length < 1.0 else 0.0
        if self.shape == "uniform":
            return min(1.0, max(0.0, (1.0 + self.width - length) / (2 * self.width)))
        if length <= 0.0:
            return 1.0
        return 0.5 - math.erf((math.log(length) + self._sigma**2 / 2) / self._sigma / math.sqrt(2)) / 2


FIXED: Final = Spread()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of prompts and of answers, which are taken to be independent of each other."""

    prompt: float
    """Mean tokens of a prompt."""
    output: float
    """Mean tokens of an answer, at least 1."""
    prompt_spread: Spread = FIXED
    output_spread: Spread = FIXED
    prefix_hit: float = 0.0
    """Share of each prompt whose keys and values are found in the cache; each request still holds its whole prompt."""

    def __post_init__(self) -> None:
        if not (0 < self.prompt < math.inf and 1 <= self.output < math.inf and 0.0 <= self.prefix_hit <= 1.0):
            raise UsageError(
                "bad-lengths",
                f"prompts of {self.prompt:g} tokens, answers of {self.output:g}, {self.prefix_hit:g} found",
                "Give a prompt above 0, an answer of 1 token or more and a share from 0 to 1.",
            )

    @property
    def are_fixed(self) -> bool:
        """Whether all requests are alike."""
        return not (self.prompt_spread.width or self.output_spread.width)

    @property
    def computed(self) -> float:
        """Mean prompt tokens that must be computed, at least 1."""
        return max(1.0, self.prompt * (1 - self.prefix_hit))

    @property
    def attended(self) -> float:
        """Mean tokens that a computed prompt token attends to, over all computed tokens."""
        seen = self.prompt * (1 + self.prompt_spread.squared_variation)
        return seen * (1 + self.prefix_hit) / 2

    @property
    def cached(self) -> float:
        """Mean cached tokens of a request while it is decoded, over time: long answers count for longer."""
        return self.written()

    def written(self, reserved: float = 0.0) -> float:
        """Mean tokens of a request over time, of prompt and answer so far, with a share of its whole answer kept."""
        return self.prompt + self.output * (1 + self.output_spread.squared_variation) * (1 + reserved) / 2


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Requests to all replicas together: at a rate, else of users; `requests` of them, or without end."""

    rate: float = 0.0
    """Requests a second, at random times (Poisson)."""
    users: float = 0.0
    """Each sends its next request when the last is answered."""
    requests: int | None = None
    """With neither rate nor users all are sent at once."""

    def __post_init__(self) -> None:
        numbers = 0.0 <= self.rate < math.inf and 0.0 <= self.users < math.inf
        both, neither = self.rate and self.users, not self.rate and self.users < 1 and self.requests is None
        if not numbers or both or neither:
            raise UsageError(
                "bad-arrivals",
                "requests come at a rate, or from users, or all at once",
                "Give a rate above 0, or 1 user or more, or a number of requests.",
            )
