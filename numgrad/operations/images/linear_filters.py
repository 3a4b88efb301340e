"""Linear filters of images: correlation, differences of neighbours, averages of neighbours."""

from typing import Any

import numpy as np

from numgrad.core.declare import OPS, composite, made, normalize_axes, one_axis
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import flip
from numgrad.operations.images.operands import cast, each, extended, image, number, operands
from numgrad.operations.shape import as_index, as_operand, reshape
from numgrad.operations.signal.convolution import convolution


def correlated(
    name: str, x: Any, weights: Any, mode: Any, cval: Any, origin: Any, output: Any, turn: bool
) -> Any:
    """Correlation with weights of as many axes, or convolution if these are to be turned round."""
    x, weights, dtype = operands(image(x, output), weights)
    ndim = len(x.shape)
    if len(weights.shape) != ndim:
        raise NumgradValueError(
            f"{name}: weights of shape {tuple(weights.shape)} for an operand of shape "
            f"{tuple(x.shape)}; both have as many axes"
        )
    if 0 in weights.shape:
        raise NumgradValueError(f"{name}: there are no weights, shape {tuple(weights.shape)}")
    widths = []
    for n, shift in zip(weights.shape, each(name, origin, ndim, "origin"), strict=True):
        shift = as_index(name, shift, "origin")
        if turn:
            shift = -shift - (n % 2 == 0)
        before = n // 2 + shift
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
        return cast(OPS["multiply"](x, weights), dtype, output)
    out = convolution(x, weights, axes)
    return cast(out, dtype, output)


def along_axis(
    name: str, x: Any, weights: Any, axis: Any, mode: str, cval: Any, origin: Any, output: Any,
    turn: bool = False,
) -> Any:  # fmt: skip
    """Correlation or convolution along one axis."""
    x, weights = as_operand(x), as_operand(weights)
    axis = one_axis(name, as_index(name, axis), len(x.shape))
    if len(weights.shape) != 1:
        raise NumgradValueError(
            f"{name}: weights of shape {tuple(weights.shape)}; they have one axis"
        )
    shape = [1] * len(x.shape)
    shape[axis] = weights.shape[0]
    origins = [0] * len(x.shape)
    origins[axis] = origin
    weights = reshape(weights, tuple(shape))
    return correlated(name, x, weights, mode, cval, origins, output, turn)


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


def _edges(name: str, x: Any, axis: Any, output: Any, mode: Any, cval: Any, across: Any) -> Any:
    """A difference along an axis, averaged with weights along the others."""
    x = image(x, output)
    axis = one_axis(name, as_index(name, axis), len(x.shape))
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
        second = along_axis("laplace", x, weights, axis, edge, cval, 0, None)
        out = second if out is None else OPS["add"](out, second)
    if out is None:
        raise NumgradValueError("laplace: the operand has no axis")
    return cast(out, x.dtype, output)


def _bell(name: str, sigma: Any, order: int, radius: int) -> Any:
    """Weights of a normal density's derivative; ``sigma`` may have a gradient."""
    order = as_index(name, order, "order")
    if order < 0:
        raise NumgradValueError(f"{name}: order must not be negative, got {order}")
    numbers = np.arange(-radius, radius + 1.0)
    offsets, variance = made(numbers), sigma * sigma
    density = OPS["exp"](OPS["multiply"](made(numbers**2), -0.5 / variance))
    density = OPS["divide"](density, OPS["sum"](density))
    if order == 0:
        return density
    factors: list[Any] = [1.0]  # the derivative is the density times a polynomial
    for _ in range(order):
        longer: list[Any] = [0.0] * (len(factors) + 1)
        for k, factor in enumerate(factors):
            if k:
                longer[k - 1] = longer[k - 1] + k * factor
            longer[k + 1] = longer[k + 1] - factor / variance
        factors = longer
    polynomial: Any = 0.0
    for factor in reversed(factors):
        polynomial = OPS["add"](OPS["multiply"](polynomial, offsets), factor)
    return flip(OPS["multiply"](density, polynomial), axis=0)  # of a correlation


def _gaussian(
    name: str, x: Any, sigma: Any, axis: Any, order: Any, mode: str, cval: Any, truncate: float,
    radius: Any,
) -> Any:  # fmt: skip
    if radius is None:
        radius = int(truncate * number(sigma) + 0.5)
    radius = as_index(name, radius, "radius")
    if radius < 0:
        raise NumgradValueError(f"{name}: radius must not be negative, got {radius}")
    return along_axis(name, x, _bell(name, sigma, order, radius), axis, mode, cval, 0, None)


