"""``ng.linalg``: values against NumPy and SciPy, gradients, what is singular, errors.

First, second and forward derivatives, batches and compiled forms: the tests of the table.
"""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.kernels.matrices import spectral, systems
from numgrad.kernels.matrices.elimination import BLOCK
from numgrad.kernels.matrices.systems import SMALL
from numgrad.kernels.matrices.unrolled import FEWEST
from numgrad.testing import gradcheck, gradgradcheck
from tests.operations.matrices import adjoint, array, close, definite, rng

linalg = ng.linalg
DTYPES = ["float32", "float64", "complex64", "complex128", "int64"]
SHAPES = [(1, 1), (4, 4), (3, 2, 2), (2, 1, 3, 3), (SMALL + 4, SMALL + 4), (2, 30, 30)]


# ---------------------------------------------------------------------------------------- values

SAME = {
    "inv": lambda a: np.linalg.inv(a),
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: tuple(np.linalg.slogdet(a)),
    "eigvalsh": lambda a: np.linalg.eigvalsh(a),
    "svdvals": lambda a: np.linalg.svdvals(a),
    "pinv": lambda a: np.linalg.pinv(a),
    "cond": lambda a: np.linalg.cond(a),
    "matrix_rank": lambda a: np.linalg.matrix_rank(a),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SAME)
def test_values_are_those_of_numpy(name, dtype):
    for shape in SHAPES if dtype == "float64" else SHAPES[1:3]:
        a = definite(shape, dtype) / (1 if dtype == "int64" else shape[-1])
        a = a.astype(dtype)
        # a determinant of many rows is large
        expected = SAME[name](a)
        actual = getattr(linalg, name)(ng.tensor(a))
        scale = max(1.0, float(np.max(np.abs(expected)))) if name in ("det", "cond") else 1.0
        close(actual, expected, dtype, 10 * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, SMALL + 2])
def test_systems(n, dtype):
    a = definite((2, n, n), dtype).astype(dtype)
    for b in (array((n, 2), dtype), array((3, 2, n, 1), dtype), array((n, 2), dtype)[:, 0]):
        close(linalg.solve(ng.tensor(a), ng.tensor(b)), np.linalg.solve(a, b), dtype)
        factors = linalg.cho_factor(ng.tensor(a), lower=True)
        close(linalg.cho_solve(factors, b), np.linalg.solve(a, b), dtype, 10)
    b = array((n, 2), dtype)
    for trans in (0, 1, 2):
        for lower in (False, True):
            for unit in (False, True):
                options = {"lower": lower, "unit_diagonal": unit}
                small = (a[0] / n**2).astype(np.result_type(a, "f4"))
                expected = scipy.linalg.solve_triangular(small, b, trans, **options)
                actual = linalg.solve_triangular(small, ng.tensor(b), trans, **options)
                np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-2)
        factors = linalg.lu_factor(ng.tensor(a[0]))
        expected = scipy.linalg.lu_solve(scipy.linalg.lu_factor(a[0]), b, trans)
        np.testing.assert_allclose(linalg.lu_solve(factors, b, trans).numpy(), expected, rtol=1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_multiply_to_the_matrix(dtype):
    for shape in ((3, 3), (4, 2), (2, 2, 5), (2, 40, 20)):
        a = array(shape, dtype)
        x = ng.tensor(a)
        u, s, vh = (p.numpy() for p in linalg.svd(x, full_matrices=False))
        close((u * s[..., None, :]) @ vh, a * s.dtype.type(1), dtype, 100)
        u, s, vh = (p.numpy() for p in linalg.svd(x))
        assert u.shape[-1] == shape[-2]
        assert vh.shape[-1] == shape[-1]
        for orthogonal in (u, adjoint(vh)):
            found = adjoint(orthogonal) @ orthogonal
            close(
                found,
                np.broadcast_to(np.eye(found.shape[-1]), found.shape).astype(u.dtype),
                u.dtype,
            )
        for mode in ("reduced", "complete"):
            found = linalg.qr(x, mode)
            expected = np.linalg.qr(a, mode)
            q, r = (part.numpy() for part in found)
            assert [part.shape for part in found] == [part.shape for part in expected]
            close(q @ r, a * q.dtype.type(1), dtype, 100)
            close(np.abs(r), np.abs(expected[1]), dtype, 100)
        close(linalg.qr(x, "r"), linalg.qr(x)[1].numpy(), dtype)
        p, lower, upper = (q.numpy() for q in linalg.lu(x))
        close(p @ lower @ upper, a * lower.dtype.type(1), dtype, 10)
        close(tuple(linalg.lu(x, permute_l=True)), (p @ lower, upper), lower.dtype)
        h = definite(shape[:-2] + (shape[-1],) * 2, dtype)
        w, v = (q.numpy() for q in linalg.eigh(ng.tensor(h), "U"))
        close((v * w[..., None, :]) @ adjoint(v), h * w.dtype.type(1), dtype, 1e3)
        w, v = (q.numpy() for q in linalg.eig(ng.tensor(h)))
        assert w.dtype.kind == "c"
        np.testing.assert_allclose(h @ v, v * w[..., None, :], atol=1e-2)
        close(linalg.cholesky(ng.tensor(h)), np.linalg.cholesky(h), dtype, 10)
        upper = linalg.cholesky(ng.tensor(h), upper=True).numpy()
        close(upper, adjoint(np.linalg.cholesky(h)), dtype, 10)


def test_only_one_triangle_is_read():
    for n in (3, SMALL + 3):
        a = definite((n, n))
        for lower, uplo in ((True, "L"), (False, "U")):
            half = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, a, np.nan)
            close(linalg.eigvalsh(half, UPLO=uplo), np.linalg.eigvalsh(a), factor=100)
            expected = np.linalg.cholesky(a)
            close(linalg.cholesky(half, upper=not lower), expected if lower else expected.T)


