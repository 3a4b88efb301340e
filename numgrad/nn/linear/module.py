"""Layers that are linear in each of their arguments."""

from __future__ import annotations

import math
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.nn import init
from numgrad.nn.linear.operation import _bilinear, _linear
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.module.parameter import empty_parameter


class Identity(Module):
    """Returns its argument; takes any arguments when it is made, so it can replace other layers.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Identity()(ng.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return the argument."""
        return input


class Linear(Module):
    """``y = x @ weight.T + bias`` on the last axis.

    Parameters
    ----------
    in_features, out_features
        Lengths of the last axis of ``x`` and ``y``.
    bias
        Whether there is one.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Attributes
    ----------
    weight
        Of shape (out_features, in_features); at first evenly spread between ``-k`` and ``k``,
        ``k = 1 / sqrt(in_features)``.
    bias
        Of shape (out_features,), or None; at first as the weight.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Linear(3, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    >>> layer(ng.ones((5, 3))).shape
    (5, 2)
    """

    @checked
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), dtype, device)
        self.register_parameter(
            "bias", empty_parameter((out_features,), dtype, device) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        init.reset_weight_and_bias(self.weight, self.bias)

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """``y[k] = x1 @ weight[k] @ x2 + bias[k]`` on the last axes.

    Parameters
    ----------
    in1_features, in2_features, out_features
        Lengths of the last axes of ``x1``, ``x2`` and ``y``.
    bias
        Whether there is one.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Raises
    ------
    NumgradValueError
        If ``in1_features`` is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Bilinear(3, 4, 2)(ng.ones((5, 3)), ng.ones((5, 4))).shape
    (5, 2)
    """

    @checked
    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in1_features, in2_features), dtype, device)
        self.register_parameter(
            "bias", empty_parameter((out_features,), dtype, device) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Tensor:
        """Apply the layer."""
        return _bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
