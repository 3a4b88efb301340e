"""Splines through the points of an image: coefficients, and their weights between points.

Note [Spline interpolation]
---------------------------
The value at a coordinate is a sum of coefficients, one for each point nearby, with weights that are
polynomials of the fraction of the coordinate. Orders 0 and 1 take the points themselves for
coefficients. For others these solve a banded linear system, for each pole of which there is a
recurrence forward and one backward; what the recurrences start with stands for the points beyond
the edges. All of this is written with operations, so that there are gradients with respect to
points and coordinates.
"""

from __future__ import annotations

from functools import cache
from math import comb, factorial, sqrt
from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.axis import normalize_axes
from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.images.operands import cast, image, operands
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_index
from numgrad.operations.signal.boundaries import MODES
from numgrad.operations.signal.filters import all_pole

_POLES = {
    0: [],
    1: [],
    2: [sqrt(8) - 3],
    3: [sqrt(3) - 2],
    4: [
        sqrt(664 - sqrt(438976)) + sqrt(304) - 19,
        sqrt(664 + sqrt(438976)) - sqrt(304) - 19,
    ],
    5: [
        sqrt(67.5 - sqrt(4436.25)) + sqrt(26.25) - 6.5,
        sqrt(67.5 + sqrt(4436.25)) - sqrt(26.25) - 6.5,
    ],
}
"""Poles of the recurrences by order of the spline."""

_SYMMETRY = {
    "constant": "mirror",
    "grid-constant": "mirror",
    "wrap": "mirror",
    "mirror": "mirror",
    "nearest": "reflect",
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "grid-wrap": "periodic",
}
"""What coefficients take the points beyond the edges to be, by mode."""


def check(name: str, order: Any, mode: str) -> int:
    """The order of a spline, which exists as the mode does."""
    order = as_index(name, order, "order")
    if order not in _POLES:
        raise NumgradValueError(f"{name}: order is a number from 0 to 5, got {order}")
    if mode not in MODES:
        raise NumgradValueError(f"{name}: mode {mode!r} is none of {', '.join(MODES)}")
    return order


@cache
def polynomials(order: int) -> list[list[float]]:
    """Weights of the points around a coordinate, by powers of the fraction, highest first."""
    return [
        [
            comb(order, power)
            * sum(
                (-1) ** j * comb(order + 1, j) * (order - k - j) ** (order - power)
                for j in range(order - k + 1)
            )
            / factorial(order)
            for power in range(order, -1, -1)
        ]
        for k in range(order + 1)
    ]


def _starts(pole: float, n: int, symmetry: str) -> tuple[np.ndarray, np.ndarray]:
    """Weights of all points that make the first value forward, and the first one backward."""
    forward, backward = np.zeros(n), np.zeros(n)
    powers = pole ** np.arange(2 * n)
    if symmetry == "mirror":
        forward[: n - 1] += powers[: n - 1]
        forward[1:] += powers[n - 1 : 2 * n - 2][::-1]
        forward /= 1 - powers[2 * n - 2]
        backward[-2:] = pole * pole / (pole * pole - 1), pole / (pole * pole - 1)
    elif symmetry == "reflect":
        forward += powers[:n]
        forward += powers[n:][::-1]
        forward *= pole / (1 - powers[n] ** 2)
        forward[0] += 1
        backward[-1] = pole / (pole - 1)
    else:
        forward[0] = 1
        forward[1:] = powers[1:n][::-1]
        forward /= 1 - powers[n]
        backward[:-1], backward[-1] = powers[1:n], 1
        backward *= pole / (powers[n] - 1)
    return forward, backward


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """Coefficients of the spline through points along an axis."""
    n = x.shape[axis]
    if n == 1 or 0 in x.shape:
        return x
    n = int(n)
    kind = np.float32 if x.dtype in (np.float32, np.complex64) else np.float64
    multiply = OPS["multiply"]
    lead = (slice(None),) * axis
    shape = [1] * len(x.shape)
    shape[axis] = n

    def weighted(x: Any, weights: np.ndarray) -> Any:
        return OPS["sum"](
            multiply(x, made(weights.astype(kind).reshape(shape))), axis=axis, keepdims=True
        )

    for pole in _POLES[order]:
        x = multiply(x, (1 - pole) * (1 - 1 / pole))
    for pole in _POLES[order]:
        forward, backward = _starts(pole, n, _SYMMETRY[mode])
        factor = made(np.array([-pole], kind))
        x = concat(weighted(x, forward), getitem(x, (*lead, slice(1, None))), axis=axis)
        x = all_pole(x, factor, axis=axis)
        rest = multiply(getitem(x, (*lead, slice(0, n - 1))), -pole)
        x = all_pole(
            concat(rest, weighted(x, backward), axis=axis), factor, axis=axis, reverse=True
        )
    return x


@composite(ref="scipy.ndimage.spline_filter1d", method=False, smooth=True)
def spline_filter1d(input, order=3, axis=-1, output=np.float64, mode="mirror"):
    """Coefficients of the spline through points along one axis.

    Parameters
    ----------
    input
        Image, of any number of axes.
    order : int
        Order of the spline, up to 5.
    output : dtype_like
        Dtype of the result; None is that of the image.
    mode : {'mirror', 'reflect', 'grid-wrap', ...}
        How the image goes on beyond its edges.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.spline_filter1d(ng.tensor([1.0, 1.0, 1.0, 1.0]), 3).round(12)
    tensor([1., 1., 1., 1.])
    """
    return _filtered("spline_filter1d", input, order, (axis,), output, mode)


@composite(ref="scipy.ndimage.spline_filter", method=False, smooth=True)
def spline_filter(input, order=3, output=np.float64, mode="mirror"):
    """Coefficients of the spline through the points of an image.

    Parameters
    ----------
    input
        Image, of any number of axes.
    order : int
        Order of the spline, from 2 to 5.
    output : dtype_like
        Dtype of the result; None is that of the image.
    mode : {'mirror', 'reflect', 'grid-wrap', ...}
        How the image goes on beyond its edges.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.spline_filter(ng.ones((2, 2))).round(12)
    tensor([[1., 1.],
            [1., 1.]])
    """
    if as_index("spline_filter", order, "order") < 2:
        raise NumgradValueError(f"spline_filter: order is a number from 2 to 5, got {order}")
    return _filtered("spline_filter", input, order, None, output, mode)


def _filtered(name: str, x: Any, order: Any, axes: Any, output: Any, mode: str) -> Any:
    order = check(name, order, mode)
    x, _, wanted = operands(image(x, output), np.ones(1))
    for axis in normalize_axes(name, axes, len(x.shape)):
        x = coefficients(x, order, axis, mode)
    if output is not None and x.dtype.kind == "c":
        output = np.result_type(output, np.complex64)
    return cast(x, wanted, output)


spline_filter1d.calls = [
    (((2, 3),), lambda x: spline_filter1d(x, 3, 1, mode="reflect")),
    (((4,),), lambda x: spline_filter1d(x, 2, mode="grid-wrap")),
]
spline_filter.calls = [(((2, 3),), lambda x: spline_filter(x, 5))]