def test_functions_of_scipy():
    a = definite((3, 3)) / 3
    x = ng.tensor(a)
    for name in ("expm", "logm", "sqrtm"):
        close(getattr(linalg, name)(x), getattr(scipy.linalg, name)(a), factor=100)
    b, q = definite((2, 2)), array((3, 2))
    close(linalg.solve_sylvester(x, b, q), scipy.linalg.solve_sylvester(a, b, q))
    c, r = np.array([4.0, 1.0, 0.5]), np.array([9.0, 2.0, 1.0])
    close(linalg.solve_toeplitz((ng.tensor(c), r), q), scipy.linalg.solve_toeplitz((c, r), q))
    z = c + 1j * np.array([0.0, 1.0, 2.0])
    close(linalg.solve_toeplitz(ng.tensor(z), q), scipy.linalg.solve_toeplitz(z, q))
    ab = array((4, 3)) + 9 * np.eye(4)[1][:, None]
    close(linalg.solve_banded((2, 1), ng.tensor(ab), q), scipy.linalg.solve_banded((2, 1), ab, q))
    close(linalg.block_diag(x, [1.0, 2.0], b), scipy.linalg.block_diag(a, [1.0, 2.0], b))
    for n in (-2, 0, 1, 5):
        close(linalg.matrix_power(x, n), np.linalg.matrix_power(a, n), factor=100)


def test_several_matrices_and_tensors():
    a, b, c = array((2, 3)), array((3, 4)), array((4,))
    close(linalg.multi_dot([ng.tensor(a), b, c]), np.linalg.multi_dot([a, b, c]))
    close(linalg.multi_dot([c, ng.tensor(b.T), a.T]), np.linalg.multi_dot([c, b.T, a.T]))
    t, y = array((2, 3, 6)), array((2, 3))
    close(linalg.tensorsolve(ng.tensor(t), y), np.linalg.tensorsolve(t, y), factor=100)
    moved = t.transpose(2, 0, 1)
    close(
        linalg.tensorsolve(moved, y, axes=(0,)), np.linalg.tensorsolve(moved, y, (0,)), factor=100
    )
    close(linalg.tensorinv(ng.tensor(t)), np.linalg.tensorinv(t), factor=100)


