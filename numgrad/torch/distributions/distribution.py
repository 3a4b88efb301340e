"""Bases of all distributions."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.utils import Tensor, lacking, torch


class Distribution:
    """A distribution, or a batch of them: ``batch_shape``, of events of a shape ``event_shape``."""

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = True

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = torch.Size(batch_shape), torch.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        declared = self._validate_args and self._declared("arg_constraints")
        for name, constraint in (declared or {}).items():
            if name in vars(self) and not constraints.is_dependent(constraint):
                value = getattr(self, name)
                self._require(value, constraint, f"parameter {name}", "satisfy the constraint")

    batch_shape = property(lambda self: self._batch_shape, doc="Shape of the batch.")
    event_shape = property(lambda self: self._event_shape, doc="Shape of one event.")
    stddev = property(lambda self: self.variance.sqrt(), doc="Standard deviation.")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether distributions check parameters and values unless told otherwise."""
        if value not in (True, False):
            raise NumgradValueError(f"set_default_validate_args: takes a bool, got {value!r}")
        Distribution._validate_args = value

    def _declared(self: Any, name: str) -> Any:
        """The constraints of that name; None, with a warning, if there are none."""
        try:
            return getattr(self, name)
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `{name}` to check values by; set it, or pass "
                "validate_args=False to turn validation off",
                stacklevel=4,
            )

    def _require(self, value: Any, constraint: Any, what: str, condition: str) -> None:
        if not constraints.holds(constraint, value):
            raise NumgradValueError(
                f"Expected {what} (Tensor of shape {tuple(value.shape)}) to {condition} "
                f"{constraint!r} of distribution {self!r}, but found invalid values:\n{value}"
            )

    def _validate_sample(self, value: Any) -> None:
        """Raise where a value has another shape than events, or is outside of the support."""
        if not isinstance(value, Tensor):
            raise NumgradValueError("The value argument to log_prob must be a Tensor")
        shape, expected = value.shape, self._batch_shape + self._event_shape
        pairs = zip(reversed(shape), reversed(expected), strict=False)
        end = len(shape) - len(self._event_shape)
        if shape[end:] != self._event_shape or any(a != b and 1 not in (a, b) for a, b in pairs):
            raise NumgradValueError(
                f"Value of shape {tuple(shape)} is not broadcastable with batch_shape+event_shape: "
                f"{tuple(expected)}, whose right-most sizes {tuple(self._event_shape)} it must have"
            )
        support = self._declared("support")
        if support is not None:
            self._require(value, support, "value argument", "be within the support")

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return torch.Size(sample_shape) + self._batch_shape + self._event_shape

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """A new distribution of this class without parameters, or the one that is given."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NumgradNotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def sample(self: Any, sample_shape: Any = ()) -> Any:
        """Draw numbers without gradients."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def perplexity(self: Any) -> Any:
        """Exponential of the entropy."""
        return torch.exp(self.entropy())

    def expand(self: Any, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution in a batch of another shape, to which its parts broadcast."""
        own = next(c for c in type(self).__mro__ if c.__module__.startswith("numgrad.torch"))
        new = self._get_checked_instance(own, _instance)
        new._batch_shape, cut = torch.Size(batch_shape), len(self._batch_shape)
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name in self.arg_constraints:
                setattr(new, name, value.expand(new._batch_shape + value.shape[cut:]))
            elif isinstance(getattr(type(self), name, None), cached_property):
                continue  # which follows from others
            elif hasattr(value, "_batch_shape"):
                setattr(new, name, value.expand(new._batch_shape + value.batch_shape[cut:]))
            elif name not in vars(new):
                setattr(new, name, value)
        return new

    def __repr__(self: Any) -> str:
        shown = [(name, vars(self).get(name)) for name in self.arg_constraints]
        text = (f"{k}: {v.item() if v.numel() == 1 else v.size()}"
                for k, v in shown if isinstance(v, Tensor))  # fmt: skip
        return f"{type(self).__name__}({', '.join(text)})"


for _name in ["rsample", "log_prob", "entropy", "cdf", "icdf", "enumerate_support"]:
    setattr(Distribution, _name, lacking(_name))
for _name in ["arg_constraints", "support", "mean", "mode", "variance"]:
    setattr(Distribution, _name, property(lacking(_name)))


class ExponentialFamily(Distribution):
    """Base of distributions whose density is the exponential of a linear function of statistics."""
