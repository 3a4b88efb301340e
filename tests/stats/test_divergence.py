"""Divergences against integrals and sums of SciPy's densities, of vectors against known cases."""

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad

import numgrad as ng
from numgrad import stats
from numgrad.testing import gradcheck

NUMBERS = {
    "norm": (("norm", 0.3, 1.2), ("norm", -0.1, 0.8)),
    "laplace": (("laplace", 0.3, 0.5), ("laplace", -0.1, 0.8)),
    "cauchy": (("cauchy", 0.3, 1.2), ("cauchy", -0.1, 0.8)),
    "expon": (("expon", 0.3, 1.2), ("expon", 0.1, 0.8)),
    "gamma": (("gamma", 1.7, 0.0, 1.2), ("gamma", 0.7, 0.0, 0.8)),
    "halfcauchy": (("halfcauchy", 0.0, 1.2), ("halfcauchy", 0.0, 0.8)),
    "invgamma": (("invgamma", 3.7, 0.0, 1.2), ("invgamma", 2.7, 0.0, 0.8)),
    "beta": (("beta", 1.7, 2.2), ("beta", 0.7, 0.8)),
    "lognorm": (("lognorm", 0.7, 0.0, 1.2), ("lognorm", 0.9, 0.0, 0.8)),
    "halfnorm": (("halfnorm", 0.0, 1.2), ("halfnorm", 0.0, 0.8)),
    "gumbel_r": (("gumbel_r", 0.3, 1.2), ("gumbel_r", -0.1, 0.8)),
    "pareto": (("pareto", 2.5, 0.0, 1.2), ("pareto", 1.5, 0.0, 1.1)),
    "normal of laplace": (("norm", 0.3, 1.2), ("laplace", -0.1, 0.8)),
    "laplace of normal": (("laplace", 0.3, 0.7), ("norm", 0.1, 1.2)),
    "normal of gumbel": (("norm", 0.3, 1.2), ("gumbel_r", -0.1, 0.8)),
    "pareto of gamma": (("pareto", 2.5, 0.0, 1.2), ("gamma", 1.5, 0.0, 0.8)),
    "beta of gamma": (("beta", 1.7, 2.2), ("gamma", 0.7, 0.0, 0.8)),
    "uniform of beta": (("uniform", 0.2, 0.7), ("beta", 1.5, 2.5)),
    "uniform of pareto": (("uniform", 1.2, 0.7), ("pareto", 2.5, 0.0, 1.1)),
    "uniform of gumbel": (("uniform", 0.2, 0.7), ("gumbel_r", 0.1, 1.5)),
    "gamma of gumbel": (("gamma", 1.7, 0.0, 1.2), ("gumbel_r", 0.1, 0.8)),
    "exponential of gumbel": (("expon", 0.4, 1.2), ("gumbel_r", 0.1, 0.8)),
    "exponential of gamma": (("expon", 0.0, 1.2), ("gamma", 1.3, 0.0, 0.8)),
    "grey values": (("continuous_bernoulli", 0.7), ("continuous_bernoulli", -0.3)),
    "grey values of normal": (("continuous_bernoulli", 0.7), ("norm", 0.3, 1.2)),
}


def _of_scipy(family, *values):
    if family != "continuous_bernoulli":
        return getattr(scipy.stats, family)(*values)
    (t,) = values  # exponential ones within 1, from its other end where they rise
    return scipy.stats.truncexpon(abs(t), 0, 1 / abs(t))


def _end(family, *values):
    """A function between a number and SciPy's of that, which is its own inverse."""
    rising = family == "continuous_bernoulli" and values[0] > 0
    return (lambda x: 1 - x) if rising else (lambda x: x)


@pytest.mark.parametrize("name", NUMBERS)
def test_divergence_is_the_mean_of_the_logarithm_of_the_ratio(name):
    first, second = NUMBERS[name]
    truth, other = _of_scipy(*first), _of_scipy(*second)
    own, others = _end(*first), _end(*second)

    def ratio(u):  # at a quantile
        x = truth.ppf(u)
        return truth.logpdf(x) - other.logpdf(others(own(x)))

    expected = quad(ratio, 0, 0.5, limit=100)[0] + quad(ratio, 0.5, 1, limit=100)[0]
    p, q = (getattr(stats, family)(*values) for family, *values in (first, second))
    assert float(stats.kl_divergence(p, q)) == pytest.approx(expected, rel=1e-6)


