"""Distributions of categories, vectors and matrices: Note [Rows of distributions] in ``tables``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.errors import NumgradValueError
from numgrad.stats.counts import categorical
from numgrad.stats.covariance import Covariance, factored
from numgrad.torch.distributions import tables, utils
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.tables import ProbabilityDistribution, TableDistribution
from numgrad.torch.distributions.univariate import CLASSES as UNIVARIATE
from numgrad.torch.distributions.utils import torch
from numgrad.torch.wrapping import unwrap, wrap


def _one_hot(indices: Any, like: Any) -> Any:
    return torch.nn.functional.one_hot(indices, like.shape[-1]).to(like)


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
        size = (*lead, *shape[: len(shape) - self._event_dim])
        return wrap(categorical.rvs(unwrap(self.probs.detach().double()), size))

    def _category_entropy(self) -> Any:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def _chosen(self, value: Any) -> Any:
        """Logarithms of the probabilities of indices, which have a last axis of length 1."""
        shape = value.shape[:-1]
        if shape != self._batch_shape:
            shape = torch.broadcast_shapes(shape, self._batch_shape)
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, value.expand((*shape, 1))).squeeze(-1)


def _matrix(name: str) -> Any:
    """A matrix of the covariance, for each of the batch."""
    return utils.lazy_property(
        lambda self: wrap(getattr(self._covariance, name)).expand(
            (*self._batch_shape, self._size, self._size)
        )
    )


class CovarianceDistribution(TableDistribution):
    """Base of those of ``loc`` or ``df`` and a covariance, its inverse or its Cholesky factor."""

    _covariance: Any
    """The covariance of ``ng.stats``, in the shape in which it is given."""
    _size = property(lambda self: self._event_shape[-1], doc="Length of the matrices.")
    scale_tril, covariance_matrix = _matrix("factor"), _matrix("covariance")
    precision_matrix = _matrix("precision")

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Take the one of the matrices that is given."""
        (name, x), *rest = given.items()
        rest = [(key, value) for key, value in rest if value is not None]
        if len(rest) != 1:
            raise NumgradValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((key, root),) = rest
        own = 1 if name == "loc" else 0
        x = torch.as_tensor(x, dtype=root.dtype)
        self._take({name: (x, own), key: (root, 2)}, root.shape[-self._event_dim :], validate_args)
        make = {
            "covariance_matrix": factored, "precision_matrix": Covariance.from_precision,
            "scale_tril": Covariance.from_cholesky,
        }  # fmt: skip
        self._covariance = make[key](unwrap(root))

    def _take(self, given: dict[str, tuple[Any, int]], event_shape: Any, validate: Any) -> None:
        """Take parameters with the number of axes that an event has of each."""
        for name, (x, own) in given.items():
            if x.dim() < own:
                raise NumgradValueError(f"{name} must be at least {own}-dimensional")
        lead = np.broadcast_shapes(*[x.shape[: x.dim() - own] for x, own in given.values()])
        for name, (x, own) in given.items():
            setattr(self, name, x.expand((*lead, *x.shape[x.dim() - own :])))
        Distribution.__init__(self, lead, event_shape, validate)


