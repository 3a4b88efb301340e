"""Views with other strides: ``as_strided``."""

from __future__ import annotations

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
        If elements would lie outside of the memory.

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
    if not has_memory(x):
        places = places_in_memory(shape, strides, offset) // x.dtype.itemsize
        return read_only(OPS["take"](OPS["reshape"](x, shape=(-1,)), places))
    owner = root(x)
    if not follows_root(x) or len(tangents(x)) != len(tangents(owner)):
        owner = x
    where = Region(owner._array, x._array)
    where.part = Meta(shape, x.dtype if dtype is None else np.dtype(dtype))
    where.strides, where.offset = strides, where.offset + offset
    reach = [step * (n - 1) for step, n in zip(strides, shape, strict=True)]
    low, high = (where.offset + sum(pick(0, r) for r in reach) for pick in (min, max))
    if 0 not in shape and (low < 0 or high + where.part.dtype.itemsize > where.extent):
        other = "" if owner is root(x) else (
            ", a view whose history or tangent is not its base's: take a view of the base"
        )  # fmt: skip
        raise NumgradValueError(
            f"as_strided: shape {shape}, strides {strides} and offset {offset} are out of "
            f"bounds of the memory "
            f"of {where.extent} bytes{other}"
        )
    out = OPS["region"](owner, where=where)
    pairs = [(out, owner), *zip(tangents(out), tangents(owner), strict=False)]
    shared = all(np.may_share_memory(a._array, b._array) for a, b in pairs)
    return out if shared or not out.size else read_only(out)  # of one that is not contiguous


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
