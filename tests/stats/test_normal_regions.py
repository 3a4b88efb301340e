"""Probabilities of normal vectors: against SciPy's, integrals of fewer numbers and differences."""

import mpmath
import numpy as np
import pytest
import scipy.stats

import numgrad as ng
from numgrad.operations.special_functions import normal_regions
from numgrad.testing import gradcheck, gradgradcheck

OURS, THEIRS = ng.stats.multivariate_normal, scipy.stats.multivariate_normal
RNG = np.random.default_rng(0)
MEAN, COV = np.array([0.3, -0.2]), np.array([[2.0, 0.7], [0.7, 1.0]])
X = RNG.normal(size=(4, 2))
ROOT = RNG.normal(size=(3, 3))
MEAN_3, COV_3 = RNG.normal(size=3), ROOT @ ROOT.T + np.eye(3)
X_3 = MEAN_3 + RNG.normal(size=(3, 3))
SEED = {"rng": np.random.default_rng(1)}
LOW = np.array([-1.0, -np.inf])


@pytest.mark.parametrize(
    "place", [(0.3, -0.5, 0.4), (-5, -5, 0.5), (-8, -6, 0.9), (2, 3, -0.9), (-3, -2, -0.7),
              (5, -5, 0.99), (0, 0, 0.3), (1, 1, 0.999), (-1, 1.1, -0.9999)]
)  # fmt: skip
def test_two_numbers_to_the_last_digits(place):
    h, k, r = map(mpmath.mpf, place)
    with mpmath.workdps(25):
        ends = [-mpmath.inf, *(h - d for d in (20, 8, 3, 1, 0.3, 0.05)), h]
        wide = mpmath.sqrt(1 - r * r)
        expected = mpmath.quad(lambda x: mpmath.npdf(x) * mpmath.ncdf((k - r * x) / wide), ends)
    found = OURS.cdf(np.array(place[:2], float), None, np.array([[1.0, r], [r, 1.0]], float))
    assert found == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("lower", [-1.0, [-1.0], [-1.0, -2.0], [[-1.0], [-2.0]]])
def test_lower_limits_of_one_number(lower):
    below = lambda x: scipy.stats.norm.cdf(x, 0.3, np.sqrt(2.0))  # noqa: E731
    for x in (0.5, np.array([[0.5], [2.0]])):
        found = OURS.cdf(x, 0.3, 2.0, lower_limit=lower)
        rows = np.ravel(lower) if np.size(lower) > 1 else np.ravel(lower)[0]
        expected = below(np.reshape(x, -1) if np.ndim(x) else x) - below(rows)
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_values_are_those_of_scipy():
    for x in (X, X[0], X.reshape(2, 2, 2), X[:0]):
        for given in ((MEAN, COV), (None, COV), (MEAN, 2.0), (MEAN, np.array([1.0, 2.0]))):
            for lower in (None, LOW, np.array([0.5, 0.0])):
                found = OURS.cdf(ng.tensor(x), *given, lower_limit=lower).numpy()
                expected = THEIRS.cdf(x, *given, lower_limit=lower) if x.size else np.empty(0)
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(OURS.logcdf(X, MEAN, COV), THEIRS.logcdf(X, MEAN, COV), rtol=1e-12)
    for given in ((), (0.3,), (0.3, 2.0), ([0.3], [[2.0]])):
        x = np.array([0.5, 1.0, -np.inf, np.inf, np.nan])
        expected = np.where(np.isnan(x), np.nan, THEIRS.cdf(x, *given))  # 0 before SciPy 1.16
        found = OURS.cdf(x, *given)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)
    single = [a.astype(np.float32) for a in (X, MEAN, COV)]
    assert OURS.cdf(*single).dtype == np.float32
    np.testing.assert_allclose(OURS.cdf(*single), THEIRS.cdf(X, MEAN, COV), rtol=1e-5)
    assert OURS.cdf(X[0], MEAN, np.ones((2, 2)), allow_singular=True) == pytest.approx(
        scipy.stats.norm.cdf(np.min(X[0] - MEAN))
    )
    each = np.stack([COV * k for k in (1.0, 2.0, 3.0, 4.0)])
    expected = [THEIRS.cdf(x, MEAN, c) for x, c in zip(X, each, strict=True)]
    np.testing.assert_allclose(OURS.cdf(X, MEAN, each), expected, rtol=1e-12)


