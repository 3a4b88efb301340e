"""Distributions of categories, vectors and matrices: Note [Rows of distributions] in ``tables``."""

from __future__ import annotations

import math
import warnings
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.random.generator import generator_from
from numgrad.torch.distributions import tables, utils
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.tables import ProbabilityDistribution, TableDistribution
from numgrad.torch.distributions.univariate import CLASSES as UNIVARIATE, beta_drawn, beta_path
from numgrad.torch.distributions.utils import torch
from numgrad.torch.wrapping import wrap

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _dirichlet(alpha: Any) -> Any:
    """Points of simplexes, whose gradients in ``alpha`` are implicit ones.

    Each component follows a beta distribution; the others share what it leaves in the same
    proportions (Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018).
    Numbers are drawn by logarithms, ``gamma(a) = gamma(a + 1) u**(1 / a)``, which do not underflow.
    """
    a = alpha.detach().double()
    source = generator_from("rsample", None)
    log = wrap(source.standard_gamma((a + 1)._tensor)).log()
    log = log + utils.inner_uniform(a.shape, a).log() / a
    x = torch.softmax(log, -1).clamp(min=torch.finfo(torch.float64).tiny)
    if not (torch.is_grad_enabled() and alpha.requires_grad):
        return x.to(alpha.dtype)
    x = x.to(alpha.dtype).double()  # whose gradient it is
    inner, rest = x.clamp(max=1 - 2**-53), (a.sum(-1, True) - a)
    path = beta_path(inner, alpha.double(), rest)
    step = (path - inner) / (1 - inner)
    return (x + step - x * step.sum(-1, True)).to(alpha.dtype)


def _one_hot(indices: Any, like: Any) -> Any:
    return torch.nn.functional.one_hot(indices, like.shape[-1]).to(like)


class VectorDistribution(TableDistribution):
    """Base of distributions of vectors, whose parameters are numbers if these have one element."""

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Take the parameters, numbers as vectors of length 1."""
        values = map(torch.atleast_1d, utils.broadcast_all(*given.values()))
        super()._begin(dict(zip(given, values, strict=True)), validate_args)


class CategoryDistribution(ProbabilityDistribution):
    """Base of distributions over categories, of ``probs`` or ``logits`` along the last axis."""

    _is_binary = False
    _param_dim = 1
    _num_events = property(lambda self: self._param.size(-1), doc="Number of categories.")

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Normalise what is given."""
        if not isinstance(given.get("total_count", 0), int):
            raise NumgradValueError("inhomogeneous total_count is not supported")
        for name in ("probs", "logits"):
            x = given[name]
            if isinstance(x, torch.Tensor) and x.dim():
                given[name] = (
                    x / x.sum(-1, True) if name == "probs" else x - x.logsumexp(-1, keepdim=True)
                )
        super()._begin(given, validate_args)

    def _drawn(self, shape: Any, *lead: int) -> Any:
        """Indices of categories in the shape of a batch."""
        count = len(shape) - len(self._batch_shape) - len(self._event_shape)
        shape = (*lead, *shape[: len(shape) - self._event_dim])
        rows = self.probs.detach().reshape(-1, self._num_events)
        numbers = torch.multinomial(rows, math.prod(shape[: count + len(lead)]), True)
        return numbers.T.reshape(shape)

    def _category_entropy(self) -> Any:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def _chosen(self, value: Any) -> Any:
        """Logarithms of the probabilities of indices, which have a last axis of length 1."""
        shape = torch.broadcast_shapes(value.shape[:-1], self._batch_shape)
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, value.expand((*shape, 1))).squeeze(-1)


def _log_of_counts(value: Any, logits: Any) -> Any:
    """Logarithm of the probability of counts of categories."""
    logits, value = utils.broadcast_all(logits, value)
    ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
    none = (value == 0) & (logits == -math.inf)
    return ways + (torch.where(none, 0.0, logits) * value).sum(-1)


def _count_entropy(self: Any) -> Any:
    """Entropy of counts, by the binomial distribution of each."""
    n = torch.tensor(self.total_count)
    counts = UNIVARIATE["Binomial"](self.total_count, probs=self.probs)
    values = counts.enumerate_support(False)[1:]
    terms = (counts.log_prob(values).exp() * torch.lgamma(values + 1)).sum(0).sum(-1)
    return self.total_count * self._category_entropy() - torch.lgamma(n + 1.0) + terms


