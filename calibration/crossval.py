"""Fit the time model, and again with each group left out: values, their spread, and how far an unseen group is off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from llmfeas.catalog.efficiency import CalibratedNumber, Efficiency, Regime, is_share
from llmfeas.evidence.own import T90
from llmfeas.memory.runtime import NORMAL_90
from llmfeas.timing.regimes import FEW_GROUPS, HOST_PACED

from .least_squares import Residuals, minimised, tangent
from .observations import Observation, predicted_log, regime_of
from .plan import LEFT_OUT_BY, PULL, Centre

ROUNDS = 8
FELT = 0.02
"""A row speaks for a parameter when its speed moves by this share of the parameter's."""
LARGEST_ERROR = 0.8
"""Log errors count at most this much in the spread of a regime."""
SMALLEST_SIGMA = 0.18
UNSEEN_SIGMA = 0.5
"""Spread of a kind of run that nobody measured: the log errors of nine training runs on a CPU, the first that anybody
took there, were 0.43 (theoretical peaks) to 0.56 (measured ones) before anything was adapted to them."""
SHRINKAGE = 1.5
"""Groups' worth of the mean over all regimes that each regime is shrunk with."""

INSIDE = 0.78
"""Share of left-out rows that all intervals together hold: of unseen runs of known sources nearly nine in ten."""
HELD = 0.8
"""Share of the left-out trainings of a kind that its interval holds at least, run by run and with each source alike. Of
other speeds it is the share above, with each source alone alike: their tables have a row for each format or batch."""


SPLIT_SOURCES = FEW_GROUPS
"""Sources on either side from which on runs whose host sets the pace are a kind of their own."""
SPLIT_FURTHER = 1.5
"""Times that they are off further, on average over sources: of fewer one range says as much."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fit found: parameters with spread, rows and groups; log errors of left-out rows; regimes."""

    parameters: Mapping[str, CalibratedNumber]
    errors: Mapping[str, float]
    regimes: Mapping[str, Regime]


def with_values(numbers: Efficiency, values: Mapping[str, float]) -> Efficiency:
    """The numbers with some parameters replaced."""
    changed = {name: replace(numbers.parameters[name], value=value) for name, value in values.items()}
    return replace(numbers, parameters={**numbers.parameters, **changed})


def _numbers(numbers: Efficiency, names: Sequence[str], point: Iterable[float]) -> Efficiency:
    values = {name: math.exp(x) for name, x in zip(names, point, strict=True)}
    return with_values(numbers, {name: min(1.0, x) if is_share(name) else x for name, x in values.items()})


def _residuals(numbers: Efficiency, observations: Iterable[Observation]) -> list[float]:
    return [predicted_log(numbers, item) - item.log_speed for item in observations]


def felt_by(
    numbers: Efficiency, observations: Sequence[Observation], plan: Mapping[str, Centre]
) -> dict[str, frozenset[str]]:
    """The observations (ids) that each parameter of a plan moves: a tenth of them on average."""
    centre = with_values(numbers, {name: value for name, (value, _) in plan.items()})
    base = _residuals(centre, observations)
    found: dict[str, frozenset[str]] = {}
    for name, (value, _) in plan.items():
        near = [_residuals(with_values(centre, {name: value * change}), observations) for change in (0.4, 0.8)]
        moved = [any(abs(each[row] - base[row]) > 1e-9 for each in near) for row in range(len(base))]
        found[name] = frozenset(item.id for item, is_moved in zip(observations, moved, strict=True) if is_moved)
    return found


def fitted(
    numbers: Efficiency,
    observations: Sequence[Observation],
    plan: Mapping[str, Centre],
    felt: Mapping[str, frozenset[str]],
) -> list[float]:
    """The logarithms of the parameters that fit best, in the order of the plan."""
    centres, pulls = _centred(plan)
    asked = _asked(numbers, observations, list(plan))
    weights = [item.weight for item in observations]
    return minimised(asked, centres, weights, centres, pulls, ROUNDS, _rows(observations, plan, felt))


def _centred(plan: Mapping[str, Centre]) -> tuple[list[float], list[float]]:
    """The logarithms of a plan's centres, and how strongly each parameter is pulled there."""
    return [math.log(value) for value, _ in plan.values()], [PULL / spread**2 for _, spread in plan.values()]


def _asked(numbers: Efficiency, observations: Sequence[Observation], names: Sequence[str]) -> Residuals:
    """The residuals of some of the observations at a point."""
    return lambda point, rows: _residuals(_numbers(numbers, names, point), (observations[row] for row in rows))


