"""Rows of products of vectors and matrices: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from string import ascii_letters
from typing import Any

import numgrad as ng
from numgrad.core.op import OPS as OPS
from numgrad.torch.calls import axis_of as axis_of, cast, check_equal, table
from numgrad.torch.dtypes import common_dtype


def _sum(x: Any, beta: Any, product: Any, alpha: Any) -> Any:
    kind = {"b": bool, "i": int, "u": int}.get(product.dtype.kind)
    alpha, beta = (alpha, beta) if kind is None else (kind(alpha), kind(beta))
    product = product if alpha == 1 else alpha * product
    if beta == 0:
        return ng.broadcast_to(product, product.shape)
    return (x if beta == 1 else beta * x) + product


def _tensordot(a: Any, b: Any, dims: Any) -> Any:
    if getattr(dims, "ndim", None) == 0 or isinstance(dims, int):
        return ng.tensordot(a, b, int(dims)).astype(a.dtype)
    for i, j in zip(*dims, strict=True):  # axes of one element go with those of any length
        if a.shape[i] != b.shape[j] == 1:
            a = ng.sum(a, i, keepdims=True)
        elif b.shape[j] != a.shape[i] == 1:
            b = ng.sum(b, j, keepdims=True)
    return ng.tensordot(a, b, tuple(map(tuple, dims))).astype(a.dtype)


def cross(a: Any, b: Any, dim: Any) -> Any:
    """The cross product along an axis, the first one of length 3 where none is given."""
    a, b = ng.broadcast_arrays(a, b)
    dim = next((k for k, n in enumerate(a.shape) if n == 3), 0) if dim is None else dim
    out = ng.cross(a, b, axis=axis_of("cross", a, dim))
    return out if dim in (-1, a.ndim - 1) else ng.copy(out)


def _einsum(equation: Any, operands: Any) -> Any:
    if not isinstance(equation, str):  # after each operand its axes by number, those of the result
        return ng.einsum(equation, *operands)
    if len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = operands[0]
    equation, d = _without_ellipsis(equation.replace(" ", ""), operands), common_dtype(operands)
    terms, _, output = equation.partition("->")
    if {*terms} - {*output, ","}:
        check_equal("einsum", [x.dtype for x in operands])
    return ng.einsum(equation, *[cast(x, d) for x in operands])


def _without_ellipsis(equation: str, operands: Any) -> str:
    """Subscripts with letters for an ellipsis that the output lacks, over which is summed."""
    before, arrow, output = equation.partition("->")
    if not arrow or "..." not in before or "..." in output:
        return equation
    terms = before.split(",")
    counts = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    free = "".join([c for c in ascii_letters if c not in equation][: max(counts)])
    named = [t.replace("...", free[len(free) - n :]) for t, n in zip(terms, counts, strict=True)]
    return f"{','.join(named)}->{output}"


TABLE = """
[equal 2]
matmul(input, other): matmul == OPS["matmul"](input, other)
{mm=2 bmm=3}(input, mat2) if input.ndim == mat2.ndim == @: OPS["matmul"](input, mat2)
mv(input, vec) if input.ndim == vec.ndim + 1 == 2: OPS["matmul"](input, vec)
dot(input, tensor) if input.ndim == tensor.ndim == 1: OPS["matmul"](input, tensor)
vdot(input, other) if input.ndim == other.ndim == 1: OPS["matmul"](ng.conjugate(input), other)
cross(input, other, dim=None): cross(input, other, dim)
[number 2]
outer(input, vec2) if input.ndim == vec2.ndim == 1: ng.outer(input, vec2)
kron(input, other): ng.kron(input, other)
inner(input, other): ng.inner(input, other) if input.ndim and other.ndim else input * other
[equal 2 function]
tensordot(a, b, dims=2): _tensordot(a, b, dims)
cdist(x1, x2, p=2.0, compute_mode=None): ng.vector_norm(
    ng.expand_dims(x1, -2) - ng.expand_dims(x2, -3), ord=p, axis=-1)
[same 1 sizes=0 function]
chain_matmul(matrices): ng.linalg.multi_dot(list(matrices))
[same 0 function]
einsum(equation, *operands): _einsum(equation, operands)
[whole 1]
trace(input): ng.trace(input)
[whole 1 function]
vander(x, N=None, increasing=False): ng.vander(x, N, increasing).astype(x.dtype)
[same 1]
matrix_power(input, n): ng.linalg.matrix_power(input, n)
matrix_exp(input): ng.linalg.expm(input)
[equal 3 inplace]
addmm(input, mat1, mat2, *, beta=1, alpha=1) if mat1.ndim == mat2.ndim == 2: _sum(
    input, beta, OPS["matmul"](mat1, mat2), alpha)
addmv(input, mat, vec, *, beta=1, alpha=1) if mat.ndim == vec.ndim + 1 == 2: _sum(
    input, beta, OPS["matmul"](mat, vec), alpha)
baddbmm(input, batch1, batch2, *, beta=1, alpha=1) if batch1.ndim == batch2.ndim == 3: _sum(
    input, beta, OPS["matmul"](batch1, batch2), alpha)
addbmm(input, batch1, batch2, *, beta=1, alpha=1) if batch1.ndim == batch2.ndim == 3: _sum(
    input, beta, ng.sum(OPS["matmul"](batch1, batch2), 0).astype(batch1.dtype), alpha)
[number 3 inplace]
addr(input, vec1, vec2, *, beta=1, alpha=1) if vec1.ndim == vec2.ndim == 1: _sum(
    input, beta, ng.outer(vec1, vec2), alpha)
aliases ger=outer
"""
table("", globals(), TABLE)
