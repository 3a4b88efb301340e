"""Systems of equations and inverses, of any matrices and of those whose structure is known.

The factors that a solution is computed with are kept for its gradients.

Of what is symmetric one triangle is read, of what is triangular or has few diagonals only these;
gradients go to what is read. ``solve`` and ``inv`` come here with the parameters that only SciPy's
functions have (``Op.wider``).
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from numgrad.core.declare import BatchOperand, Meta, Op, apply, bind, composite, prepared
from numgrad.errors import NumgradValueError
from numgrad.kernels.matrices import systems
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.choice import where
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.triangular import cho_factor, cho_solve, solve_triangular
from numgrad.operations.shape import as_operand, expand_dims, squeeze
from numgrad.operations.shared_rules import of_matrices

INT32 = np.dtype(np.int32)


def factors_shape(a: Any, dtype: np.dtype) -> tuple[Meta, Meta]:
    """Metas of factors and pivots: Note [Factors] in ``kernels.matrices.systems``."""
    return Meta(a.shape, dtype), Meta(a.shape[:-1], INT32)


def _right_sides(b: np.ndarray, batch: tuple[int, ...], count: int, dtype: np.dtype) -> np.ndarray:
    """New right sides (count, n, k) for factors of a stack of that size or of one matrix."""
    rows, columns = b.shape[-2:]
    if count == 1 and prod(batch) != 1:  # one matrix: all as columns of one right side
        side_by_side = np.array(np.moveaxis(b, -2, 0), dtype, order="C")
        return side_by_side.reshape(1, rows, prod(b.shape[:-2]) * columns)
    return matrices.stacked(np.broadcast_to(b, (*batch, rows, columns)), dtype)


def _unfolded(x: np.ndarray, batch: tuple[int, ...], columns: int) -> np.ndarray:
    """Solutions as a stack of the shape ``batch``."""
    if len(x) == 1 and prod(batch) != 1:
        split = x.reshape(x.shape[1], *batch, columns)
        return np.ascontiguousarray(np.moveaxis(split, 0, -2))
    return x.reshape(*batch, x.shape[1], columns)


def substituted(
    factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, of_adjoint: bool
) -> np.ndarray:
    """Solutions by factors, of a stack that broadcasts against that of ``b``."""
    n, columns = b.shape[-2:]
    lead = factors.shape[:-2]
    batch = np.broadcast_shapes(lead, b.shape[:-2])
    if prod(lead) != 1 and lead != batch:
        factors = np.broadcast_to(factors, (*batch, n, n))
        lead = batch
    pivots = np.broadcast_to(pivots, (*lead, n))
    dtype = np.result_type(factors, b)
    if dtype != factors.dtype or not factors.flags.c_contiguous:
        factors = np.ascontiguousarray(factors, dtype)
    count = prod(factors.shape[:-2])
    b = b if b.shape[:-2] == batch else np.broadcast_to(b, (*batch, n, columns))
    x = _right_sides(b, batch, count, dtype)
    pivots = np.ascontiguousarray(pivots).reshape(count, n)
    systems.substitute(factors.reshape(count, n, n), pivots, x, of_adjoint)
    return _unfolded(x, batch, columns)


@prepared(internal=True, method=False, smooth=True)
def factored_solve(a, factors, pivots, b, *, of_adjoint=False):
    """Solve ``a @ x = b``, or with the adjoint of ``a``, by the factors of ``a``."""
    return lambda a, factors, pivots, b: substituted(factors, pivots, b, of_adjoint)


@factored_solve.shape
def _factored_solve_shape(a, factors, pivots, b, *, of_adjoint):
    return Meta(matrices.check_right_side("solve", a, b), np.result_type(factors.dtype, b.dtype))


@factored_solve.batch
def _factored_solve_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    a, factors, pivots, b = operands
    ndim = max(a.ndim, b.ndim)
    arguments = (a.aligned(ndim), factors.aligned(ndim), pivots.aligned(ndim - 1), b.aligned(ndim))
    return bind(op, arguments, params)


def _factored_solve_vjp_a(g, a, factors, pivots, y, of_adjoint):
    z = factored_solve(a, factors, pivots, g, of_adjoint=not of_adjoint)
    return (
        -(matrices.product(y, matrices.adjoint(z)))
        if of_adjoint
        else -(matrices.product(z, matrices.adjoint(y)))
    )


factored_solve.no_derivative("factors", "pivots")
factored_solve.vjp(
    a=_factored_solve_vjp_a,
    b=lambda g, a, factors, pivots, of_adjoint: factored_solve(
        a, factors, pivots, g, of_adjoint=not of_adjoint
    ),
)


@prepared(ref=np.linalg.solve, method=False, auxiliaries=("factors", "pivots"), smooth=True)
def solve(a, b):
    """The ``x`` of ``a @ x = b`` for square matrices; ``b`` with one axis is a vector.

    SciPy's ``assume_a``, ``lower`` and ``transposed`` are taken by name: of ``"sym"``, ``"her"``
    and ``"pos"`` one triangle is read, of ``"diagonal"``, ``"tridiagonal"``, ``"upper triangular"``
    and ``"lower triangular"`` only these, and gradients are in what is read.

    Returns
    -------
    Tensor
        Of the shape of ``b``, with the stacks of both operands broadcast.

    Raises
    ------
    NumgradLinAlgError
        If a matrix is singular or not square.

    Examples
    --------
    >>> a = ng.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> ng.linalg.solve(a, ng.tensor([2.0, 2.0]))
    tensor([1. , 0.5])
    """
    matrices.check_square("solve", a)
    shape = matrices.check_right_side("solve", a, b)
    dtype = matrices.computing_dtype("solve", a, b)
    right = b.shape if b.ndim > 1 else (*b.shape, 1)
    lead = a.shape[:-2]
    run = None
    if lead == right[:-2]:
        run = systems.solving(lead, right[-2], right[-1], dtype)
    if run is None:
        return partial(_solve_by_factors, dtype, shape, right)
    of_factors, of_pivots = a.shape, a.shape[:-1]
    empty, packed = np.empty, np.ascontiguousarray

    def compute(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        factors, pivots, x = empty(of_factors, dtype), empty(of_pivots, INT32), empty(right, dtype)
        info = run(packed(a, dtype), packed(b, dtype).reshape(right), factors, pivots, x)
        if info:
            matrices.check_nonzero_pivots("solve", info, lead)
        return x.reshape(shape), (factors, pivots)

    return compute


def _solve_by_factors(
    dtype: np.dtype, shape: tuple[int, ...], right: tuple[int, ...], a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Solutions by LAPACK, or of stacks that broadcast."""
    lead, b = a.shape[:-2], b.reshape(right)
    x = None
    if lead == right[:-2]:
        x, factors, pivots, info = systems.solved(
            matrices.as_stack(a, dtype), matrices.as_stack(b, dtype)
        )
    else:
        factors = matrices.stacked(a, dtype)
        pivots, info = systems.factored(factors)
    if info is not None:
        matrices.check_nonzero_pivots("solve", info, lead)
    if len(lead) != 1:
        factors, pivots = factors.reshape(a.shape), pivots.reshape(a.shape[:-1])
    if x is None:
        x = substituted(factors, pivots, b, False)
    return x.reshape(shape), (factors, pivots)