def of_three(x, mean, cov):
    """The probability of three numbers, by an integral over the first."""
    z, wide = x - mean, np.sqrt(cov[0, 0])
    nodes, weights = np.polynomial.legendre.leggauss(80)
    half = 0.5 * (z[0] + 9 * wide)
    t = half * nodes + 0.5 * (z[0] - 9 * wide)
    rest = cov[1:, 1:] - np.outer(cov[0, 1:], cov[0, 1:]) / cov[0, 0]
    places = z[1:] - (cov[0, 1:] / cov[0, 0]) * t[:, None]
    density = half * np.exp(-t * t / (2 * cov[0, 0])) / np.sqrt(2 * np.pi * cov[0, 0])
    return np.sum(weights * density * np.asarray(OURS.cdf(places, None, rest)))


def differences(f, a, h=1e-5):
    g = np.zeros_like(a)
    for place in np.ndindex(a.shape):
        step = np.zeros_like(a)
        step[place] = h
        g[place] = (f(a + step) - f(a - step)) / (2 * h)
    return g


def symmetric(cov):
    return 0.5 * (cov + cov.T)


def test_three_numbers():
    found = OURS.cdf(X_3, MEAN_3, COV_3)
    np.testing.assert_allclose(found, [of_three(x, MEAN_3, COV_3) for x in X_3], atol=1e-5)
    np.testing.assert_allclose(found, THEIRS.cdf(X_3, MEAN_3, COV_3), atol=2e-5)
    np.testing.assert_array_equal(found, OURS.cdf(X_3, MEAN_3, COV_3))
    assert OURS.cdf(X_3, MEAN_3, COV_3, rng=5)[0] != found[0]
    x = X_3[0]
    by_x, by_mean, by_cov = ng.grad(OURS.cdf, argnums=(0, 1, 2))(x, MEAN_3, COV_3)
    np.testing.assert_allclose(
        by_x, differences(lambda a: of_three(a, MEAN_3, COV_3), x), atol=1e-9
    )
    np.testing.assert_allclose(by_mean, -by_x, rtol=1e-13)
    expected = differences(lambda a: of_three(x, MEAN_3, symmetric(a)), COV_3)
    np.testing.assert_allclose(by_cov, expected, atol=1e-9)
    slope = ng.grad(lambda x: OURS.cdf(x, MEAN_3, COV_3))
    bend = ng.hessian(lambda x: OURS.cdf(x, MEAN_3, COV_3))(x)
    step = np.array([0.0, 1e-5, 0.0])
    numeric = (slope(x + step) - slope(x - step)) / 2e-5
    np.testing.assert_allclose(bend[1], numeric, atol=1e-8)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("lower", [-2.0, None])
def test_gradients_of_four_numbers(lower):
    root = RNG.normal(size=(4, 4))
    x, cov = RNG.normal(size=4), root @ root.T + np.eye(4)
    low = None if lower is None else np.full(4, lower)

    def value(x, cov):
        return OURS.cdf(x, None, cov, lower_limit=low)

    by_x, by_cov = ng.grad(value, argnums=(0, 1))(x, cov)
    np.testing.assert_allclose(by_x, differences(lambda a: value(a, cov), x, 0.05), atol=1e-3)
    numeric = differences(lambda a: value(x, symmetric(a)), cov, 0.1)
    np.testing.assert_allclose(by_cov, numeric, atol=1e-3)


def test_equally_correlated_numbers():
    """Given their common part they are independent."""
    n, r = 4, 0.3
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    x = np.array([0.2, -0.3, 1.0, 0.5])

    def expected(x):
        apart = scipy.stats.norm.cdf((x + np.sqrt(r) * nodes[:, None]) / np.sqrt(1 - r))
        return np.sum(weights * np.prod(apart, axis=1)) / np.sqrt(2 * np.pi)

    cov = (1 - r) * np.eye(n) + r
    assert OURS.cdf(x, None, cov) == pytest.approx(expected(x), abs=1e-5)
    slope = ng.grad(lambda x: OURS.cdf(x, None, cov))(x)
    np.testing.assert_allclose(slope, differences(expected, x), atol=1e-5)


