"""``grad``, ``value_and_grad``, Jacobians and ``hessian`` of functions of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from numgrad.autograd.structured_jacobians import columns_by_duals, few, rows_by_point, suits
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import unflatten
from numgrad.core.wrappers import wrapper
from numgrad.errors import NumgradError, NumgradNotImplementedError, NumgradRuntimeError
from numgrad.tensors.random_state import RandomState
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import (
    Argnames,
    Argnums,
    ArgnumsLike,
    TransformedCall,
    choose,
    compiled_whole,
)
from numgrad.transforms.linearization import dual_columns, filled, is_of_the_table, uses_user_code

if TYPE_CHECKING:
    from numgrad.transforms.signatures import (
        DerivativeFunction,
        GradientFunction,
        ValueAndGradientFunction,
    )

R = TypeVar("R")


@overload
def value_and_grad(f: Callable[..., R]) -> ValueAndGradientFunction[R]: ...
@overload
def value_and_grad(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Callable[..., tuple[Any, Any]]: ...
def value_and_grad(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Any:
    """The function that returns ``f(*args)`` and its gradient.

    Parameters
    ----------
    f
        A function of arrays that returns one real number. Inside it the arguments that are
        differentiated are Tensors.
    argnums
        The argument, or several, to differentiate; each an array or a nesting of tuples, lists,
        dicts, dataclasses and registered classes (``ng.tree.register``) with arrays in it. The
        first one, unless ``argnames`` are given.
    has_aux
        ``f`` returns ``(value, aux)``; the result is then ``((value, aux), gradient)``.
    argnames
        Arguments by name: the gradient is that of one, or a dict; with ``argnums`` as well, a pair
        of both.
    holomorphic
        ``f`` is a holomorphic function of complex arrays, and what is wanted is its complex
        derivative.

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
        If ``f``, ``argnums`` or ``argnames`` are of the wrong kind, an argument has no derivatives
        (arrays of integers, None, strings), or ``f`` returns nothing or what has none (booleans,
        integers).
    NumgradValueError
        If there is no such argument.
    NumgradRuntimeError
        If the result is not one real number.

    Notes
    -----
    A floating number or array that ``f`` returns is a constant: its gradient is zero. Booleans and
    integers (what is compared, counted or looked for) have none and raise.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> value, gradient = ng.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    >>> ng.grad(lambda x, scale: x * scale, argnames=("x", "scale"))(2.0, scale=3.0)
    {'x': np.float64(3.0), 'scale': np.float64(2.0)}
    """
    numbers = choose("value_and_grad", f, argnums, argnames, holomorphic)
    made = _value_and_grad(numbers, has_aux)
    return wrapper(made, value_and_grad, f, argnums, has_aux, argnames, holomorphic)


def _value_and_grad(argnums: Argnums, has_aux: bool) -> Callable[..., Any]:
    @functools.wraps(argnums.function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with TransformedCall(argnums, args, kwargs) as call:
            value = call.value(has_aux)
            results = call.gradients(value)
        out = call.kind(value)
        if isinstance(out, np.ndarray):
            out = out.reshape(())[()]
        gradient = call.result(map(call.kind, results))
        return ((out, call.kinds(call.aux)), gradient) if has_aux else (out, gradient)

    return differentiated


@overload
def grad(f: Callable[..., Any]) -> GradientFunction: ...
@overload
def grad(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Callable[..., Any]: ...
def grad(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Any:
    """The function that returns the gradient of ``f``; see ``value_and_grad``.

    With ``has_aux`` it returns ``(gradient, aux)``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.grad(np.sin)(0.0)
    np.float64(1.0)
    """
    both = _value_and_grad(choose("grad", f, argnums, argnames, holomorphic), has_aux)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper(differentiated, grad, f, argnums, has_aux, argnames, holomorphic)


# -------------------------------------------------------------------------------------- Jacobians


@overload
def jacobian(f: Callable[..., Any]) -> DerivativeFunction: ...
@overload
def jacobian(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]: ...
def jacobian(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
    *,
    sparsity: Any = None,
) -> Any:
    """The function that returns the Jacobian of ``f``, of shape ``output.shape + input.shape``.

    Arguments are those of ``value_and_grad``, but ``f`` may return arrays of any shape, in any
    nesting: in place of each there is then the nesting of its derivatives. It is computed by rows,
    or by columns where these are much fewer; ``f`` is called once, for a few columns twice. Where
    elements of a vector have nothing in common except the input, as residuals of a model, all rows
    take one backward together. A row is the gradient of one output; where that is complex and not
    ``holomorphic``, of its real part.

    ``sparsity`` is a matrix that is not zero where the Jacobian may be, with a row for each element
    of all outputs and a column for each of all inputs, as ``ng.func.sparsity`` finds it. The result
    is then such a ``scipy.sparse.csr_array``, whose stored elements are those of the pattern, and
    rows or columns that have nothing in common are computed together. The first result is checked
    against a product with a random vector: an element that the pattern misses raises
    ``NumgradValueError``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> ng.jacobian(lambda x, y: {"product": x * y}, (0, 1))(2.0, 3.0)
    {'product': (np.float64(3.0), np.float64(2.0))}
    >>> pattern = ng.func.sparsity(np.diff, np.ones(1000))
    >>> ng.jacobian(lambda x: np.diff(x**2), sparsity=pattern)(np.arange(1000.0))[1, :4].toarray()
    array([ 0., -2.,  4.,  0.])
    """
    numbers = choose("jacobian", f, argnums, argnames, holomorphic)
    if sparsity is not None:
        transformed = _sparse().jacobian(numbers, has_aux, sparsity)
        again = functools.partial(jacobian, sparsity=sparsity)
        return wrapper(transformed, again, f, argnums, has_aux, argnames, holomorphic)
    transformed = _jacobian(numbers, has_aux, _by_shape)
    return wrapper(transformed, jacobian, f, argnums, has_aux, argnames, holomorphic)


@overload
def jacrev(f: Callable[..., Any]) -> DerivativeFunction: ...
@overload
def jacrev(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Callable[..., Any]: ...
def jacrev(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Any:
    """``jacobian`` by rows: a backward for each element of the output, many at once.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.jacrev(lambda x: np.sum(x) ** 2)(np.array([1.0, 2.0]))
    array([6., 6.])
    """
    numbers = choose("jacrev", f, argnums, argnames, holomorphic)
    return wrapper(
        _jacobian(numbers, has_aux, _by_rows), jacrev, f, argnums, has_aux, argnames, holomorphic
    )


@overload
def jacfwd(f: Callable[..., Any]) -> DerivativeFunction: ...
@overload
def jacfwd(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Callable[..., Any]: ...
def jacfwd(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Any:
    """``jacobian`` by forward mode: with a tangent for each element of the input, many at once.

    ``f`` is called more than once, and what it calls needs rules of forward mode. Derivatives are
    of the dtype of the output; by a complex input they are those along the real axis.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.jacfwd(lambda x: np.stack([np.sin(x), np.cos(x)]))(0.0)
    array([ 1., -0.])
    """
    numbers = choose("jacfwd", f, argnums, argnames, holomorphic)
    derived = compiled_whole(f, _jacobian(numbers, has_aux, _by_duals))
    return wrapper(derived, jacfwd, f, argnums, has_aux, argnames, holomorphic)


def _sparse() -> Any:
    """The module for sparse patterns, which needs SciPy: imported when first used."""
    return import_module("numgrad.transforms.sparse_derivatives")


def _jacobian(argnums: Argnums, has_aux: bool, derive: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(argnums.function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        again = derive is _by_duals
        with TransformedCall(argnums, args, kwargs, recorded=not again) as call:
            values = call.repeatable_outputs(has_aux) if again else call.outputs(has_aux)
            table = derive(values, call)
        rows = [call.result(map(call.kind, row)) for row in table]
        result = unflatten(call.structure, iter(rows))
        return (result, call.kinds(call.aux)) if has_aux else result

    return differentiated


def _by_shape(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    """For each value, for each input, an array of shape ``value.shape + input.shape``."""
    with suppress(NumgradNotImplementedError):
        return _by_points(values, call)
    return _by_lines(values, call)


def _by_lines(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    return (_by_columns if _prefers_columns(values, call) else _by_rows)(values, call)


def _by_points(values: Sequence[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    """The rows of vectors at once.

    Raises
    ------
    NumgradNotImplementedError
        Where these are not of this kind: Note [Rows by point] in ``autograd.structured_jacobians``.
    """
    dtypes = {t._array.dtype for t in (*values, *call.tensors)}
    vectors = all(v._array.ndim == 1 and v._array.size > 1 for v in values)
    recorded = call.outside or state.interpreters or state.ground.deferred
    if recorded or not vectors or len(dtypes) > 1 or dtypes.pop().kind != "f":
        raise NumgradNotImplementedError("points: for outer transforms, or of other kinds")
    table = []
    for v in values:
        results = rows_by_point(v, call.tensors)
        table.append([
            filled(block if block is None else Tensor(block), (*v.shape, *t.shape), t.dtype)
            for block, t in zip(results, call.tensors, strict=True)
        ])  # fmt: skip
    return table


def _by_rows(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    linear = call.linear(values)
    return [call.filled(linear.rows(k), v._array.shape) for k, v in enumerate(values)]


def _by_columns(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    if not call.outside and few(call.tensors, values):
        with suppress(NumgradError):  # no rule of forward mode, a record is needed, ...
            return _once_more(values, call)
    linear = call.linear(values)
    columns = [linear.columns(k) for k in range(len(call.tensors))]
    return [
        [
            OPS["astype"](filled(block, v.shape + t.shape, t.dtype), t.dtype)
            for block, t in zip(row, call.tensors, strict=True)
        ]
        for v, row in zip(values, zip(*columns, strict=True), strict=True)
    ]


def _once_more(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    """The columns by a second call of the function, if that gives the same values."""
    again: list[Tensor] = []

    def evaluate(tensors: Sequence[Tensor]) -> list[Tensor]:
        again.extend(call.evaluate(tensors))
        return again

    random = RandomState(call.argnums.function, call.arguments)
    try:
        table = columns_by_duals(evaluate, call.tensors)
    finally:
        random.restore()  # the function was called once
    for y, value in zip(values, again, strict=True):
        if not np.array_equal(y._array, value._array, equal_nan=True):
            raise NumgradNotImplementedError("columns: of random numbers, by one call only")
    return table


def _by_duals(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    if suits(call.tensors, values):
        try:
            return columns_by_duals(call.evaluate, call.tensors)
        except NumgradNotImplementedError:  # left to the ways below
            pass
    return dual_columns(call.evaluate, values, call.tensors)


def _prefers_columns(values: list[Tensor], call: TransformedCall) -> bool:
    """Whether columns are the cheaper way, and as safe.

    They are differentiated twice for, which pays off if it saves more than a few backwards. In a
    trace it costs nothing: what is not used is never computed there.
    """
    columns = sum([t._array.size for t in call.tensors])
    rows = sum([value._array.size for value in values])
    fewer = columns <= rows if state.ground.deferred else 4 * columns + 16 < rows
    if not (fewer and call.tensors):
        return False
    if not all(t._array.dtype.kind == "f" for t in (*values, *call.tensors)):
        return False
    return not uses_user_code(values) if state.ground.deferred else is_of_the_table(values)


@overload
def hessian(f: Callable[..., Any]) -> DerivativeFunction: ...
@overload
def hessian(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]: ...
def hessian(
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    has_aux: bool = False,
    argnames: Argnames = None,
    holomorphic: bool = False,
    *,
    sparsity: Any = None,
) -> Any:
    """The function that returns the matrix of second derivatives of ``f``.

    Arguments are those of ``value_and_grad``. For one array of shape ``s`` the result has shape
    ``s + s``; for several, or nestings, it is nested twice. ``f`` may return arrays of any shape,
    in any nesting: in place of each there are then its second derivatives, whose shapes begin with
    that of the array. It is the Jacobian of the recorded gradient or Jacobian, many rows at once.
    ``sparsity`` is that of ``jacobian``, here of a symmetric matrix with a row and a column for
    each element of all inputs: ``ng.func.sparsity(f, x, order=2)``; ``f`` then returns one number.

    Raises
    ------
    NumgradRuntimeError
        If ``f`` returns complex numbers, without ``holomorphic``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    >>> ng.hessian(lambda x: {"cube": x**3, "sum": np.sum(x**2)})(np.array([1.0]))
    {'cube': array([[[6.]]]), 'sum': array([[2.]])}
    """
    numbers = choose("hessian", f, argnums, argnames, holomorphic)
    if sparsity is not None:
        made = _sparse().hessian(numbers, has_aux, sparsity)
        again = functools.partial(hessian, sparsity=sparsity)
        return wrapper(made, again, f, argnums, has_aux, argnames, holomorphic)

    @functools.wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with TransformedCall(numbers, args, kwargs) as call:
            values = call.outputs(has_aux)
            if len(values) == 1 and call.structure is None and values[0]._array.size == 1:
                first = [call.gradients(values[0], create_graph=True)]
            else:
                first = _recorded_rows(values, call)
            tables = [_by_lines(rows, call) for rows in first]
        results = [call.result([call.result(map(call.kind, r)) for r in table]) for table in tables]
        result = unflatten(call.structure, iter(results))
        return (result, call.kinds(call.aux)) if has_aux else result

    return wrapper(differentiated, hessian, f, argnums, has_aux, argnames, holomorphic)


def _recorded_rows(values: list[Tensor], call: TransformedCall) -> list[list[Tensor]]:
    """The Jacobian of each value by each input, to be differentiated again."""
    if any((value.dtype.kind == "c") != call.argnums.holomorphic for value in values):
        raise NumgradRuntimeError(
            "hessian: the function returned complex numbers; take real and imaginary part as two "
            "outputs, or pass holomorphic=True where the function is so"
        )
    linear = call.linear(values, recorded=True)
    return [call.filled(linear.rows(k), v._array.shape) for k, v in enumerate(values)]
