"""``ng.curve_fit``: a model's parameters from data, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from numgrad.core.tree import flatten, leaves, map_leaves
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optimize.fitted_curve import (
    LABELLED,
    PANDAS,
    FittedCurve,
    is_labelled,
    labels_of,
)
from numgrad.optimize.least_squares import solved
from numgrad.optimize.models import Model
from numgrad.optimize.objective import Values, sum_of_squares
from numgrad.optimize.results import refuses
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import Watch
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.labels import indices
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import jitted_in


@refuses(
    xdata="it is x", ydata="it is y", maxfev="it is max_nfev", jac="Jacobians are exact",
    full_output="the result has all", check_finite="see nan_policy",
)  # fmt: skip
def curve_fit(
    model: Callable[..., Any],
    x: Any,
    y: Any,
    p0: Any = None,
    *,
    sigma: Any = None,
    absolute_sigma: bool = False,
    bounds: Any = None,
    fixed: Any = None,
    tie: Mapping[str, Any] | None = None,
    nan_policy: str = "raise",
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
        Where to start: numbers, a nesting of arrays, or a Series; by default ones, also for what a
        dict of parameters leaves out.
    sigma
        Standard deviations of ``y``, of its shape or one for all; or the matrix of covariances.
    absolute_sigma
        Take ``sigma`` as it is. By default it says only how errors compare, and the fit says how
        large they are.
    fixed, tie
        Parameters that are not fitted, or follow others, by name: as for ``ng.minimize``. Where
        ``p0`` is a dict, ties may have parameters that the model does not take: ``b >= a`` is
        ``p0={"gap": 1.0}, tie={"b": "a + gap"}, bounds={"gap": (0, None)}``.
    nan_policy
        ``"raise"`` refuses data with NaN, ``"omit"`` leaves them out, also those whose ``sigma`` is
        NaN.
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
        ``confidence_band(x)``, ``profile(name)``, ``bootstrap()``, ``summary()`` and ``plot()``.
        ``parameters, covariance = fit`` works as with SciPy's. Of data, or a start, of pandas
        vectors are Series, matrices and bands DataFrames.

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
    >>> half = ng.curve_fit(decay, x, np.exp(-0.5 * x), tie={"amplitude": "2 * rate"})
    >>> half.parameters.round(6)
    array([1. , 0.5])
    """
    name = "curve_fit"
    watch = Watch(name, progress, on_interrupt)
    described = Model(name, model, p0, fixed, tie, bounds)
    x, data, sigma, index = _data(name, x, y, sigma, nan_policy)
    described.labelled = described.labelled or any(is_labelled(e, PANDAS) for e in (x, y))
    unknowns = described.unknowns
    if data.size < unknowns.x0.size:
        raise NumgradValueError(
            f"{name}: {data.size} data do not determine {unknowns.x0.size} parameters; measure "
            "more, or fit fewer"
        )
    weights = _weights(name, sigma, data.shape)
    jit = jit or jitted_in(model) is not None
    options = {"ftol": ftol, "xtol": xtol, "gtol": gtol, "max_nfev": max_nfev, "method": method}
    options |= {"loss": loss, "f_scale": f_scale, "x_scale": x_scale, "bounds": bounds}
    solve = partial(_solve, described, (x, data, weights), jit, options)
    result = solve(unknowns, watch)
    if not result.success and result.status != -1:
        raise NumgradRuntimeError(
            f"{name}: no fit after {watch.count} evaluations; the solver says: {result.message} It "
            f"reached {described.shown(unknowns.expanded(result.x))!r} with a sum of squares of "
            f"{2 * result.cost:.6g}; start nearer, raise max_nfev, or write the model so that "
            "parameters are of similar size"
        )
    return FittedCurve(described, x, data, weights, index, result, solve, bounds, absolute_sigma)


def _solve(
    described: Model,
    args: tuple,
    jit: bool,
    options: dict[str, Any],
    unknowns: Unknowns,
    watch: Watch | None = None,
    of: tuple | None = None,
    **others: Any,
) -> Any:
    """Fit a model to data ``(x, y, weights)``, or ``of`` others with places to choose residuals."""
    watch = Watch("curve_fit") if watch is None else watch
    args = args if of is None else of
    residuals = described.residuals(chosen=len(args) == 4)
    values = Values("curve_fit", residuals, unknowns, args, jit, watch, sum_of_squares)
    result = solved(values, **options | others)
    if "jac" not in result:  # interrupted
        result.fun, result.jac = values.fun(result.x), values.jac(result.x)
    return result


def _plain(leaf: Any) -> Any:
    """Data of the fit's own, which stay what they are if the caller's array is used again."""
    check_array_kind("curve_fit", leaf)
    leaf = leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf
    return leaf.copy() if isinstance(leaf, np.ndarray) or is_labelled(leaf, LABELLED) else leaf


