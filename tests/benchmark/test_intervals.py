"""Ratios of times by ranks: against brute force, and their intervals against simulated noise."""

import numpy as np
import pytest
from scipy import stats

from numgrad.benchmark.pairs import Ratio, paired, unpaired


def test_a_constant_factor_is_found_whatever_the_times() -> None:
    old = np.random.default_rng(0).uniform(1, 9, 12)
    found = paired(list(1.25 * old), list(old))
    assert [found.value, found.low, found.high] == pytest.approx([1.25] * 3)


def test_one_disturbed_sample_changes_little() -> None:
    old, new = [1.0] * 11, [1.1] * 10 + [50.0]
    assert paired(new, old).value == pytest.approx(1.1)
    assert unpaired(new, old).value == pytest.approx(1.1)


@pytest.mark.parametrize("kind", ["paired", "unpaired"])
def test_the_interval_holds_the_ratio_as_often_as_it_says(kind: str) -> None:
    rng, n, trials = np.random.default_rng(1), 12, 400
    estimate = {"paired": paired, "unpaired": unpaired}[kind]
    held = 0
    for _ in range(trials):
        new, old = 1.07 * rng.lognormal(0, 0.1, n), rng.lognormal(0, 0.1, n)
        found = estimate(list(new), list(old), 0.9)
        held += found.low <= 1.07 <= found.high
    # three standard deviations of a count of trials that succeed with probability 0.9
    assert abs(held - 0.9 * trials) < 3 * (trials * 0.09) ** 0.5


def test_the_end_of_an_interval_is_where_the_test_of_mann_and_whitney_turns() -> None:
    rng = np.random.default_rng(2)
    new, old = rng.lognormal(0.1, 0.1, 15), rng.lognormal(0, 0.1, 15)
    found = unpaired(list(new), list(old), 0.99)
    for inside, factor in ((True, found.low * 1.01), (False, found.low * 0.99)):
        p = stats.mannwhitneyu(new, old * factor, method="asymptotic", use_continuity=False).pvalue
        assert (p > 0.01) == inside


def test_moved_needs_the_size_and_the_certainty() -> None:
    assert Ratio(1.07, 1.03, 1.10).moved(0.05)
    assert not Ratio(1.07, 0.99, 1.20).moved(0.05)
    assert not Ratio(1.02, 1.01, 1.03).moved(0.05)
    assert Ratio(0.93, 0.90, 0.97).moved(0.05)


def test_an_interval_is_open_if_it_is_wide_and_leaves_both_answers() -> None:
    assert Ratio(1.06, 0.98, 1.15).open(0.05)
    assert Ratio(0.97, 0.93, 1.03).open(0.05)
    assert not Ratio(1.01, 0.96, 1.04).open(0.05)  # inside
    assert not Ratio(1.04, 1.02, 1.06).open(0.05)  # narrow
    assert not Ratio(1.08, 1.02, 1.16).open(0.05)  # moved
