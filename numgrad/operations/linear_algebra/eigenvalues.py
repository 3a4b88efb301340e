"""Eigenvalues and eigenvectors.

Note [Repeated eigenvalues]
---------------------------
Gradients of eigenvectors divide by differences of eigenvalues: at equal ones vectors have no
derivative, and NaN or infinity comes out. Where only eigenvalues are used nothing is divided, and
the gradient of what is symmetric in them, such as their sum, is right. A result that depends on the
spaces that vectors span, not on the vectors, is not told apart: its gradient is right but at equal
eigenvalues.
"""

import operator
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.symbols import real_dtype
from numgrad.core.declare import Meta, composite, prepared, primitive
from numgrad.errors import NumgradValueError
from numgrad.kernels.matrices import functions, spectral
from numgrad.operations.linear_algebra import matrices
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.linear_algebra.triangular import cholesky, solve_triangle
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import numbers_of, of_matrices


class EighResult(NamedTuple):
    """Result of ``eigh``."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """Result of ``eig``."""

    eigenvalues: Any
    eigenvectors: Any


def differences(w: Any) -> Any:
    """``w[j] - w[i]`` as matrices, 1 on their diagonals."""
    return w[..., None, :] - w[..., :, None] + matrices.identity(w.shape[-1], w.dtype)


@prepared(internal=True, method=False, outputs=True, materializes=False, smooth=True)
def symmetric_eigen(a, *, upper=False):
    """Eigenvalues, ascending, and eigenvectors by what one triangle says."""
    matrices.check_square("eigh", a)
    dtype = matrices.computing_dtype("eigh", a)
    find, batch, convert = spectral.eigen_of(a.shape, dtype, upper), a.shape[:-2], dtype != a.dtype

    def compute(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w, v, info = find(a.astype(dtype) if convert else a)
        if info:
            matrices.check_converged("eigh", info, batch)
        return w, v

    return compute


@symmetric_eigen.shape
def _symmetric_eigen_shape(a, *, upper):
    matrices.check_square("eigh", a)
    dtype = matrices.computing_dtype("eigh", a)
    return Meta(a.shape[:-1], real_dtype(dtype)), Meta(a.shape, dtype)


def _symmetric_eigen_vjp(g, y):
    of_values, of_vectors = g
    w, v = y
    across = matrices.adjoint(v)
    if of_vectors is None:
        return matrices.product(v * of_values[..., None, :], across)
    inner = (matrices.product(across, of_vectors)) / differences(w)
    # the Hermitian part of the whole: of the diagonal only the gradient of eigenvalues is left
    inner = matrices.on_diagonal(0 * w if of_values is None else of_values, inner)
    return matrices.hermitian(matrices.product(matrices.product(v, inner), across))


symmetric_eigen.vjp(a=_symmetric_eigen_vjp)


@symmetric_eigen.vjp_kernel
def _symmetric_eigen_backward(call, mask):
    gradient = spectral.eigen_gradient(call.metas[0].shape, call.metas[0].dtype)
    return lambda g, y: ([gradient(*y, *g)], 1)


symmetric_eigen.batch(of_matrices)


@prepared(internal=True, method=False, differentiable=False)
def symmetric_eigenvalues(a, *, upper=False):
    """Eigenvalues alone, ascending, by what one triangle says."""
    matrices.check_square("eigvalsh", a)
    dtype, batch = matrices.computing_dtype("eigvalsh", a), a.shape[:-2]
    find = spectral.eigen_of(a.shape, dtype, upper, vectors=False)

    def compute(a: np.ndarray) -> np.ndarray:
        w, _, info = find(a.astype(dtype, copy=False))
        if info:
            matrices.check_converged("eigvalsh", info, batch)
        return w

    return compute


@symmetric_eigenvalues.shape
def _symmetric_eigenvalues_shape(a, *, upper):
    matrices.check_square("eigvalsh", a)
    return Meta(a.shape[:-1], real_dtype(matrices.computing_dtype("eigvalsh", a)))


symmetric_eigenvalues.batch(of_matrices)


def _is_upper(operation: str, uplo: Any) -> bool:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise NumgradValueError(f"{operation}: UPLO must be 'L' or 'U', got {uplo!r}")
    return uplo.upper() == "U"


@composite(ref=np.linalg.eigh, method=False, smooth=True)
def eigh(
    a, UPLO="L", *, b=None, eigvals_only=False, subset_by_index=None, subset_by_value=None, type=1
):
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read.

    The gradient is Hermitian; that of ``a`` beside ``b`` is in the triangle that is read. That of
    eigenvectors is NaN or infinite where eigenvalues are equal, and means something only for
    results that do not depend on the vectors' signs or phases.

    Parameters
    ----------
    UPLO : str
        ``"L"`` or ``"U"``: the triangle that is read.
    b
        Positive definite matrices of a generalised problem, of which the same triangle is read.
    eigvals_only : bool
        Whether to return the eigenvalues alone.
    subset_by_index : pair of ints
        The first and the last eigenvalue to return, counted from 0 in their order.
    subset_by_value : pair of floats
        Bounds of those to return, of one matrix: more than the first, up to the second.
    type : int
        The generalised problem: 1 for ``a @ v = b @ v * w``, 2 for ``a @ b @ v = v * w``, 3 for
        ``b @ a @ v = v * w``.

    Returns
    -------
    EighResult
        ``eigenvalues``, real and ascending, and ``eigenvectors``, in columns.

    Examples
    --------
    >>> w, v = ng.linalg.eigh(ng.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> w
    tensor([1., 2.])
    """
    if b is None and not eigvals_only and subset_by_index is None and subset_by_value is None:
        return EighResult(*symmetric_eigen(as_operand(a), upper=_is_upper("eigh", UPLO)))
    subset = subset_by_index, subset_by_value
    w, v = _eigen_of_pair("eigh", a, UPLO, b, type, subset, not eigvals_only)
    return w if eigvals_only else EighResult(w, v)


