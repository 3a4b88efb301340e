"""Lyapunov's equations, by those of Sylvester and by linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import composite
from numgrad.errors import NumgradValueError
from numgrad.operations.linear_algebra.checks import adjoint, check_square, identity, stacks
from numgrad.operations.linear_algebra.functions import solve_sylvester
from numgrad.operations.linear_algebra.systems import solve
from numgrad.operations.shape import as_operand, broadcast_to, expand_dims, reshape

_SMALL = 10
"""Lengths below which a discrete equation is written as one system, as in SciPy."""


def _given(name: str, a: Any, q: Any) -> tuple[Any, Any]:
    a, q = as_operand(a), as_operand(q)
    check_square(name, a)
    check_square(name, q, "q")
    if a.shape[-1] != q.shape[-1]:
        raise NumgradValueError(
            f"{name}: shapes {tuple(a.shape)} and {tuple(q.shape)}: a and q must be of one length"
        )
    return a, q


@composite(
    ref="scipy.linalg.solve_continuous_lyapunov",
    method=False,
    smooth=True,
    errors=[
        (((2, 3), (2, 2)), {}, "NumgradLinAlgError"),
        (((2, 2), (3, 3)), {}, "NumgradValueError"),
    ],
)
def solve_continuous_lyapunov(a, q):
    """The ``x`` of ``a @ x + x @ a* = q``, where ``a*`` is the conjugate transpose.

    Parameters
    ----------
    a
        Square matrices.
    q
        Of the shape of ``a``.

    Returns
    -------
    Tensor
        Of the shape of ``q``.

    Raises
    ------
    NumgradLinAlgError
        If an eigenvalue of ``a`` is minus the conjugate of one.

    Examples
    --------
    >>> ng.linalg.solve_continuous_lyapunov(ng.tensor([[1.0]]), ng.tensor([[6.0]]))
    tensor([[3.]])
    """
    a, q = _given("solve_continuous_lyapunov", a, q)
    return solve_sylvester(a, adjoint(a), q)


@composite(
    ref="scipy.linalg.solve_discrete_lyapunov",
    method=False,
    smooth=True,
    errors=[
        (((2, 3), (2, 2)), {}, "NumgradLinAlgError"),
        (((2, 2), (3, 3)), {}, "NumgradValueError"),
        (((2, 2), (2, 2)), {"method": "fast"}, "NumgradValueError"),
    ],
)
def solve_discrete_lyapunov(a, q, method=None):
    """The ``x`` of ``a @ x @ a* - x + q = 0``, where ``a*`` is the conjugate transpose.

    Parameters
    ----------
    a
        Square matrices.
    q
        Of the shape of ``a``.
    method : {'direct', 'bilinear'}
        One linear system for all elements, or a continuous equation, which takes less time for
        long matrices and needs that -1 is no eigenvalue of ``a``; by default the first one below a
        length of 10.

    Returns
    -------
    Tensor
        Of the shape of ``q``.

    Raises
    ------
    NumgradLinAlgError
        If an eigenvalue of ``a`` is the inverse of the conjugate of one.

    Examples
    --------
    >>> ng.linalg.solve_discrete_lyapunov(ng.tensor([[0.5]]), ng.tensor([[3.0]]))
    tensor([[4.]])
    """
    a, q = _given("solve_discrete_lyapunov", a, q)
    if method not in (None, "direct", "bilinear"):
        raise NumgradValueError(
            f"solve_discrete_lyapunov: method is 'direct' or 'bilinear', got {method!r}"
        )
    if method == "direct" or (method is None and a.shape[-1] < _SMALL):
        return _direct(a, q)
    one, back = identity(a.shape[-1], a.dtype), adjoint(a)
    # with b = (a* - 1) (a* + 1)^-1 the equation is b* x + x b = -c
    right = adjoint(solve(a + one, adjoint(back - one)))
    c = 2 * adjoint(solve(a + one, adjoint(solve(a + one, q))))
    return -solve_sylvester(adjoint(right), right, c)


def _direct(a: Any, q: Any) -> Any:
    """By the system whose matrix is the Kronecker product of ``a`` and its conjugate, less 1."""
    n = a.shape[-1]
    batch = stacks("solve_discrete_lyapunov", a.shape[:-2], q.shape[:-2])
    other = np.conj(a) if a.dtype.kind == "c" else a
    pairs = expand_dims(a, (-3, -1)) * expand_dims(other, (-4, -2))
    matrix = identity(n * n, a.dtype) - reshape(pairs, (*a.shape[:-2], n * n, n * n))
    sides = reshape(broadcast_to(q, (*batch, n, n)), (*batch, n * n, 1))
    return reshape(solve(matrix, sides), (*batch, n, n))


def _stable(a: Any) -> Any:
    return 0.2 * a + 0.3 * np.eye(a.shape[-1])


solve_continuous_lyapunov.calls = [
    (((2, 2), (2, 2)), lambda a, q: solve_continuous_lyapunov(a + 5 * np.eye(2), q)),
]
solve_discrete_lyapunov.calls = [
    (((2, 2), (2, 2)), lambda a, q: solve_discrete_lyapunov(_stable(a), q)),
    (((2, 2), (2, 2)), lambda a, q: solve_discrete_lyapunov(_stable(a), q, "bilinear")),
]
