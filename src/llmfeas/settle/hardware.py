"""The hardware side of a scenario: device, count, nodes, network, memories, price."""

from __future__ import annotations

import math

from ..catalog.device import Device, Offer, Price
from ..catalog.hardware import Hardware
from ..catalog.joined import Joined, joined_price, parts_of
from ..catalog.limited import Limited, limited
from ..catalog.prices import cheapest_price, doubt, rent
from ..catalog.store import Catalog
from ..catalog.tables import Runtime, ScreenShare
from ..errors import UsageError
from ..memory.usable import usable_part, wired_bytes
from ..options import BY_NAME
from ..scenario import Origin
from ..text import printable
from ..units import GB, GIB, format_bytes, parse_integer
from .draft import Draft

DESKTOP_HOST_BYTES = 32 * GIB
SERVER_HOST_BYTES = 256 * GIB
SOLDERED = 2.05
"""So many times the memory that it is sold with a card may have: workshops double it."""
HOST_BESIDE_CARDS = 2
"""Host memory over that of a server's cards, if it has several, where nobody states it: machines that are lent with 8
have 1.2 to 6.4 times as much, 2.9 in the median (data/offers.yaml)."""
MTBF_SECONDS = 50_700 * 3600.0
"""Mean time between failures of one device where nobody states it: 419 unexpected interruptions of 16,384 H100 in 54
days (Grattafiori 2024, The Llama 3 Herd of Models, section 3.3.4)."""
STORAGE_GB_PER_S = 1.0
"""What one host writes of a checkpoint a second where nobody states it: judgement, of a shared file system."""
MOST_OF_A_HOST = 8
"""Devices of one host at most: racks and pods, whose devices all have links to each other, are made of many hosts, and
each fails and writes by itself. Judgement: trays of racks and hosts of TPUs have 4 or 8."""
LIFETIME_SECONDS = 3 * 365 * 86400.0
"""How long a bought device is used where nobody says."""


def _settle_count(draft: Draft, match: Hardware) -> None:
    """Settle `num_devices` from the option, the device name (`8xh100-sxm`) or the offer.

    Raises:
        UsageError: where the name and the option say different counts, or the name too many.
    """
    named = match.count
    if named is not None:
        parse_integer(named, "--device", 1, int(BY_NAME["num_devices"].maximum), "8xh100-sxm")
    said = draft.given.get("num_devices")
    if named and said and match.offer is not None and match.offer.tier == "paid" and said % named == 0:
        named = said
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
    """The memory nobody stated: the first size that it is sold with, 32 or 256 GiB for a CPU, else its own."""
    if device.kind == "cpu" and not device.memory_options_gib:
        return float(min(device.memory_bytes, DESKTOP_HOST_BYTES if _is_desktop(device) else SERVER_HOST_BYTES))
    if device.memory_options_gib:
        return device.memory_options_gib[0] * GIB
    return device.memory_bytes


def default_host_bytes(device: Device, memory_bytes: float, together: int) -> float:
    """The host memory nobody stated, where so many devices of so much memory are in one machine."""
    if device.has_host_memory:
        return memory_bytes * together
    if _is_desktop(device):
        return max(DESKTOP_HOST_BYTES, memory_bytes * together)
    return max(SERVER_HOST_BYTES, (HOST_BESIDE_CARDS if together > 1 else 1) * memory_bytes * together)


def _settle_price(draft: Draft, match: Hardware, catalog: Catalog) -> None:
    """Settle rent and its source; a rent of zero is that of what one has."""
    offer = match.offer
    draft.values["price_provider"] = None
    draft.values["price_as_of"] = None
    owned = draft.was_given("electricity") and not draft.was_given("purchase_price")
    if draft.was_said("price"):
        draft.values["price_usd_per_hour"] = draft.given["price"]
        draft.values["price_provider"] = "given"
        draft.origins["price"] = "given"
    elif offer is not None:
        lent = rent(offer, match.device)
        draft.values["price_usd_per_hour"] = None if lent is None else lent.usd_per_hour
        draft.values["price_provider"] = offer.provider
        draft.values["price_as_of"] = None if lent is None else lent.as_of
        draft.origins["price"] = "device"
    else:
        count = int(draft.values["num_devices"])
        listed = None if owned else _listed_price(match, catalog, count)
        _settle_listed_price(draft, match, listed)
        own = listed is not None and listed in match.device.prices
        doubted = doubt(match.device, listed.usd_per_hour, catalog) if listed and own else None
        if doubted:
            draft.warn("implausible-price", doubted)


def _listed_price(match: Hardware, catalog: Catalog, count: int) -> Price | None:
    if isinstance(match.device, Joined):
        return joined_price(match.device, catalog, match.provider)
    return cheapest_price(match.device, catalog, match.provider, count)


