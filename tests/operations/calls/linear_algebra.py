"""Sample calls of operations: linear algebra."""

from typing import Any

import numpy as np

from numgrad.operations.diagonal import tril, triu
from numgrad.operations.linear_algebra.determinants import (
    adjugate,
    adjugate_derivative,
    det,
    sign_and_logarithm,
    slogdet,
)
from numgrad.operations.linear_algebra.eigenvalues import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
    general_eigen,
    general_eigenvalues,
    symmetric_eigen,
    symmetric_eigenvalues,
)
from numgrad.operations.linear_algebra.factorizations import (
    block_factors,
    householder_product,
    inverse_permutation,
    ldl,
    ldl_solve,
    lu,
    lu_factor,
    lu_solve,
    lu_unpack,
    orthogonal_triangular,
    packed_lu,
    permutation_of,
    qr,
    raw_qr,
)
from numgrad.operations.linear_algebra.matrices import (
    adjoint,
    constant,
    hermitian,
    identity,
    product,
)
from numgrad.operations.linear_algebra.matrix_equations import (
    solve_continuous_are,
    solve_continuous_lyapunov,
    solve_discrete_are,
    solve_discrete_lyapunov,
)
from numgrad.operations.linear_algebra.matrix_functions import (
    coshm,
    cosm,
    doubled,
    expm,
    fractional_matrix_power,
    logm,
    matrix_power,
    principal_logarithm,
    principal_root,
    sinhm,
    sinm,
    solve_sylvester,
    sqrtm,
    tanhm,
    tanm,
)
from numgrad.operations.linear_algebra.polar import (
    orthogonal_procrustes,
    polar,
    signm,
    unitary_factor,
)
from numgrad.operations.linear_algebra.schur import (
    hessenberg,
    hessenberg_factors,
    qz,
    rsf2csf,
    schur,
    schur_factors,
    triangular_form,
)
from numgrad.operations.linear_algebra.singular_values import (
    check_semidefinite,
    cond,
    lstsq,
    pinv,
    pinvh,
    pseudo_inverse,
    singular,
    singular_values_alone,
    svd,
    svdvals,
)
from numgrad.operations.linear_algebra.solve import (
    factored_solve,
    inv,
    inv_assuming,
    inverse_or_zero,
    solve,
    solve_assuming,
)
from numgrad.operations.linear_algebra.structured import (
    banded_solution,
    block_diag,
    circulant,
    companion,
    eig_banded,
    eigh_tridiagonal,
    eigvals_banded,
    eigvalsh_tridiagonal,
    hankel,
    khatri_rao,
    matmul_toeplitz,
    solve_banded,
    solve_toeplitz,
    solveh_banded,
    toeplitz,
    toeplitz_solution,
)
from numgrad.operations.linear_algebra.triangular import (
    cho_factor,
    cho_solve,
    cholesky,
    solve_triangle,
    solve_triangular,
)
from numgrad.operations.linear_algebra.vector_products import (
    cross,
    cross_of_last,
    diagonal_of_matrices,
    matvec,
    multi_dot,
    outer_of_vectors,
    tensorinv,
    tensorsolve,
    trace_of_matrices,
    vecmat,
)
from numgrad.operations.matmul import matmul


def _apart(a: Any) -> np.ndarray:
    """A matrix whose sum with a small one has eigenvalues that differ."""
    return np.diag(9.0 * np.arange(a.shape[-1]))


def _spectral(w: Any, v: Any) -> Any:
    """A function of eigenvectors that does not depend on their phases."""
    return product(v * np.sin(w)[..., None, :], adjoint(v))


def _turned(w: Any, v: Any) -> Any:
    """A function of eigenvectors that does not depend on their phases."""
    return np.abs(v) * np.abs(w)[..., None, :]


def _diagonal(a: Any) -> np.ndarray:
    m, n = a.shape[-2:]
    return np.where(np.eye(m, n, dtype=bool), 9.0, 0)


