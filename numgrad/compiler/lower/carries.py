"""Where the carry of a loop is kept from step to step.

Note [Places of a carry]
------------------------
A part of the carry that a step computes goes to a second buffer; then the two change places. Where
what was before each step is collected, as gradients ask for it, no buffer is needed: a step reads
its part in the row that is collected, and writes the next one. A part that a step takes over from
another one, as methods do that look at two moments, moves along as an address. Collected, its rows
are those of the other part one step earlier, and the first is what the loop starts with: so both
share one array, which has a row more. That holds for what gradients alone read, since a user may
write to what a loop returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from numgrad.compiler.lower.terms import SCALAR, Term


@dataclass
class Carries:
    """The parts of a carry, by number, and where they are.

    Attributes
    ----------
    rows
        The result that collects a part which is computed, in whose rows it lies.
    source
        The part before the step that a part is after it.
    spare
        For a part that is computed and has a buffer: the one whose buffer is then free.
    shared
        For the result that collects a part: that whose rows it shares, and how many steps earlier.
    """

    rows: dict[int, int] = field(default_factory=dict)
    source: dict[int, int] = field(default_factory=dict)
    spare: dict[int, int] = field(default_factory=dict)
    shared: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, inputs: Sequence[Term], returned: Sequence[Term], count: int, keeps: bool
    ) -> Carries:
        """Those of a loop that takes and returns these, the first ``count`` as its carry.

        With ``keeps`` the last results are the carry before each step, for gradients only.
        """
        found = cls()
        place = {t.number: k for k, t in enumerate(inputs[:count]) if t.op != SCALAR}
        collected: dict[int, int] = {}
        own = len(returned) - count if keeps else len(returned)
        for k, term in reversed([*enumerate(returned)][count:]):
            if term.number in place:
                collected.setdefault(place[term.number], k)
        after: dict[int, int] = {}
        for k, term in enumerate(returned[:count]):
            i = place.get(term.number, k)
            if i != k and i not in after and k in place.values():
                found.source[k], after[i] = i, k
        for k in range(count):
            if k in found.source:
                continue
            if k in collected and returned[k].number != inputs[k].number:
                found.rows[k] = collected[k]
            last, depth = k, 0
            while last in after:
                last, depth = after[last], depth + 1
                if min(found.rows.get(k, 0), collected.get(last, 0)) < own:
                    continue
                found.shared[collected[last]] = found.rows[k], depth
            found.spare[k] = last
        return found