def _rows(
    observations: Sequence[Observation], plan: Mapping[str, Centre], felt: Mapping[str, frozenset[str]]
) -> list[list[int]]:
    return [[row for row, item in enumerate(observations) if item.id in felt[name]] for name in plan]


def cross_validated(numbers: Efficiency, observations: Sequence[Observation], plan: Mapping[str, Centre]) -> Fit:
    """Fit all, then leave each group (or source) out in turn: by how the whole fit's residuals lie around it, which
    tells as much as fits of their own (of prompts both are off by 15.0 %, nine tenths by 48.8) and takes minutes.

    The spread of a parameter is the jackknife's; the error of a row is that of the fit which has not seen its group.
    """
    names, by = list(plan), LEFT_OUT_BY[observations[0].kind]
    felt = felt_by(numbers, observations, plan)
    whole = fitted(numbers, observations, plan, felt)
    around = tangent(_asked(numbers, observations, names), whole, _rows(observations, plan, felt), len(observations))
    weights, (centres, pulls) = [item.weight for item in observations], _centred(plan)
    # Where the time model has a kink the tangent has its least loss beside the fit, whatever is left out.
    beside = np.array(around.without((), weights, np.array(centres), np.array(pulls))) - whole
    folds: list[list[float]] = []
    errors: dict[str, float] = {}
    for key in sorted({getattr(item, by) for item in observations}):
        rows = [row for row, item in enumerate(observations) if getattr(item, by) == key]
        unseen = [observations[row] for row in rows]
        left = around.without(rows, weights, np.array(centres), np.array(pulls))
        point = [float(x) for x in np.array(left) - beside]
        folds.append(point)
        for item, error in zip(unseen, _residuals(_numbers(numbers, names, point), unseen), strict=True):
            errors[item.id] = error
    best = _numbers(numbers, names, whole)
    parameters = {
        name: _parameter(best, observations, name, [fold[index] - whole[index] for fold in folds])
        for index, name in enumerate(names)
    }
    return Fit(parameters, errors, regimes_of(best, observations, errors))


