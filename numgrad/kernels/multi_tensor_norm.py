"""One kernel that sums the squares of the elements of many arrays.

The elements are cut into tasks as in Note [Tensors laid end to end] of ``multi_tensor``. Where a
task begins and ends depends on the number of elements alone, each has a sum of its own, with eight
partial sums that fill SIMD lanes, and these are added in order: the result is the same bit by bit
for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.cpython.addresses import addresses, copied_addresses
from numgrad.codegen.dtypes import type_name
from numgrad.codegen.estimate import serial_ns
from numgrad.kernels.multi_tensor import MAX_TASKS, TASK

LANES = 8
_COST_NS = 0.1
"""Nanoseconds an element takes besides reading it, about."""


def sum_of_squares(arrays: Sequence[np.ndarray], dtype: np.dtype, factor: float = 1.0) -> float:
    """The sum of ``(factor * x) ** 2`` over all elements of all arrays, in float64.

    Parameters
    ----------
    arrays
        Of ``dtype``, any shapes and layouts, at least one.
    dtype
        float32, float64, or complex64 or complex128, whose real and imaginary parts are summed.
    factor
        For elements whose squares would leave the range of float64.
    """
    listed = list(arrays)
    call = listed, len(listed), 1, 0, dtype
    found = addresses(*call) or copied_addresses(*call)
    entry = partial(_entry, np.finfo(dtype).dtype)
    run = threads.choose(
        entry,
        partial(entry, parallel=True),
        serial_ns(found.total * _COST_NS, found.total * np.dtype(dtype).itemsize),
        partial(entry, nogil=True),
    )
    return run(found.pointers, found.starts, factor)


@cache
def _entry(dtype: np.dtype, parallel: bool = False, nogil: bool = False) -> Callable[..., float]:
    of = type_name(dtype)
    lanes = range(LANES)
    element = f"float64(load({of}, start, {LANES} * j + {{}}, 0, 1)) * factor"
    lines = [
        "import numpy as np",
        "from numba import float32, float64, prange",
        "from numgrad.codegen.accumulation import last_start",
        "from numgrad.codegen.intrinsics import load",
        "",
        "",
        "def kernel(pointers, starts, factor):",
        "    total = starts[starts.size - 1]",
        f"    length = max({TASK}, -(-total // {MAX_TASKS}))",
        "    partial = np.zeros(-(-total // length))",
        f"    for task in {'prange' if parallel else 'range'}(partial.size):",
        "        low = task * length",
        "        high = min(total, low + length)",
        "        t = last_start(starts, low)",
        "        found = 0.0",
        "        while low < high:",
        "            end = min(high, starts[t + 1])",
        f"            start = pointers[0, t] + (low - starts[t]) * {dtype.itemsize}",
        f"            whole = (end - low) // {LANES}",
        *[f"            s{k} = 0.0" for k in lanes],
        "            for j in range(whole):",
        *[f"                x{k} = {element.format(k)}" for k in lanes],
        *[f"                s{k} += x{k} * x{k}" for k in lanes],
        f"            for j in range({LANES} * whole, end - low):",
        f"                x = float64(load({of}, start, j, 0, 1)) * factor",
        "                s0 += x * x",
        f"            found += {_pairwise([f's{k}' for k in lanes])}",
        "            low = end",
        "            t += 1",
        "        partial[task] = found",
        "    out = 0.0",
        "    for task in range(partial.size):",
        "        out += partial[task]",
        "    return out",
        "",
    ]
    return compile_kernel(
        f"sum_of_squares_{dtype.name}{'_p' if parallel else ''}",
        "\n".join(lines),
        "float64(int64[:,::1], int64[::1], float64)",
        parallel=parallel,
        nogil=nogil,
    ).entry


def _pairwise(terms: list[str]) -> str:
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_pairwise(terms[:half])} + {_pairwise(terms[half:])})"
