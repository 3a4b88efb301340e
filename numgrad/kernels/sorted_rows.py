"""Rows of numbers put in order, by NumPy's sort on several threads.

Note [Halves]
-------------
The copy of a long row that is sorted is made in two halves, numbers below a pivot from its front on
and the others from its end; the pivot is the median of some. Halves are sorted at the same time,
and for more threads halved again by NumPy's partition. The numbers are those of one sort, but two
kinds have several bit patterns: which zeros have a sign and which bits a NaN has would depend on
the halves (NumPy's own sort takes or gives signs of equal zeros). Negative zeros are therefore put
before the others, as many as there were, and NaNs are the usual one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Thread

import numpy as np

from numgrad import config
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

LEAST = 1 << 17
"""Numbers, at least, that a thread sorts: to start it takes as long as sorting some thousands."""
_SAMPLE = 1024

_HALVES = """
from numgrad.codegen.intrinsics import select

def kernel(x, out, pivot):
    front, end, middle = 0, x.size - 1, pivot[0]
    for k in range(x.size):
        v = x[k]
        out[front] = v  # to both, one of which is written over
        out[end] = v
        below = v < middle
        front += select(below, 1, 0)
        end -= select(below, 0, 1)
    return front
"""


@cache
def _halves(dtype: np.dtype) -> Callable[..., int]:
    row = f"{type_name(dtype)}[::1]"
    name = f"halves_{short(dtype)}"
    return compile_kernel(name, _HALVES, f"int64({row}, {row}, {row})").entry


def sorted_rows(x: np.ndarray) -> np.ndarray:
    """A contiguous copy of real numbers, ``2 * LEAST`` at least, in order along the last axis."""
    parts = min(config.get_num_threads(), x.size // LEAST)
    length = x.shape[-1]
    if length < x.size:
        out = np.array(x, order="C")
        _sort_rows(out.reshape(-1, length), parts)
        return out
    row = np.ascontiguousarray(x).reshape(-1)
    out = _sorted_row(row, parts)
    if out.dtype.kind == "f":
        _settle(out, row)
    return out.reshape(x.shape)


def _sorted_row(row: np.ndarray, parts: int) -> np.ndarray:
    """Note [Halves]."""
    if parts < 2 or row.dtype.itemsize < 4 or not row.dtype.isnative:
        return np.sort(row)
    some = np.sort(row[:: row.size // _SAMPLE])
    lower = parts // 2
    place = some.size * lower // parts
    out = np.empty_like(row)
    middle = _halves(row.dtype)(row, out, some[place : place + 1])
    _at_once(
        lambda: _sort_parts(out[:middle], lower), lambda: _sort_parts(out[middle:], parts - lower)
    )
    return out


def _sort_parts(row: np.ndarray, parts: int) -> None:
    """Sort a row in place."""
    parts = min(parts, row.size // LEAST)
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
    """Do two things that let go of the interpreter's lock, the first in a thread of its own.

    If that has not begun when the second is done, since other processes use the cores, the first
    is done here too.
    """
    waiting = [one]

    def take() -> None:
        try:
            work = waiting.pop()
        except IndexError:
            return
        work()

    thread = Thread(target=take)
    thread.start()
    try:
        other()
        take()
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
