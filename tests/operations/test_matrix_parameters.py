"""What SciPy's functions of matrices take beside NumPy's: values by SciPy, finite differences.

``assume_a`` of systems and inverses, parts and pairs of eigenvalue problems, LAPACK's forms.
"""

import numpy as np
import pytest
import scipy.linalg

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

linalg = ng.linalg
rng = np.random.default_rng(31)
STRUCTURES = [
    None, "gen", "sym", "her", "pos", "banded", "diagonal", "tridiagonal", "upper triangular",
    "lower triangular", "symmetric", "positive definite",
]  # fmt: skip


def draw(shape, dtype="float64"):
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if dtype == "complex128" else x


def regular(dtype="float64", n=4):
    return 0.3 * draw((n, n), dtype) + 3 * np.eye(n)


def whole(a, structure, lower):
    """The matrix that is meant, written out."""
    name = {"symmetric": "sym", "positive definite": "pos"}.get(structure, structure)
    if name in ("sym", "her", "pos"):
        half = np.tril(a, -1) if lower else np.triu(a, 1)
        diagonal = np.diag(a) if name == "sym" else np.diag(a).real
        return half + (half.T if name == "sym" else half.conj().T) + np.diag(diagonal)
    if name == "diagonal":
        return np.diag(np.diag(a))
    if name == "tridiagonal":
        return np.triu(np.tril(a, 1), -1)
    if name == "upper triangular":
        return np.triu(a)
    return np.tril(a) if name == "lower triangular" else a


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_solve_reads_what_is_assumed(structure, dtype):
    a, b = regular(dtype), draw((4, 2), dtype)
    for lower in (False, True):
        meant = whole(a, structure, lower)
        options = {"assume_a": structure, "lower": lower}
        expected = np.linalg.solve(meant, b)
        for x, y in ((ng.tensor(a), ng.tensor(b)), (a, b)):
            np.testing.assert_allclose(linalg.solve(x, y, **options).numpy(), expected, atol=1e-12)
        if structure not in ("symmetric", "positive definite", None):
            theirs = scipy.linalg.solve(a, b, assume_a=structure, lower=lower)
            np.testing.assert_allclose(theirs, expected, atol=1e-12)
        found = linalg.solve(ng.tensor(a), b[:, 0], transposed=True, check_finite=False, **options)
        np.testing.assert_allclose(found.numpy(), np.linalg.solve(meant.T, b[:, 0]), atol=1e-12)
        found = linalg.inv(ng.tensor(a), **options).numpy()
        np.testing.assert_allclose(found, np.linalg.inv(meant), atol=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES[1:10])
def test_gradients_are_in_what_is_read(structure):
    a, b = ng.tensor(regular(), requires_grad=True), ng.tensor(draw((4,)), requires_grad=True)
    for lower in (False, True):

        def f(a, b, lower=lower):
            return linalg.solve(a, b, assume_a=structure, lower=lower)

        assert gradcheck(f, (a, b))
    assert gradgradcheck(f, (a, b))
    _, tangent = ng.jvp(f, (a, b), (np.ones((4, 4)), np.ones(4)))
    ends = [f(a.detach() + s, b.detach() + s).numpy() for s in (1e-6, -1e-6)]
    np.testing.assert_allclose(tangent.detach(), (ends[0] - ends[1]) / 2e-6, atol=1e-6)


@pytest.mark.parametrize("structure", ["sym", "pos", "tridiagonal", "lower triangular"])
def test_stacks_batches_and_compiled_calls(structure):
    a = np.stack([regular() for _ in range(3)])
    b = draw((3, 4, 2))
    expected = [np.linalg.solve(whole(x, structure, False), y) for x, y in zip(a, b, strict=True)]

    def f(a, b):
        return linalg.solve(a, b, assume_a=structure)

    for found in (f(ng.tensor(a), b), ng.vmap(f)(ng.tensor(a), ng.tensor(b)), ng.jit(f)(a, b)):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_solve_refuses():
    a = np.eye(3)
    with pytest.raises(ng.NumgradError, match=r"assume_a is one of .*got 'banana'"):
        linalg.solve(a, a, assume_a="banana")
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        linalg.solve(-a, a, assume_a="pos")
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        linalg.solve(0 * a, a, assume_a="diagonal")
    with pytest.raises(TypeError, match="solve: no parameter is called 'assume'"):
        linalg.solve(a, a, assume="pos")


