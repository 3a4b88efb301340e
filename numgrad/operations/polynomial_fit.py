"""Polynomials nearest to points."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.polynomial import vander
from numgrad.operations.reduce import sum
from numgrad.operations.shape import as_operand, reshape


@primitive(internal=True, method=False, smooth=True)
def least_squares(a, b, *, rcond):
    """The shortest of the vectors that bring ``a @ x`` nearest to the columns of ``b``."""
    return np.linalg.lstsq(a, b, rcond=rcond)[0]


@least_squares.shape
def _solution(a, b, *, rcond):
    return Meta((a.shape[1], b.shape[1]), np.result_type(a.dtype, b.dtype))


def _adjoint(a: Any) -> Any:
    return np.conj(a).T


def _matrix_vjp(g, a, b, y, rcond):
    # Golub and Pereyra, 1973: the derivative of a pseudoinverse of constant rank
    across = partial(least_squares, _adjoint(a), rcond=rcond)
    along = partial(least_squares, a, rcond=rcond)
    w = across(g)
    rest, beyond = b - a @ y, g - along(a @ g)
    return rest @ _adjoint(along(w)) - w @ _adjoint(y) + across(y) @ _adjoint(beyond)


least_squares.vjp(
    a=_matrix_vjp,
    b=lambda g, a, rcond: least_squares(_adjoint(a), g, rcond=rcond),
)
least_squares.calls = [
    (((4, 2), (4, 1)), lambda a, b: least_squares(a, b, rcond=1e-15)),
    (((2, 3), (2, 2)), lambda a, b: least_squares(a, b, rcond=1e-15)),
]


@composite(ref=np.polyfit, method=False, smooth=True)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """Coefficients of the polynomial nearest to points, with gradients in points and weights.

    Parameters
    ----------
    y : array_like
        Values at ``x``, a column for each fit if there are two axes.
    deg : int
        Largest power.
    rcond : float
        Relative size of singular values that count as zero.
    full : bool
        Only False is taken.
    w : array_like
        Weights of the distances.
    cov : bool or str
        Whether to return the covariances of the coefficients too; ``"unscaled"`` as NumPy.

    Returns
    -------
    Tensor
        That of the highest power first; with ``cov`` a pair.

    Examples
    --------
    >>> ng.polyfit([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 5.0, 7.0], 1).round(6)
    tensor([2., 1.])
    """
    x, y = as_operand(x) * 1.0, as_operand(y) * 1.0
    deg = int(deg)
    if full:
        raise NumgradTypeError("polyfit: full=True is not taken; use np.linalg.lstsq of a vander")
    if deg < 0:
        raise NumgradValueError(f"polyfit: the degree must not be negative, got {deg}")
    if len(x.shape) != 1 or not x.shape[0]:
        raise NumgradTypeError(f"polyfit: x has one axis and elements, got shape {tuple(x.shape)}")
    if len(y.shape) not in (1, 2) or y.shape[0] != x.shape[0]:
        raise NumgradTypeError(
            f"polyfit: {x.shape[0]} points and values of shape {tuple(y.shape)}; they must be as "
            "many, along one or two axes"
        )
    n = x.shape[0]
    if rcond is None:
        rcond = int(n) * np.finfo(x.dtype).eps  # a compiled function is of this length
    a = vander(x, deg + 1)
    b = reshape(y, (n, -1))
    if w is not None:
        w = as_operand(w) * 1.0
        if tuple(w.shape) != tuple(x.shape):
            raise NumgradTypeError(
                f"polyfit: weights of shape {tuple(w.shape)} for {n} points; they must be as many"
            )
        a, b = a * w[:, None], b * w[:, None]
    scale = np.sqrt(sum(a * a, axis=0))
    a = a / scale
    c = least_squares(a, b, rcond=rcond)
    found = c / scale[:, None]
    found = found if len(y.shape) == 2 else found[:, 0]
    if not cov:
        return found
    solve = partial(least_squares, rcond=rcond)
    one = state.ground.made(np.eye(deg + 1))
    inverse = solve(a, solve(a.T, one)) / (scale[:, None] * scale)
    if cov == "unscaled":
        factor: Any = 1.0
    else:
        if n <= deg + 1:
            raise NumgradValueError(
                f"polyfit: {n} points are too few for covariances of {deg + 1} coefficients"
            )
        factor = sum(np.square(b - a @ c), axis=0) / (n - deg - 1)
    if len(y.shape) == 1:
        return found, inverse * (factor if cov == "unscaled" else factor[0])
    return found, inverse[:, :, None] * factor


polyfit.calls = [
    (((5,), (5,)), lambda x, y: polyfit(_spread(x), y, 2)),
    (((4,), (4, 2), (4,)), lambda x, y, w: polyfit(_spread(x), y, 1, w=w + 4)),
]


def _spread(x: Any) -> Any:
    return x * 0.1 + np.arange(float(x.shape[0]))
