"""Solvers of equations and of linear systems: SciPy's, iterative ones, or the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core.abstract import zeros
from numgrad.core.foreign import is_sparse_kind
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import flatten, leaves, map_leaves, unflatten
from numgrad.errors import (
    NumgradLinAlgError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.implicit.solution import At, Equation, Map, Parts, Solver
from numgrad.implicit.unknowns import Residual, UnknownParts
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.shape import as_operand
from numgrad.operations.sparse_matrices import spsolve
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.mapping import vmap

Linear: TypeAlias = str | Callable[..., Any]
"""``"dense"``, ``"cg"``, ``"gmres"``, or a function of a linear map and a vector."""


class LinearSystem(Equation):
    """``A(x) = b`` for a linear function, solved without its matrix.

    Inputs are the parts of ``b``, and what ``A`` depends on.
    """

    name = "linear_solve"

    def __init__(self, at: At, like: Parts, method: Linear, symmetric: bool) -> None:
        self.at, self.like, self.method = at, like, method
        self.symmetric = symmetric
        self.linear = solver_of(self.name, method, symmetric)

    def residual(self, z: Parts, inputs: Parts) -> list[Tensor]:
        """Residual of the right side."""
        count = len(self.like)
        with self.at(inputs[count:]) as apply:
            applied = apply(z)
        return [y - b for y, b in zip(applied, inputs[:count], strict=True)]

    def solve(self, inputs: Parts) -> list[np.ndarray]:
        """Solve the system by iteration."""
        count = len(self.like)
        b = [x._array for x in inputs[:count]]
        with no_grad(), self.at(inputs[count:]) as apply:
            return krylov(apply, b, self.method)


def solver_of(name: str, method: Linear, symmetric: bool) -> Solver | None:
    """Choose the solver of the systems of derivatives; None for the matrix."""
    if method == "dense":
        return None
    if not callable(method) and method not in ("cg", "gmres"):
        raise NumgradValueError(
            f"{name}: linear systems are solved by 'dense', 'cg', 'gmres', or a function of "
            f"(matvec, b); got {method!r}"
        )

    def solved(at: At, right: Parts, point: Parts) -> list[Tensor]:
        system = LinearSystem(at, right, method, symmetric or method == "cg")
        return list(system.solution(right, [*right, *point]))

    return solved


def krylov(apply: Map, b: Sequence[np.ndarray], method: Linear) -> list[np.ndarray]:
    """Solutions by SciPy's iterative methods, or a function of the caller's."""
    name = LinearSystem.name
    dtype = np.result_type(*b)
    ends = np.cumsum([0, *[array.size for array in b]])

    def parts(v: np.ndarray) -> list[Tensor]:
        cut = zip(ends[:-1], ends[1:], b, strict=True)
        return [Tensor(v[s:e].reshape(p.shape).astype(p.dtype)) for s, e, p in cut]

    def matvec(v: Any) -> np.ndarray:
        products = apply(parts(np.asarray(v).ravel()))
        return np.concatenate([np.asarray(y._array).ravel() for y in products])

    vector = np.concatenate([array.ravel() for array in b])
    if callable(method):
        x = method(matvec, vector)
        x = np.asarray(x._array if isinstance(x, Tensor) else x)
        if x.size != vector.size:
            raise NumgradValueError(
                f"{name}: the solver returned shape {x.shape} for a vector of shape {vector.shape}"
            )
    else:
        linalg: Any = import_module("scipy.sparse.linalg")
        operator = linalg.LinearOperator((vector.size,) * 2, matvec=matvec, dtype=dtype)
        tolerance = 100 * np.finfo(dtype).eps
        options = {"restart": min(vector.size, 100)} if method == "gmres" else {}
        with np.errstate(all="ignore"):
            x, info = getattr(linalg, method)(
                operator, vector, rtol=tolerance, maxiter=max(1000, 10 * vector.size), **options
            )
        left = np.linalg.norm(matvec(x) - vector)
        if not left <= np.sqrt(np.finfo(dtype).eps) * np.linalg.norm(vector):
            raise NumgradRuntimeError(
                f"{name}: {method} stopped after {info} steps with a residual of {left:.3g} for a "
                f"right side of norm {np.linalg.norm(vector):.3g}; "
                + ("is the matrix symmetric and positive definite? " if method == "cg" else "")
                + "Use method='dense', or a solver of your own with a preconditioner"
            )
    cut = zip(ends[:-1], ends[1:], b, strict=True)
    return [x.ravel()[s:e].reshape(p.shape).astype(p.dtype) for s, e, p in cut]


def linear_solve(a: Any, b: Any, args: Sequence[Any] = (), *, method: Linear = "dense") -> Any:
    """Solve ``A x = b``, differentiable in ``A`` and ``b``.

    Parameters
    ----------
    a
        A square matrix (array, Tensor or ``scipy.sparse``), or a linear function ``a(x, *args)``
        of what is shaped and nested like ``b``.
    b
        The right side: for a matrix of shape (n,) or (n, k), for a function any nesting of arrays.
    args
        Further arguments of a function, in which the solution is differentiated. What it closes
        over is followed by the tape as well; by forward mode, ``vmap`` and ``ng.jit`` only with
        ``method="dense"``.
    method
        ``"dense"`` factors the matrix, of a function by applying it to unit vectors; of a sparse
        one it uses its sparse factors. ``"cg"``, for symmetric (Hermitian) positive definite
        matrices, and ``"gmres"`` apply ``a`` only, as does a function ``method(matvec, b)`` of
        yours, which gets a linear map of vectors and a vector.

    Returns
    -------
    Tensor or nesting
        The solution, shaped and nested like ``b``.

    Raises
    ------
    NumgradLinAlgError
        If the matrix is singular or not square.
    NumgradRuntimeError
        If an iteration does not converge.
    NumgradTypeError, NumgradValueError
        If arguments are of the wrong kind or shape, or the function is not linear.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def solved(k):
    ...     return ng.implicit.linear_solve(lambda x, k: k * x, np.ones(2), (k,), method="cg")
    >>> ng.jacobian(solved)(2.0)
    array([-0.25, -0.25])
    """
    solver_of(LinearSystem.name, method, False)
    if callable(a):
        return _of_function(a, b, args, method)
    if args:
        raise NumgradTypeError("linear_solve: args are those of a function, and a is a matrix")
    sparse = is_sparse_kind(type(a))
    a, b = a if sparse else as_operand(a), as_operand(b)
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise NumgradLinAlgError(
            f"linear_solve: a has shape {tuple(a.shape)}; it is one square matrix"
        )
    if len(b.shape) not in (1, 2) or b.shape[0] != a.shape[0]:
        raise NumgradValueError(
            f"linear_solve: b has shape {tuple(b.shape)}, a {tuple(a.shape)}; b is a vector with "
            "an element for each row, or a matrix with a row for each"
        )
    if method == "dense":
        return spsolve(state.ground.made(a.tocoo().data), a, b) if sparse else solve(a, b)
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    b = OPS["astype"](b, dtype)
    if len(b.shape) == 2:
        columns = [linear_solve(a, b[:, k], method=method) for k in range(b.shape[1])]
        return OPS["stack"](columns, axis=1) if columns else b
    if sparse:
        at, rest = _with_arguments(lambda z: [a @ z[0]]), []
    else:
        at, rest = _with_arguments(lambda z, m: [m @ z[0]]), [OPS["astype"](a, dtype)]
    return LinearSystem(at, [b], method, method == "cg").solution([b], [b, *rest])[0]


def _with_arguments(apply: Callable[..., Sequence[Tensor]]) -> At:
    """A linear map that takes what it depends on as further arguments."""
    return lambda rest: nullcontext(lambda z: apply(z, *rest))


def _of_function(a: Callable, b: Any, args: Sequence[Any], method: Linear) -> Any:
    """The solution for a linear function."""
    right = UnknownParts(LinearSystem.name, b, "b", real=False)
    arguments: list[Any] = []
    structure = flatten(tuple(args), arguments)
    inputs = [x for x in arguments if isinstance(x, Tensor)]

    def apply(z: Parts, *tensors: Tensor) -> list[Tensor]:
        others = iter(tensors)
        leaves = [next(others) if isinstance(x, Tensor) else x for x in arguments]
        values: list[Any] = []
        nesting = flatten(a(right.nested(z), *unflatten(structure, iter(leaves))), values)
        shapes = [np.shape(y) for y in values]
        if nesting != right.nesting or shapes != right.shapes:
            raise NumgradValueError(
                f"linear_solve: the function returned arrays of shapes {shapes} for an argument "
                f"of shapes {right.shapes}; it returns what is shaped and nested like b"
            )
        return [y if isinstance(y, Tensor) else Tensor(np.asarray(y)) for y in values]

    nothing = [Tensor(zeros(x.shape, x.dtype)) for x in right.leaves]
    for y in apply(nothing, *inputs):
        numbers = state.ground.numbers(y)
        if numbers is not None and np.any(numbers):
            raise NumgradValueError(
                "linear_solve: the function of zeros is not zero, so it is not linear; move what "
                "it adds to b"
            )
    if method != "dense":
        system = LinearSystem(_with_arguments(apply), right.leaves, method, method == "cg")
        return right.nested(system.solution(right.leaves, [*right.leaves, *inputs]))
    vector = _raveled(right.leaves)
    ends = np.cumsum([0, *[int(x.size) for x in right.leaves]])

    def parts(v: Tensor) -> list[Tensor]:
        cut = zip(ends[:-1], ends[1:], right.leaves, strict=True)
        return [OPS["reshape"](v[s:e], x.shape) for s, e, x in cut]

    units = Tensor(np.eye(int(ends[-1]), dtype=vector.dtype))
    matrix = OPS["matrix_transpose"](vmap(lambda e: _raveled(apply(parts(e), *inputs)))(units))
    solution = solve(matrix, vector)
    _check_linear(lambda x: _raveled(apply(parts(x), *inputs)), matrix, solution)
    return right.nested(parts(solution))


def _check_linear(apply: Callable[[Tensor], Tensor], matrix: Tensor, x: Tensor) -> None:
    """Look whether the function does with the solution what its matrix does, given numbers."""
    m, v = (state.ground.numbers(t) for t in (matrix, x))
    if m is None or v is None:
        return
    with no_grad():
        got = state.ground.numbers(apply(Tensor(np.array(v))))
    if got is None:
        return
    size = np.linalg.norm(m) * np.linalg.norm(v)
    if np.linalg.norm(got - m @ v) > np.sqrt(np.finfo(m.dtype).eps) * size:
        raise NumgradValueError(
            "linear_solve: the function does otherwise with the solution than with unit vectors, "
            "so it is not linear; solve it by ng.implicit.root"
        )


def _raveled(arrays: Sequence[Tensor]) -> Tensor:
    return OPS["concat"]([OPS["reshape"](x, (-1,)) for x in arrays])


_POLISHED = 500
"""UnknownParts up to which steps of Newton's method improve what a solver found."""

