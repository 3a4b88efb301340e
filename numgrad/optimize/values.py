"""Several functions of the unknowns as solvers see them: a vector at a vector, and its Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.autograd.structured_jacobians import columns_by_duals, rows_by_point, suits
from numgrad.core.interpreter import state
from numgrad.errors import NumgradError, NumgradNotImplementedError, NumgradValueError
from numgrad.optimize.derivatives import check_closures, derivatives_of, independent, vector
from numgrad.optimize.objective import assembled, packed, symmetric
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import Watch
from numgrad.tensors.tensor import Tensor
from numgrad.transforms import jacobian
from numgrad.transforms.linearization import Linearization


class Values:
    """Residuals, constraints or equations, and their derivatives: Note [Vectors of solvers].

    Attributes
    ----------
    size
        How many values there are; None before the first evaluation.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        unknowns: Unknowns,
        args: Any,
        jit: bool,
        watch: Watch,
        judge: Callable[[np.ndarray], float] | None = None,
    ) -> None:
        self.unknowns, self.watch, self.judge = unknowns, watch, judge
        self.args = args if isinstance(args, tuple) else (args,)
        self.derivatives = derivatives_of(name, function, unknowns, vector, jit)
        check_closures(name, self.derivatives, unknowns, self.args)
        watch.plain = watch.plain or not self.derivatives.compiled
        self.name, self.size = name, None
        self._key: bytes | None = None
        self._jacobian: np.ndarray | None = None
        self._sparse: Callable[..., Any] | None = None
        self._recorded: tuple[Tensor, list[Tensor]] | None = None
        self._records = True

    def fun(self, x: Any, *_: Any) -> np.ndarray:
        """The values, 1-D."""
        self._move(x)
        return self._values.copy()

    def jac(self, x: Any, *_: Any) -> np.ndarray:
        """A row for each value."""
        self._move(x)
        found = self._jacobian
        if found is None:
            self._jacobian = found = self.watch.call(self._rows)
            if self.watch.count <= 1:
                self._check(found, "the Jacobian")
                if found.size and not found.any():
                    self._check_dependence()
        return found

    def sparse(self, x: Any, *_: Any) -> csr_array:
        """A row for each value, of which only elements that may differ from zero are computed."""
        self._move(x)
        derived = self._sparse
        if derived is None:
            from numgrad.compiler.inspect.sparsity import sparsity

            pattern = sparsity(self.derivatives.plain, self._arrays, *self.args)
            if not pattern.nnz:
                self._check_dependence()
            derived = jacobian(self.derivatives.value, sparsity=pattern)
            self._sparse = derived
        return self.watch.call(derived, self._arrays, *self.args).astype(np.float64)

    def operator(self, x: Any, *_: Any) -> LinearOperator:
        """Products with the Jacobian, of which nothing is computed as a whole."""
        self._move(x)
        return self._operator()

    def _operator(self) -> LinearOperator:
        leaves = [Tensor(array, True) for array in self._arrays]
        with enable_grad():
            value = self.watch.call(self.derivatives.plain, leaves, *self.args)
        if not (isinstance(value, Tensor) and value.requires_grad):
            return aslinearoperator(csr_array((self._values.size, self.unknowns.x0.size)))
        linear = Linearization([value], leaves)
        packing = self.unknowns.packing

        def push(v: np.ndarray) -> np.ndarray:
            directions = [Tensor(array) for array in packing.unpack(np.ravel(v))]
            (found,) = linear.push(directions)
            return np.zeros(self.size or 0) if found is None else _array(found)

        def pull(w: np.ndarray) -> np.ndarray:
            weights = np.ravel(w).astype(value.dtype)
            return packed(self.unknowns, linear.pull([Tensor(weights)]))

        shape = self._values.size, self.unknowns.x0.size
        products = {"matvec": _of_complex(push), "rmatvec": _of_complex(pull)}
        return LinearOperator(shape, dtype=np.float64, **products)  # pyright: ignore

    def hess(self, x: Any, weights: np.ndarray) -> np.ndarray:
        """The matrix of second derivatives of the values, summed with weights."""
        self._move(x)
        weights = np.asarray(weights, np.float64)
        derivatives, x0 = self.derivatives.weighted, self.unknowns.x0
        if self.unknowns.packing.is_complex:
            unpack = self.unknowns.packing.unpack
            rows = [
                packed(
                    self.unknowns,
                    derivatives.product(self._arrays, unpack(e), weights, *self.args),
                )
                for e in np.eye(x0.size)
            ]
            return symmetric(np.array(rows))
        rows = self.watch.call(derivatives.hessian, self._arrays, weights, *self.args)
        return assembled(self.unknowns, rows)

    # ---------------------------------------------------------------------------- at the point

    def _move(self, x: Any) -> None:
        x = self.unknowns.vector(self.name, x)
        key = x.tobytes()
        if key == self._key:
            return
        self._key, self._jacobian = None, None
        x = x.copy()
        self._arrays = self.unknowns.arrays(x)
        values = self.watch.call(self._evaluate)
        if self.size is None:
            self.size = values.size
        elif values.size != self.size:
            raise NumgradValueError(
                f"{self.name}: the function returned {values.size} numbers, at the point before "
                f"{self.size}; return as many at every point"
            )
        self._values, self._key = values, key
        if self.judge is not None:
            with np.errstate(all="ignore"):
                self.watch.evaluated(self.judge(values), x)
        if self.watch.count <= 1:
            self._check(values, "the function")

    def _check(self, found: np.ndarray, what: str) -> None:
        finite = np.isfinite(found)
        if not finite.all():
            place = np.unravel_index(int(np.argmin(finite)), found.shape)
            shown = ", ".join(map(str, place))
            self.watch.start(float(found[place]), lambda: f"{what} at [{shown}]")

    def _check_dependence(self) -> None:
        with enable_grad():
            value = self.derivatives.plain([Tensor(a, True) for a in self._arrays], *self.args)
        if not (isinstance(value, Tensor) and value.requires_grad):
            raise independent(self.name, value)

    def _evaluate(self) -> np.ndarray:
        """The values, recorded as long as that gives the Jacobian: Note [Rows by point]."""
        self._recorded = None
        if self.derivatives.compiled:
            return _array(self.derivatives.value(self._arrays, *self.args))
        leaves = list(map(Tensor, self._arrays))
        if self._records and not (state.interpreters or state.ground.deferred):
            leaves = [Tensor(array, True) for array in self._arrays]
            try:
                with enable_grad():
                    value = self.derivatives.plain(leaves, *self.args)
            except NumgradError:  # what is wrong not only with a record shows below
                self._records = False
            else:
                if isinstance(value, Tensor) and value.requires_grad:
                    self._recorded = value, leaves
                return _array(value)
        with no_grad():
            return _array(self.derivatives.plain(leaves, *self.args))

    def _rows(self) -> np.ndarray:
        packing, count = self.unknowns.packing, self._values.size
        if packing.is_complex:
            operator = self._operator()
            return np.array([operator.rmatvec(unit) for unit in np.eye(count)])
        whole = np.zeros((count, self.unknowns.x0.size))
        blocks = self._blocks()
        for place, block in zip(packing.slices, blocks, strict=True):
            whole[:, place] = _array(block).reshape(count, -1)
        return whole

    def _blocks(self) -> Sequence[Any]:
        """The Jacobian by each array."""
        if self._recorded is not None and self._values.size > 1:
            value, leaves = self._recorded
            try:
                found = rows_by_point(value, leaves)
            except NumgradNotImplementedError:  # left to the other ways, from now on
                self._records = False
            else:
                return [np.zeros(self._values.size * t.size) if rows is None else rows
                        for rows, t in zip(found, leaves, strict=True)]  # fmt: skip
        leaves = list(map(Tensor, self._arrays))
        if not self.derivatives.compiled and suits(leaves, ()):
            try:
                (blocks,) = columns_by_duals(self._several, leaves)
                return blocks
            except NumgradNotImplementedError:  # left to the other ways
                pass
        return self.derivatives.jacobian(self._arrays, *self.args)

    def _several(self, leaves: Sequence[Tensor]) -> list[Tensor]:
        value = self.derivatives.plain(leaves, *self.args)
        return [value if isinstance(value, Tensor) else Tensor(_array(value))]


def _of_complex(product: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A product with a real matrix, of complex vectors too."""

    def extended(v: np.ndarray) -> np.ndarray:
        if not np.iscomplexobj(v):
            return product(v)
        return product(np.real(v)) + 1j * product(np.imag(v))

    return extended


def _array(values: Any) -> np.ndarray:
    array = values.detach().numpy() if isinstance(values, Tensor) else np.asarray(values)
    return array.astype(np.float64, copy=False)


def sum_of_squares(values: np.ndarray) -> float:
    """What solvers of equations and fits make small."""
    return float(values @ values)


def shown_to(callback: Callable[..., Any], values: Values) -> Callable[..., Any]:
    """A callback that is called with the unknowns as the caller nested them."""

    def shown(x: np.ndarray, *others: Any) -> Any:
        return values.watch.call(callback, values.unknowns.shown(x), *others)

    return shown
