"""``value_and_grad`` and ``map`` on the pieces of their data."""

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.autograd.function import Function
from numgrad.autograd.modes import is_grad_enabled
from numgrad.core.interpreter import state
from numgrad.core.tree import flatten, leaves, unflatten
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradRuntimeError,
    NumgradTraceError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.parallel.executors import (
    EachRow,
    Gradients,
    Partition,
    Remote,
    as_array,
    check_executor,
    evaluate,
)
from numgrad.tensors.tensor import Tensor


def value_and_grad(
    f: Callable[..., Any],
    executor: Any = None,
    *,
    chunks: int | Sequence[int] | None = None,
    argnums: int | Sequence[int] = 0,
    reduction: str = "sum",
    jit: bool = False,
) -> Callable[..., Any]:
    """The function that returns the sum of ``f`` over pieces of its data, and its gradient.

    Arguments that are not differentiated are data: they are cut along their first axis. The pieces
    are evaluated by the executor, and added up in their order, so that the result has the same bits
    for any number of workers. Keywords go to all pieces as they are.

    Parameters
    ----------
    f
        A function of arrays that returns one real number, a sum or mean over the rows of its data.
    executor
        An executor of ``concurrent.futures``, a client of Dask, or None to do all here. Processes
        import what they compute: guard a script by ``if __name__ == "__main__"``.
    chunks
        The number of pieces, or their numbers of rows; by default 8 pieces, or those of Dask
        arrays, whose blocks stay where they are.
    argnums
        The argument, or several, to differentiate, arrays in any nesting.
    reduction
        ``"sum"``, or ``"mean"`` if ``f`` is a mean over rows: pieces count by their rows.
    jit
        Compile value and gradient, once a worker.

    Returns
    -------
    callable
        ndarrays in, ndarrays out; with a Tensor among the differentiated arguments Tensors out, and
        the value has a graph, of one node: it may be the loss of ``ng.optim.minimize``, and what
        ``ng.minimize`` minimizes (``lambda w: loss(w, x, y)[0]``).

    Raises
    ------
    NumgradTypeError
        If an argument is of the wrong kind, or ``f`` cannot be sent to other processes.
    NumgradValueError
        If data have different numbers of rows, or none.
    NumgradRuntimeError
        If a process ended, with the pieces that were lost. Dask computes them again.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import numpy as np
    >>> import numgrad as ng
    >>> def loss(w, x, y):
    ...     return np.sum((x @ w - y) ** 2)
    >>> x, y = np.arange(12.0).reshape(6, 2), np.ones(6)
    >>> with ThreadPoolExecutor(2) as executor:
    ...     value, gradient = ng.parallel.value_and_grad(loss, executor, chunks=3)(np.ones(2), x, y)
    >>> float(value), gradient
    (880.0, array([ 880., 1000.]))
    """
    name = "parallel.value_and_grad"
    _check(name, f, executor, jit)
    numbers = (argnums,) if isinstance(argnums, int | np.integer) else argnums
    if isinstance(argnums, bool) or not (
        isinstance(numbers, tuple | list) and numbers and all(_is_position(k) for k in numbers)
    ):
        raise NumgradTypeError(f"{name}: argnums is a position from 0, or several, got {argnums!r}")
    if len(set(numbers)) < len(numbers):
        raise NumgradValueError(f"{name}: argnums are different ones, got {argnums!r}")
    if reduction not in ("sum", "mean"):
        raise NumgradValueError(f"{name}: reduction is 'sum' or 'mean', got {reduction!r}")
    remote = Remote(name, f, Gradients(tuple(numbers), jit))

    @wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= max(numbers):
            raise NumgradValueError(
                f"{name}: argument {max(numbers)} is to be differentiated, got {len(args)} of them"
            )
        _check_numbers(name, args)
        _check_constant(name, [*(x for k, x in enumerate(args) if k not in numbers), kwargs])
        leaves: list[Any] = []
        structure = flatten(tuple(args[k] for k in numbers), leaves)
        sent = unflatten(structure, iter([as_array(leaf) for leaf in leaves]))
        cut = Partition(name, [x for k, x in enumerate(args) if k not in numbers], chunks)

        def place(data: tuple[Any, ...]) -> tuple[Any, ...]:
            whole, rest = dict(zip(numbers, sent, strict=True)), iter(data)
            return tuple(whole[k] if k in whole else next(rest) for k in range(len(args)))

        results = evaluate(executor, remote, cut, place, kwargs)
        if reduction == "mean":
            results = [
                (value * ((b - a) / cut.rows), [g * ((b - a) / cut.rows) for g in gradients])
                for (a, b), (value, gradients) in zip(pairwise(cut.bounds), results, strict=True)
            ]
        value, grads = _added(results)
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            grads = [Tensor(g) for g in grads]
            value = _recorded(value, leaves, grads)
        else:
            value, grads = value[()], [g[()] for g in grads]  # numbers of no axis
        gradients = unflatten(structure, iter(grads))
        return value, gradients[0] if isinstance(argnums, int | np.integer) else tuple(gradients)

    return differentiated


