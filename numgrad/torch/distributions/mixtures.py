"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from numgrad.errors import NumgradValueError
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.utils import torch
from numgrad.torch.distributions.vectors import CLASSES


class MixtureSameFamily(Distribution):
    """A mixture, by a Categorical, of the last axis of a batch of distributions."""

    arg_constraints: ClassVar[Any] = {}
    component_distribution: Any

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(mixture_distribution, CLASSES["Categorical"]):
            raise NumgradValueError("the mixture distribution needs to be a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise NumgradValueError("the component distribution needs to be a Distribution")
        shape, own = component_distribution.batch_shape, mixture_distribution.param_shape
        if shape[-1:] != own[-1:]:
            raise NumgradValueError(
                f"the mixture of shape {own} and the batch of components {shape} differ in the "
                "last axis, which has to be the number of components of both"
            )
        np.broadcast_shapes(own, shape)
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        super().__init__(shape[:-1], component_distribution.event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        """Set of values: those in the supports of all components."""
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weighted(self, x: Any) -> Any:
        """Mean over components of what each has."""
        dim = len(self._event_shape)
        probs = self.mixture_distribution.probs
        return (probs.reshape(probs.shape + (1,) * dim) * x).sum(-1 - dim)

    def _padded(self, x: Any) -> Any:
        return x.unsqueeze(-1 - len(self._event_shape))

    @property
    def mean(self) -> Any:
        """Mean."""
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        """Variance: within components and between them."""
        component = self.component_distribution
        between = (component.mean - self._padded(self.mean)).pow(2)
        return self._weighted(component.variance + between)

    def cdf(self, value: Any) -> Any:
        """Probability of a number not above ``value``."""
        return self._weighted(self.component_distribution.cdf(self._padded(value)))

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        logs = self.component_distribution.log_prob(self._padded(value))
        return (logs + torch.log_softmax(self.mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw events."""
        dim, component = len(self._event_shape), self.component_distribution.sample(sample_shape)
        chosen = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        index = chosen.reshape(chosen.shape + (1,) * (dim + 1))
        index = index.expand((*chosen.shape, 1, *self._event_shape))
        return component.gather(-1 - dim, index).squeeze(-1 - dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution}, {self.component_distribution})"
