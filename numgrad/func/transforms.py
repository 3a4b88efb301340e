"""``grad``, ``value_and_grad``, ``jacobian`` and ``hessian`` of functions of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd import engine
from numgrad.autograd.modes import enable_grad
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.func.tree import leaves, map_leaves, rebuild
from numgrad.op.abstract import zeros
from numgrad.op.base import OPS, state
from numgrad.tensor import Tensor


class _Inputs:
    """The arguments of one call: which are differentiated, and what kind the caller passed."""

    def __init__(
        self, name: str, args: tuple, argnums: int | Sequence[int], *, nested: bool
    ) -> None:
        self.single = isinstance(argnums, int)
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise NumgradValueError(
                    f"{name}: argnums names argument {number}, the call has {len(args)}"
                )
        self.numbers = tuple(number % len(args) for number in numbers)
        self.trees = [args[number] for number in self.numbers]
        given = [leaf for tree in self.trees for leaf in leaves(tree)]
        self.tensors = [_differentiable(name, leaf, nested) for leaf in given]
        self.as_tensors = state.tracer is not None or any(isinstance(x, Tensor) for x in given)
        remaining = iter(self.tensors)
        replaced = {
            number: map_leaves(lambda _: next(remaining), tree)
            for number, tree in zip(self.numbers, self.trees, strict=True)
        }
        self.args = tuple(replaced.get(k, a) for k, a in enumerate(args))

    def call(self, f: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """What ``f`` returns; it may not call ``backward`` meanwhile."""
        before = state.set(transforms=state.transforms + 1)
        try:
            return f(*self.args, **kwargs)
        finally:
            state.set(**before)

    def result(self, values: list[Any]) -> Any:
        """Values, one for each differentiated array, in the nesting of the arguments."""
        out, start = [], 0
        for tree in self.trees:
            count = len(leaves(tree))
            out.append(rebuild(tree, values[start : start + count]))
            start += count
        return out[0] if self.single else tuple(out)

    def kind(self, value: Any) -> Any:
        """A Tensor as the caller's kind: Tensors where Tensors came in, else ndarrays."""
        if not isinstance(value, Tensor) or self.as_tensors:
            return value
        array = value._array
        return array if array.ndim else array[()]


def _differentiable(name: str, leaf: Any, nested: bool) -> Tensor:
    """An argument as a Tensor that requires grad; one that does already keeps its graph."""
    if isinstance(leaf, Tensor):
        if leaf._requires_grad:
            # a Tensor of its own, so that ``leaf`` itself counts as a constant inside the function
            with enable_grad():
                return OPS["positive"](leaf)
        array = leaf._array
    else:
        array = np.array(leaf)
    if state.tracer is not None:
        array = state.tracer.differentiable(leaf)
    elif array.dtype.kind in "iu" and not isinstance(leaf, Tensor | np.ndarray):
        array = array.astype(np.float64)  # Python numbers: f(3) means f(3.0)
    if array.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{name}: an argument of dtype {array.dtype} cannot be differentiated; pass floating "
            "or complex arrays, or leave it out of argnums"
        )
    return Tensor(array, True)


