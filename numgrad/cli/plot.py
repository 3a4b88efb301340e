"""Draw data and fitted curves with their bands of confidence, one panel per problem."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import numgrad as ng
from numgrad.cli.fit import Fit
from numgrad.cli.nist import Problem
from numgrad.optimize.estimates import covariance


def draw(path: Path, fitted: list[tuple[Problem, Fit]]) -> None:
    """Draw each problem's data and fit to ``path``, in the format its suffix names."""
    columns = min(4, len(fitted))
    rows = -(-len(fitted) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.8 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (problem, fit) in zip(panels, fitted, strict=False):
        _panel(axes, problem, fit)
    for axes in panels[len(fitted) :]:
        axes.set_visible(False)
    date = {"Date": None} if path.suffix == ".svg" else None
    with mpl.rc_context({"svg.hashsalt": "numgrad"}):  # the same drawing is the same file
        figure.savefig(path, dpi=110, metadata=date)


def _panel(axes: Axes, problem: Problem, fit: Fit) -> None:
    for x, y, curve_x, curve, label in _series(problem, fit.parameters):
        (dots,) = axes.plot(x, y, ".", markersize=4, alpha=0.6, label=label)
        (line,) = axes.plot(
            curve_x, curve, "-", linewidth=1.2, color=dots.get_color() if label else "C3"
        )
        if label:
            axes.legend(fontsize="x-small")
        else:
            half = half_width(problem, fit, curve_x)
            axes.fill_between(
                curve_x, curve - half, curve + half, color=line.get_color(), alpha=0.25
            )
    axes.set_title(f"{problem.name}: {fit.digits:.1f} digits", fontsize="medium")
    axes.set_xlabel("x" if problem.x.ndim == 1 else "x1", fontsize="small")
    axes.set_ylabel("y", fontsize="small")
    axes.tick_params(labelsize="small")


def _series(problem: Problem, b):
    """Data and curve to draw together; one pair for each value of a second predictor."""
    if problem.x.ndim == 1:
        grid = np.linspace(problem.x.min(), problem.x.max(), 400)
        yield problem.x, problem.y, grid, problem.model(b, grid), None
        return
    first, second = problem.x
    grid = np.linspace(first.min(), first.max(), 200)
    for value in np.unique(second):
        rows = second == value
        curve = problem.model(b, np.stack([grid, np.full_like(grid, value)]))
        yield first[rows], problem.y[rows], grid, curve, f"x2 = {value:g}"


def half_width(problem: Problem, fit: Fit, x: np.ndarray) -> np.ndarray:
    """Half the width of the curve's band of 95 % confidence at ``x``, by the delta method."""
    b = fit.parameters
    free = problem.y.size - b.size
    parameters = covariance(ng.jacfwd(problem.residual)(b), fit.rss / free)
    slopes = ng.jacfwd(lambda b: problem.model(b, x))(b)
    variance = np.einsum("ij,jk,ik->i", slopes, parameters, slopes)
    return ng.stats.t.ppf(0.975, free) * np.sqrt(variance)
