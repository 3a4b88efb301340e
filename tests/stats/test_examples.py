"""Scripts as they are written for scipy.stats, with gradients: eager, and compiled."""

import numpy as np
import pytest
import scipy.stats

import numgrad as ng
from numgrad import special, stats


def test_black_box_variational_inference():
    """A Gaussian with a diagonal covariance fitted to the posterior of a Bayesian regression."""
    rng = np.random.default_rng(0)
    inputs = np.stack([np.ones(30), rng.normal(size=30)], axis=1)
    targets = inputs @ [0.5, -1.5] + 0.4 * rng.normal(size=30)
    noise = rng.standard_normal((64, 2))

    def log_joint(weights):
        prior = np.sum(stats.norm.logpdf(weights, 0.0, 2.0), axis=-1)
        fitted = weights @ inputs.T
        return prior + np.sum(stats.norm.logpdf(targets, fitted, 0.4), axis=-1)

    def loss(parameters):
        mean, log_scale = parameters[:2], parameters[2:]
        drawn = mean + np.exp(log_scale) * noise
        entropy = np.sum(stats.norm.entropy(mean, np.exp(log_scale)))
        return -(np.mean(log_joint(drawn)) + entropy)

    fits = []
    for transform in (lambda f: f, ng.jit):
        slope, parameters = transform(ng.value_and_grad(loss)), np.zeros(4)
        for step in range(300):
            value, g = slope(parameters)
            parameters = parameters - 0.02 / (1 + 0.01 * step) * np.asarray(g) / (
                1 + np.abs(np.asarray(g)).max() / 10
            )
        fits.append((float(value), parameters))
    np.testing.assert_allclose(fits[1][1], fits[0][1], rtol=1e-9)
    precision = inputs.T @ inputs / 0.16 + np.eye(2) / 4
    exact = np.linalg.solve(precision, inputs.T @ targets / 0.16)
    np.testing.assert_allclose(fits[0][1][:2], exact, atol=0.05)
    np.testing.assert_allclose(np.exp(fits[0][1][2:]), 1 / np.sqrt(np.diag(precision)), rtol=0.2)


@pytest.mark.slow(cases=0)
def test_implicit_gradients_in_variational_inference():
    """A gamma posterior of a Poisson rate, found by gradients of gamma samples."""
    counts = np.array([3.0, 5.0, 4.0, 6.0, 2.0])

    def loss(parameters, rng):
        shape, rate = np.exp(parameters[0]), np.exp(parameters[1])
        drawn = rng.gamma(np.ones(200) * shape, 1 / rate)
        joint = stats.gamma.logpdf(drawn, 2.0) + np.sum(
            stats.poisson.logpmf(counts, np.expand_dims(drawn, -1)), axis=-1
        )
        return np.mean(stats.gamma.logpdf(drawn, shape, scale=1 / rate) - joint)

    rng, parameters = ng.random.default_rng(0), np.array([0.5, 0.5])
    for _ in range(200):
        g = np.asarray(ng.grad(loss)(parameters, rng))
        parameters = parameters - 0.1 * g / (1 + np.abs(g).max())
    shape, rate = np.exp(parameters)
    np.testing.assert_allclose(shape / rate, 22 / 6, rtol=0.07)
    np.testing.assert_allclose(np.sqrt(shape) / rate, np.sqrt(22) / 6, rtol=0.15)


def test_mixture_of_gaussians():
    rng = np.random.default_rng(1)
    data = np.concatenate([rng.normal(-2, 0.5, 80), rng.normal(1, 1.0, 120)])

    def log_likelihood(parameters):
        weights = special.log_softmax(parameters[:2])
        means, scales = parameters[2:4], np.exp(parameters[4:])
        each = stats.norm.logpdf(np.expand_dims(data, -1), means, scales)
        return np.sum(special.logsumexp(weights + each, axis=-1))

    start = np.array([0.0, 0.0, -1.0, 1.0, 0.0, 0.0])
    weights = np.log([0.5, 0.5])
    expected = np.sum(scipy.special.logsumexp(
        weights + scipy.stats.norm.logpdf(data[:, None], [-1.0, 1.0], 1.0), axis=-1
    ))  # fmt: skip
    value, g = ng.value_and_grad(log_likelihood)(start)
    assert abs(float(value) - expected) < 1e-9
    fast = ng.jit(ng.value_and_grad(log_likelihood))
    np.testing.assert_allclose(np.asarray(fast(start)[1]), np.asarray(g), rtol=1e-10)
    parameters = start
    for _ in range(300):
        parameters = parameters + 0.003 * np.asarray(fast(parameters)[1])
    np.testing.assert_allclose(parameters[2:4], [-2.0, 1.0], atol=0.25)
    np.testing.assert_allclose(np.exp(parameters[4:]), [0.5, 1.0], atol=0.25)
