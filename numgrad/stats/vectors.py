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
from numgrad.stats.covariance import Covariance, applied, factored, log_determinant
from numgrad.stats.distribution import Family, where_valid
from numgrad.stats.numerics import over_widths
from numgrad.tensors.reparameterised import PATHS, differentiated, fixed

LOG_2_PI = math.log(2 * math.pi)
_FAR = 40.0  # standard deviations
_NORMAL = 1e30
"""Degrees of freedom of what is a normal distribution."""


def _matrix(a: Any, length: int) -> Any:
    """A matrix from a number or a diagonal, as SciPy takes them."""
    a = _operand(a)
    if isinstance(a, Covariance):
        return a
    if len(a.shape) == 0:
        return a * np.eye(length)
    return np.expand_dims(a, -1) * np.eye(length) if len(a.shape) == 1 else a


def _operand(matrix: Any) -> Any:
    return matrix if isinstance(matrix, Covariance) else as_operand(matrix)


def _dense(matrix: Any) -> Any:
    return matrix.covariance if isinstance(matrix, Covariance) else as_operand(matrix)


def _length(matrix: Any, loc: Any = None) -> int:
    """The dimension, 1 of numbers."""
    known = [a for a in (matrix, loc) if a is not None and len(a.shape)]
    return known[0].shape[-1] if known else 1


def covariance_of(matrix: Any, loc: Any = None) -> Covariance:
    """The covariance that a matrix, a diagonal or a number is, as long as a location."""
    matrix, loc = _operand(matrix), None if loc is None else as_operand(loc)
    return factored(_matrix(matrix, _length(matrix, loc)))


class _Elliptical(Family):
    """Families with a location and a positive definite matrix."""

    def _around(self, what: str, x: Any, loc: Any, matrix: Any) -> tuple[Any, Any, int]:
        """Deviations with vectors along the last axis, the matrix, the dimension."""
        x, matrix = as_operand(x), _operand(matrix)
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

    def _limits(self, what: str, x: Any, mean: Any, cov: Any, lower: Any) -> tuple[Any, Any]:
        """Limits around the mean, with the side before the axis of vectors, and the matrix."""
        high, matrix, length = self._around(what, x, mean, _dense(cov))
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

    def _drawn(
        self, loc: Any, matrix: Any, size: Any, random_state: Any
    ) -> tuple[Any, Any, tuple[Any, ...], Any]:
        """Location, normal deviations, their shape without vectors, the generator."""
        loc, cov = as_operand(0.0 if loc is None else loc), covariance_of(matrix, loc)
        name = f"{self.name}.rvs"
        lead = drawn_shape(name, size, cov.shape[:-2], loc.shape[:-1])
        rng = generator_from(name, random_state)
        return loc, _deviations(rng, lead, cov), lead, rng


def _deviations(rng: Any, lead: tuple[Any, ...], cov: Covariance) -> Any:
    """Normal vectors around 0."""
    root = cov.root
    return applied(root, rng.standard_normal((*lead, root.shape[-1])))


