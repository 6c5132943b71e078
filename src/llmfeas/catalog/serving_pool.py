"""How a server decides how much of a device its cache may take; data/engines.yaml documents the fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from ..record import dataclass, field, fields, replace
from ..units import GIB
from .device import BackendId, Device
from .types import Count, CountOrZero, Fraction, Identifier, PositiveOrZero, Strict

NEWEST: Final = (10**9,)
"""Sorts behind every release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Strict):
    """A default of devices with at least so much memory."""

    from_gib: PositiveOrZero
    value: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve(Strict):
    """What a server that does not measure sets aside for passes and graphs; the rest is its share of the device."""

    fixed_bytes: PositiveOrZero
    token_bytes: PositiveOrZero
    """A token of one pass."""
    sequence_bytes: PositiveOrZero
    """A sequence of the largest captured batch."""
    rank_bytes: PositiveOrZero
    """A rank of tensor and pipeline parallel."""
    large_from_gib: PositiveOrZero
    """On devices with more memory than this at least `large_bytes` are set aside."""
    large_bytes: PositiveOrZero


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Strict):
    """What was otherwise before a release; None: the same."""

    before: Identifier
    share: Fraction | None = None
    counts_graphs: bool | None = None
    needs_free: bool | None = None
    sampler_bytes: PositiveOrZero | None = None
    keeps_workspace: bool | None = None
    outside_bytes: PositiveOrZero | None = None
    batches: Count | None = None
    sequences: tuple[Step, ...] | None = None
    tokens: tuple[Step, ...] | None = None
    whole_prompts: CountOrZero | None = None
    prompt_graphs: CountOrZero | None = None
    ahead: bool | None = None
    state_slots: Count | None = None
    modest: tuple[Identifier, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere(Strict):
    """What is otherwise on a backend, whatever the release; None: the same."""

    outside_bytes: PositiveOrZero | None = None
    spread_bytes: PositiveOrZero | None = None
    prompt_graphs: CountOrZero | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServingPool(Strict):
    """The share of a device that a server takes, and what it takes off that before the cache. Compared by identity."""

    setting: Identifier
    """The server's own word for the share."""
    backends: tuple[BackendId, ...]
    share: Fraction | None = None
    """The default; None: what `reserve` leaves."""
    share_of: Literal["device", "free", "rest"]
    """Of the whole device; of what was free before loading; of what weights and one pass leave free."""
    reserve: Reserve | None = None
    tokens: tuple[Step, ...]
    """Tokens of one pass, by the memory of a device."""
    sequences: tuple[Step, ...]
    """Requests that run at once at most."""
    whole_prompts: CountOrZero = 0
    """Contexts up to this length go through in one pass; longer ones in parts, and then nothing samples in the pass
    that is measured. 0: every context goes in parts, and the pass samples."""
    captured: tuple[Step, ...]
    """The largest batch that graphs are captured for."""
    prompt_graphs: CountOrZero = 0
    """Tokens of a pass over prompts up to which pieces of it run from graphs."""
    plain_graphs: bool = False
    """Such graphs are there only without drafts, pipeline stages, copies that share experts, images and indexers."""
    ahead: bool = False
    """It puts the next step together while one runs."""
    modest: tuple[Identifier, ...] = ()
    """Generations and kinds that have the defaults of the smallest devices, however much memory they have."""
    counts_graphs: bool = False
    """Captured graphs are taken off the share too."""
    needs_free: bool = False
    """It refuses to start where less than the share is free."""
    sampler_bytes: PositiveOrZero = 0.0
    """Bytes that sampling holds of a logit beside the logit itself."""
    sampler_fixed_bytes: PositiveOrZero = 0.0
    streams: PositiveOrZero = 4.0
    """Tensors as wide as the stream that live beside the widest operator."""
    keeps_workspace: bool = False
    """Buffers of routed experts stay after the pass."""
    reads_images: bool = False
    """Before that pass it encodes as many images as make its tokens."""
    outside_bytes: PositiveOrZero = 0.0
    """What the process takes beside tensors after its context is there, on one device."""
    rank_bytes: PositiveOrZero = 0.0
    """The same of communication, a rank of tensor parallel."""
    most_rank_bytes: PositiveOrZero = 0.0
    joined_bytes: PositiveOrZero = 0.0
    """What communication takes before the server looks what is free, where there are several ranks."""
    joined_on: tuple[BackendId, ...] = ()
    """The backends whose communication does."""
    padded: tuple[Identifier, ...] = ()
    """Formats in which the width of routed experts is padded to a multiple of `padded_to` on each rank."""
    padded_to: Count = 1
    graph_bytes: PositiveOrZero = 0.0
    """Captured graphs, a layer and captured batch."""
    batches: Count = 1
    """Passes under way at once, for whose tokens a windowed layer keeps blocks."""
    window: Literal["blocks", "share"] = "blocks"
    """A windowed layer holds blocks for its window and one pass, or a share of a full layer's tokens."""
    window_share: Fraction = 1.0
    state_share: PositiveOrZero = 0.0
    """Bytes set aside for fixed states, of those for the cache; 0: states lie in the cache's pages."""
    state_slots: Count = 1
    """Of the states set aside, how many a request must find free."""
    gaps: PositiveOrZero = 0.0
    """Share of a pass that the allocator may need beyond it once the cache is there."""
    weight_spread: Fraction = 0.0
    other_spread: Fraction = 0.0
    spread_bytes: PositiveOrZero = 0.0
    """Standard deviations of weights, of all that is neither weights nor cache, and of the sum beyond these."""
    unnamed_share: Fraction = 0.0
    """Standard deviation of what a release that nobody named takes, as a share of the device."""
    groups: CountOrZero = 0
    rows: CountOrZero = 0
    still: tuple[Identifier, ...] = ()
    """Older releases that people run who name none, the newest first."""
    releases: tuple[Release, ...] = ()
    """What older releases did otherwise, the newest first; each holds for all that are older."""
    elsewhere: Mapping[BackendId, Elsewhere] = field(default_factory=dict)
    note: str = ""

    def of(self, version: str | None, backend: BackendId | None = None) -> ServingPool:
        """The same in a release, without one in today's, and on a backend."""
        here = self if version is None else _of_release(self, version)
        return _on_backend(here, backend) if backend in self.elsewhere else here


CHANGED: Final = tuple(each.name for each in fields(Release) if each.name != "before")
"""What a release may change."""


@lru_cache(maxsize=256)
def _of_release(pool: ServingPool, version: str) -> ServingPool:
    asked = release(version)
    if len(asked) < 3:  # the last one of that name
        asked += NEWEST
    changes: dict[str, Any] = {}
    for older in pool.releases:
        if asked < release(older.before):
            named = ((name, getattr(older, name)) for name in CHANGED)
            changes |= {name: value for name, value in named if value is not None}
    return replace(pool, **changes) if changes else pool


@lru_cache(maxsize=64)
def _on_backend(pool: ServingPool, backend: BackendId) -> ServingPool:
    other = pool.elsewhere[backend]
    named = ((each.name, getattr(other, each.name)) for each in fields(Elsewhere))
    return replace(pool, **{name: value for name, value in named if value is not None})


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, ...]:
    """The numbers of a release, to compare: '0.8.5.post1' is (0, 8, 5), the build 'b5780' is (5780,).

    What has no numbers is the newest.
    """
    numbers: list[int] = []
    for part in version.strip().lower().removeprefix("v").removeprefix("b").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > 6:
            break
        numbers.append(int(digits))
    return tuple(numbers) or NEWEST


def default_gib(pool: ServingPool, device: Device, memory_bytes: float) -> float:
    """The memory in GiB by which a server looks up its defaults for a device."""
    return 0.0 if device.generation in pool.modest or device.kind in pool.modest else memory_bytes / GIB


def step_value(steps: tuple[Step, ...], memory_gib: float) -> int:
    """The default of a device with so much memory: of the last step that it reaches."""
    return max(
        (step for step in steps if step.from_gib <= memory_gib), key=lambda step: step.from_gib, default=steps[0]
    ).value


__all__ = ["Release", "Reserve", "ServingPool", "Step", "default_gib", "release", "step_value"]
