"""Covariance matrices by their factors, with SciPy's names."""

from typing import Any

import numpy as np

from numgrad.core.tree import register
from numgrad.operations.linear_algebra.matrices import identity
from numgrad.operations.linear_algebra.triangular import cholesky, solve_triangular
from numgrad.operations.shape import as_operand


def _identity(like: Any) -> Any:
    return identity(like.shape[-1], like.dtype)


class Covariance:
    """A covariance matrix, or a stack of them, which distributions of vectors take as ``cov``.

    ``from_cholesky``, ``from_precision``, ``from_diagonal`` and ``from_low_rank`` make one. What is
    given is not multiplied out and factored again; gradients go to it.

    Attributes
    ----------
    covariance, precision, factor
        The matrix, its inverse, its Cholesky factor.
    log_pdet
        Logarithm of its determinant.
    rank, shape
        Its rank, which is full, and its shape.

    Examples
    --------
    >>> import numgrad as ng
    >>> cov = ng.stats.Covariance.from_cholesky(ng.tensor([[2.0, 0.0], [1.0, 1.0]]))
    >>> cov.covariance
    tensor([[4., 2.],
            [2., 2.]])
    >>> ng.stats.multivariate_normal.entropy(cov=cov)
    tensor(3.53102425)
    """

    def __init__(self, factor: Any) -> None:
        self._parts = (factor,)

    @staticmethod
    def from_cholesky(cholesky: Any) -> "Covariance":
        """The covariance with this lower triangular factor."""
        return Covariance(as_operand(cholesky))

    @staticmethod
    def from_diagonal(diagonal: Any) -> "Covariance":
        """The covariance of independent numbers of these variances."""
        diagonal = as_operand(diagonal)
        return Covariance(np.expand_dims(np.sqrt(diagonal), -1) * _identity(diagonal))

    @staticmethod
    def from_precision(precision: Any, covariance: Any = None) -> "Covariance":
        """The covariance with this inverse; SciPy's ``covariance`` is not looked at.

        Raises
        ------
        NumgradLinAlgError
            If the matrix is not positive definite.
        """
        # factored from the last row on: P = U U^T with U upper triangular, of which U^-T is wanted
        reverse = (..., slice(None, None, -1), slice(None, None, -1))
        lower = np.swapaxes(cholesky(as_operand(precision)[reverse])[reverse], -1, -2)
        return Covariance(solve_triangular(lower, _identity(lower), lower=True))

    @staticmethod
    def from_low_rank(factor: Any, diagonal: Any) -> "Covariance":
        """The covariance ``W W^T + diag(d)`` of ``n`` numbers, ``W`` a matrix of few columns.

        Densities solve systems of their number only: by the capacitance ``I + W^T diag(1 / d) W``
        (Woodbury identity).
        """
        w, d = as_operand(factor), as_operand(diagonal)
        lead = np.broadcast_shapes(w.shape[:-2], d.shape[:-1])
        w = np.broadcast_to(w, (*lead, *w.shape[-2:]))
        return _LowRank(w, np.broadcast_to(d, (*lead, *d.shape[-1:])))

    @property
    def factor(self) -> Any:
        """Lower triangular Cholesky factor."""
        return self._parts[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the matrix."""
        return (*self._parts[0].shape[:-1], self._parts[0].shape[-2])

    @property
    def rank(self) -> int:
        """Rank, which is full."""
        return self.shape[-1]

    @property
    def covariance(self) -> Any:
        """The matrix."""
        return self.root @ np.swapaxes(self.root, -1, -2)

    @property
    def precision(self) -> Any:
        """The inverse of the matrix."""
        inverse = solve_triangular(self.factor, _identity(self.factor), lower=True)
        return np.swapaxes(inverse, -1, -2) @ inverse

    @property
    def root(self) -> Any:
        """A matrix ``R`` with ``R R^T`` the covariance, of ``n`` columns or more."""
        return self.factor

    @property
    def log_pdet(self) -> Any:
        """Logarithm of the determinant."""
        return log_determinant(self.factor)

    def colorize(self, x: Any) -> Any:
        """Vectors with this covariance of ones with the identity, along the last axis."""
        return applied(self.factor, as_operand(x))

    def whiten(self, x: Any) -> Any:
        """Vectors with the identity as covariance of ones with this, along the last axis."""
        x = as_operand(x)
        return solve_triangular(self.factor, np.expand_dims(x, -1), lower=True)[..., 0]

    def distance(self, x: Any) -> Any:
        """Squares of Mahalanobis lengths of vectors along the last axis."""
        if len(self.shape) > 2:
            return self.distances(np.expand_dims(x, -1))[..., 0]
        points = np.reshape(x, (-1, x.shape[-1]))  # the columns of one system
        return np.reshape(self.distances(np.transpose(points)), x.shape[:-1])

    def distances(self, columns: Any) -> Any:
        """The same of the columns of matrices."""
        white = solve_triangular(self.factor, columns, lower=True)
        return np.sum(white * white, axis=-2)


class _LowRank(Covariance):
    """A covariance ``W W^T + diag(d)``."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    @property
    def factor(self) -> Any:
        """Lower triangular Cholesky factor."""
        return cholesky(self.covariance)

    @property
    def root(self) -> Any:
        """``W`` beside the roots of the diagonal."""
        w, d = self._parts
        return np.concatenate([w, np.expand_dims(np.sqrt(d), -1) * _identity(d)], axis=-1)

    def _capacitance(self) -> Covariance:
        w, d = self._parts
        return Covariance(cholesky(_identity(w) + np.swapaxes(w, -1, -2) @ (w / d[..., None])))

    @property
    def precision(self) -> Any:
        """The inverse of the matrix."""
        w, d = self._parts
        scaled = np.swapaxes(w / d[..., None], -1, -2)
        solved = solve_triangular(self._capacitance().factor, scaled, lower=True)
        return (1 / d)[..., None] * _identity(d) - np.swapaxes(solved, -1, -2) @ solved

    @property
    def log_pdet(self) -> Any:
        """Logarithm of the determinant."""
        return self._capacitance().log_pdet + np.sum(np.log(self._parts[1]), axis=-1)

    def distances(self, columns: Any) -> Any:
        """Squares of Mahalanobis lengths of the columns of matrices."""
        w, d = self._parts
        scaled = columns / d[..., None]
        inner = np.swapaxes(w, -1, -2) @ scaled
        return np.sum(columns * scaled, axis=-2) - self._capacitance().distances(inner)


def applied(matrix: Any, x: Any) -> Any:
    """Products of a matrix with vectors along the last axis."""
    return (matrix @ np.expand_dims(x, -1))[..., 0]


def log_determinant(factor: Any) -> Any:
    """Logarithm of the determinant of a matrix with this Cholesky factor."""
    return 2 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def factored(matrix: Any) -> Covariance:
    """The covariance that a matrix is, by its Cholesky factor; others as they are."""
    return matrix if isinstance(matrix, Covariance) else Covariance(cholesky(matrix))


for _kind in (Covariance, _LowRank):
    register(_kind, lambda c: ([*c._parts], type(c)), lambda kind, parts: kind(*parts))
