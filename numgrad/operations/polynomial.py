"""Polynomials by their coefficients, the highest power first: NumPy's ``poly1d`` functions.

Note [Roots]
------------
Roots are eigenvalues of the companion matrix, as in NumPy. Their derivatives come from the
polynomial, which stays zero at a root: ``p'(r) dr + sum(r**(n - k) dp[k]) = 0``. That takes a
product of matrices, and no eigenvectors, which are ill-conditioned where roots lie close. A
repeated root has no derivative: infinity or NaN comes out.
"""

from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import OPS, Meta, composite, ones, primitive, state, zeros
from numgrad.errors import NumgradLinAlgError, NumgradTypeError, NumgradValueError
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.reduce import sum
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.shared_rules import with_parameters
from numgrad.operations.sliding_windows import convolve


def _coefficients(name: str, p: Any) -> Any:
    p = as_operand(p)
    if not len(p.shape):
        p = reshape(p, (1,))
    if len(p.shape) != 1:
        raise NumgradValueError(f"{name}: coefficients have one axis, got shape {tuple(p.shape)}")
    return p


@composite(ref=np.polyval, method=False, smooth=True)
def polyval(p, x):
    """Value of a polynomial, with gradients in coefficients and in ``x``.

    Parameters
    ----------
    p : array_like
        Coefficients, that of the highest power first.
    x
        Where the polynomial is wanted.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> ng.polyval([1.0, 0.0, 2.0], ng.tensor([1.0, 3.0]))
    tensor([ 3., 11.])
    """
    p, x = _coefficients("polyval", p), as_operand(x)
    y: Any = x * 0
    for k in range(p.shape[0]):
        y = y * x + getitem(p, k)
    return y


def _sum(name: str, a: Any, b: Any, sign: int) -> Any:
    a, b = _coefficients(name, a), _coefficients(name, b)
    short = a.shape[0] - b.shape[0]
    if short > 0:
        b = concat(zeros((short,), b.dtype), b, axis=0)
    elif short < 0:
        a = concat(zeros((-short,), a.dtype), a, axis=0)
    return a + b if sign > 0 else a - b


@composite(ref=np.polyadd, method=False, smooth=True)
def polyadd(a, b):
    """Coefficients of the sum of two polynomials, that of the highest power first.

    Returns
    -------
    Tensor
        As long as the longer one.

    Examples
    --------
    >>> ng.polyadd([1.0, 2.0], [9.0, 5.0, 4.0])
    tensor([9., 6., 6.])
    """
    return _sum("polyadd", a, b, 1)


@composite(ref=np.polysub, method=False, smooth=True)
def polysub(a, b):
    """Coefficients of the difference of two polynomials, that of the highest power first.

    Returns
    -------
    Tensor
        As long as the longer one.

    Examples
    --------
    >>> ng.polysub([1.0, 2.0], [9.0, 5.0, 4.0])
    tensor([-9., -4., -2.])
    """
    return _sum("polysub", a, b, -1)


@composite(ref=np.polymul, method=False, smooth=True)
def polymul(a, b):
    """Coefficients of the product of two polynomials, that of the highest power first.

    Returns
    -------
    Tensor
        As long as both together, less one.

    Examples
    --------
    >>> ng.polymul([1.0, 2.0], [1.0, 3.0])
    tensor([1., 5., 6.])
    """
    return convolve(_coefficients("polymul", a), _coefficients("polymul", b))


def _floating(p: Any) -> Any:
    return p if p.dtype.kind in "fc" else p.astype(np.float64)


@composite(ref=np.polydiv, method=False, smooth=True)
def polydiv(a, b):
    """Coefficients of quotient and remainder of two polynomials, that of the highest power first.

    Returns
    -------
    tuple of Tensors
        Quotient, and remainder without leading zeros.

    Examples
    --------
    >>> ng.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    (tensor([1.5 , 1.75]), tensor([0.25]))
    """
    a, b = _floating(_coefficients("polydiv", a) * 1), _floating(_coefficients("polydiv", b) * 1)
    dtype = np.result_type(a.dtype, b.dtype)
    r, b = a.astype(dtype), b.astype(dtype)
    m, n = a.shape[0] - 1, b.shape[0] - 1
    results = []
    for k in range(m - n + 1):
        d = getitem(r, k) / getitem(b, 0)
        results.append(d)
        rest = getitem(r, slice(k, k + n + 1)) - d * b
        pieces = [getitem(r, slice(None, k)), rest, getitem(r, slice(k + n + 1, None))]
        r = concat(pieces, axis=0)
    q = stack(results) if results else zeros((1,), dtype)
    known = state.ground.numbers(r)
    if known is None:
        return r._array.refuse(
            "polydiv, which takes leading zeros off the remainder",
            "call it outside of the function, or use np.polymul and np.polysub",
        )
    first = 0
    while first < len(known) - 1 and np.allclose(known[first], 0, rtol=1e-14):
        first += 1
    return as_operand(q) * 1, getitem(r, slice(first, None))


