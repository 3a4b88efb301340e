"""Triangular, Hessenberg and block forms, patterned matrices, Riccati's equations, as in SciPy."""

import numpy as np
import pytest
import scipy.linalg

import numgrad as ng
from numgrad import linalg
from numgrad.testing import gradcheck, gradgradcheck
from tests.operations.calls.linear_algebra import _invariant

RNG = np.random.default_rng(0)


def matrix(*shape, kind="f"):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if kind == "c" else x


def forms(a):
    """Functions of forms that do not depend on phases."""
    yield _invariant(*linalg.schur(a, "complex"))[0]
    yield _invariant(*linalg.schur(a, "complex"))[1]
    yield from linalg.hessenberg(a, calc_q=True)
    yield from linalg.ldl(a)[:2]
    yield linalg.ldl(a, lower=False, hermitian=False)[0]


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("kind", ["f", "c"])
@pytest.mark.parametrize("n", [3, 1, 2, 5])
@pytest.mark.filterwarnings("ignore:scipy.linalg.ldl")
def test_forms(n, kind):
    a = matrix(n, n, kind=kind)
    x = ng.tensor(a)
    for output in ("real", "complex"):
        for found, expected in zip(
            linalg.schur(x, output), scipy.linalg.schur(a, output), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-13)
    for found, expected in zip(
        linalg.hessenberg(x, calc_q=True), scipy.linalg.hessenberg(a, calc_q=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-13)
    for lower in (True, False):
        for hermitian in (True, False):
            for found, expected in zip(
                linalg.ldl(x, lower, hermitian),
                scipy.linalg.ldl(a, lower, hermitian), strict=True,
            ):  # fmt: skip
                np.testing.assert_allclose(found, expected, atol=1e-13)

    def total(a):
        weighted = [np.sum(np.sin(np.abs(f) + k)) for k, f in enumerate(forms(a))]
        return sum(weighted[1:], weighted[0])

    assert gradcheck(total, [ng.tensor(a, requires_grad=True)])


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("k", range(5))
def test_forms_compiled_in_batches_and_again(k):
    a = matrix(3, 3)

    def total(a):
        return np.sum(np.sin(np.abs(list(forms(a))[k]) + 0.3))

    slope = ng.grad(total)(a)
    np.testing.assert_allclose(ng.jit(ng.grad(total))(a), slope, atol=1e-11)
    np.testing.assert_allclose(ng.vmap(ng.grad(total))(np.stack([a.T, a]))[1], slope, atol=1e-11)
    assert gradgradcheck(total, [ng.tensor(a, requires_grad=True)])


def test_forms_of_two_matrices_and_of_real_ones():
    a, b = matrix(4, 4), matrix(4, 4)
    for found, expected in zip(linalg.qz(ng.tensor(a), b), scipy.linalg.qz(a, b), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    t, z = scipy.linalg.schur(a)
    for found, expected in zip(
        linalg.rsf2csf(ng.tensor(t), z), scipy.linalg.rsf2csf(t, z), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert linalg.schur(ng.tensor(a), sort="lhp")[2] == scipy.linalg.schur(a, sort="lhp")[2]
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]])
    for f, said in (
        (lambda a: linalg.schur(a)[0].sum(), "output='complex'"),
        (lambda a: linalg.qz(a, b[:2, :2])[0].sum(), "schur"),
    ):
        with pytest.raises(ng.errors.NumgradNotImplementedError, match=said):
            ng.grad(f)(turned)
    for f in (linalg.schur, linalg.hessenberg, linalg.ldl):
        found = f(ng.zeros((0, 3, 3)))
        assert (found if isinstance(found, ng.Tensor) else found[0]).shape == (0, 3, 3)
        with pytest.raises(ng.linalg.LinAlgError, match="infinities"):
            f(ng.tensor(np.full((3, 3), np.nan)))
        stack = np.tile(np.eye(3), (2, 2, 1, 1))
        stack[1, 0, 2, 2] = np.inf
        with pytest.raises(ng.linalg.LinAlgError, match=r"matrix \(1, 0\) of .* \(2, 2\)"):
            f(ng.tensor(stack))


def test_patterned_matrices():
    c, r = matrix(3, kind="c"), matrix(4, kind="c")
    both = np.outer(c, r)
    for name, given in (
        ("toeplitz", (c,)), ("toeplitz", (c, r)), ("hankel", (c,)), ("hankel", (c, r)),
        ("circulant", (c,)), ("companion", (c,)), ("khatri_rao", (both, np.eye(4))),
        ("matmul_toeplitz", ((c, r), matrix(4, 2))),
    ):  # fmt: skip
        expected = getattr(scipy.linalg, name)(*given)
        np.testing.assert_allclose(getattr(linalg, name)(*given), expected, rtol=1e-12)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("kind", ["f", "c"])
@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccatis_equations(name, kind):
    a, b = matrix(2, 2, kind=kind), matrix(2, 1, kind=kind)
    q, r = (0.1 * matrix(n, n, kind=kind) + 2 * np.eye(n) for n in (2, 1))

    def f(a, b, q, r):
        return getattr(linalg, name)(a, b, *(x + np.conj(x.mT) for x in (q, r)))

    leaves = [ng.tensor(x, requires_grad=True) for x in (a, b, q, r)]
    expected = getattr(scipy.linalg, name)(a, b, q + q.conj().T, r + r.conj().T)
    np.testing.assert_allclose(f(*leaves).numpy(force=True), expected, rtol=1e-10)
    assert gradcheck(f, leaves)
    if kind == "f":
        assert gradgradcheck(f, leaves)
        q, r = q + q.T, r + r.T
        slope = ng.grad(lambda a: np.sum(getattr(linalg, name)(a, b, q, r)))
        np.testing.assert_allclose(ng.jit(slope)(a), slope(a), rtol=1e-9)
        np.testing.assert_allclose(ng.vmap(slope)(np.stack([a, a]))[1], slope(a), rtol=1e-9)
    with pytest.raises(ng.linalg.LinAlgError, match="shape"):
        f(a, b, r, r)


def test_hankel_without_rows_has_zeros_beside_infinities():
    c = np.array([1.0, np.inf, np.nan])
    for call in (ng.linalg.hankel, ng.jit(ng.linalg.hankel)):
        np.testing.assert_array_equal(call(c), scipy.linalg.hankel(c))
