"""Functions of matrices, polar factors, bases and Lyapunov's equations against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import numgrad as ng
from numgrad import linalg

rng = np.random.default_rng(0)
A = rng.normal(size=(4, 4))
Z = A + 1j * rng.normal(size=(4, 4))
UNIT = np.eye(4)


def definite(a):
    return a @ a.conj().T + np.eye(len(a))


CASES = {
    **{
        name: (lambda a, home, name=name: getattr(home, name)(0.4 * a))
        for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")
    },
    "power": lambda a, home: home.fractional_matrix_power(a + 6 * UNIT, 0.3),
    "inverse power": lambda a, home: home.fractional_matrix_power(a + 6 * UNIT, -1.5),
    "whole power": lambda a, home: home.fractional_matrix_power(a, 3),
    "signm": lambda a, home: home.signm(a + np.diag([5.0, -5.0, 6.0, -4.0])),
    "unitary": lambda a, home: home.polar(a)[0],
    "stretch": lambda a, home: home.polar(a)[1],
    "tall": lambda a, home: home.polar(a[:, :2], side="left")[1],
    "wide": lambda a, home: home.polar(a[:2])[0],
    "pinvh": lambda a, home: home.pinvh(a + 6 * UNIT),
    "pinvh upper": lambda a, home: home.pinvh(a + 6 * UNIT, lower=False),
    "continuous": lambda a, home: home.solve_continuous_lyapunov(a + 6 * UNIT, a @ a),
    "discrete": lambda a, home: home.solve_discrete_lyapunov(0.2 * a, a @ a),
    "bilinear": lambda a, home: home.solve_discrete_lyapunov(0.2 * a, a @ a, method="bilinear"),
}


def agrees_with_differences(gradient, f, x, step=1e-5):
    """Whether a gradient is that of a real function of a matrix, along three directions."""
    directions = np.random.default_rng(2)
    size = np.sqrt(np.sum(np.abs(gradient) ** 2))
    for _ in range(3):
        move = directions.normal(size=x.shape).astype(x.dtype)
        if x.dtype.kind == "c":
            move += 1j * directions.normal(size=x.shape)
        slope = (f(x + step * move) - f(x - step * move)) / (2 * step)
        found = np.sum(np.real(np.conj(gradient) * move))
        np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-7 * size)


@pytest.mark.parametrize("x", [A, Z], ids=["real", "complex"])
@pytest.mark.parametrize("name", CASES)
def test_against_scipy(name, x):
    case = CASES[name]
    expected = case(x, scipy.linalg)

    def f(a):
        return case(a, linalg)

    np.testing.assert_allclose(f(ng.tensor(x)).numpy(), expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(ng.vmap(f)(np.stack([UNIT, x]))[1], expected, rtol=1e-11, atol=1e-12)
    weights = np.random.default_rng(1).normal(size=expected.shape)

    def loss(a, home=linalg):
        return np.sum(weights * np.real(case(a, home)))

    leaf = ng.tensor(x, requires_grad=True)
    loss(leaf).backward()
    agrees_with_differences(leaf.grad.numpy(), lambda a: loss(a, scipy.linalg), x)


@pytest.mark.filterwarnings("ignore:jit")
@pytest.mark.parametrize("name", ["sinm", "power", "signm", "unitary", "pinvh", "discrete"])
def test_compiled(name):
    def f(a):
        return CASES[name](a, linalg)

    g = ng.grad(lambda a: np.sum(np.sin(f(a))))
    np.testing.assert_allclose(ng.jit(f)(A), f(ng.tensor(A)).numpy(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ng.jit(g)(A), g(A), rtol=1e-10, atol=1e-12)
    stack = np.stack([A, A + UNIT])
    if name == "sinm":
        np.testing.assert_allclose(f(ng.tensor(stack)).numpy()[0], f(ng.tensor(A)).numpy())


@pytest.mark.parametrize("name", ["cosm", "tanhm", "signm", "pinvh", "null_space", "orth"])
def test_dtypes_and_empty_matrices(name):
    f = getattr(linalg, name)
    for dtype, expected in ((np.float32, np.float32), (np.complex64, np.complex64), (int, float)):
        assert f(ng.tensor(np.eye(2, dtype=dtype))).dtype == expected
    assert f(np.zeros((0, 0))).shape == (0, 0)


def test_powers_with_gradients_in_the_exponent():
    a = definite(A)

    def total(t):
        return np.sum(scipy.linalg.fractional_matrix_power(a, t))

    found = ng.grad(lambda t: np.sum(linalg.fractional_matrix_power(a, t)))(0.5)
    np.testing.assert_allclose(found, (total(0.50001) - total(0.49999)) / 2e-5, rtol=1e-7)
    stack, each = np.stack([a, 2 * a]), np.array([0.5, -0.7])
    powers = linalg.fractional_matrix_power(ng.tensor(stack), each).numpy()
    for power, one, t in zip(powers, stack, each, strict=True):
        np.testing.assert_allclose(
            power, scipy.linalg.fractional_matrix_power(one, t), rtol=1e-11, atol=1e-12
        )
    with pytest.raises(ng.NumgradValueError, match="one for each matrix"):
        linalg.fractional_matrix_power(a, each)
    with pytest.raises(ng.NumgradLinAlgError):
        linalg.fractional_matrix_power(np.diag([1.0, 0.0]), 0.5)


def test_polar_factors_of_equal_singular_values_have_derivatives():
    weights = A[:3, :3]
    found = ng.grad(lambda a: np.sum(weights * linalg.polar(a)[0]))(np.eye(3))
    np.testing.assert_allclose(found, 0.5 * (weights - weights.T), atol=1e-14)
    with pytest.raises(ng.NumgradLinAlgError):
        ng.grad(lambda a: np.sum(linalg.polar(a)[0]))(np.diag([1.0, 0.0]))


@pytest.mark.parametrize("a", [[[0.0, 1.0], [-1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
def test_what_has_no_sign(a):
    with pytest.raises(ng.NumgradLinAlgError, match="signm: the matrix has no sign"):
        linalg.signm(a)
    with pytest.raises(ng.NumgradLinAlgError, match=r"signm: matrix \(1,\) of a stack"):
        linalg.signm(np.array([np.eye(2), [[np.nan, 0], [0, 1]]]))


def test_signs_far_from_one_and_without_eigenvectors():
    jordan = np.array([[1e-6, 1.0], [0.0, 1e-6]])
    np.testing.assert_allclose(linalg.signm(jordan).numpy(), np.eye(2), atol=1e-6)
    for scale in (1e-150, 1e-8, 1e8, 1e150):
        found = linalg.signm(scale * np.array([[2.0, 1.0], [0.0, -3.0]])).numpy()
        np.testing.assert_allclose(found, [[1, 0.4], [0, -1]], atol=1e-14)


@pytest.mark.parametrize("x", [A, Z], ids=["real", "complex"])
def test_bases(x):
    low = x[:, :2] @ x[:2]
    for name in ("null_space", "orth"):
        for a in (low, low[:3], low[:, :3], np.zeros((2, 3)), np.zeros((0, 3))):
            ours = getattr(linalg, name)(ng.tensor(a)).numpy()
            if a.size:
                theirs = getattr(scipy.linalg, name)(a)
                projector = theirs @ theirs.conj().T
                assert ours.shape == theirs.shape
                np.testing.assert_allclose(ours @ ours.conj().T, projector, atol=1e-13)
        leaf = ng.tensor(low, requires_grad=True)
        with pytest.raises(ng.NumgradNotImplementedError, match="projector onto it"):
            np.sum(np.abs(getattr(linalg, name)(leaf))).backward()
        with pytest.raises(ng.NumgradTraceError, match="depends on the numbers"):
            ng.jit(getattr(linalg, name))(low)
        with pytest.raises(ng.NumgradLinAlgError, match="call it for each"):
            getattr(linalg, name)(np.ones((2, 2, 2)))
    assert linalg.null_space(np.zeros((0, 3))).shape == (3, 3)
    few = ng.tensor(np.diag([1.0, 1e-4, 0.0]))
    assert linalg.orth(few, rcond=1e-3).shape == (3, 1)


def test_pseudo_inverses_of_low_rank():
    a = A[:, :2] @ A[:, :2].T
    np.testing.assert_allclose(linalg.pinvh(a).numpy(), scipy.linalg.pinvh(a), atol=1e-11)
    wide = np.diag([1.0, 1e-4])
    np.testing.assert_allclose(linalg.pinvh(wide, rtol=1e-3).numpy(), np.diag([1.0, 0.0]))
