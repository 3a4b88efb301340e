"""Views with other strides: ``as_strided``."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.forward_ad import ForwardInterpreter
from numgrad.autograd.history import follows_root
from numgrad.autograd.variable import Tensor, root
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.region import Region
from numgrad.operations.shape import as_operand


def as_strided(x: Any, shape: Any, strides: Any, offset: int = 0, dtype: Any = None) -> Any:
    """View the memory of a Tensor in another shape and with other strides.

    Unlike ``np.lib.stride_tricks.as_strided`` it never leaves the memory, which is that of the
    array that ``x`` is a view of. A gradient adds up what is shown several times. In batches and
    in compiled functions ``x`` counts as contiguous, and the result is a copy for reading.

    Parameters
    ----------
    shape : tuple of ints
        Lengths of axes.
    strides : tuple of ints
        Distances in memory along them, in bytes.
    offset : int
        Distance from the first element of ``x``, in bytes.
    dtype : dtype
        Type of the elements, which is that of ``x`` or of its real or complex parts.

    Returns
    -------
    Tensor
        A view, which may be written to where elements of it do not overlap.

    Raises
    ------
    NumgradValueError
        If elements would lie outside of the memory, or beside its elements.
    NumgradTypeError
        If the dtype is another.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    >>> windows = ng.as_strided(x, (3, 2), (8, 8))
    >>> windows.detach()
    tensor([[1., 2.],
            [2., 3.],
            [3., 4.]])
    >>> windows.sum().backward()
    >>> x.grad
    tensor([1., 2., 2., 1.])
    """
    x = as_operand(x)
    try:
        shape, strides, offset = tuple(map(index, shape)), tuple(map(index, strides)), index(offset)
    except TypeError as error:
        raise NumgradTypeError(f"as_strided: shape, strides and offset: {error}") from error
    if min(shape, default=0) < 0 or len(shape) != len(strides):
        raise NumgradValueError(
            f"as_strided: shape {shape} and strides {strides}: lengths are not negative, and there "
            "is one stride for each"
        )
    part = x.dtype if dtype is None else np.dtype(dtype)
    if x.dtype.type(0).real.dtype != part.type(0).real.dtype:
        raise NumgradTypeError(
            f"as_strided: elements of {x.dtype} cannot be seen as {part}; dtype is theirs, or that "
            "of their real or complex parts"
        )
    if any(step % part.itemsize for step in (*strides, offset)):
        raise NumgradValueError(
            f"as_strided: strides {strides} and offset {offset} are in bytes: they need to be "
            f"multiples of {part.itemsize}, the size of an element"
        )
    if not has_memory(x):
        _check_bounds(shape, strides, offset, offset, part, x.dtype.itemsize * prod(x.shape), "")
        places = places_in_memory(shape, strides, offset) // part.itemsize
        return read_only(OPS["take"](_elements(x, part), places))
    owner, base = x, ""
    if follows_root(x) and len(tangents(x)) == len(tangents(root(x))):
        owner = root(x)
    elif x is not root(x):
        base = ", a view whose history or tangent is not its base's: take a view of the base"
    where = Region(owner._array, x._array)
    begin = where.offset + offset
    _check_bounds(shape, strides, offset, begin, part, where.extent, base)
    where.part, where.strides, where.offset = Meta(shape, part), strides, begin
    out = OPS["region"](owner, where=where)
    pairs = [(out, owner), *zip(tangents(out), tangents(owner), strict=False)]
    shared = all(np.may_share_memory(a._array, b._array) for a, b in pairs)
    return out if shared or not out.size else read_only(out)  # of one that is not contiguous


def _check_bounds(
    shape: tuple, strides: tuple, offset: int, begin: int, part: np.dtype, extent: int, base: str
) -> None:
    """Raise if elements from ``begin`` on lie outside of so many bytes of memory."""
    reach = [step * (n - 1) for step, n in zip(strides, shape, strict=True)]
    low, high = (begin + sum(pick(0, r) for r in reach) for pick in (min, max))
    if 0 not in shape and (low < 0 or high + part.itemsize > extent):
        raise NumgradValueError(
            f"as_strided: shape {shape}, strides {strides} and offset {offset} are out of bounds "
            f"of the memory of {extent} bytes{base}"
        )


def _elements(x: Any, part: np.dtype) -> Any:
    """Elements one after the other, of the dtype of a Tensor or of its real or complex parts."""
    flat = OPS["reshape"](x, shape=(-1,))
    if x.dtype == part:
        return flat
    if x.dtype.kind == "c":
        return np.stack([np.real(flat), np.imag(flat)], axis=-1).reshape(-1)
    return flat[::2] + 1j * flat[1::2]


def places_in_memory(shape: tuple, strides: tuple, offset: int) -> np.ndarray:
    """Distances of elements, in the unit of the strides."""
    places = np.full(shape, offset, np.int64)
    for axis, (length, step) in enumerate(zip(shape, strides, strict=True)):
        places += (np.arange(length) * step).reshape([-1] + [1] * (len(shape) - axis - 1))
    return places


def has_memory(x: Any) -> bool:
    """Whether a Tensor has memory, and what is recorded of it or its tangents can be followed."""
    levels = state.interpreters
    followed = all(isinstance(i, ForwardInterpreter) and not i.several for i in levels)
    return followed and type(x._array) is np.ndarray


def tangents(x: Any) -> list[Tensor]:
    """Those of forward mode, from the outside in."""
    levels = [i for i in state.interpreters if isinstance(i, ForwardInterpreter)]
    return [t for i in levels if (t := i.tangent(x)) is not None]


def read_only(out: Any) -> Any:
    """A copy where a view is expected: writes, which the base would not see, are refused."""
    y = out
    while isinstance(y, Batched):
        y = y.value
    if type(y._array) is np.ndarray:
        y._array.flags.writeable = False
    return out