def _free(q: Any, r: Any) -> Any:
    """A function of factors that does not depend on the signs or phases of columns."""
    k = min(q.shape[-2], r.shape[-1])
    return product(np.sin(np.abs(q[..., :k])), np.abs(r[..., :k, :]))


def _completed(q: Any, r: Any) -> Any:
    rest = q[..., r.shape[-1] :]
    return product(rest, adjoint(rest))


def _regular(x: Any) -> Any:
    return x + 3 * np.eye(x.shape[-1])


_MIXED = np.array([[0.1, 4.0, 1.0], [4.0, 0.2, 2.0], [1.0, 2.0, -6.0]])


def _small(tau: Any) -> Any:
    return 0.5 * tau


def _stable(a: Any) -> Any:
    return 0.2 * a + 0.3 * np.eye(a.shape[-1])


def _weights(x: Any) -> Any:
    return 0.2 * (x + adjoint(x)) + 3 * np.eye(x.shape[-1].__index__())


def _definite(a: Any) -> Any:
    return hermitian(a) + 9 * np.eye(a.shape[-1])


def _eye(a: Any) -> Any:
    """Numbers that keep singular values from 0."""
    return 5 * np.eye(a.shape[-2], a.shape[-1])


_APART = np.array([[1.0, 4.0, 0.0], [0.5, 5.0, 1.0], [0.0, 0.7, -6.0]])


def _invariant(t: Any, z: Any) -> Any:
    """A function that does not depend on the phases of vectors."""
    weights = constant(np.arange(1.0, t.shape[-1].__index__() + 1))
    return np.abs(t), product(z * weights, adjoint(z))


_FORM = np.array([[1.0, 4.0, 0.3], [-0.5, 2.0, 1.0], [0.0, 0.0, -6.0]])


def _as_form(a: Any) -> Any:
    return triu(np.real(a)) * 0.1 + _FORM


_FULL = np.array([[1.0, 4.0, 0.3, 2.0], [2.0, 2.0, 1.0, -1.0], [1.0, 3.0, -6.0, 0.0], [2.0] * 4])


def _spaced(a: Any) -> np.ndarray:
    """A matrix whose sum with a small one has singular values that differ."""
    m, n = a.shape[-2:]
    return np.where(np.eye(m, n, dtype=bool), 9.0 * (1 + np.arange(n)), 0)


def _rebuilt(u: Any, s: Any, vh: Any) -> Any:
    """A function of singular vectors that does not depend on their signs or phases."""
    k = s.shape[-1]
    return product(u[..., :k] * np.sin(s)[..., None, :], vh[..., :k, :])


def _projector(u: Any, k: int) -> Any:
    return product(u[..., k:], adjoint(u[..., k:]))


def _regular(x: Any) -> Any:
    """A matrix far from singular, made of any."""
    return x + 3 * identity(x.shape[-1], np.dtype(np.float64))


def _of_triangle(a: Any, b: Any, of_adjoint: bool) -> Any:
    """Lower triangular matrices are their own factors."""
    a = tril(_regular(a))
    pivots = np.broadcast_to(np.arange(1, 4, dtype=np.int32), a.shape[:-1])
    return factored_solve(a, a, pivots, b, of_adjoint=of_adjoint)


def _dominant(x: Any) -> Any:
    return x + 5 * np.eye(x.shape[-1])


def _raised(c: Any) -> Any:
    """A first column that makes the diagonal large."""
    return c + 9 * np.eye(1, c.shape[0])[0]


def _with_diagonal(ab: Any, above: int) -> Any:
    return ab + 9 * np.eye(ab.shape[0])[above][:, None]


def _spaced_band(a_band: Any, row: int) -> Any:
    """A sum with numbers that keep eigenvalues apart and from zero."""
    base = np.zeros(a_band.shape)
    base[..., row, :] = 9.0 * np.arange(1, base.shape[-1] + 1)
    return a_band + base


