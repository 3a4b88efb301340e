"""The arrays of a graph as terms: scalar functions, reductions and index maps over arrays.

An operation of the table is expanded by reading its formula: ``softmax`` becomes a maximum, a sum
and a few functions of one element. A *term* is one of these, with a shape; equal terms are one.
What a term means at an index is found by walking it (``statements``), so that nothing says yet
which terms are ever stored in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.library import LIBRARY
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, constant, multiply
from numgrad.compiler.graph.sizes import Sizes, terms_of

ONE = constant(1)

BUFFER, SCALAR, OPAQUE = "buffer", "scalar", "opaque"
"""Terms that are in memory before a kernel starts: an array, a number, a result of other code."""
CONSTANT, SIZE, REDUCE, VIEW = "const", "size", "reduce", "view"
CHOOSE, GATHER, IOTA = "choose", "gather", "iota"
"""Elements of one of several operands (``choose``), at indices that are computed, and the place of
an element along an axis (or, without one, in order)."""
PRODUCT = "product"
"""Matrix products of operands in memory."""
MATRIX = "matrix"
"""What is made of all elements of small matrices, in loops: see ``matrices``."""
PART = "part"
"""A piece of a joined array, which is stored at its place in that array."""
SCATTER, SCAN = "scatter", "scan"
"""Sums at indices that are computed, and along an axis everything up to an element."""

FUSED = "fused"
"""Detail of products that are added up without being rounded before, as in products of matrices."""

_NO_MAPS = frozenset(
    (BUFFER, SCALAR, OPAQUE, CONSTANT, SIZE, REDUCE, VIEW, CHOOSE, GATHER, IOTA, SCATTER, SCAN)
) | {MATRIX, PART, PRODUCT}


class Term:
    """An array that is ``op`` of other arrays.

    ``op`` is one of the names above, or a scalar function of ``codegen.emitter`` whose operands
    broadcast. ``shape`` holds lengths as polynomials (``sizes.Terms``).

    Attributes
    ----------
    in_memory
        Whether the term is there before a kernel starts, or an earlier kernel has stored it.
    is_map
        Whether it is a function of one element of each operand.
    is_expensive
        Whether computing an element takes longer than reading it from a cache.
    """

    __slots__ = (
        "args", "detail", "dtype", "in_memory", "is_expensive", "is_map", "number", "op", "shape",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        args: tuple[Term, ...],
        dtype: np.dtype,
        detail: Any,
        shape: tuple[Length, ...],
        number: int,
    ) -> None:
        self.op, self.args, self.dtype, self.detail = op, args, dtype, detail
        self.shape, self.number = shape, number
        self.in_memory = op in (BUFFER, SCALAR, OPAQUE)
        self.is_map = op not in _NO_MAPS
        self.is_expensive = op in LIBRARY or op.startswith("user:")

    def offset(self, index: tuple[Length, ...]) -> Length:
        """Where an element is stored, in an array of its own or in one that it is a part of."""
        if self.op != PART:
            return ravel(self.shape, index)
        _, whole, axis, start = self.detail
        return ravel(whole, tuple(add(i, start) if a == axis else i for a, i in enumerate(index)))

    def __repr__(self) -> str:
        return f"<t{self.number} {self.op} {self.dtype}>"


class Terms:
    """Makes terms; equal ones are the same object.

    Attributes
    ----------
    checks
        Booleans that must come out false, or an operation has to raise an error.
    in_loop
        Whether they are those of a loop's step.
    sums
        Sums along axes that are known without adding up.
    """

    def __init__(
        self, sizes: Sizes, *, in_loop: bool = False, lengths: Mapping[int, int] | None = None
    ) -> None:
        self.sizes, self.in_loop, self._lengths = sizes, in_loop, lengths
        self.checks: list[Term] = []
        self.sums: dict[tuple[Term, tuple[int, ...]], Term] = {}
        self._interned: dict[tuple, Term] = {}
        self.count = 0

    def make(
        self,
        op: str,
        args: tuple[Term, ...],
        dtype: np.dtype,
        detail: Any = None,
        shape: tuple[Length, ...] = (),
    ) -> Term:
        """A term; ``detail`` is hashable."""
        key = _key(op, args, dtype, detail, shape)
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = Term(op, args, dtype, detail, shape, self.count)
            self.count += 1
        return found

    def length(self, length: Any) -> Length:
        """A length of a graph's value as a polynomial."""
        if self._lengths is not None:
            return constant(self.sizes.evaluate(length, self._lengths))
        return self.sizes.known(terms_of(length))

    def shape(self, shape: Sequence[Any]) -> tuple[Length, ...]:
        """A shape of a graph's value."""
        return tuple([self.length(n) for n in shape])

    def constant(self, value: Any, dtype: np.dtype) -> Term:
        """A number."""
        return self.make(CONSTANT, (), dtype, value)

    def size(self, length: Length, dtype: np.dtype) -> Term:
        """A length as a number."""
        return self.cast(self.make(SIZE, (), np.dtype(np.int64), length), dtype)

    def map(self, op: str, args: Sequence[Term], dtype: np.dtype, detail: Any = None) -> Term:
        """A scalar function of broadcast operands."""
        shape = broadcast([a.shape for a in args])
        if op in ("multiply", "divide") and dtype.kind in "iuf":
            one = [a.op == CONSTANT and a.detail == 1 and a.dtype == dtype for a in args]
            if one[1] and args[0].dtype == dtype:
                return self.broadcast(args[0], shape)
            if one[0] and op == "multiply":
                return self.broadcast(args[1], shape)
        if op == "exp" and dtype.kind == "f":
            share = self._share(args[0])
            if share is not None:
                return share
        return self.make(op, tuple(args), dtype, detail, shape)

    def _share(self, x: Term) -> Term | None:
        """``exp(d - log(s))`` where ``exp(d)`` is known, of which ``s`` is the sum.

        Gradients of log_softmax ask for it, and those of logsumexp, where ``d`` is ``x - m`` and
        ``log(s) + m`` is subtracted; one exponential is enough.
        """
        if x.op != "subtract":
            return None
        difference, logarithm = x.args
        if logarithm.op == VIEW and logarithm.detail == ("drop", tuple(range(_leading(logarithm)))):
            logarithm = logarithm.args[0]  # the first axes, which broadcast
        if logarithm.op == "add":
            logarithm, m = logarithm.args
            difference = self._known("subtract", (difference, m), x)
        if difference is None or logarithm.op != "log":
            return None
        known = self._known("exp", (difference,), x)
        (s,) = logarithm.args
        total = s.args[0] if s.op == VIEW and s.detail[0] == "insert" else s
        if (
            known is None
            or total.args != (known,)
            or total.op != REDUCE
            or total.detail[0] != "sum"
        ):
            return None
        one = self.constant(1, x.dtype)
        return self.map("multiply", (known, self.map("divide", (one, s), x.dtype)), x.dtype)

    def _known(self, op: str, args: tuple[Term, ...], like: Term) -> Term | None:
        """A map that has been made before, with the dtype and shape of another term."""
        if broadcast([a.shape for a in args]) != like.shape:
            return None
        return self._interned.get(_key(op, args, like.dtype, None, like.shape))

    def cast(self, x: Term, dtype: np.dtype) -> Term:
        """The elements converted."""
        if x.dtype == dtype:
            return x
        if x.op == CONSTANT:
            return self.constant(np.asarray(x.detail).astype(dtype).item(), dtype)
        return self.map("cast", (x,), dtype)

    def reduce(self, kind: str, x: Term, axes: tuple[int, ...]) -> Term:
        """A reduction, without the axes."""
        known = self.sums.get((x, axes)) if kind == "sum" else None
        if known is not None:
            return known
        shape = tuple([n for a, n in enumerate(x.shape) if a not in axes])
        return self.make(REDUCE, (x,), x.dtype, (kind, axes), shape)

    def view(self, kind: str, x: Term, detail: Any, shape: tuple[Length, ...]) -> Term:
        """Elements of ``x`` at other indices: see ``source_index``."""
        return self.make(VIEW, (x,), x.dtype, (kind, detail), shape)

    def parts(self, whole: Term) -> list[Term]:
        """What to compute for a term that joins others."""
        axis = whole.detail[1]
        start: Length = ()
        found = []
        for piece in whole.args:
            detail = (whole.number, whole.shape, axis, start)
            found.append(self.make(PART, (piece,), whole.dtype, detail, piece.shape))
            start = add(start, piece.shape[axis])
        return found

    def choose(self, kind: str, args: Sequence[Term], detail: Any, shape: tuple) -> Term:
        """Elements of one of several operands: see ``choose``."""
        return self.make(CHOOSE, tuple(args), args[0].dtype, (kind, detail), shape)

    def iota(
        self, shape: tuple[Length, ...], axis: int | None = None, divisor: Length = ONE
    ) -> Term:
        """The place of each element along an axis, or in C order, divided and rounded down."""
        return self.make(IOTA, (), np.dtype(np.int64), (axis, divisor), shape)

    def broadcast(self, x: Term, shape: tuple[Length, ...]) -> Term:
        """``x`` with a larger shape."""
        return x if x.shape == shape else self.view("broadcast", x, None, shape)

    def insert(self, x: Term, axes: tuple[int, ...]) -> Term:
        """``x`` with axes of length 1 at these places of the result."""
        if x.op == VIEW and x.detail == ("drop", axes):
            return x.args[0]
        rest = iter(x.shape)
        shape = tuple([ONE if a in axes else next(rest) for a in range(len(x.shape) + len(axes))])
        return self.view("insert", x, axes, shape) if axes else x

    def drop(self, x: Term, axes: tuple[int, ...]) -> Term:
        """``x`` without axes, which have length 1."""
        if x.op == VIEW and x.detail == ("insert", axes):
            return x.args[0]
        shape = tuple([n for a, n in enumerate(x.shape) if a not in axes])
        return self.view("drop", x, axes, shape) if axes else x

    def reshape(self, x: Term, shape: tuple[Length, ...]) -> Term:
        """The elements of ``x`` in order in another shape."""
        if shape == x.shape:
            return x
        if [n for n in shape if n != ONE] == [n for n in x.shape if n != ONE]:
            bare = self.drop(x, tuple([a for a, n in enumerate(x.shape) if n == ONE]))
            return self.insert(bare, tuple([a for a, n in enumerate(shape) if n == ONE]))
        return self.view("reshape", x, None, shape)


