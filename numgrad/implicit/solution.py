"""The solution of an equation as an operation with derivatives of any order.

Note [Implicit derivatives]
---------------------------
At a solution of ``F(z, a) = 0`` reverse mode solves ``J^H w = g`` with ``J = dF/dz``, and the
gradient by ``a`` is ``-w dF/da``; forward mode solves ``J dz = -dF/da da``. ``F`` is evaluated once
more for that, at the solution as the tape knows it, and everything is recorded where a further
derivative is asked for: the linear system is then ``linalg.solve``, or again such an operation.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.function import Function
from numgrad.autograd.modes import enable_grad
from numgrad.core.interpreter import eagerly, state
from numgrad.core.op import OPS
from numgrad.core.tree import flatten, leaves, unflatten
from numgrad.errors import NumgradLinAlgError, NumgradRuntimeError, NumgradTraceError
from numgrad.operations.linear_algebra.solve import solve
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import closed_over
from numgrad.transforms.linearization import Linearization, filled

Parts: TypeAlias = Sequence[Tensor]
Map: TypeAlias = Callable[[Parts], Sequence[Tensor]]
At: TypeAlias = Callable[[Parts], AbstractContextManager[Map]]
"""A linear map, given what it depends on."""
Solver: TypeAlias = Callable[[At, Parts, Parts], list[Tensor]]
"""Function of a linear map, right sides and its parameters: the solution of the system."""


class Equation(ABC):
    """An equation that defines a solution: ``residual(z, inputs) = 0``.

    Attributes
    ----------
    name
        Of the function that was called, for messages.
    linear
        How systems with the derivative by ``z`` are solved: None by its matrix.
    symmetric
        Whether that derivative is its own adjoint.
    """

    name: str
    linear: Solver | None = None
    symmetric: bool = False

    @abstractmethod
    def residual(self, z: Parts, inputs: Parts) -> list[Tensor]:
        """Values that are zero at the solution."""

    @abstractmethod
    def solve(self, inputs: Parts) -> list[np.ndarray]:
        """A solution, as numbers."""

    def solution(self, like: Parts, inputs: Parts) -> tuple[Tensor, ...]:
        """The solution, recorded; ``like`` has the shapes and dtypes of its parts."""
        closures = []
        if (state.grad_enabled or state.interpreters) and not state.inference:
            closures = self._closures(like, inputs)
        if closures and state.ground.deferred:
            raise NumgradRuntimeError(
                f"{self.name}: the function closes over a Tensor that requires grad, which a "
                "solver called from a compiled function cannot follow; pass the Tensor in args"
            )
        return Solution.apply(self, len(inputs), *inputs, *closures)

    def _closures(self, like: Parts, inputs: Parts) -> list[Tensor]:
        standins = [_standin(x) for x in (*like, *inputs)]
        count = len(like)
        return closed_over(self.name, lambda x: self.residual(x[:count], x[count:]), standins)


def _standin(x: Tensor) -> Tensor:
    """A leaf of its own with the numbers of a Tensor, or ones for those that it has not here."""
    numbers = state.ground.numbers(x)
    if numbers is None:
        numbers = state.ground.ones(x.shape, x.dtype)
        numbers = getattr(numbers, "_array", numbers)
    else:
        numbers = np.array(numbers)
    return Tensor(numbers, x.dtype.kind in "fc")


def _example(argument: Any, axes: Any, k: int) -> Any:
    """Example ``k`` of an argument whose leaves have these batch axes, 0 or None."""
    if all(axis is None for axis in leaves(axes)):
        return argument
    values: list[Any] = []
    nesting = flatten(argument, values)
    pairs = zip(values, leaves(axes), strict=True)
    return unflatten(nesting, iter([x if axis is None else x[k] for x, axis in pairs]))


class SolverFunction(Function):
    """An operation that a solver computes, in ``run_forward``, of one example after the other."""

    own_rule = False

    @staticmethod
    def forward(*args: Any) -> Any:
        """Not called; ``run_forward`` is."""
        raise NotImplementedError

    @classmethod
    def vmap_rule(cls) -> Any:
        """``in_turn``, as solvers take one example at a time."""
        return cls.in_turn

    @classmethod
    def in_turn(cls, info: Any, in_dims: tuple, *args: Any) -> tuple[Any, Any]:
        """One example after the other."""
        rows = [
            cls.apply(*[_example(a, axes, k) for a, axes in zip(args, in_dims, strict=True)])
            for k in range(info.batch_size)
        ]
        if isinstance(rows[0], tuple):
            return tuple([OPS["stack"](column) for column in zip(*rows, strict=True)]), 0
        return OPS["stack"](rows), 0


class Solution(SolverFunction):
    """The parts of a solution; inputs are those of the equation, and what it closes over."""

    @classmethod
    def run_forward(cls, ctx: Any, args: tuple, keywords: dict[str, Any]) -> Any:
        """Solve the equation with the numbers of its inputs."""
        equation, count, *inputs = args
        known = inputs[:count]
        if any(state.ground.numbers(x) is None for x in known):
            raise NumgradTraceError(
                f"{equation.name}: a solver needs numbers, which a trace has not"
            )
        with eagerly(grad_enabled=True, inference=False):
            solution = equation.solve([Tensor(x._array) for x in known])
        tensors = tuple(map(Tensor, solution))
        ctx.equation, ctx.count, ctx.parts = equation, count, len(tensors)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *inputs)
        ctx.save_for_forward(*tensors, *inputs)
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Gradients of the inputs: Note [Implicit derivatives]."""
        if all(g is None for g in grads):
            return (None,) * len(ctx.needs_input_grad)
        local = _Local(ctx)
        by_inputs = local.pull(grads, ctx.needs_input_grad[2:])
        local.forget()
        return None, None, *by_inputs

    @staticmethod
    def jvp(ctx: Any, _e: Any, _c: Any, *tangents: Any) -> Any:
        """The derivative along a direction."""
        local = _Local(ctx)
        products = local.push(tangents)
        local.forget()
        return tuple(products)


