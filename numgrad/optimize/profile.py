"""Intervals and regions of confidence by profile likelihood.

Note [Profiles]
---------------
A profile holds parameters at values and fits the others anew. The root of what chi-square gains
over the best fit, ``sqrt((S - S0) / variance)``, is zero at the estimate and grows along a straight
line if the model is linear, nearly so if not (the profile t of Bates and Watts): so an end of an
interval, where it is the quantile, takes few fits, each of which starts from the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optimize import fit_plots
from numgrad.optimize.estimates import Estimates, check_level
from numgrad.optimize.parameter_space import from_start
from numgrad.optimize.results import refuses

EXPANSIONS = 30
"""Steps outwards, each twice the last, after which the data are said to set no limit."""


class ProfiledEstimates(Estimates):
    """Estimates with intervals and regions of confidence by profile likelihood."""

    def profile(self, name: str | None = None, level: float = 0.95) -> Any:
        """Confidence interval of a parameter by profile likelihood.

        The ends are where the best fit with that parameter held there is worse by what the level
        allows: chi-square grows by a factor ``1 + t**2 / degrees of freedom`` with Student's t, or
        by ``z**2`` if ``sigma`` is absolute (D. M. Bates, D. G. Watts, Nonlinear Regression, 6.1).
        Of linear models it is ``confidence_intervals``; of others it is asymmetric.

        Parameters
        ----------
        name
            One of ``names`` that is free; by default all of these.
        level
            Between 0 and 1.

        Returns
        -------
        tuple of float, or ndarray
            ``(low, high)``; of all an array of shape (count, 2), NaN for what is not free. An end
            is a bound where the fit there is good enough still, infinite where the data set no
            limit.

        Raises
        ------
        NumgradValueError
            If the parameter is fixed, tied or not there, or the level is not between 0 and 1.
        NumgradRuntimeError
            If a better fit shows on the way, or the model has no values there.

        Examples
        --------
        >>> import numpy as np, numgrad as ng
        >>> x = np.linspace(0, 4, 9)
        >>> y = np.exp(-0.7 * x) + 0.1 * np.cos(9 * x)
        >>> fit = ng.curve_fit(lambda x, rate: np.exp(-rate * x), x, y)
        >>> low, high = fit.profile("rate")
        >>> bool(high - fit.parameters[0] > fit.parameters[0] - low)
        True
        """
        target = self._quantile(level)
        if name is not None:
            return _interval(self, name, target)
        rows = np.full((len(self.names), 2), np.nan)
        for k in self.free_places():
            rows[k] = _interval(self, self.names[k], target)
        return self.labels(rows, self.names, ["low", "high"])

    @refuses(levels="contour is of one level, plot_contour of several")
    def contour(self, first: str, second: str, level: float = 0.95, points: int = 40) -> np.ndarray:
        """Border of the joint confidence region of two parameters by profile likelihood.

        On rays from the estimate the others are fitted anew until the fit is worse by what the
        level allows, from the F distribution of two parameters, or chi-square's if ``sigma`` is
        absolute.

        Parameters
        ----------
        first, second
            Two of ``names`` that are free.
        level
            Between 0 and 1.
        points
            How many of the border.

        Returns
        -------
        ndarray
            Shape (points + 1, 2), closed: its last point is its first.

        Raises
        ------
        NumgradValueError, NumgradRuntimeError
            As for ``profile``; or if the data do not limit the region.
        """
        check_level(level)
        if self._absolute:
            target = np.sqrt(stats.chi2.ppf(level, 2))
        else:
            target = np.sqrt(2 * stats.f.ppf(level, 2, max(self.degrees_of_freedom, 1)))
        return _contour(self, first, second, float(target), points)

    def plot_contour(
        self,
        first: str,
        second: str,
        axes: Any = None,
        *,
        levels: Sequence[float] = (0.68, 0.95),
        points: int = 40,
    ) -> Any:
        """Draw the borders of joint confidence regions of two parameters with matplotlib.

        Parameters
        ----------
        first, second, points
            As for ``contour``.
        axes
            Where to draw; by default a new figure's.
        levels
            Of confidence, one for each border.

        Returns
        -------
        matplotlib.axes.Axes
            With labels that may be changed.

        Raises
        ------
        NumgradRuntimeError
            If matplotlib is not installed; or as for ``contour``.
        """
        borders = {level: self.contour(first, second, level, points) for level in levels}
        places = [_free_place(self, "contour", name) for name in (first, second)]
        return fit_plots.contours(axes, borders, self.result.x[places], (first, second))


def _interval(fit: Estimates, name: str, target: float) -> tuple[float, float]:
    """Where the profile of a parameter reaches a value to the left and to the right."""
    place = _free_place(fit, "profile", name)
    error = np.sqrt(fit.free_covariance[place, place])
    center = fit.result.x[place]
    step = error if np.isfinite(error) and error > 0 else abs(center) or 1.0
    low, high = (
        center + d * _Ray(fit, "profile", [place], np.array([d])).reach(target)
        for d in (-step, step)
    )
    return float(low), float(high)


def _contour(fit: Estimates, first: str, second: str, target: float, points: int) -> np.ndarray:
    """Border of the region where the profile of two parameters is below a value."""
    places = [_free_place(fit, "contour", name) for name in (first, second)]
    if first == second:
        raise NumgradValueError(f"contour: takes two parameters, got {first} twice")
    block = fit.free_covariance[np.ix_(places, places)]
    if not np.isfinite(block).all():
        raise NumgradRuntimeError(
            f"contour: the data do not determine {first} and {second}; fix one, or take profile()"
        )
    if points < 3:
        raise NumgradValueError(f"contour: {points} points are no border; take 3 or more")
    root, center = np.linalg.cholesky(block), fit.result.x[places]

    def on_ray(angle: float) -> np.ndarray:
        """The border in a direction, in units in which a linear model has a circle."""
        unit = np.array([np.cos(angle), np.sin(angle)])
        distance = _Ray(fit, "contour", places, root @ unit).reach(target)
        if not np.isfinite(distance):
            raise NumgradRuntimeError(
                f"contour: the data set no limit to {first} and {second} together; give bounds, or "
                "a lower level"
            )
        return distance * unit

    angles = np.linspace(0, 2 * np.pi, max(points // 2, 3) + 1)
    border = np.array(list(map(on_ray, angles[:-1])))
    border = np.concatenate([border, border[:1]])
    while len(border) <= points:  # the rest where it is far from one to the next
        k = 1 + int(np.argmax(np.linalg.norm(np.diff(border, axis=0), axis=1)))
        between = (angles[k - 1] + angles[k]) / 2
        angles, border = (
            np.insert(angles, k, between),
            np.insert(border, k, on_ray(between), axis=0),
        )
    return center + border @ root.T


def _free_place(fit: Estimates, operation: str, name: str) -> int:
    """Where a parameter is in the vector of the free ones."""
    labels = fit.unknowns.element_labels
    if fit.unknowns.packing.is_complex:
        raise NumgradTypeError(
            f"{operation}: some parameters are complex; fit their real and imaginary parts"
        )
    held = fit.unknowns.tie_of(fit.names.index(name)) if name in fit.names else None
    if held is not None:
        raise NumgradValueError(
            f"{operation}: {name} is {'fixed' if held == 'fixed' else f'tied, = {held}'}; take a "
            f"free parameter, of {', '.join(labels)}"
        )
    if name not in labels:
        raise NumgradValueError(
            f"{operation}: {name!r} is not among the free parameters, which are {', '.join(labels)}"
        )
    return labels.index(name)


class _Ray:
    """Profile along a direction from the estimate: Note [Profiles]."""

    def __init__(self, fit: Estimates, operation: str, places: list[int], d: np.ndarray) -> None:
        self.fit, self.operation, self.places, self.direction = fit, operation, places, d
        self.labels = [fit.unknowns.element_labels[k] for k in places]
        self.center = fit.result.x
        self.low, self.high = fit.ends
        # Where the others go, to first order; then along the chord to the last fit.
        covariance = np.where(np.isfinite(fit.free_covariance), fit.free_covariance, 0.0)
        block = covariance[np.ix_(places, places)]
        self.slope = covariance[:, places] @ np.linalg.pinv(block) @ d
        self.slope[places] = d
        outer = np.where(d > 0, self.high[places], self.low[places])
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(d == 0, np.inf, (outer - self.center[places]) / d)
        self.limit = max(float(room.min()), 0.0)

    def reach(self, target: float) -> float:
        """How far it is to that value, or to a bound; infinite if it is not reached."""
        inner, outer = 0.0, min(target, self.limit)

        def excess(distance: float) -> float:
            return self.height(distance) - target

        for _ in range(EXPANSIONS):
            above = excess(outer)
            if above >= 0:
                tolerances = {"xtol": 1e-9 * outer, "rtol": 1e-9}
                return float(brentq(excess, inner, outer, **tolerances))  # pyright: ignore
            if outer >= self.limit:
                return self.limit
            grown = 1.1 * target / (target + above) if target + above > 0 else 2.0
            inner, outer = outer, min(outer * min(max(grown, 1.1), 2.0), self.limit)
        return np.inf

    def height(self, distance: float) -> float:
        """The root of what chi-square gains, in standard deviations."""
        if not distance:
            return 0.0
        fit, center = self.fit, self.center
        x = np.clip(center + distance * self.slope, self.low, self.high)
        fixed = dict(zip(self.labels, x[self.places].tolist(), strict=True))
        start = fit.unknowns.expanded(x)
        where = ", ".join(f"{label} = {value:.8g}" for label, value in fixed.items())
        try:
            if len(fixed) == x.size:  # nothing is left to fit
                result = fit.solve(
                    from_start(self.operation, fit.unknowns, start), max_nfev=1, method="trf"
                )
            else:
                unknowns = from_start(self.operation, fit.unknowns, start, fixed)
                result = fit.solve(unknowns)
                x = unknowns.expanded(result.x)[fit.unknowns.slots]
                self.slope = (x - center) / distance
                self.slope[self.places] = self.direction  # what was rounded away included
        except NumgradError as error:
            raise NumgradRuntimeError(
                f"{self.operation}: no fit with {where}: {error}. Bounds keep it where the model "
                "has values"
            ) from error
        gain = 2 * (result.cost - fit.result.cost) / fit.variance
        if gain < -1e-4:
            raise NumgradRuntimeError(
                f"{self.operation}: with {where} the fit is better, chi-square "
                f"{2 * result.cost:.8g} instead of {2 * fit.result.cost:.8g}; start from there"
            )
        return float(np.sqrt(max(gain, 0.0)))
