"""What comes out: the figures that users and operators of a server see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ranges import LoadBound
from ..record import dataclass, replace

if TYPE_CHECKING:
    from .points import Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A server under load, all replicas together."""

    stable: bool
    """False: requests come faster than they are finished. A load without end then has no first-token time (infinite);
    one of some requests is shown as it is, a queue that grows as long as they come."""
    ttft_seconds: Distribution
    """First token, over requests."""
    tpot_seconds: Distribution
    """Time per token after the first, over requests: (last - first) / (tokens - 1)."""
    itl_seconds: Distribution
    """Time between the outputs of a request, over outputs; with speculation one holds several tokens."""
    requests_per_second: float
    output_tokens_per_second: float
    running: float
    """Mean number of requests in the batches."""
    waiting: float
    """Mean number of requests that wait to be let in; infinite where they pile up without end."""
    bound_by: LoadBound
    largest_rate: float
    """Requests a second at which the batches are full: more cannot be served for long."""

    def slower(self, factor: float) -> Load:
        """The same users at a server whose steps take longer by a factor."""
        return replace(
            self,
            ttft_seconds=self.ttft_seconds.scaled(factor),
            tpot_seconds=self.tpot_seconds.scaled(factor),
            itl_seconds=self.itl_seconds.scaled(factor),
            requests_per_second=self.requests_per_second / factor,
            output_tokens_per_second=self.output_tokens_per_second / factor,
            largest_rate=self.largest_rate / factor,
        )
