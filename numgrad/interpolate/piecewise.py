"""Piecewise polynomials with gradients in coefficients, breakpoints and places.

Note [Piecewise polynomials]
----------------------------
Interpolants are functions from data to coefficients, written with operations: differences of
neighbours, and where pieces depend on each other the solution of a banded system [1]_. Evaluation
looks up the piece of each place (an integer, without a gradient), gathers its coefficients, and is
Horner's scheme in the distance from the piece's breakpoint. So gradients in data, breakpoints and
places, of any order, are those of these operations; at a breakpoint those of the piece behind it.
Numbers are computed in double precision, as SciPy does.

References
----------
.. [1] C. de Boor, "A Practical Guide to Splines", revised edition, Springer, 2001.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from math import factorial
from typing import Any, Self, TypeVar

import numpy as np

from numgrad.core.axis import one_axis
from numgrad.core.interpreter import state
from numgrad.core.tree import register
from numgrad.errors import NumgradTraceError, NumgradTypeError, NumgradValueError
from numgrad.operations.choice import where
from numgrad.operations.cumulative import cumsum
from numgrad.operations.join import concat
from numgrad.operations.selecting import searchsorted
from numgrad.operations.shape import as_operand, astype, reshape
from numgrad.operations.take import take
from numgrad.tensors.tensor import Tensor

C = TypeVar("C", bound=type)


def tensor(name: str, x: Any, what: str, *, real: bool = False) -> Any:
    """``x`` as a Tensor of double precision."""
    x = as_operand(x)
    if real and x.dtype.kind == "c":
        raise NumgradTypeError(f"{name}: {what} must be real, got dtype {x.dtype}")
    dtype = np.complex128 if x.dtype.kind == "c" else np.float64
    if not isinstance(x, Tensor):
        if isinstance(x, np.ndarray):
            state.ground.look_at(x)
        return Tensor(np.array(x, dtype))  # of which numbers are known in a trace: no operation
    return astype(x, dtype=dtype, copy=False)


def known(x: Any) -> Any:
    """The numbers of a Tensor; None where they are an argument's of a compiled function or batch.

    Those of ndarrays around a compiled function are part of what is compiled, so they are known.
    """
    if not state.ground.deferred:
        return state.ground.numbers(x)
    return x._array if type(x) is Tensor and type(x._array) is np.ndarray else None


def applied(function: Callable[..., Any], x: Any, *args: Any) -> Any:
    """A function of NumPy's of a Tensor; of its numbers in a trace, if these are known there."""
    numbers = known(x) if state.ground.deferred else None
    return function(x, *args) if numbers is None else Tensor(function(numbers, *args))


def increasing(name: str, x: Any, what: str = "x", *, least: int = 2, strict: bool = True) -> Any:
    """A vector of real numbers in ascending order, as a Tensor; a known order is checked."""
    return ordered(name, tensor(name, x, what, real=True), what, least=least, strict=strict)


def ordered(name: str, x: Any, what: str = "x", *, least: int = 2, strict: bool = True) -> Any:
    """``increasing`` of a Tensor."""
    if len(x.shape) != 1:
        raise NumgradValueError(f"{name}: {what} must have one axis, got shape {tuple(x.shape)}")
    if x.shape[0] < least:
        raise NumgradValueError(f"{name}: needs at least {least} points {what}, got {x.shape[0]}")
    numbers = known(x)
    if numbers is not None:
        if not np.all(np.isfinite(numbers)):
            raise NumgradValueError(f"{name}: {what} must be finite numbers")
        steps = np.diff(numbers)
        if np.any(steps <= 0 if strict else steps < 0):
            order = "strictly increasing" if strict else "in ascending order"
            raise NumgradValueError(
                f"{name}: {what} must be {order}; sort the points"
                + (", and merge those of equal coordinates" if strict else "")
            )
    return x


def data(name: str, x: Any, y: Any, axis: Any, *, real: bool = False) -> tuple[Any, int]:
    """Values for points, with their axis first, and the number of that axis."""
    y = tensor(name, y, "y", real=real)
    axis = one_axis(name, axis, len(y.shape))
    if x.shape[0] != y.shape[axis]:
        raise NumgradValueError(
            f"{name}: {x.shape[0]} points x, but y of shape {tuple(y.shape)} has {y.shape[axis]} "
            f"along axis {axis}"
        )
    numbers = known(y)
    if numbers is not None and not np.all(np.isfinite(numbers)):
        raise NumgradValueError(f"{name}: y must be finite numbers; leave out missing points")
    return applied(np.moveaxis, y, axis, 0), axis


