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
    "f": ((5.0, 3.0), scipy.stats.f),
    "vonmises": ((0.4, 2.0), lambda m, k: scipy.stats.vonmises(k, m)),
    "wald": ((1.5, 0.7), lambda m, s: scipy.stats.invgauss(m / s, scale=s)),
    "noncentral_chisquare": ((2.5, 1.3), scipy.stats.ncx2),
    "noncentral_f": ((5.0, 6.0, 1.3), scipy.stats.ncf),
    "triangular": (
        (-1.0, 0.3, 2.0),
        lambda low, top, high: scipy.stats.triang((top - low) / (high - low), low, high - low),
    ),
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


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize(
    "name",
    [
        "gamma",
        "chisquare",
        "beta",
        "f",
        "standard_t",
        "triangular",
        "vonmises",
        "wald",
        "noncentral_chisquare",
        "noncentral_f",
    ],
)
def test_second_derivatives_of_numbers_that_keep_their_chance(name):
    parameters, family = FAMILIES[name]
    p, h = np.array(parameters), 1e-3
    chance = family(*p).cdf(getattr(np.random.default_rng(3), name)(*p, 5))
    rows = h * np.eye(p.size)

    def expected(i, j):
        at = [p + s * rows[i] + t * rows[j] for s in (1, -1) for t in (1, -1)]
        up, down, under, low = (np.sum(family(*a).ppf(chance) ** 2) for a in at)
        return (up - down - under + low) / (4 * h * h)

    found = ng.hessian(
        lambda p: np.sum(
            getattr(ng.random.default_rng(3), name)(*[p[k] for k in range(len(parameters))], 5) ** 2
        )
    )(p)
    wanted = [[expected(i, j) for j in range(p.size)] for i in range(p.size)]
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-4)


def test_angles_and_what_has_no_gradient():
    expected = np.random.default_rng(3).vonmises(3.0, 2.0, 5)  # some beyond pi, and turned
    mu, kappa = (ng.tensor(a, requires_grad=True) for a in (3.0, 2.0))
    drawn = ng.random.default_rng(3).vonmises(mu, kappa, 5)
    np.testing.assert_allclose(drawn.numpy(force=True), expected, rtol=1e-14)
    by_mu, by_kappa = ng.autograd.grad(drawn.sum(), [mu, kappa])
    assert by_mu == 5
    away = np.angle(np.exp(1j * (expected - 3.0)))
    chance, h = scipy.stats.vonmises.cdf(away, 2.0), 1e-5
    up, down = (scipy.stats.vonmises.ppf(chance, 2.0 + s * h) for s in (1, -1))
    np.testing.assert_allclose(by_kappa, np.sum(up - down) / (2 * h), rtol=1e-5)
    with pytest.raises(ng.NumgradRuntimeError, match=r"random\.poisson: a parameter of shape"):
        ng.random.default_rng(3).poisson(mu)


def test_triangles_with_the_top_at_an_end():
    for mode in (-1.0, 2.0):
        g = ng.jacobian(lambda p: ng.random.default_rng(3).triangular(p[0], p[1], p[2], 4))(
            np.array([-1.0, mode, 2.0])
        )
        assert np.all(np.isfinite(g[:, ::2]))
        np.testing.assert_allclose(g.sum(1), 1.0, rtol=1e-12)  # all ends move


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


SCALED = {"normal": 1, "uniform": 1, "laplace": 1, "logistic": 1, "gumbel": 1, "lognormal": 1,
          "exponential": 0, "rayleigh": 0}  # fmt: skip


