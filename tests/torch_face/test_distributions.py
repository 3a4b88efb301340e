"""Distributions of the face, against SciPy, integrals and PyTorch."""

import numpy as np
import pytest
import scipy.stats as stats
from scipy.integrate import quad

import numgrad.torch as torch
from numgrad.torch import distributions as D

X = torch.tensor([0.2, 0.7], dtype=torch.float64)
SCIPY = {
    "Normal": ((0.3, 1.5), stats.norm(0.3, 1.5)),
    "LogNormal": ((0.3, 0.5), stats.lognorm(0.5, scale=np.exp(0.3))),
    "Gamma": ((2.5, 1.5), stats.gamma(2.5, scale=1 / 1.5)),
    "StudentT": ((5.0, 0.3, 1.5), stats.t(5.0, 0.3, 1.5)),
    "Kumaraswamy": ((1.0, 2.5), stats.beta(1.0, 2.5)),
    "Beta": ((0.7, 2.5), stats.beta(0.7, 2.5)),
    "Pareto": ((0.1, 2.5), stats.pareto(2.5, scale=0.1)),
    "Chi2": ((2.5,), stats.chi2(2.5)),
    "Weibull": ((1.5, 2.5), stats.weibull_min(2.5, scale=1.5)),
    "VonMises": ((0.3, 1.5), stats.vonmises(1.5, 0.3)),
    "FisherSnedecor": ((3.0, 9.0), stats.f(3.0, 9.0)),
    "InverseGamma": ((2.5, 1.5), stats.invgamma(2.5, scale=1.5)),
    "GeneralizedPareto": ((0.1, 1.5, 0.3), stats.genpareto(0.3, 0.1, 1.5)),
    "HalfCauchy": ((1.5,), stats.halfcauchy(scale=1.5)),
    "HalfNormal": ((1.5,), stats.halfnorm(0, 1.5)),
    "Gumbel": ((0.3, 1.5), stats.gumbel_r(0.3, 1.5)),
    # densities proportional to exp(t x) on [0, 1]
    "ContinuousBernoulli": ((0.2,), stats.truncexpon(np.log(4), scale=1 / np.log(4))),
}  # fmt: skip


@pytest.mark.parametrize("name", SCIPY)
def test_density_and_moments_are_those_of_scipy(name):
    args, truth = SCIPY[name]
    d = getattr(D, name)(*[torch.tensor(a, dtype=torch.float64) for a in args])
    np.testing.assert_allclose(d.log_prob(X).numpy(), truth.logpdf(X.numpy()), rtol=1e-10)
    np.testing.assert_allclose(d.entropy().item(), truth.entropy(), rtol=1e-7)
    np.testing.assert_allclose(d.cdf(X).numpy(), truth.cdf(X.numpy()), rtol=1e-9)
    np.testing.assert_allclose(d.icdf(X).numpy(), truth.ppf(X.numpy()), rtol=1e-7)
    torch.manual_seed(2)
    drawn = d.sample((500,)).numpy()
    assert stats.kstest(drawn, truth.cdf).pvalue > 1e-4
    if name != "VonMises":  # whose variance is the circular one
        np.testing.assert_allclose(d.mean.item(), truth.mean(), rtol=1e-9)
        np.testing.assert_allclose(d.variance.item(), truth.var(), rtol=1e-9)


