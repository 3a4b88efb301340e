"""Functions of the unknowns as solvers see them: values at a vector, and their derivatives.

Note [Vectors of solvers]
-------------------------
SciPy asks for values, gradients and products with the Hessian at a vector ``x``, in any order. What
was computed is kept until it moves on: value and gradient cost one evaluation of the function, and
so do all products with one Hessian.

``ng.linear_operator``: derivatives as operators, for iterative solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from numgrad.autograd.engine.backward import gradients_of_loss
from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.structured_jacobians import columns_by_duals, rows_by_point, suits
from numgrad.core.interpreter import state
from numgrad.errors import NumgradError, NumgradNotImplementedError, NumgradValueError, warn
from numgrad.optimize.derivatives import (
    Derivatives,
    check_closures,
    derivatives_of,
    independent,
    number,
    vector,
)
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import Watch
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import jacobian
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
        self.args = unknowns.constants + (args if isinstance(args, tuple) else (args,))
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
        matrix = self._jacobian
        if matrix is None:
            self._jacobian = matrix = self.watch.call(self._rows)
            if self.watch.count <= 1:
                self._check(matrix, "the Jacobian")
                if matrix.size and not matrix.any():
                    self._check_dependence()
        return matrix

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
            (tangent,) = linear.push(directions)
            return np.zeros(self.size or 0) if tangent is None else _array(tangent)

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
                    self.unknowns, derivatives.product(self._arrays, unpack(e), weights, *self.args)
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

    def _check(self, array: np.ndarray, what: str) -> None:
        finite = np.isfinite(array)
        if not finite.all():
            index = np.unravel_index(int(np.argmin(finite)), array.shape)
            shown = ", ".join(map(str, index))
            self.watch.start(float(array[index]), lambda: f"{what} at [{shown}]")

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
            except NumgradError:  # an error without a record too shows below
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
        for columns, block in zip(packing.slices, blocks, strict=True):
            whole[:, columns] = _array(block).reshape(count, -1)
        return whole

    def _blocks(self) -> Sequence[Any]:
        """The Jacobian by each array."""
        if self._recorded is not None and self._values.size > 1:
            value, leaves = self._recorded
            try:
                row_blocks = rows_by_point(value, leaves)
            except NumgradNotImplementedError:  # left to the other ways, from now on
                self._records = False
            else:
                return [np.zeros(self._values.size * t.size) if rows is None else rows
                        for rows, t in zip(row_blocks, leaves, strict=True)]  # fmt: skip
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
    """Residuals that solvers of equations and fits make small."""
    return float(values @ values)


def shown_to(callback: Callable[..., Any], values: Values) -> Callable[..., Any]:
    """A callback that is called with the unknowns as the caller nested them."""

    def shown(x: np.ndarray, *others: Any) -> Any:
        return values.watch.call(callback, values.unknowns.shown(x), *others)

    return shown


class Objective:
    """One real number at a vector, with first and second derivatives; made by ``ng.objective``.

    Attributes
    ----------
    x0
        The start as a vector.
    """

    gradients = True
    """Whether gradients are asked for."""

    second_order = False
    """Whether products with the Hessian are."""

    names_unused = True
    """Whether to warn of unknowns that the result does not depend on."""

    def __init__(
        self, unknowns: Unknowns, derivatives: Derivatives, args: tuple, watch: Watch
    ) -> None:
        self.unknowns, self.derivatives, self.watch = unknowns, derivatives, watch
        self.args = unknowns.constants + args
        check_closures(watch.name, derivatives, unknowns, self.args)
        self.x0 = unknowns.x0.copy()
        self._key: bytes | None = None
        self._forget()

    def unravel(self, x: Any) -> Any:
        """A vector in the containers, shapes and dtypes of the start."""
        return self.unknowns.shown(self._vector(x))

    def ravel(self, x: Any) -> np.ndarray:
        """A nesting like the start as a vector."""
        return self._vector(x)

    def fun(self, x: Any) -> float:
        """The value at a point."""
        self._go_to(x)
        return self._value

    def jac(self, x: Any) -> np.ndarray:
        """The gradient, a vector."""
        self._go_to(x)
        gradient = self._gradient
        if gradient is None:
            self._gradient = gradient = self.watch.call(self._packed_gradient)
        if self.watch.count == 1:
            finite = np.isfinite(gradient)
            if not finite.all():
                k = int(np.argmin(finite))
                self.watch.start(gradient[k], lambda: f"the gradient by {self.unknowns.element(k)}")
        return gradient.copy()

    def fun_and_jac(self, x: Any) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        gradient = self.jac(x)
        return self._value, gradient

    def hessp(self, x: Any, v: Any) -> np.ndarray:
        """The product of the Hessian with a vector."""
        self._go_to(x)
        return self.watch.call(self._product, self._vector(v))

    def hess(self, x: Any) -> np.ndarray:
        """The matrix of second derivatives."""
        self._go_to(x)
        return self.watch.call(self._matrix)

    def _vector(self, x: Any) -> np.ndarray:
        return self.unknowns.vector(self.watch.name, x)

    def _go_to(self, x: Any) -> None:
        x = self._vector(x)
        if x.tobytes() != self._key:
            self._move(x)

    def _forget(self) -> None:
        self._value = np.nan
        self._loss: Any = None
        self._gradient: np.ndarray | None = None
        self._recorded: Sequence[Tensor | None] | None = None

    def _move(self, x: np.ndarray) -> None:
        """Evaluate at another vector."""
        self._key = None
        self._forget()
        self._x = np.array(x, np.float64)
        self._value = self.watch.call(self._evaluate)
        self._key = x.tobytes()
        self.watch.evaluated(self._value, self._x)
        if self.watch.count == 1:
            self.watch.start(self._value, lambda: "the function")

    def _evaluate(self) -> float:
        """The value, recorded if a gradient may be asked for."""
        self._leaves = leaves = self.unknowns.at(self._x, self.gradients)
        if state.grad_enabled is self.gradients:  # most often; entering a mode is dearer
            loss = self.derivatives.plain(leaves, *self.args)
        else:
            with enable_grad() if self.gradients else no_grad():
                loss = self.derivatives.plain(leaves, *self.args)
        if isinstance(loss, Tensor):
            self._loss = loss
            return loss._array.item()
        return float(loss)

    def _packed_gradient(self) -> np.ndarray:
        loss = self._loss
        if loss is None or not loss.requires_grad:
            if self.watch.count <= 1:
                raise independent(self.watch.name, self._value if loss is None else loss)
            return np.zeros(self.x0.size)  # a constant for a forbidden region, say
        if self.second_order:
            grads = self._recorded_gradients()
        else:
            self._loss = None
            grads = gradients_of_loss(loss, self._leaves)
        if self.watch.count <= 1 and any(g is None for g in grads):
            self._unused(loss, grads)
        return self._packed(grads)

    def _unused(self, loss: Tensor, grads: Sequence[Any]) -> None:
        """Warn of unknowns that the first value does not depend on; raise if it does on none."""
        if all(g is None for g in grads):
            raise independent(self.watch.name, loss)
        unknowns = self.unknowns
        if not self.names_unused:
            return
        labels = (
            unknowns.labels()
            if unknowns is unknowns.whole
            else [unknowns.element_labels[elements.start] for elements in unknowns.packing.slices]
        )
        sizes = [array.size for array in self._leaves]
        unused = [n for n, g, size in zip(labels, grads, sizes, strict=True) if g is None and size]
        if not unused:
            return
        names = ", ".join(unused)
        warn(
            f"{self.watch.name}: the result does not depend on {names} at the start, so that its "
            "solution means nothing; fix what is not to be solved for, and look on the way for "
            "detach(), float(), comparisons and branches that were not taken"
        )

    def _recorded_gradients(self) -> Sequence[Tensor | None]:
        if self._recorded is None:
            if self._loss is None:  # freed by the gradient
                self._evaluate()
            loss = self._loss
            recorded = loss is not None and loss.requires_grad
            linear = Linearization([loss], self._leaves, create_graph=True) if recorded else None
            self._recorded = [None] * len(self._leaves) if linear is None else linear.gradient()
        return self._recorded

    def _packed(self, gradients: Sequence[Any]) -> np.ndarray:
        return packed(self.unknowns, gradients)

    def _product(self, v: np.ndarray) -> np.ndarray:
        """Second derivatives are symmetric: ``v H`` is ``H v``."""
        recorded = self._recorded_gradients()
        directions = [Tensor(array) for array in self.unknowns.packing.unpack(v)]
        return self._packed(Linearization(recorded, self._leaves).pull(directions))

    def _matrix(self) -> np.ndarray:
        recorded = self._recorded_gradients()
        linear = Linearization(recorded, self._leaves)
        if self.unknowns.packing.is_complex:
            return symmetric(np.array([self._product(e) for e in np.eye(self.x0.size)]))
        return assembled(self.unknowns, [linear.rows(k) for k in range(len(self._leaves))])


class CompiledObjective(Objective):
    """An objective whose value and derivatives are compiled functions, each of one pass."""

    def _evaluate(self) -> float:
        self._arrays = self.unknowns.arrays(self._x)
        if not self.gradients:
            return float(self.derivatives.value(self._arrays, *self.args))
        value, gradients = self.derivatives.value_and_grad(self._arrays, *self.args)
        self._gradient = self._packed(gradients)
        if self.watch.count == 0 and not self._gradient.any():
            self._look_for_dependence()
        return float(value)

    def _look_for_dependence(self) -> None:
        leaves = self.unknowns.at(self._x)
        with enable_grad():
            loss = self.derivatives.plain(leaves, *self.args)
        if not (isinstance(loss, Tensor) and loss.requires_grad):
            raise independent(self.watch.name, loss)

    def _product(self, v: np.ndarray) -> np.ndarray:
        directions = self.unknowns.packing.unpack(v)
        return self._packed(self.derivatives.product(self._arrays, directions, *self.args))

    def _matrix(self) -> np.ndarray:
        if self.unknowns.packing.is_complex:
            return symmetric(np.array([self._product(e) for e in np.eye(self.x0.size)]))
        return assembled(self.unknowns, self.derivatives.hessian(self._arrays, *self.args))


def packed(unknowns: Unknowns, gradients: Sequence[Any]) -> np.ndarray:
    """Gradients by the arrays, Tensors or ndarrays or None, as a vector."""
    if unknowns.single and type(gradients[0]) is np.ndarray:
        return gradients[0].reshape(-1)
    dense = [g.to_dense() if isinstance(g, RowSparseTensor) else g for g in gradients]
    return unknowns.packing.pack(
        [g.detach().numpy() if isinstance(g, Tensor) else g for g in dense]
    )


def assembled(unknowns: Unknowns, rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """The matrix of blocks of second derivatives, None for zeros."""
    slices, whole = unknowns.packing.slices, np.zeros((unknowns.x0.size,) * 2)
    for columns, row in zip(slices, rows, strict=True):
        for other, block in zip(slices, row, strict=True):
            if block is not None:
                array = block.detach().numpy() if isinstance(block, Tensor) else np.asarray(block)
                shape = columns.stop - columns.start, other.stop - other.start
                whole[columns, other] = array.reshape(shape)
    return symmetric(whole)


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """Without the rounding by which halves differ."""
    return (matrix + matrix.T) / 2


def objective(f: Callable[..., Any], x0: Any, args: Any = (), *, jit: bool = False) -> Objective:
    """A function with its exact derivatives, as solvers of vectors take them.

    Parameters
    ----------
    f
        ``f(x, *args)`` returns one real number; ``x`` is nested and shaped as the start, with
        Tensors in it.
    x0
        An array, or a nesting of arrays (``ng.tree``), floating or complex; integers become
        float64. A list or tuple of numbers is an array.
    args
        Further arguments, which are not solved for.
    jit
        Compile what is evaluated.

    Returns
    -------
    Objective
        ``x0`` is the start as a vector of float64, complex numbers as pairs of reals. ``fun(x)``,
        ``jac(x)``, ``fun_and_jac(x)``, ``hess(x)`` and ``hessp(x, v)`` take such vectors, or
        nestings like the start, and return a number, vectors and a matrix. ``unravel`` takes a
        vector to the caller's containers, ``ravel`` goes back.

    Raises
    ------
    NumgradTypeError
        If the start has something besides numbers in it, or ``f`` does not return real numbers.
    NumgradValueError
        If ``f`` returns more than one number, or is not finite where it is evaluated first.
    NumgradRuntimeError
        If the result does not depend on ``x``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> from scipy import optimize
    >>> def distance(p):
    ...     return np.sum((p["a"] - 1) ** 2) + p["b"] ** 2
    >>> wanted = ng.objective(distance, {"a": np.zeros(2), "b": 3.0})
    >>> wanted.fun_and_jac(wanted.x0)
    (11.0, array([-2., -2.,  6.]))
    >>> wanted.hess(wanted.x0).diagonal()
    array([2., 2., 2.])
    >>> result = optimize.minimize(wanted.fun, wanted.x0, jac=wanted.jac)
    >>> sorted(wanted.unravel(result.x))
    ['a', 'b']
    """
    return made("objective", f, Unknowns("objective", x0), args, jit, Watch("objective"))


def made(
    name: str, f: Callable[..., Any], unknowns: Unknowns, args: Any, jit: bool, watch: Watch
) -> Objective:
    """The objective of a solver."""
    derivatives = derivatives_of(name, f, unknowns, number, jit)
    watch.plain = not derivatives.compiled
    kind = CompiledObjective if derivatives.compiled else Objective
    return kind(unknowns, derivatives, args if isinstance(args, tuple) else (args,), watch)


def linear_operator(f: Callable[..., Any], x: Any, args: Any = ()) -> LinearOperator:
    """The derivative of a function at a point as a ``scipy.sparse.linalg.LinearOperator``.

    ``f`` is called once, and recorded; a product with the Jacobian ``J``, or with its transpose,
    costs about one pass through the record. Of ``ng.grad(f)`` it is the Hessian.

    Parameters
    ----------
    f
        ``f(x, *args)`` returns real numbers: an array of any shape or several. ``x`` is nested and
        shaped as the point, with Tensors in it.
    x
        The point: an array, or a nesting of arrays (``ng.tree``). A list or tuple of numbers is an
        array.
    args
        Further arguments of ``f``, a tuple.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
        Of shape (values, unknowns), both as vectors of float64, complex unknowns as pairs of reals.

    Raises
    ------
    NumgradTypeError
        If the point has something besides numbers in it, or ``f`` does not return real numbers.
    NumgradValueError
        If values are not finite.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> from scipy.sparse.linalg import cg
    >>> def loss(x):
    ...     return np.sum(x**2) + 0.25 * np.sum(np.diff(x) ** 4)
    >>> x = np.linspace(0, 1, 5) ** 2
    >>> hessian = ng.linear_operator(ng.grad(loss), x)
    >>> step, status = cg(hessian, ng.grad(loss)(x))
    >>> hessian.shape, status, bool(loss(x - step) < loss(x))
    ((5, 5), 0, True)
    """
    name = "linear_operator"
    unknowns = Unknowns(name, x, "x")
    return Values(name, f, unknowns, args, False, Watch(name)).operator(unknowns.x0)
