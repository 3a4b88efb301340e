"""Products of matrices: sums in loops where they are small, else a call; factors of small ones.

Products in loops fuse with what surrounds them. The others are terms ``product``, whose operands
are in memory: transposed operands are read where they are, and rows of the result are computed by
tasks as in any other loop.

Note [Matrices in loops]
------------------------
One operation without terms makes a loop run step by step, which takes some 50 us a step where a
filter's own arithmetic takes one. So in loops small matrices are factored element by element: terms
``matrix``, whose detail names a method of ``Elimination``. Where eager code raises an error, as of
a singular matrix, or takes another way, a check fails, and the steps are taken one by one. Larger
matrices, and stacks, are factored by kernels that the loop calls: ``kernels.matrices.loop_calls``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from numgrad.codegen.dtypes import BOOL, INT64
from numgrad.codegen.nests.block_products import ProductCode
from numgrad.codegen.nests.polynomial import Length, add, multiply, value_of
from numgrad.codegen.nests.small_arrays import INT32, MOST_ELEMENTS, extents
from numgrad.codegen.nests.terms import (
    CALL,
    FUSED,
    MATRIX,
    ONE,
    PRODUCT,
    VIEW,
    LibraryCall,
    Term,
    Terms,
    count,
)
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lookup import require, where
from numgrad.compiler.lower.lowering import Arithmetic, lowering
from numgrad.dataclass import dataclass
from numgrad.kernels.products.blocks import SLACK
from numgrad.kernels.products.gemm import MULTIPLY_NS, external

SMALL_PRODUCT, SMALL_FIXED = 2, 4
"""Two of the rows, columns and terms of a sum, up to which a matrix product is written as loops;
the same where these are known. So are products of which one is 1."""
SMALL_KNOWN = 8
"""One of the three, up to which products are that are made of numbers in registers: in steps of
loops, and of matrices whose lengths are known."""
SMALL_MATRICES = 4
"""All three, up to which batches of products are."""
NARROW_MATRICES = 64
"""Two of the three, up to which batches of products are if the third is over four times as long:
lanes go along it, and what surrounds the product fuses with it."""


PRODUCTS = ProductCode(
    "kernels.products.blas",
    "kernels.products.blocks",
    partial(external, "gemm"),
    MULTIPLY_NS,
    SLACK,
)
"""The code that kernels multiply matrices with."""


@dataclass(frozen=True)
class ProductSizes:
    """Sizes of a product of ``batch`` matrices of ``(m, k)`` with ``(k, n)``.

    ``trans`` says which operands are stored transposed, ``shared`` which are the same for the whole
    batch.
    """

    batch: Length
    m: Length
    n: Length
    k: Length
    trans: tuple[bool, bool]
    shared: tuple[bool, bool]


@lowering("matmul")
def matmul(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    """The matrix product; None for booleans."""
    a, b = args
    return multiplied(terms, node, a, b)


def multiplied(terms: Terms, node: TracedNode, a: Term, b: Term) -> Term | None:
    """``a @ b`` in the dtype of a node's result."""
    dtype = node.outputs[0].dtype
    if dtype.kind == "b":
        return None
    a, b = terms.cast(a, dtype), terms.cast(b, dtype)
    row, column = len(a.shape) == 1, len(b.shape) == 1
    a = terms.insert(a, (0,)) if row else a
    b = terms.insert(b, (1,)) if column else b
    lengths = (a.shape[-2], b.shape[-1], a.shape[-1])
    out = None
    least, middle, most = sorted(map(terms.sizes.hint_of, lengths))
    narrow = middle <= NARROW_MATRICES and most > 4 * middle
    batches = min(len(a.shape), len(b.shape)) > 2
    if terms.in_loop or all(value_of(n) is not None for n in lengths):
        small = least <= SMALL_KNOWN or (batches and middle <= NARROW_MATRICES)
    elif batches:
        small = most <= SMALL_MATRICES or narrow
    else:
        known = sum(value_of(n) is not None for n in lengths) > 1
        small = least <= 1 or middle <= (SMALL_FIXED if known else SMALL_PRODUCT)
    if dtype.kind == "f" and not small:
        out = _in_memory(terms, a, b)
    if out is None:
        out = _in_loops(terms, a, b)
    ends = (len(out.shape) - 2, row), (len(out.shape) - 1, column)
    return terms.drop(out, tuple(axis for axis, away in ends if away))


