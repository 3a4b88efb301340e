"""Activation functions in pieces, and of several channels, as modules: see ``nn.functional``."""

from __future__ import annotations

from typing import Any

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.nn.activation import functional, piecewise
from numgrad.nn.applied import Applied, applies
from numgrad.nn.module.module import Module
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


@applies(piecewise.hardsigmoid)
class Hardsigmoid(Applied):
    """``x / 6 + 1 / 2`` limited to the interval from 0 to 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Hardsigmoid()(ng.tensor([-4.0, 1.5, 3.0]))
    tensor([0.  , 0.75, 1.  ])
    """

    inplace: bool = False


@applies(piecewise.hardswish)
class Hardswish(Applied):
    """``x * hardsigmoid(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Hardswish()(ng.tensor([1.5, 3.0]))
    tensor([1.125, 3.   ])
    """

    inplace: bool = False


@applies(piecewise.hardshrink)
class Hardshrink(Applied):
    """``x`` where its magnitude is above ``lambd``, else 0.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Hardshrink()(ng.tensor([-1.0, 0.5, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    lambd: float = 0.5


@applies(piecewise.softshrink)
class Softshrink(Applied):
    """``x`` moved towards 0 by ``lambd``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Softshrink()(ng.tensor([-1.0, 0.5, 2.0]))
    tensor([-0.5,  0. ,  1.5])
    """

    lambd: float = option(default=0.5, at_least=0)


@applies(piecewise.tanhshrink)
class Tanhshrink(Applied):
    """``x - tanh(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Tanhshrink()(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.23840584])
    """


@applies(piecewise.threshold)
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


@applies(piecewise.rrelu)
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
        piecewise.check_bounds(type(self).__name__, options["lower"], options["upper"])


@applies(piecewise.glu)
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
        return functional.softmax(input, -3)
