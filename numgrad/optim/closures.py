"""A closure over parameters as what solvers ask of a function of unknowns.

Note [Parameters as unknowns]
-----------------------------
``ng.minimize`` hands its function Tensors of its own. A closure reads the parameters themselves:
they are the unknowns here, put to a vector before the closure runs. Whatever was kept of an
objective or a constraint was recorded of them, so it is forgotten when another one moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.errors import NumgradRuntimeError
from numgrad.optimize.derivatives import Derivatives, number, vector
from numgrad.optimize.objective import Objective, packed, symmetric
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import Watch
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.linearization import Linearization


class ParametersAsUnknowns(Unknowns):
    """Leaves as the unknowns: Note [Parameters as unknowns]."""

    def __init__(self, name: str, parameters: Sequence[Tensor]) -> None:
        super().__init__(name, list(parameters))
        self.names = [f"parameter {k}" for k in range(len(parameters))]
        self.parameters = list(parameters)
        self.kept: list[Any] = []
        self._x = self.x0

    def at(self, x: np.ndarray, requires_grad: bool = True) -> list[Tensor]:
        """The parameters, put to a vector."""
        if not np.array_equal(x, self._x):
            self._x = np.array(x, np.float64)
            self.store(self.arrays(self._x))
            for each in self.kept:
                each._key = None
        return self.parameters

    def store(self, arrays: Sequence[np.ndarray]) -> None:
        """Write values, unrecorded."""
        with no_grad():
            for tensor, array in zip(self.parameters, arrays, strict=True):
                tensor.copy_(array)


class ClosureObjective(Objective):
    """The loss that a closure returns.

    The closure may call ``backward`` itself; then the gradients are what it left in ``.grad``.
    """

    unknowns: ParametersAsUnknowns
    names_unused = False  # as in other optimizers, parameters may be frozen or of other losses

    def __init__(
        self, parameters: ParametersAsUnknowns, closure: Callable[[], Any], watch: Watch
    ) -> None:
        def loss(_: Any) -> Any:
            with enable_grad():
                return number(watch.name, closure())

        super().__init__(parameters, Derivatives(loss, False), (), watch)
        parameters.kept.append(self)

    def _evaluate(self) -> float:
        parameters = self.unknowns.parameters
        for tensor in parameters:
            tensor.grad = None
        value = super()._evaluate()
        own = [tensor.grad for tensor in parameters]
        self._own = None if all(g is None for g in own) else own
        return value

    def _packed_gradient(self) -> np.ndarray:
        if self._own is None:
            return super()._packed_gradient()
        return self._packed(self._recorded_gradients() if self.second_order else self._own)

    def _recorded_gradients(self) -> Sequence[Tensor | None]:
        if self._recorded is None and self._own is not None:
            if not any(g is not None and g.requires_grad for g in self._own):
                raise NumgradRuntimeError(
                    f"{self.watch.name}: the method needs second derivatives, and the closure "
                    "called backward(), which frees the graph; let it return the loss only, or "
                    "choose a method of first order such as 'BFGS'"
                )
            self._recorded = self._own
        return super()._recorded_gradients()


class ClosureConstraint:
    """Vector that a closure of a constraint returns, and its derivatives by the parameters."""

    def __init__(
        self, parameters: ParametersAsUnknowns, closure: Callable[..., Any], args: Any
    ) -> None:
        self.unknowns, self.closure = parameters, closure
        self.args = args if isinstance(args, tuple) else (args,)
        self._key: bytes | None = None
        parameters.kept.append(self)

    def _evaluate(self, x: np.ndarray) -> Tensor:
        self.unknowns.at(x)
        if self._key != x.tobytes():
            with enable_grad():
                value = vector("minimize (a constraint)", self.closure(*self.args))
            self._value = value if isinstance(value, Tensor) else Tensor(np.asarray(value, float))
            self._key = x.tobytes()
        return self._value

    def fun(self, x: np.ndarray) -> np.ndarray:
        """The values, 1-D."""
        return self._evaluate(x).detach().numpy().astype(np.float64)

    def jac(self, x: np.ndarray) -> np.ndarray:
        """A row for each value."""
        value = self._evaluate(x)
        table = Linearization([value], self.unknowns.parameters).rows(0)
        rows = [
            packed(self.unknowns, [None if part is None else part[k] for part in table])
            for k in range(int(value.size))
        ]
        return np.array(rows).reshape(int(value.size), self.unknowns.x0.size)

    def hess(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The matrix of second derivatives of the values, summed with ``weights``."""
        value, leaves = self._evaluate(x), self.unknowns.parameters
        linear = Linearization([value], leaves, create_graph=True)
        gradients = linear.pull([Tensor(weights.astype(value.dtype))])
        recorded, unpack = Linearization(gradients, leaves), self.unknowns.packing.unpack
        rows = [
            packed(self.unknowns, recorded.pull(list(map(Tensor, unpack(e)))))
            for e in np.eye(self.unknowns.x0.size)
        ]
        return symmetric(np.array(rows))