def _powers(n: int) -> Any:
    """``n`` down to 1."""
    return state.ground.made(np.arange(n, 0, -1))


def _times(m: Any, name: str, what: str) -> int:
    if int(m) < 0:
        raise NumgradValueError(f"{name}: {what} must not be negative, got {m}")
    return int(m)


@composite(ref=np.polyder, method=False, smooth=True)
def polyder(p, m=1):
    """Coefficients of the ``m``-th derivative of a polynomial, that of the highest power first.

    Parameters
    ----------
    p : array_like
        Coefficients.
    m : int
        How often it is differentiated.

    Returns
    -------
    Tensor
        Shorter by ``m``.

    Examples
    --------
    >>> ng.polyder([1.0, 1.0, 1.0, 1.0])
    tensor([3., 2., 1.])
    """
    p = _coefficients("polyder", p)
    for _ in range(_times(m, "polyder", "the order")):
        n = p.shape[0] - 1
        p = OPS["multiply"](getitem(p, slice(None, -1)), _powers(n))
    return p


@composite(ref=np.polyint, method=False, smooth=True)
def polyint(p, m=1, k=None):
    """Coefficients of an antiderivative of a polynomial, that of the highest power first.

    Parameters
    ----------
    p : array_like
        Coefficients.
    m : int
        How often it is integrated.
    k : array_like
        Constants of integration, by default zero.

    Returns
    -------
    Tensor
        Longer by ``m``.

    Examples
    --------
    >>> ng.polyint([3.0, 2.0, 1.0])
    tensor([1., 1., 1., 0.])
    """
    p, m = _coefficients("polyint", p), _times(m, "polyint", "the order")
    constants = zeros((m,), np.dtype(float)) if k is None else _coefficients("polyint", k)
    if constants.shape[0] == 1 and m > 1:
        constants = concat([constants] * m, axis=0)
    if constants.shape[0] < m:
        raise NumgradValueError(
            f"polyint: {constants.shape[0]} constants for {m} integrations; give one, or one each"
        )
    for j in range(m):
        n = p.shape[0]
        p = concat(OPS["divide"](p, _powers(n)), getitem(constants, slice(j, j + 1)), axis=0)
    return p


@composite(ref=np.poly, method=False, smooth=True)
def poly(x):
    """Coefficients of the polynomial with given roots, that of the highest power first.

    Returns
    -------
    Tensor
        Longer by one than the roots.

    Examples
    --------
    >>> ng.poly([1.0, 2.0])
    tensor([ 1., -3.,  2.])
    """
    x = as_operand(x)
    if not len(x.shape):
        x = reshape(x, (1,))
    if len(x.shape) != 1:
        raise NumgradValueError(
            f"poly: takes roots along one axis, got shape {tuple(x.shape)}; of a matrix, give its "
            "eigenvalues"
        )
    x = _floating(x)
    one = ones((1,), x.dtype)
    p: Any = one
    for k in range(x.shape[0]):
        p = convolve(p, concat(one, -getitem(x, slice(k, k + 1)), axis=0))
    known = state.ground.numbers(x)
    paired = known is not None and np.array_equal(np.sort(known), np.sort(known.conj()))
    if x.dtype.kind == "c" and paired:
        p = p.real
    return as_operand(p)


@composite(ref=np.vander, method=False, smooth=True)
def vander(x, N=None, increasing=False):
    """Matrix of powers of the elements, a column for each power.

    Parameters
    ----------
    N : int
        Number of columns, by default as many as rows.
    increasing : bool
        Whether powers rise from left to right.

    Returns
    -------
    Tensor
        A row for each element.

    Examples
    --------
    >>> ng.vander(ng.tensor([1.0, 2.0, 3.0]), 3)
    tensor([[1., 1., 1.],
            [4., 2., 1.],
            [9., 3., 1.]])
    """
    x = as_operand(x)
    if len(x.shape) != 1:
        raise NumgradValueError(f"vander: takes one axis, got shape {tuple(x.shape)}")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise NumgradValueError(f"vander: N must be non-negative, got {n}")
    x = x.astype(np.promote_types(x.dtype, int))
    if not n:
        return reshape(x * 0, (x.shape[0], 1))[:, :0]
    columns = [np.ones_like(x)]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    return stack(columns if increasing else columns[::-1], axis=1)


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


