"""Samplers of other libraries, run where they are there: densities, gradients, means."""

import numpy as np
import pytest
from scipy import stats

import numgrad as ng

START = {"x": np.zeros((2, 2)), "y": 0.0}
CENTER = np.array([[1.0, -1.0], [0.5, 2.0]])


def log_normal_density(p):
    return -0.5 * np.sum((p["x"] - CENTER) ** 2) - 0.5 * (p["y"] + p["x"][0, 0]) ** 2 / 0.25


def by_scipy(points):
    x, y = points[..., :4], points[..., 4]
    logpdf = stats.norm.logpdf(x, CENTER.ravel()).sum(-1) + stats.norm.logpdf(y, -x[..., 0], 0.5)
    return logpdf - 5 * stats.norm.logpdf(0.0) + np.log(0.5)


def slopes(points):
    x, y = points[..., :4], points[..., 4:]
    by_y = -(y + x[..., :1]) / 0.25
    return np.concatenate([CENTER.ravel() - x + np.eye(4)[0] * by_y, by_y], axis=-1)


MEAN = np.append(CENTER.ravel(), -1.0)
POINTS = np.random.default_rng(0).normal(size=(3, 4, 5))
JIT = pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow(cases=0))])


def normal(jit=True):
    return ng.objective(log_normal_density, START, jit=jit)


@JIT
def test_values_at_one_point_and_at_many(jit):
    density = ng.ecosystem.log_density(normal(jit))
    np.testing.assert_allclose(density(POINTS), by_scipy(POINTS), rtol=1e-13)
    np.testing.assert_allclose(density(POINTS[0].tolist()), by_scipy(POINTS[0]), rtol=1e-13)
    one = density(POINTS[0, 0])
    assert type(one) is float
    assert one == pytest.approx(by_scipy(POINTS[0, 0]), rel=1e-13)
    assert density(np.zeros((0, 5))).shape == (0,)
    with pytest.raises(ng.NumgradValueError, match=r"points of shape \(4,\).* has the 5 numbers"):
        density(np.zeros(4))


@JIT
def test_gradients_at_one_point_and_at_many(jit):
    from numgrad.ecosystem.vectors import values_and_gradients_at

    both = values_and_gradients_at(normal(jit))
    values, gradients = both(POINTS)
    np.testing.assert_allclose(values, by_scipy(POINTS), rtol=1e-13)
    np.testing.assert_allclose(gradients, slopes(POINTS), rtol=1e-12, atol=1e-13)
    value, gradient = both(POINTS[1, 2])
    assert value == pytest.approx(by_scipy(POINTS[1, 2]), rel=1e-13)
    np.testing.assert_allclose(gradient, slopes(POINTS[1, 2]), rtol=1e-12, atol=1e-13)
    assert [part.shape for part in both(np.zeros((0, 5)))] == [(0,), (0, 5)]


def test_arguments_dtypes_and_complex_parameters_of_batches():
    from numgrad.ecosystem.vectors import values_and_gradients_at

    def f(p, scale):
        return np.sum(scale * np.abs(p["z"]) ** 2) + np.sum(p["w"]).astype(np.float64)

    start = {"z": np.ones(2, np.complex64), "w": np.zeros(1, np.float32)}
    made = ng.objective(f, start, (np.array([1.0, 3.0]),))
    values, gradients = values_and_gradients_at(made)(np.arange(10.0).reshape(2, 5))
    np.testing.assert_allclose(values, [1 + 3 * (4 + 9) + 4, 25 + 36 + 3 * (49 + 64) + 9], 1e-6)
    np.testing.assert_allclose(gradients[0], made.jac(np.arange(5.0)), rtol=1e-6)
    np.testing.assert_allclose(gradients[0], [0, 2, 12, 18, 1], rtol=1e-6)


def test_values_that_are_not_finite_come_out():
    outside = ng.objective(lambda x: np.log(x[0]) + x[1], np.ones(2))
    with np.errstate(all="ignore"):
        found = ng.ecosystem.log_density(outside)(np.array([[0.0, 1.0], [-1.0, 1.0], [1.0, 2.0]]))
    assert found[0] == -np.inf
    assert np.isnan(found[1])
    assert found[2] == 2.0


def test_priors_are_nested_as_the_start():
    low = np.array([[0.0, 1.0], [2.0, 3.0]])
    priors = {"x": stats.uniform(low, 2.0), "y": stats.norm(1.0, 3.0).ppf}
    transform = ng.ecosystem.prior_transform(normal(False), priors)
    u = np.array([0.1, 0.2, 0.3, 0.4, 0.7])
    expected = [0.2, 1.4, 2.6, 3.8, stats.norm.ppf(0.7, 1.0, 3.0)]
    np.testing.assert_allclose(transform(u), expected, rtol=1e-13)
    one = {"x": stats.norm(), "y": stats.norm()}
    np.testing.assert_allclose(
        ng.ecosystem.prior_transform(normal(False), one)(u), stats.norm.ppf(u), rtol=1e-13
    )
    with pytest.raises(ng.NumgradValueError, match="give a distribution in place of each array"):
        ng.ecosystem.prior_transform(normal(False), [stats.norm()])
    with pytest.raises(ng.NumgradTypeError, match=r"x0\['x'\] got a float"):
        ng.ecosystem.prior_transform(normal(False), {"x": 1.0, "y": stats.norm()})
    with pytest.raises(ng.NumgradTypeError, match="complex"):
        ng.ecosystem.prior_transform(ng.objective(np.abs, 1j), stats.norm())


# ------------------------------------------------------------------------------------ real samplers


