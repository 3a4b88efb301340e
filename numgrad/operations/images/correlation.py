"""Correlation and convolution of images: continued at the edges, then a convolution."""

from __future__ import annotations

from typing import Any

from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import flip
from numgrad.operations.images.operands import cast, each, image, operands
from numgrad.operations.shape import as_index, as_operand, reshape
from numgrad.operations.signal.boundaries import extended
from numgrad.operations.signal.convolution import convolution


def correlated(
    name: str, x: Any, weights: Any, mode: Any, cval: Any, origin: Any, output: Any, turn: bool
) -> Any:
    """Correlation with weights of as many axes, or convolution if these are to be turned round."""
    x, weights, wanted = operands(image(x, output), weights)
    ndim = len(x.shape)
    if len(weights.shape) != ndim:
        raise NumgradValueError(
            f"{name}: weights of shape {tuple(weights.shape)} for an operand of shape "
            f"{tuple(x.shape)}; both have as many axes"
        )
    if 0 in weights.shape:
        raise NumgradValueError(f"{name}: there are no weights, shape {tuple(weights.shape)}")
    widths = []
    for n, place in zip(weights.shape, each(name, origin, ndim, "origin"), strict=True):
        place = as_index(name, place, "origin")
        if turn:
            place = -place - (n % 2 == 0)
        before = n // 2 + place
        if not 0 <= before < n:
            raise NumgradValueError(
                f"{name}: origin={origin!r} lies outside of weights of shape {tuple(weights.shape)}"
            )
        widths.append((before, n - 1 - before))
    x = extended(name, x, widths, each(name, mode, ndim, "mode"), cval)
    axes = tuple([k for k in range(ndim) if weights.shape[k] > 1] or range(ndim))
    if not turn:
        weights = flip(weights, axis=axes) if axes else weights
    if not axes:
        return cast(OPS["multiply"](x, weights), wanted, output)
    out = convolution(x, weights, axes)
    return cast(out, wanted, output)


def along_axis(
    name: str, x: Any, weights: Any, axis: Any, mode: str, cval: Any, origin: Any, output: Any,
    turn: bool = False,
) -> Any:  # fmt: skip
    """Correlation or convolution along one axis."""
    x, weights = as_operand(x), as_operand(weights)
    (axis,) = normalize_axes(name, as_index(name, axis), len(x.shape))
    if len(weights.shape) != 1:
        raise NumgradValueError(
            f"{name}: weights of shape {tuple(weights.shape)}; they have one axis"
        )
    shape = [1] * len(x.shape)
    shape[axis] = weights.shape[0]
    places = [0] * len(x.shape)
    places[axis] = origin
    weights = reshape(weights, tuple(shape))
    return correlated(name, x, weights, mode, cval, places, output, turn)


@composite(ref="scipy.ndimage.correlate", method=False, smooth=True)
def ndimage_correlate(input, weights, output=None, mode="reflect", cval=0.0, origin=0):
    """Correlation of an image with weights, in the size of the image.

    Parameters
    ----------
    input
        Image, of any number of axes.
    weights
        Weights, with as many axes.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int or sequence of ints
        By how many places the weights are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.correlate(ng.tensor([1.0, 2.0, 4.0]), [-1.0, 0.0, 1.0])
    tensor([1., 3., 2.])
    """
    return correlated("correlate", input, weights, mode, cval, origin, output, False)


@composite(ref="scipy.ndimage.convolve", method=False, smooth=True)
def ndimage_convolve(input, weights, output=None, mode="reflect", cval=0.0, origin=0):
    """Convolution of an image with weights, in the size of the image.

    Parameters
    ----------
    input
        Image, of any number of axes.
    weights
        Weights, with as many axes.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int or sequence of ints
        By how many places the weights are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.convolve(ng.tensor([1.0, 2.0, 4.0]), [1.0, 0.0, -1.0])
    tensor([1., 3., 2.])
    """
    return correlated("convolve", input, weights, mode, cval, origin, output, True)


@composite(ref="scipy.ndimage.correlate1d", method=False, smooth=True)
def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Correlation with weights along one axis.

    Parameters
    ----------
    input
        Image, of any number of axes.
    weights
        Weights, with one axis.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int
        By how many places the weights are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.correlate1d(ng.tensor([1.0, 2.0, 4.0]), [1.0, 1.0], mode="constant")
    tensor([1., 3., 6.])
    """
    return along_axis("correlate1d", input, weights, axis, mode, cval, origin, output)


@composite(ref="scipy.ndimage.convolve1d", method=False, smooth=True)
def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Convolution with weights along one axis.

    Parameters
    ----------
    input
        Image, of any number of axes.
    weights
        Weights, with one axis.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int
        By how many places the weights are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.convolve1d(ng.tensor([1.0, 2.0, 4.0]), [1.0, 1.0], mode="constant")
    tensor([3., 6., 4.])
    """
    return along_axis("convolve1d", input, weights, axis, mode, cval, origin, output, True)


ndimage_correlate.calls = [
    (((3, 2), (2, 2)), lambda x, w: ndimage_correlate(x, w)),
    (((0, 2), (2, 2)), lambda x, w: ndimage_correlate(x, w)),
]
ndimage_convolve.calls = [
    (((3, 2), (2, 3)), lambda x, w: ndimage_convolve(x, w, mode="constant", cval=2.0))
]
correlate1d.calls = [(((2, 3), (3,)), lambda x, w: correlate1d(x, w, 0, mode="wrap", origin=1))]
convolve1d.calls = [(((2, 3), (4,)), lambda x, w: convolve1d(x, w, mode="nearest"))]
