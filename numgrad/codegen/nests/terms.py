"""The arrays of a graph as terms: scalar functions, reductions and index maps over arrays.

An operation of the table is expanded by reading its formula: ``softmax`` becomes a maximum, a sum
and a few functions of one element. A *term* is one of these, with a shape; equal terms are one.
What a term means at an index is found by walking it (``statements``), so that nothing says yet
which terms are ever stored in memory.

``first_stored`` says which terms are stored in memory; the others are computed where they are read.

Note [Repeated terms]
---------------------
Elements beside each other, as of ``y[1:] * y[:-1]``, read a term twice, and a chain of such steps
twice as often with each step. So the ways to a term are counted, from what is stored down, as the
views and choices that lie on them; a term reached in several ways is stored if computing it takes
longer than reading it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from numgrad.codegen.library import LIBRARY
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply
from numgrad.dataclass import dataclass

ONE = constant(1)

BUFFER, SCALAR, OPAQUE = "buffer", "scalar", "opaque"
"""Terms that are in memory before a kernel starts: an array, a number, a result of other code."""
CONSTANT, SIZE, REDUCE, VIEW = "const", "size", "reduce", "view"
CHOOSE, GATHER, IOTA = "choose", "gather", "iota"
"""Elements of one of several operands (``choose``), at indices that are computed, and the place of
an element along an axis (or, without one, in order)."""
PRODUCT = "product"
"""Matrix products of operands in memory."""
CALL = "call"
"""A function of the kernel library, of operands in memory: the detail is a ``LibraryCall``."""
CALLS = (PRODUCT, CALL)
"""Terms computed as a whole between nests."""
MATRIX = "matrix"
"""A function of all elements of small matrices, in loops: see ``Elimination``."""
PART = "part"
"""A piece of a joined array, which is stored at its place in that array."""
SCATTER, SCAN = "scatter", "scan"
"""Sums at indices that are computed, and along an axis everything up to an element."""

FUSED = "fused"
"""Detail of products that are added up without being rounded before, as in products of matrices."""

_NO_MAPS = frozenset(
    (BUFFER, SCALAR, OPAQUE, CONSTANT, SIZE, REDUCE, VIEW, CHOOSE, GATHER, IOTA, SCATTER, SCAN)
) | {MATRIX, PART, *CALLS}


@dataclass(frozen=True)
class LibraryCall:
    """A kernel ``"module:name"`` that computes an array, in its form for a dtype.

    It gets addresses of operands and of the result, then ``lengths``, then ``numbers``; ``flops``
    is how many operations that takes, about.
    """

    function: str
    dtype: np.dtype
    lengths: tuple[Length, ...]
    numbers: tuple[int, ...]
    flops: Length


class Term:
    """An array that is ``op`` of other arrays.

    ``op`` is one of the names above, or a scalar function of ``codegen.emitter`` whose operands
    broadcast. ``shape`` holds lengths as polynomials (``polynomial.Length``).

    Attributes
    ----------
    in_memory
        Whether the term is there before a kernel starts, or an earlier kernel has stored it.
    is_map
        Whether it is a function of one element of each operand.
    is_expensive
        Whether computing an element takes longer than reading it from a cache.
    layout
        Of an array in other order than C's: the stride of each axis, in elements, and the offset
        of the first element.
    """

    __slots__ = (
        "args", "detail", "dtype", "in_memory", "is_expensive", "is_map", "layout", "number", "op",
        "shape",
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
        self.layout: tuple[tuple[Length, ...], Length] | None = None
        self.in_memory = op in (BUFFER, SCALAR, OPAQUE)
        self.is_map = op not in _NO_MAPS
        self.is_expensive = op in LIBRARY or op.startswith("user:")

    def offset(self, index: tuple[Length, ...]) -> Length:
        """Where an element is stored, in an array of its own or in one that it is a part of."""
        if self.op != PART:
            return self.own_offset(index)
        _, whole, axis, start = self.detail
        return ravel(whole, tuple(add(i, start) if a == axis else i for a, i in enumerate(index)))

    def own_offset(self, index: tuple[Length, ...]) -> Length:
        """Where an element is stored in an array of its own."""
        if self.layout is None:
            return ravel(self.shape, index)
        strides, offset = self.layout
        for i, stride in zip(index, strides, strict=True):
            offset = add(offset, multiply(i, stride))
        return offset

    def __repr__(self) -> str:
        return f"<t{self.number} {self.op} {self.dtype}>"


class Lengths(Protocol):
    """Knowledge about lengths of axes: those of a call, and what holds of them in every call."""

    def hint_of(self, terms: Length) -> int:
        """The value of a polynomial in the call that a kernel is first written for."""
        ...

    def exceeds(self, length: Length, number: int) -> bool:
        """Whether a length is certain to be more than a number."""
        ...


class Terms:
    """Makes terms; equal ones are the same object.

    Parameters
    ----------
    sizes
        Knowledge about lengths of axes.
    length
        The polynomial of a length as the user of terms writes it.

    Attributes
    ----------
    checks
        Booleans that must come out false, or an operation has to raise an error.
    in_loop
        Whether they are those of a loop's step.
    any_length
        Whether they serve for matrices of any length, also if that takes longer for small ones.
    sums
        Sums along axes that are known without adding up.
    """

    def __init__(
        self,
        sizes: Lengths,
        length: Callable[[Any], Length],
        *,
        in_loop: bool = False,
        any_length: bool = False,
    ) -> None:
        self.sizes, self.length, self.in_loop = sizes, length, in_loop
        self.any_length = any_length
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
        term = self._interned.get(key)
        if term is None:
            term = self._interned[key] = Term(op, args, dtype, detail, shape, self.count)
            self.count += 1
        return term

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
        """The pieces of a term that joins others, each stored at its place."""
        axis = whole.detail[1]
        start: Length = ()
        pieces = []
        for piece in whole.args:
            detail = (whole.number, whole.shape, axis, start)
            pieces.append(self.make(PART, (piece,), whole.dtype, detail, piece.shape))
            start = add(start, piece.shape[axis])
        return pieces

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
    """The key that equal terms have in common."""
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


WORTH = 10
"""Simple functions from which on an element is rather read than computed once more."""
EXPENSIVE = 10
"""Simple functions that take as long as an expensive one."""
_MOST_WAYS = 8
_MOST_WORK = 1000

Way = tuple[int, ...]
_WHOLE = (REDUCE, SCATTER, SCAN, MATRIX, *CALLS)
"""Terms that are stored, as no element of them is computed alone."""


def _repeated(order: Sequence[Term], stored: Collection[int]) -> list[Term]:
    """Terms worth storing, of those in ``order``, operands first; ``stored`` are stored anyway."""
    work: dict[int, int] = {}
    for term in order:
        work[term.number] = _work(term, work, stored)
    ways: dict[int, set[Way]] = {}
    repeated: list[Term] = []
    for term in reversed(order):
        number = term.number
        known = ways.get(number, set())
        if number not in stored and work[number] * (len(known) - 1) >= WORTH:
            repeated.append(term)
            known = {()}
        elif number in stored or not known:
            known = {()}
        moved = {(*way, number) for way in known} if _moves(term) else known
        for a in term.args:
            if not a.in_memory and a.op not in (CONSTANT, SIZE, IOTA):
                reached = ways.setdefault(a.number, set())
                if len(reached) < _MOST_WAYS:
                    reached |= moved
    return repeated


def _read_around_reductions(order: Sequence[Term], stored: Collection[int]) -> list[Term]:
    """Expensive terms that a reduction to a number reads, and what depends on that number as well.

    The loops of the two cannot be one, and each would compute the term.
    """
    level: dict[int, int] = {}
    for term in order:  # how many such reductions come before
        before = max((level[a.number] for a in term.args), default=0)
        level[term.number] = before + (term.op == REDUCE and not term.shape)
    loops: dict[int, set[int]] = {}
    result: list[Term] = []
    for term in reversed(order):
        here = loops.get(term.number, set())
        if term.number not in stored and term.is_expensive and term.shape and len(here) > 1:
            result.append(term)
        elif term.number not in stored:
            for a in term.args:
                loops.setdefault(a.number, set()).update(here)
            continue
        own = max((level[a.number] for a in term.args), default=0)
        for a in term.args:
            loops.setdefault(a.number, set()).add(own)
    return result


def _work(term: Term, work: dict[int, int], stored: Collection[int]) -> int:
    """Simple functions that computing an element takes."""
    if term.in_memory or term.number in stored or term.op in _WHOLE:
        return 0
    inner = sum(work[a.number] for a in term.args)
    own = EXPENSIVE if term.is_expensive else 1 if term.is_map or term.op == CHOOSE else 0
    return min(inner + own, _MOST_WORK)


def _moves(term: Term) -> bool:
    """Whether a term reads its operands at other indices than its own."""
    if term.op == VIEW:
        return term.detail[0] not in ("broadcast", "insert", "drop")
    return term.op in (CHOOSE, GATHER)


DEEP = 100
"""Functions within one another that a body is read through; beyond them a term is stored, which in
the loop where it is read costs nothing."""


def first_stored(roots: Iterable[Term]) -> dict[int, Term]:
    """The terms that have to be stored, by number: results, reductions, operands of other code."""
    stored: dict[int, Term] = {t.number: t for t in roots}
    depth: dict[int, int] = {}
    costly: set[int] = set()  # of which computing an element anew takes longer than reading it
    order = reachable(roots)
    for term in order:
        if term.is_expensive or (
            (term.op in (VIEW, CHOOSE, GATHER) or term.is_map)
            and any(a.number in costly for a in term.args)
        ):
            costly.add(term.number)
        below = max((depth[a.number] for a in term.args if a.number not in stored), default=0)
        depth[term.number] = below + 1
        if depth[term.number] > DEEP and term.is_map:
            stored[term.number] = term
        if term.op in _WHOLE:
            stored[term.number] = term
        if term.op == OPAQUE or term.op in CALLS:
            stored.update((a.number, a) for a in term.args)
        elif term.op == GATHER and term.args[0].number in costly:
            stored[term.args[0].number] = term.args[0]
        elif term.op == PART:
            stored[term.number] = term
        elif term.op == VIEW and term.detail[0] == "reshape":
            stored[term.args[0].number] = term.args[0]
    stored.update((t.number, t) for t in _read_around_reductions(order, stored.keys()))
    stored.update((t.number, t) for t in _repeated(order, stored.keys()))
    return {n: t for n, t in stored.items() if not (t.in_memory or t.op in (CONSTANT, SIZE))}


def reachable(roots: Iterable[Term], known: Container[int] = ()) -> list[Term]:
    """Terms that roots depend on and the roots, operands first, except for what is ``known``."""
    order: list[Term] = []
    seen: set[int] = set()
    stack: list[Term | None] = [*roots]
    stack.reverse()
    open_: list[Term] = []  # whose operands are on the stack, above a None
    while stack:
        term = stack.pop()
        if term is None:
            order.append(open_.pop())
            continue
        number = term.number
        if number in seen or number in known:
            continue
        seen.add(number)
        left = [a for a in reversed(term.args) if a.number not in seen]
        if left:
            open_.append(term)
            stack.append(None)
            stack += left
        else:
            order.append(term)
    return order