# ------------------------------------------------------------------------------------ eigenvalues


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_pairs_of_matrices_have_scipys_eigenvalues_and_vectors(kind, lower, dtype):
    x, y = draw((5, 5), dtype), draw((5, 5), dtype)
    a, b = x + x.conj().T, y @ y.conj().T + np.eye(5)
    w, v = scipy.linalg.eigh(a, b, type=kind, lower=lower)
    found = linalg.eigh(ng.tensor(a), b=b, type=kind, lower=lower)
    np.testing.assert_allclose(found.eigenvalues.numpy(), w, atol=1e-10)
    np.testing.assert_allclose(found.eigenvectors.numpy(), v, atol=1e-10)
    alone = linalg.eigvalsh(ng.tensor(a), b=ng.tensor(b), type=kind, lower=lower)
    np.testing.assert_allclose(alone.numpy(), w, atol=1e-10)


def test_parts_of_the_eigenvalues():
    x = draw((6, 6))
    a = x + x.T
    w, v = scipy.linalg.eigh(a, driver="evd")
    t = ng.tensor(a)
    found = linalg.eigh(t, subset_by_index=[1, 3])
    np.testing.assert_allclose(found.eigenvalues.numpy(), w[1:4], atol=1e-12)
    np.testing.assert_allclose(found.eigenvectors.numpy(), v[:, 1:4], atol=1e-10)
    options = {"eigvals_only": True, "subset_by_value": (w[1] + 1e-9, w[4] + 1e-9)}
    np.testing.assert_allclose(linalg.eigh(t, **options).numpy(), w[2:5], atol=1e-12)
    np.testing.assert_allclose(linalg.eigh(t, eigvals_only=True).numpy(), w, atol=1e-12)
    assert linalg.eigvalsh(t, subset_by_value=(1e3, np.inf)).shape == (0,)
    with pytest.raises(ValueError, match="subset_by_index"):
        linalg.eigvalsh(t, subset_by_index=[2, 6])
    with pytest.raises(ValueError, match="subset_by_value"):
        linalg.eigvalsh(t[None], subset_by_value=[0, 1])
    with pytest.raises(ng.NumgradError, match="subset_by_value"):
        ng.jit(lambda a: linalg.eigvalsh(a, subset_by_value=[0, 1]))(a)


def test_derivatives_of_pairs():
    a = ng.tensor(0.3 * draw((3, 3)) + np.diag([0.0, 2.0, 5.0]), requires_grad=True)
    b = ng.tensor(0.1 * draw((3, 3)) + np.eye(3), requires_grad=True)

    def values(a, b):
        return linalg.eigvalsh(a + a.mT, b=b + b.mT)

    def vectors(a, b):
        return linalg.eigh(a + a.mT, b=b + b.mT, subset_by_index=(0, 1)).eigenvectors ** 2

    for f in (values, vectors):
        assert gradcheck(f, (a, b))
        assert gradgradcheck(f, (a, b))
    compiled = ng.jit(values)
    np.testing.assert_allclose(compiled(a.detach(), b.detach()), values(a, b).detach(), atol=1e-12)
    batch = ng.vmap(values)(a.detach()[None], b.detach()[None])
    np.testing.assert_allclose(batch[0], values(a, b).detach(), atol=1e-12)


# ---------------------------------------------------------------------------------- LAPACK's forms


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 1)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_products_of_reflections_are_the_orthogonal_factor(shape, dtype):
    a = draw(shape, dtype)
    h, tau = np.linalg.qr(a, mode="raw")
    q, _ = np.linalg.qr(a)
    np.testing.assert_allclose(linalg.householder_product(h.T, tau).numpy(), q, atol=1e-12)
    fewer = linalg.householder_product(ng.tensor(h.T), tau[:-1]).numpy()
    expected = np.eye(shape[0], dtype=a.dtype)
    for k in range(shape[1] - 1):
        v = np.concatenate([np.zeros(k), [1], h.T[k + 1 :, k]])
        expected = expected @ (np.eye(shape[0]) - tau[k] * np.outer(v, v.conj()))
    np.testing.assert_allclose(fewer, expected[:, : shape[1]], atol=1e-12)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("hermitian", [True, False])
def test_systems_by_block_factors(lower, hermitian):
    x = draw((5, 5), "complex128")
    a = x + (x.conj().T if hermitian else x.T)
    b = draw((5, 2))
    factors = linalg.ldl(ng.tensor(a), lower, hermitian)
    found = linalg.ldl_solve(factors, b, lower, hermitian).numpy()
    np.testing.assert_allclose(found, np.linalg.solve(a, b), atol=1e-10)


