"""``root``, ``fixed_point`` and ``argmin``: solutions with derivatives in parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.core.interpreter import state
from numgrad.core.tree import Nesting, flatten, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.implicit import solvers
from numgrad.implicit.solution import Equation, Parts
from numgrad.implicit.unknowns import UnknownParts
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.linearization import Linearization, filled


class SolverArguments:
    """The arguments of the function besides the unknowns: Tensors and arrays in any nesting."""

    def __init__(self, name: str, args: Any) -> None:
        if not isinstance(args, tuple | list):
            raise NumgradTypeError(
                f"{name}: args is a {type(args).__name__}; give a tuple, as in args=(a,)"
            )
        self._leaves: list[Any] = []
        self._nesting: Nesting = flatten(tuple(args), self._leaves)
        self.inputs = [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]

    def nested(self, inputs: Sequence[Tensor]) -> tuple:
        """The arguments with others in place of the Tensors."""
        tensors = iter(inputs)
        leaves = [next(tensors) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves]
        return unflatten(self._nesting, iter(leaves))


class Root(Equation):
    """``f(z, *args) = 0``."""

    name = "root"

    def __init__(
        self,
        f: Callable,
        x0: Any,
        args: Any,
        solver: Any,
        linear: solvers.Linear,
        tol: float | None,
    ) -> None:
        if not callable(f):
            raise NumgradTypeError(f"{self.name}: takes a function, got a {type(f).__name__}")
        if not (solver is None or isinstance(solver, str) or callable(solver)):
            raise NumgradTypeError(
                f"{self.name}: solver is a {type(solver).__name__}; give None, the name of a "
                "method of SciPy's, or a function of (f, x0)"
            )
        self.f, self.solver, self.tol = f, solver, tol
        self.unknowns = UnknownParts(self.name, x0)
        self.parameters = SolverArguments(self.name, args)
        self.linear = solvers.solver_of(self.name, linear, self.symmetric)

    def result(self) -> Any:
        """The solution in the nesting of the start."""
        start = self.unknowns.leaves
        with no_grad():
            inputs = [x if x.is_leaf and not x.requires_grad else x.detach() for x in start]
        return self.unknowns.nested(self.solution(start, [*inputs, *self.parameters.inputs]))

    def _split(self, inputs: Parts) -> tuple[Parts, tuple]:
        """The start, and the arguments."""
        count = len(self.unknowns.leaves)
        return inputs[:count], self.parameters.nested(inputs[count:])

    def _evaluate(self, z: Parts, args: tuple) -> list[Tensor]:
        """The parts of what the function returns."""
        leaves: list[Any] = []
        flatten(self.f(self.unknowns.nested(z), *args), leaves)
        for leaf in leaves:
            if leaf is None or isinstance(leaf, str):
                raise NumgradTypeError(
                    f"{self.name}: the function returned a {type(leaf).__name__}; return arrays"
                )
        return [x if isinstance(x, Tensor) else Tensor(np.asarray(x, np.float64)) for x in leaves]

    def residual(self, z: Parts, inputs: Parts) -> list[Tensor]:
        """Call the function."""
        residuals = self._evaluate(z, self._split(inputs)[1])
        equations, unknowns = (sum(int(x.size) for x in arrays) for arrays in (residuals, z))
        if equations != unknowns:
            raise NumgradValueError(
                f"{self.name}: the function returned {equations} numbers for {unknowns} unknowns "
                f"(shapes {[tuple(x.shape) for x in residuals]} for {self.unknowns.shapes}); there "
                "are as many equations as unknowns"
            )
        return residuals

    def solve(self, inputs: Parts) -> list[np.ndarray]:
        """Solve by SciPy or the caller's solver."""
        start, args = self._split(inputs)
        arrays = [np.array(x._array) for x in start]
        if callable(self.solver):
            solution = solvers.own_solver(
                self.unknowns, self.solver, lambda z: self.f(z, *args), arrays
            )
            solvers.check_solved(
                self.unknowns, lambda z: self.residual(z, inputs), arrays, solution
            )
            return solution
        return self.unknowns.arrays(self._by_scipy(inputs, self.unknowns.vector(arrays)))

    def _by_scipy(self, inputs: Parts, start: np.ndarray) -> np.ndarray:
        method = self.solver if isinstance(self.solver, str) else "hybr"
        start = start.astype(np.float64)
        return solvers.scipy_root(
            self.unknowns, lambda z: self.residual(z, inputs), start, method, self.tol
        )