_WITH_JACOBIAN = ("hybr", "lm")
_FEW = 1000
"""UnknownParts up to which minima are found with the whole Hessian."""


def own_solver(
    unknowns: UnknownParts, solver: Callable, function: Callable, start: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Call a solver of the caller's with ``(function, x0)``."""

    def plain_function(z: Any, *rest: Any) -> Any:
        if any(isinstance(leaf, Tensor) for leaf in leaves(z)):
            return function(z, *rest)
        with no_grad():
            return _numbers(function(z, *rest))

    result = solver(plain_function, unknowns.nested([a if a.ndim else a[()] for a in start]))
    if hasattr(result, "x") and hasattr(result, "success"):  # as SciPy says it
        if not result.success:
            raise failed(unknowns.name, getattr(result, "message", "no message"), result.x)
        result = result.x
    return unknowns.checked(result, "the solver")


def _numbers(value: Any) -> Any:
    """A nesting of Tensors as arrays."""
    return map_leaves(_as_array, value)


def _as_array(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    array = value._array
    return array if array.ndim else array[()]


def failed(name: str, message: Any, at: Any) -> NumgradRuntimeError:
    """The error for a solver that gave up."""
    with np.printoptions(threshold=10, precision=6):
        shown = str(np.asarray(at)) if np.ndim(at) <= 1 else f"an array of shape {np.shape(at)}"
    return NumgradRuntimeError(
        f"{name}: the solver stopped without a solution: {str(message).strip()}; it reached "
        f"{shown}. Start closer, or choose another solver"
    )


@contextmanager
def _known_method(name: str, method: str) -> Iterator[None]:
    """Call a solver of SciPy's, which refuses methods that it does not know."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ValueError as error:
        if not str(error).startswith("Unknown solver"):
            raise
        raise NumgradValueError(
            f"{name}: SciPy has no method {method!r} for this; the documentation of "
            "scipy.optimize lists them"
        ) from error


def check_solved(unknowns: UnknownParts, residual: Residual, start: Any, solution: Any) -> None:
    """Raise if what a solver of the caller's returned is far from a solution."""
    before, after = (
        float(np.linalg.norm(unknowns.value(residual, unknowns.vector(z))))
        for z in (start, solution)
    )
    if not after <= 1e-3 * (1 + before):
        raise failed(
            unknowns.name,
            f"what has to be zero has norm {after:.3g} (at the start {before:.3g})",
            unknowns.vector(solution),
        )


def scipy_root(
    unknowns: UnknownParts, residual: Residual, start: np.ndarray, method: str, tol: float | None
) -> np.ndarray:
    """A root by ``scipy.optimize.root``, with the exact Jacobian where the method takes one."""
    optimize: Any = import_module("scipy.optimize")
    jacobian = (lambda v: unknowns.jacobian(residual, v)) if method in _WITH_JACOBIAN else None
    with _known_method(unknowns.name, method):
        result = optimize.root(
            lambda v: unknowns.value(residual, v), start, jac=jacobian, method=method, tol=tol
        )
    v = np.asarray(result.x, np.float64).reshape(start.shape)
    return accepted(unknowns, residual, start, v, result)


def scipy_minimum(
    unknowns: UnknownParts,
    objective: Callable[[Sequence[Tensor]], Tensor],
    gradient: Residual,
    start: np.ndarray,
    method: str | None,
    tol: float | None,
) -> np.ndarray:
    """A minimum by ``scipy.optimize.minimize``, with exact derivatives."""
    optimize: Any = import_module("scipy.optimize")
    method = method or ("trust-exact" if start.size <= _FEW else "L-BFGS-B")
    lowercase = method.lower()

    def value(v: np.ndarray) -> float:
        with no_grad():
            return float(objective([Tensor(a) for a in unknowns.arrays(v)])._array)

    derivatives: dict[str, Any] = {}
    if lowercase not in ("nelder-mead", "powell", "cobyla", "cobyqa"):
        derivatives["jac"] = lambda v: unknowns.value(gradient, v)
    if lowercase in ("newton-cg", "dogleg", "trust-exact", "trust-krylov", "trust-ncg"):
        derivatives["hess"] = lambda v: unknowns.jacobian(gradient, v)
    with _known_method(unknowns.name, method):
        result = optimize.minimize(
            value, start, method=method, tol=1e-8 if tol is None else tol, **derivatives
        )
    v = np.asarray(result.x, np.float64)
    return accepted(unknowns, gradient, start, v, result)


def accepted(
    unknowns: UnknownParts, residual: Residual, start: np.ndarray, v: np.ndarray, result: Any
) -> np.ndarray:
    """Improve the result of a solver by Newton's method; raise if it is no solution."""
    r = unknowns.value(residual, v)
    for _ in range(3 if v.size <= _POLISHED and np.isfinite(r).all() else 0):
        if not r.any():
            break
        try:
            step = np.linalg.solve(unknowns.jacobian(residual, v), r)
        except np.linalg.LinAlgError:
            break
        moved = unknowns.value(residual, v - step)
        if not np.linalg.norm(moved) < np.linalg.norm(r):
            break
        v, r = v - step, moved
    eps = max(np.finfo(dtype).eps for dtype in unknowns.dtypes)
    scale = 1 + np.linalg.norm(unknowns.value(residual, start))
    if not result.success and not np.linalg.norm(r) <= np.sqrt(eps) * scale:
        raise failed(unknowns.name, result.message, v)
    return v


def iterated(
    unknowns: UnknownParts,
    function: Residual,
    start: Sequence[np.ndarray],
    tol: float | None,
    most: int = 10_000,
) -> list[np.ndarray]:
    """A fixed point, by applying the function until it changes nothing any more."""
    z = list(start)
    eps = max(np.finfo(dtype).eps for dtype in unknowns.dtypes)
    least_change = 4 * eps if tol is None else tol
    change, least, since = np.inf, np.inf, 0
    for _ in range(most):
        with no_grad(), np.errstate(all="ignore"):
            after = [y._array for y in function([Tensor(a) for a in z])]
        size = max(np.max(np.abs(a), initial=0.0) for a in after)
        change = max(
            np.max(np.abs(np.asarray(a) - b), initial=0.0) for a, b in zip(after, z, strict=True)
        )
        z = [np.asarray(a, dtype) for a, dtype in zip(after, unknowns.dtypes, strict=True)]
        if not np.isfinite(change):
            break
        if change <= least_change * (1 + size):
            return z
        since = 0 if change < least else since + 1
        least = min(least, change)
        if since > 20 and change <= 1e3 * least_change * (
            1 + size
        ):  # rounding goes round in circles
            return z
    raise failed(
        unknowns.name,
        f"applied over and over, the function still changes its argument by {change:.3g}, so it is "
        "no contraction near the start",
        unknowns.vector(z),
    )