def test_derivatives_of_block_factors_and_reflections():
    x = draw((3, 3))
    a, b = ng.tensor(x + x.T, requires_grad=True), ng.tensor(draw((3,)), requires_grad=True)
    assert gradcheck(lambda a, b: linalg.ldl_solve(linalg.ldl(a), b), (a, b))
    assert gradgradcheck(lambda a, b: linalg.ldl_solve(linalg.ldl(a), b), (a, b))
    tau = ng.tensor(draw((2,)), requires_grad=True)
    h = ng.tensor(draw((4, 2)), requires_grad=True)
    assert gradcheck(linalg.householder_product, (h, tau))
    assert gradgradcheck(linalg.householder_product, (h, tau))


def test_householder_product_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    h, tau = draw((2, 4, 3)), draw((2, 3))
    expected = torch.linalg.householder_product(torch.tensor(h), torch.tensor(tau))
    np.testing.assert_allclose(linalg.householder_product(h, tau).numpy(), expected, atol=1e-12)


# ------------------------------------------------------------------------------------------- bands


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
def test_hermitian_matrices_by_their_diagonals(lower, dtype):
    bands, b = draw((3, 6), dtype), draw((6, 2))
    bands[0 if lower else 2] = bands[0 if lower else 2].real + 9
    t = ng.tensor(bands)
    w, v = scipy.linalg.eig_banded(bands, lower=lower)
    found = linalg.eig_banded(t, lower=lower, check_finite=False)
    np.testing.assert_allclose(found[0].numpy(), w, atol=1e-12)
    alike = np.abs(np.sum(np.conj(v) * found[1].numpy(), axis=0))  # up to phases
    np.testing.assert_allclose(alike, 1, atol=1e-10)
    np.testing.assert_allclose(linalg.eigvals_banded(t, lower).numpy(), w, atol=1e-12)
    expected = scipy.linalg.solveh_banded(bands, b, lower=lower)
    np.testing.assert_allclose(linalg.solveh_banded(t, b, lower=lower).numpy(), expected)


def test_three_diagonals():
    for n in (1, 2, 6):
        d, e = draw((n,)), draw((n - 1,))
        whole = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        w, v = np.linalg.eigh(whole)
        found = linalg.eigh_tridiagonal(ng.tensor(d), e)
        np.testing.assert_allclose(found[0].numpy(), w, atol=1e-12)
        np.testing.assert_allclose(found[1].numpy(), v, atol=1e-10)
        np.testing.assert_allclose(linalg.eigvalsh_tridiagonal(d, e).numpy(), w, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_closest_unitary_matrix(dtype):
    a, b = draw((5, 3), dtype), draw((5, 3), dtype)
    expected = scipy.linalg.orthogonal_procrustes(a, b)
    for found, wanted in zip(linalg.orthogonal_procrustes(A=a, B=b), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 4, 4), (5, 2), (2, 3)])
def test_factors_unpacked(shape):
    a = draw(shape)
    for found, wanted in zip(
        linalg.lu_unpack(linalg.lu_factor(ng.tensor(a))), scipy.linalg.lu(a), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-14)


@pytest.mark.parametrize("lower", [True, False])
def test_derivatives_by_diagonals(lower):
    bands = 0.3 * draw((2, 4))
    bands[0 if lower else 1] += 9 * np.arange(1, 5)
    leaf, b = ng.tensor(bands, requires_grad=True), ng.tensor(draw((4,)), requires_grad=True)
    for f in (
        lambda a: linalg.eigvals_banded(a, lower),
        lambda a: linalg.eig_banded(a, lower).eigenvectors ** 2,
    ):
        assert gradcheck(f, (leaf,))
        assert gradgradcheck(f, (leaf,))
    assert gradcheck(lambda a, b: linalg.solveh_banded(a, b, lower), (leaf, b))
    if lower:
        d, e = leaf[0].detach().requires_grad_(), leaf[1, :3].detach().requires_grad_()
        assert gradcheck(lambda d, e: linalg.eigh_tridiagonal(d, e).eigenvectors ** 2, (d, e))
    np.testing.assert_allclose(
        ng.jit(lambda a: linalg.eigvals_banded(a, lower))(bands),
        linalg.eigvals_banded(bands, lower).numpy(),
        atol=1e-12,
    )
    found = ng.vmap(lambda a: linalg.eigvals_banded(a, lower))(ng.tensor(bands[None]))
    np.testing.assert_allclose(found[0], linalg.eigvals_banded(bands, lower).numpy(), atol=1e-12)
