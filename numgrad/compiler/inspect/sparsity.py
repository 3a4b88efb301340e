"""``sparsity``: elements of a derivative that may differ from zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from numgrad.autograd.modes import enable_grad
from numgrad.compiler.inspect.dependence import patterns
from numgrad.compiler.passes import optimize
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.tracer import Tracer
from numgrad.core.interpreter import state
from numgrad.core.tree import flatten, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.argnums import ArgnumsLike, choose
from numgrad.transforms.call import TransformedCall
from numgrad.transforms.derivatives import grad


def sparsity(
    f: Callable[..., Any], *args: Any, order: int = 1, argnums: ArgnumsLike = None
) -> sparse.csr_array:
    """Find which elements of the Jacobian or Hessian of a function may differ from zero.

    The function is traced once, and what depends on what is followed through its operations. So
    the pattern holds for arguments of these shapes, whatever their values are: it may have too many
    elements, never too few. Elementwise operations, views, indexing, sums, products of matrices,
    scatters and loops are followed element by element; the result of anything else counts as
    depending on all of its operands.

    Parameters
    ----------
    f
        A function that ``ng.jit`` can trace: no ``if`` on a value.
    *args
        Its arguments, of which shapes and dtypes count.
    order
        1 for the Jacobian; 2 for the Hessian of a function that returns one number.
    argnums
        The argument that is differentiated by, or several; the first one by default.

    Returns
    -------
    scipy.sparse.csr_array
        Of booleans, with a row for each element of the result, and a column for each element of
        the arguments, in the order of ``ng.tree.ravel``; for order 2 symmetric.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``ng.jacobian``, or if ``order`` is neither 1 nor 2.
    NumgradRuntimeError
        If it is called inside of a function that ``ng.jit`` or ``ng.vmap`` transforms.
    NumgradTraceError
        If the function looks at values.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> pattern = ng.func.sparsity(lambda x: x[1:] * x[:-1], np.ones(4))
    >>> pattern.toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    if order not in (1, 2):
        raise NumgradValueError(f"sparsity: order is 1 (Jacobian) or 2 (Hessian), got {order!r}")
    if state.ground.deferred or state.interpreters:
        raise NumgradRuntimeError(
            "sparsity: shapes are numbers outside of ng.jit, ng.vmap and forward mode only; find "
            "the pattern before, for arrays of the same shapes"
        )
    numbers = choose("sparsity", f, argnums)
    call = TransformedCall(numbers, args, recorded=False)
    derived = f if order == 1 else grad(f, argnums=numbers.numbers)
    given = list(args)

    def traced(tensors: Sequence[Tensor]) -> Any:
        remaining = iter(tensors)
        for key, nesting in zip(call.keys, call.nestings, strict=True):
            given[key] = unflatten(nesting, remaining)  # pyright: ignore
        return derived(*given)

    tracer = Tracer(dynamic=False)
    with TraceInterpreter(tracer), enable_grad():
        tensors = [tracer.array(t.shape, t.dtype) for t in call.tensors]
        inputs = [tracer.value(t) for t in tensors]
        results: list[Any] = []
        flatten(traced(tensors), results)
        tracer.graph.outputs = [tracer.value(call.arrays(x)[0]) for x in results]
    graph = tracer.graph
    optimize(graph)
    sizes = [int(t.size) for t in call.tensors]
    columns = sum(sizes)
    starts = np.cumsum([0, *sizes])
    own = {
        value: sparse.csr_array(
            (np.ones(n, bool), (np.arange(n), np.arange(start, start + n))), shape=(n, columns)
        )
        for value, n, start in zip(inputs, sizes, starts, strict=False)
    }
    known = {c.value: c.array for c in tracer.captured}
    found_rows = patterns(graph, own, known, columns)
    empty = [sparse.csr_array((0, columns), dtype=bool)]
    rows = [
        sparse.csr_array((prod(map(int, v.shape)), columns), dtype=bool) if p is None else p
        for v, p in zip(graph.outputs, found_rows, strict=True)
    ]
    pattern: Any = sparse.csr_array(sparse.vstack(empty + rows, format="csr"))
    if order == 2:
        pattern = sparse.csr_array(pattern + pattern.T)
    pattern.sort_indices()
    return pattern
