"""Kernels that step many tensors by Adafactor: variances of rows and columns, clipped updates.

Note [Adafactor in three passes]
--------------------------------
A step needs whole-tensor norms of the parameter and of the update before it may write anything. A
matrix is walked over three times: squares are summed by row, by column and of the parameter; then
squares of the update; then the update is subtracted. The update is computed anew each time: with
``a = sqrt(row_var / mean(row_var))`` and ``b = sqrt(col_var)`` it is ``g / max(a[i] * b[j], eps)``,
one division, so that nothing of the size of a matrix is ever stored. Vectors, which keep a variance
an element, take two passes.

Tensors are cut into chunks of rows (of one large matrix, or whole small ones of a stack). The sums
of a chunk are those of a function that is compiled by itself, and are put together in the order of
the chunks: results are bitwise the same for any number of threads. What is written beside a sum is
given by its address, in an alias scope of its own (Note [Alias scopes]), since LLVM would otherwise
decide by the distance of the arrays whether to add in SIMD lanes.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import type_name

CHUNK = 8192
"""Elements of a chunk, about."""
LEAST_ROWS = 32
"""Rows of a chunk at least, since each chunk of a matrix stores a sum for every column."""
COST_NS = 2.0
"""Nanoseconds that an element takes in all passes."""

_HEADER = """
import numpy as np
from numba import {type}, float64, int64, prange
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.intrinsics import add_any_order, load, maximum, sqrt, store
from numgrad.codegen.device import device, outlined


@device
def rate(direction, squares, updates, size, step, lr, eps2, d):
    rho = min(lr, 1.0 / sqrt(step))
    alpha = max(eps2, sqrt(squares / size)) * rho
    return direction * alpha / max(1.0, sqrt(updates / size) / d)


@device
def next_step(address):
    step = load(float64, address, 0, 0, 1) + 1.0
    store(step, address, 0, 0, 1)
    return step

