"""Distributions of categories, vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.random.generator import generator_from
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.constraints import torch
from numgrad.torch.distributions.counts import CLASSES
from numgrad.torch.distributions.distribution import (
    HALF_LOG_2PI,
    Distribution,
    ExponentialFamily,
    alternative,
    beta_path,
    expanded_support,
    given_parameter,
    inner_probs,
    inner_uniform,
    lazy_property,
    wrapped,
)  # fmt: skip


def _dirichlet(alpha: Any) -> Any:
    """Points of simplexes, whose gradients in ``alpha`` are implicit ones.

    Each component follows a beta distribution; the others share what it leaves in the same
    proportions (Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018).
    Numbers are drawn by logarithms, ``gamma(a) = gamma(a + 1) u**(1 / a)``, which do not underflow.
    """
    a = alpha.detach().double()
    source = generator_from("rsample", None)
    log = (
        wrapped(source.standard_gamma((a + 1)._tensor)).log() + inner_uniform(a.shape, a).log() / a
    )
    x = torch.softmax(log, -1).clamp(min=torch.finfo(torch.float64).tiny)
    if not (torch.is_grad_enabled() and alpha.requires_grad):
        return x.to(alpha.dtype)
    x = x.to(alpha.dtype).double()  # whose gradient it is
    inner, rest = x.clamp(max=1 - 2**-53), (a.sum(-1, True) - a)
    path = beta_path(inner, alpha.double(), rest)
    step = (path - inner) / (1 - inner)
    return (x + step - x * step.sum(-1, True)).to(alpha.dtype)


class Dirichlet(ExponentialFamily):
    """Probabilities that sum to 1, of concentrations along the last axis."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}  # noqa: RUF012
    support, has_rsample = constraints.simplex, True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise NumgradValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw points, with gradients in the concentrations."""
        return _dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        weighted = torch.xlogy(a - 1, value).sum(-1)
        return weighted + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    @property
    def mean(self) -> Any:
        """Mean."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        """Most probable point, or corner."""
        a = (self.concentration - 1).clamp(min=0)
        inner, corner = a / a.sum(-1, True), self.concentration.argmax(-1)
        outer = torch.nn.functional.one_hot(corner, a.shape[-1]).to(a)
        return torch.where((self.concentration < 1).all(-1, True), outer, inner)

    @property
    def variance(self) -> Any:
        """Variance of each component."""
        total, mean = self.concentration.sum(-1, True), self.mean
        return mean * (1 - mean) / (total + 1)

    def entropy(self) -> Any:
        """Entropy."""
        a, total = self.concentration, self.concentration.sum(-1)
        return (
            torch.lgamma(a).sum(-1) - torch.lgamma(total) - (
                (a.size(-1) - total) * torch.digamma(total)
            ) - ((a - 1) * torch.digamma(a)).sum(-1)
        )  # fmt: skip


class _Classes(Distribution):
    """Base of distributions over categories, of ``probs`` or ``logits`` along the last axis."""

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex, "logits": constraints.real_vector,
    }  # fmt: skip
    probs: Any = lazy_property(lambda self: torch.softmax(self.logits, -1))
    logits: Any = lazy_property(lambda self: inner_probs(self.probs).log())
    param_shape = property(lambda self: given_parameter(self).size())

    def _take_parameters(self, probs: Any, logits: Any) -> Any:
        """Normalise what was given; the shape of the batch."""
        name = alternative(self, probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise NumgradValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = given / given.sum(-1, True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        self._num_events = given.size(-1)
        return given.shape[:-1]

    def _indices(self, sample_shape: Any) -> Any:
        shape = torch.Size(sample_shape) + self._batch_shape
        rows = self.probs.detach().reshape(-1, self._num_events)
        numbers = torch.multinomial(rows, math.prod(torch.Size(sample_shape)), True)
        return numbers.T.reshape(shape)

    def _entropy(self) -> Any:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)


class Categorical(_Classes):
    """Indices of categories."""

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        batch_shape = self._take_parameters(probs, logits)
        super().__init__(batch_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """Set of the indices."""
        return constraints.integer_interval(0, self._num_events - 1)

    mean = property(lambda self: torch.full(self._batch_shape, math.nan, dtype=self.probs.dtype))
    variance = mean
    mode = property(lambda self: self.probs.argmax(-1), doc="Most probable index.")

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw indices."""
        return self._indices(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the probability of an index."""
        if self._validate_args:
            self._validate_sample(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        """Entropy."""
        return self._entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All indices, along a new first axis."""
        return expanded_support(self, torch.arange(self._num_events), expand)


class OneHotCategorical(_Classes):
    """Categories as vectors with a 1."""

    has_enumerate_support, support = True, constraints.one_hot

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        batch_shape = self._take_parameters(probs, logits)
        super().__init__(batch_shape, (self._num_events,), validate_args)

    mean = property(lambda self: self.probs, doc="Mean.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="Variance.")

    def _vectors(self, indices: Any) -> Any:
        return torch.nn.functional.one_hot(indices, self._num_events).to(self.probs)

    mode = property(lambda self: self._vectors(self.probs.argmax(-1)), doc="Most probable.")

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw vectors."""
        return self._vectors(self._indices(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the probability of a vector."""
        if self._validate_args:
            self._validate_sample(value)
        value, logits = torch.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value.argmax(-1, keepdim=True)).squeeze(-1)

    def entropy(self) -> Any:
        """Entropy."""
        return self._entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All vectors, along a new first axis."""
        values = torch.eye(self._num_events, dtype=self.probs.dtype)
        return expanded_support(self, values, expand, own=1)


class Multinomial(_Classes):
    """Counts of categories in a number of draws."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(total_count, int):
            raise NumgradValueError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        batch_shape = self._take_parameters(probs, logits)
        super().__init__(batch_shape, (self._num_events,), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Set of counts with this sum."""
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count, doc="Mean.")
    variance = property(lambda self: self.mean * (1 - self.probs), doc="Variance.")

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw counts."""
        draws = self._indices((self.total_count, *torch.Size(sample_shape)))
        return torch.nn.functional.one_hot(draws, self._num_events).sum(0).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the probability of counts."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        chosen = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        none = (value == 0) & (logits == -math.inf)
        return chosen + (torch.where(none, 0.0, logits) * value).sum(-1)

    def entropy(self) -> Any:
        """Entropy, by the binomial distribution of each count."""
        n = torch.tensor(self.total_count)
        counts = CLASSES["Binomial"](self.total_count, probs=self.probs)
        values = counts.enumerate_support(False)[1:]
        weights = counts.log_prob(values).exp()
        terms = (weights * torch.lgamma(values + 1)).sum(0).sum(-1)
        return self.total_count * self._entropy() - torch.lgamma(n + 1.0) + terms


def _quadratic(root: Any, x: Any) -> Any:
    """Squared length of ``x`` by the covariance whose Cholesky factor is ``root``."""
    shape = torch.broadcast_shapes(root.shape[:-1], x.shape)
    solved = torch.linalg.solve_triangular(
        root.expand(shape + root.shape[-1:]), x.expand(shape).unsqueeze(-1), upper=False
    )
    return solved.squeeze(-1).pow(2).sum(-1)


def _half_log_det(root: Any) -> Any:
    return root.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(Distribution):
    """Normal vectors, of a mean and a covariance, its inverse, or its Cholesky factor."""

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support, has_rsample = constraints.real_vector, True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None,
        scale_tril: Any = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise NumgradValueError("loc must be at least one-dimensional.")
        given = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }  # fmt: skip
        given = {key: value for key, value in given.items() if value is not None}
        if len(given) != 1:
            raise NumgradValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise NumgradValueError(f"{name} must be at least two-dimensional")
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self.loc = loc.expand(batch_shape + loc.shape[-1:])
        super().__init__(batch_shape, loc.shape[-1:], validate_args)
        if name == "scale_tril":
            root = scale_tril
        elif name == "covariance_matrix":
            root = torch.linalg.cholesky(covariance_matrix)
        else:
            # inverse of the factor from the last row on: P = V V^T with V upper triangular
            lower = torch.linalg.cholesky(precision_matrix.flip((-2, -1)))
            upper = lower.flip((-2, -1)).mT
            eye = torch.eye(loc.shape[-1], dtype=loc.dtype).expand(upper.shape)
            root = torch.linalg.solve_triangular(upper, eye, upper=False)
        self._unbroadcasted_scale_tril = root

    scale_tril: Any = lazy_property(
        lambda self: self._unbroadcasted_scale_tril.expand(
            self._batch_shape + self._event_shape * 2
        ),
    )
    covariance_matrix: Any = lazy_property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix: Any = lazy_property(lambda self: torch.cholesky_inverse(self.scale_tril))
    mean = property(lambda self: self.loc, doc="Mean.")
    mode = mean

    @property
    def variance(self) -> Any:
        """Variance of each component."""
        return self.scale_tril.pow(2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw vectors, with gradients in all parameters."""
        z = torch.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self._unbroadcasted_scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        root = self._unbroadcasted_scale_tril
        constant = self._event_shape[0] * HALF_LOG_2PI + _half_log_det(root)
        return -0.5 * _quadratic(root, value - self.loc) - constant

    def entropy(self) -> Any:
        """Entropy."""
        value = self._event_shape[0] * (0.5 + HALF_LOG_2PI)
        return (value + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors whose covariance is ``W W^T + diag(d)``.

    Solved by the capacitance matrix ``I + W^T diag(1 / d) W``: the Woodbury identity.
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support, has_rsample = constraints.real_vector, True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise NumgradValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != n:
            raise NumgradValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1:] != (n,):
            raise NumgradValueError(f"cov_diag must be a batch of vectors with shape {n}")
        try:
            shape = torch.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except (RuntimeError, ValueError):
            raise NumgradValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from None
        self.loc, self.cov_diag = (x.expand((*shape, n)) for x in (loc, cov_diag))
        self.cov_factor = cov_factor.expand(shape + cov_factor.shape[-2:])
        super().__init__(shape, (n,), validate_args)

    mean = property(lambda self: self.loc, doc="Mean.")
    mode = mean

    @property
    def variance(self) -> Any:
        """Variance of each component."""
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Any:
        """Covariance."""
        return self.cov_factor @ self.cov_factor.mT + torch.diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Any:
        """Cholesky factor of the covariance."""
        return torch.linalg.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        solved = torch.linalg.solve_triangular(self._capacitance_tril(), scaled, upper=False)
        return torch.diag_embed(1 / self.cov_diag) - solved.mT @ solved

    def _capacitance_tril(self) -> Any:
        w = self.cov_factor
        eye = torch.eye(w.shape[-1], dtype=w.dtype)
        return torch.linalg.cholesky(eye + w.mT / self.cov_diag.unsqueeze(-2) @ w)

    def _half_log_det(self, root: Any) -> Any:
        return _half_log_det(root) + 0.5 * self.cov_diag.log().sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw vectors, with gradients in all parameters."""
        shape, w = self._extended_shape(sample_shape), self.cov_factor
        low = torch.randn(shape[:-1] + w.shape[-1:], dtype=w.dtype).unsqueeze(-1)
        own = torch.randn(shape, dtype=w.dtype)
        return self.loc + (w @ low).squeeze(-1) + self.cov_diag.sqrt() * own

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        x, root = value - self.loc, self._capacitance_tril()
        scaled = x / self.cov_diag
        inner = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        distance = (x * scaled).sum(-1) - _quadratic(root, inner)
        constant = self._event_shape[0] * HALF_LOG_2PI + self._half_log_det(root)
        return -0.5 * distance - constant

    def entropy(self) -> Any:
        """Entropy."""
        constant = self._event_shape[0] * (0.5 + HALF_LOG_2PI)
        return constant + self._half_log_det(self._capacitance_tril())
