"""Activation functions as modules, under their names in PyTorch."""

from __future__ import annotations

from typing import Any

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.nn import activation as F
from numgrad.nn.applied import Applied, applies, checked
from numgrad.nn.module.members import empty_parameter
from numgrad.nn.module.module import Module
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


@applies(F.relu)
class ReLU(Applied):
    """``max(x, 0)``, element by element.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReLU()(ng.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False


@applies(F.selu)
class SELU(Applied):
    """``elu`` scaled so that mean 0 and variance 1 are kept.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.SELU()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 1.05070099])
    """

    inplace: bool = False


@applies(F.silu)
class SiLU(Applied):
    """``x * sigmoid(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.SiLU()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.73105858])
    """

    inplace: bool = False


@applies(F.mish)
class Mish(Applied):
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Mish()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.86509839])
    """

    inplace: bool = False


@applies(F.leaky_relu)
class LeakyReLU(Applied):
    """``x`` where it is positive, else ``negative_slope * x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LeakyReLU(0.5)
    LeakyReLU(negative_slope=0.5)
    """

    negative_slope: float = option(default=0.01, doc="Slope where ``x`` is negative.")
    inplace: bool = False


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

    @checked
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


@applies(F.elu)
class ELU(Applied):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ELU()(ng.tensor([-1.0, 1.0]))
    tensor([-0.63212056,  1.        ])
    """

    alpha: float = 1.0
    inplace: bool = False


@applies(F.celu)
class CELU(Applied):
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.CELU(2.0)(ng.tensor([-2.0, 1.0]))
    tensor([-1.26424112,  1.        ])
    """

    alpha: float = 1.0
    inplace: bool = False


@applies(F.gelu)
class GELU(Applied):
    """``x`` times the probability that a standard normal number is smaller.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.GELU()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.84134475])
    """

    approximate: str = option(default="none", one_of=("none", "tanh"))


@applies(F.sigmoid)
class Sigmoid(Applied):
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Sigmoid()(ng.tensor([0.0, 1.0]))
    tensor([0.5       , 0.73105858])
    """


@applies(F.logsigmoid)
class LogSigmoid(Applied):
    """``log(sigmoid(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LogSigmoid()(ng.tensor([0.0, 1.0]))
    tensor([-0.69314718, -0.31326169])
    """


@applies(F.tanh)
class Tanh(Applied):
    """Hyperbolic tangent.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Tanh()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.76159416])
    """


@applies(F.softplus)
class Softplus(Applied):
    """``log(1 + exp(beta * x)) / beta``; ``x`` where ``beta * x`` is above a threshold.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softplus()(ng.tensor([0.0, 1.0]))
    tensor([0.69314718, 1.31326169])
    """

    beta: float = 1.0
    threshold: float = 20.0

    def _check_options(self, options: dict[str, Any]) -> None:
        F.check_beta("Softplus", options["beta"])


@applies(F.softsign)
class Softsign(Applied):
    """``x / (1 + abs(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softsign()(ng.tensor([0.0, 1.0]))
    tensor([0. , 0.5])
    """


@applies(F.hardtanh)
class Hardtanh(Applied):
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

    min_val: float = option(default=-1.0, doc="Lower end of the interval.")
    max_val: float = option(default=1.0, doc="Upper end of the interval.")
    inplace: bool = False

    def _check_options(self, options: dict[str, Any]) -> None:
        low, high = options["min_val"], options["max_val"]
        if not high > low:
            raise NumgradValueError(
                f"{type(self).__name__}: min_val {low} must be below max_val {high}"
            )


@applies(F.hardtanh)
class ReLU6(Hardtanh):
    """``x`` limited to the interval from 0 to 6.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ReLU6()(ng.tensor([0.5, 8.0]))
    tensor([0.5, 6. ])
    """

    min_val: float = option(default=0.0, init=False)
    max_val: float = option(default=6.0, init=False)


@applies(F.softmax)
class Softmax(Applied):
    """Exponentials divided by their sum along an axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softmax(dim=1)(ng.zeros((1, 2)))
    tensor([[0.5, 0.5]])
    """

    dim: int | None = None


@applies(F.log_softmax)
class LogSoftmax(Applied):
    """Logarithm of ``Softmax``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LogSoftmax(dim=1)(ng.zeros((1, 2)))
    tensor([[-0.69314718, -0.69314718]])
    """

    dim: int | None = None


@applies(F.softmin)
class Softmin(Applied):
    """``Softmax`` of ``-x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softmin(dim=0)(ng.tensor([0.0, 1000.0]))
    tensor([1., 0.])
    """

    dim: int | None = None


@applies(F.hardsigmoid)
class Hardsigmoid(Applied):
    """``x / 6 + 1 / 2`` limited to the interval from 0 to 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Hardsigmoid()(ng.tensor([-4.0, 1.5, 3.0]))
    tensor([0.  , 0.75, 1.  ])
    """

    inplace: bool = False


@applies(F.hardswish)
class Hardswish(Applied):
    """``x * hardsigmoid(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Hardswish()(ng.tensor([1.5, 3.0]))
    tensor([1.125, 3.   ])
    """

    inplace: bool = False


@applies(F.hardshrink)
class Hardshrink(Applied):
    """``x`` where its magnitude is above ``lambd``, else 0.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Hardshrink()(ng.tensor([-1.0, 0.5, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    lambd: float = 0.5


@applies(F.softshrink)
class Softshrink(Applied):
    """``x`` moved towards 0 by ``lambd``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softshrink()(ng.tensor([-1.0, 0.5, 2.0]))
    tensor([-0.5,  0. ,  1.5])
    """

    lambd: float = option(default=0.5, at_least=0)


@applies(F.tanhshrink)
class Tanhshrink(Applied):
    """``x - tanh(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Tanhshrink()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.23840584])
    """


@applies(F.threshold)
class Threshold(Applied):
    """``x`` where it is above a threshold, else a value.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Threshold(0.5, 20.0)(ng.tensor([-1.0, 0.5, 2.0]))
    tensor([20., 20.,  2.])
    """

    threshold: float
    value: float
    inplace: bool = False


@applies(F.rrelu)
class RReLU(Applied):
    """``leaky_relu`` with a slope drawn for each element in training.

    Raises
    ------
    NumgradValueError
        If ``lower`` is above ``upper``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.RReLU(0.25, 0.75).eval()(ng.tensor([-4.0, 2.0]))
    tensor([-2.,  2.])
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False

    def _check_options(self, options: dict[str, Any]) -> None:
        F.check_bounds(type(self).__name__, options["lower"], options["upper"])


@applies(F.glu)
class GLU(Applied):
    """The first half along an axis times the ``sigmoid`` of the second.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.GLU()(ng.tensor([3.0, 4.0, 0.0, 1000.0]))
    tensor([1.5, 4. ])
    """

    dim: int = -1


class Softmax2d(Module):
    """``Softmax`` over the channels at each place of images.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softmax2d()(ng.zeros((2, 4, 5, 5))).sum(axis=1).mean().item()
    1.0
    """

    def forward(self, input: Any) -> Tensor:
        """Apply the layer to (batch, channels, height, width), or without the batch.

        Raises
        ------
        NumgradValueError
            If the input has other axes.
        """
        input = asarray(input)
        if input.ndim not in (3, 4):
            raise NumgradValueError(
                f"Softmax2d: needs an input (batch, channels, height, width), or without the "
                f"batch; got shape {tuple(input.shape)}"
            )
        return F.softmax(input, -3)