"""

_MATRICES = """
@outlined
def measure(p, g, columns, first, last, sums, parts, start, matrix):
    no_inline()
    total = 0.0
    for r in range(first, last):
        part = parts + (start + r // matrix * columns) * {bytes}
        squares = {type}(0)
        size = {type}(0)
        skip = r * columns * {bytes}
        for j in range(columns):
            x = load({type}, g + skip, j, 0, 3)
            y = load({type}, p + skip, j, 1, 3)
            squares = add_any_order(squares, x * x)
            size = add_any_order(size, y * y)
            store(load({type}, part, j, 2, 3) + x * x, part, j, 2, 3)
        sums[r] = squares
        total += size
    return total


@outlined
def factor(parts, many, count, rows, columns, sums, row_var, col_var, weight, eps1, a, b):
    no_inline()
    for q in range(count):
        mean = 0.0
        for i in range(q * rows, (q + 1) * rows):
            old = float64(load({type}, row_var, i, 0, 1))
            new = {type}(old + weight * (float64(sums[i]) / columns - old))
            store(new, row_var, i, 0, 1)
            a[i] = new
            mean += float64(new)
        mean = maximum(mean / rows, eps1)
        for i in range(q * rows, (q + 1) * rows):
            a[i] = {type}(sqrt(float64(a[i]) / mean))
        for j in range(columns):
            total = 0.0
            for c in range(many):
                total += float64(parts[(q * many + c) * columns + j])
            k = q * columns + j
            old = float64(load({type}, col_var, k, 0, 1))
            new = {type}(old + weight * (total / rows - old))
            store(new, col_var, k, 0, 1)
            b[k] = sqrt(new)


@outlined
def weigh(g, rows, columns, first, last, a, b, eps1):
    no_inline()
    total = 0.0
    for r in range(first, last):
        corner = r // rows * columns
        own = b[corner : corner + columns]
        scale = a[r]
        squares = {type}(0)
        skip = r * columns * {bytes}
        for j in range(columns):
            u = load({type}, g + skip, j, 0, 1) / maximum(scale * own[j], eps1)
            squares = add_any_order(squares, u * u)
        total += squares
    return total


@outlined
def move(p, g, rows, columns, first, last, a, b, eps1, keep, rate):
    no_inline()
    for r in range(first, last):
        corner = r // rows * columns
        own = b[corner : corner + columns]
        scale = a[r]
        skip = r * columns * {bytes}
        for j in range(columns):
            u = load({type}, g + skip, j, 0, 2) / maximum(scale * own[j], eps1)
            x = load({type}, p + skip, j, 1, 2)
            store(x * keep - rate * u, p + skip, j, 1, 2)


@device
def shape(t, starts, row_starts, col_starts):
    size = starts[t + 1] - starts[t]
    rows = row_starts[t + 1] - row_starts[t]
    columns = size // max(1, rows)
    count = (col_starts[t + 1] - col_starts[t]) // max(1, columns)
    return count, rows // max(1, count), columns


@device
def cut(count, rows, columns):
    if rows * columns <= {chunk}:  # matrices of a chunk, chunks, partial sums of a matrix
        each = {chunk} // max(1, rows * columns)
        return each * rows, -(-count // max(1, each)), 1
    step = max({least}, {chunk} // columns)
    many = -(-rows // step)
    return step, count * many, many


def kernel(
    pointers, starts, row_at, row_starts, col_at, col_starts,
    lr, beta2_decay, eps1, eps2, d, decay, direction,
):
    count = starts.size - 1
    chunks, partial = 0, 0
    for t in range(count):
        number, rows, columns = shape(t, starts, row_starts, col_starts)
        _, tasks, many = cut(number, rows, columns)
        if number * rows * columns:
            chunks += tasks
            partial += number * many * columns
    table = np.empty((chunks, 5), np.int64)
    parts_at = np.empty(count, np.int64)
    parts = np.zeros(partial, np.{type})
    chunks, partial = 0, 0
    for t in range(count):
        parts_at[t] = partial
        number, rows, columns = shape(t, starts, row_starts, col_starts)
        step, tasks, many = cut(number, rows, columns)
        if number * rows * columns == 0:
            continue
        for k in range(tasks):
            row = table[chunks + k]
            row[0] = t
            if many == 1 and rows * columns <= {chunk}:
                row[1], row[2] = k * step, min((k + 1) * step, number * rows)
                row[3], row[4] = partial, rows
            else:
                row[1] = k // many * rows + k % many * step
                row[2] = min(row[1] + step, (k // many + 1) * rows)
                row[3], row[4] = partial + k * columns, number * rows
        chunks += tasks
        partial += number * many * columns
    sums = np.empty(row_starts[count], np.{type})
    a = np.empty(row_starts[count], np.{type})
    b = np.empty(col_starts[count], np.{type})
    squares = np.empty((2, chunks))
    least = {type}(eps1)
    for index in range(chunks):
        k = int64(index)
        t, first, last, part, matrix = table[k]
        _, rows, columns = shape(t, starts, row_starts, col_starts)
        squares[0, k] = measure(
            pointers[0, t], pointers[1, t], columns, first, last,
            sums[row_starts[t] :], int64(parts.ctypes.data), part, matrix,
        )
    steps = np.empty(count)
    for t in range(count):
        steps[t] = next_step(pointers[2, t])
        number, rows, columns = shape(t, starts, row_starts, col_starts)
        _, _, many = cut(number, rows, columns)
        if number * rows * columns:
            lo, left = row_starts[t], col_starts[t]
            factor(
                parts[parts_at[t] :], many, number, rows, columns, sums[lo:], row_at[0, t],
                col_at[0, t], steps[t] ** beta2_decay, eps1, a[lo:], b[left:],
            )
    for index in range(chunks):
        k = int64(index)
        t, first, last, _, _ = table[k]
        _, rows, columns = shape(t, starts, row_starts, col_starts)
        squares[1, k] = weigh(
            pointers[1, t], rows, columns, first, last, a[row_starts[t] :], b[col_starts[t] :],
            least,
        )
    norms = np.zeros((2, count))
    for k in range(chunks):
        norms[0, table[k, 0]] += squares[0, k]
        norms[1, table[k, 0]] += squares[1, k]
    keep = {type}(1.0 - lr * decay)
    for index in range(chunks):
        k = int64(index)
        t, first, last, _, _ = table[k]
        _, rows, columns = shape(t, starts, row_starts, col_starts)
        size = starts[t + 1] - starts[t]
        factor_of_u = rate(direction, norms[0, t], norms[1, t], size, steps[t], lr, eps2, d)
        move(
            pointers[0, t], pointers[1, t], rows, columns, first, last, a[row_starts[t] :],
            b[col_starts[t] :], least, keep, {type}(factor_of_u),
        )
"""

_VECTORS = """
@outlined
def measure(p, g, v, first, last, weight, eps1):
    no_inline()
    size = {type}(0)
    squares = {type}(0)
    skip = first * {bytes}
    for j in range(last - first):
        x = load({type}, g + skip, j, 0, 3)
        y = load({type}, p + skip, j, 1, 3)
        old = load({type}, v + skip, j, 2, 3)
        new = old + weight * (x * x - old)
        store(new, v + skip, j, 2, 3)
        u = x / maximum(sqrt(new), eps1)
        size = add_any_order(size, y * y)
        squares = add_any_order(squares, u * u)
    return float64(size), float64(squares)


@outlined
def move(p, g, v, first, last, eps1, keep, rate):
    no_inline()
    skip = first * {bytes}
    for j in range(last - first):
        u = load({type}, g + skip, j, 0, 3) / maximum(sqrt(load({type}, v + skip, j, 2, 3)), eps1)
        store(load({type}, p + skip, j, 1, 3) * keep - rate * u, p + skip, j, 1, 3)


def kernel(pointers, starts, lr, beta2_decay, eps1, eps2, d, decay, direction):
    count = starts.size - 1
    chunks = 0
    for t in range(count):
        chunks += -(-(starts[t + 1] - starts[t]) // {chunk})
    table = np.empty((chunks, 3), np.int64)
    steps = np.empty(count)
    chunks = 0
    for t in range(count):
        steps[t] = next_step(pointers[3, t])
        size = starts[t + 1] - starts[t]
        for first in range(0, size, {chunk}):
            table[chunks, 0] = t
            table[chunks, 1], table[chunks, 2] = first, min(first + {chunk}, size)
            chunks += 1
    least = {type}(eps1)
    squares = np.empty((2, chunks))
    for index in range(chunks):
        k = int64(index)
        t, first, last = table[k]
        squares[0, k], squares[1, k] = measure(
            pointers[0, t], pointers[1, t], pointers[2, t], first, last,
            {type}(steps[t] ** beta2_decay), least,
        )
    norms = np.zeros((2, count))
    for k in range(chunks):
        norms[0, table[k, 0]] += squares[0, k]
        norms[1, table[k, 0]] += squares[1, k]
    keep = {type}(1.0 - lr * decay)
    for index in range(chunks):
        k = int64(index)
        t, first, last = table[k]
        size = starts[t + 1] - starts[t]
        factor_of_u = rate(direction, norms[0, t], norms[1, t], size, steps[t], lr, eps2, d)
        move(
            pointers[0, t], pointers[1, t], pointers[2, t], first, last, least, keep,
            {type}(factor_of_u),
        )
"""

_NUMBERS = ", ".join(["float64"] * 7)
_ADDRESSES = "int64[:,::1], int64[::1]"


@cache
def matrices_kernel(dtype: np.dtype, parallel: bool = False, nogil: bool = False) -> Callable:
    """The step of tensors of two dimensions and more.

    Called with addresses of parameters, gradients and step counts and where tensors start, the same
    of ``row_var`` and of ``col_var``; then ``lr``, ``beta2_decay``, ``eps1``, ``eps2``, ``d``,
    ``weight_decay`` and a direction, 1 or -1.
    """
    signature = f"void({_ADDRESSES}, {_ADDRESSES}, {_ADDRESSES}, {_NUMBERS})"
    return _compile("matrices", _MATRICES, signature, dtype, parallel, nogil)


@cache
def vectors_kernel(dtype: np.dtype, parallel: bool = False, nogil: bool = False) -> Callable:
    """The step of tensors of fewer dimensions.

    Called with addresses of parameters, gradients, variances and step counts and where tensors
    start; then the numbers as for matrices.
    """
    return _compile("vectors", _VECTORS, f"void({_ADDRESSES}, {_NUMBERS})", dtype, parallel, nogil)


def _compile(
    kind: str, text: str, signature: str, dtype: np.dtype, parallel: bool, nogil: bool
) -> Callable:
    source = (_HEADER + text).format(
        type=type_name(dtype), bytes=dtype.itemsize, chunk=CHUNK, least=LEAST_ROWS
    )
    if parallel:
        source = source.replace("for index in range(", "for index in prange(")
    return compile_kernel(
        f"adafactor_{kind}_{dtype.name}{'_p' if parallel else ''}",
        source,
        signature,
        parallel=parallel,
        nogil=nogil,
    ).entry