least_squares.vjp(a=_matrix_vjp, b=lambda g, a, rcond: least_squares(_adjoint(a), g, rcond=rcond))


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
        Relative size of singular values that count as zero; gradients take them to be so: a cut
        above rounding errors is not differentiated.
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
    result = c / scale[:, None]
    result = result if len(y.shape) == 2 else result[:, 0]
    if not cov:
        return result
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
        return result, inverse * (factor if cov == "unscaled" else factor[0])
    return result, inverse[:, :, None] * factor


@primitive(internal=True, method=False, smooth=True)
def polynomial_roots(p):
    """Roots of polynomials along the last axis, whose first coefficients are not zero."""
    out = _roots_shape(p)
    with np.errstate(all="ignore"):
        return _eigenvalues(np.asarray(p / p[..., :1], _solved(p.dtype))).astype(out.dtype)


def _eigenvalues(p: np.ndarray) -> np.ndarray:
    """Eigenvalues of companion matrices; NaN where one is not finite, zero for zeros at the end."""
    n = p.shape[-1] - 1
    rows = p.reshape(-1, n + 1)
    roots = np.full((len(rows), n), complex(np.nan, np.nan))
    known = np.isfinite(rows).all(axis=1)
    zeros = np.argmax(rows[:, ::-1] != 0, axis=1)  # at the end of each
    for count in np.unique(zeros[known]):
        rows_of_degree = known & (zeros == count)
        m = n - count
        companions = np.zeros((rows_of_degree.sum(), m, m), p.dtype)
        companions[:, np.arange(1, m), np.arange(m - 1)] = 1
        companions[:, :1, :] = -rows[rows_of_degree, None, 1 : m + 1]
        roots[rows_of_degree, :m] = np.linalg.eigvals(companions)
        roots[rows_of_degree, m:] = 0
    return roots.reshape(*p.shape[:-1], n)


def _solved(dtype: np.dtype) -> np.dtype:
    """The dtype in which eigenvalues are found."""
    return np.result_type(dtype, np.float32) if dtype.kind in "fc" else np.dtype(np.float64)


@polynomial_roots.shape
def _roots_shape(p):
    check_dtype("roots", p.dtype)
    return Meta((*p.shape[:-1], p.shape[-1] - 1), np.result_type(_solved(p.dtype), np.complex64))


def _vjp(g, p, y):
    n = p.shape[-1] - 1
    columns = [y * 0 + 1]
    for _ in range(n):
        columns.append(columns[-1] * y)
    powers = stack(columns[::-1], axis=-1)
    slopes = (powers[..., 1:] @ (p[..., :-1] * np.arange(n, 0, -1))[..., None])[..., 0]
    return -(np.conj(np.swapaxes(powers, -1, -2)) @ (g / np.conj(slopes))[..., None])[..., 0]


polynomial_roots.vjp(p=_vjp)


@polynomial_roots.batch
@with_parameters
def _batched(p: Any, size: int) -> Any:
    return {} if p.ndim else NotImplemented


@composite(ref=np.roots, method=False, smooth=True)
def roots(p):
    """Roots of a polynomial, of which simple ones have a gradient.

    Always complex, unlike NumPy's, which are real where all imaginary parts are zero. Zeros that
    lead are left out; in a compiled or batched function, which has no numbers yet, the first
    coefficient must not be zero.

    Parameters
    ----------
    p : array_like
        Coefficients, that of the highest power first.

    Returns
    -------
    Tensor
        In no order, shorter by one than the coefficients.

    Raises
    ------
    NumgradValueError
        If there is more than one axis.
    NumgradLinAlgError
        If a coefficient is NaN or infinite, and known.

    Examples
    --------
    >>> p = ng.tensor([1.0, -3.0, 2.0], requires_grad=True)
    >>> r = ng.roots(p)
    >>> r.detach()
    tensor([2.+0.j, 1.+0.j], dtype=complex128)
    >>> r[0].real.backward()
    >>> p.grad
    tensor([-4., -2., -1.])
    """
    p = as_operand(p)
    if len(p.shape) > 1:
        raise NumgradValueError(f"roots: coefficients have one axis, got shape {tuple(p.shape)}")
    if not len(p.shape):
        p = p.reshape((1,))
    known = state.ground.numbers(p)
    if known is not None:
        (nonzero,) = np.nonzero(known)
        if not np.isfinite(known).all():
            raise NumgradLinAlgError("roots: coefficients must be finite, got NaN or infinity")
        p = getitem(p, slice(nonzero[0] if len(nonzero) else len(known), None))
    if p.shape[0] < 2:  # none
        return getitem(polynomial_roots(concat(p, ones((2,), p.dtype), axis=0)), slice(0, 0))
    return polynomial_roots(p)
