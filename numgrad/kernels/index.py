"""Kernels that read and write at integer indices.

Operands are contiguous, and seen as ``(o, n, r)``, the indexed axis in the middle. Each function
returns the position of the first index out of range, or -1; what is before it may have been
written. Reads of many elements are shared among threads. Writes are serial: indices may
repeat, and the order of additions decides the last bits. What takes long in a long row is waiting
for its elements, so they are fetched ahead; to sort additions by parts of the row first, for
threads to share, takes longer than it saves.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

PIECE = 8192
"""Elements, about, that a thread reads at a time."""
NEAR_BYTES = 1 << 21
"""A row up to this long is near enough: fetching ahead would cost more than it saves."""
AHEAD = 64
"""How many additions before its own an element of a longer row is fetched."""
_INDEX_NS, _ELEMENT_NS = 0.8, 0.2
"""Nanoseconds that an index costs, and an element that is copied."""

_GATHER = """
@outlined
def some(x, indices, out, n, m, r, lo, hi):
    at = lo
    while at < hi:
        a = at // m
        end = min(hi, (a + 1) * m)
        first = at - a * m
        chosen = indices[first : end - a * m]
        part = out[at * r : end * r]
        if r == 1:
            row = x[a * n : a * n + n]
            for k in range(end - at):
                i = chosen[k]
                i = i + n if i < 0 else i
                if i < 0 or i >= n:
                    return first + k
                part[k] = row[i]
        else:
            for k in range(end - at):
                i = chosen[k]
                i = i + n if i < 0 else i
                if i < 0 or i >= n:
                    return first + k
                start = (a * n + i) * r
                row = x[start : start + r]
                copy = part[k * r : k * r + r]
                for j in range(r):
                    copy[j] = row[j]
        at = end
    return -1
"""

_GATHER_ALONG = """
@outlined
def some(x, indices, out, n, m, r, lo, hi):
    at = lo
    while at < hi:
        a = at // m
        end = min(hi, (a + 1) * m)
        row = x[a * n * r : (a + 1) * n * r]
        chosen = indices[at * r : end * r]
        part = out[at * r : end * r]
        if r == 1:
            for k in range(end - at):
                i = chosen[k]
                i = i + n if i < 0 else i
                if i < 0 or i >= n:
                    return at + k
                part[k] = row[i]
        else:
            for k in range((end - at) * r):
                i = chosen[k]
                if i < -n or i >= n:
                    return at * r + k
            for k in range(end - at):
                for j in range(r):
                    i = chosen[k * r + j]
                    part[k * r + j] = row[(i + n if i < 0 else i) * r + j]
        at = end
    return -1
"""

_SERIAL = """
from numgrad.codegen.device import outlined

{some}

def kernel(x, indices, out, o, n, m, r):
    if o == 0:
        for k in range(indices.size):
            if indices[k] < -n or indices[k] >= n:
                return k
    return some(x, indices, out, n, m, r, 0, o * m)
"""

_PARALLEL = """
from numba import int64, prange
from numgrad.codegen.device import outlined

{some}

def kernel(x, indices, out, outside, length, o, n, m, r):
    for task in prange(outside.size):
        t = int64(task)
        outside[t] = some(x, indices, out, n, m, r, t * length, min(t * length + length, o * m))
    for t in range(outside.size):
        if outside[t] >= 0:
            return outside[t]
    return -1
"""

_ADD = """
from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import prefetch

@outlined
def add(row, indices, part, n, m):
    far = max(m - {ahead}, 0) if n > {near} else 0
    for k in range(far):
        i = indices[k + {ahead}]
        prefetch(row, i + n if i < 0 else i)
        i = indices[k]
        i = i + n if i < 0 else i
        if i < 0 or i >= n:
            return k
        row[i] += part[k]
    for k in range(far, m):
        i = indices[k]
        i = i + n if i < 0 else i
        if i < 0 or i >= n:
            return k
        row[i] += part[k]
    return -1
"""

_SCATTER = """
def kernel(g, indices, out, o, n, m, r):
    if r == 1 and o > 0:
        for a in range(o):
            row = out[a * n : a * n + n]
            part = g[a * m : a * m + m]
            k = add(row, indices, part, n, m)
            if k >= 0:
                return k
        return -1
    for k in range(m):
        i = indices[k]
        if i < -n or i >= n:
            return k
    for a in range(o):
        for k in range(m):
            i = indices[k]
            start = (a * n + (i + n if i < 0 else i)) * r
            row = out[start : start + r]
            part = g[(a * m + k) * r : (a * m + k + 1) * r]
            for j in range(r):
                row[j] += part[j]
    return -1
