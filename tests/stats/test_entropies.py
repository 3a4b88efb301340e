"""Entropies and moments that are integrals or sums, against exact ones of mpmath."""

import functools

import mpmath
import numpy as np
import pytest
import scipy.stats

import numgrad as ng
from numgrad import stats
from numgrad.testing import gradcheck, gradgradcheck

inf = np.inf


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(30):
        yield


def total(logpmf, first, last):
    """The entropy of integers from ``first`` to ``last``."""
    logs = [logpmf(k) for k in range(first, last + 1)]
    return -sum(mpmath.exp(log) * log for log in logs)


def poisson(mu):
    mu, wide = mpmath.mpf(mu), int(30 * mu**0.5 + 40)
    return total(
        lambda k: k * mpmath.log(mu) - mu - mpmath.loggamma(k + 1),
        max(0, int(mu) - wide), int(mu) + wide,
    )  # fmt: skip


def binom(n, p):
    p = mpmath.mpf(p)
    log, other = mpmath.log(p), mpmath.log1p(-p)
    return total(lambda k: mpmath.log(mpmath.binomial(n, k)) + k * log + (n - k) * other, 0, n)


def nbinom(n, p, last=400):
    n, p = mpmath.mpf(n), mpmath.mpf(p)
    return total(
        lambda k: mpmath.loggamma(n + k) - mpmath.loggamma(k + 1) - mpmath.loggamma(n)
        + n * mpmath.log(p) + k * mpmath.log1p(-p),
        0, last,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("family", "given", "atol"),
    [
        (poisson, [(1e-8,), (0.5,), (3.0,), (400.0,), (1010.0,)], 1e-14),
        (binom, [(1, 0.3), (10, 0.5), (10, 1e-6), (300, 0.02)], 1e-13),
        (nbinom, [(0.01, 0.5), (0.3, 0.4), (5.0, 0.3), (40.0, 0.9), (3.0, 0.999999)], 1e-13),
    ],
)
def test_entropies_of_integers(family, given, atol):
    entropy = getattr(stats, family.__name__).entropy
    for shapes in given:
        np.testing.assert_allclose(entropy(*shapes), float(family(*shapes)), rtol=1e-12, atol=atol)


def test_entropies_of_few_integers():
    p = np.array([1e-3, 0.3, 0.999])
    for name in ("bernoulli", "geom"):
        found = getattr(stats, name).entropy(ng.tensor(p)).numpy()
        np.testing.assert_allclose(found, getattr(scipy.stats, name).entropy(p), rtol=1e-12)
    for found in (
        stats.binom.entropy(5, [0.0, 1.0]), stats.poisson.entropy(0.0), stats.geom.entropy(1.0),
        stats.nbinom.entropy(3, 1.0), stats.bernoulli.entropy([0.0, 1.0]),
    ):  # fmt: skip
        np.testing.assert_allclose(found, 0, atol=1e-14)
    assert np.isnan(stats.poisson.entropy(-1.0))
    single = np.float32(0.5)
    for found in (
        stats.poisson.entropy(single), stats.binom.entropy(np.float32(3), single),
        stats.nbinom.entropy(single, single), stats.skewnorm.entropy(single),
        stats.truncnorm.var(-single, single),
    ):  # fmt: skip
        assert found.dtype == np.float32
    assert stats.binom.entropy(5, 0.4, loc=3) == stats.binom.entropy(5, 0.4)


@pytest.mark.parametrize("df", [0.3, 2.5, 99.0, 101.0, 1e12])
def test_entropy_of_t(df):
    with mpmath.workdps(40):
        d = mpmath.mpf(df)
        slopes = mpmath.digamma((d + 1) / 2) - mpmath.digamma(d / 2)
        beta = mpmath.log(mpmath.beta(d / 2, 0.5))
        expected = float((d + 1) / 2 * slopes + mpmath.log(d) / 2 + beta)
    np.testing.assert_allclose(stats.t.entropy(df), expected, rtol=2e-14)


