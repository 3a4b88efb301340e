"""Whether one thread or several run a kernel more quickly, found by timing both now and then.

Note [Trials]
-------------
Near the work from which threads pay, no estimate decides rightly: prices of operations are right
within a factor of two, and what a launch takes depends on what ran before, on other processes and
on the machine. A wrong choice costs up to a third there. So each kernel and size of such work has a
*trial*: for some calls the variant that has been chosen runs, then the other one for a few, of
which the last one is timed, since the first wake threads and fill caches. That is done ``ROUNDS``
times, a moment apart, for one interruption not to decide. Sums without the largest time are
compared.

The quicker variant is kept then for a while, at least ``PATIENCE`` times as long as the slower one
has cost, and for longer each time it proves to be the quicker one again: trials take less than 2 %
of the time, and calls between them one subtraction. Results do not depend on the choice: Note
[Blocks] in ``loops``.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

ROUNDS = 5
"""How often the variants take turns in a trial."""
OWN, OTHER = 20, 3
"""Calls of the chosen variant and of the other one in a round; the last one of each is timed."""
PATIENCE = 64
"""For how many times what the slower variant cost the quicker one is kept, at least."""
SHORTEST, LONGEST = 500, 16_000
"""Calls between trials: at first, and where each confirms the one before."""


class VariantTrial:
    """Trial of the variants of a kernel at one size: Note [Trials].

    Attributes
    ----------
    several
        Whether that is the one for several threads.
    alone
        How many further calls one thread takes, with nothing to be asked: ``run`` is not needed for
        them if the caller counts.
    """

    __slots__ = ("_at", "_kept", "_left", "_other", "_own", "alone", "several")

    def __init__(self, several: bool, calls: int = 0) -> None:
        self._own: list[int] = []
        self._other: list[int] = []
        self._at, self._kept = 0, SHORTEST
        self._keep(several, calls)

    def _keep(self, several: bool, calls: int) -> None:
        self.several = several
        self.alone, self._left = (0, calls) if several else (calls, 0)

    def run(self, call: Callable[..., Any], threads: int, *arguments: Any) -> Any:
        """``call(count, *arguments)``, count being 1 or ``threads``."""
        if self.alone > 0:
            self.alone -= 1
            return call(1, *arguments)
        if self._left > 0:
            self._left -= 1
            return call(threads, *arguments)
        place = self._at % (OWN + OTHER)
        begin = perf_counter_ns()
        result = call(threads if self.several != (place >= OWN) else 1, *arguments)
        elapsed = perf_counter_ns() - begin
        if place == OWN - 1:
            self._own.append(elapsed)
        elif place == OWN + OTHER - 1:
            self._other.append(elapsed)
        self._at += 1
        if len(self._other) >= ROUNDS:
            self._decide(self._own, self._other)
        return result

    def _decide(self, own: list[int], other: list[int]) -> None:
        self._own, self._other, self._at = [], [], 0
        if len(own) < ROUNDS:  # other Python threads called at the same time
            return
        mine, others = (sum(times) - max(times) for times in (own, other))
        changes = others < mine
        self._kept = SHORTEST if changes else min(2 * self._kept, LONGEST)
        lost = OTHER * abs(others - mine) / max(min(mine, others) / (ROUNDS - 1), 1)
        self._keep(self.several != changes, max(self._kept, int(PATIENCE * lost)))