@pytest.mark.parametrize("lengths", [(3, 3), (2, 3), (3, 2), (2, 2)])
def test_cross_products(lengths):
    a, b = array((4, lengths[0])), array((5, 1, lengths[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's, of two elements
        try:
            expected = np.cross(a, b)
        except ValueError:
            pytest.skip("this NumPy takes vectors of three elements only")
        close(ng.cross(ng.tensor(a), b), expected)
        close(ng.cross(ng.tensor(a.T), b, axisa=0), np.cross(a.T, b, axisa=0))
    if lengths == (3, 3):
        close(ng.cross(ng.tensor(a), b, axisc=0), np.cross(a, b, axisc=0))
        close(linalg.cross(ng.tensor(a), b[0]), np.linalg.cross(a, b[0]))


@pytest.mark.skipif(not hasattr(np, "matvec"), reason="from NumPy 2.2")
def test_products_of_matrices_and_vectors():
    a, v, w = array((2, 3, 4), "complex128"), array((4,), "complex128"), array((5, 1, 3))
    close(np.matvec(ng.tensor(a), v), np.matvec(a, v))
    close(np.vecmat(w, ng.tensor(a)), np.vecmat(w, a))
    close(np.vecmat(ng.tensor(w * 1j), a), np.vecmat(w * 1j, a))


def test_numpy_dispatches_by_the_last_two_axes():
    x = array((2, 3, 3))
    t = ng.tensor(x)
    for name in ("diagonal", "trace", "matrix_transpose", "svdvals", "matrix_norm", "vector_norm"):
        function = getattr(np.linalg, name)
        close(function(t), function(x), factor=10)
    for name in ("matmul", "vecdot", "tensordot"):
        function = getattr(np.linalg, name)
        close(function(t, x[0]), function(x, x[0]))
    close(np.linalg.outer(t[0, 0], x[0, 1]), np.linalg.outer(x[0, 0], x[0, 1]))
    close(np.diagonal(t), np.diagonal(x))
    close(np.trace(t), np.trace(x))
    result = np.linalg.eigh(t)
    assert result.eigenvalues.shape == (2, 3)
    sign, logarithm = np.linalg.slogdet(t)
    close((sign, logarithm), tuple(np.linalg.slogdet(x)))
    a = t.clone().requires_grad_()
    np.linalg.solve(a, x).sum().backward()
    assert a.grad.shape == (2, 3, 3)


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf])
def test_norms_of_matrices(ord):
    x = array((2, 3, 4))
    for keepdims in (False, True):
        expected = np.linalg.norm(x, ord, axis=(2, 0), keepdims=keepdims)
        close(linalg.norm(ng.tensor(x), ord, axis=(2, 0), keepdims=keepdims), expected)
    if ord is not None:
        expected = np.linalg.matrix_norm(x, ord=ord, keepdims=True)
        close(linalg.matrix_norm(ng.tensor(x), ord=ord, keepdims=True), expected)


def test_least_squares():
    for shape, columns in (((5, 3), ()), ((5, 3), (2,)), ((3, 5), (2,)), ((3, 3), ())):
        a, b = array(shape), array((shape[0], *columns))
        close(linalg.lstsq(ng.tensor(a), b)[:2], np.linalg.lstsq(a, b)[:2], factor=100)
        close(linalg.lstsq(a, b).singular_values, np.linalg.lstsq(a, b)[3])
    flat = np.outer(array((4,)), array((2,)))
    _, residuals, rank, _ = linalg.lstsq(ng.tensor(flat), array((4,)))
    assert residuals.shape == (0,)
    assert int(rank) == 1
    for p in (1, -1, np.inf, "fro", "nuc", -2):
        a = definite((2, 3, 3))
        close(linalg.cond(ng.tensor(a), p), np.linalg.cond(a, p), factor=1e3)


def test_empty_matrices_and_stacks():
    for shape in ((0, 0), (0, 2, 2), (2, 0, 0)):
        x = np.zeros(shape)
        for name in ("inv", "det", "cholesky", "eigvalsh", "svdvals", "pinv"):
            close(getattr(linalg, name)(ng.tensor(x)), getattr(np.linalg, name)(x))
        close(tuple(linalg.qr(ng.tensor(x))), tuple(np.linalg.qr(x)))
        close(tuple(linalg.svd(ng.tensor(x))), tuple(np.linalg.svd(x)))
        close(linalg.solve(ng.tensor(x), x), np.linalg.solve(x, x))
    for shape in ((0, 3), (3, 0)):
        x = np.zeros(shape)
        close(tuple(linalg.svd(ng.tensor(x))), tuple(np.linalg.svd(x)))
        close(tuple(linalg.qr(ng.tensor(x))), tuple(np.linalg.qr(x)))
    x = ng.zeros((0, 0), requires_grad=True)  # one matrix for several right sides
    solved = linalg.solve(x, ng.zeros((3, 0, 2), requires_grad=True))
    solved.sum().backward()
    assert solved.shape == (3, 0, 2)
    assert x.grad.shape == (0, 0)


def test_operands_in_any_layout():
    a = definite((4, 6, 6))
    b = array((4, 6, 2))
    for view in (a.swapaxes(-1, -2), a[::-1], np.repeat(a, 2, -1)[..., ::2]):
        close(linalg.solve(ng.tensor(view), b), np.linalg.solve(view, b))
        close(linalg.cholesky(view), np.linalg.cholesky(view))
        close(linalg.eigvalsh(view), np.linalg.eigvalsh(view), factor=100)
        close(linalg.svdvals(view), np.linalg.svdvals(view), factor=100)
        close(linalg.det(view), np.linalg.det(view), factor=1e6)


def test_bits_do_not_depend_on_threads():
    a, b = definite((2000, 4, 4)), array((2000, 4, 1))
    found = []
    before = ng.get_num_threads()
    for threads in (1, 2):
        ng.set_num_threads(threads)
        x, y = (ng.tensor(k, requires_grad=True) for k in (a, b))
        total = linalg.solve(x, y).sum() + linalg.cholesky(x).sum() + linalg.eigh(x)[0].sum()
        total.backward()
        found.append((x.grad.numpy(), y.grad.numpy()))
    ng.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shape", [(3, 1), (4, 2)])
def test_systems_side_by_side_have_the_bits_of_each(shape):
    n, columns = shape
    a, b = array((FEWEST + 5, n, n)), array((FEWEST + 5, n, columns))
    a[7] = np.eye(n)[::-1]  # rows must be exchanged
    x, y = ng.tensor(a, requires_grad=True), ng.tensor(b, requires_grad=True)
    found = linalg.solve(x, y)
    (found * found).sum().backward()
    np.testing.assert_allclose(found.detach().numpy(), np.linalg.solve(a, b), rtol=1e-9)
    for k in range(len(a)):
        one, side = (ng.tensor(v[k], requires_grad=True) for v in (a, b))
        alone = linalg.solve(one, side)
        (alone * alone).sum().backward()
        for whole, part in ((found, alone), (x.grad, one.grad), (y.grad, side.grad)):
            np.testing.assert_array_equal(whole.detach().numpy()[k], part.detach().numpy())
    factors = a.copy()
    pivots, _ = systems.factored(factors)
    for of_adjoint in (False, True):
        together, each = b.copy(), b.copy()
        systems.substitute(factors, pivots, together, of_adjoint)
        for k in range(len(a)):
            systems.substitute(factors[k : k + 1], pivots[k : k + 1], each[k : k + 1], of_adjoint)
        np.testing.assert_array_equal(together, each)
        np.testing.assert_allclose(
            np.einsum("sji,sjk->sik" if of_adjoint else "sij,sjk->sik", a, together), b, atol=1e-9
        )
    a[60, :, -1] = 0.0
    with pytest.raises(ng.NumgradLinAlgError, match=r"solve: matrix \(60,\)"):
        linalg.solve(a, b)


@pytest.mark.parametrize("how", [(True, False, False), (False, False, True), (True, True, True)])
@pytest.mark.parametrize("shape", [(3, 1), (4, 4)])
def test_triangles_side_by_side_have_the_bits_of_each(shape, how):
    a, b = array((FEWEST + 5, shape[0], shape[0])), array((FEWEST + 5, *shape))
    lower, of_adjoint, unit = how
    together, each = b.copy(), b.copy()
    systems.triangles(b.shape[:1], *shape, a.dtype, *how)(a, together)
    for k in range(len(a)):
        systems.triangles((), *shape, a.dtype, *how)(a[k], each[k])
    np.testing.assert_array_equal(together, each)
    whole = np.tril(a) if lower else np.triu(a)
    if unit:
        whole = whole - np.eye(len(whole[0])) * whole + np.eye(len(whole[0]))
    whole = whole.mT if of_adjoint else whole
    np.testing.assert_allclose(whole @ together, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "dtype"), [(1, "float32"), (3, "float64"), (4, "float64")])
