"""Distributions of vectors and matrices."""

import math
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.error_gamma_logistic import digamma, gammaln
from numgrad.operations.linear_algebra.eigenvalues import eigvalsh
from numgrad.operations.linear_algebra.singular_values import check_semidefinite, pinvh
from numgrad.operations.linear_algebra.triangular import cholesky, solve_triangular
from numgrad.operations.shape import as_operand
from numgrad.operations.special_functions.gamma import multigammaln
from numgrad.operations.special_functions.normal_regions import normal_probability
from numgrad.operations.special_functions.scipy_elementary import xlogy
from numgrad.random.generator import at_once, drawn_shape, generator_from
from numgrad.stats.distribution import Family, where_valid
from numgrad.stats.numerics import over_widths

LOG_2_PI = math.log(2 * math.pi)
_FAR = 40.0  # standard deviations
_NORMAL = 1e30
"""Degrees of freedom of what is a normal distribution."""


def _log_determinant(factor: Any) -> Any:
    """Logarithm of the determinant of a matrix with this Cholesky factor."""
    return 2 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def _matrix(a: Any, length: int) -> Any:
    """A matrix from a number or a diagonal, as SciPy takes them."""
    a = as_operand(a)
    if len(a.shape) == 0:
        return a * np.eye(length)
    return np.expand_dims(a, -1) * np.eye(length) if len(a.shape) == 1 else a


def _length(matrix: Any, loc: Any = None) -> int:
    """The dimension, 1 of numbers."""
    known = [a for a in (matrix, loc) if a is not None and np.ndim(a)]
    return known[0].shape[-1] if known else 1