@composite(ref="scipy.ndimage.gaussian_filter1d", method=False, smooth=True)
def gaussian_filter1d(
    input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *,
    radius=None,
):  # fmt: skip
    """Average with weights of a bell curve along one axis, or a derivative of that.

    Parameters
    ----------
    input
        Image, of any number of axes.
    sigma
        Standard deviation of the bell curve; it may have a gradient.
    order : int
        Order of the derivative.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    truncate : float
        Where the weights end, in standard deviations.
    radius : int
        Where they end, in places.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.gaussian_filter1d(ng.tensor([0.0, 0.0, 1.0, 0.0, 0.0]), 0.5, radius=1)
    tensor([0.        , 0.10650698, 0.78698604, 0.10650698, 0.        ])
    """
    name = "gaussian_filter1d"
    x = image(input, output)
    out = _gaussian(name, x, sigma, axis, order, mode, cval, truncate, radius)
    return cast(out, x.dtype, output)


@composite(ref="scipy.ndimage.gaussian_filter", method=False, smooth=True)
def gaussian_filter(
    input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None,
    axes=None,
):  # fmt: skip
    """Average with weights of a bell curve, or a derivative of that.

    Parameters
    ----------
    input
        Image, of any number of axes.
    sigma
        Standard deviation, for all axes or for each; it may have a gradient.
    order : int or sequence of ints
        Order of the derivative along all axes or each.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges, or a sequence of that.
    cval
        What is beyond them in the mode ``"constant"``.
    truncate : float
        Where the weights end, in standard deviations.
    radius : int or sequence of ints
        Where they end, in places.
    axes : int or sequence of ints
        Axes along which it works; by default all.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> sigma = ng.tensor(1.0, requires_grad=True)
    >>> peak = ng.ndimage.gaussian_filter(np.eye(5), sigma)[2, 2]
    >>> peak.backward()
    >>> sigma.grad.item() < 0
    True
    """
    name = "gaussian_filter"
    x = image(input, output)
    filtered = normalize_axes(name, axes, len(x.shape))
    parameters = [
        each(name, value, len(filtered), what)
        for value, what in (
            (sigma, "sigma"), (order, "order"), (mode, "mode"), (radius, "radius"),
        )
    ]  # fmt: skip
    out = x
    for axis, width, degree, edge, reach in zip(filtered, *parameters, strict=True):
        if hasattr(width, "grad_fn") or width > 1e-15:
            out = _gaussian(name, out, width, axis, degree, edge, cval, truncate, reach)
    return cast(out, x.dtype, output)


@composite(ref="scipy.ndimage.uniform_filter1d", method=False, smooth=True)
def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Average of neighbours along one axis.

    Parameters
    ----------
    input
        Image, of any number of axes.
    size : int
        Number of neighbours.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int
        By how many places the neighbours are moved against their middle.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.uniform_filter1d(ng.tensor([2.0, 4.0, 8.0]), 2)
    tensor([2., 3., 6.])
    """
    name = "uniform_filter1d"
    weights = _equal(name, size)
    return along_axis(name, input, weights, axis, mode, cval, origin, output)


def _equal(name: str, size: Any) -> Any:
    size = as_index(name, size, "size")
    if size < 1:
        raise NumgradValueError(f"{name}: size must be 1 or more, got {size}")
    return made(np.full(size, 1 / size))


@composite(ref="scipy.ndimage.uniform_filter", method=False, smooth=True)
def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Average of neighbours.

    Parameters
    ----------
    input
        Image, of any number of axes.
    size : int or sequence of ints
        Number of neighbours along all axes or each.
    output : dtype_like
        Dtype of the result; by default that of the image.
    mode : {'reflect', 'constant', 'nearest', 'mirror', 'wrap'}
        How the image goes on beyond its edges, or a sequence of that.
    cval
        What is beyond them in the mode ``"constant"``.
    origin : int or sequence of ints
        By how many places the neighbours are moved against their middle.
    axes : int or sequence of ints
        Axes along which it works; by default all.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.uniform_filter(ng.tensor([[9.0, 0.0], [0.0, 0.0]]), mode="constant")
    tensor([[1., 1.],
            [1., 1.]])
    """
    name = "uniform_filter"
    x = image(input, output)
    filtered = normalize_axes(name, axes, len(x.shape))
    parameters = [
        each(name, value, len(filtered), what)
        for value, what in ((size, "size"), (mode, "mode"), (origin, "origin"))
    ]
    out = x
    for axis, count, edge, shift in zip(filtered, *parameters, strict=True):
        out = along_axis(name, out, _equal(name, count), axis, edge, cval, shift, None)
    return cast(out, x.dtype, output)
