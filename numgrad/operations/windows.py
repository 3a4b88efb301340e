"""Windows that slide along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import one_axis
from numgrad.core.declare import composite
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import moveaxis
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
    places = np.arange(0, n - size + 1, step)[:, None] + np.arange(size)
    return moveaxis(take(x, made(places), axis=axis), axis + 1, -1)


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
    given = range(rank) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    if len(sizes) != len(given):
        raise NumgradValueError(
            f"sliding_window_view: {len(sizes)} lengths of the window for {len(given)} axes; give "
            "one for each"
        )
    for size, k in zip(sizes, given, strict=True):
        k = one_axis("sliding_window_view", k, rank)
        x = _windows("sliding_window_view", x, k, size, 1)
    return x


sliding_window_view.calls = [
    (((5,),), lambda x: sliding_window_view(x, 3)),
    (((3, 4),), lambda x: sliding_window_view(x, (2, 3))),
]


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


unfold.calls = [
    (((2, 5),), lambda x: unfold(x, 1, 3, 2)),
]
