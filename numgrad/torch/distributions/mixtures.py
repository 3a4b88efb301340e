"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any, ClassVar

from numgrad.errors import NumgradValueError
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.utils import torch
from numgrad.torch.distributions.vectors import CLASSES


class MixtureSameFamily(Distribution):
    """A mixture, by a Categorical, of the last axis of a batch of distributions."""

    _component_distribution: Any
    arg_constraints: ClassVar[Any] = {}

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(mixture_distribution, CLASSES["Categorical"]):
            raise NumgradValueError("the mixture distribution needs to be a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise NumgradValueError("the component distribution needs to be a Distribution")
        shape = component_distribution.batch_shape
        own = mixture_distribution.batch_shape
        if any(a != b and 1 not in (a, b) for a, b in zip(own[::-1], shape[-2::-1], strict=False)):
            raise NumgradValueError(
                f"`mixture_distribution.batch_shape` ({own}) is not compatible with "
                f"`component_distribution.batch_shape`({shape})"
            )
        if mixture_distribution.logits.shape[-1] != shape[-1]:
            raise NumgradValueError("numbers of components of mixture and components differ")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = shape[-1]
        super().__init__(shape[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self) -> Any:
        """Set of values: those in the supports of all components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weighted(self, x: Any) -> Any:
        """Mean over components of what each has."""
        dim = len(self._event_shape)
        probs = self._mixture_distribution.probs
        return (probs.reshape(probs.shape + (1,) * dim) * x).sum(-1 - dim)

    def _padded(self, x: Any) -> Any:
        return x.unsqueeze(-1 - len(self._event_shape))

    @property
    def mean(self) -> Any:
        """Mean."""
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        """Variance: within components and between them."""
        component = self._component_distribution
        between = (component.mean - self._padded(self.mean)).pow(2)
        return self._weighted(component.variance + between)

    def cdf(self, value: Any) -> Any:
        """Probability of a number not above ``value``."""
        return self._weighted(self._component_distribution.cdf(self._padded(value)))

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        logs = self._component_distribution.log_prob(self._padded(value))
        return (logs + torch.log_softmax(self._mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw events."""
        with torch.no_grad():
            dim = len(self._event_shape)
            component = self._component_distribution.sample(sample_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (dim + 1))
            index = index.expand((*chosen.shape, 1, *self._event_shape))
            return component.gather(-1 - dim, index).squeeze(-1 - dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