def _output(name: str, value: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return value, None
    if not (isinstance(value, tuple) and len(value) == 2):
        raise NumgradTypeError(
            f"{name}: with has_aux the function returns a pair (value, aux), got "
            f"{type(value).__name__}"
        )
    return value


def _scalar(name: str, function: Callable, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        value = Tensor(np.asarray(value, dtype=np.float64))
    if value._array.size != 1 or value._array.dtype.kind == "c":
        raise NumgradRuntimeError(
            f"{name}: {getattr(function, '__name__', 'the function')} returned shape "
            f"{value._array.shape} and dtype {value._array.dtype}; a gradient is that of one real "
            "number: sum it, or use ng.jacobian"
        )
    return value


def _zeros_like(tensor: Tensor) -> Tensor:
    return Tensor(zeros(tensor._array.shape, tensor._array.dtype))


def _gradients(value: Tensor, inputs: _Inputs) -> list[Tensor]:
    if not value._requires_grad:
        return [_zeros_like(t) for t in inputs.tensors]
    found = engine.dense_grad(
        value, inputs.tensors, create_graph=inputs.as_tensors, materialize_grads=True
    )
    return list(found)


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns ``f(*args)`` and its gradient.

    Parameters
    ----------
    f
        A function of arrays that returns one real number. Inside it the arguments of ``argnums``
        are Tensors.
    argnums
        The argument, or several, to differentiate; each an array or a nesting of tuples, lists and
        dicts of arrays.
    has_aux
        ``f`` returns ``(value, aux)``; the result is then ``((value, aux), gradient)``.

    Returns
    -------
    callable
        ndarrays in, ndarrays out; Tensors in, Tensors (that can be differentiated again) out.

    Raises
    ------
    NumgradRuntimeError
        If the result is not one real number.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> value, gradient = ng.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        inputs = _Inputs("value_and_grad", args, argnums, nested=True)
        with enable_grad():
            value, aux = _output("value_and_grad", inputs.call(f, kwargs), has_aux)
            value = _scalar("value_and_grad", f, value)
            found = [inputs.kind(g) for g in _gradients(value, inputs)]
        out = inputs.kind(value if inputs.as_tensors else value.reshape(()))
        gradient = inputs.result(found)
        return ((out, map_leaves(inputs.kind, aux)), gradient) if has_aux else (out, gradient)

    return differentiated


def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns the gradient of ``f``; see ``value_and_grad``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.grad(np.sin)(0.0)
    np.float64(1.0)
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def _jacobians(values: list[Tensor], inputs: _Inputs) -> list[list[Any]]:
    """For each value, for each input, an array of shape ``value.shape + input.shape``.

    In a trace by columns where these are fewer. It costs nothing there that rows are computed in
    order to be differentiated: what is not used is never computed.
    """
    if state.tracer is not None:
        real = all(t._array.dtype.kind == "f" for t in (*values, *inputs.tensors))
        count = sum(t._array.size for t in inputs.tensors)
        if real and count <= sum(value._array.size for value in values):
            return _jacobian_columns(values, inputs)
    return [_jacobian_rows(value, inputs, inputs.as_tensors) for value in values]


def _jacobian_columns(values: list[Tensor], inputs: _Inputs) -> list[list[Any]]:
    """The Jacobian of a trace by forward products: a backward of a backward for each column."""
    weights = [Tensor(zeros(v._array.shape, v._array.dtype), v._requires_grad) for v in values]
    roots = [k for k, v in enumerate(values) if v._requires_grad]
    chosen = [weights[k] for k in roots]
    pulled: Any = [None] * len(inputs.tensors)
    if roots:
        pulled = engine.dense_grad(
            [values[k] for k in roots], inputs.tensors, chosen, create_graph=True,
            allow_unused=True,
        )  # fmt: skip
    table: list[list[Any]] = [[] for _ in values]
    for t, row in zip(inputs.tensors, pulled, strict=True):
        columns: list[list[Any]] = [[] for _ in values]
        shape = tuple(int(n) for n in t._array.shape)
        for place in range(prod(shape)):
            found: Any = ()
            if row is not None and row._requires_grad:
                unit = Tensor(state.tracer.unit(shape, place, t._array.dtype))
                found = engine.dense_grad(row, chosen, unit, create_graph=True, allow_unused=True)
            by_value = dict(zip(roots, found, strict=False))
            for k, column in enumerate(columns):
                part = by_value.get(k)
                column.append(_zeros_like(values[k]) if part is None else part)
        for k, (value, column) in enumerate(zip(values, columns, strict=True)):
            whole = value._array.shape + shape
            stacked = OPS["stack"](column, axis=-1) if column else None
            table[k].append(
                Tensor(zeros(whole, value._array.dtype))
                if stacked is None
                else OPS["reshape"](stacked, whole)
            )
    return table


def _jacobian_rows(value: Tensor, inputs: _Inputs, create_graph: bool) -> list[Any]:
    """For each input an array of shape ``value.shape + input.shape``, a backward for each row."""
    shape, size = value._array.shape, value._array.size
    if not value._requires_grad:
        return [Tensor(zeros(shape + t._array.shape, t._array.dtype)) for t in inputs.tensors]
    if state.tracer is not None:
        shape = tuple(int(n) for n in shape)
        size = prod(shape)
    if create_graph:
        rows = [_row(value, inputs, shape, k) for k in range(size)]
        stack, reshape = OPS["stack"], OPS["reshape"]
        return [
            reshape(stack([row[p] for row in rows]), shape + t._array.shape)
            if size
            else Tensor(zeros(shape + t._array.shape, t._array.dtype))
            for p, t in enumerate(inputs.tensors)
        ]
    out = [np.zeros((size, *t._array.shape), t._array.dtype) for t in inputs.tensors]
    one_hot = np.zeros(size, value._array.dtype)
    for k in range(size):
        one_hot[k] = 1
        row = engine.dense_grad(
            value, inputs.tensors, one_hot.reshape(shape), retain_graph=k < size - 1,
            materialize_grads=True,
        )  # fmt: skip
        one_hot[k] = 0
        for array, g in zip(out, row, strict=True):
            array[k] = g._array
    return [
        Tensor(a.reshape(shape + t._array.shape)) for a, t in zip(out, inputs.tensors, strict=True)
    ]


def _row(value: Tensor, inputs: _Inputs, shape: tuple[int, ...], place: int) -> Any:
    """Gradients of one element."""
    if state.tracer is None:
        root, unit = value.reshape(-1)[place], None
    else:
        root, unit = value, Tensor(state.tracer.unit(shape, place, value._array.dtype))
    return engine.grad(root, inputs.tensors, unit, create_graph=True, materialize_grads=True)


def jacobian(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns the Jacobian of ``f``, of shape ``output.shape + input.shape``.

    Arguments are those of ``value_and_grad``, but ``f`` may return an array of any shape. A row is
    the gradient of one output; where that is complex, of its real part, which for a holomorphic
    function is the conjugate of the derivative.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        inputs = _Inputs("jacobian", args, argnums, nested=True)
        with enable_grad():
            value, aux = _output("jacobian", inputs.call(f, kwargs), has_aux)
            if not isinstance(value, Tensor):
                value = Tensor(np.asarray(value, dtype=np.float64))
            (found,) = _jacobians([value], inputs)
        result = inputs.result([inputs.kind(j) for j in found])
        return (result, map_leaves(inputs.kind, aux)) if has_aux else result

    return differentiated


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The function that returns the matrix of second derivatives of ``f``.

    For one array of shape ``s`` the result has shape ``s + s``; for several, or nestings, it is
    nested twice.

    Raises
    ------
    NumgradRuntimeError
        If ``f`` does not return one real number.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        inputs = _Inputs("hessian", args, argnums, nested=True)
        with enable_grad():
            value = _scalar("hessian", f, inputs.call(f, kwargs))
            if value._requires_grad:
                first = engine.grad(
                    value, inputs.tensors, create_graph=True, materialize_grads=True
                )
            else:
                first = [_zeros_like(t) for t in inputs.tensors]
            table = _jacobians(list(first), inputs)
            rows = [inputs.result([inputs.kind(j) for j in row]) for row in table]
        return inputs.result(rows)

    return differentiated
