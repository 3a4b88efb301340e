"""Kernel of dropout: each element is kept or not by a number that its position and a seed give.

Note [Random numbers by position]
---------------------------------
The number of element ``k`` is the ``k``-th of SplitMix64 (https://doi.org/10.1145/2660193.2660195),
which is a mixed counter: any element's can be had without those before it. So nothing is stored for
the backward pass, which draws the same numbers again, loops vectorise, and the result does not
depend on the number of threads.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.device import device
from numgrad.codegen.dtypes import short, type_name

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


@device
def mixed(z):
    """The number that SplitMix64 makes of a state.

    Not in the text below: a loop that calls functions of the text is not written in vectors, and
    takes seven times as long.
    """
    z = (z ^ (z >> _S30)) * FIRST
    z = (z ^ (z >> _S27)) * SECOND
    return z ^ (z >> _S31)


_SOURCE = """
from numba import float32, float64, int64, uint64, prange
from numgrad.codegen.intrinsics import select
from numgrad.kernels.dropout import STEP, mixed

S11 = uint64(11)
ZERO = {type}(0)


def kernel(x, out, seed, least, scale, group):
    start = mixed(uint64(seed))
    limit = uint64(least)
    if group == 1:
        tasks = -(-x.size // {task})
        for index in {range}(tasks):
            lo = int64(index) * {task}
            a = x[lo : min(lo + {task}, x.size)]
            y = out[lo : min(lo + {task}, x.size)]
            state = start + uint64(lo) * STEP
            for k in range(a.size):
                number = mixed(state + uint64(k) * STEP) >> S11
                y[k] = select(number >= limit, a[k] * scale, ZERO)
    else:
        for index in {range}(x.size // group):
            q = int64(index)
            a = x[q * group : q * group + group]
            y = out[q * group : q * group + group]
            kept = (mixed(start + uint64(q) * STEP) >> S11) >= limit
            for k in range(a.size):
                y[k] = select(kept, a[k] * scale, ZERO)
"""

BITS = 53
"""Bits of a random number."""
TASK = 4096
"""Elements a thread takes at a time."""


@cache
def dropout_kernel(dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    """Compile ``out = where(number >= least, x * scale, 0)`` with random integers.

    Returns
    -------
    callable
        ``entry(x, out, seed, least, scale, group)`` with raveled arrays of ``dtype``; ``least`` is
        the probability of a zero times ``2**53``, and ``group`` elements in a row share a number.
    """
    array, number = f"{type_name(dtype)}[::1]", type_name(dtype)
    return compile_kernel(
        f"dropout_{short(dtype)}{'_p' if parallel else ''}",
        _SOURCE.format(type=number, task=TASK, range="prange" if parallel else "range"),
        f"void({array}, {array}, int64, int64, {number}, int64)",
        parallel=parallel,
        nogil=parallel,
    ).entry
