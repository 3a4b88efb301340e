"""``torch.linalg``, and matrices in the topmost module: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.batching.batch import Batched
from numgrad.core.op import OPS
from numgrad.errors import NumgradLinAlgError, NumgradRuntimeError
from numgrad.torch.arguments import LinAlgError as LinAlgError
from numgrad.torch.calls import publish, table
from numgrad.torch.table_products import cross as cross_product  # noqa: F401 (in the table)

__all__ = ["LinAlgError"]


_swapped = ng.linalg.matrix_transpose


def _adjoint(x: Any) -> Any:
    return ng.conjugate(_swapped(x))


def _solve(a: Any, b: Any, left: bool = True) -> Any:
    """Vectors are those of as many axes as ``a`` has but one, of the same batch."""
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if vector:
        b = ng.expand_dims(b, -1)
    out = ng.linalg.solve(a, b) if left else _swapped(ng.linalg.solve(_swapped(a), _swapped(b)))
    return ng.squeeze(out, -1) if vector else out


def _checked(function: Any, x: Any, *args: Any, check_errors: bool = False) -> tuple[Any, Any]:
    """A result, and 0, or where a matrix has none 1, in one integer a matrix."""
    info = np.zeros(x.shape[:-2], np.int32)
    try:
        out = function(x, *args)
    except NumgradLinAlgError:
        if check_errors:
            raise
        out, info = ng.zeros_like(x), info + 1
    return out, ng.asarray(info)


def _triangular(a: Any, b: Any, upper: bool, left: bool = True, unit: bool = False) -> Any:
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (ng.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (a, b))
    if not left:
        return _swapped(_triangular(_swapped(a), _swapped(b), not upper, True, unit))
    return ng.linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unit)


def _hermitian(x: Any) -> Any:
    """Matrices with what is below the diagonal above it, too; gradients are those of ``x``."""
    given = x.detach()
    below = ng.tril(given, -1)
    return x + (below + _adjoint(below) + ng.tril(ng.triu(ng.real(given))) - given)


def _array(x: Any) -> Any:
    return getattr(x, "_array", x)


def _limit(x: Any, atol: Any, rtol: Any) -> Any:
    """The part of the largest singular value up to which others count as zero."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * np.finfo(x.dtype).eps if atol is None else 0.0
    if atol is None or 0 in x.shape:
        return rtol
    return ng.maximum(atol / ng.norm(x.detach(), 2, (-2, -1)), rtol)


def _lstsq(a: Any, b: Any, rcond: Any, driver: Any) -> tuple[Any, ...]:
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    b = ng.expand_dims(b, -1) if vector else b
    x = OPS["matmul"](ng.linalg.pinv(a), b)
    rank = ng.linalg.matrix_rank(a, rtol=_limit(a, None, rcond)).astype(np.int64)
    rows, columns = a.shape[-2:]
    residuals = ng.sum(ng.abs(b - OPS["matmul"](a, x)) ** 2, -2)
    has = driver not in (None, "gelsy") and rows > columns
    if not (has and (isinstance(rank, Batched) or bool((rank._array == columns).all()))):
        residuals = ng.reshape(residuals[..., :0], (-1,))
    nothing = ng.zeros((0,), residuals.dtype)
    singular = ng.linalg.svdvals(a.detach()) if driver in ("gelss", "gelsd") else nothing
    rank = ng.zeros((0,), np.int64) if driver == "gels" else rank
    return ng.squeeze(x, -1) if vector else x, residuals, rank, singular


def _pivoted(a: Any, pivot: bool) -> Any:
    if not pivot:
        raise NumgradRuntimeError("lu: without pivoting it is done on GPUs only; use pivot=True")
    return a


def _lu_factor(a: Any, *info: bool) -> tuple[Any, ...]:
    """The factors, the rows that were exchanged, counted from 1, and no errors, if asked for."""
    lu, pivots = ng.linalg.lu_factor(a)
    infos = [ng.zeros(a.shape[:-2], np.int32) for wanted in info if wanted]
    return lu, OPS["astype"](pivots + 1, dtype=np.dtype(np.int32)), *infos


