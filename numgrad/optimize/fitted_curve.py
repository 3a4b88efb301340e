"""Results of ``ng.curve_fit``: estimates of parameters, the curve, its bands and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from numgrad.core.foreign import labelled_kind
from numgrad.errors import NumgradValueError
from numgrad.optimize import fit_plots
from numgrad.optimize.bootstrap import Bootstrap, resampled
from numgrad.optimize.estimates import variances, with_labels
from numgrad.optimize.models import Model
from numgrad.optimize.profile import ProfiledEstimates
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import jacobian


class FittedCurve(ProfiledEstimates):
    """Result of ``ng.curve_fit``; besides the attributes below it has those of ``Estimates``.

    Where data, or the start, came as objects of pandas, vectors are Series and matrices and bands
    DataFrames, labelled by the names of the parameters or the index of the data. Of arrays of
    xarray residuals and predictions are such, and bands Datasets.

    Attributes
    ----------
    model
        The function that was fitted.
    x, y
        Data that it was fitted to, without those that ``nan_policy`` left out.
    """

    def __init__(
        self,
        described: Model,
        x: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        index: Any,
        result: Any,
        solve: Callable[..., Any],
        bounds: Any,
        absolute: bool,
    ) -> None:
        model = described.function
        title = getattr(model, "__name__", type(model).__name__)
        super().__init__(title, described.unknowns, result, solve, bounds, absolute)
        self.model, self.described = model, described
        self.x, self.y, self.weights, self.index = x, y, weights, index
        self.labelled = described.labelled

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def _nested(self, numbers: np.ndarray) -> Any:
        whole = self.unknowns.whole
        flat = whole.nesting is None or all(shape == () for shape in whole.packing.shapes)
        if self.labelled and flat:
            return self.labels(numbers, self.names)
        return self.described.shown(numbers)

    def __iter__(self) -> Iterator[Any]:
        """``parameters, covariance = fit``."""
        return iter((self.parameters, self.covariance))

    def __call__(self, x: Any) -> Any:
        """Prediction of the fitted model at ``x``."""
        return self._beside(x, self.curve(x))

    def curve(self, x: Any, vector: np.ndarray | None = None) -> np.ndarray:
        """Prediction at ``x``, for another vector of the free parameters if one is given."""
        x = np.asarray(x, np.float64) if isinstance(x, list | tuple) else x
        arrays = self.unknowns.arrays(self.result.x if vector is None else vector)
        leaves = [Tensor(array) for array in arrays]
        prediction = self.described.prediction()(self.unknowns.nested(leaves), x)
        if isinstance(prediction, Tensor):
            prediction = prediction.detach().numpy()
        return np.asarray(prediction)

    @cached_property
    def left(self) -> np.ndarray:
        """Model minus data, an array of the shape of ``y``."""
        return np.broadcast_to(self.curve(self.x), self.y.shape) - self.y

    @property
    def residuals(self) -> Any:
        """Residuals, model minus data, of the shape of ``y``."""
        labelled = _labelled_alike(self.index, left=self.left)
        return self.left if labelled is None else labelled

    @property
    def r_squared(self) -> float:
        """The share of the spread of ``y`` that the model explains."""
        total = float(np.sum((self.y - self.y.mean()) ** 2))
        return 1 - float(np.sum(self.left**2)) / total if total else np.nan

    def facts(self) -> Iterator[tuple[str, str]]:
        """Names and values of what a report begins with."""
        *facts, ended = super().facts()
        yield from facts
        yield "R^2", f"{self.r_squared:.6f}"
        yield ended

    # -------------------------------------------------------------------------------------- bands

    @overload
    def confidence_band(
        self, x: np.ndarray | Sequence[float], level: float = 0.95, *, prediction: bool = False
    ) -> tuple[np.ndarray, np.ndarray]: ...
    @overload
    def confidence_band(
        self, x: Any = None, level: float = 0.95, *, prediction: bool = False
    ) -> Any: ...
    def confidence_band(
        self, x: Any = None, level: float = 0.95, *, prediction: bool = False
    ) -> Any:
        """Where the curve is with that confidence, or new data with ``prediction``.

        To first order in the parameters (delta method), with Student's t, or the normal
        distribution if ``sigma`` is absolute.

        Parameters
        ----------
        x
            Where; by default where was measured.
        level
            Between 0 and 1.
        prediction
            Add the spread of single measurements, for data without ``sigma`` or with one for all;
            of a robust loss that of its cost.

        Returns
        -------
        low, high : ndarray
            Of the shape that the model returns; columns of a DataFrame if ``x`` is of pandas, of a
            Dataset if of xarray.

        Raises
        ------
        NumgradValueError
            If the level is not between 0 and 1, or the spread differs from one to another.
        """
        at_data = x is None
        low, high = self.band(self.x if at_data else x, level, prediction)
        band = _labelled_alike(self.index if at_data else labels_of(x), low=low, high=high)
        return (low, high) if band is None else band

    def band(self, x: Any, level: float, prediction: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """``confidence_band`` as two arrays."""
        quantile = self._quantile(level)
        x = np.asarray(x, np.float64) if isinstance(x, list | tuple) else x
        center, unknowns = self.curve(x), self.unknowns
        function = self.described.prediction()
        blocks = jacobian(lambda p: function(unknowns.nested(p), x))(unknowns.arrays(self.result.x))
        sizes = [array.size for array in unknowns.arrays(self.result.x)]
        rows = np.concatenate(
            [np.reshape(b, (center.size, n)) for b, n in zip(blocks, sizes, strict=True)], axis=1
        )
        variance = variances(self.free_covariance, rows)
        if prediction:
            variance = variance + self._measurement_variance()
        half = quantile * np.sqrt(variance).reshape(center.shape)
        return center - half, center + half

    def _measurement_variance(self) -> float:
        weights = self.weights
        if weights is not None and (weights.shape != self.y.shape or np.ptp(weights)):
            raise NumgradValueError(
                "confidence_band: measurements have standard deviations of their own (sigma); add "
                "that of the new one to the band of the curve"
            )
        scale = 1.0 if self._absolute else self.residual_standard_error**2
        return scale if weights is None else scale / float(weights.flat[0]) ** 2

    def bootstrap(
        self, samples: int = 1000, kind: str = "residual", *, seed: Any = None
    ) -> Bootstrap:
        """Fit samples that are drawn anew, for the distribution of the parameters.

        Parameters
        ----------
        samples
            How many.
        kind
            ``"residual"``: the curve plus residuals drawn with replacement, scaled by their
            leverage (A. C. Davison, D. V. Hinkley, Bootstrap Methods and their Application, 6.2 and
            7.3); ``"parametric"``: the curve plus normal errors; ``"case"``: data drawn with
            replacement.
        seed
            For ``numpy.random.default_rng``: the same draws the same samples.

        Returns
        -------
        Bootstrap
            With ``samples`` of all numbers among the parameters, ``standard_errors`` and
            ``confidence_intervals``.

        Raises
        ------
        NumgradValueError
            If there is no such kind, cases are drawn of data that are correlated, or there are as
            many free parameters as data.
        NumgradRuntimeError
            If more than one fit of ten fails, or is of cases that do not determine it.

        Examples
        --------
        >>> import numpy as np, numgrad as ng
        >>> x = np.linspace(0, 1, 20)
        >>> y = 2 * x + 0.1 * np.cos(9 * x)
        >>> drawn = ng.curve_fit(lambda x, slope: slope * x, x, y).bootstrap(50, seed=0)
        >>> drawn.samples.shape, bool(abs(drawn.samples.mean() - 2) < 0.2)
        ((50, 1), True)
        """
        center = np.broadcast_to(self.curve(self.x), self.y.shape)
        return resampled(self, (self.x, self.y, self.weights), center, samples, kind, seed)

    # ----------------------------------------------------------------------------------- pictures

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
        axes = fit_plots.axes_or_new("plot", axes)
        if not self._is_curve():
            raise NumgradValueError(
                f"plot: x has shape {np.shape(self.x)}; a curve is drawn over one vector, so draw "
                "what fit(x) returns yourself"
            )
        grid = np.linspace(np.min(self.x), np.max(self.x), points)
        fitted = (grid, self.curve(grid), *self.band(grid, level))
        return fit_plots.curve(axes, (self.x, self.y, self._deviations()), fitted, level)

    def plot_residuals(self, axes: Any = None) -> Any:
        """Draw residuals, data minus model, in units of their standard deviations, with matplotlib.

        Parameters
        ----------
        axes
            Where to draw; by default a new figure's.

        Returns
        -------
        matplotlib.axes.Axes
            Over ``x`` if that is one vector, else over the predicted values.

        Raises
        ------
        NumgradRuntimeError
            If matplotlib is not installed.
        """
        deviations = self._deviations()
        scale = (np.sqrt(self.variance) or 1.0) * (1.0 if deviations is None else deviations)
        is_curve = self._is_curve()
        places = np.asarray(self.x) if is_curve else (self.y + self.left).ravel()
        values = (-self.left / scale).ravel()
        return fit_plots.residuals(axes, places, values, "x" if is_curve else "fit")

    def _is_curve(self) -> bool:
        return np.ndim(self.x) == 1 and self.y.ndim == 1

    def _deviations(self) -> np.ndarray | None:
        """Standard deviations of the data, as ``sigma`` gave them."""
        weights = self.weights
        if weights is None or weights.shape == self.y.shape:
            return None if weights is None else 1 / weights
        lower = np.linalg.inv(weights)
        return np.sqrt(np.sum(lower**2, axis=1)).reshape(self.y.shape)

    def _beside(self, x: Any, values: np.ndarray) -> Any:
        """Values at places, with the labels of these if they have such."""
        labelled = _labelled_alike(labels_of(x), values=values)
        return values if labelled is None else labelled


PANDAS = ("pandas.Series", "pandas.DataFrame")
LABELLED = (*PANDAS, "xarray.DataArray")


def is_labelled(x: Any, kinds: tuple[str, ...]) -> bool:
    """Whether data are objects of these classes."""
    return labelled_kind(type(x)) in kinds


def labels_of(x: Any) -> Any:
    """The index of data of pandas, an array of xarray itself, else None."""
    if is_labelled(x, PANDAS):
        return x.index
    return x if is_labelled(x, ("xarray.DataArray",)) else None


def _labelled_alike(labels: Any, **columns: np.ndarray) -> Any:
    """Values by name with labels of data, one without a frame; None if they do not fit."""
    if labels is None or any(values.shape != labels.shape for values in columns.values()):
        return None
    if is_labelled(labels, ("xarray.DataArray",)):
        made = {name: labels.copy(data=values) for name, values in columns.items()}
        if len(made) == 1:
            return next(iter(made.values())).rename(None)
        import xarray  # pyright: ignore

        return xarray.Dataset(made)
    if len(columns) == 1:
        return with_labels(next(iter(columns.values())), labels)
    return with_labels(np.stack(list(columns.values()), axis=1), labels, list(columns))
