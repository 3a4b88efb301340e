"""Lyapunov's and Riccati's equations of matrices.

Note [Derivatives of Riccati's equations]
-----------------------------------------
With the gain ``k`` of the optimal control and the closed loop ``a - b @ k`` the change of the
solution solves a Lyapunov equation, whose right side is the change of the equation at fixed ``x``.
The adjoint equation has the transposed closed loop, and its solution is the gradient by ``q``;
those by others follow from it (T.-C. Kao, G. Hennequin, "Automatic differentiation of Sylvester,
Lyapunov, and algebraic Riccati equations", 2020).
"""

import importlib
from typing import Any

import numpy as np

from numgrad.core.declare import Meta, composite, primitive
from numgrad.errors import NumgradLinAlgError, NumgradValueError
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.matrix_functions import solve_sylvester
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.shape import as_operand, broadcast_to, expand_dims, reshape

_SMALL = 10
"""Lengths below which a discrete equation is written as one system, as in SciPy."""


def _check_pair(name: str, a: Any, q: Any) -> tuple[Any, Any]:
    a, q = as_operand(a), as_operand(q)
    matrices.check_square(name, a)
    matrices.check_square(name, q, "q")
    if a.shape[-1] != q.shape[-1]:
        raise NumgradValueError(
            f"{name}: shapes {tuple(a.shape)} and {tuple(q.shape)}: a and q must be of one length"
        )
    return a, q


@composite(ref="scipy.linalg.solve_continuous_lyapunov", method=False, smooth=True)
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
    a, q = _check_pair("solve_continuous_lyapunov", a, q)
    return solve_sylvester(a, matrices.adjoint(a), q)


@composite(ref="scipy.linalg.solve_discrete_lyapunov", method=False, smooth=True)
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
    a, q = _check_pair("solve_discrete_lyapunov", a, q)
    if method not in (None, "direct", "bilinear"):
        raise NumgradValueError(
            f"solve_discrete_lyapunov: method is 'direct' or 'bilinear', got {method!r}"
        )
    if method == "direct" or (method is None and a.shape[-1] < _SMALL):
        return _direct(a, q)
    one, back = matrices.identity(a.shape[-1], a.dtype), matrices.adjoint(a)
    # with b = (a* - 1) (a* + 1)^-1 the equation is b* x + x b = -c
    right = matrices.adjoint(solve(a + one, matrices.adjoint(back - one)))
    c = 2 * matrices.adjoint(solve(a + one, matrices.adjoint(solve(a + one, q))))
    return -solve_sylvester(matrices.adjoint(right), right, c)


def _direct(a: Any, q: Any) -> Any:
    """Solve the system whose matrix is the Kronecker product of ``a`` and its conjugate, less 1."""
    n = a.shape[-1]
    batch = matrices.stacks("solve_discrete_lyapunov", a.shape[:-2], q.shape[:-2])
    other = np.conj(a) if a.dtype.kind == "c" else a
    pairs = expand_dims(a, (-3, -1)) * expand_dims(other, (-4, -2))
    matrix = matrices.identity(n * n, a.dtype) - reshape(pairs, (*a.shape[:-2], n * n, n * n))
    sides = reshape(broadcast_to(q, (*batch, n, n)), (*batch, n * n, 1))
    return reshape(solve(matrix, sides), (*batch, n, n))


def _meta(name: str, a: Any, b: Any, q: Any, r: Any) -> Meta:
    for x, said in ((a, "a"), (q, "q"), (r, "r")):
        matrices.check_square(name, x, said)
    if any(len(x.shape) != 2 for x in (a, b, q, r)):
        raise NumgradLinAlgError(f"{name}: takes matrices, and no stacks of such; call it for each")
    n, m = a.shape[-1], r.shape[-1]
    if tuple(b.shape) != (n, m) or q.shape[-1] != n:
        raise NumgradLinAlgError(
            f"{name}: with a of shape {tuple(a.shape)} and r of shape {tuple(r.shape)}, b must be "
            f"of shape {(n, m)} and q of shape {(n, n)}, got {tuple(b.shape)} and {tuple(q.shape)}"
        )
    return Meta(a.shape, matrices.computing_dtype(name, a, b, q, r))


