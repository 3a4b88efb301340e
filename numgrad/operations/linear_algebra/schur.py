"""Triangular and nearly triangular forms of square matrices, to which unitary ones turn them.

Note [Derivatives of unitary similarity]
----------------------------------------
Of ``a = z @ t @ z*`` the vectors turn by ``dz = z @ w`` with a skew-Hermitian ``w``, which keeps
zero what is zero: ``dt = z* da z + t w - w t``. Both gradients are solutions of the adjoint of this
linear system, which are found column after column, from the last one on. The triangular form leaves
the phases of vectors open: ``w`` has no diagonal, and gradients mean something for what does not
depend on phases (signs, where all is real, stay as they are). Equal eigenvalues have no derivative.
In Hessenberg's form the first vector is fixed, and others follow from it (J. G. F. Francis, 1961;
adjoints as in N. Kramer et al., "Gradients of functions of large matrices", 2024), unless an
element below the diagonal is 0, where they are not unique.
"""

import importlib
from typing import Any

import numpy as np

from numgrad.core.declare import Meta, composite, primitive
from numgrad.errors import (
    NumgradLinAlgError,
    NumgradNotImplementedError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.operations.diagonal import tril, triu
from numgrad.operations.join import concat
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.triangular import solve_triangle
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import of_matrices

_SORTS = ("lhp", "rhp", "iuc", "ouc")
_OUTPUTS = ("real", "complex")


def _each(name: str, a: np.ndarray, run: Any, count: int) -> list[np.ndarray]:
    """Results of SciPy's function for each matrix of a stack, of the stack's shape."""
    work = matrices.stacked(a, matrices.computing_dtype(name, a))
    bad = np.asarray(~np.isfinite(work).all((-2, -1)))
    if bad.any():
        raise NumgradLinAlgError(
            f"{name}: {matrices.which(bad, a.shape[:-2])} contains infinities or NaNs"
        )
    results = [run(x) for x in work]
    return [np.asarray([x[k] for x in results]) for k in range(count)]


def _shaped(result: np.ndarray, a: Any, dtype: np.dtype) -> np.ndarray:
    """An array of matrices, also of none."""
    return result.reshape(a.shape).astype(dtype, copy=False) if a.size else np.empty(a.shape, dtype)


# ------------------------------------------------------------------------------------- triangular


@primitive(internal=True, method=False, outputs=True, smooth=True)
def schur_factors(a, *, sort=None):
    """Schur's form, the vectors, and how many eigenvalues were sorted to the front."""
    matrices.check_square("schur", a)
    dtype = matrices.computing_dtype("schur", a)
    kind = "complex" if dtype.kind == "c" else "real"

    def run(x):
        of = importlib.import_module("scipy.linalg").schur
        try:
            return of(x, output=kind) if sort is None else of(x, output=kind, sort=sort)
        except np.linalg.LinAlgError as error:
            raise NumgradLinAlgError(f"schur: {error}") from None

    if not a.size:
        empty = np.zeros(a.shape, dtype)
        return empty, empty.copy(), np.zeros(a.shape[:-2], np.int64)
    result = _each("schur", a, run, 2 if sort is None else 3)
    count = np.zeros(1, np.int64) if sort is None else result[2].astype(np.int64)
    count = np.broadcast_to(count, len(result[0])).reshape(a.shape[:-2])
    return _shaped(result[0], a, dtype), _shaped(result[1], a, dtype), count.copy()


@schur_factors.shape
def _schur_shape(a, *, sort):
    matrices.check_square("schur", a)
    meta = Meta(a.shape, matrices.computing_dtype("schur", a))
    return meta, meta, Meta(a.shape[:-2], np.dtype(np.int64))


def _triangular_back(g: Any, y: Any) -> Any:
    """The gradient by a matrix: Note [Derivatives of unitary similarity]."""
    of_t, of_z, *_ = g
    t, z, *_ = y
    of_t = 0 * t if of_t is None else triu(of_t)
    back = matrices.adjoint(t)
    turn = matrices.product(back, of_t) - matrices.product(of_t, back)
    if of_z is not None:
        turn = turn + matrices.product(matrices.adjoint(z), of_z)
    turn = tril(turn - matrices.adjoint(turn), -1)
    n = t.shape[-1].__index__()
    known = 0 * turn[..., n - 1 :] if n else turn
    unit = matrices.identity(n, t.dtype)
    for j in range(n - 2, -1, -1):
        row = np.conj(t[..., j, j + 1 :])
        right = (
            turn[..., j + 1 :, j] + matrices.product(known[..., j + 1 :, :], row[..., None])[..., 0]
        )
        eigenvalue = t[..., j, j]
        block = t[..., j + 1 :, j + 1 :] - eigenvalue[..., None, None] * unit[j + 1 :, j + 1 :]
        column = solve_triangle(block, right[..., None], lower=False, of_adjoint=True)
        known = concat(concat(0 * known[..., : j + 1, :1], column, axis=-2), known, axis=-1)
    return matrices.product(matrices.product(z, of_t - known), matrices.adjoint(z))


def _schur_vjp(g, y):
    t = y[0]
    if t.dtype.kind == "c":
        return _triangular_back(g, y)
    blocks = np.any(tril(t, -1) != 0)
    if isinstance(t, np.ndarray) and blocks:
        raise NumgradNotImplementedError(
            "schur: the real form of a matrix with complex eigenvalues has no derivative here; "
            "output='complex' has one"
        )
    return np.where(blocks, np.nan, _triangular_back(g, (triu(t), *y[1:])))


schur_factors.vjp(a=_schur_vjp)
schur_factors.batch(of_matrices)


@composite(ref="scipy.linalg.schur", method=False, smooth=True)
def schur(a, output="real", sort=None):
    """Schur's form: ``a = Z @ T @ Z*`` with unitary ``Z`` and upper triangular ``T``.

    The real form of a real matrix has blocks of two rows for pairs of complex eigenvalues; there it
    has no derivative, while the complex one has. Gradients are right for what does not depend on
    the phases of columns of ``Z``, where eigenvalues differ.

    Parameters
    ----------
    output : {'real', 'complex'}
        The form of a real matrix.
    sort : {None, 'lhp', 'rhp', 'iuc', 'ouc'} or callable
        Which eigenvalues come first: those in the left or right half-plane, in or outside of the
        unit circle, or those of which a function is true.

    Returns
    -------
    tuple of Tensors
        ``T`` and ``Z``; with ``sort`` how many eigenvalues come first as well.

    Examples
    --------
    >>> t, z = ng.linalg.schur(ng.tensor([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    tensor([[1., 2.],
            [0., 3.]])
    """
    if output not in ("real", "complex", "r", "c"):
        raise NumgradValueError(f"schur: output is 'real' or 'complex', got {output!r}")
    if not (sort is None or sort in _SORTS or callable(sort)):
        raise NumgradValueError(f"schur: sort is one of {_SORTS}, a function or None, got {sort!r}")
    a = as_operand(a)
    matrices.check_square("schur", a)
    dtype = matrices.computing_dtype("schur", a)
    if output[0] == "c":
        dtype = np.result_type(dtype, np.complex64)
    t, z, count = schur_factors(a.astype(dtype), sort=sort)
    return (t, z) if sort is None else (t, z, count)


@primitive(internal=True, method=False, outputs=True, smooth=True)
def triangular_form(t):
    """The complex form, and what turns to it, of a real Schur form."""
    matrices.check_square("rsf2csf", t)
    dtype = np.result_type(matrices.computing_dtype("rsf2csf", t), np.complex64)
    if not t.size:
        return np.zeros(t.shape, dtype), np.zeros(t.shape, dtype)

    def run(x):
        return importlib.import_module("scipy.linalg").rsf2csf(x, np.eye(len(x), dtype=x.dtype))

    result = _each("rsf2csf", t, run, 2)
    return _shaped(result[0], t, dtype), _shaped(result[1], t, dtype)


@triangular_form.shape
def _triangular_shape(t):
    matrices.check_square("rsf2csf", t)
    meta = Meta(t.shape, np.result_type(matrices.computing_dtype("rsf2csf", t), np.complex64))
    return meta, meta


triangular_form.vjp(t=_triangular_back)
triangular_form.batch(of_matrices)


@composite(ref="scipy.linalg.rsf2csf", method=False, smooth=True)
def rsf2csf(T, Z):
    """The complex Schur form of a real one, as ``schur`` returns it.

    Parameters
    ----------
    T, Z
        The form, and the vectors.

    Returns
    -------
    tuple of Tensors
        The triangular form, and its vectors.

    Examples
    --------
    >>> t, z = ng.linalg.rsf2csf(*ng.linalg.schur(ng.tensor([[0.0, -2.0], [2.0, 0.0]])))
    >>> np.diagonal(t).round(12).imag
    tensor([ 2., -2.])
    """
    T, Z = as_operand(T), as_operand(Z)
    matrices.stacks("rsf2csf", T.shape, Z.shape)
    form, turn = triangular_form(T)
    return form, matrices.product(Z.astype(turn.dtype), turn)


# -------------------------------------------------------------------------------------- Hessenberg


@primitive(internal=True, method=False, outputs=True, smooth=True)
def hessenberg_factors(a):
    """Hessenberg's form, and what turns to it."""
    matrices.check_square("hessenberg", a)
    dtype = matrices.computing_dtype("hessenberg", a)
    if not a.size:
        return np.zeros(a.shape, dtype), np.zeros(a.shape, dtype)

    def run(x):
        return importlib.import_module("scipy.linalg").hessenberg(x, calc_q=True)

    result = _each("hessenberg", a, run, 2)
    return _shaped(result[0], a, dtype), _shaped(result[1], a, dtype)


@hessenberg_factors.shape
def _hessenberg_shape(a):
    matrices.check_square("hessenberg", a)
    meta = Meta(a.shape, matrices.computing_dtype("hessenberg", a))
    return meta, meta


def _hessenberg_vjp(g, y):
    of_h, of_q = g
    h, q = y
    n = h.shape[-1].__index__()
    of_h = 0 * h if of_h is None else triu(of_h, -1)
    if n < 3:  # the matrix itself
        return of_h
    inner = 0 * h if of_q is None else matrices.product(matrices.adjoint(q), of_q)
    plain = h.dtype.kind != "c"
    whole = of_h[..., n - 1 :]  # its columns from j on
    for j in range(n - 1, 0, -1):
        bar = np.conj(h)
        left = matrices.product(matrices.adjoint(h), whole[..., :1]) - matrices.product(
            whole, bar[..., j, j:, None]
        )
        right = matrices.product(bar[..., None, :, j], whole)[..., 0, :]
        right = right - matrices.product(bar[..., j:, j:], whole[..., j, :, None])[..., 0]
        rest = left[..., j:, 0] + inner[..., j:, j] - np.conj(right + inner[..., j, j:])
        rest = rest / bar[..., j, j - 1, None]
        upper = of_h[..., : j + 1, j - 1 : j]
        if not plain:  # elements below the diagonal are real
            below = np.real(upper[..., j:, :]) + 0.5 * rest[..., :1, None]
            upper = concat(upper[..., :j, :], below, axis=-2)
        column = concat(upper, rest[..., 1:, None], axis=-2)
        whole = concat(column, whole, axis=-1)
    return matrices.product(matrices.product(q, whole), matrices.adjoint(q))


hessenberg_factors.vjp(a=_hessenberg_vjp)
hessenberg_factors.batch(of_matrices)


@composite(ref="scipy.linalg.hessenberg", method=False, smooth=True)
def hessenberg(a, calc_q=False):
    """Hessenberg's form: ``a = Q @ H @ Q*`` with ``H`` zero below the first subdiagonal.

    Gradients are endless or NaN where an element of that is 0.

    Parameters
    ----------
    calc_q : bool
        Whether ``Q`` is returned as well.

    Returns
    -------
    Tensor or tuple of Tensors
        ``H``, or ``H`` and ``Q``.

    Examples
    --------
    >>> ng.linalg.hessenberg(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    h, q = hessenberg_factors(as_operand(a))
    return (h, q) if calc_q else h


# ------------------------------------------------------------------------------- of two matrices


def _no_derivative(g, a, b):
    raise NumgradNotImplementedError(
        "qz: has no formula for its derivatives here; schur(solve(b, a)) has them for a regular b"
    )


@primitive(ref="scipy.linalg.qz", method=False, outputs=True)
def qz(a, b, *, output="real", sort=None):
    """Generalized Schur form of two matrices: ``a = Q @ AA @ Z*`` and ``b = Q @ BB @ Z*``.

    Gradients raise: ``schur(solve(b, a))`` has them.

    Parameters
    ----------
    a, b
        Square matrices, or stacks of such.
    output : {'real', 'complex'}
        The form of real matrices.
    sort
        Not taken, as by SciPy.

    Returns
    -------
    tuple of Tensors
        ``AA``, ``BB``, ``Q`` and ``Z``.

    Examples
    --------
    >>> aa, bb, q, z = ng.linalg.qz(ng.eye(2) * 3.0, ng.eye(2))
    >>> aa
    tensor([[3., 0.],
            [0., 3.]])
    """
    meta, *_ = _qz_shape(a, b, output=output, sort=sort)
    kind = _OUTPUTS[meta.dtype.kind == "c"]
    if not a.size:
        return tuple([np.zeros(meta.shape, meta.dtype) for _ in range(4)])
    a, b = np.broadcast_arrays(a, b)
    second = iter(matrices.stacked(b, meta.dtype))

    def run(x):
        of = importlib.import_module("scipy.linalg").qz
        return of(x, next(second), output=kind)

    return tuple([_shaped(x, a, meta.dtype) for x in _each("qz", a, run, 4)])


@qz.shape
def _qz_shape(a, b, *, output, sort):
    if sort is not None:
        raise NumgradTypeError("qz: sort is not taken, as by SciPy; its ordqz sorts arrays")
    if output not in ("real", "complex", "r", "c"):
        raise NumgradValueError(f"qz: output is 'real' or 'complex', got {output!r}")
    for x, name in ((a, "a"), (b, "b")):
        matrices.check_square("qz", x, name)
    if a.shape[-1] != b.shape[-1]:
        raise NumgradLinAlgError(
            f"qz: a of shape {tuple(a.shape)} and b of shape {tuple(b.shape)} differ in size"
        )
    dtype = matrices.computing_dtype("qz", a, b)
    if output[0] == "c":
        dtype = np.result_type(dtype, np.complex64)
    return (Meta((*matrices.stacks("qz", a.shape[:-2], b.shape[:-2]), *a.shape[-2:]), dtype),) * 4


qz.refuse(a=_no_derivative, b=_no_derivative)
