"""Small arrays element by element: each element a symbol, so that a run of them has no loop.

Note [Small arrays]
-------------------
A term of fixed shape with few elements is computed as scalars: its elements are symbols, views of
it cost nothing, a reduction is a tree of scalar steps. ``Elements`` reads terms so, an ndarray of
symbols for each; ``tasks`` writes the symbols as straight-line functions.

Sums are put together as those of a loop in lanes are (Note [Loops in lanes] in
``codegen.native.loops``): element ``k`` to element ``k + half``, then again in the lower half.

``Elimination`` writes the loops of ``kernels.matrices.small`` on arrays of symbols. Factors and
pivots are those of Note [Factors] in ``kernels.matrices.systems``, so what a compiled loop computes
with equals what eager code does, but for roundings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Container, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import BOOL
from numgrad.codegen.nests import terms
from numgrad.codegen.nests.polynomial import Length, constant, value_of
from numgrad.codegen.reduction_plan import identity
from numgrad.codegen.symbols import Reader, Symbol

MOST_ELEMENTS = 64
"""Elements of a small array."""
MOST_EXPENSIVE = 16
"""The same where an elementary function is computed for each: vectors compute many at once."""
MOST_SCALARS, ALWAYS = 20_000, 8
"""Scalar operations of a kernel, beyond which only smaller arrays are small; and how many elements
are, however many of them there are: their loops would take LLVM longer."""


def extents(shape: Sequence[Length]) -> tuple[int, ...] | None:
    """A shape as integers, if it does not depend on a call."""
    lengths = tuple([value_of(n) for n in shape])
    return None if None in lengths else lengths  # pyright: ignore


def elements(shape: Sequence[Length]) -> int | None:
    """How many elements a shape of fixed lengths has."""
    total = 1
    for n in shape:
        length = value_of(n)
        if length is None:
            return None
        total *= length
    return total


def small_terms(stored: Collection[terms.Term]) -> set[int]:
    """The numbers of the stored terms that are computed element by element."""
    kept = {t.number for t in stored}
    order = terms.reachable(stored)
    expensive: set[int] = set()
    for term in order:
        below = (a.number in expensive and a.number not in kept for a in term.args)
        if not term.in_memory and (term.is_expensive or any(below)):
            expensive.add(term.number)
    sizes = {t.number: _size(t) for t in order}
    limit = MOST_ELEMENTS
    while limit > ALWAYS:
        few = (n for n in sizes.values() if n <= limit)
        if sum(few) <= MOST_SCALARS:
            break
        limit //= 2
    return {
        t.number
        for t in stored
        if t.op == terms.MATRIX
        or sizes[t.number] <= (min(limit, MOST_EXPENSIVE) if t.number in expensive else limit)
    }


def _size(term: terms.Term) -> int:
    """Scalars that computing a term takes: too many for what is not computed so."""
    never = MOST_ELEMENTS + 1
    if term.op in (terms.SCATTER, terms.OPAQUE, *terms.CALLS):
        return never
    largest = elements(term.shape)
    if largest == 0:
        return never
    if term.op == terms.REDUCE:
        largest = elements(term.args[0].shape)
        if term.dtype.kind == "c" and term.detail[0] in ("max", "min") and largest != 1:
            return never
    return never if largest is None else max(largest, 1)


ReadElement = Callable[[terms.Term, tuple[Length, ...]], Symbol]


class Elements:
    """Terms of fixed shape as arrays of symbols; what is stored is read from where it is.

    Parameters
    ----------
    reader
        Makes the symbols.
    stored
        The terms that are stored, by number.
    load
        Reads an element of memory.
    compute
        An element of any other term.
    """

    def __init__(
        self, reader: Reader, stored: Container[int], load: ReadElement, compute: ReadElement
    ) -> None:
        self.make, self.stored, self.load, self.compute = reader.make, stored, load, compute
        self._known: dict[int, np.ndarray] = {}

    def body(self, term: terms.Term) -> list[Symbol]:
        """The elements of a stored term in order, as they are computed."""
        return self._computed(term).ravel().tolist()

    def of(self, term: terms.Term) -> np.ndarray:
        """The elements of a term."""
        symbols = self._known.get(term.number)
        if symbols is None:
            symbols = self._found(term)
            self._known[term.number] = symbols
        return symbols

    def _found(self, term: terms.Term) -> np.ndarray:
        if term.op not in (terms.CONSTANT, terms.SIZE) and (
            term.in_memory or term.number in self.stored
        ):
            return self._each(term, self.load)
        return self._computed(term)

    def _computed(self, term: terms.Term) -> np.ndarray:
        if term.op == terms.MATRIX:
            write = Elimination(self.make, term.dtype)
            return write(term.detail, [self.of(x) for x in term.args])
        if _is_plain(term):
            if term.op == terms.PART:
                return self.of(term.args[0])
            if term.op == terms.REDUCE:
                return self._reduced(term)
            if term.op == terms.SCAN:
                return self._scan_loop(term)
            if term.op == terms.VIEW and term.detail[0] != "diagonal":
                return self._viewed(term)
            if term.op == terms.CHOOSE and term.detail[0] == "join":
                return np.concatenate([self.of(x) for x in term.args], axis=term.detail[1])
            if term.is_map:
                return self._mapped(term)
        return self._each(term, self.compute)

    def _each(self, term: terms.Term, read: ReadElement) -> np.ndarray:
        shape = extents(term.shape)
        assert shape is not None
        out = np.empty(shape, object)
        for index in np.ndindex(*shape):
            out[index] = read(term, tuple([constant(i) for i in index]))
        return out

    def _mapped(self, term: terms.Term) -> np.ndarray:
        shape = extents(term.shape)
        assert shape is not None
        args = []
        for x in map(self.of, term.args):
            full = x if x.shape == shape else np.broadcast_to(x, shape)
            args.append(full.ravel().tolist())
        make, op, dtype, detail = self.make, term.op, term.dtype, term.detail
        return _array([make(op, given, dtype, detail) for given in zip(*args, strict=True)], shape)

    def _viewed(self, term: terms.Term) -> np.ndarray:
        kind, detail = term.detail
        shape = extents(term.shape)
        assert shape is not None
        x = self.of(term.args[0])
        if kind == "broadcast":
            return np.broadcast_to(x, shape)
        if kind == "permute":
            return x.transpose(detail)
        if kind != "getitem":
            return x.reshape(shape)
        rest = iter(shape)
        places = []
        for entry in detail:
            first, step = (value_of(entry[0]), value_of(entry[-1]))
            assert first is not None
            assert step is not None
            length = next(rest) if len(entry) > 1 else 1
            places.append([first + step * k for k in range(length)])
        return x[np.ix_(*places)].reshape(shape)

    def _reduced(self, term: terms.Term) -> np.ndarray:
        kind, axes = term.detail
        x = self.of(term.args[0])
        kept = [a for a in range(x.ndim) if a not in axes]
        lengths = [x.shape[a] for a in kept]
        rows = x.transpose(*kept, *axes).reshape(prod(lengths), prod(x.shape[a] for a in axes))
        return _array([self._total(kind, term.dtype, list(row)) for row in rows], lengths)

    def _total(self, kind: str, dtype: np.dtype, parts: list[Symbol]) -> Symbol:
        start = self.make("const", (), dtype, identity(kind, dtype))
        if not parts:
            return start
        half = 1 << max(len(parts) - 1, 0).bit_length() >> 1
        while len(parts) > 1:
            upper = parts[half:]
            parts = [
                self._step(kind, dtype, partial_sum, upper[k]) if k < len(upper) else partial_sum
                for k, partial_sum in enumerate(parts[:half])
            ]
            half >>= 1
        (total,) = parts
        # 0.0 + -0.0 is 0.0; other identities change nothing
        return self._step(kind, dtype, start, total) if kind == "sum" else total

    def _step(self, kind: str, dtype: np.dtype, a: Symbol, b: Symbol) -> Symbol:
        if dtype == BOOL:
            op = "logical_or" if kind in ("max", "any") else "logical_and"
        else:
            op = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[kind]
        return self.make(op, (a, b), dtype)

    def _scan_loop(self, term: terms.Term) -> np.ndarray:
        kind, axis = term.detail
        shape, dtype = extents(term.shape), term.dtype
        x, *factors = [
            np.moveaxis(np.broadcast_to(self.of(a), shape), axis, 0)  # pyright: ignore
            for a in term.args
        ]
        out = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            value = x[index]
            if index[0]:
                before: Any = out[(index[0] - 1, *index[1:])]
                for factor in factors:
                    before = self._step("prod", dtype, before, factor[index])
                value = self._step("prod" if kind == "prod" else "sum", dtype, before, value)
            out[index] = value
        return np.moveaxis(out, 0, axis)


def _array(values: Sequence[Symbol], shape: Any) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def _is_plain(term: terms.Term) -> bool:
    """Whether the operands have few elements, of which it is known which ones are read."""
    sizes = [elements(x.shape) for x in term.args]
    if not sizes or any(size is None or size > MOST_ELEMENTS for size in sizes):
        return False
    if term.op == terms.VIEW and term.detail[0] == "getitem":
        return None not in map(value_of, itertools.chain(*term.detail[1]))
    return True


INT32 = np.dtype(np.int32)


class Elimination:
    """Writes what is asked for in elements of one dtype; arrays of them are object arrays."""

    def __init__(self, make: Callable[..., Symbol], dtype: np.dtype) -> None:
        self.make, self.dtype = make, dtype

    def __call__(self, detail: tuple, operands: Sequence[np.ndarray]) -> np.ndarray:
        """Call the method that ``detail`` names, with the parameters there."""
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
        """The column that came to each place, counted from 1."""
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

    def _is(self, pivot: Symbol, row: int) -> Symbol:
        return self.make("equal", (pivot, self._number(row + 1, INT32)), BOOL)

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