def test_factors_side_by_side_have_the_bits_of_each(n, dtype):
    a = definite((FEWEST + 5, n, n)).astype(dtype)
    for given, upper in ((a, False), (a[:, ::-1, ::-1], True)):
        found = linalg.cholesky(given, upper=upper).numpy()
        assert found.dtype == dtype
        rows = found if not upper else found.mT
        np.testing.assert_allclose(rows, np.linalg.cholesky(given), rtol=1e-5, atol=1e-6)
        for k, one in enumerate(given):
            np.testing.assert_array_equal(found[k], linalg.cholesky(one, upper=upper).numpy())
    a[(40, 60), 0, 0] = -1.0, np.nan
    with pytest.raises(ng.NumgradLinAlgError, match=r"cholesky: matrix \(40,\)"):
        linalg.cholesky(a)


def lapack_pivots(a):
    """What it finds in the transpose, counted from 1."""
    return scipy.linalg.lu_factor(a.T)[1] + 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [SMALL + 1, 2 * BLOCK, 3 * BLOCK + 5, 9 * BLOCK + 1])
def test_factors_by_blocks_are_those_of_lapack(n, dtype):
    a = array((2, n, n), dtype)
    a[1, :, 0] = 0.0
    a[0, :, 3] *= 1e6  # rows are exchanged far and near
    factors = a.copy()
    pivots, info = systems.factored(factors)
    lower, upper = np.tril(factors[0]), np.triu(factors[0], 1) + np.eye(n)
    order = np.arange(n)
    for k, p in enumerate(pivots[0] - 1):
        order[[k, p]] = order[[p, k]]
    eps, scale = np.finfo(dtype).eps, np.abs(lower).sum(axis=1, keepdims=True)
    assert (np.abs(upper) <= 1).all()
    assert (np.abs(lower @ upper - a[0][:, order]) <= 4 * n * eps * scale).all()
    np.testing.assert_array_equal(pivots[0], lapack_pivots(a[0]))
    assert info[0] == 0 < info[1]
    sign, logarithm = linalg.slogdet(ng.tensor(a))
    expected = np.linalg.slogdet(a[0].astype(float))
    assert sign.tolist() == [expected.sign, 0.0]
    np.testing.assert_allclose(logarithm.numpy()[0], expected.logabsdet, rtol=1e3 * eps)
    a[0, 5, 7] = np.nan
    assert np.isnan(linalg.solve(a[0], np.ones(n, dtype)).numpy()).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_right_side_is_as_several(dtype):
    n = SMALL + 3
    a, b = definite((2, n, n), dtype).astype(dtype), array((2, n, 2), dtype)
    for trans in (0, 1, 2):
        for options in ({"lower": True}, {"unit_diagonal": True}):
            small = (a / n**2).astype(np.result_type(a, "f4"))
            several = linalg.solve_triangular(small, b, trans, **options).numpy()
            one = linalg.solve_triangular(small, b[..., 1:], trans, **options).numpy()
            np.testing.assert_allclose(one, several[..., 1:], rtol=1e-3)


# ------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("n", [3, SMALL + 1])
def test_kernels_are_the_formulas(n):
    """Plain backwards against those that can be differentiated again."""
    a, b = definite((2, n, n)), array((2, n, 2))
    for f in (
        lambda x, y: linalg.solve(x, y),
        lambda x, y: linalg.solve(x[0], y),
        lambda x, y: linalg.solve(x, y[0]),
        lambda x, y: linalg.cholesky(x) @ y,
        lambda x, y: linalg.cholesky(x, upper=True) @ y,
        lambda x, y: linalg.solve_triangular(x, y, 1, lower=True),
    ):
        found = []
        for again in (False, True):
            x, y = (ng.tensor(k, requires_grad=True) for k in (a, b))
            out = f(x, y)
            cotangent = np.cos(np.arange(out.size)).reshape(out.shape)
            found.append(ng.autograd.grad(out, [x, y], cotangent, create_graph=again))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one.numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-11)


def test_gradients_of_one_operand_only():
    a, b = definite((3, 3)), array((3,))
    for f in (linalg.solve, lambda x, y: linalg.solve_triangular(x, y)):
        gradcheck(lambda x, f=f: f(x, b), [ng.tensor(a, requires_grad=True)])
        gradcheck(lambda y, f=f: f(a, y), [ng.tensor(b, requires_grad=True)])


