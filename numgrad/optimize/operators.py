"""``ng.linear_operator``: derivatives as operators, for iterative solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.sparse.linalg import LinearOperator

from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.values import Values
from numgrad.optimize.watch import Watch


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
