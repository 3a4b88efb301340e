"""Densities from samples by Gaussian kernels."""

from typing import Any

import numpy as np

from numgrad.core.op import OPS
from numgrad.errors import NumgradLinAlgError, NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.linear_algebra.triangular import cholesky, solve_triangular
from numgrad.operations.shape import as_operand, astype, reshape
from numgrad.tensors.tensor import Tensor


def _matrix(name: str, x: Any) -> Any:
    """Dimensions in rows, points in columns, of double precision."""
    x = as_operand(x)
    if x.dtype.kind == "c":
        raise NumgradTypeError(f"gaussian_kde: {name} must be real, got dtype {x.dtype}")
    x = astype(x if isinstance(x, Tensor) else Tensor(np.array(x)), dtype=np.float64, copy=False)
    return reshape(x, (1, -1)) if len(x.shape) < 2 else x


class gaussian_kde:
    """Density of samples as a mean of Gaussian densities around them [1]_.

    Parameters
    ----------
    dataset : array_like of shape (n,) or (d, n)
        Samples, to which gradients go.
    bw_method : {'scott', 'silverman'}, float or function
        Rule for the factor that the samples' covariance is scaled by the square of, that factor, or
        a function of this object that returns it.
    weights : array_like of shape (n,)
        Weights of samples, to which gradients go.

    Raises
    ------
    NumgradValueError
        If there is one sample, weights are negative or of another shape, or there is no such rule.
    NumgradLinAlgError
        If samples lie in fewer than ``d`` dimensions.

    References
    ----------
    .. [1] D. W. Scott, "Multivariate Density Estimation", Wiley, 1992.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> samples = np.array([0.0, 1.0, 3.0])
    >>> ng.stats.gaussian_kde(samples)([1.0])
    tensor([0.21489537])
    >>> ng.grad(lambda x: ng.stats.gaussian_kde(x).logpdf(1.0)[0])(samples).round(4)
    array([ 0.3562,  0.0289, -0.3219])
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = _matrix("dataset", dataset)
        self.d, self.n = (int(length) for length in self.dataset.shape)
        if self.n < 2:
            raise NumgradValueError("gaussian_kde: needs at least two samples")
        if weights is None:
            self.weights: Any = np.full(self.n, 1.0 / self.n)
        else:
            weights = _matrix("weights", weights)
            if tuple(weights.shape) != (1, self.n):
                raise NumgradValueError(
                    f"gaussian_kde: weights of shape {tuple(weights.shape)} for {self.n} samples"
                )
            self.weights = weights[0] / np.sum(weights)
        self.neff = 1.0 / np.sum(self.weights * self.weights)
        deviation = self.dataset - np.sum(self.dataset * self.weights, axis=-1, keepdims=True)
        self._spread = deviation * self.weights @ matrix_transpose(deviation)
        self._spread = self._spread / (1.0 - np.sum(self.weights * self.weights))
        self.set_bandwidth(bw_method)

    def scotts_factor(self) -> Any:
        """Scott's rule: ``neff ** (-1 / (d + 4))``."""
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Silverman's rule: ``(neff * (d + 2) / 4) ** (-1 / (d + 4))``."""
        return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Choose the factor anew; see the class."""
        if bw_method is None or isinstance(bw_method, str):
            rules = {"scott": self.scotts_factor, "silverman": self.silverman_factor}
            rule = rules.get(bw_method or "scott")
            if rule is None:
                raise NumgradValueError(
                    f"gaussian_kde: bw_method {bw_method!r} is neither of {', '.join(rules)}"
                )
            self.factor: Any = rule()
        else:
            self.factor = bw_method(self) if callable(bw_method) else as_operand(bw_method)
        self.covariance = self._spread * (self.factor * self.factor)
        try:
            self._root = cholesky(self.covariance)
        except NumgradLinAlgError as error:
            raise NumgradLinAlgError(
                "gaussian_kde: the samples lie in fewer dimensions than they have coordinates; "
                "leave some out, or add noise"
            ) from error

    @property
    def inv_cov(self) -> Any:
        """The inverse of the covariance of one kernel."""
        return solve(self.covariance, np.eye(self.d))

    def _exponents(self, points: Any) -> Any:
        """Logarithms of the kernels at points, of shape (points, samples)."""
        points = _matrix("points", points)
        if points.shape[0] != self.d:
            if points.shape != (1, self.d):
                raise NumgradValueError(
                    f"gaussian_kde: points of {points.shape[0]} dimensions for samples of {self.d}"
                )
            points = reshape(points, (self.d, 1))
        a, b = (solve_triangular(self._root, x, lower=True) for x in (points, self.dataset))
        total: Any = 0.0
        for k in range(self.d):  # without an array of points, samples and dimensions
            total = total + np.square(a[k][:, None] - b[k])
        log_volume = np.sum(np.log(np.diagonal(self._root)))
        return -0.5 * total - log_volume - 0.5 * self.d * np.log(2 * np.pi)

    def evaluate(self, points: Any) -> Any:
        """Density at points of shape (d, m), or (m,) for one dimension."""
        return np.exp(self._exponents(points)) @ self.weights

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """Logarithm of the density, also where that underflows."""
        exponents = self._exponents(x) + np.log(self.weights)
        return OPS["logsumexp"](exponents, axis=-1)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Probability between two numbers, in one dimension, with gradients in them."""
        if self.d != 1:
            raise NumgradValueError(
                f"integrate_box_1d: is for one dimension, samples have {self.d}"
            )
        width = self._root[0, 0]
        low, high = ((as_operand(end) - self.dataset[0]) / width for end in (low, high))
        mass = 0.5 * (OPS["erf"](high / np.sqrt(2.0)) - OPS["erf"](low / np.sqrt(2.0)))
        return np.sum(mass * self.weights)