def test_determinants_of_singular_matrices():
    for rank in (2, 1, 0):
        a = array((3, rank)) @ array((rank, 3)) if rank else np.zeros((3, 3))
        x = ng.tensor(a, requires_grad=True)
        gradcheck(linalg.det, [x])
        gradgradcheck(linalg.det, [x], atol=1e-4)
    expected = np.diag([0.0, 0.0, 6.0])  # cofactors of diag(2, 3, 0)
    x = ng.tensor(np.diag([2.0, 3.0, 0.0]), requires_grad=True)
    linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-14)
    with pytest.raises(ng.NumgradLinAlgError, match="third derivatives"):
        ng.grad(lambda t: np.sum(ng.hessian(linalg.det)(t * np.diag([2.0, 3.0, 0.0]))))(1.0)


def test_repeated_eigenvalues():
    """What is symmetric in them has a gradient; what depends on vectors has none."""
    x = ng.tensor(np.eye(3), requires_grad=True)
    for total, expected in (
        (lambda a: np.sum(linalg.eigvalsh(a) ** 2), 2 * np.eye(3)),
        (lambda a: np.sum(linalg.svdvals(a) ** 2), 2 * np.eye(3)),
        (lambda a: np.sum(linalg.eigh(a).eigenvalues), np.eye(3)),
        (lambda a: np.sum(linalg.svd(a).S), np.eye(3)),
        (lambda a: np.sum(np.real(linalg.eigvals(a))), np.eye(3)),
    ):
        (g,) = ng.autograd.grad(total(x), [x])
        np.testing.assert_allclose(g.numpy(), expected, atol=1e-12)
    for vectors in (lambda a: linalg.eigh(a)[1], lambda a: linalg.svd(a)[0]):
        with np.errstate(all="ignore"):
            (g,) = ng.autograd.grad(vectors(x), [x], np.arange(9.0).reshape(3, 3))
        assert not np.isfinite(g.numpy()).all()


def test_gradients_of_hermitian_arguments_are_hermitian():
    a = definite((3, 3), "complex128")
    for f in (linalg.cholesky, lambda x: linalg.eigh(x)[0], linalg.eigvalsh):
        x = ng.tensor(a, requires_grad=True)
        np.sum(np.abs(f(x)) ** 2).backward()
        np.testing.assert_allclose(x.grad.numpy(), adjoint(x.grad.numpy()), atol=1e-12)


def test_rank_deficient_pseudo_inverse_against_differences():
    left, right = array((4, 2)), array((2, 3))
    gradcheck(
        lambda x, y: linalg.pinv(x @ y, rcond=1e-8),
        [ng.tensor(left, requires_grad=True), ng.tensor(right, requires_grad=True)],
    )


def test_agrees_with_torch():
    torch = pytest.importorskip("torch")
    a, b = definite((2, 4, 4)) + 0.1 * array((2, 4, 4)), array((2, 4, 2))
    c = array((2, 4, 4), "complex128")
    programs = [
        (lambda L, x, y: L.solve(x, y).sum(), (a, b)),
        (lambda L, x: L.slogdet(x)[1].sum(), (a,)),
        (lambda L, x: L.det(x).sum(), (a,)),
        (lambda L, x: L.cholesky(x).sum(), (definite((2, 4, 4)),)),
        (lambda L, x: (L.eigh(x)[1] ** 2 * L.eigh(x)[0][..., None, :]).sum(), (a,)),
        (lambda L, x: (L.svd(x, full_matrices=False)[0] ** 2).sum(-2)[..., 0].sum(), (a,)),
        (lambda L, x: abs(L.eigvals(x)).sum(), (a,)),
        (lambda L, x: (L.qr(x)[1] ** 3).sum(), (a,)),
        (lambda L, x: L.pinv(x).sum(), (b,)),
        (lambda L, x: L.matrix_norm(x, ord="nuc").sum(), (b,)),
        (lambda L, x: abs(L.inv(x)).sum(), (c,)),
        (lambda L, x: abs(L.svd(x, full_matrices=False)[2]).sum(), (c,)),
    ]
    for program, operands in programs:
        ours = [ng.tensor(k, requires_grad=True) for k in operands]
        theirs = [torch.tensor(k, requires_grad=True) for k in operands]
        value, expected = program(linalg, *ours), program(torch.linalg, *theirs)
        np.testing.assert_allclose(value.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
        value.backward()
        expected.backward()
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-6, atol=1e-8)


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("n", [2, SMALL + 1])
def test_singular_matrices_are_named(n):
    stack = np.stack([np.eye(n), np.zeros((n, n))])
    for name in ("inv", "cholesky"):
        with pytest.raises(np.linalg.LinAlgError, match=rf"{name}: matrix \(1,\) of a stack"):
            getattr(linalg, name)(ng.tensor(stack))
        with pytest.raises(ng.NumgradError, match=f"{name}: the matrix is"):
            getattr(np.linalg, name)(ng.tensor(stack[1]))
    with pytest.raises(ng.NumgradLinAlgError, match=r"solve: matrix \(1,\)"):
        linalg.solve(stack, np.ones((n, 1)))
    with pytest.raises(ng.NumgradLinAlgError, match="solve_triangular: the matrix is singular"):
        linalg.solve_triangular(stack[1], np.ones(n))
    sign, logarithm = linalg.slogdet(ng.tensor(stack))
    assert sign.tolist() == [1.0, 0.0]
    assert logarithm.tolist() == [0.0, -np.inf]
    assert linalg.det(stack).tolist() == [1.0, 0.0]
    for p in (None, 1):
        assert not np.isfinite(linalg.cond(stack[1] + np.eye(n, k=1), p).numpy())


