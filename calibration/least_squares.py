"""Robust non-linear least squares over logarithms: what is fitted is positive, and pulled towards a centre.

Residuals are weighted; those beyond a bound count less (Huber), so that one odd source does not bend everything.
scipy solves each linearised problem. (`scipy.optimize.least_squares` ends with the same loss to 0.005 % and with
parameters that differ by up to 2 %, after several times as many evaluations: the time model has kinks.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def loss(residuals: Array, weights: Array, stretch: Array, pulls: Array) -> float:
    """Weighted Huber loss plus the pull of each parameter, by its distance (`stretch`) from its centre."""
    size = np.abs(residuals)
    robust = np.where(size <= HUBER, size**2, HUBER * (2 * size - HUBER))
    return float(weights @ robust + pulls @ stretch**2)


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

    def moved(base: Array, index: int) -> Array:
        column, rows, shifted = np.zeros(len(weight)), list(felt[index]), point.copy()
        shifted[index] += STEP
        if rows:
            column[rows] = (np.array(residuals(shifted, rows)) - base[rows]) / STEP
        return column

    def at(place: Array) -> tuple[Array, float]:
        found = np.array(residuals(place, everything))
        return found, loss(found, weight, place - middle, pull)

    base, best = at(point)
    for _ in range(rounds):
        columns = [moved(base, index) for index in range(len(point))]
        scale = np.sqrt(weight * np.minimum(1.0, HUBER / np.maximum(np.abs(base), 1e-300)))
        rows = np.vstack((np.column_stack(columns) * scale[:, None], np.diag(np.sqrt(pull))))
        step = -lstsq(rows, np.concatenate((base * scale, np.sqrt(pull) * (point - middle))))[0]
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
