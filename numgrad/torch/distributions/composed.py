"""Distributions made of others: independent ones, transformed ones."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, ClassVar

from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.constraints import reinterpreted
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.transforms import ComposeTransform, Transform, log_along
from numgrad.torch.distributions.utils import sum_rightmost, torch


def _of_base(name: str) -> Any:
    """A property of the distribution that another one is made of."""
    return property(lambda self: getattr(self.base_dist, name), doc=f"``{name}`` of the base.")


class Independent(Distribution):
    """A distribution whose last axes of the batch are ones of an event."""

    arg_constraints: ClassVar[Any] = {}
    base_dist: Any
    has_rsample, has_enumerate_support = _of_base("has_rsample"), _of_base("has_enumerate_support")
    mean, mode, variance = _of_base("mean"), _of_base("mode"), _of_base("variance")
    sample, rsample = _of_base("sample"), _of_base("rsample")

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        n, batch_shape = reinterpreted_batch_ndims, base_distribution.batch_shape
        if n > len(batch_shape):
            raise NumgradValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{n} vs {len(batch_shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        cut = len(batch_shape) - n
        event_shape = batch_shape[cut:] + base_distribution.event_shape
        super().__init__(batch_shape[:cut], event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        """Set of values."""
        return reinterpreted(self.base_dist.support, self.reinterpreted_batch_ndims)

    def log_prob(self, value: Any) -> Any:
        """Sum of the logarithms over these axes."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """Sum of the entropies over these axes."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values, along a new first axis; not if events have axes of the batch."""
        if self.reinterpreted_batch_ndims:
            raise NumgradNotImplementedError(
                "Enumeration over cartesian product is not implemented"
            )
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of what transforms make of numbers of another one."""

    arg_constraints: Any = {}  # noqa: RUF012
    base_dist: Any
    transforms: Any
    has_rsample: Any = _of_base("has_rsample")
    _whole = property(lambda self: ComposeTransform(self.transforms))

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        given = [transforms] if isinstance(transforms, Transform) else transforms
        if not (isinstance(given, list) and all(isinstance(t, Transform) for t in given)):
            raise NumgradValueError(
                f"transforms must be a Transform or list, but was {transforms!r}"
            )
        self.transforms, base = given, base_distribution
        whole = self._whole
        inner, outer = whole.domain.event_dim, whole.codomain.event_dim
        shape = base.batch_shape + base.event_shape
        if len(shape) < inner:
            raise NumgradValueError(
                f"base_distribution needs to have shape with size at least {inner}, but got "
                f"{tuple(shape)}."
            )
        forward = torch.Size(whole.forward_shape(shape))
        expanded = torch.Size(whole.inverse_shape(forward))
        if expanded != shape:
            base = base.expand(expanded[: len(expanded) - len(base.event_shape)])
        more = inner - len(base.event_shape)
        self.base_dist = Independent(base, more) if more > 0 else base
        cut = len(forward) - max(len(base.event_shape) + outer - inner, outer)
        super().__init__(forward[:cut], forward[cut:], validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        """Set of values."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        return reinterpreted(last, len(self._event_shape) - last.event_dim)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw numbers without gradients."""
        with torch.no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw numbers with gradients in the parameters."""
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        """Logarithm of the density: that of the base less that of the derivatives."""
        if self._validate_args:
            self._validate_sample(value)
        back, whole = self.transforms[::-1], self._whole
        path = [*accumulate(back, lambda y, transform: transform.inv(y), initial=value)][::-1]
        more = len(self._event_shape) - whole.codomain.event_dim
        slopes = sum_rightmost(log_along(whole, path), more)
        inner = more + whole.domain.event_dim - len(self.base_dist.event_shape)
        return sum_rightmost(self.base_dist.log_prob(path[0]), inner) - slopes

    def _directed(self, value: Any) -> Any:
        """A probability, or its complement where the transforms fall."""
        sign = self._whole.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        """Probability of a number not above ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        return self._directed(self.base_dist.cdf(self._whole.inv(value)))

    def icdf(self, value: Any) -> Any:
        """The number below which there is a probability."""
        return self._whole(self.base_dist.icdf(self._directed(value)))