def _parameter(
    best: Efficiency, observations: Sequence[Observation], name: str, moved: Sequence[float]
) -> CalibratedNumber:
    known = best.parameters[name]
    shifted = with_values(best, {name: known.value / 1.01})
    felt = [
        item
        for item in observations
        if abs(predicted_log(shifted, item) - predicted_log(best, item)) > FELT * math.log(1.01)
    ]
    spread = math.sqrt((len(moved) - 1) / len(moved) * sum(change * change for change in moved))
    return CalibratedNumber(
        value=float(f"{known.value:.4g}"),
        spread=round(max(0.02, spread), 2),
        rows=len(felt),
        groups=len({item.group for item in felt}),
        note=known.note,
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


@dataclass(frozen=True, slots=True)
class _Error:
    """The log error of a left-out row, in its kind of run."""

    regime: str
    group: str
    source: str
    size: float


def regimes_of(
    numbers: Efficiency, observations: Sequence[Observation], errors: Mapping[str, float]
) -> dict[str, Regime]:
    """The spread and the interval of each kind of run from the errors of left-out groups.

    Mean square of each group's log errors, averaged over the groups (sources) of a regime and shrunk to the mean over
    all (of one alone: to that of kinds that nobody measured); width = exp(t(0.9; groups + 2) sigma), all of a kind of
    speed then scaled by one factor so that they hold what they shall of the left-out rows; where one regime holds fewer
    of its own, it is widened until it does. So is the interval of a kind of training that holds too few rows of each
    source where it is drawn without that source. `unknown` stands for a kind of run without measurements.
    """
    by, trained = LEFT_OUT_BY[observations[0].kind], observations[0].kind == "training"
    rows = [
        _Error(regime_of(numbers, item), getattr(item, by), item.source, abs(errors[item.id])) for item in observations
    ]
    rows = _split(rows)
    found = _drawn(rows, trained=trained)
    if trained:
        found = _widened(found, rows)
    return {"unknown": Regime(UNSEEN_SIGMA, 0, 0, round(math.exp(NORMAL_90 * UNSEEN_SIGMA), 3)), **found}


def _split(rows: Sequence[_Error]) -> list[_Error]:
    """Rows whose host sets the pace: a kind of their own where several sources speak for it and for the other part,
    and they are off further.
    """
    sizes: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        sizes.setdefault(row.regime, {}).setdefault(row.source, []).append(min(LARGEST_ERROR, row.size) ** 2)
    off = {
        name: math.sqrt(_mean(_mean(each) for each in sources.values()))
        for name, sources in sizes.items()
        if len(sources) >= SPLIT_SOURCES
    }
    pairs = [(name, name.removesuffix(HOST_PACED)) for name in off if name.endswith(HOST_PACED)]
    split = {name for name, other in pairs if other in off and off[name] >= SPLIT_FURTHER * off[other]}
    return [row if row.regime in split else replace(row, regime=row.regime.removesuffix(HOST_PACED)) for row in rows]


def _drawn(rows: Sequence[_Error], *, trained: bool) -> dict[str, Regime]:
    """The intervals of all kinds of run that rows speak for."""
    squares: dict[str, dict[str, list[float]]] = {}
    overall: dict[str, list[float]] = {}
    for row in rows:
        square = min(LARGEST_ERROR, row.size) ** 2
        squares.setdefault(row.regime, {}).setdefault(row.group, []).append(square)
        overall.setdefault(row.group, []).append(square)
    general = _mean(_mean(values) for values in overall.values())
    found: dict[str, Regime] = {}
    for name, groups in sorted(squares.items()):
        own = sum(_mean(values) for values in groups.values())
        centre = general if len(groups) > 1 else max(general, UNSEEN_SIGMA**2)
        sigma = math.sqrt((SHRINKAGE * centre + own) / (SHRINKAGE + len(groups)))
        found[name] = _regime(sigma, len(groups), sum(len(values) for values in groups.values()))
    scaled = _scaled(found, sorted(row.size / math.log(found[row.regime].width) for row in rows))
    return {
        name: _holding([row for row in rows if row.regime == name], regime, trained=trained)
        for name, regime in scaled.items()
    }


def _holding(rows: Sequence[_Error], regime: Regime, *, trained: bool) -> Regime:
    """A regime, widened where it holds fewer of its left-out rows than it shall: all alike, or each source alike."""
    sources = _each_alike((row.source, row.size) for row in rows)
    runs = [(row.size, 1.0) for row in rows]
    bound = max(_held(runs, HELD), _held(sources, HELD)) if trained else _held(sources, INSIDE)
    width = math.exp(min(LARGEST_ERROR, bound))
    width = max(regime.width, math.ceil(1000 * width) / 1000 if trained else round(width, 3))
    return replace(regime, width=width, sources=len({row.source for row in rows}))


def _widened(found: Mapping[str, Regime], rows: Sequence[_Error]) -> dict[str, Regime]:
    """Regimes whose intervals, each drawn without the source that it is tried on, hold too few of its rows, widened by
    as much as those would have to be. Of one source alone none is drawn without it.
    """
    parts: dict[str, list[tuple[str, float]]] = {}
    for source in sorted({row.source for row in rows}):
        drawn = _drawn([row for row in rows if row.source != source], trained=True)
        for row in rows:
            if row.source == source and row.regime in drawn:
                part = row.size / math.log(drawn[row.regime].width)
                parts.setdefault(row.regime, []).append((source, part))
    factors = {name: _held(_each_alike(each), INSIDE) for name, each in parts.items()}
    return {
        name: replace(regime, width=max(regime.width, _wider(regime.width, factors.get(name, 1.0))))
        for name, regime in found.items()
    }


def _wider(width: float, factor: float) -> float:
    """A width of so many times the logarithm, at most that of the largest error; rounded up."""
    return math.ceil(1000 * math.exp(min(LARGEST_ERROR, factor * math.log(width)))) / 1000


def _each_alike(named: Iterable[tuple[str, float]]) -> list[tuple[float, float]]:
    """Numbers with weights under which each source counts alike."""
    own: dict[str, list[float]] = {}
    for source, number in named:
        own.setdefault(source, []).append(number)
    return [(number, 1 / len(each)) for each in own.values() for number in each]


def _held(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """The error below which a share of rows lies, from errors and weights."""
    ordered = sorted(weighted)
    least = share * sum(weight for _, weight in ordered) - 1e-9
    held = accumulate(weight for _, weight in ordered)
    return next(error for (error, _), so_far in zip(ordered, held, strict=True) if so_far >= least)


def _scaled(regimes: Mapping[str, Regime], ratios: Sequence[float]) -> dict[str, Regime]:
    """Scale all widths so that the stated share of errors (here as parts of their half-width) is inside."""
    factor = ratios[min(len(ratios) - 1, int(INSIDE * len(ratios)))]
    factor = min(1.25, max(0.7, factor))
    return {
        name: replace(regime, width=round(math.exp(factor * math.log(regime.width)), 3))
        for name, regime in regimes.items()
    }


def _regime(sigma: float, groups: int, rows: int) -> Regime:
    sigma = max(SMALLEST_SIGMA, sigma)
    quantile = T90[min(groups + 2, len(T90)) - 1]
    return Regime(sigma=round(sigma, 3), groups=groups, rows=rows, width=round(math.exp(quantile * sigma), 3))
