"""The hardware side of a scenario: device, count, nodes, network, memories, price."""

from __future__ import annotations

from ..catalog.device import Device, Price
from ..catalog.search import Hardware
from ..errors import UsageError
from ..options import BY_NAME
from ..units import GB, GIB, parse_integer
from .draft import Draft

DESKTOP_HOST_BYTES = 32 * GIB
SERVER_HOST_BYTES = 256 * GIB
SHARED_MEMORY_KINDS = ("cpu", "unified", "apu")


def _settle_count(draft: Draft, match: Hardware) -> None:
    """Settle `num_devices` from the option, the device name (`8xh100-sxm`) or the offer.

    Raises:
        UsageError: where the name and the option say different counts, or the name too many.
    """
    named = match.count
    if named is not None:
        parse_integer(named, "--device", 1, int(BY_NAME["num_devices"].maximum), "8xh100-sxm")
    said = draft.given.get("num_devices")
    if named is not None and said is not None and named != said:
        raise UsageError(
            "contradiction",
            f"the device name says {named} devices and --num-devices says {said}",
            "give the count once",
        )
    draft.settle("num_devices", named or 1, "given" if named is not None else "default")


def _is_desktop(device: Device) -> bool:
    return device.kind in ("consumer", "workstation", "unified", "apu", "edge") or (
        device.kind == "cpu" and (device.memory_channels or 2) <= 2
    )


def default_memory_bytes(device: Device) -> float:
    """Give the memory nobody stated: a Mac's smallest common size, 32 or 256 GiB for a CPU, else its own."""
    if device.kind == "cpu":
        return float(min(device.memory_bytes, DESKTOP_HOST_BYTES if _is_desktop(device) else SERVER_HOST_BYTES))
    if device.memory_options_gib:
        return min(device.memory_options_gib) * GIB
    return device.memory_bytes


def default_host_bytes(device: Device, memory_bytes: float, together: int) -> float:
    """Give the host memory nobody stated, where so many devices of so much memory are in one machine."""
    if device.kind in SHARED_MEMORY_KINDS:
        return memory_bytes
    return max(DESKTOP_HOST_BYTES if _is_desktop(device) else SERVER_HOST_BYTES, memory_bytes * together)


def cheapest_price(device: Device) -> Price | None:
    """Give the cheapest dated on-demand price, else the cheapest dated one, else the cheapest one."""
    prices = device.prices
    for group in (
        [price for price in prices if price.as_of and price.kind == "on-demand"],
        [price for price in prices if price.as_of],
        prices,
    ):
        if group:
            return min(group, key=lambda price: price.usd_per_hour)
    return None


def _settle_price(draft: Draft, match: Hardware) -> None:
    """Settle rent and its source.

    Raises:
        UsageError: for a price of zero.
    """
    offer = match.offer
    price = cheapest_price(match.device)
    draft.values["price_provider"] = None
    draft.values["price_as_of"] = None
    owned = draft.said("electricity")
    if draft.said("price") and draft.origin_of_given("price") == "given":
        if draft.given["price"] == 0:
            hint = "Leave --price out; what one owns costs its electricity (--electricity)."
            raise UsageError("bad-quantity", "--price 0 rents nothing", hint)
        draft.values["price_usd_per_hour"] = draft.given["price"]
        draft.values["price_provider"] = "given"
        draft.origins["price"] = "given"
    elif offer is not None:
        whole = offer.usd_per_hour
        draft.values["price_usd_per_hour"] = None if whole is None else whole / offer.count
        draft.values["price_provider"] = offer.provider
        draft.origins["price"] = "device"
    elif price is not None and not owned:
        draft.values["price_usd_per_hour"] = price.usd_per_hour
        draft.values["price_provider"] = price.provider
        draft.values["price_as_of"] = price.as_of
        draft.origins["price"] = "device"
        if price.as_of is None:
            draft.warn("undated-price", f"the price of {price.usd_per_hour:g} USD/h ({price.provider}) has no date")
    else:
        draft.values["price_usd_per_hour"] = None
        draft.origins["price"] = "default"


def settle_hardware(draft: Draft, match: Hardware) -> Device:
    """Settle device, count, node, network, memories, hours and price."""
    device, offer = match.device, match.offer
    draft.put("device", device, "given")
    draft.values["offer"] = offer.id if offer else None
    if match.note:
        draft.warn("device-variant", match.note)
    _settle_count(draft, match)
    draft.settle("devices_per_node", device.devices_per_node, "device")
    network = draft.given.get("network") if draft.origin_of_given("network") == "given" else None
    draft.values["network_bytes_per_s"] = None if network is None else network * GB
    draft.origins["network"] = "default" if network is None else "given"
    _settle_memory(draft, match)
    draft.values["session_hours"] = offer.hours_per_session if offer else None
    draft.values["weekly_hours"] = offer.hours_per_week if offer else None
    _settle_price(draft, match)
    draft.values["electricity_usd_per_kwh"] = draft.given.get("electricity")
    draft.values["pue"] = draft.given.get("pue") or 1.0
    draft.values["deadline_seconds"] = draft.given.get("deadline")
    draft.values["budget_usd"] = draft.given.get("budget")
    for name in ("electricity", "pue", "deadline", "budget"):
        draft.origins[name] = draft.origin_of_given(name) if draft.said(name) else "default"
    return device


def _settle_memory(draft: Draft, match: Hardware) -> None:
    device, offer = match.device, match.offer
    memory = draft.given.get("memory")
    own = offer.memory_gib * GIB if offer and offer.memory_gib else None
    draft.values["memory_bytes"] = memory or own or default_memory_bytes(device)
    draft.origins["memory"] = draft.origin_of_given("memory") if memory else "device"
    host = draft.given.get("host_memory")
    if host is None:
        together = min(draft.values["num_devices"], draft.values["devices_per_node"])
        default = default_host_bytes(device, draft.values["memory_bytes"], together)
        if device.kind not in SHARED_MEMORY_KINDS and offer is not None and offer.host_memory_gib:
            default = offer.host_memory_gib * GIB
        draft.values["host_memory_bytes"] = default
        draft.origins["host_memory"] = "default"
    else:
        draft.values["host_memory_bytes"] = host
        draft.origins["host_memory"] = draft.origin_of_given("host_memory")
