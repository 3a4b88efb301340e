"""Functions of matrices, polar factors, bases and Lyapunov's equations against SciPy."""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import numgrad as ng
from numgrad import linalg
from tests.crossed import each_first
from tests.operations.matrices import adjoint, array

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


@pytest.mark.slow(cases=len(CASES))
@pytest.mark.parametrize(("name", "kind"), each_first([*CASES], ["complex", "real"]))
def test_against_scipy(name, kind):
    case, x = CASES[name], {"real": A, "complex": Z}[kind]
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


def turned(a):
    """A matrix that is similar to another, and full."""
    q = np.linalg.qr(array(a.shape))[0]
    return q @ a @ q.T


def nasty(n=5):
    """Matrices that are hard to exponentiate."""
    jordan = -2 * np.eye(n) + np.diag(np.full(n - 1, 1e3), 1)
    yield from (np.zeros((n, n)), np.diag(np.linspace(-300, 5, n)), jordan, jordan.T)
    yield from (np.triu(array((n, n)), 1) * 1e6, np.diag([1e10], 1), turned(np.diag([1e3], 1)))
    yield from (array((n, n)) * 1e-200, np.tril(array((n, n))) * 10, np.array([[700.0]]))
    yield from (array((n, n)) * scale for scale in (1e-3, 0.1, 0.5, 1, 3, 30))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_exponentials_of_nasty_matrices(dtype):
    for a in nasty():
        a = (a * (1 + 0.25j) if dtype == "complex128" else a).astype(dtype)
        expected = scipy.linalg.expm(a)
        found = linalg.expm(ng.tensor(a)).numpy()
        # as far apart as a change of the operand in the last place moves the result; squaring loses
        # digits where eigenvalues are small beside the norm, by version of SciPy and BLAS others
        moved = scipy.linalg.expm(a * (1 + 2.0**-52))
        largest = np.abs(expected).max()
        allowed = 1e-10 * largest + 100 * np.abs(moved - expected).max()
        assert np.abs(found - expected).max() <= allowed


@pytest.mark.parametrize("beside", [1.0, 1e3])
def test_exponentials_of_jordan_blocks_have_all_digits(beside):
    n, value = 20, -1.0
    block = value * np.eye(n) + np.diag(np.full(n - 1, beside), 1)
    place = np.arange(n)[None, :] - np.arange(n)[:, None]
    power = np.maximum(place, 0)
    expected = np.where(
        place >= 0, np.exp(value) * beside**power / scipy.special.factorial(power), 0.0
    )
    for a, e in ((block, expected), (block.T, expected.T)):
        found = linalg.expm(ng.tensor(a)).numpy()
        np.testing.assert_array_less(np.abs(found - e), 1e-14 * np.abs(expected).max())


def test_exponentials_at_the_edges():
    large = linalg.expm(np.array([[-1e200, 1.0], [0.0, 1e-3]])).numpy()
    np.testing.assert_allclose(large, [[0, 0], [0, np.exp(1e-3)]], atol=1e-100)
    assert np.isnan(linalg.expm(np.array([[np.inf, 1.0], [1.0, 1.0]])).numpy()).all()
    mixed = linalg.expm(np.diag([np.nan, 0.0])).numpy()
    np.testing.assert_array_equal(mixed, [[np.nan, 0], [0, 1]])