def _in_loops(terms: Terms, a: Term, b: Term) -> Term:
    pairs = terms.map(
        "multiply",
        [
            terms.insert(a, (len(a.shape) - 1,)),
            terms.insert(swapped(terms, b), (len(b.shape) - 2,)),
        ],
        a.dtype,
        FUSED if a.dtype.kind == "f" else None,
    )
    return terms.reduce("sum", pairs, (len(pairs.shape) - 1,))


def swapped(terms: Terms, x: Term) -> Term:
    """The last two axes in the other order."""
    rank = len(x.shape)
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    return terms.view("permute", x, (*range(rank - 2), rank - 1, rank - 2), shape)


def _in_memory(terms: Terms, a: Term, b: Term) -> Term | None:
    """The term ``product``; None if batches would have to be broadcast."""
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    batches = a.shape[:-2], b.shape[:-2]
    shape = (*(batches[0] or batches[1]), m, n)
    (left, trans_a), (right, trans_b) = _as_stored(a), _as_stored(b)
    if batches[0] and not batches[1] and not trans_a:  # one product with more rows
        m, batch, shared = count(a.shape[:-1]), ONE, (True, True)
    elif batches[0] and batches[1] and batches[0] != batches[1]:
        return None
    else:
        batch = count(batches[0] or batches[1])
        shared = (not batches[0], not batches[1])
    sizes = ProductSizes(batch, m, n, k, (trans_a, trans_b), shared)
    return terms.make(PRODUCT, (left, right), a.dtype, sizes, shape)


def _as_stored(x: Term) -> tuple[Term, bool]:
    """The part of an operand that is in memory, and whether its matrices are stored transposed."""
    trans = False
    if x.op == VIEW and x.detail[0] == "permute":
        rank = len(x.shape)
        if x.detail[1] == (*range(rank - 2), rank - 1, rank - 2):
            x, trans = x.args[0], True
    while x.op == VIEW and x.detail[0] in ("reshape", "insert", "drop"):
        x = x.args[0]
    return x, trans


Written = Callable[[Terms, TracedNode, list[Term], np.dtype], "list[Term] | Term"]

MOST_ROWS, MOST_CALLED = 8, 256
"""Rows of a small matrix, and of one that steps call a kernel for, at most."""