def _solution(name: str, *arguments: Any) -> np.ndarray:
    """SciPy's, whose errors are named."""
    meta = _meta(name, *arguments)
    try:
        result = getattr(importlib.import_module("scipy.linalg"), name)(*arguments)
    except np.linalg.LinAlgError as error:
        raise NumgradLinAlgError(f"{name}: {error}") from None
    except ValueError as error:
        raise NumgradLinAlgError(f"{name}: {error}; are q and r symmetric?") from None
    return np.asarray(result, meta.dtype)


@primitive(ref="scipy.linalg.solve_continuous_are", method=False, smooth=True)
def solve_continuous_are(a, b, q, r):
    """The ``x`` of ``a* x + x a - x b inv(r) b* x + q = 0`` by which the closed loop is stable.

    Parameters
    ----------
    a, b, q, r
        Matrices, of which ``q`` and ``r`` are symmetric or Hermitian.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradLinAlgError
        If there is no such solution.

    Examples
    --------
    >>> one = ng.tensor([[1.0]])
    >>> ng.linalg.solve_continuous_are(one * 0, one, one * 4, one)
    tensor([[2.]])
    """
    return _solution("solve_continuous_are", a, b, q, r)


@primitive(ref="scipy.linalg.solve_discrete_are", method=False, smooth=True)
def solve_discrete_are(a, b, q, r):
    """The ``x`` of ``a* x a - x - a* x b inv(r + b* x b) b* x a + q = 0``, the closed loop stable.

    Parameters
    ----------
    a, b, q, r
        Matrices, of which ``q`` and ``r`` are symmetric or Hermitian.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradLinAlgError
        If there is no such solution.

    Examples
    --------
    >>> one = ng.tensor([[1.0]])
    >>> ng.linalg.solve_discrete_are(one * 0, one, one * 4, one)
    tensor([[4.]])
    """
    return _solution("solve_discrete_are", a, b, q, r)


solve_continuous_are.shape(lambda a, b, q, r: _meta("solve_continuous_are", a, b, q, r))
solve_discrete_are.shape(lambda a, b, q, r: _meta("solve_discrete_are", a, b, q, r))


def _continuous(g: Any, a: Any, b: Any, r: Any, y: Any) -> tuple[Any, Any, Any]:
    """Gain, gradient by ``q``, and what the others have in common: the Note above."""
    gain = solve(r, matrices.product(matrices.adjoint(b), y))
    s = solve_continuous_lyapunov(a - matrices.product(b, gain), -g)
    return gain, s, matrices.product(y, s + matrices.adjoint(s))


def _discrete(g: Any, a: Any, b: Any, r: Any, y: Any) -> tuple[Any, Any, Any]:
    """The same of the other equation."""
    back = matrices.product(matrices.adjoint(b), y)
    gain = solve(r + matrices.product(back, b), matrices.product(back, a))
    loop = a - matrices.product(b, gain)
    s = solve_discrete_lyapunov(loop, g)
    return gain, s, matrices.product(matrices.product(y, loop), s + matrices.adjoint(s))


def _formulas(terms: Any) -> dict[str, Any]:
    """Gradient formulas of an equation."""

    def of_b(g, a, b, r, y):
        gain, _, common = terms(g, a, b, r, y)
        return -matrices.product(common, matrices.adjoint(gain))

    def of_r(g, a, b, r, y):
        gain, s, _ = terms(g, a, b, r, y)
        return matrices.product(matrices.product(gain, s), matrices.adjoint(gain))

    return {
        "a": lambda g, a, b, r, y: terms(g, a, b, r, y)[2],
        "b": of_b,
        "q": lambda g, a, b, r, y: terms(g, a, b, r, y)[1],
        "r": of_r,
    }


solve_continuous_are.vjp(**_formulas(_continuous))
solve_discrete_are.vjp(**_formulas(_discrete))
