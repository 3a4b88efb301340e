"""Linear systems with a matrix or a linear function, by its matrix or by iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core.abstract import zeros
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import flatten, unflatten
from numgrad.errors import (
    NumgradLinAlgError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.implicit.solution import At, Equation, Map, Parts, Solver
from numgrad.implicit.unknowns import UnknownParts
from numgrad.operations.linear_algebra.systems import solve
from numgrad.operations.shape import as_operand
from numgrad.operations.sparse.functions import spsolve
from numgrad.operations.sparse.kinds import is_sparse_kind
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
        """What is left of the right side."""
        count = len(self.like)
        with self.at(inputs[count:]) as apply:
            applied = apply(z)
        return [y - b for y, b in zip(applied, inputs[:count], strict=True)]

    def solve(self, inputs: Parts) -> list[np.ndarray]:
        """By iteration."""
        count = len(self.like)
        b = [x._array for x in inputs[:count]]
        with no_grad(), self.at(inputs[count:]) as apply:
            return krylov(apply, b, self.method)


def solver_of(name: str, method: Linear, symmetric: bool) -> Solver | None:
    """What solves the systems of derivatives; None for the matrix."""
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
    ends = np.cumsum([0, *[part.size for part in b]])

    def parts(v: np.ndarray) -> list[Tensor]:
        cut = zip(ends[:-1], ends[1:], b, strict=True)
        return [Tensor(v[s:e].reshape(p.shape).astype(p.dtype)) for s, e, p in cut]

    def matvec(v: Any) -> np.ndarray:
        found = apply(parts(np.asarray(v).ravel()))
        return np.concatenate([np.asarray(y._array).ravel() for y in found])

    vector = np.concatenate([part.ravel() for part in b])
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
        at, rest = _given(lambda z: [a @ z[0]]), []
    else:
        at, rest = _given(lambda z, m: [m @ z[0]]), [OPS["astype"](a, dtype)]
    return LinearSystem(at, [b], method, method == "cg").solution([b], [b, *rest])[0]


def _given(apply: Callable[..., Sequence[Tensor]]) -> At:
    """A linear map that takes what it depends on as further arguments."""
    return lambda rest: nullcontext(lambda z: apply(z, *rest))


def _of_function(a: Callable, b: Any, args: Sequence[Any], method: Linear) -> Any:
    """The solution for a linear function."""
    right = UnknownParts(LinearSystem.name, b, "b", real=False)
    own: list[Any] = []
    structure = flatten(tuple(args), own)
    inputs = [x for x in own if isinstance(x, Tensor)]

    def apply(z: Parts, *given: Tensor) -> list[Tensor]:
        others = iter(given)
        leaves = [next(others) if isinstance(x, Tensor) else x for x in own]
        found: list[Any] = []
        nesting = flatten(a(right.nested(z), *unflatten(structure, iter(leaves))), found)
        shapes = [np.shape(y) for y in found]
        if nesting != right.nesting or shapes != right.shapes:
            raise NumgradValueError(
                f"linear_solve: the function returned arrays of shapes {shapes} for an argument "
                f"of shapes {right.shapes}; it returns what is shaped and nested like b"
            )
        return [y if isinstance(y, Tensor) else Tensor(np.asarray(y)) for y in found]

    nothing = [Tensor(zeros(x.shape, x.dtype)) for x in right.leaves]
    for y in apply(nothing, *inputs):
        numbers = state.ground.numbers(y)
        if numbers is not None and np.any(numbers):
            raise NumgradValueError(
                "linear_solve: the function of zeros is not zero, so it is not linear; move what "
                "it adds to b"
            )
    if method != "dense":
        system = LinearSystem(_given(apply), right.leaves, method, method == "cg")
        return right.nested(system.solution(right.leaves, [*right.leaves, *inputs]))
    vector = _raveled(right.leaves)
    ends = np.cumsum([0, *[int(x.size) for x in right.leaves]])

    def parts(v: Tensor) -> list[Tensor]:
        cut = zip(ends[:-1], ends[1:], right.leaves, strict=True)
        return [OPS["reshape"](v[s:e], x.shape) for s, e, x in cut]

    units = Tensor(np.eye(int(ends[-1]), dtype=vector.dtype))
    matrix = OPS["matrix_transpose"](vmap(lambda e: _raveled(apply(parts(e), *inputs)))(units))
    found = solve(matrix, vector)
    _check_linear(lambda x: _raveled(apply(parts(x), *inputs)), matrix, found)
    return right.nested(parts(found))


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


def _raveled(parts: Sequence[Tensor]) -> Tensor:
    return OPS["concat"]([OPS["reshape"](x, (-1,)) for x in parts])