@pytest.mark.parametrize(
    ("d", "truth"),
    [
        (D.Binomial(5, torch.tensor(0.3)), stats.binom(5, 0.3)),
        (D.NegativeBinomial(3, torch.tensor(0.3)), stats.nbinom(3, 0.7)),
        (D.Geometric(0.3), stats.geom(0.3, loc=-1)), (D.Poisson(2.5), stats.poisson(2.5)),
        (D.Bernoulli(0.3), stats.bernoulli(0.3)),
        (D.Categorical(torch.tensor([0.2, 0.5, 0.3])), stats.rv_discrete(
            values=([0, 1, 2], [0.2, 0.5, 0.3]))),
    ],
)  # fmt: skip
def test_counts_are_those_of_scipy(d, truth):
    k = np.arange(2.0 if isinstance(d, D.Bernoulli) else 3.0)
    own = d.log_prob(torch.tensor(k, dtype=torch.float32)).exp().numpy()
    np.testing.assert_allclose(own, truth.pmf(k), rtol=1e-5)
    torch.manual_seed(3)
    drawn = d.sample((1000,)).numpy()
    for value in k:
        p = truth.pmf(value)
        assert (drawn == value).mean() == pytest.approx(p, abs=4.5 * np.sqrt(p * (1 - p) / 1000))
    if not isinstance(d, D.Categorical):
        np.testing.assert_allclose(d.mean.item(), truth.mean(), rtol=1e-6)
        np.testing.assert_allclose(d.variance.item(), truth.var(), rtol=1e-5)


@pytest.mark.parametrize("count", [3, 4000])
def test_each_row_of_categories_is_drawn_with_its_weights(count):
    torch.manual_seed(4)
    weights = torch.tensor([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0], [0.5, 0.25, 0.25]])
    drawn = torch.multinomial(weights.repeat(4000 // count, 1, 1), count, True)
    for row, p in zip(drawn.transpose(0, 1).reshape(3, -1).numpy(), weights.numpy(), strict=True):
        shares = np.bincount(row, minlength=3) / row.size
        np.testing.assert_allclose(shares, p, atol=0.04 * np.sign(p * (1 - p)).max() + 1e-12)
        assert not shares[p == 0].any()


def test_continuous_bernoulli_is_continuous_where_it_is_nearly_uniform():
    x = torch.tensor(0.3, dtype=torch.float64)
    for p in (0.499, 0.49900001, 0.501, 0.50100001):
        t = np.log(p / (1 - p))
        truth = stats.truncexpon(abs(t), scale=1 / abs(t))  # of 1 - x where t rises
        d = D.ContinuousBernoulli(torch.tensor(p, dtype=torch.float64))
        mean, share = truth.mean(), truth.cdf(0.3 if t < 0 else 0.7)
        assert d.mean.item() == pytest.approx(mean if t < 0 else 1 - mean, abs=1e-9)
        assert d.cdf(x).item() == pytest.approx(share if t < 0 else 1 - share, abs=2e-6)
        assert d.icdf(d.cdf(x)).item() == pytest.approx(0.3, abs=2e-6)


def test_wishart_is_that_of_scipy():
    v, x = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[3.0, -0.5], [-0.5, 2.0]])
    truth = stats.wishart(3.5, v)
    given = {
        "covariance_matrix": v, "precision_matrix": np.linalg.inv(v),
        "scale_tril": np.linalg.cholesky(v),
    }  # fmt: skip
    df = torch.tensor(3.5).double()
    made = [D.Wishart(df, **{name: torch.tensor(a)}) for name, a in given.items()]
    for d in made:
        assert d.log_prob(torch.tensor(x)).item() == pytest.approx(truth.logpdf(x), rel=1e-10)
        assert d.entropy().item() == pytest.approx(truth.entropy(), rel=1e-10)
        np.testing.assert_allclose(d.mean.numpy(), truth.mean(), rtol=1e-10)
        np.testing.assert_allclose(d.variance.numpy(), truth.var(), rtol=1e-10)
    assert D.kl_divergence(made[0], made[1]).item() == pytest.approx(0, abs=1e-12)
    torch.manual_seed(0)
    np.testing.assert_allclose(made[0].sample((3000,)).mean(0).numpy(), 3.5 * v, atol=0.3)


