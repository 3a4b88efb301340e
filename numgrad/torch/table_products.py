"""Rows of products of vectors and matrices: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError
from numgrad.torch.calls import axis_of, cast, check_equal, table
from numgrad.torch.dtypes import common_dtype


def _ranks(name: str, *pairs: tuple[Any, int]) -> None:
    for x, rank in pairs:
        if x.ndim != rank:
            raise NumgradRuntimeError(f"{name}: expected a {rank}-D tensor, but got {x.ndim}-D")


def _matmul(name: str, a: Any, b: Any, ranks: tuple[int, int]) -> Any:
    _ranks(name, (a, ranks[0]), (b, ranks[1]))
    return OPS["matmul"](a, b)


def _outer(a: Any, b: Any) -> Any:
    _ranks("outer", (a, 1), (b, 1))
    return ng.outer(a, b)


def _batch_sum(a: Any, b: Any) -> Any:
    product = _matmul("addbmm", a, b, (3, 3))
    return ng.sum(product, 0).astype(product.dtype)


def _sum(x: Any, beta: Any, product: Any, alpha: Any) -> Any:
    if product.dtype.kind in "biu":
        alpha, beta = (kind_of_number(product)(n) for n in (alpha, beta))
    product = product if alpha == 1 else alpha * product
    if beta == 0:
        return ng.broadcast_to(product, product.shape)
    return (x if beta == 1 else beta * x) + product


def kind_of_number(x: Any) -> type:
    """Python's type of numbers beside a Tensor of integers or booleans."""
    return bool if x.dtype.kind == "b" else int


def _tensordot(a: Any, b: Any, dims: Any) -> Any:
    dims = int(dims) if getattr(dims, "ndim", None) == 0 else dims
    if not isinstance(dims, int):  # axes of one element go with those of any length
        for i, j in zip(*dims, strict=True):
            if a.shape[i] != b.shape[j] == 1:
                a = ng.sum(a, i, keepdims=True)
            elif b.shape[j] != a.shape[i] == 1:
                b = ng.sum(b, j, keepdims=True)
    out = ng.tensordot(a, b, dims if isinstance(dims, int) else tuple(map(tuple, dims)))
    return out.astype(a.dtype)


def cross(a: Any, b: Any, dim: Any) -> Any:
    """The cross product along an axis, the first one of length 3 where none is given."""
    a, b = ng.broadcast_arrays(a, b)
    if dim is None:
        dim = next((k for k, n in enumerate(a.shape) if n == 3), 0)
    if not a.ndim or a.shape[axis_of("cross", a, dim)] != 3:
        raise NumgradRuntimeError(
            f"cross: inputs dimension {dim} must have length 3, got shape {list(a.shape)}"
        )
    out = ng.cross(a, b, axis=dim)
    return out if dim in (-1, a.ndim - 1) else ng.copy(out)


def _cdist(a: Any, b: Any, p: float) -> Any:
    difference = ng.expand_dims(a, -2) - ng.expand_dims(b, -3)
    return ng.vector_norm(difference, ord=p, axis=-1)


_LETTERS = ascii_uppercase + ascii_lowercase


def _einsum(equation: Any, operands: Any) -> Any:
    if isinstance(equation, str) and len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = operands[0]
    if not isinstance(equation, str):  # after each operand its axes by number, those of the result
        given = (equation, *operands)
        operands, axes = given[: len(given) & -2 : 2], [*given[1::2], *given[len(given) & -2 :]]
        terms = ["".join(["..." if k is ... else _LETTERS[k] for k in each]) for each in axes]
        count = len(operands)
        equation = ",".join(terms[:count]) + "".join([f"->{term}" for term in terms[count:]])
    if "..." in equation and "->" in equation:
        equation = _without_ellipsis(equation.replace(" ", ""), operands)
    terms, _, output = equation.partition("->")
    if {*terms} - {*output, ",", " "}:
        check_equal("einsum", [x.dtype for x in operands])
    return ng.einsum(equation, *alike(operands))


def alike(tensors: Any) -> list[Any]:
    """Tensors in their common dtype."""
    d = common_dtype(tensors)
    return [cast(x, d) for x in tensors]


def _without_ellipsis(equation: str, operands: Any) -> str:
    """Subscripts with letters for an ellipsis that the output lacks, over which is summed."""
    before, _, output = equation.partition("->")
    if "..." in output:
        return equation
    terms = before.split(",")
    counts = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True)]
    free = [c for c in ascii_letters if c not in equation][: max(counts)]
    named = [
        t.replace("...", "".join(free[len(free) - n :])) for t, n in zip(terms, counts, strict=True)
    ]
    return f"{','.join(named)}->{output}"


TABLE = """
[equal 2]
matmul(input, other): matmul == OPS["matmul"](input, other)
mm(input, mat2): _matmul("mm", input, mat2, (2, 2))
bmm(input, mat2): _matmul("bmm", input, mat2, (3, 3))
mv(input, vec): _matmul("mv", input, vec, (2, 1))
dot(input, tensor): _matmul("dot", input, tensor, (1, 1))
vdot(input, other): _matmul("vdot", ng.conjugate(input), other, (1, 1))
cross(input, other, dim=None): cross(input, other, dim)
[number 2]
outer(input, vec2): _outer(input, vec2)
kron(input, other): ng.kron(input, other)
inner(input, other): ng.inner(input, other) if input.ndim and other.ndim else input * other
[equal 2 function]
tensordot(a, b, dims=2): _tensordot(a, b, dims)
cdist(x1, x2, p=2.0, compute_mode=None): _cdist(x1, x2, p)
[same 0 function]
chain_matmul(*matrices): ng.linalg.multi_dot(list(matrices))
einsum(equation, *operands): _einsum(equation, operands)
[whole 1]
trace(input): ng.trace(input)
[whole 1 function]
vander(x, N=None, increasing=False): ng.vander(x, N, increasing).astype(x.dtype)
[same 1]
matrix_power(input, n): ng.linalg.matrix_power(input, n)
matrix_exp(input): ng.linalg.expm(input)
[equal 3 inplace]
addmm(input, mat1, mat2, *, beta=1, alpha=1): _sum(
    input, beta, _matmul("addmm", mat1, mat2, (2, 2)), alpha)
addmv(input, mat, vec, *, beta=1, alpha=1): _sum(
    input, beta, _matmul("addmv", mat, vec, (2, 1)), alpha)
addbmm(input, batch1, batch2, *, beta=1, alpha=1): _sum(
    input, beta, _batch_sum(batch1, batch2), alpha)
baddbmm(input, batch1, batch2, *, beta=1, alpha=1): _sum(
    input, beta, _matmul("baddbmm", batch1, batch2, (3, 3)), alpha)
[number 3 inplace]
addr(input, vec1, vec2, *, beta=1, alpha=1): _sum(input, beta, _outer(vec1, vec2), alpha)
aliases ger=outer
"""
table("", globals(), TABLE)
