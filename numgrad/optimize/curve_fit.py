"""``ng.curve_fit``: a model's parameters from data, exact derivatives, and covariances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular

from numgrad.core.tree import leaves, map_leaves
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optimize.least_squares import covariance, solved, standard_errors
from numgrad.optimize.models import Model
from numgrad.optimize.objective import Values, sum_of_squares
from numgrad.optimize.watch import Watch
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import jitted_in
from numgrad.transforms.derivatives import jacobian


class FittedCurve:
    """Result of ``ng.curve_fit``.

    Attributes
    ----------
    parameters, standard_errors
        Nested, shaped and of the dtypes of ``p0``.
    covariance
        Of all numbers among the parameters, in the order of ``names``.
    names
        The numbers among the parameters, as the model or ``p0`` calls them.
    rss
        The sum of its squares, weighted by ``sigma``.
    degrees_of_freedom
        Data without parameters.
    result
        What SciPy's ``least_squares`` returned, about the vector of parameters.
    """

    def __init__(
        self,
        model: Model,
        x: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        result: Any,
        covariance: np.ndarray,
        absolute_sigma: bool,
    ) -> None:
        unknowns = model.unknowns
        self.model, self._described = model.function, model
        self.x, self.y, self.result, self.covariance = x, y, result, covariance
        self.names = model.names()
        self.parameters = unknowns.shown(result.x)
        self.standard_errors = unknowns.shown(standard_errors(covariance))
        self.degrees_of_freedom = y.size - unknowns.x0.size
        self.rss = sum_of_squares(result.fun)
        self._weights, self._absolute = weights, absolute_sigma

    @cached_property
    def residuals(self) -> np.ndarray:
        """Residuals, model minus data, of the shape of ``y``."""
        return np.broadcast_to(self(self.x), self.y.shape) - self.y

    def __iter__(self) -> Iterator[Any]:
        """``parameters, covariance = fit``."""
        return iter((self.parameters, self.covariance))

    def __call__(self, x: Any) -> np.ndarray:
        """Prediction of the fitted model at ``x``."""
        unknowns = self._described.unknowns
        x = np.asarray(x, np.float64) if isinstance(x, list | tuple) else x
        leaves = [Tensor(array) for array in unknowns.arrays(self.result.x)]
        prediction = self._described.prediction()(unknowns.nested(leaves), x)
        return (
            prediction.detach().numpy()
            if isinstance(prediction, Tensor)
            else np.asarray(prediction)
        )

    @property
    def residual_standard_error(self) -> float:
        """The standard deviation of what is left."""
        free = self.degrees_of_freedom
        return float(np.sqrt(self.rss / free)) if free else np.inf

    @property
    def r_squared(self) -> float:
        """The share of the spread of ``y`` that the model explains."""
        total = float(np.sum((self.y - self.y.mean()) ** 2))
        return 1 - float(np.sum(self.residuals**2)) / total if total else np.nan

    def confidence_intervals(self, level: float = 0.95) -> np.ndarray:
        """Lower and upper ends for each number among the parameters, of shape (count, 2)."""
        half = self._quantile(level) * standard_errors(self.covariance)
        center = self.result.x
        return np.stack([center - half, center + half], axis=1)

    def confidence_band(
        self, x: Any = None, level: float = 0.95, *, prediction: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where the curve is with that confidence, or new data with ``prediction``.

        To first order in the parameters (delta method), with Student's t.

        Parameters
        ----------
        x
            Where; by default where was measured.
        level
            Between 0 and 1.
        prediction
            Add the spread of single measurements, for data without ``sigma`` or with one for all.

        Returns
        -------
        low, high : ndarray
            Of the shape that the model returns.

        Raises
        ------
        NumgradValueError
            If the level is not between 0 and 1, or the spread differs from one to another.
        """
        x = self.x if x is None else x
        x = np.asarray(x, np.float64) if isinstance(x, list | tuple) else x
        center = self(x)
        unknowns = self._described.unknowns
        function = self._described.prediction()
        blocks = jacobian(lambda p: function(unknowns.nested(p), x))(unknowns.arrays(self.result.x))
        rows = np.concatenate(
            [np.asarray(block).reshape(center.size, -1) for block in blocks], axis=1
        )
        with np.errstate(invalid="ignore"):
            variance = np.einsum("ij,jk,ik->i", rows, self.covariance, rows)
        if prediction:
            variance = variance + self._measurement_variance()
        half = self._quantile(level) * np.sqrt(variance).reshape(center.shape)
        return center - half, center + half

    def _measurement_variance(self) -> float:
        weights = self._weights
        if weights is not None and (weights.shape != self.y.shape or np.ptp(weights)):
            raise NumgradValueError(
                "confidence_band: measurements have standard deviations of their own (sigma); add "
                "that of the new one to the band of the curve"
            )
        scale = 1.0 if self._absolute else self.residual_standard_error**2
        return scale if weights is None else scale / float(weights.flat[0]) ** 2

    def _quantile(self, level: float) -> float:
        if not 0 < level < 1:
            raise NumgradValueError(f"the level of confidence is between 0 and 1, got {level!r}")
        return float(stats.t.ppf((1 + level) / 2, max(self.degrees_of_freedom, 1)))

    # ------------------------------------------------------------------------------- for readers

    def _table(self) -> list[tuple[str, ...]]:
        errors = standard_errors(self.covariance)
        ends = self.confidence_intervals()
        rows = [("", "value", "standard error", "95 % from", "to")]
        for name, value, error, (low, high) in zip(
            self.names, self.result.x, errors, ends, strict=True
        ):
            rows.append((name, f"{value:.8g}", f"{error:.3g}", f"{low:.6g}", f"{high:.6g}"))
        return rows

    def _facts(self) -> str:
        model = getattr(self.model, "__name__", type(self.model).__name__)
        return (
            f"{model}: {self.y.size} data, {len(self.names)} parameters, sum of squares "
            f"{self.rss:.6g}, residual standard error {self.residual_standard_error:.4g}, "
            f"R^2 {self.r_squared:.6f}"
        )

    def summary(self) -> str:
        """A table of the parameters, and how well the curve fits."""
        rows = self._table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if k == 0 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self._facts(), *lines])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            f"<tr><th>{escape(row[0])}</th>"
            + "".join(f"<td>{cell}</td>" for cell in row[1:])
            + "</tr>"
            for row in rows
        )
        return (
            f"<table><caption>{escape(self._facts())}</caption>"
            f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
        )

    def plot(self, axes: Any = None, *, level: float = 0.95, points: int = 300) -> Any:
        """Draw data, curve and its band of confidence with matplotlib.

        Parameters
        ----------
        axes
            Where to draw; by default a new figure's.
        level
            Of confidence.
        points
            How many of the curve.

        Returns
        -------
        matplotlib.axes.Axes
            With labels that may be changed.

        Raises
        ------
        NumgradRuntimeError
            If matplotlib is not installed.
        NumgradValueError
            If ``x`` is not one vector, so that there is no curve to draw.
        """
        if find_spec("matplotlib") is None:
            raise NumgradRuntimeError(
                "plot: needs matplotlib; python -m pip install 'numgrad-jit[plot]', or print "
                "summary()"
            )
        if np.ndim(self.x) != 1 or self.y.ndim != 1:
            raise NumgradValueError(
                f"plot: x has shape {np.shape(self.x)}; a curve is drawn over one vector, "
                "so draw what fit(x) returns yourself"
            )
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(layout="constrained").subplots()
        grid = np.linspace(np.min(self.x), np.max(self.x), points)
        low, high = self.confidence_band(grid, level)
        errors = None
        if self._weights is not None and self._weights.shape == self.y.shape:
            errors = 1 / self._weights
        axes.errorbar(self.x, self.y, errors, fmt=".", markersize=4, alpha=0.7, label="data")
        (line,) = axes.plot(grid, self(grid), color="C3", linewidth=1.3, label="fit")
        label = f"{100 * level:.6g} % confidence"
        axes.fill_between(grid, low, high, color=line.get_color(), alpha=0.25, label=label)
        axes.set_xlabel("x")
        axes.set_ylabel("y")
        axes.legend()
        return axes


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
    pcov = covariance(result.jac, variance)
    return FittedCurve(described, x, data, weights, result, pcov, absolute_sigma)


def _plain(leaf: Any) -> Any:
    check_array_kind("curve_fit", leaf)
    return leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf


def _arrays(x: Any) -> Any:
    """A list of numbers, or of columns of one length, as SciPy takes it."""
    try:
        return np.array([_plain(item) for item in x], dtype=np.float64)
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
    """Weights of residuals: an array that multiplies them, or a matrix from the left."""
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