def test_lkj_density_integrates_to_one_and_draws_have_its_moments():
    # of two rows the correlation r has density (1 - r^2)^(eta - 1) / B(eta, eta) / 2^(2 eta - 1),
    # which by the factor's last row (r, l) is that of r
    eta = 1.7
    d = D.LKJCholesky(2, torch.tensor(eta, dtype=torch.float64))
    r = 0.4
    factor = torch.tensor([[1.0, 0.0], [r, np.sqrt(1 - r * r)]], dtype=torch.float64)
    truth = stats.beta(eta, eta, loc=-1, scale=2)
    assert d.log_prob(factor).exp().item() == pytest.approx(truth.pdf(r), rel=1e-10)
    torch.manual_seed(0)
    drawn = D.LKJCholesky(3, torch.tensor(eta, dtype=torch.float64)).sample((2000,))
    assert D.constraints.corr_cholesky.check(drawn).all()
    marginal = stats.beta(eta + 0.5, eta + 0.5, loc=-1, scale=2)  # of any correlation of three
    for value in (drawn[:, 1, 0], (drawn @ drawn.mT)[:, 2, 1]):
        assert stats.kstest(value.numpy(), marginal.cdf).pvalue > 1e-3


def test_relaxed_and_logistic_densities_integrate_to_one():
    t = torch.tensor(0.7, dtype=torch.float64)
    p = torch.tensor([0.3, 0.7], dtype=torch.float64)
    z = torch.arange(-36, 36, 0.1, dtype=torch.float64)  # a sum over the line in place of (0, 1)
    for d in (
        D.RelaxedBernoulli(t, p[0]), D.RelaxedOneHotCategorical(t, p),
        D.LogisticNormal(t.reshape(1), t.reshape(1)),
    ):  # fmt: skip
        x = torch.sigmoid(z)
        density = d.log_prob(torch.stack([x, 1 - x], -1) if d.event_shape else x).exp()
        assert (density * x * (1 - x)).sum().item() * 0.1 == pytest.approx(1, rel=1e-6)
        assert d.rsample((3,)).shape == (3, *d.event_shape)


def test_straight_through_draws_have_gradients_of_probabilities():
    probs = torch.tensor([0.3, 0.7], requires_grad=True)
    x = D.OneHotCategoricalStraightThrough(probs).rsample()
    assert sorted(x.tolist()) == [0.0, 1.0]
    (slope,) = torch.autograd.grad(x[0], probs)
    np.testing.assert_allclose(slope.numpy(), [0.7, -0.3], rtol=1e-6)  # of the normalized ones


@pytest.mark.parametrize(
    ("p", "q", "low", "high"),
    [
        (D.Beta(1.5, 2.5), D.Gamma(1.7, 0.8), 0, 1),
        (D.Uniform(0.2, 0.9), D.Beta(1.5, 2.5), 0.2, 0.9),
        (D.Gamma(1.7, 0.8), D.Gumbel(0.3, 1.2), 0, 40),
        (D.Pareto(1.2, 5.5), D.Gamma(1.7, 0.8), 1.2, 40),
        (D.Exponential(0.8), D.Gamma(1.7, 0.8), 0, 50),
        (D.Uniform(1.2, 1.9), D.Pareto(1.1, 2.5), 1.2, 1.9),
        (D.Gumbel(0.3, 1.2), D.Gumbel(-0.2, 0.8), -4, 20),
        (D.Normal(0.3, 1.2), D.Gumbel(0.1, 0.8), -9, 9),
        (D.ContinuousBernoulli(0.3), D.Normal(0.3, 1.2), 0, 1),
        (D.Laplace(0.3, 0.7), D.Normal(0.1, 1.2), -15, 15),
    ],
)  # fmt: skip
def test_divergence_is_the_integral_that_defines_it(p, q, low, high):

    x = torch.tensor(low + (high - low) * (np.arange(20000) + 0.5) / 20000)
    log = p.log_prob(x)
    terms = (log.exp() * (log - q.log_prob(x))).numpy()
    expected = (high - low) * terms.mean()
    assert D.kl_divergence(p, q).item() == pytest.approx(expected, rel=2e-3)