def _settle_listed_price(draft: Draft, match: Hardware, price: Price | None) -> None:
    """Take the catalog's price, if it has one."""
    draft.values["price_usd_per_hour"] = None if price is None else price.usd_per_hour
    draft.values["price_provider"] = None if price is None else price.provider
    draft.values["price_as_of"] = None if price is None else price.as_of
    draft.origins["price"] = "default" if price is None else "device"
    if price is not None and price.as_of is None:
        draft.warn("undated-price", f"the price of {price.usd_per_hour:g} USD/h ({price.provider}) has no date")
    if price is None and match.provider is not None and not draft.was_given("electricity"):
        draft.warn("no-price", f"no price of {match.provider} for {match.device.name} is known")


def _settle_purchase(draft: Draft) -> None:
    """Settle what a device costs that is bought, and how long it is used."""
    bought = draft.settle("purchase_price", field="purchase_usd")
    draft.settle("lifetime", None if bought is None else LIFETIME_SECONDS, field="lifetime_seconds")
    if bought is None and draft.was_given("lifetime"):
        draft.values["lifetime_seconds"] = None
        draft.warn("option-unused", "--lifetime has no meaning without --purchase-price and was ignored")


def settle_hardware(draft: Draft, match: Hardware, catalog: Catalog) -> Device:
    """Settle device, count, node, network, memories, hours and price."""
    device, offer = match.device, match.offer
    draft.override("device", device, "given")
    draft.values["offer"] = offer.id if offer else None
    if match.note:
        draft.warn("device-variant", match.note)
    if device.assumption:
        draft.warn("device-assumed", device.assumption)
    _settle_count(draft, match)
    draft.settle("devices_per_node", offer.count if offer else device.devices_per_node, "device")
    network = draft.given["network"] if draft.was_said("network") else None
    draft.values["network_bytes_per_s"] = None if network is None else network * GB
    draft.origins["network"] = "default" if network is None else "given"
    _settle_memory(draft, match, catalog)
    device = _settle_power(draft, match, catalog)
    draft.values["session_hours"] = offer.hours_per_session if offer else None
    draft.values["weekly_hours"] = offer.hours_per_week if offer else None
    _settle_price(draft, match, catalog)
    _settle_purchase(draft)
    draft.settle("electricity", field="electricity_usd_per_kwh")
    draft.settle("pue", 1.0)
    draft.settle("region")
    draft.values["region"] = _region(draft, catalog)
    _settle_failures(draft)
    draft.settle("deadline", field="deadline_seconds")
    draft.settle("budget", field="budget_usd")
    return device


def _region(draft: Draft, catalog: Catalog) -> str | None:
    """The country that was asked for, by its letters or its name, as the catalog calls it.

    Raises:
        UsageError: one whose electricity the catalog does not know.
    """
    asked = draft.given.get("region")
    if asked is None:
        return None
    grids, names = catalog.tables.grids, catalog.tables.grid_names
    known = {word.casefold(): code for code in grids for word in (code, *names.get(code, ()))}
    text = " ".join(str(asked).replace("-", " ").replace("_", " ").split()).casefold()
    if text in known:
        return known[text]
    from difflib import get_close_matches

    near = tuple(dict.fromkeys(known[word] for word in get_close_matches(text[:60], known, n=3, cutoff=0.7)))
    problem = f"--region: no carbon intensity of '{printable(str(asked), 40)}' is known"
    if near and len(text) > 2:
        meant = " or ".join(f"{code} ({names[code][0]})" if code in names else code for code in near)
        raise UsageError("unknown-region", problem, f"Did you mean {meant}?", near)
    every = ", ".join(grids)
    hint = f"Say a country by its name or its two letters (ISO 3166), such as DE, or world: {every}."
    raise UsageError("unknown-region", problem, hint, tuple(grids))