def _of_real(*names: str) -> Callable[[Written], Written]:
    """Declare how real matrices are written in steps: Note [Matrices in loops]."""

    def declare(write: Written) -> Written:
        def read(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | Term | None:
            dtype = node.outputs[0].dtype
            if dtype == BOOL:
                dtype = args[0].dtype
            if not terms.in_loop or dtype.kind != "f":
                return None
            if all(map(_is_small, args)) or _is_called(terms, args):
                return write(terms, node, args, dtype)
            return None

        lowering(*names)(read)
        return write

    return declare


def _is_small(x: Term) -> bool:
    """Whether a term is a matrix, or a right side, of few elements."""
    shape = extents(x.shape)
    return (
        shape is not None
        and len(shape) in (1, 2)
        and 0 < shape[0] <= MOST_ROWS
        and 0 < int(np.prod(shape)) <= MOST_ELEMENTS
    )


def _is_called(terms: Terms, args: Sequence[Term]) -> bool:
    """Whether a kernel is called for a stack of matrices and what belongs to each.

    Small ones of a length that is not known are left where steps are compiled for each length.
    """
    batch, n = args[0].shape[:-2], args[0].shape[-1]
    hint = terms.sizes.hint_of(n)
    small = not batch and value_of(n) is None and hint <= MOST_ROWS and not terms.any_length
    if small or hint > MOST_CALLED or len(args[0].shape) < 2:
        return False
    for x in args:
        rank = 1 if x.dtype == INT32 or len(x.shape) == 1 else 2  # pivots, a vector
        if x.shape[:-rank] != batch or all(length == ONE for length in x.shape):
            return False
    return True


def _called(
    terms: Terms, name: str, args: tuple[Term, ...], shape: tuple[Length, ...], *numbers: int
) -> Term:
    """The result of a kernel of ``kernels.matrices.loop_calls``, which ends in a matrix."""
    a, dtype = args[0], args[-1].dtype
    n, many = a.shape[-1], count(a.shape[:-2])
    lengths = (many, n) if len(args) == 1 else (many, n, shape[-1])
    work = multiply(multiply(many, n), multiply(n, shape[-1]))
    call = LibraryCall(f"kernels.matrices.loop_calls:{name}", dtype, lengths, numbers, work)
    return terms.make(CALL, args, dtype, call, shape)


def _matrix(terms: Terms, like: Term, args: tuple[Term, ...], *detail: object) -> Term:
    """The result of a method of ``Elimination``, of the shape and dtype of a term."""
    return terms.make(MATRIX, args, like.dtype, detail, like.shape)


def _factored(terms: Terms, a: Term) -> tuple[Term, Term]:
    if _is_small(a):
        pivots = terms.make(MATRIX, (a,), INT32, ("pivots",), a.shape[:1])
        return _matrix(terms, a, (a,), "factors"), pivots
    batch, n = a.shape[:-2], a.shape[-1]
    both = _called(terms, "factor_matrices", (a,), (*batch, add(n, ONE), n))
    whole = [((), ONE)] * len(a.shape)
    factors = terms.view("getitem", both, tuple(whole), a.shape)
    last = terms.view("getitem", both, (*whole[:-2], (n,), whole[-1]), (*batch, n))
    return factors, terms.cast(last, INT32)


def _diagonal(terms: Terms, a: Term) -> Term:
    rank = len(a.shape)
    return terms.view("diagonal", a, (0, rank - 2, rank - 1), a.shape[:-1])


def _of_each(terms: Terms, kind: str, x: Term) -> Term:
    """A reduction over what belongs to each matrix."""
    return terms.reduce(kind, x, (len(x.shape) - 1,))


def _require_pivots(terms: Terms, factors: Term) -> None:
    """Let an error be raised where a factor is singular."""
    zero = terms.constant(0.0, factors.dtype)
    require(terms, terms.map("not_equal", (_diagonal(terms, factors), zero), BOOL))


def _solution(terms: Terms, factors: Term, pivots: Term, b: Term, of_adjoint: bool = False) -> Term:
    """The solution of a system, for a vector or the columns of a matrix."""
    columns = terms.insert(b, (1,)) if len(b.shape) == 1 else b
    args = factors, pivots, columns
    if all(map(_is_small, args)):
        x = _matrix(terms, columns, args, "solution", of_adjoint)
    else:
        x = _called(terms, "solve_factored", args, columns.shape, int(of_adjoint))
    return x if columns is b else terms.drop(x, (1,))


def _identity(terms: Terms, a: Term) -> Term:
    zero, one = (terms.broadcast(terms.constant(v, a.dtype), a.shape) for v in (0.0, 1.0))
    lower = terms.choose("triangle", (one, zero), (0, True), a.shape)
    return terms.choose("triangle", (lower, zero), (0, False), a.shape)


@_of_real("solve")
def _solve(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> list[Term]:
    a, b = (terms.cast(x, dtype) for x in args)
    factors, pivots = _factored(terms, a)
    _require_pivots(terms, factors)
    return [_solution(terms, factors, pivots, b), factors, pivots]


@_of_real("factored_solve")
def _factored_solve(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> Term:
    _, factors, pivots, b = args
    factors, b = terms.cast(factors, dtype), terms.cast(b, dtype)
    return _solution(terms, factors, pivots, b, node.params["of_adjoint"])


@_of_real("inv")
def _inv(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> Term:
    a = terms.cast(args[0], dtype)
    factors, pivots = _factored(terms, a)
    _require_pivots(terms, factors)
    return _solution(terms, factors, pivots, _identity(terms, a))


@_of_real("det")
def _det(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> Term:
    return _determinant(terms, *_factored(terms, terms.cast(args[0], dtype)))


def _parity(terms: Terms, factors: Term, pivots: Term) -> Term:
    dtype = factors.dtype
    if _is_small(factors):
        return terms.make(MATRIX, (pivots,), dtype, ("parity",))
    places = terms.iota(pivots.shape, len(pivots.shape) - 1)
    first = terms.map("subtract", (terms.cast(pivots, INT64), terms.constant(1, INT64)), INT64)
    stays = terms.map("equal", (first, places), BOOL)
    return _of_each(
        terms, "prod", where(terms, stays, *[terms.constant(s, dtype) for s in (1.0, -1.0)])
    )


def _determinant(terms: Terms, factors: Term, pivots: Term) -> Term:
    value = _of_each(terms, "prod", _diagonal(terms, factors))
    return terms.map("multiply", (_parity(terms, factors, pivots), value), factors.dtype)


@_of_real("sign_and_logarithm")
def _slogdet(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> list[Term]:
    factors, pivots = _factored(terms, terms.cast(args[0], dtype))
    do, d = Arithmetic(terms, dtype), _diagonal(terms, factors)
    sizes = do("absolute", d)
    none = terms.map("equal", (sizes, do.of(0.0)), BOOL)
    signs = where(terms, none, do.of(0.0), do("divide", d, sizes))
    sign = do("multiply", _parity(terms, factors, pivots), _of_each(terms, "prod", signs))
    return [sign, _of_each(terms, "sum", do("log", sizes)), factors, pivots]


def _require_regular(terms: Terms, factors: Term) -> None:
    """Let eager code take its other way where a matrix is nearly singular."""
    do = Arithmetic(terms, factors.dtype)
    sizes = do("absolute", _diagonal(terms, factors))
    least, most = (_of_each(terms, kind, sizes) for kind in ("min", "max"))
    bound = do("multiply", most, float(np.sqrt(np.finfo(factors.dtype).eps)))
    require(terms, terms.map("greater", (least, bound), BOOL))


@_of_real("adjugate")
def _adjugate(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> Term:
    a = terms.cast(args[0], dtype)
    factors, pivots = _factored(terms, a)
    _require_regular(terms, factors)
    inverse = _solution(terms, factors, pivots, _identity(terms, a))
    rank = len(a.shape)
    value = terms.insert(_determinant(terms, factors, pivots), (rank - 2, rank - 1))
    return terms.map("multiply", (value, inverse), dtype)


@_of_real("solve_triangle")
def _solve_triangle(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> Term:
    a, b = (terms.cast(x, dtype) for x in args)
    flags = [bool(node.params[k]) for k in ("lower", "of_adjoint", "unit")]
    if _is_small(a) and _is_small(b):
        return _matrix(terms, b, (a, b), "triangle", *flags)
    columns = terms.insert(b, (1,)) if len(b.shape) == 1 else b
    form = sum(flag << bit for bit, flag in enumerate(flags))
    x = _called(terms, "solve_triangle", (a, columns), columns.shape, form)
    return x if columns is b else terms.drop(x, (1,))


@_of_real("check_diagonal")
def _check_diagonal(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> Term:
    _require_pivots(terms, args[0])
    return terms.constant(False, BOOL)


@_of_real("cholesky")
def _cholesky(terms: Terms, node: TracedNode, args: list[Term], dtype: np.dtype) -> Term:
    a, upper = terms.cast(args[0], dtype), node.params["upper"]
    lower = swapped(terms, a) if upper else a
    if _is_small(a):
        factor = _matrix(terms, a, (lower,), "lower")
    else:
        factor = _called(terms, "cholesky_factors", (lower,), a.shape)
    zero = terms.constant(0.0, dtype)
    require(terms, terms.map("greater", (_diagonal(terms, factor), zero), BOOL))
    return swapped(terms, factor) if upper else factor