def column(x: Any, ndim: int) -> Any:
    """A vector along the first of ``ndim`` axes."""
    return reshape(x, (-1, *[1] * (ndim - 1))) if ndim > 1 else x


def place_axis(result: Any, inner: int, axis: int) -> Any:
    """The axes of places, the first ``inner`` ones, put where ``axis`` was."""
    if not axis or not inner:
        return result
    return np.moveaxis(result, tuple(range(inner)), tuple(range(axis, axis + inner)))


def container(*parts: str) -> Callable[[C], C]:
    """Register a class for ``ng.tree``: its arrays by name, the other attributes fixed."""

    def declare(kind: C) -> C:
        def split(x: Any) -> tuple[list[Any], tuple[tuple[str, Any], ...]]:
            rest = tuple((k, v) for k, v in vars(x).items() if k not in parts)
            return [getattr(x, part) for part in parts], rest

        def join(rest: Any, arrays: Sequence[Any]) -> Any:
            made = object.__new__(kind)
            made.__dict__.update(rest)
            made.__dict__.update(zip(parts, arrays, strict=True))
            return made

        register(kind, split, join)
        return kind

    return declare


def inside(name: str, xi: Any, low: Any, high: Any, extrapolate: Any) -> tuple[Any, Any]:
    """Places at which to evaluate, and which of them have no value; None if all have one."""
    if extrapolate == "periodic":
        return low + np.mod(xi - low, high - low), None
    if extrapolate:
        return xi, None
    outside = ~((xi >= low) & (xi <= high))
    return where(outside, low, xi), outside


