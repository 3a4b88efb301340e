"""Rows of numbers put in order, by NumPy's sort on several threads.

Note [Halves]
-------------
Of a long row NumPy's partition puts what belongs into the lower half in front; halves are sorted at
the same time, and of either the same holds. The numbers are the same as those of one sort, but two
kinds have several bit patterns: which zeros have a sign and which bits a NaN has would depend on
the halves (NumPy's own sort takes or gives signs of equal zeros). Negative zeros are therefore put
before the others, as many as there were, and NaNs are the usual one.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import numpy as np

from numgrad import config

LEAST = 1 << 17
"""Numbers, at least, that a thread sorts: to start it takes as long as sorting some thousands."""


def sorted_rows(x: np.ndarray) -> np.ndarray:
    """A contiguous copy of real numbers, ``2 * LEAST`` at least, in order along the last axis."""
    out = np.array(x, order="C")
    parts = min(config.get_num_threads(), out.size // LEAST)
    length = out.shape[-1]
    if length == out.size:
        row = out.reshape(-1)
        _sort_parts(row, parts)
        if row.dtype.kind == "f":
            _settle(row, x)
    else:
        _sort_rows(out.reshape(-1, length), parts)
    return out


def _sort_parts(row: np.ndarray, parts: int) -> None:
    """Sort a row in place: Note [Halves]."""
    if parts < 2:
        row.sort()
        return
    lower = parts // 2
    middle = row.size * lower // parts
    row.partition(middle)
    _at_once(
        lambda: _sort_parts(row[:middle], lower), lambda: _sort_parts(row[middle:], parts - lower)
    )


def _sort_rows(rows: np.ndarray, parts: int) -> None:
    """Sort each of several rows in place."""
    if parts < 2 or len(rows) < 2:
        rows.sort(axis=-1)
        return
    lower = parts // 2
    middle = len(rows) * lower // parts
    _at_once(
        lambda: _sort_rows(rows[:middle], lower), lambda: _sort_rows(rows[middle:], parts - lower)
    )


def _at_once(one: Callable[[], None], other: Callable[[], None]) -> None:
    """Do two things that let go of the interpreter's lock, the first in a thread of its own."""
    thread = Thread(target=one)
    thread.start()
    try:
        other()
    finally:
        thread.join()


def _settle(row: np.ndarray, x: np.ndarray) -> None:
    """Give the zeros and NaNs of a sorted row bits that depend on the unsorted one alone."""
    first, end = np.searchsorted(row, 0.0, "left"), np.searchsorted(row, 0.0, "right")
    if end - first > 1:
        negative = np.count_nonzero(np.signbit(x) & (x == 0))
        row[first : first + negative] = -0.0
        row[first + negative : end] = 0.0
    if row[-1] != row[-1]:
        row[np.searchsorted(row, np.nan) :] = np.nan