class LowRankDistribution(CovarianceDistribution):
    """Base of normal vectors whose covariance is ``W W^T + diag(d)``."""

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Broadcast the parameters, of vectors of one length."""
        loc, w, d = given.values()
        n = loc.shape[-1:]
        if w.dim() < 2 or w.shape[-2:-1] != n or d.shape[-1:] != n:
            raise NumgradValueError(
                f"cov_factor must be a batch of matrices of {n} rows and cov_diag one of vectors "
                f"of that length, got shapes {w.shape} and {d.shape}"
            )
        self._take({"loc": (loc, 1), "cov_factor": (w, 2), "cov_diag": (d, 1)}, n, validate_args)
        self._covariance = Covariance.from_low_rank(unwrap(w), unwrap(d))


def _onion(self: Any, shape: Any) -> Any:
    """Cholesky factors of random correlation matrices by the onion method.

    Lewandowski, Kurowicka, Joe, "Generating random correlation matrices based on vines and
    extended onion method", 2009, section 3.2.
    """
    eta, n = self.concentration, self.dim
    row = torch.cat([torch.zeros(1, dtype=eta.dtype), torch.arange(n - 1, dtype=eta.dtype)])
    left = (eta + 0.5 * (n - 2)).unsqueeze(-1) - 0.5 * row
    share = utils.drawn("beta", shape[:-1], (0.5 * (row + 1)).expand(left.shape), left)
    normal = torch.randn(shape, dtype=eta.dtype).tril(-1)
    length = normal.norm(dim=-1, keepdim=True)
    w = (
        utils.inside_unit(share).sqrt().unsqueeze(-1)
        * normal
        / torch.where(length == 0, 1.0, length)
    )
    rest = (1 - (w * w).sum(-1)).clamp(min=torch.finfo(eta.dtype).tiny)
    return w + torch.diag_embed(rest.sqrt())


def _onion_log_prob(eta: Any, n: int, value: Any) -> Any:
    """Powers of the diagonal of a Cholesky factor, and their normalizer (page 1999 there)."""
    order = 2 * (eta - 1).unsqueeze(-1) + n - torch.arange(2, n + 1, dtype=eta.dtype)
    log = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
    alpha = eta + 0.5 * (n - 1)
    normalizer = 0.5 * (n - 1) * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, n - 1)
    return log - normalizer + (n - 1) * torch.lgamma(alpha)


TABLE = """
Dirichlet(concentration: independent(positive, 1)) on simplex by dirichlet(0, 1, concentration)
  mode: torch.where((concentration < 1).all(-1, True), _one_hot(
    concentration.argmax(-1), concentration), (concentration - 1).clamp(min=0) / (
    concentration - 1).clamp(min=0).sum(-1, True))
Categorical(probs: simplex | logits: real_vector) on integer_interval(0, self._num_events - 1)
    by categorical(0, 1, probs) as CategoryDistribution
  event: torch.Size()
  mean: torch.full(self._batch_shape, math.nan, dtype=probs.dtype)
  mode: probs.argmax(-1)
  variance: self.mean
  log_prob: self._chosen(value.long().unsqueeze(-1))
  entropy: self._category_entropy()
  sample: self._drawn(shape)
  values: torch.arange(self._num_events)
OneHotCategorical(probs: simplex | logits: real_vector) on one_hot by categorical(0, 1, probs)
    as CategoryDistribution
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
LogisticNormal(loc: real, scale: positive) on simplex
  base_dist: Normal(torch.atleast_1d(loc), torch.atleast_1d(scale))
  transforms: [StickBreakingTransform()]
  event: torch.Size((self.base_dist.loc.shape[-1] + 1,))
  _param_dim: min(loc.dim(), 1)
LKJCholesky(dim, concentration: positive = 1.0) on corr_cholesky
  event: torch.Size((dim, dim))
  _param_dim: 0
  _check: torch.tensor(dim >= 2)
  log_prob: _onion_log_prob(concentration, dim, value)
  sample: _onion(self, shape)
Multinomial(total_count = 1, probs: simplex | logits: real_vector)
    on multinomial(total_count) by multinomial(0, 1, torch.tensor(total_count), probs)
    as CategoryDistribution
  variance: self.mean * (1 - probs)
  log_prob: torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1) + (
    torch.where((value == 0) & (logits == -math.inf), 0.0, logits) * value).sum(-1)
  sample: _one_hot(self._drawn(shape, total_count), probs).sum(0)
MultivariateNormal(loc: real_vector, covariance_matrix: positive_definite = None,
    precision_matrix: positive_definite = None, scale_tril: lower_cholesky = None)
    on real_vector by multivariate_normal(0, 1, loc, self._covariance) as CovarianceDistribution
  mode: loc
Wishart(df: greater_than(self._size - 1), covariance_matrix: positive_definite = None,
    precision_matrix: positive_definite = None, scale_tril: lower_cholesky = None)
    on positive_definite by wishart(0, 1, df, self._covariance) as CovarianceDistribution
  mode: torch.where(df > self._size + 1, df - self._size - 1, math.nan)[..., None, None] * (
    self.covariance_matrix)
  log_prob: 0.5 * (df - self._size - 1) * torch.linalg.slogdet(value)[1] - 0.5 * (
    self.precision_matrix * value).sum((-2, -1)) - df * (0.5 * self._size * math.log(2) +
    self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)) - torch.mvlgamma(0.5 * df, self._size)
LowRankMultivariateNormal(loc: real_vector, cov_factor: independent(real, 2),
    cov_diag: independent(positive, 1)) on real_vector
    by multivariate_normal(0, 1, loc, self._covariance) as LowRankDistribution
  mode: loc
"""
CLASSES = UNIVARIATE | tables.declare(TABLE, UNIVARIATE | globals())
globals().update(CLASSES)