class MultivariateNormal(_Elliptical):
    """Multivariate normal distribution; vectors are along the last axis.

    ``cov`` is a matrix, a diagonal, a number or a ``Covariance``, or, beyond SciPy, a matrix for
    each point.
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
            return self._logpdf_of_singular(*self._around("logpdf", x, mean, _dense(cov)))
        deviation, matrix, _ = self._around("logpdf", x, mean, cov)
        return self._logpdf(deviation, 0.0, factored(matrix))

    # formulas of stacks along the first axes

    def _logpdf(self, x: Any, mean: Any, cov: Covariance) -> Any:
        return -0.5 * (cov.rank * LOG_2_PI + cov.log_pdet + cov.distance(x - mean))

    def _mean(self, mean: Any, cov: Covariance) -> Any:
        return mean

    def _var(self, mean: Any, cov: Covariance) -> Any:
        return np.sum(cov.root * cov.root, axis=-1)

    def _entropy(self, mean: Any, cov: Covariance) -> Any:
        return 0.5 * (cov.rank * (LOG_2_PI + 1) + cov.log_pdet)

    def _sample(self, rng: Any, shape: tuple[Any, ...], mean: Any, cov: Covariance) -> Any:
        return mean + _deviations(rng, shape[:-1], cov)

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
        return self._entropy(mean, covariance_of(cov, mean))

    def rvs(
        self, mean: Any = None, cov: Any = 1.0, size: Any = None, random_state: Any = None
    ) -> Any:
        """Random vectors along the last axis, with gradients in ``mean`` and ``cov``."""
        mean, deviation, *_ = self._drawn(mean, cov, size, random_state)
        return mean + deviation


class MultivariateT(_Elliptical):
    """Multivariate t distribution; vectors are along the last axis."""

    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1.0, df: Any = 1.0) -> Any:
        """Logarithm of the density at ``x``."""
        deviation, matrix, length = self._around("logpdf", x, loc, shape)
        cov = factored(matrix)
        df = as_operand(df)
        endless = np.isinf(df)  # the normal distribution
        df = np.where(endless, 1.0, df)
        distance = cov.distance(deviation)
        half = 0.5 * (df + length)
        height = gammaln(half) - gammaln(0.5 * df) - 0.5 * length * np.log(math.pi * df)
        height = np.where(endless, -0.5 * length * math.log(2 * math.pi), height)
        fall = np.where(endless, 0.5 * distance, half * np.log1p(distance / df))
        return height - 0.5 * cov.log_pdet - fall

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
        cov, df = covariance_of(shape, loc), as_operand(df)
        half, whole = 0.5 * df, 0.5 * (df + cov.rank)
        height = gammaln(half) - gammaln(whole) + 0.5 * cov.rank * np.log(math.pi * df)
        result = height + whole * (digamma(whole) - digamma(half))
        return result + 0.5 * cov.log_pdet

    def rvs(
        self, loc: Any = None, shape: Any = 1.0, df: Any = 1.0, size: Any = None,
        random_state: Any = None,
    ) -> Any:  # fmt: skip
        """Random vectors along the last axis, with gradients in all parameters."""
        loc, deviation, lead, rng = self._drawn(loc, shape, size, random_state)
        wide = np.sqrt(df / rng.chisquare(df, lead))
        return loc + deviation * np.expand_dims(wide, -1)


class Dirichlet(Family):
    """Dirichlet distribution; as in SciPy, probabilities are along the first axis of ``x``.

    Beyond SciPy, ``alpha`` may be a stack of concentrations along its last axis.
    """

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """Logarithm of the density, ``-inf`` unless the probabilities add up to 1.

        The last probability may be left out.
        """
        x, alpha = as_operand(x), as_operand(alpha)
        if x.shape[0] + 1 == alpha.shape[-1]:
            x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
        if x.shape[0] != alpha.shape[-1]:
            raise NumgradValueError(
                f"dirichlet.logpdf: the first axis of x {tuple(x.shape)} has to have the length of "
                f"alpha {tuple(alpha.shape)}, or be one shorter"
            )
        x = np.moveaxis(x, 0, -1)
        inside = np.all(x >= 0, axis=-1) & (np.abs(np.sum(x, axis=-1) - 1) < 1e-9)
        inner = np.where(np.expand_dims(inside, -1), x, 1 / alpha.shape[-1])
        result = np.where(inside, self._logpdf(inner, alpha), -math.inf)
        # a sum has the shape of what is found
        ok = np.all(alpha > 0, axis=-1)
        return where_valid(ok, result, np.sum(x, axis=-1), np.sum(alpha, axis=-1))

    def _logpdf(self, x: Any, alpha: Any) -> Any:
        """The same of probabilities along the last axis."""
        return np.sum(xlogy(alpha - 1, x), axis=-1) - self._log_normalizer(alpha)

    def pdf(self, x: Any, alpha: Any) -> Any:
        """Density at ``x``."""
        return np.exp(self.logpdf(x, alpha))

    def _log_normalizer(self, alpha: Any) -> Any:
        return np.sum(gammaln(alpha), axis=-1) - gammaln(np.sum(alpha, axis=-1))

    def mean(self, alpha: Any) -> Any:
        """Mean."""
        alpha = as_operand(alpha)
        return alpha / np.sum(alpha, axis=-1, keepdims=True)

    def var(self, alpha: Any) -> Any:
        """Variances."""
        alpha = as_operand(alpha)
        total = np.sum(alpha, axis=-1, keepdims=True)
        return alpha * (total - alpha) / (total * total * (total + 1))

    def cov(self, alpha: Any) -> Any:
        """Covariances, along the last two axes."""
        share, alpha = self.mean(alpha), as_operand(alpha)
        total = np.sum(alpha, axis=-1)[..., None, None]
        across = np.eye(alpha.shape[-1]) - np.expand_dims(share, -2)
        return np.expand_dims(share, -1) * across / (total + 1)

    def entropy(self, alpha: Any) -> Any:
        """Differential entropy."""
        alpha = as_operand(alpha)
        total = np.sum(alpha, axis=-1)
        slope = (total - alpha.shape[-1]) * digamma(total)
        return self._log_normalizer(alpha) + slope - np.sum((alpha - 1) * digamma(alpha), axis=-1)

    def rvs(self, alpha: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random probabilities, here along the last axis, with implicit gradients in ``alpha``."""
        alpha = as_operand(alpha)
        lead = drawn_shape("dirichlet.rvs", size, alpha.shape[:-1])
        rng = generator_from("dirichlet.rvs", random_state)
        return self._sample(rng, (*lead, alpha.shape[-1]), alpha)

    _mean, _var, _entropy = mean, var, entropy

    def _sample(self, rng: Any, shape: tuple[Any, ...], alpha: Any) -> Any:
        """Gamma numbers over their sum; in logarithms, by ``gamma(a + 1) u**(1 / a)``.

        So they do not underflow. Each follows a beta distribution; what it leaves the others share
        in the same proportions, which gives gradients (Figurnov, Mohamed, Mnih, "Implicit
        reparameterization gradients", 2018).
        """
        a = np.asarray(fixed(alpha)).astype(np.float64)
        log = np.log(rng.standard_gamma(a + 1, shape)) + np.log1p(-rng.random(shape)) / a
        x = np.exp(log - np.max(log, axis=-1, keepdims=True))
        x = x / np.sum(x, axis=-1, keepdims=True)
        if not differentiated(alpha):
            return x
        x = x.astype(alpha.dtype).astype(np.float64)  # the numbers whose gradients they are
        inner = np.clip(x, np.finfo(np.float64).tiny, 1 - 2.0**-53)
        rest = np.sum(a, axis=-1, keepdims=True) - a
        step = (PATHS["beta"](inner, (), alpha.astype(np.float64), rest) - inner) / (1 - inner)
        return x + step - x * np.sum(step, axis=-1, keepdims=True)


