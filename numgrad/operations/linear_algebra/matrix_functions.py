"""Functions of square matrices, and Sylvester's equation.

Note [Derivatives of functions of matrices]
-------------------------------------------
The derivative of ``f`` at ``a`` in the direction ``t`` is a block of ``f`` of a matrix of twice the
size: ``f([[a, t], [0, a]])[:n, n:]`` (R. Mathias, 1996). Its adjoint is the derivative at the
adjoint of ``a``, so gradients of any order are values of ``f``.

It is linear in ``t``, of which the size is nobody's choice, while ``f`` is right to the norm of the
whole block: a large ``t`` would leave no digits of ``a``, and a small one would be lost beside it.
So ``t`` is brought to the size of ``a`` by a power of two, which costs no digits, and the result
back. Where ``t`` is not finite the factor is NaN, and so is the derivative.

All are sums of exponentials, as in SciPy, so that gradients of any order are those of ``expm``.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.declare import Composite, Meta, broadcasting_rule, composite, primitive, state
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.matrices import functions
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.solve import inv, solve
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_index, as_operand, astype, expand_dims
from numgrad.operations.shared_rules import of_matrices


def _derivative(function: Any, a: Any, t: Any) -> Any:
    """Note [Derivatives of functions of matrices]."""
    n = a.shape[-1]
    block, scale = doubled(a, t)
    return function(block)[..., :n, n:] / scale / scale


@primitive(internal=True, method=False, outputs=True, smooth=True)
def doubled(a, t):
    """``[[a, t], [0, a]]``, with ``t`` brought to the size of ``a``; the root of the factor."""
    matrices.check_square("doubled", a)
    batch = matrices.stacks("doubled", a.shape[:-2], t.shape[:-2])
    dtype = matrices.computing_dtype("doubled", a, t)
    block, scale = functions.doubled(
        *[matrices.as_stack(matrices.spread(x, batch), dtype) for x in (a, t)]
    )
    return block.reshape(*batch, *block.shape[1:]), scale.reshape(*batch, 1, 1)


@doubled.shape
def _doubled_shape(a, t):
    batch, n = matrices.stacks("doubled", a.shape[:-2], t.shape[:-2]), a.shape[-1]
    dtype = matrices.computing_dtype("doubled", a, t)
    return Meta((*batch, 2 * n, 2 * n), dtype), Meta((*batch, 1, 1), real_dtype(dtype))


def _doubled_vjp_a(g, meta_a):
    n = meta_a.shape[-1]
    return g[0][..., :n, :n] + g[0][..., n:, n:]


def _doubled_vjp_t(g, meta_a, y):
    n = meta_a.shape[-1]
    return g[0][..., :n, n:] * y[1] * y[1]


def _doubled_jvp(t_a, t_t, y):
    above = concat(t_a, t_t * y[1] * y[1], axis=-1)
    return concat(above, concat(0 * t_a, t_a, axis=-1), axis=-2), None


doubled.vjp(a=_doubled_vjp_a, t=_doubled_vjp_t)
doubled.jvp(_doubled_jvp)


doubled.batch(broadcasting_rule)


@primitive(ref="scipy.linalg.expm", method=False, smooth=True)
def expm(a):
    """Exponentials of square matrices.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Examples
    --------
    >>> ng.linalg.expm(ng.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    matrices.check_square("expm", a)
    return functions.exponentials(
        matrices.as_stack(a, matrices.computing_dtype("expm", a))
    ).reshape(a.shape)


def _shape_of(name: str) -> Any:
    def shape(a: Any) -> Meta:
        matrices.check_square(name, a)
        return Meta(a.shape, matrices.computing_dtype(name, a))

    return shape


expm.shape(_shape_of("expm"))
expm.vjp(a=lambda g, a: _derivative(expm, matrices.adjoint(a), g))
expm.jvp(lambda t_a, a: _derivative(expm, a, t_a))
expm.batch(of_matrices)


def real_or_complex(function: Any, a: Any, turned_back: Any) -> Any:
    """``function(a)``, complex for real matrices of which one has a complex result.

    That depends on their numbers: where these come later, as in a compiled function, it raises.

    Note [Negative eigenvalues]
    ---------------------------
    They lie on the branch cut, and rounding puts equal ones on either side of it: Note [Derivatives
    of functions of matrices] doubles each. So matrices are turned about 0, halfway to the first
    eigenvalue that would cross the cut, to where the function is smooth; ``turned_back`` takes a
    result and the angle.
    """
    try:
        return function(a)
    except matrices.ComplexResultError:
        numbers = state.ground.numbers(a) if a.dtype.kind != "c" else None
        if numbers is None:
            raise
    dtype = np.result_type(matrices.computing_dtype("", a), np.complex64)
    below = np.angle(np.linalg.eigvals(numbers))
    gaps = np.where(below < 0, np.pi + below, 2.0).min(axis=-1)[..., None, None]
    return turned_back(function(a * np.exp(-0.5j * gaps).astype(dtype)), 0.5 * gaps, dtype)


@primitive(internal=True, method=False, smooth=True)
def principal_logarithm(a):
    """Principal logarithms of square matrices, real for real ones."""
    matrices.check_square("logm", a)
    dtype = matrices.computing_dtype("logm", a)
    result, info = functions.logarithms(matrices.as_stack(a, dtype))
    matrices.check_found("logm", info, a.shape[:-2], "logarithm: it is singular")
    return result.astype(dtype, copy=False).reshape(a.shape)


def _with_logarithm(derivative: Any, a: Any) -> Any:
    """A derivative that compiled code computes only after the logarithm itself, which may raise.

    That of a real matrix with a negative eigenvalue has doubled it, so it alone need not.
    """
    return derivative + 0 * principal_logarithm(a) if state.ground.deferred else derivative


principal_logarithm.shape(_shape_of("logm"))
principal_logarithm.vjp(
    a=lambda g, a: _with_logarithm(_derivative(principal_logarithm, matrices.adjoint(a), g), a)
)
principal_logarithm.jvp(lambda t_a, a: _with_logarithm(_derivative(principal_logarithm, a, t_a), a))
principal_logarithm.batch(of_matrices)


@composite(ref="scipy.linalg.logm", method=False, smooth=True)
def logm(a):
    """Principal logarithms of square matrices.

    They are real for real matrices, unless one of these has a complex logarithm. Where that is
    known only later, in a compiled or batched function, it raises: give complex matrices there.

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
    >>> ng.linalg.logm(ng.tensor([[1.0, 1.0], [0.0, 1.0]])).round(6)
    tensor([[0., 1.],
            [0., 0.]])
    """
    return real_or_complex(
        principal_logarithm,
        as_operand(a),
        lambda y, angle, dtype: y + (1j * angle * np.eye(y.shape[-1])).astype(dtype),
    )


@primitive(internal=True, method=False, smooth=True)
def principal_root(a):
    """Principal square roots of square matrices, real for real ones."""
    matrices.check_square("sqrtm", a)
    result, info = functions.roots(matrices.as_stack(a, matrices.computing_dtype("sqrtm", a)))
    matrices.check_found("sqrtm", info, a.shape[:-2], "square root")
    return result.reshape(a.shape)


principal_root.shape(_shape_of("sqrtm"))
principal_root.batch(of_matrices)


@composite(ref="scipy.linalg.sqrtm", method=False, smooth=True)
def sqrtm(a):
    """Principal square roots of square matrices.

    They are real for real matrices, unless one of these has a complex root. Where that is known
    only later, in a compiled or batched function, it raises: give complex matrices there.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradLinAlgError
        If a matrix has no root.

    Examples
    --------
    >>> ng.linalg.sqrtm(ng.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    >>> ng.linalg.sqrtm(ng.tensor([[-4.0, 0.0], [0.0, 9.0]]))
    tensor([[0.+2.j, 0.+0.j],
            [0.+0.j, 3.+0.j]], dtype=complex128)
    """
    return real_or_complex(
        principal_root,
        as_operand(a),
        lambda y, angle, dtype: y * np.exp(0.5j * angle).astype(dtype),
    )


@primitive(ref="scipy.linalg.solve_sylvester", method=False, smooth=True)
def solve_sylvester(a, b, q):
    """The ``x`` of ``a @ x + x @ b = q``.

    Parameters
    ----------
    a, b
        Square matrices.
    q
        With as many rows as ``a`` and as many columns as ``b``.

    Returns
    -------
    Tensor
        Of the shape of ``q``.

    Raises
    ------
    NumgradLinAlgError
        If an eigenvalue of ``a`` is minus one of ``b``.

    Examples
    --------
    >>> ng.linalg.solve_sylvester(ng.tensor([[1.0]]), ng.tensor([[2.0]]), ng.tensor([[6.0]]))
    tensor([[2.]])
    """
    shape = _sylvester_shape(a, b, q)
    batch = shape.shape[:-2]
    operands = [matrices.as_stack(matrices.spread(x, batch), shape.dtype) for x in (a, b, q)]
    result, info = functions.sylvester(*operands)
    matrices.check_found("solve_sylvester", info, batch)
    return result.reshape(shape.shape)


@solve_sylvester.shape
def _sylvester_shape(a, b, q):
    matrices.check_square("solve_sylvester", a)
    matrices.check_square("solve_sylvester", b, "b")
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise NumgradValueError(
            f"solve_sylvester: shapes {tuple(a.shape)}, {tuple(b.shape)} and {tuple(q.shape)}: q "
            "must have as many rows as a and as many columns as b"
        )
    batch = matrices.stacks("solve_sylvester", a.shape[:-2], b.shape[:-2], q.shape[:-2])
    return Meta((*batch, *q.shape[-2:]), matrices.computing_dtype("solve_sylvester", a, b, q))


solve_sylvester.vjp(
    a=lambda g, a, b, y: (
        -(matmul(solve_sylvester(matrices.adjoint(a), matrices.adjoint(b), g), matrices.adjoint(y)))
    ),
    b=lambda g, a, b, y: (
        -(matmul(matrices.adjoint(y), solve_sylvester(matrices.adjoint(a), matrices.adjoint(b), g)))
    ),
    q=lambda g, a, b: solve_sylvester(matrices.adjoint(a), matrices.adjoint(b), g),
)


solve_sylvester.batch(broadcasting_rule)
principal_root.vjp(a=lambda g, y: solve_sylvester(matrices.adjoint(y), matrices.adjoint(y), g))
principal_root.jvp(lambda t_a, y: solve_sylvester(y, y, t_a))


@composite(ref=np.linalg.matrix_power, method=False, smooth=True)
def matrix_power(a, n):
    """Powers of square matrices with integers; negative ones are powers of the inverses.

    Parameters
    ----------
    n : int
        The exponent.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Examples
    --------
    >>> ng.linalg.matrix_power(ng.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    a, n = as_operand(a), as_index("matrix_power", n, "the exponent")
    matrices.check_square("matrix_power", a)
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return 0 * a + matrices.identity(a.shape[-1], a.dtype)
    result = None
    while True:
        if n & 1:
            result = a if result is None else matmul(result, a)
        n >>= 1
        if not n:
            return result
        a = matmul(a, a)


def _checked(name: str, a: Any) -> Any:
    a = as_operand(a)
    matrices.check_square(name, a)
    return astype(a, dtype=matrices.computing_dtype(name, a), copy=False)


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

    return MatrixFunction(checked, ref=f"scipy.linalg.{name}", method=False, smooth=True)


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


@composite(ref="scipy.linalg.fractional_matrix_power", method=False, smooth=True)
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