def test_shapes_and_dtypes_are_named():
    square, wide = np.eye(2), np.ones((2, 3))
    for call, text in (
        (lambda: linalg.solve(wide, square), r"solve: a of shape \(2, 3\)"),
        (lambda: linalg.solve(square, np.ones(3)), r"solve: shapes \(2, 2\) and \(3,\)"),
        (lambda: linalg.solve(np.ones((3, 2, 2)), np.ones((2, 2, 1))), "stacks"),
        (lambda: linalg.qr(square, "thin"), "mode"),
        (lambda: linalg.eigh(square, "X"), "UPLO"),
        (lambda: linalg.tensorinv(wide), "tensorinv"),
        (lambda: linalg.tensorsolve(wide, np.ones(2)), "tensorsolve"),
        (lambda: linalg.multi_dot([wide, wide]), "multi_dot"),
        (lambda: linalg.lstsq(wide, np.ones(3)), "lstsq"),
        (lambda: linalg.solve_banded((1, 1), wide, np.ones(3)), "3|rows"),
        (lambda: linalg.solve_toeplitz(np.ones(2), np.ones(3)), "solve_toeplitz"),
        (lambda: linalg.block_diag(np.ones((1, 1, 1))), "block_diag"),
        (lambda: ng.cross(np.ones(4), np.ones(4)), "cross"),
        (lambda: ng.matvec(np.ones(3), np.ones(3)), "matvec"),
        (lambda: linalg.matrix_norm(wide, ord=3), "norm of order 3"),
    ):
        with pytest.raises(ng.NumgradError, match=text) as caught:
            call()
        assert isinstance(caught.value, ValueError)
    with pytest.raises(ng.NumgradLinAlgError, match=r"logm: .* complex"):
        ng.jit(linalg.logm)(-np.eye(2))
    with np.errstate(all="ignore"), pytest.raises(ng.NumgradError):
        linalg.eigh(np.full((2, 2), np.nan)) and linalg.svd(np.full((2, 2), np.nan))


# -------------------------------------------------------------------------------------- programs


def likelihood_by_cholesky(length, noise, x, y):
    squares = (x[:, None] - x) ** 2
    covariance = np.exp(-0.5 * squares / length**2) + noise * ng.eye(len(x))
    factor = np.linalg.cholesky(covariance)
    alpha = linalg.cho_solve((factor, True), y)
    return -0.5 * np.sum(y * alpha) - np.sum(np.log(np.diagonal(factor)))


def likelihood_by_determinant(length, noise, x, y):
    squares = (x[:, None] - x) ** 2
    covariance = np.exp(-0.5 * squares / length**2) + noise * ng.eye(len(x))
    _, logarithm = np.linalg.slogdet(covariance)
    return -0.5 * np.sum(y * np.linalg.solve(covariance, y)) - 0.5 * logarithm


def test_marginal_likelihood_of_a_gaussian_process():
    x = np.linspace(0, 4, 24)
    y = np.sin(x) + 0.1 * rng.normal(size=24)
    point = np.array([0.8, 0.1])

    def plain(length, noise):
        covariance = np.exp(-0.5 * (x[:, None] - x) ** 2 / length**2) + noise * np.eye(24)
        inverse = np.linalg.inv(covariance)
        return -0.5 * y @ inverse @ y - 0.5 * np.linalg.slogdet(covariance)[1]

    step = 1e-5
    expected = [
        (plain(*(point + step * e)) - plain(*(point - step * e))) / (2 * step) for e in np.eye(2)
    ]
    for f in (likelihood_by_cholesky, likelihood_by_determinant):
        for function in (f, ng.jit(f)):
            value, gradient = ng.value_and_grad(function, argnums=(0, 1))(*point, x, y)
            np.testing.assert_allclose(value, plain(*point), rtol=1e-10)
            np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_likelihood_of_a_kalman_filter():
    """Positions seen with noise of a body that moves in a plane, four states."""
    steps = 12
    seen = np.cumsum(rng.normal(size=(steps, 2)), axis=0)
    move = np.eye(4) + 0.5 * np.eye(4, k=2)
    look = np.eye(2, 4)

    def likelihood(q, r):
        state, spread, total = np.zeros(4), np.eye(4), 0.0
        for y in seen:
            state, spread = move @ state, move @ spread @ move.T + q * np.eye(4)
            error, scale = y - look @ state, look @ spread @ look.T + r * np.eye(2)
            gain = np.linalg.solve(scale, look @ spread).T
            _, logarithm = np.linalg.slogdet(scale)
            total = total - 0.5 * (error @ np.linalg.solve(scale, error) + logarithm)
            state, spread = state + gain @ error, spread - gain @ scale @ gain.T
        return total

    q, r, step = 0.3, 0.7, 1e-5
    gradient = ng.grad(likelihood, argnums=(0, 1))(q, r)
    expected = [
        (likelihood(q + step, r) - likelihood(q - step, r)) / (2 * step),
        (likelihood(q, r + step) - likelihood(q, r - step)) / (2 * step),
    ]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_one_matrix_leaves_a_stack_of_right_sides_as_it_is():
    """Also where the columns of all of them lie one after the other as LAPACK wants them."""
    a = np.array([[4.0, 1.0, 0.0], [0.0, 5.0, 1.0], [1.0, 0.0, 6.0]])
    b = rng.normal(size=(3, 2, 1)).transpose(1, 0, 2)
    before = b.copy()
    linalg.solve(a, b)
    linalg.solve_triangular(np.tril(a), b, lower=True)
    linalg.cho_solve(linalg.cho_factor(a @ a.T), b)
    np.testing.assert_array_equal(b, before)