def _own(x: Tensor) -> Tensor:
    """Tensor to differentiate by in place of another, connected to it if that counts."""
    if x.dtype.kind not in "fc":
        return x
    if state.grad_enabled and x.requires_grad:
        return OPS["positive"](x)
    if state.interpreters:  # keeps tangents, which a detached Tensor has not
        x = OPS["positive"](x)
        return x if x.requires_grad else x.requires_grad_()
    return Tensor(x._array, True)


def _disowned(tensors: Parts) -> None:
    """Let nothing that was returned lead to leaves made by ``_own``."""
    for x in tensors:
        if x.is_leaf:
            x._requires_grad = False


class Gate:
    """Whether gradients pass."""

    is_open = False


class Gated(Function):
    """A Tensor held fixed while the partial derivative by closures is computed.

    These lie behind it as well, and the way through it is the total derivative.
    """

    own_rule = False

    @staticmethod
    def forward(ctx: Any, gate: Gate, x: Tensor) -> Tensor:
        """The same numbers."""
        ctx.gate = gate
        ctx.set_materialize_grads(False)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """The gradient, unless the gate is closed."""
        return None, g if ctx.gate.is_open else None


class _Local:
    """The derivative of an equation at its solution."""

    def __init__(self, ctx: Any) -> None:
        self.equation: Equation = ctx.equation
        saved, end = ctx.saved_tensors, ctx.parts + ctx.count
        self.point = saved[:end]
        z, inputs, closures = saved[: ctx.parts], saved[ctx.parts : end], saved[end:]
        self.gate = Gate()
        with enable_grad():
            self.inputs, self.z = (
                [
                    Gated.apply(self.gate, x) if closures and x.requires_grad else x
                    for x in map(_own, each)
                ]
                for each in (inputs, z)
            )
            self.residual = self.equation.residual(self.z, self.inputs)
        moving = [x for x in self.inputs if x.requires_grad]
        self.by_z = Linearization(self.residual, self.z, state.grad_enabled)
        self.by_rest = Linearization(self.residual, [*moving, *closures], state.grad_enabled)

    def forget(self) -> None:
        """Let nothing that was returned lead to leaves of this derivative."""
        self.gate.is_open = True
        self.by_z.freeze()
        self.by_rest.freeze()
        _disowned([*self.z, *self.inputs])

    # ---------------------------------------------------------------------------------- products

    def pull(self, grads: Sequence[Tensor | None], needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of the inputs and closures."""
        g = [filled(g, z.shape, z.dtype) for g, z in zip(grads, self.z, strict=True)]
        w = self._solved(g, self.residual, adjoint=True)
        products = iter(self.by_rest.pull([-weight for weight in w]))
        by_inputs = [next(products) if x.requires_grad else None for x in self.inputs]
        return [g if need else None for g, need in zip((*by_inputs, *products), needs, strict=True)]

    def push(self, tangents: Sequence[Tensor | None]) -> list[Tensor]:
        """Derivative of the solution along a direction."""
        pairs = zip(self.inputs, tangents, strict=False)
        moves = [t for x, t in pairs if x.requires_grad] + list(tangents[len(self.inputs) :])
        moved = self.by_rest.push(moves)
        right = [-filled(t, r.shape, r.dtype) for t, r in zip(moved, self.residual, strict=True)]
        return self._solved(right, self.z, adjoint=self.equation.symmetric)

    def _solved(self, right: Parts, like: Parts, adjoint: bool) -> list[Tensor]:
        """Solve with the derivative by ``z``, or its adjoint, for ``right``; shaped as ``like``."""
        if self.equation.linear is not None:
            at = partial(_applied, self.equation, len(self.z), adjoint)
            return self.equation.linear(at, right, self.point)
        matrix = _matrix([self.by_z.rows(k) for k in range(len(self.residual))], self)
        if adjoint:
            matrix = OPS["matrix_transpose"](matrix)
        vector = OPS["concat"]([OPS["reshape"](array, (-1,)) for array in right])
        try:
            x = solve(matrix, vector)
        except NumgradLinAlgError as error:
            raise NumgradLinAlgError(
                f"{self.equation.name}: the derivative of the equation by the unknowns, a matrix "
                f"of shape {matrix.shape}, is singular at the solution, so the solution has no "
                "derivative there; is it unique?"
            ) from error
        ends = np.cumsum([0, *[int(array.size) for array in like]])
        return [
            OPS["reshape"](x[a:b], array.shape)
            for a, b, array in zip(ends[:-1], ends[1:], like, strict=True)
        ]


def _matrix(rows: Sequence[Sequence[Tensor | None]], local: _Local) -> Tensor:
    """The derivative by ``z`` as one matrix."""
    blocks = []
    for row, r in zip(rows, local.residual, strict=True):
        matrices = [
            filled(block, r.shape + z.shape, z.dtype) for block, z in zip(row, local.z, strict=True)
        ]
        flat = [
            OPS["reshape"](block, (int(r.size), int(z.size)))
            for block, z in zip(matrices, local.z, strict=True)
        ]
        blocks.append(OPS["concat"](flat, axis=1))
    return OPS["concat"](blocks, axis=0)


@contextmanager
def _applied(equation: Equation, count: int, adjoint: bool, point: Parts) -> Iterator[Map]:
    """The derivative by ``z`` at a point, or its adjoint, as a function."""
    z = list(map(_own, point[:count]))
    with enable_grad():
        residual = equation.residual(z, point[count:])
    linear = Linearization(residual, z, state.grad_enabled)

    def apply(v: Parts) -> list[Tensor]:
        products = linear.pull(v) if adjoint else linear.push(v)
        like = z if adjoint else residual
        return [filled(t, x.shape, x.dtype) for t, x in zip(products, like, strict=True)]

    yield apply
    linear.freeze()
    _disowned(z)
