"""Small matrices written out: the loops of ``kernels.matrices.small`` on arrays of symbols.

Factors and pivots are those of Note [Factors] in ``kernels.matrices.systems``, so what a compiled
loop computes with equals what eager code does, but for roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import BOOL
from numgrad.codegen.symbols import Symbol

INT32 = np.dtype(np.int32)


class Elimination:
    """Writes what is asked for in elements of one dtype; arrays of them are object arrays."""

    def __init__(self, make: Callable[..., Symbol], dtype: np.dtype) -> None:
        self.make, self.dtype = make, dtype

    def __call__(self, detail: tuple, operands: Sequence[np.ndarray]) -> np.ndarray:
        """What ``detail`` says, the name of a method and its parameters."""
        method, *params = detail
        return getattr(self, method)(*operands, *params)

    def _op(self, op: str, *args: Symbol) -> Symbol:
        return self.make(op, args, self.dtype)

    def _minus(self, x: Symbol, a: Symbol, b: Symbol) -> Symbol:
        return self._op("subtract", x, self._op("multiply", a, b))

    def _number(self, value: Any, dtype: np.dtype | None = None) -> Symbol:
        return self.make("const", (), dtype or self.dtype, value)

    def _swap(self, x: np.ndarray, holds: Symbol, i: int, j: int) -> None:
        """Exchange rows of a matrix where a condition holds."""
        for c in range(x.shape[1]):
            a, b = x[i, c], x[j, c]
            x[i, c], x[j, c] = self._op("where", holds, b, a), self._op("where", holds, a, b)

    # ---------------------------------------------------------------------------------- factors

    def factors(self, a: np.ndarray) -> np.ndarray:
        """Triangular factors in one matrix."""
        return self._factored(a)[0]

    def pivots(self, a: np.ndarray) -> np.ndarray:
        """Which column came to each place, counted from 1."""
        return Elimination(self.make, a[0, 0].dtype)._factored(a)[1]

    def _factored(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, n = a.copy(), len(a)
        zero, one = self._number(0.0), self._number(1.0)
        pivots = np.empty(n, object)
        for k in range(n):
            best, p = self._op("absolute", a[k, k]), self._number(k + 1, INT32)
            for j in range(k + 1, n):
                size = self._op("absolute", a[k, j])
                larger = self.make("greater", (size, best), BOOL)
                best = self._op("where", larger, size, best)
                p = self.make("where", (larger, self._number(j + 1, INT32), p), INT32)
            pivots[k] = p
            for j in range(k + 1, n):
                self._swap(a.T, self._is(p, j), k, j)
            none = self.make("equal", (best, zero), BOOL)
            d = self._op("where", none, one, a[k, k])  # a column of zeros is left as it is
            for j in range(k + 1, n):
                a[k, j] = self._op("divide", a[k, j], d)
            for i in range(k + 1, n):
                for j in range(k + 1, n):
                    a[i, j] = self._minus(a[i, j], a[i, k], a[k, j])
        return a, pivots

    def _is(self, pivot: Symbol, place: int) -> Symbol:
        return self.make("equal", (pivot, self._number(place + 1, INT32)), BOOL)

    def parity(self, pivots: np.ndarray) -> np.ndarray:
        """The sign that exchanges of columns bring to a determinant."""
        plus, minus = self._number(1.0), self._number(-1.0)
        sign = plus
        for k, p in enumerate(pivots[:-1]):
            own = self._op("where", self._is(p, k), plus, minus)
            sign = self._op("multiply", sign, own)
        out = np.empty((), object)
        out[()] = sign
        return out

    # ---------------------------------------------------------------------------------- systems

    def solution(
        self, factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, of_adjoint: bool
    ) -> np.ndarray:
        """Solve for the columns of ``b`` by factors."""
        n = len(factors)
        exchanges = [(k, j) for k in range(n) for j in range(k + 1, n)]
        x = b.copy()
        if of_adjoint:
            for k, j in exchanges:
                self._swap(x, self._is(pivots[k], j), k, j)
            x = self.triangle(factors, x, False, True, True)
            return self.triangle(factors, x, True, True, False)
        x = self.triangle(factors, x, True, False, False)
        x = self.triangle(factors, x, False, False, True)
        for k, j in reversed(exchanges):
            self._swap(x, self._is(pivots[k], j), k, j)
        return x

    def triangle(
        self, a: np.ndarray, b: np.ndarray, lower: bool, trans: bool, unit: bool
    ) -> np.ndarray:
        """Solve for the columns of ``b`` with a triangle of ``a``, or its transpose."""
        a, x, n = a.T if trans else a, b.copy(), len(a)
        forward = lower != trans
        for i in range(n) if forward else range(n)[::-1]:
            before = range(i) if forward else range(i + 1, n)[:: -1 if trans else 1]
            for c in range(x.shape[1]):
                value = x[i, c]
                for j in before:
                    value = self._minus(value, a[i, j], x[j, c])
                x[i, c] = value if unit else self._op("divide", value, a[i, i])
        return x

    def lower(self, a: np.ndarray) -> np.ndarray:
        """The factor of Cholesky; on its diagonal NaN or zero where ``a`` is not definite."""
        n = len(a)
        out: Any = np.empty((n, n), object)
        for i, j in np.ndindex(n, n):
            if j > i:
                out[i, j] = self._number(0.0)
            else:
                total: Any = a[i, j]
                for k in range(j):
                    total = self._minus(total, out[i, k], out[j, k])
                if j < i:
                    out[i, j] = self._op("divide", total, out[j, j])
                else:
                    out[i, i] = self._op("sqrt", total)
        return out
