"""Distributions with their parameters, means, fits and kernel densities, against SciPy's."""

import pickle

import numpy as np
import pytest
import scipy.stats

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

RNG = np.random.default_rng(4)
SAMPLES, PLACES, W = RNG.normal(size=(2, 8)), RNG.normal(size=(2, 5)), RNG.uniform(0.5, 2, 8)


def leaf(value):
    return ng.tensor(value, requires_grad=True)


# --------------------------------------------------------------------------- with their parameters


def test_methods_take_what_is_left():
    ours, theirs = ng.stats.gamma(2.0, scale=3.0), scipy.stats.gamma(2.0, scale=3.0)
    for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"):
        np.testing.assert_allclose(getattr(ours, name)(0.4), getattr(theirs, name)(0.4), rtol=1e-9)
    for name in ("mean", "var", "std", "entropy", "median", "support", "stats"):
        np.testing.assert_allclose(getattr(ours, name)(), getattr(theirs, name)(), rtol=1e-12)
    np.testing.assert_allclose(ours.interval(0.9), theirs.interval(0.9), rtol=1e-9)
    np.testing.assert_allclose(ours.moment(2), theirs.moment(2))
    np.testing.assert_allclose(ours.stats(moments="v"), theirs.stats(moments="v"))
    assert ours.rvs(3, random_state=1).shape == ours.rvs((3,), np.random.default_rng(1)).shape
    counts = ng.stats.poisson(2.5)
    np.testing.assert_allclose(counts.pmf(2), scipy.stats.poisson(2.5).pmf(2))
    region = ng.stats.multivariate_normal(np.zeros(2), np.eye(2))
    np.testing.assert_allclose(region.logpdf(np.ones(2)), -np.log(2 * np.pi) - 1)
    assert "ppf" in dir(ours)
    assert repr(ours) == "<<distribution gamma(a, loc, scale)> at 2.0, scale=3.0>"


def test_parameters_have_gradients():
    def loss(mu, sigma):
        return ng.stats.norm(mu, scale=sigma).logpdf(SAMPLES).sum()

    assert gradcheck(loss, (leaf(0.3), leaf(1.2)))
    gradient = ng.grad(lambda d: d.logpdf(SAMPLES).sum())(ng.stats.norm(0.3, scale=1.2))
    np.testing.assert_allclose(gradient.args[0], ng.grad(loss)(0.3, 1.2))
    np.testing.assert_allclose(gradient.kwds["scale"], ng.grad(loss, argnums=1)(0.3, 1.2))
    again = pickle.loads(pickle.dumps(ng.stats.norm(0.3)))
    np.testing.assert_allclose(again.mean(), 0.3)


def test_what_a_family_has_not_is_named():
    with pytest.raises(ng.NumgradAttributeError, match="pmf"):
        ng.stats.poisson(2.0).pdf(1.0)
    with pytest.raises(ng.NumgradTypeError, match="a must be given"):
        ng.stats.gamma().pdf(1.0)


# -------------------------------------------------------------------------------------------- means

FAMILIES = {
    "norm": (1e4, 0.1), "gamma": (1000.0,), "t": (5.0, 1.0, 2.0), "lognorm": (0.9, 0.0, 2.0),
    "beta": (0.7, 2.0), "uniform": (1.0, 3.0), "skewnorm": (3.0, 1.0, 2.0), "vonmises": (2.0,),
    "truncnorm": (-1.0, 2.0),
}  # fmt: skip


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", FAMILIES)
def test_means_of_functions(name):
    ours = getattr(ng.stats, name)(*FAMILIES[name])
    theirs = getattr(scipy.stats, name)(*FAMILIES[name])
    low, high = theirs.mean() - theirs.std() / 2, theirs.mean() + theirs.std() / 3
    for options in ({}, {"lb": low}, {"lb": low, "ub": high, "conditional": True}):
        true = theirs.expect(np.cos, **options)
        np.testing.assert_allclose(ours.expect(np.cos, **options), true, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ours.expect(), theirs.mean(), rtol=1e-7, atol=1e-10)