def test_rows_of_a_derivative_by_columns():
    """The rows share what was saved, which solving with factors must not overwrite."""
    a = np.array([[4.0, 1.0, 0.0], [0.0, 5.0, 1.0], [1.0, 0.0, 6.0]])

    def f(x):
        return linalg.solve(a, np.arange(3.0) * x[0] ** 2 * x[1])

    x = np.array([2.0, 0.5])
    np.testing.assert_allclose(ng.jacrev(ng.jacfwd(f))(x), ng.jacrev(ng.jacrev(f))(x))


# ------------------------------------------------------------------------- functions of one matrix


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro"])
def test_condition_numbers_of_singular_matrices(p):
    rng = np.random.default_rng(3)
    a = rng.normal(size=(3, 3))
    for x in (np.zeros((3, 3)), np.diag([1.0, 2.0, 0.0]), a, np.stack([a, 0 * a, 2 * a.T])):
        with np.errstate(all="ignore"):
            want = np.linalg.cond(x, p)
            np.testing.assert_allclose(linalg.cond(ng.tensor(x), p).numpy(), want)
    with np.errstate(all="ignore"):
        compiled = ng.jit(lambda x: np.linalg.cond(x, p))(np.stack([a, 0 * a]))
        np.testing.assert_allclose(compiled, np.linalg.cond(np.stack([a, 0 * a]), p))
    own = ng.grad(lambda x: np.linalg.cond(x, p))(a)
    both = ng.grad(lambda x: np.linalg.cond(x, p)[0])(np.stack([a, np.eye(3)]))
    np.testing.assert_allclose(both[0], own, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_sylvester_and_general_eigenvalues_of_stacks(dtype):
    a, b, q = array((3, 4, 4), dtype), array((2, 2), dtype), array((4, 2), dtype)
    a = a + 9 * np.eye(4, dtype=dtype)
    x = linalg.solve_sylvester(ng.tensor(a), b, q).numpy()
    close(a @ x + x @ b, np.broadcast_to(q, x.shape), dtype)
    w, v = (t.numpy() for t in linalg.eig(ng.tensor(a)))
    close(a @ v, (v * w[:, None, :]).astype(v.dtype), dtype)
    alone = linalg.eigvals(ng.tensor(a)).numpy()
    close(np.sort_complex(alone), np.sort_complex(w), dtype)
    with pytest.raises(ng.NumgradLinAlgError, match="no solution"):
        linalg.solve_sylvester(np.eye(2), -np.eye(2), np.ones((2, 2)))
    with pytest.raises(ng.NumgradLinAlgError, match="infinities or NaNs"):
        linalg.eigvals(np.full((2, 2), np.nan))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_stacks_of_structured_systems(dtype):
    c, r, b = array((3, 5), dtype), array((5,), dtype), array((3, 5, 2), dtype)
    c[:, 0] += 9
    x = linalg.solve_toeplitz((ng.tensor(c), r), b)
    each = [scipy.linalg.solve_toeplitz((k, r), s) for k, s in zip(c, b, strict=True)]
    close(x, np.stack(each).astype(dtype), dtype)
    for below, above in ((0, 0), (1, 1), (2, 1)):
        ab = array((3, below + above + 1, 5), dtype)
        ab[:, above] += 9
        x = linalg.solve_banded((below, above), ng.tensor(ab), b)
        each = [scipy.linalg.solve_banded((below, above), k, s) for k, s in zip(ab, b, strict=True)]
        close(x, np.stack(each).astype(dtype), dtype)


def test_gradients_of_stacks_of_structured_systems():
    leaf = lambda x: ng.tensor(x, requires_grad=True)  # noqa: E731
    c, r, b = array((2, 3)), array((3,)), array((3, 1))
    c[:, 0] += 9
    ab = array((2, 3, 3))
    ab[:, 1] += 9
    for check in (gradcheck, gradgradcheck):
        operands = [leaf(x) for x in (c, r, b)]
        assert check(lambda c, r, b: linalg.solve_toeplitz((c, r), b), operands)
        operands = [leaf(x) for x in (ab, b)]
        assert check(lambda ab, b: linalg.solve_banded((1, 1), ab, b), operands)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_kernels_of_eigenvectors_are_the_formulas(dtype):
    for shape in ((4, 4), (2, 3, 3), (2, 5, 3), (3, 4)):
        a = array(shape, dtype)
        thin = partial(linalg.svd, full_matrices=False)
        for function in (thin, linalg.eigh) if shape[-1] == shape[-2] else (thin,):
            base = a + adjoint(a) if function is linalg.eigh else a
            x = ng.tensor(base, requires_grad=True)
            found = function(x)
            weights = [array(part.shape, part.dtype.name) for part in found]
            for chosen in ([0], [1], [0, 1], list(range(len(found)))):
                outputs, grads = [found[k] for k in chosen], [weights[k] for k in chosen]
                options = {"grad_outputs": [ng.tensor(g) for g in grads], "retain_graph": True}
                (kernel,) = ng.autograd.grad(outputs, [x], **options)
                (formula,) = ng.autograd.grad(outputs, [x], **options, create_graph=True)
                close(kernel, formula.detach(), dtype, factor=10.0)


def test_vectors_are_computed_only_for_a_gradient(monkeypatch):
    a = np.random.default_rng(0).normal(size=(2, 4, 4))
    leaf = ng.tensor(a, requires_grad=True)
    for name in ("svdvals", "eigvalsh", "cond"):
        function = getattr(ng.linalg, name)
        np.testing.assert_allclose(function(leaf).detach().numpy(), function(a), rtol=1e-12)

    def alone(shape, dtype, upper, vectors=True):
        assert not vectors
        return found(shape, dtype, upper, vectors)

    found = spectral.eigen_of
    monkeypatch.setattr(spectral, "eigen_of", alone)
    monkeypatch.delattr(spectral, "singular_of")
    for name in ("symmetric_eigen", "symmetric_eigenvalues", "singular"):
        OPS[name].forget()  # what was prepared would not be asked for again
    for name in ("svdvals", "eigvalsh", "cond", "matrix_rank"):
        expected = getattr(np.linalg, name)(a)
        np.testing.assert_allclose(getattr(ng.linalg, name)(ng.tensor(a)), expected, rtol=1e-12)
    with ng.no_grad():
        np.testing.assert_allclose(ng.linalg.svdvals(leaf), np.linalg.svdvals(a), rtol=1e-12)


@pytest.mark.parametrize("bands", [1, (-1, 1), (1,), (1.0, 1), None])
def test_bands_that_are_none(bands):
    with pytest.raises(ng.NumgradValueError, match="solve_banded: l_and_u is"):
        ng.linalg.solve_banded(bands, np.ones((3, 3)), np.ones(3))


@pytest.mark.parametrize("ord", [1, 2, np.inf, "fro", "nuc"])
def test_norms_of_nothing(ord):
    for shape in ((0, 0), (2, 0), (3, 0, 2)):
        x = ng.zeros(shape, requires_grad=True)
        found = np.linalg.matrix_norm(x, ord=ord)
        np.testing.assert_array_equal(found.detach().numpy(), np.zeros(shape[:-2]))
    with pytest.raises(ng.NumgradValueError, match="no elements"):
        np.linalg.norm(ng.zeros((2, 0)), -1)


def test_parameters_of_scipys_functions():
    """Those by which results do not change are taken, others named with what stands for them."""
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    t, b = ng.tensor(a), np.array([1.0, 2.0])
    factor = linalg.cho_factor(t, lower=True, overwrite_a=True, check_finite=False)
    close(linalg.cho_solve(factor, b, overwrite_b=True, check_finite=False), np.linalg.solve(a, b))
    close(linalg.cholesky(t, lower=False), np.linalg.cholesky(a).T)
    close(linalg.eigh(t, lower=False, driver="ev")[0], np.linalg.eigvalsh(a))
    close(linalg.expm(A=t), scipy.linalg.expm(a))
    close(linalg.norm(a=t, check_finite=False), np.linalg.norm(a))
    close(linalg.svdvals(a=t, overwrite_a=True), np.linalg.svd(a)[1])
    close(linalg.lstsq(t, b, cond=1e-9, lapack_driver="gelsd")[0], np.linalg.solve(a, b))
    close(linalg.solve_banded((0, 0), t[:1], b, check_finite=False), b / a[0])
    close(linalg.qr(t, mode="economic")[1], linalg.qr(t)[1])

    def solution(a):
        return linalg.solve(a, b, check_finite=False, assume_a="gen").sum()

    close(ng.jit(ng.grad(solution))(a), ng.grad(solution)(a))
    for call, message in (
        (lambda: linalg.eig(t, left=True), "left=True is not taken"),
        (lambda: linalg.cholesky(t, lower=True, upper=False), "'upper' and 'lower'"),
        (lambda: linalg.det(t, unknown=1), "no parameter is called 'unknown'"),
    ):
        with pytest.raises(ng.NumgradTypeError, match=message):
            call()


@pytest.mark.parametrize("name", sorted(set(ng.linalg.__all__) & set(dir(scipy.linalg))))
def test_every_parameter_of_scipys_functions_is_known(name):
    op, function = getattr(linalg, name), getattr(scipy.linalg, name)
    if isinstance(op, type) or name == "block_diag":
        return
    known = {*inspect.signature(op.function).parameters, *op.inputs, *op.params, *op.stand_ins}
    known |= set(op.wider.params) if op.wider is not None else set()
    assert set(inspect.signature(function).parameters) <= known


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16"])
def test_integers_beside_float32_are_computed_in_float64(dtype):
    a, b = np.array([[3, 1], [1, 0]]).astype(dtype), np.array([1.0, 0.1], np.float32)
    expected = np.linalg.solve(a, b)
    for found in (np.linalg.solve(ng.tensor(a), ng.tensor(b)), ng.jit(np.linalg.solve)(a, b)):
        assert found.dtype == expected.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-14)
