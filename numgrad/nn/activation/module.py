"""Activation functions as modules: see ``nn.functional`` for what they compute."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.nn.activation import functional as F
from numgrad.nn.module.module import Module
from numgrad.nn.module.parameter import empty_parameter
from numgrad.tensors.tensor import Tensor


def _flag(inplace: bool, before: str = "") -> str:
    """The text of ``inplace`` after that of other arguments, where it is set."""
    return f"{before}inplace=True" if inplace else ""


class _Inplace(Module):
    """An activation whose one option is to write to its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """``inplace`` where it is set."""
        return _flag(self.inplace)


class ReLU(_Inplace):
    """``max(x, 0)``, element by element.

    Parameters
    ----------
    inplace
        Write to the input.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReLU()(ng.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.relu(input, self.inplace)


class SELU(_Inplace):
    """``elu`` scaled so that mean 0 and variance 1 are kept.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.SELU()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 1.05070099])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.SiLU()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.73105858])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Mish()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.86509839])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.mish(input, self.inplace)


class LeakyReLU(Module):
    """``x`` where it is positive, else ``negative_slope * x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LeakyReLU(0.5)
    LeakyReLU(negative_slope=0.5)
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope, and ``inplace`` where it is set."""
        return f"negative_slope={self.negative_slope}" + _flag(self.inplace, ", ")


class PReLU(Module):
    """``leaky_relu`` with a slope that is learned, for all elements or for each channel.

    Parameters
    ----------
    num_parameters
        1, or the number of channels (axis 1).
    init
        First value of the slopes.
    device
        None or ``"cpu"``.
    dtype
        Of the slopes, by default float64.

    Attributes
    ----------
    weight
        The slopes, of shape ``(num_parameters,)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.PReLU(2)(ng.tensor([[-1.0, 4.0]]))
    tensor([[-0.25,  4.  ]], grad_fn=<PreluBackward>)
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = empty_parameter((num_parameters,), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Give the slopes their first value."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class _Alpha(Module):
    """An activation with a scale, which may write to its input."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def extra_repr(self) -> str:
        """The scale, and ``inplace`` where it is set."""
        return f"alpha={self.alpha}" + _flag(self.inplace, ", ")


class ELU(_Alpha):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ELU()(ng.tensor([-1.0, 1.0]))
    tensor([-0.63212056,  1.        ])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.CELU(2.0)(ng.tensor([-2.0, 1.0]))
    tensor([-1.26424112,  1.        ])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """``x`` times the probability that a standard normal number is smaller.

    Parameters
    ----------
    approximate
        ``"none"``, or ``"tanh"`` for a faster form.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.GELU()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.84134475])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The form in use."""
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Sigmoid()(ng.tensor([0.0, 1.0]))
    tensor([0.5       , 0.73105858])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LogSigmoid()(ng.tensor([0.0, 1.0]))
    tensor([-0.69314718, -0.31326169])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.logsigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Tanh()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.76159416])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.tanh(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``; ``x`` where ``beta * x`` is above a threshold.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softplus()(ng.tensor([0.0, 1.0]))
    tensor([0.69314718, 1.31326169])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Sharpness and threshold."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """``x / (1 + abs(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softsign()(ng.tensor([0.0, 1.0]))
    tensor([0. , 0.5])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.softsign(input)


class Hardtanh(Module):
    """``x`` limited to an interval.

    Raises
    ------
    NumgradValueError
        If ``min_val`` is not below ``max_val``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Hardtanh()(ng.tensor([0.5, 3.0]))
    tensor([0.5, 1. ])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if not max_val > min_val:
            raise NumgradValueError(
                f"{type(self).__name__}: min_val {min_val} must be below max_val {max_val}"
            )
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The interval, and ``inplace`` where it is set."""
        return f"min_val={self.min_val}, max_val={self.max_val}" + _flag(self.inplace, ", ")


class ReLU6(Hardtanh):
    """``x`` limited to the interval from 0 to 6.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReLU6()(ng.tensor([0.5, 8.0]))
    tensor([0.5, 6. ])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """``inplace`` where it is set."""
        return _flag(self.inplace)


class _OneAxis(Module):
    """A function of the elements along an axis."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class Softmax(_OneAxis):
    """Exponentials divided by their sum along an axis.

    Parameters
    ----------
    dim
        The axis; without one it is guessed, with a warning.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softmax(dim=1)(ng.zeros((1, 2)))
    tensor([[0.5, 0.5]])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.softmax(input, self.dim)


class LogSoftmax(_OneAxis):
    """Logarithm of ``Softmax``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LogSoftmax(dim=1)(ng.zeros((1, 2)))
    tensor([[-0.69314718, -0.69314718]])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.log_softmax(input, self.dim)


class Softmin(_OneAxis):
    """``Softmax`` of ``-x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softmin(dim=0)(ng.tensor([0.0, 1000.0]))
    tensor([1., 0.])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.softmin(input, self.dim)