def _leading(x: Term) -> int:
    """How many axes more a view's operand has."""
    return len(x.args[0].shape) - len(x.shape)


def _key(op: str, args: tuple[Term, ...], dtype: np.dtype, detail: Any, shape: tuple) -> tuple:
    """What equal terms have in common."""
    # -0.0 equals 0.0 and nan does not equal itself
    return op, tuple([a.number for a in args]), dtype, type(detail), repr(detail), shape


def broadcast(shapes: Sequence[tuple[Length, ...]]) -> tuple[Length, ...]:
    """The shape of operands that are known to broadcast."""
    rank = max(map(len, shapes), default=0)
    out = [ONE] * rank
    for shape in shapes:
        for a, n in enumerate(shape, start=rank - len(shape)):
            if n != ONE:
                out[a] = n
    return tuple(out)


def count(shape: Sequence[Length]) -> Length:
    """The number of elements."""
    total = ONE
    for n in shape:
        total = multiply(total, n)
    return total


def ravel(shape: Sequence[Length], index: tuple[Length, ...]) -> Length:
    """The offset of an element of a C-contiguous array."""
    offset: Length = ()
    stride = ONE
    for n, i in zip(reversed(shape), reversed(index), strict=True):
        if n != ONE:
            offset = add(offset, multiply(i, stride))
            stride = multiply(stride, n)
    return offset