@solve.shape
def _solve_shape(a, b):
    matrices.check_square("solve", a)
    dtype = matrices.computing_dtype("solve", a, b)
    return Meta(matrices.check_right_side("solve", a, b), dtype), factors_shape(a, dtype)


def _right_gradient(g: Any, a: Any, factors: Any, pivots: Any, meta_b: Meta) -> tuple[Any, bool]:
    vector = len(meta_b.shape) == 1
    columns = expand_dims(g, -1) if vector else g
    return factored_solve(a, factors, pivots, columns, of_adjoint=True), vector


def _solve_vjp_a(g, a, factors, pivots, y, meta_b):
    z, vector = _right_gradient(g, a, factors, pivots, meta_b)
    return -(matrices.product(z, matrices.adjoint(expand_dims(y, -1) if vector else y)))


def _solve_vjp_b(g, a, factors, pivots, meta_b):
    z, vector = _right_gradient(g, a, factors, pivots, meta_b)
    return squeeze(z, -1) if vector else z


solve.vjp(a=_solve_vjp_a, b=_solve_vjp_b)


@solve.vjp_kernel
def _solve_backward(call, mask):
    meta_a, meta_b = call.metas
    right = meta_b.shape if meta_b.ndim > 1 else (*meta_b.shape, 1)
    lead, dtype = meta_a.shape[:-2], np.result_type(meta_a.dtype, meta_b.dtype)
    run = None
    if mask & 1 and lead == right[:-2] and meta_a.dtype == meta_b.dtype:
        run = systems.solving_backward(lead, right[-2], right[-1], dtype)
    if run is None:
        return partial(_solve_backward_by_factors, meta_a, meta_b, mask)
    of_a = meta_a.shape
    empty, array = np.empty, np.array

    def backward(
        g: np.ndarray, a: np.ndarray, factors: np.ndarray, pivots: np.ndarray, y: np.ndarray
    ) -> tuple[list[Any], int]:
        ga, z = empty(of_a, dtype), array(g, order="C")
        run(factors, pivots, z.reshape(right), y.reshape(right), ga)
        return [ga, z if mask & 2 else None], mask

    return backward


