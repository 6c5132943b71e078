"""What a claim may ask: few kinds of computation, each over one case or many; what is asked of them is data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...catalog.device import Device, Price
from ...catalog.hardware import find_hardware
from ...catalog.named import find_model
from ...catalog.prices import every_price
from ...catalog.store import Catalog
from ...check.figures import COUNT, FIGURES, FLOP, GIBIBYTES, SHARE, USD, WORDS, Figure, Unit
from ...errors import DataError, UsageError
from ...feasibility.core import estimate
from ...feasibility.result import Estimate
from ...ranges import Range
from ...record import dataclass
from ...settle import resolution
from ...units import TERA, parse_count, parse_duration
from ...workload.parameters import parameters
from ...workload.scaling import HOFFMANN, optimum, optimum_by_rule


def _nothing(estimate: Estimate) -> None:
    return None


def _figure(name: str, unit: Unit) -> Figure:
    return Figure(name=name, unit=unit, help="Read from the catalog or computed.", read=_nothing)


_MORE: Mapping[Unit, tuple[str, ...]] = {
    COUNT: (
        *("active", "active_min", "active_max", "ratio", "hours_per_week", "hours_per_session"),
        *("tokens_wanted", "tokens_per_parameter", "parameters_wanted", "num_devices"),
    ),
    USD: ("usd_per_hour",),
    GIBIBYTES: ("memory_gib",),
    FLOP: ("flop",),
    SHARE: ("share",),
}

KNOWN: Mapping[str, Figure] = {
    **FIGURES,
    **{name: _figure(name, unit) for unit, names in _MORE.items() for name in names},
}
"""Every figure that a claim may read, by name."""

Value = Range | float | str | None


Ask = Mapping[str, Any]
UNVERIFIED = "unverified"
"""The source of a price that nobody could read anywhere else than in a claim."""


@dataclass(frozen=True, slots=True)
class Case:
    """One computed case: what varies, in words, and its figures by name."""

    label: str
    figures: Mapping[str, Value]


Cases = Mapping[str, Sequence[Case]]
"""What the parts before this one gave, by their names."""
Kind = Callable[[Ask, Catalog, Cases], Iterator[Case]]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def devices(choice: Any, catalog: Catalog) -> list[str]:
    """Devices by id: those listed, or those whose fields are as a mapping says."""
    if not isinstance(choice, Mapping):
        return [str(name) for name in _listed(choice)]
    wanted = {name: _listed(value) for name, value in choice.items()}
    return [
        device.id
        for device in catalog.devices.values()
        if all(getattr(device, name) in allowed for name, allowed in wanted.items())
    ]


def _scenarios(ask: Ask, catalog: Catalog) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cross the lists of a question; the label names what varies."""
    axes = {name: devices(v, catalog) if name == "device" else _listed(v) for name, v in ask.items()}
    varied = [name for name, values in axes.items() if len(values) > 1]
    for values in itertools.product(*axes.values()):
        settings = dict(zip(axes, values, strict=True))
        if isinstance(settings.get("price"), Mapping):
            settings["price"] = _price(settings["device"], settings["price"], catalog).usd_per_hour
        yield _label(settings, varied, catalog), settings


def _label(settings: Ask, varied: Sequence[str], catalog: Catalog) -> str:
    """Name what varies: `Llama 2 7B on GeForce RTX 4090, lora`."""
    things, others = [], []
    for name in varied:
        if name == "model":
            things.append(find_model(settings[name], catalog).record.name)
        elif name == "device":
            things.append(find_hardware(settings[name], catalog).device.name)
        else:
            others.append(str(settings[name]))
    return ", ".join([*([" on ".join(things)] if things else []), *others])


