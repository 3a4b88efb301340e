"""B-splines: evaluation by local weights, interpolation by a banded system, least squares.

Note [Weights of B-splines]
---------------------------
At a place only ``degree + 1`` basis functions are not zero. Their values are computed by the
recurrence of Cox and de Boor [1]_ for all places at once, their derivatives from those of lower
degree. Everything else is linear in them: a value is the product with the coefficients gathered
there, a row of an interpolation problem is the weights themselves, a value on a grid the product
along each axis.

References
----------
.. [1] C. de Boor, "On calculating with B-splines", J. Approx. Theory 6, 1972.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from numgrad.core.axis import one_axis
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.interpolate.piecewise import (
    between,
    column,
    container,
    data,
    increasing,
    inside,
    known,
    place_axis,
    tensor,
)
from numgrad.operations.choice import where
from numgrad.operations.cumulative import cumsum
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.singular_values import lstsq
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.linear_algebra.structured import solve_banded
from numgrad.operations.selecting import searchsorted
from numgrad.operations.shape import as_index, broadcast_to, reshape
from numgrad.operations.take import take, take_along_axis


def piece_of(t: Any, k: int, xi: Any) -> Any:
    """The number of the knot that begins the interval of each place, which is not empty."""
    n = t.shape[0] - k - 1
    first, last = k, n - 1
    if k:  # knots may be repeated at the ends
        first = searchsorted(t, t[k], side="right") - 1
        last = searchsorted(t, t[n], side="left") - 1
    return np.clip(searchsorted(t, xi, side="right") - 1, first, last)


def weights(t: Any, k: int, xi: Any, piece: Any, nu: int = 0) -> Any:
    """Derivatives of the basis functions of each place, of shape (places, k + 1)."""
    if nu > k:
        return broadcast_to(0.0 * xi[:, None], (xi.shape[0], k + 1))
    knot = {m: take(t, piece + m) for m in range(1 - k, k + 1)}
    values: list[Any] = [0.0 * xi + 1.0]
    for degree in range(1, k - nu + 1):
        values, before, carried = [], values, None
        for r, value in enumerate(before):
            left, right = knot[r + 1 - degree], knot[r + 1]
            share = value / (right - left)
            rising = (right - xi) * share
            values.append(rising if carried is None else carried + rising)
            carried = (xi - left) * share
        values.append(carried)
    for degree in range(k - nu + 1, k + 1):
        rates = [
            degree * value / (knot[r + 1] - knot[r + 1 - degree]) for r, value in enumerate(values)
        ]
        inner = [a - b for a, b in pairwise(rates)]
        values = [-rates[0], *inner, rates[-1]]
    return np.stack(values, axis=1)


def rows_of(c: Any, k: int, piece: Any) -> Any:
    """Coefficients of the basis functions of each place, of shape (places, k + 1, ...)."""
    return take(c, piece[:, None] + np.arange(-k, 1), axis=0)


@container("t", "c")
class BSpline:
    """Spline ``sum(c[i] * B[i, k](x))`` of basis functions between knots ``t``.

    Parameters
    ----------
    t : array_like of shape (n + k + 1,)
        Knots, in ascending order.
    c : array_like
        Coefficients, at least ``n`` along ``axis``, real or complex.
    k : int
        Degree.
    extrapolate : bool or 'periodic'
        Whether the first and the last polynomial are used beyond ``t[k]`` and ``t[n]``, where
        values are NaN otherwise, or the function is periodic.
    axis : int
        The axis of ``c`` that belongs to the basis functions.

    Raises
    ------
    NumgradValueError
        If there are too few knots or coefficients, or knots are not in order.

    Notes
    -----
    Results are Tensors, with gradients in ``t``, ``c`` and places: Note [Weights of B-splines].

    Examples
    --------
    >>> import numgrad as ng
    >>> spline = ng.interpolate.BSpline([0.0, 1, 2, 3, 4, 5], [1.0, 2.0, 3.0], 2)
    >>> spline(2.0)
    tensor(1.5)
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        k = as_index("BSpline", k, "k")
        if k < 0:
            raise NumgradValueError(f"BSpline: the degree k is not negative, got {k}")
        t = increasing("BSpline", t, "knots t", least=2 * k + 2, strict=False)
        c = tensor("BSpline", c, "c")
        axis = one_axis("BSpline", axis, len(c.shape))
        n, numbers = t.shape[0] - k - 1, known(t)
        if c.shape[axis] < n:
            raise NumgradValueError(
                f"BSpline: {t.shape[0]} knots of degree {k} need at least {n} coefficients, got c "
                f"of shape {tuple(c.shape)} along axis {axis}"
            )
        if numbers is not None and len(np.unique(numbers[k : n + 1])) < 2:
            raise NumgradValueError("BSpline: all inner knots are one; at least two must differ")
        self._set(t, np.moveaxis(c, axis, 0), k, extrapolate, axis)

    def _set(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t, self.c, self.k, self.axis = t, c, k, axis
        self.extrapolate = extrapolate if extrapolate == "periodic" else bool(extrapolate)

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Self:
        """The spline of Tensors that fit, unchecked, with the axis of ``c`` first."""
        made = object.__new__(cls)
        made._set(t, c, k, extrapolate, axis)
        return made

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> Self:
        """The basis function of degree ``len(t) - 2`` between knots."""
        t = increasing("basis_element", t, "t", strict=False)
        k = int(t.shape[0]) - 2
        ends = broadcast_to(t[:1] - 1.0, (k,)), broadcast_to(t[-1:] + 1.0, (k,))
        c = np.zeros(t.shape[0] + 2 * k)
        c[k] = 1.0
        return cls.construct_fast(
            concat(ends[0], t, ends[1], axis=0), tensor("basis_element", c, "c"), k, extrapolate
        )

    @classmethod
    def design_matrix(cls, x: Any, t: Any, k: int, extrapolate: bool = False, nu: int = 0) -> Any:
        """Values of all basis functions at places, a dense Tensor of shape (places, n).

        SciPy's is sparse; where there are many knots, ``BSpline.__call__`` needs no matrix.

        Raises
        ------
        NumgradValueError
            If a place lies outside of the knots and ``extrapolate`` is False.
        """
        t = increasing("design_matrix", t, "knots t", least=2 * k + 2, strict=False)
        x = tensor("design_matrix", x, "x", real=True)
        places, knots = known(x), known(t)
        if (
            places is not None
            and knots is not None
            and not extrapolate
            and not np.all((places >= knots[k]) & (places <= knots[-k - 1]))
        ):
            raise NumgradValueError(
                f"design_matrix: places lie outside of [{knots[k]:.6g}, {knots[-k - 1]:.6g}]; "
                "extrapolate=True continues the first and the last polynomial"
            )
        n, piece = t.shape[0] - k - 1, piece_of(t, k, x)
        own = np.arange(n) - piece[:, None] + k
        values = take_along_axis(weights(t, k, x, piece, nu), np.clip(own, 0, k), axis=1)
        return where((own >= 0) & (own <= k), values, 0.0)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Values, or derivatives of order ``nu``, at places of any shape.

        Parameters
        ----------
        x : array_like
            Places, to which gradients go.
        nu : int
            Order of the derivative.
        extrapolate : bool or 'periodic'
            By default that of the spline.

        Returns
        -------
        Tensor
            With the axes of ``x`` in place of the spline's.
        """
        x = tensor("BSpline", x, "x", real=True)
        shape = tuple(x.shape)
        out = self._of_order(nu, reshape(x, (-1,)), extrapolate)
        return place_axis(reshape(out, (*shape, *self.c.shape[1:])), len(shape), self.axis)

    def _of_order(self, nu: int, xi: Any, extrapolate: Any = None) -> Any:
        """Derivatives at a row of places, along the first axis."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        k, n = self.k, self.t.shape[0] - self.k - 1
        xi, outside = inside("BSpline", xi, self.t[k], self.t[n], extrapolate)
        piece, ndim = piece_of(self.t, k, xi), len(self.c.shape)
        w = weights(self.t, k, xi, piece, nu)
        out = np.sum(reshape(w, (-1, k + 1, *[1] * (ndim - 1))) * rows_of(self.c, k, piece), axis=1)
        return out if outside is None else where(column(outside, ndim), np.nan, out)

    def derivative(self, nu: int = 1) -> "BSpline":
        """The derivative of order ``nu``, a spline of lower degree.

        Raises
        ------
        NumgradValueError
            If the order exceeds the degree, or knots inside are repeated so often that there is
            none.
        """
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            raise NumgradValueError(
                f"derivative: a spline of degree {self.k} has derivatives up to order {self.k}, "
                f"got {nu}; spline(x, nu) is 0 beyond"
            )
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            count = t.shape[0] - k - 1
            width = t[k + 1 : -1] - t[1 : -k - 1]
            numbers = known(width)
            if numbers is not None and np.any(numbers == 0):
                raise NumgradValueError(
                    "derivative: knots inside are repeated, where the spline has none"
                )
            c = (c[1:count] - c[: count - 1]) * k / column(width, len(c.shape))
            t, k = t[1:-1], k - 1
        return BSpline.construct_fast(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> "BSpline":
        """The antiderivative of order ``nu`` that is 0 at the first knot."""
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            width = column(t[k + 1 :] - t[: -k - 1], len(c.shape))
            c = cumsum(c[: t.shape[0] - k - 1] * width, axis=0) / (k + 1)
            c = concat(0.0 * c[:1], c, axis=0)
            t, k = concat(t[:1], t, t[-1:], axis=0), k + 1
        extrapolate = self.extrapolate
        if nu and extrapolate == "periodic":
            extrapolate = False
        return BSpline.construct_fast(t, c, k, extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two numbers, with gradients in them; 0 beyond the ends.

        Where the spline extrapolates, so does the integral.
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        a, b = (reshape(tensor("integrate", end, "limit", real=True), ()) for end in (a, b))
        whole = self.antiderivative()
        whole.axis, whole.extrapolate = 0, True
        low, high = self.t[self.k], self.t[self.t.shape[0] - self.k - 1]

        periodic = extrapolate == "periodic"
        if not extrapolate:
            a, b = np.clip(a, low, high), np.clip(b, low, high)
        return between(whole, a, b, low, high, periodic)


# ------------------------------------------------------------------------------------ interpolation


def make_interp_spline(
    x: Any,
    y: Any,
    k: int = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """The interpolating B-spline of a degree, with gradients in ``x``, ``y`` and ``t``.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, strictly increasing.
    y : array_like
        Values, real or complex, with ``n`` along ``axis``.
    k : int
        Degree.
    t : array_like
        Knots; by default those of de Boor, which leave out points next to the ends, or all points
        where ``bc_type`` gives derivatives.
    bc_type : str or pair
        ``'not-a-knot'`` (None means the same), ``'natural'``, ``'clamped'``, ``'periodic'``, or for
        both ends such a word, None or a list of ``(order, value)`` of derivatives.
    axis : int
        The axis of ``y`` that belongs to the points.
    check_finite : bool
        Taken for SciPy's sake: what is not finite is always refused.

    Returns
    -------
    BSpline
        Of degree ``k``.

    Raises
    ------
    NumgradValueError
        If points, knots or conditions do not fit.
    NumgradLinAlgError
        If there is no such spline.

    Notes
    -----
    The system has ``k`` diagonals on both sides; of periodic splines it is solved as a dense one.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = np.arange(6.0)
    >>> ng.interpolate.make_interp_spline(x, x**2)(2.5)
    tensor(6.25)
    """
    name = "make_interp_spline"
    k = as_index(name, k, "k")
    if k < 0:
        raise NumgradValueError(f"{name}: the degree k is not negative, got {k}")
    x = increasing(name, x, least=1)
    y, axis = data(name, x, y, axis)
    if bc_type == "periodic":
        return _periodic_spline(x, y, k, t, axis)
    pair = (bc_type, bc_type) if bc_type is None or isinstance(bc_type, str) else tuple(bc_type)
    if len(pair) != 2:
        raise NumgradValueError(
            f"{name}: bc_type is a word or a pair for both ends, got {bc_type!r}"
        )
    ends = [_derivatives(end, tuple(y.shape[1:]), k) for end in pair]
    if (k < 2 and any(ends)) or (k == 0 and t is not None):
        raise NumgradValueError(f"{name}: degree {k} takes no bc_type" + (" and no t" * (k == 0)))
    if k == 0:
        return BSpline.construct_fast(concat(x, x[-1:], axis=0), y, k, True, axis)
    if t is None:
        t = _knots(x, k, any(ends))
    t = increasing(name, t, "knots t", least=2 * k + 2, strict=False)
    count = t.shape[0] - k - 1
    if count != x.shape[0] + len(ends[0]) + len(ends[1]):
        raise NumgradValueError(
            f"{name}: {t.shape[0]} knots of degree {k} need {count} conditions, but there are "
            f"{x.shape[0]} points, and {len(ends[0])} and {len(ends[1])} derivatives at the ends"
        )
    knots, points = known(t), known(x)
    outside = (
        knots is not None
        and points is not None
        and (points[0] < knots[k] or points[-1] > knots[-k - 1])
    )
    if outside:
        raise NumgradValueError(f"{name}: points lie outside of the knots")
    piece = piece_of(t, k, x)
    parts = [(piece, weights(t, k, x, piece), y)]
    for end, first in ((ends[0], True), (ends[1], False)):
        for order, value in end:
            place = slice(0, 1) if first else slice(-1, None)
            row = piece[place], weights(t, k, x[place], piece[place], order), value[None]
            parts.insert(len(parts) - 1, row) if first else parts.append(row)
    pieces, w, b = (concat([part[m] for part in parts], axis=0) for m in range(3))
    c = solve_banded((k, k), _bands(w, pieces, k, int(count)), reshape(b, (count, -1)))
    return BSpline.construct_fast(t, reshape(c, tuple(b.shape)), k, True, axis)


def _derivatives(end: Any, shape: tuple, k: int) -> list[tuple[int, Any]]:
    """Orders and values of derivatives at an end."""
    words = {"natural": 2, "clamped": 1}
    if end is None or end == "not-a-knot":
        return []
    if isinstance(end, str):
        if end not in words:
            raise NumgradValueError(
                f"make_interp_spline: bc_type {end!r} is none of not-a-knot, natural, clamped, "
                "periodic"
            )
        end = [(words[end], np.zeros(shape))]
    try:
        pairs = [(int(order), tensor("make_interp_spline", v, "a derivative")) for order, v in end]
    except (TypeError, ValueError):
        raise NumgradTypeError(
            "make_interp_spline: derivatives at an end are a list of pairs (order, value), got "
            f"{end!r}"
        ) from None
    if not all(0 <= order <= k for order, _ in pairs):
        raise NumgradValueError(f"make_interp_spline: derivatives have orders from 0 to {k}")
    return [(order, broadcast_to(value, shape)) for order, value in pairs]


def _knots(x: Any, k: int, all_points: bool) -> Any:
    """Knots for points: all of them, or without those next to the ends."""
    if all_points or k == 1:
        inner, more = x, k
    else:
        inner = x if k % 2 else (x[1:] + x[:-1]) / 2
        cut, more = (k + 1) // 2, k + 1
        inner = inner[cut:-cut]
    return concat(broadcast_to(x[:1], (more,)), inner, broadcast_to(x[-1:], (more,)), axis=0)


def _bands(w: Any, piece: Any, k: int, n: int) -> Any:
    """Diagonals, the highest first, of the matrix whose rows have weights at some columns."""
    columns = np.arange(n)
    rows = columns + np.arange(-k, k + 1)[:, None]  # of the elements of `ab`
    exists = (rows >= 0) & (rows < n)
    rows = np.clip(rows, 0, n - 1)
    own = columns - take(piece, rows) + k
    present = (own >= 0) & (own <= k) & exists
    flat = reshape(w, (-1,))
    return where(present, take(flat, rows * (k + 1) + np.clip(own, 0, k)), 0.0)


def _periodic_spline(x: Any, y: Any, k: int, t: Any, axis: int) -> BSpline:
    name, n, numbers = "make_interp_spline", int(x.shape[0]), known(y)
    if t is not None:
        raise NumgradValueError(f"{name}: a periodic spline has knots of its own; leave out t")
    if numbers is not None and not np.allclose(numbers[0], numbers[-1], atol=1e-15):
        raise NumgradValueError(f"{name}: the first and the last y of a periodic spline are equal")
    if k < 2:
        return make_interp_spline(x, np.moveaxis(y, 0, axis), k, axis=axis)
    inner = x if k % 2 else concat(x[:1], (x[1:-1] + x[:-2]) / 2, x[-1:], axis=0)
    h = np.diff(inner)
    turns = np.arange(k) % (n - 1)
    before = x[:1] - cumsum(take(h, n - 2 - turns), axis=0)
    t = concat(np.flip(before, 0), inner, x[-1:] + cumsum(take(h, turns), axis=0), axis=0)
    piece = piece_of(t, k, x[:-1])
    w = weights(t, k, x[:-1], piece)
    # the coefficients of a period repeat
    share = np.arange(n - 1) == (piece[:, None] + np.arange(-k, 1))[:, :, None] % (n - 1)
    matrix = np.sum(where(share, w[:, :, None], 0.0), axis=1)
    c = reshape(solve(matrix, reshape(y[:-1], (n - 1, -1))), (n - 1, *y.shape[1:]))
    c = take(c, np.arange(n + k - 1) % (n - 1), axis=0)
    return BSpline.construct_fast(t, c, k, "periodic", axis)


def make_lsq_spline(
    x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True
) -> BSpline:
    """The B-spline with given knots that is nearest to data in the sense of least squares.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, in ascending order.
    y : array_like
        Values, with ``n`` along ``axis``.
    t : array_like
        Knots, the first and the last ``k + 1`` of which enclose the points.
    k : int
        Degree.
    w : array_like of shape (n,)
        Weights, by which residuals are multiplied.
    axis : int
        The axis of ``y`` that belongs to the points.
    check_finite : bool
        Taken for SciPy's sake: what is not finite is always refused.

    Returns
    -------
    BSpline
        Of degree ``k``, with gradients in all arrays.

    Raises
    ------
    NumgradValueError
        If shapes do not fit or points lie outside of the knots.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = np.linspace(0, 1, 9)
    >>> ng.interpolate.make_lsq_spline(x, x**2, [0.0, 0, 0, 0, 1, 1, 1, 1])(0.5)
    tensor(0.25)
    """
    x = increasing("make_lsq_spline", x, strict=False)
    y, axis = data("make_lsq_spline", x, y, axis)
    t = increasing("make_lsq_spline", t, "knots t", least=2 * k + 2, strict=False)
    a, b = BSpline.design_matrix(x, t, k), reshape(y, (x.shape[0], -1))
    if w is not None:
        w = reshape(tensor("make_lsq_spline", w, "w", real=True), (x.shape[0], 1))
        a, b = a * w, b * w
    c = lstsq(a, b)[0]
    return BSpline.construct_fast(t, reshape(c, (-1, *y.shape[1:])), k, True, axis)


# ---------------------------------------------------------------------------------- FITPACK's names


def _spline(tck: Any) -> BSpline:
    if isinstance(tck, BSpline):
        return tck
    if not isinstance(tck, Sequence) or len(tck) != 3:
        raise NumgradTypeError(
            "a spline is a BSpline or a tuple (t, c, k) of knots, coefficients and degree, got a "
            f"{type(tck).__name__}"
        )
    return BSpline(*tck)


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Values of a spline, or its derivatives, with gradients in all arrays.

    Parameters
    ----------
    x : array_like
        Places.
    tck : BSpline or tuple
        The spline, or its knots, coefficients and degree.
    der : int
        Order of the derivative, from 0 to the degree.
    ext : {0, 1, 2, 3}
        What is returned beyond the ends: what the polynomials there give, 0, an error, the value at
        the end.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Raises
    ------
    NumgradValueError
        If a place lies beyond the ends with ``ext=2``, or ``der`` or ``ext`` is none of these.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.splev([2.5, 9.0], ([0.0, 1, 2, 3, 4, 5], [1.0, 2.0, 3.0], 2), ext=3)
    tensor([2. , 2.5])
    """
    spline = _spline(tck)
    if not 0 <= der <= spline.k or ext not in (0, 1, 2, 3):
        raise NumgradValueError(
            f"splev: der is from 0 to {spline.k} and ext from 0 to 3, got {der} and {ext}"
        )
    x = tensor("splev", x, "x", real=True)
    low, high = spline.t[spline.k], spline.t[spline.t.shape[0] - spline.k - 1]
    beyond = (x < low) | (x > high)
    if ext == 2 and np.any(known(beyond)):
        raise NumgradValueError("splev: a place lies beyond the ends of the spline, and ext=2")
    out = spline(np.clip(x, low, high) if ext == 3 else x, der, True)
    if ext != 1:
        return out
    return where(reshape(beyond, (*x.shape, *[1] * (len(spline.c.shape) - 1))), 0.0, out)


def splint(a: Any, b: Any, tck: Any) -> Any:
    """The integral of a spline, which is 0 beyond its ends, between two numbers.

    Parameters
    ----------
    a, b : float
        Limits, to which gradients go.
    tck : BSpline or tuple
        The spline, or its knots, coefficients and degree.

    Returns
    -------
    Tensor
        The integral.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.splint(0.0, 1.0, ([0.0, 0, 1, 1], [1.0, 3.0], 1))
    tensor(2.)
    """
    return _spline(tck).integrate(a, b, extrapolate=False)


def splder(tck: Any, n: int = 1) -> Any:
    """The derivative of order ``n`` of a spline, as ``BSpline.derivative``, of the form given.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.splder(([0.0, 0, 1, 1], [1.0, 3.0], 1))[1]
    tensor([2.])
    """
    return _like(tck, _spline(tck).derivative(n))


def splantider(tck: Any, n: int = 1) -> Any:
    """The antiderivative of order ``n`` of a spline, as ``BSpline.antiderivative``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.splantider(([0.0, 0, 1, 1], [1.0, 3.0], 1))[1]
    tensor([0. , 0.5, 2. ])
    """
    return _like(tck, _spline(tck).antiderivative(n))


def _like(tck: Any, spline: BSpline) -> Any:
    return spline if isinstance(tck, BSpline) else (spline.t, spline.c, spline.k)
