"""Smoothing splines: a system of five diagonals, and cross-validation."""

from typing import Any

import numpy as np

from numgrad.errors import NumgradTraceError, NumgradValueError
from numgrad.implicit.equations import root
from numgrad.interpolate.bsplines import BSpline
from numgrad.interpolate.piecewise import column, data, increasing, known, tensor
from numgrad.operations.choice import where
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra.structured import solve_banded
from numgrad.operations.shape import broadcast_to, reshape
from numgrad.operations.take import take


def make_smoothing_spline(
    x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0
) -> BSpline:
    """The cubic spline with the least ``sum(w * (y - f(x))**2) + lam * integral(f''**2)``.

    Parameters
    ----------
    x : array_like of shape (n,)
        Points, at least five, strictly increasing.
    y : array_like
        Real values, with ``n`` along ``axis``.
    w : array_like of shape (n,)
        Weights, which are positive; by default 1.
    lam : float
        How much curvature costs, to which gradients go; by default the minimizer between 0 and
        ``n`` of generalized cross-validation, which depends on the data, as gradients know.
    axis : int
        The axis of ``y`` that belongs to the points.

    Returns
    -------
    BSpline
        Of degree 3.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, or a weight or ``lam`` is negative.
    NumgradTraceError
        Without ``lam`` in a compiled function or a batch.

    Notes
    -----
    Second derivatives at points solve a system of five diagonals [1]_. Cross-validation needs
    matrices of ``n`` rows and columns; it is minimized to full precision, by SciPy to about 1e-5.

    References
    ----------
    .. [1] P. J. Green, B. W. Silverman, "Nonparametric Regression and Generalized Linear Models",
       Chapman and Hall, 1994, section 2.3.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = np.arange(6.0)
    >>> def bend(lam):
    ...     return ng.interpolate.make_smoothing_spline(x, np.cos(3 * x), lam=lam)(2.5, nu=2)
    >>> ng.grad(bend)(1.0).round(6)
    np.float64(0.006819)
    """
    name = "make_smoothing_spline"
    x = increasing(name, x, least=5)
    y, axis = data(name, x, y, axis, real=True)
    n, rest = x.shape[0], tuple(y.shape[1:])
    w = 0.0 * x + 1.0 if w is None else reshape(tensor(name, w, "w", real=True), (n,))
    weighted = known(w)
    if weighted is not None and np.any(weighted <= 0):
        raise NumgradValueError(f"{name}: weights w must be positive")
    columns = reshape(y, (n, -1))
    if lam is None:
        chosen = [_validated(x, columns[:, m], w) for m in range(int(columns.shape[1]))]
        lam = np.stack(chosen) if len(chosen) > 1 else chosen[0]
    lam = tensor(name, lam, "lam", real=True)
    numbers = known(lam)
    if numbers is not None and np.any(numbers < 0):
        raise NumgradValueError(f"{name}: lam is not negative, got {numbers}")
    if len(lam.shape):  # one for each column
        fits = [_smoothed(x, columns[:, m : m + 1], w, lam[m]) for m in range(lam.shape[0])]
        values, bends = (concat([fit[m] for fit in fits], axis=1) for m in range(2))
    else:
        values, bends = _smoothed(x, columns, w, lam)
    h = np.diff(x)
    wide, slope = column(h, 2), np.diff(values, axis=0) / column(h, 2)
    rise = concat(
        slope - wide * (2 * bends[:-1] + bends[1:]) / 6,
        slope[-1:] + wide[-1:] * (bends[-2:-1] + 2 * bends[-1:]) / 6,
        axis=0,
    )
    # coefficients are blossoms at the three inner knots of each basis function
    spots = np.clip(np.arange(-1, n + 1), 0, n - 1)
    middle = take(x, spots)
    left = take(x, np.clip(spots - 1, 0, n - 1)) - middle
    right = take(x, np.clip(spots + 1, 0, n - 1)) - middle
    inner = (np.arange(n + 2) > 0) & (np.arange(n + 2) < n + 1)
    left, right = (column(where(inner, side, 0.0), 2) for side in (left, right))
    c = (
        take(values, spots, axis=0)
        + take(rise, spots, axis=0) * (left + right) / 3
        + take(bends, spots, axis=0) * left * right / 6
    )
    t = concat(broadcast_to(x[:1], (3,)), x, broadcast_to(x[-1:], (3,)), axis=0)
    return BSpline.construct_fast(t, reshape(c, (n + 2, *rest)), 3, True, axis)


