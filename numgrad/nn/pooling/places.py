"""Largest elements of parts, and back to where they came from; means of powers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.convolution.functional import along_axes
from numgrad.nn.pooling.functional import (
    as_image,
    avg_pool1d,
    avg_pool2d,
    divided,
    parts,
    windows_along,
)
from numgrad.nn.pooling.volume import avg_pool3d
from numgrad.operations.real import relu
from numgrad.operations.scatter import scatter
from numgrad.operations.search import argmax
from numgrad.operations.shape import as_operand, broadcast_to, reshape
from numgrad.operations.take import take, take_along_axis
from numgrad.tensors.creation import arange, tensor, zeros
from numgrad.tensors.tensor import Tensor


def _adaptive_max_pool(rank: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    """The largest element along one axis after the other; the first of equal ones."""
    name = f"adaptive_max_pool{rank}d"
    x = as_image(name, rank, input)
    if x.dtype.kind not in "iuf":
        raise NumgradTypeError(f"{name}: elements of dtype {x.dtype} have no order")
    lengths = tuple(map(index, x.shape[-rank:]))
    output = parts(name, output_size, lengths)
    if 0 in lengths:
        raise NumgradValueError(
            f"{name}: an input of shape {tuple(x.shape)} has no largest element"
        )
    windows = divided(lengths, output)
    places = broadcast_to(reshape(arange(prod(lengths)), lengths), tuple(x.shape))
    for axis in range(-1, -rank - 1, -1):
        if not output[axis]:
            x, places = take(x, tensor(np.zeros(0, np.int64)), axis=axis), places
            places = take(places, tensor(np.zeros(0, np.int64)), axis=axis)
            continue
        bounds = np.array([window[:2] for window in windows[axis]])
        longest = int((bounds[:, 1] - bounds[:, 0]).max())
        # a window that is shorter ends with its last element again
        table = np.minimum(bounds[:, :1] + np.arange(longest), bounds[:, 1:] - 1)
        flat, k = tensor(table.ravel()), len(x.shape) + axis
        shape = (*x.shape[:k], len(table), longest, *x.shape[k + 1 :])
        x, places = (reshape(take(a, flat, axis=axis), shape) for a in (x, places))
        best = argmax(x, axis=k + 1, keepdims=True)
        kept = (*shape[: k + 1], *shape[k + 2 :])
        x, places = (reshape(take_along_axis(a, best, axis=k + 1), kept) for a in (x, places))
    return (x, places) if return_indices else x


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of a given number of parts of a sequence: as ``adaptive_max_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_max_pool1d(ng.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[3., 3.]])
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of windows that divide images into a given number of rows and columns.

    The windows are those of ``adaptive_avg_pool2d``. The first of equal elements gets the whole
    gradient.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), of real numbers.
    output_size
        Numbers of rows and columns; one for both, None for that of the input.
    return_indices
        Whether to return also the place of each element in its flattened image.

    Returns
    -------
    Tensor or tuple of two
        Of shape (N, C, rows, columns), or without N.

    Raises
    ------
    NumgradTypeError
        If the elements are no real numbers.
    NumgradValueError
        If the input has other axes, or empty ones.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(16.0).reshape(1, 4, 4))
    >>> ng.nn.functional.adaptive_max_pool2d(x, (1, None))
    tensor([[[12., 13., 14., 15.]]])
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Largest elements of given numbers of parts of volumes: as ``adaptive_max_pool2d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.adaptive_max_pool3d(ng.ones((2, 3, 4, 6, 8)), (1, 2, None)).shape
    (2, 3, 1, 2, 8)
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)


# ------------------------------------------------------------------------------------- back


def _max_unpool(
    rank: int,
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Sequence[int] | None,
) -> Tensor:
    name = f"max_unpool{rank}d"
    x, indices = as_image(name, rank, input), as_operand(indices)
    kernel, stride, padding = windows_along(name, rank, kernel_size, stride, padding)
    if tuple(indices.shape) != tuple(x.shape):
        raise NumgradValueError(
            f"{name}: indices of shape {tuple(indices.shape)} for an input of shape "
            f"{tuple(x.shape)}; they need the same shape"
        )
    lead, lengths = tuple(x.shape[:-rank]), tuple(map(index, x.shape[-rank:]))
    usual = tuple(
        (n - 1) * s - 2 * p + k for n, s, p, k in zip(lengths, stride, padding, kernel, strict=True)
    )
    size = usual
    if output_size is not None:
        size = along_axes(name, "output_size", tuple(output_size)[-rank:], rank, 1)
        if any(abs(n - m) >= s for n, m, s in zip(size, usual, stride, strict=True)):
            raise NumgradValueError(
                f"{name}: output_size {tuple(output_size)} is not what an input of shape "
                f"{tuple(x.shape)} can come from; each length is within a stride {stride} of "
                f"{usual}"
            )
    count = prod(lengths)
    flat, places = (reshape(a, (*lead, count)) for a in (x, indices))
    empty = zeros((*lead, prod(size)), dtype=x.dtype)
    return reshape(scatter(empty, places, flat, axis=-1), (*lead, *size))


def max_unpool1d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put largest elements of sequences back: as ``max_unpool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 3.0, 2.0, 0.0]])
    >>> y, indices = ng.nn.functional.max_pool1d(x, 2, return_indices=True)
    >>> ng.nn.functional.max_unpool1d(y, indices, 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put what ``max_pool2d`` chose back to where it was, among zeros.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W).
    indices
        Places in flattened images, of the same shape.
    kernel_size, stride, padding
        Those of the pooling.
    output_size
        Lengths of the result, where pooling gives the same for several; other axes may come first.

    Returns
    -------
    Tensor
        Of the shape that was pooled.

    Raises
    ------
    NumgradIndexError
        If an index is outside of the result.
    NumgradValueError
        If shapes do not fit.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor(np.arange(4.0).reshape(1, 2, 2))
    >>> y, indices = ng.nn.functional.max_pool2d(x, 2, return_indices=True)
    >>> ng.nn.functional.max_unpool2d(y, indices, 2)
    tensor([[[0., 0.],
             [0., 3.]]])
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put largest elements of volumes back: as ``max_unpool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> y, indices = ng.nn.functional.max_pool3d(ng.ones((1, 2, 2, 4)), 2, return_indices=True)
    >>> ng.nn.functional.max_unpool3d(y, indices, 2).shape
    (1, 2, 2, 4)
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


# ------------------------------------------------------------------------------ means of powers


def _lp_pool(
    rank: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    name = f"lp_pool{rank}d"
    x = as_image(name, rank, input)
    if not norm_type:
        raise NumgradValueError(f"{name}: norm_type must not be 0")
    kernel = along_axes(name, "kernel_size", kernel_size, rank, 1)
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
    means = pool(x**norm_type, kernel, stride, 0, ceil_mode)
    # so that the gradient where all is 0 is 0, as in PyTorch
    positive = np.sign(means.detach()) * relu(np.abs(means))
    return (positive * prod(kernel)) ** (1.0 / norm_type)


def lp_pool1d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Norms of windows of sequences: as ``lp_pool2d``, along one axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.lp_pool1d(ng.tensor([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
    tensor([[5., 1.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """``(sum of x**p) ** (1 / p)`` over windows that slide over images.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (C, H, W), floating.
    norm_type
        The power ``p``; 1 gives sums.
    kernel_size
        Shape of the windows: an integer or a tuple.
    stride
        Distance of neighbouring windows, by default ``kernel_size``.
    ceil_mode
        Whether windows that begin in the input may end behind it.

    Raises
    ------
    NumgradValueError
        If the options do not fit the shape, or ``norm_type`` is 0.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.lp_pool2d(ng.tensor([[[3.0, 4.0], [0.0, 0.0]]]), 2, 2)
    tensor([[[5.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Norms of windows of volumes: as ``lp_pool2d``, along three axes.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.lp_pool3d(ng.ones((1, 2, 2, 4)), 1, 2)
    tensor([[[[8., 8.]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