def _solve_backward_by_factors(
    meta_a: Meta,
    meta_b: Meta,
    mask: int,
    g: np.ndarray,
    a: np.ndarray,
    factors: np.ndarray,
    pivots: np.ndarray,
    y: Any = None,
) -> tuple[list[Any], int]:
    """Gradients by LAPACK, or of stacks that broadcast, or of operands of two dtypes."""
    vector = meta_b.ndim == 1
    z = substituted(factors, pivots, g[..., None] if vector else g, True)
    ga = gb = None
    if mask & 1:
        ga = matrices.fitted(
            matrices.product(-z, matrices.adjoint(y[..., None] if vector else y)), meta_a
        )
    if mask & 2:
        gb = matrices.fitted(z[..., 0] if vector else z, meta_b)
    return [ga, gb], mask


@solve.batch
def _solve_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    a, b = operands
    if a.ndim < 2 or not b.ndim:
        return NotImplemented
    vector = b.batched and b.ndim == 1
    if vector:
        b = BatchOperand(apply("expand_dims", b.value, axis=-1), True)
    if b.ndim > 1:
        ndim = max(a.ndim, b.ndim)
        x = bind(op, (a.aligned(ndim), b.aligned(ndim)), {})
    else:
        x = bind(op, (a.value, b.value), {})
    return apply("squeeze", x, axis=-1) if vector else x


