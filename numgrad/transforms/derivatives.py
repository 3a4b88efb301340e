"""``grad``, ``value_and_grad``, ``jacobian`` and ``hessian`` of functions of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.engine import backward as engine
from numgrad.core.abstract import zeros
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import map_leaves
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import TransformedCall, checked_argnums, real_number, zeros_like


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
        ndarrays in, ndarrays out; Tensors in, Tensors (that can be differentiated again) out. They
        are Tensors as well inside another transform, and where the value depends on a Tensor that
        requires grad and that ``f`` closes over, since a gradient may be asked for there; under
        ``no_grad`` they have no graph.

    Raises
    ------
    NumgradTypeError
        If ``f`` or ``argnums`` are of the wrong kind, or ``f`` returns nothing.
    NumgradRuntimeError
        If the result is not one real number.

    Notes
    -----
    A number or array that ``f`` returns is a constant: its gradient is zero.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> value, gradient = ng.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    return _value_and_grad("value_and_grad", f, argnums, has_aux)


def _value_and_grad(
    name: str, f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool
) -> Callable[..., Any]:
    numbers = checked_argnums(name, f, argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with TransformedCall(name, args, numbers) as call:
            value, aux = call.value(f, kwargs, has_aux)
            found = call.gradients(real_number(name, f, value))
        out = call.kind(value)
        if isinstance(out, np.ndarray):
            out = out.reshape(())[()]
        gradient = call.result([call.kind(g) for g in found])
        return ((out, map_leaves(call.kind, aux)), gradient) if has_aux else (out, gradient)

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
    both = _value_and_grad("grad", f, argnums, has_aux)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def _jacobians(values: list[Tensor], call: TransformedCall) -> list[list[Any]]:
    """For each value, for each input, an array of shape ``value.shape + input.shape``.

    In a trace by columns where these are fewer. It costs nothing there that rows are computed in
    order to be differentiated: what is not used is never computed.
    """
    if state.ground.deferred:
        real = all(t._array.dtype.kind == "f" for t in (*values, *call.tensors))
        count = sum(t._array.size for t in call.tensors)
        if real and count <= sum(value._array.size for value in values):
            return _jacobian_columns(values, call)
    return [_jacobian_rows(value, call) for value in values]


def _jacobian_columns(values: list[Tensor], call: TransformedCall) -> list[list[Any]]:
    """The Jacobian of a trace by forward products: a backward of a backward for each column."""
    weights = [Tensor(zeros(v._array.shape, v._array.dtype), v._requires_grad) for v in values]
    roots = [k for k, v in enumerate(values) if v._requires_grad]
    chosen = [weights[k] for k in roots]
    pulled: Any = [None] * len(call.tensors)
    if roots and call.tensors:
        pulled = engine.dense_grad(
            [values[k] for k in roots], call.tensors, chosen, create_graph=True,
            allow_unused=True,
        )  # fmt: skip
    table: list[list[Any]] = [[] for _ in values]
    for t, row in zip(call.tensors, pulled, strict=True):
        columns: list[list[Any]] = [[] for _ in values]
        shape = tuple(int(n) for n in t._array.shape)
        for place in range(prod(shape)):
            found: Any = ()
            if row is not None and row._requires_grad:
                unit = Tensor(state.ground.unit(shape, place, t._array.dtype))
                found = engine.dense_grad(row, chosen, unit, create_graph=True, allow_unused=True)
            by_value = dict(zip(roots, found, strict=False))
            for k, column in enumerate(columns):
                part = by_value.get(k)
                column.append(zeros_like(values[k]) if part is None else part)
        for k, (value, column) in enumerate(zip(values, columns, strict=True)):
            whole = value._array.shape + shape
            stacked = OPS["stack"](column, axis=-1) if column else None
            table[k].append(
                Tensor(zeros(whole, value._array.dtype))
                if stacked is None
                else OPS["reshape"](stacked, whole)
            )
    return table


def _jacobian_rows(value: Tensor, call: TransformedCall) -> list[Any]:
    """For each input an array of shape ``value.shape + input.shape``, a backward for each row."""
    shape = value._array.shape
    if not (value._requires_grad and call.tensors):
        return [Tensor(zeros(shape + t._array.shape, t._array.dtype)) for t in call.tensors]
    shape = tuple(int(n) for n in shape)
    size = prod(shape)
    if call.outside or state.interpreters:
        rows = [_row(value, call, shape, k) for k in range(size)]
        stack, reshape = OPS["stack"], OPS["reshape"]
        return [
            reshape(stack([row[p] for row in rows]), shape + t._array.shape)
            if size
            else Tensor(zeros(shape + t._array.shape, t._array.dtype))
            for p, t in enumerate(call.tensors)
        ]
    out = [np.zeros((size, *t._array.shape), t._array.dtype) for t in call.tensors]
    one_hot = np.zeros(size, value._array.dtype)
    for k in range(size):
        one_hot[k] = 1
        row = engine.dense_grad(
            value, call.tensors, one_hot.reshape(shape), retain_graph=k < size - 1,
            materialize_grads=True,
        )  # fmt: skip
        one_hot[k] = 0
        for array, g in zip(out, row, strict=True):
            array[k] = g._array
    return [
        Tensor(a.reshape(shape + t._array.shape)) for a, t in zip(out, call.tensors, strict=True)
    ]


def _row(value: Tensor, call: TransformedCall, shape: tuple[int, ...], place: int) -> Any:
    """Gradients of one element."""
    unit = Tensor(state.ground.unit(shape, place, value._array.dtype))
    return engine.dense_grad(
        value, call.tensors, unit, True, create_graph=call.outside, materialize_grads=True
    )


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
    numbers = checked_argnums("jacobian", f, argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with TransformedCall("jacobian", args, numbers) as call:
            value, aux = call.value(f, kwargs, has_aux)
            (found,) = _jacobians([value], call)
        result = call.result([call.kind(j) for j in found])
        return (result, map_leaves(call.kind, aux)) if has_aux else result

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
    numbers = checked_argnums("hessian", f, argnums)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with TransformedCall("hessian", args, numbers) as call:
            value = real_number("hessian", f, call.value(f, kwargs, False)[0])
            if value._requires_grad and call.tensors:
                first = engine.dense_grad(
                    value, call.tensors, create_graph=True, materialize_grads=True
                )
            else:
                first = [zeros_like(t) for t in call.tensors]
            table = _jacobians(list(first), call)
        return call.result([call.result([call.kind(j) for j in row]) for row in table])

    return differentiated