class FixedPoint(Root):
    """``f(z, *args) = z``."""

    name = "fixed_point"

    def _applied(self, z: Parts, inputs: Parts) -> list[Tensor]:
        values = self._evaluate(z, self._split(inputs)[1])
        shapes = [tuple(x.shape) for x in values]
        if shapes != self.unknowns.shapes:
            raise NumgradValueError(
                f"fixed_point: the function returned arrays of shapes {shapes} for an argument of "
                f"shapes {self.unknowns.shapes}; it returns what is like its argument"
            )
        return values

    def residual(self, z: Parts, inputs: Parts) -> list[Tensor]:
        """Difference between the argument and the function's value."""
        return [x - y for x, y in zip(z, self._applied(z, inputs), strict=True)]

    def solve(self, inputs: Parts) -> list[np.ndarray]:
        """Solve by iteration, unless a solver is given."""
        if self.solver is not None:
            return super().solve(inputs)
        start = [np.array(x._array) for x in self._split(inputs)[0]]
        return solvers.iterated(self.unknowns, lambda z: self._applied(z, inputs), start, self.tol)


class Argmin(Root):
    """``grad f(z, *args) = 0``."""

    name = "argmin"
    symmetric = True

    def _objective(self, z: Parts, args: tuple) -> Tensor:
        values = self._evaluate(z, args)
        if len(values) != 1 or int(values[0].size) != 1 or values[0].dtype.kind == "c":
            raise NumgradValueError(
                f"argmin: the function returned arrays of shapes {[tuple(x.shape) for x in values]}"
                "; what is minimized is one real number: sum it"
            )
        return values[0].reshape(())

    def residual(self, z: Parts, inputs: Parts) -> list[Tensor]:
        """The gradient, recorded if anything is."""
        recorded = state.grad_enabled
        args = self._split(inputs)[1]
        unknowns = list(z) if recorded and all(x.requires_grad for x in z) else [
            Tensor(x._array, True) for x in z
        ]  # fmt: skip
        with enable_grad():
            value = self._objective(unknowns, args)
        grads = Linearization([value], unknowns, create_graph=recorded).gradient()
        return [filled(g, x.shape, x.dtype) for g, x in zip(grads, unknowns, strict=True)]

    def solve(self, inputs: Parts) -> list[np.ndarray]:
        """Solve by SciPy or the caller's solver, which gets the function to minimize."""
        if callable(self.solver):
            return super().solve(inputs)
        start, args = self._split(inputs)
        first = self.unknowns.vector([x._array for x in start]).astype(np.float64)

        def gradient(z: Parts) -> list[Tensor]:
            return self.residual(z, inputs)

        v = solvers.scipy_minimum(
            self.unknowns,
            lambda z: self._objective(z, args),
            gradient,
            first,
            self.solver,
            self.tol,
        )
        return self.unknowns.arrays(v)


