"""Differences of neighbours in images, which show edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.images.correlation import along_axis
from numgrad.operations.images.operands import cast, each, image
from numgrad.operations.shape import as_index


def _edges(name: str, x: Any, axis: Any, output: Any, mode: Any, cval: Any, across: Any) -> Any:
    """A difference along an axis, averaged with weights along the others."""
    x = image(x, output)
    (axis,) = normalize_axes(name, as_index(name, axis), len(x.shape))
    modes = each(name, mode, len(x.shape), "mode")
    difference = made(np.array([-1.0, 0.0, 1.0]))
    out = along_axis(name, x, difference, axis, modes[axis], cval, 0, None)
    for other in range(len(x.shape)):
        if other != axis:
            weights = made(np.array(across))
            out = along_axis(name, out, weights, other, modes[other], cval, 0, None)
    return cast(out, x.dtype, output)


@composite(ref="scipy.ndimage.sobel", method=False, smooth=True)
def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Edges across an axis, by Sobel's weights.

    Parameters
    ----------
    input
        Image, of any number of axes.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges, or a sequence of that.
    cval
        What is beyond them in the mode ``"constant"``.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.sobel(ng.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    tensor([[0., 4., 4.],
            [0., 4., 4.]])
    """
    return _edges("sobel", input, axis, output, mode, cval, [1.0, 2.0, 1.0])


@composite(ref="scipy.ndimage.prewitt", method=False, smooth=True)
def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Edges across an axis, by Prewitt's weights.

    Parameters
    ----------
    input
        Image, of any number of axes.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges, or a sequence of that.
    cval
        What is beyond them in the mode ``"constant"``.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.prewitt(ng.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    tensor([[0., 3., 3.],
            [0., 3., 3.]])
    """
    return _edges("prewitt", input, axis, output, mode, cval, [1.0, 1.0, 1.0])


@composite(ref="scipy.ndimage.laplace", method=False, smooth=True)
def laplace(input, output=None, mode="reflect", cval=0.0):
    """Sum of second differences along all axes.

    Parameters
    ----------
    input
        Image, of any number of axes.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges, or a sequence of that.
    cval
        What is beyond them in the mode ``"constant"``.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.laplace(ng.tensor([0.0, 1.0, 4.0, 9.0]), mode="constant")
    tensor([  1.,   2.,   2., -14.])
    """
    x = image(input, output)
    out: Any = None
    for axis, edge in enumerate(each("laplace", mode, len(x.shape), "mode")):
        weights = made(np.array([1.0, -2.0, 1.0]))
        part = along_axis("laplace", x, weights, axis, edge, cval, 0, None)
        out = part if out is None else OPS["add"](out, part)
    if out is None:
        raise NumgradValueError("laplace: the operand has no axis")
    return cast(out, x.dtype, output)


sobel.calls = [(((2, 3),), lambda x: sobel(x))]
prewitt.calls = [(((2, 3),), lambda x: prewitt(x, 0))]
laplace.calls = [(((2, 3),), lambda x: laplace(x, mode="wrap"))]