@container("c", "x")
class PPoly:
    """Piecewise polynomial ``sum(c[m, i] * (xi - x[i]) ** (k - m) for m in range(k + 1))``.

    Parameters
    ----------
    c : array_like of shape (k + 1, m, ...)
        Coefficients of ``m`` pieces, of the highest power first; real or complex.
    x : array_like of shape (m + 1,)
        Breakpoints in ascending or descending order.
    extrapolate : bool or 'periodic'
        Whether the first and the last piece are used beyond their ends, where values are NaN
        otherwise, or the function is periodic.
    axis : int
        Where axes of places stand in results.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, or breakpoints are in no order.

    Notes
    -----
    Results are Tensors, with gradients in ``c``, ``x`` and places: Note [Piecewise polynomials]. It
    is a container for ``ng.tree``: ``ng.jit`` takes one as an argument.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> p = ng.interpolate.PPoly([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0, 2.0])  # x, then 1
    >>> p([0.5, 1.5])
    tensor([0.5, 1. ])
    >>> ng.grad(lambda a: p.integrate(0.0, a))(0.5)
    np.float64(0.5)
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        name = type(self).__name__
        c = tensor(name, c, "c")
        x = tensor(name, x, "x", real=True)
        if len(c.shape) < 2 or len(x.shape) != 1 or x.shape[0] < 2 or c.shape[1] != x.shape[0] - 1:
            raise NumgradValueError(
                f"{name}: coefficients of shape {tuple(c.shape)} and breakpoints of shape "
                f"{tuple(x.shape)} do not fit; they are (k, m, ...) and (m + 1,)"
            )
        steps = np.diff(known(x)) if known(x) is not None else None
        if steps is not None and not (np.all(steps >= 0) or np.all(steps <= 0)):
            raise NumgradValueError(f"{name}: x must be strictly increasing or decreasing")
        descending = None if steps is None else bool(np.any(steps < 0))
        axis = one_axis(name, axis, len(c.shape) - 1)
        self._set(c, x, extrapolate, axis, descending)

    def _set(
        self, c: Any, x: Any, extrapolate: Any = True, axis: int = 0,
        descending: bool | None = False,
    ) -> None:  # fmt: skip
        self.c, self.x, self.axis, self._descending = c, x, axis, descending
        self.extrapolate = "periodic" if extrapolate == "periodic" else extrapolate is not False
        if extrapolate is not None and extrapolate != "periodic":
            self.extrapolate = bool(extrapolate)

    @classmethod
    def construct_fast(cls, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> Self:
        """The polynomial of Tensors that fit, unchecked, with breakpoints in ascending order."""
        made = object.__new__(cls)
        made._set(c, x, extrapolate, axis)
        return made

    @classmethod
    def from_spline(cls, tck: Any, extrapolate: Any = None) -> Self:
        """The piecewise polynomial of a ``BSpline`` or of knots, coefficients and degree."""
        bsplines = import_module("numgrad.interpolate.bsplines")
        spline = tck if isinstance(tck, bsplines.BSpline) else bsplines.BSpline(*tck)
        extrapolate = spline.extrapolate if extrapolate is None else extrapolate
        x, k = spline.t, spline.k
        if extrapolate == "periodic":  # over one period
            x = x[k : x.shape[0] - k]
        values = [spline._of_order(m, x[:-1], True) / factorial(m) for m in range(k, -1, -1)]
        return cls.construct_fast(np.stack(values), x, extrapolate, spline.axis)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Values, or derivatives of order ``nu``, at places of any shape.

        Parameters
        ----------
        x : array_like
            Places, to which gradients go.
        nu : int
            Order of the derivative.
        extrapolate : bool or 'periodic'
            By default that of the polynomial.

        Returns
        -------
        Tensor
            With the axes of ``x`` in place of the interpolated one.
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        c = self._of_order(nu)
        xi = tensor(type(self).__name__, x, "x", real=True)
        shape = tuple(xi.shape)
        xi = reshape(xi, (-1,))
        low, high, sign = self.x[0], self.x[-1], 1.0
        if self._descending is None:  # breakpoints are an argument of a compiled function or batch
            low, high, sign = (
                np.minimum(low, high),
                np.maximum(low, high),
                where(low > high, -1.0, 1.0),
            )
        elif self._descending:
            low, high, sign = high, low, -1.0
        xi, outside = inside("PPoly", xi, low, high, extrapolate)
        piece = searchsorted(sign * self.x, sign * xi, side="right") - 1
        piece = np.clip(piece, 0, self.x.shape[0] - 2)
        ndim = len(c.shape) - 1
        h, own = column(xi - take(self.x, piece), ndim), take(c, piece, axis=1)
        out = own[0]
        for m in range(1, c.shape[0]):
            out = out * h + own[m]
        if c.shape[0] == 1:  # a constant does not see a NaN
            out = where(np.isnan(h), np.nan, out)
        if outside is not None:
            out = where(column(outside, ndim), np.nan, out)
        return place_axis(reshape(out, (*shape, *c.shape[2:])), len(shape), self.axis)

    def _of_order(self, nu: int) -> Any:
        """Coefficients of the derivative of some order."""
        return self.c if nu == 0 else self.derivative(nu).c

    def derivative(self, nu: int = 1) -> "PPoly":
        """The derivative of order ``nu``, a piecewise polynomial of lower degree."""
        if nu < 0:
            return self.antiderivative(-nu)
        c, k = self.c, self.c.shape[0]
        if nu >= k:
            c = c[:1] * 0.0
        elif nu:
            powers = range(k - 1, nu - 1, -1)
            factors = np.array([factorial(p) // factorial(p - nu) for p in powers], np.float64)
            c = c[:-nu] * factors.reshape(-1, *[1] * (len(c.shape) - 1))
        return self._like(c, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> "PPoly":
        """The antiderivative of order ``nu`` that is 0 at the first breakpoint, and continuous."""
        if nu <= 0:
            return self.derivative(-nu)
        c = self.c
        for _ in range(nu):
            k, ndim = int(c.shape[0]), len(c.shape) - 1
            c = c / np.arange(k, 0.0, -1).reshape(-1, *[1] * ndim)
            h = column(np.diff(self.x), ndim)
            whole = c[0]
            for m in range(1, k):
                whole = whole * h + c[m]
            whole = cumsum(whole * h, axis=0)
            start = concat(whole[:1] * 0.0, whole[:-1], axis=0)
            c = concat(c, start[None], axis=0)
        return self._like(c, False if self.extrapolate == "periodic" else self.extrapolate)

    def _like(self, c: Any, extrapolate: Any) -> "PPoly":
        made = object.__new__(PPoly)
        made._set(c, self.x, extrapolate, self.axis, self._descending)
        return made

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two numbers, with gradients in them."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        a, b = (reshape(tensor("integrate", end, "limit", real=True), ()) for end in (a, b))
        whole = self._like(self.antiderivative().c, True)
        whole.axis = 0
        periodic = extrapolate == "periodic"
        whole.extrapolate = periodic or bool(extrapolate)
        return between(whole, a, b, self.x[0], self.x[-1], periodic)

    def solve(self, y: Any = 0.0, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """Places at which the polynomial is ``y``, in ascending order, by SciPy.

        Parameters
        ----------
        y : float
            The value, to which gradients go.
        discontinuity : bool
            Whether a jump across ``y`` counts.
        extrapolate : bool or 'periodic'
            Whether places beyond the ends count; by default as the polynomial says.

        Returns
        -------
        Tensor
            The places; of coefficients with more axes an array of such Tensors. A piece that is
            ``y`` throughout gives its first place and NaN.

        Raises
        ------
        NumgradTypeError
            If coefficients are complex.
        NumgradTraceError
            In a compiled function or a batch: how many places there are depends on numbers.

        Notes
        -----
        Gradients are implicit: ``dx = (dy - dp(x)) / p'(x)``, of any order by Newton steps from the
        place found; at a jump they are those of the breakpoint, at a double root they are infinite.
        """
        from scipy.interpolate import PPoly as SciPyPPoly

        if self.c.dtype.kind == "c":
            raise NumgradTypeError("solve: places are found of real polynomials, got complex ones")
        y = reshape(tensor("solve", y, "y", real=True), ())
        numbers = known(self.c), known(self.x), known(y)
        if any(each is None for each in numbers):
            raise NumgradTraceError(
                "solve: how many places there are depends on numbers, which compiled functions and "
                "batches do not have; solve outside, or take a Newton step from a place nearby"
            )
        c, x, value = numbers
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        of_numbers = SciPyPPoly.construct_fast(c, x, self.extrapolate)
        places = of_numbers.solve(float(value), discontinuity, extrapolate)
        if len(self.c.shape) == 2:
            return self._followed(places, self.c, y)
        out = np.empty(places.shape, object)
        for k in np.ndindex(places.shape):
            out[k] = self._followed(places[k], self.c[(slice(None), slice(None), *k)], y)
        return out

    def roots(self, discontinuity: bool = True, extrapolate: Any = None) -> Any:
        """Places at which the polynomial is 0; see ``solve``."""
        return self.solve(0.0, discontinuity, extrapolate)

    def _followed(self, places: np.ndarray, c: Any, y: Any) -> Any:
        """Places as functions of coefficients, breakpoints and the value."""
        p = self._like(c, True)
        p.axis, slope = 0, p.derivative()
        start = Tensor(places)
        residual = (p(start) - y).detach()
        out = start
        for _ in range(3):  # the k-th derivative needs log2(k + 1) steps
            rise = slope(out)
            flat = np.isnan(rise) | (rise == 0)
            out = where(flat, out, out - (p(out) - y - residual) / where(flat, 1.0, rise))
        x, size = known(self.x), np.max(np.abs(known(c)[-1]), initial=0.0)
        jump = np.isin(places, x) & (np.abs(residual._array) > 1e-10 * size)
        if not np.any(jump):
            return out
        return where(jump, take(self.x, np.argmax(x == places[:, None], axis=1)), out)


@container("c", "x")
class CubicHermiteSpline(PPoly):
    """Piecewise cubic interpolant of values and first derivatives.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, strictly increasing.
    y : array_like
        Values, with ``n`` along ``axis``.
    dydx : array_like
        Derivatives, of the shape of ``y``.
    axis : int
        The axis of ``y`` that belongs to the points.
    extrapolate : bool or 'periodic'
        As of ``PPoly``.

    Raises
    ------
    NumgradValueError
        If points are not increasing or shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], [0.0, 0.0])(0.5)
    tensor(0.5)
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        name = type(self).__name__
        x = increasing(name, x)
        y, axis = data(name, x, y, axis)
        dydx, _ = data(name, x, dydx, axis)
        if tuple(y.shape) != tuple(dydx.shape):
            raise NumgradValueError(
                f"{name}: y and dydx have shapes {tuple(y.shape)} and {tuple(dydx.shape)} with the "
                "axis first; they must be equal"
            )
        self._hermite(x, y, dydx, axis, extrapolate)

    def _hermite(self, x: Any, y: Any, dydx: Any, axis: int, extrapolate: Any) -> None:
        self._set(hermite_pieces(x, y, dydx), x, extrapolate, axis)


