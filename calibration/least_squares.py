"""Robust non-linear least squares over logarithms: what is fitted is positive, and pulled towards a centre.

Residuals are weighted; those beyond a bound count less (Huber), so that one odd source does not bend everything.
scipy solves each linearised problem. (`scipy.optimize.least_squares` ends with the same loss to 0.005 % and with
parameters that differ by up to 2 %, after several times as many evaluations: the time model has kinks.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Residuals = Callable[[Array, Sequence[int]], Sequence[float]]
"""Residuals at a point, of the rows of these numbers."""

STEP = 0.01
"""Step of the numerical derivative, in logarithms."""
LARGEST_STEP = 0.7
"""The most that a round moves a parameter, in logarithms."""
HUBER = 0.35
"""Log error beyond which a residual counts linearly."""
REWEIGHTED, SETTLED = 20, 1e-4
"""Rounds of a problem without some rows at most, and the move (logarithm) below which it is solved."""


def loss(residuals: Array, weights: Array, stretch: Array, pulls: Array) -> float:
    """Weighted Huber loss plus the pull of each parameter, by its distance (`stretch`) from its centre."""
    size = np.abs(residuals)
    robust = np.where(size <= HUBER, size**2, HUBER * (2 * size - HUBER))
    return float(weights @ robust + pulls @ stretch**2)


@dataclass(frozen=True, slots=True)
class Tangent:
    """Residuals around a point, to first order: what they are there, and how each parameter moves them."""

    point: Array
    residuals: Array
    slopes: Array
    """A row of them for each residual, a column for each parameter."""

    def without(self, rows: Sequence[int], weights: Sequence[float], centres: Array, pulls: Array) -> list[float]:
        """The parameters of least loss without some rows, as far as the tangent says: no residual is computed anew."""
        kept = np.setdiff1d(np.arange(len(self.residuals)), rows)
        base, slopes, weight = self.residuals[kept], self.slopes[kept], np.array(weights, dtype=float)[kept]
        point, moved = self.point, np.zeros(len(self.point))
        for _ in range(REWEIGHTED):
            scale = weight * np.minimum(1.0, HUBER / np.maximum(np.abs(base + slopes @ moved), 1e-300))
            curved = slopes.T @ (slopes * scale[:, None]) + np.diag(pulls)
            before = moved
            moved = -np.linalg.solve(curved, slopes.T @ (scale * base) + pulls * (self.point - centres))
            if np.max(np.abs(moved - before)) < SETTLED:
                break
        point = point + moved
        return [float(x) for x in point]


def _step(base: Array, slopes: Array, weight: Array, pull: Array, stretch: Array) -> Array:
    """The step of one linearised problem, in which residuals beyond the bound count less."""
    scale = np.sqrt(weight * np.minimum(1.0, HUBER / np.maximum(np.abs(base), 1e-300)))
    rows = np.vstack((slopes * scale[:, None], np.diag(np.sqrt(pull))))
    return np.asarray(-lstsq(rows, np.concatenate((base * scale, np.sqrt(pull) * stretch)))[0])


def tangent(residuals: Residuals, at: Sequence[float], felt: Sequence[Sequence[int]], count: int) -> Tangent:
    """The tangent of so many residuals at a point; `felt` as in `minimised`."""
    point = np.array(at, dtype=float)
    base = np.array(residuals(point, range(count)))
    return Tangent(point, base, np.column_stack([_slope(residuals, point, base, *each) for each in enumerate(felt)]))


def _slope(residuals: Residuals, point: Array, base: Array, index: int, felt: Sequence[int]) -> Array:
    """How a parameter moves each residual, by the rows that it moves at all."""
    column, rows, shifted = np.zeros(len(base)), list(felt), point.copy()
    shifted[index] += STEP
    if rows:
        column[rows] = (np.array(residuals(shifted, rows)) - base[rows]) / STEP
    return column


def minimised(
    residuals: Residuals,
    start: Sequence[float],
    weights: Sequence[float],
    centres: Sequence[float],
    pulls: Sequence[float],
    rounds: int,
    felt: Sequence[Sequence[int]],
) -> list[float]:
    """The parameters (logarithms) of least loss: reweighted Gauss-Newton steps, halved until they help.

    `felt` has for each parameter the rows that move with it; no other is asked for its derivative.
    """
    point, middle, weight, pull = (np.array(values, dtype=float) for values in (start, centres, weights, pulls))

    everything = range(len(weight))

    def at(place: Array) -> tuple[Array, float]:
        found = np.array(residuals(place, everything))
        return found, loss(found, weight, place - middle, pull)

    base, best = at(point)
    for _ in range(rounds):
        slopes = np.column_stack([_slope(residuals, point, base, *each) for each in enumerate(felt)])
        step = _step(base, slopes, weight, pull, point - middle)
        for _ in range(6):
            trial = point + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
            found, value = at(trial)
            if value < best:
                break
            step = step / 2
        else:
            break
        gained = best - value
        point, base, best = trial, found, value
        if gained < 1e-6 * (1 + best):
            break
    return [float(x) for x in point]
