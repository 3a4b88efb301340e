"""Interpolation on regular grids of any number of axes, and of one axis by kind.

Note [Local tensor products]
----------------------------
A value on a grid depends on the points around its place: along each axis some indices and weights.
The block of all their combinations is gathered at once, and contracted with the weights of one axis
after the other, so that gradients in values, grid and places are those of a gather and of products.
Splines take coefficients in place of values, by one banded system along each axis. PCHIP is not
linear in values: its slopes along an axis are of what the axes behind it gave, for each place.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from numgrad.errors import NumgradNotImplementedError, NumgradTypeError, NumgradValueError
from numgrad.interpolate.bsplines import make_interp_spline, piece_of, weights
from numgrad.interpolate.piecewise import (
    PPoly,
    applied,
    column,
    container,
    data,
    hermite_pieces,
    known,
    monotone_slopes,
    ordered,
    place_axis,
    tensor,
)
from numgrad.operations.choice import where
from numgrad.operations.selecting import searchsorted
from numgrad.operations.shape import as_index, as_operand, reshape
from numgrad.operations.sorting import argsort
from numgrad.operations.take import take, take_along_axis

_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}
_METHODS = ("linear", "nearest", *_DEGREES, "pchip")


@container("grid", "values", "fill_value", "_spline")
class RegularGridInterpolator:
    """Interpolant of values on a grid whose axes are spaced in any way.

    Parameters
    ----------
    points : sequence of array_like
        Coordinates along each axis, strictly increasing or decreasing.
    values : array_like
        Values on the grid, real or complex, with any further axes behind.
    method : {'linear', 'nearest', 'slinear', 'cubic', 'quintic', 'pchip'}
        The kind of interpolant; splines need more points than their degree along each axis.
    bounds_error : bool
        Whether a place outside of the grid raises; in a compiled function or a batch, where places
        have no numbers, it gets ``fill_value``.
    fill_value : float
        Value outside where that does not raise; None extrapolates.
    solver, solver_args
        Of SciPy's for systems that are solved along each axis here: only None.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, or a place lies outside with ``bounds_error``.

    Notes
    -----
    Results are Tensors, with gradients in points, values and places: Note [Local tensor products].

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x, y = np.arange(4.0), np.arange(5.0)
    >>> table = ng.interpolate.RegularGridInterpolator((x, y), np.outer(x, y))
    >>> table([[1.5, 2.0], [0.5, 0.5]])
    tensor([3.  , 0.25])
    >>> ng.grad(lambda p: table(p, method="cubic")[0])(np.array([1.5, 2.0]))
    array([2. , 1.5])
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        if solver is not None or solver_args:
            raise NumgradNotImplementedError(
                "RegularGridInterpolator: systems are solved along each axis here, which takes no "
                "solver; leave it out"
            )
        values = tensor("RegularGridInterpolator", values, "values")
        if len(points) > len(values.shape):
            raise NumgradValueError(
                f"RegularGridInterpolator: points for {len(points)} axes, but values of shape "
                f"{tuple(values.shape)}"
            )
        grid = []
        for axis, each in enumerate(points):
            x = tensor("RegularGridInterpolator", each, "points", real=True)
            numbers, flips = known(x), None
            if len(x.shape) == 1 and x.shape[0] > 1:
                flips = x[0] > x[-1] if numbers is None else numbers[0] > numbers[-1]
            if numbers is not None and flips:
                x = applied(np.flip, x, 0)
            x = ordered("RegularGridInterpolator", x, f"along axis {axis}", least=1)
            if x.shape[0] != values.shape[axis]:
                raise NumgradValueError(
                    f"RegularGridInterpolator: {x.shape[0]} points along axis {axis} for values of "
                    f"shape {tuple(values.shape)}"
                )
            if numbers is None and flips is not None:  # its direction is known at the call
                order = np.abs(np.arange(x.shape[0]) - where(flips, x.shape[0] - 1, 0))
                x, values = take(x, order), take(values, order, axis=axis)
            elif flips:
                values = np.flip(values, axis)
            grid.append(x)
        self.grid, self.values = tuple(grid), values
        self.method, self.bounds_error = method, bool(bounds_error)
        self.fill_value = None if fill_value is None else as_operand(fill_value)
        if self.fill_value is not None and not np.can_cast(
            self.fill_value.dtype, values.dtype, "same_kind"
        ):
            raise NumgradValueError(
                f"RegularGridInterpolator: a fill_value of dtype {self.fill_value.dtype} does not "
                f"go into values of dtype {values.dtype}"
            )
        self._spline = self._prepared(method)

    def _prepared(self, method: str) -> Any:
        """Knots and coefficients of a spline; None for other methods."""
        if method not in _METHODS:
            raise NumgradValueError(
                f"RegularGridInterpolator: method {method!r} is none of {', '.join(_METHODS)}"
            )
        if method == "pchip" and self.values.dtype.kind == "c":
            raise NumgradTypeError(
                "RegularGridInterpolator: pchip takes real values; interpolate real and imaginary "
                "part"
            )
        k = _DEGREES.get(method, 3 if method == "pchip" else 0)
        for axis, x in enumerate(self.grid):
            if x.shape[0] <= k:
                raise NumgradValueError(
                    f"RegularGridInterpolator: method {method!r} needs {k + 1} points along each "
                    f"axis, got {x.shape[0]} along axis {axis}"
                )
        if method not in _DEGREES:
            return None
        knots, c = [], self.values
        for axis, x in enumerate(self.grid):
            spline = make_interp_spline(x, c, k, axis=axis)
            knots.append(spline.t)
            c = np.moveaxis(spline.c, 0, axis)
        return tuple(knots), c

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """Values at places.

        Parameters
        ----------
        xi : array_like of shape (..., axes), or a tuple of arrays
            Places, to which gradients go; a tuple has coordinates along each axis, which broadcast.
        method : str
            Another kind of interpolant.
        nu : sequence of int
            Orders of derivatives along each axis, of splines.

        Returns
        -------
        Tensor
            With the axes of places, then the further axes of values.
        """
        chosen = self.method if method is None else method
        spline = self._spline if chosen == self.method else self._prepared(chosen)
        if nu is not None and (spline is None or len(nu) != len(self.grid) or min(nu) < 0):
            raise NumgradValueError(
                f"RegularGridInterpolator: nu has an order for each axis, of "
                f"{', '.join(_DEGREES)}; got {nu!r} for method {chosen!r}"
            )
        xi, shape = self._places(xi)
        beyond = [(x < p[0]) | (x > p[-1]) for x, p in zip(xi, self.grid, strict=True)]
        unknown = any(known(outside) is None for outside in beyond)
        if self.bounds_error:
            for axis, outside in enumerate(beyond):
                if known(outside) is not None and np.any(known(outside)):
                    raise NumgradValueError(
                        f"RegularGridInterpolator: a place lies outside of the grid along axis "
                        f"{axis}; bounds_error=False gives fill_value, or extrapolates if that is "
                        "None"
                    )
        trailing = tuple(self.values.shape[len(self.grid) :])
        ndim = 1 + len(trailing)
        outside, lost = reduce(or_, beyond), reduce(or_, map(np.isnan, xi))
        fills = self.fill_value is not None and (unknown or not self.bounds_error)
        if fills:
            xi = [where(outside, p[0], x) for x, p in zip(xi, self.grid, strict=True)]
        if chosen == "pchip":
            out = self._monotone(xi)
        else:
            k = _DEGREES.get(chosen, 1)
            knots, c = spline or (self.grid, self.values)
            orders = [0] * len(xi) if nu is None else nu
            taps = [
                _nearest(x, t) if chosen == "nearest" else _linear(x, t) if spline is None
                else _local(x, t, k, order)
                for x, t, order in zip(xi, knots, orders, strict=True)
            ]  # fmt: skip
            out = contracted(c, taps)
        if fills:
            out = where(column(outside, ndim), self.fill_value, out)
        out = where(column(lost, ndim), np.nan, out)
        return reshape(out, (*shape, *trailing))

    def _places(self, xi: Any) -> tuple[list[Any], tuple]:
        """Coordinates along each axis, in rows, and the shape of the places."""
        count, one = len(self.grid), isinstance(xi, tuple) and len(xi) > 1
        if isinstance(xi, tuple):
            parts = np.broadcast_arrays(*[tensor("xi", x, "xi", real=True) for x in xi])
            xi = np.stack(parts, axis=-1)
        xi = tensor("RegularGridInterpolator", xi, "xi", real=True)
        if len(xi.shape) == 1 and not one:
            xi = xi[:, None] if count == 1 else xi[None]
        if not len(xi.shape) or xi.shape[-1] != count:
            raise NumgradValueError(
                f"RegularGridInterpolator: places of shape {tuple(xi.shape)} for a grid of {count} "
                "axes; the last axis has a coordinate for each"
            )
        flat = reshape(xi, (-1, count))
        return [flat[:, axis] for axis in range(count)], tuple(xi.shape[:-1])

    def _monotone(self, xi: list[Any]) -> Any:
        """PCHIP along one axis after the other, the last one first."""
        count, values = len(xi), self.values
        values = np.moveaxis(values, count - 1, 0)
        values = PPoly.construct_fast(_monotone_pieces(self.grid[-1], values), self.grid[-1])(
            xi[-1]
        )
        # now (places, the other axes, trailing); from here on each place has values of its own
        values = np.moveaxis(values, 0, count - 1)
        for axis in range(count - 2, -1, -1):
            x, place = self.grid[axis], xi[axis]
            c = _monotone_pieces(x, np.moveaxis(values, axis, 0))
            piece = np.clip(searchsorted(x, place, side="right") - 1, 0, x.shape[0] - 2)
            lead, tail = [1] * (1 + axis), [1] * (len(c.shape) - 3 - axis)
            own = take_along_axis(c, reshape(piece, (1, *lead, -1, *tail)), axis=1)[:, 0]
            h = reshape(place - take(x, piece), (*[1] * axis, -1, *tail))
            values = ((own[0] * h + own[1]) * h + own[2]) * h + own[3]
        return values


