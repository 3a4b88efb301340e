"""Random numbers: NumPy's, with gradients in the parameters they were drawn with."""

import numpy as np
import pytest
import scipy.stats

import numgrad as ng

FAMILIES = {  # parameters, and SciPy's distribution of them
    "normal": ((0.3, 1.7), scipy.stats.norm),
    "uniform": ((0.3, 1.7), lambda low, high: scipy.stats.uniform(low, high - low)),
    "laplace": ((0.3, 1.7), scipy.stats.laplace),
    "logistic": ((0.3, 1.7), scipy.stats.logistic),
    "gumbel": ((0.3, 1.7), scipy.stats.gumbel_r),
    "lognormal": ((0.3, 0.7), lambda m, s: scipy.stats.lognorm(s, scale=np.exp(m))),
    "exponential": ((1.7,), lambda s: scipy.stats.expon(scale=s)),
    "rayleigh": ((1.7,), lambda s: scipy.stats.rayleigh(scale=s)),
    "weibull": ((1.7,), scipy.stats.weibull_min),
    "pareto": ((1.7,), scipy.stats.lomax),
    "gamma": ((1.7, 2.0), lambda a, s: scipy.stats.gamma(a, scale=s)),
    "standard_gamma": ((0.4,), scipy.stats.gamma),
    "chisquare": ((3.0,), scipy.stats.chi2),
    "beta": ((0.7, 2.0), scipy.stats.beta),
    "standard_t": ((3.0,), scipy.stats.t),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_numbers_keep_their_chance(name):
    parameters, family = FAMILIES[name]
    expected = getattr(np.random.default_rng(3), name)(*parameters, 5)
    plain = getattr(ng.random.default_rng(3), name)(*parameters, size=5)
    np.testing.assert_array_equal(plain.numpy(), expected)
    leaves = [ng.tensor(np.full(5, a), requires_grad=True) for a in parameters]
    drawn = getattr(ng.random.default_rng(3), name)(*leaves)
    np.testing.assert_allclose(drawn.numpy(force=True), expected, rtol=1e-14)
    chance, h = family(*parameters).cdf(expected), 1e-5
    for k, g in enumerate(ng.autograd.grad(drawn.sum(), leaves)):
        up, down = (
            family(*[a + (s * h if j == k else 0) for j, a in enumerate(parameters)]).ppf(chance)
            for s in (1, -1)
        )
        np.testing.assert_allclose(g.numpy(), (up - down) / (2 * h), rtol=2e-5, atol=1e-7)


def test_dirichlet():
    alpha = ng.tensor([1.5, 0.5, 3.0], requires_grad=True)
    drawn = ng.random.default_rng(0).dirichlet(alpha, 4)
    expected = np.random.default_rng(0).dirichlet([1.5, 0.5, 3.0], 4)
    np.testing.assert_allclose(drawn.numpy(force=True), expected, rtol=1e-13)
    (g,) = ng.autograd.grad(drawn[:, 0].sum(), alpha)
    assert g[0] > 0 > g[1]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("poisson", (2.0,)), ("binomial", (5, 0.3)), ("geometric", (0.3,)),
     ("negative_binomial", (3, 0.3))],
)  # fmt: skip
def test_integers_have_no_gradient(name, parameters):
    expected = getattr(np.random.default_rng(3), name)(*parameters, 5)
    found = getattr(ng.random.default_rng(3), name)(*parameters, size=5)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert found.dtype == np.int64
    p = ng.tensor(parameters[-1], requires_grad=True)
    with pytest.raises(ng.NumgradRuntimeError, match="to be differentiated"):
        getattr(ng.random.default_rng(3), name)(*parameters[:-1], p)
    with pytest.raises(ng.NumgradValueError, match=f"random.{name}"):
        getattr(ng.random.default_rng(3), name)(*parameters[:-1], -1.0)


def test_under_jit_and_in_forward_mode():
    def loss(rng, a):
        return np.mean(rng.standard_gamma(a) ** 2) + np.mean(rng.normal(0.0, a))

    a = np.array([1.5, 2.5])
    eager = ng.grad(lambda a: loss(ng.random.default_rng(0), a))(a)
    rng = ng.random.default_rng(0)
    fast = ng.jit(ng.grad(lambda a: loss(rng, a)))
    np.testing.assert_allclose(fast(a), eager, rtol=1e-12)
    _, tangent = ng.jvp(lambda a: loss(ng.random.default_rng(0), a), (a,), (np.ones(2),))
    assert tangent == pytest.approx(eager.sum())