"""

_SCATTER_ALONG = """
def kernel(g, indices, out, o, n, m, r):
    if r == 1 and o > 0:
        for a in range(o):
            row = out[a * n : a * n + n]
            chosen = indices[a * m : a * m + m]
            part = g[a * m : a * m + m]
            k = add(row, chosen, part, n, m)
            if k >= 0:
                return a * m + k
        return -1
    for k in range(indices.size):
        i = indices[k]
        if i < -n or i >= n:
            return k
    for a in range(o):
        row = out[a * n * r : (a + 1) * n * r]
        for k in range(m):
            start = (a * m + k) * r
            for j in range(r):
                i = indices[start + j]
                row[(i + n if i < 0 else i) * r + j] += g[start + j]
    return -1
"""


def _compiled(name: str, source: str, dtype: np.dtype, leading: str, parallel: bool) -> Callable:
    array = f"{type_name(dtype)}[::1]"
    return compile_kernel(
        f"{name}_{short(dtype)}{'_p' if parallel else ''}",
        source,
        f"int64({array}, int64[::1], {array}, {leading}int64, int64, int64, int64)",
        parallel=parallel,
    ).entry


@cache
def _reader(along: bool, dtype: np.dtype, parallel: bool) -> Callable[..., int]:
    name, some = ("gather_along", _GATHER_ALONG) if along else ("gather", _GATHER)
    source = (_PARALLEL if parallel else _SERIAL).format(some=some)
    leading = "int64[::1], int64, " if parallel else ""
    kernel = _compiled(name, source, dtype, leading, parallel)
    return partial(_shared, kernel) if parallel else kernel


def _shared(kernel: Callable[..., int], x: Any, indices: Any, out: Any, *sizes: int) -> int:
    """Run a kernel whose threads each say of a piece whether an index is out of range."""
    o, _, m, r = sizes
    length = max(PIECE // max(r, 1), 1)
    return kernel(x, indices, out, np.empty(-(-o * m // length), np.int64), length, *sizes)


def _read(along: bool, x: np.ndarray, indices: np.ndarray, out: np.ndarray, *sizes: int) -> int:
    count = out.size if along else sizes[0] * sizes[2]
    work_ns = count * _INDEX_NS + out.size * _ELEMENT_NS
    reader = partial(_reader, along, x.dtype)
    run = threads.choose(partial(reader, False), partial(reader, True), work_ns)
    return run(x, indices, out, *sizes)


@cache
def _writer(along: bool, dtype: np.dtype) -> Callable[..., int]:
    name, source = ("scatter_add_along", _SCATTER_ALONG) if along else ("scatter_add", _SCATTER)
    add = _ADD.format(ahead=AHEAD, near=NEAR_BYTES // dtype.itemsize)
    return _compiled(name, add + source, dtype, "", False)


def gather(x: np.ndarray, indices: np.ndarray, out: np.ndarray, o: int, n: int, r: int) -> int:
    """``out[a, k, :] = x[a, indices[k], :]``."""
    return _read(False, x, indices, out, o, n, len(indices), r)


def gather_along(
    x: np.ndarray, indices: np.ndarray, out: np.ndarray, o: int, n: int, m: int, r: int
) -> int:
    """``out[a, k, j] = x[a, indices[a, k, j], j]``, ``m`` of them along the axis."""
    return _read(True, x, indices, out, o, n, m, r)


def scatter_add(g: np.ndarray, indices: np.ndarray, out: np.ndarray, o: int, n: int, r: int) -> int:
    """``out[a, indices[k], :] += g[a, k, :]``, in the order of ``k``."""
    return _writer(False, g.dtype)(g, indices, out, o, n, len(indices), r)


def scatter_add_along(
    g: np.ndarray, indices: np.ndarray, out: np.ndarray, o: int, n: int, m: int, r: int
) -> int:
    """``out[a, indices[a, k, j], j] += g[a, k, j]``, in the order of ``k``."""
    return _writer(True, g.dtype)(g, indices, out, o, n, m, r)