def _lu_unpack(lu: Any, pivots: Any, data: bool, with_pivots: bool) -> tuple[Any, ...]:
    p, lower, upper = ng.linalg.lu_unpack((lu, pivots - 1))
    nothing = ng.zeros((0,), lu.dtype)
    return (p if with_pivots else nothing), *((lower, upper) if data else (nothing, nothing))


def _lu_solve(lu: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    if left:
        return ng.linalg.lu_solve((lu, pivots - 1), b, 2 if adjoint else 0)
    return _adjoint(_lu_solve(lu, pivots, _adjoint(b), True, not adjoint))


def _ormqr(x: Any, tau: Any, other: Any, left: bool, transpose: bool) -> Any:
    count, missing = tau.shape[-1], x.shape[-2] - tau.shape[-1]
    ends = [(0, 0)] * (x.ndim - 1)
    x, tau = ng.pad(x[..., :count], [*ends, (0, missing)]), ng.pad(tau, [*ends[1:], (0, missing)])
    q = ng.linalg.householder_product(x, tau)
    q = _adjoint(q) if transpose else q
    return OPS["matmul"](q, other) if left else OPS["matmul"](other, q)


def _of_factor(x: Any, upper: bool) -> Any:
    """``L L*`` of a triangle ``L``; gradients are, as PyTorch's, those of whole matrices."""
    given = x.detach()
    x = x + ((ng.triu if upper else ng.tril)(given) - given)
    return OPS["matmul"](_adjoint(x), x) if upper else OPS["matmul"](x, _adjoint(x))


def _svd_v(x: Any, some: bool, compute_uv: bool = True) -> tuple[Any, Any, Any]:
    """The singular vectors on the right in columns; zeros in place of vectors left out."""
    if not compute_uv:
        u, v = (ng.zeros((*x.shape[:-2], n, n), x.dtype) for n in x.shape[-2:])
        return u, ng.linalg.svdvals(x), v
    u, s, vh = ng.linalg.svd(x, full_matrices=not some)
    return u, s, _adjoint(vh)


def _low_rank(x: Any, count: int) -> tuple[Any, Any, Any]:
    """The largest singular values, exact: numbers do not depend on a random start."""
    u, s, v = _svd_v(x, True)
    return u[..., :count], s[..., :count], v[..., :count]


_SHARED = """
[same 1]
{det inverse=inv}(input): ng.linalg.@(input)
slogdet(input) -> sign logabsdet: ng.linalg.slogdet(input)
qr(input, some=True) -> Q R: ng.linalg.qr(input, "reduced" if some else "complete")
svd(input, some=True, compute_uv=True) -> U S V: _svd_v(input, some, compute_uv)
cholesky(input, upper=False): ng.linalg.cholesky(input, upper=upper)
cholesky_inverse(input, upper=False): ng.linalg.inv(_of_factor(input, upper))
logdet(input): ng.log(ng.linalg.det(input))
pinverse(input, rcond=1e-15): ng.linalg.pinv(input, rcond)
geqrf(input) -> a tau: (lambda h, tau: (_swapped(h), tau))(*ng.linalg.qr(input, "raw"))
lu(A, pivot=True, get_infos=False) -> LU pivots info: _lu_factor(_pivoted(A, pivot), get_infos)
svd_lowrank(A, q=6, niter=2, M=None): _low_rank(A if M is None else A - M, q)
pca_lowrank(A, q=None, center=True, niter=2): _low_rank(
    A - ng.mean(A, -2, keepdims=True) if center else A, min(6, *A.shape[-2:]) if q is None else q)
[equal 2]
cholesky_solve(input, input2, upper=False): ng.linalg.solve(_of_factor(input2, upper), input)
orgqr(input, tau): ng.linalg.householder_product(input, tau)
triangular_solve(b, A, upper=True, transpose=False, unitriangular=False)
    -> solution cloned_coefficient: (_triangular(_swapped(A) if transpose else A, b,
    upper != transpose, True, unitriangular), A.clone())
lu_solve(b, LU_data, LU_pivots): _lu_solve(LU_data, LU_pivots, b)
[equal 3]
ormqr(input, tau, other, left=True, transpose=False): _ormqr(input, tau, other, left, transpose)
[same 1 function]
lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True) -> P L U: _lu_unpack(
    LU_data, LU_pivots, unpack_data, unpack_pivots)
"""
TABLE = """
[same 1]
{det inv eigvals matrix_exp=expm}(input): ng.linalg.@(input)
cholesky(input, *, upper=False): ng.linalg.cholesky(input, upper=upper)
cholesky_ex(input, *, upper=False, check_errors=False) -> L info: _checked(
    lambda x: ng.linalg.cholesky(x, upper=upper), input, check_errors=check_errors)
inv_ex(input, *, check_errors=False) -> inverse info: _checked(
    ng.linalg.inv, input, check_errors=check_errors)
matrix_power(input, n): ng.linalg.matrix_power(input, n)
eigvalsh(input, UPLO="L"): ng.linalg.eigvalsh(input, UPLO)
svdvals(input, *, driver=None): ng.linalg.svdvals(input)
slogdet(input) -> sign logabsdet: ng.linalg.slogdet(input)
eig(input) -> eigenvalues eigenvectors: ng.linalg.eig(input)
eigh(input, UPLO="L") -> eigenvalues eigenvectors: ng.linalg.eigh(input, UPLO)
qr(A, mode="reduced") -> Q R: (
    (ng.zeros((0,), A.dtype), ng.linalg.qr(A, mode)) if mode == "r" else ng.linalg.qr(A, mode))
svd(A, full_matrices=True, *, driver=None) -> U S Vh: ng.linalg.svd(A, full_matrices)
diagonal(A, *, offset=0, dim1=-2, dim2=-1): ng.diagonal(A, offset, dim1, dim2)
cond(input, p=None): ng.linalg.cond(input, p)
tensorinv(input, ind=2): ng.linalg.tensorinv(input, ind)
matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None): ng.linalg.matrix_rank(
    A, hermitian=hermitian, rtol=_limit(A, tol if atol is None else atol, rtol))
pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None): ng.linalg.pinv(
    _hermitian(A) if hermitian else A,
    rtol=_array(_limit(A, atol, rcond if rtol is None else rtol)))
lu(A, *, pivot=True) -> P L U: ng.linalg.lu(_pivoted(A, pivot))
lu_factor(A, *, pivot=True) -> LU pivots: _lu_factor(_pivoted(A, pivot))
lu_factor_ex(A, *, pivot=True, check_errors=False) -> LU pivots info: _lu_factor(
    _pivoted(A, pivot), True)
[same 1 dtype axes]
vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None): ng.linalg.vector_norm(
    x, ord=ord, axis=dim, keepdims=keepdim)
[same 1 dtype]
matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None): ng.norm(
    A, ord, tuple(dim), keepdim)
norm(A, ord=None, dim=None, keepdim=False, *, dtype=None): ng.norm(A, ord, dim, keepdim)
[equal 2]
householder_product(input, tau): ng.linalg.householder_product(input, tau)
lstsq(A, B, rcond=None, *, driver=None) -> solution residuals rank singular_values: _lstsq(
    A, B, rcond, driver)
tensorsolve(input, other, dims=None): ng.linalg.tensorsolve(input, other, dims)
vecdot(x, y, *, dim=-1): ng.linalg.vecdot(*ng.broadcast_arrays(x, y), axis=dim)
cross(input, other, *, dim=-1): cross_product(input, other, dim)
solve(A, B, *, left=True): _solve(A, B, left)
solve_ex(A, B, *, left=True, check_errors=False) -> result info: _checked(
    _solve, A, B, left, check_errors=check_errors)
solve_triangular(A, B, *, upper, left=True, unitriangular=False): _triangular(
    A, B, upper, left, unitriangular)
matmul(input, other): ng.matmul(input, other)
[equal 0,2]
lu_solve(LU, pivots, B, *, left=True, adjoint=False): _lu_solve(LU, pivots, B, left, adjoint)
[equal 1]
multi_dot(tensors): ng.linalg.multi_dot(list(tensors))
[same 1]
vander(x, N=None): OPS["astype"]((x if x.ndim else ng.reshape(x, (1,)))[..., None] ** np.arange(
    (x.shape or (1,))[-1] if N is None else N), dtype=x.dtype)
"""
table("", globals(), _SHARED)
publish("linalg", globals(), table("linalg", globals(), TABLE))
