"""Trigonometric and hyperbolic functions of square matrices, and their powers with real numbers.

All are sums of exponentials, as in SciPy, so that gradients of any order are those of ``expm``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from numgrad.core.declare import Composite, composite
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.linear_algebra.checks import check_square, computing_dtype
from numgrad.operations.linear_algebra.functions import expm, logm, matrix_power
from numgrad.operations.linear_algebra.systems import solve
from numgrad.operations.shape import as_operand, astype, expand_dims


def _checked(name: str, a: Any) -> Any:
    a = as_operand(a)
    check_square(name, a)
    return astype(a, dtype=computing_dtype(name, a), copy=False)


def _waves(a: Any) -> tuple[Any, Any]:
    """Cosine and sine of matrices."""
    forth = expm(1j * a)
    if a.dtype.kind != "c":
        return np.real(forth), np.imag(forth)
    back = expm(-1j * a)
    return 0.5 * (forth + back), -0.5j * (forth - back)


def _hyperbolic(a: Any) -> tuple[Any, Any]:
    """Hyperbolic cosine and sine of matrices."""
    up, down = expm(a), expm(-a)
    return 0.5 * (up + down), 0.5 * (up - down)


class MatrixFunction(Composite):
    """A function of square matrices that is composed of exponentials of them."""

    result = "Of the shape of ``a``."


def of_square_matrices(function: Callable[..., Any]) -> MatrixFunction:
    """Declare a function of square matrices, of which the body gets floating ones, by its name."""
    name = function.__name__

    @wraps(function)
    def checked(a: Any) -> Any:
        return function(_checked(name, a))

    op = MatrixFunction(
        checked,
        ref=f"scipy.linalg.{name}",
        method=False,
        smooth=True,
        errors=[(((2, 3),), {}, "NumgradLinAlgError")],
    )
    op.calls = [((shape,), lambda a: op(0.3 * a)) for shape in ((3, 3), (2, 2, 2))]
    return op


@of_square_matrices
def cosm(a):
    """Cosines of square matrices.

    Examples
    --------
    >>> ng.linalg.cosm(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _waves(a)[0]


@of_square_matrices
def sinm(a):
    """Sines of square matrices.

    Examples
    --------
    >>> ng.linalg.sinm(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[0., 1.],
            [0., 0.]])
    """
    return _waves(a)[1]


@of_square_matrices
def tanm(a):
    """Tangents of square matrices.

    Raises
    ------
    NumgradLinAlgError
        If the cosine of a matrix is singular.

    Examples
    --------
    >>> ng.linalg.tanm(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[0., 1.],
            [0., 0.]])
    """
    return solve(*_waves(a))


@of_square_matrices
def coshm(a):
    """Hyperbolic cosines of square matrices.

    Examples
    --------
    >>> ng.linalg.coshm(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _hyperbolic(a)[0]


@of_square_matrices
def sinhm(a):
    """Hyperbolic sines of square matrices.

    Examples
    --------
    >>> ng.linalg.sinhm(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[0., 1.],
            [0., 0.]])
    """
    return _hyperbolic(a)[1]


@of_square_matrices
def tanhm(a):
    """Hyperbolic tangents of square matrices.

    Raises
    ------
    NumgradLinAlgError
        If the hyperbolic cosine of a matrix is singular.

    Examples
    --------
    >>> ng.linalg.tanhm(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[0., 1.],
            [0., 0.]])
    """
    return solve(*_hyperbolic(a))


@composite(
    ref="scipy.linalg.fractional_matrix_power",
    method=False,
    smooth=True,
    errors=[(((2, 3),), {"t": 0.5}, "NumgradLinAlgError")],
)
def fractional_matrix_power(a, t):
    """Principal powers of square matrices with real numbers: ``expm(t * logm(a))``.

    Parameters
    ----------
    t
        The exponent, which may have a gradient; one for each matrix of a stack, or for all.
        Python's numbers that are whole give products, also of singular matrices.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradLinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> ng.linalg.fractional_matrix_power(ng.tensor([[4.0, 1.0], [0.0, 4.0]]), 0.5).round(6)
    tensor([[2.  , 0.25],
            [0.  , 2.  ]])
    """
    a = _checked("fractional_matrix_power", a)
    if isinstance(t, int | float | np.integer | np.floating) and float(t).is_integer():
        return matrix_power(a, int(t))
    if isinstance(t, float):  # which keeps the dtype of the matrices
        return expm(t * logm(a))
    t = as_operand(t)
    if t.dtype.kind == "c":
        raise NumgradTypeError("fractional_matrix_power: the exponent t is complex, not real")
    if len(t.shape) > len(a.shape) - 2:
        raise NumgradValueError(
            f"fractional_matrix_power: exponents t of shape {tuple(t.shape)} for matrices of shape "
            f"{tuple(a.shape)}; give one, or one for each matrix of the stack"
        )
    if len(t.shape):
        t = expand_dims(t, (-2, -1))
    return expm(t * logm(a))


fractional_matrix_power.calls = [
    (((2, 2), ()), lambda a, t: fractional_matrix_power(a + 9 * np.eye(2), np.real(t))),
    (((2, 2, 2),), lambda a: fractional_matrix_power(a + 9 * np.eye(2), -0.5)),
    (((2, 2),), lambda a: fractional_matrix_power(a, 3.0)),
]