_COMMON = """
    Parameters
    ----------
    f
        A function ``f(z, *args)``{returns}
    x0
        Where the solver starts: an array of real floating numbers, or a nesting of such. It gets
        no gradient.
    args
        Further arguments, in which the solution is differentiated: arrays in any nesting. What
        ``f`` closes over is followed by the tape as well, not by forward mode, ``vmap`` and
        ``ng.jit``.
    solver
        {solver}
    linear
        How the linear systems of derivatives are solved: ``"dense"``, by the matrix; ``"cg"`` (for
        symmetric positive definite ones) or ``"gmres"``, without it; or a function
        ``linear(matvec, b)`` of a linear map of vectors and a vector.
    tol
        Tolerance of SciPy's solver{tol}.

    Returns
    -------
    Tensor or nesting
        The solution, shaped and nested like ``x0``.

    Raises
    ------
    NumgradRuntimeError
        If the solver finds no solution: with its message and where it ended.
    NumgradLinAlgError
        If a derivative is asked for where the equation determines none.
    NumgradTypeError, NumgradValueError
        If arguments or what ``f`` returns are of the wrong kind or shape.
"""


def _documented(**sections: str) -> Callable[[Callable], Callable]:
    def decorate(function: Callable) -> Callable:
        head, _, examples = (function.__doc__ or "").partition("\n\n    Examples")
        middle = _COMMON.format(**sections).rstrip()
        function.__doc__ = f"{head}\n{middle}\n\n    Examples{examples}"
        return function

    return decorate


_ROOT_SOLVER = (
    "None or the name of a method of ``scipy.optimize.root``, which gets the exact Jacobian; or a\n"
    "        function ``solver(f, x0)`` of yours, whose ``f`` takes what is nested like ``x0``."
)


@_documented(returns=" that returns as many numbers as ``z`` has.", solver=_ROOT_SOLVER, tol="")
def root(
    f: Callable[..., Any],
    x0: Any,
    args: Sequence[Any] = (),
    *,
    solver: Any = None,
    linear: solvers.Linear = "dense",
    tol: float | None = None,
) -> Any:
    """Find ``z`` with ``f(z, *args) = 0``, differentiable in ``args``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def cube_root(a):
    ...     return ng.implicit.root(lambda z, a: z**3 - a, 1.0, (a,))
    >>> cube_root(ng.tensor(8.0)).item(), ng.grad(cube_root)(8.0).round(6)
    (2.0, np.float64(0.083333))
    """
    return Root(f, x0, args, solver, linear, tol).result()


@_documented(
    returns=" that returns what is like ``z``.",
    solver="None to apply ``f`` until nothing changes any more; the name of a method of\n"
    "        ``scipy.optimize.root``, of ``z - f(z)``; or ``solver(f, x0)`` of ``f`` itself.",
    tol=", or relative change at which iterating ends",
)
def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    args: Sequence[Any] = (),
    *,
    solver: Any = None,
    linear: solvers.Linear = "dense",
    tol: float | None = None,
) -> Any:
    """Find ``z`` with ``f(z, *args) = z``, differentiable in ``args``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def kepler(e):
    ...     return ng.implicit.fixed_point(lambda z, e: 1.0 + e * np.sin(z), 1.0, (e,))
    >>> ng.grad(kepler)(0.1).round(6)  # sin z / (1 - e cos z)
    np.float64(0.929061)
    """
    return FixedPoint(f, x0, args, solver, linear, tol).result()


@_documented(
    returns=" that returns one number.",
    solver="None or the name of a method of ``scipy.optimize.minimize``, which gets exact\n"
    "        derivatives; or a function ``solver(f, x0)`` of yours.",
    tol="",
)
def argmin(
    f: Callable[..., Any],
    x0: Any,
    args: Sequence[Any] = (),
    *,
    solver: Any = None,
    linear: solvers.Linear = "dense",
    tol: float | None = None,
) -> Any:
    """Find the ``z`` that minimizes ``f(z, *args)``, differentiable in ``args``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def center(a):
    ...     return ng.implicit.argmin(lambda z, a: np.sum(np.cosh(z - a)), 0.0, (a,))
    >>> ng.grad(center)(np.array([1.0, 1.0, 4.0])).round(4)
    array([0.2666, 0.2666, 0.4669])
    """
    return Argmin(f, x0, args, solver, linear, tol).result()
