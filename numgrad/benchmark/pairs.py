"""Two versions of a program timed against each other, on a machine that others use too.

Note [Ratios]
-------------
Times have a long tail upwards, so ratios are estimated by ranks, which a few disturbed samples
hardly move: the median of the averages of two log ratios where samples come in pairs, else the
median of the differences between a sample of one set and one of the other (Hodges and Lehmann,
Annals of Mathematical Statistics 34, 1963). The interval goes from one order statistic of the same
numbers to another; the normal approximation of Wilcoxon's rank tests says which.

Note [Two sides]
----------------
A pair is a process of either side, on one and the same CPU and one thread. They take turns of a few
milliseconds, A B B A and so on: noise, as of clock rates or of what others take of caches, mostly
lasts longer, and is the same for both. A turn gives its smallest sample of CPU time; the first one
brings operands back into caches. What counts is the median of the ratios of turns. Smallest samples
of all turns would not do: noise does not only add, and moments in which a machine is faster than
usual are few, and are not the same for both.

Where memory happens to lie makes differences of some percent, for as long as operands or processes
live. So operands are made anew several times in a process, each time for some turns, of which the
mean counts, and the ratio and its interval come from several pairs (Note [Ratios]).

What seems to have moved is timed again in as many further pairs, and is named if these by
themselves say so as well. Of a case that did not change, pairs say the contrary with at most 1 %,
two looks in a row with 0.01 %; a run over thirty cases names one of them in fewer than one of three
hundred runs, and in far fewer, as the ratio must be off by the threshold too. What has an interval
too wide to say anything is timed again as long as there is time. A case of which that is true at
the end is *not decided*: that is no change, and no absence of one.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import NormalDist
from typing import Protocol

import numpy as np

CONFIDENCE = 0.99


def enough_pairs(count: int) -> bool:
    """Whether so many pairs of times can bound a ratio with ``CONFIDENCE``.

    By chance alone all ratios lie on one side of 1 in two of ``2**count`` cases.

    Examples
    --------
    >>> from numgrad.benchmark.pairs import enough_pairs
    >>> enough_pairs(7), enough_pairs(8)
    (False, True)
    """
    return 2 / 2**count <= 1 - CONFIDENCE


def enough(new: int, old: int, confidence: float = CONFIDENCE) -> bool:
    """Whether so many times, taken apart, can bound a ratio with this confidence.

    By chance alone all times of one set lie above all of the other in two of the
    ``comb(new + old, new)`` orders.

    Examples
    --------
    >>> from numgrad.benchmark.pairs import enough
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
        >>> from numgrad.benchmark.pairs import Ratio
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
    >>> from numgrad.benchmark.pairs import paired
    >>> print(paired([1.1, 2.2, 3.3, 1.1, 2.2, 3.3], [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]))
    1.100 [1.100, 1.100]
    """
    logs = np.log(new) - np.log(old)
    n = len(logs)
    first, second = np.triu_indices(n)
    deviation = (n * (n + 1) * (2 * n + 1) / 24) ** 0.5
    return _between((logs[first] + logs[second]) / 2, deviation, confidence)


def unpaired(new: Sequence[float], old: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Ratio of ``new`` to ``old``, which were taken apart; parameters as of ``paired``."""
    differences = np.subtract.outer(np.log(new), np.log(old)).ravel()
    m, n = len(new), len(old)
    return _between(differences, (m * n * (m + n + 1) / 12) ** 0.5, confidence)


def _between(logs: np.ndarray, deviation: float, confidence: float) -> Ratio:
    ordered = np.sort(logs)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * deviation
    cut = max(0, int(len(ordered) / 2 - reach))
    low, middle, high = np.exp([ordered[cut], np.median(ordered), ordered[len(ordered) - 1 - cut]])
    return Ratio(float(middle), float(low), float(high))


MOVED, OPEN = "MOVED", "NOT DECIDED"
SAMPLE_SECONDS = 0.001
"""A call is repeated until one sample takes this long: well above the clock's resolution, and short
enough that on a busy machine some samples fit between two interruptions."""
LAYOUTS, TURNS, SAMPLES = 3, 8, 3
"""How often a process makes the operands of a case, turns with each of them, samples of a turn."""


