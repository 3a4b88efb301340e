"""Operations that steps of loops call functions of the kernel library for: Fourier transforms.

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

from numgrad.codegen.nests.polynomial import Length, constant, multiply
from numgrad.codegen.nests.terms import CALL, ONE, LibraryCall, Term, Terms, count
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lowering import lowering
from numgrad.kernels import fourier

MOST_PRIME = 67
"""Prime factor of a length up to which it is transformed in loops."""
_SCALES = {
    ("backward", True): fourier.PLAIN, ("backward", False): fourier.MEAN,
    ("forward", True): fourier.MEAN, ("forward", False): fourier.PLAIN,
    ("ortho", True): fourier.UNITARY, ("ortho", False): fourier.UNITARY,
}  # fmt: skip
_ROWS = "kernels.fourier:fourier_rows"
_FLOPS = 30
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