def _smoothed(x: Any, y: Any, w: Any, lam: Any) -> tuple[Any, Any]:
    """Values and second derivatives at points."""
    r, k = _curvature(x, w)
    bends = solve_banded((2, 2), r + lam * k, _second(x, y))
    values = y - lam * _second_adjoint(x, bends) / column(w, 2)
    zero = 0.0 * bends[:1]
    return values, concat(zero, bends, zero, axis=0)


def _second(x: Any, y: Any) -> Any:
    """Differences of neighbouring slopes: the product with ``Q.T``."""
    return np.diff(np.diff(y, axis=0) / column(np.diff(x), len(y.shape)), axis=0)


def _second_adjoint(x: Any, z: Any) -> Any:
    """The product with ``Q``."""
    zero = 0.0 * z[:1]
    steps = np.diff(concat(zero, z, zero, axis=0), axis=0) / column(np.diff(x), len(z.shape))
    return np.diff(concat(zero, steps, zero, axis=0), axis=0)


def _curvature(x: Any, w: Any) -> tuple[Any, Any]:
    """Five diagonals each of ``R``, the products of hat functions, and of ``Q.T / w @ Q``."""
    h = np.diff(x)
    g, u = 1.0 / h, 1.0 / w
    zero = np.zeros(1)

    def bands(main: Any, beside: Any, beyond: Any) -> Any:
        rows = [
            concat(zero, zero, beyond, axis=0), concat(zero, beside, axis=0), main,
            concat(beside, zero, axis=0), concat(beyond, zero, zero, axis=0),
        ]  # fmt: skip
        return np.stack(rows)

    middle = -(g[:-1] + g[1:])
    r = bands((h[:-1] + h[1:]) / 3, h[1:-1] / 6, 0.0 * h[2:-1])
    main = g[:-1] ** 2 * u[:-2] + middle**2 * u[1:-1] + g[1:] ** 2 * u[2:]
    beside = g[1:-1] * (middle[:-1] * u[1:-2] + middle[1:] * u[2:-1])
    return r, bands(main, beside, g[1:-2] * g[2:-1] * u[2:-2])


def _validated(x: Any, y: Any, w: Any) -> Any:
    """The ``lam`` of least generalized cross-validation, with its gradient."""
    from scipy.optimize import brentq, minimize_scalar

    if any(known(each) is None for each in (x, y, w)):
        raise NumgradTraceError(
            "make_smoothing_spline: lam is chosen by numbers, which compiled functions and batches "
            "do not have; give lam"
        )

    def parts(lam: Any, x: Any, y: Any, w: Any) -> tuple[Any, Any, Any, Any]:
        """Residual and the trace of what it is of the data, and their derivatives by ``lam``."""
        r, k = _curvature(x, w)
        n = x.shape[0] - 2
        full = where(np.eye(n) > 0, k[2], 0.0)
        for m, band in ((1, k[1][1:]), (2, k[0][2:])):
            full = full + np.diag(band, m) + np.diag(band, -m)
        system = r + lam * k
        share = solve_banded((2, 2), system, full)
        bends = solve_banded((2, 2), system, _second(x, y[:, None]))
        moved = bends - lam * (share @ bends)
        residual = lam * _second_adjoint(x, bends)[:, 0] / w
        rate = _second_adjoint(x, moved)[:, 0] / w
        trace = np.sum(np.diag(share))
        return residual, rate, lam * trace, trace - lam * np.sum(share * share.T)

    def slope(lam: Any, *data: Any) -> Any:
        residual, rate, trace, change = parts(lam, *data)
        return np.sum(residual * rate) * trace - np.sum(residual * residual) * change

    numbers: list[Any] = [tensor("", known(each), "") for each in (x, y, w)]

    def score(lam: float) -> float:
        residual, _, trace, _ = parts(lam, *numbers)
        return float(np.sum(residual * residual) / trace**2)

    n = int(x.shape[0])
    search: Any = minimize_scalar(score, bounds=(0, n), method="bounded")
    best = float(search.x)

    def derivative(lam: float) -> float:
        return float(slope(lam, *numbers))

    low, high = best * (1 - 1e-3) - 1e-5, min(best * (1 + 1e-3) + 1e-5, n)
    low = max(low, best * 1e-3)
    if not derivative(low) < 0 < derivative(high):  # at an end of the range, or the data are exact
        return tensor("", best, "")
    exact: Any = brentq(derivative, low, high, xtol=1e-15 * best, rtol=np.float64(1e-14))
    return root(slope, exact, (x, y, w), solver=lambda f, start: start)
