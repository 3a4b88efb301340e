"""Pictures of fits with matplotlib, which is loaded when one is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError


def curve(
    axes: Any,
    data: tuple[Any, Any, np.ndarray | None],
    fitted: tuple[np.ndarray, ...],
    level: float,
) -> Any:
    """Data ``(x, y, deviations)``, the curve and its band ``(x, y, low, high)``."""
    axes = axes_or_new("plot", axes)
    x, y, deviations = data
    places, values, low, high = fitted
    axes.errorbar(x, y, deviations, fmt=".", markersize=4, alpha=0.7, label="data", zorder=1)
    (line,) = axes.plot(places, values, color="C3", linewidth=1.3, label="fit")
    label = f"{_percent(level)} confidence"
    axes.fill_between(places, low, high, color=line.get_color(), alpha=0.25, label=label)
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.legend()
    return axes


def residuals(axes: Any, places: Any, values: np.ndarray, called: str) -> Any:
    """Residuals in standard deviations, over what is ``called`` so."""
    axes = axes_or_new("plot_residuals", axes)
    axes.axhspan(-1, 1, color="0.9", zorder=0, label="one standard deviation")
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.plot(places, values, ".", markersize=4, label="data minus fit")
    axes.set_xlabel(called)
    axes.set_ylabel("residual / standard deviation")
    axes.legend()
    return axes


def contours(
    axes: Any, borders: dict[float, np.ndarray], estimate: np.ndarray, names: tuple[str, str]
) -> Any:
    """Borders by level of joint confidence regions of two parameters."""
    axes = axes_or_new("plot_contour", axes)
    for k, (level, border) in enumerate(borders.items()):
        axes.plot(border[:, 0], border[:, 1], color=f"C{k}", label=f"{_percent(level)} confidence")
    axes.plot(*estimate, "k+", label="estimate")
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.legend()
    return axes


def _percent(level: float) -> str:
    return f"{100 * level:.10g} %"


def axes_or_new(operation: str, axes: Any) -> Any:
    """Axes to draw into, a new figure's if there are none."""
    if find_spec("matplotlib") is None:
        raise NumgradRuntimeError(
            f"{operation}: needs matplotlib; python -m pip install 'numgrad-jit[plot]', or print "
            "summary()"
        )
    if axes is not None:
        return axes
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()
