"""Operations that steps of loops call kernels for: Fourier transforms, orders, searches.

Note [Calls in loops]
---------------------
One operation without terms makes a loop run step by step in Python. A term ``call`` is a kernel of
its own, compiled once and called by its address: Note [External functions] in ``codegen.linker``.
Outside of loops eager code is called, which takes microseconds longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

import numpy as np

from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64
from numgrad.codegen.nests.polynomial import Length, constant, multiply
from numgrad.codegen.nests.terms import CALL, ONE, LibraryCall, Term, Terms, count
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lookup import gather, positions, where
from numgrad.compiler.lower.lowering import Arithmetic, lowering
from numgrad.kernels import fourier, order_rows

MOST_PRIME = 67
"""Prime factor of a length up to which it is transformed in loops."""
_SCALES = {
    ("backward", True): fourier.PLAIN, ("backward", False): fourier.MEAN,
    ("forward", True): fourier.MEAN, ("forward", False): fourier.PLAIN,
    ("ortho", True): fourier.UNITARY, ("ortho", False): fourier.UNITARY,
}  # fmt: skip
_ROWS = "kernels.fourier:fourier_rows"
_FLOPS, _STEPS = 30, 20
"""Operations a number, about."""


def _is_smooth(n: int) -> bool:
    """Whether a length has small prime factors alone."""
    for p in range(2, MOST_PRIME + 1):
        while n and n % p == 0:
            n //= p
    return n == 1


def moved(terms: Terms, x: Term, axis: int, *, back: bool = False) -> Term:
    """A term with an axis at its end, or put back from there."""
    rank = len(x.shape)
    if axis == rank - 1:
        return x
    order = [*range(axis), *range(axis + 1, rank), axis]
    if back:
        order = [order.index(a) for a in range(rank)]
    return terms.view("permute", x, tuple(order), tuple([x.shape[a] for a in order]))


class _Transform:
    """A node's transform, one axis after the other: Note [Mixed radix] in ``kernels.fourier``."""

    def __init__(self, terms: Terms, node: TracedNode) -> None:
        self.terms, forward = terms, bool(node.params["forward"])
        self.direction = fourier.FORWARD if forward else 0
        self.scale = _SCALES[node.params["norm"], forward]
        out = node.outputs[0]
        self.shape = terms.shape(out.shape)
        single = out.dtype.itemsize == (8 if out.dtype.kind == "c" else 4)
        self.complex = np.dtype("complex64" if single else "complex128")
        self.real = np.dtype("float32" if single else "float64")

    def along(
        self, x: Term, axis: int, n: Length, form: int = 0, stored: Length | None = None,
        middle: int = 0,
    ) -> Term:  # fmt: skip
        """The transform of ``n`` numbers along an axis, of which ``stored`` are the result."""
        terms = self.terms
        dtype = self.real if form == fourier.TO_REAL else self.complex
        if n == ONE:
            real = x.dtype.kind == "c" and dtype is self.real
            return terms.map("real", (x,), dtype) if real else terms.cast(x, dtype)
        x = moved(terms, x, axis)
        rows, stored = x.shape[:-1], n if stored is None else stored
        numbers = (self.direction | form, self.scale, middle)
        work = multiply(multiply(count(rows), n), constant(_FLOPS))
        call = LibraryCall(_ROWS, self.real, (count(rows), n), numbers, work)
        result = terms.make(CALL, (x,), dtype, call, (*rows, stored))
        return moved(terms, result, axis, back=True)

    def others(self, x: Term, axes: Sequence[int]) -> Term:
        """The transforms of complex numbers along axes."""
        for axis in axes:
            x = self.along(x, axis, x.shape[axis])
        return x


def _taken(terms: Terms, node: TracedNode, lengths: Iterable[Length]) -> bool:
    """Whether axes of these lengths are transformed in a kernel."""
    smooth = all(_is_smooth(terms.sizes.hint_of(n)) for n in lengths)
    return terms.in_loop and smooth and log2(node.params.get("middle", 1.0)).is_integer()


def _middle(node: TracedNode) -> int:
    return int(log2(node.params["middle"]))


