"""Fit a problem with ``scipy.optimize`` driven by numgrad gradients, and judge the result."""

import dataclasses
import time
from collections.abc import Callable

import numpy as np
import scipy

import numgrad as ng
from numgrad.cli.nist import Problem

DIGITS_CERTIFIED = 11.0
"""NIST states eleven digits: agreement cannot be measured beyond."""

TOLERANCE = 1e-15
"""Of `least_squares`; with SciPy's default of 1e-8 ENSO gets 3 digits. Cost and parameters are
flat to second order at a minimum, so the last digits need tolerances near machine precision."""

MOST_EVALUATIONS = 5000
"""MGH09 needs some 500 from its far start, every other fit under 100."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """The outcome of one fit, beside the certified values.

    ``digits``, ``deviation_digits`` and ``rss_digits`` count the digits that agree with the
    certified parameters (worst of them), standard deviations (worst of them) and RSS.
    ``first_seconds`` is the time of the first gradient, in which kernels are compiled or loaded;
    ``seconds`` is that of the fit after it.
    """

    problem: str
    method: str
    start: int
    parameters: np.ndarray
    certified_parameters: np.ndarray
    deviations: np.ndarray
    certified_deviations: np.ndarray
    rss: float
    certified_rss: float
    digits: float
    deviation_digits: float
    rss_digits: float
    function_evaluations: int
    gradient_evaluations: int
    first_seconds: float
    seconds: float
    converged: bool
    message: str

    def as_dict(self) -> dict:
        """The fields as JSON takes them; a number that is not finite becomes None."""
        return {key: _plain(value) for key, value in dataclasses.asdict(self).items()}


def _plain(value):
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value.tolist()]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def fit_least_squares(problem: Problem, start: int) -> Fit:
    """Levenberg-Marquardt on the residuals, with their Jacobian from ``ng.jacobian``."""
    jacobian = ng.jacobian(problem.residual)

    def solve(b0):
        # "trf" reaches six digits from both starts too, but with rounding noise added to model and
        # Jacobian its worst fit fell to 6.1 digits, MINPACK's to 6.3. "dogbox" does not find the
        # minimum of Lanczos3, MGH09 and Thurber from start 1.
        return scipy.optimize.least_squares(
            problem.residual,
            b0,
            jac=jacobian,  # pyright: ignore[reportArgumentType]  # inferred from a default string
            method="lm",
            x_scale="jac",
            ftol=TOLERANCE,
            xtol=TOLERANCE,
            gtol=TOLERANCE,
            max_nfev=MOST_EVALUATIONS,
        )

    return _run("least_squares", problem, start, jacobian, solve, jacobian)


def fit_minimize(problem: Problem, start: int) -> Fit:
    """BFGS on the logarithm of the RSS, value and gradient from ``ng.value_and_grad``.

    The logarithm has its minimum where the RSS has, and a gradient free of the data's units, so
    that one tolerance suits every problem.
    """

    def loss(b):
        return np.log(np.sum(problem.residual(b) ** 2))

    value_and_grad = ng.value_and_grad(loss)

    def solve(b0):
        options = {"gtol": 1e-8, "maxiter": MOST_EVALUATIONS}
        return scipy.optimize.minimize(value_and_grad, b0, jac=True, method="BFGS", options=options)

    return _run("minimize", problem, start, value_and_grad, solve, ng.jacobian(problem.residual))


def _run(method, problem: Problem, start: int, derivative: Callable, solve: Callable, jacobian):
    b0 = problem.starts[start - 1]
    began = time.perf_counter()
    derivative(b0)
    warm = time.perf_counter()
    with np.errstate(all="ignore"):  # trial steps overflow; the solvers step back
        result = solve(b0.copy())
        seconds = time.perf_counter() - warm
        residual = problem.residual(result.x)
        rss = float(residual @ residual)
        deviations = standard_deviations(jacobian(result.x), rss)
    return Fit(
        problem=problem.name,
        method=method,
        start=start,
        parameters=result.x,
        certified_parameters=problem.certified,
        deviations=deviations,
        certified_deviations=problem.deviations,
        rss=rss,
        certified_rss=problem.rss,
        digits=digits_of_agreement(result.x, problem.certified),
        deviation_digits=digits_of_agreement(deviations, problem.deviations),
        rss_digits=digits_of_agreement(rss, problem.rss),
        function_evaluations=int(result.nfev),
        gradient_evaluations=int(result.njev),
        first_seconds=warm - began,
        seconds=seconds,
        converged=bool(result.success),
        message=str(result.message),
    )


def digits_of_agreement(values, certified) -> float:
    """Digits to which the worst of ``values`` agrees: ``-log10`` of its relative error.

    Between 0 and 11, the number of digits certified; 0 for values that are not finite.

    Examples
    --------
    >>> digits_of_agreement([1.0, 2.002], [1.0, 2.0])
    3.0
    """
    certified = np.asarray(certified)
    error = np.max(np.abs((np.asarray(values) - certified) / certified))
    if not np.isfinite(error):
        return 0.0
    digits = -np.log10(max(error, 10.0**-DIGITS_CERTIFIED))
    return round(float(max(digits, 0.0)), 2)


def standard_deviations(jacobian: np.ndarray, rss: float) -> np.ndarray:
    """Standard deviations of the parameters from the Jacobian (n, p) at the minimum.

    Square roots of the diagonal of ``rss / (n - p) * inv(J.T @ J)``, from the singular values of
    the Jacobian with its columns scaled to one length: that brings condition numbers of up to
    1e9 (Hahn1) under 1e4, where ``pinv(J.T @ J)`` squares them and has no digit right on Hahn1,
    Nelson and Roszman1. Infinite where the data do not determine the parameter.
    """
    n, p = jacobian.shape
    if not np.isfinite(jacobian).all():
        return np.full(p, np.inf)
    scale = np.linalg.norm(jacobian, axis=0)
    scale[scale == 0] = 1.0
    _, singular, vt = np.linalg.svd(jacobian / scale, full_matrices=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = np.sqrt(rss / (n - p) * np.sum((vt.T / singular) ** 2, axis=1)) / scale
    return np.where(np.isnan(deviations), np.inf, deviations)
