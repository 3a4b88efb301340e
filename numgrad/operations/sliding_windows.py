"""Windows that slide along axes, convolution and correlation of sequences.

Note [Sliding products]
-----------------------
Both are made of two operations with one mode each, which are each other's derivatives: the whole
convolution, and the correlation where the sequences overlap completely.
"""

from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import Meta, composite, made, one_axis, primitive
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import flip, moveaxis
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_index, as_operand
from numgrad.operations.take import take


def _windows(operation: str, x: Any, axis: int, size: int, step: int) -> Any:
    """Windows along an axis; their elements become the last one."""
    n = x.shape[axis]
    if size < 0 or step < 1:
        raise NumgradValueError(
            f"{operation}: a window of {size} elements, {step} from one to the next; sizes are not "
            "negative and steps positive"
        )
    if size > n:
        raise NumgradValueError(
            f"{operation}: a window of {size} elements along axis {axis} of shape {tuple(x.shape)}"
        )
    indices = np.arange(0, n - size + 1, step)[:, None] + np.arange(size)
    return moveaxis(take(x, made(indices), axis=axis), axis + 1, -1)


@composite(ref=np.lib.stride_tricks.sliding_window_view, method=False, smooth=True)
def sliding_window_view(x, window_shape, axis=None):
    """All windows of a shape, one beside the next; a gradient adds up what overlaps.

    Unlike NumPy's this is a copy: windows do not share memory with each other or with ``x``.

    Parameters
    ----------
    window_shape : int or tuple of ints
        Lengths of the window along the axes.
    axis : int or tuple of ints
        Axes that it slides along, which may repeat; by default all.

    Returns
    -------
    Tensor
        With one axis more for each axis slid along.

    Examples
    --------
    >>> x = ng.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    >>> windows = ng.sliding_window_view(x, 3)
    >>> windows.detach()
    tensor([[1., 2., 3.],
            [2., 3., 4.]])
    >>> windows.sum().backward()
    >>> x.grad
    tensor([1., 2., 2., 1.])
    """
    x = as_operand(x)
    many = isinstance(window_shape, tuple | list | np.ndarray)
    sizes = [
        as_index("sliding_window_view", n, "a length")
        for n in (window_shape if many else (window_shape,))
    ]
    rank = len(x.shape)
    listed = range(rank) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    if len(sizes) != len(listed):
        raise NumgradValueError(
            f"sliding_window_view: {len(sizes)} lengths of the window for {len(listed)} axes; give "
            "one for each"
        )
    for size, k in zip(sizes, listed, strict=True):
        k = one_axis("sliding_window_view", k, rank)
        x = _windows("sliding_window_view", x, k, size, 1)
    return x


@composite(smooth=True)
def unfold(x, axis, size, step=1):
    """Windows along an axis, ``step`` apart; their elements become a new last axis.

    Parameters
    ----------
    size : int
        Elements of a window.
    step : int
        Elements from one window to the next.

    Returns
    -------
    Tensor
        With one axis more; a copy, and the gradient adds up what overlaps.

    Examples
    --------
    >>> ng.unfold(ng.arange(5.0), 0, 3, 2)
    tensor([[0., 1., 2.],
            [2., 3., 4.]])
    """
    x = as_operand(x)
    axis = one_axis("unfold", as_index("unfold", axis), len(x.shape))
    size, step = as_index("unfold", size, "the size"), as_index("unfold", step, "the step")
    return _windows("unfold", x, axis, size, step)


def _common(operation: str, a: Any, b: Any) -> np.dtype:
    dtype = np.result_type(a.dtype, b.dtype)
    check_dtype(operation, dtype)
    return dtype


@primitive(internal=True, method=False, bilinear=True, smooth=True)
def convolve_whole(a, b):
    """Sums of products of two sequences, one reversed, at all places where they overlap."""
    return np.convolve(a, b, "full")


convolve_whole.shape(lambda a, b: Meta((a.shape[0] + b.shape[0] - 1,), _common("convolve", a, b)))


@primitive(internal=True, method=False, smooth=True)
def correlate_inside(a, b):
    """Sums of products of a sequence and the conjugate of a shorter one, where it lies inside."""
    return np.correlate(a, b, "valid")


correlate_inside.shape(
    lambda a, b: Meta((a.shape[0] - b.shape[0] + 1,), _common("correlate", a, b))
)
convolve_whole.vjp(a=lambda g, b: correlate_inside(g, b), b=lambda g, a: correlate_inside(g, a))
correlate_inside.vjp(a=lambda g, b: convolve_whole(g, b), b=lambda g, a: correlate_inside(a, g))


def _operands(operation: str, a: Any, v: Any, mode: Any) -> tuple[Any, Any]:
    a, v = as_operand(a), as_operand(v)
    a, v = [x.reshape((1,)) if not len(x.shape) else x for x in (a, v)]
    if len(a.shape) != 1 or len(v.shape) != 1:
        raise NumgradValueError(
            f"{operation}: takes sequences, got shapes {tuple(a.shape)} and {tuple(v.shape)}"
        )
    for x in (a, v):
        if not x.shape[0]:
            raise NumgradValueError(f"{operation}: a sequence has no elements")
    if mode not in ("full", "same", "valid"):
        raise NumgradValueError(f"{operation}: mode is 'full', 'same' or 'valid', got {mode!r}")
    return a, v


def _reversed(v: Any) -> Any:
    """The conjugate in the other order; bools stay what they are."""
    return np.conj(flip(v)) if v.dtype.kind == "c" else flip(v)


def _same(whole: Any, longer: Any, shorter: Any) -> Any:
    """The middle of a whole convolution, as long as the longer sequence."""
    start = (shorter.shape[0] - 1) // 2
    return getitem(whole, slice(start, start + longer.shape[0]))


@composite(ref=np.convolve, method=False, smooth=True)
def convolve(a, v, mode="full"):
    """Convolution of two sequences: sums of products with one reversed.

    Parameters
    ----------
    v : array_like
        Second sequence.
    mode : {'full', 'same', 'valid'}
        All places where they overlap; as many as the longer one has; where they do completely.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.convolve([1.0, 2.0, 3.0], [0.0, 1.0, 0.5])
    tensor([0. , 1. , 2.5, 4. , 1.5])
    """
    a, v = _operands("convolve", a, v, mode)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    if mode == "valid":
        return correlate_inside(a, _reversed(v))
    whole = convolve_whole(a, v)
    return whole if mode == "full" else _same(whole, a, v)


@composite(ref=np.correlate, method=False, smooth=True)
def correlate(a, v, mode="valid"):
    """Correlation of two sequences: sums of products with the conjugate of the second.

    Parameters
    ----------
    v : array_like
        Second sequence.
    mode : {'full', 'same', 'valid'}
        All places where they overlap; as many as the longer one has; where they do completely.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.correlate([1.0, 2.0, 3.0], [0.0, 1.0, 0.5], "same")
    tensor([2. , 3.5, 3. ])
    """
    a, v = _operands("correlate", a, v, mode)
    if v.shape[0] > a.shape[0]:
        return _reversed(correlate(v, a, mode))
    if mode == "valid":
        return correlate_inside(a, v)
    whole = convolve_whole(a, _reversed(v))
    return whole if mode == "full" else _same(whole, a, v)