@pytest.mark.parametrize("name", SCALED)
def test_a_scale_of_zero(name):
    place = 0.0 if name == "uniform" else 1.0  # of its ends
    given = [place] * SCALED[name] + [place if name == "uniform" else 0.0]
    leaves = [ng.tensor(a, requires_grad=True) for a in given]
    found = getattr(ng.random.default_rng(0), name)(*leaves, size=3)
    expected = getattr(np.random.default_rng(0), name)(*given, 3)
    np.testing.assert_allclose(found.numpy(force=True), expected, rtol=1e-15)
    one = [*given[:-1], given[-1] + 1.0]
    rise = getattr(np.random.default_rng(0), name)(*one, 3) - expected
    if name == "lognormal":
        rise = np.exp(1.0) * np.log1p(rise / np.exp(1.0))
    (slope,) = ng.autograd.grad(found.sum(), leaves[-1])
    np.testing.assert_allclose(slope.item(), rise.sum(), rtol=1e-12)


@pytest.mark.parametrize(("given", "size"), [(((3,), (2,)), None), (((), (2,)), 1), (((2,),), ())])
def test_sizes_that_do_not_suit(given, size):
    given = [ng.tensor(np.ones(shape), requires_grad=True) for shape in given]
    with pytest.raises(ng.NumgradValueError, match=r"random\.normal: parameters of shapes"):
        ng.random.default_rng(0).normal(*given, size=size)


def test_lists_among_parameters():
    scale = ng.tensor(1.0, requires_grad=True)
    found = ng.random.default_rng(0).normal([0.0, 10.0], scale)
    np.testing.assert_array_equal(found.detach(), np.random.default_rng(0).normal([0.0, 10.0]))
    with pytest.raises(ng.NumgradValueError, match="scale < 0"):
        ng.random.default_rng(0).normal(0.0, -scale)


MEAN, COV = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize("size", [None, 3, (2, 3)])
def test_multivariate_normal(size):
    expected = np.random.default_rng(0).multivariate_normal(MEAN, COV, size)

    def drawn(mean, cov):
        return ng.random.default_rng(0).multivariate_normal(mean, cov, size)

    np.testing.assert_allclose(drawn(MEAN, COV).numpy(), expected, rtol=1e-12)
    by_mean, by_cov = ng.grad(lambda m, c: np.sum(drawn(m, c) ** 2), argnums=(0, 1))(MEAN, COV)
    np.testing.assert_allclose(by_mean, 2 * expected.reshape(-1, 2).sum(axis=0))
    # vectors of doubled covariance are longer by the root of 2
    deviation = expected - MEAN
    np.testing.assert_allclose(np.sum(by_cov * COV), np.sum(expected * deviation), rtol=1e-10)


CONTINUOUS = {
    "norm": (), "beta": (2.5, 0.7), "t": (2.5,), "truncnorm": (-1.0, 2.0), "gamma": (2.5,),
    "logistic": (), "laplace": (), "cauchy": (), "gumbel_r": (), "skewnorm": (1.5,),
    "vonmises": (2.0,), "uniform": (), "expon": (), "lognorm": (0.7,), "chi2": (3.0,),
    "weibull_min": (1.7,), "pareto": (2.5,), "invgamma": (2.5,), "halfnorm": (), "f": (3.0, 5.0),
    "rayleigh": (), "halfcauchy": (), "genpareto": (-0.3,),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_rvs_are_of_the_distribution(name):
    ours, theirs = getattr(ng.stats, name), getattr(scipy.stats, name)
    given = (*CONTINUOUS[name], 0.5, 2.0)
    found = ours.rvs(*given, size=2000, random_state=1).numpy()
    assert scipy.stats.kstest(found, lambda x: theirs.cdf(x, *given)).pvalue > 0.01
    followed = list(range(len(given)))
    leaves = [ng.tensor(a, requires_grad=k in followed) for k, a in enumerate(given)]
    drawn = ours.rvs(*leaves, size=4, random_state=2)
    slopes = ng.autograd.grad(drawn.sum(), [leaves[k] for k in followed])
    chance, h = theirs.cdf(drawn.detach(), *given), 1e-5
    for k, slope in zip(followed, slopes, strict=True):
        if name in ("skewnorm", "f") and k < len(given) - 2:
            continue  # made of two numbers, so not along quantiles
        up, down = (
            theirs.ppf(chance, *[a + s * h * (j == k) for j, a in enumerate(given)])
            for s in (1, -1)
        )
        np.testing.assert_allclose(slope, np.sum(up - down) / (2 * h), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "given"),
    [("poisson", (2.0,)), ("binom", (5, 0.3)), ("bernoulli", (0.4,)), ("nbinom", (3, 0.4)),
     ("geom", (0.3,))],
)  # fmt: skip
def test_rvs_of_integers(name, given):
    ours, theirs = getattr(ng.stats, name), getattr(scipy.stats, name)
    found = ours.rvs(*given, 2, size=20000, random_state=1).numpy()
    assert found.dtype == np.int64
    np.testing.assert_allclose(found.mean(), theirs.mean(*given, 2), rtol=0.02)
    np.testing.assert_allclose(found.var(), theirs.var(*given), rtol=0.05)
    with pytest.raises(ng.NumgradRuntimeError, match="to be differentiated"):
        ours.rvs(*given[:-1], ng.tensor(given[-1], requires_grad=True))


