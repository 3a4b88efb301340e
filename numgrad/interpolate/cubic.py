"""The cubic spline through points, by slopes that solve a tridiagonal system."""

from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.interpolate.piecewise import (
    CubicHermiteSpline,
    column,
    container,
    data,
    increasing,
    known,
    tensor,
)
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.structured import solve_banded
from numgrad.operations.shape import broadcast_to, reshape

_ENDS = ("not-a-knot", "periodic", "clamped", "natural")


@container("c", "x")
class CubicSpline(CubicHermiteSpline):
    """Cubic spline with two continuous derivatives through points [1]_.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, strictly increasing.
    y : array_like
        Values, real or complex, with ``n`` along ``axis``.
    axis : int
        The axis of ``y`` that belongs to the points.
    bc_type : str or pair
        ``'not-a-knot'``: the two pieces at an end are one polynomial; ``'periodic'``;
        ``'clamped'``: slopes of 0; ``'natural'``: second derivatives of 0. A pair is for the first
        and the last point, of such words or of ``(order, value)``, where the derivative of order 1
        or 2 is the value, to which gradients go.
    extrapolate : bool or 'periodic'
        As of ``PPoly``; by default ``'periodic'`` for a periodic spline, else True.

    Raises
    ------
    NumgradValueError
        If points are not increasing, shapes do not fit, or there is no such ``bc_type``.

    Notes
    -----
    Slopes ``s`` at points are the solution of a tridiagonal system, which says that second
    derivatives agree: ``h[i] s[i-1] + 2 (h[i-1] + h[i]) s[i] + h[i-1] s[i+1] =
    3 (h[i] m[i-1] + h[i-1] m[i])`` for widths ``h`` and slopes ``m`` of pieces. Gradients in ``x``,
    ``y`` and places are exact, of any order.

    References
    ----------
    .. [1] C. de Boor, "A Practical Guide to Splines", revised edition, Springer, 2001, chapter IV.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = np.linspace(0, 3, 4)
    >>> spline = ng.interpolate.CubicSpline(x, x**3)
    >>> spline([0.5, 2.5])
    tensor([ 0.125, 15.625])
    >>> def middle(y):
    ...     return ng.interpolate.CubicSpline(x, y)(1.5)
    >>> ng.grad(middle)(x**3)
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        x = increasing("CubicSpline", x)
        y, axis = data("CubicSpline", x, y, axis)
        ends = _ends(bc_type, y)
        if extrapolate is None:
            extrapolate = "periodic" if ends[0] == "periodic" else True
        self._hermite(x, y, _slopes(x, y, ends), axis, extrapolate)


def _ends(bc_type: Any, y: Any) -> list[Any]:
    """Conditions at both ends: a word, or the order and value of a derivative."""
    both = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    if len(both) != 2 or (both.count("periodic") == 1):
        raise NumgradValueError(
            f"CubicSpline: bc_type is one of {', '.join(_ENDS)} or a pair for both ends (of "
            f"which 'periodic' is for both), got {bc_type!r}"
        )
    shape, ends = tuple(y.shape[1:]), []
    for end in both:
        if isinstance(end, str):
            if end not in _ENDS:
                raise NumgradValueError(
                    f"CubicSpline: bc_type {end!r} is none of {', '.join(_ENDS)}"
                )
            order = {"clamped": 1, "natural": 2}.get(end)
            ends.append(end if order is None else (order, np.zeros(shape)))
            continue
        try:
            order, value = end
        except (TypeError, ValueError):
            raise NumgradTypeError(
                f"CubicSpline: a derivative at an end is a pair (order, value), got {end!r}"
            ) from None
        value = tensor("CubicSpline", value, "a derivative at an end")
        if order not in (1, 2) or tuple(value.shape) != shape:
            raise NumgradValueError(
                f"CubicSpline: a derivative at an end has order 1 or 2 and shape {shape}, got "
                f"order {order!r} and shape {tuple(value.shape)}"
            )
        ends.append((order, value))
    numbers = known(y)
    if (
        ends[0] == "periodic"
        and numbers is not None
        and not np.allclose(numbers[0], numbers[-1], rtol=1e-15, atol=1e-15)
    ):
        raise NumgradValueError(
            "CubicSpline: the first and the last y must be equal for bc_type='periodic'"
        )
    return ends


def _slopes(x: Any, y: Any, ends: list[Any]) -> Any:
    n, ndim = int(x.shape[0]), len(y.shape)
    h = np.diff(x)
    wide = column(h, ndim)
    slope = np.diff(y, axis=0) / wide
    if n == 2:
        ends = [(1, slope[0]) if isinstance(end, str) else end for end in ends]
    if n == 3 and ends == ["not-a-knot", "not-a-knot"]:  # the parabola
        bend = (slope[1] - slope[0]) / (x[2] - x[0])
        return np.stack([slope[0] - bend * h[0], slope[0] + bend * h[0], slope[1] + bend * h[1]])
    inner = 3 * (wide[1:] * slope[:-1] + wide[:-1] * slope[1:])
    if ends[0] == "periodic":
        first = 3 * (wide[:1] * slope[-1:] + wide[-1:] * slope[:1])
        before, after = concat(h[-1:], h[:-1], axis=0), h
        s = _cyclic(after, 2 * (before + after), before, concat(first, inner, axis=0))
        return concat(s, s[:1], axis=0)
    # above, on and below the diagonal, and the right-hand side, at both ends
    start = _end(ends[0], x[2:3] - x[:1], h[:1], h[1:2], wide[:1], wide[1:2], slope[:1], slope[1:2])
    stop = _end(
        ends[1], x[-1:] - x[-3:-2], h[-1:], h[-2:-1], wide[-1:], wide[-2:-1], slope[-1:],
        slope[-2:-1], -1.0,
    )  # fmt: skip
    zero = np.zeros(1)
    bands = np.stack(
        [
            concat(zero, start[1], h[:-1], axis=0),
            concat(start[0], 2 * (h[:-1] + h[1:]), stop[0], axis=0),
            concat(h[1:], stop[1], zero, axis=0),
        ]
    )
    return _solved(bands, concat(start[2], inner, stop[2], axis=0))


def _end(
    end: Any, reach: Any, h0: Any, h1: Any, w0: Any, w1: Any, m0: Any, m1: Any, sign: float = 1.0
) -> tuple[Any, Any, Any]:
    """The equation at an end: factors of the slope there and of the next, right-hand side."""
    if isinstance(end, str):
        far = w0 + w1
        return h1, reach, ((w0 + 2 * far) * w1 * m0 + w0 * w0 * m1) / far
    order, value = end
    if order == 1:
        one = np.ones(1)
        return one, 0 * one, value + 0 * m0
    return 2 * h0, h0, 3 * w0 * m0 - sign * 0.5 * value * w0 * w0


def _solved(bands: Any, b: Any) -> Any:
    n = b.shape[0]
    return reshape(solve_banded((1, 1), bands, reshape(b, (n, -1))), tuple(b.shape))


def _cyclic(below: Any, diagonal: Any, above: Any, b: Any) -> Any:
    """Solve a cyclic tridiagonal system by the Sherman-Morrison formula."""
    n = int(b.shape[0])
    gamma = -diagonal[:1]
    corner, zero = below[:1], np.zeros(1)  # right of the first row
    other = above[-1:]  # left of the last
    main = concat(
        diagonal[:1] - gamma, diagonal[1:-1], diagonal[-1:] - corner * other / gamma, axis=0
    )
    bands = np.stack([concat(zero, above[:-1], axis=0), main, concat(below[1:], zero, axis=0)])
    u = concat(gamma, broadcast_to(zero, (n - 2,)), other, axis=0)
    whole = _solved(bands, concat(reshape(b, (n, -1)), reshape(u, (n, 1)), axis=1))
    x, z = whole[:, :-1], whole[:, -1:]
    share = corner / gamma
    along = (x[:1] + share * x[-1:]) / (1 + z[:1] + share * z[-1:])
    return reshape(x - z * along, tuple(b.shape))