@dataclass
class PairedTimes:
    """Seconds of one case, a pair of processes after the other."""

    base: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)
    examined: int = field(default=0, init=False)
    """Pairs up to the last look."""
    agreed: int = field(default=0, init=False)
    """How many looks in a row, each at pairs of its own, said that it moved."""

    @property
    def ratio(self) -> Ratio:
        """Times of head by those of base, with its interval."""
        return paired(self.head, self.base)

    def look(self, threshold: float) -> None:
        """Take note of what the pairs since the last look say."""
        head, base = self.head[self.examined :], self.base[self.examined :]
        if enough_pairs(len(base)):
            self.examined += len(base)
            self.agreed = self.agreed + 1 if paired(head, base).moved(threshold) else 0

    def verdict(self, threshold: float) -> str:
        """MOVED, NOT DECIDED or nothing."""
        if self.agreed >= 2 and self.ratio.moved(threshold):
            return MOVED
        ratio = self.ratio
        if self.agreed or not self.examined or ratio.open(threshold) or ratio.moved(threshold):
            return OPEN  # also where looks do not agree with each other, or with all pairs
        return ""


class Timed(Protocol):
    """A case in the process of one side."""

    def prepare(self) -> bool:
        """Make operands anew; False if this side lacks the case."""
        ...

    def fastest(self) -> float:
        """The smallest time of an execution in some samples."""
        ...

    def samples(self, count: int, number: int) -> list[float]:
        """CPU seconds an execution, in ``count`` samples of ``number`` executions."""
        ...


def on_one_cpu(pids: Iterable[int], number: int) -> None:
    """Keep processes on one of the CPUs, another for each pair, where the system lets us."""
    if hasattr(os, "sched_setaffinity"):
        cpus = sorted(os.sched_getaffinity(0))
        for pid in pids:
            os.sched_setaffinity(pid, {cpus[number % len(cpus)]})


def take_turns(sides: Sequence[Timed], number: int) -> PairedTimes | None:
    """Time a case on two sides by turns, in pair ``number``; None if one of them lacks it."""
    seconds = np.empty((LAYOUTS, TURNS, 2))
    for layout in range(LAYOUTS):
        if not all([side.prepare() for side in sides]):
            return None
        fastest = min(side.fastest() for side in sides)
        executions = max(1, round(SAMPLE_SECONDS / fastest))
        for turn in range(TURNS):
            for side in ((0, 1), (1, 0))[(number + turn) % 2]:
                seconds[layout, turn, side] = min(sides[side].samples(SAMPLES, executions))
    logs = np.log(seconds)
    base, difference = (
        np.median(logs[..., 0]),
        np.median(logs[..., 1] - logs[..., 0], axis=1).mean(),
    )
    return PairedTimes([float(np.exp(base))], [float(np.exp(base + difference))])


def decide(
    names: Sequence[str],
    run_pair: Callable[[Sequence[str], int], Mapping[str, PairedTimes]],
    pairs: int,
    threshold: float,
    until: float,
) -> dict[str, PairedTimes]:
    """Time cases by pairs of processes until all is decided or time is over.

    Parameters
    ----------
    names
        Of the cases.
    run_pair
        Times the cases of some names in a pair of a number; what a side lacks is left out.
    pairs
        How many make a look.
    threshold
        From which ratio beyond 1 a change is named.
    until
        When no further pair begins, by ``time.monotonic``.
    """
    times: dict[str, PairedTimes] = defaultdict(PairedTimes)
    again = list(names)
    while again and time.monotonic() < until:
        for number in range(pairs):
            if time.monotonic() > until:
                break
            for name, pair in run_pair(again, number).items():
                times[name].base += pair.base
                times[name].head += pair.head
        for name in again:
            if name in times:
                times[name].look(threshold)
        again = [name for name in names if name in times and times[name].verdict(threshold) == OPEN]
    return dict(times)


def verdicts(times: Mapping[str, PairedTimes], threshold: float) -> dict[str, list[str]]:
    """The names of cases by verdict."""
    names: dict[str, list[str]] = {MOVED: [], OPEN: [], "": []}
    for name, pair in times.items():
        names[pair.verdict(threshold)].append(name)
    return names
