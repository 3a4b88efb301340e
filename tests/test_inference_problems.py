"""Problems of statistics and physics, solved with gradients and compared with what is known."""

import numpy as np
import pytest
import scipy.optimize

import numgrad as ng


@pytest.mark.slow
@pytest.mark.parametrize("points", [120, 500])
def test_hyperparameters_of_a_gaussian_process(points):
    """Points drawn from a process: its marginal likelihood has its maximum near the truth."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, points / 10, points))
    squares = (x[:, None] - x) ** 2
    truth = {"scale": 1.5, "length": 0.8, "noise": 0.1}
    kernel = truth["scale"] ** 2 * np.exp(-squares / (2 * truth["length"] ** 2))
    factor = np.linalg.cholesky(kernel + truth["noise"] ** 2 * np.eye(points))
    y = factor @ rng.standard_normal(points)

    def loss(log):
        scale, length, noise = np.exp(log)
        k = scale**2 * np.exp(squares / (-2 * length**2)) + noise**2 * np.eye(points)
        lower = np.linalg.cholesky(k)
        white = ng.linalg.solve_triangular(lower, y, lower=True)
        return white @ white / 2 + np.sum(np.log(np.diagonal(lower)))

    both = ng.value_and_grad(loss)
    start = np.array([0.0, 0.0, -1.0])
    step = 1e-5 * np.eye(3)
    slopes = [(loss(start + h) - loss(start - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(both(start)[1], np.asarray(slopes), rtol=1e-5)
    found = scipy.optimize.minimize(both, start, jac=True, method="L-BFGS-B")
    np.testing.assert_allclose(np.exp(found.x), list(truth.values()), rtol=0.4)
    assert np.max(np.abs(both(found.x)[1])) < 1e-2
    if points == 120:
        assert np.all(np.linalg.eigvalsh(ng.hessian(loss)(found.x)) > 0)


def test_hamiltonian_monte_carlo_has_the_moments_of_a_gaussian():
    """Long trajectories with a compiled gradient: mean and covariance within sampling error."""
    mean = np.array([1.0, -2.0])
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    precision = np.linalg.inv(covariance)

    @ng.jit
    @ng.value_and_grad
    def potential(q):
        return (q - mean) @ precision @ (q - mean) / 2

    rng = np.random.default_rng(0)
    q, samples, accepted = np.zeros(2), [], 0
    energy, slope = potential(q)
    for _ in range(1500):
        p = rng.standard_normal(2)
        before = energy + p @ p / 2
        new, force, size = q, slope, rng.uniform(0.2, 0.5)
        for _ in range(6):
            p = p - size / 2 * force
            new = new + size * p
            height, force = potential(new)
            p = p - size / 2 * force
        if rng.random() < np.exp(before - height - p @ p / 2):
            q, energy, slope, accepted = new, height, force, accepted + 1
        samples.append(q)
    kept = np.array(samples[100:])
    assert accepted > 1200
    np.testing.assert_allclose(kept.mean(axis=0), mean, atol=0.15)
    np.testing.assert_allclose(np.cov(kept.T), covariance, atol=0.3)


def test_a_conductivity_from_temperatures():
    """An inverse problem in one dimension: solve -(c u')' = 1, and fit c to what was seen of u."""
    n = 24
    h = 1.0 / n
    middles = (np.arange(n) + 0.5) * h
    truth = 1.0 + 0.5 * np.sin(2 * np.pi * middles)

    def temperatures(log):
        c = np.exp(log) / h**2  # of n cells between n + 1 points, of which the ends are cold
        diagonal = c[:-1] + c[1:]
        matrix = np.diag(diagonal) - np.diag(c[1:-1], 1) - np.diag(c[1:-1], -1)
        return np.linalg.solve(matrix, np.ones(n - 1))

    seen = temperatures(np.log(truth))

    def loss(log):
        return np.sum((temperatures(log) - seen) ** 2)

    step = np.cos(np.arange(n)) * 1e-5
    slope = (loss(step) - loss(-step)) / 2
    np.testing.assert_allclose(ng.grad(loss)(np.zeros(n)) @ step, slope, rtol=1e-6)
    fit = scipy.optimize.least_squares(
        lambda log: temperatures(log) - seen, np.zeros(n), jac=ng.jacobian(temperatures),
        xtol=1e-15, ftol=1e-15, gtol=1e-15,
    )  # fmt: skip
    # temperatures say little of single cells, but all of the resistances between points
    np.testing.assert_allclose(temperatures(fit.x), seen, rtol=1e-8)
