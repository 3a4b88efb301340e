"""``ng.curve_fit``: a model's parameters from data, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from numgrad.core.tree import leaves, map_leaves
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optimize.curve import FittedCurve
from numgrad.optimize.least_squares import solved
from numgrad.optimize.models import Model
from numgrad.optimize.uncertainty import covariance
from numgrad.optimize.values import Values, sum_of_squares
from numgrad.optimize.watch import Watch
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.compiled import jitted_in


def curve_fit(
    model: Callable[..., Any],
    x: Any,
    y: Any,
    p0: Any = None,
    *,
    sigma: Any = None,
    absolute_sigma: bool = False,
    bounds: Any = None,
    method: str | None = None,
    loss: str | Callable[..., Any] = "linear",
    f_scale: float = 1.0,
    x_scale: Any = None,
    ftol: float | None = None,
    xtol: float | None = None,
    gtol: float | None = None,
    max_nfev: int | None = None,
    jit: bool = False,
    progress: bool = False,
    on_interrupt: str = "raise",
) -> FittedCurve:
    """Fit a model to data by least squares, with exact Jacobians.

    Parameters
    ----------
    model
        ``model(x, a, b, ...)`` says what is expected at ``x``; written with NumPy. As in SciPy,
        parameters with defaults are fitted too, unless ``p0`` is shorter. Parameters given
        as a dict come by keyword, if it takes such; in other containers as they are,
        ``model(x, parameters)``.
    x
        Where was measured: handed to the model as it is, lists as arrays. Anything the model takes.
    y
        What was measured: real numbers, of the shape that the model returns.
    p0
        Where to start: numbers, or a nesting of arrays; by default ones.
    sigma
        Standard deviations of ``y``, of its shape or one for all; or the matrix of covariances.
    absolute_sigma
        Take ``sigma`` as it is. By default it says only how errors compare, and the fit says how
        large they are.
    bounds, method, loss, f_scale, x_scale, ftol, xtol, gtol, max_nfev
        As for ``ng.least_squares``.
    jit
        Compile model and Jacobian, once for each model: the next fit finds them compiled.
    progress, on_interrupt
        As for ``ng.minimize``.

    Returns
    -------
    FittedCurve
        With ``parameters``, nested as ``p0``, ``standard_errors`` beside them, ``covariance``,
        ``confidence_band(x)``, ``summary()`` and ``plot()``. ``parameters, covariance = fit`` works
        as with SciPy's.

    Raises
    ------
    NumgradTypeError
        If data or parameters are no real numbers.
    NumgradValueError
        If shapes do not fit, data are not finite, or there are fewer of them than parameters.
    NumgradRuntimeError
        If the solver gives up: the message has its reason and the point it reached.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def decay(x, amplitude, rate):
    ...     return amplitude * np.exp(-rate * x)
    >>> x = np.linspace(0, 4, 30)
    >>> fit = ng.curve_fit(decay, x, 2 * np.exp(-0.7 * x) + 0.01 * np.cos(40 * x))
    >>> fit.names, fit.parameters.round(2), fit.standard_errors.round(3)
    (['amplitude', 'rate'], array([2. , 0.7]), array([0.004, 0.002]))
    >>> low, high = fit.confidence_band([1.0])
    >>> bool(low[0] < 2 * np.exp(-0.7) < high[0])
    True
    """
    name = "curve_fit"
    watch = Watch(name, progress, on_interrupt)
    described = Model(name, model, p0)
    x = map_leaves(_plain, x) if not isinstance(x, list | tuple) else _arrays(x)
    for leaf in leaves(x):
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc":
            _finite(name, "x", leaf)
    data = np.asarray(_plain(y))
    if data.dtype.kind not in "biuf":
        raise NumgradTypeError(
            f"{name}: y has dtype {data.dtype}; it has real numbers (stack real and imaginary part)"
        )
    data = np.asarray(data, np.float64)
    _finite(name, "y", data)
    unknowns = described.unknowns
    if data.size < unknowns.x0.size:
        raise NumgradValueError(
            f"{name}: {data.size} data do not determine {unknowns.x0.size} parameters; measure "
            "more, or fit fewer"
        )
    weights = _weights(name, sigma, data.shape)
    args = (x, data, weights)
    jit = jit or jitted_in(model) is not None
    values = Values(name, described.residuals(), unknowns, args, jit, watch, judge=sum_of_squares)
    options = {"ftol": ftol, "xtol": xtol, "gtol": gtol, "max_nfev": max_nfev}
    options |= {"loss": loss, "f_scale": f_scale, "x_scale": x_scale}
    result = solved(values, method, bounds, **options)
    if not result.success and result.status != -1:
        raise NumgradRuntimeError(
            f"{name}: no fit after {watch.count} evaluations; the solver says: {result.message} It "
            f"reached {unknowns.shown(result.x)!r} with a sum of squares of "
            f"{2 * result.cost:.6g}; start nearer, raise max_nfev, or write the model so that "
            "parameters are of similar size"
        )
    free = data.size - unknowns.x0.size
    variance = 1.0 if absolute_sigma else 2 * result.cost / free if free else np.inf
    if "jac" not in result:  # interrupted
        result.fun, result.jac = values.fun(result.x), values.jac(result.x)
    found = covariance(result.jac, variance)
    return FittedCurve(described, x, data, weights, result, found, absolute_sigma)


def _plain(leaf: Any) -> Any:
    check_array_kind("curve_fit", leaf)
    return leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf


def _arrays(x: Any) -> Any:
    """A list of numbers, or of columns of one length, as SciPy takes it."""
    try:
        return np.array([_plain(part) for part in x], dtype=np.float64)
    except (ValueError, TypeError):
        return map_leaves(_plain, x)


def _finite(name: str, called: str, array: np.ndarray) -> None:
    wrong = array.size - int(np.isfinite(array).sum())
    if wrong:
        raise NumgradValueError(
            f"{name}: {wrong} of the {array.size} numbers in {called} are not finite; leave these "
            "data out"
        )


def _weights(name: str, sigma: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """What residuals are multiplied by: an array, or a matrix from the left."""
    if sigma is None:
        return None
    sigma = np.asarray(_plain(sigma), np.float64)
    count = int(np.prod(shape))
    if sigma.ndim == 2 and sigma.shape == (count, count) and sigma.shape != shape:
        try:
            lower = np.linalg.cholesky(sigma)
        except np.linalg.LinAlgError:
            raise NumgradValueError(
                f"{name}: sigma is a matrix, and not a covariance: it is not positive definite"
            ) from None
        return solve_triangular(lower, np.eye(count), lower=True)
    if sigma.shape not in ((), shape):
        raise NumgradValueError(
            f"{name}: sigma has shape {sigma.shape}, y has shape {shape}; give a number, one for "
            f"each of y, or a matrix of shape {(count, count)}"
        )
    if not (np.isfinite(sigma).all() and (sigma > 0).all()):
        raise NumgradValueError(f"{name}: standard deviations in sigma are positive and finite")
    return np.broadcast_to(1 / sigma, shape).copy()
