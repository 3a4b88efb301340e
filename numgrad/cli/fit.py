"""Fit a problem by ``ng.least_squares`` and ``ng.minimize``, judge the result, draw it as text."""

import dataclasses
import itertools
import time
from collections.abc import Callable

import numpy as np
import scipy.optimize

import numgrad as ng
from numgrad.cli.nist import Problem
from numgrad.optimize.estimates import covariance, standard_errors

DIGITS_CERTIFIED = 11.0
"""NIST states eleven digits: agreement cannot be measured beyond."""


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
    """Levenberg-Marquardt on the residuals, with their exact Jacobian, default settings.

    "trf" reaches six digits from both starts too, but with rounding noise added to model and
    Jacobian its worst fit fell to 6.1 digits, MINPACK's to 6.3. "dogbox" does not find the minimum
    of Lanczos3, MGH09 and Thurber from start 1.
    """

    def first(b0):
        ng.least_squares(problem.residual, b0, max_nfev=1)

    return _run(
        "least_squares", problem, start, first, lambda b0: ng.least_squares(problem.residual, b0)
    )


def fit_by_differences(problem: Problem, start: int) -> Fit:
    """SciPy's Levenberg-Marquardt with differences for derivatives, as precise as it can be."""
    calls = itertools.count()

    def residual(b):
        next(calls)
        return problem.residual(b)

    def solve(b0):
        with np.errstate(all="ignore"):  # trial steps may overflow
            result = scipy.optimize.least_squares(
                residual, b0, method="lm", ftol=1e-15, xtol=1e-15, gtol=1e-15
            )
        result.nfev, result.njev = next(calls), 0  # SciPy's count leaves out those of differences
        return result

    return _run("differences", problem, start, lambda b0: None, solve)


def fit_minimize(problem: Problem, start: int) -> Fit:
    """BFGS on the logarithm of the RSS.

    The logarithm has its minimum where the RSS has, and a gradient free of the data's units, so
    that one tolerance suits every problem.
    """

    def loss(b):
        return np.log(np.sum(problem.residual(b) ** 2))

    def first(b0):
        ng.objective(loss, b0).fun_and_jac(b0)

    def solve(b0):
        return ng.minimize(loss, b0, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000})

    return _run("minimize", problem, start, first, solve)


def _run(method, problem: Problem, start: int, first: Callable, solve: Callable):
    b0 = problem.starts[start - 1]
    began = time.perf_counter()
    first(b0)
    warm = time.perf_counter()
    result = solve(b0)
    seconds = time.perf_counter() - warm
    residual = problem.residual(result.x)
    rss = float(residual @ residual)
    free = residual.size - b0.size
    jacobian = ng.jacfwd(problem.residual)(result.x)
    deviations = standard_errors(covariance(jacobian, rss / free))
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


WIDTH, HEIGHT = 66, 16


def drawn_as_text(problem: Problem, fit: Fit) -> str:
    """A drawing with ``o`` for data and ``.`` for the curve, and labelled axes.

    Of several predictors the first is drawn, and the model at the data in place of a curve.
    """
    if problem.x.ndim == 1:
        x, label = problem.x, "x"
        curve_x = np.linspace(x.min(), x.max(), 4 * WIDTH)
        curve = problem.model(fit.parameters, curve_x)
    else:
        x, label = problem.x[0], "x1"
        curve_x, curve = x, problem.model(fit.parameters, problem.x)
    low, high = (f(np.concatenate([problem.y, curve])) for f in (np.min, np.max))
    grid = np.full((HEIGHT, WIDTH), " ")
    for mark, at, values in ((".", curve_x, curve), ("o", x, problem.y)):
        columns = np.rint((at - x.min()) / np.ptp(x) * (WIDTH - 1)).astype(int)
        rows = np.rint((high - values) / (high - low) * (HEIGHT - 1)).astype(int)
        grid[rows, columns] = mark
    ends = {0: f"{high:.4g}", HEIGHT - 1: f"{low:.4g}", HEIGHT // 2: "y"}
    lines = [f"{problem.name}: {fit.digits:.1f} digits   (o data, . fit)"]
    lines += [f"{ends.get(k, ''):>10} |{''.join(row)}".rstrip() for k, row in enumerate(grid)]
    left, right = f"{x.min():.4g}", f"{x.max():.4g}"
    lines += [" " * 11 + "+" + "-" * WIDTH]
    middle = label.center(WIDTH - len(left) - len(right))
    lines += [" " * 12 + left + middle + right]
    return "\n".join(lines)