class EstimateFigures(Mapping[str, Value]):
    """Every figure and word of an estimate by name, read when somebody asks for it."""

    names = (*FIGURES, *WORDS, "engine", "precision")

    def __init__(self, estimated: Estimate) -> None:
        self.estimated = estimated

    def __getitem__(self, name: str) -> Value:
        if name in FIGURES:
            return FIGURES[name].of(self.estimated)
        if name in WORDS:
            return WORDS[name].read(self.estimated)
        if name in self.names:
            return str(getattr(self.estimated.scenario, name))
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def of_estimates(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Estimate scenarios: the settings of the command line; lists are crossed, `device` may be a choice."""
    for label, settings in _scenarios(ask, catalog):
        yield Case(label, EstimateFigures(estimate(resolution(settings, catalog))))


def of_ratios(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Compare a `figure` of scenarios (`of`) with that of the same scenario under other settings (`to`): to / of."""
    figure, known = FIGURES[ask["figure"]], {}
    for label, settings in _scenarios(ask["of"], catalog):
        other = next(_scenarios({**settings, **ask["to"]}, catalog))[1]
        for each in (settings, other):
            if repr(each) not in known:  # one side is often the same in all
                known[repr(each)] = estimate(resolution(each, catalog))
        estimates = [known[repr(each)] for each in (settings, other)]
        one, two = (figure.of(each) for each in estimates)
        if one is not None and two is not None and estimates[0].verdict.software != "unsupported":
            yield Case(label, {"ratio": two.over(one), "status": estimates[0].verdict.status})


def of_parameters(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Count the parameters of `model`, one or several; the active ones without the table of the input embedding."""
    for name in _listed(ask["model"]):
        model = find_model(name, catalog).record
        counts = parameters(model)
        table = counts.active - counts.active_without_input_embedding
        figures: dict[str, Value] = {
            "parameters": float(counts.total),
            "active": counts.active - table,
            "active_min": counts.active_min - table,
            "active_max": counts.active_max - table,
        }
        yield Case(model.name, figures)


def of_devices(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Look up the whole memory of devices; of machines sold in several sizes, the largest."""
    for name in devices(ask["device"], catalog):
        device = catalog.devices[name]
        yield Case(device.name, {"memory_gib": float(device.memory_gib), "released": device.released})


def sourced(device: Device, ask: Ask, catalog: Catalog) -> list[Price]:
    """The prices of a device that are as asked (`provider`, `rent`) and that a source states."""
    return [
        price
        for price in every_price(device, catalog)
        if price.source != UNVERIFIED
        and price.provider in _listed(ask.get("provider", price.provider))
        and price.kind in _listed(ask.get("rent", price.kind))
    ]


def _price(name: str, ask: Ask, catalog: Catalog) -> Price:
    prices = sourced(find_hardware(name, catalog).device, ask, catalog)
    if not prices:
        raise DataError("no-price", f"no sourced price of {name} is in the catalog", "See data/hardware.yaml.")
    return min(prices, key=lambda price: price.usd_per_hour)


def of_prices(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """List the sourced prices of devices; with `to`, as a share of the cheapest sourced price of another device."""
    base = _price(ask["to"]["device"], ask["to"], catalog) if "to" in ask else None
    for name in devices(ask["device"], catalog):
        device = catalog.devices[name]
        for price in sourced(device, ask, catalog):
            day = f", {price.as_of}" if price.as_of else ", undated"
            figures: dict[str, Value] = {"usd_per_hour": price.usd_per_hour, "provider": price.provider}
            if base is not None:
                figures["ratio"] = price.usd_per_hour / base.usd_per_hour
            note = price.note.split(" (")[0] or price.kind
            yield Case(f"{device.name} at {price.provider} ({note}{day})", figures)


def of_offers(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Look up offers whose fields are as asked: their hours."""
    for offer in catalog.offers.values():
        if all(getattr(offer, name) in _listed(value) for name, value in ask.items()):
            hours = {"hours_per_week": offer.hours_per_week, "hours_per_session": offer.hours_per_session}
            yield Case(offer.name, hours)


def of_flop(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Apply the rule of thumb, 6 x parameters x tokens; `model` counts the parameters, else they are given."""
    for name in _listed(ask["model"]) if "model" in ask else [None]:
        model = find_model(name, catalog).record if name else None
        size = float(parameters(model).total) if model else parse_count(ask["parameters"])
        tokens = parse_count(ask["tokens"]) if "tokens" in ask else 20 * size
        yield Case(
            model.name if model else "", {"flop": 6 * size * tokens, "parameters": size, "tokens_wanted": tokens}
        )


def of_device_flop(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Multiply the dense peak of a device (`rate`: a precision) by a share of it and by a time."""
    for name in devices(ask["device"], catalog):
        device = catalog.devices[name]
        for rate in _listed(ask["rate"]):
            peak = device.train_flop_per_s(rate)
            seconds = parse_duration(ask["time"])
            figures: dict[str, Value] = {"flop": peak * float(ask["share"]) * seconds, "teraflop_per_s": peak / TERA}
            yield Case(f"{device.name} in {rate}", figures)


def of_quotients(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Divide a figure of an earlier part (`of`: part.figure) by another (`to`), case by case, or by a number."""
    dividends, divisors = list(_earlier(ask["of"], before)), list(_earlier(ask["to"], before))
    paired = len(dividends) == len(divisors)
    pairs = zip(dividends, divisors, strict=True) if paired else itertools.product(dividends, divisors)
    for (case, value), (other, divisor) in pairs:
        yield Case(case or other, {"ratio": value / divisor})


def _earlier(reference: Any, before: Cases) -> Iterator[tuple[str, float]]:
    if not isinstance(reference, str):
        yield "", float(reference)
        return
    part, _, figure = reference.partition(".")
    for case in before[part]:
        value = case.figures[figure]
        if isinstance(value, str) or value is None:
            raise UsageError("bad-claim", f"{reference} is no number", "See data/claims.yaml.")
        yield case.label, value.expected if isinstance(value, Range) else value


def of_optima(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Split `flop` into parameters and tokens as Hoffmann et al. 2022 do (approach 3), and by 20 tokens a parameter."""
    flop = parse_count(ask["flop"], "flop", 0, 1e40)
    splits = {"Hoffmann et al. 2022": optimum(flop, HOFFMANN), "20 tokens a parameter": optimum_by_rule(flop)}
    for label, split in splits.items():
        each = split.tokens / split.parameters
        wanted = {"parameters_wanted": split.parameters, "tokens_wanted": split.tokens, "tokens_per_parameter": each}
        yield Case(label, wanted)


def of_solutions(ask: Ask, catalog: Catalog, before: Cases) -> Iterator[Case]:
    """Ask an inverse question (`question`, the other keys are settings): numbers of its answer by dotted name."""
    from ...planning.solve import solved

    settings = {name: value for name, value in ask.items() if name != "question"}
    for label, each in _scenarios(settings, catalog):
        answer = solved(ask["question"], each, catalog).answer
        yield Case(label, dict(_numbers(answer, "")))


def _numbers(value: Mapping[str, object], path: str) -> Iterator[tuple[str, Value]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _numbers(inner, f"{path}{key}_")
        elif isinstance(inner, str | int | float) and not isinstance(inner, bool):
            yield f"{path}{key}", inner if isinstance(inner, str) else float(inner)


KINDS: Mapping[str, Kind] = {
    "parameters": of_parameters,
    "estimate": of_estimates,
    "ratio": of_ratios,
    "devices": of_devices,
    "prices": of_prices,
    "offers": of_offers,
    "flop": of_flop,
    "device-flop": of_device_flop,
    "quotient": of_quotients,
    "optimum": of_optima,
    "solve": of_solutions,
}
"""The computation of each kind of part."""