class CovarianceDistribution(TableDistribution):
    """Base of those of a covariance, its inverse or its Cholesky factor, and ``loc`` or ``df``."""

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Compute the Cholesky factor of the covariance."""
        (name, x), *rest = given.items()
        rest = [(key, value) for key, value in rest if value is not None]
        if len(rest) != 1:
            raise NumgradValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((key, root),) = rest
        if root.dim() < 2:
            raise NumgradValueError(f"{key} must be at least two-dimensional")
        x = torch.as_tensor(x, dtype=root.dtype)
        own = self._event_dim if name == "loc" else 0
        if x.dim() < own:
            raise NumgradValueError("loc must be at least one-dimensional.")
        batch_shape = torch.broadcast_shapes(root.shape[:-2], x.shape[: x.dim() - own])
        setattr(self, key, root.expand(batch_shape + root.shape[-2:]))
        setattr(self, name, x.expand(batch_shape + x.shape[x.dim() - own :]))
        event_shape = root.shape[-self._event_dim :]
        Distribution.__init__(self, batch_shape, event_shape, validate_args)
        if key == "covariance_matrix":
            root = torch.linalg.cholesky(root)
        elif key == "precision_matrix":
            # inverse of the factor from the last row on: P = V V^T with V upper triangular
            lower = torch.linalg.cholesky(root.flip((-2, -1)))
            upper = lower.flip((-2, -1)).mT
            eye = torch.eye(root.shape[-1], dtype=root.dtype).expand(upper.shape)
            root = torch.linalg.solve_triangular(upper, eye, upper=False)
        self._unbroadcasted_scale_tril = root

    _size = property(lambda self: self._event_shape[-1], doc="Length of the matrices.")
    scale_tril: Any = utils.lazy_property(
        lambda self: self._unbroadcasted_scale_tril.expand(
            (*self._batch_shape, self._size, self._size)
        )
    )
    covariance_matrix: Any = utils.lazy_property(lambda d: d.scale_tril @ d.scale_tril.mT)
    precision_matrix: Any = utils.lazy_property(lambda d: torch.cholesky_inverse(d.scale_tril))

    def _log_scale(self) -> Any:
        """Half of the logarithm of the determinant of the covariance."""
        return _half_log_det(self._unbroadcasted_scale_tril)


def _half_log_det(root: Any) -> Any:
    return root.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _wishart(self: Any, shape: Any) -> Any:
    """Matrices by Bartlett's decomposition; those that rounding made singular are drawn again."""
    root, singular, result = self._unbroadcasted_scale_tril, torch.tensor(True), torch.tensor(0.0)
    df = self.df.unsqueeze(-1) - torch.arange(self._size, dtype=root.dtype)
    eps = torch.finfo(root.dtype).eps
    for _ in range(10):
        wide = utils.drawn("chisquare", shape[:-1], df).sqrt().clamp(min=eps)
        factor = root @ (torch.randn(shape, dtype=root.dtype).tril(-1) + torch.diag_embed(wide))
        result = torch.where(singular[..., None, None], factor @ factor.mT, result)
        singular = ~self.support.check(result)
        if not singular.any():
            return result
    warnings.warn("Singular sample detected.", stacklevel=4)
    return result


def _mvdigamma(x: Any, n: int) -> Any:
    return torch.digamma(x.unsqueeze(-1) - 0.5 * torch.arange(n, dtype=x.dtype)).sum(-1)


def _onion(self: Any, shape: Any) -> Any:
    """Cholesky factors of random correlation matrices by the onion method.

    Lewandowski, Kurowicka, Joe, "Generating random correlation matrices based on vines and
    extended onion method", 2009, section 3.2.
    """
    eta, n = self.concentration, self.dim
    row = torch.cat([torch.zeros(1, dtype=eta.dtype), torch.arange(n - 1, dtype=eta.dtype)])
    left = (eta + 0.5 * (n - 2)).unsqueeze(-1) - 0.5 * row
    share = beta_drawn(shape[:-1], (0.5 * (row + 1)).expand(left.shape), left).unsqueeze(-1)
    normal = torch.randn(shape, dtype=eta.dtype).tril(-1)
    length = normal.norm(dim=-1, keepdim=True)
    w = share.sqrt() * normal / torch.where(length == 0, 1.0, length)
    rest = (1 - (w * w).sum(-1)).clamp(min=torch.finfo(eta.dtype).tiny)
    return w + torch.diag_embed(rest.sqrt())


def _onion_log_prob(eta: Any, n: int, value: Any) -> Any:
    """Powers of the diagonal of a Cholesky factor, and their normalizer (page 1999 there)."""
    order = 2 * (eta - 1).unsqueeze(-1) + n - torch.arange(2, n + 1, dtype=eta.dtype)
    log = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
    alpha = eta + 0.5 * (n - 1)
    normalizer = 0.5 * (n - 1) * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, n - 1)
    return log - normalizer + (n - 1) * torch.lgamma(alpha)