class Wishart(Family):
    """Wishart distribution of positive definite matrices; as in SciPy, several are along axis 2.

    ``scale`` is a matrix, a diagonal, a number or a ``Covariance``.
    """

    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Logarithm of the density at ``x``."""
        x = as_operand(x)
        if len(x.shape) == 3:
            x = np.moveaxis(x, -1, 0)
        scale, df = _matrix(scale, x.shape[-1]), as_operand(df)
        if x.shape[-2:] != scale.shape[-2:]:
            raise NumgradValueError(
                f"wishart.logpdf: matrices of shape {tuple(x.shape)} and scale of shape "
                f"{tuple(scale.shape)} are of different dimensions"
            )
        cov, inner = factored(scale), cholesky(x)
        white = solve_triangular(cov.factor, inner, lower=True)
        trace = np.sum(white * white, axis=(-2, -1))  # of scale^-1 x
        first = 0.5 * (df - cov.rank - 1) * log_determinant(inner) - 0.5 * trace
        height = 0.5 * df * (cov.rank * math.log(2) + cov.log_pdet)
        return first - height - multigammaln(0.5 * df, cov.rank)

    def pdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Density at ``x``."""
        return np.exp(self.logpdf(x, df, scale))

    def mean(self, df: Any, scale: Any) -> Any:
        """Mean."""
        return df * _dense(scale)

    def mode(self, df: Any, scale: Any) -> Any:
        """The matrix at which the density is greatest; None if there is none, as in SciPy."""
        scale = _dense(scale)
        free = df - _length(scale) - 1
        return None if at_once() and free < 0 else free * scale

    def var(self, df: Any, scale: Any) -> Any:
        """Variances of the elements."""
        scale = _dense(scale)
        if len(scale.shape) == 0:
            return 2 * df * (scale * scale)
        return df * _squares(_matrix(scale, scale.shape[-1]))

    def entropy(self, df: Any, scale: Any) -> Any:
        """Differential entropy."""
        return self._entropy(as_operand(df), covariance_of(scale))

    def rvs(self, df: Any, scale: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random matrices along the last two axes, with gradients, by Bartlett's decomposition."""
        cov, df = covariance_of(scale), as_operand(df)
        rng = generator_from("wishart.rvs", random_state)
        lead = drawn_shape("wishart.rvs", size, df.shape, cov.shape[:-2])
        return self._sample(rng, (*lead, *cov.shape[-2:]), df, cov)

    # formulas of stacks along the first axes

    def _mean(self, df: Any, cov: Covariance) -> Any:
        return df[..., None, None] * cov.covariance

    def _var(self, df: Any, cov: Covariance) -> Any:
        return df[..., None, None] * _squares(cov.covariance)

    def _entropy(self, df: Any, cov: Covariance) -> Any:
        n = cov.rank
        height = 0.5 * (n + 1) * (cov.log_pdet + n * math.log(2)) + multigammaln(0.5 * df, n)
        return height - 0.5 * (df - n - 1) * digammas(0.5 * df, n) + 0.5 * df * n

    def _sample(self, rng: Any, shape: tuple[Any, ...], df: Any, cov: Covariance) -> Any:
        n = cov.rank
        below = np.tril(rng.standard_normal(shape), -1)
        squares = rng.chisquare(np.expand_dims(df, -1) - np.arange(n), shape[:-1])
        factor = cov.factor @ (below + np.expand_dims(np.sqrt(squares), -1) * np.eye(n))
        return factor @ np.swapaxes(factor, -1, -2)


def digammas(x: Any, n: int) -> Any:
    """Derivative of ``multigammaln(x, n)``."""
    return np.sum(digamma(np.expand_dims(x, -1) - 0.5 * np.arange(n)), axis=-1)


def _squares(scale: Any) -> Any:
    """Variances of elements of Wishart matrices of one degree of freedom."""
    diagonal = np.diagonal(scale, axis1=-2, axis2=-1)
    return scale * scale + np.expand_dims(diagonal, -1) * np.expand_dims(diagonal, -2)


multivariate_normal = MultivariateNormal("multivariate_normal")
multivariate_t = MultivariateT("multivariate_t")
dirichlet, wishart = Dirichlet("dirichlet"), Wishart("wishart")
