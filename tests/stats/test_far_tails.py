"""Logarithms of probabilities that underflow, and their gradients, against 60 digits."""

import math
import operator

import mpmath
import numpy as np
import pytest
import scipy.stats

import numgrad as ng
from numgrad import stats

mp = mpmath.mp.clone()
mp.dps = 60


def log_gamma(a, low, high):
    return mp.log(mp.gammainc(a, low, high, regularized=True))


def log_beta(a, b, x):
    # by the series that does not cancel
    first = a * mp.log(x) + b * mp.log(1 - x) - mp.log(a * mp.beta(a, b))
    return first + mp.log(mp.hyp2f1(1, a + b, a + 1, x))


def log_t(x, df):
    return log_beta(df / 2, mp.mpf(0.5), df / (df + x * x)) - mp.log(2)


# the family and function, its truth, and points: the argument and the shapes
CASES = {
    "gamma.logcdf": (
        lambda x, a: log_gamma(a, 0, x),
        [(0.7, 1000.0), (1e-180, 2.5), (2400.0, 5000.0)],
    ),
    "gamma.logsf": (
        lambda x, a: log_gamma(a, x, mp.inf),
        [(900.0, 2.5), (750.0, 0.3), (8000.0, 5000.0)],
    ),
    "chi2.logcdf": (lambda x, k: log_gamma(k / 2, 0, x / 2), [(3.0, 900.0)]),
    "chi2.logsf": (lambda x, k: log_gamma(k / 2, x / 2, mp.inf), [(2000.0, 3.0)]),
    "invgamma.logcdf": (lambda x, a: log_gamma(a, 1 / x, mp.inf), [(1e-3, 2.5), (5e-4, 0.7)]),
    "invgamma.logsf": (lambda x, a: log_gamma(a, 0, 1 / x), [(50.0, 400.0)]),
    "beta.logcdf": (
        lambda x, a, b: log_beta(a, b, x),
        [(0.01, 300.0, 2.5), (1e-150, 2.5, 0.6), (0.3, 2000.0, 900.0)],
    ),
    "beta.logsf": (lambda x, a, b: log_beta(b, a, 1 - x), [(0.99, 2.5, 300.0)]),
    "t.logcdf": (log_t, [(-70.0, 500.0), (-1e110, 3.5)]),
    "t.logsf": (lambda x, df: log_t(-x, df), [(70.0, 500.0), (1e160, 2.5)]),
    "f.logcdf": (
        lambda x, m, n: log_beta(m / 2, n / 2, m * x / (m * x + n)),
        [(0.01, 400.0, 30.0), (1e-180, 4.0, 7.0)],
    ),
    "f.logsf": (
        lambda x, m, n: log_beta(n / 2, m / 2, n / (m * x + n)),
        [(60.0, 30.0, 500.0), (1e200, 3.0, 4.0)],
    ),
    "gumbel_r.logsf": (lambda x: mp.log(-mp.expm1(-mp.exp(-x))), [(800.0,)]),
    "poisson.logcdf": (lambda k, mu: log_gamma(k + 1, mu, mp.inf), [(3.0, 900.0)]),
    "poisson.logsf": (lambda k, mu: log_gamma(k + 1, 0, mu), [(300.0, 2.0)]),
    "binom.logcdf": (lambda k, n, p: log_beta(n - k, k + 1, 1 - p), [(5.0, 900.0, 0.9)]),
    "binom.logsf": (lambda k, n, p: log_beta(k + 1, n - k, p), [(300.0, 400.0, 0.01)]),
    "nbinom.logcdf": (lambda k, n, p: log_beta(n, k + 1, p), [(5.0, 200.0, 0.01)]),
    "nbinom.logsf": (lambda k, n, p: log_beta(k + 1, n, 1 - p), [(900.0, 3.5, 0.7)]),
}