def _quadratic(root: Any, x: Any) -> Any:
    """Squared length of ``x`` by the covariance whose Cholesky factor is ``root``."""
    shape = torch.broadcast_shapes(root.shape[:-1], x.shape)
    solved = torch.linalg.solve_triangular(
        root.expand(shape + root.shape[-1:]), x.expand(shape).unsqueeze(-1), upper=False
    )
    return solved.squeeze(-1).pow(2).sum(-1)


class LowRankDistribution(TableDistribution):
    """Base of normal vectors whose covariance is ``W W^T + diag(d)``.

    Solved by the capacitance matrix ``I + W^T diag(1 / d) W``: the Woodbury identity.
    """

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Broadcast the parameters, of vectors of one length."""
        loc, w, d = given.values()
        if loc.dim() < 1:
            raise NumgradValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if w.dim() < 2 or w.shape[-2] != n:
            raise NumgradValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if d.shape[-1:] != (n,):
            raise NumgradValueError(f"cov_diag must be a batch of vectors with shape {n}")
        try:
            shape = torch.broadcast_shapes(loc.shape[:-1], w.shape[:-2], d.shape[:-1])
        except (RuntimeError, ValueError):
            raise NumgradValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {w.shape}, "
                f"cov_diag {d.shape}"
            ) from None
        self.loc, self.cov_diag = (x.expand((*shape, n)) for x in (loc, d))
        self.cov_factor = w.expand(shape + w.shape[-2:])
        Distribution.__init__(self, shape, (n,), validate_args)

    def _capacitance_tril(self) -> Any:
        w = self.cov_factor
        eye = torch.eye(w.shape[-1], dtype=w.dtype)
        return torch.linalg.cholesky(eye + w.mT / self.cov_diag.unsqueeze(-2) @ w)

    def _distance(self, x: Any) -> Any:
        """Squared length by the covariance."""
        scaled = x / self.cov_diag
        inner = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        return (x * scaled).sum(-1) - _quadratic(self._capacitance_tril(), inner)

    def _precision(self) -> Any:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        solved = torch.linalg.solve_triangular(self._capacitance_tril(), scaled, upper=False)
        return torch.diag_embed(1 / self.cov_diag) - solved.mT @ solved

    def _log_scale(self) -> Any:
        """Half of the logarithm of the determinant of the covariance."""
        return _half_log_det(self._capacitance_tril()) + 0.5 * self.cov_diag.log().sum(-1)


TABLE = """
Dirichlet(concentration: independent(positive, 1)) on simplex
  mean: concentration / concentration.sum(-1, True)
  mode: torch.where((concentration < 1).all(-1, True), _one_hot(
    concentration.argmax(-1), concentration), (concentration - 1).clamp(min=0) / (
    concentration - 1).clamp(min=0).sum(-1, True))
  variance: self.mean * (1 - self.mean) / (concentration.sum(-1, True) + 1)
  log_prob: torch.xlogy(concentration - 1, value).sum(-1) + torch.lgamma(
    concentration.sum(-1)) - torch.lgamma(concentration).sum(-1)
  entropy: torch.lgamma(concentration).sum(-1) - torch.lgamma(concentration.sum(-1)) - (
    concentration.size(-1) - concentration.sum(-1)) * torch.digamma(concentration.sum(-1)) - (
    (concentration - 1) * torch.digamma(concentration)).sum(-1)
  rsample: _dirichlet(concentration.expand(shape))
Categorical(probs: simplex | logits: real_vector) on integer_interval(0, self._num_events - 1)
    as CategoryDistribution
  event: torch.Size()
  mean: torch.full(self._batch_shape, math.nan, dtype=probs.dtype)
  mode: probs.argmax(-1)
  variance: self.mean
  log_prob: self._chosen(value.long().unsqueeze(-1))
  entropy: self._category_entropy()
  sample: self._drawn(shape)
  values: torch.arange(self._num_events)
OneHotCategorical(probs: simplex | logits: real_vector) on one_hot as CategoryDistribution
  mean: probs
  mode: _one_hot(probs.argmax(-1), probs)
  variance: probs * (1 - probs)
  _categorical: Categorical(**self._given)
  log_prob: self._chosen(value.argmax(-1, keepdim=True))
  entropy: self._category_entropy()
  sample: _one_hot(self._drawn(shape), probs)
  values: torch.eye(self._num_events, dtype=self._param.dtype)
OneHotCategoricalStraightThrough(probs: simplex | logits: real_vector) on one_hot
    as OneHotCategorical
  rsample: self.sample(shape[: len(shape) - self._param.dim()]) + (probs - probs.detach())