COUNTS = [("poisson", (3.5, 2)), ("binom", (7, 0.3)), ("geom", (0.2,)), ("nbinom", (4, 0.3))]


@pytest.mark.parametrize(("name", "parameters"), COUNTS)
def test_means_of_functions_of_integers(name, parameters):
    ours = getattr(ng.stats, name)(*parameters)
    theirs = getattr(scipy.stats, name)(*parameters)
    for options in ({}, {"lb": 1, "ub": 4}, {"lb": 1, "ub": 4, "conditional": True}):
        true = theirs.expect(lambda k: k**2.0, **options)
        np.testing.assert_allclose(ours.expect(lambda k: k**2.0, **options), true, rtol=1e-11)


def test_gradients_of_means():
    def skew(mu, sigma):
        return ng.stats.norm.expect(lambda x: x**3, loc=mu, scale=sigma)

    np.testing.assert_allclose(ng.grad(skew, argnums=(0, 1))(1.0, 2.0), [15.0, 12.0], rtol=1e-7)
    tangent = ng.jvp(lambda mu: ng.stats.norm(mu, 2.0).expect(lambda x: x**2), (1.0,), (1.0,))[1]
    np.testing.assert_allclose(tangent, 2.0, rtol=1e-7)
    ends = gradcheck(
        lambda m, s: ng.stats.uniform(m, s).expect(np.sin, ub=1.5, conditional=True),
        (leaf(1.0), leaf(2.0)), fast_mode=True,
    )  # fmt: skip
    assert ends
    assert gradcheck(lambda m: ng.stats.poisson(m).expect(lambda k: k**3), (leaf(1.0),))
    with pytest.raises(ng.NumgradTraceError, match=r"norm\.expect"):
        ng.jit(lambda m: ng.stats.norm(m).expect())(1.0)


# --------------------------------------------------------------------------------------------- fits

FITS = [
    ("norm", (1.0, 2.0), {}), ("gamma", (3.0,), {"floc": 0}), ("t", (5.0, 1.0, 2.0), {}),
    ("lognorm", (0.9, 0.0, 2.0), {"floc": 0}), ("beta", (2.0, 3.0), {"floc": 0, "fscale": 1}),
    ("weibull_min", (1.5,), {"floc": 0}), ("cauchy", (1.0, 2.0), {}), ("logistic", (1.0, 2.0), {}),
    ("gumbel_r", (1.0, 2.0), {}), ("gamma", (3.0, 0, 2), {"fa": 3, "floc": 0}),
    ("norm", (1.0, 2.0), {"fscale": 2}), ("expon", (0.0, 2.0), {}),
    ("vonmises", (1.5, 0.3, 1.7), {}),
]  # fmt: skip


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("number", range(len(FITS)))
def test_fits(number):
    name, parameters, held = FITS[number]
    ours, theirs = getattr(ng.stats, name), getattr(scipy.stats, name)
    x = theirs.rvs(*parameters, size=60, random_state=np.random.default_rng(7))
    found, true = ours.fit(x, **held), theirs.fit(x, **held)
    np.testing.assert_allclose(found, true, rtol=2e-4, atol=1e-5)
    assert theirs.nnlf(found, x) <= theirs.nnlf(true, x) + 1e-10
    if name == "expon":  # its location is the least number
        with pytest.raises(ng.NumgradRuntimeError, match="floc"):
            ours.fit(leaf(x))
    else:
        function = lambda x: ng.stack(ours.fit(x, **held))  # noqa: E731
        assert gradcheck(function, (leaf(x),), fast_mode=True, atol=1e-4)