def hermite_pieces(x: Any, y: Any, dydx: Any) -> Any:
    """Coefficients of cubics with these values and derivatives at points."""
    h = column(np.diff(x), len(y.shape))
    slope = np.diff(y, axis=0) / h
    before, after = dydx[:-1], dydx[1:]
    bend = (before + after - 2 * slope) / h
    rows = bend / h, (slope - before) / h - bend, before + 0 * y[:-1], y[:-1] + 0 * before
    return np.stack(rows)


def between(whole: Any, a: Any, b: Any, low: Any, high: Any, periodic: bool) -> Any:
    """The integral between two numbers, of an antiderivative with these ends."""

    def until(end: Any) -> Any:
        if not periodic:
            return whole(end)
        turns = np.floor((end - low) / (high - low))
        return turns * (whole(high) - whole(low)) + whole(end - turns * (high - low))

    return until(b) - until(a)


@container("c", "x")
class PchipInterpolator(CubicHermiteSpline):
    """Monotone piecewise cubic interpolant by Fritsch and Butland [1]_.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, strictly increasing.
    y : array_like
        Real values, with ``n`` along ``axis``.
    axis : int
        The axis of ``y`` that belongs to the points.
    extrapolate : bool
        As of ``PPoly``.

    Raises
    ------
    NumgradValueError
        If points are not increasing or shapes do not fit.

    Notes
    -----
    The derivative at a point is the harmonic mean of the slopes beside it, 0 where they differ in
    sign: there the gradient in ``y`` is 0 as well.

    References
    ----------
    .. [1] F. N. Fritsch, J. Butland, "A method for constructing local monotone piecewise cubic
       interpolants", SIAM J. Sci. Stat. Comput. 5, 1984.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.PchipInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 1.0])([0.5, 1.5])
    tensor([0.6875, 1.    ])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x = increasing("PchipInterpolator", x)
        y, axis = data("PchipInterpolator", x, y, axis, real=True)
        self._hermite(x, y, monotone_slopes(x, y), axis, extrapolate)


def monotone_slopes(x: Any, y: Any) -> Any:
    """Derivatives at points that keep the data's monotonicity."""
    h = column(np.diff(x), len(y.shape))
    slope = np.diff(y, axis=0) / h
    if x.shape[0] == 2:
        return concat(slope, slope, axis=0)
    before, after = slope[:-1], slope[1:]
    turns = (np.sign(before) != np.sign(after)) | (before == 0) | (after == 0)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    mean = w1 / where(turns, 1.0, before) + w2 / where(turns, 1.0, after)
    inner = where(turns, 0.0, (w1 + w2) / where(turns, 1.0, mean))
    first = _end_slope(h[:1], h[1:2], slope[:1], slope[1:2])
    last = _end_slope(h[-1:], h[-2:-1], slope[-1:], slope[-2:-1])
    return concat(first, inner, last, axis=0)


