"""A device whose power is limited (`nvidia-smi -pl 250`): how much slower it then is."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..ranges import Range
from ..record import dataclass, fields
from .device import Device
from .tables import PowerLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited(Device):
    """A device with the rates, the bandwidth and the power that a limit leaves it."""

    board: Device
    """The same without the limit."""
    compute: Range
    """Share of its arithmetic rates that is left; how much power such work draws is why it is a range."""
    bandwidth: Range
    """Share of its memory bandwidth."""

    def __hash__(self) -> int:
        return hash((self.id, self.power_w))

    @property
    def unlimited(self) -> Device:
        """The device without a limit of its power."""
        return self.board

    @property
    def width(self) -> float:
        """The factor that the range of a speed is wider by: the larger of the two shares' own."""
        shares = (self.compute, self.bandwidth)
        return max(max(share.expected / share.low, share.high / share.expected) for share in shares)


def speed_share(power_share: float, drawn_share: float, law: PowerLimit) -> float:
    """Speed under a limit over that without; both powers are shares of the board's.

    A board draws `law.idle_share` whatever its cores do. Above `law.slow_clock` of the highest clock the rest goes with
    the clock's square, as the voltage follows it; below, the voltage is at its floor, and power goes with the clock.
    """
    if power_share >= drawn_share:
        return 1.0
    left = (power_share - law.idle_share) / (drawn_share - law.idle_share)
    return math.sqrt(left) if left >= law.slow_clock**2 else left / law.slow_clock


def limited(device: Device, limit_w: float, law: PowerLimit, draws: Mapping[str, Range]) -> Device:
    """The device under a limit of its power, in watts; itself where it draws no more, or nobody states what it draws.

    `draws`: shares of the board's power by what binds the work.
    """
    board = device.power_w
    if board is None or limit_w >= board:
        return device

    def left(kind: str) -> Range:
        drawn = draws[kind]
        return Range(*(speed_share(limit_w / board, share, law) for share in (drawn.high, drawn.expected, drawn.low)))

    compute, bandwidth = left("compute"), left("bandwidth")
    said = {each.name: getattr(device, each.name) for each in fields(device)}
    said |= {
        "tflop_per_s": device.tflop_per_s.scaled(compute.expected),
        "bandwidth_gb_per_s": device.bandwidth_gb_per_s * bandwidth.expected,
        "power_w": limit_w,
    }
    return Limited(**said, board=device, compute=compute, bandwidth=bandwidth)


def drawn_share(device: Device, share: Range) -> Range:
    """The share of its power that a device draws, from that of its board: a larger one of less, and never above 1."""
    board, power = device.unlimited.power_w, device.power_w
    if not board or not power or board == power:
        return share
    return Range(*(min(1.0, end * board / power) for end in (share.low, share.expected, share.high)))