def test_gradients_of_a_fit_in_closed_form():
    x = SAMPLES[0]
    mean = ng.grad(lambda x: ng.stats.norm.fit(x)[0])(x)
    np.testing.assert_allclose(mean, np.full(8, 1 / 8), atol=1e-12)
    deviation = ng.grad(lambda x: ng.stats.norm.fit(x)[1])(x)
    np.testing.assert_allclose(deviation, (x - x.mean()) / (8 * x.std()), atol=1e-10)
    angles = scipy.stats.vonmises(1.5, 0.3, 1.7).rvs(60, random_state=1)
    for held in ({"floc": 0.3}, {"f0": 1.5, "floc": 0.3}):  # the scale is 1
        true = scipy.stats.vonmises.fit(angles, **held)
        np.testing.assert_allclose(ng.stats.vonmises.fit(angles, **held), true, rtol=1e-6)
    with pytest.raises(ng.NumgradValueError, match=r"gamma\.fit: "):
        ng.stats.gamma.fit([-1.0, 2.0], floc=0)


# ------------------------------------------------------------------------------- kernel densities


@pytest.mark.parametrize("bw_method", [None, "silverman", 0.4, lambda k: k.neff**-0.3])
def test_kernel_densities(bw_method):
    for samples, places in ((SAMPLES[0], PLACES[0]), (SAMPLES, PLACES)):
        for weights in (None, W):
            ours = ng.stats.gaussian_kde(samples, bw_method, weights)
            theirs = scipy.stats.gaussian_kde(samples, bw_method, weights)
            for name in ("evaluate", "logpdf"):
                true = getattr(theirs, name)(places)
                np.testing.assert_allclose(getattr(ours, name)(places), true, rtol=1e-10)
            np.testing.assert_allclose(ours.covariance, theirs.covariance)
            np.testing.assert_allclose(ours.inv_cov, theirs.inv_cov)
            np.testing.assert_allclose(ours.factor, theirs.factor)
    one, true = ng.stats.gaussian_kde(SAMPLES[0]), scipy.stats.gaussian_kde(SAMPLES[0])
    np.testing.assert_allclose(one.integrate_box_1d(-1, 0.5), true.integrate_box_1d(-1, 0.5))


def density(samples, places, weights):
    return ng.stats.gaussian_kde(samples, None, weights).logpdf(places)


def test_gradients_of_kernel_densities():
    inputs = leaf(SAMPLES), leaf(PLACES), leaf(W)
    assert gradcheck(density, inputs, fast_mode=True)
    assert gradcheck(
        lambda x, a, b: ng.stats.gaussian_kde(x).integrate_box_1d(a, b),
        (leaf(SAMPLES[0]), leaf(-1.0), leaf(0.5)), fast_mode=True,
    )  # fmt: skip


@pytest.mark.slow(cases=0)
def test_kernel_densities_compiled_mapped_and_twice_differentiated():
    inputs = leaf(SAMPLES), leaf(PLACES), leaf(W)
    assert gradgradcheck(density, inputs)
    value = density(SAMPLES, PLACES, W)
    np.testing.assert_allclose(ng.jit(density)(SAMPLES, PLACES, W), value, rtol=1e-12)
    both = ng.vmap(density, in_axes=(0, None, None))(np.stack([SAMPLES, 2 * SAMPLES]), PLACES, W)
    np.testing.assert_allclose(both[0], value, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ng.stats.gaussian_kde([1.0]), "two samples"),
        (lambda: ng.stats.gaussian_kde([1.0, 2.0], "wide"), "scott, silverman"),
        (lambda: ng.stats.gaussian_kde([1.0, 2.0], weights=[1.0]), "weights of shape"),
        (lambda: ng.stats.gaussian_kde([[1.0, 2.0, 3.0]] * 2), "fewer dimensions"),
        (lambda: ng.stats.gaussian_kde([1.0, 2.0])(np.ones((3, 2))), "3 dimensions"),
        (lambda: ng.stats.gaussian_kde(SAMPLES).integrate_box_1d(0, 1), "one dimension"),
    ],
)
def test_errors(call, words):
    with pytest.raises(ng.NumgradError, match=words):
        call()


def test_fits_of_arrays_are_numbers():
    assert all(type(value) is np.float64 for value in ng.stats.norm.fit(np.arange(5.0)))
    assert all(isinstance(value, ng.Tensor) for value in ng.stats.norm.fit(ng.arange(5.0)))
