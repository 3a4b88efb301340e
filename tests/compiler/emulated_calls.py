"""NumPy for the kernels that compiled loops call: Note [Calls in loops] in ``lower.library_calls``.

Each takes a function that views elements at an address, which must have been written to be read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

View = Callable[..., np.ndarray]
"""The elements of a dtype at an address, in a shape: to be read, or with ``out`` to be written."""


def order_rows(view: View, like: Any, x: int, y: int, rows: int, n: int, form: int) -> None:
    """See ``kernels.order_rows``."""
    a = view(like, x, (rows, n))
    order = np.argsort(a, axis=1, kind="stable")
    if form & 2:
        order = n - 1 - np.argsort(a[:, ::-1], axis=1, kind="stable")[:, ::-1]
    result = order if form & 1 else np.take_along_axis(a, order, 1)
    view(result.dtype, y, (rows, n), out=True)[:] = result


def search_row(
    view: View, like: Any, a: int, v: int, y: int, n: int, count: int, right: int
) -> None:
    """See ``kernels.order_rows``."""
    side = "right" if right else "left"
    result = np.searchsorted(view(like, a, (n,)), view(like, v, (count,)), side)
    view(np.int64, y, (count,), out=True)[:] = result


def fourier_rows(
    view: View, like: Any, x: int, y: int, rows: int, n: int, form: int, scale: int, middle: int
) -> None:
    """See ``kernels.fourier``."""
    real, wide = np.dtype(like), np.result_type(like, np.complex64)
    half = n // 2 + 1
    taken, given = half if form & 2 else n, half if form & 8 else n
    a = view(real if form & 4 else wide, x, (rows, taken)).astype(complex)
    factor = np.ones(half)
    factor[1 : (n + 1) // 2] = 2.0**middle
    if form & 2:
        a = np.fft.fft(np.fft.irfft(a * factor, n))
    b = np.fft.fft(a) if form & 1 else np.fft.ifft(a) * n
    b = b / (1, n, np.sqrt(n))[scale]
    b = b[:, :half] * factor if form & 8 else b
    view(real if form & 2 else wide, y, (rows, given), out=True)[:] = b.real if form & 2 else b


def _factors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns exchanged, ones on the diagonal of the upper factor: ``matrices.small.factor``."""
    a, n = a.copy(), len(a)
    pivots = np.zeros(n, np.int32)
    for k in range(n):
        p = k + int(np.argmax(np.abs(a[k, k:])))
        pivots[k] = p + 1
        a[:, [k, p]] = a[:, [p, k]]
        a[k, k + 1 :] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, pivots


def factor_matrices(view: View, like: Any, x: int, y: int, count: int, n: int) -> None:
    """See ``kernels.matrices.loop_calls``."""
    out = view(like, y, (count, n + 1, n), out=True)
    for k, a in enumerate(view(like, x, (count, n, n))):
        out[k, :n], out[k, n] = _factors(a)


def solve_factored(
    view: View, like: Any, factors: int, places: int, b: int, y: int,
    count: int, n: int, columns: int, of_adjoint: int,
) -> None:  # fmt: skip
    """See ``kernels.matrices.loop_calls``."""
    out = view(like, y, (count, n, columns), out=True)
    pivots = view(np.int32, places, (count, n))
    for k, (a, right) in enumerate(
        zip(view(like, factors, (count, n, n)), view(like, b, (count, n, columns)), strict=True)
    ):
        whole = np.tril(a) @ (np.triu(a, 1) + np.eye(n))
        for j in range(n)[::-1]:
            p = pivots[k, j] - 1
            whole[:, [j, p]] = whole[:, [p, j]]
        out[k] = np.linalg.solve(whole.T if of_adjoint else whole, right)


def solve_triangle(
    view: View, like: Any, triangles: int, b: int, y: int, count: int, n: int, columns: int,
    form: int,
) -> None:  # fmt: skip
    """See ``kernels.matrices.loop_calls``."""
    right = view(like, b, (count, n, columns))
    a = view(like, triangles, (count, n, n))
    a = np.tril(a) if form & 1 else np.triu(a)
    if form & 4:
        a[:, range(n), range(n)] = 1
    a = np.swapaxes(a, 1, 2) if form & 2 else a
    view(like, y, (count, n, columns), out=True)[:] = np.linalg.solve(a, right)


def cholesky_factors(view: View, like: Any, x: int, y: int, count: int, n: int) -> None:
    """See ``kernels.matrices.loop_calls``."""
    a = np.tril(view(like, x, (count, n, n)))
    whole = a + np.swapaxes(np.tril(a, -1), 1, 2)
    view(like, y, (count, n, n), out=True)[:] = np.linalg.cholesky(whole)


def library_calls(view: View) -> dict[str, Callable[..., None]]:
    """These functions, by name, for a view of a memory."""
    functions = (
        order_rows, search_row, fourier_rows, factor_matrices, solve_factored, solve_triangle,
        cholesky_factors,
    )  # fmt: skip
    return {function.__name__: partial(function, view) for function in functions}
