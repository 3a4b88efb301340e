"""Kernel of searches in a sorted row."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

PIECE = 4096
"""Numbers that a thread takes at a time."""
_STEP_NS = 1.0

_SOURCE = """
from numba import int64, prange
from numgrad.kernels.bisection import {function}

def kernel(a, v, places, right):
    for task in {range}(-(-v.size // {piece})):
        lo = int64(task) * {piece}
        hi = min(lo + {piece}, v.size)
        {function}(a, v[lo:hi], places[lo:hi], right)
"""


@cache
def _kernel(dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    row = f"{type_name(dtype)}[::1]"
    function = "places_of_floats" if dtype.kind == "f" else "places_of_integers"
    return compile_kernel(
        f"search_{short(dtype)}{'_p' if parallel else ''}",
        _SOURCE.format(range="prange" if parallel else "range", piece=PIECE, function=function),
        f"void({row}, {row}, int64[::1], boolean)",
        parallel=parallel,
    ).entry


def places(a: np.ndarray, v: np.ndarray, right: bool) -> np.ndarray:
    """How many elements of a sorted row stand before each number, both of one real dtype."""
    kernel = partial(_kernel, a.dtype)
    found = np.empty(v.shape, np.int64)
    steps = a.size.bit_length() + 2
    run = threads.choose(partial(kernel, False), partial(kernel, True), v.size * steps * _STEP_NS)
    run(np.ascontiguousarray(a), np.ascontiguousarray(v).ravel(), found.ravel(), right)
    return found
