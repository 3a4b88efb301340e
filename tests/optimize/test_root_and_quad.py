"""``ng.root`` and ``ng.quad``; other integrals: ``tests/integrate/test_quadrature.py``."""

import numpy as np
import pytest
from scipy import integrate

import numgrad as ng
from numgrad.errors import NumgradError
from numgrad.optimize.root import ESTIMATES, JACOBIAN

MIXING = {"diagbroyden", "excitingmixing", "linearmixing"}
"""SciPy's methods for which a problem has to be made."""


def equations(p):
    return p["x"] + p["y"] - 3, p["x"] ** 2 + p["y"] ** 2 - 5


@pytest.mark.parametrize("method", [*JACOBIAN, *sorted(set(ESTIMATES) - MIXING)])
def test_every_method_solves(method):
    found = ng.root(lambda x: 2 * x + 0.3 * np.sin(x) - 1, np.full((2, 2), 0.5), method=method)
    assert found.success
    assert found.x.shape == (2, 2)
    np.testing.assert_allclose(2 * found.x + 0.3 * np.sin(found.x), 1, atol=1e-4)


def test_nested_and_compiled():
    calls = []

    def f(p):
        calls.append(1)
        return equations(p)

    found = ng.root(f, {"x": 0.0, "y": 4.0})
    np.testing.assert_allclose([found.x["x"], found.x["y"]], [1, 2], atol=1e-10)
    assert found.nfev <= 20
    compiled = ng.root(equations, {"x": 0.0, "y": 4.0}, jit=True)
    np.testing.assert_allclose(compiled.x["y"], found.x["y"], rtol=1e-12)


def bump(x, p):
    return p["height"] * np.exp(-((x / p["width"]) ** 2))


def by_scipy(v):
    p = {"height": v[2], "width": v[3]}
    return integrate.quad(bump, v[0], v[1], (p,), epsabs=1e-13, epsrel=1e-13)[0]


def by_numgrad(v):
    return ng.quad(bump, v[0], v[1], ({"height": v[2], "width": v[3]},))[0]


POINT = np.array([0.3, 1.9, 2.0, 0.7])


def test_gradients_of_integrals_in_limits_and_parameters():
    steps = 1e-5 * np.eye(4)
    slopes = [(by_scipy(POINT + s) - by_scipy(POINT - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(ng.grad(by_numgrad)(POINT), slopes, rtol=1e-7)
    np.testing.assert_allclose(ng.jacfwd(by_numgrad)(POINT), slopes, rtol=1e-7)


@pytest.mark.slow(cases=0)
def test_second_derivatives_of_integrals():
    steps = 1e-5 * np.eye(4)
    reverse = ng.grad(by_numgrad)
    curvatures = [(reverse(POINT + s) - reverse(POINT - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(ng.hessian(by_numgrad)(POINT), curvatures, rtol=1e-6, atol=1e-8)
    nested = ng.jacfwd(ng.jacrev(by_numgrad))(POINT)
    np.testing.assert_allclose(nested, curvatures, rtol=1e-6, atol=1e-8)


def test_second_derivatives_by_one_parameter():
    def area(k):
        return ng.quad(lambda x, k: np.exp(-k * x), 0.0, k, (k,))[0]

    def exact(k):  # d2/dk2 of (1 - exp(-k^2)) / k
        e = np.exp(-(k**2))
        return (2 - 2 * e) / k**3 - 2 * e / k - 4 * k * e

    for second in (ng.grad(ng.grad(area)), ng.jacfwd(ng.grad(area)), ng.grad(ng.jacfwd(area))):
        np.testing.assert_allclose(second(0.8), exact(0.8), rtol=1e-7)


def test_integrals_of_batches_arrays_and_far_ends():
    ends = np.array([0.5, 1.0, 2.0])
    found = ng.vmap(lambda b: ng.quad(np.cos, 0.0, b)[0])(ends)
    np.testing.assert_allclose(found, np.sin(ends), rtol=1e-12)
    slopes = ng.vmap(ng.grad(lambda k: ng.quad(lambda x, k: np.exp(-k * x), 0, np.inf, k)[0]))(ends)
    np.testing.assert_allclose(slopes, -1 / ends**2, rtol=1e-6)
    value, error = ng.quad(lambda x: np.array([[x], [x**2]]), 1, 0)
    np.testing.assert_allclose(value, [[-1 / 2], [-1 / 3]], rtol=1e-12)
    assert 0 <= error < 1e-8
    powers = ng.jacobian(lambda d: ng.quad(lambda x, d: np.stack([d * x, d**2 * x]), 0, 1, d)[0])
    np.testing.assert_allclose(powers(3.0), [0.5, 3.0], rtol=1e-12)
    single = ng.tensor(np.float32(2), requires_grad=True)
    ng.quad(lambda x, k: np.exp(-k * x), 0, np.inf, (single,))[0].backward()
    assert single.grad.dtype == np.float32
    np.testing.assert_allclose(single.grad.numpy(), -0.25, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ng.root(lambda x: x[0], [1.0, 2.0]), ValueError, "1 values for 2 unknowns"),
        (lambda: ng.root(lambda x: x, [1.0], method="newton"), ValueError, "hybr, lm"),
        (lambda: ng.root(np.log, [-1.0]), ValueError, "nan at the start"),
        (lambda: ng.root(lambda x: x, [1.0], callback=print), ValueError, "callback"),
        (lambda: ng.quad(3, 0, 1), TypeError, "takes a function"),
        (lambda: ng.quad(lambda x: 1j * x, 0, 1), TypeError, "real numbers"),
        (lambda: ng.quad(np.cos, [0, 1], 1), ValueError, "limit a"),
        (lambda: ng.quad(np.cos, 0, np.nan), ValueError, "limit b is not a number"),
        (
            lambda: ng.jit(lambda b: ng.quad(np.cos, 0, b)[0])(1.0),
            ng.NumgradTraceError,
            "outside of",
        ),
        *(
            (lambda how=how: how(lambda k: ng.quad(lambda x: x * k, 0, 1)[0]), RuntimeError, "args")
            for how in (
                lambda f: ng.jvp(f, (2.0,), (1.0,)),
                lambda f: ng.vmap(f)(np.ones(2)),
                lambda f: ng.jacfwd(f)(2.0),
            )
        ),
    ],
)
def test_what_is_wrong_is_named(call, kind, words):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, NumgradError)


def test_an_integral_that_does_not_converge_is_warned_of():
    with pytest.warns(integrate.IntegrationWarning, match="quad: "):
        ng.quad(lambda x: 1 / x, 0, 1)


def test_a_linear_operator_takes_complex_vectors():
    operator = ng.linear_operator(lambda x: np.stack([x[0] * x[1], x[1] ** 2, x[0]]), [2.0, 3.0])
    matrix = np.array([[3.0, 2.0], [0.0, 6.0], [1.0, 0.0]])
    for v in (np.array([1j, 1]), np.array([[1j, 1], [2, 3 - 1j]])):
        np.testing.assert_allclose(operator @ v, matrix @ v)
    w = np.array([1j, 1, 2 - 1j])
    np.testing.assert_allclose(operator.H @ w, matrix.T @ w)
    np.testing.assert_allclose(operator.T @ w, matrix.T @ w)