def _monotone_pieces(x: Any, y: Any) -> Any:
    """Coefficients along the first axis of the values."""
    return hermite_pieces(x, y, monotone_slopes(x, y))


def _linear(x: Any, p: Any) -> tuple[Any, Any]:
    """Indices and weights of the two points around each place."""
    if p.shape[0] == 1:
        return np.zeros((1, 1), np.int64) + 0 * searchsorted(p, x)[:, None], 0.0 * x[:, None] + 1.0
    piece = np.clip(searchsorted(p, x, side="right") - 1, 0, p.shape[0] - 2)
    left, right = take(p, piece), take(p, piece + 1)
    fraction = (x - left) / (right - left)
    return piece[:, None] + np.arange(2), np.stack([1.0 - fraction, fraction], axis=1)


def _nearest(x: Any, p: Any) -> tuple[Any, Any]:
    """Index of the nearest point, the one before where two are as near."""
    index, w = _linear(x, p)
    if p.shape[0] > 1:
        index = index[:, :1] + (w[:, 1:] > 0.5)
    return index, np.ones((1, 1))


def _local(x: Any, t: Any, k: int, nu: int) -> tuple[Any, Any]:
    """Indices and weights of the coefficients of a spline."""
    piece = piece_of(t, k, x)
    return piece[:, None] + np.arange(-k, 1), weights(t, k, x, piece, nu)