@pytest.mark.parametrize("a", [0.0, 0.3, -2.0, 100.0])
def test_entropy_of_skew_normal(a):
    def integrand(y):
        density = 2 * mpmath.npdf(y) * mpmath.ncdf(a * y)
        return -density * mpmath.log(density)

    ends = [-1 / max(abs(a), 0.1) * k for k in (8, 2, 0, -2, -8)]
    places = sorted({-12, *[e for e in ends if abs(e) < 12], 12})
    np.testing.assert_allclose(stats.skewnorm.entropy(a), float(mpmath.quad(integrand, places)))


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [(9, inf, 9, 15), (1000, inf, 1000, 1000.05), (0, 1e-5, 0, 1e-5), (-30, -29, -30, -29),
     (-20, 30, -13, 13), (-inf, -1, -13, -1), (-1e5, -1e3, -1000.05, -1000)],
)  # fmt: skip
def test_truncated_normal_moments_keep_their_digits(a, b, low, high):
    top = mpmath.mpf(min(max(0, low), high))
    places = mpmath.linspace(mpmath.mpf(low), mpmath.mpf(high), 9)

    def mean(f):
        return mpmath.quad(lambda y: mpmath.exp((top * top - y * y) / 2) * f(y), places)

    mass = mean(lambda y: 1)
    middle = mean(lambda y: y) / mass
    spread = mean(lambda y: (y - middle) ** 2) / mass
    entropy = mean(lambda y: (y * y - top * top) / 2) / mass + mpmath.log(mass)
    np.testing.assert_allclose(stats.truncnorm.mean(a, b), float(middle), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(stats.truncnorm.var(a, b), float(spread), rtol=1e-12)
    np.testing.assert_allclose(stats.truncnorm.entropy(a, b), float(entropy), rtol=1e-12)


GRADIENTS = {
    "poisson": (stats.poisson.entropy, (3.0,)),
    "many": (stats.poisson.entropy, (3e3,)),
    "binom": (functools.partial(stats.binom.entropy, 10), (0.3,)),
    "nbinom": (stats.nbinom.entropy, (2.5, 0.3)),
    "geom": (stats.geom.entropy, (0.3,)),
    "bernoulli": (stats.bernoulli.entropy, (0.3,)),
    "t": (stats.t.entropy, (2.5,)),
    "normal t": (stats.t.entropy, (300.0,)),
    "f": (stats.f.entropy, (3.0, 5.0)),
    "skewnorm": (stats.skewnorm.entropy, (1.5,)),
    "symmetric": (stats.skewnorm.entropy, (0.0,)),
    "truncnorm mean": (stats.truncnorm.mean, (-1.0, 2.0)),
    "truncnorm var": (stats.truncnorm.var, (-1.0, 2.0)),
    "truncnorm std": (functools.partial(stats.truncnorm.std, -inf), (0.4,)),
    "truncnorm entropy": (stats.truncnorm.entropy, (3.0, 5.0)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    f, given = GRADIENTS[name]
    leaves = tuple([ng.tensor(a, requires_grad=True) for a in given])
    assert gradcheck(f, leaves)
    assert gradgradcheck(f, leaves)
    batch = [np.array([a, a]) for a in given]
    np.testing.assert_allclose(f(*map(ng.tensor, batch)).numpy(), f(*given), rtol=1e-13)
    np.testing.assert_allclose(ng.vmap(f)(*batch), f(*batch), rtol=1e-13)


def test_compiled():
    for name in ("poisson", "skewnorm", "truncnorm var"):
        f, given = GRADIENTS[name]
        np.testing.assert_allclose(ng.jit(f)(*given), f(*given), rtol=1e-13)
    ends = [ng.tensor(a, requires_grad=True) for a in (-inf, inf)]
    stats.truncnorm.var(*ends).backward()
    assert [e.grad.item() for e in ends] == [0, 0]
