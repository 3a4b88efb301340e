"""Two versions of a program timed against each other, on a machine that others use too.

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
mean counts, and the ratio and its interval come from several pairs (Note [Ratios] of
``numgrad.benchmark.intervals``).

What seems to have moved is timed again in as many further pairs, and is named if these by
themselves say so as well. Of a case that did not change, pairs say the contrary with at most 1 %,
two looks in a row with 0.01 %; a run over thirty cases names one of them in fewer than one of three
hundred runs, and in far fewer, as the ratio must be off by the threshold too. What has an interval
too wide to say anything is timed again as long as there is time. A case of which that is true at
the end is *not decided*: that is no change, and no absence of one.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from numgrad.benchmark.intervals import Ratio, enough_pairs, paired

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
    seen: int = field(default=0, init=False)
    """Pairs up to the last look."""
    agreed: int = field(default=0, init=False)
    """How many looks in a row, each at pairs of its own, said that it moved."""

    @property
    def ratio(self) -> Ratio:
        """Times of head by those of base, with its interval."""
        return paired(self.head, self.base)

    def look(self, threshold: float) -> None:
        """Take note of what the pairs since the last look say."""
        head, base = self.head[self.seen :], self.base[self.seen :]
        if enough_pairs(len(base)):
            self.seen += len(base)
            self.agreed = self.agreed + 1 if paired(head, base).moved(threshold) else 0

    def verdict(self, threshold: float) -> str:
        """MOVED, NOT DECIDED or nothing."""
        if self.agreed >= 2 and self.ratio.moved(threshold):
            return MOVED
        ratio = self.ratio
        if self.agreed or not self.seen or ratio.open(threshold) or ratio.moved(threshold):
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
        """So many samples of so many executions, in seconds of CPU time an execution."""
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
            for name, taken in run_pair(again, number).items():
                times[name].base += taken.base
                times[name].head += taken.head
        for name in again:
            if name in times:
                times[name].look(threshold)
        again = [name for name in names if name in times and times[name].verdict(threshold) == OPEN]
    return dict(times)


def verdicts(times: Mapping[str, PairedTimes], threshold: float) -> dict[str, list[str]]:
    """The names of cases by verdict."""
    found: dict[str, list[str]] = {MOVED: [], OPEN: [], "": []}
    for name, taken in times.items():
        found[taken.verdict(threshold)].append(name)
    return found