@prepared(ref=np.linalg.inv, method=False, smooth=True)
def inv(a):
    """Inverses of square matrices.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradLinAlgError
        If a matrix is singular or not square.

    Examples
    --------
    >>> ng.linalg.inv(ng.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    invert, batch = _inverting(a), a.shape[:-2]

    def compute(a: np.ndarray) -> np.ndarray:
        x, info = invert(a)
        if info is not None:
            matrices.check_nonzero_pivots("inv", info, batch)
        return x

    return compute


def _inverting(a: Meta) -> Callable[[np.ndarray], tuple[np.ndarray, Any]]:
    """The kernel of inverses of arrays of a shape and dtype, and where there are none."""
    matrices.check_square("inv", a)
    dtype, shape, n = matrices.computing_dtype("inv", a), a.shape, a.shape[-1]

    def invert(a: np.ndarray) -> tuple[np.ndarray, Any]:
        work = matrices.as_stack(a, dtype)
        x, _, _, info = systems.solved(work, np.broadcast_to(np.eye(n, dtype=dtype), work.shape))
        return x.reshape(shape), info

    return invert


@inv.shape
def _inv_shape(a):
    matrices.check_square("inv", a)
    return Meta(a.shape, matrices.computing_dtype("inv", a))


def _inv_vjp(g, y):
    across = matrices.adjoint(y)
    return -(matrices.product(matrices.product(across, g), across))


@prepared(internal=True, method=False, smooth=True)
def inverse_or_zero(a):
    """Inverses of square matrices, zeros for singular ones."""
    invert, batch = _inverting(a), a.shape[:-2]

    def compute(a: np.ndarray) -> np.ndarray:
        x, info = invert(a)
        if info is not None:
            x[info.reshape(batch) != 0] = 0
        return x

    return compute


inverse_or_zero.shape(_inv_shape)
for _op in (inv, inverse_or_zero):
    _op.vjp(a=_inv_vjp)
    _op.vjp_kernel(lambda call, mask: lambda g, y: ([_inv_vjp(g, y)], 1))
    _op.jvp(lambda t_a, y: -(matrices.product(matrices.product(y, t_a), y)))
    _op.batch(of_matrices)


_SHORT = {
    "general": "gen", "symmetric": "sym", "hermitian": "her", "positive definite": "pos",
    "banded": "gen", None: "gen",
}  # fmt: skip
_STRUCTURES = (
    "gen", "sym", "her", "pos", "diagonal", "tridiagonal", "upper triangular", "lower triangular",
)  # fmt: skip


def _structure(operation: str, assume_a: Any) -> str:
    result = _SHORT.get(assume_a, assume_a) if assume_a is None or type(assume_a) is str else None
    if result not in _STRUCTURES:
        known = ", ".join(repr(s) for s in (*_STRUCTURES, "banded"))
        raise NumgradValueError(f"{operation}: assume_a is one of {known}, got {assume_a!r}")
    return result


def _of_diagonals(a: Any, reach: int) -> Any:
    """Diagonals alone, so many beside the main one."""
    n = a.shape[-1].__index__()
    return where(
        matrices.constant(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= reach), a, 0
    )


def _solved(a: Any, b: Any, structure: str, lower: bool, transposed: bool) -> Any:
    if structure == "pos":
        factor = cho_factor(matrices.mirrored(a, lower), lower=True)
        if transposed and a.dtype.kind == "c":  # the transpose is the conjugate
            return np.conj(cho_solve(factor, np.conj(b)))
        return cho_solve(factor, b)
    if structure in ("diagonal", "upper triangular", "lower triangular"):
        a = _of_diagonals(a, 0) if structure == "diagonal" else a
        trans = "T" if transposed else "N"
        return solve_triangular(a, b, trans, structure == "lower triangular")
    if structure in ("sym", "her"):
        a = matrices.mirrored(a, lower, structure == "her")
    elif structure == "tridiagonal":
        a = _of_diagonals(a, 1)
    return solve(matrix_transpose(a) if transposed else a, b)


@composite(internal=True, method=False, smooth=True)
def solve_assuming(a, b, *, assume_a=None, lower=False, transposed=False):
    """The ``x`` of ``a @ x = b`` for matrices of a structure, or of their transposes."""
    a, b = as_operand(a), as_operand(b)
    matrices.check_square("solve", a)
    matrices.check_right_side("solve", a, b)
    return _solved(a, b, _structure("solve", assume_a), bool(lower), bool(transposed))


@composite(internal=True, method=False, smooth=True)
def inv_assuming(a, *, assume_a=None, lower=False):
    """Inverses of matrices of a structure."""
    a = as_operand(a)
    matrices.check_square("inv", a)
    structure = _structure("inv", assume_a)
    if structure == "gen":
        return inv(a)
    unit = matrices.identity(a.shape[-1], matrices.computing_dtype("inv", a))
    return _solved(a, unit, structure, bool(lower), False)


solve.wider, inv.wider = solve_assuming, inv_assuming