def _squared(x: Any) -> Any:
    """A positive definite matrix, made of any."""
    return product(x, adjoint(x)) + np.eye(x.shape[-1])


CALLS = {
    # numgrad.operations.linear_algebra.determinants
    det: [
        (((3, 3),), lambda a: det(a)),
        (((2, 2, 2),), lambda a: det(a)),
        (((1, 1),), lambda a: det(a)),
        (((3, 2), (2, 3)), lambda a, b: det(matmul(a, b))),
        (((0, 0),), lambda a: det(a)),
    ],
    adjugate: [
        (((3, 3),), lambda a: adjugate(a)),
    ],
    adjugate_derivative: [
        (((3, 3), (3, 3)), lambda a, t: adjugate_derivative(a, t)),
    ],
    sign_and_logarithm: [
        (((3, 3),), lambda a: sign_and_logarithm(a)[1]),
        (((2, 2, 2),), lambda a: sign_and_logarithm(a)[1]),
        (((0, 0),), lambda a: sign_and_logarithm(a)[1]),
    ],
    slogdet: [
        (((3, 3),), lambda a: slogdet(a).logabsdet),
        (((2, 3, 3),), lambda a: slogdet(a)[1]),
        (((3, 3), (3, 3)), lambda a, b: np.angle(slogdet(a + 1j * b).sign)),
    ],
    # numgrad.operations.linear_algebra.eigenvalues
    symmetric_eigen: [
        (((3, 3),), lambda a: _spectral(*symmetric_eigen(hermitian(a) + _apart(a)))),
        (((3, 3),), lambda a: symmetric_eigen(hermitian(a) + _apart(a))[0]),
    ],
    symmetric_eigenvalues: [
        (((2, 2, 2),), lambda a: symmetric_eigenvalues(hermitian(a) + _apart(a), upper=True)),
    ],
    eigh: [
        (((3, 3),), lambda a: _spectral(*eigh(hermitian(a) + _apart(a), "U"))),
        (((3, 3),), lambda a: eigh(hermitian(a) + _apart(a), eigvals_only=True)),
        (((3, 3),), lambda a: _spectral(*eigh(hermitian(a) + _apart(a), subset_by_index=(1, 2)))),
    ],
    eigvalsh: [
        (((3, 3),), lambda a: eigvalsh(hermitian(a) + _apart(a))),
        (((2, 2, 2),), lambda a: eigvalsh(hermitian(a) + _apart(a), UPLO="U")),
        (((0, 0),), lambda a: eigvalsh(a)),
    ],
    general_eigenvalues: [
        (((2, 2, 2),), lambda a: general_eigenvalues(a + _apart(a))),
    ],
    general_eigen: [
        (((3, 3),), lambda a: _turned(*general_eigen(a + _apart(a)))),
        (((3, 3),), lambda a: general_eigen(a + _apart(a))[0]),
    ],
    eig: [
        (((3, 3),), lambda a: _turned(*eig(a + _apart(a)))),
        (((2, 2, 2),), lambda a: _turned(*eig(a + _apart(a)))),
    ],
    eigvals: [
        (((3, 3),), lambda a: eigvals(a + _apart(a))),
        (((2, 2, 2),), lambda a: eigvals(a + _apart(a))),
        (((0, 0),), lambda a: eigvals(a)),
    ],
    # numgrad.operations.linear_algebra.factorizations
    orthogonal_triangular: [
        (((3, 3),), lambda a: orthogonal_triangular(a)[1]),
        (((4, 2),), lambda a: _free(*orthogonal_triangular(a + _diagonal(a)))),
        (((2, 3),), lambda a: _free(*orthogonal_triangular(a + _diagonal(a)))),
        (((4, 2),), lambda a: _completed(*orthogonal_triangular(a, complete=True))),
    ],
    raw_qr: [(((3, 2),), lambda a: raw_qr(a))],
    qr: [
        (((3, 2),), lambda a: _free(*qr(a + _diagonal(a)))),
        (((2, 2, 3),), lambda a: np.abs(qr(a + _diagonal(a), mode="r"))),
    ],
    inverse_permutation: [(((4,),), lambda x: inverse_permutation(x))],
    permutation_of: [(((3,),), lambda x: permutation_of((x > 0).astype(np.int32)))],
    packed_lu: [
        (((3, 3),), lambda a: packed_lu(a)[0]),
        (((4, 2),), lambda a: packed_lu(a)[0]),
        (((2, 2, 3),), lambda a: packed_lu(a)[0]),
    ],
    lu: [
        (((3, 3),), lambda a: lu(a)[1]),
        (((3, 3),), lambda a: lu(a, permute_l=True)[0]),
        (((2, 3),), lambda a: lu(a).U),
    ],
    lu_factor: [
        (((3, 3),), lambda a: lu_factor(a)[0]),
    ],
    lu_unpack: [
        (((3, 3),), lambda a: lu_unpack(lu_factor(a))[1]),
        (((2, 2, 2),), lambda a: lu_unpack(lu_factor(a))[2]),
    ],
    lu_solve: [
        (((3, 3), (3,)), lambda a, b: lu_solve(lu_factor(_regular(a)), b)),
        (((2, 3, 3), (3, 2)), lambda a, b: lu_solve(lu_factor(_regular(a)), b, 1)),
        (((3, 3), (3, 2)), lambda a, b: lu_solve(lu_factor(_regular(a)), b, trans=2)),
    ],
    block_factors: [
        (
            ((3, 3),),
            lambda a: block_factors(0.1 * (a + adjoint(a)) + _MIXED, lower=True, hermitian=True)[0],
        ),
    ],
    ldl: [
        (((3, 3),), lambda a: ldl(0.1 * a + _MIXED)[0]),
        (((3, 3),), lambda a: ldl(0.1 * a + _MIXED, lower=False)[1]),
        (((2, 3, 3),), lambda a: ldl(0.1 * a + _MIXED + 9 * np.eye(3), hermitian=False)[0]),
    ],
    ldl_solve: [
        (((3, 3), (3,)), lambda a, b: ldl_solve(ldl(0.1 * a + _MIXED), b)),
        (((3, 3), (3, 2)), lambda a, b: ldl_solve(ldl(0.1 * a + _MIXED, False), b, lower=False)),
        (((2, 3, 3), (3,)), lambda a, b: ldl_solve(ldl(0.1 * a + _MIXED), b)),
    ],
    householder_product: [
        (((3, 2), (2,)), lambda a, tau: householder_product(a, _small(tau))),
        (((2, 3, 3), (2,)), lambda a, tau: householder_product(a, _small(tau))),
    ],
    # numgrad.operations.linear_algebra.matrix_equations
    solve_continuous_lyapunov: [
        (((2, 2), (2, 2)), lambda a, q: solve_continuous_lyapunov(a + 5 * np.eye(2), q)),
    ],
    solve_discrete_lyapunov: [
        (((2, 2), (2, 2)), lambda a, q: solve_discrete_lyapunov(_stable(a), q)),
        (((2, 2), (2, 2)), lambda a, q: solve_discrete_lyapunov(_stable(a), q, "bilinear")),
    ],
    # numgrad.operations.linear_algebra.matrix_functions
    doubled: [
        (((2, 3, 3), (2, 3, 3)), lambda a, t: doubled(a, t)[0]),
        (((0, 0), (0, 0)), lambda a, t: doubled(a, t)[0]),
    ],
    expm: [
        (((3, 3),), lambda a: expm(a)),
        (((2, 2, 2),), lambda a: expm(a)),
        (((0, 0),), lambda a: expm(a)),
    ],
    principal_logarithm: [(((2, 2),), lambda a: principal_logarithm(a + 9 * np.eye(2)))],
    logm: [
        (((3, 3),), lambda a: logm(_definite(a))),
        (((2, 2),), lambda a: logm(a + 9 * np.eye(2))),
    ],
    principal_root: [(((2, 2),), lambda a: principal_root(a + 9 * np.eye(2)))],
    sqrtm: [
        (((3, 3),), lambda a: sqrtm(_definite(a))),
        (((2, 2),), lambda a: sqrtm(a + 9 * np.eye(2))),
    ],
    solve_sylvester: [
        (((2, 2), (3, 3), (2, 3)), lambda a, b, q: solve_sylvester(_definite(a), _definite(b), q)),
    ],
    matrix_power: [
        (((3, 3),), lambda a: matrix_power(a, 5)),
        (((2, 2, 2),), lambda a: matrix_power(a + 3 * np.eye(2), -2)),
        (((2, 2),), lambda a: matrix_power(a, 0)),
    ],
    fractional_matrix_power: [
        (((2, 2), ()), lambda a, t: fractional_matrix_power(a + 9 * np.eye(2), np.real(t))),
        (((2, 2, 2),), lambda a: fractional_matrix_power(a + 9 * np.eye(2), -0.5)),
        (((2, 2),), lambda a: fractional_matrix_power(a, 3.0)),
    ],
    # numgrad.operations.linear_algebra.polar
    signm: [
        (((2, 2),), lambda a: signm(a + 5 * np.array([[1.0, 0.5], [0.0, -1.0]]))),
        (((2, 3, 3),), lambda a: signm(a + np.diag([9.0, -9.0, 7.0]))),
    ],
    unitary_factor: [
        (((3, 2),), lambda a: unitary_factor(a + _eye(a))),
        (((2, 2, 2),), lambda a: unitary_factor(a + _eye(a))),
    ],
    orthogonal_procrustes: [
        (((3, 2), (3, 2)), lambda a, b: orthogonal_procrustes(a + _eye(a), b + _eye(b))[0]),
        (((3, 2), (3, 2)), lambda a, b: orthogonal_procrustes(a + _eye(a), b + _eye(b))[1]),
    ],
    polar: [
        (((3, 2),), lambda a: polar(a + _eye(a))[0]),
        (((3, 2),), lambda a: polar(a + _eye(a))[1]),
        (((2, 2, 3),), lambda a: polar(a + _eye(a), "left")[1]),
    ],
    # numgrad.operations.linear_algebra.schur
    schur_factors: [
        (((3, 3),), lambda a: schur_factors(np.real(a) + _APART)[0]),
        (((3, 3),), lambda a: schur_factors(np.real(a) + _APART)[1]),
        (((2, 3, 3),), lambda a: _invariant(*schur_factors(a + (1 + 1j) * _APART)[:2])[0]),
        (((3, 3),), lambda a: np.real(_invariant(*schur_factors(a + (1 + 1j) * _APART)[:2])[1])),
    ],
    schur: [
        (((3, 3),), lambda a: schur(np.real(a) + _APART)[0]),
        (((3, 3),), lambda a: _invariant(*schur(np.real(a) + _APART.T - 2, "complex"))[0]),
    ],
    triangular_form: [
        (((3, 3),), lambda t: _invariant(*triangular_form(_as_form(t)))[0]),
        (((2, 3, 3),), lambda t: np.real(_invariant(*triangular_form(_as_form(t)))[1])),
    ],
    rsf2csf: [
        (((3, 3), (3, 3)), lambda t, z: _invariant(*rsf2csf(_as_form(t), np.real(z)))[0]),
    ],
    hessenberg_factors: [
        (((4, 4),), lambda a: hessenberg_factors(a + _FULL)[0]),
        (((2, 4, 4),), lambda a: hessenberg_factors(a + _FULL)[1]),
        (((2, 2),), lambda a: hessenberg_factors(a)[0]),
    ],
    hessenberg: [(((4, 4),), lambda a: hessenberg(a + _FULL, calc_q=True)[1])],
    qz: [(((3, 3), (3, 3)), lambda a, b: qz(a, b)[0])],
    # numgrad.operations.linear_algebra.singular_values
    singular_values_alone: [
        (((2, 3, 2),), lambda a: singular_values_alone(a)),
    ],
    singular: [
        (((3, 3),), lambda a: _rebuilt(*singular(a + _spaced(a)))),
        (((4, 2),), lambda a: _rebuilt(*singular(a + _spaced(a)))),
        (((2, 3),), lambda a: _rebuilt(*singular(a + _spaced(a)))),
        (((3, 2),), lambda a: _projector(singular(a + _spaced(a), full=True)[0], 2)),
        (((2, 3),), lambda a: _projector(adjoint(singular(a + _spaced(a), full=True)[2]), 2)),
        (((3, 2),), lambda a: singular(a + _spaced(a))[1]),
    ],
    svd: [
        (((3, 2),), lambda a: _rebuilt(*svd(a + _spaced(a)))),
        (((2, 3),), lambda a: _rebuilt(*svd(a + _spaced(a), full_matrices=False))),
        (((3, 2),), lambda a: svd(a + _spaced(a), compute_uv=False)),
    ],
    svdvals: [
        (((3, 2),), lambda x: svdvals(x + _spaced(x))),
        (((2, 2, 3),), lambda x: svdvals(x + _spaced(x))),
        (((0, 2),), lambda x: svdvals(x)),
    ],
    pseudo_inverse: [
        (((3, 2),), lambda a: pseudo_inverse(a + _spaced(a))),
    ],
    pinv: [
        (((3, 2),), lambda a: pinv(a + _spaced(a))),
        (((2, 2, 3),), lambda a: pinv(a + _spaced(a))),
        (((3, 1), (1, 3)), lambda a, b: pinv(matmul(a, b), rcond=1e-8)),
        (((0, 2),), lambda a: pinv(a)),
    ],
    cond: [
        (((2, 3),), lambda x: cond(x + _spaced(x))),
        (((2, 2, 2),), lambda x: cond(x + _spaced(x), "fro")),
        (((2, 2),), lambda x: cond(x + _spaced(x), -2)),
        (((3, 3),), lambda x: cond(x + _spaced(x), np.inf)),
    ],
    lstsq: [
        (((4, 2), (4,)), lambda a, b: lstsq(a + _spaced(a), b)[0]),
        (((4, 2), (4, 2)), lambda a, b: lstsq(a + _spaced(a), b)[1]),
        (((2, 3), (2,)), lambda a, b: lstsq(a + _spaced(a), b).x),
    ],
    check_semidefinite: [
        (((3,), (1,)), lambda w, limits: check_semidefinite(np.abs(w), np.abs(limits))),
    ],
    pinvh: [
        (((2, 2),), lambda a: pinvh(a + 5 * np.eye(2))),
        (((2, 2, 2),), lambda a: pinvh(a + 5 * np.eye(2), lower=False)),
    ],
    # numgrad.operations.linear_algebra.solve
    factored_solve: [
        (((3, 3), (3, 2)), lambda a, b: _of_triangle(a, b, False)),
        (((3, 3), (2, 3, 1)), lambda a, b: _of_triangle(a, b, True)),
    ],
    solve: [
        (((3, 3), (3,)), lambda a, b: solve(_regular(a), b)),
        (((2, 3, 3), (3, 2)), lambda a, b: solve(_regular(a), b)),
        (((3, 3), (2, 3, 2)), lambda a, b: solve(_regular(a), b)),
        (((0, 0), (0,)), lambda a, b: solve(a, b)),
        (((0, 2, 2), (2, 1)), lambda a, b: solve(a, b)),
    ],
    inverse_or_zero: [(((2, 2, 2),), lambda a: inverse_or_zero(_regular(a)))],
    inv: [
        (((3, 3),), lambda a: inv(_regular(a))),
        (((2, 2, 2),), lambda a: inv(_regular(a))),
        (((0, 0),), lambda a: inv(a)),
    ],
    solve_assuming: [
        (((3, 3), (3,)), lambda a, b: solve_assuming(_dominant(a), b, assume_a="sym")),
        (
            ((3, 3), (3, 2)),
            lambda a, b: solve_assuming(_dominant(a), b, assume_a="pos", lower=True),
        ),
        (((2, 3, 3), (3,)), lambda a, b: solve_assuming(_dominant(a), b, assume_a="tridiagonal")),
    ],
    inv_assuming: [
        (((3, 3),), lambda a: inv_assuming(_dominant(a), assume_a="her")),
        (((3, 3),), lambda a: inv_assuming(_dominant(a), assume_a="upper triangular")),
    ],
    # numgrad.operations.linear_algebra.structured
    toeplitz: [(((3,),), lambda c: toeplitz(c)), (((2, 3), (2, 4)), lambda c, r: toeplitz(c, r))],
    hankel: [(((3,),), lambda c: hankel(c)), (((3,), (4,)), lambda c, r: hankel(c, r))],
    circulant: [(((3,),), lambda c: circulant(c)), (((2, 3),), lambda c: circulant(c))],
    companion: [(((3,),), lambda a: companion(a + 5)), (((2, 4),), lambda a: companion(a + 5))],
    khatri_rao: [(((2, 3), (4, 3)), lambda a, b: khatri_rao(a, b))],
    matmul_toeplitz: [
        (((3,), (3, 2)), lambda c, x: matmul_toeplitz(c, x)),
        (((3,), (2,), (2,)), lambda c, r, x: matmul_toeplitz((c, r), x)),
    ],
    toeplitz_solution: [
        (((3,), (3,), (3, 2)), lambda c, r, b: toeplitz_solution(_raised(c), r, b)),
    ],
    solve_toeplitz: [
        (((4,), (4,)), lambda c, b: solve_toeplitz((_raised(c), c * 0.5), b)),
        (((3,), (3, 2)), lambda c, b: solve_toeplitz(_raised(np.abs(c)), b)),
    ],
    banded_solution: [
        (
            ((3, 4), (4, 2)),
            lambda ab, b: banded_solution(_with_diagonal(ab, 1), b, below=1, above=1),
        ),
        (
            ((4, 5), (5, 1)),
            lambda ab, b: banded_solution(_with_diagonal(ab, 1), b, below=2, above=1),
        ),
    ],
    solve_banded: [
        (((4, 4), (4,)), lambda ab, b: solve_banded((1, 2), _with_diagonal(ab, 2), b)),
    ],
    block_diag: [
        (((2, 2), (1, 3)), lambda a, b: block_diag(a, b)),
        (((2,), (0, 1), (1, 1)), lambda a, b, c: block_diag(a, b, c)),
    ],
    eig_banded: [
        (((2, 4),), lambda a: eig_banded(_spaced_band(a, 1), eigvals_only=True)),
        (((3, 4),), lambda a: np.abs(eig_banded(_spaced_band(a, 0), lower=True)[1])),
    ],
    eigvals_banded: [(((2, 2, 3),), lambda a: eigvals_banded(_spaced_band(a, 1)))],
    eigh_tridiagonal: [
        (((4,), (3,)), lambda d, e: eigh_tridiagonal(d + 9 * np.arange(4), e)[0]),
    ],
    eigvalsh_tridiagonal: [
        (((3,), (2,)), lambda d, e: eigvalsh_tridiagonal(d + 9 * np.arange(3), e)),
    ],
    solveh_banded: [
        (((2, 4), (4,)), lambda ab, b: solveh_banded(_spaced_band(ab, 1), b)),
        (((3, 4), (4, 2)), lambda ab, b: solveh_banded(_spaced_band(ab, 0), b, lower=True)),
    ],
    # numgrad.operations.linear_algebra.triangular
    solve_triangle: [
        (((3, 3), (3, 2)), lambda a, b: solve_triangle(_regular(a), b, lower=True)),
        (((2, 3, 3), (3, 1)), lambda a, b: solve_triangle(_regular(a), b, of_adjoint=True)),
        (((2, 2), (3, 2, 1)), lambda a, b: solve_triangle(a, b, unit=True)),
    ],
    solve_triangular: [
        (((3, 3), (3,)), lambda a, b: solve_triangular(_regular(a), b, lower=True)),
        (((3, 3), (3, 2)), lambda a, b: solve_triangular(_regular(a), b, trans="T")),
        (((0, 0), (0,)), lambda a, b: solve_triangular(a, b)),
    ],
    cholesky: [
        (((3, 3),), lambda a: cholesky(_squared(a))),
        (((2, 2, 2),), lambda a: cholesky(_squared(a), upper=True)),
        (((0, 0),), lambda a: cholesky(a)),
    ],
    cho_factor: [
        (((3, 3),), lambda a: cho_factor(_squared(a))[0]),
    ],
    cho_solve: [
        (((3, 3), (3,)), lambda a, b: cho_solve(cho_factor(_squared(a)), b)),
        (((3, 3), (3, 2)), lambda a, b: cho_solve((_regular(a), True), b)),
    ],
    # numgrad.operations.linear_algebra.vector_products
    cross: [
        (((3,), (3,)), lambda a, b: cross(a, b)),
        (((2, 3), (3,)), lambda a, b: cross(a, b)),
        (((3, 2), (3, 2)), lambda a, b: cross(a, b, axis=0)),
        (((2,), (3,)), lambda a, b: cross(a, b)),
        (((3,), (2,)), lambda a, b: cross(a, b)),
        (((2,), (2,)), lambda a, b: cross(a, b)),
    ],
    cross_of_last: [
        (((2, 3), (2, 3)), lambda a, b: cross_of_last(a, b)),
    ],
    matvec: [
        (((2, 3), (3,)), lambda a, b: matvec(a, b)),
        (((2, 3), (4, 3)), lambda a, b: matvec(a, b)),
    ],
    vecmat: [
        (((2,), (2, 3)), lambda a, b: vecmat(a, b)),
        (((4, 2), (2, 3)), lambda a, b: vecmat(a, b)),
    ],
    multi_dot: [
        (((2, 3), (3, 4), (4, 2)), lambda *x: multi_dot(x)),
        (((3,), (3, 4), (4,)), lambda *x: multi_dot(x)),
    ],
    tensorsolve: [
        (((2, 3, 6), (2, 3)), lambda a, b: tensorsolve(a, b)),
        (((4, 2, 2), (2, 2)), lambda a, b: tensorsolve(a, b, axes=(0,))),
    ],
    tensorinv: [
        (((2, 3, 6),), lambda a: tensorinv(a)),
        (((4, 2, 2),), lambda a: tensorinv(a, ind=1)),
    ],
    diagonal_of_matrices: [
        (((2, 2, 3),), lambda x: diagonal_of_matrices(x)),
    ],
    trace_of_matrices: [
        (((2, 2, 3),), lambda x: trace_of_matrices(x)),
    ],
    outer_of_vectors: [
        (((2,), (3,)), lambda a, b: outer_of_vectors(a, b)),
    ],
}
CALLS |= {
    op: [
        (
            ((2, 2), (2, 1), (2, 2), (1, 1)),
            lambda a, b, q, r, op=op: op(0.3 * a, b + 1, _weights(q), _weights(r)),
        ),
    ]
    for op in (solve_continuous_are, solve_discrete_are)
}
CALLS |= {
    op: [((shape,), lambda a, op=op: op(0.3 * a)) for shape in ((3, 3), (2, 2, 2))]
    for op in (cosm, coshm, sinm, sinhm, tanm, tanhm)
}
