"""A view as a place in its root: what in-place writes through views are differentiated with.

Note [Regions]
--------------
Slices, transposes, reshapes, diagonals, windows, real and imaginary parts, however nested: a view
is a shape, strides and an offset into the memory of its root. The gradient of the root, given the
same layout, has the gradient of the view at the same place.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.declare import CONSUMES, Call, Meta, conform, view, zeros
from numgrad.core.primitive import Primitive, PrimitiveCall


class Region:
    """Where a view lies in an array, the whole; the same place can be found in other arrays.

    Strides and ``offset`` are in bytes; ``origin`` is the distance from the lowest address of the
    whole to its first element, which is not 0 where strides are negative.
    """

    __slots__ = ("extent", "offset", "origin", "part", "strides", "whole", "whole_strides")

    def __init__(self, whole: np.ndarray, view: np.ndarray) -> None:
        self.whole, self.whole_strides = Meta(whole.shape, whole.dtype), whole.strides
        self.part, self.strides = Meta(view.shape, view.dtype), view.strides
        steps = [s * (n - 1) for s, n in zip(whole.strides, whole.shape, strict=True) if n]
        self.origin = -sum(s for s in steps if s < 0)
        self.extent = sum(map(abs, steps)) + whole.itemsize
        self.offset = self.origin + _address(view) - _address(whole)

    def find(self, array: np.ndarray) -> np.ndarray:
        """The place in an array with the shape of the whole: a view if the layout is the same."""
        return self._inside(self._memory(array), self.part.shape)

    def replace(self, array: np.ndarray, source: Any, *, owned: bool = False) -> np.ndarray:
        """``array`` with ``source`` at the place, in the array's own memory if it is owned."""
        memory = self._memory(array)
        if memory is array and not owned:
            memory = array = array.copy()
        self._inside(memory, self.part.shape)[...] = source
        return array if memory is array else self._whole(memory)

    def scatter(self, source: np.ndarray) -> np.ndarray:
        """Zeros like the whole, with ``source`` added at the place."""
        shown_often = tuple(
            k for k, n in enumerate(self.part.shape) if n > 1 and self.strides[k] == 0
        )
        if shown_often:
            source = source.sum(axis=shown_often, keepdims=True)
        out = np.zeros(self.whole.shape, self.whole.dtype)
        memory = self._memory(out)
        inside = self._inside(memory, source.shape)
        if overlaps(inside):
            item = self.part.dtype.itemsize
            places = np.full(source.shape, self.offset // item, np.int64)
            for k, step in enumerate(self.strides):
                along = np.arange(source.shape[k]) * (step // item)
                places += along.reshape([-1] + [1] * (source.ndim - k - 1))
            np.add.at(memory.reshape(-1).view(self.part.dtype), places, source)
        else:
            inside[...] = source
        return out if memory is out else self._whole(memory)

    def _memory(self, array: np.ndarray) -> np.ndarray:
        """Contiguous memory that holds ``array`` in the layout of the whole."""
        array = array.astype(self.whole.dtype, copy=False)
        if array.flags.c_contiguous and array.strides == self.whole_strides:
            return array
        memory = np.empty(self.extent, np.uint8)
        self._whole(memory)[...] = array
        return memory

    def _whole(self, memory: np.ndarray) -> np.ndarray:
        return np.ndarray(
            self.whole.shape, self.whole.dtype, memory, self.origin, self.whole_strides
        )

    def _inside(self, memory: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if 0 in shape:
            return np.empty(shape, self.part.dtype)
        return np.ndarray(shape, self.part.dtype, memory, self.offset, self.strides)


def overlaps(array: np.ndarray) -> bool:
    """Whether two indices show the same element."""
    if array.flags.c_contiguous or array.size < 2:
        return False
    axes = [(abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    reach = array.itemsize
    for stride, n in sorted(axes):
        if stride < reach:  # the axes are not nested: interleaved, as in a diagonal, or overlapping
            break
        reach = stride * n
    else:
        return False
    if any(stride == 0 for stride, _ in axes):
        return True
    offsets = np.zeros(1, np.int64)
    for stride, n in axes:
        offsets = np.add.outer(offsets, np.arange(n) * stride)
    return bool((np.diff(np.sort(offsets, axis=None)) < array.itemsize).any())


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@view(internal=True, linear=True, method=False)
def region(x, *, where):
    """The elements at a place in the memory of the operand: Note [Regions]."""
    return where.find(x)


region.vjp(x=lambda g, where: region_backward(g, where=where))


def _internal(**options: Any) -> Any:
    return lambda function: Primitive(function, internal=True, method=False, **options)


@_internal(linear=True)
def region_backward(x, *, where):
    """Zeros with the operand added at a place."""
    return where.scatter(x)


region_backward.vjp(x=lambda g, where: region(g, where=where))


class CopySlices(Primitive):
    """The operation behind a write through a view."""

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        out, _ = super().run(args, params)
        return out, self.call(Meta(args[1].shape, args[1].dtype), params["where"])

    def call(self, source: Meta, where: Region) -> Call:
        """The record of a write of something like ``source``."""
        metas = (where.whole, source)
        return CopySlicesCall(self, metas, {"where": where}, (), (where.whole,))


class CopySlicesCall(PrimitiveCall):
    """A write at a place: what was there before gets no gradient, what was written gets it all.

    A buffer that the engine owns is used again, so that filling an array piece by piece costs no
    more in the backward than in the forward.
    """

    __slots__ = ()
    large = CONSUMES

    def consume(self, mask: int, g: np.ndarray, owned: bool) -> tuple[list[Any], int]:
        """Gradients, written into ``g`` if it is owned."""
        where, source = self.params["where"], self.metas[1]
        of_source = conform(where.find(g).copy(), source) if mask & 2 else None
        of_whole = where.replace(g, 0, owned=owned) if mask & 1 else None
        return [of_whole, of_source], mask if source == where.part else mask & 1


@lambda function: CopySlices(function, internal=True, linear=True, method=False, keeps_dtype=True)
def copy_slices(x, source, *, where):
    """The operand with other elements at a place."""
    return where.replace(x, source)


copy_slices.vjp(
    x=lambda g, where: copy_slices(g, zeros((), where.part.dtype), where=where),
    source=lambda g, where: region(g, where=where),
)