def _settle_failures(draft: Draft) -> None:
    """Settle how often a device fails and how fast checkpoints are written, of jobs on several hosts or if asked."""
    count, host = draft.values["num_devices"], min(draft.values["devices_per_node"], MOST_OF_A_HOST)
    counted = count > host or draft.was_given("mtbf") or draft.was_given("storage")
    draft.settle("mtbf", MTBF_SECONDS if counted else None, field="device_mtbf_seconds")
    draft.settle("storage", STORAGE_GB_PER_S * -(-count // host) if counted else None, field="storage_gb_per_s")
    draft.settle("loader", field="loader_tokens_per_s")


def _screen_bytes(draft: Draft, match: Hardware, screen: ScreenShare) -> float:
    """What a screen holds of the fullest card, where nobody says: nothing of what is rented or lent."""
    at_home = match.offer is None and match.provider is None and draft.values["num_devices"] <= screen.most_devices
    return max(screen.held.get(part.kind, 0.0) for part in parts_of(match.device)) if at_home else 0.0


def _settle_power(draft: Draft, match: Hardware, catalog: Catalog) -> Device:
    """Settle what the power of a device is limited to, and the device that this leaves.

    Raises:
        UsageError: one limit for unequal devices; one that a device does not even idle with.
    """
    device, law = match.device, catalog.tables.power_limit
    origin: Origin = "default" if match.power_limit_w is None else "device"
    limit = draft.settle("power_limit", match.power_limit_w, origin, field="power_limit_w")
    if limit is None:
        return device
    if isinstance(device, Joined):
        text = "--power-limit says one limit, and the devices are of several kinds"
        raise UsageError("contradiction", text, "leave --power-limit out")
    if device.power_w is None:
        draft.warn("option-unused", f"nobody states the power of {device.name}: --power-limit was ignored")
    elif limit <= law.idle_share * device.power_w:
        least = math.ceil(law.idle_share * device.power_w)
        text = f"--power-limit {limit:g}: {device.name} (board power {device.power_w:g} W) does not run on so little"
        raise UsageError("bad-quantity", text, f"its memory and fans alone draw some {least} W; say more than that")
    lower = limited(device, limit, law, catalog.tables.power_shares)
    if isinstance(lower, Limited):
        rates, bandwidth = (f"{100 * share.expected:.0f} % of its" for share in (lower.compute, lower.bandwidth))
        left = f"about {rates} arithmetic and {bandwidth} bandwidth"
        draft.warn("power-limited", f"{limit:g} W of {device.power_w:g} W leave {device.name} {left}")
        draft.override("device", lower, "given")
    return lower


def _settle_wired_limit(draft: Draft, device: Device, runtime: Runtime) -> None:
    """Settle what macOS lets the GPU have.

    Raises:
        UsageError: where the device is no Mac's, or has less.
    """
    memory = draft.values["memory_bytes"]
    is_mac = device.backend == "metal" and not device.is_phone
    if not is_mac and draft.was_said("wired_limit"):
        problem = f"--wired-limit is a setting of macOS, and {device.name} is no Mac's"
        raise UsageError("contradiction", problem, "Leave it out; --reserve says what other programs hold.")
    if not is_mac:
        draft.override("wired_limit", None, "default")
    elif (limit := draft.settle("wired_limit", wired_bytes(runtime, memory), "device")) > memory:
        problem = f"--wired-limit {format_bytes(limit)} is more than the {format_bytes(memory)} of {device.name}"
        raise UsageError("contradiction", problem, "--memory says how much there is.")
    if device.is_phone:
        text = f"iOS lets an app have {format_bytes(usable_part(runtime, device, memory))} of {format_bytes(memory)}"
        draft.warn("phone-memory", f"{text}, if it asks for the increased memory limit; else about half")
    draft.values["wired_limit_bytes"] = draft.values.pop("wired_limit")


def _lent_bytes(offer: Offer, device: Device, together: int) -> float | None:
    """The memory of one device of a rented machine, bytes: processors divide what the machine has."""
    if offer.memory_gib:
        return offer.memory_gib * GIB
    shared = device.has_host_memory and offer.host_memory_gib
    return shared * GIB / together if shared else None


def _settle_memory(draft: Draft, match: Hardware, catalog: Catalog) -> None:
    """Settle the memory of device and host.

    Raises:
        UsageError: where one size is given for unequal devices.
    """
    device, offer = match.device, match.offer
    memory = draft.given.get("memory")
    if isinstance(device, Joined) and draft.was_said("memory"):
        raise UsageError("contradiction", "--memory says one size, and the devices have several", "leave --memory out")
    known = max((device.memory_bytes, *(size * GIB for size in device.memory_options_gib)))
    if memory and memory > SOLDERED * known and draft.was_said("memory"):
        text = f"--memory {format_bytes(memory)} is more than any {device.name} has, {format_bytes(known)}"
        draft.warn("implausible-memory", text)
    named = None if match.memory_gib is None else match.memory_gib * GIB
    host = draft.given.get("host_memory")
    together = min(draft.values["num_devices"], draft.values["devices_per_node"])
    own = None if offer is None else _lent_bytes(offer, device, together)
    if host and not (memory or named) and device.has_host_memory:
        named = host / together  # what the host has is what its processors have
    draft.values["memory_bytes"] = memory or named or own or default_memory_bytes(device)
    own_size: Origin = "default" if device.kind == "cpu" and not (own or device.memory_options_gib) else "device"
    draft.origins["memory"] = draft.origin_of_given("memory") if memory else "given" if named else own_size
    draft.settle("reserve", _screen_bytes(draft, match, catalog.tables.runtime.screen), "device", "reserve_bytes")
    _settle_wired_limit(draft, device, catalog.tables.runtime)
    if host is None:
        default = default_host_bytes(device, draft.values["memory_bytes"], together)
        if not device.has_host_memory and offer is not None and offer.host_memory_gib:
            default = offer.host_memory_gib * GIB
        if not device.has_host_memory and match.host_memory_bytes is not None:
            default = float(match.host_memory_bytes)
        draft.values["host_memory_bytes"] = min(default, BY_NAME["host_memory"].maximum)
        draft.origins["host_memory"] = "default" if match.host_memory_bytes is None else "device"
    else:
        draft.values["host_memory_bytes"] = host
        draft.origins["host_memory"] = draft.origin_of_given("host_memory")
    draft.settle("host_bandwidth", field="host_gb_per_s")
