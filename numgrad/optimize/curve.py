"""A fitted model: parameters, what the data leave open, summaries and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import stats

from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.optimize.models import Model
from numgrad.optimize.uncertainty import standard_errors
from numgrad.optimize.values import sum_of_squares
from numgrad.tensors.tensor import Tensor
from numgrad.transforms import jacobian


class FittedCurve:
    """What ``ng.curve_fit`` found.

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
        """What is left, model minus data, of the shape of ``y``."""
        return np.broadcast_to(self(self.x), self.y.shape) - self.y

    def __iter__(self) -> Iterator[Any]:
        """``parameters, covariance = fit``."""
        return iter((self.parameters, self.covariance))

    def __call__(self, x: Any) -> np.ndarray:
        """What the fitted model says at ``x``."""
        unknowns = self._described.unknowns
        x = np.asarray(x, np.float64) if isinstance(x, list | tuple) else x
        leaves = [Tensor(array) for array in unknowns.arrays(self.result.x)]
        found = self._described.prediction()(unknowns.nested(leaves), x)
        return found.detach().numpy() if isinstance(found, Tensor) else np.asarray(found)

    @property
    def residual_standard_error(self) -> float:
        """The standard deviation of what is left."""
        free = self.degrees_of_freedom
        return float(np.sqrt(self.rss / free)) if free else np.inf

    @property
    def r_squared(self) -> float:
        """The share of the spread of ``y`` that the model explains."""
        spread = float(np.sum((self.y - self.y.mean()) ** 2))
        return 1 - float(np.sum(self.residuals**2)) / spread if spread else np.nan

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
            variance = variance + self._spread()
        half = self._quantile(level) * np.sqrt(variance).reshape(center.shape)
        return center - half, center + half

    def _spread(self) -> float:
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
        axes.fill_between(
            grid, low, high, color=line.get_color(), alpha=0.25, label=f"{level:.0%} confidence"
        )
        axes.set_xlabel("x")
        axes.set_ylabel("y")
        axes.legend()
        return axes
