"""Averages of neighbours in images: bell curves and their derivatives, equal weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import flip
from numgrad.operations.images.correlation import along_axis
from numgrad.operations.images.operands import cast, each, image, number
from numgrad.operations.shape import as_index


def _bell(name: str, sigma: Any, order: int, radius: int) -> Any:
    """Weights of a normal density's derivative; ``sigma`` may have a gradient."""
    order = as_index(name, order, "order")
    if order < 0:
        raise NumgradValueError(f"{name}: order must not be negative, got {order}")
    numbers = np.arange(-radius, radius + 1.0)
    places, variance = made(numbers), sigma * sigma
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
        polynomial = OPS["add"](OPS["multiply"](polynomial, places), factor)
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
    found = normalize_axes(name, axes, len(x.shape))
    given = [
        each(name, value, len(found), what)
        for value, what in (
            (sigma, "sigma"), (order, "order"), (mode, "mode"), (radius, "radius"),
        )
    ]  # fmt: skip
    out = x
    for axis, width, degree, edge, reach in zip(found, *given, strict=True):
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
    found = normalize_axes(name, axes, len(x.shape))
    given = [
        each(name, value, len(found), what)
        for value, what in ((size, "size"), (mode, "mode"), (origin, "origin"))
    ]
    out = x
    for axis, count, edge, place in zip(found, *given, strict=True):
        out = along_axis(name, out, _equal(name, count), axis, edge, cval, place, None)
    return cast(out, x.dtype, output)


gaussian_filter1d.calls = [(((4,),), lambda x: gaussian_filter1d(x, 1.0, order=1, radius=2))]
gaussian_filter.calls = [
    (((2, 3), ()), lambda x, s: gaussian_filter(x, s * s + 1, radius=1, mode="mirror"))
]
uniform_filter1d.calls = [(((4,),), lambda x: uniform_filter1d(x, 3))]
uniform_filter.calls = [(((2, 3),), lambda x: uniform_filter(x, (2, 3)))]