@pytest.mark.parametrize("apart", [1e-6, 1e-9, 1e-12, 1e-14])
def test_expm_of_triangles_with_nearly_equal_diagonals(apart):
    chain = np.diag([-50.0, -50 * (1 + apart), -50 * (1 - apart), 0])
    chain += np.diag([50, 50 * (1 + apart), 50 * (1 - apart)], -1)
    upper = np.array([[1, 1e3, 0], [0, 1 + apart, 1e3], [0, 0, 1 - apart]])
    for a in (upper, upper.T, chain, upper * (1 + 0.5j)):
        with mpmath.workdps(60):
            exact = mpmath.expm(mpmath.matrix(a.tolist()), method="taylor").tolist()
        found = linalg.expm(ng.tensor(a)).numpy()
        np.testing.assert_allclose(found, np.array(exact).astype(complex), rtol=2e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_logarithms_are_undone_by_exponentials(dtype):
    q = np.linalg.qr(array((2, 6, 6), dtype))[0]
    power = np.triu(array((2, 6, 6), dtype))
    power[..., 1, 0] = -2 * power[..., 0, 1]  # a pair of complex eigenvalues
    for a in (power, 1e-6 * power, np.triu(power), np.tril(power.mT), np.triu(power, 1)):
        for exponent in (a, q @ a @ adjoint(q)):
            operand = linalg.expm(ng.tensor(exponent.astype(dtype)))
            found = linalg.logm(operand)
            assert found.dtype == dtype
            again = linalg.expm(found).numpy() - operand.numpy()
            limit = 200 * np.finfo(dtype).eps * np.abs(operand.numpy()).max()
            assert np.abs(again).max() <= limit
            assert (np.abs(np.linalg.eigvals(found.numpy().astype(complex)).imag) <= np.pi).all()


def test_logarithms_of_triangular_matrices_have_all_digits():
    n, value = 12, 1e3  # a Jordan block: the series of the logarithm ends
    place = np.arange(n)[None, :] - np.arange(n)[:, None]
    power = np.maximum(place, 1)
    expected = np.where(place > 0, -((-0.5) ** power) / power * value**power, 0.0)
    expected += np.log(2.0) * np.eye(n)
    block = 2 * np.eye(n) + np.diag(np.full(n - 1, value), 1)
    for a, e in ((block, expected), (block.T, expected.T), (block + 0j, expected)):
        np.testing.assert_allclose(linalg.logm(ng.tensor(a)).numpy(), e, rtol=1e-13, atol=1e-13)
    cut = np.array([[-1.0, 2.0], [0.0, -3.0]]) + 0j
    expected = np.diag(np.log(cut.diagonal())) + np.diag([-np.log(3.0)], 1)
    found = linalg.logm(ng.tensor(cut)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


def test_logarithms_that_are_not_there():
    for a in (np.zeros((2, 2)), np.diag([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 4.0]])):
        with pytest.raises(ng.NumgradLinAlgError, match="singular"):
            linalg.logm(ng.tensor(a))
    with pytest.raises(ng.NumgradLinAlgError, match=r"of a stack.*complex; give a complex matrix"):
        ng.jit(linalg.logm)(np.stack([np.eye(2), np.diag([1.0, -1.0])]))
    with pytest.raises(ng.NumgradLinAlgError, match="infinities"):
        linalg.logm(np.array([[np.inf, 1.0], [0.0, 1.0]]))


@pytest.mark.parametrize("n", [1, 4, 30])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_square_roots_of_stacks(dtype, n):
    a = array((3, n, n), dtype)
    a = a @ a + 3 * np.eye(n, dtype=dtype)  # mostly with pairs of complex eigenvalues
    keep = np.array([np.linalg.eigvals(x.astype("complex128")) for x in a])
    a += (np.maximum(0, -keep.real.min()) * np.eye(n)).astype(dtype)
    root = linalg.sqrtm(ng.tensor(a)).numpy()
    assert root.dtype == dtype
    scale = np.abs(root).max() ** 2 * n
    assert np.abs(root @ root - a).max() <= 50 * np.finfo(dtype).eps * scale
    assert (np.linalg.eigvals(root).real > 0).all()


def test_square_roots_that_are_not_there():
    np.testing.assert_array_equal(linalg.sqrtm(np.diag([0.0, 0.0, 4.0])), np.diag([0, 0, 2.0]))
    with pytest.raises(ng.NumgradLinAlgError, match="no square root"):
        linalg.sqrtm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    with pytest.raises(ng.NumgradLinAlgError, match=r"matrix \(1,\) of a stack.*complex"):
        ng.jit(linalg.sqrtm)(np.stack([np.eye(2), -np.diag([1.0, 2.0])]))
    assert np.isnan(linalg.sqrtm(np.full((2, 2), np.inf)).numpy()).all()


@pytest.mark.slow(cases=0)  # compiles all of them in an empty cache
def test_functions_of_matrices_need_no_numba(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path))
    code = (
        "import sys, numpy as np, numgrad as ng\n"
        "for a in (np.eye(3) + 0.1, np.eye(3) + 0.1j):\n"
        "    for f in (ng.linalg.logm, ng.linalg.sqrtm, ng.linalg.expm, ng.linalg.eigvals):\n"
        "        f(ng.tensor(a))\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert not subprocess.run([sys.executable, "-c", code]).returncode
