from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from calibration.least_squares import HUBER, loss, minimised, tangent


def test_known_parameters_come_back() -> None:
    """Speeds that two rates explain exactly: both are found, wherever the search begins."""
    draw = random.Random(1)
    rows = [(draw.uniform(0.1, 10), draw.uniform(0.1, 10)) for _ in range(40)]
    truth = [math.log(3.0), math.log(0.2)]

    def residuals(point: Sequence[float], asked: Sequence[int]) -> list[float]:
        a, b = (math.exp(x) for x in point)
        chosen = [rows[row] for row in asked]
        return [math.log(a * x + b * y) - math.log(3.0 * x + 0.2 * y) for x, y in chosen]

    felt = [range(40)] * 2
    found = minimised(residuals, [0.0, 0.0], [1.0] * 40, [0.0, 0.0], [1e-9, 1e-9], 20, felt)
    assert found == pytest.approx(truth, abs=1e-3)


def test_one_odd_row_does_not_bend_the_rest() -> None:
    logs = [0.0] * 20 + [5.0]
    found = minimised(
        lambda point, rows: [point[0] - logs[row] for row in rows],
        [1.0],
        [1.0] * 21,
        [0.0],
        [1e-9],
        30,
        [range(21)],
    )
    assert abs(found[0]) < 0.05


def test_without_rows_a_parameter_stays_at_its_centre() -> None:
    found = minimised(lambda point, rows: [0.0 for _ in rows], [2.0], [1.0], [0.7], [1.0], 10, [()])
    assert found == pytest.approx([0.7], abs=1e-4)


def test_what_is_left_out_is_as_if_it_had_never_been_fitted() -> None:
    """Two sources that disagree, one row far off: without the second the first alone is met."""
    logs = [0.1, 0.2, 0.3, 1.0, 1.1, 4.0]

    def residuals(point: Sequence[float], asked: Sequence[int]) -> list[float]:
        return [point[0] - logs[row] for row in asked]

    centres, pulls = np.array([0.0, 0.7]), np.array([1e-3, 1.0])
    felt, weights = [range(6), ()], [1.0] * 6
    whole = minimised(residuals, centres, weights, centres, pulls, 30, felt)
    around = tangent(residuals, whole, felt, 6)
    without = around.without([3, 4, 5], weights, centres, pulls)
    alone = minimised(residuals, centres, weights[:3], centres, pulls, 30, [range(3), ()])
    assert without == pytest.approx(alone, abs=1e-3)
    assert abs(without[0] - 0.2) < 0.01 < whole[0] - 0.2
    assert without[1] == pytest.approx(0.7)


def test_loss_is_linear_beyond_the_bound() -> None:
    none = np.array([])
    near, far = (loss(np.array([size]), np.array([1.0]), none, none) for size in (2 * HUBER, 3 * HUBER))
    assert far - near == pytest.approx(2 * HUBER * HUBER)
