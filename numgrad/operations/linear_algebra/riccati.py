"""Riccati's algebraic equations, by SciPy, with implicit derivatives.

Note [Derivatives of Riccati's equations]
-----------------------------------------
With the gain ``k`` of the optimal control and the closed loop ``a - b @ k`` the change of the
solution solves a Lyapunov equation, whose right side is the change of the equation at fixed ``x``.
The adjoint equation has the transposed closed loop, and its solution is the gradient by ``q``;
those by others follow from it (T.-C. Kao, G. Hennequin, "Automatic differentiation of Sylvester,
Lyapunov, and algebraic Riccati equations", 2020).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradLinAlgError
from numgrad.operations.linear_algebra.checks import adjoint, check_square, computing_dtype, product
from numgrad.operations.linear_algebra.lyapunov import (
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
)
from numgrad.operations.linear_algebra.systems import solve


def _meta(name: str, a: Any, b: Any, q: Any, r: Any) -> Meta:
    for x, said in ((a, "a"), (q, "q"), (r, "r")):
        check_square(name, x, said)
    if any(len(x.shape) != 2 for x in (a, b, q, r)):
        raise NumgradLinAlgError(f"{name}: takes matrices, and no stacks of such; call it for each")
    n, m = a.shape[-1], r.shape[-1]
    if tuple(b.shape) != (n, m) or q.shape[-1] != n:
        raise NumgradLinAlgError(
            f"{name}: with a of shape {tuple(a.shape)} and r of shape {tuple(r.shape)}, b must be "
            f"of shape {(n, m)} and q of shape {(n, n)}, got {tuple(b.shape)} and {tuple(q.shape)}"
        )
    return Meta(a.shape, computing_dtype(name, a, b, q, r))


def _solution(name: str, *given: Any) -> np.ndarray:
    """SciPy's, whose errors are named."""
    meta = _meta(name, *given)
    try:
        found = getattr(importlib.import_module("scipy.linalg"), name)(*given)
    except np.linalg.LinAlgError as error:
        raise NumgradLinAlgError(f"{name}: {error}") from None
    except ValueError as error:
        raise NumgradLinAlgError(f"{name}: {error}; are q and r symmetric?") from None
    return np.asarray(found, meta.dtype)


@primitive(
    ref="scipy.linalg.solve_continuous_are",
    method=False,
    smooth=True,
    errors=[(((2, 2), (2, 1), (3, 3), (1, 1)), {}, "NumgradLinAlgError")],
)
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


@primitive(
    ref="scipy.linalg.solve_discrete_are",
    method=False,
    smooth=True,
    errors=[(((2, 2), (2, 1), (3, 3), (1, 1)), {}, "NumgradLinAlgError")],
)
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
    gain = solve(r, product(adjoint(b), y))
    s = solve_continuous_lyapunov(a - product(b, gain), -g)
    return gain, s, product(y, s + adjoint(s))


def _discrete(g: Any, a: Any, b: Any, r: Any, y: Any) -> tuple[Any, Any, Any]:
    """The same of the other equation."""
    back = product(adjoint(b), y)
    gain = solve(r + product(back, b), product(back, a))
    loop = a - product(b, gain)
    s = solve_discrete_lyapunov(loop, g)
    return gain, s, product(product(y, loop), s + adjoint(s))


def _formulas(parts: Any) -> dict[str, Any]:
    """Gradient formulas of an equation."""

    def of_b(g, a, b, r, y):
        gain, _, common = parts(g, a, b, r, y)
        return -product(common, adjoint(gain))

    def of_r(g, a, b, r, y):
        gain, s, _ = parts(g, a, b, r, y)
        return product(product(gain, s), adjoint(gain))

    return {
        "a": lambda g, a, b, r, y: parts(g, a, b, r, y)[2],
        "b": of_b,
        "q": lambda g, a, b, r, y: parts(g, a, b, r, y)[1],
        "r": of_r,
    }


solve_continuous_are.vjp(**_formulas(_continuous))
solve_discrete_are.vjp(**_formulas(_discrete))


def _weights(x: Any) -> Any:
    return 0.2 * (x + adjoint(x)) + 3 * np.eye(x.shape[-1].__index__())


for _op in (solve_continuous_are, solve_discrete_are):
    _op.calls = [
        (((2, 2), (2, 1), (2, 2), (1, 1)),
         lambda a, b, q, r, op=_op: op(0.3 * a, b + 1, _weights(q), _weights(r))),
    ]  # fmt: skip
