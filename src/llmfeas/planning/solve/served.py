"""Servers asked backwards: the most users or requests a second that keep to the targets, and the fewest devices."""

from __future__ import annotations

import math

from ...catalog.joined import Joined
from ...catalog.store import Catalog
from ...errors import LlmfeasError, UsageError
from ...feasibility.result import Estimate
from ...load.targets import largest_rate, most_users
from ...memory.peak import memory
from ...record import replace
from ...scenario import Scenario
from ...settle import before_layout, hardware_named
from ...timing.served import server_of
from ...units import digits
from ...workload.serving import replicas
from .answer import Answer, Request, estimated, outcome, without
from .fleet import follows, served
from .lots import Figure, Shared, load_of, shares
from .settings import SearchedSetting, inverted

MOST_USERS = 10**6
ROUNDS = 12
"""Halvings of the logarithm of a rate."""
LITTLE = 1e-3
"""Requests a second at which a server is as good as empty."""
READ = {"value": 0.1, "origin": "default"}
"""Seconds a token: twice as fast as people read, 238 words a minute (Brysbaert 2019)."""
TAKEN = "--tpot 100ms was taken, since neither --ttft nor --tpot was said: twice as fast as people read."
STEP = 1.01
"""What is looked at beyond a rate."""


def max_users(request: Request, catalog: Catalog) -> Answer:
    """The most users, each with one request under way, that keep to the targets; to `READ` where none is said. There
    are no more than requests.

    Raises:
        UsageError: with a rate.
    """
    request = served(request)
    unsaid = request.get("ttft") is None and request.get("tpot") is None
    if unsaid:
        request = {**request, "tpot": READ}
    if request.get("rate") is not None:
        raise UsageError("contradiction", "solve max-users has no --rate", "Ask solve max-rate.")
    search = SearchedSetting("concurrency", 1, min(MOST_USERS, _requests(request, catalog) or MOST_USERS))
    ways = _ways(request, _users, catalog)
    found = _told(inverted("max-users", search, _laid_out(request, ways), catalog), "concurrency", ways)
    return replace(found, notes=(TAKEN, *found.notes)) if unsaid else found


def max_rate(request: Request, catalog: Catalog) -> Answer:
    """The most requests a second that a server keeps up with, and with the targets where there are some.

    Raises:
        UsageError: where a rate is given, or no load of such a model is followed.
    """
    request = served(request)
    if request.get("rate") is not None:
        raise UsageError("contradiction", "solve max-rate searches --rate", "Leave --rate out.")
    if not follows(request, catalog):
        problem = f"{request['model']} has an encoder beside its decoder: its answers under a load are not followed"
        raise UsageError("contradiction", problem, "Ask solve max-users how many it has room for.")

    ways = _ways(request, _rate, catalog)
    request = _laid_out(request, ways)

    def at(rate: float) -> Estimate | None:
        return estimated({**request, "rate": rate}, catalog)

    best = at(LITTLE)
    if best is None or best.under_load is None or not best.verdict.works():
        beyond = {"rate": LITTLE, **outcome({**request, "rate": LITTLE}, catalog)}
        return _told(Answer("max-rate", {"rate": None}, None, beyond), "rate", ways)
    low, high = LITTLE, best.under_load().largest_requests_per_second.expected
    for _ in range(ROUNDS):
        middle = (low * high) ** 0.5
        found = at(middle)
        if found is not None and found.verdict.works():
            low, best = middle, found
        else:
            high = middle
    more = max(high, low * STEP)
    beyond = {"rate": more, **outcome({**request, "rate": more}, catalog)}
    return _told(Answer("max-rate", {"rate": low}, best, beyond), "rate", ways)


def _requests(request: Request, catalog: Catalog) -> int | None:
    """How many requests are to be answered, if that is said; of a refused one the search tells."""
    try:
        return before_layout({**request, "concurrency": 1}, catalog).scenario.requests
    except LlmfeasError:
        return None


def _users(scenario: Scenario) -> float:
    """Users within the targets, all of whose requests have room at once, as a verdict asks."""
    lengths, _, targets = load_of(scenario)
    room = memory(scenario).serving
    held = math.inf if room is None else replicas(scenario) * room.together.at_once.expected
    server = server_of(scenario)
    if not scenario.was_given("max_num_seqs"):  # all run at once, as they do when so many are asked for
        server = replace(server, max_num_seqs=MOST_USERS)
    return min(held, most_users(server, lengths, targets).amount)


def _rate(scenario: Scenario) -> float:
    lengths, _, targets = load_of(scenario)
    return largest_rate(server_of(scenario), lengths, targets).amount


def _ways(request: Request, figure: Figure, catalog: Catalog) -> list[Shared]:
    """The best layouts of several devices, format by format; none where a layout was said, or a single device."""
    if not follows(request, catalog) or any(request.get(name) is not None for name in ("tp", "pp", "disaggregate")):
        return []
    hardware = hardware_named(str(request["device"]), catalog)
    said = request.get("num_devices") or hardware.count or 1
    if int(str(said)) == 1 or isinstance(hardware.device, Joined):
        return []
    alone = {**without(request, "num_devices"), "device": hardware.device.id}
    return shares(alone, int(str(said)), figure, catalog)


def _laid_out(request: Request, ways: list[Shared]) -> Request:
    return {**request, **ways[0].layout} if ways and not ways[0].gives_up else request


def _told(found: Answer, name: str, ways: list[Shared]) -> Answer:
    """The answer with its layout, and what formats of fewer bits would make of it."""
    now = found.answer[name]
    more = [way for way in ways if way.gives_up and (not isinstance(now, int | float) or way.amount > now)]
    notes = tuple(f"{_flags(way)}: about {digits(way.amount)}; {way.gives_up}" for way in more)
    answer = dict(found.answer)
    if ways and found.at is not None:
        scenario = found.at.scenario
        copies = scenario.num_devices // (scenario.tp * scenario.pp)
        shared = {"ep": scenario.ep} if scenario.ep > 1 else {}
        answer["layout"] = {"dp": copies, "tp": scenario.tp, "pp": scenario.pp, **shared}
    return replace(found, answer=answer, notes=(*found.notes, *notes))


def _flags(way: Shared) -> str:
    shared = f" --ep {way.layout['ep']}" if way.layout.get("ep") else ""
    return f"--quant {way.quant} --tp {way.layout['tp']} --pp {way.layout['pp']}{shared}"