def _eigen_of_pair(
    name: str, a: Any, uplo: Any, b: Any, kind: Any, subset: tuple[Any, Any], vectors: bool
) -> tuple[Any, Any]:
    """Eigenvalues, and vectors if asked for, of one matrix or a pair of matrices, or of a part."""
    a, upper = as_operand(a), _is_upper(name, uplo)
    matrices.check_square(name, a)
    factor = None
    if b is not None:
        b = as_operand(b)
        if kind not in (1, 2, 3):
            raise NumgradValueError(f"{name}: type is 1, 2 or 3, got {kind!r}")
        matrices.check_square(name, b)
        if b.shape[-1] != a.shape[-1]:
            raise NumgradValueError(
                f"{name}: matrices of shapes {tuple(a.shape)} and {tuple(b.shape)} must have as "
                "many rows"
            )
        factor = cholesky(matrices.adjoint(b) if upper else b)
        a = _congruent(matrices.mirrored(a, not upper), factor, kind)
    if not vectors and matrices.is_constant(a):
        w, v = symmetric_eigenvalues(a, upper=upper), None
    else:
        w, v = symmetric_eigen(a, upper=upper)
    if factor is not None and v is not None:
        if kind == 3:
            v = matrices.product(factor, v)
        else:
            v = solve_triangle(factor, v, lower=True, of_adjoint=True)
    if subset == (None, None):
        return w, v
    subset_slice = _part(name, w, *subset)
    return w[..., subset_slice], None if v is None else v[..., subset_slice]


def _congruent(a: Any, factor: Any, kind: int) -> Any:
    """The matrix of an ordinary problem, by a triangular factor of the other one."""
    if kind == 1:
        half = solve_triangle(factor, a, lower=True)
        return matrices.hermitian(solve_triangle(factor, matrices.adjoint(half), lower=True))
    return matrices.hermitian(
        matrices.product(matrices.product(matrices.adjoint(factor), a), factor)
    )


def _part(name: str, w: Any, by_index: Any, by_value: Any) -> slice:
    """The range of eigenvalues that are wanted, in ascending order."""
    n = w.shape[-1]
    if by_index is not None:
        first, last = (operator.index(k) for k in by_index)
        if by_value is not None or not 0 <= first <= last < n:
            raise NumgradValueError(
                f"{name}: subset_by_index={by_index!r} must be a first and a last place from 0 to "
                f"{n - 1}, without subset_by_value"
            )
        return slice(first, last + 1)
    low, high = (float(bound) for bound in by_value)
    if not low < high or len(w.shape) != 1:
        raise NumgradValueError(
            f"{name}: subset_by_value={by_value!r} must be a lower and a higher bound, of the "
            f"eigenvalues of one matrix; eigenvalues have shape {tuple(w.shape)}"
        )
    values = numbers_of(f"{name} with subset_by_value", w)
    return slice(*np.searchsorted(values, (low, high), "right").tolist())


