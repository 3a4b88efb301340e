"""Estimates of parameters by least squares: errors, correlations, intervals, figures of merit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.markup import table
from numgrad.optimize.constraints import ends_of_arrays
from numgrad.optimize.parameter_space import from_start
from numgrad.optimize.unknowns import Unknowns


def covariance(jacobian: np.ndarray, variance: float) -> np.ndarray:
    """Covariance of the parameters, ``variance * inv(J.T @ J)``, of a Jacobian (n, p).

    From the singular values of the Jacobian with its columns scaled to one length: that brings
    condition numbers of up to 1e9 (NIST's Hahn1) under 1e4, where ``pinv(J.T @ J)`` squares them
    and has no digit right on Hahn1, Nelson and Roszman1. Infinite where the data do not determine a
    parameter.
    """
    count = jacobian.shape[1]
    if not (np.isfinite(jacobian).all() and np.isfinite(variance)):
        return np.full((count, count), np.inf)
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0] = 1.0
    _, singular, vt = np.linalg.svd(jacobian / scale, full_matrices=False)
    determined = singular > singular[0] * np.finfo(np.float64).eps * max(jacobian.shape)
    half = vt[determined].T / singular[determined] / scale[:, None]
    pcov = variance * (half @ half.T)
    left_open = (np.abs(vt[~determined]) > 1e-6).any(axis=0)
    pcov[left_open] = pcov[:, left_open] = np.inf
    return pcov


def propagated(covariance: np.ndarray, derivative: np.ndarray | None) -> np.ndarray:
    """Covariance of functions of parameters with that derivative, by the delta method.

    What depends on a parameter that the data do not determine is infinite.
    """
    if derivative is None:
        return covariance
    left_open = ~np.isfinite(covariance.diagonal())
    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    result = derivative @ finite @ derivative.T
    depends = (derivative[:, left_open] != 0).any(axis=1)
    result[depends] = result[:, depends] = np.inf
    return result


def variances(covariance: np.ndarray, derivative: np.ndarray) -> np.ndarray:
    """The diagonal of ``propagated``."""
    left_open = ~np.isfinite(covariance.diagonal())
    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    result = np.einsum("ij,jk,ik->i", derivative, finite, derivative)
    result[(derivative[:, left_open] != 0).any(axis=1)] = np.inf
    return result


def standard_errors(covariance: np.ndarray) -> np.ndarray:
    """Square roots of the variances."""
    return np.sqrt(covariance.diagonal())


class Estimates:
    """Parameters of a fit with what the data say of them.

    Attributes
    ----------
    parameters, standard_errors
        Nested, shaped and of the dtypes of the start; errors are zero for what is fixed, and by the
        delta method for what is tied.
    covariance
        Of all numbers among the parameters, in the order of ``names``.
    names
        The numbers among the parameters, as one writes them: keys, fields and indices.
    rss
        Chi-square: the sum of squares of the residuals, weighted if data have a ``sigma``. Of a
        robust ``loss`` it is twice the cost, a sum in which large residuals count less; so are all
        figures made of it: errors, AIC, BIC, bands and profiles.
    degrees_of_freedom
        Data without free parameters.
    result
        What SciPy's ``least_squares`` returned, about the vector of the free parameters.
    unknowns, solve, ends
        For fits anew: ``solve(unknowns)`` returns such a result.
    """

    def __init__(
        self,
        title: str,
        unknowns: Unknowns,
        result: Any,
        solve: Callable[..., Any],
        bounds: Any = None,
        absolute: bool = False,
    ) -> None:
        self.title, self.result, self.unknowns, self.solve = title, result, unknowns, solve
        self._bounds, self._absolute = bounds, absolute
        self._vector = unknowns.expanded(result.x)
        self._free = result.x.size
        self.degrees_of_freedom = result.fun.size - self._free
        self.rss = 2 * float(result.cost)

    def _nested(self, numbers: np.ndarray) -> Any:
        """Numbers for all parameters as the caller gave the start."""
        return self.unknowns.whole.shown(numbers)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"solve": _function_left_behind}  # it may be a lambda

    labelled = False
    """Whether vectors and matrices are those of pandas."""

    def labels(self, numbers: np.ndarray, index: Any, columns: list[str] | None = None) -> Any:
        """A vector or matrix, with labels if the data had such."""
        return with_labels(numbers, index, columns) if self.labelled else numbers

    def from_estimate(self) -> Unknowns:
        """The unknowns with the estimate as the start."""
        return from_start(self.title, self.unknowns, self._vector)

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the vector of the free parameters."""
        ends = ends_of_arrays(self.title, self.unknowns, self._bounds)
        return ends or (np.full(self._free, -np.inf), np.full(self._free, np.inf))

    @property
    def names(self) -> list[str]:
        """The numbers among the parameters."""
        return self.unknowns.whole.element_labels

    @cached_property
    def parameters(self) -> Any:
        """Values, nested as the start."""
        return self._nested(self._vector)

    @cached_property
    def standard_errors(self) -> Any:
        """Standard errors, nested as the start."""
        return self._nested(standard_errors(self._covariance))

    @property
    def covariance(self) -> Any:
        """Covariance of all numbers."""
        return self.labels(self._covariance, self.names, self.names)

    @cached_property
    def free_covariance(self) -> np.ndarray:
        """Covariance of the vector of the free parameters."""
        return covariance(self.result.jac, self.variance)

    @cached_property
    def _covariance(self) -> np.ndarray:
        return propagated(self.free_covariance, self.unknowns.derivative(self.result.x))

    @property
    def variance(self) -> float:
        """That of a residual: 1 if ``sigma`` is absolute, else estimated from what is left."""
        free = self.degrees_of_freedom
        if self._absolute:
            return 1.0
        return self.rss / free if free > 0 else np.inf

    # --------------------------------------------------------------------------- figures of merit

    @property
    def reduced_chi_square(self) -> float:
        """Chi-square for each degree of freedom, near 1 where ``sigma`` is right."""
        free = self.degrees_of_freedom
        return self.rss / free if free > 0 else np.inf

    @property
    def residual_standard_error(self) -> float:
        """The standard deviation of what is left."""
        return float(np.sqrt(self.reduced_chi_square))

    @property
    def aic(self) -> float:
        """Akaike's criterion, ``n log(chi-square / n) + 2 p`` of n data and p free parameters."""
        return self._deviance + 2 * self._free

    @property
    def bic(self) -> float:
        """Schwarz's criterion, ``n log(chi-square / n) + p log(n)``."""
        return self._deviance + self._free * float(np.log(self.result.fun.size))

    @property
    def _deviance(self) -> float:
        with np.errstate(divide="ignore"):
            return self.result.fun.size * float(np.log(self.rss / self.result.fun.size))

    # --------------------------------------------------------------------------------- intervals

    def correlations(self) -> Any:
        """Matrix of correlations of all numbers, NaN by those that are fixed."""
        return self.labels(self._correlations(), self.names, self.names)

    def _correlations(self) -> np.ndarray:
        errors = standard_errors(self._covariance)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._covariance / np.outer(errors, errors)

    def confidence_intervals(self, level: float = 0.95) -> Any:
        """Lower and upper ends for each number, of shape (count, 2).

        Symmetric, from the standard errors: with Student's t, or the normal distribution if
        ``sigma`` is absolute. Of bounds, and of models that are far from linear, ``profile`` knows.
        """
        return self.labels(self._intervals(level), self.names, ["low", "high"])

    def _intervals(self, level: float) -> np.ndarray:
        half = self._quantile(level) * standard_errors(self._covariance)
        return np.stack([self._vector - half, self._vector + half], axis=1)

    def _at_bound(self) -> np.ndarray:
        """Which free parameters are at a bound, where errors say little."""
        x, (low, high) = self.result.x, self.ends
        near = 1e-8 * np.maximum(1.0, np.abs(x))
        return (x - low < near) | (high - x < near)

    def free_places(self) -> np.ndarray:
        """Which of ``names`` are free."""
        return np.flatnonzero([self.unknowns.tie_of(k) is None for k in range(self._vector.size)])

    def _quantile(self, level: float) -> float:
        check_level(level)
        two_sided = (1 + level) / 2
        if self._absolute:
            return float(stats.norm.ppf(two_sided))
        return float(stats.t.ppf(two_sided, max(self.degrees_of_freedom, 1)))

    # -------------------------------------------------------------------------------- for readers

    def facts(self) -> Iterator[tuple[str, str]]:
        """Names and values of what a report begins with."""
        result, free = self.result, self.degrees_of_freedom
        yield "data", f"{result.fun.size}"
        yield "free parameters", f"{self._free} (degrees of freedom {free})"
        yield "evaluations", f"{result.nfev}"
        yield "chi-square", f"{self.rss:.6g} (reduced {self.reduced_chi_square:.6g})"
        yield "AIC, BIC", f"{self.aic:.6g}, {self.bic:.6g}"
        yield "ended", str(result.message)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """A table of the parameters, its head first."""
        yield "", "value", "standard error", "relative", "95 % from", "to", ""
        errors, ends = standard_errors(self._covariance), self._intervals(0.95)
        at_bound = set(self.unknowns.slots[self._at_bound()])
        for k, (name, value) in enumerate(zip(self.names, self._vector, strict=True)):
            held, error, (low, high) = self.unknowns.tie_of(k), errors[k], ends[k]
            numbers = ("", "", "", "")
            if held != "fixed":
                relative = f"{100 * error / abs(value):.3g} %" if value else ""
                numbers = (f"{error:.3g}", relative, f"{low:.6g}", f"{high:.6g}")
            note = "at its bound: see profile" if k in at_bound else ""
            if held is not None:
                note = held if held == "fixed" else f"= {held}"
            yield (name, f"{value:.8g}", *numbers, note)

    def strongest_correlations(self, above: float) -> list[tuple[str, str]]:
        """Pairs of free parameters by the size of their correlation."""
        matrix, places = self._correlations(), self.free_places()
        pairs = [
            (self.names[i], self.names[j], float(matrix[i, j]))
            for n, i in enumerate(places)
            for j in places[n + 1 :]
            if abs(matrix[i, j]) >= above
        ]
        pairs.sort(key=lambda pair: -abs(pair[2]))
        return [(f"{first}, {second}", f"{value:+.4f}") for first, second, value in pairs]

    def summary(self, correlations: float = 0.1) -> str:
        """Report the fit in figures, a table of parameters, and the larger ``correlations``."""
        facts = [("fit of", self.title), *self.facts()]
        wide = max(len(key) for key, _ in facts)
        lines = [f"{key:{wide}}  {value}" for key, value in facts]
        lines += ["", *_columns(list(self.rows()))]
        pairs = self.strongest_correlations(correlations)
        if pairs:
            lines += ["", "correlations", *_columns(pairs)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        head, *rows = self.rows()
        pairs = self.strongest_correlations(0.1)
        tables = [table(self.facts(), caption=self.title), table(rows, head)]
        return "".join(tables + [table(pairs, caption="correlations")] * bool(pairs))


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of text in columns: numbers to the right, names and notes to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = (0, 6)
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _function_left_behind(*_: Any, **__: Any) -> Any:
    raise NumgradRuntimeError(
        "estimates that were pickled have no function of residuals to fit anew; take profiles and "
        "contours before, or the result of ng.curve_fit, which keeps its model"
    )


def with_labels(numbers: np.ndarray, index: Any, columns: list[str] | None = None) -> Any:
    """A Series, or with columns a DataFrame, of pandas."""
    import pandas

    if columns is None:
        return pandas.Series(numbers, index=index)
    return pandas.DataFrame(numbers, index=index, columns=pandas.Index(columns))


def check_level(level: float) -> None:
    """Raise if a level of confidence is none."""
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise NumgradValueError(f"the level of confidence is between 0 and 1, got {level!r}")