class _Elliptical(Family):
    """Families with a location and a positive definite matrix."""

    def _check_arguments(self, what: str, x: Any, loc: Any, matrix: Any) -> tuple[Any, Any, int]:
        """Deviations with vectors along the last axis, the Cholesky factor, the dimension."""
        deviation, matrix, length = self._around(what, x, loc, matrix)
        return deviation, cholesky(matrix), length

    def _around(self, what: str, x: Any, loc: Any, matrix: Any) -> tuple[Any, Any, int]:
        """The same with the matrix."""
        x, matrix = as_operand(x), as_operand(matrix)
        known = [matrix] if loc is None else [matrix, as_operand(loc)]
        lengths = {a.shape[-1] for a in known if len(a.shape)}
        if len(lengths) > 1:
            raise NumgradValueError(
                f"{self.name}.{what}: location of shape {tuple(known[-1].shape)} and "
                f"matrix of shape {tuple(matrix.shape)} are of different dimensions"
            )
        length = lengths.pop() if lengths else 1
        if length == 1 and (len(x.shape) < 1 or x.shape[-1] != 1 or len(x.shape) == 1):
            x = np.expand_dims(x, -1)
        if x.shape[-1] != length:
            raise NumgradValueError(
                f"{self.name}.{what}: points of shape {tuple(x.shape)} are not of "
                f"dimension {length}, which the last axis has to be"
            )
        deviation = x if loc is None else x - loc
        return deviation, _matrix(matrix, length), length

    def _distance(self, deviation: Any, factor: Any) -> Any:
        """Squares of lengths in units of the matrix."""
        if len(factor.shape) > 2:  # a matrix for each point
            white = solve_triangular(factor, np.expand_dims(deviation, -1), lower=True)
            return np.sum(white * white, axis=(-2, -1))
        points = np.reshape(deviation, (-1, deviation.shape[-1]))
        white = solve_triangular(factor, np.transpose(points), lower=True)
        return np.reshape(np.sum(white * white, axis=0), deviation.shape[:-1])

    def _limits(self, what: str, x: Any, mean: Any, cov: Any, lower: Any) -> tuple[Any, Any]:
        """Limits around the mean, with the side before the axis of vectors, and the matrix."""
        high, matrix, length = self._around(what, x, mean, cov)
        if lower is None:
            return np.expand_dims(high, -2), matrix
        lower = as_operand(lower)
        if length == 1 and tuple(lower.shape[-1:]) != (1,):
            lower = np.expand_dims(lower, -1)
        try:
            low, high = np.broadcast_arrays(lower if mean is None else lower - mean, high)
        except ValueError:
            raise NumgradValueError(
                f"{self.name}.{what}: lower limits of shape {tuple(lower.shape)} and "
                f"points of shape {tuple(high.shape)} do not broadcast"
            ) from None
        return np.stack([low, high], axis=-2), matrix

    def _region(
        self, limits: Any, matrix: Any, singular: bool, seed: Any, named: str, options: dict
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Finite limits in units of standard deviations, the correlations, options of a kernel."""
        if not singular:
            cholesky(matrix)
        if not (seed is None or isinstance(seed, int | np.integer)):
            raise NumgradTypeError(
                f"{self.name}.cdf: {named} must be the integer that is the seed of "
                f"its points, or None, got {type(seed).__name__}"
            )
        width = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
        endless = np.isinf(limits)
        inner = np.where(endless, 0.0, limits) / np.expand_dims(width, -2)
        # formulas see finite limits beyond which there is no probability
        limits = np.where(endless & (limits > 0), _FAR, np.where(endless, -_FAR, inner))
        correlation = matrix / (np.expand_dims(width, -1) * np.expand_dims(width, -2))
        return limits, correlation, {"seed": int(seed or 0), **options}

    def _sample(
        self, loc: Any, matrix: Any, size: Any, random_state: Any
    ) -> tuple[Any, Any, tuple[Any, ...], Any]:
        """Location, normal deviations, their shape without vectors, the generator."""
        loc, matrix = as_operand(0.0 if loc is None else loc), as_operand(matrix)
        length = _length(matrix, loc)
        factor = cholesky(_matrix(matrix, length))
        name = f"{self.name}.rvs"
        lead = drawn_shape(name, size, factor.shape[:-2], loc.shape[:-1])
        rng = generator_from(name, random_state)
        z = rng.standard_normal((*lead, length))
        return loc, np.squeeze(factor @ np.expand_dims(z, -1), -1), lead, rng


class MultivariateNormal(_Elliptical):
    """Multivariate normal distribution; vectors are along the last axis.

    ``cov`` is a matrix, a diagonal or a number, or, beyond SciPy, a matrix for each point.
    """

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
        """Logarithm of the density at ``x``.

        With ``allow_singular`` it is that on the subspace that ``cov`` spans, ``-inf`` elsewhere;
        gradients are those at a rank that stays.

        Raises
        ------
        NumgradLinAlgError
            If ``cov`` is not positive definite, or with ``allow_singular`` not semidefinite.
        """
        if allow_singular:
            return self._logpdf_of_singular(*self._around("logpdf", x, mean, cov))
        deviation, factor, length = self._check_arguments("logpdf", x, mean, cov)
        distance = self._distance(deviation, factor)
        return -0.5 * (length * LOG_2_PI + _log_determinant(factor) + distance)

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
        """Density at ``x``; ``allow_singular`` as in ``logpdf``."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def _logpdf_of_singular(self, deviation: Any, matrix: Any, length: int) -> Any:
        values = eigvalsh(matrix)
        precise = np.finfo(values.dtype)  # zero is what SciPy takes for it
        rtol = float(precise.eps) * (1e3 if precise.bits == 32 else 1e6)
        size = np.max(np.abs(values), axis=-1, keepdims=True)
        check_semidefinite(values, rtol * size)
        positive = values > rtol * size
        inverse = pinvh(matrix, rtol=rtol)
        row = np.expand_dims(deviation, -2)
        white = row @ inverse
        distance = np.sum(white * row, axis=(-2, -1))
        beyond = np.linalg.norm(row - white @ matrix, axis=(-2, -1))
        determinant = np.sum(np.log(np.where(positive, values, 1.0)), axis=-1)
        rank = np.count_nonzero(positive, axis=-1)
        density = -0.5 * (rank * LOG_2_PI + determinant + distance)
        return np.where(beyond < 1e3 * rtol * size[..., 0], density, -math.inf)

    def cdf(
        self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False,
        maxpts: int | None = None, abseps: float = 1e-5, releps: float = 1e-5, *,
        lower_limit: Any = None, rng: int | None = None,
    ) -> Any:  # fmt: skip
        """Probability of numbers that are not above those of ``x``, nor below ``lower_limit``.

        Of one and two dimensions it is right to about 15 digits. Of more it is SciPy's integral,
        right to ``abseps`` unless ``maxpts`` points are too few, and so are gradients of four and
        five; those of three are as values of two. Parameters are SciPy's, but ``rng`` is a seed:
        results are the same at every call.

        Raises
        ------
        NumgradLinAlgError
            If a covariance matrix is not positive definite and ``allow_singular`` is False.
        """
        limits, matrix = self._limits("cdf", x, mean, cov, lower_limit)
        options = {"maxpts": maxpts, "abseps": abseps, "releps": releps}
        limits, matrix, options = self._region(limits, matrix, allow_singular, rng, "rng", options)
        return normal_probability(limits, matrix, **options)

    def logcdf(self, x: Any, mean: Any = None, cov: Any = 1.0, *args: Any, **named: Any) -> Any:
        """Logarithm of ``cdf``, which it takes the parameters of; of a negative one it is NaN."""
        result = self.cdf(x, mean, cov, *args, **named)
        gone = result == 0  # as its derivative is
        return np.where(gone, -math.inf, np.log(np.where(gone, 1.0, result)))

    def entropy(self, mean: Any = None, cov: Any = 1.0) -> Any:
        """Differential entropy."""
        cov = as_operand(cov)
        length = _length(cov, None if mean is None else as_operand(mean))
        factor = cholesky(_matrix(cov, length))
        return 0.5 * (length * (LOG_2_PI + 1) + _log_determinant(factor))

    def rvs(
        self, mean: Any = None, cov: Any = 1.0, size: Any = None, random_state: Any = None
    ) -> Any:
        """Random vectors along the last axis, with gradients in ``mean`` and ``cov``."""
        mean, deviation, *_ = self._sample(mean, cov, size, random_state)
        return mean + deviation


class MultivariateT(_Elliptical):
    """Multivariate t distribution; vectors are along the last axis."""

    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1.0, df: Any = 1.0) -> Any:
        """Logarithm of the density at ``x``."""
        deviation, factor, length = self._check_arguments("logpdf", x, loc, shape)
        df = as_operand(df)
        endless = np.isinf(df)  # the normal distribution
        df = np.where(endless, 1.0, df)
        distance = self._distance(deviation, factor)
        half = 0.5 * (df + length)
        height = gammaln(half) - gammaln(0.5 * df) - 0.5 * length * np.log(math.pi * df)
        height = np.where(endless, -0.5 * length * math.log(2 * math.pi), height)
        fall = np.where(endless, 0.5 * distance, half * np.log1p(distance / df))
        return height - 0.5 * _log_determinant(factor) - fall

    def pdf(self, x: Any, loc: Any = None, shape: Any = 1.0, df: Any = 1.0) -> Any:
        """Density at ``x``."""
        return np.exp(self.logpdf(x, loc, shape, df))

    def cdf(
        self, x: Any, loc: Any = None, shape: Any = 1.0, df: Any = 1.0,
        allow_singular: bool = False, *, maxpts: int | None = None, lower_limit: Any = None,
        random_state: int | None = None,
    ) -> Any:  # fmt: skip
        """Probability of numbers that are not above those of ``x``, nor below ``lower_limit``.

        It is the mean of that of normal numbers over how wide they are, so it is right to about 14
        digits in one and two dimensions, and to SciPy's five in more. ``random_state`` is a seed:
        results are the same at every call.

        Raises
        ------
        NumgradLinAlgError
            If a matrix is not positive definite and ``allow_singular`` is False.
        """
        limits, matrix = self._limits("cdf", x, loc, shape, lower_limit)
        df = as_operand(df)
        few = (df > 0) & (df < _NORMAL)
        options = {"maxpts": maxpts, "abseps": 1e-5, "releps": 1e-5}
        limits, matrix, options = self._region(
            limits, matrix, allow_singular, random_state, "random_state", options
        )
        far = np.max(np.abs(limits), axis=(-2, -1))
        width, share = over_widths(np.where(few, df, _NORMAL), far)
        limits = np.expand_dims(limits, -3) * np.expand_dims(width, (-2, -1))
        result = normal_probability(limits, np.expand_dims(matrix, -3), **options)
        return where_valid(df > 0, np.sum(share * result, axis=-1), df)

    def entropy(self, loc: Any = None, shape: Any = 1.0, df: Any = 1.0) -> Any:
        """Differential entropy."""
        shape, df = as_operand(shape), as_operand(df)
        length = _length(shape, None if loc is None else as_operand(loc))
        factor = cholesky(_matrix(shape, length))
        half, whole = 0.5 * df, 0.5 * (df + length)
        height = gammaln(half) - gammaln(whole) + 0.5 * length * np.log(math.pi * df)
        result = height + whole * (digamma(whole) - digamma(half))
        return result + 0.5 * _log_determinant(factor)

    def rvs(
        self, loc: Any = None, shape: Any = 1.0, df: Any = 1.0, size: Any = None,
        random_state: Any = None,
    ) -> Any:  # fmt: skip
        """Random vectors along the last axis, with gradients in all parameters."""
        loc, deviation, lead, rng = self._sample(loc, shape, size, random_state)
        wide = np.sqrt(df / rng.chisquare(df, lead))
        return loc + deviation * np.expand_dims(wide, -1)