def function(name):
    family, what = name.split(".")
    return getattr(getattr(stats, family), what)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    truth, points = CASES[name]
    discrete = isinstance(function(name).__self__, stats.distribution.Discrete)
    for point in points:
        exact = [mp.mpf(v) for v in point]
        f = function(name)
        assert float(f(*point)) == pytest.approx(float(truth(*exact)), rel=1e-13)
        found = ng.grad(lambda p, f=f: f(*p))(np.array(point))
        for k, slope in enumerate(found):
            if (discrete and name.split(".")[0] != "poisson" and k < 2) or (discrete and k == 0):
                continue  # of whole numbers there is none
            step = [mp.mpf(j == k) * exact[k] * mp.mpf(10) ** -20 for j in range(len(exact))]
            ahead = truth(*map(operator.add, exact, step))
            expected = (ahead - truth(*map(operator.sub, exact, step))) / (2 * step[k])
            assert slope == pytest.approx(float(expected), rel=1e-9), (point, k)


def test_numbers_on_both_sides_of_the_limit_meet():
    x = np.linspace(-39.0, -35.0, 41)
    with mp.workdps(30):
        expected = [float(log_t(mp.mpf(v), mp.mpf(1e6))) for v in x[::5]]
    np.testing.assert_allclose(stats.t.logcdf(x[::5], 1e6), expected, rtol=1e-11)
    slopes = ng.grad(lambda x: np.sum(stats.t.logcdf(x, 1e6)))(x)
    assert (np.diff(slopes) < 0).all()


def test_single_precision():
    x = np.array([1.0, 2.0], np.float32)
    found = stats.gamma.logcdf(ng.tensor(x), np.float32(60))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, stats.gamma.logcdf(x.astype(float), 60.0), rtol=1e-5)


def test_where_there_is_no_formula_gradients_are_nan():
    x = ng.tensor(-60.0, requires_grad=True)
    found = stats.skewnorm.logcdf(x, 2.0)
    found.backward()
    assert found == -math.inf
    assert np.isnan(x.grad)


def test_ends_have_no_gradient():
    for end in (-math.inf, math.inf):
        slopes = ng.grad(lambda x: stats.t.logcdf(x, 3.0) * 1.0)(np.array(end))
        assert slopes == 0


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("t.logpdf", (0.4, math.inf)),
        ("t.pdf", (0.4, math.inf)),
        ("cauchy.logpdf", (1e160,)),
        ("bernoulli.pmf", (math.nan, 0.2)),
        ("invgamma.pdf", (1e-310, 4.0)),
    ],
)
def test_values_at_extremes_are_scipys(name, args):
    family, what = name.split(".")
    with np.errstate(all="ignore"):
        expected = getattr(getattr(scipy.stats, family), what)(*args)
    np.testing.assert_allclose(function(name)(ng.tensor(args[0]), *args[1:]), expected, rtol=1e-13)


def test_gradients_at_extremes():
    assert float(stats.t.logcdf(-50.0, math.inf)) == float(stats.norm.logcdf(-50.0))
    assert ng.grad(lambda x: stats.cauchy.logpdf(x))(1e160) == pytest.approx(-2e-160, rel=1e-14)
    assert ng.grad(lambda x: stats.t.logpdf(x, 2.0))(1e160) == pytest.approx(-3e-160, rel=1e-14)
    assert ng.grad(lambda x: stats.invgamma.pdf(x, 4.0))(1e-200) == 0
    assert ng.grad(lambda x: stats.invgamma.cdf(x, 4.0))(1e-200) == 0
    x, centre, spread = (
        np.array([[0.3, -0.7]]),
        np.array([0.1, 0.2]),
        np.array([[2.0, 0.3], [0.3, 1]]),
    )
    normal = ng.value_and_grad(lambda x: stats.multivariate_normal.logpdf(x, centre, spread)[0])
    endless = ng.value_and_grad(lambda x: stats.multivariate_t.logpdf(x, centre, spread, np.inf)[0])
    for found, expected in zip(endless(x), normal(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
