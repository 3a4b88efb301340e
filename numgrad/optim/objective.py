"""A closure over parameters as a function of one vector, with its first and second derivatives.

Note [The point]
----------------
SciPy asks for values, gradients, products with the Hessian and constraints at a vector ``x``, in
any order. ``Point`` puts the parameters there and counts its moves: what was recorded is kept until
the parameters move on, so that all products with one Hessian cost one evaluation of the closure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.modes import enable_grad
from numgrad.autograd.row_sparse import RowSparseTensor
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optimize.packing import Packing
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.linearization import Linearization


class Point:
    """Where the parameters are: Note [The point]."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.packing = Packing(tensors)
        self.tensors = tensors
        self.x = self.packing.values()
        self.moves = 0

    def move(self, x: np.ndarray) -> None:
        """Put the parameters to ``x``."""
        if not np.array_equal(x, self.x):
            self.x = np.array(x, dtype=np.float64)
            self.moves += 1
            self.packing.store(self.packing.unpack(self.x))


class ClosureObjective:
    """The loss that a closure returns, and its derivatives by the parameters.

    The closure may call ``backward`` itself; then the gradients are what it left in ``.grad``.
    """

    def __init__(self, point: Point, closure: Callable[[], Any]) -> None:
        self.point = point
        self.closure = closure
        self.best: tuple[float, np.ndarray] | None = None
        self._evaluations = 0
        self._recorded_at = -1
        self._recorded: list[Tensor | None] = []

    def value(self, x: np.ndarray) -> float:
        """The loss, without a backward."""
        return self._number(self._evaluate(x))

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss and its gradient, packed."""
        loss = self._evaluate(x)
        gradients = self._gradients(loss, create_graph=False)
        return self._number(loss), packed(gradients, self.point)

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The product of the Hessian with ``v``, by a second backward through the first."""
        return derivative_along(self._recorded_gradients(x), v, self.point)

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """The matrix of second derivatives."""
        return matrix(self._recorded_gradients(x), self.point)

    # ------------------------------------------------------------------------------------ closure

    def _evaluate(self, x: np.ndarray) -> Any:
        self.point.move(x)
        for tensor in self.point.tensors:
            tensor.grad = None
        with enable_grad():
            loss = self.closure()
        self._evaluations += 1
        number = self._number(loss)
        if np.isfinite(number) and (self.best is None or number < self.best[0]):
            self.best = number, self.point.x
        return loss

    def _number(self, loss: Any) -> float:
        array = loss.detach().numpy() if isinstance(loss, Tensor) else np.asarray(loss)
        if array.dtype.kind not in "biuf":
            raise NumgradTypeError(
                f"minimize: the closure returned a {type(loss).__name__} of dtype {array.dtype}; "
                "it returns the loss, a real number"
            )
        if array.size != 1:
            raise NumgradValueError(
                f"minimize: the closure returned shape {array.shape}; the loss is one number, take "
                "the sum or mean"
            )
        return float(array.item())

    def _gradients(self, loss: Any, create_graph: bool) -> list[Tensor | None]:
        """By the parameters; None for those the loss does not depend on."""
        tensors = self.point.tensors
        own = [tensor.grad for tensor in tensors]
        if any(g is not None for g in own):
            if create_graph and not any(g is not None and g.requires_grad for g in own):
                raise NumgradRuntimeError(
                    "minimize: the method needs second derivatives, and the closure called "
                    "backward(), which frees the graph; let it return the loss only, or choose a "
                    "method of first order such as 'BFGS'"
                )
            return own
        if isinstance(loss, Tensor) and loss.requires_grad:
            return Linearization([loss], tensors, create_graph).gradient()
        if self._evaluations == 1:
            raise NumgradRuntimeError(
                f"minimize: the closure returned a {type(loss).__name__} without a graph, so there "
                "is no gradient; compute the loss from the parameters (not under no_grad, not from "
                "detached values), or choose a method without gradients such as 'Nelder-Mead'"
            )
        return [None] * len(tensors)  # a constant for a forbidden region, say

    def _recorded_gradients(self, x: np.ndarray) -> list[Tensor | None]:
        self.point.move(x)
        if self._recorded_at != self.point.moves:
            self._recorded = []
            loss = self._evaluate(x)
            self._recorded = self._gradients(loss, create_graph=True)
            self._recorded_at = self.point.moves
        return self._recorded


class ClosureConstraint:
    """What a closure of a constraint returns, a vector, and its Jacobian by the parameters."""

    def __init__(self, point: Point, closure: Callable[[], Any]) -> None:
        self.point = point
        self.closure = closure
        self._at = -1
        self._value = Tensor(np.zeros(0))

    def _evaluate(self, x: np.ndarray) -> Tensor:
        self.point.move(x)
        if self._at != self.point.moves:
            with enable_grad():
                value = self.closure()
                value = value if isinstance(value, Tensor) else Tensor(np.asarray(value, float))
                self._value = value.reshape(-1)
            self._at = self.point.moves
        return self._value

    def values(self, x: np.ndarray) -> np.ndarray:
        """The values, 1-D."""
        return self._evaluate(x).detach().numpy().astype(np.float64)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """A row for each value."""
        value = self._evaluate(x)
        whole = np.zeros((value.size, self.point.packing.size))
        table = Linearization([value], self.point.tensors).rows(0)
        for k, row in enumerate(whole):
            row[:] = packed([None if part is None else part[k] for part in table], self.point)
        return whole

    def hessian(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The matrix of second derivatives of the values, summed with ``weights``."""
        self._evaluate(x)
        linear = Linearization([self._value], self.point.tensors, create_graph=True)
        return matrix(linear.pull([Tensor(weights.astype(self._value.dtype))]), self.point)


# ----------------------------------------------------------------------------------- derivatives


def packed(gradients: Iterable[Any], point: Point) -> np.ndarray:
    """Gradients by the parameters, also row-sparse ones, as a vector."""
    dense = (g.to_dense() if isinstance(g, RowSparseTensor) else g for g in gradients)
    return point.packing.pack(None if g is None else g.detach().numpy() for g in dense)


def derivative_along(gradients: Sequence[Tensor | None], v: np.ndarray, point: Point) -> np.ndarray:
    """What recorded gradients change by along ``v``: their second derivatives are symmetric."""
    directions = map(Tensor, point.packing.unpack(np.asarray(v, dtype=np.float64)))
    return packed(Linearization(gradients, point.tensors).pull([*directions]), point)


def matrix(gradients: Sequence[Tensor | None], point: Point) -> np.ndarray:
    """All second derivatives of what ``gradients`` were recorded of."""
    rows = np.array([derivative_along(gradients, e, point) for e in np.eye(point.packing.size)])
    return (rows + rows.T) / 2