def test_divergence_is_infinite_outside_of_the_support():
    assert D.kl_divergence(D.Normal(0.0, 1.0), D.Gamma(1.0, 1.0)).item() == np.inf
    q = D.Uniform(torch.tensor([-1.0, 0.1]), 2.0)
    assert torch.isinf(D.kl_divergence(D.Beta(1.5, 2.5), q)).tolist() == [False, True]


def test_a_nearer_class_has_its_own_divergence():
    class Shifted(D.Normal):
        pass

    p = Shifted(0.0, 1.0)
    assert D.kl_divergence(p, D.Normal(1.0, 1.0)).item() == 0.5
    D.register_kl(Shifted, D.Normal)(lambda p, q: 7)
    try:
        assert D.kl_divergence(p, D.Normal(1.0, 1.0)) == 7
    finally:
        del D.kl.KL_REGISTRY[Shifted, D.Normal]
    with pytest.raises(NotImplementedError, match="register_kl"):
        D.kl_divergence(D.Poisson(1.0), D.Normal(0.0, 1.0))


def test_parameters_and_values_are_checked():
    with pytest.raises(ValueError, match="parameter scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="within the support"):
        D.Exponential(1.0).log_prob(torch.tensor(-1.0))
    with pytest.raises(ValueError, match="but not both"):
        D.Bernoulli()
    with pytest.raises(ValueError, match="parameter low"):
        D.Uniform(1.0, 0.0)
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    with pytest.raises(AttributeError, match=r"ng\.stats"):
        _ = D.SkewNormal


def test_policy_gradient_is_that_of_the_logarithm():
    logits = torch.zeros(3, requires_grad=True)
    d = D.Categorical(logits=logits)
    d.log_prob(torch.tensor(1)).backward()
    np.testing.assert_allclose(logits.grad.numpy(), [-1 / 3, 2 / 3, -1 / 3], rtol=1e-6)


@pytest.mark.parametrize("parameters", [(0.4, 3.0), (2.0, 0.7)])
def test_draws_have_implicit_gradients(parameters):
    # d x / d a = - (d F / d a) / f at fixed probability: of SciPy's F, by differences
    torch.manual_seed(0)
    a, b = (torch.tensor(p, dtype=torch.float64, requires_grad=True) for p in parameters)
    for family, cdf, density in (
        (D.Beta(a, b), stats.beta.cdf, stats.beta.pdf),
        (D.Gamma(a, b), lambda x, a, b: stats.gamma.cdf(x * b, a), lambda x, a, b: b
         * stats.gamma.pdf(x * b, a)),
    ):  # fmt: skip
        x = family.rsample()
        gradients = torch.autograd.grad(x, (a, b))
        h, v = 1e-6, x.item()
        p, q = parameters
        slopes = (
            (cdf(v, p + h, q) - cdf(v, p - h, q)) / (2 * h),
            (cdf(v, p, q + h) - cdf(v, p, q - h)) / (2 * h),
        )
        for own, slope in zip(gradients, slopes, strict=True):
            assert own.item() == pytest.approx(-slope / density(v, p, q), rel=1e-5)


def test_dirichlet_draws_average_to_the_gradient_of_the_mean():
    torch.manual_seed(1)
    a = torch.tensor([0.6, 1.5, 0.4], dtype=torch.float64, requires_grad=True)
    x = D.Dirichlet(a).rsample((2000,))
    np.testing.assert_allclose(x.detach().sum(-1).numpy(), 1, rtol=1e-12)
    own = torch.autograd.grad(x[:, 0].mean(), a)[0].numpy()
    np.testing.assert_allclose(own, [1.9 / 6.25, -0.6 / 6.25, -0.6 / 6.25], atol=0.02)


TRANSFORMS = {
    "affine": D.AffineTransform(0.3, -2.0), "exp": D.ExpTransform(), "tanh": D.TanhTransform(),
    "sigmoid": D.SigmoidTransform(), "softplus": D.SoftplusTransform(),
    "composed": D.ComposeTransform([D.AffineTransform(0.1, 0.5), D.ExpTransform()]),
    "sticks": D.StickBreakingTransform(),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform_goes_back_and_has_the_jacobian_of_differences(name):
    t = TRANSFORMS[name]
    x = torch.tensor([0.4, -0.3], dtype=torch.float64)
    y, h = t(x), 1e-6
    np.testing.assert_allclose(t.inv(y).numpy(), x.numpy(), rtol=1e-9)
    steps = torch.eye(2, dtype=torch.float64) * h
    jacobian = ((t(x + steps) - t(x - steps)) / (2 * h)).numpy()
    log = t.log_abs_det_jacobian(x, y).numpy()
    if name == "sticks":  # whose last component follows from the others
        assert log == pytest.approx(np.linalg.slogdet(jacobian[:, :2])[1], rel=1e-7)
    else:
        np.testing.assert_allclose(log, np.log(np.abs(np.diag(jacobian))), rtol=1e-7)


def test_transformed_and_mixed_densities_integrate_to_one():
    base = D.TransformedDistribution(D.Normal(0.2, 0.5), [D.ExpTransform()])
    mixture = D.MixtureSameFamily(
        D.Categorical(torch.tensor([0.3, 0.7])),
        D.Normal(torch.tensor([-1.0, 1.0]), torch.tensor([0.5, 0.8])),
    )
    for d, low in ((base, 1e-9), (mixture, -9)):
        total = quad(lambda x, d=d: d.log_prob(torch.tensor(x)).exp().item(), low, 20)[0]
        assert total == pytest.approx(1, abs=1e-5)
    assert mixture.mean.item() == pytest.approx(0.4)


CASES = {
    "Normal": ([0.3, -1.0], [1.5, 0.4]), "LogNormal": ([0.3, -1.0], [1.5, 0.4]),
    "HalfNormal": ([1.5, 0.4],), "Cauchy": ([0.3, -1.0], [1.5, 0.4]), "HalfCauchy": ([1.5, 0.4],),
    "Laplace": ([0.3, -1.0], [1.5, 0.4]), "Uniform": ([-1.0, 0.2], [2.0, 0.9]),
    "Exponential": ([1.5, 0.4],), "Gamma": ([0.3, 4.0], [1.5, 0.4]), "Chi2": ([1.5, 4.0],),
    "Beta": ([0.3, 4.0], [1.5, 2.4]), "StudentT": ([2.5, 5.0], [0.3, 0.2], [1.0, 2.0]),
    "Gumbel": ([0.3, -1.0], [1.5, 0.4]), "Weibull": ([0.3, 4.0], [1.5, 1.4]),
    "Pareto": ([0.3, 4.0], [3.5, 2.4]), "Kumaraswamy": ([1.3, 4.0], [1.5, 2.4]),
    "VonMises": ([0.3, -1.0], [1.5, 0.4]), "Bernoulli": ([0.3, 0.9],), "Binomial": (5, [0.3, 0.9]),
    "NegativeBinomial": ([3.0, 4.0], [0.3, 0.9]), "Geometric": ([0.3, 0.9],),
    "Poisson": ([0.3, 4.0],), "Categorical": ([[0.3, 0.7], [0.2, 0.8]],),
    "OneHotCategorical": ([[0.3, 0.7], [0.2, 0.8]],),
    "Multinomial": (4, [[0.3, 0.7], [0.2, 0.8]]), "Dirichlet": ([[0.3, 0.7, 2], [4.0, 0.2, 0.8]],),
    "MultivariateNormal": ([0.3, -1.0], [[2.0, 0.3], [0.3, 1.0]]),
    "LowRankMultivariateNormal": ([0.3, -1.0, 2], [[2.0], [0.3], [0.3]], [0.4, 1.0, 0.2]),
    "FisherSnedecor": ([1.5, 6.0], [5.0, 3.0]), "InverseGamma": ([3.5, 1.4], [1.5, 0.4]),
    "GeneralizedPareto": ([0.1, 0.2], [1.5, 0.4], [0.3, -0.2]), "LKJCholesky": (3, [1.5, 0.7]),
    "ContinuousBernoulli": ([0.3, 0.9],), "Wishart": ([3.5, 2.4], [[2.0, 0.3], [0.3, 1.0]]),
    "LogisticNormal": ([0.3, -1.0], [1.5, 0.4]), "RelaxedBernoulli": ([0.7], [0.3, 0.9]),
    "RelaxedOneHotCategorical": ([0.7], [[0.3, 0.7], [0.2, 0.8]]),
    "OneHotCategoricalStraightThrough": ([[0.3, 0.7], [0.2, 0.8]],),
}  # fmt: skip
METHODS = ("log_prob", "cdf", "icdf", "mean", "mode", "variance", "entropy", "enumerate_support")
DIFFERING = {
    ("Uniform", "mode"),  # NaN with gradients there
    ("Weibull", "mode"), ("Kumaraswamy", "mode"),  # NaN there where there is a mode
    ("Gamma", "cdf"), ("Chi2", "cdf"), ("VonMises", "entropy"),  # not there
    ("Wishart", "kl"),  # where elements of a batch are added up
    ("InverseGamma", "cdf"),  # no gradient there
    ("FisherSnedecor", "variance"), ("InverseGamma", "variance"),  # gradients where they are not
    ("GeneralizedPareto", "log_prob"), ("GeneralizedPareto", "cdf"),  # not of float64 there
}  # fmt: skip


def _reversed(name, p):
    """Parameters of another distribution of the family: those of the batch in reverse order."""
    matrix = (
        not isinstance(p, int) and p.ndim == 2 and ("Multivariate" in name or name == "Wishart")
    )
    if isinstance(p, int) or name == "Uniform" or matrix:
        return p
    return p.flip(0)


def _evaluated(library, name, method, values):
    parameters = [
        p if isinstance(p, int) else library.tensor(p, dtype=library.float64, requires_grad=True)
        for p in CASES[name]
    ]
    d = getattr(library.distributions, name)(*parameters)
    try:
        if method == "kl":
            others = [_reversed(name, p) for p in parameters]
            y = library.distributions.kl_divergence(d, type(d)(*others))
        else:
            y = getattr(d, method)
            if method in ("log_prob", "cdf", "icdf"):
                y = y(library.tensor(values))
            elif callable(y):
                y = y()
    except NotImplementedError:
        return None
    leaves = [p for p in parameters if not isinstance(p, int)]
    gradients = [None] * len(leaves)
    if y.requires_grad:
        gradients = library.autograd.grad(y.sum(), leaves, allow_unused=True)
    return [y.detach().numpy(), *[np.zeros(()) if g is None else g.numpy() for g in gradients]]


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("method", [*METHODS, "kl"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_pytorch(name, method):
    peer = pytest.importorskip("torch")
    if (name, method) in DIFFERING:
        pytest.skip("differs: see DIFFERING")
    peer.manual_seed(1)
    values = np.linspace(0.1, 0.9, 6).reshape(3, 2)
    if method != "icdf":
        parameters = [p if isinstance(p, int) else peer.tensor(p, dtype=peer.float64)
                      for p in CASES[name]]  # fmt: skip
        values = getattr(peer.distributions, name)(*parameters).sample((3,)).numpy()
    own, other = (_evaluated(library, name, method, values) for library in (torch, peer))
    if other is None or (own is None and method == "kl"):
        return
    for a, b in zip(own, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)