def test_rvs_of_vectors():
    stats = ng.stats
    x = stats.multivariate_normal.rvs(MEAN, COV, size=20000, random_state=0).numpy()
    np.testing.assert_allclose(x.mean(axis=0), MEAN, atol=0.02)
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.03)
    x = stats.multivariate_t.rvs(MEAN, COV, 9.0, size=20000, random_state=0).numpy()
    np.testing.assert_allclose(np.cov(x.T), COV * 9 / 7, atol=0.1)
    x = stats.wishart.rvs(5, COV, size=20000, random_state=0).numpy()
    np.testing.assert_allclose(x.mean(axis=0), 5 * COV, rtol=0.02)
    np.testing.assert_allclose(x.var(axis=0), scipy.stats.wishart(5, COV).var(), rtol=0.05)
    slope = ng.grad(lambda c: np.sum(stats.wishart.rvs(5, c, random_state=0)))(COV)
    drawn = stats.wishart.rvs(5, COV, random_state=0).numpy()
    np.testing.assert_allclose(np.sum(slope * COV), drawn.sum())  # proportional to the scale
    p = np.array([[0.2, 0.8], [1.0, 0.0]])
    x = stats.categorical.rvs(p, size=(5000, 2), random_state=0).numpy()
    np.testing.assert_allclose(x.mean(axis=0), [0.8, 0.0], atol=0.02)
    assert stats.multinomial.rvs(5, p[0], random_state=0).sum() == 5
    assert stats.dirichlet.rvs([1.0, 2.0], 3, 0).shape == (3, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.gamma.rvs(-1.0), "gamma.rvs: no distribution has a, loc, scale = -1.0"),
        (lambda s: s.norm.rvs(0, -1), "norm.rvs: no distribution has loc, scale"),
        (lambda s: s.norm.rvs(np.zeros(3), size=1), "norm.rvs: parameters of shapes"),
        (lambda s: s.norm.rvs(random_state=-1), "norm.rvs: seed -1"),
        (lambda s: s.multivariate_normal.rvs(np.zeros((2, 2)), COV, 1), "multivariate_normal.rvs"),
    ],
)
def test_rvs_that_there_are_not(call, message):
    with pytest.raises(ng.NumgradValueError, match=message):
        call(ng.stats)


def test_categories_without_probability_are_not_drawn():
    """Also where rounding left the sum of all below the greatest number that is drawn."""

    class Last(np.random.Generator):
        def random(self, size=None, *dtype):
            return np.full(size, 1 - 2.0**-53)

    p = np.random.default_rng(8).random(9).astype(np.float32)
    p[-1] = 0
    p /= p.sum()
    assert np.cumsum(p)[-1] < 1 - 2.0**-53
    drawn = ng.stats.categorical.rvs(p, 3, Last(np.random.PCG64(0)))
    np.testing.assert_array_equal(drawn.numpy(), 7)
