"""Tests of trend lines: growth is found and distinguished from noise."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.faults.sampling import slope


def test_what_grows_steadily_has_a_slope_and_no_spread():
    assert slope([(x, 3 * x + 7) for x in range(10)]) == (pytest.approx(3), pytest.approx(0))


def test_the_spread_says_whether_noise_hides_the_growth():
    rng = Random(5)
    noisy = [(x, 0.5 * x + rng.gauss(0, 1)) for x in range(200)]
    growth, spread = slope(noisy)
    assert abs(growth - 0.5) < spread < 0.01
    growth, spread = slope([(x, rng.gauss(0, 1)) for x in range(200)])
    assert abs(growth) < spread