def _end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The one-sided derivative of three points, limited so that the end stays monotone."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    away = np.sign(d) != np.sign(m0)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3 * np.abs(m0))
    return where(away, 0.0, where(steep, 3 * m0, d))


@container("c", "x")
class Akima1DInterpolator(CubicHermiteSpline):
    """Piecewise cubic interpolant by Akima [1]_, whose pieces depend on points nearby alone.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, strictly increasing.
    y : array_like
        Real values, with ``n`` along ``axis``.
    axis : int
        The axis of ``y`` that belongs to the points.
    method : {'akima', 'makima'}
        Akima's weights, or modified ones that overshoot less.
    extrapolate : bool or 'periodic'
        As of ``PPoly``, but False by default.

    Raises
    ------
    NumgradValueError
        If points are not increasing or shapes do not fit.

    References
    ----------
    .. [1] H. Akima, "A new method of interpolation and smooth curve fitting based on local
       procedures", J. ACM 17, 1970.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.interpolate.Akima1DInterpolator([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])(1.5)
    tensor(2.25)
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
    ) -> None:
        if method not in ("akima", "makima"):
            raise NumgradValueError(
                f"Akima1DInterpolator: method is 'akima' or 'makima', got {method!r}"
            )
        x = increasing("Akima1DInterpolator", x)
        y, axis = data("Akima1DInterpolator", x, y, axis, real=True)
        slopes = _akima_slopes(x, y, method == "makima")
        self._hermite(x, y, slopes, axis, False if extrapolate is None else extrapolate)


def _akima_slopes(x: Any, y: Any, modified: bool) -> Any:
    slope = np.diff(y, axis=0) / column(np.diff(x), len(y.shape))
    if x.shape[0] == 2:
        return concat(slope, slope, axis=0)
    first = 2 * slope[:1] - slope[1:2]
    last = 2 * slope[-1:] - slope[-2:-1]
    m = concat(
        2 * first - slope[:1], first, slope, last, 2 * last - slope[-1:], axis=0
    )  # two more on both sides
    change = np.abs(np.diff(m, axis=0))
    if modified:
        change = change + 0.5 * np.abs(m[1:] + m[:-1])
    f1, f2 = change[2:], change[:-2]
    both = f1 + f2
    clear = both > 1e-9 * np.max(both) if 0 not in both.shape else both > 0
    weighted = m[1:-2] + f2 / where(clear, both, 1.0) * (m[2:-1] - m[1:-2])
    return where(clear, weighted, 0.5 * (m[3:] + m[:-3]))
