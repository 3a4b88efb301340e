"""Sorts and searches of rows for loops of compiled functions, which call no library.

Note [Merge sort]
-----------------
Runs of some elements are sorted by insertion, then merged two by two, values and places together
(D. Knuth, The Art of Computer Programming 3, 5.2.4). That is stable; NaN is last. In descending
order a row is read and written backwards, so that equal elements stay in order.
"""

import numpy as np

from numgrad.codegen.compile import KernelSource
from numgrad.codegen.device import instruction

DTYPES = frozenset(
    ("float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
)
"""What rows may hold."""
PLACES, DESCENDING = 1, 2
"""Bits of an order: whether places are stored, not values, and whether the largest is first."""

_BEFORE = """
from numba import {dtype}, int64
import numpy as np
from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import load, store

@outlined
def before(a, b):
    return {before}
"""
_ORDER = """
@outlined
def insert(a, p, n, width):
    for lo in range(0, n, width):
        for k in range(lo + 1, min(lo + width, n)):
            value, place, j = a[k], p[k], k
            while j > lo:
                if not before(value, a[j - 1]):
                    break
                a[j] = a[j - 1]
                p[j] = p[j - 1]
                j -= 1
            a[j] = value
            p[j] = place

@outlined
def merge(a, p, b, q, n, width):
    for lo in range(0, n, 2 * width):
        middle, end = min(lo + width, n), min(lo + 2 * width, n)
        i, j = lo, middle
        for k in range(lo, end):
            later = i >= middle
            if i < middle:
                if j < end:
                    later = before(a[j], a[i])
            if later:
                b[k] = a[j]
                q[k] = p[j]
                j += 1
            else:
                b[k] = a[i]
                q[k] = p[i]
                i += 1

def kernel(x, y, rows, n, form):
    values, places = np.empty(2 * n, np.{dtype}), np.empty(2 * n, np.int64)
    a, b, p, q = values[:n], values[n:], places[:n], places[n:]
    for row in range(rows):
        first, last = row * n, row * n + n - 1
        if form & {descending}:
            for k in range(n):
                a[k] = load({dtype}, x, last - k, 0, 1)
                p[k] = n - 1 - k
        else:
            for k in range(n):
                a[k] = load({dtype}, x, first + k, 0, 1)
                p[k] = k
        insert(a, p, n, {run})
        width, there = {run}, 0
        while width < n:
            if there == 0:
                merge(a, p, b, q, n, width)
            else:
                merge(b, q, a, p, n, width)
            there = 1 - there
            width = 2 * width
        base = n * there
        for k in range(n):
            at = last - k if form & {descending} else first + k
            if form & {places}:
                store(places[base + k], y, at, 0, 1)
            else:
                store(values[base + k], y, at, 0, 1)
"""
_SEARCH = """
def kernel(a, v, y, n, count, right):
    for k in range(count):
        value, lo, hi = load({dtype}, v, k, 0, 1), 0, n
        while lo < hi:
            middle = (lo + hi) // 2
            element = load({dtype}, a, middle, 0, 1)
            further = before(element, value)
            if right:
                further = not before(value, element)
            if further:
                lo = middle + 1
            else:
                hi = middle
        store(int64(lo), y, k, 0, 1)
"""


@instruction
def order_rows(like, x, y, rows, n, form):
    """Store at ``y`` each row of ``n`` elements at ``x`` in order, or places that order it."""


@instruction
def search_row(like, a, v, y, n, count, right):
    """Store at ``y`` how many of ``n`` elements in order come before each number at ``v``."""


for _call in (order_rows, search_row):
    _call.external = f"{__name__}:{{}}_{{}}".format
order_rows.allocates = True


def native_source(function: str) -> KernelSource:
    """Source of a native function, ``<name>_<dtype>``."""
    name, dtype = function.rsplit("_", 1)
    nan_last = np.dtype(dtype).kind == "f"
    text, count = (_ORDER, 5) if name == "order_rows" else (_SEARCH, 6)
    source = (_BEFORE + text).format(
        dtype=dtype, run=8, places=PLACES, descending=DESCENDING,
        before="(a < b) | ((b != b) & (a == a))" if nan_last else "a < b",
    )  # fmt: skip
    return KernelSource(function, source, f"void({', '.join(['int64'] * count)})")
