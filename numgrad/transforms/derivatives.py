"""``grad``, ``value_and_grad``, ``jacobian`` and ``hessian`` of functions of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import map_leaves
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import TransformedCall, checked_argnums, real_number
from numgrad.transforms.linearization import filled


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


def _jacobians(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    """For each value, for each input, an array of shape ``value.shape + input.shape``.

    By rows, or by columns where these are fewer.
    """
    linear = call.linear(values)
    if _by_columns(values, call):
        columns = [linear.columns(k) for k in range(len(call.tensors))]
        return [
            [
                OPS["astype"](filled(part, v.shape + t.shape, t.dtype), t.dtype)
                for part, t in zip(row, call.tensors, strict=True)
            ]
            for v, row in zip(values, zip(*columns, strict=True), strict=True)
        ]
    return [call.filled(linear.rows(k), v._array.shape) for k, v in enumerate(values)]


def _by_columns(values: list[Tensor], call: TransformedCall) -> bool:
    """Whether there are fewer columns than rows.

    They are differentiated twice for, which pays off if it saves more than a few backwards. It
    costs nothing in a trace: what is not used is never computed there.
    """
    real = all(t._array.dtype.kind == "f" for t in (*values, *call.tensors))
    columns = sum(t._array.size for t in call.tensors)
    rows = sum(value._array.size for value in values)
    if not (columns and real):
        return False
    return columns <= rows if state.ground.deferred else 4 * columns + 16 < rows


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
            first = call.gradients(value, create_graph=True)
            table = _jacobians(first, call)
        return call.result([call.result([call.kind(j) for j in row]) for row in table])

    return differentiated
