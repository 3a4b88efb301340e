"""``torch.linalg``: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numgrad as ng
from numgrad.errors import NumgradLinAlgError as LinAlgError
from numgrad.torch.calls import publish, table

__all__ = ["LinAlgError"]


def _vander(x: Any, n: Any) -> Any:
    count = x.shape[-1] if n is None else n
    return ng.expand_dims(x, -1) ** ng.arange(count)


TABLE = """
[same 1]
det(input): ng.linalg.det(input)
cholesky(input, *, upper=False): ng.linalg.cholesky(input, upper=upper)
inv(input): ng.linalg.inv(input)
matrix_power(input, n): ng.linalg.matrix_power(input, n)
matrix_exp(input): ng.linalg.expm(input)
eigvals(input): ng.linalg.eigvals(input)
eigvalsh(input, UPLO="L"): ng.linalg.eigvalsh(input, UPLO)
svdvals(input): ng.linalg.svdvals(input)
slogdet(input) -> sign logabsdet: ng.linalg.slogdet(input)
eig(input) -> eigenvalues eigenvectors: ng.linalg.eig(input)
eigh(input, UPLO="L") -> eigenvalues eigenvectors: ng.linalg.eigh(input, UPLO)
qr(input, mode="reduced") -> Q R: ng.linalg.qr(input, mode)
svd(input, full_matrices=True) -> U S Vh: ng.linalg.svd(input, full_matrices=full_matrices)
vecdot(x, y, *, dim=-1): ng.linalg.vecdot(x, y, axis=dim)
cross(input, other, *, dim=-1): ng.linalg.cross(input, other, axis=dim)
diagonal(A, *, offset=0, dim1=-2, dim2=-1): ng.diagonal(A, offset, dim1, dim2)
cond(input, p=None): ng.linalg.cond(input, p)
solve(A, B, *, left=True): ng.linalg.solve(A, B) if left else ng.linalg.solve(A.mT, B.mT).mT
multi_dot(tensors): ng.linalg.multi_dot(list(tensors))
tensorinv(input, ind=2): ng.linalg.tensorinv(input, ind)
tensorsolve(input, other, dims=None): ng.linalg.tensorsolve(input, other, dims)
householder_product(input, tau): ng.linalg.householder_product(input, tau)
vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None): ng.linalg.vector_norm(
    typed(x, dtype), ord=ord, axis=axes(dim), keepdims=keepdim)
matmul(input, other): ng.matmul(input, other)
vander(x, N=None): _vander(x, N)
aliases inverse=inv
"""
publish("linalg", globals(), table("linalg", globals(), TABLE))
