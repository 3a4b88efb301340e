"""Kernels that read and write at integer indices.

Operands are contiguous and seen as ``(o, n, r)``, the indexed axis in the middle, or flat. Each
kernel returns the position of the first index out of range, or -1; what is before it may have been
written. Writes are serial: indices may repeat, and the order of additions decides the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

_GATHER = """
def kernel(x, indices, out, o, n, r):
    m = indices.size
    if r == 1 and o > 0:
        for a in range(o):
            row = x[a * n : a * n + n]
            part = out[a * m : a * m + m]
            for k in range(m):
                i = indices[k]
                i = i + n if i < 0 else i
                if i < 0 or i >= n:
                    return k
                part[k] = row[i]
        return -1
    for k in range(m):
        i = indices[k]
        if i < -n or i >= n:
            return k
    for a in range(o):
        for k in range(m):
            i = indices[k]
            start = (a * n + (i + n if i < 0 else i)) * r
            row = x[start : start + r]
            part = out[(a * m + k) * r : (a * m + k + 1) * r]
            for j in range(r):
                part[j] = row[j]
    return -1
"""

_SCATTER = """
def kernel(g, indices, out, o, n, r):
    m = indices.size
    if r == 1 and o > 0:
        for a in range(o):
            row = out[a * n : a * n + n]
            part = g[a * m : a * m + m]
            for k in range(m):
                i = indices[k]
                i = i + n if i < 0 else i
                if i < 0 or i >= n:
                    return k
                row[i] += part[k]
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

_GATHER_ALONG = """
def kernel(x, indices, out, o, n, m, r):
    if r == 1 and o > 0:
        for a in range(o):
            row = x[a * n : a * n + n]
            chosen = indices[a * m : a * m + m]
            part = out[a * m : a * m + m]
            for k in range(m):
                i = chosen[k]
                i = i + n if i < 0 else i
                if i < 0 or i >= n:
                    return a * m + k
                part[k] = row[i]
        return -1
    for k in range(indices.size):
        i = indices[k]
        if i < -n or i >= n:
            return k
    for a in range(o):
        row = x[a * n * r : (a + 1) * n * r]
        for k in range(m):
            start = (a * m + k) * r
            for j in range(r):
                i = indices[start + j]
                out[start + j] = row[(i + n if i < 0 else i) * r + j]
    return -1
"""

_SCATTER_ALONG = """
def kernel(g, indices, out, o, n, m, r):
    if r == 1 and o > 0:
        for a in range(o):
            row = out[a * n : a * n + n]
            chosen = indices[a * m : a * m + m]
            part = g[a * m : a * m + m]
            for k in range(m):
                i = chosen[k]
                i = i + n if i < 0 else i
                if i < 0 or i >= n:
                    return a * m + k
                row[i] += part[k]
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


@cache
def _kernel(name: str, source: str, dtype: np.dtype, sizes: int) -> Callable[..., int]:
    array = f"{type_name(dtype)}[::1]"
    signature = f"int64({array}, int64[::1], {array}{', int64' * sizes})"
    return compile_kernel(f"{name}_{short(dtype)}", source, signature).entry


def gather_kernel(dtype: np.dtype) -> Callable[..., int]:
    """``out[a, k, :] = x[a, indices[k], :]``: called with x, indices, out, o, n, r."""
    return _kernel("gather", _GATHER, dtype, 3)


def scatter_add_kernel(dtype: np.dtype) -> Callable[..., int]:
    """``out[a, indices[k], :] += g[a, k, :]``: called with g, indices, out, o, n, r."""
    return _kernel("scatter_add", _SCATTER, dtype, 3)


def gather_along_kernel(dtype: np.dtype) -> Callable[..., int]:
    """``out[a, k, j] = x[a, indices[a, k, j], j]``: called with x, indices, out, o, n, m, r."""
    return _kernel("gather_along", _GATHER_ALONG, dtype, 4)


def scatter_add_along_kernel(dtype: np.dtype) -> Callable[..., int]:
    """``out[a, indices[a, k, j], j] += g[a, k, j]``: called with g, indices, out, o, n, m, r."""
    return _kernel("scatter_add_along", _SCATTER_ALONG, dtype, 4)