@pytest.mark.slow(cases=0)
def test_emcee_samples_all_walkers_at_once():
    emcee = pytest.importorskip("emcee")
    calls = []
    density = ng.ecosystem.log_density(normal())

    def counted(points):
        calls.append(points.shape)
        return density(points)

    sampler = emcee.EnsembleSampler(40, 5, counted, vectorize=True)
    sampler.random_state = np.random.RandomState(1).get_state()
    sampler.run_mcmc(np.random.default_rng(0).normal(size=(40, 5)), 600)
    assert set(calls) == {(40, 5), (20, 5)}
    draws = sampler.get_chain(discard=200, flat=True)
    np.testing.assert_allclose(draws.mean(0), MEAN, atol=0.25)


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
def test_dynesty_finds_the_evidence():
    dynesty = pytest.importorskip("dynesty")
    prior = {"x": stats.norm(0, 2), "y": stats.norm(0, 2)}
    likelihood = normal()
    sampler = dynesty.NestedSampler(
        ng.ecosystem.log_density(likelihood),
        ng.ecosystem.prior_transform(likelihood, prior),
        5,
        nlive=150,
        rstate=np.random.default_rng(3),
    )
    sampler.run_nested(print_progress=False, dlogz=0.5)
    # a density of Gaussians integrated over a Gaussian prior
    precision = np.diag([5.0, 1, 1, 1, 4])
    precision[0, 4] = precision[4, 0] = 4.0
    center = np.append(CENTER.ravel(), -1.0)
    marginal = stats.multivariate_normal(center, np.linalg.inv(precision) + 4 * np.eye(5))
    norm = 0.5 * np.linalg.slogdet(2 * np.pi * np.linalg.inv(precision))[1]
    truth = marginal.logpdf(np.zeros(5)) + norm
    assert sampler.results.logz[-1] == pytest.approx(truth, abs=0.8)


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
def test_jax_has_value_gradient_and_batches():
    jax = pytest.importorskip("jax")
    numpy = jax.numpy
    function = ng.ecosystem.jax_function(normal())
    # jax orders keys, the start does not
    point = {
        "y": numpy.asarray(POINTS[0, 0, 4]),
        "x": numpy.asarray(POINTS[0, 0, :4].reshape(2, 2)),
    }
    value, gradient = jax.value_and_grad(function)(point)
    np.testing.assert_allclose(value, by_scipy(POINTS[0, 0]), rtol=1e-5)
    np.testing.assert_allclose(gradient["x"].ravel(), slopes(POINTS[0, 0])[:4], rtol=1e-4)
    np.testing.assert_allclose(gradient["y"], slopes(POINTS[0, 0])[4], rtol=1e-4)
    np.testing.assert_allclose(function(POINTS[0, 0]), value, rtol=1e-6)
    batch = jax.jit(jax.vmap(jax.grad(lambda v: 2 * function(v))))(numpy.asarray(POINTS[1]))
    np.testing.assert_allclose(batch, 2 * slopes(POINTS[1]), rtol=1e-3, atol=1e-4)
    nested = jax.vmap(jax.vmap(function))(numpy.asarray(POINTS))
    np.testing.assert_allclose(nested, by_scipy(POINTS), rtol=1e-4)
    _, tangent = jax.jvp(function, (point,), (gradient,))
    np.testing.assert_allclose(tangent, np.sum(slopes(POINTS[0, 0]) ** 2), rtol=1e-4)
    with pytest.raises(ng.NumgradValueError, match="another nesting"):
        function({"x": numpy.zeros(4), "y": 0.0})


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
def test_blackjax_samples():
    blackjax = pytest.importorskip("blackjax")
    jax = pytest.importorskip("jax")
    function = ng.ecosystem.jax_function(normal())
    start = {"x": jax.numpy.zeros((2, 2)), "y": jax.numpy.zeros(())}
    adapted, _ = blackjax.window_adaptation(blackjax.nuts, function).run(
        jax.random.key(0), start, 300
    )
    kernel = blackjax.nuts(function, **adapted.parameters)

    def step(state, key):
        state, _ = kernel.step(key, state)
        return state, state.position

    _, draws = jax.lax.scan(step, adapted.state, jax.random.split(jax.random.key(1), 1000))
    np.testing.assert_allclose(draws["x"].mean(0), CENTER, atol=0.25)
    np.testing.assert_allclose(draws["y"].mean(), -1.0, atol=0.3)


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
def test_nutpie_samples_with_names_and_shapes():
    nutpie = pytest.importorskip("nutpie")
    model = ng.ecosystem.nutpie_model(
        normal(), coords={"row": ["a", "b"], "column": ["c", "d"]}, dims={"x": ("row", "column")}
    )
    data = nutpie.sample(model, draws=500, tune=300, chains=2, seed=1, progress_bar=False)
    assert data.posterior["x"].dims == ("chain", "draw", "row", "column")
    np.testing.assert_allclose(data.posterior["x"].mean(("chain", "draw")), CENTER, atol=0.25)
    np.testing.assert_allclose(data.posterior["y"].mean(), -1.0, atol=0.3)


@pytest.mark.filterwarnings("ignore")
def test_arviz_has_draws_by_name():
    pytest.importorskip("arviz")
    data = ng.ecosystem.arviz_draws(normal(False), POINTS, coords={"r": [1, 2]}, dims={"x": ["r"]})
    np.testing.assert_array_equal(data.posterior["x"], POINTS[..., :4].reshape(3, 4, 2, 2))
    assert data.posterior["x"].dims[:3] == ("chain", "draw", "r")
    np.testing.assert_array_equal(data.posterior["y"], POINTS[..., 4])
    single = ng.ecosystem.arviz_draws(normal(False), POINTS[0])
    assert single.posterior["y"].shape == (1, 4)
    with pytest.raises(ng.NumgradValueError, match=r"\(chains, draws, 5\)"):
        ng.ecosystem.arviz_draws(normal(False), np.zeros((3, 4)))