COUNTS = {
    "binom": (("binom", 5, 0.3), ("binom", 5, 0.6)),
    "poisson": (("poisson", 2.0), ("poisson", 3.0)),
    "geom": (("geom", 0.3), ("geom", 0.5)),
    "bernoulli": (("bernoulli", 0.3), ("bernoulli", 0.6)),
    "bernoulli of poisson": (("bernoulli", 0.3), ("poisson", 0.6)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_divergence_of_counts_is_the_sum_that_defines_it(name):
    p, q = ([getattr(library, family)(*values) for library in (stats, scipy.stats)]
            for family, *values in COUNTS[name])  # fmt: skip
    k = np.arange(0 if name != "geom" else 1, 6 if name == "binom" else
                  2 if "bernoulli" in name else 150)  # fmt: skip
    expected = np.sum(p[1].pmf(k) * (p[1].logpmf(k) - q[1].logpmf(k)))
    assert float(stats.kl_divergence(p[0], q[0])) == pytest.approx(expected, rel=1e-11)


def test_divergence_of_vectors():
    rng = np.random.default_rng(1)
    roots = [np.tril(rng.normal(size=(3, 3))) + 2 * np.eye(3) for _ in range(2)]
    (a, b), means = [r @ r.T for r in roots], rng.normal(size=(2, 3))
    inverse, away = np.linalg.inv(b), means[1] - means[0]
    expected = 0.5 * (np.trace(inverse @ a) + away @ inverse @ away - 3
                      + np.linalg.slogdet(b)[1] - np.linalg.slogdet(a)[1])  # fmt: skip
    p, q = (stats.multivariate_normal(m, c) for m, c in zip(means, (a, b), strict=True))
    assert float(stats.kl_divergence(p, q)) == pytest.approx(expected, rel=1e-12)
    stack = stats.multivariate_normal(means, stats.Covariance.from_cholesky(np.stack(roots)))
    both = stats.kl_divergence(stack, q)
    np.testing.assert_allclose(np.asarray(both), [expected, 0], rtol=1e-11, atol=1e-12)

    p, q = stats.dirichlet([1.7, 1.2]), stats.dirichlet([0.7, 0.8])  # of two classes: beta's
    beta = stats.kl_divergence(stats.beta(1.7, 1.2), stats.beta(0.7, 0.8))
    assert float(stats.kl_divergence(p, q)) == pytest.approx(float(beta), rel=1e-12)
    # a Wishart matrix of one number is a gamma number
    p, q = stats.wishart(3.5, np.array([[1.2]])), stats.wishart(2.4, np.array([[0.8]]))
    gamma = stats.kl_divergence(stats.gamma(1.75, 0, 2.4), stats.gamma(1.2, 0, 1.6))
    assert float(stats.kl_divergence(p, q)) == pytest.approx(float(gamma), rel=1e-12)
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    found = stats.kl_divergence(stats.categorical(p), stats.categorical(q))
    assert float(found) == pytest.approx(scipy.stats.entropy(p, q), rel=1e-13)


def test_divergence_outside_of_the_support_and_where_there_is_none():
    kl = stats.kl_divergence
    assert kl(stats.norm(0.0, 1.0), stats.gamma(1.0)) == np.inf
    assert kl(stats.poisson(2.0), stats.bernoulli(0.3)) == np.inf
    assert kl(stats.binom(5, 0.3), stats.binom(4, 0.3)) == np.inf
    assert kl(stats.bernoulli(0.3), stats.bernoulli(0.0)) == np.inf
    assert kl(stats.bernoulli(0.0), stats.bernoulli(0.0)) == 0
    lengths = np.array([0.5, 1.5])
    assert np.isinf(kl(stats.uniform(0.0, lengths), stats.beta(1.5, 2.5))).tolist() == [False, True]
    assert np.isnan(float(kl(stats.gamma(2.0, 1.0), stats.gamma(1.0))))  # no closed form
    assert np.isnan(float(kl(stats.binom(5, 0.3), stats.binom(9, 0.6))))
    with pytest.raises(NotImplementedError, match="rvs"):
        kl(stats.t(3.0), stats.cauchy())
    with pytest.raises(TypeError, match="with their parameters"):
        kl(stats.norm, stats.norm(0.0, 1.0))
    with pytest.raises(ValueError, match="one length"):
        kl(stats.multivariate_normal(cov=np.eye(2)), stats.multivariate_normal(cov=np.eye(3)))


def test_divergence_has_gradients_and_is_compiled():
    def divergence(a, scale, b):
        return stats.kl_divergence(stats.gamma(a, scale=scale), stats.gamma(b))

    given = [ng.tensor(v, requires_grad=True) for v in (1.7, 1.2, 0.7)]
    assert gradcheck(divergence, tuple(given))
    assert ng.jit(divergence)(*given).item() == pytest.approx(divergence(*given).item(), rel=1e-13)
