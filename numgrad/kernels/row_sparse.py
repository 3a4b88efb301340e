"""Kernels that read and write whole rows of an array at integer indices.

Arrays are contiguous, their rows run along the first axis; indices are int64 on one axis.

Note [Sums of equal rows]
-------------------------
Rows that go to the same place are added in the order in which they are given, so the bits of a sum
depend on nothing else. ``sort_rows`` brings equal indices together (a stable radix sort, linear in
their number); then every place is one segment, each segment belongs to one thread, and threads get
equal numbers of rows, however uneven the segments are.
"""

from collections.abc import Callable
from functools import cache, partial
from math import prod

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name
from numgrad.kernels.index import scatter_add

DIGIT = 11
"""Bits sorted by in one pass."""

_ELEMENT_NS = 0.4  # an element copied or added
_ROW_NS = 4.0  # a row found

_SORT = """
def kernel(indices, order, starts, rows, keys, other_keys, other_order, places):
    n = indices.size
    largest = 0
    for k in range(n):
        keys[k] = indices[k]
        order[k] = k
        largest = max(largest, indices[k])
    shift = 0
    moved = False
    while largest >> shift > 0:
        source, target = (other_keys, keys) if moved else (keys, other_keys)
        here, there = (other_order, order) if moved else (order, other_order)
        places[:] = 0
        for k in range(n):
            places[(source[k] >> shift) & {mask}] += 1
        total = 0
        for digit in range({size}):
            count = places[digit]
            places[digit] = total
            total += count
        for k in range(n):
            digit = (source[k] >> shift) & {mask}
            place = places[digit]
            places[digit] = place + 1
            target[place] = source[k]
            there[place] = here[k]
        moved = not moved
        shift += {digit}
    ordered = other_keys if moved else keys
    if moved:
        for k in range(n):
            order[k] = other_order[k]
    count = 0
    for k in range(n):
        if k == 0 or ordered[k] != ordered[k - 1]:
            starts[count] = k
            rows[count] = ordered[k]
            count += 1
    starts[count] = n
    return count
"""

_ADD = """
from numba import int64, prange

def kernel(values, order, starts, rows, out, r, compact, tasks):
    count = rows.size
    n = starts[count]
    for index in {range}(tasks):
        task = int64(index)
        lo = task * n // tasks
        hi = (task + 1) * n // tasks
        s = 0  # the first segment that starts at lo or later
        end = count
        while s < end:
            middle = (s + end) // 2
            if starts[middle] < lo:
                s = middle + 1
            else:
                end = middle
        while s < count and starts[s] < hi:
            at = s if compact else rows[s]
            total = out[at * r : at * r + r]
            for k in range(starts[s], starts[s + 1]):
                start = order[k] * r
                row = values[start : start + r]
                if compact and k == starts[s]:
                    for j in range(r):
                        total[j] = row[j]
                else:
                    for j in range(r):
                        total[j] += row[j]
            s += 1
"""

_GATHER = """
from numba import int64, prange

def kernel(x, indices, out, n, r):
    lowest = 0
    highest = -1
    for k in range(indices.size):
        lowest = min(lowest, indices[k])
        highest = max(highest, indices[k])
    if lowest < 0 or highest >= n:
        for k in range(indices.size):
            if indices[k] < 0 or indices[k] >= n:
                return k
    for index in {range}(indices.size):
        k = int64(index)
        start = indices[k] * r
        row = x[start : start + r]
        part = out[k * r : k * r + r]
        for j in range(r):
            part[j] = row[j]
    return -1
"""


@cache
def _sort_kernel() -> Callable[..., int]:
    source = _SORT.format(size=1 << DIGIT, mask=(1 << DIGIT) - 1, digit=DIGIT)
    return compile_kernel("sort_rows", source, f"int64({', '.join(['int64[::1]'] * 8)})").entry


def sort_rows(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bring equal indices (not negative) together.

    Returns
    -------
    order, starts, rows
        The positions of the indices in rising order, of equal ones the earlier first; where in it
        each segment of equal ones starts, and the end; the index of each segment.
    """
    n = indices.size
    order, rows, *spare = (np.empty(n, np.int64) for _ in range(5))
    starts, heads = np.empty(n + 1, np.int64), np.empty(1 << DIGIT, np.int64)
    count = _sort_kernel()(indices, order, starts, rows, *spare, heads)
    return order, starts[: count + 1], rows[:count]


@cache
def _add_kernel(dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    array = f"{type_name(dtype)}[::1]"
    ints = "int64[::1], int64[::1], int64[::1]"
    return compile_kernel(
        f"add_rows_{short(dtype)}{'_p' * parallel}",
        _ADD.format(range="prange" if parallel else "range"),
        f"void({array}, {ints}, {array}, int64, boolean, int64)",
        parallel=parallel,
        nogil=parallel,
    ).entry


def sum_rows(values: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ``indices`` in rising order, and the sum of the rows of ``values`` at each."""
    order, starts, rows = sort_rows(indices)
    sums = np.empty((rows.size, *values.shape[1:]), values.dtype)
    _add(values, order, starts, rows, sums, True)
    return rows, sums


def scatter_rows(values: np.ndarray, indices: np.ndarray, out: np.ndarray) -> None:
    """Add each row of ``values`` to the row of ``out`` at its index."""
    if threads.worth(values.size * _ELEMENT_NS) > 1:
        _add(values, *sort_rows(indices), out, False)
        return
    sizes = 1, out.shape[0], prod(out.shape[1:])  # one thread need not sort for the same bits
    scatter_add(values.ravel(), indices, out.ravel(), *sizes)


def _add(
    values: np.ndarray,
    order: np.ndarray,
    starts: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
    compact: bool,
) -> None:
    """Sum the rows of each segment into its row of ``out``: if ``compact``, assign to row ``s``."""
    work_ns = values.size * _ELEMENT_NS
    entry = threads.choose(
        partial(_add_kernel, values.dtype, False), partial(_add_kernel, values.dtype, True), work_ns
    )
    tasks = max(1, threads.worth(work_ns))
    r = prod(values.shape[1:])
    entry(values.ravel(), order, starts, rows, out.ravel(), r, compact, tasks)


@cache
def _gather_kernel(dtype: np.dtype, parallel: bool) -> Callable[..., int]:
    array = f"{type_name(dtype)}[::1]"
    return compile_kernel(
        f"gather_rows_{short(dtype)}{'_p' * parallel}",
        _GATHER.format(range="prange" if parallel else "range"),
        f"int64({array}, int64[::1], {array}, int64, int64)",
        parallel=parallel,
        nogil=parallel,
    ).entry


def gather_rows(x: np.ndarray, indices: np.ndarray, out: np.ndarray) -> int:
    """Copy the rows of ``x`` at ``indices`` to those of ``out``.

    Returns the position of the first index that is negative or too large, before anything was
    copied, or -1.
    """
    entry = threads.choose(
        partial(_gather_kernel, x.dtype, False),
        partial(_gather_kernel, x.dtype, True),
        out.size * _ELEMENT_NS + indices.size * _ROW_NS,
    )
    return entry(x.ravel(), indices, out.ravel(), x.shape[0], prod(x.shape[1:]))
