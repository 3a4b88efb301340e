"""How far two sets of times are apart, with a confidence interval.

Note [Ratios]
-------------
Times have a long tail upwards, so ratios are estimated by ranks, which a few disturbed samples
hardly move: the median of the averages of two log ratios where samples come in pairs, else the
median of the differences between a sample of one set and one of the other (Hodges and Lehmann,
Annals of Mathematical Statistics 34, 1963). The interval goes from one order statistic of the same
numbers to another; the normal approximation of Wilcoxon's rank tests says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import NormalDist

import numpy as np

CONFIDENCE = 0.99


def enough_pairs(count: int, confidence: float = CONFIDENCE) -> bool:
    """Whether so many pairs of times can bound a ratio with this confidence.

    By chance alone all ratios lie on one side of 1 in two of ``2**count`` cases.

    Examples
    --------
    >>> from numgrad.benchmark.intervals import enough_pairs
    >>> enough_pairs(7), enough_pairs(8)
    (False, True)
    """
    return 2 / 2**count <= 1 - confidence


def enough(new: int, old: int, confidence: float = CONFIDENCE) -> bool:
    """Whether so many times, taken apart, can bound a ratio with this confidence.

    By chance alone all times of one set lie above all of the other in two of the
    ``comb(new + old, new)`` orders.

    Examples
    --------
    >>> from numgrad.benchmark.intervals import enough
    >>> enough(4, 4), enough(5, 5)
    (False, True)
    """
    return 2 / comb(new + old, new) <= 1 - confidence


@dataclass(frozen=True)
class Ratio:
    """A ratio of times and the interval that holds it with a given confidence."""

    value: float
    low: float
    high: float

    def moved(self, threshold: float) -> bool:
        """Whether it is ``threshold`` or more away from 1, and the interval leaves 1 out."""
        return abs(np.log(self.value)) >= np.log1p(threshold) and not self.low <= 1.0 <= self.high

    def open(self, threshold: float) -> bool:
        """Whether the interval is too wide to say that it moved by ``threshold``, or did not.

        Examples
        --------
        >>> from numgrad.benchmark.intervals import Ratio
        >>> Ratio(1.06, 0.98, 1.15).open(0.05), Ratio(1.01, 0.97, 1.04).open(0.05)
        (True, False)
        """
        limit = np.log1p(threshold)
        inside = max(abs(np.log(self.low)), abs(np.log(self.high))) < limit
        wide = np.log(self.high / self.low) > limit
        return bool(wide and not inside and not self.moved(threshold))

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def paired(new: Sequence[float], old: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Ratio of ``new`` to ``old`` whose elements of the same place were taken together.

    Parameters
    ----------
    new, old
        Positive times, as many of the one as of the other.
    confidence
        Probability with which the interval is to hold the ratio.

    Examples
    --------
    >>> from numgrad.benchmark.intervals import paired
    >>> print(paired([1.1, 2.2, 3.3, 1.1, 2.2, 3.3], [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]))
    1.100 [1.100, 1.100]
    """
    logs = np.log(new) - np.log(old)
    n = len(logs)
    first, second = np.triu_indices(n)
    spread = (n * (n + 1) * (2 * n + 1) / 24) ** 0.5
    return _between((logs[first] + logs[second]) / 2, spread, confidence)


def unpaired(new: Sequence[float], old: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Ratio of ``new`` to ``old``, which were taken apart; parameters as of ``paired``."""
    differences = np.subtract.outer(np.log(new), np.log(old)).ravel()
    m, n = len(new), len(old)
    return _between(differences, (m * n * (m + n + 1) / 12) ** 0.5, confidence)


def _between(logs: np.ndarray, spread: float, confidence: float) -> Ratio:
    ordered = np.sort(logs)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * spread
    cut = max(0, int(len(ordered) / 2 - reach))
    low, middle, high = np.exp([ordered[cut], np.median(ordered), ordered[len(ordered) - 1 - cut]])
    return Ratio(float(middle), float(low), float(high))
