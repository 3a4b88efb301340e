"""Values of images between their points, by splines, and images moved by that.

Note [Spline interpolation]
---------------------------
The value at a coordinate is a sum of coefficients, one for each point nearby, with weights that are
polynomials of the fraction of the coordinate. Orders 0 and 1 take the points themselves for
coefficients. For others these solve a banded linear system, for each pole of which there is a
recurrence forward and one backward; what the recurrences start with stands for the points beyond
the edges. All of this is written with operations, so that there are gradients with respect to
points and coordinates.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import comb, factorial, prod, sqrt
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, composite, made, normalize_axes
from numgrad.errors import NumgradValueError
from numgrad.operations.extend import pad_constant
from numgrad.operations.images.operands import MODES, cast, each, extended, image, number, operands
from numgrad.operations.index import getitem
from numgrad.operations.join import concat
from numgrad.operations.shape import as_index, as_operand, reshape
from numgrad.operations.signal.filters import all_pole
from numgrad.operations.take import take

_POLES = {
    0: [],
    1: [],
    2: [sqrt(8) - 3],
    3: [sqrt(3) - 2],
    4: [sqrt(664 - sqrt(438976)) + sqrt(304) - 19, sqrt(664 + sqrt(438976)) - sqrt(304) - 19],
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
"""Mode -> the continuation beyond the edges that coefficients assume."""


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


_MARGIN = 12
"""Points added where coefficients cannot know exactly what is beyond the edges."""

Taps = list[tuple[Any, Any]]


def _constant(value: Any) -> Any:
    return made(value) if isinstance(value, np.ndarray) else value


def _mapped(c: Any, n: int, mode: str) -> tuple[Any, Any]:
    """A coordinate where the mode changes it, and whether it lies inside if that matters."""
    if mode == "constant":
        inside = (c >= 0) & (c <= n - 1)
        return np.where(inside, c, 0.0), inside
    if mode == "wrap":  # the last point stands for the first one
        if n == 1:
            return c * 0, None
        period = n - 1
        below = c + period * (np.trunc(-c / period) + 1)
        above = c - period * np.trunc(c / period)
        return np.where(c < 0, below, np.where(c > period, above, c)), None
    return c, None


def _place(index: Any, n: int, mode: str) -> Any:
    """The point that stands for one at an index which may lie beyond the edges."""
    if mode == "nearest":
        return np.clip(index, 0, n - 1)
    if mode == "grid-constant":  # there is a margin of one
        return np.clip(index, -1, n) + 1
    if mode == "grid-wrap":
        return index % n
    if mode in ("reflect", "grid-mirror"):
        index = index % (2 * n)
        return np.minimum(index, 2 * n - 1 - index)
    if n == 1:
        return index * 0
    index = index % (2 * n - 2)
    return np.minimum(index, 2 * n - 2 - index)


def _taps(c: Any, n: int, order: int, mode: str, kind: Any) -> tuple[Taps, Any]:
    """The points around a coordinate with their weights, and whether it lies inside."""
    c, inside = _mapped(c, n, mode)
    if order % 2 == 0:
        c = c + 0.5
    start = np.floor(c).astype(np.int64)
    fraction = c - start
    if fraction.dtype != kind:
        fraction = fraction.astype(kind)
    results: Taps = []
    for k, (highest, *rest) in enumerate(polynomials(order)):
        weight: Any = highest
        for factor in rest:
            weight = weight * fraction + factor
        results.append((_constant(_place(start + (k - order // 2), n, mode)), _constant(weight)))
    return results, None if inside is None else _constant(inside)


def _prepared(
    name: str, x: Any, output: Any, order: Any, mode: str, cval: Any, prefilter: bool
) -> tuple[Any, int, int, np.dtype]:
    """Coefficients, how many were added in front, the order, and the dtype of the result."""
    order = check(name, order, mode)
    x, _, wanted = operands(image(x, output), np.ones(1))
    if not len(x.shape):
        raise NumgradValueError(f"{name}: the operand has no axis")
    ndim, margin = len(x.shape), 0
    if 0 in x.shape:
        raise NumgradValueError(f"{name}: there are no points, shape {tuple(x.shape)}")
    if prefilter and order > 1:
        if mode in ("nearest", "grid-constant"):
            margin = _MARGIN
            x = extended(name, x, [(margin, margin)] * ndim, [mode] * ndim, cval)
        for axis in range(ndim):
            x = coefficients(x, order, axis, mode)
    return x, margin, order, wanted


def _with_margin(x: Any, mode: str, cval: Any) -> Any:
    if mode != "grid-constant":
        return x
    return pad_constant(x, widths=((1, 1),) * len(x.shape), values=cval)


def _finished(out: Any, insides: Sequence[Any], cval: Any, dtype: np.dtype, output: Any) -> Any:
    inside: Any = None
    for mask in insides:
        if mask is not None:
            inside = mask if inside is None else OPS["logical_and"](inside, mask)
    if inside is not None:
        out = OPS["where"](inside, out, cval)
        if out.dtype.kind != "c" and out.dtype != dtype and dtype.kind == "f":
            out = OPS["astype"](out, dtype=dtype)
    kind = dtype if output is None else np.dtype(output)
    if kind.kind in "iu":  # the nearest integer, halves away from 0
        out = OPS["multiply"](OPS["sign"](out), OPS["floor"](OPS["add"](OPS["absolute"](out), 0.5)))
    return cast(out, dtype, output)


def _scattered(
    name: str, x: Any, coordinates: Sequence[Any], order: Any, mode: str, cval: Any,
    prefilter: bool, output: Any,
) -> Any:  # fmt: skip
    """Values at any coordinates, which broadcast."""
    x, margin, order, wanted = _prepared(name, x, output, order, mode, cval, prefilter)
    kind = np.float32 if x.dtype in (np.float32, np.complex64) else np.float64
    result, insides = [], []
    for c, n in zip(coordinates, x.shape, strict=True):
        if c.dtype.kind not in "f":
            c = c.astype(np.float64)
        taps, inside = _taps(c + margin if margin else c, int(n), order, mode, kind)
        result.append(taps)
        insides.append(inside)
    x = _with_margin(x, mode, cval)
    flat = reshape(x, (-1,))
    strides = [prod(x.shape[axis + 1 :]) for axis in range(len(x.shape))]
    out: Any = None
    for combination in product(*result):
        index: Any = 0
        weight: Any = None
        for (position, factor), stride in zip(combination, strides, strict=True):
            index = OPS["add"](index, OPS["multiply"](position, int(stride)))
            weight = factor if weight is None else OPS["multiply"](weight, factor)
        term = take(flat, index)
        if order:
            term = OPS["multiply"](term, weight)
        out = term if out is None else OPS["add"](out, term)
    return _finished(out, insides, cval, wanted, output)


def _gridded(
    name: str, x: Any, coordinates: Sequence[Any], order: Any, mode: str, cval: Any,
    prefilter: bool, output: Any,
) -> Any:  # fmt: skip
    """Values on the grid that coordinates along each axis span."""
    x, margin, order, wanted = _prepared(name, x, output, order, mode, cval, prefilter)
    kind = np.float32 if x.dtype in (np.float32, np.complex64) else np.float64
    lengths = [int(n) for n in x.shape]
    out, insides = _with_margin(x, mode, cval), []
    for axis, (c, n) in enumerate(zip(coordinates, lengths, strict=True)):
        taps, inside = _taps(c + margin if margin else c, n, order, mode, kind)
        shape = [1] * len(lengths)
        shape[axis] = -1
        total: Any = None
        for indices, weight in taps:
            term = take(out, indices, axis=axis)
            if order:
                term = OPS["multiply"](term, reshape(weight, tuple(shape)))
            total = term if total is None else OPS["add"](total, term)
        out = total
        insides.append(None if inside is None else reshape(inside, tuple(shape)))
    return _finished(out, insides, cval, wanted, output)


@composite(ref="scipy.ndimage.map_coordinates", method=False)
def map_coordinates(
    input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True
):
    """Values of an image at any coordinates; there are gradients of both.

    Parameters
    ----------
    input
        Image, of any number of axes.
    coordinates
        Along the first axis a coordinate for each axis of the image.
    output : dtype_like
        Dtype of the result; by default that of the image.
    order : int
        Order of the spline: 0 takes the nearest point, 1 is linear, at most 5.
    mode : {'constant', 'nearest', 'mirror', 'reflect', 'wrap', 'grid-constant', 'grid-wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    prefilter : bool
        Whether the image has points; else it has coefficients made by ``spline_filter``.

    Returns
    -------
    Tensor
        Of the shape of ``coordinates`` without its first axis.

    Examples
    --------
    >>> at = ng.tensor([[0.5, 1.5]], requires_grad=True)
    >>> y = ng.ndimage.map_coordinates(ng.tensor([0.0, 1.0, 4.0]), at, order=1)
    >>> y.detach()
    tensor([0.5, 2.5])
    >>> y.sum().backward()
    >>> at.grad
    tensor([[1., 3.]])
    """
    name = "map_coordinates"
    x, at = as_operand(input), as_operand(coordinates)
    if at.dtype.kind == "c":
        raise NumgradValueError(f"{name}: coordinates are complex, they must be real")
    if not len(at.shape) or at.shape[0] != len(x.shape):
        raise NumgradValueError(
            f"{name}: coordinates of shape {tuple(at.shape)} for an image of shape "
            f"{tuple(x.shape)}; their first axis has a place for each axis of the image"
        )
    rows = [getitem(at, (axis,)) if _recorded(at) else at[axis] for axis in range(len(x.shape))]
    rows = [np.asarray(row) if isinstance(row, np.generic) else row for row in rows]
    return _scattered(name, x, rows, order, mode, cval, prefilter, output)


def _recorded(x: Any) -> bool:
    return not isinstance(x, np.ndarray)


@composite(ref="scipy.ndimage.shift", method=False)
def ndimage_shift(input, shift, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """An image moved by any distances, which may have a gradient.

    Parameters
    ----------
    input
        Image, of any number of axes.
    shift
        Distance, for all axes or for each.
    output : dtype_like
        Dtype of the result; by default that of the image.
    order : int
        Order of the spline: 0 takes the nearest point, 1 is linear, at most 5.
    mode : {'constant', 'nearest', 'mirror', 'reflect', 'wrap', 'grid-constant', 'grid-wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    prefilter : bool
        Whether the image has points; else it has coefficients made by ``spline_filter``.

    Returns
    -------
    Tensor
        Of the shape of the image.

    Examples
    --------
    >>> ng.ndimage.shift(ng.tensor([0.0, 1.0, 4.0, 9.0]), 0.5, order=1)
    tensor([0. , 0.5, 2.5, 6.5])
    """
    x = as_operand(input)
    distances = _for_axes("shift", shift, len(x.shape), "shift")
    grid = [
        OPS["subtract"](made(np.arange(float(int(n)))), d) if _recorded(d) and hasattr(d, "shape")
        else np.arange(float(int(n))) - d
        for n, d in zip(x.shape, distances, strict=True)
    ]  # fmt: skip
    return _gridded("shift", x, grid, order, mode, cval, prefilter, output)


def _for_axes(name: str, value: Any, ndim: int, what: str) -> list[Any]:
    if hasattr(value, "shape") and len(value.shape):
        if len(value.shape) != 1 or value.shape[0] != ndim:
            raise NumgradValueError(
                f"{name}: {what} of shape {tuple(value.shape)} for an image of {ndim} axes"
            )
        return [getitem(value, (k,)) if _recorded(value) else value[k] for k in range(ndim)]
    return each(name, value, ndim, what)


@composite(ref="scipy.ndimage.zoom", method=False, smooth=True)
def zoom(
    input, zoom, output=None, order=3, mode="constant", cval=0.0, prefilter=True, *,
    grid_mode=False,
):  # fmt: skip
    """An image with more points, or fewer, between its corners.

    Parameters
    ----------
    input
        Image, of any number of axes.
    zoom : float or sequence of floats
        Factor of the number of points along all axes or each.
    output : dtype_like
        Dtype of the result; by default that of the image.
    order : int
        Order of the spline: 0 takes the nearest point, 1 is linear, at most 5.
    mode : {'constant', 'nearest', 'mirror', 'reflect', 'wrap', 'grid-constant', 'grid-wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    prefilter : bool
        Whether the image has points; else it has coefficients made by ``spline_filter``.

    grid_mode : bool
        Whether a point stands for the middle of a cell, and the edges of the first and last cell
        stay where they are; else the first and last points do.

    Returns
    -------
    Tensor
        Of the lengths of the image times ``zoom``, rounded.

    Examples
    --------
    >>> ng.ndimage.zoom(ng.tensor([0.0, 1.0, 4.0]), 5 / 3, order=1)
    tensor([0. , 0.5, 1. , 2.5, 4. ])
    """
    x = as_operand(input)
    factors = [number(z) for z in each("zoom", zoom, len(x.shape), "zoom")]
    grid = []
    for n, factor in zip(x.shape, factors, strict=True):
        n = int(n)
        count = round(n * factor)
        if count < 1:
            raise NumgradValueError(
                f"zoom: zoom={zoom!r} leaves nothing of an image of shape {tuple(x.shape)}"
            )
        if grid_mode:
            grid.append((np.arange(count) + 0.5) * (n / count) - 0.5)
            continue
        step = (n - 1) / (count - 1) if count > 1 else 1.0
        grid.append(np.minimum(np.arange(count) * step, n - 1))
    return _gridded("zoom", x, grid, order, mode, cval, prefilter, output)


@composite(ref="scipy.ndimage.affine_transform", method=False, smooth=True)
def affine_transform(
    input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode="constant", cval=0.0,
    prefilter=True,
):  # fmt: skip
    """An image whose points are read at ``matrix @ point + offset``; these may have gradients.

    Parameters
    ----------
    input
        Image, of any number of axes.
    matrix
        Matrix, or its diagonal; with the offset as a further column, and a last row of zeros and 1.
    offset
        Where the first point is read, for all axes or for each.
    output_shape : tuple of ints
        Shape of the result; by default that of the image.
    output : dtype_like
        Dtype of the result; by default that of the image.
    order : int
        Order of the spline: 0 takes the nearest point, 1 is linear, at most 5.
    mode : {'constant', 'nearest', 'mirror', 'reflect', 'wrap', 'grid-constant', 'grid-wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    prefilter : bool
        Whether the image has points; else it has coefficients made by ``spline_filter``.

    Returns
    -------
    Tensor
        Of the shape asked for.

    Examples
    --------
    >>> turned = [[0.0, 1.0], [-1.0, 0.0]]
    >>> image = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.ndimage.affine_transform(image, turned, offset=[0, 1], order=1)
    tensor([[2., 4.],
            [1., 3.]])
    """
    name = "affine_transform"
    x, matrix = as_operand(input), as_operand(matrix)
    ndim = len(x.shape)
    shape = tuple(x.shape if output_shape is None else output_shape)
    if len(matrix.shape) == 2 and tuple(matrix.shape) in ((ndim, ndim + 1), (ndim + 1, ndim + 1)):
        offset = getitem(matrix, (slice(0, ndim), ndim))
        matrix = getitem(matrix, (slice(0, ndim), slice(0, ndim)))
    if tuple(matrix.shape) not in ((ndim,), (ndim, len(shape))):
        raise NumgradValueError(
            f"{name}: a matrix of shape {tuple(matrix.shape)} for an image of shape "
            f"{tuple(x.shape)} and a result of shape {shape}; it has a row for each axis of the "
            "image and a column for each of the result"
        )
    shape = tuple([int(n) for n in shape])
    offsets = _for_axes(name, offset, ndim, "offset")
    if len(matrix.shape) == 1:
        factors = _for_axes(name, matrix, ndim, "matrix")
        grid = []
        for n, factor, start in zip(shape, factors, offsets, strict=True):
            points = made(np.arange(float(n)))
            grid.append(OPS["add"](OPS["multiply"](points, factor), start))
        return _gridded(name, x, grid, order, mode, cval, prefilter, output)
    rows = []
    for k, row in enumerate(offsets):
        for axis, points in enumerate(_grid(shape)):  # in SciPy's order, for the same rounding
            row = OPS["add"](row, OPS["multiply"](getitem(matrix, (k, axis)), made(points)))
        rows.append(row)
    return _scattered(name, x, rows, order, mode, cval, prefilter, output)


@composite(ref="scipy.ndimage.rotate", method=False, smooth=True)
def rotate(
    input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode="constant", cval=0.0,
    prefilter=True,
):  # fmt: skip
    """An image turned about its middle; the angle may have a gradient.

    Parameters
    ----------
    input
        Image, of two axes or more.
    angle
        Angle in degrees.
    axes : pair of ints
        The axes of the plane in which it turns.
    reshape : bool
        Whether the result is large enough for the whole of it.
    output : dtype_like
        Dtype of the result; by default that of the image.
    order : int
        Order of the spline: 0 takes the nearest point, 1 is linear, at most 5.
    mode : {'constant', 'nearest', 'mirror', 'reflect', 'wrap', 'grid-constant', 'grid-wrap'}
        How the image goes on beyond its edges.
    cval
        What is beyond them in the mode ``"constant"``.
    prefilter : bool
        Whether the image has points; else it has coefficients made by ``spline_filter``.

    Returns
    -------
    Tensor
        Of the shape of the image, or of one that holds it all.

    Examples
    --------
    >>> ng.ndimage.rotate(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 90, order=1).round(12)
    tensor([[2., 4.],
            [1., 3.]])
    """
    name = "rotate"
    x = as_operand(input)
    ndim = len(x.shape)
    if len(axes) != 2 or ndim < 2:
        raise NumgradValueError(
            f"{name}: axes={axes!r} of an image of shape {tuple(x.shape)}; give two of them"
        )
    indices = [as_index(name, a) for a in axes]
    if any(not -ndim <= a < ndim for a in indices) or len({a % ndim for a in indices}) < 2:
        raise NumgradValueError(f"{name}: axes={axes!r} of an image of shape {tuple(x.shape)}")
    first, second = sorted(a % ndim for a in indices)
    sizes = [int(n) for n in x.shape]
    plane = np.array([sizes[first], sizes[second]])
    radians = angle * (np.pi / 180)
    c, s = np.cos(radians), np.sin(radians)
    if not hasattr(angle, "grad_fn"):  # exact at multiples of 90 degrees
        import scipy.special

        c, s = scipy.special.cosdg(angle), scipy.special.sindg(angle)
    if reshape:
        cosine, sine = number(c), number(s)
        corners = np.array([[cosine, sine], [-sine, cosine]]) @ [
            [0, 0, plane[0], plane[0]],
            [0, plane[1], 0, plane[1]],
        ]
        wanted = (np.ptp(corners, axis=1) + 0.5).astype(int)
    else:
        wanted = plane
    middle, centre = (wanted - 1) / 2, (plane - 1) / 2
    sizes[first], sizes[second] = wanted.tolist()
    axis = _grid(sizes)
    down, right = made(axis[first] - middle[0]), made(axis[second] - middle[1])
    add, multiply = OPS["add"], OPS["multiply"]
    rows: list[Any] = list(axis)
    rows[first] = add(add(multiply(c, down), multiply(s, right)), centre[0])
    rows[second] = add(add(multiply(-s, down), multiply(c, right)), centre[1])
    return _scattered(name, x, rows, order, mode, cval, prefilter, output)


def _grid(shape: Sequence[int]) -> list[np.ndarray]:
    """Coordinates along each axis, which broadcast."""
    ones = [1] * len(shape)
    return [
        np.arange(float(n)).reshape([*ones[:k], n, *ones[k + 1 :]]) for k, n in enumerate(shape)
    ]


map_coordinates.kink(
    input=([0.0, 1.0, 3.0], [0, 1, 0]), coordinates=([[1.0]], [[2]]), params={"order": 1}
)
ndimage_shift.kink(input=([0.0, 1.0, 3.0], [1, 1, 0]), shift=(1.0, -3), params={"order": 1})