ExpRelaxedCategorical(temperature, probs: simplex | logits: real_vector) on real_vector
    as CategoryDistribution
  log_prob: torch.log_softmax(logits - value * temperature, -1).sum(-1) + math.lgamma(
    self._num_events) + (self._num_events - 1) * temperature.log()
  rsample: torch.log_softmax((logits - (-inner_uniform(shape, logits).log()).log()) / temperature,
    -1)
RelaxedOneHotCategorical(temperature, probs: simplex | logits: real_vector) on simplex
    as CategoryDistribution
  base_dist: ExpRelaxedCategorical(temperature, **self._given)
  transforms: [ExpTransform()]
LogisticNormal(loc: real, scale: positive) on simplex as VectorDistribution
  base_dist: Normal(loc, scale)
  transforms: [StickBreakingTransform()]
  event: torch.Size((loc.shape[-1] + 1,))
LKJCholesky(dim, concentration: positive = 1.0) on corr_cholesky
  event: torch.Size((dim, dim))
  _param_dim: 0
  _check: torch.tensor(dim >= 2)
  log_prob: _onion_log_prob(concentration, dim, value)
  sample: _onion(self, shape)
Multinomial(total_count = 1, probs: simplex | logits: real_vector)
    on multinomial(total_count) as CategoryDistribution
  mean: probs * total_count
  variance: self.mean * (1 - probs)
  log_prob: _log_of_counts(value, logits)
  entropy: _count_entropy(self)
  sample: _one_hot(self._drawn(shape, total_count), probs).sum(0)
MultivariateNormal(loc: real_vector, covariance_matrix: positive_definite = None,
    precision_matrix: positive_definite = None, scale_tril: lower_cholesky = None)
    on real_vector as CovarianceDistribution
  mean: loc
  mode: loc
  variance: scale_tril.pow(2).sum(-1)
  log_prob: -0.5 * _quadratic(self._unbroadcasted_scale_tril, value - loc) - (
    self._size * HALF_LOG_2PI + self._log_scale())
  entropy: (self._size * (0.5 + HALF_LOG_2PI) + self._log_scale()).expand(self._batch_shape)
  rsample: loc + (self._unbroadcasted_scale_tril @ torch.randn(
    shape, dtype=loc.dtype).unsqueeze(-1)).squeeze(-1)
Wishart(df: greater_than(self._size - 1), covariance_matrix: positive_definite = None,
    precision_matrix: positive_definite = None, scale_tril: lower_cholesky = None)
    on positive_definite as CovarianceDistribution
  mean: df[..., None, None] * self.covariance_matrix
  mode: torch.where(df > self._size + 1, df - self._size - 1, math.nan)[..., None, None] * (
    self.covariance_matrix)
  variance: df[..., None, None] * (self.covariance_matrix**2 + self._variances.unsqueeze(
    -1) * self._variances.unsqueeze(-2))
  _variances: self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
  log_prob: 0.5 * (df - self._size - 1) * torch.linalg.slogdet(value)[1] - 0.5 * (
    self.precision_matrix * value).sum((-2, -1)) - df * (0.5 * self._size * math.log(2) +
    self._log_scale()) - torch.mvlgamma(0.5 * df, self._size)
  entropy: (self._size + 1) * (0.5 * self._size * math.log(2) + self._log_scale()) + torch.mvlgamma(
    0.5 * df, self._size) - 0.5 * (df - self._size - 1) * _mvdigamma(0.5 * df, self._size) + (
    0.5 * self._size * df)
  rsample: _wishart(self, shape)
LowRankMultivariateNormal(loc: real_vector, cov_factor: independent(real, 2),
    cov_diag: independent(positive, 1)) on real_vector as LowRankDistribution
  mean: loc
  mode: loc
  variance: cov_factor.pow(2).sum(-1) + cov_diag
  covariance_matrix: cov_factor @ cov_factor.mT + torch.diag_embed(cov_diag)
  scale_tril: torch.linalg.cholesky(self.covariance_matrix)
  precision_matrix: self._precision()
  log_prob: -0.5 * self._distance(value - loc) - (
    loc.shape[-1] * HALF_LOG_2PI + self._log_scale())
  entropy: loc.shape[-1] * (0.5 + HALF_LOG_2PI) + self._log_scale()
  rsample: loc + (cov_factor @ torch.randn(shape[:-1] + cov_factor.shape[-1:],
    dtype=loc.dtype).unsqueeze(-1)).squeeze(-1) + cov_diag.sqrt() * torch.randn(
    shape, dtype=loc.dtype)
"""
CLASSES = UNIVARIATE | tables.declare(TABLE, UNIVARIATE | globals())
globals().update(CLASSES)