@composite(ref=np.linalg.eigvalsh, method=False, smooth=True)
def eigvalsh(a, UPLO="L", *, b=None, subset_by_index=None, subset_by_value=None, type=1):
    """Eigenvalues of Hermitian matrices, of which one triangle is read.

    Where some are equal, the gradient is that of a choice of eigenvectors.

    Parameters
    ----------
    UPLO : str
        ``"L"`` or ``"U"``: the triangle that is read.
    b, subset_by_index, subset_by_value, type
        As in ``eigh``.

    Returns
    -------
    Tensor
        Real and ascending, without the last axis.

    Examples
    --------
    >>> ng.linalg.eigvalsh(ng.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    subset = subset_by_index, subset_by_value
    return _eigen_of_pair("eigvalsh", a, UPLO, b, type, subset, False)[0]


# ------------------------------------------------------------------------------------- general


def _complex(dtype: np.dtype) -> np.dtype:
    return np.result_type(dtype, np.complex64)


@primitive(internal=True, method=False, outputs=True, materializes=False, smooth=True)
def general_eigen(a):
    """Eigenvalues and eigenvectors of square matrices, complex."""
    matrices.check_square("eig", a)
    w, v, info = functions.general_eigen(
        matrices.as_stack(a, matrices.computing_dtype("eig", a)), True
    )
    matrices.check_found("eig", info, a.shape[:-2])
    return w.reshape(a.shape[:-1]), v.reshape(a.shape)


@general_eigen.shape
def _general_eigen_shape(a):
    matrices.check_square("eig", a)
    dtype = _complex(matrices.computing_dtype("eig", a))
    return Meta(a.shape[:-1], dtype), Meta(a.shape, dtype)


def _general_eigen_vjp(g, y):
    """Vectors have length 1: what would change it does not count."""
    of_values, of_vectors = g
    w, v = y
    across = matrices.adjoint(v)
    if of_vectors is None:
        return solve(across, of_values[..., None] * across)
    inner = matrices.product(across, of_vectors)
    lengths = np.real(np.diagonal(inner, axis1=-2, axis2=-1))
    inner = inner - (matrices.product(across, v)) * lengths[..., None, :]
    inner = inner / np.conj(differences(w))
    inner = matrices.on_diagonal(0 * w if of_values is None else of_values, inner)
    return solve(across, matrices.product(inner, across))


@primitive(internal=True, method=False, differentiable=False)
def general_eigenvalues(a):
    """Eigenvalues alone, complex."""
    matrices.check_square("eigvals", a)
    w, _, info = functions.general_eigen(
        matrices.as_stack(a, matrices.computing_dtype("eigvals", a)), False
    )
    matrices.check_found("eigvals", info, a.shape[:-2])
    return w.reshape(a.shape[:-1])


@general_eigenvalues.shape
def _general_eigenvalues_shape(a):
    matrices.check_square("eigvals", a)
    return Meta(a.shape[:-1], _complex(matrices.computing_dtype("eigvals", a)))


general_eigenvalues.batch(of_matrices)
general_eigen.vjp(a=_general_eigen_vjp)
general_eigen.batch(of_matrices)


@composite(ref=np.linalg.eig, method=False, smooth=True)
def eig(a):
    """Eigenvalues and eigenvectors of square matrices.

    Always complex, unlike NumPy's, which are real where all imaginary parts are zero. The gradient
    of eigenvectors is NaN or infinite where eigenvalues are equal, and means something only for
    results that do not depend on the vectors' phases.

    Returns
    -------
    EigResult
        ``eigenvalues``, in no order, and ``eigenvectors``, in columns of length 1.

    Examples
    --------
    >>> w, v = ng.linalg.eig(ng.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    >>> w
    tensor([0.+1.j, 0.-1.j], dtype=complex128)
    """
    return EigResult(*general_eigen(as_operand(a)))


@composite(ref=np.linalg.eigvals, method=False, smooth=True)
def eigvals(a):
    """Eigenvalues of square matrices; always complex.

    Returns
    -------
    Tensor
        In no order, without the last axis.

    Examples
    --------
    >>> ng.linalg.eigvals(ng.tensor([[3.0, 1.0], [0.0, 2.0]]))
    tensor([3.+0.j, 2.+0.j], dtype=complex128)
    """
    a = as_operand(a)
    matrices.check_square("eigvals", a)
    return general_eigenvalues(a) if matrices.is_constant(a) else general_eigen(a)[0]
