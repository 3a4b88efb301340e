"""Kernels of limited-memory quasi-Newton methods: directions from a history of steps.

Note [Two-loop recursion]
-------------------------
With pairs of a step ``s`` and the change of the gradient ``y`` along it, newest last, the direction
is ``-H g`` for an approximation ``H`` of the inverse Hessian that is never formed (J. Nocedal,
"Updating quasi-Newton matrices with limited storage", 1980)::

    d = -g
    for each pair, newest first:  a = (s . d) / (s . y);  d = d - a y
    d = h d
    for each pair, oldest first:  b = (y . d) / (s . y);  d = d + (a - b) s

Every update of ``d`` is followed by a dot product with it, so both are done in one pass: a history
of ``m`` pairs takes ``2 m + 1`` passes, the last of which gives the slope ``g . d``.

A pass goes block by block. A block is handled by a function that is compiled by itself, and the
parts of a dot product are added in the order of the blocks, so results are bitwise the same for any
number of threads. Arrays are read and written by their addresses, each in an alias scope of its own
(Note [Alias scopes]): otherwise LLVM would decide by the distance of the arrays, when a pass runs,
whether to add in SIMD lanes.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import type_name

BLOCK = 4096
PASS_NS = 0.5
"""Nanoseconds that an element takes in one pass."""

_HEADER = """
import numpy as np
from numba import {type}, float64, int64, prange
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.intrinsics import add_any_order, load, store
from numgrad.codegen.device import outlined

"""

_DIRECTION = """
@outlined
def begin(g, d, b, lo, hi, scale):
    no_inline()
    total = {type}(0)
    skip = lo * {bytes}
    for j in range(hi - lo):
        new = -load({type}, g + skip, j, 0, 3) * scale
        store(new, d + skip, j, 1, 3)
        total = add_any_order(total, new * load({type}, b + skip, j, 2, 3))
    return float64(total)


@outlined
def advance(a, d, b, lo, hi, factor, scale):
    no_inline()
    total = {type}(0)
    skip = lo * {bytes}
    for j in range(hi - lo):
        old = load({type}, d + skip, j, 1, 3)
        new = (old + factor * load({type}, a + skip, j, 0, 3)) * scale
        store(new, d + skip, j, 1, 3)
        total = add_any_order(total, new * load({type}, b + skip, j, 2, 3))
    return float64(total)


def kernel(pairs, inverse, h, g, d, shares):
    count = pairs.shape[1]
    size = g.size
    blocks = -(-size // {block})
    parts = np.empty(blocks)
    from_g, to_d = int64(g.ctypes.data), int64(d.ctypes.data)
    dot = 0.0
    for turn in range(2 * count + 1):
        factor = 0.0
        if turn == 0:
            a = from_g
        elif turn <= count:  # newest first
            k = count - turn
            shares[k] = dot * inverse[k]
            a, factor = pairs[1, k], -shares[k]
        else:
            k = turn - count - 1
            a, factor = pairs[0, k], shares[k] - dot * inverse[k]
        if turn < count:
            b = pairs[0, count - turn - 1]
        elif turn < 2 * count:
            b = pairs[1, turn - count]
        else:
            b = from_g
        scale = h if turn == count else 1.0
        for index in range(blocks):
            k = int64(index)
            lo, hi = k * {block}, min((k + 1) * {block}, size)
            if turn == 0:
                parts[k] = begin(a, to_d, b, lo, hi, {type}(scale))
            else:
                parts[k] = advance(a, to_d, b, lo, hi, {type}(factor), {type}(scale))
        dot = 0.0
        for k in range(blocks):
            dot += parts[k]
    return dot
"""

_PAIR = """
@outlined
def form(g, before, d, s, y, lo, hi, t):
    no_inline()
    product = {type}(0)
    square = {type}(0)
    skip = lo * {bytes}
    for j in range(hi - lo):
        change = load({type}, g + skip, j, 0, 5) - load({type}, before + skip, j, 1, 5)
        step = load({type}, d + skip, j, 2, 5) * t
        store(step, s + skip, j, 3, 5)
        store(change, y + skip, j, 4, 5)
        product = add_any_order(product, change * step)
        square = add_any_order(square, change * change)
    return float64(product), float64(square)


def kernel(g, before, d, t, s, y, out):
    size = g.size
    blocks = -(-size // {block})
    parts = np.empty((2, blocks))
    for index in range(blocks):
        k = int64(index)
        lo, hi = k * {block}, min((k + 1) * {block}, size)
        parts[0, k], parts[1, k] = form(
            g.ctypes.data, before.ctypes.data, d.ctypes.data, s.ctypes.data, y.ctypes.data,
            lo, hi, {type}(t),
        )
    product = 0.0
    square = 0.0
    for k in range(blocks):
        product += parts[0, k]
        square += parts[1, k]
    out[0], out[1] = product, square
"""


@cache
def direction_kernel(dtype: np.dtype, parallel: bool = False, nogil: bool = False) -> Callable:
    """Minus the approximate inverse Hessian times the gradient: Note [Two-loop recursion].

    Called with the addresses of the steps and of the changes, oldest first, the float64 inverses of
    their products, the scale ``h``, the gradient, the direction to fill, and room for a float64 a
    pair (the ``a`` of the recursion). Returns the slope along the direction.
    """
    of = f"{type_name(dtype)}[::1]"
    signature = f"float64(int64[:,::1], float64[::1], float64, {of}, {of}, float64[::1])"
    return _compile("direction", _DIRECTION, signature, dtype, parallel, nogil)


@cache
def pair_kernel(dtype: np.dtype, parallel: bool = False, nogil: bool = False) -> Callable:
    """A new pair: called with gradient, gradient before, direction, its factor, and what to fill.

    That is the step, the change of the gradient, and float64s: their product, the square of the
    change.
    """
    of = f"{type_name(dtype)}[::1]"
    signature = f"void({of}, {of}, {of}, float64, {of}, {of}, float64[::1])"
    return _compile("pair", _PAIR, signature, dtype, parallel, nogil)


def _compile(
    kind: str, text: str, signature: str, dtype: np.dtype, parallel: bool, nogil: bool
) -> Callable:
    source = (_HEADER + text).format(type=type_name(dtype), bytes=dtype.itemsize, block=BLOCK)
    if parallel:
        source = source.replace("for index in range(", "for index in prange(")
    return compile_kernel(
        f"quasi_newton_{kind}_{dtype.name}{'_p' if parallel else ''}",
        source,
        signature,
        parallel=parallel,
        nogil=nogil,
    ).entry