def contracted(c: Any, taps: Sequence[tuple[Any, Any]]) -> Any:
    """Sums of products of array elements and weights: Note [Local tensor products]."""
    count = len(taps)
    trailing = tuple(c.shape[count:])
    place: Any = 0
    for axis, (index, _) in enumerate(taps):
        index = reshape(index, (-1, *[1] * axis, index.shape[1], *[1] * (count - 1 - axis)))
        place = place * c.shape[axis] + index
    block = take(reshape(c, (-1, *trailing)), place, axis=0)
    for axis in range(count - 1, -1, -1):
        w = taps[axis][1]
        w = reshape(w, (-1, *[1] * axis, w.shape[1], *[1] * len(trailing)))
        block = np.sum(block * w, axis=1 + axis)
    return block


def interpn(
    points: Sequence[Any],
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Values on a regular grid at places, as ``RegularGridInterpolator`` gives them.

    Parameters
    ----------
    points : sequence of array_like
        Coordinates along each axis.
    values : array_like
        Values on the grid.
    xi : array_like
        Places.
    method : str
        The kind of interpolant.
    bounds_error : bool
        Whether a place outside of the grid raises.
    fill_value : float
        Value outside; None extrapolates.

    Returns
    -------
    Tensor
        With the axes of places, then the further axes of values.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = np.arange(3.0)
    >>> ng.interpolate.interpn((x, x), np.add.outer(x, x), [[0.5, 1.0]])
    tensor([1.5])
    """
    if method == "splinef2d":
        raise NumgradValueError(f"interpn: method {method!r} is none of {', '.join(_METHODS)}")
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


# ---------------------------------------------------------------------------------------- one axis

_KINDS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")


@container("x", "y", "fill_value", "_function")
class interp1d:
    """Interpolant along one axis by kind.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, in any order.
    y : array_like
        Values, real or complex, with ``n`` along ``axis``.
    kind : str or int
        ``'linear'``, ``'nearest'`` (down where two are as near), ``'nearest-up'``, ``'previous'``,
        ``'next'``, or a spline: ``'zero'``, ``'slinear'``, ``'quadratic'``, ``'cubic'``, a degree.
    axis : int
        The axis of ``y`` that belongs to the points.
    copy : bool
        Taken for SciPy's sake.
    bounds_error : bool
        Whether a place outside raises; by default unless ``fill_value`` is ``'extrapolate'``.
    fill_value : float, pair or 'extrapolate'
        Value outside, or those before and behind the points.
    assume_sorted : bool
        Whether points are in ascending order already.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, points are equal, or a place lies outside with ``bounds_error``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.interp1d([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])([0.5, 1.5])
    tensor([0.5, 2.5])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        x, y = tensor("interp1d", x, "x", real=True), tensor("interp1d", y, "y")
        fill: Any = fill_value
        if len(x.shape) == 1 and not assume_sorted:
            order = argsort(x)
            if len(y.shape) and y.shape[axis] == x.shape[0]:
                x, y = applied(np.sort, x), take(y, order, axis=axis)
        spline = kind not in ("linear", *_STEPS)
        if spline and not isinstance(kind, int | np.integer) and kind not in _KINDS:
            raise NumgradValueError(
                f"interp1d: kind {kind!r} is none of linear, {', '.join((*_STEPS, *_KINDS))} and "
                "no degree"
            )
        k = 0
        if spline:
            k = _KINDS[kind] if isinstance(kind, str) else as_index("interp1d", kind, "kind")
        x = ordered("interp1d", x, least=k + 1)
        first, self.axis = data("interp1d", x, y, axis)
        extrapolate = isinstance(fill_value, str)
        if extrapolate and fill_value != "extrapolate":
            raise NumgradValueError(f"interp1d: fill_value {fill_value!r} is not 'extrapolate'")
        if extrapolate and bounds_error:
            raise NumgradValueError("interp1d: cannot extrapolate and raise outside of the points")
        self.bounds_error = not extrapolate if bounds_error is None else bool(bounds_error)
        if not extrapolate and not isinstance(fill, tuple):
            fill = (fill, fill)
        if extrapolate and kind in ("previous", "next"):
            extrapolate = False
            fill = (np.nan, first[-1]) if kind == "previous" else (first[0], np.nan)
        self.x, self.y, self.kind, self._extrapolates = x, y, kind, extrapolate
        self.fill_value = None if extrapolate else tuple(map(as_operand, fill))
        self._function = first
        if spline:
            self._function = make_interp_spline(x, first, k)
        elif kind == "linear" and x.shape[0] > 1:
            rate = np.diff(first, axis=0) / column(np.diff(x), len(first.shape))
            self._function = PPoly.construct_fast(np.stack([rate, first[:-1]]), x)

    def __call__(self, x: Any) -> Any:
        """Values at places of any shape, with their axes in place of the interpolated one."""
        xi = tensor("interp1d", x, "x", real=True)
        shape = tuple(xi.shape)
        xi = reshape(xi, (-1,))
        below, above = xi < self.x[0], xi > self.x[-1]
        if self.bounds_error:
            for outside, side in ((below, "before"), (above, "behind")):
                if known(outside) is not None and np.any(known(outside)):
                    raise NumgradValueError(
                        f"interp1d: a place lies {side} the points; bounds_error=False gives "
                        "it fill_value"
                    )
        inner = xi if self._extrapolates else where(below | above, self.x[0], xi)
        rest = tuple(self.y.shape[: self.axis]) + tuple(self.y.shape[self.axis + 1 :])
        out = self._inside(inner)
        ndim = 1 + len(rest)
        if self.fill_value is not None:
            for outside, value in zip((below, above), self.fill_value, strict=True):
                out = where(column(outside, ndim), value, out)
        return place_axis(reshape(out, (*shape, *rest)), len(shape), self.axis)

    def _inside(self, xi: Any) -> Any:
        function, n = self._function, self.x.shape[0]
        if self.kind not in _STEPS:
            return (
                function(xi)
                if n > 1 or callable(function)
                else take(function, 0 * searchsorted(self.x, xi), axis=0)
            )
        if self.kind in ("previous", "next"):
            side = "right" if self.kind == "previous" else "left"
            index = searchsorted(self.x, xi, side=side) - (self.kind == "previous")
        else:
            middle = self.x[1:] / 2.0 + self.x[:-1] / 2.0
            side = "left" if self.kind == "nearest" else "right"
            index = searchsorted(middle, xi, side=side)
        return take(function, np.clip(index, 0, n - 1), axis=0)
