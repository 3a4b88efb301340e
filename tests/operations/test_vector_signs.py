"""Factors whose vectors have a sign or a phase to choose: the choice is that of NumPy or SciPy.

``np.linalg.eigh(t)`` of a Tensor gives the vectors that it gives of the array, and ``ng.linalg``'s
functions of SciPy's names give SciPy's. At equal eigenvalues vectors are no more unique than by
rounding, so only what rounding does not touch is compared there.
"""

import numpy as np
import pytest
import scipy.linalg

import numgrad as ng

rng = np.random.default_rng(23)

OF_NUMPY = {
    "eigh": ("hermitian", np.linalg.eigh),
    "eigh, U": ("hermitian", lambda a: np.linalg.eigh(a, UPLO="U")),
    "eig": ("square", np.linalg.eig),
    "svd": ("any", np.linalg.svd),
    "svd, thin": ("any", lambda a: np.linalg.svd(a, full_matrices=False)),
    "qr": ("any", np.linalg.qr),
    "qr, complete": ("any", lambda a: np.linalg.qr(a, mode="complete")),
}
OF_SCIPY = {
    "schur": ("square", lambda a, of: of.schur(a)),
    "schur, complex": ("square", lambda a, of: of.schur(a, output="complex")),
    "hessenberg": ("square", lambda a, of: of.hessenberg(a, calc_q=True)),
    "ldl": ("hermitian", lambda a, of: of.ldl(a)),
    "ldl, upper": ("hermitian", lambda a, of: of.ldl(a, lower=False)),
    "lu": ("any", lambda a, of: of.lu(a)),
    "qz": ("pair", lambda a, of: of.qz(*a)),
    "polar": ("any", lambda a, of: of.polar(a)),
    "null_space": ("wide", lambda a, of: [of.null_space(a)]),
    "orth": ("any", lambda a, of: [of.orth(a)]),
}
LENGTHS = [1, 2, 3, 5, 8, 16, 26, 33, 48]


def draw(shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def matrix(kind, n, dtype, stack=()):
    if kind == "pair":
        return [matrix("square", n, dtype), matrix("square", n, dtype)]
    if kind in ("any", "wide"):
        m = max(1, n + int(rng.integers(-3, 4))) if kind == "any" else max(1, n // 2)
        return draw((*stack, m, n), dtype)
    a = draw((*stack, n, n), dtype)
    return a + np.conj(a.swapaxes(-1, -2)) if kind == "hermitian" else a


def as_tensor(a):
    return [ng.tensor(x) for x in a] if isinstance(a, list) else ng.tensor(a)


def check(actual, expected, dtype):
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-7
    for x, y in zip(actual, expected, strict=True):
        x, y = np.asarray(x.detach()), np.asarray(y)
        assert x.shape == y.shape
        scale = max(1.0, float(np.abs(y).max(initial=0)))
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * scale)


@pytest.mark.slow(cases=2 * len(OF_NUMPY))
@pytest.mark.parametrize(
    ("dtype", "name"),
    [(t, f) for t in ("float64", "complex128", "float32", "complex64") for f in OF_NUMPY],
)
def test_vectors_of_a_tensor_are_those_of_the_array(name, dtype):
    kind, f = OF_NUMPY[name]
    for n in LENGTHS:
        for _ in range(5 if n < 20 else 1):
            a = matrix(kind, n, dtype)
            check(f(ng.tensor(a)), f(a), dtype)
    a = matrix(kind, 4, dtype, stack=(3, 2))
    check(f(ng.tensor(a)), f(a), dtype)
    a = matrix(kind, 6, dtype).T  # of other strides
    check(f(ng.tensor(a)), f(a), dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", OF_SCIPY)
def test_vectors_are_scipys(name, dtype):
    kind, f = OF_SCIPY[name]
    for n in LENGTHS[:7]:
        a = matrix(kind, n, dtype)
        check(f(as_tensor(a), ng.linalg), f(a, scipy.linalg), dtype)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("shape", [(77, 77), (90, 30), (30, 90), (200, 200), (130, 7)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_of_large_matrices_too(shape, dtype):
    """SciPy's library is called, of which versions differ from NumPy's in few signs."""
    a = draw(shape, dtype)
    double = a.astype(np.result_type(a, np.float64))
    check(np.linalg.svd(ng.tensor(a)), scipy.linalg.svd(double), dtype)
    if shape[0] == shape[1]:
        hermitian = a + np.conj(a.T)
        double = hermitian.astype(double.dtype)
        expected = scipy.linalg.eigh(double, driver="evd")
        check(np.linalg.eigh(ng.tensor(hermitian)), expected, dtype)
        check(np.linalg.eig(ng.tensor(a)), np.linalg.eig(a), dtype)


@pytest.mark.parametrize("name", ["eigh", "eig", "svd, thin", "qr"])
def test_compiled_and_batched_ones_are_the_same(name):
    kind, f = OF_NUMPY[name]
    a = matrix(kind, 5, "float64", stack=(4,))
    expected = f(a)
    check(ng.jit(f)(ng.tensor(a)), expected, "float64")
    check(ng.vmap(f)(ng.tensor(a)), expected, "float64")
    check(ng.jit(ng.vmap(f))(ng.tensor(a)), expected, "float64")
    single = f(a[0])
    with_gradient = f(ng.tensor(a[0], requires_grad=True))
    check(with_gradient, single, "float64")


SPECIAL = {
    "zeros": np.zeros((4, 4)),
    "identity": np.eye(5),
    "diagonal": np.diag([3.0, 1.0, 2.0, 1.0]),
    "exchange": np.eye(4)[::-1],
    "ones": np.ones((2, 2)),
    "tridiagonal": 2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1),
    "signed zeros": np.array([[-0.0, 0.0], [0.0, -0.0]]),
    "nearly equal": np.diag([1.0, 1.0 + 1e-9]) + 1e-9 * np.eye(2)[::-1],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_matrices_of_few_different_numbers(name):
    a = SPECIAL[name]
    for f in (np.linalg.eigh, np.linalg.svd, np.linalg.qr):
        check(f(ng.tensor(a)), f(a), "float64")
        check(f(ng.tensor(a.astype("float32"))), f(a.astype("float32")), "float32")


def test_equal_eigenvalues_leave_the_spaces():
    q, _ = np.linalg.qr(draw((6, 6), "float64"))
    a = (q * [1.0, 1.0, 1.0, 2.0, 2.0, 5.0]) @ q.T
    w, v = (np.asarray(x) for x in np.linalg.eigh(ng.tensor(a)))
    expected_w, expected_v = np.linalg.eigh(a)
    np.testing.assert_allclose(w, expected_w, atol=1e-12)
    for part in (slice(0, 3), slice(3, 5)):
        here, there = v[:, part], expected_v[:, part]
        np.testing.assert_allclose(here @ here.T, there @ there.T, atol=1e-12)
    np.testing.assert_allclose(v[:, 5], expected_v[:, 5], atol=1e-12)