@lowering("fourier")
def _fourier(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    (x,), axes = args, node.params["axes"]
    if not _taken(terms, node, [x.shape[a] for a in axes]):
        return None
    transform = _Transform(terms, node)
    x = x if x.dtype.kind == "c" else terms.cast(x, transform.real)
    form = 0 if x.dtype.kind == "c" else fourier.FROM_REAL
    first = transform.along(x, axes[-1], x.shape[axes[-1]], form)
    return transform.others(first, axes[:-1])


@lowering("half_spectrum")
def _half_spectrum(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    (x,), axes = args, node.params["axes"]
    if not _taken(terms, node, [x.shape[a] for a in axes]):
        return None
    transform, last = _Transform(terms, node), axes[-1]
    form = fourier.FROM_REAL | fourier.HALF
    half = transform.along(
        terms.cast(x, transform.real), last, x.shape[last], form, transform.shape[last],
        _middle(node),
    )  # fmt: skip
    return transform.others(half, axes[:-1])


@lowering("real_signal")
def _real_signal(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    (x,), axes = args, node.params["axes"]
    transform, last = _Transform(terms, node), axes[-1]
    n = transform.shape[last]
    if not _taken(terms, node, [n, *[x.shape[a] for a in axes[:-1]]]):
        return None
    x = transform.others(terms.cast(x, transform.complex), axes[:-1])
    return transform.along(x, last, n, fourier.TO_REAL, None, _middle(node))


# ------------------------------------------------------------------------------ orders, searches


def _ordered(terms: Terms, x: Term, axis: int | None, form: int) -> Term | None:
    """Values in order along an axis, or places that order them; None if it is left to NumPy."""
    if not terms.in_loop or x.dtype.name not in order_rows.DTYPES or not x.shape:
        return None
    if axis is None:
        x, axis = terms.reshape(x, (count(x.shape),)), 0
    axis %= len(x.shape)
    places = bool(form & order_rows.PLACES)
    dtype = INT64 if places else x.dtype
    if x.shape[axis] == ONE:
        return terms.broadcast(terms.constant(0, INT64), x.shape) if places else x
    x = moved(terms, x, axis)
    lengths = (count(x.shape[:-1]), x.shape[-1])
    work = multiply(multiply(*lengths), constant(_STEPS))
    call = LibraryCall("kernels.order_rows:order_rows", x.dtype, lengths, (form,), work)
    return moved(terms, terms.make(CALL, (x,), dtype, call, x.shape), axis, back=True)


def _form(node: TracedNode, form: int = 0) -> int:
    return form | (order_rows.DESCENDING if node.params.get("descending") else 0)


@lowering("sort")
def _sort(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    return _ordered(terms, args[0], node.params["axis"], _form(node))


@lowering("argsort", "argpartition")
def _argsort(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    return _ordered(terms, args[0], node.params["axis"], _form(node, order_rows.PLACES))


@lowering("argtopk")
def _argtopk(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    axis = node.params["axis"] % len(args[0].shape)
    form = order_rows.PLACES | (order_rows.DESCENDING if node.params["largest"] else 0)
    order = _ordered(terms, args[0], axis, form)
    shape = terms.shape(node.outputs[0].shape)
    return None if order is None else first_along(terms, order, axis, shape)


def first_along(terms: Terms, x: Term, axis: int, shape: tuple[Length, ...]) -> Term:
    """The first elements along an axis."""
    index = tuple([((), ONE)] * len(shape))
    return x if x.shape == shape else terms.view("getitem", x, index, shape)


@lowering("order_places")
def _order_places(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, ranks = args
    order = _ordered(terms, x, -1, order_rows.PLACES)
    index = positions(terms, ranks, x.shape[-1]) if order is not None else None
    if order is None or index is None:
        return None
    shape = terms.shape(node.outputs[0].shape)
    index = terms.broadcast(index, shape)
    return gather(terms, order, index, len(shape) - 1, 1, shape)


def _placed(terms: Terms, a: Term, v: Term, right: bool) -> Term | None:
    """How many elements of a sorted row come before numbers, or are not after them."""
    dtype = np.result_type(a.dtype, v.dtype)
    if not terms.in_loop or dtype.name not in order_rows.DTYPES or a.shape[0] == ONE:
        return None
    a, flat = terms.cast(a, dtype), terms.reshape(terms.cast(v, dtype), (count(v.shape),))
    single = flat.shape[0] == ONE
    if single:  # numbers by themselves are not in memory
        flat = terms.broadcast(flat, (constant(2),))
    lengths = a.shape[0], flat.shape[0]
    call = LibraryCall(
        "kernels.order_rows:search_row", dtype, lengths, (int(right),),
        multiply(flat.shape[0], constant(_STEPS)),
    )  # fmt: skip
    result = terms.make(CALL, (a, flat), INT64, call, flat.shape)
    if single:
        result = first_along(terms, result, 0, (ONE,))
    return terms.reshape(result, v.shape)


@lowering("searchsorted_places")
def _searchsorted(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    a, v = args
    return _placed(terms, a, v, node.params["side"] == "right")


@lowering("piecewise_linear")
def _piecewise_linear(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | None:
    """The function as ``kernels.interpolation`` writes it, and the place of each number."""
    do, shape = Arithmetic(terms, FLOAT64), args[0].shape
    x, xp, fp = map(do.of, args)
    x = terms.reshape(x, (count(shape),))
    after = _placed(terms, xp, x, right=True)
    if after is None:
        return None
    whole = Arithmetic(terms, INT64)
    place, most = whole("add", after, -1), whole("subtract", whole.length(xp.shape[0]), 1)
    first = whole("maximum", place, 0)
    second = whole("minimum", whole("add", first, 1), most)

    def both(a: Term, b: Term) -> Term:
        return terms.map("logical_and", (a, b), BOOL)

    def holds(op: str, a: Term, b: Term | float) -> Term:
        return terms.map(op, (a, b if isinstance(b, Term) else terms.constant(b, a.dtype)), BOOL)

    x0, x1, f0, f1 = (
        gather(terms, row, k, 0, 1, x.shape) for row in (xp, fp) for k in (first, second)
    )
    inside = both(holds("greater_equal", place, 0), holds("less", first, second))
    width = where(terms, inside, do("subtract", x1, x0), do.of(1.0))
    slope = do("divide", do("subtract", f1, f0), width)
    y, again = (
        do("add", do("multiply", slope, do("subtract", x, at)), value)
        for at, value in ((x0, f0), (x1, f1))
    )
    flat = both(holds("not_equal", again, again), holds("equal", f0, f1))
    y = where(terms, holds("not_equal", y, y), where(terms, flat, f0, again), y)
    y = where(terms, both(inside, holds("not_equal", x, x0)), y, f0)
    y = where(terms, holds("not_equal", x, x), x, y)
    return [terms.reshape(y, shape), terms.reshape(place, shape)]
