"""Values of names while a function is read: parts of arrays, tuples, arrays to be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.adjoint.representation import Value, add, multiply


class IndexSpan(NamedTuple):
    """Places along an axis: ``start``, and ``length - 1`` further ones, ``step`` apart."""

    start: Value
    length: Value
    step: Value = 1

    def at(self, k: Value) -> Value:
        """The place number ``k``."""
        return add(self.start, multiply(k, self.step))


def size_of(lengths: Sequence[Value]) -> Value:
    """The number of elements of an array."""
    size: Value = 1
    for length in lengths:
        size = multiply(size, length)
    return size


class ArrayView:
    """An array, or a part of it.

    Attributes
    ----------
    index
        For each axis of the array a place or a ``IndexSpan``.
    order
        The axes of the array that are those of the view, in its order.
    rotates
        Whether the first place says which of several arrays it is, that take turns.
    """

    def __init__(
        self,
        array: str,
        index: Sequence[Value | IndexSpan],
        order: Sequence[int] | None = None,
        *,
        rotates: bool = False,
    ) -> None:
        self.array, self.index, self.rotates = array, tuple(index), rotates
        spans = [k for k, part in enumerate(self.index) if isinstance(part, IndexSpan)]
        self.order = spans if order is None else list(order)

    @property
    def ndim(self) -> int:
        return len(self.order)

    @property
    def shape(self) -> tuple[Value, ...]:
        return tuple([self.span(axis).length for axis in range(self.ndim)])

    def span(self, axis: int) -> IndexSpan:
        """The places along one of the view's axes."""
        part = self.index[self.order[axis]]
        assert isinstance(part, IndexSpan)
        return part

    def at(self, places: Sequence[Value]) -> tuple[Value, ...]:
        """The index, into the array, of an element of the view."""
        index: list[Any] = list(self.index)
        for axis, place in zip(self.order, places, strict=True):
            index[axis] = self.index[axis].at(place)  # pyright: ignore
        return tuple(index)

    def part(self, parts: Sequence[Value | IndexSpan]) -> ArrayView:
        """The part that places and spans give, one for each axis."""
        index: list[Any] = list(self.index)
        order = []
        for axis, part in zip(self.order, parts, strict=True):
            span = self.index[axis]
            assert isinstance(span, IndexSpan)
            if isinstance(part, IndexSpan):
                order.append(axis)
                index[axis] = IndexSpan(
                    span.at(part.start), part.length, multiply(span.step, part.step)
                )
            else:
                index[axis] = span.at(part)
        return ArrayView(self.array, index, order, rotates=self.rotates)

    def permuted(self, order: Sequence[int]) -> ArrayView:
        """The view with its axes in another order."""
        axes = [self.order[k] for k in order]
        return ArrayView(self.array, self.index, axes, rotates=self.rotates)

    def is_apart_from(self, other: Any) -> bool:
        """Whether another value takes turns with this one, and is known to be another array."""
        if not (isinstance(other, ArrayView) and self.rotates and other.rotates):
            return False
        own, place = self.index[0], other.index[0]
        return isinstance(own, int) and isinstance(place, int) and own != place

    def takes_turns_with(self, other: Any) -> bool:
        """Whether another value is one of the arrays that this one takes turns with, all of it."""
        if not (isinstance(other, ArrayView) and self.rotates and other.rotates):
            return False
        return (self.array, self.index[1:], self.order) == (
            other.array,
            other.index[1:],
            other.order,
        )

    def same_as(self, other: Any) -> bool:
        """Whether this is the same part of the same array."""
        return isinstance(other, ArrayView) and (self.array, self.index, self.order) == (
            other.array,
            other.index,
            other.order,
        )


class ArrayExpression:
    """An expression of whole arrays: a shape, and what writes one element of it.

    Attributes
    ----------
    reads
        The arrays that it reads.
    loops
        Whether an element takes a loop, so that none is computed twice.
    """

    def __init__(
        self,
        shape: tuple[Value, ...],
        at: Callable[[Sequence[Value]], Value],
        reads: set[str],
        loops: bool = False,
    ) -> None:
        self.shape, self.at, self.reads, self.loops = shape, at, reads, loops

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Reshaped(ArrayExpression):
    """An expression whose elements NumPy may share with an array: a part of it in another shape.

    ``source`` is that array.
    """

    def __init__(
        self, shape: tuple[Value, ...], at: Callable[[Sequence[Value]], Value], source: str
    ) -> None:
        super().__init__(shape, at, {source})
        self.source = source


class Selection(NamedTuple):
    """Elements of an array that arrays of integers choose, or truths if there is a ``mask``.

    Attributes
    ----------
    view
        The part of the array that is indexed.
    first
        Its first axis that an array indexes; the others follow.
    indices
        The arrays, one for an axis, of the same shape.
    """

    view: ArrayView
    first: int
    indices: tuple[ArrayView, ...]
    mask: ArrayView | None = None

    @property
    def shape(self) -> tuple[Value, ...]:
        lengths = self.view.shape
        after = lengths[self.first + len(self.indices) :]
        return (*lengths[: self.first], *self.indices[0].shape, *after)


class LocalFunction(NamedTuple):
    """A function that is defined inside of another: its syntax, that one, the names around it."""

    tree: Any
    scope: Any
    env: dict[str, Any]


class Items(tuple):
    """Several values."""


class ListItems(Items):
    """Several values of a list, which as an index choose elements."""


class Made(NamedTuple):
    """An array that is to be made: by which function of NumPy, or as a copy of elements.

    ``shares`` says that NumPy makes none, as the elements of ``content`` do.
    """

    maker: str
    dtype: np.dtype
    shape: tuple[Value, ...]
    content: ArrayView | ArrayExpression | Items | Value | None = None
    shares: bool = False