def map(
    f: Callable[..., Any],
    xs: Any,
    executor: Any = None,
    *,
    chunks: int | Sequence[int] | None = None,
    jit: bool = False,
    **kwargs: Any,
) -> Any:
    """Call ``f`` for each row of ``xs`` on an executor, and collect what it returns.

    Parameters
    ----------
    f
        Takes a row of ``xs``, returns arrays or numbers in any nesting.
    xs
        Arrays whose first axis is gone through, in any nesting.
    executor, chunks
        As for ``parallel.value_and_grad``: a worker gets the rows of one piece together.
    jit
        Compile ``f``, once a worker.
    **kwargs
        Go to all calls as they are.

    Returns
    -------
    ndarrays in the nesting of what ``f`` returns, with an axis more; nothing is recorded.

    Raises
    ------
    NumgradTypeError, NumgradValueError, NumgradRuntimeError
        As for ``parallel.value_and_grad``, and if results differ in shape or nesting.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import numpy as np
    >>> import numgrad as ng
    >>> with ThreadPoolExecutor(2) as executor:
    ...     ng.parallel.map(lambda row: row.sum(), np.arange(6.0).reshape(3, 2), executor)
    array([1., 5., 9.])
    """
    name = "parallel.map"
    _check(name, f, executor, jit)
    _check_numbers(name, (xs,))
    cut = Partition(name, [xs], chunks)
    remote = Remote(name, f, EachRow(jit))
    results = evaluate(executor, remote, cut, lambda data: data, kwargs)
    structures = [structure for _, structure in results]
    if any(structure != structures[0] for structure in structures):
        raise NumgradValueError(f"{name}: the function returns different structures for rows")
    columns = list(zip(*(leaves for leaves, _ in results), strict=True))
    for column in columns:
        shapes = {leaf.shape[1:] for leaf in column}
        if len(shapes) > 1:
            raise NumgradValueError(
                f"{name}: the function returns shapes {' and '.join(str(s) for s in shapes)} for "
                "different rows; they must be equal"
            )
    return unflatten(structures[0], iter([np.concatenate(column) for column in columns]))


def _check(name: str, f: Any, executor: Any, jit: Any) -> None:
    if not callable(f):
        raise NumgradTypeError(f"{name}: takes a function, got {type(f).__name__}")
    if not isinstance(jit, bool):
        raise NumgradTypeError(f"{name}: jit is True or False, got {jit!r}")
    check_executor(name, executor)


def _is_position(k: Any) -> bool:
    return isinstance(k, int | np.integer) and not isinstance(k, bool) and bool(k >= 0)


def _check_numbers(name: str, args: Sequence[Any]) -> None:
    """Raise where there are no numbers to send."""
    if state.ground.deferred or state.interpreters:
        raise NumgradTraceError(
            f"{name}: a function that is traced or mapped (ng.jit, ng.vmap, forward mode) has no "
            "numbers to send yet; jit=True compiles what workers do"
        )


def _check_constant(name: str, others: Sequence[Any]) -> None:
    """Raise if a gradient is wanted that would be lost."""
    if is_grad_enabled() and any(
        isinstance(leaf, Tensor) and leaf.requires_grad for x in others for leaf in leaves(x)
    ):
        raise NumgradRuntimeError(
            f"{name}: data or a keyword require grad, and only argnums are differentiated; name "
            "the argument in argnums, or give tensor.detach()"
        )


def _added(results: Sequence[tuple[Any, list[Any]]]) -> tuple[Any, list[Any]]:
    """The sum of values and gradients in the order of the pieces."""
    value, gradients = results[0]
    value, gradients = np.array(value), [np.array(g) for g in gradients]
    for term, theirs in results[1:]:
        value = value + term
        for total, g in zip(gradients, theirs, strict=True):
            total += g
    return np.asarray(value), gradients


class _Known(Function):
    """A value whose gradients are known: what came from elsewhere, in a graph."""

    own_rule = False

    @staticmethod
    def forward(ctx: Any, value: Any, gradients: Any, *tensors: Any) -> Any:
        ctx.gradients = gradients
        return Tensor(np.array(value))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if g.requires_grad or is_grad_enabled():
            raise NumgradNotImplementedError(
                "parallel.value_and_grad: workers return first derivatives only, and second ones "
                "are asked for; use a method of first order"
            )
        return (None, None, *(g * gradient for gradient in ctx.gradients))


def _recorded(value: np.ndarray, leaves: Sequence[Any], gradients: Sequence[Tensor]) -> Tensor:
    numbers = [
        k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad
    ]
    if not numbers or not is_grad_enabled():
        return Tensor(value)
    return _Known.apply(value, [gradients[k] for k in numbers], *(leaves[k] for k in numbers))
