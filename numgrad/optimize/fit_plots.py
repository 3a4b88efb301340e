"""Pictures of fits with matplotlib, which is loaded when one is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradValueError

if TYPE_CHECKING:
    from numgrad.optimize.estimates import Estimates
    from numgrad.optimize.fitted_curve import FittedCurve


def curve(fit: FittedCurve, axes: Any, level: float, points: int) -> Any:
    """Data, curve and band."""
    axes = _axes("plot", axes)
    if np.ndim(fit.x) != 1 or fit.y.ndim != 1:
        raise NumgradValueError(
            f"plot: x has shape {np.shape(fit.x)}; a curve is drawn over one vector, so draw what "
            "fit(x) returns yourself"
        )
    grid = np.linspace(np.min(fit.x), np.max(fit.x), points)
    low, high = fit.band(grid, level)
    axes.errorbar(
        fit.x, fit.y, _deviations(fit), fmt=".", markersize=4, alpha=0.7, label="data", zorder=1
    )
    (line,) = axes.plot(grid, fit.curve(grid), color="C3", linewidth=1.3, label="fit")
    label = f"{_percent(level)} confidence"
    axes.fill_between(grid, low, high, color=line.get_color(), alpha=0.25, label=label)
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.legend()
    return axes


def residuals(fit: FittedCurve, axes: Any) -> Any:
    """Residuals over x, or over predictions, in standard deviations."""
    axes = _axes("plot_residuals", axes)
    deviations = _deviations(fit)
    scale = np.sqrt(fit.variance) * (1.0 if deviations is None else deviations)
    along_x = np.ndim(fit.x) == 1 and fit.y.ndim == 1
    places = np.asarray(fit.x) if along_x else (fit.y + fit.left).ravel()
    axes.axhspan(-1, 1, color="0.9", zorder=0, label="one standard deviation")
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.plot(places, (-fit.left / scale).ravel(), ".", markersize=4, label="data minus fit")
    axes.set_xlabel("x" if along_x else "fit")
    axes.set_ylabel("residual / standard deviation")
    axes.legend()
    return axes


def contours(fit: Estimates, first: str, second: str, axes: Any, levels: Any, points: int) -> Any:
    """Borders of joint confidence regions of two parameters."""
    axes = _axes("plot_contour", axes)
    for k, level in enumerate(levels):
        border = fit.contour(first, second, level, points)
        axes.plot(border[:, 0], border[:, 1], color=f"C{k}", label=f"{_percent(level)} confidence")
    places = [fit.unknowns.element_labels.index(name) for name in (first, second)]
    axes.plot(*fit.result.x[places], "k+", label="estimate")
    axes.set_xlabel(first)
    axes.set_ylabel(second)
    axes.legend()
    return axes


def _percent(level: float) -> str:
    return f"{100 * level:.10g} %"


def _deviations(fit: FittedCurve) -> np.ndarray | None:
    """Standard deviations of the data, as ``sigma`` gave them."""
    weights = fit.weights
    if weights is None:
        return None
    if weights.shape == fit.y.shape:
        return 1 / weights
    lower = np.linalg.inv(weights)
    return np.sqrt(np.sum(lower**2, axis=1)).reshape(fit.y.shape)


def _axes(operation: str, axes: Any) -> Any:
    if find_spec("matplotlib") is None:
        raise NumgradRuntimeError(
            f"{operation}: needs matplotlib; python -m pip install 'numgrad-jit[plot]', or print "
            "summary()"
        )
    if axes is not None:
        return axes
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()