@pytest.mark.parametrize("name", ["cdf", "logcdf"])
def test_derivatives_of_two_numbers(name):
    given = [ng.tensor(a, requires_grad=True) for a in (X, MEAN, COV, np.array([-2.0, -1.5]))]

    def function(x, mean, cov, low):
        return getattr(OURS, name)(x, mean, 0.5 * (cov + cov.T), lower_limit=low)

    x = [*given[:3], ng.tensor([-3.0, -4.5], requires_grad=True)]
    assert gradcheck(function, x)
    assert gradgradcheck(function, x)


def test_other_ways_to_call():
    def value(x, cov):
        return OURS.cdf(x, MEAN, cov).sum()

    slopes = ng.grad(value, argnums=(0, 1))
    for found, expected in zip(ng.jit(slopes)(X, COV), slopes(X, COV), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    each = ng.vmap(ng.grad(lambda x: OURS.cdf(x, MEAN, COV)))(X)
    np.testing.assert_allclose(each, slopes(X, COV)[0], rtol=1e-13)
    each = ng.vmap(lambda c: OURS.cdf(X, MEAN, c))(np.stack([COV, 2 * COV]))
    np.testing.assert_allclose(each[1], OURS.cdf(X, MEAN, 2 * COV), rtol=1e-13)
    _, tangent = ng.jvp(lambda x: OURS.cdf(x, MEAN, COV), (X,), (np.ones_like(X),))
    np.testing.assert_allclose(tangent, slopes(X, COV)[0].sum(axis=1), rtol=1e-12)


def test_limits_at_infinity_have_finite_gradients():
    x = np.array([np.inf, 0.4])
    slopes = ng.grad(OURS.cdf, argnums=(0, 1, 2))(x, MEAN, COV)
    width = COV[1, 1] ** 0.5
    density = scipy.stats.norm.pdf(0.4, MEAN[1], width)
    np.testing.assert_allclose(slopes[0], [0, density], rtol=1e-13)
    np.testing.assert_allclose(slopes[1], [0, -density], rtol=1e-13)
    expected = -density * (0.4 - MEAN[1]) / (2 * COV[1, 1])
    np.testing.assert_allclose(slopes[2], [[0, 0], [0, expected]], rtol=1e-12, atol=1e-17)
    low = np.array([-np.inf, -np.inf])
    again = ng.grad(lambda x: OURS.cdf(x, MEAN, COV, lower_limit=low))(x)
    np.testing.assert_allclose(again, slopes[0], rtol=1e-13)
    assert OURS.logcdf(np.array([-np.inf, 0.0]), MEAN, COV) == -np.inf
    assert np.isnan(OURS.cdf(np.array([np.nan, 0.0, 0.0]), MEAN_3, COV_3))


def test_bad_input_is_named():
    with pytest.raises(np.linalg.LinAlgError, match="cholesky"):
        OURS.cdf(X, MEAN, -COV)
    with pytest.raises(ng.NumgradValueError, match=r"multivariate_normal.cdf.*dimension 2"):
        OURS.cdf(X[:, :1], MEAN, COV)
    with pytest.raises(ng.NumgradValueError, match=r"lower limits of shape \(3,\)"):
        OURS.cdf(X, MEAN, COV, lower_limit=np.zeros(3))
    with pytest.raises(ng.NumgradTypeError, match="rng must be the integer"):
        OURS.cdf(X, MEAN, COV, **SEED)
    with pytest.raises(ng.NumgradTypeError, match="real"):
        OURS.cdf(X + 0j, MEAN, COV)


def test_the_way_of_older_scipys_has_the_sign_of_limits():
    low, high = np.array([-1.0, 0.5, -2.0]), np.array([0.4, -0.3, 1.0])
    cov = COV_3 / np.sqrt(np.outer(np.diag(COV_3), np.diag(COV_3)))
    found = normal_regions._by_lattice(
        low, high, cov, np.random.default_rng(0), maxpts=None, abseps=1e-5, releps=1e-5
    )
    assert found < 0  # one limit is above the other
    assert found == pytest.approx(-of_boxes(low, high, cov), abs=1e-4)


def of_boxes(low, high, cov):
    """The probability of the box, from those of the corners by SciPy."""
    low, high = np.minimum(low, high), np.maximum(low, high)
    corners = [(np.where(up, high, low), (-1) ** (3 - sum(up))) for up in np.ndindex(2, 2, 2)]
    return sum(sign * THEIRS.cdf(x, cov=cov) for x, sign in corners)