def _check_labels(name: str, **data: Any) -> None:
    """Raise if data have labels that differ: they would be matched by place."""
    first: tuple[str, Any] | None = None
    for called, nesting in data.items():
        parts: list[Any] = []
        several = [labels_of(nesting)]
        if several[0] is None:
            several = [*indices(flatten(nesting, parts)), *map(labels_of, parts)]
        for labels in several:
            if labels is None:
                continue
            first = first or (called, labels)
            if not _match(first[1], labels):
                raise NumgradValueError(
                    f"{name}: {first[0]} and {called} have different labels, and data are matched "
                    "by place; bring both into one order, as by .reindex_like, or give .to_numpy()"
                )


def _match(one: Any, other: Any) -> bool:
    arrays = [is_labelled(x, LABELLED) for x in (one, other)]
    if not all(arrays):
        return any(arrays) or one.equals(other)
    return one.dims == other.dims and all(
        one.indexes[key].equals(other.indexes[key]) for key in one.indexes if key in other.indexes
    )


def _arrays(x: Any) -> Any:
    """A list of numbers, or of columns of one length, as SciPy takes it."""
    try:
        return np.array([_plain(item) for item in x], dtype=np.float64)
    except (ValueError, TypeError):
        return map_leaves(_plain, x)


def _data(name: str, x: Any, y: Any, sigma: Any, nan_policy: str) -> tuple[Any, ...]:
    """Data as arrays, those with NaN refused or left out, and labels."""
    if nan_policy not in ("raise", "omit"):
        raise NumgradValueError(
            f"{name}: nan_policy is {nan_policy!r}; choose 'raise', or 'omit' to leave data with "
            "NaN out"
        )
    _check_labels(name, x=x, y=y, sigma=sigma)
    index = next((labels for labels in map(labels_of, (y, x)) if labels is not None), None)
    x = map_leaves(_plain, x) if not isinstance(x, list | tuple) else _arrays(x)
    data = np.asarray(_plain(y))
    if data.dtype.kind not in "biuf":
        raise NumgradTypeError(
            f"{name}: y has dtype {data.dtype}; it has real numbers (stack real and imaginary part)"
        )
    data = np.asarray(data, np.float64)
    sigma = None if sigma is None else np.asarray(_plain(sigma), np.float64)
    if nan_policy == "omit":
        missing = np.isnan(data)
        if sigma is not None and sigma.shape == data.shape:
            missing = missing | np.isnan(sigma)
        for leaf in leaves(x):
            array = np.asarray(leaf)
            if array.dtype.kind in "fc" and data.ndim == 1 and _runs_along(leaf, array, data.size):
                others = 1 if _is_frame(leaf) else tuple(range(array.ndim - 1))
                missing = missing | np.isnan(array).any(axis=others)
        if missing.any():
            if data.ndim != 1:
                raise NumgradValueError(
                    f"{name}: nan_policy='omit' leaves data out of a vector, and y has shape "
                    f"{data.shape}; give y, x and sigma flat, or without what is missing"
                )
            keep = ~missing
            x, data = _cut(x, keep), data[keep]
            if sigma is not None and sigma.shape == (keep.size, keep.size):
                sigma = sigma[np.ix_(keep, keep)]
            elif sigma is not None and sigma.shape == keep.shape:
                sigma = sigma[keep]
            index = None if index is None else index[keep]
    for leaf in leaves(x):
        array = np.asarray(leaf)
        if array.dtype.kind in "fc":
            _finite(name, "x", array)
    _finite(name, "y", data)
    return x, data, sigma, index


def _is_frame(leaf: Any) -> bool:
    return is_labelled(leaf, PANDAS[1:])


def _runs_along(leaf: Any, array: np.ndarray, size: int) -> bool:
    """Whether an array of x has a place for each of y: rows of a frame, else the last axis."""
    return array.ndim > 0 and array.shape[0 if _is_frame(leaf) else -1] == size


def _cut(x: Any, keep: np.ndarray) -> Any:
    """Data of x at some places."""
    if not hasattr(x, "shape"):
        return map_leaves(lambda leaf: _cut(leaf, keep) if hasattr(leaf, "shape") else leaf, x)
    if not _runs_along(x, np.asarray(x), keep.size):
        return x
    return x[keep] if is_labelled(x, PANDAS) else x[..., keep]


def _finite(name: str, called: str, array: np.ndarray) -> None:
    wrong = array.size - int(np.isfinite(array).sum())
    if wrong:
        raise NumgradValueError(
            f"{name}: {wrong} of the {array.size} numbers in {called} are not finite; leave these "
            "data out, as nan_policy='omit' does with NaN"
        )


def _weights(name: str, sigma: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Weights of residuals: an array that multiplies them, or a matrix from the left."""
    if sigma is None:
        return None
    count = int(np.prod(shape))
    if sigma.ndim == 2 and sigma.shape == (count, count) and sigma.shape != shape:
        if np.any(np.abs(sigma - sigma.T) > 1e-8 * np.max(np.abs(sigma))):
            raise NumgradValueError(
                f"{name}: sigma is a matrix, and not a covariance: it is not symmetric; give "
                "(sigma + sigma.T) / 2 if that is what is meant"
            )
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