class Dirichlet(Family):
    """Dirichlet distribution; as in SciPy, probabilities are along the first axis of ``x``."""

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """Logarithm of the density, ``-inf`` unless the probabilities add up to 1.

        The last probability may be left out.
        """
        x, alpha = as_operand(x), as_operand(alpha)
        if x.shape[0] + 1 == alpha.shape[0]:
            x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
        if x.shape[0] != alpha.shape[0]:
            raise NumgradValueError(
                f"dirichlet.logpdf: the first axis of x {tuple(x.shape)} has to have the length of "
                f"alpha {tuple(alpha.shape)}, or be one shorter"
            )
        inside = np.all(x >= 0, axis=0) & (np.abs(np.sum(x, axis=0) - 1) < 1e-9)
        inner = np.where(inside, x, 1 / alpha.shape[0])
        weights = np.reshape(alpha, (-1, *(1,) * (len(x.shape) - 1)))
        result = np.sum(xlogy(weights - 1, inner), axis=0) - self._log_normalizer(alpha)
        result = np.where(inside, result, -math.inf)
        # a sum has the shape of what is found
        return where_valid(np.all(alpha > 0), result, np.sum(x, axis=0), np.sum(alpha))

    def pdf(self, x: Any, alpha: Any) -> Any:
        """Density at ``x``."""
        return np.exp(self.logpdf(x, alpha))

    def _log_normalizer(self, alpha: Any) -> Any:
        return np.sum(gammaln(alpha)) - gammaln(np.sum(alpha))

    def mean(self, alpha: Any) -> Any:
        """Mean."""
        alpha = as_operand(alpha)
        return alpha / np.sum(alpha)

    def var(self, alpha: Any) -> Any:
        """Variances."""
        alpha = as_operand(alpha)
        total = np.sum(alpha)
        return alpha * (total - alpha) / (total * total * (total + 1))

    def cov(self, alpha: Any) -> Any:
        """Covariances."""
        alpha = as_operand(alpha)
        total = np.sum(alpha)
        share = alpha / total
        column = np.expand_dims(share, -1)
        return column * (np.eye(alpha.shape[0]) - share) / (total + 1)

    def entropy(self, alpha: Any) -> Any:
        """Differential entropy."""
        alpha = as_operand(alpha)
        total = np.sum(alpha)
        slope = (total - alpha.shape[0]) * digamma(total)
        return self._log_normalizer(alpha) + slope - np.sum((alpha - 1) * digamma(alpha))

    def rvs(self, alpha: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random probabilities, here along the last axis, with gradients in ``alpha``."""
        return generator_from("dirichlet.rvs", random_state).dirichlet(alpha, size)


class Wishart(Family):
    """Wishart distribution of positive definite matrices; as in SciPy, several are along axis 2."""

    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Logarithm of the density at ``x``."""
        x = as_operand(x)
        if len(x.shape) == 3:
            x = np.moveaxis(x, -1, 0)
        length = x.shape[-1]
        scale, df = _matrix(scale, length), as_operand(df)
        if x.shape[-2:] != scale.shape[-2:]:
            raise NumgradValueError(
                f"wishart.logpdf: matrices of shape {tuple(x.shape)} and scale of shape "
                f"{tuple(scale.shape)} are of different dimensions"
            )
        factor, inner = cholesky(scale), cholesky(x)
        white = solve_triangular(factor, inner, lower=True)  # the trace of scale^-1 x is its square
        trace = np.sum(white * white, axis=(-2, -1))
        first = 0.5 * (df - length - 1) * _log_determinant(inner) - 0.5 * trace
        height = 0.5 * df * (length * math.log(2) + _log_determinant(factor))
        return first - height - multigammaln(0.5 * df, length)

    def pdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Density at ``x``."""
        return np.exp(self.logpdf(x, df, scale))

    def mean(self, df: Any, scale: Any) -> Any:
        """Mean."""
        return df * as_operand(scale)

    def mode(self, df: Any, scale: Any) -> Any:
        """The matrix at which the density is greatest; None if there is none, as in SciPy."""
        scale = as_operand(scale)
        length = _length(scale)
        free = df - length - 1
        return None if at_once() and free < 0 else free * scale

    def var(self, df: Any, scale: Any) -> Any:
        """Variances of the elements."""
        scale = as_operand(scale)
        if len(scale.shape) == 0:
            return 2 * df * (scale * scale)
        scale = _matrix(scale, scale.shape[-1])
        diagonal = np.diagonal(scale, axis1=-2, axis2=-1)
        return df * (scale * scale + np.expand_dims(diagonal, -1) * np.expand_dims(diagonal, -2))

    def entropy(self, df: Any, scale: Any) -> Any:
        """Differential entropy."""
        scale, df = as_operand(scale), as_operand(df)
        n = _length(scale)
        log = _log_determinant(cholesky(_matrix(scale, n)))
        slopes = np.sum(digamma(0.5 * (np.expand_dims(df, -1) - np.arange(n))), axis=-1)
        height = 0.5 * (n + 1) * (log + n * math.log(2)) + multigammaln(0.5 * df, n)
        return height - 0.5 * (df - n - 1) * slopes + 0.5 * df * n

    def rvs(self, df: Any, scale: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random matrices along the last two axes, with gradients, by Bartlett's decomposition."""
        scale = as_operand(scale)
        length = _length(scale)
        rng = generator_from("wishart.rvs", random_state)
        lead = drawn_shape("wishart.rvs", size)
        below = np.tril(rng.standard_normal((*lead, length, length)), -1)
        squares = rng.chisquare(df - np.arange(length), (*lead, length))
        root = below + np.expand_dims(np.sqrt(squares), -1) * np.eye(length)
        factor = cholesky(_matrix(scale, length)) @ root
        return factor @ factor.mT


multivariate_normal = MultivariateNormal("multivariate_normal")
multivariate_t = MultivariateT("multivariate_t")
dirichlet, wishart = Dirichlet("dirichlet"), Wishart("wishart")
