"""Views that plain NumPy makes, while a function is traced, of arrays that are around it.

Such a view (``A.T``, ``A[1:]``, ``A.ravel()`` of a global ``A``) is an ndarray like any other, but
its memory is that of an array that is read at each call, so it is made anew there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.closure import Captures
from numgrad.compiler.call.source import Source

_Form = tuple[tuple[int, ...], tuple[int, ...], np.dtype]


def _form(array: np.ndarray) -> _Form:
    return array.shape, array.strides, array.dtype


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@dataclass(frozen=True, eq=False)
class Shown:
    """Where a view lies in an array: ``of`` is the form of that array, ``form`` its own."""

    of: _Form
    form: _Form
    offset: int

    def __call__(self, source: Any) -> Any:
        """The view of an array, or of that of a Tensor; None if it has another form."""
        array = source._array if isinstance(source, Tensor) else source
        if type(array) is not np.ndarray or _form(array) != self.of:
            return None
        shape, strides, dtype = self.form
        if array.flags.c_contiguous:
            return np.ndarray(shape, dtype, array, self.offset, strides)
        return np.asarray(_Memory(array, shape, strides, dtype, _address(array) + self.offset))


class _Memory:
    """A piece of the memory of an array, which it keeps alive."""

    def __init__(
        self, array: np.ndarray, shape: tuple, strides: tuple, dtype: np.dtype, address: int
    ) -> None:
        self.array = array
        self.__array_interface__ = {
            "shape": shape,
            "strides": strides,
            "typestr": dtype.str,
            "data": (address, not array.flags.writeable),
            "version": 3,
        }


@dataclass(frozen=True)
class ArrayOrigin:
    """What an ndarray is read from at each call.

    Attributes
    ----------
    owner
        An ndarray or a Tensor in a place around the function.
    array
        Its memory.
    axes
        By which order of its axes it becomes the ndarray, if by one.
    place
        Where the ndarray itself is found, by an expression; None if ``axes`` are given.
    """

    owner: Any
    array: np.ndarray
    axes: tuple[int, ...] | None
    place: Source | None


def source_of(array: np.ndarray, around: Captures) -> ArrayOrigin | None:
    """The array of the surroundings whose memory an ndarray shows; None if it has its own."""
    if id(array) in around.arrays:
        return ArrayOrigin(array, array, tuple(range(array.ndim)), None)
    owner = _owner(array)
    low, high = byte_bounds(array)
    for place in around.arrays.values():
        found = place.value
        whole = found._array if isinstance(found, Tensor) else found
        if type(whole) is not np.ndarray or _owner(whole) is not owner:
            continue
        first, last = byte_bounds(whole)
        if first <= low and high <= last:
            return ArrayOrigin(found, whole, *_how(array, whole, place))
    return None


def _owner(array: np.ndarray) -> Any:
    """The object whose memory it is."""
    found: Any = array
    while isinstance(found, np.ndarray) and found.base is not None:
        found = found.base
    return found


def _how(
    array: np.ndarray, whole: np.ndarray, place: Source
) -> tuple[tuple[int, ...] | None, Source | None]:
    """The order of axes that makes one of the other, or where to find it."""
    if array.dtype == whole.dtype and _address(array) == _address(whole):
        left = list(zip(whole.shape, whole.strides, strict=True))
        axes: list[int] = []
        for pair in zip(array.shape, array.strides, strict=True):
            axis = next((k for k, p in enumerate(left) if p == pair and k not in axes), None)
            if axis is None:
                break
            axes.append(axis)
        else:
            if len(axes) == whole.ndim:
                return tuple(axes), None
    shown = Shown(_form(whole), _form(array), _address(array) - _address(whole))
    inner = replace(place, value=array, access=place.access, name=f"{place.name}[...]")
    inner.shown = shown
    return None, inner
