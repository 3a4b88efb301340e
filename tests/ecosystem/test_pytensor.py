"""Operations of PyTensor, and models of PyMC with them."""

import numpy as np
import pytest

import numgrad as ng

pytestmark = [pytest.mark.slow(cases=0), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def tensors():
    return pytest.importorskip("pytensor.tensor")


@pytest.fixture
def pytensor():
    return pytest.importorskip("pytensor")


def several(x, y, n):
    return np.sum(np.exp(x) * y), x * n


AT = np.array([0.1, 0.2, 0.3])


def test_values_and_derivatives_of_both_orders(pytensor, tensors):
    op = ng.ecosystem.pytensor_op(several, np.ones(2), 1.0, np.array(3, np.int32))
    x, y, n = tensors.vector("x"), tensors.scalar("y"), tensors.iscalar("n")
    total, scaled = op(x, y, n)
    result = total + tensors.sum(scaled**2)
    gradients = pytensor.grad(result, [x, y])
    curvature = pytensor.gradient.hessian(result, x)
    run = pytensor.function([x, y, n], [total, scaled, *gradients, curvature])
    total, scaled, by_x, by_y, matrix = run(AT, 2.0, 3)
    np.testing.assert_allclose(total, 2 * np.exp(AT).sum())
    np.testing.assert_allclose(scaled, 3 * AT)
    np.testing.assert_allclose(by_x, 2 * np.exp(AT) + 18 * AT)
    np.testing.assert_allclose(by_y, np.exp(AT).sum())
    np.testing.assert_allclose(matrix, np.diag(2 * np.exp(AT) + 18))
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        pytensor.grad(total_of(op, x, y, n), n)


def total_of(op, x, y, n):
    return op(x, y, n)[0]


def test_gradients_by_differences_and_casts(pytensor, tensors):
    op = ng.ecosystem.pytensor_op(lambda a, b: np.tanh(a @ b), np.ones((2, 2)), np.ones(2))
    matrix = np.random.default_rng(0).normal(size=(4, 3))
    pytensor.gradient.verify_grad(op, [matrix, AT], rng=np.random.default_rng(1))
    single = op(tensors.fmatrix("a"), tensors.lvector("b"))
    assert single.type.dtype == "float64"
    assert op == op
    with pytest.raises(ng.NumgradTypeError, match="argument 0 has 1 axes, its example has 2"):
        op(tensors.vector("a"), tensors.vector("b"))
    with pytest.raises(ng.NumgradTypeError, match="takes 2 arguments"):
        op(tensors.matrix("a"))
    with pytest.raises(ng.NumgradTypeError, match="returned a nesting"):
        ng.ecosystem.pytensor_op(lambda a: {"a": a}, 1.0)
    with pytest.raises(ng.NumgradTypeError, match="takes a function of arrays, got a float"):
        ng.ecosystem.pytensor_op(1.0)


def test_a_model_of_pymc_is_sampled():
    pymc = pytest.importorskip("pymc")
    data = np.random.default_rng(0).normal(2.0, 1.0, 50)

    @ng.jit
    def log_likelihood(mean, log_sd):
        return -0.5 * np.sum(((data - mean) / np.exp(log_sd)) ** 2) - data.size * log_sd

    likelihood = ng.ecosystem.pytensor_op(log_likelihood, 0.0, 0.0)
    with pymc.Model() as model:
        mean, log_sd = pymc.Normal("mean", 0.0, 10.0), pymc.Normal("log_sd", 0.0, 1.0)
        pymc.Potential("likelihood", likelihood(mean, log_sd))
        draws = pymc.sample(
            300, tune=300, chains=2, cores=1, progressbar=False, random_seed=1
        ).posterior
    np.testing.assert_allclose(draws["mean"].mean(), data.mean(), atol=0.1)
    np.testing.assert_allclose(np.exp(draws["log_sd"]).mean(), data.std(), atol=0.1)
    point = {"mean": np.array(1.0), "log_sd": np.array(0.3)}
    steps = np.array([1e-6, 0.0]), np.array([0.0, 1e-6])
    logp = model.compile_logp()

    def at(step):
        return logp({k: v + s for (k, v), s in zip(point.items(), step, strict=True)})

    expected = [(at(step) - at(-step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(model.compile_dlogp()(point), expected, rtol=1e-6)
