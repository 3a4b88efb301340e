"""Problems of statistics and physics, solved with gradients and compared with what is known."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

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


CELLS = 64


def plate():
    """Temperatures of a plate with cold edges, by the logarithms of conductivities of its cells."""
    number = np.arange(CELLS**2).reshape(CELLS, CELLS)
    sides = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    pairs = [(a.ravel(), b.ravel()) for a, b in sides]
    rows = np.concatenate([number.ravel(), *[x for a, b in pairs for x in (a, b)]])
    columns = np.concatenate([number.ravel(), *[x for a, b in pairs for x in (b, a)]])
    places = ng.sparse.pattern(scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns))))
    source = np.full(CELLS**2, 1.0 / CELLS**2)

    def temperature(log):
        c = np.exp(log).reshape(CELLS, CELLS)
        across, along = (c[:, :-1] + c[:, 1:]) / 2, (c[:-1] + c[1:]) / 2
        total = (
            np.concatenate([2 * c[:, :1], across], axis=1)
            + np.concatenate([across, 2 * c[:, -1:]], axis=1)
            + np.concatenate([2 * c[:1], along])
            + np.concatenate([along, 2 * c[-1:]])
        )
        across, along = across.reshape(-1), along.reshape(-1)
        elements = np.concatenate([total.reshape(-1), -across, -across, -along, -along])
        return ng.sparse.spsolve(elements, places, source)

    return temperature


def test_the_gradient_of_an_inverse_problem_in_4096_conductivities():
    temperature = plate()
    rng = np.random.default_rng(0)
    log = 0.3 * rng.standard_normal(CELLS**2)
    seen = 0.07 + 0.01 * rng.standard_normal(CELLS**2)

    def loss(log):
        return np.sum((temperature(log) - seen) ** 2)

    # the middle of a plate that conducts evenly: a series known since Fourier
    middle = temperature(np.zeros(CELLS**2)).numpy().reshape(CELLS, CELLS)[31:33, 31:33].mean()
    np.testing.assert_allclose(middle, 0.0736713, rtol=1e-3)
    gradient = ng.grad(loss)(log)
    for _ in range(3):
        step = 1e-4 * rng.standard_normal(CELLS**2)
        slope = (8 * (loss(log + step) - loss(log - step)) - loss(log + 2 * step)
                 + loss(log - 2 * step)) / 12  # fmt: skip
        np.testing.assert_allclose(gradient @ step, float(slope), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True])
def test_independent_components_are_found_in_their_mixtures(jit):
    """The likelihood of sources of heavy tails, of which the gradient is known."""
    draw = np.random.default_rng(3)
    sources = [draw.laplace(size=400), draw.uniform(-2, 2, 400) ** 3, draw.standard_t(3, size=400)]
    mixing = np.array([[1.0, 0.6, -0.3], [0.4, 1.0, 0.5], [-0.2, 0.3, 1.0]])
    x = mixing @ np.stack(sources)
    x = x - x.mean(axis=1, keepdims=True)

    def loss(w):
        return np.mean(np.sum(np.log(np.cosh(w @ x)), axis=0)) - np.linalg.slogdet(w)[1]

    gradient = ng.jit(ng.grad(loss)) if jit else ng.grad(loss)
    start = np.eye(3)
    expected = np.tanh(start @ x) @ x.T / 400 - np.linalg.inv(start).T
    np.testing.assert_allclose(gradient(start), expected, rtol=1e-10)
    found = np.asarray(ng.minimize(loss, start, method="BFGS", jit=jit).x)
    y = found @ x
    np.testing.assert_allclose(np.tanh(y) @ y.T / 400, np.eye(3), atol=1e-4)
    passed = np.abs(found @ mixing)
    assert (passed / passed.max(axis=1, keepdims=True) - np.eye(3)).max() < 0.1  # one source each
