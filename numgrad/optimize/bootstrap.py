"""Bootstrap of fits: samples drawn anew, each fitted from the estimate.

Note [Samples of a fit]
-----------------------
Residuals are drawn in units in which all have one variance: weighted, divided by the root of one
minus their leverage, and centred (modified residuals). Cases are places among the weighted
residuals, by which these are gathered: so data may have any form, and a robust loss is that of each
datum. What changes between samples are arguments, so a compiled fit compiles nothing anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradValueError
from numgrad.optimize.estimates import Estimates, check_level, covariance

KINDS = ("residual", "parametric", "case")


class Bootstrap:
    """Samples of the parameters of a fit, from ``FittedCurve.bootstrap``.

    Attributes
    ----------
    names
        The numbers among the parameters.
    samples
        Shape (samples, count): a row for each fit that succeeded.
    failures
        How many did not.
    standard_errors, covariance
        Of the samples.
    """

    def __init__(self, fit: Estimates, samples: np.ndarray, failures: int) -> None:
        self.names, self.failures, self._samples, self._fit = fit.names, failures, samples, fit
        self.samples = fit.labels(samples, None, self.names)
        self.standard_errors = fit.labels(samples.std(axis=0, ddof=1), self.names)
        spread = np.atleast_2d(np.cov(samples, rowvar=False))
        self.covariance = fit.labels(spread, self.names, self.names)

    def confidence_intervals(self, level: float = 0.95) -> Any:
        """Percentiles of the samples, of shape (count, 2)."""
        check_level(level)
        ends = np.quantile(self._samples, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        return self._fit.labels(ends, self.names, ["low", "high"])

    def __repr__(self) -> str:
        return f"Bootstrap of {len(self._samples)} samples of {', '.join(self.names)}"


def resampled(
    fit: Estimates,
    data: tuple[Any, np.ndarray, np.ndarray | None],
    center: np.ndarray,
    count: int,
    kind: str,
    seed: Any,
) -> Bootstrap:
    """Fits of samples of data ``(x, y, weights)`` with that curve: Note [Samples of a fit]."""
    if kind not in KINDS:
        raise NumgradValueError(
            f"bootstrap: there is no kind {kind!r}; choose one of 'residual', 'parametric', 'case'"
        )
    if not isinstance(count, int) or count < 2:
        raise NumgradValueError(f"bootstrap: samples is {count!r}; give an integer of at least 2")
    if fit.degrees_of_freedom < 1 and not (kind == "parametric" and np.isfinite(fit.variance)):
        raise NumgradValueError(
            f"bootstrap: {fit.result.fun.size} data and as many free parameters leave no residuals "
            "that say how data scatter; measure more, fix parameters, or draw with "
            "kind='parametric' and an absolute sigma"
        )
    x, y, weights = data
    if kind == "case" and weights is not None and weights.shape != y.shape:
        raise NumgradValueError(
            "bootstrap: with a matrix sigma data are correlated, and cases are not drawn one by "
            "one; choose 'residual' or 'parametric'"
        )
    generator = np.random.default_rng(seed)
    size = y.size
    modified = _modified_residuals(fit) if kind == "residual" else np.zeros(0)
    rows, failures = [], 0
    determined = bool(np.isfinite(fit.free_covariance).all())
    for _ in range(count):
        if kind == "case":
            of: Any = (x, y, weights, generator.integers(0, size, size))
        else:
            if kind == "residual":
                drawn = modified[generator.integers(0, size, size)]
            else:
                drawn = generator.normal(scale=np.sqrt(fit.variance), size=size)
            of = (x, center + _unweighted(weights, drawn, y.shape), weights)
        try:
            result = fit.solve(fit.from_estimate(), of=of)
        except NumgradError:
            failures += 1
            continue
        # cases drawn again and again may not determine what the data do
        short = kind == "case" and determined and np.isinf(covariance(result.jac, 1.0)).any()
        if result.success and not short:
            rows.append(fit.unknowns.expanded(result.x))
        else:
            failures += 1
    if failures > count / 10:
        raise NumgradRuntimeError(
            f"bootstrap: {failures} of {count} fits failed; fix parameters that the data hardly "
            "determine, or give bounds"
        )
    return Bootstrap(fit, np.array(rows), failures)


def _modified_residuals(fit: Estimates) -> np.ndarray:
    """Data minus model, of one variance and centred."""
    left = -fit.result.fun
    basis, _ = np.linalg.qr(fit.result.jac)
    leverage = np.clip(np.sum(basis**2, axis=1), 0, 1 - 1e-8)
    modified = left / np.sqrt(1 - leverage)
    return modified - modified.mean()


def _unweighted(weights: np.ndarray | None, drawn: np.ndarray, shape: tuple) -> np.ndarray:
    if weights is None:
        return drawn.reshape(shape)
    if weights.shape == shape:
        return drawn.reshape(shape) / weights
    return np.linalg.solve(weights, drawn).reshape(shape)
